/*
 * See endpoint.h.
 */
#include "base/endpoint.h"

#include <string.h>

char *endpoint_host(const char *address)
{
    return g_strdup_printf(strchr(address, ':') != NULL ? "[%s]" : "%s", address);
}

char *endpoint_text(const char *address, guint64 port)
{
    g_autofree char *host = endpoint_host(address);
    return g_strdup_printf("%s:%" G_GUINT64_FORMAT, host, port);
}
