/* How queries are answered: at once if they are quick, else bit by bit, so that others have their
 * turn; see query_private.h. */
#include <string.h>

#include "core/query/query_private.h"

/* --- what it costs --- */

bool query_go_on(struct query *query, GError **error)
{
    if (query->steps > LIMIT_QUERY_STEPS)
        fettle_set_error(error, LIMIT,
                         "Query: given up after %u steps: ask with a simpler filter, for fewer "
                         "fields, or for fewer objects at once",
                         LIMIT_QUERY_STEPS);
    else if (query->data->len > LIMIT_LUXI_ANSWER_BYTES)
        fettle_set_error(error, LIMIT,
                         "the answer is too large; ask for fewer fields, or for fewer rows by a "
                         "filter: it has more than %lu bytes",
                         LIMIT_LUXI_ANSWER_BYTES);
    else if (!query->slow)
        return query->steps <= QUERY_QUICK_STEPS;
    else if (query->gone)
        fettle_set_error(error, KILLED, "the client has gone");
    else if (query->steps < query->next_turn)
        return true;
    else {
        query->next_turn = query->steps + QUERY_TURN_STEPS;
        if (env_sleep(query->queries->env, 1))
            return true;
        fettle_set_error(error, KILLED, "luxid has ended");
    }
    return false;
}

/* --- filtering --- */

/* A value of the row that the filter looks at; none if there is no data or its node does not
 * answer. */
static json_t *row_value(const void *field, void *data)
{
    struct query *query = data;
    enum query_status status;
    return query_field_value(field, &query->source, query->row, &status);
}

bool query_match(struct query *query, const void *row)
{
    query->row = row;
    return filter_match(query->filter, row_value, query, &query->steps);
}

/* The order stays. */
static bool apply_filter(struct query *query, GError **error)
{
    g_clear_pointer(&query->matching, g_ptr_array_unref);
    query->matching = g_ptr_array_new();
    for (guint i = 0; i < query->rows->len; i++) {
        const void *row = query->rows->pdata[i];
        if (query_match(query, row))
            g_ptr_array_add(query->matching, (void *)row);
        if (!query_go_on(query, error))
            return false;
    }
    return true;
}

/* Without a filter it is known before. */
static bool is_surely_long(const struct query *query)
{
    return !query->filter && (guint64)query->rows->len * query->fields->len > QUERY_QUICK_STEPS;
}

/* False without an error: it is more than may be done at once. */
static bool answer_rows(struct query *query, GError **error)
{
    if (!query->slow && is_surely_long(query))
        return false;
    if (!apply_filter(query, error))
        return false;
    for (guint i = 0; i < query->matching->len; i++) {
        query_answer_row(query, query->matching->pdata[i]);
        if (!query_go_on(query, error))
            return false;
    }
    return true;
}

/* --- reports of nodes --- */

static void add_node(GHashTable *nodes, const char *uuid)
{
    if (uuid[0] != '\0')
        g_hash_table_add(nodes, (void *)uuid);
}

static bool asks_for(const struct query *query, const char *name)
{
    return g_ptr_array_find_with_equal_func(query->names, name, g_str_equal, NULL);
}

/* Some faults of one node show only beside all others. */
static void add_others(const struct query *query, GHashTable *nodes)
{
    if (!g_str_equal(query->what, "node") ||
        (!asks_for(query, "faults") && !asks_for(query, "health")))
        return;
    g_autoptr(GPtrArray) all = config_list(follow_config(query->queries->follow), "node");
    for (guint i = 0; i < all->len; i++)
        add_node(nodes, ((const struct node *)all->pdata[i])->uuid);
}

static GPtrArray *list_of(GHashTable *nodes)
{
    GPtrArray *list = g_ptr_array_new();
    GHashTableIter iter;
    void *node;
    g_hash_table_iter_init(&iter, nodes);
    while (g_hash_table_iter_next(&iter, &node, NULL))
        g_ptr_array_add(list, node);
    return list;
}

/* Nodes that rows concern. */
static bool fetch_reports(struct query *query, const GPtrArray *rows)
{
    g_autoptr(GHashTable) nodes = g_hash_table_new(g_str_hash, g_str_equal);
    add_others(query, nodes);
    for (guint i = 0; i < rows->len; i++) {
        if (g_str_equal(query->what, "instance")) {
            const struct instance *instance = rows->pdata[i];
            add_node(nodes, instance->primary_node);
            add_node(nodes, instance->secondary_node);
        } else if (g_str_equal(query->what, "service")) {
            add_node(nodes, query_service_node(rows->pdata[i])->uuid);
        } else {
            add_node(nodes, ((const struct node *)rows->pdata[i])->uuid);
        }
    }
    g_autoptr(GPtrArray) asked = list_of(nodes);
    query->source.reports = reports_ask(query->queries->env, query->queries->follow, asked);
    return query->source.reports != NULL;
}

