/*
 * OP_INSTANCE_ATTACH_VOLUME, OP_INSTANCE_DETACH_VOLUME (SAF-57, SAF-124; docs/design/procedures.md,
 * "Volumes of instances"). The attachment is on record before a node opens the data, and until that
 * has seen device and node, or the process, go. A job that dies leaves it as it is: nobody takes
 * the volume for free, the same opcode again finishes it, and so does the instance's next
 * generation.
 */
#include "core/config/attachments.h"
#include "core/ops/instance.h"
#include "core/ops/ops.h"

#include <string.h>

#define DETACH_WAIT_MS 30000 /* for a guest to give a device up */
#define SERIAL_CHARS 20      /* of the volume's UUID, which is what virtio has room for */

static const struct volume *find_volume(const struct op *op, const char *name, GError **error)
{
    return config_find(op_config(op), "volume", name, error);
}

/* --- changing an attachment, with the instance's mark --- */

struct attachment_edit {
    const char *volume;         /* its UUID */
    struct attachment *becomes; /* NULL: it ends */
    const char *uuid;           /* of the attachment that it was; NULL: there was none */
    enum task_state mark;       /* of the instance, from now on */
};

static bool is_that(const struct attachment *attachment, const char *uuid)
{
    return uuid ? attachment && !strcmp(attachment->uuid, uuid) : !attachment;
}

static bool is_ours(enum task_state mark)
{
    return mark == TASK_ATTACHING_VOLUME || mark == TASK_DETACHING_VOLUME;
}

/* One that has ended meanwhile, as its node has said, has ended. */
static bool edit_attachment(struct instance_edit *edit, void *data, GError **error)
{
    const struct attachment_edit *call = data;
    const struct volume *volume = config_get(op_config(edit->op), "volume", call->volume, NULL);
    const struct attachment *now = volume ? attachment_of(volume) : NULL;
    if (call->mark != TASK_NONE || is_ours(edit->instance->task_state))
        edit_mark(edit, call->mark);
    if (call->uuid && !now)
        return true;
    if (!volume || !is_that(now, call->uuid)) {
        fettle_set_error(error, VERSION_CONFLICT, "volume %s has changed meanwhile", call->volume);
        return false;
    }
    record_autoptr(volume) after = volume_copy(volume);
    g_ptr_array_set_size(after->attachments, 0);
    if (call->becomes) { /* what was reserved is kept; who has it open only its node knows */
        struct attachment *becomes = attachment_copy(call->becomes);
        text_set(&becomes->clients, now ? now->clients : "");
        g_ptr_array_add(after->attachments, becomes);
        text_set(&after->reserved, "");
        text_set(&after->reserved_for, "");
    }
    op_put(edit->op, edit->changes, "volume", after->uuid, volume_to_json(after));
    return true;
}

static void set_state(const struct op *op, struct attachment *attachment,
                      enum attachment_state state)
{
    bool works = state == ATTACHMENT_ATTACHING || state == ATTACHMENT_DETACHING;
    attachment->state = state;
    attachment->job = works ? op->job : 0;
    attachment->since_us = (guint64)op->env->ops->wall_us(op->env);
}

static bool commit(struct op *op, const char *instance, struct attachment_edit *edit,
                   GError **error)
{
    return instance_edit(op, "change_attachment", instance, edit_attachment, edit, error);
}

/* A dead job's mark ends with what is done to the volume that it stands for, and is no other one's:
 * nobody would settle that one any more. */
static bool mark_is_for(const struct op *op, const struct instance *instance,
                        const struct volume *volume, GError **error)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(op_config(op), instance->uuid);
    for (guint i = 0; is_ours(instance->task_state) && i < volumes->len; i++) {
        const struct volume *other = volumes->pdata[i];
        if (other == volume || !attachment_of(other)->job ||
            attachment_of(other)->job != instance->task_owner)
            continue;
        instance_set_unsettled(op, instance, other, error);
        return false;
    }
    return true;
}

/* --- attach --- */

static bool attach_declare(struct op *op, GError **error)
{
    const struct op_instance_attach_volume *params = op->params;
    return op_declare_instance(op, params->instance_name, error) != NULL;
}

/* What a dead job left half done is done by the same again. */
static bool is_left_over(const struct volume *volume, const struct instance *instance)
{
    const struct attachment *attachment = attachment_of(volume);
    return attachment && attachment->state == ATTACHMENT_ATTACHING &&
           !strcmp(attachment->instance, instance->uuid);
}

