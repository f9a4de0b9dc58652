/* See counts.h. */
#include "proto/metrics/counts.h"

#include <string.h>

struct counts {
    GTree *by_words; /* "first\nsecond" -> guint64 */
};

static gint compare_words(gconstpointer left, gconstpointer right, gpointer unused)
{
    return strcmp(left, right);
}

struct counts *counts_new(void)
{
    struct counts *counts = g_new(struct counts, 1);
    counts->by_words = g_tree_new_full(compare_words, NULL, g_free, g_free);
    return counts;
}

void counts_free(struct counts *counts)
{
    if (!counts)
        return;
    g_tree_destroy(counts->by_words);
    g_free(counts);
}

void counts_add(struct counts *counts, const char *first, const char *second, guint64 by)
{
    g_autofree char *words = g_strdup_printf("%s\n%s", first, second ? second : "");
    guint64 *count = g_tree_lookup(counts->by_words, words);
    if (!count) {
        count = g_new0(guint64, 1);
        g_tree_insert(counts->by_words, g_steal_pointer(&words), count);
    }
    *count += by;
}

struct telling {
    json_t *list;
    const char *first, *second;
};

static gboolean tell_one(gpointer words, gpointer count, gpointer data)
{
    const struct telling *telling = data;
    g_auto(GStrv) parts = g_strsplit(words, "\n", 2);
    json_t *one = json_make("{ss, sI}", telling->first, parts[0], "count",
                            (json_int_t) * (const guint64 *)count);
    if (telling->second)
        json_object_set_new(one, telling->second, json_string(parts[1]));
    json_array_append_new(telling->list, one);
    return FALSE;
}

json_t *counts_tell(const struct counts *counts, const char *first, const char *second)
{
    struct telling telling = {json_array(), first, second};
    g_tree_foreach(counts->by_words, tell_one, &telling);
    return telling.list;
}
