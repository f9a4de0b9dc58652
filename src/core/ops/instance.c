/*
 * Changes of an instance's record. See instance.h.
 */
#include "core/ops/instance.h"

#include "core/config/fault.h"

static void free_disk(void *disk)
{
    disk_free(disk);
}

GPtrArray *instance_new_disks(const struct op *op, const GPtrArray *specs)
{
    GPtrArray *disks = g_ptr_array_new_with_free_func(free_disk);
    for (guint i = 0; specs && i < specs->len; i++) {
        const struct disk_spec *spec = specs->pdata[i];
        g_autofree char *uuid = env_uuid(op->env);
        struct disk *disk = disk_new();
        text_set(&disk->uuid, uuid);
        disk->size = spec->size;
        disk->format = spec->format;
        g_ptr_array_add(disks, disk);
    }
    return disks;
}

struct instance *instance_now(const struct op *op, const char *uuid, GError **error)
{
    const struct instance *instance = config_get(op_config(op), "instance", uuid, NULL);
    if (!instance) {
        fettle_set_error(error, UNKNOWN_ENTITY, "instance %s does not exist any more", uuid);
        return NULL;
    }
    struct instance *copy = instance_copy(instance);
    fault_enforce(op_config(op), copy);
    return copy;
}

struct edit_call {
    const char *uuid;
    instance_edit_fn fn;
    void *data;
};

/* A mark that is a fault's own is never on record: who changes it has ended the fault. One that
 * keeps nobody off ends with the next operation that succeeds, unless it leaves a door open. */
static void edit_fault(struct instance_edit *edit, const struct fault *fault,
                       const struct instance *before)
{
    struct instance *after = edit->instance;
    const struct instance *recorded =
        config_get(op_config(edit->op), "instance", after->uuid, NULL);
    bool enforced = recorded->task_state != before->task_state;
    if (enforced && after->task_state == before->task_state &&
        after->task_owner == before->task_owner) {
        after->task_state = recorded->task_state;
        after->task_owner = recorded->task_owner;
        after->task_since = recorded->task_since;
    } else if (enforced || (edit->settled && !fault_leaves_door_open(fault))) {
        g_autofree char *key = fault_key(fault->subject_kind, fault->subject);
        op_delete(edit->op, edit->changes, "fault", key);
    }
}

static bool build_edit(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct edit_call *call = data;
    record_autoptr(instance) instance = instance_now(op, call->uuid, error);
    if (!instance)
        return false;
    const struct replica *known = op_replica_of(op, instance);
    record_autoptr(replica) replica = known ? replica_copy(known) : NULL;
    record_autoptr(instance) before = instance_copy(instance);
    guint64 generation = before->generation;
    struct instance_edit edit = {
        .op = op, .instance = instance, .replica = replica, .changes = changes};
    if (!call->fn(&edit, call->data, error))
        return false;
    const struct fault *fault = fault_of(op_config(op), "instance", call->uuid);
    if (fault)
        edit_fault(&edit, fault, before);
    if (before->task_owner != 0 && before->task_owner != op->job && !op->taken_over)
        op->taken_over = g_steal_pointer(&before);
    op_put(op, changes, "instance", call->uuid, instance_to_json(instance));
    if (instance->generation != generation)
        instance_renew_attachments(op, call->uuid, changes);
    if (edit.replica_changed)
        op_put(op, changes, "replica", replica->uuid, replica_to_json(replica));
    return true;
}

bool instance_edit(struct op *op, const char *change, const char *uuid, instance_edit_fn fn,
                   void *data, GError **error)
{
    struct edit_call call = {uuid, fn, data};
    return op_commit_built(op, change, build_edit, &call, error);
}

void edit_mark(struct instance_edit *edit, enum task_state mark)
{
    struct instance *instance = edit->instance;
    bool same = instance->task_state == mark && instance->task_owner == edit->op->job;
    edit->settled = mark == TASK_NONE;
    instance->task_state = mark;
    instance->task_owner = mark == TASK_NONE ? 0 : edit->op->job;
    if (mark != TASK_REMOVING)
        instance->task_over = TASK_NONE;
    if (!same)
        instance->task_since = mark == TASK_NONE ? 0 : op_now_seconds(edit->op);
}

void edit_give_up(struct instance_edit *edit)
{
    edit_mark(edit, TASK_NONE);
    edit->settled = false;
}

void edit_replica(struct instance_edit *edit, enum replica_state state, const char *why)
{
    struct replica *replica = edit->replica;
    if (replica->state != state || !replica->since)
        replica->since = op_now_seconds(edit->op);
    replica->state = state;
    replica->generation = edit->instance->generation;
    replica->sync++;
    g_autofree char *valid = g_utf8_make_valid(why, -1);
    g_autofree char *brief =
        g_utf8_strlen(valid, -1) > 200 ? g_utf8_substring(valid, 0, 200) : g_strdup(valid);
    text_set(&replica->why, brief);
    edit->replica_changed = true;
}

static bool edit_settle(struct instance_edit *edit, void *data, GError **error)
{
    edit_mark(edit, TASK_NONE);
    return true;
}

bool instance_settle(struct op *op, const char *uuid, GError **error)
{
    return instance_edit(op, "mark_instance", uuid, edit_settle, NULL, error);
}

static bool edit_failed(struct instance_edit *edit, void *data, GError **error)
{
    edit_give_up(edit);
    return true;
}

void instance_settle_after(struct op *op, const char *uuid, const GError *error)
{
    /* The node may or may not have done it. The mark of an ended job makes the watcher look. */
    if (env_no_answer(error) || fettle_error_is(error, KILLED))
        return;
    g_autoptr(GError) ignored = NULL; /* the mark stays then, with the same effect */
    instance_edit(op, "mark_instance", uuid, edit_failed, NULL, &ignored);
}

bool instance_fail(struct op *op, const char *uuid, GError *failure, GError **error)
{
    instance_settle_after(op, uuid, failure);
    g_propagate_error(error, failure);
    return false;
}

static bool edit_stale(struct instance_edit *edit, void *data, GError **error)
{
    if (edit->replica && edit->replica->state != REPLICA_STALE)
        edit_replica(edit, REPLICA_STALE, data);
    return true;
}

bool instance_set_stale(struct op *op, const char *uuid, const char *why, GError **error)
{
    g_autofree char *copy = g_strdup(why);
    return instance_edit(op, "change_replica", uuid, edit_stale, copy, error);
}
