/*
 * What is on a back end, or is to get there, kept as a sum while records come and go: it is asked
 * for each request, and a back end may have thousands. For the indexes (model_index_storage.c) and
 * usage.h, which has the whole of it.
 */
#pragma once

#include "core/config/model.h"
#include "core/config/model_index.h"

/* UUID of a back end -> its sum. */
GHashTable *takes_index_new(void);
/* A record is there (`add`), or goes. */
void takes_volume(struct config_indexes *indexes, struct config_object *object, bool add);
void takes_snapshot(struct config_indexes *indexes, const struct snapshot *snapshot, bool add);
void takes_backup(struct config_indexes *indexes, const struct backup *backup, bool add);
void takes_image(struct config_indexes *indexes, const struct image *image, bool add);
void takes_row(struct config_indexes *indexes, struct config_object *object, bool add);

/* As far as each record tells it by itself (MiB). `ret_volumes`: those that are not in it, as
 * theirs depends on their rows or their guests; `ret_moves`: rows of what moves there. Arrays of
 * borrowed pointers, to be freed. */
guint64 takes_mib(const struct config *config, const char *backend, GPtrArray **ret_volumes,
                  GPtrArray **ret_moves);
/* Of an image that is being saved: how much may come yet. */
guint64 takes_coming_mib(const struct image *image);
