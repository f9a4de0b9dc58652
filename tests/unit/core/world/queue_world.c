/* See queue_world.h. */
#include "unit/core/world/queue_world.h"

#include "core/job/job_state.h"

static char *lock_name(guint64 id)
{
    return g_strdup_printf("job-%" G_GUINT64_FORMAT "-1", id);
}

static char *file_name(guint64 id)
{
    return g_strdup_printf("job-%" G_GUINT64_FORMAT, id);
}

static char *key_of(guint64 id)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT, id);
}

static void serve(struct rpc_request *request, void *data)
{
    struct queue_world *w = data;

    luxi_handle(w->luxi, request);
}

static void start_task(void *data)
{
    struct queue_world *w = data;
    g_autoptr(GError) error = NULL;

    luxi_start(w->luxi, &error);
    g_assert_no_error(error);
}

void queue_world_start_luxid(struct queue_world *w)
{
    w->luxid = fake_process(w->world, MASTER, ROLE_LUXID);
    w->luxi = luxi_new(w->luxid);
    fake_serve(w->luxid, serve, w);
    fake_run(w->luxid, start_task, w);
    fake_settle(w->world);
}

void queue_world_kill_luxid(struct queue_world *w)
{
    fake_kill(w->luxid);
    luxi_free(w->luxi);
    w->luxi = NULL;
}

void queue_world_restart_luxid(struct queue_world *w)
{
    queue_world_kill_luxid(w);
    queue_world_start_luxid(w);
}

struct queue_world *queue_world_new(guint slots)
{
    struct queue_world *w = g_new0(struct queue_world, 1);

    w->world = fake_world_new();
    fake_world_set_master(w->world, MASTER);
    w->wconfd = fake_process(w->world, MASTER, ROLE_WCONFD);
    w->cli = fake_process(w->world, MASTER, ROLE_CLI);
    w->store = store_world_new(w->wconfd);
    store_put(w->store, "cluster", CLUSTER,
              json_make("{ss, ss, ss, si}", "uuid", CLUSTER, "name", "lab", "master_node", MASTER,
                        "max_running_jobs", (int)slots));
    store_put(w->store, "nodegroup", GROUP,
              json_make("{ss, ss}", "uuid", GROUP, "name", "default"));
    store_put(w->store, "node", MASTER,
              json_make("{ss, ss, ss, ss}", "uuid", MASTER, "name", "node1", "primary_ip",
                        "192.0.2.1", "group", GROUP));
    queue_world_start_luxid(w);
    return w;
}

void queue_world_free(struct queue_world *w)
{
    queue_world_kill_luxid(w);
    store_world_free(w->store);
    fake_world_free(w->world);
    g_free(w);
}

struct queue_case {
    guint slots;
    void (*test)(struct queue_world *w);
};

static void run_case(const void *data)
{
    const struct queue_case *test = data;
    struct queue_world *w = queue_world_new(test->slots);

    test->test(w);
    queue_world_free(w);
}

void queue_case(const char *path, guint slots, void (*test)(struct queue_world *w))
{
    struct queue_case *data = g_new(struct queue_case, 1);

    *data = (struct queue_case){slots, test};
    g_test_add_data_func_full(path, data, run_case, g_free);
}

/* --- clients --- */

json_t *queue_call(struct queue_world *w, const char *method, json_t *args, GError **error)
{
    return fake_call(w->cli, MASTER, ROLE_LUXID, method, args, error);
}

void queue_refuse(struct queue_world *w, const char *method, json_t *args, enum fettle_error code,
                  const char *message)
{
    g_autoptr(GError) error = NULL;
    json_autoptr result = queue_call(w, method, args, &error);

    g_assert_null(result);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_assert_cmpstr(error->message, ==, message);
}

json_t *queue_delay(json_t *extra)
{
    json_t *op = json_make("{ss, sf}", "OP_ID", "OP_TEST_DELAY", "duration", 0.0);

    json_object_update(op, extra);
    json_decref(extra);
    return op;
}

guint64 queue_submit(struct queue_world *w, json_t *extra)
{
    g_autoptr(GError) error = NULL;
    json_autoptr id = queue_call(w, "SubmitJob", json_make("[[o]]", queue_delay(extra)), &error);

    g_assert_no_error(error);
    g_assert_true(json_is_integer(id));
    fake_settle(w->world);
    return (guint64)json_integer_value(id);
}

