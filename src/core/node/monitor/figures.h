/*
 * What the node daemon leaves for fettle-mond in run/stats, each STATS_PERIOD_MS: a file for each
 * guest that lives here (guest_stats), and one for what it sees beside them (node_stats). mond has
 * no monitor of a guest and no connection of its own (MON-04). Each guest is looked at by a task of
 * its own: one that does not answer is told with what it said last, and holds up nobody. Nothing
 * rests on these files.
 */
#pragma once

#include "core/node/guest.h"

struct figures;
struct figures *figures_new(struct node_core *node);
/* In a task: begins. */
void figures_start(struct figures *figures);
/* It has heard of a master just now. */
void figures_heard(struct figures *figures);
/* NULL is allowed. */
void figures_free(struct figures *figures);
