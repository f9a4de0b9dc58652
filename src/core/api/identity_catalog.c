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
