/* WaitForJobChange; see wait_for_job.h. */
#include "core/queue/wait_for_job.h"

#include "core/query/query.h"

struct waiter {
    struct waiters *waiters;
    struct rpc_request *request;
    guint64 id;
    GPtrArray *fields; /* of const struct query_field * */
    json_t *known;     /* values; NULL: none */
    gint64 known_log;  /* serial of the last log entry */
    guint timer;
};

struct waiters {
    struct queue_context *context;
    GHashTable *by_job; /* id -> GPtrArray of struct waiter * */
    guint count;
};

static void waiter_free(struct waiter *waiter)
{
    if (waiter->timer != 0)
        waiter->waiters->context->env->ops->timer_cancel(waiter->waiters->context->env,
                                                         waiter->timer);
    g_ptr_array_unref(waiter->fields);
    json_decref(waiter->known);
    g_free(waiter);
}

static void free_waiter_unanswered(gpointer data)
{
    struct waiter *waiter = data;
    rpc_fail_new(waiter->request, FETTLE_ERROR_KILLED, "luxid has ended");
    waiter_free(waiter);
}

static void free_list(gpointer list)
{
    g_ptr_array_unref(list);
}

struct waiters *wait_for_job_new(struct queue_context *context)
{
    struct waiters *waiters = g_new0(struct waiters, 1);
    waiters->context = context;
    waiters->by_job = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_list);
    return waiters;
}

void wait_for_job_free(struct waiters *waiters)
{
    if (!waiters)
        return;
    GHashTableIter iter;
    void *list;
    g_hash_table_iter_init(&iter, waiters->by_job);
    while (g_hash_table_iter_next(&iter, NULL, &list))
        g_ptr_array_set_free_func(list, free_waiter_unanswered);
    g_hash_table_unref(waiters->by_job);
    g_free(waiters);
}

/* --- what is new --- */

/* Log entries of all opcodes after a serial. */
static json_t *log_after(const struct job *job, gint64 serial)
{
    json_t *news = json_array();
    for (guint i = 0; i < job->ops->len; i++) {
        const struct job_op *op = job->ops->pdata[i];
        size_t at;
        json_t *entry;
        json_array_foreach(op->log, at, entry)
            if (json_integer_value(json_array_get(entry, 0)) > serial)
                json_array_append(news, entry);
    }
    return news;
}

/* [values, log entries], or NULL if the caller knows all of it, or the job does not exist. One that
 * was archived meanwhile does. Of a job that has ended there is always an answer, as Ganeti's luxid
 * gives it: its clients ask until they get one without log entries. */
static json_t *news(const struct waiter *waiter, bool *ret_exists)
{
    const struct queries *queries = &waiter->waiters->context->queries;
    record_autoptr(job) archived = NULL;
    const struct job *job = query_job_find(queries, waiter->id, &archived);
    *ret_exists = job != NULL;
    if (!job)
        return NULL;
    json_autoptr values =
        query_job_values(queries, waiter->request->face, waiter->id, waiter->fields);
    json_autoptr log = log_after(job, waiter->known_log);

    bool told = waiter->known && json_equal(values, waiter->known) && json_array_size(log) == 0;
    if (told && !job_state_final(job_state_of(job)))
        return NULL;
    return json_make("[O, O]", values, log);
}

static void answer(struct waiter *waiter, json_t *result)
{
    waiter->waiters->count--;
    rpc_answer(waiter->request, result);
    waiter_free(waiter);
}

/* Takes it out of those that wait. */
static void forget(struct waiter *waiter)
{
    struct waiters *waiters = waiter->waiters;
    GPtrArray *list = g_hash_table_lookup(waiters->by_job, &waiter->id);
    g_ptr_array_remove_fast(list, waiter);
    if (list->len == 0)
        g_hash_table_remove(waiters->by_job, &waiter->id);
}

static void wait_over(void *data)
{
    struct waiter *waiter = data;
    waiter->timer = 0;
    forget(waiter);
    answer(waiter, json_string("nochange"));
}

static void gone_cb(struct rpc_request *request, void *data)
{
    (void)request;
    forget(data);
    answer(data, json_string("nochange"));
}

void wait_for_job_notify(struct waiters *waiters, guint64 id)
{
    GPtrArray *list = g_hash_table_lookup(waiters->by_job, &id);
    guint kept = 0;
    if (!list)
        return;
    for (guint i = 0; i < list->len; i++) {
        struct waiter *waiter = list->pdata[i];
        bool exists = true;
        json_t *result = news(waiter, &exists);
        if (exists && !result)
            list->pdata[kept++] = waiter;
        else
            answer(waiter, result);
    }
    g_ptr_array_set_size(list, (gint)kept);
    if (kept == 0)
        g_hash_table_remove(waiters->by_job, &id);
}

/* --- coming --- */

static void keep(struct waiter *waiter, double timeout_s)
{
    struct waiters *waiters = waiter->waiters;
    const struct env *env = waiters->context->env;
    GPtrArray *list = g_hash_table_lookup(waiters->by_job, &waiter->id);
    if (!list) {
        list = g_ptr_array_new();
        g_hash_table_insert(waiters->by_job, g_memdup2(&waiter->id, sizeof(waiter->id)), list);
    }
    g_ptr_array_add(list, waiter);
    waiters->count++;
    waiter->timer = env->ops->timer(env, (guint)(timeout_s * 1000), wait_over, waiter);
    rpc_on_gone(waiter->request, gone_cb, waiter);
}

void wait_for_job_add(struct waiters *waiters, struct rpc_request *request,
                      const struct luxi_wait_for_job_change_args *args)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) fields = query_fields_find("job", args->fields, &error);
    if (!fields) {
        rpc_fail(request, error);
        return;
    }
    if (waiters->count >= LIMIT_JOB_WAITERS) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY,
                     "%d calls wait for jobs already; try again later", LIMIT_JOB_WAITERS);
        return;
    }
    struct waiter *waiter = g_new0(struct waiter, 1);
    waiter->waiters = waiters;
    waiter->request = request;
    waiter->id = args->job;
    waiter->fields = g_steal_pointer(&fields);
    waiter->known = json_is_null(args->prev_info) ? NULL : json_incref(args->prev_info);
    waiter->known_log = args->prev_log_serial;
    bool exists;
    json_t *result = news(waiter, &exists);
    if (exists && !result) {
        keep(waiter, args->timeout);
        return;
    }
    rpc_answer(request, exists ? result : json_null());
    waiter_free(waiter);
}
