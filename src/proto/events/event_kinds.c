/* See event_kinds.h. */
#include "proto/events/event_kinds.h"

#include <string.h>

#define NEED_NOW false
#define NEED_RECORD true

const struct event_kind_row event_kind_rows[EVENT_KINDS] = {
#define EVENT_KIND(kind, key_, word_, words, need, doc, ...)                                       \
    {#kind, key_, word_, NEED_##need, {__VA_ARGS__}},
#include "proto/events/event_kinds.def"
#undef EVENT_KIND
};

const struct event_kind_row *event_kind_find(const char *name)
{
    for (size_t i = 0; i < EVENT_KINDS; i++)
        if (!strcmp(event_kind_rows[i].name, name))
            return &event_kind_rows[i];
    return NULL;
}

char *event_kinds_known(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < EVENT_KINDS; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "", event_kind_rows[i].name);
    return g_string_free(g_steal_pointer(&text), FALSE);
}
