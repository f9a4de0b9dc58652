/*
 * See points.h.
 */
#include "core/node/volume/points.h"

#include "base/log.h"
#include "core/config/resource.h"
#include "core/node/confirm.h"
#include "core/node/reconcile.h"
#include "core/node/volume/volumes.h"
#include "proto/storage/volume_driver.h"

#define CLOSE_WAIT_MS 2000 /* of one call; who wants more asks again */
#define ASK_MS 10000       /* between two questions whether a claim stands */

/* --- the end --- */

static bool end_one(struct guest *guest, struct guest_volume *volume, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    bool gone = !guest->live;
    if (!volume->point)
        return true;
    if (guest->live && !hv->ops->point_close(hv, guest->record->instance, guest->record->generation,
                                             volume, volume->point, CLOSE_WAIT_MS, &gone, error))
        return false;
    if (!gone) {
        fettle_set_error(error, TEMPORARY,
                         "the copy that is made of %s under its guest has not ended yet; try again",
                         volume->path);
        return false;
    }
    volume->point = 0;
    return guest_save(guest, error);
}

bool points_end(struct guest *guest, const char *uuid, GError **error)
{
    const GPtrArray *volumes = guest->record->volumes;
    for (guint i = 0; i < volumes->len; i++) {
        struct guest_volume *volume = volumes->pdata[i];
        if ((!uuid || strcmp(volume->volume, uuid) == 0) && !end_one(guest, volume, error))
            return false;
    }
    return true;
}

/* --- the beginning --- */

/* FOLDER/KINDs/NAME, of FOLDER/volumes/… as the volume's own data is. */
static char *path_beside(const struct guest_volume *volume, const struct point_open_args *args,
                         GError **error)
{
    g_autofree char *own = g_path_get_dirname(volume->path), *uuid = NULL;
    g_autofree char *folder = g_path_get_dirname(own);
    guint64 claim = 0;
    if (volume_data_parse(args->name, &uuid, &claim) && claim == args->claim)
        return g_strdup_printf("%s/%ss/%s", folder, resource_kind(args->resource_type), args->name);
    fettle_set_error(error, WRONG_INPUT,
                     "name: \"%s\" is not UUID.%" G_GUINT64_FORMAT ", by its claim (SAF-52)",
                     args->name, args->claim);
    return NULL;
}

/* A process that stays as it is: one of {point, migration, end} at a time. */
static bool may_begin(struct guest *guest, const struct guest_volume *volume, GError **error)
{
    g_autofree char *name = guest_name(guest);
    if (guest->outgoing || guest->record->phase != PHASE_STARTED || guest->ending)
        fettle_set_error(error, TEMPORARY,
                         "%s is being moved or ended; its volume %s can be copied under it once "
                         "that is over",
                         name, volume->path);
    else if (volume->leaving)
        fettle_set_error(error, WRONG_STATE, "%s is asked to give %s up; detach it, or wait", name,
                         volume->path);
    else
        return guest_check_generation(guest, guest->record->generation, error) &&
               reconcile_adopt(guest, error);
    return false;
}

static bool note_point(struct guest *guest, struct guest_volume *volume, guint64 claim,
                       GError **error)
{
    volume->point = claim;
    return guest_save(guest, error);
}

/* An older one is of work that has ended: a volume is read by one row at a time under its guest. */
static bool open_locked(struct guest *guest, struct guest_volume *volume,
                        const struct point_open_args *args, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    const struct guest_record *record = guest->record;
    g_autofree char *path = path_beside(volume, args, error);
    if (!path || !may_begin(guest, volume, error))
        return false;
    if (volume->point > args->claim) {
        fettle_set_error(error, REFUSED,
                         "claim %" G_GUINT64_FORMAT " is over: %" G_GUINT64_FORMAT " is copied",
                         args->claim, volume->point);
        return false;
    }
    if (!confirm_point(guest->node, record->instance, record->generation, volume->attachment,
                       args->claim, error) ||
        (volume->point < args->claim && !end_one(guest, volume, error)) ||
        !note_point(guest, volume, args->claim, error))
        return false;
    if (hv->ops->point_open(hv, record->instance, record->generation, volume, args->claim, path,
                            error))
        return true;
    end_one(guest, volume, NULL); /* else its watch does */
    return false;
}

/* --- what has come of it --- */

