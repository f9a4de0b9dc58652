/*
 * OP_NODE_ADD, OP_NODE_REMOVE, OP_NODE_SET_PARAMS. They change the record of a node under its
 * exclusive lock, or that of its parameters, and act on no guest.
 */
#include "core/config/attachments.h"
#include "core/ops/ops.h"
#include "proto/invitation.h"

#include <string.h>

/* --- add --- */

static bool add_declare(struct op *op, GError **error)
{
    const struct op_node_add *params = op->params;
    op_lock_node(op, params->node_uuid, LOCK_EXCLUSIVE);
    return true;
}

static bool node_is_new(const struct op *op, GError **error)
{
    const struct op_node_add *params = op->params;
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!strcmp(node->uuid, params->node_uuid)) {
            fettle_set_error(error, ALREADY_EXISTS, "node_uuid: %s is node \"%s\" already",
                             node->uuid, node->name);
            return false;
        }
        if (op_node_in_the_way(node, params->node_name, params->primary_ip, params->port, error))
            return false;
    }
    return true;
}

static bool add_check(struct op *op, GError **error)
{
    const struct op_node_add *params = op->params;
    if (config_count(op_config(op), "node") >= LIMIT_NODES) {
        fettle_set_error(error, LIMIT, "the cluster has %d nodes, which is the limit", LIMIT_NODES);
        return false;
    }
    return node_is_new(op, error) && config_find(op_config(op), "nodegroup", params->group, error);
}

static bool build_add(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_node_add *params = op->params;
    const struct nodegroup *group = config_find(op_config(op), "nodegroup", params->group, error);
    if (!group || !node_is_new(op, error))
        return false;
    struct node node = {.uuid = params->node_uuid,
                        .name = params->node_name,
                        .primary_ip = params->primary_ip,
                        .port = params->port,
                        .group = group->uuid,
                        .master_candidate = params->master_candidate,
                        .master_capable = params->master_capable,
                        .offline_statement = (char *)""};
    op_put(op, changes, "node", node.uuid, node_to_json(&node));
    return true;
}

static bool is_pending(const struct cluster_status *status, const char *node)
{
    for (guint i = 0; status->nodes_pending && i < status->nodes_pending->len; i++) {
        if (!strcmp(status->nodes_pending->pdata[i], node))
            return true;
    }
    return false;
}

/* wconfd announces itself to the new member; until it has answered the node is pending. */
static bool wait_for_answer(struct op *op, GError **error)
{
    const struct op_node_add *params = op->params;
    gint64 deadline = op->env->ops->boot_ms(op->env) + NODE_ADD_WAIT_MS;
    for (;;) {
        g_autoptr(GError) ignored = NULL; /* wconfd away: asked again until the time is over */
        record_autoptr(cluster_status) status =
            env_call_record(op->env, NODE_LOCAL, ROLE_WCONFD, "cluster_status", NULL, op->stamp,
                            (guint)op->job, 0, &ignored);
        if (status && !is_pending(status, params->node_uuid))
            return true;
        if (op->env->ops->boot_ms(op->env) >= deadline) {
            fettle_set_error(error, UNREACHABLE,
                             "the node daemon of \"%s\" at %s port %" G_GUINT64_FORMAT
                             " did not answer within %u s; is it running, with a certificate of "
                             "this cluster for %s?",
                             params->node_name, params->primary_ip, params->port,
                             NODE_ADD_WAIT_MS / 1000, params->node_uuid);
            return false;
        }
        if (!env_sleep(op->env, NODE_ADD_POLL_MS)) {
            fettle_set_error(error, KILLED, "the process ended while it waited");
            return false;
        }
    }
}

static void delete_advice(const struct op *op, GPtrArray *changes, const char *node)
{
    g_autoptr(GPtrArray) advices = config_list(op_config(op), "advice");
    for (guint i = 0; i < advices->len; i++) {
        const struct advice *advice = advices->pdata[i];
        if (!strcmp(advice->subject, node))
            op_delete(op, changes, "advice", advice->uuid);
    }
}

static bool build_delete(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const char *uuid = data;
    if (!config_get(op_config(op), "node", uuid, NULL))
        return true;
    config_delete_tags(op_config(op), TAG_NODE, uuid, changes);
    delete_advice(op, changes, uuid);
    op_delete(op, changes, "node", uuid);
    return true;
}

