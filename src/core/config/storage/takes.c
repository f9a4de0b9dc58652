/* See takes.h. */
#include "core/config/storage/takes.h"

#include "core/config/model_private.h"
#include "core/config/resource.h"

#define GIB_MIB 1024u

struct taken {
    guint64 mib;         /* of all whose record tells it by itself */
    GHashTable *volumes; /* set: the others */
    GHashTable *moves;   /* set: rows */
};

static void taken_free(void *data)
{
    struct taken *taken = data;
    g_hash_table_unref(taken->volumes);
    g_hash_table_unref(taken->moves);
    g_free(taken);
}

GHashTable *takes_index_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, taken_free);
}

static void change_set(GHashTable *set, struct config_object *object, bool add)
{
    if (object && add)
        g_hash_table_add(set, object);
    else if (object)
        g_hash_table_remove(set, object);
}

/* `volume`, `move`: NULL, or what is looked at when it is asked for. */
static void change(struct config_indexes *indexes, const char *backend, guint64 mib,
                   struct config_object *volume, struct config_object *move, bool add)
{
    GHashTable *index = indexes->tables[INDEX_TAKES];
    struct taken *taken = g_hash_table_lookup(index, backend);
    if (!taken) {
        taken = g_new0(struct taken, 1);
        taken->volumes = index_set_new();
        taken->moves = index_set_new();
        g_hash_table_insert(index, g_strdup(backend), taken);
    }
    taken->mib += add ? mib : -mib;
    change_set(taken->volumes, volume, add);
    change_set(taken->moves, move, add);
    if (!taken->mib && !g_hash_table_size(taken->volumes) && !g_hash_table_size(taken->moves))
        g_hash_table_remove(index, backend);
}

/* Of one that grows its row tells more, and of one that has two data its row, or its guest. */
static bool tells_by_itself(const struct volume *volume)
{
    return volume->status != VOLUME_EXTENDING &&
           (!*volume->data ||
            (volume->status != VOLUME_BACKING_UP && volume->status != VOLUME_RESTORING_BACKUP));
}

static bool has_or_gets_data(const struct volume *volume)
{
    return *volume->data || volume->status == VOLUME_CREATING ||
           volume->status == VOLUME_DOWNLOADING || volume->status == VOLUME_RESTORING_BACKUP;
}

void takes_volume(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct volume *volume = object->value;
    bool told = tells_by_itself(volume);
    change(indexes, volume->backend, told && has_or_gets_data(volume) ? volume->size * GIB_MIB : 0,
           told ? NULL : object, NULL, add);
}

void takes_snapshot(struct config_indexes *indexes, const struct snapshot *snapshot, bool add)
{
    bool takes = *snapshot->data || snapshot->status == SNAPSHOT_CREATING;
    change(indexes, snapshot->backend, takes ? snapshot->size * GIB_MIB : 0, NULL, NULL, add);
}

void takes_backup(struct config_indexes *indexes, const struct backup *backup, bool add)
{
    bool made = backup->status != BACKUP_CREATING;
    change(indexes, backup->backend, made ? backup->bytes / MIB(1) : backup->size * GIB_MIB, NULL,
           NULL, add);
}

void takes_image(struct config_indexes *indexes, const struct image *image, bool add)
{
    change(indexes, image->backend, image->size / MIB(1) + takes_coming_mib(image), NULL, NULL,
           add);
}

void takes_row(struct config_indexes *indexes, struct config_object *object, bool add)
{
    const struct worker *row = object->value;
    if (resource_is_moved(row))
        change(indexes, row->backend, 0, NULL, object, add);
}

guint64 takes_mib(const struct config *config, const char *backend, GPtrArray **ret_volumes,
                  GPtrArray **ret_moves)
{
    const struct taken *taken = g_hash_table_lookup(config->indexes.tables[INDEX_TAKES], backend);
    *ret_volumes = index_set_values(taken ? taken->volumes : NULL);
    *ret_moves = index_set_values(taken ? taken->moves : NULL);
    return taken ? taken->mib : 0;
}

guint64 takes_coming_mib(const struct image *image)
{
    return image->status == IMAGE_SAVING ? (image->virtual_size + MIB(1) - 1) / MIB(1) : 0;
}
