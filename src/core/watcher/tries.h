/*
 * What the watcher tries for one instance by jobs, one after the other, with pauses that grow: a
 * start that did not help, a mark that is finished.
 */
#pragma once

#include "core/watcher/watcher_private.h"

struct tries {
    guint count;
    guint deaths;              /* of jobs that had tried nothing yet, and do not count as tries */
    gint64 tried_ms, after_ms; /* boot clock: the last; when the next may be */
    guint64 job;               /* of the last; 0: none */
};

/* 0: there is none. */
bool watcher_job_under_way(const struct watcher *watcher, guint64 job);
/* One opcode for an instance, as a list of its own. */
json_t *watcher_opcode(const char *id, const struct instance *instance);
void tries_forget(struct tries *tries);
/* Whether the job of the last try is under way; a try whose process died before it began is counted
 * out. */
bool tries_under_way(const struct watcher *watcher, struct tries *tries);
/* Counts one more try, unless it is not time for it yet. */
bool tries_next(const struct watcher *watcher, struct tries *tries);
/* The request id of the next try; NULL: the last one is still under way. Free with g_free(). */
char *tries_request(const struct watcher *watcher, struct tries *tries, const char *prefix);
/* Its job; 0: the submission did not arrive, and was no try. */
void tries_submitted(struct tries *tries, guint64 job);