static json_t *look(struct guest *guest, const char *uuid, guint64 claim, GError **error)
{
    record_autoptr(point_status) status = point_status_new();
    const struct guest_volume *volume = guest ? volumes_find(guest, uuid) : NULL;
    struct hypervisor *hv = guest ? guest->node->hv : NULL;
    status->here = volume && guest->live;
    if (status->here && volume->point == claim &&
        !hv->ops->point_look(hv, guest->record->instance, guest->record->generation, claim, status,
                             error))
        return NULL;
    return point_status_to_json(status);
}

json_t *points_look(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error)
{
    const struct point_args *point = args;
    return look(volumes_guest_with(node, point->volume), point->volume, point->claim, error);
}

json_t *points_open(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error)
{
    const struct point_open_args *open = args;
    struct guest *guest = volumes_guest_with(node, open->volume);
    if (guest && !guest_lock(guest, op, error))
        return NULL;
    struct guest_volume *volume = guest && guest->live ? volumes_find(guest, open->volume) : NULL;
    bool ok = !volume || open_locked(guest, volume, open, error);
    if (guest)
        guest_unlock(guest);
    return ok ? look(guest, open->volume, open->claim, error) : NULL;
}

/* --- claims that stand no more --- */

/* Asked once, and not with the guest locked: without an answer it stays as it is. */
static bool is_over(const struct guest *guest, const struct guest_volume *volume)
{
    g_autoptr(GPtrArray) items = g_ptr_array_new();
    struct confirm_item item = {CONFIRM_POINT, guest->record->instance, guest->record->generation,
                                volume->attachment, volume->point};
    g_ptr_array_add(items, &item);
    struct confirm_answers *answers = confirm_ask(guest->node, items, NULL);
    bool over = answers && ((const struct confirm_result *)answers->items->pdata[0])->answer ==
                               CONFIRM_REFUSED;
    confirm_answers_free(answers);
    return over;
}

static void end_if_same(struct guest *guest, const struct guest_volume *asked)
{
    struct guest_volume *volume = volumes_find(guest, asked->volume);
    if (!volume || volume->point != asked->point || !end_one(guest, volume, NULL))
        return;
    g_autofree char *fields = g_strdup_printf("INSTANCE=%s", guest->record->instance);
    log_info(fields,
             "ended the copy of volume %s: the work with claim %" G_GUINT64_FORMAT " is over",
             asked->volume, asked->point);
}

static const struct guest_volume *first_copied(const struct guest *guest)
{
    const GPtrArray *volumes = guest->record->volumes;
    for (guint i = 0; i < volumes->len; i++)
        if (((const struct guest_volume *)volumes->pdata[i])->point)
            return volumes->pdata[i];
    return NULL;
}

/* One of them; the next ones when it is gone. */
void points_watch(struct guest *guest)
{
    gint64 now = guest->node->env->ops->boot_ms(guest->node->env);
    const struct guest_volume *first = guest->live ? first_copied(guest) : NULL;
    if (!first || now - guest->points_asked_ms < ASK_MS)
        return;
    record_autoptr(guest_volume) volume = guest_volume_copy(first);
    guest->points_asked_ms = now;
    if (!is_over(guest, volume) || guest->procedure.locked || !guest_lock(guest, NULL, NULL))
        return;
    end_if_same(guest, volume);
    guest_unlock(guest);
}

/* --- an end that is asked for --- */

/* The claim that is copied under, which is that one or is over: a newer one does not end those
 * before it, as whoever asks may be anybody's node. 0: nothing is to be ended. */
static guint64 to_be_ended(struct node_core *node, const struct point_args *close)
{
    struct guest *guest = volumes_guest_with(node, close->volume);
    const struct guest_volume *volume = guest ? volumes_find(guest, close->volume) : NULL;
    if (!volume || volume->point >= close->claim)
        return volume && volume->point == close->claim ? close->claim : 0;
    record_autoptr(guest_volume) older = guest_volume_copy(volume);
    return older->point && is_over(guest, older) ? older->point : 0;
}

json_t *points_close(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error)
{
    const struct point_args *close = args;
    guint64 claim = to_be_ended(node, close);
    struct guest *guest = claim ? volumes_guest_with(node, close->volume) : NULL;
    if (!guest)
        return json_object();
    if (!guest_lock(guest, op, error))
        return NULL;
    struct guest_volume *volume = volumes_find(guest, close->volume);
    bool ok = !volume || volume->point != claim || end_one(guest, volume, error);
    guest_unlock(guest);
    return ok ? json_object() : NULL;
}
