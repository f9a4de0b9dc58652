/*
 * Images of one instance; see image_look.h. The list of all images is one look for all who ask at
 * a time; sizes are looked at for each instance.
 */
#include "core/node/image_look.h"

#include "core/node/parts.h"

/* At one instance: one at a time, whoever asks, as it may hang for ever. */
struct size_look {
    struct look look;
    guint users;
    char *instance;
    bool shared;
    guint count;
    GPtrArray *disks; /* struct sight_disk; NULL: it failed … */
    GError *error;    /* … with this */
};

static void size_look_free(void *data)
{
    struct size_look *size = data;
    look_clear(&size->look);
    g_free(size->instance);
    g_clear_pointer(&size->disks, g_ptr_array_unref);
    g_clear_error(&size->error);
    g_free(size);
}

GHashTable *image_look_table(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, NULL, size_look_free);
}

static struct size_look *size_look_get(struct node_core *node, const char *instance)
{
    struct size_look *size = g_hash_table_lookup(node->size_looks, instance);
    if (!size) {
        size = g_new0(struct size_look, 1);
        size->instance = g_strdup(instance);
        g_hash_table_insert(node->size_looks, size->instance, size);
    }
    size->users++;
    return size;
}

/* One that still hangs is kept for the next who asks. */
static void size_look_put(struct node_core *node, struct size_look *size)
{
    if (--size->users == 0 && size->look.begun == size->look.ended)
        g_hash_table_remove(node->size_looks, size->instance);
}

static bool size_run(struct node_core *node, void *thing)
{
    struct size_look *size = thing;
    struct storage *storage = node->storage;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) disks =
        storage->ops->sizes(storage, size->instance, size->shared, size->count, &error);
    g_clear_pointer(&size->disks, g_ptr_array_unref);
    g_clear_error(&size->error);
    size->disks = g_steal_pointer(&disks);
    size->error = g_steal_pointer(&error);
    return true;
}

static bool wait_until(struct look_round *round, gint64 until_ms)
{
    return look_round_wait_long(round, (guint)MAX(until_ms - look_round_now(round), 1));
}

/* Whether the folder that they are in can be asked at all. */
static bool ask_folder(struct node_core *node, bool shared, gint64 until_ms, GError **error)
{
    struct look_round *round = look_round_new(node);
    parts_ask_images(node->parts, round, shared);
    bool ok = wait_until(round, until_ms);
    if (ok)
        ok = parts_tell_images(node->parts, round, shared, error);
    else
        node_killed(error);
    look_round_free(round);
    return ok;
}

GPtrArray *image_look_sets(struct node_core *node, const char *instance, gint64 until_ms,
                           GError **error)
{
    if (!ask_folder(node, false, until_ms, error))
        return NULL;
    const GPtrArray *all = parts_images(node->parts);
    GPtrArray *sets = g_ptr_array_new_with_free_func((GDestroyNotify)image_set_free);
    for (guint i = 0; i < all->len; i++) {
        const struct image_set *set = all->pdata[i];
        if (!strcmp(set->instance, instance))
            g_ptr_array_add(sets, image_set_copy(set));
    }
    return sets;
}

static GPtrArray *take_disks(const struct size_look *size, guint count, bool answered,
                             GError **error)
{
    if (task_killed()) {
        node_killed(error);
        return NULL;
    }
    if (!answered || (size->disks && size->disks->len != count)) {
        fettle_set_error(error, TEMPORARY, "%s not answer here: " IMAGES_NOT_KNOWN,
                         size->shared ? "the shared folder does" : "the disks do");
        return NULL;
    }
    if (size->error) {
        g_propagate_error(error, g_error_copy(size->error));
        return NULL;
    }
    return g_ptr_array_ref(size->disks);
}

GPtrArray *image_look_disks(struct node_core *node, const char *instance, bool shared, guint count,
                            gint64 until_ms, GError **error)
{
    if (shared && !ask_folder(node, true, until_ms, error))
        return NULL;
    struct size_look *size = size_look_get(node, instance);
    struct look_round *round = look_round_new(node);
    size->shared = shared;
    size->count = count;
    look_round_add(round, &size->look, size_run, size);
    bool answered = wait_until(round, until_ms) && look_round_answered(round, &size->look);
    look_round_free(round);
    GPtrArray *disks = take_disks(size, count, answered, error);
    size_look_put(node, size);
    return disks;
}
