/*
 * The job's file, which its process alone writes (LUX-30). See job_private.h. Whoever reads it
 * knows how far the job has come.
 */
#include "core/ops/job_private.h"

#include <string.h>

guint64 runner_now_us(const struct runner *runner)
{
    return (guint64)runner->env->ops->wall_us(runner->env);
}

void runner_save(struct runner *runner)
{
    json_autoptr json = job_to_json(runner->job);
    g_autofree char *text = json_to_text(json);
    g_clear_error(&runner->unwritten);
    runner->env->ops->file_write(runner->env, FILE_QUEUE, runner->file, text, strlen(text),
                                 &runner->unwritten);
}

struct job *runner_load(const struct env *env, const char *file, GError **error)
{
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_QUEUE, file, LIMIT_JOB_FILE_BYTES, &len, error);
    if (!text)
        return NULL;
    json_autoptr json = json_parse_limited(text, len, LIMIT_JOB_FILE_BYTES, error);
    struct job *job = json ? job_parse(json, RECORD_KEEP, error) : NULL;
    if (!job)
        g_prefix_error(error, "%s: ", file);
    return job;
}

void runner_move(struct runner *runner, enum job_state to, const char *why)
{
    struct job_op *row = runner->row;
    g_autofree char *id = NULL;
    unsigned state = job_op_state(row);
    guint index = 0;
    g_ptr_array_find(runner->job->ops, row, &index);
    id = g_strdup_printf("%s/%u", runner->key, index);
    sm_move(&job_op_sm, id, &state, to, why);
    op_set_text(&row->status, sm_name(&job_op_sm, state));
    job_update_status(runner->job);
}

/* --- the log of the opcode that is under way --- */

static json_t *log_of(struct runner *runner)
{
    struct job_op *row = runner->row;
    if (!json_is_array(row->log)) {
        json_decref(row->log);
        row->log = json_array();
    }
    return row->log;
}

/* `message` is stolen. */
static json_t *new_entry(struct runner *runner, const char *type, json_t *message)
{
    guint64 now = runner_now_us(runner);
    return json_make("[I, [I, I], s, o]", (json_int_t)++runner->log_serial,
                     (json_int_t)(now / G_USEC_PER_SEC), (json_int_t)(now % G_USEC_PER_SEC), type,
                     message);
}

void runner_log(const char *message, void *data)
{
    struct runner *runner = data;
    json_t *log = log_of(runner);
    if (json_array_size(log) >= LIMIT_JOB_LOG_ENTRIES)
        return;
    bool last = json_array_size(log) == LIMIT_JOB_LOG_ENTRIES - 1;
    g_autofree char *valid = g_utf8_make_valid(message, -1);
    json_array_append_new(
        log, new_entry(runner, "message",
                       json_string(last ? "the log is full; nothing more is kept" : valid)));
    runner_save(runner);
}

/* Takes the place of the newest entry if that is about the same, so that the log stays short. */
void runner_progress(json_t *state, void *data)
{
    struct runner *runner = data;
    json_t *log = log_of(runner);
    size_t size = json_array_size(log);
    const json_t *newest = size ? json_array_get(json_array_get(log, size - 1), 3) : NULL;
    bool same = json_is_object(newest) &&
                json_equal(json_object_get(newest, "what"), json_object_get(state, "what"));
    if (same) {
        json_array_set_new(log, size - 1, new_entry(runner, "progress", state));
    } else if (size + 1 < LIMIT_JOB_LOG_ENTRIES) {
        json_array_append_new(log, new_entry(runner, "progress", state));
    } else {
        json_decref(state);
        return;
    }
    runner_save(runner);
}
