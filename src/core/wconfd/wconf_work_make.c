/*
 * What accept_work is about: a resource that is made, blank or from another one, or one that there
 * is and that nothing else is done to. See wconf_work_private.h.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/config/volume_types.h"
#include "core/wconfd/wconf_work_private.h"

/* --- one that there is --- */

/* `being deleted`, of deleting. */
static char *under_way(const char *status)
{
    return g_str_has_suffix(status, "ing")
               ? g_strdup_printf("being %.*sed", (int)strlen(status) - 3, status)
               : g_strdup(status);
}

static bool has_no_row(const struct config *head, const struct resource *resource, GError **error)
{
    g_autofree char *key = config_work_key(resource->type, resource->uuid);
    const struct worker *row = config_get(head, "worker", key, NULL);
    if (!row)
        return true;
    g_autofree char *status = under_way(row->status);
    fettle_set_error(error, WRONG_STATE, "%s %s: it is %s; wait, or reset its state",
                     resource_kind(resource->type), resource_name(resource), status);
    return false;
}

/* Nobody's partner (SAF-121), and read by nobody (SAF-120). */
static bool is_not_held(const struct config *head, const struct resource *resource, GError **error)
{
    g_autoptr(GPtrArray) rows = config_held_work(head, resource->type, resource->uuid);
    if (!rows->len)
        return true;
    const struct worker *row = rows->pdata[0];
    bool partner = !strcmp(row->partner_id, resource->uuid);
    g_autofree char *who = wconf_work_name(head, row);
    fettle_set_error(error, WRONG_STATE, "%s %s is %s by %s; wait, or reset that",
                     resource_kind(resource->type), resource_name(resource),
                     partner ? "being worked on" : "being read", who);
    return false;
}

/* Only what its guest can live with is done to what it has open; QEMU tells no guest that what it
 * only reads has grown. */
static bool may_be_attached(const struct config *head, const struct work_row *row,
                            const struct resource *resource)
{
    const struct volume *volume =
        resource->type == RESOURCE_VOLUME ? config_get(head, "volume", resource->uuid, NULL) : NULL;
    return row->operation == TASK_OPERATION_EXTEND_VOLUME && !(volume && volume->readonly);
}

bool wconf_work_unattached(const struct config *head, const struct resource *resource,
                           GError **error)
{
    return resource->type != RESOURCE_VOLUME ||
           attachment_need_none(head, config_get(head, "volume", resource->uuid, NULL), error);
}

static bool status_allows(const struct work_row *row, const struct resource *resource,
                          GError **error)
{
    if (work_accepts(row, resource->status))
        return true;
    g_autofree char *words = work_accepted_words(row);
    fettle_set_error(error, WRONG_STATE, "%s %s is %s; %s needs %s", resource_kind(resource->type),
                     resource_name(resource), resource->status,
                     task_operation_words[row->operation], words);
    return false;
}

bool wconf_work_is_free(const struct config *head, const struct work_row *row,
                        const struct resource *resource, GError **error)
{
    return has_no_row(head, resource, error) && is_not_held(head, resource, error) &&
           status_allows(row, resource, error);
}

bool wconf_work_may_begin(const struct config *head, const struct work_row *row,
                          const struct resource *resource, GError **error)
{
    return has_no_row(head, resource, error) && is_not_held(head, resource, error) &&
           (may_be_attached(head, row, resource) || wconf_work_unattached(head, resource, error)) &&
           status_allows(row, resource, error);
}

static bool size_fits(const struct work_row *row, const struct resource *resource,
                      const struct accept_work_args *args, GError **error)
{
    bool extends = row->operation == TASK_OPERATION_EXTEND_VOLUME;
    if (!extends && args->size)
        fettle_set_error(error, WRONG_INPUT, "size: %s takes none", args->operation);
    else if (extends && args->size <= resource->size)
        fettle_set_error(error, WRONG_INPUT,
                         "extend: %" G_GUINT64_FORMAT " GiB is not larger than %" G_GUINT64_FORMAT
                         " GiB",
                         args->size, resource->size);
    return !args->size == !extends && (!extends || args->size > resource->size);
}

