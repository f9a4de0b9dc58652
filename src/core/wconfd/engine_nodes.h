/*
 * What a change of engine asks of the nodes' daemons (docs/design/mastership.md, "Change of
 * engine"): engine.json, certificates, members. Everything is called in a task; errors begin with
 * the node's name. Used by engine_change.c and wconf_engine.c.
 */
#pragma once

#include "core/config/model.h"
#include "proto/env.h"

/* Who asks, and under which mastership. */
struct engine_asker {
    const struct env *env;
    struct stamp stamp;
};

/* An empty list of struct node, which owns them. */
GPtrArray *engine_node_list(void);
/* The candidates on record, this node first, then by name: GPtrArray of struct node, copies. */
GPtrArray *engine_candidates(const struct env *env, const struct config *config);

/* A founding of etcd by these nodes, state `preparing`; free with engine_config_free(). LIMIT,
 * WRONG_INPUT. */
struct engine_config *engine_founding(const struct env *env, const struct cluster *cluster,
                                      const GPtrArray *nodes, GError **error);
/* What the node's member would be; free with engine_member_free(). */
struct engine_member *engine_member_of(const struct cluster *cluster, const struct node *node);

/* Free with engine_report_free(). */
struct engine_report *engine_node_report(const struct engine_asker *asker, const struct node *node,
                                         GError **error);
/* Keys on the node, certificates from this node's authority; `anew`: for other keys than those in
 * use. */
bool engine_node_certify(const struct engine_asker *asker, const struct cluster *cluster,
                         const struct node *node, bool anew, GError **error);
/* Whom its member trusts, PEM. */
bool engine_node_trust(const struct engine_asker *asker, const struct node *node,
                       const char *authority, GError **error);
/* TEMPORARY: another member is not well. */
bool engine_node_restart(const struct engine_asker *asker, const struct node *node, GError **error);
/* `config` NULL: no file, which means SQLite. */
bool engine_node_set(const struct engine_asker *asker, const struct node *node,
                     const struct engine_config *config, GError **error);
bool engine_node_start(const struct engine_asker *asker, const struct node *node,
                       enum member_initial initial, GError **error);
/* Nothing of etcd is left that counts: the member is ended, its data aside, engine.json gone. Does
 * nothing where that is so already. */
bool engine_node_clear(const struct engine_asker *asker, const struct node *node, GError **error);
/* The member is ended and its data aside; engine.json stays. */
bool engine_node_end(const struct engine_asker *asker, const struct node *node, GError **error);
/* Until all members are healthy; TIMEOUT names those that are not, and why. */
bool engine_nodes_settle(const struct engine_asker *asker, const GPtrArray *nodes, GError **error);
