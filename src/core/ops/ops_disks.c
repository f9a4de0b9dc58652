/*
 * OP_INSTANCE_GROW_DISK, OP_INSTANCE_ACTIVATE_DISKS, OP_INSTANCE_DEACTIVATE_DISKS.
 */
#include "core/ops/ops.h"
#include "core/ops/replica_copy.h"

#include <string.h>

/* A copy of the record, whole, with disks and no migration under way, nor a dead job's mark other
 * than `own`. */
static struct instance *instance_with_disks(const struct op *op, const char *name,
                                            enum task_state own, GError **error)
{
    const struct instance *instance = op_find_instance(op, name, error);
    if (!instance || !instance_need_whole(op, instance, error) ||
        !instance_need_settled(op, instance, own, error))
        return NULL;
    if (instance->disks->len)
        return instance_copy(instance);
    fettle_set_error(error, WRONG_STATE, "instance \"%s\" is diskless: it has no disks",
                     instance->name);
    return NULL;
}

/* The guest of the generation that may run, by the report of its node; NULL: there is none. */
static const struct guest_report *current_guest(const struct op *op,
                                                const struct instance *instance)
{
    const struct guest_report *guest =
        report_guest(op_report(op, instance->primary_node), instance);
    bool current = *instance->holder && guest && guest->generation == instance->generation;
    return current ? guest : NULL;
}

/* --- grow-disk --- */

static bool grow_declare(struct op *op, GError **error)
{
    const struct op_instance_grow_disk *params = op->params;
    if (!op_declare_instance(op, params->instance_name, error))
        return false;
    const struct instance *instance = op_find_instance(op, params->instance_name, error);
    if (!instance)
        return false;
    instance_lock_room(op, instance);
    return true;
}

static const struct disk *disk_of(const struct op *op, const struct instance *instance)
{
    const struct op_instance_grow_disk *params = op->params;
    return instance->disks->pdata[params->disk];
}

/* The size that is asked for; the one that is on record already makes sure of it once more. */
static guint64 wanted_size(const struct op *op, const struct instance *instance)
{
    const struct op_instance_grow_disk *params = op->params;
    return params->absolute ? params->amount : disk_of(op, instance)->size + params->amount;
}

static bool size_is_right(const struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_grow_disk *params = op->params;
    if (params->disk >= instance->disks->len) {
        fettle_set_error(error, WRONG_INPUT,
                         "disk: instance \"%s\" has no disk %" G_GUINT64_FORMAT
                         "; its last one is %u",
                         instance->name, params->disk, instance->disks->len - 1);
        return false;
    }
    guint64 size = disk_of(op, instance)->size, wanted = wanted_size(op, instance);
    if (wanted > LIMIT_DISK_MIB)
        fettle_set_error(error, WRONG_INPUT,
                         "amount: disk %" G_GUINT64_FORMAT " of instance \"%s\" would have "
                         "%" G_GUINT64_FORMAT " MiB; a disk has at most %u MiB",
                         params->disk, instance->name, wanted, LIMIT_DISK_MIB);
    else if (wanted < size)
        fettle_set_error(error, WRONG_INPUT,
                         "amount: %" G_GUINT64_FORMAT " MiB is not larger: disk %" G_GUINT64_FORMAT
                         " of instance \"%s\" has %" G_GUINT64_FORMAT " MiB, and disks only grow",
                         wanted, params->disk, instance->name, size);
    else
        return true;
    return false;
}

static bool room_is_there(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_grow_disk *params = op->params;
    guint64 more = wanted_size(op, instance) - disk_of(op, instance)->size;
    g_autofree char *who = g_strdup_printf("disk %" G_GUINT64_FORMAT " of instance \"%s\"",
                                           params->disk, instance->name);
    return instance_need_room(op, instance, "", who, more, error);
}

static bool grow_check(struct op *op, GError **error)
{
    const struct op_instance_grow_disk *params = op->params;
    record_autoptr(instance) instance =
        instance_with_disks(op, params->instance_name, TASK_GROWING_DISK, error);
    return instance && size_is_right(op, instance, error) &&
           instance_gather(op, instance->primary_node, instance->secondary_node, error) &&
           instance_need_node(op, instance, instance->primary_node, "primary", error) &&
           instance_need_own_disks(op, instance, error) &&
           replica_copy_need_replica(op, instance, "has to grow along", error) &&
           room_is_there(op, instance, error);
}

