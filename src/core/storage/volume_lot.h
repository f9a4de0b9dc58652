/*
 * Lots: who of several services goes first, reckoned alike by all of them. Members of a back end
 * take rows by them (volume_turn.c), and stand-ins are chosen by them (cleanup_plan.c).
 */
#pragma once

#include <glib.h>

/* Of a service (its number) for one thing (a number likewise): the highest goes first. The same in
 * every version. */
guint64 volume_lot(guint64 thing, guint64 service);
