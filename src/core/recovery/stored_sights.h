/*
 * What members of back ends show of resources whose work was left behind: the collector's half for
 * what is stored (RCV-17, 19). All members of a back end that are up are asked at once. One that
 * has looked suffices, as all see the same data; one that still works on it is waited for.
 */
#pragma once

#include "core/recovery/stored_judge.h"
#include "core/watcher/watcher_private.h"

struct stored_sights;

/* One member that was asked, or could not be. */
struct stored_asked {
    char *backend, *node; /* UUIDs */
    char *silent;         /* why it has said nothing; NULL: `result` is its answer */
    struct collect_stored_result *result;
    GPtrArray *subjects; /* struct stored_subject */
};

/* In a task: asks about these (struct stored_subject_now), LIMIT_WORK_ITEMS at most. NULL: the
 * process is killed. */
struct stored_sights *stored_sights_ask(const struct watcher *watcher, const GPtrArray *subjects);
void stored_sights_free(struct stored_sights *sights);
/* The one that counts; NULL: nobody has looked, because of `ret_silent` (borrowed). */
const struct stored_sight *stored_sights_of(const struct stored_sights *sights,
                                            const struct resource *resource,
                                            const char **ret_silent);
/* struct stored_asked of that back end, borrowed. */
GPtrArray *stored_sights_asked(const struct stored_sights *sights, const char *backend);
/* What one of them has said of it; NULL: nothing. */
const struct stored_sight *stored_sights_by(const struct stored_asked *asked,
                                            const struct resource *resource);
