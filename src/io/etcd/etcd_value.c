/* See etcd_value.h. */
#include "io/etcd/etcd_value.h"

#include <string.h>

#include "base/limits.h"
#include "proto/digest.h"
#include "proto/seal.h"

#define BEGIN "{\"object\":"
#define VERSION ",\"version\":"
#define CHECK ",\"" SEAL_MEMBER "\":\""
#define END "\"}"
#define LIST_CHECK ",{\"" SEAL_MEMBER "\":\""
#define LIST_END "\"}]"

static void digits_of(const char *name, const char *text, size_t len, char ret[SEAL_DIGITS + 1])
{
    guint64 sum = digest_bytes(digest_text(DIGEST_START, name), text, len);
    g_snprintf(ret, SEAL_DIGITS + 1, "%016" G_GINT64_MODIFIER "x", sum);
}

/* --- objects: {"object":OBJECT,"version":N,"check":"DIGITS"} --- */

char *etcd_object_text(const char *kind, const char *key, guint64 version, const json_t *object)
{
    char digits[SEAL_DIGITS + 1];
    g_autofree char *name = g_strdup_printf("%s/%s", kind, key);
    g_autofree char *inner = json_to_text(object);
    g_autofree char *text =
        g_strdup_printf(BEGIN "%s" VERSION "%" G_GUINT64_FORMAT, inner, version);
    digits_of(name, text, strlen(text), digits);
    return g_strconcat(text, CHECK, digits, END, NULL);
}

/* Where the checksum begins, which stands between `begin` and `end`; NULL: there is none. */
static const char *find_between(const char *value, const char *begin, const char *end)
{
    size_t len = strlen(value), tail = strlen(begin) + SEAL_DIGITS + strlen(end);
    const char *check = len > tail ? value + len - tail : NULL;
    return check != NULL && g_str_has_prefix(check, begin) && g_str_has_suffix(value, end) ? check
                                                                                           : NULL;
}

static const char *find_check(const char *value)
{
    return find_between(value, CHECK, END);
}

static const char *find_list_check(const char *value)
{
    return find_between(value, LIST_CHECK, LIST_END);
}

bool etcd_value_is_checked(const char *value)
{
    return find_check(value) != NULL || find_list_check(value) != NULL;
}

/* Whether `check` has the digits of what stands before it; `begin` long is what leads to them. */
static bool is_right(const char *name, const char *value, const char *check, size_t begin)
{
    char digits[SEAL_DIGITS + 1];
    digits_of(name, value, (size_t)(check - value), digits);
    return strncmp(check + begin, digits, SEAL_DIGITS) == 0;
}

bool etcd_object_sound(const char *name, const char *value)
{
    const char *check = find_check(value);
    if (check == NULL) { /* of a version before, or that is what is damaged */
        guint64 version = 0;
        g_autofree char *object = etcd_object_parse(value, &version);
        return object != NULL;
    }
    return is_right(name, value, check, strlen(CHECK));
}

/* Cuts the object out of a value that is written as above; NULL: it is written otherwise. */
static char *cut_object(const char *value, guint64 *ret_version)
{
    const char *check = find_check(value);
    size_t len = check != NULL ? (size_t)(check - value) : strlen(value);
    const char *comma = g_strrstr_len(value, (gssize)len, ",");
    char *end = NULL;
    if (!g_str_has_prefix(value, BEGIN) || comma == NULL || !g_str_has_prefix(comma, VERSION) ||
        !g_ascii_isdigit(comma[strlen(VERSION)]))
        return NULL;
    *ret_version = g_ascii_strtoull(comma + strlen(VERSION), &end, 10);
    const char *object = value + strlen(BEGIN);
    bool whole = check != NULL ? end == check : strcmp(end, "}") == 0;
    return whole && object < comma ? g_strndup(object, (gsize)(comma - object)) : NULL;
}

char *etcd_object_parse(const char *value, guint64 *ret_version)
{
    char *cut = cut_object(value, ret_version);
    if (cut != NULL)
        return cut;
    json_autoptr whole = json_parse_limited(value, strlen(value), LIMIT_FRAME_BYTES, NULL);
    json_int_t version = 0;
    json_t *object = NULL;
    if (whole == NULL ||
        json_unpack(whole, "{s:I, s:o}", "version", &version, "object", &object) != 0 ||
        version < 0)
        return NULL;
    *ret_version = (guint64)version;
    return json_to_text(object);
}

/* --- lists: [ITEM,ITEM,{"check":"DIGITS"}] --- */

char *etcd_list_text(const char *name, const json_t *list)
{
    char digits[SEAL_DIGITS + 1];
    g_autofree char *text = json_to_text(list);
    g_assert(json_array_size(list) > 0);
    text[strlen(text) - 1] = '\0'; /* the closing bracket */
    digits_of(name, text, strlen(text), digits);
    return g_strconcat(text, LIST_CHECK, digits, LIST_END, NULL);
}

bool etcd_list_sound(const char *name, const char *value)
{
    const char *check = find_list_check(value);
    if (check != NULL)
        return is_right(name, value, check, strlen(LIST_CHECK));
    json_autoptr list = json_parse_limited(value, strlen(value), LIMIT_FRAME_BYTES, NULL);
    return json_is_array(list);
}

/* --- numbers: "N DIGITS" --- */

char *etcd_count_text(const char *name, guint64 count)
{
    char digits[SEAL_DIGITS + 1];
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, count);
    digits_of(name, text, strlen(text), digits);
    return g_strdup_printf("%s %s", text, digits);
}

bool etcd_count_parse(const char *name, const char *value, guint64 *ret_count)
{
    char digits[SEAL_DIGITS + 1];
    char *end = NULL;
    *ret_count = g_ascii_strtoull(value, &end, 10);
    digits_of(name, value, (size_t)(end - value), digits);
    return end != value && (*end == '\0' || (*end == ' ' && strcmp(end + 1, digits) == 0));
}
