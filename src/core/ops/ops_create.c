/*
 * OP_INSTANCE_CREATE: all or nothing. A creation that fails removes what it made and names what it
 * could not remove; one whose job dies leaves the mark `creating`, and what becomes of it
 * says SAF-23.
 */
#include "core/ops/create.h"
#include "core/ops/display.h"
#include "core/ops/nics.h"
#include "core/ops/ops.h"
#include "core/ops/replica_copy.h"
#include "core/placement/placement.h"

#include <string.h>

static struct instance *new_instance(const struct op *op)
{
    const struct op_instance_create *params = op->params;
    const struct cluster *cluster = config_cluster(op_config(op));
    struct instance *instance = instance_new();
    g_autofree char *uuid = env_uuid(op->env);
    text_set(&instance->uuid, uuid);
    text_set(&instance->name, params->instance_name);
    instance->ctime = op_now_seconds(op);
    instance->admin_state = ADMIN_DOWN;
    instance->disk_template = params->disk_template;
    instance->memory = params->memory;
    instance->vcpus = params->vcpus;
    if (cluster)
        text_set(&instance->machine_type, cluster->machine_type);
    text_set(&instance->os, create_image(params));
    text_set(&instance->kernel_path, params->kernel_path);
    text_set(&instance->initrd_path, params->initrd_path);
    text_set(&instance->kernel_args, params->kernel_args);
    g_clear_pointer(&instance->disks, g_ptr_array_unref);
    instance->disks = instance_new_disks(op, params->disks);
    text_set(&instance->primary_node, op->primary);
    instance->task_state = TASK_CREATING;
    instance->task_owner = op->job;
    instance->task_since = op_now_seconds(op);
    if (!create_is_mirror(params))
        return instance;
    g_autofree char *replica = env_uuid(op->env);
    text_set(&instance->secondary_node, op->secondary);
    text_set(&instance->replica, replica);
    return instance;
}

static void add_tags(struct op *op, GPtrArray *changes, const char *uuid)
{
    const struct op_instance_create *params = op->params;
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; params->tags && i < params->tags->len; i++) {
        struct tag tag = {
            .kind = TAG_INSTANCE, .object = (char *)uuid, .tag = params->tags->pdata[i]};
        char *key = config_tag_key(TAG_INSTANCE, uuid, tag.tag);
        if (!g_hash_table_contains(seen, key))
            op_put(op, changes, "tag", key, tag_to_json(&tag));
        g_hash_table_add(seen, key);
    }
}

/* --- the reservation: room and addresses, until the instance has them (FUT-06 to 08) --- */

static void room_unref(void *room)
{
    reserved_room_free(room);
}

static void add_room(GPtrArray *rooms, const char *node, guint64 memory, guint64 disk)
{
    if (!*node || (!memory && !disk))
        return;
    struct reserved_room *room = reserved_room_new();
    text_set(&room->node, node);
    room->memory = memory;
    room->disk = disk;
    g_ptr_array_add(rooms, room);
}

static json_t *reservation_of(const struct op *op, const struct instance *instance)
{
    g_autoptr(GPtrArray) rooms = g_ptr_array_new_with_free_func(room_unref);
    g_autoptr(GPtrArray) macs = g_ptr_array_new();
    g_autoptr(GPtrArray) ips = g_ptr_array_new_with_free_func(g_free);
    guint64 disk = create_wanted_space(op->params);
    add_room(rooms, instance->primary_node, instance->memory, disk);
    add_room(rooms, instance->secondary_node, 0, disk);
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        g_ptr_array_add(macs, nic->mac);
        if (*nic->ip)
            g_ptr_array_add(ips, config_ip_key(nic));
    }
    const struct reservation reservation = {.uuid = instance->uuid,
                                            .name = instance->name,
                                            .owner = (struct owner *)&op->owner,
                                            .rooms = rooms,
                                            .macs = macs,
                                            .ips = ips,
                                            .port = instance->network_port,
                                            .since = op_now_seconds(op)};
    return reservation_to_json(&reservation);
}

struct making {
    struct instance *instance;
    bool built; /* Nothing stood in the way when this was last looked at. */
};

/* Room, name and addresses are looked at anew with each try: others may have taken them. */
static bool build_reservation(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_instance_create *params = op->params;
    struct making *making = data;
    struct instance *instance = making->instance;
    making->built = false;
    GPtrArray *nics = create_name_is_free(op, error) && create_room_is_there(op, error)
                          ? nics_new(op, params->nics, error)
                          : NULL;
    if (!nics)
        return false;
    g_clear_pointer(&instance->nics, g_ptr_array_unref);
    instance->nics = nics;
    instance->network_port = 0;
    if (!display_set(op, instance, params->vnc_bind_address, params->network_port, error))
        return false;
    op_put(op, changes, "reservation", instance->uuid, reservation_of(op, instance));
    making->built = true;
    return true;
}

/* Addresses that were drawn may have been drawn by another creation at the same moment: wconfd
 * takes the first and refuses the others, which draw anew. Each refusal is another's success, so
 * this ends by itself at the latest when the pool is empty; what was named and is taken, is found
 * before anything is asked for. */
static bool reserve(struct op *op, struct instance *instance, GError **error)
{
    struct making making = {.instance = instance};
    for (guint tries = 1;; tries++) {
        g_autoptr(GError) local = NULL;
        if (!follow_refresh(op->follow, error))
            return false;
        if (op_commit_built(op, "reserve", build_reservation, &making, &local))
            return true;
        bool overtaken = making.built && fettle_error_is(local, ALREADY_EXISTS);
        if (!overtaken || tries >= LIMIT_RESERVE_TRIES) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
    }
}

