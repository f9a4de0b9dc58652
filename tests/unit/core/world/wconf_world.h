/*
 * What tests of the configuration daemon share: one config_world for the running test, calls of
 * luxid and of jobs that are not waited for, and answers as text.
 */
#pragma once

#include "unit/core/world/config_world.h"

extern struct config_world world;

/* The usual cluster, started. */
void world_set_up(void);
void world_tear_down(void);
/* One member of cluster_status, as JSON text. */
char *world_status(const char *member);
/* What came: "", the answer, or "error_name: message". Clears it. */
char *world_reply(struct fake_reply *reply);

/* web1 with so much memory; a new tag on web1. */
struct change *put_memory(guint64 version, int mib);
struct change *put_tag(const char *text);

/* Neither is waited for. */
void luxid_commit_start(const char *commit_id, GPtrArray *changes, struct fake_reply *reply);
void watcher_commit_start(const char *commit_id, GPtrArray *changes, struct fake_reply *reply);
void job_locks_start(guint job, const char *name, guint wait_ms,
                     struct fake_reply *reply); /* exclusive */
void job_locks_start_as(guint job, const char *name, const char *mode, guint wait_ms,
                        struct fake_reply *reply);

#define ID_A "00000000-0000-4000-8000-00000000000a"
#define ID_B "00000000-0000-4000-8000-00000000000b"
#define ID_C "00000000-0000-4000-8000-00000000000c"
#define GRANTED "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[],\"ticket\":0}"
