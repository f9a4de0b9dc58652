/* See volume_choose.h. */
#include "core/storage/volume_choose.h"

#include <string.h>

#include "core/config/resource.h"
#include "core/config/usage.h"
#include "core/config/volume_types.h"

#define GIB_MIB 1024u

struct judging {
    const struct config *config;
    const GPtrArray *spaces;
    const struct volume_type *type; /* NULL: none */
    const char *from;               /* back end that is read, if it is another one; else "" */
    bool moves;                     /* that is the one that it leaves */
    guint64 need_mib;
    const struct backend *best;
    guint64 best_mib;
    bool could; /* one could hold it one day */
    GString *why;
};

static const struct backend_space *space_of(const struct judging *judging,
                                            const struct backend *backend)
{
    for (guint i = 0; i < judging->spaces->len; i++) {
        const struct backend_space *space = judging->spaces->pdata[i];
        if (space->total_mib && !strcmp(space->backend, backend->uuid))
            return space;
    }
    return NULL;
}

static bool is_served(const struct config *config, const struct backend *backend)
{
    g_autoptr(GPtrArray) all = config_list(config, "storage_service");
    for (guint i = 0; i < all->len; i++) {
        const struct storage_service *service = all->pdata[i];
        if (service->state == STORAGE_UP && !service->disabled &&
            !strcmp(service->backend, backend->uuid))
            return true;
    }
    return false;
}

static guint64 overcommitted(const struct backend *backend, guint64 mib)
{
    return (guint64)((double)mib * (double)backend->overcommit / 100);
}

static guint64 reserved_mib(const struct backend *backend, const struct backend_space *space)
{
    return space->total_mib / 100 * backend->reserved_percent;
}

/* What may be promised of all that it has. */
static guint64 capacity_mib(const struct backend *backend, const struct backend_space *space)
{
    return overcommitted(backend, space->total_mib - reserved_mib(backend, space));
}

static guint64 less(guint64 mib, guint64 taken_mib)
{
    return mib > taken_mib ? mib - taken_mib : 0;
}

/* Free, neither reserved nor about to be written. */
static guint64 room_mib(const struct config *config, const struct backend *backend,
                        const struct backend_space *space)
{
    return less(space->free_mib, reserved_mib(backend, space) + usage_coming_mib(config, backend));
}

/* What may be promised yet: neither more than all volumes together may have, nor more than what is
 * free now allows. */
static guint64 left_mib(const struct config *config, const struct backend *backend,
                        const struct backend_space *space)
{
    return MIN(overcommitted(backend, room_mib(config, backend, space)),
               less(capacity_mib(backend, space), usage_promised_mib(config, backend)));
}

/* `12 GiB`; of less than one `239 MiB`. */
static char *sized(guint64 mib)
{
    return mib < GIB_MIB ? g_strdup_printf("%" G_GUINT64_FORMAT " MiB", mib)
                         : g_strdup_printf("%" G_GUINT64_FORMAT " GiB", mib / GIB_MIB);
}

