/*
 * From one generation of an instance to the next: start, stop, and the wait for its copy (SAF-10,
 * SAF-11). See instance.h.
 */
#include "core/ops/instance.h"

#include "core/config/allocated.h"
#include "core/config/fault.h"
#include "core/ops/long_call.h"
#include "proto/task_table.h"

#include <string.h>

/* --- starting --- */

struct start_call {
    const struct instance_start *how;
    bool full; /* out: everything is to be copied first */
};

/* Every acknowledged write is on the replica, and may be nowhere else (SAF-24). */
static bool replica_is_ahead(const struct instance *instance, const struct replica *replica)
{
    return replica && replica->state == REPLICA_IN_SYNC && !instance->clean;
}

bool instance_need_sound(const struct op *op, const struct instance *instance,
                         const struct replica *replica, GError **error)
{
    if (!replica_is_ahead(instance, replica) || instance->sound == SOUND_YES)
        return true;
    const char *where = op_node_name(op, instance->primary_node);
    fettle_set_error(
        error, UNSAFE,
        "%s %s, and the replica of instance \"%s\" on %s has every acknowledged write: fettle "
        "instance failover %s; or, if the images on %s are to be gone on with all the same: fettle "
        "instance startup %s --from-primary --statement ...",
        where,
        instance->sound == SOUND_NO ? "says that the images that it ran from are not sound"
                                    : "does not say whether the images that it ran from are sound",
        instance->name, op_node_name(op, replica->node), instance->name, where, instance->name);
    return false;
}

/* The commit that makes the next generation possible. Whether the copy may be skipped, or must not
 * be begun, is decided here, on the record that the commit is compared with: only a clean close
 * allows the one (SAF-11), only sound images the other (SAF-24). */
static bool edit_start(struct instance_edit *edit, void *data, GError **error)
{
    struct start_call *call = data;
    struct instance *instance = edit->instance;
    if (op_node_offline(edit->op, instance->primary_node)) {
        fettle_set_error(error, WRONG_STATE, "%s, the primary node of instance \"%s\", is offline",
                         op_node_name(edit->op, instance->primary_node), instance->name);
        return false;
    }
    if (!instance_need_sound(edit->op, instance, edit->replica, error))
        return false;
    bool equal = instance->clean && edit->replica && edit->replica->state == REPLICA_IN_SYNC;
    call->full = !equal;
    if (replica_is_ahead(edit->instance, edit->replica))
        edit->replica->keep = edit->replica->generation;
    instance->generation++;
    instance->clean = false;
    instance->sound = SOUND_UNKNOWN;
    allocated_take_next(instance);
    text_set(&instance->holder, instance->primary_node);
    edit_mark(edit, call->how->mark);
    if (call->how->wish_up)
        instance->admin_state = ADMIN_UP;
    if (!edit->replica)
        return true;
    if (op_node_offline(edit->op, edit->replica->node))
        edit_replica(edit, REPLICA_STALE, "started while its node is offline");
    else if (equal)
        edit_replica(edit, REPLICA_IN_SYNC, "continues after a clean close");
    else
        edit_replica(edit, REPLICA_SYNCING, "copied in full at the start");
    return true;
}

static bool edit_why(struct instance_edit *edit, void *data, GError **error)
{
    if (edit->replica && edit->replica->state == REPLICA_SYNCING) {
        text_set(&edit->replica->why, data);
        edit->replica_changed = true;
    }
    return true;
}

/* What was whole is written over: until the copy is, one copy is all there is. */
bool instance_tell_of_one_copy(struct op *op, const struct instance *instance, const char *node,
                               GError **error)
{
    g_autofree char *why = g_strdup_printf(
        "copied in full; one copy is left meanwhile, as %s could not keep the images as they were",
        op_node_name(op, node));
    op_log(op, "replica on %s: %s", op_node_name(op, node), why);
    return instance_edit(op, "change_replica", instance->uuid, edit_why, why, error);
}