struct growth {
    guint index;
    guint64 size;
    bool mirrored; /* a guest of it is there, and may be mirrored */
    bool every;    /* an earlier job has died in the middle, of whatever disk */
    bool recorded; /* out: the new size is on record */
};

/* The promise ends before the mirror does. Without a guest both images grow by the same zeros: what
 * the record says of the replica stays true. */
static bool edit_growing(struct instance_edit *edit, void *data, GError **error)
{
    const struct growth *growth = data;
    edit_mark(edit, TASK_GROWING_DISK);
    if (growth->mirrored && edit->replica->state != REPLICA_STALE)
        edit_replica(edit, REPLICA_STALE, "a disk is made larger");
    return true;
}

static bool edit_size(struct instance_edit *edit, void *data, GError **error)
{
    struct growth *growth = data;
    struct disk *disk = edit->instance->disks->pdata[growth->index];
    disk->size = MAX(disk->size, growth->size);
    return true;
}

static bool end_mirror(struct op *op, const struct instance *instance, const struct growth *growth,
                       GError **error)
{
    struct guest_args guest = {.instance = instance->uuid, .generation = instance->generation};
    struct replica_close_args close = {.instance = instance->uuid,
                                       .replica = instance->replica,
                                       .generation = instance->generation};
    if (growth->mirrored) {
        record_autoptr(nothing) detached =
            op_act(op, instance->holder, "mirror_detach", &guest, ACT_PATIENCE_MS, error);
        if (!detached)
            return false;
    }
    /* An export has the size that its image had when it was opened. */
    record_autoptr(nothing) closed =
        op_act(op, instance->secondary_node, "replica_close", &close, ACT_PATIENCE_MS, error);
    return closed != NULL;
}

