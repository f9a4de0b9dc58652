/*
 * See change.h.
 */
#include "proto/change.h"

#include <string.h>

struct change *change_make(enum change_op op, const char *kind, const char *key, guint64 version,
                           json_t *object)
{
    struct change *change = change_new();
    change->op = op;
    g_free(change->kind);
    change->kind = g_strdup(kind);
    g_free(change->key);
    change->key = g_strdup(key);
    change->version = version;
    change->object = object;
    return change;
}

static void free_change(void *data)
{
    change_free(data);
}

GPtrArray *change_list_new(void)
{
    return g_ptr_array_new_with_free_func(free_change);
}

bool change_list_has(const GPtrArray *changes, const char *kind, const char *key)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (strcmp(change->kind, kind) == 0 && strcmp(change->key, key) == 0)
            return true;
    }
    return false;
}