static void free_subject(void *subject)
{
    collect_subject_free(subject);
}

static void refuse(GPtrArray *subjects, const struct instance *instance, const char *task,
                   guint64 owner)
{
    const struct task_row *row = task_row_of(TASK_KIND_instance, task);
    if (!row || !(row->flags & TASK_FENCE_ALL) || owner == 0)
        return;
    struct collect_subject subject = {.instance = instance->uuid,
                                      .dead_job = owner,
                                      .disks = instance->disks,
                                      .disk_template = instance->disk_template};
    g_ptr_array_add(subjects, collect_subject_copy(&subject));
}

/* What is still being done for that job has the instance's lock, and so comes before whatever is
 * asked next; that it is told as busy is as good. */
bool instance_refuse_dead(struct op *op, const struct instance *instance, const char *node,
                          GError **error)
{
    const struct fault *fault = fault_of(op_config(op), "instance", instance->uuid);
    g_autoptr(GPtrArray) subjects = g_ptr_array_new_with_free_func(free_subject);
    struct collect_args args = {.subjects = subjects};
    g_autoptr(GError) local = NULL;
    bool own = instance->task_owner == 0 || instance->task_owner == op->job;
    const struct instance *marked = own ? op->taken_over : instance;
    if (marked && !strcmp(marked->uuid, instance->uuid))
        refuse(subjects, marked, enum_word(&task_state_words, (int)marked->task_state),
               marked->task_owner);
    if (fault)
        refuse(subjects, instance, fault->task, fault->owner);
    if (subjects->len == 0)
        return true;
    guint64 job = ((const struct collect_subject *)subjects->pdata[0])->dead_job;
    record_autoptr(collect_result) done =
        op_act(op, node, "collect", &args, OPEN_PATIENCE_MS, &local);
    if (done)
        return true;
    if (fettle_error_is(local, KILLED))
        g_propagate_error(error, g_steal_pointer(&local));
    else
        fettle_set_error(
            error, TEMPORARY,
            "%s; job %" G_GUINT64_FORMAT
            " ended in the middle of its work on instance \"%s\", and %s has to refuse "
            "first what that job may have asked it for; try again when it answers",
            local->message, job, instance->name, op_node_name(op, node));
    return false;
}

struct export_target *instance_open_exports(struct op *op, const struct instance *instance,
                                            const char *node, const struct replica_open_args *args,
                                            guint patience_ms, GError **error)
{
    return instance_refuse_dead(op, instance, node, error)
               ? op_act(op, node, "replica_open", args, patience_ms, error)
               : NULL;
}

bool instance_open_replica(struct op *op, const struct instance *instance,
                           struct export_target **ret_target, guint64 *ret_sync, GError **error)
{
    const struct replica *replica = op_replica_of(op, instance);
    *ret_target = NULL;
    if (!replica || replica->state == REPLICA_STALE)
        return true;
    record_autoptr(replica) copy = replica_copy(replica);
    struct replica_open_args args = {.instance = instance->uuid,
                                     .replica = copy->uuid,
                                     .generation = instance->generation,
                                     .disks = instance->disks,
                                     .keep = copy->state == REPLICA_IN_SYNC ? 0 : copy->keep};
    g_autoptr(GError) failure = NULL;
    *ret_sync = copy->sync;
    *ret_target =
        instance_open_exports(op, instance, copy->node, &args, OPEN_PATIENCE_MS, &failure);
    if (*ret_target)
        return args.keep == 0 || (*ret_target)->kept ||
               instance_tell_of_one_copy(op, instance, copy->node, error);
    op_log(op, "replica on %s cannot be used (%s); going on without it",
           op_node_name(op, copy->node), failure->message);
    return instance_set_stale(op, instance->uuid, failure->message, error);
}

/* A generation that ended without a close, or never came to its node: how its images are now is
 * asked, and on record, before the next one may copy from them. */
