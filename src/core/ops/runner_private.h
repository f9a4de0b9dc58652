/* Inside of the job runner: runner.c (the opcodes one after the other, and the end), runner_file.c
 * (what the job's file says meanwhile), runner_wconfd.c (the newest configuration, and locks). */
#pragma once

#include "core/job/job_state.h"
#include "core/ops/op.h"

struct runner {
    const struct env *env;
    struct follow *follow;
    struct job *job;
    char *file; /* its name in the queue's folder */
    char *key;  /* of its record */
    struct owner owner;
    struct stamp stamp;
    guint64 log_serial; /* of the last entry, over all opcodes */
    bool log_full;      /* there was no room for an entry, of any opcode */
    struct job_op *row; /* the opcode that is under way */
    bool holding;       /* may have locks */
    bool acquiring;     /* waits for locks */
    bool asked;         /* to give up */
    GError *unwritten;  /* the last write of the job file failed */
};

guint64 runner_now_us(const struct runner *runner);

/* The job's file; "queue/job-17 does not exist", CORRUPT. */
struct job *runner_load(const struct env *env, const char *file, GError **error);
/* Writes the job to its file; a failure stays in `unwritten`. */
void runner_save(struct runner *runner);
/* Moves the opcode that is under way; the caller saves. */
void runner_move(struct runner *runner, enum job_state to, const char *why);
/* `log` and `progress` of struct op, of a runner; both save. */
void runner_log(const char *message, void *runner);
void runner_progress(json_t *state, void *runner);

/* A message as it may stand in the job, cut to LIMIT_JOB_MESSAGE_BYTES; free with g_free(). */
char *runner_cut(const char *message);
/* What the opcode that is under way answers, as it may stand in the job: null if the answers of all
 * would be more than LIMIT_JOB_RESULT_BYTES, which is logged then. */
json_t *runner_result(struct runner *runner, json_t *result);

/* Brings the copy of the configuration up to date; insists while wconfd is away. */
bool runner_refresh(struct runner *runner, GError **error);
/* What the store says of the job; NULL: nothing. Borrowed until the next refresh or commit. */
const struct job *runner_record(const struct runner *runner);
/* To give up: by a signal, or by the wish on record if that did not come. */
bool runner_is_asked(const struct runner *runner);
/* For env's on_asked: somebody wants the job to end. It does at the next point at which nothing is
 * left half done. */
void runner_asked_cb(void *runner);
/* Takes all locks that the opcode declares, and brings the copy up to date. */
bool runner_lock(struct runner *runner, struct op *op, const struct op_impl *impl, GError **error);
/* Frees them. Between opcodes it insists: the next one's request would be out of order. At the end
 * of the job the lock file does it. */
bool runner_release(struct runner *runner, bool insist, GError **error);
