/* See usage.h. */
#include "core/config/usage.h"

#include "core/config/attachments.h"
#include "core/config/resource.h"

#define GIB_MIB 1024u

struct usage usage_of(const struct config *config, const char *project)
{
    g_autoptr(GPtrArray) volumes = config_project_volumes(config, project);
    g_autoptr(GPtrArray) snapshots = config_project_snapshots(config, project);
    g_autoptr(GPtrArray) backups = config_project_backups(config, project);
    struct usage usage = {
        .volumes = volumes->len, .snapshots = snapshots->len, .backups = backups->len};
    for (guint i = 0; i < volumes->len; i++)
        usage.gigabytes += config_volume_gib(config, volumes->pdata[i]);
    for (guint i = 0; i < snapshots->len; i++)
        usage.gigabytes += ((const struct snapshot *)snapshots->pdata[i])->size;
    for (guint i = 0; i < backups->len; i++)
        usage.backup_gigabytes += ((const struct backup *)backups->pdata[i])->size;
    return usage;
}

static bool fits(gint64 limit, guint64 used, guint64 more)
{
    return !more || limit < 0 || used + more <= (guint64)limit;
}

static bool count_fits(const char *error_name, const char *what, gint64 limit, guint64 used,
                       guint64 more, GError **error)
{
    if (fits(limit, used, more))
        return true;
    fettle_set_error(error, LIMIT,
                     "%s: Maximum number of %s allowed (%" G_GINT64_FORMAT
                     ") exceeded for quota '%s'.",
                     error_name, what, limit, what);
    return false;
}

static bool size_fits(const char *error_name, const char *what, const char *quota, gint64 limit,
                      guint64 used, guint64 more, GError **error)
{
    if (fits(limit, used, more))
        return true;
    fettle_set_error(error, LIMIT,
                     "%s: Requested %s exceeds allowed %s quota. Requested %" G_GUINT64_FORMAT
                     "G, quota is %" G_GINT64_FORMAT "G and %" G_GUINT64_FORMAT
                     "G has been consumed.",
                     error_name, what, quota, more, limit, used);
    return false;
}

static bool volume_fits(gint64 limit, guint64 size, GError **error)
{
    if (fits(limit, 0, size))
        return true;
    fettle_set_error(error, LIMIT,
                     "VolumeSizeExceedsLimit: Requested volume size %" G_GUINT64_FORMAT
                     "G is larger than maximum allowed limit %" G_GINT64_FORMAT "G.",
                     size, limit);
    return false;
}

bool usage_fits(const struct config *config, const char *project, const struct quota_limits *limits,
                const struct usage *more, GError **error)
{
    struct usage used = usage_of(config, project);
    return volume_fits(limits->per_volume_gigabytes, more->per_volume_gigabytes, error) &&
           count_fits("VolumeLimitExceeded", "volumes", limits->volumes, used.volumes,
                      more->volumes, error) &&
           count_fits("SnapshotLimitExceeded", "snapshots", limits->snapshots, used.snapshots,
                      more->snapshots, error) &&
           count_fits("BackupLimitExceeded", "backups", limits->backups, used.backups,
                      more->backups, error) &&
           size_fits("VolumeSizeExceedsAvailableQuota", "volume or snapshot", "gigabytes",
                     limits->gigabytes, used.gigabytes, more->gigabytes, error) &&
           size_fits("VolumeBackupSizeExceedsAvailableQuota", "backup", "Backup gigabytes",
                     limits->backup_gigabytes, used.backup_gigabytes, more->backup_gigabytes,
                     error);
}

/* How many data of its size a volume has, or is to get: what is restored over it, or its backup is
 * made of while its guest runs, is beside what it has until that ends. */
static guint count_data(const struct config *config, const struct volume *volume)
{
    bool restoring = volume->status == VOLUME_RESTORING_BACKUP;
    if (!*volume->data)
        return volume->status == VOLUME_CREATING || volume->status == VOLUME_DOWNLOADING ||
               restoring;
    if (volume->status == VOLUME_BACKING_UP)
        return attachment_may_run(config, volume) ? 2 : 1;
    if (!restoring)
        return 1;
    g_autoptr(GPtrArray) rows = config_held_work(config, RESOURCE_VOLUME, volume->uuid);
    return rows->len ? 2 : 1;
}

guint64 usage_promised_mib(const struct config *config, const struct backend *backend)
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
    g_autoptr(GPtrArray) rows = config_backend_work(config, backend->uuid);
    for (guint i = 0; i < rows->len; i++)
        gib += resource_is_moved(rows->pdata[i]) ? resource_of_row(config, rows->pdata[i]).size : 0;
    return gib * GIB_MIB + mib;
}
