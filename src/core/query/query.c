/* The calls Query and QueryFields, and the old ones: what is asked, and of which rows; see query.h.
 * How they are answered stands in query_run.c. */
#include "core/query/query_private.h"

void query_free(struct query *query)
{
    if (query->counted)
        query->queries->slow--;
    query_source_clear(&query->source);
    g_free(query->what);
    g_ptr_array_unref(query->names);
    g_ptr_array_unref(query->fields);
    g_ptr_array_unref(query->members);
    g_free(query->cells);
    g_clear_pointer(&query->wanted, g_ptr_array_unref);
    g_string_free(query->data, TRUE);
    filter_free(query->filter);
    if (query->ids)
        g_array_unref(query->ids);
    g_clear_pointer(&query->matching, g_ptr_array_unref);
    g_clear_pointer(&query->rows, g_ptr_array_unref);
    lock_states_free(query->locks);
    lock_waiters_free(query->waiters);
    g_clear_pointer(&query->snapshot, config_free);
    g_free(query);
}

/* --- what is asked --- */

static const void *resolve_field(const char *name, void *what)
{
    return query_field_find(what, name);
}

static bool is_archived(const struct query_field *field)
{
    return field && g_str_equal(field->resource, "job") && g_str_equal(field->name, "archived");
}

static bool is_of_room(const struct query_field *field)
{
    return field && g_str_equal(field->resource, "backend") &&
           (g_str_equal(field->name, "free") || g_str_equal(field->name, "total"));
}

static void note_filter(const void *field, void *data)
{
    struct query *query = data;
    query->room = query->room || is_of_room(field);
    query->live_filter = query->live_filter || ((const struct query_field *)field)->live;
    query->archived = query->archived || is_archived(field);
}

static bool check_resource(const char *call, const char *what, GError **error)
{
    if (query_resource_exists(what))
        return true;
    fettle_set_error(
        error, WRONG_INPUT,
        "%s: what: unknown resource \"%s\"; known are instance, node, group, job, "
        "repair, policy, brake, advice, network, reservation, invitation, decision, event, fault, "
        "stuck, task, filter, lock, waiter, export, service, backend, volume_type, volume, "
        "snapshot, backup, image, worker, "
        "storage_service",
        call, what);
    return false;
}

static struct query *query_new(struct queries *queries, const struct luxi_query_args *args,
                               GError **error)
{
    g_autoptr(GError) bad = NULL;
    if (!check_resource("Query", args->what, error))
        return NULL;
    struct query *query = g_new0(struct query, 1);
    query->queries = queries;
    query->what = g_strdup(args->what);
    query->names = g_ptr_array_new_with_free_func(g_free);
    query->fields = g_ptr_array_new();
    query->members = g_ptr_array_new();
    query->data = g_string_new(NULL);
    for (guint i = 0; i < args->fields->len; i++) {
        const char *name = args->fields->pdata[i];
        const struct query_field *field = query_field_find(args->what, name);
        g_ptr_array_add(query->names, g_strdup(name));
        g_ptr_array_add(query->fields, (void *)field);
        g_ptr_array_add(query->members, (void *)query_field_member(field));
        query->live_fields = query->live_fields || (field && field->live);
        query->archived = query->archived || is_archived(field);
        query->room = query->room || is_of_room(field);
    }
    query->filter = filter_parse(args->filter, resolve_field, query->what, &bad);
    if (bad) {
        g_propagate_prefixed_error(error, g_steal_pointer(&bad), "Query: ");
        query_free(query);
        return NULL;
    }
    filter_fields(query->filter, note_filter, query);
    if (g_str_equal(query->what, "job"))
        query->ids = query_named_jobs(query->filter);
    return query;
}

/* --- rows --- */

/* The kind of the objects of such a resource. */
static const char *object_kind(const char *what)
{
    static const char *const kinds[][2] = {
        {"group", "nodegroup"}, {"brake", "repair_brake"}, {"filter", "job_filter"}};
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (g_str_equal(kinds[i][0], what))
            return kinds[i][1];
    return what;
}

static GPtrArray *job_rows(const struct queries *queries)
{
    g_autoptr(GArray) ids = queries->jobs->ids(queries->jobs_data);
    GPtrArray *rows = g_ptr_array_sized_new(ids->len);
    for (guint i = 0; i < ids->len; i++) {
        const struct job *job =
            queries->jobs->view(queries->jobs_data, g_array_index(ids, guint64, i));
        if (job)
            g_ptr_array_add(rows, (void *)job);
    }
    return rows;
}

/* Those that are wanted, in the order asked, also twice; without those that are gone by now. */
static GPtrArray *wanted_rows(const struct query *query)
{
    const char *kind = object_kind(query->what);
    GPtrArray *rows = g_ptr_array_sized_new(query->wanted->len);
    for (guint i = 0; i < query->wanted->len; i++) {
        const void *row = config_find(query->source.config, kind, query->wanted->pdata[i], NULL);
        if (row)
            g_ptr_array_add(rows, (void *)row);
    }
    return rows;
}

