/*
 * Where the next step of a repair would take an instance, by the placement that the jobs use
 * (core/placement/placement.h): the watcher submits nothing that has no room (ARP-57), and `fettle
 * plan` follows the steps. Pure.
 */
#pragma once

#include "core/placement/placement.h"
#include "core/repair/plan.h"
#include "core/repair/policy.h"

struct repair_goal {
    char *primary;   /* node UUIDs after the step; never NULL after success */
    char *secondary; /* "" for none */
    bool named;      /* the job is to be told which node: others have failed before */
};
void repair_goal_clear(struct repair_goal *goal);

/* False if no node can take what `plan`'s step needs, with one sentence that says why of each.
 * `now` in seconds since 1970, for advice that ends. `failed_on` (node UUID -> why, NULL: none):
 * nodes that are not chosen. `sums`, which are those of `config` and
 * `reports`, are the same afterwards; the instance itself is not counted meanwhile. */
bool repair_room_find(const struct config *config, const GPtrArray *reports,
                      struct placement_sums *sums, const struct instance *instance,
                      const struct repair_plan *plan, gint64 now, GHashTable *failed_on,
                      struct repair_goal *ret_goal, char **ret_reason);

/* Advice that is in force at `now` (seconds since 1970): one sentence for each node that is to be
 * avoided, such as "node3 is avoided: ops advises so until 2026-01-02 03:04:05 UTC: new disks".
 * Placement keeps off these nodes; this is for the records (ARP-69). */
GPtrArray *repair_advice_texts(const struct config *config, gint64 now);
