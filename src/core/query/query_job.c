/* Fields of jobs (proto/fields.def), and the calls about jobs that use them. */
#include "core/job/archive.h"
#include "core/job/job_state.h"
#include "core/query/query_rows.h"

/* [seconds, microseconds], as Ganeti writes times; NULL for "not yet". */
static json_t *timestamp(guint64 us)
{
    if (us == 0)
        return NULL;
    return json_make("[I, I]", (json_int_t)(us / G_USEC_PER_SEC),
                     (json_int_t)(us % G_USEC_PER_SEC));
}

static json_t *or_null(json_t *value)
{
    return value ? value : json_null();
}

/* A list with one value for each opcode. */
static json_t *each_op(const void *row, json_t *(*value)(const struct job_op *op))
{
    const struct job *job = row;
    json_t *list = json_array();
    for (guint i = 0; i < job->ops->len; i++)
        json_array_append_new(list, or_null(value(job->ops->pdata[i])));
    return list;
}

json_t *query_get_job_status(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return json_string(sm_name(&job_sm, job_state_of(row)));
}

json_t *query_get_job_priority(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_integer(job_priority(row));
}

bool query_job_known(const struct queries *queries, guint64 id)
{
    return queries->jobs->known(queries->jobs_data, id);
}

json_t *query_get_job_archived(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return json_boolean(!query_job_known(source->queries, ((const struct job *)row)->id));
}

static struct query_held held_of(const struct query_source *source, const struct job *job)
{
    return source->queries->jobs->held(source->queries->jobs_data, job->id);
}

json_t *query_get_job_held(struct query_source *source, const void *row,
                           enum query_status *ret_status)
{
    struct query_held held = held_of(source, row);
    return held.why ? json_string(held.why) : NULL;
}

json_t *query_get_job_held_since(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    struct query_held held = held_of(source, row);
    return held.why ? json_integer(held.since_us / 1000000) : NULL;
}

json_t *query_get_job_held_by(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    struct query_held held = held_of(source, row);
    return held.by == 0 ? NULL : json_integer((json_int_t)held.by);
}

json_t *query_get_job_holds(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    const struct queries *queries = source->queries;
    return queries->jobs->holds(queries->jobs_data, ((const struct job *)row)->id);
}

/* A wish stands in the record only: the file is its process's. */
static const struct job *with_wishes(const struct query_source *source, const void *row)
{
    const struct queries *queries = source->queries;
    const struct job *record =
        queries->jobs->record(queries->jobs_data, ((const struct job *)row)->id);
    return record ? record : row;
}

json_t *query_get_job_cancel(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return json_boolean(with_wishes(source, row)->cancel);
}

json_t *query_get_job_kill_at(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    guint64 kill_us = with_wishes(source, row)->kill_us;
    return kill_us == 0 ? NULL : json_integer((json_int_t)(kill_us / G_USEC_PER_SEC));
}

static json_t *op_input(const struct job_op *op)
{
    return json_incref(op->input);
}

json_t *query_get_job_ops(struct query_source *source, const void *row,
                          enum query_status *ret_status)
{
    return each_op(row, op_input);
}

static json_t *op_result(const struct job_op *op)
{
    return json_incref(op->result);
}

json_t *query_get_job_opresult(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return each_op(row, op_result);
}

static json_t *op_status(const struct job_op *op)
{
    return json_string(op->status);
}

json_t *query_get_job_opstatus(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return each_op(row, op_status);
}

static json_t *op_log(const struct job_op *op)
{
    return op->log ? json_incref(op->log) : json_array();
}

json_t *query_get_job_oplog(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    return each_op(row, op_log);
}

static json_t *op_start(const struct job_op *op)
{
    return timestamp(op->start_us);
}

json_t *query_get_job_opstart(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return each_op(row, op_start);
}

static json_t *op_exec(const struct job_op *op)
{
    return timestamp(op->exec_us);
}

json_t *query_get_job_opexec(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return each_op(row, op_exec);
}

static json_t *op_end(const struct job_op *op)
{
    return timestamp(op->end_us);
}

json_t *query_get_job_opend(struct query_source *source, const void *row,
                            enum query_status *ret_status)
{
    return each_op(row, op_end);
}

static json_t *op_priority(const struct job_op *op)
{
    return json_integer(job_op_priority(op));
}

json_t *query_get_job_oppriority(struct query_source *source, const void *row,
                                 enum query_status *ret_status)
{
    return each_op(row, op_priority);
}

