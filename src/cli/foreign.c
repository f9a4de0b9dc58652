/* See foreign.h. */
#include "cli/foreign.h"

#include <string.h>

#include "base/text.h"

char *foreign_text(const char *text)
{
    char *shown = text_shown(text);
    return shown != NULL ? shown : g_strdup(text);
}

static void show_names(json_t *object)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, name, value) {
        g_autofree char *shown = text_shown(name);
        if (shown == NULL)
            continue;
        json_object_set(object, shown, value);
        json_object_del(object, name);
    }
}

void foreign_show(json_t *json)
{
    const char *name;
    json_t *value;
    size_t i;
    if (json_is_string(json)) {
        g_autofree char *shown = text_shown(json_string_value(json));
        if (shown != NULL)
            json_string_set(json, shown);
        return;
    }
    json_array_foreach(json, i, value)
        foreign_show(value);
    if (!json_is_object(json))
        return;
    show_names(json);
    json_object_foreach(json, name, value)
        foreign_show(value);
}

/* In a document they stand in texts only: those of ASCII are escapes there already. The others
 * begin with one of three bytes. */
char *foreign_json(char *text)
{
    static const char firsts[] = "\x7f\xc2\xe2";
    GString *out = g_string_sized_new(strlen(text));
    const char *rest = text;
    for (;;) {
        size_t plain = strcspn(rest, firsts);
        g_string_append_len(out, rest, (gssize)plain);
        rest += plain;
        if (*rest == '\0')
            break;
        const char *end = g_utf8_next_char(rest);
        g_autofree char *character = g_strndup(rest, (size_t)(end - rest));
        g_autofree char *control = text_control(character);
        if (control != NULL)
            g_string_append_printf(out, "\\u%04x", g_utf8_get_char(character));
        else
            g_string_append(out, character);
        rest = end;
    }
    g_free(text);
    return g_string_free(out, FALSE);
}
