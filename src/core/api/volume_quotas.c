/* What projects may have, and have: limits, os-quota-sets, os-quota-class-sets. The limits are the
 * front ends' own, kept with the identities; they go with each request, and are compared by who
 * puts it on record. */
#include <string.h>

#include "core/api/identity_model.h"
#include "core/api/volume_common.h"
#include "core/config/usage.h"

#define EACH "default" /* of which nothing else is said */

struct quota_row {
    const char *name;
    size_t limit; /* in struct api_quota */
    guint64 (*used)(const struct usage *);
    size_t asked; /* in struct quota_body */
};

static guint64 used_volumes(const struct usage *usage)
{
    return usage->volumes;
}

static guint64 used_snapshots(const struct usage *usage)
{
    return usage->snapshots;
}

static guint64 used_gigabytes(const struct usage *usage)
{
    return usage->gigabytes;
}

static guint64 used_backups(const struct usage *usage)
{
    return usage->backups;
}

static guint64 used_backup_gigabytes(const struct usage *usage)
{
    return usage->backup_gigabytes;
}

static guint64 used_by_none(const struct usage *usage)
{
    return 0;
}

#define ROW(field, used)                                                                           \
    {                                                                                              \
#field, offsetof(struct api_quota, field), used, offsetof(struct quota_body, field)        \
    }
static const struct quota_row rows[] = {
    ROW(volumes, used_volumes),
    ROW(snapshots, used_snapshots),
    ROW(gigabytes, used_gigabytes),
    ROW(backups, used_backups),
    ROW(backup_gigabytes, used_backup_gigabytes),
    ROW(per_volume_gigabytes, used_by_none),
};

static gint64 limit_of(const struct api_quota *quota, const struct quota_row *row)
{
    return G_STRUCT_MEMBER(gint64, quota, row->limit);
}

/* --- limits --- */

struct http_answer *api_limits_show(struct api_call *call, GError **error)
{
    const struct config *config = api_config(call, error);
    const char *other = api_query(call, "project_id");
    if (!config)
        return NULL;
    const char *project = other && api_is_admin(call) ? other : call->token->project_id;
    const struct api_quota *quota = block_quota(call, project);
    struct usage usage = usage_of(config, project);
    json_t *absolute = json_make(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "maxTotalVolumes",
        (json_int_t)quota->volumes, "maxTotalSnapshots", (json_int_t)quota->snapshots,
        "maxTotalVolumeGigabytes", (json_int_t)quota->gigabytes, "maxTotalBackups",
        (json_int_t)quota->backups, "maxTotalBackupGigabytes", (json_int_t)quota->backup_gigabytes,
        "totalVolumesUsed", (json_int_t)usage.volumes, "totalSnapshotsUsed",
        (json_int_t)usage.snapshots, "totalGigabytesUsed", (json_int_t)usage.gigabytes,
        "totalBackupsUsed", (json_int_t)usage.backups, "totalBackupGigabytesUsed",
        (json_int_t)usage.backup_gigabytes);
    return api_answer(call, json_make("{s:{s:[], s:o}}", "limits", "rate", "absolute", absolute));
}

/* --- quotas --- */

static json_t *view_quota(const struct api_quota *quota, const struct usage *usage)
{
    json_t *json = json_object();
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        json_int_t limit = (json_int_t)limit_of(quota, &rows[i]);
        json_object_set_new(json, rows[i].name,
                            usage ? json_make("{s:I, s:I, s:i}", "limit", limit, "in_use",
                                              (json_int_t)rows[i].used(usage), "reserved", 0)
                                  : json_integer(limit));
    }
    json_object_set_new(json, "groups",
                        usage ? json_make("{s:i, s:i, s:i}", "limit", 0, "in_use", 0, "reserved", 0)
                              : json_integer(0));
    return json;
}

static struct http_answer *answer_quota(struct api_call *call, const char *wrapper,
                                        const char *project, const char *id,
                                        const struct usage *usage)
{
    json_t *json = view_quota(block_quota(call, project), usage);
    if (*id)
        json_object_set_new(json, "id", json_string(id));
    return api_answer(call, json_make("{s:o}", wrapper, json));
}

