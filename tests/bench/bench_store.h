/*
 * A cluster on disk for bench_config.c: nodes and mirrored instances as they are in use – two
 * disks, two network cards, a replica in sync, two tags each – in a store that is made by the
 * engine itself; and the state of it that clients have to know to change it.
 */
#pragma once

#include <glib.h>

#include <stdbool.h>

struct bench_store {
    guint nodes, instances;
    guint64 serial;
    guint64 digest;    /* of all objects (proto/digest.h) */
    guint64 *versions; /* of each instance */
    guint64 node_version;
};

/* `path`: where there is no store yet. Node 0 is the master. */
void bench_store_make(struct bench_store *store, const char *path, guint nodes, guint instances);
void bench_store_clear(struct bench_store *store);

/* To be freed. */
char *bench_node_uuid(guint number);
char *bench_instance_uuid(guint number);
/* The object as JSON, with these values. To be freed. */
char *bench_instance_text(const struct bench_store *store, guint number, guint vcpus);
/* Node 1 as JSON, as a master candidate. To be freed. */
char *bench_candidate_text(void);

/* An instance, or node 1, was changed. */
void bench_store_changed(struct bench_store *store, guint number, guint64 serial);
void bench_store_node_changed(struct bench_store *store, guint64 serial);