/* A death in the wait leaves a member that never answers; `fettle node remove` takes it away. */
static bool add_exec(struct op *op, GError **error)
{
    const struct op_node_add *params = op->params;
    if (!op_commit_built(op, "add_node", build_add, NULL, error))
        return false;
    GError *local = NULL;
    if (wait_for_answer(op, &local))
        return true;
    g_autoptr(GError) failure = NULL;
    if (fettle_error_is(local, KILLED))
        op_log(op, "ended before the node answered");
    else if (op_commit_built(op, "remove_node", build_delete, params->node_uuid, &failure))
        op->changed = false;
    else
        g_prefix_error(&local, "the node stays on record (%s): ", failure->message);
    g_propagate_error(error, local);
    return false;
}

/* --- remove --- */

static bool remove_declare(struct op *op, GError **error)
{
    const struct op_node_remove *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (node)
        op_lock_node(op, node->uuid, LOCK_EXCLUSIVE);
    return node != NULL;
}

static bool node_is_unused(const struct op *op, const struct node *node, GError **error)
{
    g_autoptr(GPtrArray) instances = config_list(op_config(op), "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        bool primary = !strcmp(instance->primary_node, node->uuid);
        if (!strcmp(instance->migration_node, node->uuid)) {
            fettle_set_error(
                error, WRONG_STATE,
                "a migration of instance \"%s\" to node \"%s\" is on record; settle it "
                "first: fettle instance migrate %s --cleanup",
                instance->name, node->name, instance->name);
            return false;
        }
        if (!primary && strcmp(instance->secondary_node, node->uuid))
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "node \"%s\" is the %s node of instance \"%s\"; %s or remove it first",
                         node->name, primary ? "primary" : "secondary", instance->name,
                         primary ? "fail it over" : "replace its disks");
        return false;
    }
    return true;
}

static bool serves_no_backend(const struct op *op, const struct node *node, GError **error)
{
    g_autoptr(GPtrArray) backends = config_list(op_config(op), "backend");
    for (guint i = 0; i < backends->len; i++) {
        const struct backend *backend = backends->pdata[i];
        if (!g_ptr_array_find_with_equal_func(backend->nodes, node->uuid, g_str_equal, NULL))
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "node \"%s\" serves back end \"%s\"; name the nodes that do without it "
                         "first: fettle backend modify %s --nodes NODES",
                         node->name, backend->name, backend->name);
        return false;
    }
    return true;
}

static bool has_no_front_end(const struct op *op, const struct node *node, GError **error)
{
    if (!config_get(op_config(op), "api_front_end", node->uuid, NULL))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "node \"%s\" has a front end of the API; take that away first: fettle api "
                     "remove --node %s",
                     node->name, node->name);
    return false;
}

static bool is_master(const struct op *op, const struct node *node)
{
    const struct cluster *cluster = config_cluster(op_config(op));
    return cluster && !strcmp(cluster->master_node, node->uuid);
}

/* The master takes the member of a node that is no candidate any more out of etcd, and has its data
 * and certificate put away; a node that is gone could not be asked for that. */
static bool has_no_member(const struct op *op, const struct node *node, GError **error)
{
    const struct cluster *cluster = config_cluster(op_config(op));
    if (!cluster || cluster->engine != ENGINE_KIND_ETCD || !node->master_candidate)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "node \"%s\" is a candidate of a cluster with the engine etcd, and so has a "
                     "member of it; make it no candidate first: fettle node modify %s "
                     "--master-candidate no",
                     node->name, node->name);
    return false;
}

static bool remove_check(struct op *op, GError **error)
{
    const struct op_node_remove *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node)
        return false;
    if (is_master(op, node)) {
        fettle_set_error(error, WRONG_STATE, "node \"%s\" is the master and cannot be removed",
                         node->name);
        return false;
    }
    return has_no_member(op, node, error) && node_is_unused(op, node, error) &&
           serves_no_backend(op, node, error) && has_no_front_end(op, node, error);
}