static bool volume_is_free(const struct op *op, const struct volume *volume,
                           const struct instance *instance, GError **error)
{
    const struct op_instance_attach_volume *params = op->params;
    bool reserved = *volume->reserved && !strcmp(volume->reserved, params->attachment);
    if (is_left_over(volume, instance))
        return true;
    if ((attachment_of(volume) || !reserved) && !attachment_need_none(op_config(op), volume, error))
        return false;
    if (volume->status == VOLUME_AVAILABLE)
        return true;
    fettle_set_error(error, WRONG_STATE, "volume %s is %s; only an available one can be attached",
                     config_volume_name(volume), attachment_status_word(volume));
    return false;
}

/* Its node has to see the back end, and there must be a place for it. */
static bool guest_takes_it(const struct op *op, const struct volume *volume,
                           const struct instance *instance, GError **error)
{
    guint64 slot;
    g_autofree char *why =
        attachment_backend_unserved(op_config(op), volume->backend, instance->primary_node);
    if (!why)
        return is_left_over(volume, instance) ||
               attachment_free_slot(op_config(op), instance, &slot, error);
    fettle_set_error(error, WRONG_STATE, "%s, where instance \"%s\" is, %s, where volume %s is",
                     op_node_name(op, instance->primary_node), instance->name, why,
                     config_volume_name(volume));
    return false;
}

static bool holder_answers(struct op *op, const struct instance *found, GError **error)
{
    record_autoptr(instance) instance = instance_copy(found);
    return !*instance->holder ||
           (instance_gather(op, instance->holder, NULL, error) &&
            instance_need_node(op, instance, instance->holder, "primary", error));
}

static bool attach_check(struct op *op, GError **error)
{
    const struct op_instance_attach_volume *params = op->params;
    const struct instance *instance = op_find_instance(op, params->instance_name, error);
    const struct volume *volume = instance ? find_volume(op, params->volume, error) : NULL;
    return volume && instance_need_whole(op, instance, error) &&
           instance_need_settled(op, instance, TASK_ATTACHING_VOLUME, error) &&
           mark_is_for(op, instance, volume, error) &&
           volume_is_free(op, volume, instance, error) &&
           guest_takes_it(op, volume, instance, error) && holder_answers(op, instance, error);
}

static struct attachment *new_attachment(const struct op *op, const struct volume *volume,
                                         const struct instance *instance, GError **error)
{
    guint64 slot = 0;
    if (is_left_over(volume, instance))
        return attachment_copy(attachment_of(volume));
    if (!attachment_free_slot(op_config(op), instance, &slot, error))
        return NULL;
    const struct op_instance_attach_volume *params = op->params;
    bool promised = *params->attachment && strcmp(params->attachment, volume->uuid) != 0;
    g_autofree char *uuid = promised ? g_strdup(params->attachment) : env_uuid(op->env);
    g_autofree char *device = g_strdup_printf("virtio-%.*s", SERIAL_CHARS, volume->uuid);
    struct attachment *attachment = attachment_new();
    text_set(&attachment->uuid, uuid);
    text_set(&attachment->instance, instance->uuid);
    text_set(&attachment->device, device);
    attachment->slot = slot;
    return attachment;
}

/* Whether its node says that the guest does not have it (any more). */
static bool ask_for_it(struct op *op, const struct instance *instance,
                       const struct attachment_edit *edit, bool *ret_gone, GError **error)
{
    const struct volume *volume = config_get(op_config(op), "volume", edit->volume, NULL);
    *ret_gone = !volume || !attachment_of(volume); /* its node has said so */
    if (*ret_gone)
        return true;
    struct guest_volume *told = instance_volume(op, volume);
    struct volume_detach_args args = {
        .instance = instance->uuid, .generation = instance->generation, .volume = told};
    record_autoptr(volume_detach_result) result =
        op_act(op, instance->holder, "volume_detach", &args, ACT_PATIENCE_MS, error);
    guest_volume_free(told);
    *ret_gone = result && result->gone;
    return result != NULL;
}

/* After a failure: the volume is free again once its node says that it is not there. Otherwise mark
 * and attachment stay. */
static bool take_back(struct op *op, const struct instance *instance, struct attachment_edit *edit,
                      GError *failure, GError **error)
{
    bool gone = false;
    if (!env_no_answer(failure) && !fettle_error_is(failure, KILLED) &&
        ask_for_it(op, instance, edit, &gone, NULL) && gone) {
        edit->becomes = NULL;
        edit->mark = TASK_NONE;
        commit(op, instance->uuid, edit, NULL);
    }
    g_propagate_error(error, failure);
    return false;
}

