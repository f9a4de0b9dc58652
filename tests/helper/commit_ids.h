/*
 * The ids of commits in engines that are made for tests: id -> serial, given in order of serial as
 * engine_ops.each_id() does.
 */
#pragma once

#include <glib.h>

GHashTable *commit_ids_new(void);
void commit_ids_put(GHashTable *ids, const char *id, guint64 serial);
/* 0: not there. */
guint64 commit_ids_find(GHashTable *ids, const char *id);
void commit_ids_each(GHashTable *ids,
                     void (*each)(const char *commit_id, guint64 serial, void *data), void *data);
