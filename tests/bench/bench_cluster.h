/*
 * A cluster of 40 nodes with as many mirrored instances as a figure wants, for bench_repair.c: its
 * objects, what its nodes report, and a world in which the real watcher looks after it. In place of
 * wconfd stands the small store of the unit tests (store_world.h), which checks versions and keeps
 * the change stream; luxid answers with the id of a job object that it puts there.
 */
#pragma once

#include "core/config/model.h"
#include "helper/fake_env.h"

#define BENCH_NODES 40
#define BENCH_NOW 1700000000
#define BENCH_INTERVAL_MS 1000

/* Gives every object to `put`, which owns the JSON. The first `on_first` instances run on node0;
 * the policy of the cluster allows failover. */
void bench_cluster(guint count, guint on_first,
                   void (*put)(const char *kind, const char *key, json_t *object, void *data),
                   void *data);
/* What a node reports of it: all runs and is in sync. */
json_t *bench_report(guint node, guint count, guint on_first);

struct bench_world {
    struct fake_world *world;
    struct store_world *store;
    struct env *env;
    struct watcher *watcher;
    json_t *reports[BENCH_NODES];
    guint64 jobs; /* submitted */
};

/* The watcher is on node1 and has had its first look. */
struct bench_world *bench_world_new(guint count, guint on_first);
void bench_world_free(struct bench_world *world);
/* node0 is on record as offline; nothing has been done about it yet. */
void bench_world_lose_first(struct bench_world *world);
/* Ends the program unless one job was submitted for each of `broken` instances and stands in its
 * tag. */
void bench_world_check(struct bench_world *world, guint broken);
