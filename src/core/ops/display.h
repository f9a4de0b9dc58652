/*
 * The VNC display of an instance: its address, and the port that the cluster gives out for it
 * (core/config/ports.h). Used by create and modify.
 */
#pragma once

#include "core/ops/op.h"

/* An address as a person gives it: none is "". */
const char *display_address(const char *word);
/* What can be said of a wish without its instance; WRONG_INPUT. `word`: an address, or none;
 * `port`: 0 is none. */
bool display_check(const struct op *op, const char *word, guint64 port, GError **error);
/* Gives the instance a display at that address, or takes it away ("" or none). `port` 0: as it is,
 * else one that nobody has. ALREADY_EXISTS names who has it; LIMIT: none is free. As with cards
 * (nics.h) somebody else may take it before it is on record: then wconfd refuses the commit with
 * ALREADY_EXISTS. */
bool display_set(const struct op *op, struct instance *instance, const char *word, guint64 port,
                 GError **error);
/* Says in the job's log who can see the screen, if that is more than a person expects. */
void display_warn(struct op *op, const struct instance *instance);
