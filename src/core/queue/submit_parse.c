/* What is submitted, checked and made a record; see submit.h. */
#include "core/job/reason.h"
#include "core/queue/calls.h"
#include "core/queue/submit.h"

#include <string.h>

static bool check_wanted_states(const json_t *states, GError **error)
{
    if (!json_is_array(states)) {
        fettle_set_error(error, WRONG_INPUT, "[1]: must be a list of final job states");
        return false;
    }
    size_t i;
    const json_t *word;
    json_array_foreach(states, i, word) {
        unsigned state;
        if (!json_is_string(word) || !sm_parse(&job_sm, json_string_value(word), &state) ||
            !job_state_final((enum job_state)state)) {
            fettle_set_error(error, WRONG_INPUT,
                             "[1][%zu]: must be one of canceled, success, error", i);
            return false;
        }
    }
    return true;
}

/* Shape of `depends`: a list of [job id, [states]]; a negative id counts back in the same call. */
static bool check_depends(const json_t *depends, GError **error)
{
    if (!depends || json_is_null(depends))
        return true;
    if (!json_is_array(depends) || json_array_size(depends) > LIMIT_DEPENDENCIES) {
        fettle_set_error(error, WRONG_INPUT,
                         "depends: must be a list of at most %d of [job id, [states]]",
                         LIMIT_DEPENDENCIES);
        return false;
    }
    size_t i;
    const json_t *item;
    json_array_foreach(depends, i, item) {
        if (json_array_size(item) != 2 || json_integer_value(json_array_get(item, 0)) == 0) {
            fettle_set_error(error, WRONG_INPUT, "depends[%zu]: must be [job id, [states]]", i);
            return false;
        }
        if (!check_wanted_states(json_array_get(item, 1), error)) {
            g_prefix_error(error, "depends[%zu]", i);
            return false;
        }
    }
    return true;
}

/* The opcode with all defaults filled in; NULL with the path of what is wrong. */
static json_t *normalise(enum face face, const json_t *input, char **ret_request_id, GError **error)
{
    record_autoptr(op_common) common = NULL;
    const struct opcode *opcode = NULL;
    void *params = NULL;
    if (!opcode_parse_as(face, input, &common, &params, &opcode, error))
        return NULL;
    json_autoptr json = op_common_to_json(common);
    json_t *own = record_to_json(opcode->params, params);
    record_free(opcode->params, params);
    json_object_update_missing(json, own);
    json_decref(own);
    if (g_str_equal(opcode->id, "OP_CLUSTER_INIT")) {
        fettle_set_error(error, WRONG_INPUT, "OP_ID: %s does not run as a job", opcode->id);
        return NULL;
    }
    if (!reason_check(common->reason, error) || !reason_check_lines(common->reason, error) ||
        !check_depends(common->depends, error))
        return NULL;
    *ret_request_id = g_strdup(common->request_id);
    return json_steal(&json);
}

static bool add_op(struct job *job, enum face face, const json_t *input, size_t at, GError **error)
{
    g_autofree char *request_id = NULL;
    json_t *normal = normalise(face, input, &request_id, error);
    if (!normal) {
        g_prefix_error(error, "ops[%zu].", at);
        return false;
    }
    struct job_op *op = job_op_new();
    json_decref(op->input);
    op->input = normal;
    g_ptr_array_add(job->ops, op);
    if (job->request_id[0] == '\0' && request_id[0] != '\0') {
        g_free(job->request_id);
        job->request_id = g_steal_pointer(&request_id);
    }
    return true;
}

struct job *submit_parse(const struct queue_context *context, enum face face, const json_t *ops,
                         GError **error)
{
    record_autoptr(job) job = job_new();
    if (!json_is_array(ops) || json_array_size(ops) == 0 ||
        json_array_size(ops) > LIMIT_OPCODES_PER_JOB) {
        fettle_set_error(error, WRONG_INPUT, "ops: must be a list of 1 to %d opcodes",
                         LIMIT_OPCODES_PER_JOB);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(ops); i++)
        if (!add_op(job, face, json_array_get(ops, i), i, error))
            return NULL;
    size_t bytes = commit_job_bytes(job);
    if (bytes > LIMIT_JOB_BYTES) {
        fettle_set_error(error, LIMIT, "ops: the job has %zu bytes, at most %zu are taken", bytes,
                         LIMIT_JOB_BYTES);
        return NULL;
    }
    job->received_us = context_now_us(context);
    job_update_status(job);
    return g_steal_pointer(&job);
}
