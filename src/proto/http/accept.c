/* See accept.h. */
#include "proto/http/accept.h"

#include <glib.h>

double accept_share(const char *header, const char *word)
{
    g_auto(GStrv) parts = g_strsplit(header, ",", 64);
    for (char **part = parts; *part; part++) {
        g_auto(GStrv) words = g_strsplit(*part, ";", 16);
        double share = 1;
        if (!words[0] || g_ascii_strcasecmp(g_strstrip(words[0]), word) != 0)
            continue;
        for (char **more = words + 1; *more; more++)
            if (g_ascii_strncasecmp(g_strstrip(*more), "q=", 2) == 0)
                share = g_ascii_strtod(*more + 2, NULL);
        return CLAMP(share, 0, 1);
    }
    return -1;
}
