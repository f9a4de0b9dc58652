/*
 * The duties of the watcher's loop (core/watcher/watcher.h), in their order: for the daemon and for
 * tests, which hand them over.
 */
#pragma once

#include "core/watcher/watcher.h"

extern const struct watcher_duties repair_duties;
