/*
 * OP_INSTANCE_REINSTALL: an image onto the first disk of a stopped instance. Writing it is a
 * generation of its own that nobody holds: a start, or a request to write, that was delayed on its
 * way is over by then (SAF-20).
 */
#include "core/ops/ops.h"
#include "core/ops/replica_copy.h"

#include <string.h>

static bool reinstall_declare(struct op *op, GError **error)
{
    const struct op_instance_reinstall *params = op->params;
    return op_declare_instance(op, params->instance_name, error);
}

/* --- check --- */

static const char *image_of(const struct op *op, const struct instance *instance)
{
    const struct op_instance_reinstall *params = op->params;
    return *params->os_type ? params->os_type : instance->os;
}

/* A reinstall that died while it copied to the replica leaves a paused guest. It goes with the
 * reinstall that settles the mark. */
static bool is_left_paused(const struct instance *instance)
{
    return *instance->holder && instance->task_state == TASK_REINSTALLING;
}

static bool state_is_right(const struct op *op, const struct instance *instance, GError **error)
{
    const struct guest_report *guest =
        report_guest(op_report(op, instance->primary_node), instance);
    if (!instance->disks->len)
        fettle_set_error(error, WRONG_STATE, "instance \"%s\" is diskless: it has no disks",
                         instance->name);
    else if (!*image_of(op, instance))
        fettle_set_error(error, WRONG_INPUT,
                         "os_type: instance \"%s\" was not created from an image; name one",
                         instance->name);
    else if ((*instance->holder && !is_left_paused(instance)) ||
             (guest && guest->state == GUEST_RUNNING))
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" is not stopped; stop it first: fettle instance shutdown "
                         "%s",
                         instance->name, instance->name);
    else
        return true;
    return false;
}

static bool image_fits(struct op *op, const struct instance *instance, GError **error)
{
    const char *name = image_of(op, instance);
    const struct disk *disk = instance->disks->pdata[0];
    struct image_info_args args = {.os_type = (char *)name};
    g_autoptr(GError) local = NULL;
    record_autoptr(image_info) info =
        op_ask(op, instance->primary_node, "image_info", &args, 0, &local);
    guint64 mib = info ? (info->bytes + MIB(1) - 1) / MIB(1) : 0;
    if (info && mib <= disk->size)
        return true;
    if (info)
        fettle_set_error(error, WRONG_INPUT,
                         "os_type: image \"%s\" has %" G_GUINT64_FORMAT
                         " MiB, disk 0 of instance \"%s\" only %" G_GUINT64_FORMAT
                         " MiB; make it larger first: fettle instance grow-disk",
                         name, mib, instance->name, disk->size);
    else if (fettle_error_is(local, UNKNOWN_ENTITY))
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "os_type: image \"%s\" does not exist on node \"%s\"; put it into "
                         "var/images there",
                         name, op_node_name(op, instance->primary_node));
    else
        g_propagate_prefixed_error(error, g_steal_pointer(&local), "os_type: ");
    return false;
}

static bool reinstall_check(struct op *op, GError **error)
{
    const struct op_instance_reinstall *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found || !instance_need_whole(op, found, error) ||
        !instance_need_settled(op, found, TASK_REINSTALLING, error))
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    return instance_gather(op, instance->primary_node, instance->secondary_node, error) &&
           state_is_right(op, instance, error) &&
           instance_need_node(op, instance, instance->primary_node, "primary", error) &&
           image_fits(op, instance, error);
}

/* --- exec --- */

static bool edit_reinstalling(struct instance_edit *edit, void *data, GError **error)
{
    const char *image = data;
    struct instance *instance = edit->instance;
    instance->generation++;
    instance->clean = false;
    text_set(&instance->os, image);
    edit_mark(edit, TASK_REINSTALLING);
    if (edit->replica)
        edit_replica(edit, REPLICA_STALE, "its instance is reinstalled");
    return true;
}

