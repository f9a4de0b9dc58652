/*
 * Changes of the configuration, as commits and change streams carry them (record `change`).
 */
#pragma once

#include "proto/records.h"

/* Copies the words; takes `object`, which a delete has none of. The caller owns the result. */
struct change *change_make(enum change_op op, const char *kind, const char *key, guint64 version,
                           json_t *object);

/* An empty list that frees its changes. */
GPtrArray *change_list_new(void);
/* Whether one of them is about that object. */
bool change_list_has(const GPtrArray *changes, const char *kind, const char *key);
