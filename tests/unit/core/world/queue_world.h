/*
 * A master with luxid for tests of the queue: a store in place of wconfd, starters and job
 * processes played by the test.
 */
#pragma once

#include "core/queue/luxi.h"
#include "unit/core/world/store_world.h"

#define MASTER "aaaaaaaa-0000-4000-8000-000000000001"
#define NODE2 "aaaaaaaa-0000-4000-8000-000000000002"
#define NODE3 "aaaaaaaa-0000-4000-8000-000000000003"
#define GROUP "bbbbbbbb-0000-4000-8000-000000000001"
#define CLUSTER "cccccccc-0000-4000-8000-000000000001"

struct queue_world {
    struct fake_world *world;
    struct store_world *store;
    struct env *wconfd;
    struct env *cli;
    struct env *luxid; /* the living one */
    struct luxi *luxi;
};

/* A cluster of one node with `slots` jobs at once, luxid started. */
struct queue_world *queue_world_new(guint slots);
void queue_world_free(struct queue_world *w);
/* Registers a test that runs in such a world of its own. */
void queue_case(const char *path, guint slots, void (*test)(struct queue_world *w));
/* SIGKILL of luxid; then a new one. */
void queue_world_kill_luxid(struct queue_world *w);
void queue_world_start_luxid(struct queue_world *w);
/* Both at once. */
void queue_world_restart_luxid(struct queue_world *w);

/* A call of a client; `args` is stolen. */
json_t *queue_call(struct queue_world *w, const char *method, json_t *args, GError **error);
/* Calls and checks that it fails so. */
void queue_refuse(struct queue_world *w, const char *method, json_t *args, enum fettle_error code,
                  const char *message);
/* An opcode; `extra` (stolen, may be NULL) adds or replaces fields. */
json_t *queue_delay(json_t *extra);
/* Submits one job of one opcode (as queue_delay) and answers its id. */
guint64 queue_submit(struct queue_world *w, json_t *extra);
/* The same of a job that is started at once: its process has told its name, or runs already. */
guint64 queue_submit_named(struct queue_world *w);
guint64 queue_submit_running(struct queue_world *w);
/* Status of a job as clients see it; static text. */
const char *queue_status(struct queue_world *w, guint64 id);
/* First result of the job's opcodes: its message, "" if there is none. Free with g_free(). */
char *queue_message(struct queue_world *w, guint64 id);
/* The job's record in the store as its typed struct; free it. NULL if there is none. */
struct job *queue_record(struct queue_world *w, guint64 id);
/* The job's file; free it. NULL if there is none. */
struct job *queue_file(struct queue_world *w, guint64 id);

/* The starter of a job: named, hence confirmed. */
void queue_child_named(struct queue_world *w, guint64 id);
bool queue_child_confirmed(struct queue_world *w, guint64 id);
void queue_child_breaks(struct queue_world *w, guint64 id);
/* The job process writes `status` for its first opcode into its file. */
void queue_job_writes(struct queue_world *w, guint64 id, const char *status);
/* It commits what its file says. */
void queue_job_commits(struct queue_world *w, guint64 id);
/* Its lock file is released: removed after a clean end, left behind after a death. */
void queue_job_gone(struct queue_world *w, guint64 id, bool clean);
/* All three of a job that ends well. */
void queue_job_ends(struct queue_world *w, guint64 id);
/* Its process dies, and luxid has had the time to see that. */
void queue_job_dies(struct queue_world *w, guint64 id);
/* All of it: a job that runs well. */
void queue_job_runs(struct queue_world *w, guint64 id);