static bool close_paused(struct op *op, const struct instance *instance, GError **error)
{
    struct instance_stop stop = {.mark = TASK_REINSTALLING, .after = TASK_REINSTALLING};
    return !is_left_paused(instance) || instance_stop(op, instance->uuid, &stop, error);
}

static bool write_image(struct op *op, const struct instance *instance, GError **error)
{
    g_autoptr(GPtrArray) first = g_ptr_array_new();
    g_autoptr(GPtrArray) others = g_ptr_array_new();
    struct disks_create_args args = {.instance = instance->uuid,
                                     .replica = (char *)"",
                                     .disks = first,
                                     .kept = others,
                                     .os_type = instance->os,
                                     .disk_template = instance->disk_template,
                                     .generation = instance->generation};
    g_ptr_array_add(first, instance->disks->pdata[0]);
    for (guint i = 1; i < instance->disks->len; i++)
        g_ptr_array_add(others, instance->disks->pdata[i]);
    op_log(op, "copying image %s onto disk 0 of %s", instance->os, instance->name);
    return replica_copy_make_images(op, instance->primary_node, &args, error);
}

static bool equal_replica(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_reinstall *params = op->params;
    if (!*instance->replica || !params->wait_for_sync)
        return true;
    if (op_report(op, instance->secondary_node))
        return replica_copy_at_rest(op, instance->uuid, TASK_REINSTALLING, error);
    g_autofree char *why = op_no_report(op, instance->secondary_node);
    op_log(op, "%s %s: the replica there stays stale", op_node_name(op, instance->secondary_node),
           why);
    return true;
}

static bool reinstall_body(struct op *op, const struct instance *found, char *image,
                           bool *ret_writing, GError **error)
{
    const char *uuid = found->uuid;
    if (!close_paused(op, found, error) ||
        !instance_edit(op, "reinstall_instance", uuid, edit_reinstalling, image, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    *ret_writing = instance != NULL;
    if (!instance || !write_image(op, instance, error))
        return false;
    *ret_writing = false;
    return equal_replica(op, instance, error) && instance_settle(op, uuid, error);
}

static bool edit_not_reinstalled(struct instance_edit *edit, void *data, GError **error)
{
    text_set(&edit->instance->os, data);
    edit_give_up(edit);
    return true;
}

/* What was there before is there still, unless an earlier try whose end nobody knows has written
 * the image: then, and if it was so before, it is half installed on record, and installed anew. */
static bool give_up_writing(struct op *op, const struct instance *before, GError **error)
{
    if (op->repeated || before->task_state != TASK_NONE) {
        fettle_set_error(error, CANCELED,
                         "what disk 0 of instance \"%s\" has is not known; it is installed anew "
                         "by itself, or by: fettle instance reinstall %s: Job canceled by request",
                         before->name, before->name);
        return false;
    }
    if (!instance_edit(op, "reinstall_instance", before->uuid, edit_not_reinstalled, before->os,
                       error))
        return false;
    fettle_set_error(
        error, CANCELED,
        "disk 0 of instance \"%s\" has what it had before%s: Job canceled by request", before->name,
        *before->replica ? "; its replica is brought up to date by the next start" : "");
    return false;
}

static bool reinstall_exec(struct op *op, GError **error)
{
    const struct op_instance_reinstall *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    if (!found)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    g_autofree char *image = g_strdup(image_of(op, found));
    bool writing = false;
    GError *local = NULL;
    if (reinstall_body(op, instance, image, &writing, &local))
        return true;
    if (!writing || !fettle_error_is(local, CANCELED))
        return instance_fail(op, instance->uuid, local, error);
    g_error_free(local);
    return give_up_writing(op, instance, error);
}

const struct op_impl ops_reinstall[] = {
    {"OP_INSTANCE_REINSTALL", reinstall_declare, reinstall_check, reinstall_exec, SEES_NAMED},
    {NULL},
};
