/* See pattern.h. */
#include "cli/pattern.h"

#include <string.h>

#include "cli/order.h"

bool pattern_is(const char *word)
{
    return strpbrk(word, "*?[") != NULL;
}

/* "[abc]" at `at`: its length; 0: the bracket stands for itself. */
static size_t set_bytes(const char *at)
{
    const char *end = *at == '[' ? strchr(at + 1, ']') : NULL;
    return end != NULL && end > at + 1 ? (size_t)(end - at) + 1 : 0;
}

char *pattern_regex(const char *pattern)
{
    GString *regex = g_string_new("^");
    for (const char *at = pattern; *at != '\0'; at++) {
        size_t set = set_bytes(at);
        if (set > 0) {
            g_autofree char *inner = g_strndup(at + 1, set - 2);
            g_autofree char *escaped = g_regex_escape_string(inner, -1);
            bool not = inner[0] == '!' || inner[0] == '^';
            const char *body = not ? escaped + (escaped[0] == '\\' ? 2 : 1) : escaped;
            g_autofree char *ranges = g_strdup(body);
            for (char *dash = ranges; (dash = strstr(dash, "\\-")) != NULL;)
                memmove(dash, dash + 1, strlen(dash));
            g_string_append_printf(regex, "[%s%s]", not ? "^" : "", ranges);
            at += set - 1;
        } else if (*at == '*' || *at == '?') {
            g_string_append(regex, *at == '*' ? ".*" : ".");
        } else {
            g_autofree char *escaped = g_regex_escape_string(at, 1);
            g_string_append(regex, escaped);
        }
    }
    g_string_append_c(regex, '$');
    return g_string_free(regex, FALSE);
}

json_t *pattern_filter(const char *field, const char *word)
{
    if (!pattern_is(word))
        return json_make("[sss]", "=", field, word);
    g_autofree char *regex = pattern_regex(word);
    return json_make("[sss]", "=~", field, regex);
}

void pattern_set_none(const char *what, const char *pattern, GError **error)
{
    fettle_set_error(error, UNKNOWN_ENTITY, "no %s matches \"%s\"; see fettle %s list", what,
                     pattern, what);
}

static bool add_matches(struct cli *cli, const char *what, const char *word, GPtrArray *names,
                        GHashTable *seen, GError **error)
{
    json_autoptr rows = cli_query(cli, what, (const char *const[]){"name", NULL},
                                  pattern_filter("name", word), error);
    if (rows == NULL)
        return false;
    if (json_array_size(rows) == 0) {
        pattern_set_none(what, word, error);
        return false;
    }
    g_autoptr(GPtrArray) found = g_ptr_array_new();
    for (size_t i = 0; i < json_array_size(rows); i++)
        g_ptr_array_add(found, (void *)cli_cell_string(json_array_get(rows, i), 0));
    g_ptr_array_sort(found, order_names);
    for (guint i = 0; i < found->len; i++)
        if (g_hash_table_add(seen, g_strdup(found->pdata[i])))
            g_ptr_array_add(names, g_strdup(found->pdata[i]));
    return true;
}

GPtrArray *pattern_expand(struct cli *cli, const char *what, char *const *words, bool *ret_any,
                          GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    *ret_any = false;
    for (; *words != NULL; words++) {
        if (pattern_is(*words)) {
            *ret_any = true;
            if (!add_matches(cli, what, *words, names, seen, error))
                return NULL;
        } else if (g_hash_table_add(seen, g_strdup(*words))) {
            g_ptr_array_add(names, g_strdup(*words));
        }
    }
    g_ptr_array_add(names, NULL);
    return g_steal_pointer(&names);
}
