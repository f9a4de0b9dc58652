/* What the commands (script.c) and the expectations (script_expect.c) of scripts share. */
#pragma once

#include "script.h"

struct line {
    struct sim *sim;
    guint number;
    GStrv words;
    guint count;
    char *failure;
};

void script_fail(struct line *line, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* "" behind the end. */
const char *script_word(const struct line *line, guint index);
bool script_is(const struct line *line, guint index, const char *text);
/* "40s" or "500ms", in milliseconds. */
guint script_duration(struct line *line, const char *text);
const struct instance *script_find_instance(const struct line *line, const char *name);
void script_expect(struct line *line);
