/*
 * Where a back end is, in words, and which places there may be: each kind has its own. For commits,
 * queries and opcodes.
 */
#pragma once

#include "proto/records.h"

/* "/mnt/a"; of a pool "rbd", or "rbd/NAMESPACE". g_free() it. */
char *backend_place(const struct backend *backend);
/* Has what its kind has, and nothing else. WRONG_INPUT. */
bool backend_place_check(const struct backend *backend, GError **error);
bool backend_same_place(const struct backend *one, const struct backend *other);
