/*
 * What accept_work is about where backups are: a volume that is backed up, the back end that its
 * backup lies on, the volume that one is restored into; and the back ends of images. See
 * wconf_work_private.h.
 */
#include <string.h>

#include "core/config/volume_types.h"
#include "core/wconfd/wconf_work_private.h"

/* --- back ends --- */

static bool may_hold(const struct backend *backend, enum resource_type type)
{
    return type == RESOURCE_IMAGE ? backend->images : backend->backups;
}

/* "dir1, dir2", of those that may hold such; `ret_only`: if it is one. */
static char *holders(const struct config *head, enum resource_type type,
                     const struct backend **ret_only)
{
    GString *names = g_string_new(NULL);
    guint count = 0;
    g_autoptr(GPtrArray) all = config_list(head, "backend");
    for (guint i = 0; i < all->len; i++) {
        const struct backend *backend = all->pdata[i];
        if (!may_hold(backend, type))
            continue;
        g_string_append_printf(names, "%s%s", count++ ? ", " : "", backend->name);
        *ret_only = count == 1 ? backend : NULL;
    }
    return g_string_free(names, FALSE);
}

static const struct backend *named_holder(const struct config *head, enum resource_type type,
                                          const char *name, GError **error)
{
    const char *kind = resource_kind(type);
    const struct backend *named = config_find(head, "backend", name, error);
    if (!named || may_hold(named, type))
        return named;
    fettle_set_error(error, WRONG_STATE,
                     "back end %s may hold no %ss; allow it (fettle backend modify %s "
                     "--%ss yes), or name another one",
                     named->name, kind, named->name, kind);
    return NULL;
}

const struct backend *wconf_work_holder(const struct config *head, enum resource_type type,
                                        const char *name, const char *own_uuid, GError **error)
{
    const struct backend *own = config_get(head, "backend", own_uuid, NULL), *only = NULL;
    const char *kind = resource_kind(type);
    if (*name)
        return named_holder(head, type, name, error);
    if (own && may_hold(own, type))
        return own;
    g_autofree char *names = holders(head, type, &only);
    if (!*names)
        fettle_set_error(error, WRONG_STATE,
                         "no back end may hold %ss; allow one: fettle backend modify %s "
                         "--%ss yes",
                         kind, own ? own->name : "BACKEND", kind);
    else if (!only)
        fettle_set_error(error, WRONG_INPUT, "backend: name the one that is to hold it: %s", names);
    return only;
}

bool wconf_work_one_sees_both(const struct config *head, const char *first, const char *second,
                              GError **error)
{
    const struct backend *one = config_get(head, "backend", first, NULL);
    const struct backend *other = config_get(head, "backend", second, NULL);
    if (resource_backends_meet(head, first, second))
        return true;
    fettle_set_error(error, WRONG_STATE, "no node serves both back end %s and back end %s",
                     one ? one->name : first, other ? other->name : second);
    return false;
}

/* --- a backup that is made --- */

/* Nothing holds what only its snapshot is read of. */
static bool find_source(const struct config *head, const struct accept_work_args *args,
                        const struct resource *volume, struct work_request *request, GError **error)
{
    if (!*args->snapshot) {
        request->source = request->partner = *volume;
        return wconf_work_may_hold(head, args->operation, volume, error);
    }
    request->source = resource_find(head, RESOURCE_SNAPSHOT, args->snapshot, error);
    const struct resource *snapshot = &request->source;
    if (snapshot->exists && strcmp(snapshot->volume, volume->uuid) != 0) {
        fettle_set_error(error, WRONG_INPUT, "snapshot: %s is not one of volume %s",
                         resource_name(snapshot), resource_name(volume));
        return false;
    }
    return snapshot->exists && wconf_work_may_read(head, args->operation, snapshot, error);
}

bool wconf_work_make_backup(const struct config *head, const struct accept_work_args *args,
                            struct work_request *request, GError **error)
{
    struct resource volume = resource_find(head, RESOURCE_VOLUME, args->source, error);
    if (volume.exists && args->size) {
        fettle_set_error(error, WRONG_INPUT, "size: %s takes none", args->operation);
        return false;
    }
    if (!volume.exists || !find_source(head, args, &volume, request, error))
        return false;
    const struct backend *backend =
        wconf_work_holder(head, RESOURCE_BACKUP, args->backend, volume.backend, error);
    request->resource.volume = volume.uuid;
    request->resource.snapshot = *args->snapshot ? resource_name(&request->source) : "";
    request->resource.size = request->source.size;
    request->resource.backend = request->backend = backend ? backend->uuid : "";
    return backend && wconf_work_one_sees_both(head, request->source.backend, backend->uuid, error);
}

/* --- a backup that is restored --- */

static bool restore_over(const struct config *head, const struct accept_work_args *args,
                         struct work_request *request, GError **error)
{
    const struct resource *backup = &request->resource;
    const char *foreign = *args->name          ? "name"
                          : *args->description ? "description"
                          : *args->backend     ? "backend"
                          : args->unique_name  ? "unique_name"
                          : args->size         ? "size"
                                               : NULL;
    if (foreign) {
        fettle_set_error(error, WRONG_INPUT,
                         "%s: a volume that there is (%s) keeps its own; that is for a new one",
                         foreign, args->target);
        return false;
    }
    request->partner = resource_find(head, RESOURCE_VOLUME, args->target, error);
    const struct resource *volume = &request->partner;
    if (!volume->exists || !wconf_work_unattached(head, volume, error) ||
        !wconf_work_may_hold(head, args->operation, volume, error))
        return false;
    if (volume->size >= backup->size)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "volume %s has %" G_GUINT64_FORMAT " GiB, and backup %s is of "
                     "%" G_GUINT64_FORMAT " GiB; extend it first, or restore into a new one",
                     resource_name(volume), volume->size, resource_name(backup), backup->size);
    return false;
}

/* On the back end that is named, or that of the backup's volume, or the backup's own. */
static bool restore_new(const struct config *head, const struct accept_work_args *args,
                        struct work_request *request, GError **error)
{
    const struct resource *backup = &request->resource;
    struct resource from = resource_of(head, RESOURCE_VOLUME, backup->volume);
    struct resource volume = resource_of(head, RESOURCE_VOLUME, args->commit_id);
    const struct backend *named =
        *args->backend ? config_find(head, "backend", args->backend, error) : NULL;
    if ((*args->backend && !named) ||
        !wconf_work_name_fits(head, &volume, args->name, args->unique_name, error))
        return false;
    volume.name = args->name;
    volume.project = backup->project;
    volume.description = args->description;
    volume.size = args->size ? args->size : backup->size;
    volume.backend = named ? named->uuid : *from.backend ? from.backend : backup->backend;
    request->partner = volume;
    if (volume.exists)
        fettle_set_error(error, ALREADY_EXISTS, "volume %s exists already", args->commit_id);
    else if (volume.size < backup->size)
        fettle_set_error(error, WRONG_INPUT,
                         "size: %" G_GUINT64_FORMAT " GiB is smaller than backup %s, which has "
                         "%" G_GUINT64_FORMAT " GiB",
                         args->size, resource_name(backup), backup->size);
    return !volume.exists && volume.size >= backup->size;
}

bool wconf_work_find_restore(const struct config *head, const struct accept_work_args *args,
                             struct work_request *request, GError **error)
{
    if (!(*args->target ? restore_over : restore_new)(head, args, request, error))
        return false;
    request->backend = request->partner.backend;
    return wconf_work_one_sees_both(head, request->resource.backend, request->backend, error);
}
