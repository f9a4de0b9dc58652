/* State tables of jobs and opcodes; see job_state.h. */
#include "core/job/job_state.h"

#include "proto/luxi.h"

#define FINAL_STATES (SM_TO(JOB_CANCELED) | SM_TO(JOB_SUCCESS) | SM_TO(JOB_ERROR))

/* Edges may skip states: luxid sees a job through its file, which can change twice before it is
 * read. */
static const struct sm_state job_states[] = {
    [JOB_QUEUED] = {"queued", SM_TO(JOB_WAITING) | SM_TO(JOB_RUNNING) | FINAL_STATES, false},
    [JOB_WAITING] = {"waiting", SM_TO(JOB_RUNNING) | SM_TO(JOB_CANCELING) | FINAL_STATES, false},
    [JOB_CANCELING] = {"canceling", FINAL_STATES, false},
    [JOB_RUNNING] = {"running", SM_TO(JOB_WAITING) | SM_TO(JOB_CANCELING) | FINAL_STATES, false},
    [JOB_CANCELED] = {"canceled", 0, true},
    [JOB_SUCCESS] = {"success", 0, true},
    [JOB_ERROR] = {"error", 0, true},
};

/* An opcode only goes forward. */
static const struct sm_state op_states[] = {
    [JOB_QUEUED] = {"queued", SM_TO(JOB_WAITING) | SM_TO(JOB_CANCELED) | SM_TO(JOB_ERROR), false},
    [JOB_WAITING] = {"waiting",
                     SM_TO(JOB_RUNNING) | SM_TO(JOB_CANCELING) | SM_TO(JOB_CANCELED) |
                         SM_TO(JOB_ERROR),
                     false},
    [JOB_CANCELING] = {"canceling", FINAL_STATES, false},
    [JOB_RUNNING] = {"running", SM_TO(JOB_CANCELING) | FINAL_STATES, false},
    [JOB_CANCELED] = {"canceled", 0, true},
    [JOB_SUCCESS] = {"success", 0, true},
    [JOB_ERROR] = {"error", 0, true},
};

const struct sm job_sm = {"job", job_states, JOB_STATE_COUNT};
const struct sm job_op_sm = {"opcode", op_states, JOB_STATE_COUNT};

enum job_state job_op_state(const struct job_op *op)
{
    unsigned state = JOB_ERROR;
    return sm_parse(&job_op_sm, op->status, &state) ? (enum job_state)state : JOB_ERROR;
}

enum job_state job_state_of(const struct job *job)
{
    enum job_state state = job->started ? JOB_WAITING : JOB_QUEUED;
    bool all_succeeded = true;
    for (guint i = 0; i < job->ops->len; i++) {
        enum job_state op = job_op_state(job->ops->pdata[i]);
        if (op == JOB_ERROR || op == JOB_CANCELING || op == JOB_CANCELED)
            return op;
        if (op == JOB_WAITING || op == JOB_RUNNING)
            state = op;
        all_succeeded = all_succeeded && op == JOB_SUCCESS;
    }
    return all_succeeded ? JOB_SUCCESS : state;
}

void job_update_status(struct job *job)
{
    g_free(job->status);
    job->status = g_strdup(sm_name(&job_sm, job_state_of(job)));
}

bool job_state_final(enum job_state state)
{
    return job_states[state].final;
}

gint64 job_op_priority(const struct job_op *op)
{
    return json_integer_value(json_object_get(op->input, "priority"));
}

gint64 job_priority(const struct job *job)
{
    gint64 least = G_MAXINT64;
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        if (!job_state_final(job_op_state(op)))
            least = MIN(least, job_op_priority(op));
    }
    return least == G_MAXINT64 ? 0 : least;
}

void job_end(struct job *job, enum job_state state, const json_t *result, guint64 now_us)
{
    g_assert(state == JOB_ERROR || state == JOB_CANCELED);
    for (guint i = 0; i < job->ops->len; i++) {
        struct job_op *op = job->ops->pdata[i];
        if (job_state_final(job_op_state(op)))
            continue;
        g_free(op->status);
        op->status = g_strdup(sm_name(&job_op_sm, state));
        json_decref(op->result);
        op->result = json_deep_copy(result);
        op->end_us = now_us;
    }
    job->end_us = now_us;
    job_update_status(job);
}

json_t *job_error_result(enum fettle_error code, const char *message)
{
    g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, (gint)code, message);
    return luxi_error_make(error);
}

bool job_untouched(const struct job *job)
{
    for (guint i = 0; i < job->ops->len; i++) {
        if (job_op_state(job->ops->pdata[i]) != JOB_QUEUED)
            return false;
    }
    return true;
}

/* Which states allow a verb; what is said otherwise for a job that is under way, and for one that
 * has ended. */
static const struct {
    guint64 allowed;
    const char *under_way;
    const char *ended;
} verbs[] = {
    [JOB_VERB_CANCEL] = {~FINAL_STATES, "", "Job %" G_GUINT64_FORMAT " has ended already"},
    [JOB_VERB_PRIORITY] = {~FINAL_STATES, "", "Job %" G_GUINT64_FORMAT " has ended already"},
    [JOB_VERB_ARCHIVE] = {FINAL_STATES,
                          "Job %" G_GUINT64_FORMAT " has not ended; only a job that has can be "
                          "archived",
                          ""},
};

bool job_verb_allowed(enum job_verb verb, enum job_state state, guint64 id, char **ret_why)
{
    if (verbs[verb].allowed & SM_TO(state))
        return true;

/* The formats stand in the table above, each with exactly one id. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    *ret_why =
        g_strdup_printf(job_state_final(state) ? verbs[verb].ended : verbs[verb].under_way, id);
#pragma GCC diagnostic pop
    return false;
}
