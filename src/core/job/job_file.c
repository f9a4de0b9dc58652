/* Job files; see job_file.h. */
#include "core/job/job_file.h"

#include "base/log.h"

#define PREFIX "job-"
#define BAD_PREFIX "bad-" PREFIX
#define JOB_FILE_BYTES 1024 /* of a short job */

const struct job_file_place job_file_now = {FILE_QUEUE, ""};
const struct job_file_place job_file_before = {FILE_STATE, "queue"};

/* The name within the area. */
static char *name_in(const struct job_file_place *place, const char *name)
{
    return place->folder[0] == '\0' ? g_strdup(name)
                                    : g_strdup_printf("%s/%s", place->folder, name);
}

static char *read_at(const struct env *env, const struct job_file_place *place, const char *name,
                     size_t *ret_len, GError **error)
{
    g_autofree char *within = name_in(place, name);
    return env->ops->file_read(env, place->area, within, LIMIT_JOB_FILE_BYTES, ret_len, error);
}

char *job_file_name(guint64 id)
{
    return g_strdup_printf(PREFIX "%" G_GUINT64_FORMAT, id);
}

bool job_file_parse_name(const char *name, guint64 *ret_id)
{
    guint64 id;
    if (!g_str_has_prefix(name, PREFIX) ||
        !g_ascii_string_to_unsigned(name + strlen(PREFIX), 10, 1, G_MAXINT64, &id, NULL))
        return false;
    *ret_id = id;
    return true;
}

bool job_file_write(const struct env *env, const struct job *job, GError **error)
{
    g_autoptr(GString) text = g_string_sized_new(JOB_FILE_BYTES);
    g_autofree char *name = job_file_name(job->id);
    record_append(&job_record, job, text);
    if (env->ops->file_write(env, FILE_QUEUE, name, text->str, text->len, error))
        return true;
    g_prefix_error(error, "job file %s: ", name);
    return false;
}

static struct job *parse(const char *text, size_t len, guint64 id, GError **error)
{
    json_autoptr json = json_parse_limited(text, len, LIMIT_JOB_FILE_BYTES, error);
    record_autoptr(job) job = json ? job_parse(json, RECORD_KEEP, error) : NULL;
    if (!job)
        return NULL;
    if (job->id != id) {
        fettle_set_error(error, CORRUPT, "it is the record of job %" G_GUINT64_FORMAT, job->id);
        return NULL;
    }
    return g_steal_pointer(&job);
}

struct job *job_file_read(const struct env *env, guint64 id, GError **error)
{
    g_autofree char *name = job_file_name(id);
    g_autoptr(GError) broken = NULL;
    g_autoptr(GError) unread = NULL;
    size_t len = 0;
    g_autofree char *text = read_at(env, &job_file_now, name, &len, &unread);
    if (!text && fettle_error_is(unread, UNKNOWN_ENTITY)) {
        g_clear_error(&unread);
        text = read_at(env, &job_file_before, name, &len, &unread);
    }
    if (!text) {
        g_propagate_prefixed_error(error, g_steal_pointer(&unread), "job file %s: ", name);
        return NULL;
    }
    struct job *job = parse(text, len, id, &broken);
    if (!job)
        fettle_set_error(error, CORRUPT, "job file %s: %s", name, broken->message);
    return job;
}

GPtrArray *job_file_list(const struct env *env, const struct job_file_place *place, GError **error)
{
    return env->ops->file_list(env, place->area, place->folder, error);
}

static bool remove_at(const struct env *env, const struct job_file_place *place, const char *name,
                      GError **error)
{
    g_autofree char *within = name_in(place, name);
    return env->ops->file_remove(env, place->area, within, error);
}

void job_file_remove(const struct env *env, const struct job_file_place *place, guint64 id)
{
    g_autofree char *name = job_file_name(id);
    g_autoptr(GError) error = NULL;
    if (!remove_at(env, place, name, &error) && !fettle_error_is(error, UNKNOWN_ENTITY))
        log_warning("", "%s cannot be removed: %s", name, error->message);
}

void job_file_set_aside(const struct env *env, const struct job_file_place *place, const char *name,
                        const char *why)
{
    g_autofree char *aside =
        g_strdup_printf("bad-%s-%" G_GINT64_FORMAT, name, env->ops->wall_us(env));
    g_autofree char *aside_within = name_in(place, aside);
    g_autoptr(GError) error = NULL;
    size_t len = 0;
    g_autofree char *text = read_at(env, place, name, &len, &error);
    if (!text || !env->ops->file_write(env, place->area, aside_within, text, len, &error) ||
        !remove_at(env, place, name, &error))
        log_error("", "%s is of no use (%s) and could not be set aside: %s", name, why,
                  error->message);
    else
        log_warning("", "%s is of no use (%s): set aside as %s", name, why, aside);
}

static void add_bad(const struct env *env, const struct job_file_place *place, const char *path,
                    GPtrArray *ret_to)
{
    g_autoptr(GPtrArray) names = job_file_list(env, place, NULL);
    for (guint i = 0; names && i < names->len && ret_to->len < LIMIT_BAD_JOB_FILES; i++)
        if (g_str_has_prefix(names->pdata[i], BAD_PREFIX))
            g_ptr_array_add(ret_to, g_strconcat(path, names->pdata[i], NULL));
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *job_file_list_bad(const struct env *env)
{
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    add_bad(env, &job_file_now, "run/queue/", paths);
    add_bad(env, &job_file_before, "var/queue/", paths);
    g_ptr_array_sort(paths, compare_texts);
    return paths;
}
