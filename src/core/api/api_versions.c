/* Which versions of each service there are: what clients ask first. */
#include "core/api/api_private.h"

static char *url_of(const struct api_call *call, const char *end)
{
    return g_strdup_printf("%s/%s%s", call->base, api_service_name(call->service), end);
}

static json_t *identity_record(const struct api_call *call)
{
    g_autofree char *url = url_of(call, "/v3/");
    return json_make("{s:s, s:s, s:s, s:[{s:s, s:s}], s:[{s:s, s:s}]}", "id", "v3.14", "status",
                     "stable", "updated", "2020-04-07T00:00:00Z", "links", "rel", "self", "href",
                     url, "media-types", "base", "application/json", "type",
                     "application/vnd.openstack.identity-v3+json");
}

struct http_answer *api_identity_versions(struct api_call *call, GError **error)
{
    g_autofree char *url = url_of(call, "/v3/");
    struct http_answer *answer =
        api_answer(call, json_make("{s:{s:[o]}}", "versions", "values", identity_record(call)));
    http_answer_add_header(answer, "Location", url);
    return answer;
}

struct http_answer *api_identity_version(struct api_call *call, GError **error)
{
    return api_answer(call, json_make("{s:o}", "version", identity_record(call)));
}

static struct http_answer *answer_volume(struct api_call *call)
{
    g_autofree char *url = url_of(call, "/v3/");
    g_autofree char *newest =
        g_strdup_printf("%u.%u", api_service_major(API_VOLUME), api_service_newest(API_VOLUME));
    return api_answer(
        call, json_make("{s:[{s:s, s:s, s:s, s:s, s:s, s:[{s:s, s:s}], s:[{s:s, s:s}]}]}",
                        "versions", "id", "v3.0", "status", "CURRENT", "version", newest,
                        "min_version", "3.0", "updated", "2022-03-30T00:00:00Z", "links", "rel",
                        "self", "href", url, "media-types", "base", "application/json", "type",
                        "application/vnd.openstack.volume+json;version=3"));
}

struct http_answer *api_volume_versions(struct api_call *call, GError **error)
{
    return answer_volume(call);
}

struct http_answer *api_volume_version(struct api_call *call, GError **error)
{
    return answer_volume(call);
}

static struct http_answer *answer_image(struct api_call *call)
{
    g_autofree char *url = url_of(call, "/v2/");
    json_t *versions = json_array();
    for (guint minor = api_service_newest(API_IMAGE) + 1; minor-- > 0;) {
        g_autofree char *id = g_strdup_printf("v%u.%u", api_service_major(API_IMAGE), minor);
        json_array_append_new(
            versions, json_make("{s:s, s:s, s:[{s:s, s:s}]}", "id", id, "status",
                                minor == api_service_newest(API_IMAGE) ? "CURRENT" : "SUPPORTED",
                                "links", "rel", "self", "href", url));
    }
    return api_answer(call, json_make("{s:o}", "versions", versions));
}

struct http_answer *api_image_choices(struct api_call *call, GError **error)
{
    return answer_image(call);
}

struct http_answer *api_image_versions(struct api_call *call, GError **error)
{
    return answer_image(call);
}
