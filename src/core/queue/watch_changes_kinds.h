/*
 * What WatchChanges can watch (watch_changes.h): kinds of objects, their fields, and how a call
 * names them.
 */
#pragma once

#include "core/queue/lock_watch.h"

/* Kinds are numbered from 0; each is a resource of Query. */
#define WATCHED_KINDS 14

/* What rows are found in. */
struct watched_world {
    const struct queue_context *context;
    const struct lock_watch *locks;
};

/* WATCHED_KINDS: that kind cannot be watched. */
size_t watch_changes_kinds_find(const char *kind);
/* The same by the kind of the configuration's objects that it tells of. */
size_t watch_changes_kinds_of_object(const char *object);
const char *watch_changes_kinds_name(size_t kind);
/* The object as it is now; NULL: it is gone. Borrowed, or, if it had to be made, also `ret_made`,
 * to be freed with g_free(). */
const void *watch_changes_kinds_row(const struct watched_world *world, size_t kind, const char *key,
                                    void **ret_made);

/* {kind: [fields], …} as in a call. `ret_fields`, all NULL before, gets for each kind that is named
 * a GPtrArray of const struct query_field *, also when it fails; the caller frees them. WRONG_INPUT
 * with the path of what is wrong. */
bool watch_changes_kinds_parse(const json_t *asked, GPtrArray *ret_fields[WATCHED_KINDS],
                               GError **error);