static void tell(struct judging *judging, const struct backend *backend, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static void tell(struct judging *judging, const struct backend *backend, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_string_append_printf(judging->why, "%s%s ", judging->why->len ? "; " : "", backend->name);
    g_string_append_vprintf(judging->why, format, args);
    va_end(args);
}

static void judge(struct judging *judging, const struct backend *backend)
{
    if (judging->moves && !strcmp(judging->from, backend->uuid)) {
        tell(judging, backend, "is where it is");
        return;
    }
    if (!volume_type_fits(judging->type, backend)) {
        tell(judging, backend, "is not for type %s", judging->type->name);
        return;
    }
    if (*judging->from && !resource_backends_meet(judging->config, judging->from, backend->uuid)) {
        const struct backend *from = config_get(judging->config, "backend", judging->from, NULL);
        tell(judging, backend, "is served by no node that serves %s",
             from ? from->name : judging->from);
        return;
    }
    const struct backend_space *space = space_of(judging, backend);
    guint64 capacity = space ? capacity_mib(backend, space) : 0;
    if (space && capacity < judging->need_mib) {
        g_autofree char *most = sized(capacity);
        tell(judging, backend, "holds %s at most", most);
        return;
    }
    judging->could = true;
    guint64 left = space ? left_mib(judging->config, backend, space) : 0;
    g_autofree char *rest = sized(left);
    if (!is_served(judging->config, backend))
        tell(judging, backend, "has no volume service that is up and enabled");
    else if (!space)
        tell(judging, backend, "has not said yet how much space it has");
    else if (left < judging->need_mib)
        tell(judging, backend, "has %s left", rest);
    else if (!judging->best || left > judging->best_mib) {
        judging->best = backend;
        judging->best_mib = left;
    }
}

enum volume_choice volume_choose(const struct config *config, const GPtrArray *spaces,
                                 const struct volume *volume, const struct worker *row,
                                 const char **ret_uuid, char **ret_why)
{
    const char *type = *row->volume_type ? row->volume_type : volume->volume_type;
    bool moves = resource_is_moved(row);
    g_autoptr(GString) why = g_string_new(NULL);
    struct judging judging = {.config = config,
                              .spaces = spaces,
                              .type = config_get(config, "volume_type", type, NULL),
                              .from = moves ? volume->backend : resource_read_from(config, row),
                              .moves = moves,
                              .need_mib = volume->size * GIB_MIB,
                              .why = why};
    g_autoptr(GPtrArray) all = config_list(config, "backend");
    for (guint i = 0; i < all->len; i++)
        judge(&judging, all->pdata[i]);
    if (judging.best) {
        *ret_uuid = judging.best->uuid;
        return VOLUME_CHOSEN;
    }
    *ret_why = g_strdup_printf("no back end for %" G_GUINT64_FORMAT " GiB: %s", volume->size,
                               all->len ? why->str : "there is none");
    return judging.could ? VOLUME_WAITS : VOLUME_NEVER_FITS;
}

/* How it stands: what is free, what is promised, what limits that. Free with g_free(). */
static char *stand_of(const struct config *config, const struct backend *backend,
                      const struct backend_space *space)
{
    g_autofree char *total = sized(space->total_mib), *free = sized(space->free_mib);
    g_autofree char *promised = sized(usage_promised_mib(config, backend));
    return g_strdup_printf("of its %s %s are free, and %s are promised (reserved "
                           "%" G_GUINT64_FORMAT " %%, overcommit %" G_GUINT64_FORMAT " %%)",
                           total, free, promised, backend->reserved_percent, backend->overcommit);
}

#define ADVICE "have it promise more: fettle backend modify %s --overcommit PERCENT"

bool volume_has_room(const struct config *config, const struct backend *backend,
                     const struct backend_space *space, guint64 size_gib, guint64 more_gib,
                     GError **error)
{
    if (!space)
        return true;
    guint64 capacity = capacity_mib(backend, space), left = left_mib(config, backend, space);
    bool never = capacity < size_gib * GIB_MIB;
    if (!never && (left >= more_gib * GIB_MIB || !is_served(config, backend)))
        return true;
    g_autofree char *most = sized(capacity), *rest = sized(left), *total = sized(space->total_mib);
    g_autofree char *stand = stand_of(config, backend, space);
    if (never)
        fettle_set_error(error, NO_RESOURCES,
                         "back end %s holds %s at most, not %" G_GUINT64_FORMAT
                         " GiB: it has %s (reserved %" G_GUINT64_FORMAT
                         " %%, overcommit %" G_GUINT64_FORMAT
                         " %%); take a smaller size or another back end, or " ADVICE,
                         backend->name, most, size_gib, total, backend->reserved_percent,
                         backend->overcommit, backend->name);
    else
        fettle_set_error(
            error, NO_RESOURCES,
            "back end %s has %s left, not %" G_GUINT64_FORMAT
            " GiB: %s; delete what is not needed there, take another back end, or " ADVICE,
            backend->name, rest, more_gib, stand, backend->name);
    return false;
}

/* As all of it will be written, what may be overcommitted makes no room. */
guint64 volume_room_of_image(const struct config *config, const struct backend *backend,
                             const struct backend_space *space, guint64 bytes, GError **error)
{
    guint64 left = MIN(left_mib(config, backend, space), room_mib(config, backend, space));
    guint64 most = MIN(left * MIB(1) / (bytes ? 1 : 2), LIMIT_IMAGE_BYTES);
    if (bytes ? bytes <= most : most > 0)
        return bytes ? bytes : most;
    g_autofree char *rest = sized(left), *more = sized((bytes + MIB(1) - 1) / MIB(1));
    g_autofree char *stand = stand_of(config, backend, space);
    fettle_set_error(error, NO_RESOURCES,
                     "back end %s has %s left for an image%s%s: %s; delete what is not needed "
                     "there, or send it to another back end",
                     backend->name, rest, bytes ? ", not " : "", bytes ? more : "", stand);
    return 0;
}