static bool plug_in(struct op *op, const struct instance *instance, struct attachment_edit *edit,
                    struct attachment *attachment, GError **error)
{
    GError *failure = NULL;
    const struct volume *volume = config_get(op_config(op), "volume", edit->volume, NULL);
    struct guest_volume *told = instance_volume(op, volume);
    struct volume_attach_args args = {
        .instance = instance->uuid, .generation = instance->generation, .volume = told};
    record_autoptr(nothing) done =
        op_act(op, instance->holder, "volume_attach", &args, ACT_PATIENCE_MS, &failure);
    guest_volume_free(told);
    if (!done)
        return take_back(op, instance, edit, failure, error);
    set_state(op, attachment, ATTACHMENT_ATTACHED);
    edit->mark = TASK_NONE;
    return commit(op, instance->uuid, edit, error);
}

/* A replica is of no use where the guest cannot have all its disks. */
static void warn_of_secondary(struct op *op, const struct volume *volume,
                              const struct instance *instance)
{
    const char *node = instance->secondary_node;
    g_autofree char *why =
        *node ? attachment_backend_unserved(op_config(op), volume->backend, node) : NULL;
    if (why)
        op_log(op,
               "%s, the secondary, %s: instance \"%s\" cannot fail over to it while it has this "
               "volume; add the node: fettle backend modify",
               op_node_name(op, node), why, instance->name);
}

static bool attach_exec(struct op *op, GError **error)
{
    const struct op_instance_attach_volume *params = op->params;
    const struct instance *found = op_find_instance(op, params->instance_name, error);
    const struct volume *volume = found ? find_volume(op, params->volume, error) : NULL;
    record_autoptr(attachment) attachment =
        volume ? new_attachment(op, volume, found, error) : NULL;
    if (!attachment)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    g_autofree char *uuid = g_strdup(volume->uuid);
    bool runs = *instance->holder;
    struct attachment_edit edit = {.volume = uuid,
                                   .becomes = attachment,
                                   .uuid = attachment_of(volume) ? attachment->uuid : NULL,
                                   .mark = runs ? TASK_ATTACHING_VOLUME : TASK_NONE};
    set_state(op, attachment, runs ? ATTACHMENT_ATTACHING : ATTACHMENT_ATTACHED);
    warn_of_secondary(op, volume, instance);
    if (!commit(op, instance->uuid, &edit, error))
        return false;
    edit.uuid = attachment->uuid;
    return !runs || plug_in(op, instance, &edit, attachment, error);
}

/* --- detach --- */

/* Whose it is; NULL with WRONG_STATE: nobody's, or not that one's any more from which it was to be
 * taken. */
static const struct instance *its_instance(const struct op *op, const struct volume *volume,
                                           GError **error)
{
    const struct op_instance_detach_volume *params = op->params;
    const struct attachment *attachment = attachment_of(volume);
    const struct instance *instance =
        attachment ? op_find_instance(op, attachment->instance, error) : NULL;
    if (!attachment)
        fettle_set_error(error, WRONG_STATE, "volume %s is not attached to anything",
                         config_volume_name(volume));
    if (!instance || !*params->instance_name || !strcmp(params->instance_name, instance->name) ||
        !strcmp(params->instance_name, instance->uuid))
        return instance;
    fettle_set_error(error, WRONG_STATE, "volume %s is attached to %s, and not to %s",
                     config_volume_name(volume), instance->name, params->instance_name);
    return NULL;
}

static bool detach_declare(struct op *op, GError **error)
{
    const struct op_instance_detach_volume *params = op->params;
    const struct volume *volume = find_volume(op, params->volume, error);
    const struct instance *instance = volume ? its_instance(op, volume, error) : NULL;
    return instance && op_declare_instance(op, instance->uuid, error) != NULL;
}

/* Without asking: nobody holds it, or its node is off on a person's word (SAF-21). */
static bool may_be_forced(const struct op *op, const struct instance *instance, GError **error)
{
    if (!*instance->holder || op_node_offline(op, instance->holder))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "--force: instance \"%s\" may run on %s; stop it first, or detach without "
                     "--force",
                     instance->name, op_node_name(op, instance->holder));
    return false;
}

