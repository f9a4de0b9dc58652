/* See usage.h. */
#include "core/config/usage.h"

struct usage usage_of(const struct config *config, const char *project)
{
    g_autoptr(GPtrArray) volumes = config_project_volumes(config, project);
    g_autoptr(GPtrArray) snapshots = config_project_snapshots(config, project);
    struct usage usage = {.volumes = volumes->len, .snapshots = snapshots->len};
    for (guint i = 0; i < volumes->len; i++)
        usage.gigabytes += config_volume_gib(config, volumes->pdata[i]);
    for (guint i = 0; i < snapshots->len; i++)
        usage.gigabytes += ((const struct snapshot *)snapshots->pdata[i])->size;
    return usage;
}

static bool fits(const char *project, const char *what, gint64 limit, guint64 used, guint64 more,
                 GError **error)
{
    if (!more || limit < 0 || used + more <= (guint64)limit)
        return true;
    fettle_set_error(error, LIMIT,
                     "quota: project %s may have %" G_GINT64_FORMAT " %s, has %" G_GUINT64_FORMAT
                     ", and asks for %" G_GUINT64_FORMAT " more",
                     project, limit, what, used, more);
    return false;
}

bool usage_fits(const struct config *config, const char *project, const struct quota_limits *limits,
                const struct usage *more, GError **error)
{
    struct usage used = usage_of(config, project);
    return fits(project, "volumes", limits->volumes, used.volumes, more->volumes, error) &&
           fits(project, "snapshots", limits->snapshots, used.snapshots, more->snapshots, error) &&
           fits(project, "GiB", limits->gigabytes, used.gigabytes, more->gigabytes, error);
}
