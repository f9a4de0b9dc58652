/* The candidates of the simulated queue and their processes; see queue_sim.h. */
#include "queue_sim.h"

#include <string.h>

#include "base/log.h"
#include "base/sm.h"
#include "proto/change.h"

static const char *const nodes[] = {"00000001-0000-4000-8000-000000000000",
                                    "00000002-0000-4000-8000-000000000000"};
static struct env_ops job_ops;   /* the fake world's, with timers in slots of their own */
static struct env_ops luxid_ops; /* the same, with an eye on the files of jobs */
static struct env_ops fake_ops;
static struct jq *the_jq;

guint jq_random(struct jq *jq, guint below)
{
    jq->random += G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    guint64 mixed = (jq->random ^ (jq->random >> 30)) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return (guint)((mixed ^ (mixed >> 31)) % below);
}

/* --- slots --- */

gint64 jq_take_slot(struct jq *jq, gint64 ms)
{
    gint64 slot = (fake_now_ms(jq->world) + ms) / JQ_SLOT_MS + 1;
    while (!g_hash_table_add(jq->taken, GINT_TO_POINTER((gint)slot)))
        slot++;
    return slot * JQ_SLOT_MS;
}

/* What a job waits for comes in a slot of its own; what is tried again at once does not. */
static guint op_timer(const struct env *env, guint ms, void (*fn)(void *data), void *data)
{
    if (!the_jq->rough && ms >= 20)
        ms = (guint)(jq_take_slot(the_jq, ms) - fake_now_ms(the_jq->world));
    return fake_ops.timer(env, ms, fn, data);
}

/* --- what luxid does to files --- */

static bool luxid_writes(const struct env *env, enum file_area area, const char *name,
                         const char *data, size_t len, GError **error)
{
    if (area == FILE_QUEUE)
        jq_luxid_touches(the_jq, name, false);
    return fake_ops.file_write(env, area, name, data, len, error);
}

static bool luxid_removes(const struct env *env, enum file_area area, const char *name,
                          GError **error)
{
    if (area == FILE_QUEUE)
        jq_luxid_touches(the_jq, name, true);
    return fake_ops.file_remove(env, area, name, error);
}

/* --- processes of jobs --- */

static struct jq_process *process_of(const struct jq *jq, guint starter)
{
    for (guint i = 0; i < jq->processes->len; i++) {
        struct jq_process *process = jq->processes->pdata[i];
        if (process->starter == starter)
            return process;
    }
    return NULL;
}

static void job_task(void *data)
{
    struct jq_process *process = data;
    g_autoptr(GError) error = NULL;
    runner_run(process->env, process->id, process->livelock, &error);
    process->ended = true;
}

static void child_born(struct jq *jq, guint index)
{
    struct jq_process *process = g_new0(struct jq_process, 1);
    g_autofree char *stem = NULL;
    process->jq = jq;
    process->starter = index;
    process->id = fake_starter_job(jq->world, index);
    process->env = fake_process(jq->world, jq->master, ROLE_JOB);
    process->env->ops = &job_ops;
    stem = g_strdup_printf("job-%" G_GUINT64_FORMAT, process->id);
    process->livelock = process->env->ops->livelock_make(process->env, stem, NULL);
    g_ptr_array_add(jq->processes, process);
    fake_starter_report(jq->world, index, process->livelock);
}

static void starter_cb(guint index, bool confirmed, void *data)
{
    struct jq *jq = data;
    if (!confirmed) {
        child_born(jq, index);
        return;
    }
    struct jq_process *process = process_of(jq, index);
    if (!process)
        return;
    process->confirmed = true;
    if (!g_hash_table_add(jq->ran, g_memdup2(&process->id, sizeof process->id)))
        jq_find(jq, "job %" G_GUINT64_FORMAT " runs a second time", process->id);
    fake_starter_break(jq->world, index); /* exec closes the pipe */
    task_spawn(process->env->tasks, job_task, process);
}

static void end_process(struct jq *jq, guint place)
{
    struct jq_process *process = jq->processes->pdata[place];
    g_ptr_array_remove_index(jq->processes, place);
    fake_kill(process->env);
    fake_starter_break(jq->world, process->starter);
    g_free(process->livelock);
    g_free(process);
}

