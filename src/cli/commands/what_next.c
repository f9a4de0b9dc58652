/* See what_next.h. */
#include "cli/commands/what_next.h"

#include <stdio.h>
#include <string.h>

#define SINCE "{since}"

json_t *what_next_ask(struct cli *cli, const char *kind, const char *name, GError **error)
{
    g_autoptr(GError) reason = NULL;
    json_t *list = cli_call(cli, "WhatNext", json_make("[s, s]", kind, name), &reason);
    if (list == NULL && fettle_error_is(reason, UNKNOWN_ENTITY))
        return json_array();
    if (list == NULL)
        g_propagate_error(error, g_steal_pointer(&reason));
    return list;
}

/* Its time in words of this place. */
static void print_text(const json_t *one)
{
    const char *text = json_string_value(json_object_get(one, "text"));
    const json_t *since = json_object_get(one, "since");
    const char *at = since != NULL ? strstr(text, SINCE) : NULL;
    g_autofree char *when = cli_time_text((gint64)json_number_value(since));
    if (at != NULL)
        printf("%.*s%s%s\n", (int)(at - text), text, when, at + strlen(SINCE));
    else
        printf("%s\n", text);
}

bool what_next_print(struct cli *cli, const char *kind, const char *name, bool *ret_said,
                     GError **error)
{
    json_autoptr list = what_next_ask(cli, kind, name, error);
    size_t i, k;
    const json_t *one, *command;
    json_array_foreach(list, i, one) {
        print_text(one);
        json_array_foreach(json_object_get(one, "commands"), k, command)
            printf("    %s\n", json_string_value(command));
    }
    if (ret_said != NULL)
        *ret_said = json_array_size(list) > 0;
    return list != NULL;
}
