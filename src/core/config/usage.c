/* See usage.h. */
#include "core/config/usage.h"

#include "core/config/attachments.h"
#include "core/config/resource.h"
#include "core/config/storage/takes.h"

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

/* Else nobody has to know how much that is: who may have as much as he likes has most. */
static bool is_limited(const struct quota_limits *limits, const struct usage *more)
{
    return (more->volumes && limits->volumes >= 0) || (more->snapshots && limits->snapshots >= 0) ||
           (more->backups && limits->backups >= 0) || (more->gigabytes && limits->gigabytes >= 0) ||
           (more->backup_gigabytes && limits->backup_gigabytes >= 0);
}

bool usage_fits(const struct config *config, const char *project, const struct quota_limits *limits,
                const struct usage *more, GError **error)
{
    if (!volume_fits(limits->per_volume_gigabytes, more->per_volume_gigabytes, error))
        return false;
    if (!is_limited(limits, more))
        return true;
    struct usage used = usage_of(config, project);
    return count_fits("VolumeLimitExceeded", "volumes", limits->volumes, used.volumes,
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

/* How many data of its size a volume has or is to get whose record does not tell it: what is
 * restored over it, or its backup is made of while its guest runs, is beside what it has until that
 * ends. */
static guint count_data(const struct config *config, const struct volume *volume)
{
    if (!*volume->data)
        return 0;
    if (volume->status == VOLUME_BACKING_UP)
        return attachment_may_run(config, volume) ? 2 : 1;
    if (volume->status != VOLUME_RESTORING_BACKUP)
        return 1;
    g_autoptr(GPtrArray) rows = config_held_work(config, RESOURCE_VOLUME, volume->uuid);
    return rows->len ? 2 : 1;
}

guint64 usage_coming_mib(const struct config *config, const struct backend *backend)
{
    guint64 mib = 0;
    g_autoptr(GPtrArray) images = config_backend_images(config, backend->uuid);
    for (guint i = 0; i < images->len; i++)
        mib += takes_coming_mib(images->pdata[i]);
    return mib;
}

guint64 usage_promised_mib(const struct config *config, const struct backend *backend)
{
    g_autoptr(GPtrArray) volumes = NULL, rows = NULL;
    guint64 gib = 0, mib = takes_mib(config, backend->uuid, &volumes, &rows);
    for (guint i = 0; i < volumes->len; i++)
        gib += count_data(config, volumes->pdata[i]) * config_volume_gib(config, volumes->pdata[i]);
    for (guint i = 0; i < rows->len; i++)
        gib += resource_of_row(config, rows->pdata[i]).size;
    return gib * GIB_MIB + mib;
}
