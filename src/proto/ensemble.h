/*
 * The members of etcd together, as a master changes them: what a change of engine and the coming
 * and going of candidates do in etcd itself (docs/design/mastership.md, "Change of engine"). What
 * is done on a node is its node daemon's (proto/members.h). io/etcd/etcd_ensemble.c asks real
 * members, tests have a fake (helper/fake_ensemble.h).
 *
 * What waits is called in a task, with this node's client certificate, and asks the members that
 * `config` names. Errors are those of io/etcd/etcd_client.h and io/etcd/etcd_member.h; a wait that
 * was killed is a KILLED error.
 */
#pragma once

#include "proto/engine/etcd_contents.h"
#include "proto/engine_config.h"

struct ensemble;

/* All objects of a cluster, at one serial. */
struct ensemble_content {
    const char *cluster; /* UUID */
    guint64 history, serial;
    guint64 epoch; /* of the mastership that ends with it: later ones are higher */
    /* Calls `each` for every object, before `fill` waits for anything. */
    void (*objects)(void (*each)(const char *kind, const char *key, guint64 version, json_t *object,
                                 void *data),
                    void *data, void *source);
    /* The same for the ids of commits, in order of serial, so that a commit whose answer was lost
     * is known when it is repeated. */
    void (*ids)(void (*each)(const char *commit_id, guint64 serial, void *data), void *data,
                void *source);
    void *source;
};

/* A member as etcd knows it. */
struct ensemble_member {
    guint64 id;
    char *peer_url;
    bool started; /* its process has come at least once */
    bool learner; /* without a vote */
};

/* How a member of the configuration is, by its own word. */
struct ensemble_seen {
    bool healthy; /* it answers reads that a majority has agreed to */
    bool learner; /* without a vote */
    bool lists;   /* it tells who the members are */
    struct etcd_content content;
};

struct ensemble_ops {
    /* What etc/engine.json of this node says now; SQLite if there is none. CORRUPT. Does not wait.
     * Free with engine_config_free(). */
    struct engine_config *(*config_read)(struct ensemble *ensemble, GError **error);
    /* Empties the cluster's keys and fills them. WRONG_STATE: a master uses them. */
    bool (*fill)(struct ensemble *ensemble, const struct engine_config *config,
                 const struct ensemble_content *content, GError **error);
    /* GPtrArray of struct ensemble_member. */
    GPtrArray *(*list)(struct ensemble *ensemble, const struct engine_config *config,
                       GError **error);
    /* Without a vote until it is promoted; no error if it is there. */
    bool (*add)(struct ensemble *ensemble, const struct engine_config *config, const char *peer_url,
                GError **error);
    /* TEMPORARY: it is not up to date yet. */
    bool (*promote)(struct ensemble *ensemble, const struct engine_config *config, guint64 id,
                    GError **error);
    /* Fills one of `ret_seen` for each member of `config`, and compares what those hold who are
     * well. A member that is silent is no error. */
    bool (*survey)(struct ensemble *ensemble, const struct engine_config *config,
                   struct ensemble_seen *ret_seen, enum etcd_verdict *ret_verdict, GError **error);
    /* Whether the members that answer hold the same. `*ret_odd` NULL: they do; else a sentence on
     * which differ, and what to do next; to be freed. */
    bool (*compare)(struct ensemble *ensemble, const struct engine_config *config, char **ret_odd,
                    GError **error);
    /* No error if it is not there. */
    bool (*remove)(struct ensemble *ensemble, const struct engine_config *config, guint64 id,
                   GError **error);
};

struct ensemble {
    const struct ensemble_ops *ops;
};