guint64 queue_submit_named(struct queue_world *w)
{
    guint64 id = queue_submit(w, NULL);

    queue_child_named(w, id);
    return id;
}

guint64 queue_submit_running(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);

    queue_job_writes(w, id, "running");
    return id;
}

static json_t *job_field(struct queue_world *w, guint64 id, const char *field)
{
    g_autoptr(GError) error = NULL;
    json_autoptr rows =
        queue_call(w, "QueryJobs", json_make("[[I], [s]]", (json_int_t)id, field), &error);

    g_assert_no_error(error);
    return json_incref(json_array_get(json_array_get(rows, 0), 0));
}

const char *queue_status(struct queue_world *w, guint64 id)
{
    json_autoptr status = job_field(w, id, "status");

    return g_intern_string(json_is_null(status) ? "null" : json_string_value(status));
}

char *queue_message(struct queue_world *w, guint64 id)
{
    json_autoptr results = job_field(w, id, "opresult");
    const json_t *first = json_array_get(results, 0);

    if (json_is_string(first))
        return g_strdup(json_string_value(first));
    return g_strdup(json_string_value(json_array_get(json_array_get(first, 1), 0)) ?: "");
}

struct job *queue_record(struct queue_world *w, guint64 id)
{
    g_autofree char *key = key_of(id);
    const json_t *object = store_get(w->store, "job", key);

    return object == NULL ? NULL : job_parse(object, RECORD_KEEP, NULL);
}

struct job *queue_file(struct queue_world *w, guint64 id)
{
    g_autofree char *name = file_name(id);
    const char *text = fake_file(w->world, MASTER, FILE_QUEUE, name);
    json_autoptr json = text == NULL ? NULL : json_loads(text, 0, NULL);

    return json == NULL ? NULL : job_parse(json, RECORD_KEEP, NULL);
}

/* --- job processes --- */

static guint starter_index(struct queue_world *w, guint64 id)
{
    for (guint i = fake_starters(w->world); i > 0; i--)
        if (fake_starter_job(w->world, i - 1) == id)
            return i - 1;
    g_error("job %" G_GUINT64_FORMAT " has no starter", id);
}

void queue_child_named(struct queue_world *w, guint64 id)
{
    g_autofree char *lock = lock_name(id);

    fake_starter_named(w->world, starter_index(w, id), lock);
    fake_settle(w->world);
}

bool queue_child_confirmed(struct queue_world *w, guint64 id)
{
    return fake_starter_confirmed(w->world, starter_index(w, id));
}

void queue_child_breaks(struct queue_world *w, guint64 id)
{
    fake_starter_break(w->world, starter_index(w, id));
    fake_settle(w->world);
}

void queue_job_writes(struct queue_world *w, guint64 id, const char *status)
{
    record_autoptr(job) job = queue_file(w, id);
    g_autofree char *name = file_name(id);
    struct job_op *op = g_ptr_array_index(job->ops, 0);
    json_autoptr json = NULL;
    g_autofree char *text = NULL;

    g_free(op->status);
    op->status = g_strdup(status);
    job_update_status(job);
    json = job_to_json(job);
    text = json_to_text(json);
    fake_file_put(w->world, MASTER, FILE_QUEUE, name, text);
    fake_settle(w->world);
}

void queue_job_commits(struct queue_world *w, guint64 id)
{
    record_autoptr(job) job = queue_file(w, id);
    g_autofree char *key = key_of(id);

    store_put(w->store, "job", key, job_to_json(job));
    fake_settle(w->world);
}

void queue_job_gone(struct queue_world *w, guint64 id, bool clean)
{
    g_autofree char *lock = lock_name(id);

    fake_livelock(w->world, MASTER, lock, clean ? LIVELOCK_GONE : LIVELOCK_DEAD);
    fake_settle(w->world);
}

void queue_job_ends(struct queue_world *w, guint64 id)
{
    queue_job_writes(w, id, "success");
    queue_job_commits(w, id);
    queue_job_gone(w, id, true);
}

void queue_job_dies(struct queue_world *w, guint64 id)
{
    queue_job_gone(w, id, false);
    fake_advance(w->world, 1000);
}

void queue_job_runs(struct queue_world *w, guint64 id)
{
    queue_child_named(w, id);
    queue_job_writes(w, id, "running");
    queue_job_ends(w, id);
}
