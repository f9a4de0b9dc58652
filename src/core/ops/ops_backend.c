/*
 * OP_BACKEND_ADD, OP_BACKEND_SET_PARAMS, OP_BACKEND_REMOVE: places where volumes are kept. They
 * need no lock: each is one commit, which fails if the back end has changed meanwhile. What a back
 * end may be is judged where every commit is (invariants_storage.c); here only what a person has to
 * be told more plainly. The place itself is looked at by who serves it.
 */
#include "core/ops/ops.h"

#include "proto/storage/backend_place.h"

#include <string.h>

#define CEPH_USER "fettle"
#define CEPH_CONF "/etc/ceph/ceph.conf"

static const struct backend *find(const struct op *op, const char *name, GError **error)
{
    return config_find(op_config(op), "backend", name, error);
}

static bool no_locks(struct op *op, GError **error)
{
    return true;
}

/* --- its parts --- */

/* UUIDs of nodes, each once, in the order of the names. */
static bool set_nodes(const struct op *op, struct backend *backend, const GPtrArray *names,
                      GError **error)
{
    g_ptr_array_set_size(backend->nodes, 0);
    for (guint i = 0; i < names->len; i++) {
        const struct node *node = op_find_node(op, names->pdata[i], error);
        if (!node) {
            g_prefix_error(error, "nodes: ");
            return false;
        }
        if (!g_ptr_array_find_with_equal_func(backend->nodes, node->uuid, g_str_equal, NULL))
            g_ptr_array_add(backend->nodes, g_strdup(node->uuid));
    }
    return true;
}

/* As it stands on record: without what means nothing. Whose it may be the rules say. */
static bool set_path(const char *field, char **ret_path, const char *path, GError **error)
{
    if (*path && !g_path_is_absolute(path)) {
        fettle_set_error(error, WRONG_INPUT,
                         "%s: \"%s\" does not begin with /; it must be the same on every node",
                         field, path);
        return false;
    }
    g_autofree char *plain = *path ? g_canonicalize_filename(path, "/") : g_strdup("");
    text_set(ret_path, plain);
    return true;
}

static bool set_place(struct backend *backend, const struct op_backend_add *params, GError **error)
{
    bool rbd = backend->kind == BACKEND_RBD;
    if (!rbd && !*params->path) {
        fettle_set_error(error, WRONG_INPUT, "path: a back end of kind dir needs one");
        return false;
    }
    text_set(&backend->pool, params->pool);
    text_set(&backend->namespace, params->namespace);
    text_set(&backend->user, rbd && !*params->user ? CEPH_USER : params->user);
    return set_path("path", &backend->path, params->path, error) &&
           set_path("conf", &backend->conf, rbd && !*params->conf ? CEPH_CONF : params->conf,
                    error);
}

/* --- add --- */

static struct backend *new_backend(const struct op *op, GError **error)
{
    const struct op_backend_add *params = op->params;
    g_autofree char *uuid = env_uuid(op->env);
    record_autoptr(backend) backend = backend_new();
    if (find(op, params->backend_name, NULL)) {
        fettle_set_error(error, ALREADY_EXISTS, "back end \"%s\" exists already",
                         params->backend_name);
        return NULL;
    }
    text_set(&backend->uuid, uuid);
    text_set(&backend->name, params->backend_name);
    backend->kind = params->kind;
    backend->reserved_percent = params->reserved_percent;
    backend->overcommit = params->overcommit;
    backend->backups = !strcmp(params->backups, "yes");
    backend->images = !strcmp(params->images, "yes");
    bool good = op_is_answer("backups", params->backups, error) &&
                op_is_answer("images", params->images, error) &&
                set_nodes(op, backend, params->nodes, error) && set_place(backend, params, error) &&
                backend_place_check(backend, error);
    return good ? g_steal_pointer(&backend) : NULL;
}

static bool add_check(struct op *op, GError **error)
{
    record_autoptr(backend) backend = new_backend(op, error);
    return backend != NULL;
}

static bool build_add(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    record_autoptr(backend) backend = new_backend(op, error);
    if (!backend)
        return false;
    op_put(op, changes, "backend", backend->uuid, backend_to_json(backend));
    return true;
}

static bool add_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "add_backend", build_add, NULL, error);
}

/* --- modify --- */

static struct backend *changed_backend(const struct op *op, GError **error)
{
    const struct op_backend_set_params *params = op->params;
    const struct backend *now = find(op, params->backend_name, error);
    if (!now)
        return NULL;
    record_autoptr(backend) backend = backend_copy(now);
    if (!op_is_answer("backups", params->backups, error) ||
        !op_is_answer("images", params->images, error))
        return NULL;
    if (*params->images)
        backend->images = !strcmp(params->images, "yes");
    if (*params->backups)
        backend->backups = !strcmp(params->backups, "yes");
    if (params->nodes->len > 0 && !set_nodes(op, backend, params->nodes, error))
        return NULL;
    if (params->reserved_percent >= 0)
        backend->reserved_percent = (guint64)params->reserved_percent;
    if (params->overcommit >= 0)
        backend->overcommit = (guint64)params->overcommit;
    if (backend->overcommit < 100) {
        fettle_set_error(error, WRONG_INPUT, "overcommit: must be at least 100 (%%)");
        return NULL;
    }
    if (!backend_place_check(backend, error))
        return NULL;
    json_autoptr before = backend_to_json(now);
    json_autoptr after = backend_to_json(backend);
    if (json_equal(before, after)) {
        fettle_set_error(error, WRONG_INPUT, "nothing to change: back end \"%s\" is so already",
                         backend->name);
        return NULL;
    }
    return g_steal_pointer(&backend);
}

static bool set_check(struct op *op, GError **error)
{
    record_autoptr(backend) backend = changed_backend(op, error);
    return backend != NULL;
}

static bool build_set(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    record_autoptr(backend) backend = changed_backend(op, error);
    if (!backend)
        return false;
    op_put(op, changes, "backend", backend->uuid, backend_to_json(backend));
    return true;
}

static bool set_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "change_backend", build_set, NULL, error);
}

/* --- remove --- */

/* What is on it the configuration daemon knows, as a job has no copy of volumes. */
static bool remove_check(struct op *op, GError **error)
{
    const struct op_backend_remove *params = op->params;
    const struct backend *backend = find(op, params->backend_name, error);
    return backend && op_backend_empty(op, backend, error);
}

static bool build_remove(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_backend_remove *params = op->params;
    const struct backend *backend = find(op, params->backend_name, error);
    if (backend)
        op_delete(op, changes, "backend", backend->uuid);
    return backend != NULL;
}

static bool remove_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "remove_backend", build_remove, NULL, error);
}

const struct op_impl ops_backend[] = {
    {"OP_BACKEND_ADD", no_locks, add_check, add_exec, SEES_NAMED},
    {"OP_BACKEND_SET_PARAMS", no_locks, set_check, set_exec, SEES_NAMED},
    {"OP_BACKEND_REMOVE", no_locks, remove_check, remove_exec, SEES_NAMED},
    {NULL},
};
