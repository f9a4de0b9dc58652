/*
 * Clients: luxid of each node, which commits while its node's wconfd is master, and jobs, which
 * take locks, act on nodes and commit under the epoch that they began with, whatever has become of
 * it.
 */
#include <string.h>

#include "mastership.h"

#define JOBS_AT_ONCE 2
#define INSTANCES 2
#define INSTANCE "eeeeeeee-0000-4000-8000-000000000001"

/* --- calls --- */

static bool is_passing(const GError *error)
{
    return fettle_error_is(error, UNREACHABLE) || fettle_error_is(error, TIMEOUT) ||
           fettle_error_is(error, UNKNOWN_RESULT) || fettle_error_is(error, TEMPORARY) ||
           fettle_error_is(error, NOT_MASTER);
}

/* Asks this node's wconfd, again and again while that may help; `args` is stolen. */
static json_t *ask_why(const struct env *env, guint job, guint64 epoch, const char *method,
                       json_t *args, guint tries, GError **ret_error)
{
    for (guint i = 0; i < tries; i++) {
        g_autoptr(GError) error = NULL;
        struct rpc_call call = {.to_node = NODE_LOCAL,
                                .to_role = ROLE_WCONFD,
                                .method = method,
                                .args = json_incref(args),
                                .stamp = {epoch ? MS_HISTORY : 0, epoch},
                                .job = job};
        json_t *answer = env_call_wait(env, &call, &error);
        if (answer || !is_passing(error) || !env_sleep(env, 100)) {
            json_decref(args);
            if (error && ret_error)
                *ret_error = g_steal_pointer(&error);
            return answer;
        }
    }
    json_decref(args);
    return NULL;
}

static json_t *ask(const struct env *env, guint job, guint64 epoch, const char *method,
                   json_t *args, guint tries)
{
    return ask_why(env, job, epoch, method, args, tries, NULL);
}

/* --- commits --- */

static char *random_key(struct ms *ms)
{
    g_autoptr(GList) keys = g_hash_table_get_keys(ms->tags);
    guint count = g_list_length(keys);
    if (count == 0)
        return NULL;
    keys = g_list_sort(keys, (GCompareFunc)strcmp);
    return g_strdup(g_list_nth_data(keys, ms_random(ms, count)));
}

/* A transaction of one tag: a new one, or one that is there is written again or deleted. */
static json_t *commit_args(struct ms *ms, guint64 epoch)
{
    guint what = ms_random(ms, 10);
    char *key = what < 5 || g_hash_table_size(ms->tags) < 3 ? NULL : random_key(ms);
    bool fresh = !key;
    bool deletes = !fresh && (what < 7 || g_hash_table_size(ms->tags) > 12);
    if (fresh)
        key = g_strdup_printf("cluster/" MS_CLUSTER "/t%u", ++ms->last_tag);
    const char *tag = strrchr(key, '/') + 1;
    guint64 version = GPOINTER_TO_SIZE(g_hash_table_lookup(ms->tags, key));
    char *id = g_strdup_printf("00000000-0000-4000-8000-%012x", ++ms->last_id);
    struct ms_wish *wish = g_new(struct ms_wish, 1);
    *wish = (struct ms_wish){key, deletes, epoch};
    g_hash_table_insert(ms->wishes, id, wish);
    json_t *change = json_make("{s:s,s:s,s:s,s:I}", "op", deletes ? "delete" : "put", "kind", "tag",
                               "key", key, "version", (json_int_t)version);
    if (!deletes)
        json_object_set_new(
            change, "object",
            json_make("{s:s,s:s,s:s}", "kind", "cluster", "object", MS_CLUSTER, "tag", tag));
    return json_make("{s:s,s:[o]}", "commit_id", id, "changes", change);
}

static json_t *owner_json(const char *job, const char *livelock)
{
    return json_make("{s:s,s:s}", "job", job, "livelock", livelock);
}

/* A commit that nobody has answered, to another process or another node (SAF-04): what is stored is
 * answered with its serial, whoever is the master by now. */
