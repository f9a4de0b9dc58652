/* The cluster of the simulator: its nodes, their processes, what keeps them running; see sim.h. */
#include "sim_private.h"

#include <string.h>

#include "base/sm.h"

#define RESTART_MS 300

/* --- numbers and lines --- */

guint sim_random(struct sim *sim, guint below)
{
    sim->random_state += G_GUINT64_CONSTANT(0x9e3779b97f4a7c15);
    guint64 mixed = sim->random_state;
    mixed = (mixed ^ (mixed >> 30)) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return (guint)((mixed ^ (mixed >> 31)) % below);
}

void sim_log(struct sim *sim, const char *format, ...)
{
    if (sim->options.log == NULL)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    gint64 now = sim_now_ms(sim);
    g_autofree char *line =
        g_strdup_printf("%5d.%03d %s", (int)(now / 1000), (int)(now % 1000), text);
    sim->options.log(line, sim->options.log_data);
}

static void sm_line(const char *line, void *ctx)
{
    sim_log(ctx, "%s", line);
}

void sim_find(struct sim *sim, const char *format, ...)
{
    if (sim->problem != NULL)
        return;
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    sim->problem = g_strdup_printf("at %d.%03d s: %s", (int)(sim_now_ms(sim) / 1000),
                                   (int)(sim_now_ms(sim) % 1000), text);
    sim_log(sim, "PROBLEM %s", text);
}

const char *sim_problem(const struct sim *sim)
{
    return sim->problem;
}

gint64 sim_now_ms(const struct sim *sim)
{
    return fake_now_ms(sim->world) - 1000; /* the world's clock begins at 1 s */
}

/* --- nodes --- */

struct sim_node *sim_node(const struct sim *sim, const char *name)
{
    for (guint i = 0; i < sim->nodes->len; i++) {
        struct sim_node *node = sim->nodes->pdata[i];
        if (strcmp(node->name, name) == 0 || strcmp(node->uuid, name) == 0)
            return node;
    }
    return NULL;
}

bool sim_has_node(const struct sim *sim, const char *node)
{
    return sim_node(sim, node) != NULL;
}

bool sim_powered(const struct sim *sim, const char *node)
{
    return sim_node(sim, node)->powered;
}

bool sim_linked(const struct sim *sim, const char *node)
{
    return sim_node(sim, node)->linked;
}

struct fake_host *sim_host(struct sim *sim, const char *node)
{
    return sim_node(sim, node)->host;
}

struct fake_hosts *sim_hosts(struct sim *sim)
{
    return sim->hosts;
}

const char *sim_node_uuid(const struct sim *sim, const char *node)
{
    return sim_node(sim, node)->uuid;
}

const char *sim_node_name(const struct sim *sim, const char *uuid)
{
    const struct sim_node *node = *uuid != '\0' ? sim_node(sim, uuid) : NULL;
    return node != NULL ? node->name : "nobody";
}

static bool path_passes(const char *from, const char *to, void *data)
{
    const struct sim_node *a = sim_node(data, from), *b = sim_node(data, to);
    return a == b || (a->powered && b->powered && a->linked && b->linked);
}

static guint message_delay(const char *from, const char *to, void *data)
{
    struct sim *sim = data;
    guint most = sim->options.max_delay_ms;
    return most == 0 ? 0 : strcmp(from, to) == 0 ? sim_random(sim, 2) : sim_random(sim, most + 1);
}

/* --- processes --- */

struct start {
    struct sim *sim;
    struct sim_node *node;
    enum sim_role role;
    const struct env *env;
};

static void again_cb(void *data)
{
    struct start *start = data;
    struct sim_node *node = start->node;
    if (node->powered && node->processes[start->role].env == NULL)
        sim_process_start(start->sim, node, start->role);
    g_ptr_array_remove_fast(start->sim->restarts, start);
}

static void start_again_later(struct sim *sim, struct sim_node *node, enum sim_role role)
{
    struct start *start = g_new0(struct start, 1);
    *start = (struct start){sim, node, role, NULL};
    g_ptr_array_add(sim->restarts, start);
    node->host_env->ops->timer(node->host_env, RESTART_MS, again_cb, start);
}

