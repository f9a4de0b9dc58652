/*
 * The job's file, which its process alone writes (LUX-30). See runner_private.h. Whoever reads it
 * knows how far the job has come.
 */
#include "core/ops/runner_private.h"

#include <string.h>

#define JOB_FILE_BYTES 1024 /* of a short job */
#define LOG_FULL_BYTES 128  /* of the entry that says so */

guint64 runner_now_us(const struct runner *runner)
{
    return (guint64)runner->env->ops->wall_us(runner->env);
}

void runner_save(struct runner *runner)
{
    g_autoptr(GString) text = g_string_sized_new(JOB_FILE_BYTES);
    record_append(&job_record, runner->job, text);
    g_clear_error(&runner->unwritten);
    runner->env->ops->file_write(runner->env, FILE_QUEUE, runner->file, text->str, text->len,
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
    text_set(&row->status, sm_name(&job_op_sm, state));
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

static size_t json_bytes(const json_t *json)
{
    return json_dumpb(json, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* Whether an entry may stand in the log, beside the one that says that it is full. */
static bool has_room(const struct runner *runner, const json_t *entry)
{
    const GPtrArray *ops = runner->job->ops;
    size_t bytes = json_bytes(entry) + LOG_FULL_BYTES;
    for (guint i = 0; i < ops->len; i++)
        bytes += json_bytes(((const struct job_op *)ops->pdata[i])->log);
    return bytes <= LIMIT_JOB_LOG_BYTES;
}

char *runner_cut(const char *message)
{
    char *valid = g_utf8_make_valid(message, -1);
    if (strlen(valid) <= LIMIT_JOB_MESSAGE_BYTES)
        return valid;
    char *end = g_utf8_find_prev_char(valid, valid + LIMIT_JOB_MESSAGE_BYTES - strlen("…") + 1);
    strcpy(end, "…");
    return valid;
}

void runner_log(const char *message, void *data)
{
    struct runner *runner = data;
    json_t *log = log_of(runner);
    size_t size = json_array_size(log);
    if (runner->log_full || size >= LIMIT_JOB_LOG_ENTRIES)
        return;
    g_autofree char *text = runner_cut(message);
    json_autoptr entry = new_entry(runner, "message", json_string(text));
    runner->log_full = !has_room(runner, entry);
    if (runner->log_full || size == LIMIT_JOB_LOG_ENTRIES - 1)
        json_array_set_new(entry, 3, json_string("the log is full; nothing more is kept"));
    json_array_append(log, entry);
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
    json_autoptr entry = new_entry(runner, "progress", state);
    if (!same && (size + 1 >= LIMIT_JOB_LOG_ENTRIES || !has_room(runner, entry))) {
        runner->log_serial--;
        return;
    }
    if (same)
        json_array_set(log, size - 1, entry);
    else
        json_array_append(log, entry);
    runner_save(runner);
}

json_t *runner_result(struct runner *runner, json_t *result)
{
    const GPtrArray *ops = runner->job->ops;
    size_t bytes = json_bytes(result);
    for (guint i = 0; i < ops->len; i++)
        bytes += json_bytes(((const struct job_op *)ops->pdata[i])->result);
    if (bytes <= LIMIT_JOB_RESULT_BYTES)
        return json_incref(result);
    g_autofree char *text = g_strdup_printf(
        "the answer of %zu bytes is not kept: there would be more than %zu bytes in the job's",
        json_bytes(result), LIMIT_JOB_RESULT_BYTES);
    runner_log(text, runner);
    return json_null();
}
