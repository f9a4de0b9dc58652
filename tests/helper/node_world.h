/*
 * Two nodes with fake hosts, and a master that is a few fields: what the unit tests of core/node
 * share. The test plays the jobs: it changes the master's record as a job commits, and calls the
 * nodes as a job calls them.
 *
 * After every step of time it is checked that no acknowledged write is missing on a replica that is
 * recorded in-sync (SAF-13), and that no guest was hurt (fake_hosts_problem).
 */
#pragma once

#include "core/node/node.h"
#include "helper/fake_env.h"
#include "helper/fake_hv.h"

#define NODE_A "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
#define NODE_B "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
#define NODE_M "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
#define CLUSTER "dddddddd-dddd-4ddd-8ddd-dddddddddddd"
#define WEB1 "11111111-1111-4111-8111-111111111111"

enum master_mood {
    MASTER_ANSWERS,
    MASTER_DEPOSED,      /* answers NOT_MASTER */
    MASTER_SILENT,       /* the request arrives and nothing comes back */
    MASTER_LOSES_ANSWER, /* does it; the answer is lost */
};

/* The master's record of the one instance. */
struct master_record {
    guint64 generation;
    const char *primary; /* NODE_A, NODE_B */
    const char *holder;  /* "" or primary */
    bool clean;
    bool removed;
    guint disks;
    const char *secondary; /* "" if there is no replica */
    char replica[37];
    guint64 replica_generation;
    enum replica_state state;
    guint64 sync;
    guint64
        keep; /* generation at which its images were in-sync that a start copies anew; 0: none */
    enum disk_template disk_template;
    guint nics;
    bool routed;                /* they are; else bridged */
    const char *kernel;         /* kernel_path; NULL: none */
    const char *migration;      /* NULL: none */
    const char *migration_node; /* "" if there is none */
    bool moved_clean;           /* what the last set_migrated said */
    const char *attachment;     /* that is on record; NULL: none */
    guint64 claim;              /* of the row that reads its volume; 0: none does */
    bool recreating;            /* the mark of a job that makes new disks stands on it */
    const char *new_disk; /* UUID of its first disk, if that was made anew; NULL: it was not */
};

#define VOLUME_1 "88888888-8888-4888-8888-000000000001"
#define ATTACHMENT_1 "99999999-9999-4999-8999-000000000001"
#define MOVE_1 "77777777-7777-4777-8777-000000000001"
#define MOVE_2 "77777777-7777-4777-8777-000000000002"

struct test_node {
    const char *uuid;
    struct env *host_env; /* of the host: outlives the node daemon */
    struct fake_host *host;
    struct env *env; /* of the node daemon; NULL: it does not run */
    struct node_core *core;
    struct members *members; /* of etcd (fake_members.h); NULL: it cares for none */
    bool cut;
};

struct node_world {
    struct fake_world *world;
    struct fake_hosts *hosts;
    struct env *master;
    struct env *job;
    struct test_node a, b;
    struct stamp stamp; /* what was announced, and what jobs carry */
    guint64 serial;
    bool monitored; /* node daemons that start from now on leave figures for monitoring */
    bool kept;      /* another candidate's copy has what the master answers */
    enum master_mood mood;
    GPtrArray *unanswered; /* struct rpc_request */
    struct master_record web1;
    guint replicas_made;
    void (*each_step)(struct node_world *nw, void *data); /* of time; for faults at any moment */
    void *each_step_data;
};

/* Both nodes run and have heard the announcement of epoch 1. */
struct node_world *node_world_new(guint64 seed);
void node_world_free(struct node_world *nw);

/* Time passes, with the checks. */
void nw_pass(struct node_world *nw, guint ms);
/* Until `done` says so; an error of the test after two minutes. */
#define nw_until(nw, condition)                                                                    \
    do {                                                                                           \
        guint nw_waited = 0;                                                                       \
        while (!(condition)) {                                                                     \
            g_assert_cmpuint(nw_waited, <, 120000);                                                \
            nw_pass(nw, 5);                                                                        \
            nw_waited += 5;                                                                        \
        }                                                                                          \
    } while (0)

/* A call that was refused; clears the error. */
#define assert_refused(answer, error, CODE, text)                                                  \
    do {                                                                                           \
        g_assert_null(answer);                                                                     \
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_##CODE);                                  \
        g_assert_cmpstr((error)->message, ==, text);                                               \
        g_clear_error(&error);                                                                     \
    } while (0)