static void repeat_unanswered(struct ms_host *host)
{
    struct ms *ms = host->ms;
    g_autoptr(GError) error = NULL;
    json_t *args = g_steal_pointer(&ms->unanswered);
    g_autofree char *id = g_strdup(json_string_value(json_object_get(args, "commit_id")));
    json_autoptr answer = ask_why(host->luxid, 0, 0, "commit", args, 1, &error);
    guint64 stored = GPOINTER_TO_SIZE(g_hash_table_lookup(ms->ids, id));
    guint64 said = (guint64)json_integer_value(json_object_get(answer, "serial"));
    ms->counts->repeated += answer != NULL;
    if (stored && fettle_error_is(error, VERSION_CONFLICT))
        ms_problem(ms,
                   "commit %s is stored as serial %" G_GUINT64_FORMAT
                   ", and was refused when it was repeated",
                   id, stored);
    if (stored && answer && said != stored)
        ms_problem(ms,
                   "commit %s is stored as serial %" G_GUINT64_FORMAT
                   ", and was answered as %" G_GUINT64_FORMAT,
                   id, stored, said);
}

static void keep_unanswered(struct ms *ms, json_t *args)
{
    json_decref(ms->unanswered);
    ms->unanswered = args;
}

/* It waits until this node is the master; now and then it asks without that. */
static void luxid_task(void *data)
{
    struct ms_host *host = data;
    struct ms *ms = host->ms;
    struct env *env = host->luxid;
    fake_livelock(ms->world, host->uuid, "luxid-1", LIVELOCK_ALIVE);
    while (env_sleep(env, 10 + ms_random(ms, 400))) {
        if (ms->unanswered && host->epoch)
            repeat_unanswered(host);
        if (ms->calm || (!host->epoch && ms_random(ms, 50) > 0))
            continue;
        json_t *args = commit_args(ms, 0);
        json_object_set_new(args, "owner", owner_json("luxid", "luxid-1"));
        ms->counts->commits++;
        bool master = host->epoch != 0;
        json_autoptr again = json_incref(args);
        json_autoptr answer = ask(env, 0, 0, "commit", args, 1 + ms_random(ms, 60));
        if (!answer && master)
            keep_unanswered(ms, json_incref(again));
    }
}

/* --- operations on nodes --- */

static void operation_over(void *data)
{
    struct ms_operation *operation = data;
    struct ms_host *host = operation->host;
    struct ms *ms = host->ms;
    if (ms_random(ms, 4) > 0 && !epoch_fence_overtaken(operation->op)) {
        operation->timer = ms_timer(ms, ms_random(ms, 1500), operation_over, operation);
        return;
    }
    g_ptr_array_remove_fast(host->operations, operation);
    epoch_fence_leave(operation->op);
    g_free(operation);
}

void ms_operations_end(struct ms_host *host)
{
    while (host->operations->len > 0) {
        struct ms_operation *operation = host->operations->pdata[0];
        ms_timer_remove(host->ms, operation->timer);
        epoch_fence_leave(operation->op);
        g_free(operation);
        g_ptr_array_remove_index_fast(host->operations, 0);
    }
}

/* What a job asks of a node daemon, on its way. */
struct request {
    struct ms *ms;
    guint from, to;
    struct stamp stamp;
};

static void request_arrives(void *data)
{
    g_autofree struct request *request = data;
    struct ms *ms = request->ms;
    struct ms_host *host = &ms->hosts[request->to];
    g_autoptr(GError) error = NULL;
    if (!host->fence || host->paused || !ms_linked(ms, request->from, request->to))
        return;
    struct epoch_fence_op *op = epoch_fence_enter(host->fence, request->stamp,
                                                  ms->hosts[request->from].uuid, 0, "load", &error);
    if (!op)
        return;
    struct ms_operation *operation = g_new(struct ms_operation, 1);
    *operation = (struct ms_operation){op, host, 0};
    operation->timer = ms_timer(ms, ms_random(ms, 3000), operation_over, operation);
    g_ptr_array_add(host->operations, operation);
    ms->counts->operations++;
}

