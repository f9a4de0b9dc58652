/*
 * What the files of recovery share: one pass over one subject.
 *
 *   recovery.c        who is a candidate; locks, judgements, commits of one pass
 *   recovery_plan.c   what that would do, for who asks
 *   recovery_case.c   one subject of either, and whom to ask about it
 *   owner.c           whether a task's owner lives
 *   sights.c          what hosts show
 *   instance_facts.c  that, in the words of the table of tasks
 *   judge.c           what follows
 *   recovery_apply.c  what it changes: records, faults, counters, decisions
 *   settle_volumes.c  the same of the volumes of an instance
 *   finish.c          jobs that finish or undo what is half made
 */
#pragma once

#include "core/recovery/judge.h"
#include "core/recovery/owner.h"
#include "core/recovery/recovery.h"
#include "core/watcher/tries.h"

/* What is remembered of a subject between passes; nothing of it is needed after a restart. */
struct remembered {
    guint64 version;      /* of its record, as it was seen … */
    gint64 seen_ms;       /* … first at that moment of the boot clock */
    guint alerts;         /* that its owner lives, of that version */
    guint looks;          /* that failed, of that version */
    gint64 lives_ms;      /* boot clock: when its living owner is looked at again */
    gint64 next_ms;       /* boot clock: when it is looked at again anyhow; 0: at once */
    gint64 held_ms;       /* boot clock: not before, whoever asks for it */
    bool unheard;         /* at the last look that failed a host had given no report */
    enum task_state task; /* which the tries are for … */
    guint64 generation;   /* … in this generation */
    struct tries tries;   /* to have it finished */
    bool half;            /* as it was judged last only such a job is lacking … */
    bool down;            /* … and a guest that should run does not */
};

struct recovery {
    recovery_waits_fn waits;
    GHashTable *subjects; /* uuid -> struct remembered */
    bool holds;           /* locks of instances, perhaps */
    GHashTable *silent;   /* nodes that have not answered a question of this pass */
};

/* One subject in one pass. Copies: commits and calls wait, and what was judged is what is
 * compared. */
struct recovery_case {
    struct instance *record;   /* as it stands */
    struct instance *instance; /* with the mark that is in force (config/fault.h) */
    guint64 version;           /* of the record */
    struct fault *fault;       /* NULL: none */
    guint64 fault_version;
    struct stuck *stuck; /* NULL: none */
    guint64 stuck_version;
    struct remembered *remembered; /* owned by struct recovery */
    struct judgement *judgement;   /* NULL: not judged */
    bool finish;                   /* a job is to be submitted, its decision is committed */
};

/* --- recovery_case.c --- */

/* `remembered` is left to the caller. */
struct recovery_case *recovery_case_new(const struct watcher *watcher,
                                        const struct instance *record, guint64 version);
void recovery_case_free(void *subject);
/* That of a fault's task is dead. */
enum recovery_owner recovery_case_owner(const struct watcher *watcher,
                                        const struct recovery_case *subject);
/* Hosts that may have it, UUIDs; to be unreffed. */
GPtrArray *recovery_case_hosts(const struct recovery_case *subject);
/* Whether all who may have it can be asked in this pass. */
bool recovery_hosts_answer(const struct watcher *watcher, const struct recovery_case *subject);
/* Those of `hosts` that have given no report in this pass are not waited for: they gave no answer.
 * `dead_job` 0: nobody is refused anything. False: some node has enough to look at, and this
 * subject has to wait for the next round. */
bool recovery_case_want(const struct watcher *watcher, const struct recovery_case *subject,
                        const GPtrArray *hosts, guint64 dead_job, struct sights *sights);

/* --- recovery.c --- */

/* What follows from what hosts show, and all that it changes. */
void recovery_judge(struct watcher *watcher, struct recovery_case *subject,
                    const struct sights *sights, GPtrArray *changes);

/* --- recovery_apply.c --- */

/* Adds the changes of what was judged: all of a subject together. */
void recovery_apply(struct watcher *watcher, struct recovery_case *subject, GPtrArray *changes);
/* One look that failed: the next attempt, or the fault after the last (RCV-35 to 39). */
void recovery_look_failed(struct watcher *watcher, struct recovery_case *subject,
                          GPtrArray *changes);
/* A task whose owner lives, or is not known, has not changed for a stale period (RCV-10). */
void recovery_tell_stale(struct watcher *watcher, struct recovery_case *subject,
                         enum recovery_owner owner, GPtrArray *changes);
/* It is another healer's, or held back. */
void recovery_tell_wait(struct watcher *watcher, const struct recovery_case *subject,
                        const char *why, GPtrArray *changes);

/* --- settle_volumes.c --- */

/* Adds what becomes of attachments that its dead job was at work on, if the instance is settled. */
void recovery_settle_volumes(const struct watcher *watcher, const struct recovery_case *subject,
                             const struct sights *sights, GPtrArray *changes);

/* --- finish.c --- */

/* So many more finishing jobs may be under way. */
guint recovery_room(const struct watcher *watcher);
/* Order of cases: guests that are down first. */
gint recovery_down_first(gconstpointer left, gconstpointer right);
/* Whether one more finishing job may be submitted for it now. */
bool recovery_may_finish(struct watcher *watcher, struct recovery_case *subject);
/* Those whose decision is on record, guests that are down first, as many as may be at once. */
void recovery_finish(struct watcher *watcher, const GPtrArray *cases);
