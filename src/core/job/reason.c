/* See reason.h. */
#include "core/job/reason.h"

#include "base/text.h"
#include "core/job/job_state.h"

#include <string.h>

#define OPCODE_SOURCE "gnt:opcode:"
#define DEATH_SOURCE "gnt:daemon:luxid:deathdetection"
#define NANOSECONDS 1000 /* of a microsecond */

/* The trail belongs to this opcode alone from now on. */
static void add(struct job_op *op, const char *source, const char *text, guint64 at_us)
{
    const json_t *trail = json_object_get(op->input, "reason");
    json_t *longer = json_is_array(trail) ? json_copy((json_t *)trail) : json_array();
    json_t *input = json_copy(op->input);
    json_array_append_new(longer,
                          json_make("[s, s, I]", source, text, (json_int_t)(at_us * NANOSECONDS)));
    json_object_set_new(input, "reason", longer);
    json_decref(op->input);
    op->input = input;
}

/* OP_TEST_DELAY: "gnt:opcode:test_delay". */
static char *opcode_source(const struct job_op *op)
{
    const char *id = json_string_value(json_object_get(op->input, "OP_ID"));
    g_autofree char *lower = g_ascii_strdown(id ? id : "", -1);
    return g_strconcat(OPCODE_SOURCE, lower + (g_str_has_prefix(lower, "op_") ? strlen("op_") : 0),
                       NULL);
}

void reason_add_submitted(struct job *job)
{
    for (guint i = 0; i < job->ops->len; i++) {
        struct job_op *op = job->ops->pdata[i];
        g_autofree char *source = opcode_source(op);
        g_autofree char *text = g_strdup_printf("job=%" G_GUINT64_FORMAT ";index=%u", job->id, i);
        add(op, source, text, job->received_us);
    }
}

void reason_add_death(struct job *job, const char *found, guint64 now_us)
{
    for (guint i = 0; i < job->ops->len; i++) {
        struct job_op *op = job->ops->pdata[i];
        if (!job_state_final(job_op_state(op)))
            add(op, DEATH_SOURCE, found, now_us);
    }
}

const char *reason_given(const json_t *reason)
{
    size_t i;
    const json_t *item;
    json_array_foreach(reason, i, item) {
        const char *source = json_string_value(json_array_get(item, 0));
        const char *text = json_string_value(json_array_get(item, 1));
        if (source && text && *text && !g_str_has_prefix(source, OPCODE_SOURCE) &&
            strcmp(source, DEATH_SOURCE) != 0)
            return text;
    }
    return NULL;
}

bool reason_check(const json_t *reason, GError **error)
{
    if (reason && !json_is_null(reason) && !json_is_array(reason)) {
        fettle_set_error(error, WRONG_INPUT, "reason: must be a list");
        return false;
    }
    size_t i;
    const json_t *item;
    json_array_foreach(reason, i, item) {
        if (json_array_size(item) != 3 || !json_is_string(json_array_get(item, 0)) ||
            !json_is_string(json_array_get(item, 1)) || !json_is_integer(json_array_get(item, 2))) {
            fettle_set_error(error, WRONG_INPUT, "reason[%zu]: must be [source, text, nanoseconds]",
                             i);
            return false;
        }
    }
    return true;
}

bool reason_check_lines(const json_t *reason, GError **error)
{
    size_t i;
    const json_t *item;
    json_array_foreach(reason, i, item) {
        g_autofree char *both = g_strconcat(json_string_value(json_array_get(item, 0)),
                                            json_string_value(json_array_get(item, 1)), NULL);
        g_autofree char *control = text_control(both);
        if (control) {
            fettle_set_error(error, WRONG_INPUT,
                             "reason[%zu]: must have no control characters, has %s", i, control);
            return false;
        }
    }
    return true;
}
