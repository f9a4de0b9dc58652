/*
 * QEMU and nbdkit run as an unprivileged user; what they open must be reachable for it.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* ENVIRONMENT, naming the folder, if a folder on the way to `path` does not let the user `uid`
 * (whose group has the same number) pass. `uid` 0 passes everywhere. */
bool reach_check(const char *path, guint32 uid, GError **error);