/* A volume goes after its snapshots. */
static bool snapshots_fit(const struct config *head, const struct resource *resource,
                          const struct accept_work_args *args, GError **error)
{
    g_autoptr(GPtrArray) snapshots = config_volume_snapshots(head, resource->uuid);
    if (strcmp(args->operation, task_operation_words[TASK_OPERATION_DELETE_VOLUME]) != 0) {
        if (args->cascade)
            fettle_set_error(error, WRONG_INPUT, "cascade: %s takes none", args->operation);
        return !args->cascade;
    }
    if (args->cascade || !snapshots->len)
        return true;
    struct resource first = resource_read(RESOURCE_SNAPSHOT, snapshots->pdata[0]);
    g_autofree char *more =
        snapshots->len > 1 ? g_strdup_printf(" and %u more", snapshots->len - 1) : g_strdup("");
    fettle_set_error(error, WRONG_STATE,
                     "volume %s has snapshots: %s%s; delete them before it, or with it (--cascade)",
                     resource_name(resource), resource_name(&first), more);
    return false;
}

/* Something is said that this work does not ask for; a restore may make a volume, an upload makes
 * an image. */
static bool has_foreign(const struct accept_work_args *args, const struct work_row *row,
                        GError **error)
{
    bool restores = row->operation == TASK_OPERATION_RESTORE_BACKUP;
    bool uploads = row->operation == TASK_OPERATION_UPLOAD_VOLUME;
    bool migrates = row->operation == TASK_OPERATION_MIGRATE_VOLUME;
    bool retypes = row->operation == TASK_OPERATION_RETYPE_VOLUME;
    const char *foreign = *args->source                    ? "source"
                          : *args->volume                  ? "volume"
                          : *args->image                   ? "image"
                          : *args->snapshot                ? "snapshot"
                          : *args->volume_type && !retypes ? "volume_type"
                          : args->migrate && !retypes      ? "migrate"
                          : *args->project                 ? "project"
                          : *args->target && !restores     ? "target"
                          : restores || uploads            ? NULL
                          : *args->name                    ? "name"
                          : *args->description             ? "description"
                          : *args->backend && !migrates    ? "backend"
                          : args->unique_name              ? "unique_name"
                                                           : NULL;
    if (foreign)
        fettle_set_error(error, WRONG_INPUT, "%s: %s takes none", foreign, args->operation);
    return foreign != NULL;
}

/* It waits for somebody to begin, and has no data: nobody has made any (SAF-52). */
static bool waits_only(const struct config *head, const struct resource *resource)
{
    g_autofree char *key = config_work_key(resource->type, resource->uuid);
    const struct worker *row = config_get(head, "worker", key, NULL);
    return row && !row->service_id && !*resource->data;
}

/* A snapshot of that volume, which is being made of it. */
static bool is_snapshot_of(const struct config *head, const struct worker *row, const char *volume)
{
    struct resource resource = resource_of_row(head, row);
    return resource.type == RESOURCE_SNAPSHOT && !g_strcmp0(resource.volume, volume);
}

bool wconf_work_may_force(const struct config *head, const struct work_row *row,
                          const struct resource *resource, bool cascade, GError **error)
{
    const struct volume *volume =
        resource->type == RESOURCE_VOLUME ? config_get(head, "volume", resource->uuid, NULL) : NULL;
    g_autoptr(GPtrArray) rows = config_held_work(head, resource->type, resource->uuid);
    if (row->done != TASK_FINAL_REMOVED) {
        fettle_set_error(error, WRONG_INPUT, "force: %s takes none",
                         task_operation_words[row->operation]);
        return false;
    }
    if (volume && attachment_of(volume))
        return attachment_need_none(head, volume, error);
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *other = rows->pdata[i];
        if (!strcmp(other->partner_id, resource->uuid) ||
            !strcmp(other->resource_id, resource->uuid) ||
            (cascade && is_snapshot_of(head, other, resource->uuid)))
            continue;
        g_autofree char *who = wconf_work_name(head, other);
        fettle_set_error(error, WRONG_STATE, "%s %s is being read by %s; wait, or reset that",
                         resource_kind(resource->type), resource_name(resource), who);
        return false;
    }
    return true;
}

