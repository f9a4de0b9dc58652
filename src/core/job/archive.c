/* The archive of jobs on one node; see archive.h. */
#include "core/job/archive.h"

#include "core/job/job_state.h"

#include <string.h>

#define ARCHIVE "queue/archive"
#define JOB_PREFIX "job-"
#define REQUESTS ARCHIVE "/requests"
#define ID G_GUINT64_FORMAT

/* --- names --- */

static char *job_name(guint64 id)
{
    return g_strdup_printf(ARCHIVE "/%" ID "/" JOB_PREFIX "%" ID, id / ARCHIVE_FOLDER_JOBS, id);
}

/* A request id may have any character: its digest names its file. */
static char *request_name(const char *request_id)
{
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, request_id, -1);
    return g_strdup_printf(REQUESTS "/%.2s/%s", digest, digest);
}

/* --- reading --- */

json_t *archive_read_json(const struct env *env, guint64 id, GError **error)
{
    g_autofree char *name = job_name(id);
    g_autoptr(GError) broken = NULL;
    size_t len = 0;
    g_autofree char *text =
        env->ops->file_read(env, FILE_STATE, name, LIMIT_ARCHIVED_BYTES, &len, &broken);
    json_t *json = text ? json_parse_limited(text, len, LIMIT_ARCHIVED_BYTES, &broken) : NULL;
    if (json)
        return json;
    if (fettle_error_is(broken, UNKNOWN_ENTITY))
        fettle_set_error(error, UNKNOWN_ENTITY, "job %" ID " is not in the archive", id);
    else
        fettle_set_error(error, CORRUPT, "archived job %" ID ": %s", id, broken->message);
    return NULL;
}

struct job *archive_read(const struct env *env, guint64 id, GError **error)
{
    json_autoptr json = archive_read_json(env, id, error);
    g_autoptr(GError) broken = NULL;
    record_autoptr(job) job = json ? job_parse(json, RECORD_KEEP, &broken) : NULL;
    if (!json)
        return NULL;
    if (!job) {
        fettle_set_error(error, CORRUPT, "archived job %" ID ": %s", id, broken->message);
        return NULL;
    }
    if (job->id != id) {
        fettle_set_error(error, CORRUPT, "archived job %" ID ": it is the record of job %" ID, id,
                         job->id);
        return NULL;
    }
    return g_steal_pointer(&job);
}

guint64 archive_request(const struct env *env, const char *request_id)
{
    g_autofree char *name = request_name(request_id);
    size_t len = 0;
    g_autofree char *text = env->ops->file_read(env, FILE_STATE, name, 32, &len, NULL);
    guint64 id = 0;
    return text && g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT64, &id, NULL) ? id : 0;
}

/* --- listing --- */

static gint compare_ids(gconstpointer left, gconstpointer right)
{
    guint64 a = *(const guint64 *)left, b = *(const guint64 *)right;
    return a < b ? -1 : a > b;
}

/* The numbers behind a prefix; names of another form are none of ours. */
static GArray *numbers_in(const struct env *env, const char *folder, const char *prefix,
                          GError **error)
{
    g_autoptr(GPtrArray) names = env->ops->file_list(env, FILE_STATE, folder, error);
    GArray *numbers = names ? g_array_new(FALSE, FALSE, sizeof(guint64)) : NULL;
    for (guint i = 0; names && i < names->len; i++) {
        const char *name = names->pdata[i];
        guint64 number;
        if (g_str_has_prefix(name, prefix) &&
            g_ascii_string_to_unsigned(name + strlen(prefix), 10, 0, G_MAXINT64, &number, NULL))
            g_array_append_val(numbers, number);
    }
    if (numbers)
        g_array_sort(numbers, compare_ids);
    return numbers;
}

GArray *archive_folders(const struct env *env, GError **error)
{
    return numbers_in(env, ARCHIVE, "", error);
}

GArray *archive_ids(const struct env *env, guint64 folder, GError **error)
{
    g_autofree char *path = g_strdup_printf(ARCHIVE "/%" ID, folder);
    return numbers_in(env, path, JOB_PREFIX, error);
}

/* --- writing --- */

/* Before the job itself: a job that is there can be found by its request id. */
static bool write_request(const struct env *env, const struct job *job, GError **error)
{
    g_autofree char *text = g_strdup_printf("%" ID, job->id);
    if (job->request_id[0] == '\0')
        return true;
    g_autofree char *name = request_name(job->request_id);
    return env->ops->file_write(env, FILE_STATE, name, text, strlen(text), error);
}

static bool write_job(const struct env *env, const struct job *job, const json_t *record,
                      GError **error)
{
    g_autofree char *name = job_name(job->id);
    g_autofree char *text = json_to_text(record);
    record_autoptr(job) there = archive_read(env, job->id, NULL);
    return there || (write_request(env, job, error) &&
                     env->ops->file_write(env, FILE_STATE, name, text, strlen(text), error));
}

bool archive_write(const struct env *env, const json_t *record, GError **error)
{
    record_autoptr(job) job = job_parse(record, RECORD_KEEP, error);
    if (!job) {
        g_prefix_error(error, "archive: ");
        return false;
    }
    if (!job_state_final(job_state_of(job))) {
        fettle_set_error(error, WRONG_STATE,
                         "archive: job %" ID " is %s; only a job that has ended can be archived",
                         job->id, sm_name(&job_sm, job_state_of(job)));
        return false;
    }
    if (write_job(env, job, record, error))
        return true;
    g_prefix_error(error, "archive: job %" ID ": ", job->id);
    return false;
}