void sim_process_end(struct sim *sim, struct sim_node *node, enum sim_role role)
{
    struct sim_process *process = &node->processes[role];
    if (process->env == NULL)
        return;
    fake_kill(process->env);
    if (role == SIM_WCONFD) {
        fake_engine_crash(sim->engine);
        g_clear_pointer(&process->wconf, wconf_free);
    }
    g_clear_pointer(&process->luxi, luxi_free);
    g_clear_pointer(&process->watcher, watcher_free);
    g_clear_pointer(&process->node, node_core_free);
    process->env = NULL;
    fake_settle(sim->world);
    if (role == SIM_LUXID)
        sim_jobs_reap(sim, true);
}

/* A daemon that cannot start ends, and its supervisor tries again. */
static void start_task(void *data)
{
    struct start *start = data;
    struct sim_process *process = &start->node->processes[start->role];
    g_autoptr(GError) error = NULL;
    bool ok = true;
    if (process->wconf != NULL)
        ok = wconf_start(process->wconf, &error);
    else if (process->luxi != NULL)
        ok = luxi_start(process->luxi, &error);
    else if (process->watcher != NULL)
        ok = watcher_start(process->watcher, &error);
    else if (process->node != NULL)
        ok = node_core_start(process->node, &error);
    if (!ok && process->env == start->env && !task_group_killed(start->env->tasks))
        g_ptr_array_add(start->sim->failed, start);
    else
        g_free(start);
}

static void handle_wconfd(struct rpc_request *request, void *data)
{
    wconf_handle(((struct sim_process *)data)->wconf, request);
}

static void handle_luxid(struct rpc_request *request, void *data)
{
    luxi_handle(((struct sim_process *)data)->luxi, request);
}

/* As the bus does: the frame passes the fence first. */
static void handle_noded(struct rpc_request *request, void *data)
{
    struct node_core *node = ((struct sim_process *)data)->node;
    g_autoptr(GError) error = NULL;
    if (node_core_admit(node, request->from_node, request->method, request->stamp, &error))
        node_core_handle(node, request);
    else
        rpc_fail(request, error);
}

static void nobody_handles(struct rpc_request *request, void *data)
{
    rpc_fail_new(request, FETTLE_ERROR_PROTOCOL, "this process serves nothing");
}

void sim_process_start(struct sim *sim, struct sim_node *node, enum sim_role role)
{
    static const char *const roles[] = {ROLE_WCONFD, ROLE_LUXID, ROLE_WATCHER, ROLE_NODED};
    static const fake_handler handlers[] = {handle_wconfd, handle_luxid, nobody_handles,
                                            handle_noded};
    struct sim_process *process = &node->processes[role];
    struct env *env = fake_process(sim->world, node->uuid, roles[role]);
    process->env = env;
    if (role == SIM_WCONFD) {
        env->engine = fake_engine_base(sim->engine);
        process->wconf = wconf_new(env);
    } else if (role == SIM_LUXID) {
        process->luxi = luxi_new(env);
    } else if (role == SIM_WATCHER) {
        process->watcher = watcher_new(env);
    } else {
        env->hypervisor = fake_host_hypervisor(node->host);
        env->storage = fake_host_storage(node->host);
        env->network = fake_host_network(node->host);
        process->node = node_core_new(env, SIM_CLUSTER, node->name);
    }
    fake_serve(env, handlers[role], process);
    struct start *start = g_new0(struct start, 1);
    *start = (struct start){sim, node, role, env};
    task_spawn(env->tasks, start_task, start);
    fake_settle(sim->world);
}

static void restart_failed(struct sim *sim)
{
    while (sim->failed->len > 0) {
        struct start *start = sim->failed->pdata[0];
        g_ptr_array_remove_index(sim->failed, 0);
        if (start->node->processes[start->role].env == start->env) {
            sim_process_end(sim, start->node, start->role);
            start_again_later(sim, start->node, start->role);
        }
        g_free(start);
    }
}

static void start_daemons(struct sim *sim, struct sim_node *node)
{
    sim_process_start(sim, node, SIM_NODED);
    if (node == sim->nodes->pdata[0]) {
        sim_process_start(sim, node, SIM_WCONFD);
        sim_process_start(sim, node, SIM_LUXID);
        sim_process_start(sim, node, SIM_WATCHER);
    }
}

/* --- fate --- */

void sim_kill(struct sim *sim, const char *daemon, const char *name)
{
    static const char *const names[] = {"wconfd", "luxid", "watcher", "noded"};
    struct sim_node *node = sim_node(sim, name);
    for (guint role = 0; role < SIM_ROLES; role++) {
        if (strcmp(names[role], daemon) != 0 || node->processes[role].env == NULL)
            continue;
        sim_log(sim, "fate: %s on %s is killed", daemon, name);
        sim_process_end(sim, node, (enum sim_role)role);
        start_again_later(sim, node, (enum sim_role)role);
    }
}

