/*
 * The volumes of an instance, for all opcodes that start, end or move its guest. See instance.h.
 */
#include "core/config/attachments.h"
#include "core/ops/instance.h"
#include "core/placement/placement.h"

static void tell_pool(struct guest_volume *told, const struct backend *backend,
                      const struct volume *volume)
{
    g_autofree char *image = g_strconcat("volumes.", volume->data, NULL);
    g_autofree char *name = g_strjoin("/", backend->pool, image, NULL);
    text_set(&told->path, name);
    text_set(&told->conf, backend->conf);
    text_set(&told->user, backend->user);
    text_set(&told->pool, backend->pool);
    text_set(&told->namespace, backend->namespace);
    text_set(&told->image, image);
    text_set(&told->clients, attachment_of(volume)->clients);
}

struct guest_volume *instance_volume(const struct op *op, const struct volume *volume)
{
    const struct attachment *attachment = attachment_of(volume);
    const struct backend *backend = config_get(op_config(op), "backend", volume->backend, NULL);
    g_autofree char *path =
        g_build_filename(backend ? backend->path : "/", "volumes", volume->data, NULL);
    struct guest_volume *told = guest_volume_new();
    text_set(&told->volume, volume->uuid);
    text_set(&told->attachment, attachment->uuid);
    text_set(&told->path, path);
    if (backend && backend->kind == BACKEND_RBD)
        tell_pool(told, backend, volume);
    told->slot = attachment->slot;
    told->readonly = volume->readonly;
    told->leaving = attachment->leaving_us > 0;
    return told;
}

static void free_volume(void *volume)
{
    guest_volume_free(volume);
}

GPtrArray *instance_volumes(const struct op *op, const char *uuid)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(op_config(op), uuid);
    GPtrArray *told = g_ptr_array_new_with_free_func(free_volume);
    for (guint i = 0; i < volumes->len; i++)
        if (attachment_of(volumes->pdata[i])->state != ATTACHMENT_RESERVED)
            g_ptr_array_add(told, instance_volume(op, volumes->pdata[i]));
    return told;
}

bool instance_need_served(const struct op *op, const struct instance *instance,
                          const char *node_uuid, GError **error)
{
    g_autofree char *why = attachment_unserved(op_config(op), instance->uuid, node_uuid);
    if (!why)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "%s %s, where volumes of instance \"%s\" are; add it there: fettle backend "
                     "modify, or detach them: fettle volume detach",
                     op_node_name(op, node_uuid), why, instance->name);
    return false;
}

void instance_set_unsettled(const struct op *op, const struct instance *instance,
                            const struct volume *volume, GError **error)
{
    fettle_set_error(error, TEMPORARY,
                     "volume %s of instance \"%s\" is %s, and the job that did that has ended; "
                     "say: fettle volume detach %s",
                     config_volume_name(volume), instance->name, attachment_status_word(volume),
                     config_volume_name(volume));
}

void instance_renew_attachments(const struct op *op, const char *uuid, GPtrArray *changes)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(op_config(op), uuid);
    for (guint i = 0; i < volumes->len; i++) {
        record_autoptr(volume) next = volume_copy(volumes->pdata[i]);
        struct attachment *attachment = next->attachments->pdata[0];
        bool over = attachment->leaving_us || attachment->state == ATTACHMENT_DETACHING;
        if (!over && attachment->state != ATTACHMENT_ATTACHING)
            continue;
        attachment->state = ATTACHMENT_ATTACHED;
        attachment->job = 0;
        if (over)
            g_ptr_array_set_size(next->attachments, 0);
        op_put(op, changes, "volume", next->uuid, volume_to_json(next));
    }
}