static bool grow_image(struct op *op, const struct instance *instance, const char *node,
                       const char *replica, guint index, guint64 size, GError **error)
{
    struct disk_grow_args args = {.instance = instance->uuid,
                                  .replica = (char *)replica,
                                  .generation = instance->generation,
                                  .disk = index,
                                  .size = size};
    record_autoptr(nothing) done = op_act(op, node, "disk_grow", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* What is as large already stays as it is. */
static bool grow_node(struct op *op, const struct instance *instance, const char *node,
                      const char *replica, const struct growth *growth, GError **error)
{
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        guint64 size = i == growth->index ? growth->size : disk->size;
        if ((i == growth->index || growth->every) &&
            !grow_image(op, instance, node, replica, i, size, error))
            return false;
    }
    return true;
}

/* The replica first, then the record, then the images in use: wherever this is cut off, a replica
 * is never smaller than what is copied to it, and a new one is made large enough. */
static bool grow_images(struct op *op, const struct instance *instance, struct growth *growth,
                        GError **error)
{
    bool replica = *instance->replica;
    if (replica &&
        (!end_mirror(op, instance, growth, error) ||
         !grow_node(op, instance, instance->secondary_node, instance->replica, growth, error)))
        return false;
    if (!instance_edit(op, "grow_disk", instance->uuid, edit_size, growth, error))
        return false;
    growth->recorded = true;
    op_unlock_room(op);
    return grow_node(op, instance, instance->primary_node, "", growth, error);
}

static bool mirror_again(struct op *op, const struct instance *instance, bool wait, GError **error)
{
    return replica_copy_set_syncing(op, instance->uuid, TASK_GROWING_DISK, "a disk was made larger",
                                    error) &&
           replica_copy_attach(op, instance->uuid, true, error) &&
           (!wait || instance_wait_mirror(op, instance->uuid, error));
}

static bool grow_body(struct op *op, const struct instance *instance, struct growth *growth,
                      GError **error)
{
    const struct op_instance_grow_disk *params = op->params;
    GError *local = NULL;
    if (!instance_edit(op, "change_replica", instance->uuid, edit_growing, growth, error))
        return false;
    if (!grow_images(op, instance, growth, &local)) {
        g_autoptr(GError) ignored = NULL; /* then it is stale on record, and a repair mends that */
        if (growth->mirrored && !env_no_answer(local) && !fettle_error_is(local, KILLED))
            mirror_again(op, instance, false, &ignored);
        g_propagate_error(error, local);
        return false;
    }
    op_log(op, "disk %u of %s has %" G_GUINT64_FORMAT " MiB", growth->index, instance->name,
           growth->size);
    return (!growth->mirrored || mirror_again(op, instance, params->wait_for_sync, error)) &&
           instance_settle(op, instance->uuid, error);
}

static bool grow_exec(struct op *op, GError **error)
{
    const struct op_instance_grow_disk *params = op->params;
    record_autoptr(instance) instance =
        instance_with_disks(op, params->instance_name, TASK_GROWING_DISK, error);
    if (!instance)
        return false;
    struct growth growth = {.index = (guint)params->disk,
                            .size = wanted_size(op, instance),
                            .mirrored = *instance->replica && current_guest(op, instance),
                            .every = instance->task_state == TASK_GROWING_DISK};
    GError *local = NULL;
    if (grow_body(op, instance, &growth, &local))
        return true;
    /* Nothing but the wait for the copy can be canceled. */
    if (fettle_error_is(local, CANCELED))
        g_prefix_error(&local,
                       "disk %u of instance \"%s\" has %" G_GUINT64_FORMAT
                       " MiB; its copy goes on, nobody waits for it: ",
                       growth.index, instance->name, growth.size);
    else if (growth.recorded)
        g_prefix_error(&local,
                       "%" G_GUINT64_FORMAT " MiB is on record, but not everything is done; go on "
                       "with: fettle instance grow-disk %s %u %" G_GUINT64_FORMAT " --absolute: ",
                       growth.size, instance->name, growth.index, growth.size);
    return instance_fail(op, instance->uuid, local, error);
}

/* --- activate-disks --- */

static bool activate_declare(struct op *op, GError **error)
{
    const struct op_instance_activate_disks *params = op->params;
    return op_declare_instance(op, params->instance_name, error);
}

static bool up_to_date(const struct op *op, const struct instance *instance)
{
    const struct replica *replica = op_replica_of(op, instance);
    bool open = *instance->holder;
    return !replica || (replica->state == REPLICA_IN_SYNC && (open || instance->clean));
}

static bool activate_check(struct op *op, GError **error)
{
    const struct op_instance_activate_disks *params = op->params;
    record_autoptr(instance) instance =
        instance_with_disks(op, params->instance_name, TASK_NONE, error);
    if (!instance ||
        !instance_gather(op, instance->primary_node, instance->secondary_node, error) ||
        !instance_need_node(op, instance, instance->primary_node, "primary", error))
        return false;
    const struct guest_report *guest = current_guest(op, instance);
    if (up_to_date(op, instance))
        return true;
    if (!guest || guest->state != GUEST_RUNNING)
        return instance_need_node(op, instance, instance->secondary_node, "secondary", error);
    fettle_set_error(error, WRONG_STATE,
                     "instance \"%s\" runs, and its replica on %s is not in sync; mend it with: "
                     "fettle instance replace-disks %s",
                     instance->name, op_node_name(op, instance->secondary_node), instance->name);
    return false;
}

/* A copy that an earlier job has begun is waited for; else the next generation makes one. */
static bool activate_copy(struct op *op, const struct instance *instance, GError **error)
{
    const struct op_instance_activate_disks *params = op->params;
    const struct guest_report *guest = current_guest(op, instance);
    struct instance_stop stop = {.mark = TASK_REPLACING_DISKS, .after = TASK_REPLACING_DISKS};
    struct instance_start start = {.mark = TASK_REPLACING_DISKS};
    bool copying = guest && guest->mirror == MIRROR_SYNCING;
    if (copying && !params->wait_for_sync)
        return true;
    if (copying)
        return instance_wait_mirror(op, instance->uuid, error) &&
               instance_stop(op, instance->uuid, &stop, error);
    if (guest && !instance_stop(op, instance->uuid, &stop, error))
        return false;
    return params->wait_for_sync
               ? replica_copy_at_rest(op, instance->uuid, TASK_REPLACING_DISKS, error)
               : instance_start(op, instance->uuid, &start, error);
}

/* As Ganeti answers: where each disk is. Files are named as below the node's folder. */
static json_t *places(const struct op *op, const struct instance *instance)
{
    json_t *list = json_array();
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        bool shared = instance->disk_template == TEMPLATE_SHAREDFILE;
        g_autofree char *name = g_strdup_printf("disk/%u", i);
        g_autofree char *path =
            g_strdup_printf("var/%s/%s.disk%u.%s", shared ? "shared" : "disks", instance->uuid, i,
                            enum_word(&disk_format_words, (int)disk->format));
        json_array_append_new(
            list, json_make("[s, s, s]", op_node_name(op, instance->primary_node), name, path));
    }
    return list;
}