static guint chance(void *data)
{
    return sim_random(data, 100);
}

static void power_off(struct sim *sim, struct sim_node *node)
{
    node->powered = false;
    fake_cut(sim->world, node->uuid, true);
    for (guint role = 0; role < SIM_ROLES; role++)
        sim_process_end(sim, node, (enum sim_role)role);
    sim_jobs_end(sim, node);
    fake_host_power_off(node->host);
    fake_lose_unsynced(sim->world, node->uuid, chance, sim);
    fake_reboot(sim->world, node->uuid);
}

void sim_power(struct sim *sim, const char *name, bool on)
{
    struct sim_node *node = sim_node(sim, name);
    if (node->powered == on)
        return;
    sim_log(sim, "fate: the power of %s is %s", name, on ? "back" : "cut");
    if (!on) {
        power_off(sim, node);
        return;
    }
    node->powered = true;
    fake_cut(sim->world, node->uuid, !node->linked);
    start_daemons(sim, node);
}

void sim_link(struct sim *sim, const char *name, bool up)
{
    struct sim_node *node = sim_node(sim, name);
    if (node->linked == up)
        return;
    sim_log(sim, "fate: the cable of %s is %s", name, up ? "plugged in" : "pulled");
    node->linked = up;
    fake_cut(sim->world, node->uuid, !up || !node->powered);
    for (guint i = 0; up && i < sim->nodes->len; i++) {
        struct sim_node *each = sim->nodes->pdata[i];
        if (each->processes[SIM_NODED].node != NULL)
            node_core_master_reachable(each->processes[SIM_NODED].node);
    }
}

void sim_kill_guest(struct sim *sim, const char *instance, const char *holder)
{
    const struct instance *record = config_get(sim->mirror, "instance", instance, NULL);
    if (*holder == '\0')
        return;
    sim_log(sim, "fate: the process of %s on %s is killed",
            record != NULL ? record->name : instance, sim_node_name(sim, holder));
    fake_host_guest_crash(sim_host(sim, holder), instance);
}

void sim_lose_images(struct sim *sim, const struct instance *instance, bool replica)
{
    const char *node = replica ? instance->secondary_node : instance->primary_node;
    sim_log(sim, "fate: the images of %s%s on %s are removed", instance->name,
            replica ? "'s replica" : "", sim_node_name(sim, node));
    if (replica)
        g_hash_table_add(sim->lost, g_strdup(instance->replica));
    fake_host_lose_images(sim_host(sim, node), instance->uuid, replica ? instance->replica : "");
}

guint sim_moves(const struct sim *sim)
{
    return sim->moves;
}

/* --- time --- */

void sim_pass(struct sim *sim, guint ms)
{
    gint64 limit = fake_now_ms(sim->world) + ms;
    while (sim->problem == NULL && fake_step(sim->world, limit)) {
        restart_failed(sim);
        sim_jobs_reap(sim, false);
        sim_check(sim);
    }
    restart_failed(sim);
    sim_check(sim);
}

const struct config *sim_config(struct sim *sim)
{
    return sim->mirror;
}

/* --- as an operator --- */

guint64 sim_submit(struct sim *sim, json_t *opcode, GError **error)
{
    json_autoptr answer = fake_call(sim->operator, sim_node_uuid(sim, "node1"), ROLE_LUXID,
                                    "SubmitJob", json_make("[[o]]", opcode), error);
    if (answer == NULL)
        return 0;
    guint64 job = (guint64)json_integer_value(answer);
    g_array_append_val(sim->accepted, job);
    return job;
}

bool sim_cancel(struct sim *sim, guint64 job)
{
    json_autoptr answer = fake_call(sim->operator, sim_node_uuid(sim, "node1"), ROLE_LUXID,
                                    "CancelJob", json_make("[I]", (json_int_t)job), NULL);
    return json_is_true(json_array_get(answer, 0));
}

const char *sim_job_final(struct sim *sim, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(sim->mirror, "job", key, NULL);
    if (job == NULL || (strcmp(job->status, "success") != 0 && strcmp(job->status, "error") != 0 &&
                        strcmp(job->status, "canceled") != 0))
        return NULL;
    return job->status;
}

/* --- birth --- */

