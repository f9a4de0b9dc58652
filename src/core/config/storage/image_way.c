/* See image_way.h. */
#include "core/config/storage/image_way.h"

#include <string.h>

bool image_way_in(const struct config *config, const char *name, struct image_way *ret,
                  GError **error)
{
    struct resource image = resource_find(config, RESOURCE_IMAGE, name, error);
    if (!image.exists)
        return false;
    g_autofree char *key = config_work_key(RESOURCE_IMAGE, image.uuid);
    const struct worker *row = config_get(config, "worker", key, NULL);
    const struct storage_service *service =
        row ? config_storage_service_of(config, row->service_id) : NULL;
    if (!row || strcmp(row->operation, task_operation_words[TASK_OPERATION_SAVE_IMAGE]) != 0)
        fettle_set_error(error, WRONG_STATE, "image %s is %s; nobody receives it",
                         resource_name(&image), image.status);
    else if (!service)
        fettle_set_error(error, TEMPORARY, "no volume service has begun with image %s yet",
                         resource_name(&image));
    else if (!config_get(config, "node", service->node, NULL))
        fettle_set_error(error, TEMPORARY, "the node that receives image %s is gone",
                         resource_name(&image));
    else {
        *ret = (struct image_way){service->node, image.uuid, image.backend, row};
        return true;
    }
    return false;
}

static const struct storage_service *choose(const struct config *config, const char *backend,
                                            const char *own_node)
{
    const struct storage_service *chosen = NULL;
    g_autoptr(GPtrArray) all = config_list(config, "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *service = all->pdata[i];
        bool own = strcmp(service->node, own_node) == 0;
        if (strcmp(service->backend, backend) == 0 && service->state == STORAGE_UP &&
            (!chosen || own))
            chosen = service;
    }
    return chosen;
}

bool image_way_out(const struct config *config, const char *name, const char *own_node,
                   struct image_way *ret, GError **error)
{
    struct resource image = resource_find(config, RESOURCE_IMAGE, name, error);
    const struct storage_service *service =
        image.exists ? choose(config, image.backend, own_node) : NULL;
    if (!image.exists)
        return false;
    if (!resource_is_ready(&image))
        fettle_set_error(error, WRONG_STATE, "image %s is %s; only an active one is saved",
                         resource_name(&image), image.status);
    else if (!service)
        fettle_set_error(error, TEMPORARY, "no volume service of its back end is up: image %s",
                         resource_name(&image));
    else
        *ret = (struct image_way){service->node, image.uuid, image.backend, NULL};
    return resource_is_ready(&image) && service;
}
