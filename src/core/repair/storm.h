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

/* Since when a node that is not offline on record counts as lost, in seconds since 1970, and how,
 * in words that continue its name ("does not answer"); 0: it does not. */
typedef gint64 (*storm_loss)(const struct node *node, const void *data, const char **ret_how);

/* Losses up to `forgiven` (storm_forgiven(), seconds since 1970) do not count. Clear with
 * storm_clear(). */
void storm_find(struct storm *storm, const struct config *config, gint64 now, gint64 forgiven,
                storm_loss loss, const void *data);
void storm_clear(struct storm *storm);

/* When a person last said go on, by the latest record about the brake (may be NULL); 0: never. */
gint64 storm_forgiven(const struct decision *latest);

bool storm_pulls(const struct storm *storm, const struct cluster *cluster);
/* A sentence: how many of how many. Free with g_free(). */
char *storm_text(const struct storm *storm, const struct cluster *cluster);
