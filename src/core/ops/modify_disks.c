/*
 * Disks that come to a stopped instance, or go. See modify_disks.h.
 */
#include "core/ops/modify_disks.h"

#include "core/ops/replica_copy.h"

#include <string.h>

static guint length(const GPtrArray *list)
{
    return list ? list->len : 0;
}

bool modify_disks_asked(const struct op_instance_set_params *params)
{
    return length(params->add_disks) || length(params->remove_disks);
}

void modify_disks_lock_room(struct op *op, const struct instance *instance)
{
    const struct op_instance_set_params *params = op->params;
    if (length(params->add_disks))
        instance_lock_room(op, instance);
}

/* --- what goes --- */

/* Images that an earlier job has left: disks that are off the record, or never came onto it. */
static bool is_left(const struct op *op, const struct instance *instance, guint64 disk)
{
    guint64 there = report_images(op_report(op, instance->primary_node), instance, "");
    if (*instance->replica)
        there |=
            report_images(op_report(op, instance->secondary_node), instance, instance->replica);
    bool told = there != G_MAXUINT64; /* a node of an older version does not say which */
    if (instance->disk_template == TEMPLATE_SHAREDFILE)
        return disk == instance->disks->len; /* no node says what is in the shared folder */
    return disk < LIMIT_DISKS && told && (there >> disk & 1);
}

static bool find_disk(const struct op *op, const struct instance *instance, guint index,
                      guint64 *ret_disk, GError **error)
{
    const struct op_instance_set_params *params = op->params;
    const char *text = params->remove_disks->pdata[index];
    guint64 disk = instance->disks->len - 1;
    bool number = !strcmp(text, "-1") ||
                  g_ascii_string_to_unsigned(text, 10, 0, LIMIT_DISKS - 1, &disk, NULL);
    if (number && (disk < instance->disks->len || is_left(op, instance, disk))) {
        *ret_disk = disk;
        return true;
    }
    fettle_set_error(error, WRONG_INPUT,
                     "remove_disks[%u]: \"%s\" is not the number of a disk of instance \"%s\"; "
                     "they are 0 to %u",
                     index, text, instance->name, instance->disks->len - 1);
    return false;
}

/* How many stay: those before the first one that goes, if all after it go too. */
static bool count_kept(const struct op *op, const struct instance *instance, guint *ret_first,
                       GError **error)
{
    const struct op_instance_set_params *params = op->params;
    bool goes[LIMIT_DISKS] = {false};
    guint first = instance->disks->len;
    for (guint i = 0; i < length(params->remove_disks); i++) {
        guint64 disk;
        if (!find_disk(op, instance, i, &disk, error))
            return false;
        goes[disk] = true;
    }
    while (first > 0 && goes[first - 1])
        first--;
    for (guint i = 0; i < first; i++) {
        if (!goes[i])
            continue;
        fettle_set_error(error, WRONG_INPUT,
                         "remove_disks: disk %u of instance \"%s\" is not its last one, and the "
                         "others keep their numbers: those from %u to %u would have to go too",
                         i, instance->name, i + 1, instance->disks->len - 1);
        return false;
    }
    *ret_first = first;
    if (first > 0)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "remove_disks: disk 0 of instance \"%s\" stays as long as it does; remove the "
                     "instance (fettle instance remove %s) or write an image onto that disk "
                     "(fettle instance reinstall %s)",
                     instance->name, instance->name, instance->name);
    return false;
}

/* --- what comes --- */

static bool additions_are_right(const struct op *op, const struct instance *instance, guint kept,
                                GError **error)
{
    const struct op_instance_set_params *params = op->params;
    guint count = kept + length(params->add_disks);
    if (count > LIMIT_DISKS) {
        fettle_set_error(error, LIMIT,
                         "add_disks: instance \"%s\" would have %u disks; %d are the limit",
                         instance->name, count, LIMIT_DISKS);
        return false;
    }
    for (guint i = 0; i < length(params->add_disks); i++) {
        const struct disk_spec *spec = params->add_disks->pdata[i];
        if (instance->disk_template != TEMPLATE_MIRROR || spec->format == FORMAT_RAW)
            continue;
        fettle_set_error(error, WRONG_INPUT,
                         "add_disks[%u].format: a mirrored instance has raw disks only; the copy "
                         "is byte by byte",
                         i);
        return false;
    }
    return true;
}

/* What has to be there beyond what goes. */
static guint64 more_wanted(const struct op *op, const struct instance *instance, guint kept)
{
    const struct op_instance_set_params *params = op->params;
    guint64 comes = 0, goes = 0;
    for (guint i = 0; i < length(params->add_disks); i++)
        comes += ((const struct disk_spec *)params->add_disks->pdata[i])->size;
    for (guint i = kept; i < instance->disks->len; i++)
        goes += ((const struct disk *)instance->disks->pdata[i])->size;
    return comes > goes ? comes - goes : 0;
}

static bool room_is_there(struct op *op, const struct instance *instance, guint64 more,
                          GError **error)
{
    g_autofree char *who = g_strdup_printf("instance \"%s\"", instance->name);
    return instance_need_room(op, instance, "add_disks: ", who, more, error);
}

