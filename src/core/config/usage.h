/*
 * What a project has of what is stored, and whether a request is within its quota; what a back end
 * has promised. For who accepts a request, on the head.
 */
#pragma once

#include "core/config/model.h"

struct usage {
    guint64 volumes, snapshots, backups;
    guint64 gigabytes; /* of volumes and snapshots together; of a volume that grows the size that it
                          is to have */
    guint64 backup_gigabytes;
    guint64 per_volume_gigabytes; /* of what is made, or grows: the volume itself */
};

struct usage usage_of(const struct config *config, const char *project);
/* LIMIT, in the words of Cinder: with that much `more` the project would have more than `limits`
 * allow. What a request does not add to is not asked. */
bool usage_fits(const struct config *config, const char *project, const struct quota_limits *limits,
                const struct usage *more, GError **error);
/* Of volumes that have data, or get some, or are on their way to it, and of snapshots and backups,
 * which have data of their own; what a backup is no larger than is known once it is there. */
guint64 usage_promised_mib(const struct config *config, const struct backend *backend);
