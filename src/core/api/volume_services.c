/* Services of volumes, schedulers, the back ends that they have, and the one availability zone. */
#include <string.h>

#include "core/api/volume_common.h"
#include "core/config/usage.h"
#include "core/config/volume_types.h"
#include "proto/env.h"

/* --- services --- */

/* Beats are in the master's memory: what is up was heard of now, what is down when it went. */
static gint64 heard_us(const struct api_call *call, const struct storage_service *service)
{
    return service->state == STORAGE_UP || !service->state_since_us
               ? call->api->env->ops->wall_us(call->api->env)
               : (gint64)service->state_since_us;
}

static json_t *view_service(const struct api_call *call, const struct config *config,
                            const struct storage_service *service)
{
    g_autofree char *host = config_storage_service_host(config, service);
    g_autofree char *cluster = config_storage_service_cluster(config, service);
    bool up = service->state == STORAGE_UP, volumes = service->binary == STORAGE_VOLUME;
    json_t *json =
        json_make("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "binary",
                  enum_word(&storage_binary_words, (int)service->binary), "host", host, "zone",
                  BLOCK_ZONE, "status", service->disabled ? "disabled" : "enabled", "state",
                  up ? "up" : "down", "updated_at", api_time(heard_us(call, service)),
                  "disabled_reason", block_text(service->disabled_reason));
    if (call->minor >= 7)
        json_object_set_new(json, "cluster", block_text(cluster));
    if (call->minor >= 49 && volumes)
        json_object_set_new(json, "backend_state", json_string(up ? "up" : "down"));
    if (volumes) {
        json_object_set_new(json, "frozen", json_false());
        json_object_set_new(json, "replication_status", json_string("disabled"));
        json_object_set_new(json, "active_backend_id", json_null());
    }
    return json;
}

/* HOST@BACKEND, or HOST alone: all of that host. */
static bool is_of_host(const struct config *config, const struct storage_service *service,
                       const char *host)
{
    g_autofree char *whole = config_storage_service_host(config, service);
    return !host || !*host || !strcmp(host, service->host) || !strcmp(host, whole);
}

static bool is_binary(const struct storage_service *service, const char *binary)
{
    return !binary || !*binary ||
           !strcmp(binary, enum_word(&storage_binary_words, (int)service->binary));
}

struct http_answer *api_services_list(struct api_call *call, GError **error)
{
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    const char *binary = api_query(call, "binary");
    json_t *list = json_array();
    g_autoptr(GPtrArray) all = config_list(config, "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *service = all->pdata[i];
        if (is_of_host(config, service, api_query(call, "host")) &&
            is_binary(service, binary ? binary : api_query(call, "service")))
            json_array_append_new(list, view_service(call, config, service));
    }
    return api_answer(call, json_make("{s:o}", "services", list));
}

/* The one of that host and binary; a HOST alone that several have the name of is none. */
static const struct storage_service *find_service(const struct config *config, const char *host,
                                                  const char *binary)
{
    const struct storage_service *found = NULL;
    guint count = 0;
    g_autoptr(GPtrArray) all = config_list(config, "storage_service");
    for (guint i = 0; i < all->len; i++)
        if (is_of_host(config, all->pdata[i], host) && is_binary(all->pdata[i], binary)) {
            found = all->pdata[i];
            count++;
        }
    return count == 1 ? found : NULL;
}

static struct http_answer *set_disabled(struct api_call *call, bool disabled, const char *reason,
                                        GError **error)
{
    const struct service_body *body = call->body;
    const char *binary = *body->binary ? body->binary : body->service;
    const struct config *config = api_config(call, error);
    if (!config)
        return NULL;
    const struct storage_service *service =
        *binary ? find_service(config, body->host, binary) : NULL;
    if (!service)
        return api_refuse(call, 404, "Service %s could not be found on host %s.", binary,
                          body->host);
    struct change_storage_service_args *args = change_storage_service_args_new();
    text_set(&args->service, service->uuid);
    text_set(&args->reason, reason ? reason : "");
    text_set(&call->resource, service->uuid);
    args->disabled = disabled;
    if (!block_change(call, "change_storage_service", &change_storage_service_args_record, args,
                      &args->commit_id, error))
        return NULL;
    json_t *answer =
        json_make("{s:s, s:s, s:s, s:s, s:b}", "host", body->host, "service", binary, "binary",
                  binary, "status", disabled ? "disabled" : "enabled", "disabled", disabled);
    if (!disabled || reason)
        json_object_set_new(answer, "disabled_reason", reason ? json_string(reason) : json_null());
    return api_answer(call, answer);
}

struct http_answer *api_service_enable(struct api_call *call, GError **error)
{
    return set_disabled(call, false, NULL, error);
}

