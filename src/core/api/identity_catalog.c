/* What nobody can change: services, their endpoints, the region, the domain. */
#include <string.h>

#include "core/api/identity_private.h"

/* As catalogs have them: clients look for these types. */
static const struct {
    enum api_service service;
    const char *type, *name, *description;
    const char *path; /* behind the prefix; of a project's if it ends in "/" */
} services[] = {
    {API_IDENTITY, "identity", "keystone", "Identity", ""},
    {API_VOLUME, "volumev3", "cinderv3", "Block storage", "/v3/"},
    {API_IMAGE, "image", "glance", "Images", ""},
};
static const char *const interfaces[] = {"public", "internal", "admin"};

/* The same on each front end. */
static char *id_of(const char *type, const char *interface)
{
    g_autofree char *words = g_strconcat(type, "/", interface, NULL);
    return g_compute_checksum_for_string(G_CHECKSUM_MD5, words, -1);
}

static char *url_of(const struct api_call *call, guint index, const char *project_id)
{
    const char *path = services[index].path;
    return g_strconcat(call->base, "/", api_service_name(services[index].service), path,
                       g_str_has_suffix(path, "/") ? project_id : "", NULL);
}

json_t *catalog_of(const struct api_call *call, const char *project_id)
{
    const char *region = call->api->region;
    json_t *catalog = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(services); i++) {
        const char *type = services[i].type;
        g_autofree char *url = url_of(call, i, project_id);
        g_autofree char *service_id = id_of(type, "");
        json_t *endpoints = json_array();
        for (guint k = 0; k < G_N_ELEMENTS(interfaces); k++) {
            g_autofree char *id = id_of(type, interfaces[k]);
            json_array_append_new(endpoints, json_make("{s:s, s:s, s:s, s:s, s:s}", "id", id,
                                                       "interface", interfaces[k], "region", region,
                                                       "region_id", region, "url", url));
        }
        json_array_append_new(catalog,
                              json_make("{s:s, s:s, s:s, s:o}", "id", service_id, "type", type,
                                        "name", services[i].name, "endpoints", endpoints));
    }
    return catalog;
}

json_t *domain_reference(void)
{
    return json_make("{s:s, s:s}", "id", IDENTITY_DOMAIN, "name", IDENTITY_DOMAIN_NAME);
}

bool is_domain(const struct api_domain_named *domain)
{
    return !domain ||
           ((!domain->id[0] || !strcmp(domain->id, IDENTITY_DOMAIN)) &&
            (!domain->name[0] || !g_ascii_strcasecmp(domain->name, IDENTITY_DOMAIN_NAME)));
}

struct http_answer *api_identity_catalog_show(struct api_call *call, GError **error)
{
    if (!call->token->project_id[0]) {
        fettle_set_error(error, PERMISSION, "A token that is for no project has no catalog.");
        return NULL;
    }
    g_autofree char *self = g_strconcat(call->base, call->request->path, NULL);
    return api_answer(call,
                      json_make("{s:o, s:{s:s}}", "catalog",
                                catalog_of(call, call->token->project_id), "links", "self", self));
}

/* --- services, endpoints, the region, the domain --- */

/* Takes the one of that id out of a list; NULL: there is none. Stolen. */
static json_t *only(json_t *array, const char *id)
{
    json_autoptr all = array;
    size_t i;
    json_t *object;
    json_array_foreach(all, i, object)
        if (!strcmp(json_string_value(json_object_get(object, "id")), id))
            return json_incref(object);
    return NULL;
}

static json_t *list_services(const struct api_call *call)
{
    json_t *array = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(services); i++) {
        g_autofree char *id = id_of(services[i].type, "");
        json_t *json =
            json_make("{s:s, s:s, s:s, s:s, s:b}", "id", id, "type", services[i].type, "name",
                      services[i].name, "description", services[i].description, "enabled", true);
        json_array_append_new(array, with_links(call, json, "services", id));
    }
    return array;
}

static json_t *list_endpoints(const struct api_call *call)
{
    const char *region = call->api->region;
    json_t *array = json_array();
    for (guint i = 0; i < G_N_ELEMENTS(services) * G_N_ELEMENTS(interfaces); i++) {
        guint index = i / G_N_ELEMENTS(interfaces);
        const char *interface = interfaces[i % G_N_ELEMENTS(interfaces)];
        g_autofree char *id = id_of(services[index].type, interface);
        g_autofree char *service_id = id_of(services[index].type, "");
        g_autofree char *url = url_of(call, index, "$(project_id)s");
        json_t *json = json_make("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "id", id, "interface",
                                 interface, "region", region, "region_id", region, "service_id",
                                 service_id, "url", url, "enabled", true);
        json_array_append_new(array, with_links(call, json, "endpoints", id));
    }
    return array;
}

static json_t *list_regions(const struct api_call *call)
{
    const char *region = call->api->region;
    return json_make("[o]", with_links(call,
                                       json_make("{s:s, s:s, s:n}", "id", region, "description", "",
                                                 "parent_region_id"),
                                       "regions", region));
}

static json_t *list_domains(const struct api_call *call)
{
    json_t *json = json_make("{s:s, s:s, s:s, s:b, s:[], s:{}}", "id", IDENTITY_DOMAIN, "name",
                             IDENTITY_DOMAIN_NAME, "description", "The default domain", "enabled",
                             true, "tags", "options");
    return json_make("[o]", with_links(call, json, "domains", IDENTITY_DOMAIN));
}

struct http_answer *api_identity_services_list(struct api_call *call, GError **error)
{
    return answer_list(call, "services", list_services(call), error);
}

struct http_answer *api_identity_service_show(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "service_id");
    return answer_one(call, "service", only(list_services(call), id), id, error);
}

struct http_answer *api_identity_endpoints_list(struct api_call *call, GError **error)
{
    return answer_list(call, "endpoints", list_endpoints(call), error);
}

struct http_answer *api_identity_endpoint_show(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "endpoint_id");
    return answer_one(call, "endpoint", only(list_endpoints(call), id), id, error);
}

struct http_answer *api_identity_regions_list(struct api_call *call, GError **error)
{
    return answer_list(call, "regions", list_regions(call), error);
}

struct http_answer *api_identity_region_show(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "region_id");
    return answer_one(call, "region", only(list_regions(call), id), id, error);
}

struct http_answer *api_identity_domains_list(struct api_call *call, GError **error)
{
    return answer_list(call, "domains", list_domains(call), error);
}

struct http_answer *api_identity_domain_show(struct api_call *call, GError **error)
{
    const char *id = api_var(call, "domain_id");
    return answer_one(call, "domain", only(list_domains(call), id), id, error);
}
