/* Archived jobs on this node; see archive_calls.h. */
#include "core/node/archive_calls.h"

#include "core/job/archive.h"

static bool check_list(const json_t *list, const char *what, GError **error)
{
    if (json_is_array(list) && json_array_size(list) <= LIMIT_ARCHIVE_STEP)
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: must be a list of at most %d", what,
                     LIMIT_ARCHIVE_STEP);
    return false;
}

json_t *archive_calls_put(struct node_core *node, struct epoch_fence_op *op, const void *args,
                          GError **error)
{
    const json_t *jobs = ((const struct archive_jobs *)args)->jobs;
    size_t i;
    const json_t *job;

    if (!check_list(jobs, "jobs", error))
        return NULL;
    json_array_foreach(jobs, i, job) {
        if (!archive_write(node->env, job, error))
            return NULL;
    }
    return json_object();
}

static json_t *numbers_to_json(const GArray *numbers)
{
    json_t *list = json_array();

    for (guint i = 0; i < numbers->len; i++)
        json_array_append_new(list, json_integer((json_int_t)g_array_index(numbers, guint64, i)));
    return list;
}

json_t *archive_calls_list(struct node_core *node, struct epoch_fence_op *op, const void *args,
                           GError **error)
{
    gint64 folder = ((const struct archive_list_args *)args)->folder;
    g_autoptr(GArray) folders = archive_folders(node->env, error);
    g_autoptr(GArray) ids = NULL;

    if (folders == NULL)
        return NULL;
    ids = folder < 0 ? g_array_new(FALSE, FALSE, sizeof(guint64))
                     : archive_ids(node->env, (guint64)folder, error);
    if (ids == NULL)
        return NULL;
    return json_make("{so, so}", "folders", numbers_to_json(folders), "ids", numbers_to_json(ids));
}

/* Damaged ones are left out: another candidate has them. */
json_t *archive_calls_get(struct node_core *node, struct epoch_fence_op *op, const void *args,
                          GError **error)
{
    const json_t *ids = ((const struct archive_get_args *)args)->ids;
    json_autoptr jobs = NULL;
    size_t bytes = 0;
    size_t i;
    const json_t *id;

    if (!check_list(ids, "ids", error))
        return NULL;
    jobs = json_array();
    json_array_foreach(ids, i, id) {
        json_autoptr job = archive_read_json(node->env, (guint64)json_integer_value(id), NULL);

        bytes += job == NULL ? 0 : json_dumpb(job, NULL, 0, JSON_COMPACT);
        if (bytes > LIMIT_COMMIT_BYTES && json_array_size(jobs) > 0)
            break;
        if (job != NULL)
            json_array_append(jobs, job);
    }
    return json_make("{sO}", "jobs", jobs);
}