static bool activate_exec(struct op *op, GError **error)
{
    const struct op_instance_activate_disks *params = op->params;
    record_autoptr(instance) instance =
        instance_with_disks(op, params->instance_name, TASK_NONE, error);
    if (!instance)
        return false;
    op->result = places(op, instance);
    if (up_to_date(op, instance))
        return true;
    GError *local = NULL;
    return (activate_copy(op, instance, &local) && instance_settle(op, instance->uuid, &local)) ||
           instance_fail(op, instance->uuid, local, error);
}

/* --- deactivate-disks --- */

static bool deactivate_declare(struct op *op, GError **error)
{
    const struct op_instance_deactivate_disks *params = op->params;
    return op_declare_instance(op, params->instance_name, error);
}

/* To close what a dead job has left paused is what settles most of their marks. */
static struct instance *to_be_deactivated(const struct op *op, const char *name, GError **error)
{
    const struct instance *found = op_find_instance(op, name, error);
    bool closes = found && found->task_state != TASK_GROWING_DISK && *found->holder;
    return found ? instance_with_disks(op, name, closes ? found->task_state : TASK_NONE, error)
                 : NULL;
}

static bool deactivate_check(struct op *op, GError **error)
{
    const struct op_instance_deactivate_disks *params = op->params;
    record_autoptr(instance) instance = to_be_deactivated(op, params->instance_name, error);
    if (!instance || !instance_gather(op, instance->primary_node, NULL, error))
        return false;
    const struct guest_report *guest = current_guest(op, instance);
    if (guest && guest->state == GUEST_RUNNING) {
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" runs; stop it first: fettle instance shutdown %s",
                         instance->name, instance->name);
        return false;
    }
    return !*instance->holder || params->force ||
           instance_need_node(op, instance, instance->primary_node, "primary", error);
}

static bool deactivate_exec(struct op *op, GError **error)
{
    const struct op_instance_deactivate_disks *params = op->params;
    record_autoptr(instance) instance = to_be_deactivated(op, params->instance_name, error);
    if (!instance)
        return false;
    struct instance_stop stop = {.mark = TASK_STOPPING};
    if (!*instance->holder) {
        op_log(op, "nothing uses the disks of %s", instance->name);
        return true;
    }
    if (!op_report(op, instance->primary_node)) {
        /* What it does nobody can tell from here, so nothing is put on record. */
        g_autofree char *why = op_no_report(op, instance->primary_node);
        op_log(op, "%s %s; what it has of %s is settled when it comes back",
               op_node_name(op, instance->primary_node), why, instance->name);
        return true;
    }
    GError *local = NULL;
    return instance_stop(op, instance->uuid, &stop, &local) ||
           instance_fail(op, instance->uuid, local, error);
}

const struct op_impl ops_disks[] = {
    {"OP_INSTANCE_GROW_DISK", grow_declare, grow_check, grow_exec, SEES_NAMED},
    {"OP_INSTANCE_ACTIVATE_DISKS", activate_declare, activate_check, activate_exec, SEES_NAMED},
    {"OP_INSTANCE_DEACTIVATE_DISKS", deactivate_declare, deactivate_check, deactivate_exec,
     SEES_NAMED},
    {NULL},
};
