/*
 * A question to a guest's process that may not come back in time: whoever asks goes on at a moment
 * of his own, the question by itself. Used by stop.c, which has promised when it is over.
 */
#pragma once

#include "core/node/guest.h"

/* In a task of its own. It may end long after its asker, with the guest in another generation. */
typedef bool (*deadline_fn)(struct guest *guest, GError **error);

/* Its result; TIMEOUT if it has none at that moment of the boot clock. */
bool deadline_ask(struct guest *guest, gint64 until_ms, deadline_fn ask, GError **error);