/* "INSTANCE_STARTUP(web1)": the opcode, and what it is about; and `dry` if it was only a try. */
static json_t *op_summary(const struct job_op *op, const char *dry)
{
    static const char *const subjects[] = {"instance_name", "node_name", "name", "duration"};
    const char *id = json_string_value(json_object_get(op->input, "OP_ID"));
    g_autofree char *subject = NULL;
    if (!id)
        return NULL;
    if (g_str_has_prefix(id, "OP_"))
        id += strlen("OP_");
    for (size_t i = 0; !subject && i < G_N_ELEMENTS(subjects); i++) {
        const json_t *value = json_object_get(op->input, subjects[i]);
        if (json_is_string(value) && json_string_length(value) > 0)
            subject = g_strdup(json_string_value(value));
        else if (json_is_number(value))
            subject = g_strdup_printf("%g", json_number_value(value));
    }
    const char *tried = json_is_true(json_object_get(op->input, "dry_run")) ? dry : "";
    return subject ? json_sprintf("%s(%s)%s", id, subject, tried) : json_sprintf("%s%s", id, tried);
}

json_t *query_op_summary(const struct job_op *op)
{
    return op_summary(op, " (dry run)");
}

/* Ganeti's own text says nothing of it. */
static json_t *ganeti_summary(const struct job_op *op)
{
    return op_summary(op, "");
}

json_t *query_get_job_summary(struct query_source *source, const void *row,
                              enum query_status *ret_status)
{
    return each_op(row, source->face == FACE_OWN ? query_op_summary : ganeti_summary);
}

/* --- what it is about --- */

/* The name of what an opcode names, which may be its UUID, or gone. */
static const char *name_of(const struct config *config, const char *said)
{
    const struct instance *instance = config_get(config, "instance", said, NULL);
    const struct removed *removed = config_get(config, "removed", said, NULL);
    const struct node *node = config_get(config, "node", said, NULL);
    const struct network *network = config_get(config, "network", said, NULL);
    return instance  ? instance->name
           : removed ? removed->name
           : node    ? node->name
           : network ? network->name
                     : said;
}

static void add_subject(const struct config *config, json_t *list, const json_t *said)
{
    const char *name = json_string_length(said) > 0 ? name_of(config, json_string_value(said)) : "";
    size_t i;
    const json_t *known;
    json_array_foreach(list, i, known)
        if (g_str_equal(json_string_value(known), name))
            return;
    if (*name)
        json_array_append_new(list, json_string(name));
}

json_t *query_get_job_subjects(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    static const char *const named[] = {
        "instance_name", "node_name",   "network_name", "name",         "pnode",   "snode",
        "target_node",   "remote_node", "nodes",        "on_instances", "on_nodes"};
    const struct job *job = row;
    json_t *list = json_array();
    for (guint i = 0; i < job->ops->len; i++) {
        const json_t *input = ((const struct job_op *)job->ops->pdata[i])->input;
        for (size_t k = 0; k < G_N_ELEMENTS(named); k++) {
            const json_t *said = json_object_get(input, named[k]), *one;
            size_t at;
            add_subject(source->config, list, said);
            json_array_foreach(said, at, one)
                add_subject(source->config, list, one);
        }
    }
    return list;
}

json_t *query_get_job_received_ts(struct query_source *source, const void *row,
                                  enum query_status *ret_status)
{
    return timestamp(((const struct job *)row)->received_us);
}

json_t *query_get_job_start_ts(struct query_source *source, const void *row,
                               enum query_status *ret_status)
{
    return timestamp(((const struct job *)row)->start_us);
}

json_t *query_get_job_end_ts(struct query_source *source, const void *row,
                             enum query_status *ret_status)
{
    return timestamp(((const struct job *)row)->end_us);
}

/* --- jobs on record and archived ones --- */

static const struct job *query_job_view(const struct queries *queries, guint64 id)
{
    return queries->jobs->view(queries->jobs_data, id);
}

const struct job *query_job_find(const struct queries *queries, guint64 id,
                                 struct job **ret_archived)
{
    const struct job *job = query_job_view(queries, id);
    *ret_archived = job ? NULL : archive_read(queries->env, id, NULL);
    return job ? job : *ret_archived;
}

static gint compare_ids(gconstpointer left, gconstpointer right)
{
    guint64 a = *(const guint64 *)left, b = *(const guint64 *)right;
    return a < b ? -1 : a > b;
}