static void add_node(struct sim *sim, guint number)
{
    struct sim_node *node = g_new0(struct sim_node, 1);
    node->name = g_strdup_printf("node%u", number);
    node->uuid = g_strdup_printf("%08u-0000-4000-8000-000000000000", number);
    node->powered = node->linked = true;
    node->host_env = fake_process(sim->world, node->uuid, "host");
    node->host = fake_host_add(sim->hosts, node->uuid, node->host_env);
    g_ptr_array_add(sim->nodes, node);
}

static void sim_node_free(void *data)
{
    struct sim_node *node = data;
    g_free(node->name);
    g_free(node->uuid);
    g_free(node);
}

/* The objects of `cluster init`, and the other nodes as `node add` leaves them. */
static GPtrArray *first_objects(const struct sim *sim)
{
    record_autoptr(op_cluster_init) params = op_cluster_init_new();
    const struct sim_node *master = sim->nodes->pdata[0];
    g_free(params->cluster_name);
    params->cluster_name = g_strdup("sim");
    g_free(params->node_name);
    params->node_name = g_strdup(master->name);
    g_free(params->primary_ip);
    params->primary_ip = g_strdup(master->name);
    GPtrArray *changes =
        wconf_bootstrap_changes(params, SIM_CLUSTER, master->uuid, 1811, SIM_GROUP);
    for (guint i = 0; i < changes->len && sim->options.cluster != NULL; i++) {
        struct change *change = changes->pdata[i];
        if (g_str_equal(change->kind, "cluster"))
            json_object_update(change->object, (json_t *)sim->options.cluster);
    }
    for (guint i = 1; i < sim->nodes->len; i++) {
        const struct sim_node *node = sim->nodes->pdata[i];
        struct change *change = change_new();
        change->op = CHANGE_PUT;
        g_free(change->kind);
        change->kind = g_strdup("node");
        g_free(change->key);
        change->key = g_strdup(node->uuid);
        change->object = json_make("{ss ss ss ss}", "uuid", node->uuid, "name", node->name,
                                   "primary_ip", node->name, "group", SIM_GROUP);
        g_ptr_array_add(changes, change);
    }
    return changes;
}

struct sim *sim_new(const struct sim_options *options)
{
    struct sim *sim = g_new0(struct sim, 1);
    sim->options = *options;
    sim->random_state = options->seed * 7919 + 1;
    sim->world = fake_world_new();
    sim->hosts = fake_hosts_new(options->seed);
    sim->nodes = g_ptr_array_new_with_free_func(sim_node_free);
    sim->jobs = g_ptr_array_new();
    sim->failed = g_ptr_array_new();
    sim->restarts = g_ptr_array_new_with_free_func(g_free);
    sim->accepted = g_array_new(FALSE, FALSE, sizeof(guint64));
    sim->ran = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    sim->lost = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    sim->healthy = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    sim->mirror = config_new();
    sm_set_sink(sm_line, sim);
    for (guint i = 1; i <= options->nodes; i++)
        add_node(sim, i);
    fake_hosts_set_path(sim->hosts, path_passes, sim);
    fake_set_delay(sim->world, message_delay, sim);
    fake_set_starter_hook(sim->world, sim_starter_cb, sim);
    g_autoptr(GPtrArray) changes = first_objects(sim);
    sim->engine = fake_engine_new(1, changes);
    const struct sim_node *master = sim->nodes->pdata[0];
    fake_world_set_master(sim->world, master->uuid);
    sim->operator= fake_process(sim->world, master->uuid, ROLE_CLI);
    for (guint i = 0; i < sim->nodes->len; i++)
        start_daemons(sim, sim->nodes->pdata[i]);
    return sim;
}

void sim_free(struct sim *sim)
{
    for (guint i = 0; i < sim->nodes->len; i++) {
        struct sim_node *node = sim->nodes->pdata[i];
        for (guint role = 0; role < SIM_ROLES; role++)
            sim_process_end(sim, node, (enum sim_role)role);
        sim_jobs_end(sim, node);
    }
    restart_failed(sim);
    fake_settle(sim->world);
    sm_set_sink(NULL, NULL);
    fake_hosts_free(sim->hosts);
    fake_world_free(sim->world);
    fake_engine_free(sim->engine);
    g_ptr_array_unref(sim->nodes);
    g_ptr_array_unref(sim->jobs);
    g_ptr_array_unref(sim->failed);
    g_ptr_array_unref(sim->restarts);
    g_array_unref(sim->accepted);
    g_hash_table_unref(sim->ran);
    g_hash_table_unref(sim->lost);
    g_hash_table_unref(sim->healthy);
    config_free(sim->mirror);
    g_free(sim->problem);
    g_free(sim);
}
