/*
 * QEMU and nbdkit become an unprivileged user; what they open after that must be reachable for it.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* ENVIRONMENT, naming the folder, if a folder on the way to `path` does not let the user `uid`
 * (whose group has the same number) pass. `uid` 0 passes everywhere. */
bool reach_check(const char *path, guint32 uid, GError **error);

/* The user that is really used: 0 (no change of user) if we are not root ourselves. */
guint32 reach_effective_uid(guint32 uid);