static bool detach_check(struct op *op, GError **error)
{
    const struct op_instance_detach_volume *params = op->params;
    const struct volume *volume = find_volume(op, params->volume, error);
    const struct instance *instance = volume ? its_instance(op, volume, error) : NULL;
    if (!instance || !instance_need_whole(op, instance, error) ||
        !mark_is_for(op, instance, volume, error))
        return false;
    if (params->force)
        return may_be_forced(op, instance, error);
    enum task_state mark = instance->task_state == TASK_ATTACHING_VOLUME ? TASK_ATTACHING_VOLUME
                                                                         : TASK_DETACHING_VOLUME;
    return instance_need_settled(op, instance, mark, error) && holder_answers(op, instance, error);
}

/* It stays the guest's until its node sees it go, which says so itself; a next generation is
 * without it. */
static bool leave_wish(struct op *op, const struct instance *instance, struct attachment_edit *edit,
                       struct attachment *attachment, bool canceled, GError **error)
{
    set_state(op, attachment, ATTACHMENT_ATTACHED);
    attachment->leaving_us = attachment->since_us;
    edit->becomes = attachment;
    edit->mark = TASK_NONE;
    if (!commit(op, instance->uuid, edit, error))
        return false;
    const struct volume *volume = config_get(op_config(op), "volume", edit->volume, NULL);
    if (volume && !attachment_of(volume))
        return true; /* gone in this very moment */
    op->changed = true;
    g_set_error(error, FETTLE_ERROR, canceled ? FETTLE_ERROR_CANCELED : FETTLE_ERROR_TEMPORARY,
                "the guest of instance \"%s\" was asked to give volume %s up, and has not yet; it "
                "is taken from it when the guest does, or with its next stop: fettle instance "
                "reboot %s",
                instance->name, volume ? config_volume_name(volume) : edit->volume, instance->name);
    return false;
}

static bool take_out(struct op *op, const struct instance *instance, struct attachment_edit *edit,
                     struct attachment *attachment, GError **error)
{
    gint64 until = op->env->ops->boot_ms(op->env) + DETACH_WAIT_MS;
    bool gone = false, canceled = false;
    while (!gone) {
        gint64 asked = op->env->ops->boot_ms(op->env);
        if (!ask_for_it(op, instance, edit, &gone, error))
            return false; /* the mark stays */
        canceled = !gone && op_canceled(op);
        if (!gone && (canceled || op->env->ops->boot_ms(op->env) >= until))
            return leave_wish(op, instance, edit, attachment, canceled, error);
        if (!gone && op->env->ops->boot_ms(op->env) - asked < ACT_PAUSE_MS)
            env_sleep(op->env, ACT_PAUSE_MS);
    }
    edit->becomes = NULL;
    edit->mark = TASK_NONE;
    return commit(op, instance->uuid, edit, error);
}

static bool detach_exec(struct op *op, GError **error)
{
    const struct op_instance_detach_volume *params = op->params;
    const struct volume *volume = find_volume(op, params->volume, error);
    const struct instance *found = volume ? its_instance(op, volume, error) : NULL;
    if (!found)
        return false;
    record_autoptr(instance) instance = instance_copy(found);
    record_autoptr(attachment) attachment = attachment_copy(attachment_of(volume));
    g_autofree char *uuid = g_strdup(volume->uuid);
    bool asks = *instance->holder && !params->force && attachment->state != ATTACHMENT_RESERVED;
    struct attachment_edit edit = {.volume = uuid,
                                   .becomes = asks ? attachment : NULL,
                                   .uuid = attachment->uuid,
                                   .mark = asks ? TASK_DETACHING_VOLUME : TASK_NONE};
    if (asks && (attachment->leaving_us || attachment->state == ATTACHMENT_DETACHING))
        op_log(op,
               "the guest of instance \"%s\" was asked to give volume %s up before, and has not "
               "yet; it is asked again, for %u s at most",
               instance->name, config_volume_name(volume), DETACH_WAIT_MS / 1000);
    set_state(op, attachment, ATTACHMENT_DETACHING);
    return commit(op, instance->uuid, &edit, error) &&
           (!asks || take_out(op, instance, &edit, attachment, error));
}

const struct op_impl ops_volume[] = {
    {"OP_INSTANCE_ATTACH_VOLUME", attach_declare, attach_check, attach_exec, SEES_NAMED},
    {"OP_INSTANCE_DETACH_VOLUME", detach_declare, detach_check, detach_exec, SEES_NAMED},
    {NULL},
};
