/*
 * Whether so many nodes were lost within a while that the storm brake is pulled: what the watcher
 * does by it (brake.c), and what `fettle plan` tells before (forecast.c). Pure.
 */
#pragma once

#include "core/config/ages.h"
#include "core/config/model.h"

#define STORM_AUTHOR "watcher/brake" /* of what is on record about the brake */

struct storm {
    guint total, lost;
    GPtrArray *uuids, *texts; /* of the lost ones; the latter are owned */
};

/* For how long a node that is not offline on record has been lost, in seconds, and how, in words
 * that continue its name ("does not answer"); -1: it does not count as lost. */
typedef gint64 (*storm_loss)(const struct node *node, const void *data, const char **ret_how);

/* What is looked at. Losses before `latest`, with which a person has said go on (NULL: nobody has),
 * do not count. `ages` NULL: dates are read anew, at `now` (seconds since 1970). */
struct storm_view {
    const struct config *config;
    gint64 now;
    struct ages *ages;
    const struct decision *latest; /* about the brake; NULL: there is none */
    storm_loss loss;
    const void *data;
};
/* Clear with storm_clear(). */
void storm_find(struct storm *storm, const struct storm_view *view);
void storm_clear(struct storm *storm);

bool storm_pulls(const struct storm *storm, const struct cluster *cluster);
/* A sentence: how many of how many. Free with g_free(). */
char *storm_text(const struct storm *storm, const struct cluster *cluster);
