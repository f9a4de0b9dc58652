/*
 * OP_INSTANCE_CREATE: all or nothing. A creation that fails removes what it made and names what it
 * could not remove; one whose job dies leaves the mark `creating`, and the watcher removes it.
 */
#include "core/ops/instance.h"
#include "core/ops/ops.h"
#include "core/ops/placement.h"

#include <string.h>

static bool is_mirror(const struct op_instance_create *params)
{
    return params->disk_template == TEMPLATE_MIRROR;
}

static guint64 wanted_disk(const struct op_instance_create *params)
{
    guint64 sum = 0;
    for (guint i = 0; params->disks && i < params->disks->len; i++)
        sum += ((const struct disk_spec *)params->disks->pdata[i])->size;
    return sum;
}

/* --- declare --- */

static bool shape_is_right(const struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    guint disks = params->disks ? params->disks->len : 0;
    guint nodes = config_count(op_config(op), "node");
    if (!is_mirror(params) && disks)
        fettle_set_error(error, WRONG_INPUT, "disks: a diskless instance has none");
    else if (!is_mirror(params) && *params->snode)
        fettle_set_error(error, WRONG_INPUT, "snode: a diskless instance has no secondary node");
    else if (!is_mirror(params) && *params->os_type)
        fettle_set_error(error, WRONG_INPUT, "os_type: a diskless instance has no disk for it");
    else if (is_mirror(params) && !disks)
        fettle_set_error(error, WRONG_INPUT, "disks: a mirrored instance needs at least one");
    else if (is_mirror(params) && nodes < 2)
        fettle_set_error(error, WRONG_STATE,
                         "a mirrored instance needs two nodes, the cluster has %u", nodes);
    else
        return true;
    return false;
}

static bool name_is_free(const struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    if (!config_find(op_config(op), "instance", params->instance_name, NULL))
        return true;
    fettle_set_error(error, ALREADY_EXISTS, "instance \"%s\" exists already",
                     params->instance_name);
    return false;
}

static bool gather_all_online(struct op *op, GError **error)
{
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    g_autoptr(GPtrArray) wanted = g_ptr_array_new();
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->offline)
            g_ptr_array_add(wanted, node->uuid);
    }
    return op_gather_reports(op, wanted, error);
}

/* What a node must offer to take the part. */
static struct placement_need need_of(const struct op *op, bool primary)
{
    const struct op_instance_create *params = op->params;
    return (struct placement_need){
        .what = primary ? "the primary node" : "the secondary node",
        .memory = primary ? params->memory : 0,
        .disk = wanted_disk(params),
        .prefer = primary ? op->primary : op->secondary,
        .rank_by_disk = !primary,
    };
}

static bool choose(struct op *op, bool primary, const char *taken, GError **error)
{
    struct placement_need need = need_of(op, primary);
    need.excluded[0] = taken;
    need.because[0] = primary ? "is to be the secondary node" : "is to be the primary node";
    const struct node *node = placement_choose(op_config(op), op->reports, &need, error);
    if (node)
        op_set_text(primary ? &op->primary : &op->secondary, node->uuid);
    return node != NULL;
}

static bool named_node(struct op *op, const char *name, char **ret_uuid, GError **error)
{
    const struct node *node = op_find_node(op, name, error);
    if (node)
        op_set_text(ret_uuid, node->uuid);
    return node != NULL;
}

/* A choice that was made before the locks were granted is kept as long as it fits. */
static bool find_nodes(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    bool second = is_mirror(params);
    if (*params->pnode && !named_node(op, params->pnode, &op->primary, error))
        return false;
    if (second && *params->snode && !named_node(op, params->snode, &op->secondary, error))
        return false;
    bool choose_second = second && !*params->snode;
    if ((!*params->pnode || choose_second) && !gather_all_online(op, error))
        return false;
    if (!*params->pnode && !choose(op, true, *params->snode ? op->secondary : NULL, error))
        return false;
    return !choose_second || choose(op, false, op->primary, error);
}