static bool build_release(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct instance *instance = data;
    if (config_get(op_config(op), "reservation", instance->uuid, NULL))
        op_delete(op, changes, "reservation", instance->uuid);
    return true;
}

/* --- the instance --- */

static bool build_new(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct instance *instance = data;
    if (!config_get(op_config(op), "reservation", instance->uuid, NULL)) {
        fettle_set_error(error, TEMPORARY,
                         "what was reserved for %s is free again: its job was taken for dead",
                         instance->name);
        return false;
    }
    op_put(op, changes, "instance", instance->uuid, instance_to_json(instance));
    if (*instance->replica) {
        struct replica replica = {.uuid = instance->replica,
                                  .instance = instance->uuid,
                                  .node = instance->secondary_node,
                                  .sync = 1,
                                  .state = REPLICA_STALE,
                                  .why = (char *)"not copied yet",
                                  .since = op_now_seconds(op)};
        op_put(op, changes, "replica", replica.uuid, replica_to_json(&replica));
    }
    add_tags(op, changes, instance->uuid);
    op_delete(op, changes, "reservation", instance->uuid);
    return true;
}

static bool make_disks(struct op *op, const struct instance *instance, GError **error)
{
    if (!instance->disks->len)
        return true;
    struct disks_create_args args = {.instance = instance->uuid,
                                     .replica = (char *)"",
                                     .disks = instance->disks,
                                     .os_type = instance->os,
                                     .disk_template = instance->disk_template};
    if (!replica_copy_make_images(op, instance->primary_node, &args, error))
        return false;
    if (!*instance->replica)
        return true;
    /* Blank: the first start copies everything. */
    args.replica = instance->replica;
    args.os_type = (char *)"";
    return replica_copy_make_images(op, instance->secondary_node, &args, error);
}

static bool first_start(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_create *params = op->params;
    bool wait = params->wait_for_sync && *instance->replica;
    struct instance_start start = {
        .mark = TASK_CREATING, .run = params->start, .wish_up = params->start};
    if (!params->start && !wait)
        return true;
    if (!instance_start(op, instance->uuid, &start, error))
        return false;
    if (wait && !instance_wait_mirror(op, instance->uuid, error))
        return false;
    struct instance_stop stop = {.mark = TASK_CREATING, .after = TASK_CREATING};
    return params->start || instance_stop(op, instance->uuid, &stop, error);
}

/* From here on only the instance is held exclusively, for as long as the disks take. */
static bool put_on_record(struct op *op, struct instance *instance, GError **error)
{
    /* Nothing of the shared folder is reserved, as a configuration daemon of an older version would
     * not know what that is: nobody else looks for room in it until the instance is on record. */
    bool shared = create_shared_space(op->params) > 0;
    if (!reserve(op, instance, error))
        return false;
    if (!shared)
        op_unlock_room(op);
    if (!op_commit_built(op, "create_instance", build_new, instance, error))
        return false;
    if (shared)
        op_unlock_room(op);
    for (guint i = 0; i < instance->nics->len; i++) {
        if (!*((const struct nic *)instance->nics->pdata[i])->network)
            continue;
        op_unlock_networks(op);
        break;
    }
    return true;
}

static bool create_body(struct op *op, struct instance *instance, GError **error)
{
    if (!put_on_record(op, instance, error))
        return false;
    display_warn(op, instance);
    return make_disks(op, instance, error) && first_start(op, instance, error) &&
           instance_settle(op, instance->uuid, error);
}

/* Leaves nothing behind, or says in `error` what. The failure is then one before any change. */
static void undo(struct op *op, const struct instance *instance, GError **error)
{
    g_autoptr(GString) left = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    if (fettle_error_is(*error, KILLED))
        return;
    if (follow_refresh(op->follow, &failure) &&
        !config_get(op_config(op), "instance", instance->uuid, NULL)) {
        /* wconfd does it when this process has ended. */
        g_autoptr(GError) kept = NULL;
        op_commit_built(op, "release_reservation", build_release, (void *)instance, &kept);
        op->changed = false;
        return;
    }
    op_log(op, "undoing the creation: %s", (*error)->message);
    if (!failure && instance_remove(op, instance->uuid, 0, true, left, &failure) && !left->len) {
        op->changed = false;
        if (fettle_error_is(*error, CANCELED)) {
            g_clear_error(error);
            fettle_set_error(error, CANCELED,
                             "the creation was undone, nothing of instance \"%s\" is left: Job "
                             "canceled by request",
                             instance->name);
        }
        return;
    }
    g_autofree char *message =
        failure ? g_strdup_printf("%s; the half made instance could not be removed: %s",
                                  (*error)->message, failure->message)
                : g_strdup_printf("%s; what was made on %s could not be removed", (*error)->message,
                                  left->str);
    g_free((*error)->message);
    (*error)->message = g_steal_pointer(&message);
}

static bool create_exec(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    record_autoptr(instance) instance = new_instance(op);
    GError *local = NULL;
    if (strcmp(params->os_type, instance->os))
        op_log(op, "os_type: \"%s\" is left out: an instance without disks has none for it",
               params->os_type);
    op_warn_tags(op, params->tags);
    if (!create_body(op, instance, &local)) {
        undo(op, instance, &local);
        g_propagate_error(error, local);
        return false;
    }
    op->result = json_array();
    json_array_append_new(op->result, json_string(op_node_name(op, op->primary)));
    if (*instance->replica)
        json_array_append_new(op->result, json_string(op_node_name(op, op->secondary)));
    return true;
}

const struct op_impl ops_create[] = {
    {"OP_INSTANCE_CREATE", create_declare, create_check, create_exec, SEES_NAMED},
    {NULL},
};
