/*
 * See seeds.h.
 */
#include "seeds.h"

#include <stdio.h>

guint64 seeds_number(const char *variable, const char *text)
{
    const char *other = g_getenv(variable);
    return g_ascii_strtoull(other != NULL ? other : text, NULL, 10);
}

bool seeds_each(const char *path, bool (*run)(guint64 seed, const char *rest, void *data),
                void *data)
{
    g_autofree char *text = NULL;
    bool ok = g_file_get_contents(path, &text, NULL, NULL);
    guint count = 0;
    g_auto(GStrv) lines = g_strsplit(ok ? text : "", "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        char *rest = NULL;
        if (!g_ascii_isdigit(*lines[i]))
            continue;
        guint64 seed = g_ascii_strtoull(lines[i], &rest, 10);
        count++;
        ok = run(seed, g_strchug(rest), data) && ok;
    }
    return ok && count > 0;
}

bool seeds_passed(guint64 seed, const char *shape, const char *why)
{
    if (why == NULL)
        return true;
    printf("# seed %" G_GUINT64_FORMAT "%s%s: %s\n", seed, *shape != '\0' ? " " : "", shape, why);
    fflush(stdout);
    return false;
}
