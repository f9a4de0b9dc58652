/*
 * OP_INSTANCE_SET_PARAMS: what a guest is made of, changed while there is none. The devices of a
 * running one are what its process was started with, and both sides of a migration must have the
 * same.
 */
#include "core/ops/display.h"
#include "core/ops/instance.h"
#include "core/ops/ops.h"

#include <string.h>

#define NONE "none"

static bool modify_declare(struct op *op, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    return op_declare_instance(op, params->instance_name, error);
}

/* The address as it is to be. */
static const char *wanted_address(const struct op *op, const struct instance *instance)
{
    const struct op_instance_set_params *params = op->params;
    if (!*params->vnc_bind_address)
        return instance->vnc_bind_address;
    return strcmp(params->vnc_bind_address, NONE) ? params->vnc_bind_address : "";
}

static bool is_so_already(const struct op *op, const struct instance *instance)
{
    const struct op_instance_set_params *params = op->params;
    return !strcmp(wanted_address(op, instance), instance->vnc_bind_address) &&
           (!params->network_port || params->network_port == instance->network_port);
}

/* A port that it has already may be of an earlier range. */
static bool display_is_right(const struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    const char *address = wanted_address(op, instance);
    bool has_it = *address && params->network_port == instance->network_port;
    return display_check(op, address, has_it ? 0 : params->network_port, error);
}

static bool can_change(const struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    if (!instance_need_whole(instance, error) || !instance_need_settled(instance, TASK_NONE, error))
        return false;
    if (!*params->vnc_bind_address && !params->network_port)
        fettle_set_error(error, WRONG_INPUT, "nothing to change: name at least one parameter");
    else if (is_so_already(op, instance))
        fettle_set_error(error, WRONG_INPUT, "nothing to change: instance \"%s\" is so already",
                         instance->name);
    else if (*instance->holder)
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" is not stopped, and a running guest keeps the devices "
                         "that it was started with; stop it first: fettle instance shutdown %s",
                         instance->name, instance->name);
    else
        return display_is_right(op, instance, error);
    return false;
}

/* Port and all, on a copy. */
static bool apply(const struct op *op, struct instance *instance, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    g_autofree char *address = g_strdup(wanted_address(op, instance));
    return can_change(op, instance, error) &&
           display_set(op, instance, address, params->network_port, error);
}

static bool modify_check(struct op *op, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    record_autoptr(instance) instance = found ? instance_copy(found) : NULL;
    return instance && apply(op, instance, error);
}

struct modifying {
    bool built; /* Nothing stood in the way when this was last looked at. */
};

static bool edit_params(struct instance_edit *edit, void *data, GError **error)
{
    struct modifying *modifying = data;
    modifying->built = false;
    modifying->built = apply(edit->op, edit->instance, error);
    return modifying->built;
}

/* As with reservations: another job may have been given the same port at the same moment. */
static bool modify_exec(struct op *op, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    g_autofree char *uuid = g_strdup(found->uuid);
    for (guint tries = 1;; tries++) {
        struct modifying modifying = {false};
        g_autoptr(GError) local = NULL;
        if (instance_edit(op, "modify_instance", uuid, edit_params, &modifying, &local))
            break;
        bool overtaken = modifying.built && fettle_error_is(local, ALREADY_EXISTS);
        if (!overtaken || tries >= LIMIT_RESERVE_TRIES) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
    }
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (instance)
        display_warn(op, instance);
    return instance != NULL;
}

const struct op_impl ops_modify[] = {
    {"OP_INSTANCE_SET_PARAMS", modify_declare, modify_check, modify_exec, SEES_NAMED},
    {NULL},
};