static bool build_remove(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct node *node = config_get(op_config(op), "node", data, NULL);
    if (node)
        op_revoke_node(op, changes, node);
    return build_delete(op, changes, data, error);
}

static bool remove_exec(struct op *op, GError **error)
{
    const struct op_node_remove *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node)
        return false;
    g_autofree char *uuid = g_strdup(node->uuid);
    return op_commit_built(op, "remove_node", build_remove, uuid, error);
}

/* --- set params --- */

static bool set_declare(struct op *op, GError **error)
{
    const struct op_node_set_params *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node)
        return false;
    /* Jobs that act there rely on its being online, and on nothing else that is set here (FUT-01):
     * only that change waits for them. */
    if (*params->offline)
        op_lock_node(op, node->uuid, LOCK_EXCLUSIVE);
    else
        op_lock_node_params(op, node->uuid);
    return true;
}

static bool is_alive(struct op *op, const char *uuid, GError **error)
{
    record_autoptr(nothing) answer = op_ask(op, uuid, "node_alive", NULL, 0, error);
    return answer != NULL;
}

/* A node that answers is not dead. Any answer counts, also a refusal. That a connection ended under
 * the question says nothing of the node: the next question goes on one that is begun for it. */
static bool node_is_silent(struct op *op, const struct node *node, const char *hint, GError **error)
{
    g_autofree char *name = g_strdup(node->name), *uuid = g_strdup(node->uuid);
    g_autoptr(GError) failure = NULL;
    bool alive = is_alive(op, uuid, &failure);
    if (!alive && fettle_error_is(failure, UNKNOWN_RESULT)) {
        g_clear_error(&failure);
        alive = is_alive(op, uuid, &failure);
    }
    if (!alive && env_no_answer(failure))
        return true;
    if (fettle_error_is(failure, KILLED)) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    fettle_set_error(error, UNSAFE,
                     "node \"%s\" still answers, so it is not dead, and its guests may run; power "
                     "it off first%s",
                     name, hint);
    return false;
}

/* An instance that may run there on disks that other nodes use too; NULL: none. */
static const struct instance *shared_guest(const struct op *op, const struct node *node)
{
    g_autoptr(GPtrArray) instances = config_list(op_config(op), "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (!strcmp(instance->holder, node->uuid) && attachment_shares(op_config(op), instance))
            return instance;
    }
    return NULL;
}

/* SAF-21: nothing but the power switch keeps such a guest from its disks, so the word for that has
 * to be given, and is not believed of a node that answers. */
static bool power_is_off(struct op *op, const struct node *node, const struct instance *guest,
                         GError **error)
{
    const struct op_node_set_params *params = op->params;
    if (*params->statement)
        return node_is_silent(op, node, "; --force does not help: other nodes use its disks too",
                              error);
    fettle_set_error(
        error, UNSAFE,
        "instance \"%s\" may run on node \"%s\", on disks that other nodes use too; "
        "say that the power of \"%s\" is off, and who has seen that: fettle node modify "
        "%s --offline yes --statement \"…\"",
        guest->name, node->name, node->name, node->name);
    return false;
}

static bool may_be_offline(struct op *op, const struct node *node, GError **error)
{
    const struct op_node_set_params *params = op->params;
    const struct instance *shared = shared_guest(op, node);
    if (is_master(op, node)) {
        fettle_set_error(error, WRONG_STATE,
                         "node \"%s\" is the master, which carries out this very job; it cannot "
                         "be offline",
                         node->name);
        return false;
    }
    if (node->offline)
        return true;
    if (shared)
        return power_is_off(op, node, shared, error);
    return params->force || node_is_silent(op, node, ", or use --force if you know better", error);
}

static bool is_last_candidate(const struct op *op, const struct node *node)
{
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    guint others = 0;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *other = nodes->pdata[i];
        others += other->master_candidate && other != node;
    }
    return others == 0;
}

static bool may_be_no_candidate(const struct op *op, const struct node *node, GError **error)
{
    if (is_master(op, node))
        fettle_set_error(error, WRONG_STATE,
                         "node \"%s\" is the master, so it is a master candidate; make another "
                         "node the master first",
                         node->name);
    else if (node->master_candidate && is_last_candidate(op, node))
        fettle_set_error(error, WRONG_STATE, "node \"%s\" is the only master candidate",
                         node->name);
    else
        return true;
    return false;
}

