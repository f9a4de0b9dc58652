/* See nearest_object.h. */
#include "cli/nearest_object.h"

#include <string.h>

#include "proto/nearest.h"

#define PATIENCE_MS 700

/* How errors say it, and of what kinds the name may be. */
static const struct absence {
    const char *before, *behind, *whats[3];
} absences[] = {
    {"instance \"", "\" does not exist", {"instance"}},
    {"node \"", "\" does not exist", {"node"}},
    {"network \"", "\" does not exist", {"network"}},
    {"backend \"", "\" does not exist", {"backend"}},
    {"volume \"", "\" does not exist", {"volume"}},
    {"volume_type \"", "\" does not exist", {"volume_type"}},
    {"snapshot \"", "\" does not exist", {"snapshot"}},
    {"backup \"", "\" does not exist", {"backup"}},
    {"image \"", "\" does not exist", {"image"}},
    {"nodegroup \"", "\" does not exist", {"group"}},
    {"group \"", "\" does not exist", {"group"}},
    {"there is no instance, node or cluster \"", "\"", {"instance", "node"}},
};

/* node9 is no misspelt node1. */
static bool differs_in_digits(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(g_ascii_isdigit(*a) && g_ascii_isdigit(*b)))
            return false;
    return !*a && !*b;
}

static void add_names(struct cli *cli, const char *what, const char *typed, GPtrArray *names)
{
    json_autoptr rows = cli_query(cli, what, (const char *const[]){"name", NULL}, NULL, NULL);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *name = cli_cell_string(json_array_get(rows, i), 0);
        if (!differs_in_digits(name, typed))
            g_ptr_array_add(names, g_strdup(name));
    }
}

static char *nearest_of(struct cli *cli, const struct absence *absence, const char *name)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    guint patience = cli->patience_ms;
    cli->patience_ms = PATIENCE_MS;
    for (size_t i = 0; i < G_N_ELEMENTS(absence->whats) && absence->whats[i] != NULL; i++)
        add_names(cli, absence->whats[i], name, names);
    cli->patience_ms = patience;
    g_ptr_array_add(names, NULL);
    return g_strdup(nearest_word(name, (const char *const *)names->pdata));
}

void nearest_object_add(struct cli *cli, GError *error)
{
    if (!fettle_error_is(error, UNKNOWN_ENTITY))
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(absences); i++) {
        const struct absence *absence = &absences[i];
        if (!g_str_has_prefix(error->message, absence->before))
            continue;
        const char *begin = error->message + strlen(absence->before);
        const char *end = strstr(begin, absence->behind);
        if (end == NULL)
            return;
        const char *rest = end + strlen(absence->behind);
        g_autofree char *name = g_strndup(begin, (size_t)(end - begin));
        g_autofree char *near = nearest_of(cli, absence, name);
        if (near == NULL)
            return;
        char *longer = g_strdup_printf("%.*s; did you mean \"%s\"?%s", (int)(rest - error->message),
                                       error->message, near, rest);
        g_free(error->message);
        error->message = longer;
        return;
    }
}
