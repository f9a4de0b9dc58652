/* See list_faults.h. */
#include "cli/commands/list_faults.h"

#include <string.h>

#define OF_NODE "node "

struct list_faults {
    GHashTable *of_nodes; /* name → how many */
    guint all;
};

/* "node NAME: …" is of that node; what is of instances stands in the list of those. */
static void count(struct list_faults *faults, const char *problem)
{
    faults->all++;
    const char *end = g_str_has_prefix(problem, OF_NODE) ? strstr(problem, ": ") : NULL;
    if (!end)
        return;
    char *name = g_strndup(problem + strlen(OF_NODE), (size_t)(end - problem) - strlen(OF_NODE));
    gpointer before = g_hash_table_lookup(faults->of_nodes, name);
    g_hash_table_insert(faults->of_nodes, name, GUINT_TO_POINTER(GPOINTER_TO_UINT(before) + 1));
}

struct list_faults *list_faults_ask(struct cli *cli, GError **error)
{
    g_autoptr(GError) reason = NULL;
    json_autoptr found = cli_call(cli, "Verify", json_array(), &reason);
    if (!found && cli->silent)
        g_propagate_error(error, g_steal_pointer(&reason));
    if (!found)
        return NULL;
    struct list_faults *faults = g_new0(struct list_faults, 1);
    faults->of_nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    size_t i;
    const json_t *problem;
    json_array_foreach(json_object_get(found, "problems"), i, problem)
        count(faults, json_string_value(problem));
    return faults;
}

void list_faults_free(struct list_faults *faults)
{
    if (!faults)
        return;
    g_hash_table_unref(faults->of_nodes);
    g_free(faults);
}

char *list_faults_word(const struct list_faults *faults, const char *node, const char *word)
{
    guint number = GPOINTER_TO_UINT(g_hash_table_lookup(faults->of_nodes, node));
    if (number == 0 || strcmp(word, "well") != 0)
        return g_strdup(word);
    return g_strdup_printf("%u fault%s", number, number == 1 ? "" : "s");
}

void list_faults_say(const struct list_faults *faults, GString *below)
{
    if (faults->all > 0)
        g_string_append_printf(below, "%u thing%s not as %s should be: fettle cluster verify\n",
                               faults->all, faults->all == 1 ? " is" : "s are",
                               faults->all == 1 ? "it" : "they");
}