bool wconf_work_find(const struct config *head, const struct work_row *row,
                     const struct accept_work_args *args, struct work_request *request,
                     GError **error)
{
    bool restores = row->operation == TASK_OPERATION_RESTORE_BACKUP;
    bool uploads = row->makes_partners && row->partner_kind == TASK_KIND_image;
    const struct resource *resource = &request->resource;
    if (has_foreign(args, row, error))
        return false;
    request->resource = resource_find(head, args->resource_type, args->resource, error);
    request->backend = resource->backend;
    request->withdrawn = row->done == TASK_FINAL_REMOVED && waits_only(head, resource);
    if (request->withdrawn && !args->size)
        return wconf_work_may_delete(head, row, resource, error);
    if (resource->exists && wconf_work_moves(row))
        return wconf_work_find_move(head, row, args, request, error);
    return resource->exists &&
           (args->force ? wconf_work_may_force(head, row, resource, args->cascade, error)
                        : wconf_work_may_begin(head, row, resource, error)) &&
           (restores || size_fits(row, resource, args, error)) &&
           snapshots_fit(head, resource, args, error) &&
           wconf_work_may_delete(head, row, resource, error) &&
           wconf_work_may_send(head, row, args, resource, error) &&
           (!restores || wconf_work_find_restore(head, args, request, error)) &&
           (!uploads || wconf_work_find_upload(head, args, request, error));
}

/* --- one that is made --- */

/* One that looks like another's UUID would be taken for that one. */
bool wconf_work_name_fits(const struct config *head, const struct resource *resource,
                          const char *name, bool unique, GError **error)
{
    const char *kind = resource_kind(resource->type);
    g_autofree char *others = config_keys_of_name(head, kind, name, resource->uuid);
    if (g_uuid_string_is_valid(name))
        fettle_set_error(error, WRONG_INPUT, "name: it is a UUID; choose another one");
    else if (unique && *name && *others)
        fettle_set_error(error, ALREADY_EXISTS, "%s %s %s exists already: %s; choose another name",
                         resource_article(resource->type), kind, name, others);
    else
        return true;
    return false;
}

/* A private one is there for its projects alone, and for who asks for none. */
const struct volume_type *wconf_work_type(const struct config *head, const char *name,
                                          const char *project, GError **error)
{
    const struct volume_type *type = config_find(head, "volume_type", name, error);
    if (!type || type->public || !*project ||
        g_ptr_array_find_with_equal_func(type->projects, project, g_str_equal, NULL))
        return type;
    fettle_set_error(error, UNKNOWN_ENTITY, "volume_type \"%s\" does not exist", name);
    return NULL;
}

/* For a blank one that names none what the cluster says. */
static const struct volume_type *default_type(const struct config *head,
                                              const struct accept_work_args *args, GError **error)
{
    const char *name = config_cluster(head)->default_volume_type;
    const struct volume_type *type = wconf_work_type(head, name, args->project, error);
    if (!type)
        g_prefix_error(error, "name a type, as the default one cannot be had "
                              "(fettle cluster modify --default-volume-type): ");
    return type;
}

static bool find_type(const struct config *head, const struct accept_work_args *args,
                      struct resource *resource, GError **error)
{
    bool blank = resource->type == RESOURCE_VOLUME && !*args->source && !*args->volume;
    if (!*args->volume_type && (!blank || !*config_cluster(head)->default_volume_type))
        return true;
    if (resource->type != RESOURCE_VOLUME) {
        fettle_set_error(error, WRONG_INPUT, "volume_type: %s takes none", args->operation);
        return false;
    }
    const struct volume_type *type =
        *args->volume_type ? wconf_work_type(head, args->volume_type, args->project, error)
                           : default_type(head, args, error);
    if (type)
        resource->volume_type = type->uuid;
    return type != NULL;
}

static bool type_fits(const struct config *head, const struct resource *resource,
                      const struct backend *backend, GError **error)
{
    const struct volume_type *type = config_get(head, "volume_type", resource->volume_type, NULL);
    if (volume_type_fits(type, backend))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "volume_type: %s is not for back end %s, by its extra specs", type->name,
                     backend->name);
    return false;
}