static bool create_declare(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    if (!shape_is_right(op, error) || !name_is_free(op, error) || !find_nodes(op, error))
        return false;
    op_lock_instance(op, params->instance_name);
    op_lock_node(op, op->primary, LOCK_SHARED);
    op_lock_node(op, op->secondary, LOCK_SHARED);
    return true;
}

/* --- check --- */

static bool node_takes_it(struct op *op, bool primary, GError **error)
{
    const char *uuid = primary ? op->primary : op->secondary;
    const struct node *node = config_get(op_config(op), "node", uuid, NULL);
    const struct node_report *report = op_report(op, uuid);
    struct placement_need need = need_of(op, primary);
    g_autofree char *why = NULL;
    if (placement_fits(op_config(op), node, report, &need, &why))
        return true;
    if (node->offline || node->drained)
        fettle_set_error(error, WRONG_STATE, "%s: node \"%s\" %s", primary ? "pnode" : "snode",
                         node->name, why);
    else if (!report)
        fettle_set_error(error, TEMPORARY, "%s: node \"%s\" %s", primary ? "pnode" : "snode",
                         node->name, why);
    else
        fettle_set_error(error, NO_RESOURCES, "%s: node \"%s\" %s", primary ? "pnode" : "snode",
                         node->name, why);
    return false;
}

static bool image_fits(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    if (!*params->os_type)
        return true;
    struct image_info_args args = {.os_type = params->os_type};
    g_autoptr(GError) local = NULL;
    record_autoptr(image_info) info = op_ask(op, op->primary, "image_info", &args, 0, &local);
    if (!info && fettle_error_is(local, UNKNOWN_ENTITY)) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "os_type: image \"%s\" does not exist on node \"%s\"; put it into "
                         "var/images there",
                         params->os_type, op_node_name(op, op->primary));
        return false;
    }
    if (!info) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    const struct disk_spec *first = params->disks->pdata[0];
    guint64 mib = (info->bytes + MIB(1) - 1) / MIB(1);
    if (mib <= first->size)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "disks[0].size: image \"%s\" has %" G_GUINT64_FORMAT
                     " MiB, the disk only %" G_GUINT64_FORMAT " MiB",
                     params->os_type, mib, first->size);
    return false;
}

static bool create_check(struct op *op, GError **error)
{
    const struct op_instance_create *params = op->params;
    for (guint i = 0; params->tags && i < params->tags->len; i++) {
        if (!op_check_tag(params->tags->pdata[i], error))
            return false;
    }
    if (is_mirror(params) && !strcmp(op->primary, op->secondary)) {
        fettle_set_error(error, WRONG_INPUT,
                         "snode: \"%s\" is the primary node; the replica needs another",
                         op_node_name(op, op->secondary));
        return false;
    }
    return instance_gather(op, op->primary, op->secondary, error) &&
           node_takes_it(op, true, error) &&
           (!is_mirror(params) || node_takes_it(op, false, error)) && image_fits(op, error);
}

/* --- exec --- */

static void disk_unref(void *disk)
{
    disk_free(disk);
}

static GPtrArray *new_disks(const struct op *op)
{
    const struct op_instance_create *params = op->params;
    GPtrArray *disks = g_ptr_array_new_with_free_func(disk_unref);
    for (guint i = 0; params->disks && i < params->disks->len; i++) {
        const struct disk_spec *spec = params->disks->pdata[i];
        g_autofree char *uuid = env_uuid(op->env);
        struct disk *disk = disk_new();
        op_set_text(&disk->uuid, uuid);
        disk->size = spec->size;
        g_ptr_array_add(disks, disk);
    }
    return disks;
}