void query_collect_rows(struct query *query)
{
    const struct config *config = query->source.config;
    g_clear_pointer(&query->rows, g_ptr_array_unref);
    if (query->wanted)
        query->rows = wanted_rows(query);
    else if (g_str_equal(query->what, "job"))
        query->rows = job_rows(query->queries);
    else if (g_str_equal(query->what, "repair"))
        query->rows = query_repair_rows(config);
    else if (g_str_equal(query->what, "decision"))
        query->rows = query_decision_rows(config);
    else if (g_str_equal(query->what, "event"))
        query->rows = query_event_rows(config);
    else if (g_str_equal(query->what, "task"))
        query->rows = query_task_rows(config);
    else if (g_str_equal(query->what, "policy"))
        query->rows = query_policy_rows(config);
    else if (g_str_equal(query->what, "advice"))
        query->rows = query_advice_rows(config);
    else if (g_str_equal(query->what, "invitation"))
        query->rows = query_invitation_rows(config);
    else if (g_str_equal(query->what, "filter"))
        query->rows = query_filter_rows(config);
    else if (g_str_equal(query->what, "service"))
        query->rows = query_service_rows(config);
    else if (g_str_equal(query->what, "worker"))
        query->rows = query_worker_rows(config);
    else if (g_str_equal(query->what, "storage_service"))
        query->rows = query_storage_service_rows(config);
    else if (g_str_equal(query->what, "export"))
        query->rows = g_ptr_array_new();
    else
        query->rows = config_list(config, object_kind(query->what));
}

void query_run(struct queries *queries, struct rpc_request *request,
               const struct luxi_query_args *args)
{
    g_autoptr(GError) error = NULL;
    struct query *query = query_new(queries, args, &error);
    if (!query)
        rpc_fail(request, error);
    else
        query_start(queries, request, query);
}

/* --- the old calls --- */

static bool all_exist(const struct queries *queries, const char *what, const GPtrArray *names,
                      GError **error)
{
    const struct config *config = follow_config(queries->follow);
    bool rules = g_str_equal(what, "filter");
    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        if (config_find(config, object_kind(what), name, rules ? NULL : error))
            continue;
        if (rules)
            fettle_set_error(error, UNKNOWN_ENTITY, "filter %s does not exist", name);
        return false;
    }
    return true;
}

static gpointer copy_text(gconstpointer text, gpointer data)
{
    return g_strdup(text);
}

void query_plain(struct queries *queries, struct rpc_request *request, const char *what,
                 const GPtrArray *names, const GPtrArray *fields)
{
    const struct luxi_query_args args = {.what = (char *)what, .fields = (GPtrArray *)fields};
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) known = query_fields_find(what, fields, &error);
    struct query *query = NULL;
    if (known && all_exist(queries, what, names, &error))
        query = query_new(queries, &args, &error);
    if (!query) {
        rpc_fail(request, error);
        return;
    }
    query->plain = true;
    if (names->len > 0)
        query->wanted = g_ptr_array_copy((GPtrArray *)names, copy_text, NULL);
    if (query->wanted)
        g_ptr_array_set_free_func(query->wanted, g_free);
    query_start(queries, request, query);
}

/* --- QueryFields --- */

static const char *const kind_words[] = {"text", "number",    "float", "unit",
                                         "bool", "timestamp", "other"};

json_t *query_describe_field(const struct query_field *field, const char *name)
{
    if (!field)
        return json_make("{ss, ss, ss, so}", "name", name, "title", name, "kind", "unknown", "doc",
                         json_sprintf("Unknown field '%s'", name));
    return json_make("{ss, ss, ss, ss}", "name", field->name, "title", field->title, "kind",
                     kind_words[field->kind], "doc", field->doc);
}

void query_describe_fields(struct rpc_request *request, const struct luxi_query_fields_args *args)
{
    g_autoptr(GError) error = NULL;
    size_t count;
    const struct query_field *table = query_field_table(&count);
    if (!check_resource("QueryFields", args->what, &error)) {
        rpc_fail(request, error);
        return;
    }
    json_t *fields = json_array();
    for (guint i = 0; i < args->fields->len; i++) {
        const char *name = args->fields->pdata[i];
        json_array_append_new(fields,
                              query_describe_field(query_field_find(args->what, name), name));
    }
    for (size_t i = 0; args->fields->len == 0 && i < count; i++)
        if (g_str_equal(table[i].resource, args->what))
            json_array_append_new(fields, query_describe_field(&table[i], table[i].name));
    rpc_answer(request, json_make("{so}", "fields", fields));
}
