/* Requests of jobs that lie in the socket of a node daemon, or on their way to it; see sim.h. */
#include "sim_private.h"

#include <string.h>

void sim_hold_requests(struct sim *sim, const char *name, bool hold)
{
    sim_node(sim, name)->holds = hold;
}

bool sim_holds_request(struct sim_node *node, struct rpc_request *request)
{
    if (!node->holds || strcmp(request->from_role, ROLE_JOB) != 0 ||
        json_object_get(request->args, "instance") == NULL)
        return false;
    sim_log(node->sim, "fate: %s of job %u stays on its way to %s", request->name,
            request->from_job, node->name);
    g_ptr_array_add(node->held, request);
    return true;
}

guint sim_held_requests(const struct sim *sim, const char *name)
{
    return sim_node(sim, name)->held->len;
}

void sim_let_requests(struct sim *sim, const char *name)
{
    struct sim_node *node = sim_node(sim, name);
    g_autoptr(GPtrArray) held = node->held;
    node->held = g_ptr_array_new();
    node->holds = false;
    if (held->len > 0)
        sim_log(sim, "fate: %u requests of jobs arrive at %s", held->len, name);
    for (guint i = 0; i < held->len; i++)
        sim_node_handle(node, held->pdata[i]);
}

void sim_drop_requests(struct sim_node *node)
{
    g_autoptr(GPtrArray) held = node->held;
    node->held = g_ptr_array_new();
    node->holds = false;
    for (guint i = 0; i < held->len; i++)
        rpc_fail_new(held->pdata[i], FETTLE_ERROR_UNREACHABLE, "the connection was lost");
}
