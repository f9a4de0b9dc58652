/* Query about jobs of which some may be archived; see query_private.h. */
#include "core/query/query_private.h"

GArray *query_named_jobs(const struct filter *filter)
{
    g_autoptr(GPtrArray) values = filter_values(filter, query_field_find("job", "id"));
    GArray *ids = values ? g_array_new(FALSE, FALSE, sizeof(guint64)) : NULL;
    for (guint i = 0; values && i < values->len; i++) {
        guint64 id = (guint64)MAX(json_integer_value(values->pdata[i]), 0);
        g_array_append_val(ids, id);
    }
    return ids;
}

static bool any_not_on_record(const struct query *query)
{
    for (guint i = 0; query->ids && i < query->ids->len; i++)
        if (!query_job_known(query->queries, g_array_index(query->ids, guint64, i)))
            return true;
    return false;
}

/* One after the other, so that no more than one of them is in memory beside the answer. */
static bool add_jobs(struct query *query, const GArray *ids, GError **error)
{
    for (guint i = 0; i < ids->len; i++) {
        record_autoptr(job) archived = NULL;
        const struct job *job =
            query_job_find(query->queries, g_array_index(ids, guint64, i), &archived);
        query->source.config = follow_config(query->queries->follow);
        if (job && query_match(query, job))
            query_answer_row(query, job);
        if (!query_go_on(query, error))
            return false;
        if (archived && !query_job_pause(query->queries, i)) {
            fettle_set_error(error, KILLED, "luxid has ended");
            return false;
        }
    }
    return true;
}

static gint compare_ids(gconstpointer left, gconstpointer right)
{
    guint64 a = *(const guint64 *)left, b = *(const guint64 *)right;
    return a < b ? -1 : a > b;
}

/* Ascending, each once. */
static GArray *sorted_ids(const GArray *ids)
{
    GArray *sorted = g_array_new(FALSE, FALSE, sizeof(guint64));
    g_autoptr(GArray) all = g_array_copy((GArray *)ids);
    g_array_sort(all, compare_ids);
    for (guint i = 0; i < all->len; i++)
        if (i == 0 || g_array_index(all, guint64, i) != g_array_index(all, guint64, i - 1))
            g_array_append_vals(sorted, &g_array_index(all, guint64, i), 1);
    return sorted;
}

/* Those that the filter names, or all between the bounds that it has. */
static GArray *ids_to_read(struct query *query, GError **error)
{
    struct query_ids wanted = {query->archived, 0, G_MAXINT64};
    if (query->ids)
        return sorted_ids(query->ids);
    filter_bounds(query->filter, query_field_find("job", "id"), &wanted.least, &wanted.most);
    return query_job_ids(query->queries, &wanted, &query->more, error);
}

void query_jobs_task(void *data)
{
    struct query *query = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) ids = ids_to_read(query, &error);
    query->slow = true;
    query->steps = 0;
    g_string_truncate(query->data, 0);
    if (ids && add_jobs(query, ids, &error))
        query_answer(query);
    else
        rpc_fail(query->request, error);
    query_free(query);
}

bool query_needs_archive(const struct query *query)
{
    return query->archived || any_not_on_record(query);
}
