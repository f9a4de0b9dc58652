/* See list_empty.h. */
#include "cli/commands/list_empty.h"

#include <stdio.h>
#include <string.h>

/* Fields of a filter in LUXI's form, each once. */
static void add_fields(const json_t *filter, json_t *names)
{
    static const char *const of_filters[] = {"&", "|", "!", NULL};
    const char *sign = json_string_value(json_array_get(filter, 0));
    const char *field = json_string_value(json_array_get(filter, 1));
    if (sign == NULL)
        return;
    if (!g_strv_contains(of_filters, sign) && field != NULL)
        json_object_set_new(names, field, json_null());
    for (size_t i = 1; g_strv_contains(of_filters, sign) && i < json_array_size(filter); i++)
        add_fields(json_array_get(filter, i), names);
}

bool list_explain_empty(struct cli *cli, const char *what, const json_t *filter, GError **error)
{
    json_autoptr names = json_object();
    const char *name;
    json_t *nothing;
    add_fields(filter, names);
    json_object_foreach(names, name, nothing) {
        json_autoptr rows = cli_query(cli, what, (const char *const[]){name, NULL},
                                      json_make("[ss]", "?", name), error);
        if (rows == NULL)
            return false;
        if (json_array_size(rows) == 0)
            fprintf(stderr, "fettle: no %s has anything in the field \"%s\"\n", what, name);
    }
    if (strcmp(what, "decision") == 0)
        fprintf(stderr, "fettle: what people have had done is no decision of the cluster; fettle "
                        "why NAME tells of both\n");
    return true;
}