/* --- the answer --- */

static void append_cell(struct query *query, guint index, const void *row)
{
    const struct query_field *field = query->fields->pdata[index];
    const struct field *member = query->members->pdata[index];
    enum query_status status = member ? QUERY_NORMAL : QUERY_UNKNOWN;
    json_autoptr value = NULL;
    if (!member && field)
        value = query_field_value(field, &query->source, row, &status);
    if (!query->plain) {
        const char begin[] = {'[', (char)('0' + (int)status), ',', '\0'};
        g_string_append_len(query->data, begin, 3);
    }
    if (member)
        record_field_append(member, row, query->data);
    else if (value)
        json_append(query->data, value);
    else
        g_string_append(query->data, "null");
    if (!query->plain)
        g_string_append_c(query->data, ']');
}

/* What two fields show alike, as beparams and custom_beparams, is made once. */
static void place_cell(struct query *query, guint index, const void *row)
{
    struct query_cell *cell = &query->cells[index];
    const struct query_cell *like = &query->cells[cell->like];
    cell->at = query->data->len;
    if (like == cell) {
        append_cell(query, index, row);
    } else {
        g_string_set_size(query->data, cell->at + like->length);
        memcpy(query->data->str + cell->at, query->data->str + like->at, like->length);
    }
    cell->length = query->data->len - cell->at;
}

void query_answer_row(struct query *query, const void *row)
{
    gsize before = query->data->len;
    g_string_append(query->data, query->data->len > 0 ? ",[" : "[");
    for (guint i = 0; i < query->fields->len; i++) {
        if (i > 0)
            g_string_append_c(query->data, ',');
        place_cell(query, i, row);
    }
    g_string_append_c(query->data, ']');
    query->steps += query->fields->len + (query->data->len - before) / QUERY_BYTES_STEP;
}

void query_answer(struct query *query)
{
    g_string_prepend(query->data, query->plain ? "[" : "{\"data\":[");
    g_string_append_c(query->data, ']');
    if (!query->plain) {
        json_autoptr fields = json_array();
        for (guint i = 0; i < query->fields->len; i++)
            json_array_append_new(
                fields, query_describe_field(query->fields->pdata[i], query->names->pdata[i]));
        g_string_append(query->data, ",\"fields\":");
        json_append(query->data, fields);
        g_string_append(query->data, query->more ? ",\"more\":true}" : "}");
    }
    rpc_answer_text(query->request, query->data->str);
}

/* --- waiting --- */

static bool fetch_locks(struct query *query, GError **error)
{
    query->locks = env_call_record(query->queries->env, NODE_LOCAL, ROLE_WCONFD, "list_all_locks",
                                   NULL, follow_stamp(query->queries->follow), 0, 0, error);
    if (!query->locks)
        return false;
    query->rows = query_lock_rows(query->locks);
    return true;
}

static bool fetch_waiters(struct query *query, GError **error)
{
    query->waiters =
        env_call_record(query->queries->env, NODE_LOCAL, ROLE_WCONFD, "list_lock_waiters", NULL,
                        follow_stamp(query->queries->follow), 0, 0, error);
    if (!query->waiters)
        return false;
    query->rows = query_waiter_rows(query->waiters);
    return true;
}

/* Of the rows that match, unless the filter itself has to know. */
static bool gather_live(struct query *query, GError **error)
{
    if (!query->live_filter && !apply_filter(query, error))
        return false;
    if (fetch_reports(query, query->live_filter ? query->rows : query->matching))
        return true;
    fettle_set_error(error, KILLED, "luxid has ended");
    return false;
}

/* What is on record, anew: it may have changed while the query waited. */
static void take_anew(struct query *query)
{
    query->source.config =
        query->snapshot ? query->snapshot : follow_config(query->queries->follow);
    g_clear_pointer(&query->source.by_node, g_hash_table_unref);
    g_clear_pointer(&query->source.names, g_hash_table_unref);
    query_collect_rows(query);
}

static bool gather_of_wconfd(struct query *query, GError **error)
{
    return g_str_equal(query->what, "lock") ? fetch_locks(query, error)
                                            : fetch_waiters(query, error);
}

static bool is_of_wconfd(const struct query *query)
{
    return g_str_equal(query->what, "lock") || g_str_equal(query->what, "waiter");
}

