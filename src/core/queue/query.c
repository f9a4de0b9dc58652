/* The calls Query and QueryFields; see query.h. */
#include "core/queue/query_private.h"

void query_free(struct query *query)
{
    query_source_clear(&query->source);
    g_free(query->what);
    g_ptr_array_unref(query->names);
    g_ptr_array_unref(query->fields);
    g_ptr_array_unref(query->members);
    g_string_free(query->data, TRUE);
    filter_free(query->filter);
    if (query->ids != NULL)
        g_array_unref(query->ids);
    g_clear_pointer(&query->matching, g_ptr_array_unref);
    g_clear_pointer(&query->rows, g_ptr_array_unref);
    lock_states_free(query->locks);
    lock_waiters_free(query->waiters);
    g_free(query);
}

/* --- what is asked --- */

static const void *resolve_field(const char *name, void *what)
{
    return query_field_find(what, name);
}

static bool is_archived(const struct query_field *field)
{
    return field != NULL && g_str_equal(field->resource, "job") &&
           g_str_equal(field->name, "archived");
}

static void note_filter(const void *field, void *data)
{
    struct query *query = data;

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
        "repair, policy, brake, advice, network, reservation, invitation, decision, filter, lock, "
        "waiter, export, service",
        call, what);
    return false;
}