struct http_answer *api_service_disable(struct api_call *call, GError **error)
{
    return set_disabled(call, true, NULL, error);
}

struct http_answer *api_service_disable_log_reason(struct api_call *call, GError **error)
{
    const struct service_body *body = call->body;
    if (!*body->disabled_reason)
        return api_refuse(call, 400, "disabled_reason: must be a text of 1 to 255 letters");
    return set_disabled(call, true, body->disabled_reason, error);
}

/* --- back ends --- */

static const struct backend_space *space_of(const struct cluster_status *status,
                                            const struct backend *backend)
{
    for (guint i = 0; status && i < status->spaces->len; i++) {
        const struct backend_space *space = status->spaces->pdata[i];
        if (!strcmp(space->backend, backend->uuid))
            return space;
    }
    return NULL;
}

/* GiB with a fraction, as Cinder gives them. */
static json_t *gib(guint64 mib)
{
    return json_real((double)mib / 1024);
}

static json_t *capabilities(const struct api_call *call, const struct config *config,
                            const struct backend *backend, const struct backend_space *space)
{
    g_autofree char *ratio = g_strdup_printf("%" G_GUINT64_FORMAT ".%02" G_GUINT64_FORMAT,
                                             backend->overcommit / 100, backend->overcommit % 100);
    guint64 promised = usage_promised_mib(config, backend);
    gint64 now = call->api->env->ops->wall_us(call->api->env);
    bool known = space && space->total_mib;
    return json_make("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:s, s:b, s:b, s:b, s:o}",
                     "volume_backend_name", backend->name, "storage_protocol",
                     volume_type_capability(backend, "storage_protocol"), "vendor_name",
                     volume_type_capability(backend, "vendor_name"), "driver_version",
                     FETTLE_VERSION, "total_capacity_gb",
                     known ? gib(space->total_mib) : json_string("unknown"), "free_capacity_gb",
                     known ? gib(space->free_mib) : json_string("unknown"), "allocated_capacity_gb",
                     gib(promised), "provisioned_capacity_gb", gib(promised), "reserved_percentage",
                     (json_int_t)backend->reserved_percent, "max_over_subscription_ratio", ratio,
                     "thin_provisioning_support", 1, "QoS_support", 0, "multiattach", 0,
                     "timestamp", api_time(now));
}

struct http_answer *api_pools_list(struct api_call *call, GError **error)
{
    bool detail;
    if (!api_query_bool(call, "detail", false, &detail, error))
        return NULL;
    record_autoptr(cluster_status) status =
        detail ? cell_call(call->api->cell, "cluster_status", NULL, error) : NULL;
    const struct config *config = !detail || status ? api_config(call, error) : NULL;
    if (!config)
        return NULL;
    json_t *pools = json_array();
    g_autoptr(GPtrArray) all = config_list(config, "backend");
    for (guint i = 0; i < all->len; i++) {
        const struct backend *backend = all->pdata[i];
        const char *node = backend->nodes->len ? backend->nodes->pdata[0] : "";
        g_autofree char *name = g_strdup_printf("%s@%s#%s", config_node_name(config, node),
                                                backend->name, backend->name);
        json_t *pool = json_make("{s:s}", "name", name);
        if (detail)
            json_object_set_new(pool, "capabilities",
                                capabilities(call, config, backend, space_of(status, backend)));
        json_array_append_new(pools, pool);
    }
    return api_answer(call, json_make("{s:o}", "pools", pools));
}

struct http_answer *api_zones_list(struct api_call *call, GError **error)
{
    return api_answer(call, json_make("{s:[{s:s, s:{s:b}}]}", "availabilityZoneInfo", "zoneName",
                                      BLOCK_ZONE, "zoneState", "available", 1));
}

/* --- filters --- */

static const struct {
    const char *resource, *filters[8];
} restricted[] = {
    {"volume", {"name", "status", "metadata", "bootable", "availability_zone", "size"}},
    {"snapshot", {"name", "status", "volume_id", "metadata", "availability_zone"}},
    {"backup", {"name", "status", "volume_id"}},
    {"attachment", {"volume_id", "status", "instance_id"}},
    {"volume_type", {"is_public"}},
};

struct http_answer *api_resource_filters_list(struct api_call *call, GError **error)
{
    const char *asked = api_query(call, "resource");
    json_t *list = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(restricted); i++) {
        json_t *filters = json_array();
        for (const char *const *filter = restricted[i].filters; *filter; filter++)
            json_array_append_new(filters, json_string(*filter));
        json_t *entry =
            json_make("{s:s, s:o}", "resource", restricted[i].resource, "filters", filters);
        if (!asked || !strcmp(asked, restricted[i].resource))
            json_array_append(list, entry);
        json_decref(entry);
    }
    return api_answer(call, json_make("{s:o}", "resource_filters", list));
}