static bool is_wanted(const struct query_ids *wanted, guint64 id)
{
    return (gint64)id >= wanted->least && (gint64)id <= wanted->most;
}

/* The newest first. What a dead luxid left in both places counts once. False: there are more than
 * may be read. */
static bool add_archived(const struct queries *queries, const GArray *folder,
                         const struct query_ids *wanted, GArray *ids)
{
    for (guint i = folder->len; i > 0; i--) {
        guint64 id = g_array_index(folder, guint64, i - 1);
        if (!is_wanted(wanted, id) || query_job_known(queries, id))
            continue;
        if (ids->len >= queries->most_archived)
            return false;
        g_array_append_val(ids, id);
    }
    return true;
}

/* Folders that can have none of the wanted ids are not looked at. NULL with an error. */
static GArray *archived_ids(const struct queries *queries, const struct query_ids *wanted,
                            bool *ret_more, GError **error)
{
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(guint64));
    g_autoptr(GArray) folders = archive_folders(queries->env, error);
    if (!folders)
        return NULL;
    for (guint i = folders->len; i > 0 && !*ret_more; i--) {
        guint64 number = g_array_index(folders, guint64, i - 1);
        if (number > G_MAXINT64 / ARCHIVE_FOLDER_JOBS ||
            (gint64)((number + 1) * ARCHIVE_FOLDER_JOBS - 1) < wanted->least ||
            (gint64)(number * ARCHIVE_FOLDER_JOBS) > wanted->most)
            continue;
        g_autoptr(GArray) folder = archive_ids(queries->env, number, error);
        if (!folder)
            return NULL;
        *ret_more = !add_archived(queries, folder, wanted, ids);
    }
    return g_steal_pointer(&ids);
}

GArray *query_job_ids(const struct queries *queries, const struct query_ids *wanted, bool *ret_more,
                      GError **error)
{
    g_autoptr(GArray) on_record = queries->jobs->ids(queries->jobs_data);
    *ret_more = false;
    g_autoptr(GArray) ids = wanted->archived ? archived_ids(queries, wanted, ret_more, error)
                                             : g_array_new(FALSE, FALSE, sizeof(guint64));
    if (!ids)
        return NULL;
    for (guint i = 0; i < on_record->len; i++)
        if (is_wanted(wanted, g_array_index(on_record, guint64, i)))
            g_array_append_vals(ids, &g_array_index(on_record, guint64, i), 1);
    g_array_sort(ids, compare_ids);
    return g_steal_pointer(&ids);
}

bool query_job_pause(const struct queries *queries, guint count)
{
    return count % LIMIT_ARCHIVE_STEP != LIMIT_ARCHIVE_STEP - 1 || env_sleep(queries->env, 1);
}

/* --- calls --- */

json_t *query_job_values(const struct queries *queries, enum face face, guint64 id,
                         const GPtrArray *fields)
{
    record_autoptr(job) archived = NULL;
    const struct job *job = query_job_find(queries, id, &archived);
    struct query_source source = {
        .queries = queries, .config = follow_config(queries->follow), .face = face};
    json_t *values = json_array();
    for (guint i = 0; i < fields->len; i++) {
        const struct query_field *field = fields->pdata[i];
        enum query_status status;
        if (job)
            json_array_append_new(values, query_field_value(field, &source, job, &status));
        else if (g_str_equal(field->name, "id"))
            json_array_append_new(values, json_integer((json_int_t)id));
        else
            json_array_append_new(values, json_null());
    }
    query_source_clear(&source);
    return values;
}

static bool wants_archived(const GPtrArray *fields)
{
    for (guint i = 0; i < fields->len; i++)
        if (g_str_equal(((const struct query_field *)fields->pdata[i])->name, "archived"))
            return true;
    return false;
}

/* Ids that are asked for: integers, or their text as old clients send it. */
static GArray *named_ids(const json_t *ids, GError **error)
{
    g_autoptr(GArray) wanted = g_array_new(FALSE, FALSE, sizeof(guint64));
    if (json_array_size(ids) > LIMIT_ARCHIVE_ROWS) {
        fettle_set_error(error, LIMIT, "QueryJobs: ids: must have at most %d items",
                         LIMIT_ARCHIVE_ROWS);
        return NULL;
    }
    size_t i;
    const json_t *item;
    json_array_foreach(ids, i, item) {
        guint64 id = (guint64)json_integer_value(item);
        if (json_is_string(item))
            g_ascii_string_to_unsigned(json_string_value(item), 10, 1, G_MAXINT64, &id, NULL);
        if (id == 0 || id > G_MAXINT64) {
            fettle_set_error(error, WRONG_INPUT, "QueryJobs: ids[%zu]: must be a job id", i);
            return NULL;
        }
        g_array_append_val(wanted, id);
    }
    return g_steal_pointer(&wanted);
}

