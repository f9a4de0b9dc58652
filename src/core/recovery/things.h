/*
 * Things without a record: what hosts have that no record knows is told once when it is seen, and
 * once when it is gone, and left alone (docs/design/recovery.md; RCV-26). A duty of the watcher's
 * loop.
 */
#pragma once

#include "core/watcher/watcher.h"

struct things;

struct things *things_new(void);
void things_free(struct things *things);
/* In a task: one pass over all hosts that have given a report in it. */
void things_run(struct things *things, struct watcher *watcher);

/* What is on record as there is the newest decision about it, by this author, of a host: a node by
 * its name, a back end by this one, which no node has. Free with g_free(). */
#define THINGS_AUTHOR "watcher/thing"
char *things_host_name(const struct backend *backend);
/* Whether that name of a thing fits a pattern of `recovery_ignore`. */
bool things_is_ignored(const struct watcher *watcher, const char *name);
