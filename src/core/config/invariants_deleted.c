/*
 * What is deleted is not referred to any more: by instances, reservations, networks, tags, back
 * ends and what is on them, marks of webhooks; see invariants.h.
 */
#include <string.h>

#include "core/config/addresses.h"
#include "core/config/invariants.h"
#include "core/config/resource.h"

static bool still_used(const char *kind, const char *key, const void *gone, const char *user_kind,
                       const char *user, GError **error)
{
    g_autofree char *subject = invariants_subject(kind, key, gone);
    fettle_set_error(error, WRONG_STATE, "%s: cannot be deleted, %s %s refers to it", subject,
                     user_kind, user);
    return false;
}

static bool node_unused(const struct config *config, const struct node *node, GError **error)
{
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (!strcmp(instance->primary_node, node->uuid) ||
            !strcmp(instance->secondary_node, node->uuid) ||
            !strcmp(instance->migration_node, node->uuid))
            return still_used("node", node->uuid, node, "instance", instance->name, error);
    }
    g_autoptr(GPtrArray) advices = config_list(config, "advice");
    for (guint i = 0; i < advices->len; i++) {
        const struct advice *advice = advices->pdata[i];
        if (!strcmp(advice->subject, node->uuid))
            return still_used("node", node->uuid, node, "advice", advice->uuid, error);
    }
    g_autoptr(GPtrArray) reservations = config_list(config, "reservation");
    for (guint i = 0; i < reservations->len; i++) {
        const struct reservation *reservation = reservations->pdata[i];
        for (guint k = 0; k < reservation->rooms->len; k++) {
            const struct reserved_room *room = reservation->rooms->pdata[k];
            if (!strcmp(room->node, node->uuid))
                return still_used("node", node->uuid, node, "reservation", reservation->name,
                                  error);
        }
    }
    if (config_get(config, "api_front_end", node->uuid, NULL))
        return still_used("node", node->uuid, node, "api_front_end", node->name, error);
    g_autoptr(GPtrArray) services = config_list(config, "service");
    for (guint i = 0; i < services->len; i++) {
        const struct service *service = services->pdata[i];
        if (!strcmp(service->node, node->uuid))
            return still_used("node", node->uuid, node, "service", service->name, error);
    }
    g_autoptr(GPtrArray) backends = config_list(config, "backend");
    for (guint i = 0; i < backends->len; i++) {
        const struct backend *backend = backends->pdata[i];
        if (g_ptr_array_find_with_equal_func(backend->nodes, node->uuid, g_str_equal, NULL))
            return still_used("node", node->uuid, node, "backend", backend->name, error);
    }
    g_autoptr(GPtrArray) storage = config_list(config, "storage_service");
    for (guint i = 0; i < storage->len; i++) {
        const struct storage_service *service = storage->pdata[i];
        g_autofree char *name = config_storage_service_name(config, service);
        if (!strcmp(service->node, node->uuid))
            return still_used("node", node->uuid, node, "storage service", name, error);
    }
    const struct cluster *cluster = config_cluster(config);
    return !cluster || strcmp(cluster->master_node, node->uuid) != 0 ||
           still_used("node", node->uuid, node, "cluster", cluster->name, error);
}

static bool group_unused(const struct config *config, const struct nodegroup *group, GError **error)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!strcmp(node->group, group->uuid))
            return still_used("nodegroup", group->uuid, group, "node", node->name, error);
    }
    return true;
}

static bool network_unused(const struct config *config, const struct network *network,
                           GError **error)
{
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (network_has(network, instance))
            return still_used("network", network->uuid, network, "instance", instance->name, error);
    }
    return true;
}

bool invariants_backend_empty(const struct config *config, const struct backend *backend,
                              GError **error)
{
    const char *uuid = backend->uuid;
    g_autoptr(GPtrArray) volumes = config_backend_volumes(config, uuid);
    g_autoptr(GPtrArray) snapshots = config_backend_snapshots(config, uuid);
    g_autoptr(GPtrArray) backups = config_backend_backups(config, uuid);
    g_autoptr(GPtrArray) images = config_backend_images(config, uuid);
    g_autoptr(GPtrArray) rows = config_backend_work(config, uuid);
    g_autoptr(GPtrArray) trash = config_backend_trash(config, uuid);
    guint kept = volumes->len, left = trash->len;
    if (kept) {
        fettle_set_error(error, WRONG_STATE, "back end %s has %u volume%s; delete %s first",
                         backend->name, kept, kept == 1 ? "" : "s", kept == 1 ? "it" : "them");
        return false;
    }
    if (snapshots->len)
        return still_used("backend", uuid, backend, "snapshot",
                          ((const struct snapshot *)snapshots->pdata[0])->uuid, error);
    if (backups->len)
        return still_used("backend", uuid, backend, "backup",
                          ((const struct backup *)backups->pdata[0])->uuid, error);
    if (images->len)
        return still_used("backend", uuid, backend, "image",
                          ((const struct image *)images->pdata[0])->uuid, error);
    if (rows->len)
        return still_used("backend", uuid, backend, "worker",
                          ((const struct worker *)rows->pdata[0])->resource_id, error);
    if (left) {
        fettle_set_error(error, WRONG_STATE,
                         "back end %s still has data of %u deleted volume%s; a volume service of "
                         "it removes that",
                         backend->name, left, left == 1 ? "" : "s");
        return false;
    }
    return true;
}

