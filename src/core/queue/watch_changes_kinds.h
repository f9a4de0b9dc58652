/*
 * What WatchChanges can watch (watch_changes.h): kinds of objects, their fields, and how a call
 * names them.
 */
#pragma once

#include "core/queue/context.h"

/* Kinds are numbered from 0; they are those of the configuration and resources of Query at once. */
#define WATCHED_KINDS 8

/* WATCHED_KINDS: that kind cannot be watched. */
size_t watch_changes_kinds_find(const char *kind);
const char *watch_changes_kinds_name(size_t kind);
/* The object as it is now; NULL: it is gone. Borrowed. */
const void *watch_changes_kinds_row(const struct queue_context *context, size_t kind,
                                    const char *key);

/* {kind: [fields], …} as in a call. `ret_fields`, all NULL before, gets for each kind that is named
 * a GPtrArray of const struct query_field *, also when it fails; the caller frees them. WRONG_INPUT
 * with the path of what is wrong. */
bool watch_changes_kinds_parse(const json_t *asked, GPtrArray *ret_fields[WATCHED_KINDS],
                               GError **error);