void jq_reap(struct jq *jq, bool orphans)
{
    for (guint i = jq->processes->len; i > 0; i--) {
        const struct jq_process *process = jq->processes->pdata[i - 1];
        if (process->ended || (orphans && !process->confirmed))
            end_process(jq, i - 1);
    }
}

bool jq_kill_job(struct jq *jq, guint64 id)
{
    for (guint i = jq->processes->len; i > 0; i--) {
        const struct jq_process *process = jq->processes->pdata[i - 1];
        if (!process->ended && process->id == id) {
            end_process(jq, i - 1);
            return true;
        }
    }
    return false;
}

static void kill_cb(const struct env *env, void *data)
{
    struct jq *jq = data;
    for (guint i = jq->processes->len; i > 0; i--) {
        if (((const struct jq_process *)jq->processes->pdata[i - 1])->env == env) {
            end_process(jq, i - 1);
            return;
        }
    }
}

/* --- daemons --- */

static void handle_wconfd(struct rpc_request *request, void *data)
{
    wconf_handle(((struct jq *)data)->wconf, request);
}

static void handle_luxid(struct rpc_request *request, void *data)
{
    struct jq *jq = data;
    if (jq->user) {
        g_free(request->user);
        request->user = g_strdup(jq->user);
    }
    luxi_handle(jq->luxi, request);
}

static void start_wconfd_task(void *data)
{
    struct jq *jq = data;
    g_autoptr(GError) error = NULL;
    if (!wconf_start(jq->wconf, &error) && !fettle_error_is(error, KILLED))
        jq_find(jq, "wconfd does not start: %s", error->message);
}

static void start_luxid_task(void *data)
{
    struct jq *jq = data;
    const struct luxi *mine = jq->luxi;
    gint64 since = fake_now_ms(jq->world);
    g_autoptr(GError) error = NULL;
    if (luxi_start(jq->luxi, &error) && mine == jq->luxi)
        jq->luxid_since = since;
}

void jq_start_wconfd(struct jq *jq)
{
    jq->wconfd = fake_process(jq->world, jq->master, ROLE_WCONFD);
    jq->wconfd->engine = fake_engine_base(jq->engine);
    jq->wconf = wconf_new(jq->wconfd);
    fake_serve(jq->wconfd, handle_wconfd, jq);
    task_spawn(jq->wconfd->tasks, start_wconfd_task, jq);
    fake_settle(jq->world);
}

void jq_kill_wconfd(struct jq *jq)
{
    if (!jq->wconfd)
        return;
    fake_kill(jq->wconfd);
    fake_engine_crash(jq->engine);
    g_clear_pointer(&jq->wconf, wconf_free);
    jq->wconfd = NULL;
    fake_settle(jq->world);
}

void jq_start_luxid(struct jq *jq)
{
    jq->luxid = fake_process(jq->world, jq->master, ROLE_LUXID);
    jq->luxid->ops = &luxid_ops;
    jq->luxi = luxi_new(jq->luxid);
    fake_serve(jq->luxid, handle_luxid, jq);
    jq_note(jq);
    task_spawn(jq->luxid->tasks, start_luxid_task, jq);
    fake_settle(jq->world);
}

void jq_kill_luxid(struct jq *jq)
{
    if (!jq->luxid)
        return;
    fake_kill(jq->luxid);
    g_clear_pointer(&jq->luxi, luxi_free);
    jq->luxid = NULL;
    jq->luxid_since = 0;
    fake_settle(jq->world);
    jq_reap(jq, true); /* children that were not confirmed end by themselves */
}

static void power_off(struct jq *jq)
{
    while (jq->processes->len > 0)
        end_process(jq, 0);
    jq_kill_luxid(jq);
    jq_kill_wconfd(jq);
    jq_kill_noded(jq, jq->master);
}

void jq_serve_archives(struct jq *jq)
{
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++)
        jq_start_noded(jq, nodes[i]);
}

static guint chance(void *data)
{
    return jq_random(data, 100);
}

void jq_change_master(struct jq *jq)
{
    bool archives = g_hash_table_contains(jq->nodeds, jq->master);
    power_off(jq);
    fake_lose_unsynced(jq->world, jq->master, chance, jq);
    fake_reboot(jq->world, jq->master);
    if (archives)
        jq_start_noded(jq, jq->master);
    fake_engine_expire(jq->engine);
    jq->master = jq->master == nodes[0] ? nodes[1] : nodes[0];
    fake_world_set_master(jq->world, jq->master);
    jq_start_wconfd(jq);
}

