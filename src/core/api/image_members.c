/* Projects that an image is shared with, and how they take that. */
#include <string.h>

#include "core/api/identity_model.h"
#include "core/api/image_common.h"

static json_t *member_view(const struct image *image, const char *project, const char *status)
{
    g_autoptr(GDateTime) time =
        g_date_time_new_from_unix_utc((gint64)(image->created_us / G_USEC_PER_SEC));
    g_autofree char *when = g_date_time_format(time, "%Y-%m-%dT%H:%M:%SZ");
    return json_make("{s:s, s:s, s:s, s:s, s:s, s:s}", "image_id", image->uuid, "member_id",
                     project, "status", status, "created_at", when, "updated_at", when, "schema",
                     "/v2/schemas/member");
}

/* That of the path; NULL: it is none, or not to be seen. */
static const char *status_of(const struct api_call *call, const struct image *image)
{
    const char *member = api_var(call, "member");
    bool sees = image_is_own(call, image) || !strcmp(member, call->token->project_id);
    return sees ? image_member_status(image, member) : NULL;
}

static struct http_answer *no_member(const struct api_call *call, const struct image *image)
{
    return api_refuse(call, 404, "Image %s is not shared with %s", image->uuid,
                      api_var(call, "member"));
}

struct http_answer *api_image_members_list(struct api_call *call, GError **error)
{
    const struct image *image = image_found(call, error);
    if (!image)
        return NULL;
    if (image->visibility != IMAGE_SHARED)
        return api_refuse(call, 403, "Only shared images have members.");
    json_t *list = json_array();
    for (guint i = 0; i < image->members->len; i++) {
        g_auto(GStrv) pair = g_strsplit(image->members->pdata[i], "=", 2);
        if (image_is_own(call, image) || !strcmp(pair[0], call->token->project_id))
            json_array_append_new(list, member_view(image, pair[0], pair[1]));
    }
    return api_answer(call,
                      json_make("{s:o, s:s}", "members", list, "schema", "/v2/schemas/members"));
}

struct http_answer *api_image_member_show(struct api_call *call, GError **error)
{
    const struct image *image = image_found(call, error);
    if (!image)
        return NULL;
    const char *status = status_of(call, image);
    return status ? api_answer(call, member_view(image, api_var(call, "member"), status))
                  : no_member(call, image);
}

static bool set_member(struct api_call *call, const char *project, const char *status,
                       GError **error)
{
    struct change_image_args *args = image_change_new(call);
    if (status)
        g_ptr_array_add(args->members, g_strconcat(project, "=", status, NULL));
    else
        g_ptr_array_add(args->remove_members, g_strdup(project));
    return image_change(call, args, error);
}

static struct http_answer *answer_member(struct api_call *call, const char *project, GError **error)
{
    const struct image *image = image_found(call, error);
    const char *status = image ? image_member_status(image, project) : NULL;
    if (image && !status)
        fettle_set_error(error, UNKNOWN_ENTITY, "Image %s is not shared with %s", image->uuid,
                         project);
    return status ? api_answer(call, member_view(image, project, status)) : NULL;
}

struct http_answer *api_image_member_add(struct api_call *call, GError **error)
{
    const struct image_member_body *body = call->body;
    const struct image *image = image_owned(call, error);
    if (!image)
        return NULL;
    if (image->visibility != IMAGE_SHARED)
        return api_refuse(call, 403, "Only shared images have members.");
    if (!identity_get(call->api->identity, "api_project", body->member))
        return api_refuse(call, 404, "there is no project %s", body->member);
    if (image_member_status(image, body->member))
        return api_refuse(call, 409, "Image %s is shared with %s already", image->uuid,
                          body->member);
    if (image->members->len == LIMIT_IMAGE_MEMBERS)
        return api_refuse(call, 413, "an image is shared with %d projects at most",
                          LIMIT_IMAGE_MEMBERS);
    g_autofree char *project = g_strdup(body->member);
    return set_member(call, project, "pending", error) ? answer_member(call, project, error) : NULL;
}

struct http_answer *api_image_member_set(struct api_call *call, GError **error)
{
    static const char *const known[] = {"pending", "accepted", "rejected", NULL};
    const struct image_member_status_body *body = call->body;
    const char *member = api_var(call, "member");
    const struct image *image = image_found(call, error);
    if (!image)
        return NULL;
    if (!status_of(call, image))
        return no_member(call, image);
    if (!g_strv_contains(known, body->status))
        return api_refuse(call, 400, "status: must be pending, accepted or rejected, not \"%s\"",
                          body->status);
    if (strcmp(member, call->token->project_id) != 0 && !api_is_admin(call))
        return api_refuse(call, 403, "how it takes that says project %s itself", member);
    return set_member(call, member, body->status, error) ? answer_member(call, member, error)
                                                         : NULL;
}

struct http_answer *api_image_member_remove(struct api_call *call, GError **error)
{
    const struct image *image = image_owned(call, error);
    if (!image)
        return NULL;
    if (!status_of(call, image))
        return no_member(call, image);
    return set_member(call, api_var(call, "member"), NULL, error) ? api_answer(call, NULL) : NULL;
}
