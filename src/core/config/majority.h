/*
 * Whose promises a new mastership of an engine that is one node's store needs (docs/design/
 * mastership.md, "Becoming master with SQLite"). Asked by wconfd/promises.c, and by
 * repair/forecast_master.c for what would become of it.
 */
#pragma once

#include "core/config/model.h"

/* Whether the word of `node` counts. One that is on record as offline is dead, as somebody has
 * said. The candidate that asks counts itself, whatever is on record. */
bool majority_counts(const struct node *node);
/* How many must promise, of so many whose word counts. */
guint majority_of(guint count);
