/* See commit_ids.h. */
#include "helper/commit_ids.h"

struct id_row {
    const char *id;
    guint64 serial;
};

GHashTable *commit_ids_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

void commit_ids_put(GHashTable *ids, const char *id, guint64 serial)
{
    g_hash_table_replace(ids, g_strdup(id), GSIZE_TO_POINTER(serial));
}

guint64 commit_ids_find(GHashTable *ids, const char *id)
{
    return GPOINTER_TO_SIZE(g_hash_table_lookup(ids, id));
}

static int compare_rows(const void *a, const void *b)
{
    const struct id_row *one = a, *other = b;
    return one->serial < other->serial ? -1 : one->serial > other->serial;
}

void commit_ids_each(GHashTable *ids,
                     void (*each)(const char *commit_id, guint64 serial, void *data), void *data)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(struct id_row));
    GHashTableIter iter;
    void *id;
    void *serial;
    g_hash_table_iter_init(&iter, ids);
    while (g_hash_table_iter_next(&iter, &id, &serial)) {
        struct id_row row = {id, GPOINTER_TO_SIZE(serial)};
        g_array_append_val(rows, row);
    }
    g_array_sort(rows, compare_rows);
    for (guint i = 0; i < rows->len; i++) {
        const struct id_row *row = &g_array_index(rows, struct id_row, i);
        each(row->id, row->serial, data);
    }
}
