/* Names of data; see volume_driver.h. */
#include "proto/storage/volume_driver.h"

#include <string.h>

#define UUID_CHARS 36
#define CLAIM_DIGITS 16 /* of RECORD_NUMBER_MAX */

void volume_data_free(void *data)
{
    struct volume_data *gone = data;
    g_free(gone->name);
    g_free(gone);
}

char *volume_data_name(const char *uuid, guint64 claim)
{
    return g_strdup_printf("%s.%" G_GUINT64_FORMAT, uuid, claim);
}

/* One spelling each, so that equal things have equal names. */
bool volume_data_parse(const char *name, char **ret_uuid, guint64 *ret_claim)
{
    size_t digits = strlen(name) > UUID_CHARS ? strspn(name + UUID_CHARS + 1, "0123456789") : 0;
    if (digits < 1 || digits > CLAIM_DIGITS || name[UUID_CHARS] != '.' ||
        name[UUID_CHARS + 1] == '0' || name[UUID_CHARS + 1 + digits])
        return false;
    g_autofree char *uuid = g_strndup(name, UUID_CHARS);
    g_autofree char *small = g_ascii_strdown(uuid, -1);
    if (!g_uuid_string_is_valid(uuid) || strcmp(uuid, small) != 0)
        return false;
    *ret_claim = g_ascii_strtoull(name + UUID_CHARS + 1, NULL, 10);
    *ret_uuid = g_steal_pointer(&uuid);
    return true;
}

bool image_sum_is_good(const char *sum, gsize digits)
{
    gsize length = strspn(sum, "0123456789abcdef");
    return !sum[length] && (!length || length == digits);
}