json_t *jq_call(struct jq *jq, const char *method, json_t *args, GError **error)
{
    return fake_call(jq->client, jq->master, ROLE_LUXID, method, args, error);
}

/* --- birth and end --- */

static struct change *put(const char *kind, const char *key, json_t *object)
{
    return change_make(CHANGE_PUT, kind, key, 0, object);
}

static GPtrArray *first_objects(guint slots)
{
    record_autoptr(op_cluster_init) params = op_cluster_init_new();
    g_free(params->cluster_name);
    params->cluster_name = g_strdup("queue");
    g_free(params->node_name);
    params->node_name = g_strdup("node1");
    g_free(params->primary_ip);
    params->primary_ip = g_strdup("node1");
    params->max_running_jobs = slots;
    GPtrArray *changes = wconf_bootstrap_changes(params, JQ_CLUSTER, nodes[0], 1811, JQ_GROUP);
    g_ptr_array_add(
        changes, put("node", nodes[1],
                     json_make("{ss ss ss ss sb}", "uuid", nodes[1], "name", "node2", "primary_ip",
                               "node2", "group", JQ_GROUP, "master_candidate", 1)));
    return changes;
}

static guint message_delay(const char *from, const char *to, void *data)
{
    return jq_random(data, 8) == 0 ? jq_random(data, 30) : 0;
}

struct jq *jq_new(guint64 seed, bool rough, guint slots, struct jq_counts *counts)
{
    struct jq *jq = g_new0(struct jq, 1);
    g_autoptr(GPtrArray) changes = first_objects(slots);
    the_jq = jq;
    jq->counts = counts;
    jq->random = seed * 7919 + 1;
    jq->rough = rough;
    jq->world = fake_world_new();
    jq->engine = fake_engine_new(1, changes);
    fake_engine_replicate(jq->engine);
    jq->processes = g_ptr_array_new();
    jq->ran = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    jq->taken = g_hash_table_new(NULL, NULL);
    jq->pending =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (void (*)(void *))json_decref);
    jq->records =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, (void (*)(void *))json_decref);
    jq->could = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    jq->nodeds = g_hash_table_new(g_str_hash, g_str_equal);
    jq->calls = jq_calls_new();
    jq->asked = g_ptr_array_new_with_free_func((void (*)(void *))json_decref);
    jq->requests = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    jq->model = qm_new(slots);
    jq->master = nodes[0];
    fake_forget_calls(jq->world);
    fake_world_set_master(jq->world, jq->master);
    fake_set_starter_hook(jq->world, starter_cb, jq);
    fake_set_kill_hook(jq->world, kill_cb, jq);
    if (rough)
        fake_set_delay(jq->world, message_delay, jq);
    fake_script(jq->world, NULL, ROLE_NODED, "announce", fake_answer_nothing, NULL);
    jq->client = fake_process(jq->world, nodes[0], ROLE_CLI);
    fake_ops = *jq->client->ops;
    job_ops = fake_ops;
    job_ops.timer = op_timer;
    luxid_ops = fake_ops;
    luxid_ops.file_write = luxid_writes;
    luxid_ops.file_remove = luxid_removes;
    sm_set_sink(jq_saw_move, jq);
    jq_start_wconfd(jq);
    jq_start_luxid(jq);
    return jq;
}

void jq_free(struct jq *jq)
{
    power_off(jq);
    fake_settle(jq->world);
    jq->counts->virtual_s += (guint64)fake_now_ms(jq->world) / 1000;
    sm_set_sink(NULL, NULL);
    fake_world_free(jq->world);
    fake_engine_free(jq->engine);
    g_ptr_array_unref(jq->processes);
    g_hash_table_unref(jq->ran);
    g_hash_table_unref(jq->taken);
    g_hash_table_unref(jq->nodeds);
    g_hash_table_unref(jq->requests);
    g_ptr_array_unref(jq->calls);
    g_ptr_array_unref(jq->asked);
    g_hash_table_unref(jq->pending);
    g_hash_table_unref(jq->could);
    g_hash_table_unref(jq->records);
    qm_free(jq->model);
    g_free(jq->problem);
    g_free(jq);
}