static bool backend_unused(const struct config *config, const struct backend *backend,
                           GError **error)
{
    const char *uuid = backend->uuid;
    if (!invariants_backend_empty(config, backend, error))
        return false;
    g_autoptr(GPtrArray) services = config_list(config, "storage_service");
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        g_autofree char *name = config_storage_service_name(config, service);
        if (!strcmp(service->backend, uuid))
            return still_used("backend", uuid, backend, "storage service", name, error);
    }
    return true;
}

static bool volume_unused(const struct config *config, const struct volume *volume, GError **error)
{
    g_autoptr(GPtrArray) snapshots = config_volume_snapshots(config, volume->uuid);
    return snapshots->len == 0 ||
           still_used("volume", volume->uuid, volume, "snapshot",
                      ((const struct snapshot *)snapshots->pdata[0])->uuid, error);
}

/* Rows that it has, and rows that somebody cleans for it, who may give them back. */
static GPtrArray *work_of(const struct config *config, const struct storage_service *service)
{
    GPtrArray *rows = config_service_work(config, service->id);
    g_autoptr(GPtrArray) others = config_backend_work(config, service->backend);
    for (guint i = 0; i < others->len; i++)
        if (((const struct worker *)others->pdata[i])->was_service_id == service->id)
            g_ptr_array_add(rows, others->pdata[i]);
    return rows;
}

/* Rows name it, and are cleaned for its sake. */
bool invariants_no_work(const struct config *config, const struct storage_service *service,
                        GError **error)
{
    g_autoptr(GPtrArray) rows = work_of(config, service);
    if (!rows->len)
        return true;
    struct resource about = resource_of_row(config, rows->pdata[0]);
    const char *kind = resource_kind(about.type), *name = resource_name(&about);
    g_autofree char *who = config_storage_service_name(config, service);
    g_autofree char *reset =
        about.exists ? g_strdup_printf("fettle %s reset-state %s --status error, or ", kind, name)
                     : NULL;
    fettle_set_error(error, WRONG_STATE,
                     "the work of %s on %s %s%s is under way: %swait for a service of that "
                     "name to clean it",
                     who, kind, name, about.exists ? "" : ", which is gone,", reset ? reset : "");
    return false;
}

static bool storage_service_unused(const struct config *config,
                                   const struct storage_service *service, GError **error)
{
    if (invariants_no_work(config, service, error))
        return true;
    g_autofree char *subject = invariants_subject("storage_service", service->uuid, service);
    g_prefix_error(error, "%s: cannot be deleted, ", subject);
    return false;
}

static bool tags_unused(const struct config *config, const struct config_delta *delta,
                        GError **error)
{
    int kind = enum_parse(&tag_kind_words, delta->kind);
    if (kind < 0)
        return true;
    g_autoptr(GPtrArray) tags = config_tags(config, (enum tag_kind)kind, delta->key);
    return tags->len == 0 ||
           still_used(delta->kind, delta->key, delta->before, "tag", tags->pdata[0], error);
}

static bool volume_type_unused(const struct config *config, const struct volume_type *type,
                               GError **error)
{
    const struct volume *volume = config_volume_of_type(config, type->uuid);
    return !volume ||
           still_used("volume_type", type->uuid, type, "volume", config_volume_name(volume), error);
}

bool invariants_deleted(const struct config *config, const struct config_delta *delta,
                        GError **error)
{
    if (!tags_unused(config, delta, error))
        return false;
    if (!strcmp(delta->kind, "node"))
        return node_unused(config, delta->before, error);
    if (!strcmp(delta->kind, "nodegroup"))
        return group_unused(config, delta->before, error);
    if (!strcmp(delta->kind, "network"))
        return network_unused(config, delta->before, error);
    if (!strcmp(delta->kind, "backend"))
        return backend_unused(config, delta->before, error);
    if (!strcmp(delta->kind, "volume_type"))
        return volume_type_unused(config, delta->before, error);
    if (!strcmp(delta->kind, "volume"))
        return volume_unused(config, delta->before, error);
    if (!strcmp(delta->kind, "webhook"))
        return !config_get(config, "webhook_mark", delta->key, NULL) ||
               still_used("webhook", delta->key, delta->before, "webhook_mark", delta->key, error);
    if (!strcmp(delta->kind, "storage_service"))
        return storage_service_unused(config, delta->before, error);
    if (!strcmp(delta->kind, "replica")) {
        const struct replica *replica = delta->before;
        const struct instance *instance = config_get(config, "instance", replica->instance, NULL);
        return !instance || strcmp(instance->replica, replica->uuid) != 0 ||
               still_used("replica", replica->uuid, NULL, "instance", instance->name, error);
    }
    if (!strcmp(delta->kind, "instance")) {
        const struct instance *instance = delta->before;
        return !config_get(config, "replica", instance->replica, NULL) ||
               still_used("instance", instance->uuid, instance, "replica", instance->replica,
                          error);
    }
    return true;
}
