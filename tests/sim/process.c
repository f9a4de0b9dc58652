/* The daemons of the simulated nodes: how they start, end, stand still and come back; see sim.h. */
#include "helper/fake_authority.h"
#include "sim_private.h"

#define RESTART_MS 300

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

void sim_start_again_later(struct sim *sim, struct sim_node *node, enum sim_role role)
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
    sim_process_stop(sim, node, role, false);
    fake_kill(process->env);
    if (role == SIM_WCONFD) {
        fake_engine_crash(sim->engine);
        g_clear_pointer(&process->wconf, wconf_free);
    }
    g_clear_pointer(&process->luxi, luxi_free);
    g_clear_pointer(&process->watcher, watcher_free);
    g_clear_pointer(&process->node, node_core_free);
    if (role == SIM_NODED)
        sim_forget_takings(sim, node);
    process->env = NULL;
    fake_settle(sim->world);
    if (role == SIM_LUXID)
        sim_jobs_reap(sim, true);
}

/* SIGSTOP and SIGCONT. What the process has asked of others goes on; what it waits for comes late.
 */
void sim_process_stop(struct sim *sim, struct sim_node *node, enum sim_role role, bool stop)
{
    const struct env *env = node->processes[role].env;
    if (env == NULL || fake_paused(env) == stop)
        return;
    if (stop)
        fake_pause(env);
    else
        fake_resume(env);
    if (role == SIM_NODED)
        fake_host_set_paused(node->host, stop);
    else if (role == SIM_WCONFD && stop)
        fake_engine_hold(sim->engine);
    else if (role == SIM_WCONFD)
        fake_engine_release(sim->engine);
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
    struct sim_node *host = data;
    sim_note_question(host->sim, request);
    sim_check_recover(host->sim, request);
    wconf_handle(host->processes[SIM_WCONFD].wconf, request);
}

static void handle_luxid(struct rpc_request *request, void *data)
{
    luxi_handle(((struct sim_process *)data)->luxi, request);
}

/* As the bus does: the frame passes the fence first. */
void sim_node_handle(struct sim_node *host, struct rpc_request *request)
{
    struct node_core *node = host->processes[SIM_NODED].node;
    g_autoptr(GError) error = NULL;
    if (node == NULL) {
        rpc_fail_new(request, FETTLE_ERROR_UNREACHABLE, "nobody listens");
        return;
    }
    sim_note_taking(host->sim, host, request);
    sim_check_asking(host->sim, host, request);
    if (node_core_admit(node, request->from_node, request->from_role, request->method,
                        request->stamp, &error))
        node_core_handle(node, request);
    else
        rpc_fail(request, error);
}

static void handle_noded(struct rpc_request *request, void *data)
{
    if (!sim_holds_request(data, request))
        sim_node_handle(data, request);
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
    bool by_node = role == SIM_NODED || role == SIM_WCONFD;
    struct env *env = fake_process(sim->world, node->uuid, roles[role]);
    process->env = env;
    if (role == SIM_WCONFD) {
        env->engine = fake_engine_base(sim->engine);
        env->authority = fake_authority_of(true);
        process->wconf = wconf_new(env);
    } else if (role == SIM_LUXID) {
        process->luxi = luxi_new(env);
    } else if (role == SIM_WATCHER) {
        process->watcher = watcher_new(env, &repair_duties);
    } else {
        env->hypervisor = fake_host_hypervisor(node->host);
        env->storage = fake_host_storage(node->host);
        env->network = fake_host_network(node->host);
        process->node = node_core_new(env, SIM_CLUSTER, node->name);
    }
    fake_serve(env, handlers[role], by_node ? (void *)node : process);
    struct start *start = g_new0(struct start, 1);
    *start = (struct start){sim, node, role, env};
    task_spawn(env->tasks, start_task, start);
    fake_settle(sim->world);
}

void sim_restart_failed(struct sim *sim)
{
    while (sim->failed->len > 0) {
        struct start *start = sim->failed->pdata[0];
        g_ptr_array_remove_index(sim->failed, 0);
        if (start->node->processes[start->role].env == start->env) {
            sim_process_end(sim, start->node, start->role);
            sim_start_again_later(sim, start->node, start->role);
        }
        g_free(start);
    }
}

void sim_start_daemons(struct sim *sim, struct sim_node *node)
{
    sim_process_start(sim, node, SIM_NODED);
    if (node == sim->nodes->pdata[0]) {
        sim_process_start(sim, node, SIM_WCONFD);
        sim_process_start(sim, node, SIM_LUXID);
        sim_process_start(sim, node, SIM_WATCHER);
    }
}