/* Without it there is no data. */
static void fetch_room(struct query *query)
{
    query->source.status =
        env_call_record(query->queries->env, NODE_LOCAL, ROLE_WCONFD, "cluster_status", NULL,
                        follow_stamp(query->queries->follow), 0, 0, NULL);
    if (!query->source.status)
        query->source.status = cluster_status_new();
}

/* Rows, and everything that may have to wait for others. */
static bool gather(struct query *query, GError **error)
{
    if (is_of_wconfd(query))
        return query->rows || gather_of_wconfd(query, error);
    if (query->room && !query->source.status)
        fetch_room(query);
    take_anew(query);
    if ((!query->live_fields && !query->live_filter) || query->source.reports)
        return true;
    if (!gather_live(query, error))
        return false;
    take_anew(query);
    return true;
}

/* --- what takes long --- */

static void gone_cb(struct rpc_request *request, void *data)
{
    ((struct query *)data)->gone = true;
}

/* From the beginning, with objects that stay as they are while others have their turn. */
static bool answer_slowly(struct query *query, GError **error)
{
    query->snapshot = config_new();
    config_share(follow_config(query->queries->follow), query->snapshot);
    query->source.config = query->snapshot;
    query->steps = 0;
    g_string_truncate(query->data, 0);
    return gather(query, error) && answer_rows(query, error);
}

/* In a task: one after the other, so that no more than one has its objects, and has its turn. */
static void slow_task(void *data)
{
    struct query *query = data;
    struct queries *queries = query->queries;
    g_autoptr(GError) error = NULL;
    rpc_on_gone(query->request, gone_cb, query);
    if (!task_mutex_lock(&queries->slow_turn)) {
        fettle_set_error(&error, KILLED, "luxid has ended");
    } else {
        if (answer_slowly(query, &error))
            query_answer(query);
        task_mutex_unlock(&queries->slow_turn);
    }
    if (error)
        rpc_fail(query->request, error);
    query_free(query);
}

static bool be_slow(struct query *query, GError **error)
{
    struct queries *queries = query->queries;
    if (queries->slow >= LIMIT_LONG_QUERIES) {
        fettle_set_error(error, TEMPORARY,
                         "%d queries that take long are under way already; try again later",
                         LIMIT_LONG_QUERIES);
        return false;
    }
    queries->slow++;
    query->counted = true;
    query->slow = true;
    return true;
}

/* It has turned out to take long. */
static void go_on_slowly(struct query *query)
{
    bool jobs = g_str_equal(query->what, "job");
    g_autoptr(GError) error = NULL;
    if (be_slow(query, &error)) {
        task_spawn(query->queries->env->tasks, jobs ? query_jobs_task : slow_task, query);
        return;
    }
    rpc_fail(query->request, error);
    query_free(query);
}

/* --- from the start to the end --- */

static void query_task(void *data)
{
    struct query *query = data;
    g_autoptr(GError) error = NULL;
    if (gather(query, &error) && answer_rows(query, &error)) {
        query_answer(query);
    } else if (error) {
        rpc_fail(query->request, error);
    } else {
        go_on_slowly(query);
        return;
    }
    query_free(query);
}

/* Whether both are computed by the same, and look alike to who asks. */
static bool are_alike(const struct query *query, guint index, guint other)
{
    const struct query_field *left = query->fields->pdata[index];
    const struct query_field *right = query->fields->pdata[other];
    enum face face = query->source.face;
    return left && right && left->get && left->get == right->get &&
           !face_differs(face, left->name) && !face_differs(face, right->name);
}

static void find_alike(struct query *query)
{
    query->cells = g_new0(struct query_cell, query->fields->len);
    for (guint i = 0; i < query->fields->len; i++) {
        guint like = 0;
        while (like < i && !are_alike(query, i, like))
            like++;
        query->cells[i].like = like;
    }
}

void query_start(struct queries *queries, struct rpc_request *request, struct query *query)
{
    query->request = request;
    query->source = (struct query_source){
        .queries = queries, .config = follow_config(queries->follow), .face = request->face};
    for (guint i = 0; i < query->fields->len; i++)
        if (query->members->pdata[i] && face_differs(request->face, query->names->pdata[i]))
            query->members->pdata[i] = NULL;
    find_alike(query);
    if (query_needs_archive(query)) {
        task_spawn(queries->env->tasks, query_jobs_task, query);
    } else if (query->live_fields || query->live_filter || query->room || is_of_wconfd(query)) {
        task_spawn(queries->env->tasks, query_task, query);
    } else {
        query_task(query);
    }
}