bool modify_disks_check(struct op *op, const struct instance *instance, GError **error)
{
    guint kept;
    if (instance->disk_template == TEMPLATE_DISKLESS) {
        const struct op_instance_set_params *params = op->params;
        fettle_set_error(error, WRONG_INPUT,
                         "%s: instance \"%s\" is diskless and stays so: how disks are kept is said "
                         "when an instance is made (fettle instance create --disk-template)",
                         length(params->add_disks) ? "add_disks" : "remove_disks", instance->name);
        return false;
    }
    return instance_need_node(op, instance, instance->primary_node, "primary", error) &&
           count_kept(op, instance, &kept, error) &&
           additions_are_right(op, instance, kept, error) &&
           replica_copy_need_replica(op, instance, "has to have the same disks", error) &&
           room_is_there(op, instance, more_wanted(op, instance, kept), error);
}

/* --- exec --- */

struct disks_change {
    guint first;      /* so many stay */
    GPtrArray *disks; /* all, as they are to be; of struct disk */
};

static GPtrArray *wanted_disks(const struct op *op, const struct instance *instance, guint first)
{
    const struct op_instance_set_params *params = op->params;
    GPtrArray *disks = instance_new_disks(op, params->add_disks);
    for (guint i = 0; i < first; i++)
        g_ptr_array_insert(disks, (gint)i, disk_copy(instance->disks->pdata[i]));
    return disks;
}

/* A generation that nobody holds, so that no request of another job is taken for one of this. What
 * the replica is a copy of gets the same images, or loses the same: what was in-sync stays so. */
static bool edit_begin(struct instance_edit *edit, void *data, GError **error)
{
    const struct disks_change *change = data;
    struct instance *instance = edit->instance;
    const struct replica *replica = edit->replica;
    instance->generation++;
    if (instance->disks->len > change->first)
        g_ptr_array_set_size(instance->disks, (gint)change->first);
    if (!replica || replica->state != REPLICA_IN_SYNC)
        return true;
    g_autofree char *why = g_strdup(replica->why);
    edit_replica(edit, REPLICA_IN_SYNC, why);
    return true;
}

static bool edit_add(struct instance_edit *edit, void *data, GError **error)
{
    const struct disks_change *change = data;
    GPtrArray *disks = edit->instance->disks;
    for (guint i = disks->len; i < change->disks->len; i++)
        g_ptr_array_add(disks, disk_copy(change->disks->pdata[i]));
    return true;
}

static bool renew(struct op *op, const struct instance *instance, const char *node,
                  const char *replica, const struct disks_change *change, GError **error)
{
    struct disks_renew_args args = {.instance = instance->uuid,
                                    .replica = (char *)replica,
                                    .generation = instance->generation,
                                    .disk_template = instance->disk_template,
                                    .disks = change->disks,
                                    .first = change->first};
    record_autoptr(nothing) done = op_act(op, node, "disks_renew", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* What goes is off the record before it is gone; what comes is there, blank on both nodes and so
 * equal, before it is on record. */
static bool change_disks(struct op *op, const char *uuid, const struct disks_change *change,
                         GError **error)
{
    if (!instance_edit(op, "change_disks", uuid, edit_begin, (void *)change, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance ||
        (*instance->replica &&
         !renew(op, instance, instance->secondary_node, instance->replica, change, error)) ||
        !renew(op, instance, instance->primary_node, "", change, error))
        return false;
    if (change->disks->len > change->first &&
        !instance_edit(op, "change_disks", uuid, edit_add, (void *)change, error))
        return false;
    op_unlock_room(op);
    return true;
}

static void tell(struct op *op, const struct instance *before, const struct disks_change *change)
{
    for (guint i = change->first; i < before->disks->len; i++)
        op_log(op, "disk %u of %s, with %" G_GUINT64_FORMAT " MiB, is removed", i, before->name,
               ((const struct disk *)before->disks->pdata[i])->size);
    for (guint i = change->first; i < change->disks->len; i++)
        op_log(op, "disk %u of %s has %" G_GUINT64_FORMAT " MiB, all zeros", i, before->name,
               ((const struct disk *)change->disks->pdata[i])->size);
    if (change->first == before->disks->len && change->disks->len == change->first)
        op_log(op, "%s has no disk %u on record; an image that was left of one is removed",
               before->name, change->first);
}

/* Says what there is now, and how to go on. */
static void explain(const struct op *op, const struct instance *before,
                    const struct disks_change *change, GError **error)
{
    const struct instance *now = config_get(op_config(op), "instance", before->uuid, NULL);
    if (!now || now->generation == before->generation || fettle_error_is(*error, KILLED))
        return;
    if (now->disks->len < before->disks->len)
        g_prefix_error(error,
                       "instance \"%s\" has lost disk %u on record, but not everywhere its image; "
                       "go on with: fettle instance modify %s --remove-disk %u: ",
                       before->name, change->first, before->name, change->first);
    else
        g_prefix_error(error, "instance \"%s\" has the disks that it had: ", before->name);
}

bool modify_disks(struct op *op, const char *uuid, GError **error)
{
    struct disks_change change = {0};
    record_autoptr(instance) before = instance_now(op, uuid, error);
    if (!before || !count_kept(op, before, &change.first, error))
        return false;
    change.disks = wanted_disks(op, before, change.first);
    bool done = change_disks(op, uuid, &change, error);
    if (done)
        tell(op, before, &change);
    else
        explain(op, before, &change, error);
    g_ptr_array_unref(change.disks);
    return done;
}
