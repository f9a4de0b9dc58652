/*
 * See attachments.h.
 */
#include "core/config/attachments.h"

#include "proto/change.h"

#include <string.h>

#define FIRST_SLOT 2 /* of disks, cards and screen, which take theirs in the order of arguments */

const struct attachment *attachment_of(const struct volume *volume)
{
    return volume->attachments->len ? volume->attachments->pdata[0] : NULL;
}

static const struct instance *instance_of(const struct config *config, const struct volume *volume)
{
    const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
    return attachment ? config_get(config, "instance", attachment->instance, NULL) : NULL;
}

bool attachment_may_run(const struct config *config, const struct volume *volume)
{
    const struct instance *instance = instance_of(config, volume);
    return instance && *instance->holder;
}

const char *attachment_status_word(const struct volume *volume)
{
    const struct attachment *attachment = attachment_of(volume);
    if (volume->status == VOLUME_AVAILABLE && !attachment && *volume->reserved)
        return strcmp(volume->reserved, volume->uuid) != 0 ? "reserved" : "attaching";
    if (!attachment || volume->status != VOLUME_AVAILABLE)
        return enum_word(&volume_status_words, (int)volume->status);
    return attachment->state == ATTACHMENT_ATTACHED
               ? "in-use"
               : enum_word(&attachment_state_words, (int)attachment->state);
}

bool attachment_need_none(const struct config *config, const struct volume *volume, GError **error)
{
    const struct attachment *attachment = attachment_of(volume);
    if (!attachment && !*volume->reserved)
        return true;
    if (!attachment) {
        fettle_set_error(error, WRONG_STATE,
                         "volume %s is reserved for an attachment; unreserve it, or reset its "
                         "state to available, first",
                         config_volume_name(volume));
        return false;
    }
    const struct instance *instance = config_get(config, "instance", attachment->instance, NULL);
    fettle_set_error(error, WRONG_STATE, "volume %s is attached to %s; detach it first",
                     config_volume_name(volume), instance ? instance->name : attachment->instance);
    return false;
}

const char *attachment_of_source(const struct config *config, const struct work_source *source,
                                 guint64 *ret_generation)
{
    const struct volume *volume = source->resource_type == RESOURCE_VOLUME
                                      ? config_get(config, "volume", source->resource_id, NULL)
                                      : NULL;
    const struct attachment *attachment = volume ? attachment_of(volume) : NULL;
    const struct instance *instance = instance_of(config, volume);
    *ret_generation = instance ? instance->generation : 0;
    return attachment ? attachment->uuid : "";
}

/* --- of an instance --- */

bool attachment_shares(const struct config *config, const struct instance *instance)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, instance->uuid);
    return instance->disk_template == TEMPLATE_SHAREDFILE || volumes->len > 0;
}

char *attachment_backend_unserved(const struct config *config, const char *backend,
                                  const char *node)
{
    const struct backend *known = config_get(config, "backend", backend, NULL);
    if (known && g_ptr_array_find_with_equal_func(known->nodes, node, g_str_equal, NULL))
        return NULL;
    return g_strdup_printf("does not serve back end %s", known ? known->name : backend);
}

char *attachment_unserved(const struct config *config, const char *instance, const char *node)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, instance);
    char *why = NULL;
    for (guint i = 0; i < volumes->len && !why; i++)
        why = attachment_backend_unserved(
            config, ((const struct volume *)volumes->pdata[i])->backend, node);
    return why;
}

/* --- places --- */

static bool slot_is_taken(const GPtrArray *volumes, guint64 slot)
{
    for (guint i = 0; i < volumes->len; i++)
        if (attachment_of(volumes->pdata[i])->slot == slot)
            return true;
    return false;
}

/* The first one that no disk, card or screen has. */
static guint64 first_free(const struct instance *instance)
{
    return FIRST_SLOT + instance->disks->len + instance->nics->len +
           (*instance->vnc_bind_address ? 1 : 0);
}

static void set_full(const struct instance *instance, guint volumes, GError **error)
{
    fettle_set_error(error, NO_RESOURCES,
                     "%s has no free place on its bus: %u disks, %u cards and %u volumes",
                     instance->name, instance->disks->len, instance->nics->len, volumes);
}

bool attachment_places(const struct config *config, const struct instance *instance, GError **error)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, instance->uuid);
    for (guint i = 0; i < volumes->len; i++) {
        if (attachment_of(volumes->pdata[i])->slot >= first_free(instance))
            continue;
        set_full(instance, volumes->len, error);
        return false;
    }
    return true;
}

bool attachment_free_slot(const struct config *config, const struct instance *instance,
                          guint64 *ret_slot, GError **error)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, instance->uuid);
    guint64 slot = LIMIT_VOLUME_SLOT;
    while (slot_is_taken(volumes, slot))
        slot--;
    if (slot < first_free(instance) || volumes->len >= LIMIT_GUEST_VOLUMES) {
        set_full(instance, volumes->len, error);
        return false;
    }
    *ret_slot = slot;
    return true;
}

/* --- the end --- */

void attachment_end_all(const struct config *config, const char *instance, GPtrArray *changes)
{
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, instance);
    for (guint i = 0; i < volumes->len; i++) {
        record_autoptr(volume) free_one = volume_copy(volumes->pdata[i]);
        g_ptr_array_set_size(free_one->attachments, 0);
        g_ptr_array_add(changes,
                        config_put(config, "volume", free_one->uuid, volume_to_json(free_one)));
    }
}
