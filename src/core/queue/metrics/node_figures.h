/*
 * What nodes said of themselves last, in a few numbers, for metrics: so a question does not wait
 * for nodes. It is asked for anew in the background when it has grown old, and waited for if there
 * is none that counts (metrics_call.h).
 */
#pragma once

#include "core/queue/context.h"

#define NODE_FIGURES_OLD_MS 10000   /* then nodes are asked for the next question … */
#define NODE_FIGURES_STALE_MS 60000 /* … and for this one */

struct node_figure {
    const char *state;                  /* well, faulty, refused, unreadable, silent, offline */
    bool member_well;                   /* nothing is known to be wrong with its member of etcd */
    guint64 memory_mib, disk_mib, cpus; /* 0: it has not said */
};

struct node_figures;

struct node_figures *node_figures_new(struct queue_context *context);
void node_figures_free(struct node_figures *figures);
/* In a task. False: the process is killed. */
bool node_figures_ask(struct node_figures *figures);
/* NULL: it has come since. */
const struct node_figure *node_figures_of(const struct node_figures *figures, const char *node);
/* Since nodes were asked. */
gint64 node_figures_age_ms(const struct node_figures *figures);
