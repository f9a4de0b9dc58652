/*
 * What accept_work is about where a volume is moved to another back end, or gets another type, with
 * its data or without. See wconf_work_private.h.
 */
#include <string.h>

#include "core/config/volume_types.h"
#include "core/wconfd/wconf_work_private.h"

bool wconf_work_moves(const struct work_row *row)
{
    return row->operation == TASK_OPERATION_MIGRATE_VOLUME ||
           row->operation == TASK_OPERATION_RETYPE_VOLUME;
}

static const char *name_of(const struct config *head, const char *backend)
{
    const struct backend *known = config_get(head, "backend", backend, NULL);
    return known ? known->name : backend;
}

/* --- where to --- */

static bool can_have(const struct config *head, const struct volume_type *type,
                     const struct resource *volume, const struct backend *backend)
{
    const struct backend *own = config_get(head, "backend", volume->backend, NULL);
    return own && own != backend && volume_type_fits(type, backend) &&
           resource_backends_meet(head, own->uuid, backend->uuid);
}

static const struct backend *named_target(const struct config *head, const struct volume_type *type,
                                          const struct resource *volume, const char *name,
                                          GError **error)
{
    const struct backend *named = config_find(head, "backend", name, error);
    if (!named)
        return NULL;
    if (!strcmp(named->uuid, volume->backend))
        fettle_set_error(error, WRONG_STATE, "volume %s is on %s already", resource_name(volume),
                         named->name);
    else if (!volume_type_fits(type, named))
        fettle_set_error(error, WRONG_INPUT,
                         "volume_type: %s, that of volume %s, is not for back end %s, by its extra "
                         "specs; give it another type: fettle volume retype %s --type TYPE "
                         "--migrate",
                         type->name, resource_name(volume), named->name, resource_name(volume));
    else if (wconf_work_one_sees_both(head, volume->backend, named->uuid, error))
        return named;
    return NULL;
}

/* UUID of the one that is named, or of the only one that can have it; "": a scheduler is to choose.
 * NULL: an error. */
static const char *choose_target(const struct config *head, const struct volume_type *type,
                                 const struct resource *volume, const char *name, GError **error)
{
    const struct backend *only = NULL;
    guint fitting = 0;
    if (*name) {
        const struct backend *named = named_target(head, type, volume, name, error);
        return named ? named->uuid : NULL;
    }
    g_autoptr(GPtrArray) all = config_list(head, "backend");
    for (guint i = 0; i < all->len; i++) {
        if (!can_have(head, type, volume, all->pdata[i]))
            continue;
        only = all->pdata[i];
        fitting++;
    }
    if (fitting)
        return fitting == 1 ? only->uuid : "";
    fettle_set_error(error, WRONG_STATE,
                     "volume %s can be moved nowhere: besides %s no back end is %s%s%sserved by a "
                     "node that serves %s",
                     resource_name(volume), name_of(head, volume->backend), type ? "for type " : "",
                     type ? type->name : "", type ? " and " : "", name_of(head, volume->backend));
    return NULL;
}

/* --- whether it may --- */

/* They lie beside it, and what is made of one too. */
static bool has_no_snapshots(const struct config *head, const struct resource *volume,
                             GError **error)
{
    g_autoptr(GPtrArray) snapshots = config_volume_snapshots(head, volume->uuid);
    if (!snapshots->len)
        return true;
    struct resource first = resource_read(RESOURCE_SNAPSHOT, snapshots->pdata[0]);
    g_autofree char *more =
        snapshots->len > 1 ? g_strdup_printf(" and %u more", snapshots->len - 1) : g_strdup("");
    fettle_set_error(error, WRONG_STATE,
                     "volume %s has snapshots: %s%s; they stay on %s, where their volume has to "
                     "be: delete them before it is moved, or back it up and restore that "
                     "elsewhere",
                     resource_name(volume), resource_name(&first), more,
                     name_of(head, volume->backend));
    return false;
}

static bool find_place(const struct config *head, const struct work_row *row,
                       const struct accept_work_args *args, const struct volume_type *type,
                       struct work_request *request, GError **error)
{
    const struct resource *volume = &request->resource;
    if (!wconf_work_may_begin(head, row, volume, error) || !has_no_snapshots(head, volume, error))
        return false;
    const char *target = choose_target(head, type, volume, args->backend, error);
    request->source = *volume;
    request->backend = target ? target : "";
    return target != NULL;
}

/* --- another type --- */

static const struct volume_type *new_type(const struct config *head,
                                          const struct accept_work_args *args,
                                          const struct resource *volume, GError **error)
{
    if (!*args->volume_type) {
        fettle_set_error(error, WRONG_INPUT, "volume_type: %s needs one", args->operation);
        return NULL;
    }
    const struct volume_type *type =
        wconf_work_type(head, args->volume_type, volume->project, error);
    if (!type || strcmp(type->uuid, volume->volume_type) != 0)
        return type;
    fettle_set_error(error, WRONG_STATE, "volume %s has type %s already", resource_name(volume),
                     type->name);
    return NULL;
}

/* On the spot where the type is for its back end, whoever uses it; else only if it may be moved. */
static bool find_retype(const struct config *head, const struct work_row *row,
                        const struct accept_work_args *args, struct work_request *request,
                        GError **error)
{
    struct resource *volume = &request->resource;
    const struct volume_type *type = new_type(head, args, volume, error);
    const struct backend *own = config_get(head, "backend", volume->backend, NULL);
    if (!type)
        return false;
    if (own && volume_type_fits(type, own)) {
        request->at_once = true;
        volume->volume_type = type->uuid;
        return wconf_work_is_free(head, row, volume, error);
    }
    if (!args->migrate) {
        fettle_set_error(error, WRONG_STATE,
                         "volume %s is on %s, which type %s is not for, by its extra specs; let it "
                         "be moved for that (--migrate)",
                         resource_name(volume), name_of(head, volume->backend), type->name);
        return false;
    }
    request->volume_type = type->uuid;
    return find_place(head, row, args, type, request, error);
}

bool wconf_work_find_move(const struct config *head, const struct work_row *row,
                          const struct accept_work_args *args, struct work_request *request,
                          GError **error)
{
    const char *type = request->resource.volume_type;
    if (args->size || args->cascade || args->force) {
        fettle_set_error(error, WRONG_INPUT, "%s: %s takes none",
                         args->size      ? "size"
                         : args->cascade ? "cascade"
                                         : "force",
                         args->operation);
        return false;
    }
    return row->operation == TASK_OPERATION_RETYPE_VOLUME
               ? find_retype(head, row, args, request, error)
               : find_place(head, row, args, config_get(head, "volume_type", type, NULL), request,
                            error);
}