/* Of others only administrators are told. */
static struct http_answer *refuse_others(const struct api_call *call)
{
    return !api_is_admin(call) && strcmp(api_var(call, "id"), call->token->project_id) != 0
               ? api_refuse(call, 403, "The quota of project %s is not yours to see.",
                            api_var(call, "id"))
               : NULL;
}

struct http_answer *api_quota_show(struct api_call *call, GError **error)
{
    bool with_usage;
    const char *project = api_var(call, "id");
    const struct config *config = api_config(call, error);
    struct http_answer *refused = refuse_others(call);
    if (refused || !config || !api_query_bool(call, "usage", false, &with_usage, error))
        return refused;
    struct usage usage = usage_of(config, project);
    return answer_quota(call, "quota_set", project, project, with_usage ? &usage : NULL);
}

struct http_answer *api_quota_defaults(struct api_call *call, GError **error)
{
    struct http_answer *refused = refuse_others(call);
    return refused ? refused : answer_quota(call, "quota_set", EACH, api_var(call, "id"), NULL);
}

/* What is to be: of whom, and what the body says. */
struct quota_wish {
    const char *project;
    const struct quota_body *body; /* NULL: what each may */
};

static const json_t *asked_for(const struct quota_body *body, const struct quota_row *row)
{
    return G_STRUCT_MEMBER(const json_t *, body, row->asked);
}

static bool read_limit(const json_t *json, gint64 *ret)
{
    *ret = json_is_integer(json) ? json_integer_value(json) : -2;
    if (json_is_string(json) &&
        !g_ascii_string_to_signed(json_string_value(json), 10, -1, G_MAXINT32, ret, NULL))
        *ret = -2;
    return *ret >= -1 && *ret <= G_MAXINT32;
}

static bool decide_cb(struct identity *identity, GPtrArray *changes, void *data, GError **error)
{
    const struct quota_wish *wish = data;
    const struct api_quota *old = identity_get(identity, "api_quota", wish->project);
    const struct api_quota *each = identity_get(identity, "api_quota", EACH);
    if (!wish->body) {
        if (old)
            identity_drop(changes, "api_quota", wish->project);
        return true;
    }
    record_autoptr(api_quota) quota = old    ? api_quota_copy(old)
                                      : each ? api_quota_copy(each)
                                             : api_quota_new();
    text_set(&quota->id, wish->project);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const json_t *asked = asked_for(wish->body, &rows[i]);
        if (!asked || read_limit(asked, &G_STRUCT_MEMBER(gint64, quota, rows[i].limit)))
            continue;
        fettle_set_error(error, WRONG_INPUT, "%s: must be an integer from -1 to %d", rows[i].name,
                         G_MAXINT32);
        return false;
    }
    identity_put(changes, &api_quota_record, wish->project, quota);
    return true;
}

static bool change_quota(struct api_call *call, const char *project, const struct quota_body *body,
                         GError **error)
{
    struct quota_wish wish = {project, body};
    text_set(&call->resource, project);
    return identity_change(call->api->identity, decide_cb, &wish, error);
}

struct http_answer *api_quota_update(struct api_call *call, GError **error)
{
    const char *project = api_var(call, "id");
    return change_quota(call, project, call->body, error)
               ? answer_quota(call, "quota_set", project, "", NULL)
               : NULL;
}

struct http_answer *api_quota_delete(struct api_call *call, GError **error)
{
    return change_quota(call, api_var(call, "id"), NULL, error) ? api_answer(call, NULL) : NULL;
}

/* --- what each may have --- */

static struct http_answer *refuse_class(const struct api_call *call)
{
    return strcmp(api_var(call, "id"), EACH) != 0
               ? api_refuse(call, 404, "Quota class %s could not be found.", api_var(call, "id"))
               : NULL;
}

struct http_answer *api_quota_class_show(struct api_call *call, GError **error)
{
    struct http_answer *refused = refuse_class(call);
    return refused ? refused : answer_quota(call, "quota_class_set", EACH, EACH, NULL);
}

struct http_answer *api_quota_class_update(struct api_call *call, GError **error)
{
    struct http_answer *refused = refuse_class(call);
    if (refused || !change_quota(call, EACH, call->body, error))
        return refused;
    return answer_quota(call, "quota_class_set", EACH, "", NULL);
}
