/*
 * A primary that mirrors to a secondary, for the tests of mirrors on real QEMU and real exports.
 */
#pragma once

#include "world.h"

#define REPLICA "22222222-2222-4222-8222-222222222222"
#define REPLICA_2 "33333333-3333-4333-8333-333333333333"

struct pair {
    struct world_node *primary;
    struct world_node *secondary;
    struct hypervisor *hv;
    struct storage *exports;
    struct instance *web1;
    struct export_target *target;
};

/* Everything here runs in a task. `run`: the guest runs and is in sync when it returns; else it is
 * only prepared. */
struct pair *pair_new(const char *name, guint disks, bool run);
/* The guest is killed, the exports are closed. */
void pair_free(struct pair *pair);

/* Attaches pair->target and waits until it is ready. */
void pair_mirror(struct pair *pair, bool full);
/* Runs the guest, until it has counted further. */
void pair_run(struct pair *pair);
void pair_kill(struct pair *pair);
/* Kills the export of the last disk; all of a replica's end. */
void pair_kill_export(struct pair *pair);
void pair_await_export_ended(const struct pair *pair);
/* Releases the mirror, and sees the guest go on. */
void pair_release(struct pair *pair);

/* The promise of it all (SAF-13): what was printed is on the replica. */
void pair_assert_nothing_missing(const struct pair *pair);
void pair_assert_images_equal(const struct pair *pair);