static struct instance *new_instance(const struct op *op)
{
    const struct op_instance_create *params = op->params;
    const struct cluster *cluster = config_cluster(op_config(op));
    struct instance *instance = instance_new();
    g_autofree char *uuid = env_uuid(op->env);
    op_set_text(&instance->uuid, uuid);
    op_set_text(&instance->name, params->instance_name);
    instance->ctime = op_now_seconds(op);
    instance->admin_state = ADMIN_DOWN;
    instance->disk_template = params->disk_template;
    instance->memory = params->memory;
    instance->vcpus = params->vcpus;
    if (cluster)
        op_set_text(&instance->machine_type, cluster->machine_type);
    op_set_text(&instance->os, params->os_type);
    g_clear_pointer(&instance->disks, g_ptr_array_unref);
    instance->disks = new_disks(op);
    op_set_text(&instance->primary_node, op->primary);
    instance->task_state = TASK_CREATING;
    instance->task_owner = op->job;
    instance->task_since = op_now_seconds(op);
    if (!is_mirror(params))
        return instance;
    g_autofree char *replica = env_uuid(op->env);
    op_set_text(&instance->secondary_node, op->secondary);
    op_set_text(&instance->replica, replica);
    return instance;
}

static bool build_new(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_instance_create *params = op->params;
    struct instance *instance = data;
    if (!name_is_free(op, error))
        return false;
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
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; params->tags && i < params->tags->len; i++) {
        struct tag tag = {
            .kind = TAG_INSTANCE, .object = instance->uuid, .tag = params->tags->pdata[i]};
        char *key = config_tag_key(TAG_INSTANCE, instance->uuid, tag.tag);
        if (!g_hash_table_contains(seen, key))
            op_put(op, changes, "tag", key, tag_to_json(&tag));
        g_hash_table_add(seen, key);
    }
    return true;
}

/* Two creations with shared node locks may both have seen the last room. Both are on record now;
 * the one that was committed later gives way. */
static bool still_room(struct op *op, const struct instance *instance, GError **error)
{
    guint64 version = 0;
    config_get(op_config(op), "instance", instance->uuid, &version);
    const char *nodes[] = {instance->primary_node, instance->secondary_node};
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        const struct node_report *report = *nodes[i] ? op_report(op, nodes[i]) : NULL;
        struct placement_room room;
        if (!report)
            continue;
        placement_room(op_config(op), report, instance->uuid, version, &room);
        guint64 memory = i == 0 ? instance->memory : 0;
        guint64 disk = placement_disk_size(instance->disks);
        if ((memory && (gint64)memory > room.memory) || (disk && (gint64)disk > room.disk)) {
            fettle_set_error(error, NO_RESOURCES, "another instance has just taken the room on %s",
                             op_node_name(op, nodes[i]));
            return false;
        }
    }
    return true;
}

static bool make_disks(struct op *op, const struct instance *instance, GError **error)
{
    if (!instance->disks->len)
        return true;
    struct disks_create_args args = {.instance = instance->uuid,
                                     .replica = (char *)"",
                                     .disks = instance->disks,
                                     .os_type = instance->os};
    record_autoptr(nothing) first =
        op_act(op, instance->primary_node, "disks_create", &args, ACT_PATIENCE_MS, error);
    if (!first || !*instance->replica)
        return first != NULL;
    /* Blank: the first start copies everything. */
    args.replica = instance->replica;
    args.os_type = (char *)"";
    record_autoptr(nothing) second =
        op_act(op, instance->secondary_node, "disks_create", &args, ACT_PATIENCE_MS, error);
    return second != NULL;
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

static bool create_body(struct op *op, struct instance *instance, GError **error)
{
    return op_commit_built(op, build_new, instance, error) && still_room(op, instance, error) &&
           make_disks(op, instance, error) && first_start(op, instance, error) &&
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
        op->changed = false;
        return;
    }
    op_log(op, "undoing the creation: %s", (*error)->message);
    if (!failure && instance_remove(op, instance->uuid, 0, true, left, &failure) && !left->len) {
        op->changed = false;
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
    record_autoptr(instance) instance = new_instance(op);
    GError *local = NULL;
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
    {"OP_INSTANCE_CREATE", create_declare, create_check, create_exec},
    {NULL},
};
