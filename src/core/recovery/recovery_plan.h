/*
 * What the next pass of recovery would do, and what hosts show right now (RCV-15, 33): the pass's
 * own steps, with looks that refuse nobody anything, and changes that are thrown away. Behind
 * `fettle recovery plan`, `show` and `collect`.
 *
 * What the watcher has learned over several passes, as that disks are certain to have failed, is
 * not known here.
 */
#pragma once

#include "core/config/follow.h"
#include "core/recovery/recovery.h"

struct recovery_question {
    const char *kind;    /* of the subject; NULL: of all that were left behind, of any kind */
    const char *subject; /* its UUID; NULL with it */
    bool hosts;          /* what each host shows as well, with a task or without one */
};

/* In a task. `view`: of watcher_view(). NULL: the process is killed.
 *   {"held": whether nothing of it would be done as things are, "notes": [why…], "rows": [row…]}
 *
 * A row, in the order of names, instances first, then what is stored (stored.h), then data that no
 * record names and that the pass would discard (things_discard.h):
 *   {"subject_kind", "subject", "subject_name", "task", "since", "owner", "owner_state",
 *    "owner_why", "looks", "outcome", "on_retry": only when a person asks for it,
 *    "state": what the record says then, "finisher": opcode of the job that finishes it, "why",
 *    "rule", "summary": as it will be on record, "evidence": [line…], "next": when,
 *    and if asked for "hosts": [{"node", "answer", "why", "boot_id", "sight"}]}
 *
 * An outcome: settled, removed, error, finished, discarded, waits, left (nobody does anything),
 * unknown (hosts could not be asked, or are busy with what the pass has given up). An answer:
 * given, busy, silent (cannot tell), refused, none, older (a version before), offline (on record,
 * so it was not asked).
 */
json_t *recovery_plan(struct watcher *view, recovery_waits_fn waits,
                      const struct recovery_question *question);
