/* See volume_choose.h. */
#include "core/storage/volume_choose.h"

#include <string.h>

#include "core/config/resource.h"
#include "core/config/volume_types.h"

#define GIB_MIB 1024u

struct judging {
    const struct config *config;
    const GPtrArray *spaces;
    const struct volume_type *type; /* NULL: none */
    const char *from;               /* back end that is read; "": none */
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

/* How many data of its size a volume has, or is to get: what is restored over it is beside what it
 * has until that ends. */
static guint count_data(const struct config *config, const struct volume *volume)
{
    bool restoring = volume->status == VOLUME_RESTORING_BACKUP;
    if (!*volume->data)
        return volume->status == VOLUME_CREATING || restoring;
    if (!restoring)
        return 1;
    g_autoptr(GPtrArray) rows = config_held_work(config, RESOURCE_VOLUME, volume->uuid);
    return rows->len ? 2 : 1;
}

/* Of volumes that have data, or get some, and of snapshots, backups and images, which have data of
 * their own; how large a file becomes is known once it is there, and before what it is of. */
static guint64 promised_mib(const struct config *config, const struct backend *backend)
{
    guint64 gib = 0;
    g_autoptr(GPtrArray) all = config_backend_volumes(config, backend->uuid);
    for (guint i = 0; i < all->len; i++) {
        const struct volume *volume = all->pdata[i];
        guint count = count_data(config, volume);
        gib += count ? count * config_volume_gib(config, volume) : 0;
    }
    g_autoptr(GPtrArray) snapshots = config_backend_snapshots(config, backend->uuid);
    for (guint i = 0; i < snapshots->len; i++) {
        const struct snapshot *snapshot = snapshots->pdata[i];
        gib += *snapshot->data || snapshot->status == SNAPSHOT_CREATING ? snapshot->size : 0;
    }
    g_autoptr(GPtrArray) backups = config_backend_backups(config, backend->uuid);
    guint64 mib = 0;
    for (guint i = 0; i < backups->len; i++) {
        const struct backup *backup = backups->pdata[i];
        mib += backup->status == BACKUP_CREATING ? backup->size * GIB_MIB : backup->bytes / MIB(1);
    }
    g_autoptr(GPtrArray) images = config_backend_images(config, backend->uuid);
    for (guint i = 0; i < images->len; i++) {
        const struct image *image = images->pdata[i];
        mib += (image->status == IMAGE_SAVING ? image->virtual_size : image->size) / MIB(1);
    }
    return gib * GIB_MIB + mib;
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

/* What may be promised yet: neither more than all volumes together may have, nor more than what is
 * free now allows. */
static guint64 left_mib(const struct config *config, const struct backend *backend,
                        const struct backend_space *space)
{
    guint64 reserved = reserved_mib(backend, space), promised = promised_mib(config, backend);
    guint64 capacity = capacity_mib(backend, space);
    guint64 room = space->free_mib > reserved ? space->free_mib - reserved : 0;
    return MIN(overcommitted(backend, room), capacity > promised ? capacity - promised : 0);
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
    if (!volume_type_fits(judging->type, backend)) {
        tell(judging, backend, "is not for type %s", judging->type->name);
        return;
    }
    if (*judging->from && !resource_backends_meet(judging->config, judging->from, backend->uuid)) {
        tell(judging, backend, "is served by no node that sees the image");
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
                                 const struct volume *volume, const char **ret_uuid, char **ret_why)
{
    g_autoptr(GString) why = g_string_new(NULL);
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, volume->uuid);
    const struct worker *row = config_get(config, "worker", key, NULL);
    struct judging judging = {.config = config,
                              .spaces = spaces,
                              .type = config_get(config, "volume_type", volume->volume_type, NULL),
                              .from = row ? resource_read_from(config, row) : "",
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
    g_autofree char *most = sized(capacity), *rest = sized(left);
    g_autofree char *total = sized(space->total_mib), *free = sized(space->free_mib);
    g_autofree char *promised = sized(promised_mib(config, backend));
    g_autofree char *limits =
        g_strdup_printf("reserved %" G_GUINT64_FORMAT " %%, overcommit %" G_GUINT64_FORMAT " %%",
                        backend->reserved_percent, backend->overcommit);
    g_autofree char *advice = g_strdup_printf(
        "or have it promise more: fettle backend modify %s --overcommit PERCENT", backend->name);
    if (never)
        fettle_set_error(error, NO_RESOURCES,
                         "back end %s holds %s at most, not %" G_GUINT64_FORMAT
                         " GiB: it has %s (%s); take a smaller size or another back end, %s",
                         backend->name, most, size_gib, total, limits, advice);
    else
        fettle_set_error(error, NO_RESOURCES,
                         "back end %s has %s left, not %" G_GUINT64_FORMAT
                         " GiB: of its %s %s are free, and %s are promised (%s); delete what is "
                         "not needed there, take another back end, %s",
                         backend->name, rest, more_gib, total, free, promised, limits, advice);
    return false;
}