static void send_request(struct ms *ms, guint from, guint to, struct stamp stamp)
{
    struct request *request = g_new(struct request, 1);
    *request = (struct request){ms, from, to, stamp};
    ms_timer(ms, ms_random(ms, 50 + ms->delay_ms), request_arrives, request);
}

/* --- jobs --- */

/* An instance alone, a node with others. */
static json_t *lock_args(struct ms *ms, const char *name, const char *livelock, guint node)
{
    g_autofree char *instance = g_strdup_printf("instance/web%u", ms_random(ms, INSTANCES));
    g_autofree char *lock = g_strdup_printf("node/%s", ms->hosts[node].uuid);
    return json_make("{s:o,s:[{s:s,s:s},{s:s,s:s}],s:b,s:i}", "owner", owner_json(name, livelock),
                     "locks", "name", instance, "mode", "exclusive", "name", lock, "mode", "shared",
                     "wait", 1, "wait_ms", 1000 + (int)ms_random(ms, 15000));
}

static bool is_granted(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "granted"));
}

static void job_runs(struct ms_host *host, guint number, guint64 epoch)
{
    struct ms *ms = host->ms;
    struct env *env = host->job;
    guint node = ms_random(ms, ms->hosts_count);
    g_autofree char *name = g_strdup_printf("%u", number);
    g_autofree char *livelock = g_strdup_printf("job-%u", number);
    fake_livelock(ms->world, host->uuid, livelock, LIVELOCK_ALIVE);
    json_autoptr granted = ask(env, number, epoch, "update_locks",
                               lock_args(ms, name, livelock, node), 1 + ms_random(ms, 20));
    if (is_granted(granted) && env_sleep(env, ms_random(ms, 300))) {
        send_request(ms, host->index, node, (struct stamp){MS_HISTORY, epoch});
        env_sleep(env, ms_random(ms, ms_random(ms, 5) == 0 ? 20000 : 1000));
        json_t *args = commit_args(ms, epoch);
        json_object_set_new(args, "owner", owner_json(name, livelock));
        json_autoptr answer = ask(env, number, epoch, "change_tags", args, 1 + ms_random(ms, 30));
        ms->counts->stale += !answer && host->epoch && host->epoch != epoch;
    }
    if (is_granted(granted) && ms_random(ms, 4) > 0) {
        json_autoptr freed = ask(env, number, epoch, "free_locks",
                                 json_make("{s:o}", "owner", owner_json(name, livelock)), 5);
    }
    ms_saw_end(ms, number);
    fake_livelock(ms->world, host->uuid, livelock, LIVELOCK_DEAD);
}

static void job_task(void *data)
{
    struct ms_host *host = data;
    struct ms *ms = host->ms;
    struct env *env = host->job;
    while (env_sleep(env, 100 + ms_random(ms, 1500)))
        if (!ms->calm && host->epoch)
            job_runs(host, ++ms->last_job, host->epoch);
}

/* --- node daemons --- */

#define CONFIRM_MS 400u

/* May a guest run here? What the answer says is nothing to this simulation; that one is given is.
 * Also asked of this node's own wconfd, which may have been the master. */
static void noded_task(void *data)
{
    const struct ms_host *host = data;
    const struct env *env = host->noded;
    for (bool own = false; env_sleep(env, CONFIRM_MS + host->index); own = !own) {
        g_autoptr(GError) error = NULL;
        struct rpc_call call = {.to_node = own ? NODE_LOCAL : NODE_MASTER,
                                .to_role = ROLE_WCONFD,
                                .method = "confirm",
                                .args = json_make("{s:[{s:s,s:s,s:i}]}", "items", "role", "run",
                                                  "instance", INSTANCE, "generation", 1)};
        json_decref(env_call_wait(env, &call, &error));
    }
}

void ms_load_noded(struct ms_host *host)
{
    task_spawn(host->noded->tasks, noded_task, host);
}

void ms_load_start(struct ms_host *host)
{
    task_spawn(host->luxid->tasks, luxid_task, host);
    for (guint i = 0; i < JOBS_AT_ONCE; i++)
        task_spawn(host->job->tasks, job_task, host);
}