struct jobs_query {
    struct queries *queries;
    struct rpc_request *request;
    GPtrArray *fields;
    GArray *ids;
};

/* More values than are given at once. */
static bool is_long(const GPtrArray *fields, const GArray *ids)
{
    return (guint64)ids->len * fields->len > QUERY_QUICK_STEPS;
}

static bool turn_over(const GPtrArray *fields, guint count)
{
    guint jobs = MAX(QUERY_TURN_STEPS / MAX(fields->len, 1), 1);
    return count % jobs == jobs - 1;
}

/* Reading many files is done bit by bit, so that others are answered meanwhile. */
static void read_jobs_task(void *data)
{
    struct jobs_query *query = data;
    json_autoptr rows = json_array();
    bool alive = true;
    for (guint i = 0; i < query->ids->len && alive; i++) {
        guint64 id = g_array_index(query->ids, guint64, i);
        json_array_append_new(
            rows, query_job_values(query->queries, query->request->face, id, query->fields));
        if (!query_job_known(query->queries, id))
            alive = query_job_pause(query->queries, i);
        else if (is_long(query->fields, query->ids) && turn_over(query->fields, i))
            alive = env_sleep(query->queries->env, 1);
    }
    if (alive)
        rpc_answer(query->request, json_steal(&rows));
    else
        rpc_fail_new(query->request, FETTLE_ERROR_KILLED, "luxid has ended");
    g_ptr_array_unref(query->fields);
    g_array_unref(query->ids);
    g_free(query);
}

static bool all_on_record(const struct queries *queries, const GArray *ids)
{
    for (guint i = 0; i < ids->len; i++)
        if (!query_job_known(queries, g_array_index(ids, guint64, i)))
            return false;
    return true;
}

static void run_jobs_query(struct queries *queries, struct rpc_request *request, GPtrArray *fields,
                           GArray *ids)
{
    const struct jobs_query query = {queries, request, fields, ids};
    void *copy = g_memdup2(&query, sizeof(query));
    if (all_on_record(queries, ids) && !is_long(fields, ids))
        read_jobs_task(copy);
    else
        task_spawn(queries->env->tasks, read_jobs_task, copy);
}

/* There is no place in the answer for a word that there are more. */
static GArray *all_ids(const struct queries *queries, const GPtrArray *fields, GError **error)
{
    const struct query_ids wanted = {wants_archived(fields), 0, G_MAXINT64};
    bool more;
    g_autoptr(GArray) ids = query_job_ids(queries, &wanted, &more, error);
    if (!ids || !more)
        return g_steal_pointer(&ids);
    fettle_set_error(
        error, LIMIT,
        "more than %u jobs are archived: ask for them by their ids, or by Query with a "
        "filter that has bounds on id, as [\">\", \"id\", 1000]",
        queries->most_archived);
    return NULL;
}

/* Null and an empty list mean all jobs; archived ones only if the field `archived` is asked for, as
 * Ganeti has it. Those that are named may be archived. */
void query_jobs(struct queries *queries, struct rpc_request *request,
                const struct luxi_query_jobs_args *args)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) fields = query_fields_find("job", args->fields, &error);
    g_autoptr(GArray) ids = NULL;
    if (fields && args->ids && !json_is_null(args->ids) && !json_is_array(args->ids))
        fettle_set_error(&error, WRONG_INPUT, "QueryJobs: ids: must be a list of job ids or null");
    else if (fields)
        ids = json_array_size(args->ids) > 0 ? named_ids(args->ids, &error)
                                             : all_ids(queries, fields, &error);
    if (ids && (guint64)ids->len * fields->len > LIMIT_QUERY_STEPS)
        fettle_set_error(
            &error, LIMIT,
            "QueryJobs: %u fields of %u jobs are more than %u values: ask for fewer at "
            "once",
            fields->len, ids->len, LIMIT_QUERY_STEPS);
    if (error)
        rpc_fail(request, error);
    else
        run_jobs_query(queries, request, g_steal_pointer(&fields), g_steal_pointer(&ids));
}
