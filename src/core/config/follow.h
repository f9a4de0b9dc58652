/*
 * A copy of the configuration that follows the master's wconfd by wait_changes. Used by luxid, the
 * watcher, the scheduler and job processes. Subscribers see committed changes only (SAF-03).
 */
#pragma once

#include "core/config/model.h"
#include "proto/env.h"

struct follow;

/* `changed` is called from the loop after each batch of changes was applied (changes borrowed; NULL
 * after a snapshot). May be NULL. */
struct follow *follow_new(const struct env *env,
                          void (*changed)(const GPtrArray *changes, void *data), void *data);
void follow_free(struct follow *follow);
/* Before the first copy: the process may run on any node that the master's wconfd answers, not only
 * on the master's, and goes on with the next master. */
void follow_from_anywhere(struct follow *follow);
/* Before the first copy: it is for this job's process and leaves out what that does not need: other
 * jobs and decisions, and with `instances` (of char *, names or UUIDs; NULL: it needs all) also
 * other instances (view.h). */
void follow_for_job(struct follow *follow, guint64 job, const GPtrArray *instances);
/* Before the first copy: it has those kinds alone of which this is true, always the same ones. What
 * a wconfd sends besides, which knows no `kinds` or not these, is dropped. */
void follow_only(struct follow *follow, bool (*wants)(const char *kind));
/* Fetches the first copy (waits, in a task), then keeps following in a task of its own, through
 * restarts of wconfd. */
bool follow_start(struct follow *follow, GError **error);
/* One fetch without following: for job processes, which read, act and commit. Brings the copy up to
 * date. */
bool follow_refresh(struct follow *follow, GError **error);
/* In a task: until the copy, which follows, has that serial. KILLED. */
bool follow_wait(struct follow *follow, guint64 serial, GError **error);
/* The same, so long at most; false: it has not, or the process has ended. */
bool follow_wait_ms(struct follow *follow, guint64 serial, guint ms);
const struct config *follow_config(const struct follow *follow);
guint64 follow_epoch(const struct follow *follow);
/* History and epoch of the mastership that the copy follows. */
struct stamp follow_stamp(const struct follow *follow);

/* How long the master has been silent for a copy that follows: since the last answer, if none has
 * come to the last question; 0: it is asked, and nothing speaks against an answer. */
gint64 follow_silent_ms(const struct follow *follow);

/* Commits a transaction through wconfd, as the change of that name (proto/changes.def), and waits;
 * on success the copy has been brought to at least
 * its serial. `changes`: GPtrArray of struct change, borrowed. An unknown result is looked up by
 * repeating the same commit id until there is an answer (SAF-04), at most for a minute:
 * UNKNOWN_RESULT then; a wconfd that is away is waited for, 10 s at most. */
bool follow_commit(struct follow *follow, const char *change, const struct owner *owner,
                   GPtrArray *changes, struct stamp stamp, guint job, GError **error);
/* The same for who ends after it: the copy stays as it was. */
bool follow_commit_last(struct follow *follow, const char *change, const struct owner *owner,
                        GPtrArray *changes, struct stamp stamp, guint job, GError **error);
