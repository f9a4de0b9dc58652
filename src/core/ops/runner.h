/*
 * What a job process does: reads its job file, runs its opcodes one after the other (declare locks,
 * take them, check, act, commit, release), writes its progress to the job file, commits its final
 * state (architecture.md 6, SAF-30).
 */
#pragma once

#include "proto/env.h"

/* In a task; `livelock` is the process's own lock file, which stands in the job file. Returns when
 * the job has ended and its lock file is removed; false: it could not even be read. */
bool runner_run(const struct env *env, guint64 job_id, const char *livelock, GError **error);
