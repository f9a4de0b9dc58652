/* What the pages of `fettle … info` are made of; see info.h. */
#include "cli/commands/info.h"

#include <stdio.h>

#include "cli/screen.h"

const json_t *info_value(const json_t *cells, const char *field)
{
    const json_t *cell = json_object_get(cells, field);
    return json_integer_value(json_array_get(cell, 0)) == 0 ? json_array_get(cell, 1) : NULL;
}

const char *info_string(const json_t *cells, const char *field)
{
    const char *text = json_string_value(info_value(cells, field));
    return text != NULL ? text : "";
}

gint64 info_number(const json_t *cells, const char *field)
{
    return (gint64)json_number_value(info_value(cells, field));
}

void info_line(const char *head, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    printf("  %-14s %s\n", head, text);
}

void info_word(const char *head, const char *word, const char *rest)
{
    const char *colour = screen_live() ? screen_colour(word) : "";
    printf("  %-14s %s%s%s%s\n", head, colour, word, *colour != '\0' ? screen_plain : "", rest);
}

char *info_list(const json_t *cells, const char *field)
{
    const json_t *value = info_value(cells, field);
    if (json_array_size(value) == 0)
        return g_strdup("none");
    json_autoptr cell = json_make("[iO]", 0, value);
    return cli_cell_text(NULL, field, cell);
}
