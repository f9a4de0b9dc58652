/* See path_match.h. */
#include "proto/http/path_match.h"

#include <string.h>

bool path_match(const char *pattern, const char *path, GPtrArray *vars)
{
    for (;;) {
        if (*pattern == '{') {
            const char *end = strchr(pattern, '}');
            size_t len = strcspn(path, "/");
            if (!len)
                return false;
            if (vars) {
                g_ptr_array_add(vars, g_strndup(pattern + 1, (gsize)(end - pattern - 1)));
                g_ptr_array_add(vars, g_strndup(path, len));
            }
            pattern = end + 1;
            path += len;
            continue;
        }
        if (!*pattern || (*pattern == '/' && !pattern[1] && !*path))
            return !*path;
        if (*pattern++ != *path++)
            return false;
    }
}

bool path_allow(GString *allowed, const char *method)
{
    g_auto(GStrv) known = g_strsplit(allowed->str, ", ", -1);
    if (g_strv_contains((const char *const *)known, method))
        return false;
    g_string_append_printf(allowed, "%s%s", allowed->len ? ", " : "", method);
    return true;
}