static struct query *query_new(struct queue_context *context, const struct luxi_query_args *args,
                               GError **error)
{
    struct query *query;
    g_autoptr(GError) bad = NULL;

    if (!check_resource("Query", args->what, error))
        return NULL;
    query = g_new0(struct query, 1);
    query->context = context;
    query->what = g_strdup(args->what);
    query->names = g_ptr_array_new_with_free_func(g_free);
    query->fields = g_ptr_array_new();
    query->members = g_ptr_array_new();
    query->data = g_string_new(NULL);
    for (guint i = 0; i < args->fields->len; i++) {
        const char *name = g_ptr_array_index(args->fields, i);
        const struct query_field *field = query_field_find(args->what, name);

        g_ptr_array_add(query->names, g_strdup(name));
        g_ptr_array_add(query->fields, (gpointer)field);
        g_ptr_array_add(query->members, (gpointer)query_field_member(field));
        query->live_fields = query->live_fields || (field != NULL && field->live);
        query->archived = query->archived || is_archived(field);
    }
    query->filter = filter_parse(args->filter, resolve_field, query->what, &bad);
    if (bad != NULL) {
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

static GPtrArray *job_rows(const struct queue_context *context)
{
    g_autoptr(GArray) ids = queue_ids(context->queue);
    GPtrArray *rows = g_ptr_array_sized_new(ids->len);

    for (guint i = 0; i < ids->len; i++) {
        const struct job *job = context_view(context, g_array_index(ids, guint64, i));

        if (job != NULL)
            g_ptr_array_add(rows, (gpointer)job);
    }
    return rows;
}

static bool fetch_locks(struct query *query, GError **error)
{
    query->locks = env_call_record(query->context->env, NODE_LOCAL, ROLE_WCONFD, "list_all_locks",
                                   NULL, context_stamp(query->context), 0, 0, error);
    if (query->locks == NULL)
        return false;
    query->rows = query_lock_rows(query->locks);
    return true;
}

static bool fetch_waiters(struct query *query, GError **error)
{
    query->waiters =
        env_call_record(query->context->env, NODE_LOCAL, ROLE_WCONFD, "list_lock_waiters", NULL,
                        context_stamp(query->context), 0, 0, error);
    if (query->waiters == NULL)
        return false;
    query->rows = query_waiter_rows(query->waiters);
    return true;
}

static void collect_rows(struct query *query)
{
    const struct config *config = query->source.config;

    if (g_str_equal(query->what, "job"))
        query->rows = job_rows(query->context);
    else if (g_str_equal(query->what, "repair"))
        query->rows = query_repair_rows(config);
    else if (g_str_equal(query->what, "decision"))
        query->rows = query_decision_rows(config);
    else if (g_str_equal(query->what, "policy"))
        query->rows = query_policy_rows(config);
    else if (g_str_equal(query->what, "group"))
        query->rows = config_list(config, "nodegroup");
    else if (g_str_equal(query->what, "brake"))
        query->rows = config_list(config, "repair_brake");
    else if (g_str_equal(query->what, "advice"))
        query->rows = query_advice_rows(config);
    else if (g_str_equal(query->what, "invitation"))
        query->rows = query_invitation_rows(config);
    else if (g_str_equal(query->what, "filter"))
        query->rows = query_filter_rows(config);
    else if (g_str_equal(query->what, "service"))
        query->rows = query_service_rows(config);
    else if (g_str_equal(query->what, "export"))
        query->rows = g_ptr_array_new();
    else
        query->rows = config_list(config, query->what);
}

/* A value of the row that the filter looks at; none if there is no data or its node does not
 * answer. */
json_t *query_row_value(const void *field, void *data)
{
    struct query *query = data;
    enum query_status status;

    return query_field_value(field, &query->source, query->row, &status);
}

/* The order stays. */
static void apply_filter(struct query *query)
{
    g_clear_pointer(&query->matching, g_ptr_array_unref);
    query->matching = g_ptr_array_new();
    for (guint i = 0; i < query->rows->len; i++) {
        query->row = g_ptr_array_index(query->rows, i);
        if (filter_match(query->filter, query_row_value, query))
            g_ptr_array_add(query->matching, (gpointer)query->row);
    }
}

/* --- live data --- */

static void add_node(GHashTable *nodes, const char *uuid)
{
    if (uuid[0] != '\0')
        g_hash_table_add(nodes, (gpointer)uuid);
}

/* Nodes that rows concern. */
static bool fetch_live(struct query *query, const GPtrArray *rows)
{
    g_autoptr(GHashTable) nodes = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < rows->len; i++) {
        if (g_str_equal(query->what, "instance")) {
            const struct instance *instance = g_ptr_array_index(rows, i);

            add_node(nodes, instance->primary_node);
            add_node(nodes, instance->secondary_node);
        } else if (g_str_equal(query->what, "service")) {
            add_node(nodes, query_service_node(g_ptr_array_index(rows, i))->uuid);
        } else {
            add_node(nodes, ((const struct node *)g_ptr_array_index(rows, i))->uuid);
        }
    }
    query->source.live = live_fetch(query->context, nodes);
    return query->source.live != NULL;
}

/* --- the answer --- */

static const char *const kind_words[] = {"text", "number",    "float", "unit",
                                         "bool", "timestamp", "other"};

static json_t *describe_field(const struct query_field *field, const char *name)
{
    if (field == NULL)
        return json_make("{ss, ss, ss, so}", "name", name, "title", name, "kind", "unknown", "doc",
                         json_sprintf("Unknown field '%s'", name));
    return json_make("{ss, ss, ss, ss}", "name", field->name, "title", field->title, "kind",
                     kind_words[field->kind], "doc", field->doc);
}

static void append_cell(struct query *query, guint index, const void *row)
{
    const struct query_field *field = g_ptr_array_index(query->fields, index);
    const struct field *member = g_ptr_array_index(query->members, index);
    enum query_status status = member != NULL ? QUERY_NORMAL : QUERY_UNKNOWN;
    json_autoptr value = NULL;

    if (member == NULL && field != NULL)
        value = query_field_value(field, &query->source, row, &status);
    if (!query->plain) {
        const char begin[] = {'[', (char)('0' + (int)status), ',', '\0'};
        g_string_append_len(query->data, begin, 3);
    }
    if (member != NULL)
        record_field_append(member, row, query->data);
    else if (value != NULL)
        json_append(query->data, value);
    else
        g_string_append(query->data, "null");
    if (!query->plain)
        g_string_append_c(query->data, ']');
}

void query_answer_row(struct query *query, const void *row)
{
    g_string_append(query->data, query->data->len > 0 ? ",[" : "[");
    for (guint i = 0; i < query->fields->len; i++) {
        if (i > 0)
            g_string_append_c(query->data, ',');
        append_cell(query, i, row);
    }
    g_string_append_c(query->data, ']');
}

static void answer_matching(struct query *query)
{
    for (guint i = 0; i < query->matching->len; i++)
        query_answer_row(query, g_ptr_array_index(query->matching, i));
    query_answer(query);
}

void query_answer(struct query *query)
{
    g_string_prepend(query->data, query->plain ? "[" : "{\"data\":[");
    g_string_append_c(query->data, ']');
    if (!query->plain) {
        json_autoptr fields = json_array();
        for (guint i = 0; i < query->fields->len; i++)
            json_array_append_new(fields, describe_field(g_ptr_array_index(query->fields, i),
                                                         g_ptr_array_index(query->names, i)));
        g_string_append(query->data, ",\"fields\":");
        json_append(query->data, fields);
        g_string_append_c(query->data, '}');
    }
    rpc_answer_text(query->request, query->data->str);
}

static bool gather_live(struct query *query, GError **error)
{
    bool alive;

    if (!query->live_filter)
        apply_filter(query);
    alive = fetch_live(query, query->live_filter ? query->rows : query->matching);
    if (!alive)
        fettle_set_error(error, KILLED, "luxid has ended");
    return alive;
}

/* Everything that may wait: rows are taken anew after a wait, because records may have changed
 * meanwhile. */
static bool gather(struct query *query, GError **error)
{
    if (g_str_equal(query->what, "lock"))
        return fetch_locks(query, error);
    if (g_str_equal(query->what, "waiter"))
        return fetch_waiters(query, error);
    collect_rows(query);
    if (!query->live_fields && !query->live_filter)
        return true;
    if (!gather_live(query, error))
        return false;
    query->source.config = follow_config(query->context->follow);
    g_clear_pointer(&query->source.by_node, g_hash_table_unref);
    g_clear_pointer(&query->source.names, g_hash_table_unref);
    g_clear_pointer(&query->rows, g_ptr_array_unref);
    collect_rows(query);
    return true;
}

static void query_task(void *data)
{
    struct query *query = data;
    g_autoptr(GError) error = NULL;

    if (gather(query, &error)) {
        apply_filter(query);
        answer_matching(query);
    } else {
        rpc_fail(query->request, error);
    }
    query_free(query);
}

static void start_query(struct queue_context *context, struct rpc_request *request,
                        struct query *query)
{
    query->request = request;
    query->source =
        (struct query_source){.context = context, .config = follow_config(context->follow)};
    bool of_locks = g_str_equal(query->what, "lock") || g_str_equal(query->what, "waiter");
    if (query_needs_archive(query))
        task_spawn(context->env->tasks, query_jobs_task, query);
    else if (query->live_fields || query->live_filter || of_locks)
        task_spawn(context->env->tasks, query_task, query);
    else
        query_task(query);
}

void query_run(struct queue_context *context, struct rpc_request *request,
               const struct luxi_query_args *args)
{
    g_autoptr(GError) error = NULL;
    struct query *query = query_new(context, args, &error);

    if (query == NULL)
        rpc_fail(request, error);
    else
        start_query(context, request, query);
}

/* --- the old calls --- */

/* Name and UUID of a rule are the same. */
static bool all_exist(const struct queue_context *context, const char *what, const GPtrArray *names,
                      GError **error)
{
    const struct config *config = follow_config(context->follow);
    const char *kind = g_str_equal(what, "group") ? "nodegroup" : what;

    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);

        if (!g_str_equal(what, "filter")) {
            if (config_find(config, kind, name, error) == NULL)
                return false;
        } else if (config_get(config, "job_filter", name, NULL) == NULL) {
            fettle_set_error(error, UNKNOWN_ENTITY, "filter %s does not exist", name);
            return false;
        }
    }
    return true;
}

