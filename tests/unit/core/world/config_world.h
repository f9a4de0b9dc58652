/*
 * A cluster for tests of core/config: three nodes, a mirrored instance web1 (node1, replica on
 * node2), a diskless instance db1 (node1), and the processes that talk to the configuration daemon
 * of node1, in the fake world.
 */
#pragma once

#include "core/config/invariants.h"
#include "core/config/resource.h"
#include "core/wconfd/wconf.h"
#include "helper/fake_engine.h"
#include "helper/fake_env.h"

#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define GROUP "99999999-0000-4000-8000-000000000001"
#define NODE1 "11111111-0000-4000-8000-000000000001"
#define NODE2 "22222222-0000-4000-8000-000000000002"
#define NODE3 "33333333-0000-4000-8000-000000000003"
#define WEB1 "aaaaaaaa-0000-4000-8000-000000000001"
#define DB1 "aaaaaaaa-0000-4000-8000-000000000002"
#define REPLICA1 "bbbbbbbb-0000-4000-8000-000000000001"
#define REPLICA2 "bbbbbbbb-0000-4000-8000-000000000002"
#define DISK1 "dddddddd-0000-4000-8000-000000000001"

/* Objects as JSON; web1: holder node1 at generation 4, replica in-sync with sync 7. */
json_t *object_node(const char *uuid);
json_t *object_web1(void);
json_t *object_db1(void);
json_t *object_replica1(void);
/* `json` with one member set; both references are stolen. */
json_t *with(json_t *json, const char *member, json_t *value);

/* A put or delete; `object` is stolen. `version` as in a commit. */
struct change *put(const char *kind, const char *key, guint64 version, json_t *object);
struct change *del(const char *kind, const char *key, guint64 version);
/* GPtrArray of struct change, which it owns: changes(put(…), del(…), NULL). */
GPtrArray *changes_of(struct change *first, ...) G_GNUC_NULL_TERMINATED;
/* The whole cluster, as a bootstrap would store it. */
GPtrArray *initial_changes(void);
/* The same with all three nodes as candidates. */
GPtrArray *initial_candidates(void);

/* Applies `setup` (NULL: nothing) to that cluster without asking, then asks about `changes`; both
 * are stolen. "ok", or the refusal. */
char *check_as(GPtrArray *setup, GPtrArray *changes, enum invariants_author author);

struct config_world {
    struct fake_world *world;
    struct fake_engine *engine;
    struct wconf *wconf;
    struct env *wconfd;
    struct env *luxid;
    struct env *watcher;
    struct env *job; /* role job; stamps are set by the calls below */
    struct env *noded[3];
    guint64 epoch;
    char *stepped_down; /* the reason */
    GHashTable *named;  /* lock files that calls have named */
    bool own_livelocks; /* the test makes them; else each is held from when it is named first */
};

/* Its nodes answer announcements at once, unless the test says otherwise before
 * config_world_start(). */
void config_world_init(struct config_world *world, GPtrArray *objects);
void config_world_start(struct config_world *world);
/* SIGKILL of wconfd, and a new one (not started yet). */
void config_world_restart(struct config_world *world);
void config_world_clear(struct config_world *world);

/* One answer: its JSON as text, or "error_name: message". Free with g_free(). */
char *ask_wconf(struct config_world *world, const struct env *from, const char *method,
                json_t *args);
/* As job 17 of the present epoch, with lock file job-17. */
char *job_locks(struct config_world *world, guint job, const char *list, bool wait);
char *job_commit(struct config_world *world, guint job, GPtrArray *changes);
/* By the process of another job than the one that has the locks. */
char *job_commit_of(struct config_world *world, guint process, guint job, GPtrArray *changes);
/* As luxid or the watcher, with lock file ROLE-1. */
char *daemon_commit(struct config_world *world, const struct env *from, GPtrArray *changes);
/* As a named change (proto/changes.def). */
char *job_change(struct config_world *world, guint job, const char *name, GPtrArray *changes);
/* The same, not waited for. */
void job_change_start(struct config_world *world, guint job, const char *name,
                      const GPtrArray *changes, struct fake_reply *reply);
json_t *owner_json(guint job);

#define assert_says(said, expected)                                                                \
    do {                                                                                           \
        g_autofree char *said_ = (said);                                                           \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)
