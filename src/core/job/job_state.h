/*
 * States of jobs and opcodes, and what a user may ask of a job in which state. The tables are the
 * whole truth: the status of a job is computed from its opcodes, never set by hand. Used by luxid,
 * by job processes and by clients of the queue inside core.
 */
#pragma once

#include "base/sm.h"
#include "proto/records.h"

/* Jobs and opcodes have the same states, in Ganeti's order. */
enum job_state {
    JOB_QUEUED,
    JOB_WAITING,
    JOB_CANCELING,
    JOB_RUNNING,
    JOB_CANCELED,
    JOB_SUCCESS,
    JOB_ERROR,
    JOB_STATE_COUNT
};

extern const struct sm job_sm;
extern const struct sm job_op_sm;

/* State of an opcode; a word that is none counts as error, so that a damaged record never runs. */
enum job_state job_op_state(const struct job_op *op);
/* State of a job: the first opcode in error, canceling or canceled decides; else the last that is
 * waiting or running; else success if all are; else queued – or waiting, once the job is on record
 * as started. */
enum job_state job_state_of(const struct job *job);
/* Writes `status` from the opcodes. */
void job_update_status(struct job *job);
bool job_state_final(enum job_state state);
/* Priority of a job: the most urgent (least) of its unfinished opcodes. */
gint64 job_priority(const struct job *job);
gint64 job_op_priority(const struct job_op *op);

/* Ends every unfinished opcode in `state` (JOB_ERROR or JOB_CANCELED) with a copy of `result`, and
 * the job with them. */
void job_end(struct job *job, enum job_state state, const json_t *result, guint64 now_us);
/* Result of a failed opcode: [class, [message, code]]. */
json_t *job_error_result(enum fettle_error code, const char *message);
/* True if no opcode has ever left the queue: nothing of the job has run. */
bool job_untouched(const struct job *job);

/* Requests of users. */
enum job_verb { JOB_VERB_CANCEL, JOB_VERB_PRIORITY, JOB_VERB_ARCHIVE };
/* False if the state forbids it; `ret_why` (free with g_free) says why, in one sentence with the
 * job's id. */
bool job_verb_allowed(enum job_verb verb, enum job_state state, guint64 id, char **ret_why);
