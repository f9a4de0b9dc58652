/*
 * Whether so many nodes were lost within a while that the storm brake is pulled: what the watcher
 * does by it (brake.c), and what `fettle plan` tells before (forecast.c). Pure.
 */
#pragma once

#include "core/config/model.h"

#define STORM_AUTHOR "watcher/brake" /* of what is on record about the brake */

struct storm {
    guint total, lost;
    GPtrArray *uuids, *texts; /* of the lost ones; the latter are owned */
};

/* Since when a node has been silent for so long that it counts as lost, in seconds since 1970; 0:
 * it does not. */
typedef gint64 (*storm_silence)(const struct node *node, const void *data);

/* Losses up to `forgiven` (storm_forgiven(), seconds since 1970) do not count. Clear with
 * storm_clear(). */
void storm_find(struct storm *storm, const struct config *config, gint64 now, gint64 forgiven,
                storm_silence silence, const void *data);
void storm_clear(struct storm *storm);

/* When a person last said go on, by the latest record about the brake (may be NULL); 0: never. */
gint64 storm_forgiven(const struct decision *latest);

bool storm_pulls(const struct storm *storm, const struct cluster *cluster);
/* A sentence: how many of how many. Free with g_free(). */
char *storm_text(const struct storm *storm, const struct cluster *cluster);