static bool close_what_ended(struct op *op, const char *uuid, const struct instance_start *how,
                             GError **error)
{
    struct instance_stop stop = {
        .mark = how->mark, .after = how->mark, .wish_up = how->wish_up, .timeout_ms = 0};
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    const struct replica *replica = op_replica_of(op, instance);
    return !*instance->holder || !replica || replica->state != REPLICA_IN_SYNC ||
           op_node_offline(op, instance->holder) || instance_stop(op, uuid, &stop, error);
}

static bool edit_given_up(struct instance_edit *edit, void *data, GError **error)
{
    if (!replica_is_ahead(edit->instance, edit->replica))
        return true;
    edit->replica->keep = edit->replica->generation;
    edit_replica(edit, REPLICA_STALE, data);
    return true;
}

/* A person's word, on record before anything follows from it. */
static bool give_replica_up(struct op *op, const char *uuid, const char *statement, GError **error)
{
    g_autofree char *why = g_strdup_printf("started from the primary: %s", statement);
    return instance_edit(op, "change_replica", uuid, edit_given_up, why, error);
}

static bool is_served(const struct op *op, const char *uuid, GError **error)
{
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    return instance && instance_need_served(op, instance, instance->primary_node, error);
}

static bool start_next(struct op *op, const char *uuid, const struct instance_start *how,
                       GError **error)
{
    struct start_call call = {how, true};
    if (!is_served(op, uuid, error) || !close_what_ended(op, uuid, how, error) ||
        (how->statement && !give_replica_up(op, uuid, how->statement, error)) ||
        !instance_edit(op, "start_instance", uuid, edit_start, &call, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    record_autoptr(export_target) target = NULL;
    g_autoptr(GPtrArray) volumes = instance_volumes(op, uuid);
    guint64 sync = 0;
    if (!instance || !instance_open_replica(op, instance, &target, &sync, error))
        return false;
    struct guest_start_args args = {.instance = instance,
                                    .volumes = volumes,
                                    .target = target,
                                    .sync = sync,
                                    .full = call.full || !target,
                                    .run = how->run};
    op_log(op, "starting generation %" G_GUINT64_FORMAT " of %s on %s", instance->generation,
           instance->name, op_node_name(op, instance->primary_node));
    record_autoptr(nothing) done =
        op_act(op, instance->primary_node, "guest_start", &args, ACT_PATIENCE_MS, error);
    return done != NULL;
}

/* A node daemon that died in the middle of a start has used the generation up: it refuses it when
 * it is asked again, and nothing runs. The next one is as good. */
bool instance_start(struct op *op, const char *uuid, const struct instance_start *how,
                    GError **error)
{
    for (guint tries = 1;; tries++) {
        g_autoptr(GError) local = NULL;
        if (start_next(op, uuid, how, &local))
            return true;
        if (!fettle_error_is(local, REFUSED) || tries >= LIMIT_START_TRIES) {
            g_propagate_error(error, g_steal_pointer(&local));
            return false;
        }
        op_log(op, "%s; trying the next generation", local->message);
    }
}

/* --- stopping --- */

struct stopping_call {
    const struct instance_stop *how;
    enum admin_state before; /* out: whether it should run, up to now */
};

static bool edit_stopping(struct instance_edit *edit, void *data, GError **error)
{
    struct stopping_call *call = data;
    call->before = edit->instance->admin_state;
    edit_mark(edit, call->how->mark);
    if (call->how->wish_down)
        edit->instance->admin_state = ADMIN_DOWN;
    if (call->how->wish_up)
        edit->instance->admin_state = ADMIN_UP;
    return true;
}

static bool edit_not_stopped(struct instance_edit *edit, void *data, GError **error)
{
    const enum admin_state *before = data;
    edit->instance->admin_state = *before;
    edit_give_up(edit);
    return true;
}

static bool edit_wish_again(struct instance_edit *edit, void *data, GError **error)
{
    const enum admin_state *before = data;
    edit->instance->admin_state = *before;
    return true;
}

struct stopped_call {
    bool equal;           /* the node says: image and replica are equal and at rest */
    enum soundness sound; /* and how its images are by themselves */
    enum task_state mark; /* who goes on with it */
    guint64 generation;   /* that was stopped */
    const char *why;      /* if not equal */
};

/* The record of the close. A replica that was reported lost in between is not in-sync here, so the
 * close is not clean. One that is in-sync has every write that was acknowledged up to the exit, and
 * stays so, however the guest has ended (SAF-13). */
static bool edit_stopped(struct instance_edit *edit, void *data, GError **error)
{
    const struct stopped_call *call = data;
    struct instance *instance = edit->instance;
    if (instance->generation != call->generation) {
        fettle_set_error(error, VERSION_CONFLICT,
                         "generation %" G_GUINT64_FORMAT
                         " of instance \"%s\" was stopped, but %" G_GUINT64_FORMAT
                         " is on record now",
                         call->generation, instance->name, instance->generation);
        return false;
    }
    bool clean = call->equal && edit->replica && edit->replica->state == REPLICA_IN_SYNC;
    instance->generation++;
    text_set(&instance->holder, "");
    instance->clean = clean;
    instance->sound = call->sound;
    allocated_take_next(instance);
    edit_mark(edit, call->mark);
    if (edit->replica && clean)
        edit_replica(edit, REPLICA_IN_SYNC, "clean close");
    else if (edit->replica)
        edit_replica(edit,
                     edit->replica->state == REPLICA_IN_SYNC ? REPLICA_IN_SYNC : REPLICA_STALE,
                     call->why);
    return true;
}

/* After the guest is gone: the exports must be gone too before the close may be called clean. */
static bool close_replica(struct op *op, const struct instance *instance, char **ret_why)
{
    const struct replica *replica = op_replica_of(op, instance);
    if (!replica)
        return false;
    if (op_node_offline(op, replica->node)) {
        *ret_why = g_strdup("stopped while its node is offline");
        return false;
    }
    record_autoptr(replica) copy = replica_copy(replica);
    struct replica_close_args args = {
        .instance = instance->uuid, .replica = copy->uuid, .generation = instance->generation + 1};
    g_autoptr(GError) failure = NULL;
    record_autoptr(nothing) done = op_act(op, copy->node, "replica_close", &args, 0, &failure);
    if (!done)
        *ret_why = g_strdup_printf("could not be closed: %s", failure->message);
    return done != NULL;
}

struct guest_stop_result *instance_end_guest(struct op *op, const struct instance *instance,
                                             guint64 timeout_ms, enum admin_state before,
                                             GError **error)
{
    struct guest_stop_args args = {
        .instance = instance->uuid, .generation = instance->generation, .timeout_ms = timeout_ms};
    struct attended call = {
        .instance = instance->uuid, .method = "guest_stop", .args = &args, .progress = NULL};
    g_autoptr(GError) local = NULL;
    /* One that is ended at once is no wait; it may be the clearing up after a job was canceled. */
    struct guest_stop_result *result =
        timeout_ms > 0 ? long_call_act(op, instance->holder, &call, &local)
                       : op_act(op, instance->holder, "guest_stop", &args, ACT_PATIENCE_MS, &local);
    if (!result && fettle_error_is(local, CANCELED)) {
        if (!instance_edit(op, "mark_instance", instance->uuid, edit_not_stopped, &before, error))
            return NULL;
        fettle_set_error(error, CANCELED,
                         "%s was asked to shut down and had not done so; it runs on, on %s. It may "
                         "still obey, and is on record as stopped then: Job canceled by request",
                         instance->name, op_node_name(op, instance->holder));
    } else if (!result) {
        /* Refused while it could do nothing for its shutdown: it is left as it was. */
        if (timeout_ms > 0 && fettle_error_is(local, WRONG_STATE) &&
            !instance_edit(op, "mark_instance", instance->uuid, edit_wish_again, &before, error))
            return NULL;
        g_propagate_error(error, g_steal_pointer(&local));
    }
    return result;
}

bool instance_stop(struct op *op, const char *uuid, const struct instance_stop *how, GError **error)
{
    struct stopping_call stopping = {how, ADMIN_DOWN};
    if (!instance_edit(op, "mark_instance", uuid, edit_stopping, &stopping, error))
        return false;
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance || !*instance->holder)
        return instance != NULL;
    op_log(op, "stopping generation %" G_GUINT64_FORMAT " of %s on %s", instance->generation,
           instance->name, op_node_name(op, instance->holder));
    record_autoptr(guest_stop_result) result =
        instance_end_guest(op, instance, how->timeout_ms, stopping.before, error);
    if (!result)
        return false;
    if (result->forced)
        op_log(op, "the guest did not shut down by itself and was ended");
    g_autofree char *why = NULL;
    bool closed = close_replica(op, instance, &why);
    struct stopped_call call = {.equal = closed && result->clean,
                                .sound = result->sound,
                                .mark = how->after,
                                .generation = instance->generation,
                                .why = why ? why : "the last run did not end with equal copies"};
    return instance_edit(op, "stop_instance", uuid, edit_stopped, &call, error);
}

/* --- waiting for a copy --- */

struct mirror_progress {
    char *what; /* as it is logged */
    guint64 total_mib;
    guint64 percent;
    gint64 moved_at;
};

/* One more answer that the copy is under way: is it still going anywhere? */
static bool mirror_advanced(struct op *op, struct mirror_progress *progress, guint64 percent,
                            GError **error)
{
    gint64 now = op->env->ops->boot_ms(op->env);
    if (percent != progress->percent) {
        progress->percent = percent;
        progress->moved_at = now;
    }
    op_progress(op, progress->what, progress->total_mib * percent / 100, progress->total_mib,
                "MiB");
    if (now - progress->moved_at < MIRROR_STALL_MS)
        return true;
    fettle_set_error(error, TIMEOUT, "the copy stands at %" G_GUINT64_FORMAT " %% for %u s",
                     percent, MIRROR_STALL_MS / 1000);
    return false;
}

static bool wait_copied(struct op *op, const struct instance *instance,
                        struct mirror_progress *progress, GError **error)
{
    struct mirror_wait_args args = {
        .instance = instance->uuid, .generation = instance->generation, .wait_ms = MIRROR_WAIT_MS};
    for (;;) {
        gint64 asked = op->env->ops->boot_ms(op->env);
        record_autoptr(mirror_status) status =
            op_act(op, instance->primary_node, "mirror_wait", &args, ACT_PATIENCE_MS, error);
        if (!status)
            return false;
        if (status->state == MIRROR_READY)
            return true;
        if (status->state != MIRROR_SYNCING) {
            fettle_set_error(error, STORAGE,
                             "the replica of instance \"%s\" was lost during the copy",
                             instance->name);
            return false;
        }
        if (!mirror_advanced(op, progress, status->progress, error))
            return false;
        if (op_canceled(op))
            return op_give_up(error);
        /* A node that does not wait is not asked without end. */
        if (op->env->ops->boot_ms(op->env) - asked < ACT_PAUSE_MS)
            env_sleep(op->env, ACT_PAUSE_MS);
    }
}

bool instance_wait_mirror(struct op *op, const char *uuid, GError **error)
{
    record_autoptr(instance) instance = instance_now(op, uuid, error);
    if (!instance)
        return false;
    g_autofree char *what =
        g_strdup_printf("copy to %s", op_node_name(op, instance->secondary_node));
    struct mirror_progress progress = {.what = what, .moved_at = op->env->ops->boot_ms(op->env)};
    for (guint i = 0; i < instance->disks->len; i++)
        progress.total_mib += ((const struct disk *)instance->disks->pdata[i])->size;
    if (!wait_copied(op, instance, &progress, error))
        return false;
    if (progress.percent > 0)
        op_progress(op, what, progress.total_mib, progress.total_mib, "MiB");
    return follow_refresh(op->follow, error);
}