/* Whoever has judged by a record is not to override what was said of the node since. */
static bool is_as_judged(const struct op *op, const struct node *node, GError **error)
{
    const struct op_node_set_params *params = op->params;
    guint64 version = 0;
    config_get(op_config(op), "node", node->uuid, &version);
    if (!params->if_version || version == params->if_version)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "node %s has been changed since this was asked for (its record has version "
                     "%" G_GUINT64_FORMAT ", not %" G_GUINT64_FORMAT
                     "); it stays as it is; look at it (fettle node info %s) and ask again",
                     node->name, version, params->if_version, node->name);
    return false;
}

static bool set_check(struct op *op, GError **error)
{
    const struct op_node_set_params *params = op->params;
    const struct node *node = op_find_node(op, params->node_name, error);
    if (!node || !op_is_answer("offline", params->offline, error) ||
        !op_is_answer("drained", params->drained, error) ||
        !op_is_answer("master_candidate", params->master_candidate, error) ||
        !op_is_answer("master_capable", params->master_capable, error) ||
        !is_as_judged(op, node, error))
        return false;
    if (!*params->offline && !*params->drained && !*params->master_candidate &&
        !*params->master_capable) {
        fettle_set_error(
            error, WRONG_INPUT,
            "nothing to change: set offline, drained, master_candidate or master_capable");
        return false;
    }
    if (!strcmp(params->master_candidate, "no") && !may_be_no_candidate(op, node, error))
        return false;
    if (*params->statement && strcmp(params->offline, "yes") != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "statement: says why a node is dead, so it goes with offline=yes only");
        return false;
    }
    return strcmp(params->offline, "yes") != 0 || may_be_offline(op, node, error);
}

static void set_offline(struct op *op, struct node *node, bool offline)
{
    const struct op_node_set_params *params = op->params;
    if (node->offline == offline && (!offline || !*params->statement))
        return;
    g_autofree char *back = invitation_way_back(node->name, node->primary_ip, node->port);
    if (!offline && node->keys_missed)
        op_log(op, "%s may have missed a renewal of the keys: if it stays unavailable: %s",
               node->name, back);
    if (!offline)
        node->offline_since = 0;
    else if (!node->offline)
        node->offline_since = op_now_seconds(op);
    else if (*node->offline_statement && strcmp(node->offline_statement, params->statement))
        op_log(op, "%s was offline already; in place of what was said then: %s", node->name,
               node->offline_statement);
    node->offline = offline;
    text_set(&node->offline_statement, offline ? params->statement : "");
}

/* The newest word about a candidate counts for the watcher too, unless it is told something else:
 * whom a person has taken off the list it does not put there again. */
static void set_candidate(const struct op *op, struct node *node)
{
    const struct op_node_set_params *params = op->params;
    if (*params->master_candidate)
        node->master_candidate = node->master_capable = !strcmp(params->master_candidate, "yes");
    if (*params->master_capable)
        node->master_capable = !strcmp(params->master_capable, "yes");
}

static bool build_set(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_node_set_params *params = op->params;
    const struct node *found = op_find_node(op, params->node_name, error);
    if (!found || !is_as_judged(op, found, error))
        return false;
    record_autoptr(node) node = node_copy(found);
    if (*params->offline)
        set_offline(op, node, !strcmp(params->offline, "yes"));
    if (*params->drained)
        node->drained = !strcmp(params->drained, "yes");
    set_candidate(op, node);
    json_autoptr before = node_to_json(found);
    json_t *after = node_to_json(node);
    if (json_equal(before, after))
        json_decref(after);
    else
        op_put(op, changes, "node", node->uuid, after);
    return true;
}

static bool set_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "change_node", build_set, NULL, error);
}

const struct op_impl ops_node[] = {
    {"OP_NODE_ADD", add_declare, add_check, add_exec, SEES_NAMED},
    {"OP_NODE_REMOVE", remove_declare, remove_check, remove_exec},
    /* Others wait for a dead node until somebody says that it is dead. */
    {"OP_NODE_SET_PARAMS", set_declare, set_check, set_exec, .urgent = true},
    {NULL},
};
