/* See keys.h. */
#include "core/node/keys.h"

#include "base/log.h"

static bool has_keys(const struct authority *authority)
{
    return authority && authority->ops->status;
}

/* Locks them. */
static struct authority *enter(struct node_core *node, GError **error)
{
    struct authority *authority = node->env->authority;
    if (!has_keys(authority))
        fettle_set_error(error, WRONG_STATE, "this node daemon has no certificates");
    else if (!task_mutex_lock(&node->keys_lock))
        fettle_set_ended(error, "the node daemon");
    else
        return authority;
    return NULL;
}

void keys_clear(struct node_core *node)
{
    g_clear_pointer(&node->keys, keys_status_free);
}

struct keys_status *keys_report(struct node_core *node)
{
    struct authority *authority = node->env->authority;
    if (has_keys(authority) && authority->ops->is_stale && authority->ops->is_stale(authority))
        keys_clear(node);
    if (!node->keys && has_keys(authority)) {
        record_autoptr(keys_status) status = keys_status_new();
        if (authority->ops->status(authority, status, NULL))
            node->keys = g_steal_pointer(&status);
    }
    return node->keys ? keys_status_copy(node->keys) : NULL;
}

/* What they are now. */
static json_t *leave(struct node_core *node, bool ok, GError **error)
{
    struct authority *authority = node->env->authority;
    record_autoptr(keys_status) status = keys_status_new();
    ok = ok && authority->ops->status(authority, status, error);
    task_mutex_unlock(&node->keys_lock);
    keys_clear(node);
    return ok ? keys_status_to_json(status) : NULL;
}

json_t *keys_trust(struct node_core *node, struct epoch_fence_op *op, const void *args,
                   GError **error)
{
    const struct keys_trust_args *told = args;
    struct authority *authority = enter(node, error);
    return authority ? leave(node, authority->ops->trust(authority, told->authority, error), error)
                     : NULL;
}

json_t *keys_request(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error)
{
    struct authority *authority = enter(node, error);
    record_autoptr(keys_request) request = keys_request_new();
    if (!authority)
        return NULL;
    bool ok = authority->ops->request(authority, request, error);
    task_mutex_unlock(&node->keys_lock);
    return ok ? keys_request_to_json(request) : NULL;
}

json_t *keys_certify(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error)
{
    const struct keys_certify_args *given = args;
    struct authority *authority = enter(node, error);
    if (!authority)
        return NULL;
    bool ok = authority->ops->certify(authority, given->certificate, error);
    if (ok)
        log_info("", "this node has a new certificate");
    return leave(node, ok, error);
}
