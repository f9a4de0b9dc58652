/*
 * var/node/ended_jobs.json from any bytes, as a node daemon reads it when it starts: refused as
 * corrupt, by its name, or a list of which each job is refused.
 */
#include "core/node/ended_jobs.h"
#include "core/node/node_private.h"
#include "fuzz.h"
#include "proto/seal.h"

static const char *text;
static size_t text_len;

static char *file_read(const struct env *env, enum file_area area, const char *name, size_t limit,
                       size_t *ret_len, GError **error)
{
    g_assert_cmpstr(name, ==, "node/ended_jobs.json");
    *ret_len = text_len;
    return text_len > 0 ? g_strndup(text, text_len) : g_strdup("");
}

static const struct env_ops ops = {.file_read = file_read};
static const struct env env = {.ops = &ops};

/* What it says by itself. */
static void check_refused(struct node_core *node)
{
    json_autoptr json = seal_from_text(text, text_len, LIMIT_FRAME_BYTES, NULL);
    record_autoptr(ended_jobs_file) file = ended_jobs_file_parse(json, RECORD_KEEP, NULL);
    struct stamp stamp = {file->history, file->epoch};
    for (guint i = 0; i < file->jobs->len; i++) {
        const struct ended_job *each = file->jobs->pdata[i];
        g_autoptr(GError) error = NULL;
        guint job = (guint)each->job;
        if (job != 0 && job == each->job)
            g_assert_false(ended_jobs_admit(node, stamp, job, each->instance, &error));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct node_core node = {.env = &env, .ended_jobs = ended_jobs_new()};
    g_autoptr(GError) error = NULL;
    text = (const char *)data;
    text_len = len;
    node.guests = g_hash_table_new(g_str_hash, g_str_equal);
    if (ended_jobs_load(&node, &error))
        check_refused(&node);
    else
        g_assert_nonnull(strstr(error->message, "var/node/ended_jobs.json"));
    g_hash_table_unref(node.guests);
    ended_jobs_free(node.ended_jobs);
    return 0;
}
