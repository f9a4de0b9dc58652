/*
 * Room on nodes: whoever looks for it and takes it does so under the node-res lock of that node,
 * until what it takes is on record: the instance itself, or a reservation where something that can
 * take long comes before that (FUT-06 to 08). Networks, from which addresses are taken, are kept as
 * they are meanwhile. See op.h.
 */
#include "core/ops/op.h"

#include <string.h>

void op_lock_room(struct op *op, const char *node_uuid)
{
    if (!node_uuid || !*node_uuid)
        return;
    g_autofree char *name = g_strdup_printf("node-res/%s", node_uuid);
    op_lock(op, name, LOCK_EXCLUSIVE);
}

static void unlock_level(struct op *op, enum lock_level level)
{
    g_autoptr(GError) ignored = NULL;
    struct lock_level_args args = {.owner = &op->owner, .level = level};
    record_autoptr(nothing) done =
        env_call_record(op->env, NODE_LOCAL, ROLE_WCONFD, "free_locks_level", &args, op->stamp,
                        (guint)op->job, 0, &ignored);
}

void op_unlock_room(struct op *op)
{
    unlock_level(op, LEVEL_NODE_RES);
}

void op_lock_network(struct op *op, const char *network_uuid, enum lock_mode mode)
{
    g_autofree char *name = g_strdup_printf("network/%s", network_uuid);
    op_lock(op, name, mode);
}

void op_unlock_networks(struct op *op)
{
    unlock_level(op, LEVEL_NETWORK);
}

struct wanted_room {
    const char *name;
    const struct reserved_room *room;
};

static bool build_reservation(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct wanted_room *wanted = data;
    g_autoptr(GPtrArray) rooms = g_ptr_array_new();
    g_ptr_array_add(rooms, (void *)wanted->room);
    const struct reservation reservation = {.uuid = op->reservation,
                                            .name = (char *)wanted->name,
                                            .owner = &op->owner,
                                            .rooms = rooms,
                                            .since = op_now_seconds(op)};
    op_put(op, changes, "reservation", op->reservation, reservation_to_json(&reservation));
    return true;
}

bool op_reserve_room(struct op *op, const char *instance_name, const char *node_uuid,
                     guint64 memory, GError **error)
{
    const struct reserved_room room = {.node = (char *)node_uuid, .memory = memory};
    struct wanted_room wanted = {instance_name, &room};
    g_autofree char *uuid = env_uuid(op->env);
    text_set(&op->reservation, uuid);
    if (!op_commit_built(op, "reserve", build_reservation, &wanted, error))
        return false;
    op_unlock_room(op);
    return true;
}

void op_use_room(struct op *op, GPtrArray *changes)
{
    if (op->reservation && config_get(op_config(op), "reservation", op->reservation, NULL))
        op_delete(op, changes, "reservation", op->reservation);
}

static bool build_release(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    op_use_room(op, changes);
    return true;
}

void op_release_room(struct op *op)
{
    g_autoptr(GError) ignored = NULL;
    if (op->reservation)
        op_commit_built(op, "release_reservation", build_release, NULL, &ignored);
    g_clear_pointer(&op->reservation, g_free);
}