/* --- node daemons and hosts --- */

struct test_node *nw_node(struct node_world *nw, const char *uuid);
void nw_daemon_kill(struct node_world *nw, struct test_node *node);
void nw_daemon_start(struct node_world *nw, struct test_node *node);
/* One that finds CORRUPT on its disk and does not start; the words of the error, to be freed. */
char *nw_daemon_refuses(struct node_world *nw, struct test_node *node);
/* Only node_core_start(), in a task of `env`. */
bool nw_try_start(struct env *env, struct node_core *core, GError **error);
void nw_power_cut(struct node_world *nw,
                  struct test_node *node); /* and booted again, no daemon yet */
/* From the network of calls and of exports. */
void nw_cut(struct node_world *nw, struct test_node *node, bool cut);

/* --- the master and jobs --- */

/* From now on, and what it has left unanswered in a silent mood. */
void nw_master_answers(struct node_world *nw);

/* A call of a job; waits for the answer. NULL: the error. */
json_t *nw_call(struct node_world *nw, struct test_node *node, const char *method, json_t *args,
                GError **error);
/* The same as another job than the world's own, 1; it has to be answered. */
json_t *nw_call_as_job(struct node_world *nw, struct test_node *node, guint job, const char *method,
                       json_t *args);
void nw_call_start(struct node_world *nw, struct test_node *node, const char *method,
                   struct stamp stamp, json_t *args, struct fake_reply *reply);
bool nw_announce(struct node_world *nw, struct test_node *node, GError **error);
/* What it tells with its answer to an announcement that asks for it: "WEB1's replica state told",
 * or "" for nothing; g_free() it. */
char *nw_statement(struct node_world *nw, struct test_node *node);
json_t *nw_report(struct node_world *nw, struct test_node *node);

/* Arguments as a job builds them from the record. */
/* Its word about a volume that its guest has given up. */
json_t *nw_set_attachment(struct node_world *nw, const struct rpc_request *request, GError **error);
json_t *nw_volume(const struct node_world *nw); /* web1.attachment */
struct instance *nw_instance(const struct node_world *nw);
json_t *nw_start_args(const struct node_world *nw, json_t *target, bool full, bool run);
json_t *nw_guest_args(const struct node_world *nw);
json_t *nw_stop_args(const struct node_world *nw, guint timeout_ms);

/* The commits and calls of whole procedures (procedures.md), web1 only. Each returns false with the
 * error of the step that failed; commits that were made stay. */
bool nw_create(struct node_world *nw, const char *primary, const char *secondary, guint disks,
               GError **error);
bool nw_start(struct node_world *nw, GError **error);
bool nw_stop(struct node_world *nw, guint timeout_ms, GError **error);
bool nw_failover(struct node_world *nw, GError **error); /* the old primary counts as dead */
/* A new replica on the other node, copied while the guest runs. */
bool nw_replace_replica(struct node_world *nw, GError **error);
/* A hook of a fake host: the node daemon dies before it lets its guest go on alone; `data`: bool,
 * whether it has. */
bool nw_die_before_release(struct fake_host *host, const char *op, bool after, void *data);
bool nw_create_and_start(struct node_world *nw); /* on A with a replica on B, in sync; asserts */

/* Live migration (SAF-17), step by step as its job takes them. */
void nw_commit_migration(struct node_world *nw, const char *migration); /* to the other node */
json_t *nw_migration_args(const char *migration);
json_t *nw_incoming_open(struct node_world *nw, GError **error);
bool nw_migration_start(struct node_world *nw, json_t *target, GError **error);
/* Asks until it has ended; the end's state. `none` if the node does not answer any more. */
enum migration_state nw_migration_wait(struct node_world *nw, struct test_node *source);
bool nw_migrate_begin(struct node_world *nw, const char *migration, GError **error);
/* After set_migrated: the replica the other way, the start there; without the process from the
 * images; the record cleared. */
bool nw_migrate_finish(struct node_world *nw, GError **error);
/* After a failure: the target closed, the record cleared, a stale replica attached again. */
bool nw_migrate_undo(struct node_world *nw, GError **error);
/* What the watcher's OP_INSTANCE_MIGRATE with `cleanup` does, from whatever there is. */
bool nw_migrate_cleanup(struct node_world *nw, GError **error);

/* The commit of a start alone; returns whether a full copy is needed. */
bool nw_commit_start(struct node_world *nw);
json_t *nw_open_replica(struct node_world *nw, GError **error);
