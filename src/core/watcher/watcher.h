/*
 * The watcher's thinking: one pass of the healing loop after another (docs/design/procedures.md,
 * "Watcher"). It changes tags and decisions by compare-and-set commits and everything else by
 * submitting jobs over LUXI.
 */
#pragma once

#include "proto/env.h"

struct watcher;

struct watcher *watcher_new(const struct env *env);
bool watcher_start(struct watcher *watcher, GError **error); /* in a task */
void watcher_free(struct watcher *watcher);
