/* See volume_types.h. */
#include "core/config/volume_types.h"

#include <string.h>

static const char own[] = "volume_backend_name";

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

static bool asks_more(const struct volume_type *type)
{
    for (guint i = 0; i < type->extra_specs->len; i++) {
        const char *spec = type->extra_specs->pdata[i];
        size_t key = strcspn(spec, "=");
        if (strcspn(spec, ":") > key && (key != strlen(own) || strncmp(spec, own, key) != 0))
            return true;
    }
    return false;
}

bool volume_type_fits(const struct volume_type *type, const struct backend *backend)
{
    const char *name = type ? volume_type_spec(type, own) : NULL;
    return !type || (!asks_more(type) && (!name || !strcmp(name, backend->name)));
}
