/* See key_list.h. */
#include "core/wconfd/key_list.h"

#include <string.h>

#include "proto/invitation.h"

#define HEAD "-----BEGIN"

static const char *next_of(const char *at)
{
    return strstr(at + 1, HEAD);
}

guint key_list_count(const char *certificates)
{
    guint count = 0;
    for (const char *at = strstr(certificates, HEAD); at; at = next_of(at))
        count++;
    return count;
}

const char *key_list_last(const char *certificates)
{
    return g_strrstr(certificates, HEAD);
}

char *key_list_first(const char *certificates)
{
    const char *next = *certificates ? next_of(certificates) : NULL;
    return next ? g_strndup(certificates, (gsize)(next - certificates)) : g_strdup(certificates);
}

char *key_list_without_last(const char *certificates)
{
    const char *last = key_list_last(certificates);
    return g_strndup(certificates, last ? (gsize)(last - certificates) : 0);
}

char *key_list_turn(const char *certificates)
{
    const char *last = key_list_last(certificates);
    g_autofree char *others = key_list_without_last(certificates);
    return g_strconcat(last ? last : "", others, NULL);
}

GStrv key_list_fingerprints(const char *certificates)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    const char *at = *certificates ? certificates : NULL;
    for (; at; at = next_of(at)) {
        g_autofree char *one = key_list_first(at);
        g_autofree char *fingerprint = invitation_fingerprint(one);
        if (!fingerprint)
            return NULL;
        g_strv_builder_add(builder, fingerprint);
    }
    GStrv found = g_strv_builder_end(builder);
    if (*found)
        return found;
    g_strfreev(found);
    return NULL;
}