/* UUID of the one that is named, or of the only one that is for its type, and from whose nodes one
 * sees `from` (UUID; "": nothing is read); "": a scheduler is to choose, or to say that there is
 * none. With no back end at all nothing is accepted, so nothing waits that only a person can help.
 * NULL: an error. */
static const char *choose_backend(const struct config *head, const struct resource *resource,
                                  const char *name, const char *from, GError **error)
{
    g_autoptr(GPtrArray) all = config_list(head, "backend");
    const struct backend *only = NULL;
    guint fitting = 0;
    if (*name) {
        const struct backend *named = config_find(head, "backend", name, error);
        return named && type_fits(head, resource, named, error) &&
                       (!*from || wconf_work_one_sees_both(head, from, named->uuid, error))
                   ? named->uuid
                   : NULL;
    }
    if (!all->len) {
        fettle_set_error(error, WRONG_STATE, "there is no back end; add one: fettle backend add");
        return NULL;
    }
    for (guint i = 0; i < all->len; i++) {
        const struct backend *backend = all->pdata[i];
        if (!type_fits(head, resource, backend, NULL) ||
            (*from && !resource_backends_meet(head, from, backend->uuid)))
            continue;
        only = backend;
        fitting++;
    }
    return fitting == 1 ? only->uuid : "";
}

static bool put_on(const struct config *head, const struct accept_work_args *args,
                   struct resource *resource, const char *from, GError **error)
{
    const char *backend = choose_backend(head, resource, args->backend, from, error);
    resource->backend = backend ? backend : "";
    return backend != NULL;
}

static bool make_blank(const struct config *head, const struct accept_work_args *args,
                       struct resource *resource, GError **error)
{
    if (!args->size) {
        fettle_set_error(error, WRONG_INPUT, "size: %s needs one, 1 GiB at least", args->operation);
        return false;
    }
    resource->size = args->size;
    return put_on(head, args, resource, "", error);
}

/* What is converted may be made elsewhere. */
static bool make_of_image(const struct config *head, const struct accept_work_args *args,
                          struct resource *resource, struct resource *ret_image, GError **error)
{
    if (resource->type != RESOURCE_VOLUME)
        fettle_set_error(error, WRONG_INPUT, "image: %s takes none", args->operation);
    else if (*args->source || *args->volume)
        fettle_set_error(error, WRONG_INPUT, "image: a snapshot or a volume is named already");
    else
        return wconf_work_make_of_image(head, args, resource, ret_image, error) &&
               put_on(head, args, resource, ret_image->backend, error);
    return false;
}

struct work_request wconf_work_request(void)
{
    struct resource nothing = resource_read(RESOURCE_VOLUME, NULL);
    return (struct work_request){nothing, nothing, nothing, "", "", false, false};
}

bool wconf_work_may_hold(const struct config *head, const char *operation,
                         const struct resource *partner, GError **error)
{
    return is_not_held(head, partner, error) &&
           wconf_work_may_read(head, operation, partner, error);
}

/* What is whole, and to which nobody does anything. Under its guest one copy is made at a time
 * (SAF-59). */
bool wconf_work_may_read(const struct config *head, const char *operation,
                         const struct resource *source, GError **error)
{
    if (!has_no_row(head, source, error) ||
        (!wconf_work_unattached(head, source, NULL) && !is_not_held(head, source, error)))
        return false;
    if (resource_is_ready(source))
        return true;
    fettle_set_error(error, WRONG_STATE, "%s %s is %s; %s needs %s", resource_kind(source->type),
                     resource_name(source), source->status, operation,
                     resource_ready_status(source->type));
    return false;
}

/* A copy is made where its source is. */
static bool backend_fits(const struct config *head, const struct accept_work_args *args,
                         const struct resource *source, GError **error)
{
    const struct backend *own = config_get(head, "backend", source->backend, NULL);
    if (!*args->backend || config_find(head, "backend", args->backend, NULL) == own)
        return true;
    fettle_set_error(error, WRONG_INPUT, "backend: %s %s is on %s, and what is made of it too",
                     resource_kind(source->type), resource_name(source),
                     own ? own->name : source->backend);
    return false;
}

