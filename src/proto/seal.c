/* See seal.h. */
#include "proto/seal.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "proto/digest.h"

void seal_digits(const void *data, size_t len, char ret[SEAL_DIGITS + 1])
{
    /* By hand: it is done for every change of a lock. */
    guint64 sum = digest_bytes(DIGEST_START, data, len);
    for (guint i = 0; i < SEAL_DIGITS; i++)
        ret[i] = "0123456789abcdef"[(sum >> (60 - 4 * i)) & 15];
    ret[SEAL_DIGITS] = '\0';
}

char *seal_to_text(const json_t *json)
{
    char digits[SEAL_DIGITS + 1];
    g_autofree char *plain = json_to_text(json);
    seal_digits(plain, strlen(plain), digits);
    json_autoptr sealed = json_copy((json_t *)json);
    json_object_set_new(sealed, SEAL_MEMBER, json_string(digits));
    return json_to_text(sealed);
}

json_t *seal_from_text(const char *text, size_t len, size_t max, GError **error)
{
    json_autoptr json = json_parse_limited(text, len, max, error);
    json_autoptr seal = json_incref(json_object_get(json, SEAL_MEMBER));
    if (seal == NULL)
        return json_steal(&json);
    json_object_del(json, SEAL_MEMBER);
    char digits[SEAL_DIGITS + 1];
    g_autofree char *plain = json_to_text(json);
    seal_digits(plain, strlen(plain), digits);
    if (g_strcmp0(json_string_value(seal), digits) == 0)
        return json_steal(&json);
    fettle_set_error(error, CORRUPT, "it does not match its checksum");
    return NULL;
}