/* ["|", ["=", "name", N], ["=", "uuid", N], …]; null for all. */
static json_t *names_filter(const char *what, const GPtrArray *names)
{
    json_t *filter;

    if (names->len == 0)
        return json_null();
    filter = json_make("[s]", "|");
    for (guint i = 0; i < names->len; i++) {
        const char *name = g_ptr_array_index(names, i);

        if (!g_str_equal(what, "filter"))
            json_array_append_new(filter, json_make("[sss]", "=", "name", name));
        json_array_append_new(filter, json_make("[sss]", "=", "uuid", name));
    }
    return filter;
}

void query_plain(struct queue_context *context, struct rpc_request *request, const char *what,
                 const GPtrArray *names, const GPtrArray *fields)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) known = query_fields_find(what, fields, &error);
    json_autoptr filter = NULL;
    struct query *query;

    if (known == NULL || !all_exist(context, what, names, &error)) {
        rpc_fail(request, error);
        return;
    }
    filter = names_filter(what, names);
    query = query_new(context,
                      &(struct luxi_query_args){
                          .what = (char *)what, .fields = (GPtrArray *)fields, .filter = filter},
                      &error);
    if (query == NULL) {
        rpc_fail(request, error);
        return;
    }
    query->plain = true;
    start_query(context, request, query);
}

/* --- QueryFields --- */

void query_describe_fields(struct rpc_request *request, const struct luxi_query_fields_args *args)
{
    g_autoptr(GError) error = NULL;
    size_t count;
    const struct query_field *table = query_field_table(&count);
    json_t *fields;

    if (!check_resource("QueryFields", args->what, &error)) {
        rpc_fail(request, error);
        return;
    }
    fields = json_array();
    for (guint i = 0; i < args->fields->len; i++) {
        const char *name = g_ptr_array_index(args->fields, i);

        json_array_append_new(fields, describe_field(query_field_find(args->what, name), name));
    }
    for (size_t i = 0; args->fields->len == 0 && i < count; i++)
        if (g_str_equal(table[i].resource, args->what))
            json_array_append_new(fields, describe_field(&table[i], table[i].name));
    rpc_answer(request, json_make("{so}", "fields", fields));
}