/* Without another one it has the type of the volume that the snapshot is of. */
static bool make_volume_of(const struct config *head, const struct accept_work_args *args,
                           const struct resource *snapshot, struct resource *resource,
                           GError **error)
{
    const struct backend *backend = config_get(head, "backend", snapshot->backend, NULL);
    if (!*resource->volume_type)
        resource->volume_type =
            snapshot->type == RESOURCE_VOLUME
                ? snapshot->volume_type
                : resource_of(head, RESOURCE_VOLUME, snapshot->volume).volume_type;
    else if (backend && !type_fits(head, resource, backend, error))
        return false;
    resource->size = args->size ? args->size : snapshot->size;
    if (resource->size >= snapshot->size)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "size: %" G_GUINT64_FORMAT " GiB is smaller than %s %s, which has "
                     "%" G_GUINT64_FORMAT " GiB",
                     args->size, resource_kind(snapshot->type), resource_name(snapshot),
                     snapshot->size);
    return false;
}

static bool make_snapshot_of(const struct config *head, const struct accept_work_args *args,
                             const struct resource *volume, struct resource *resource,
                             GError **error)
{
    g_autoptr(GPtrArray) snapshots = config_volume_snapshots(head, volume->uuid);
    resource->size = volume->size;
    resource->volume = volume->uuid;
    if (args->size)
        fettle_set_error(error, WRONG_INPUT, "size: %s takes none", args->operation);
    else if (snapshots->len >= LIMIT_VOLUME_SNAPSHOTS)
        fettle_set_error(error, NO_RESOURCES, "volume %s has %u snapshots, and can have no more",
                         resource_name(volume), snapshots->len);
    return !args->size && snapshots->len < LIMIT_VOLUME_SNAPSHOTS;
}

static bool make_copy(const struct config *head, const struct accept_work_args *args,
                      struct resource *resource, struct resource *ret_source, GError **error)
{
    bool snapshots = resource->type == RESOURCE_SNAPSHOT, clones = !snapshots && *args->volume;
    struct resource source =
        resource_find(head, snapshots || clones ? RESOURCE_VOLUME : RESOURCE_SNAPSHOT,
                      clones ? args->volume : args->source, error);
    *ret_source = source;
    resource->backend = source.backend;
    return source.exists && wconf_work_may_read(head, args->operation, &source, error) &&
           backend_fits(head, args, &source, error) &&
           (snapshots ? make_snapshot_of(head, args, &source, resource, error)
                      : make_volume_of(head, args, &source, resource, error));
}

bool wconf_work_make(const struct config *head, const struct accept_work_args *args,
                     struct work_request *request, GError **error)
{
    request->resource = resource_of(head, args->resource_type, args->commit_id);
    struct resource *resource = &request->resource;
    bool made = false;
    resource->name = args->name;
    resource->description = args->description;
    resource->project = args->project;
    if (*args->resource)
        fettle_set_error(error, WRONG_INPUT, "resource: %s makes it", args->operation);
    else if (resource->exists)
        fettle_set_error(error, ALREADY_EXISTS, "%s %s exists already",
                         resource_kind(resource->type), args->commit_id);
    else if (args->cascade)
        fettle_set_error(error, WRONG_INPUT, "cascade: %s takes none", args->operation);
    else if (!wconf_work_name_fits(head, resource, args->name, args->unique_name, error))
        made = false;
    else if (!find_type(head, args, resource, error))
        made = false;
    else if (*args->target || args->migrate)
        fettle_set_error(error, WRONG_INPUT, "%s: %s takes none",
                         *args->target ? "target" : "migrate", args->operation);
    else if (*args->image)
        made = make_of_image(head, args, resource, &request->source, error);
    else if (resource->type == RESOURCE_BACKUP)
        return wconf_work_make_backup(head, args, request, error);
    else if (*args->snapshot)
        fettle_set_error(error, WRONG_INPUT, "snapshot: %s takes none", args->operation);
    else if (*args->volume && (*args->source || resource->type != RESOURCE_VOLUME))
        fettle_set_error(error, WRONG_INPUT,
                         "volume: only create-volume takes one, and nothing else beside it");
    else if (*args->source || *args->volume || resource->type == RESOURCE_SNAPSHOT)
        made = make_copy(head, args, resource, &request->source, error);
    else
        made = make_blank(head, args, resource, error);
    request->backend = resource->backend;
    return made;
}
