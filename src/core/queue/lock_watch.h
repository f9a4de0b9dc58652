/*
 * Which locks have changed, for WatchChanges. wconfd tells of no lock by itself: it is asked for
 * all of them, again and again while somebody waits, and what it says is compared with what it said
 * before. So a lock that was taken and given back between two looks was never there, which is what
 * a stream that tells of objects as they are now makes of it anyway.
 */
#pragma once

#include "core/queue/context.h"

#define LOCK_WATCH_MS 500 /* between two looks */

struct lock_watch;

/* `changed` is called for each lock that is not as it was. */
struct lock_watch *lock_watch_new(const struct queue_context *context,
                                  void (*changed)(const char *name, void *data), void *data);
void lock_watch_free(struct lock_watch *watch);
/* In a task: looks now. */
bool lock_watch_look(struct lock_watch *watch, GError **error);
/* Looks go on for as long as `wanted` says so. */
void lock_watch_go_on(struct lock_watch *watch, bool (*wanted)(void *data));
/* As it was at the last look, a struct query_lock; NULL: nobody holds it or waits for it. */
const void *lock_watch_row(const struct lock_watch *watch, const char *name);
