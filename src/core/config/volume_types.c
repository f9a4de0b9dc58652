/* See volume_types.h. */
#include "core/config/volume_types.h"

#include <string.h>

const char *volume_type_spec(const struct volume_type *type, const char *key)
{
    size_t len = strlen(key);
    for (guint i = 0; i < type->extra_specs->len; i++) {
        const char *spec = type->extra_specs->pdata[i];
        if (!strncmp(spec, key, len) && spec[len] == '=')
            return spec + len + 1;
    }
    return NULL;
}

const char *volume_type_capability(const struct backend *backend, const char *key)
{
    return !strcmp(key, "volume_backend_name") ? backend->name
           : !strcmp(key, "vendor_name")       ? "Fettle"
           : !strcmp(key, "storage_protocol")  ? (backend->kind == BACKEND_RBD ? "ceph" : "file")
                                               : NULL;
}

bool volume_type_fits(const struct volume_type *type, const struct backend *backend)
{
    for (guint i = 0; type && i < type->extra_specs->len; i++) {
        g_auto(GStrv) pair = g_strsplit(type->extra_specs->pdata[i], "=", 2);
        if (!strchr(pair[0], ':') &&
            g_strcmp0(volume_type_capability(backend, pair[0]), pair[1]) != 0)
            return false;
    }
    return true;
}
