/*
 * Whose turn a row is: of the services that are up one begins at once, by a number that all of them
 * reckon alike, the next ones each a second later. So two do not race for each row, and one that
 * hangs costs a second.
 */
#include <string.h>

#include "core/storage/volume_lot.h"
#include "core/storage/volume_private.h"

#define NEXT_MS 1000
#define AGAIN_MS 5000 /* after a row that could not be had */

void volume_seen_free(void *data)
{
    struct volume_seen *seen = data;
    g_free(seen->why);
    g_free(seen);
}

/* How many of its kind go before it; those that are to take nothing, or are not there to do it, do
 * not count. */
static guint rank(const struct volume_caller *caller, const GPtrArray *services, guint64 number)
{
    guint before = 0;
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *other = services->pdata[i];
        before += strcmp(other->backend, caller->backend) == 0 && other->id != caller->id &&
                  other->state == STORAGE_UP && !other->disabled &&
                  volume_lot(number, other->id) > volume_lot(number, caller->id);
    }
    return before;
}

static bool is_disabled(const struct volume_caller *caller)
{
    const struct storage_service *own =
        config_get(volume_caller_config(caller), "storage_service", caller->uuid, NULL);
    return !own || own->disabled;
}

/* What was noted of it goes over to the next table. */
static struct volume_seen *note(struct volume_caller *caller, GHashTable *next, const char *key,
                                guint64 row)
{
    void *old_key = NULL, *value = NULL;
    g_hash_table_steal_extended(caller->seen, key, &old_key, &value);
    struct volume_seen *seen = value;
    g_free(old_key);
    if (seen && seen->row != row)
        g_clear_pointer(&seen, volume_seen_free);
    if (!seen) {
        seen = g_new0(struct volume_seen, 1);
        seen->row = row;
        seen->since_ms = volume_caller_ms(caller);
    }
    g_hash_table_insert(next, g_strdup(key), seen);
    return seen;
}

guint volume_turns(struct volume_caller *caller, const GPtrArray *rows, volume_due_fn due,
                   void *data)
{
    gint64 now = volume_caller_ms(caller);
    guint rest_ms = VOLUME_NEVER_MS;
    bool disabled = is_disabled(caller);
    g_autoptr(GPtrArray) services = config_list(volume_caller_config(caller), "storage_service");
    GHashTable *next = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, volume_seen_free);
    g_autoptr(GPtrArray) ready = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < rows->len && !disabled; i++) {
        const struct worker *row = rows->pdata[i];
        g_autofree char *key = config_work_key(row->resource_type, row->resource_id);
        struct volume_seen *seen = note(caller, next, key, row->id);
        gint64 at = seen->since_ms + (gint64)rank(caller, services, row->id) * NEXT_MS;
        if (g_hash_table_contains(caller->busy, key))
            continue;
        if (at > now)
            rest_ms = MIN(rest_ms, (guint)(at - now));
        else
            g_ptr_array_add(ready, g_steal_pointer(&key));
    }
    g_hash_table_unref(caller->seen);
    caller->seen = next;
    for (guint i = 0; i < ready->len && !task_killed(); i++) {
        guint other_ms = due(caller, ready->pdata[i], data);
        rest_ms = MIN(rest_ms, other_ms);
    }
    return rest_ms;
}

void volume_put_off(struct volume_caller *caller, const char *key)
{
    struct volume_seen *seen = g_hash_table_lookup(caller->seen, key);
    if (seen)
        seen->since_ms = volume_caller_ms(caller) + AGAIN_MS;
}
