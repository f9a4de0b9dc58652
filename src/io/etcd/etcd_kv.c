/* See etcd_kv.h. */
#include "io/etcd/etcd_kv.h"

#include <string.h>

#include "base/error.h"

#define WORDS_CHARS 200

static json_t *encoded(const char *text)
{
    g_autofree char *base64 = g_base64_encode((const guchar *)text, strlen(text));
    return json_string(base64);
}

static json_t *number_text(gint64 number)
{
    char text[24];
    g_snprintf(text, sizeof text, "%" G_GINT64_FORMAT, number);
    return json_string(text);
}

/* The first key that does not begin with `prefix` any more: keys are ASCII, so the last byte can
 * always be raised. */
static char *prefix_end(const char *prefix)
{
    char *end = g_strdup(prefix);
    end[strlen(end) - 1]++;
    return end;
}

/* --- requests --- */

json_t *etcd_range(const char *key)
{
    return json_make("{s:o}", "key", encoded(key));
}

json_t *etcd_range_prefix(const char *prefix, const char *from, guint limit, gint64 revision)
{
    g_autofree char *end = prefix_end(prefix);
    json_t *range = json_make("{s:o, s:o, s:o}", "key", encoded(from != NULL ? from : prefix),
                              "range_end", encoded(end), "limit", number_text(limit));
    if (revision != 0)
        json_object_set_new(range, "revision", number_text(revision));
    return range;
}

json_t *etcd_compare(const char *key, enum etcd_target target, gint64 equal)
{
    static const struct {
        const char *target, *member;
    } targets[] = {
        [ETCD_CREATE_REVISION] = {"CREATE", "create_revision"},
        [ETCD_MOD_REVISION] = {"MOD", "mod_revision"},
    };
    return json_make("{s:o, s:s, s:s, s:o}", "key", encoded(key), "result", "EQUAL", "target",
                     targets[target].target, targets[target].member, number_text(equal));
}

json_t *etcd_get(const char *key)
{
    return json_make("{s:o}", "request_range", etcd_range(key));
}

json_t *etcd_put(const char *key, const char *value, gint64 lease)
{
    json_t *put = json_make("{s:o, s:o}", "key", encoded(key), "value", encoded(value));
    if (lease != 0)
        json_object_set_new(put, "lease", number_text(lease));
    return json_make("{s:o}", "request_put", put);
}

json_t *etcd_delete(const char *key)
{
    return json_make("{s:{s:o}}", "request_delete_range", "key", encoded(key));
}

json_t *etcd_delete_prefix(const char *prefix)
{
    g_autofree char *end = prefix_end(prefix);
    return json_make("{s:{s:o, s:o}}", "request_delete_range", "key", encoded(prefix), "range_end",
                     encoded(end));
}

json_t *etcd_delete_range(const char *from, const char *end)
{
    return json_make("{s:{s:o, s:o}}", "request_delete_range", "key", encoded(from), "range_end",
                     encoded(end));
}

json_t *etcd_txn(json_t *compares, json_t *then, json_t *otherwise)
{
    json_t *txn = json_make("{s:o, s:o}", "compare", compares, "success", then);
    if (otherwise != NULL)
        json_object_set_new(txn, "failure", otherwise);
    return txn;
}

/* --- answers --- */

char *etcd_words(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    return g_utf8_substring(valid, 0, MIN(g_utf8_strlen(valid, -1), WORDS_CHARS));
}

gint64 etcd_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (json_is_integer(value))
        return json_integer_value(value);
    return json_is_string(value) ? g_ascii_strtoll(json_string_value(value), NULL, 10) : 0;
}

gint64 etcd_revision(const json_t *answer)
{
    return etcd_number(json_object_get(answer, "header"), "revision");
}

bool etcd_succeeded(const json_t *answer)
{
    return json_is_true(json_object_get(answer, "succeeded"));
}

void etcd_kv_free(struct etcd_kv *kv)
{
    g_free(kv->key);
    g_free(kv->value);
    g_free(kv);
}

static void free_kv(void *data)
{
    etcd_kv_free(data);
}

/* A NUL is nothing that was ever stored. It must neither end the text, which might be whole before
 * it, nor spoil the answer: \x01 is in no text of ours, and tells whoever reads the value. */
static void mark_zeros(char *text, gsize length)
{
    for (gsize i = 0; i < length; i++)
        if (text[i] == '\0')
            text[i] = '\x01';
}

/* NULL if it is no text. */
static char *decoded(const json_t *value)
{
    gsize length = 0;
    if (value == NULL)
        return g_strdup(""); /* the gateway leaves out what is empty */
    if (!json_is_string(value))
        return NULL;
    char *text = (char *)g_base64_decode(json_string_value(value), &length);
    text = g_realloc(text, length + 1);
    text[length] = '\0';
    mark_zeros(text, length);
    return text;
}

static struct etcd_kv *kv_of(const json_t *item, GError **error)
{
    struct etcd_kv *kv = g_new0(struct etcd_kv, 1);
    kv->key = decoded(json_object_get(item, "key"));
    kv->value = decoded(json_object_get(item, "value"));
    kv->create_revision = etcd_number(item, "create_revision");
    kv->mod_revision = etcd_number(item, "mod_revision");
    kv->lease = etcd_number(item, "lease");
    if (kv->key != NULL && *kv->key != '\0' && kv->value != NULL && kv->create_revision > 0 &&
        kv->mod_revision >= kv->create_revision)
        return kv;
    etcd_kv_free(kv);
    fettle_set_error(error, PROTOCOL, "etcd answered a key that cannot be read");
    return NULL;
}

GPtrArray *etcd_kvs(const json_t *answer, bool *ret_more, GError **error)
{
    g_autoptr(GPtrArray) kvs = g_ptr_array_new_with_free_func(free_kv);
    const json_t *items = json_object_get(answer, "kvs");
    size_t index;
    json_t *item;

    if (ret_more != NULL)
        *ret_more = json_is_true(json_object_get(answer, "more"));
    if (!json_is_object(answer) || (items != NULL && !json_is_array(items))) {
        fettle_set_error(error, PROTOCOL, "etcd answered a range without keys");
        return NULL;
    }
    json_array_foreach((json_t *)items, index, item) {
        struct etcd_kv *kv = kv_of(item, error);
        if (kv == NULL)
            return NULL;
        g_ptr_array_add(kvs, kv);
    }
    return g_steal_pointer(&kvs);
}

GPtrArray *etcd_txn_kvs(const json_t *answer, guint index, GError **error)
{
    const json_t *part = json_array_get(json_object_get(answer, "responses"), index);
    return etcd_kvs(json_object_get(part, "response_range"), NULL, error);
}

gint64 etcd_lease_left(const json_t *answer)
{
    return etcd_number(json_object_get(answer, "result"), "TTL");
}
