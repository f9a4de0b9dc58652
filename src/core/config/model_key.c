/* Keys and texts that are made of others, under which objects are found. See model.h. */
#include "core/config/model.h"

#include <string.h>

char *config_ip_key(const struct nic *nic)
{
    return g_strconcat(nic->ip, "@", nic->link, NULL);
}

char *config_port_key(guint64 port)
{
    return g_strdup_printf("port %" G_GUINT64_FORMAT, port);
}

char *config_tag_key(enum tag_kind kind, const char *object, const char *tag)
{
    return g_strdup_printf("%s/%s/%s", enum_word(&tag_kind_words, (int)kind), object, tag);
}

/* A UUID by a name, of SHA-1 (RFC 4122, version 5): the node is the name space. */
char *config_derived_uuid(const char *of, const char *text)
{
    guint8 sum[20];
    gsize len = sizeof sum;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA1);
    g_checksum_update(checksum, (const guchar *)of, (gssize)strlen(of));
    g_checksum_update(checksum, (const guchar *)text, (gssize)strlen(text));
    g_checksum_get_digest(checksum, sum, &len);
    sum[6] = (guint8)((sum[6] & 0x0f) | 0x50);
    sum[8] = (guint8)((sum[8] & 0x3f) | 0x80);
    GString *uuid = g_string_new(NULL);
    for (guint i = 0; i < 16; i++)
        g_string_append_printf(uuid, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                               sum[i]);
    return g_string_free(uuid, FALSE);
}

char *config_service_key(const char *node, const char *name)
{
    return config_derived_uuid(node, name);
}

char *config_storage_service_key(enum storage_binary binary, const char *host, const char *backend)
{
    g_autofree char *text =
        g_strdup_printf("%s/%s", enum_word(&storage_binary_words, (int)binary), host);
    return config_derived_uuid(backend, text);
}

char *config_work_key(enum resource_type type, const char *resource)
{
    return g_strdup_printf("%s/%s", enum_word(&resource_type_words, (int)type), resource);
}

char *config_cleanup_key(guint64 service_id, const char *resource_type, const char *resource)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT "%s%s%s%s", service_id, *resource_type ? "/" : "",
                           resource_type, *resource ? "/" : "", resource);
}

char *config_trash_key(const char *backend, const char *name)
{
    return g_strdup_printf("%s/%s", backend, name);
}
