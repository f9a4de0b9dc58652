/* See front_names.h. */
#include "proto/rapi/front_names.h"

#include <glib.h>

char **front_names(const char *node, const char *address, const char *cluster,
                   const char *master_ip)
{
    const char *const given[] = {node,        address,     cluster, master_ip,
                                 "localhost", "127.0.0.1", "::1"};
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    for (guint i = 0; i < G_N_ELEMENTS(given); i++)
        if (given[i] && *given[i])
            g_strv_builder_add(names, given[i]);
    return g_strv_builder_end(names);
}
