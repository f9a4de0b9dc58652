/* See confd.h. */
#include "proto/confd.h"

#include <string.h>

#include "proto/invitation.h"

#define MAGIC_BYTES (sizeof CONFD_MAGIC - 1)

struct confd_key {
    GHmac *hmac; /* with the key in it, nothing else yet */
};

const char *confd_fault_name(enum confd_fault fault)
{
    static const char *const names[CONFD_FAULT_COUNT] = {
        [CONFD_FAULT_SIZE] = "size", [CONFD_FAULT_MAGIC] = "magic",
        [CONFD_FAULT_FORM] = "form", [CONFD_FAULT_HMAC] = "hmac",
        [CONFD_FAULT_SALT] = "salt", [CONFD_FAULT_REQUEST] = "request",
    };
    g_assert(fault < CONFD_FAULT_COUNT);
    return names[fault];
}

struct confd_key *confd_key_new(const void *bytes, size_t len)
{
    struct confd_key *key = g_new(struct confd_key, 1);
    key->hmac = g_hmac_new(G_CHECKSUM_SHA1, bytes, len);
    return key;
}

void confd_key_free(struct confd_key *key)
{
    if (!key)
        return;
    g_hmac_unref(key->hmac);
    g_free(key);
}

char *confd_node_key(const char *secret, const char *node_uuid)
{
    return g_compute_hmac_for_string(G_CHECKSUM_SHA256, (const guchar *)secret, strlen(secret),
                                     node_uuid, -1);
}

static char *sign(const struct confd_key *key, const char *salt, const char *msg)
{
    GHmac *hmac = g_hmac_copy(key->hmac);
    g_hmac_update(hmac, (const guchar *)salt, (gssize)strlen(salt));
    g_hmac_update(hmac, (const guchar *)msg, (gssize)strlen(msg));
    char *text = g_strdup(g_hmac_get_string(hmac));
    g_hmac_unref(hmac);
    return text;
}

/* --- members of an object that is written from its "{" on --- */

static void add_name(GString *out, const char *name)
{
    if (out->str[out->len - 1] != '{')
        g_string_append_c(out, ',');
    json_append_string(out, name);
    g_string_append_c(out, ':');
}

static void add_text(GString *out, const char *name, const char *text)
{
    add_name(out, name);
    json_append_string(out, text);
}

static void add_number(GString *out, const char *name, guint64 number)
{
    add_name(out, name);
    json_append_integer(out, (gint64)number);
}

/* Members of objects in it stay in their order, as Ganeti's. */
static void add_json(GString *out, const char *name, const json_t *json)
{
    add_name(out, name);
    if (!json_is_object(json) && !json_is_array(json)) {
        json_append(out, json);
        return;
    }
    char *text = json_dumps(json, JSON_COMPACT);
    g_assert(text);
    g_string_append(out, text);
    free(text);
}

/* --- datagrams --- */

char *confd_seal(const struct confd_key *key, const char *salt, const char *msg, size_t *ret_len)
{
    g_autofree char *hmac = sign(key, salt, msg);
    GString *datagram = g_string_sized_new(2 * strlen(msg) + 128);
    g_string_append(datagram, CONFD_MAGIC "{");
    add_text(datagram, "hmac", hmac);
    add_text(datagram, "msg", msg);
    add_text(datagram, "salt", salt);
    g_string_append_c(datagram, '}');
    *ret_len = datagram->len;
    return g_string_free(datagram, FALSE);
}

static bool fault(enum confd_fault *ret_fault, enum confd_fault what)
{
    *ret_fault = what;
    return false;
}

bool confd_open(const struct confd_key *key, const char *data, size_t len, size_t max_len,
                json_t **ret_msg, char **ret_salt, enum confd_fault *ret_fault)
{
    const char *msg, *salt, *hmac;
    if (len > max_len)
        return fault(ret_fault, CONFD_FAULT_SIZE);
    if (len < MAGIC_BYTES || memcmp(data, CONFD_MAGIC, MAGIC_BYTES) != 0)
        return fault(ret_fault, CONFD_FAULT_MAGIC);
    json_autoptr envelope =
        json_parse_limited(data + MAGIC_BYTES, len - MAGIC_BYTES, max_len, NULL);
    if (json_object_size(envelope) != 3 ||
        json_unpack(envelope, "{s:s, s:s, s:s}", "msg", &msg, "salt", &salt, "hmac", &hmac) != 0)
        return fault(ret_fault, CONFD_FAULT_FORM);
    g_autofree char *right = sign(key, salt, msg);
    if (!invitation_hash_equal(hmac, right))
        return fault(ret_fault, CONFD_FAULT_HMAC);
    json_t *body = json_parse_limited(msg, strlen(msg), max_len, NULL);
    if (!json_is_object(body)) {
        json_decref(body);
        return fault(ret_fault, CONFD_FAULT_REQUEST);
    }
    *ret_msg = body;
    *ret_salt = g_strdup(salt);
    return true;
}

/* --- reading requests --- */

/* As servers of Ganeti do, a list of single characters is taken for a text. */
static char *take_text(const json_t *value)
{
    if (json_is_string(value))
        return g_strdup(json_string_value(value));
    if (!json_is_array(value))
        return NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *one = json_string_value(json_array_get(value, i));
        if (!one || g_utf8_strlen(one, -1) != 1)
            return NULL;
        g_string_append(text, one);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static bool take_addresses(struct confd_request *request, const json_t *list)
{
    if (!json_is_array(list) || json_array_size(list) > LIMIT_CONFD_ADDRESSES)
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *address = take_text(json_array_get(list, i));
        if (!address)
            return false;
        g_ptr_array_add(request->addresses, address);
    }
    return true;
}

static bool take_fields(struct confd_request *request, const json_t *list)
{
    if (!json_is_array(list) || json_array_size(list) > CONFD_FIELD_COUNT)
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *number = json_array_get(list, i);
        json_int_t value = json_integer_value(number);
        if (!json_is_integer(number) || value < 0 || value >= CONFD_FIELD_COUNT)
            return false;
        enum confd_field field = (enum confd_field)value;
        g_array_append_val(request->fields, field);
    }
    return true;
}

static bool take_part(struct confd_request *request, const char *key, const json_t *value)
{
    if (strcmp(key, "0") == 0)
        return (request->link = take_text(value)) != NULL;
    if (strcmp(key, "1") == 0)
        return (request->ip = take_text(value)) != NULL;
    if (strcmp(key, "2") == 0)
        return take_addresses(request, value);
    return strcmp(key, "3") == 0 && take_fields(request, value);
}

static bool take_query(struct confd_request *request, json_t *query)
{
    const char *key;
    json_t *value;
    if (!query || json_is_null(query))
        return true;
    if (json_is_string(query)) {
        request->kind = CONFD_QUERY_PLAIN;
        request->plain = g_strdup(json_string_value(query));
        return true;
    }
    request->kind = CONFD_QUERY_DICT;
    json_object_foreach(query, key, value) {
        if (!take_part(request, key, value))
            return false;
    }
    return json_is_object(query);
}

static bool take_request(struct confd_request *request, json_t *msg)
{
    json_int_t protocol, type;
    const char *rsalt;
    json_t *query = NULL;
    if (json_unpack(msg, "{s:I, s:I, s:s, s?:o !}", "protocol", &protocol, "type", &type, "rsalt",
                    &rsalt, "query", &query) != 0 ||
        protocol != CONFD_PROTOCOL || type < 0 || strlen(rsalt) > LIMIT_CONFD_SALT_CHARS)
        return false;
    request->type = (guint64)type;
    request->rsalt = g_strdup(rsalt);
    return take_query(request, query);
}

static bool is_now(const char *salt, gint64 now_s)
{
    gint64 time;
    return g_ascii_string_to_signed(salt, 10, 0, G_MAXINT64 / 2, &time, NULL) &&
           ABS(now_s - time) <= CONFD_SALT_WINDOW_S;
}

struct confd_request *confd_request_open(const struct confd_key *key, gint64 now_s,
                                         const char *data, size_t len, enum confd_fault *ret_fault)
{
    json_autoptr msg = NULL;
    g_autofree char *salt = NULL;
    if (!confd_open(key, data, len, LIMIT_CONFD_REQUEST_BYTES, &msg, &salt, ret_fault))
        return NULL;
    if (!is_now(salt, now_s)) {
        *ret_fault = CONFD_FAULT_SALT;
        return NULL;
    }
    g_autoptr(confd_request_t) request = g_new0(struct confd_request, 1);
    request->addresses = g_ptr_array_new_with_free_func(g_free);
    request->fields = g_array_new(FALSE, FALSE, sizeof(enum confd_field));
    if (take_request(request, msg))
        return g_steal_pointer(&request);
    *ret_fault = CONFD_FAULT_REQUEST;
    return NULL;
}

void confd_request_free(struct confd_request *request)
{
    if (!request)
        return;
    g_free(request->plain);
    g_free(request->link);
    g_free(request->ip);
    g_ptr_array_unref(request->addresses);
    g_array_unref(request->fields);
    g_free(request->rsalt);
    g_free(request);
}

/* --- writing --- */

/* Members stand in the order in which Ganeti writes them. */
char *confd_request_seal(const struct confd_key *key, gint64 now_s, enum confd_type type,
                         const json_t *query, const char *rsalt, size_t *ret_len)
{
    g_autoptr(GString) msg = g_string_new("{");
    g_autofree char *salt = g_strdup_printf("%" G_GINT64_FORMAT, now_s);
    add_number(msg, "protocol", CONFD_PROTOCOL);
    add_number(msg, "type", type);
    add_json(msg, "query", query ? query : json_null());
    add_text(msg, "rsalt", rsalt);
    g_string_append_c(msg, '}');
    return confd_seal(key, salt, msg->str, ret_len);
}

char *confd_reply_seal(const struct confd_key *key, const struct confd_reply *reply,
                       const char *rsalt, size_t *ret_len)
{
    g_autoptr(GString) msg = g_string_new("{");
    add_number(msg, "protocol", CONFD_PROTOCOL);
    add_number(msg, "status", reply->status);
    add_json(msg, "answer", reply->answer);
    add_number(msg, "serial", reply->serial);
    g_string_append_c(msg, '}');
    return confd_seal(key, rsalt, msg->str, ret_len);
}

/* --- reading replies --- */

bool confd_reply_open(const struct confd_key *key, const char *data, size_t len, const char *rsalt,
                      struct confd_reply *ret_reply, enum confd_fault *ret_fault)
{
    json_autoptr msg = NULL;
    g_autofree char *salt = NULL;
    json_int_t protocol, status, serial;
    json_t *answer;
    if (!confd_open(key, data, len, LIMIT_CONFD_REPLY_BYTES, &msg, &salt, ret_fault))
        return false;
    if (strcmp(salt, rsalt) != 0)
        return fault(ret_fault, CONFD_FAULT_SALT);
    if (json_unpack(msg, "{s:I, s:I, s:o, s:I}", "protocol", &protocol, "status", &status, "answer",
                    &answer, "serial", &serial) != 0 ||
        protocol != CONFD_PROTOCOL || status < CONFD_OK || status > CONFD_NOT_IMPLEMENTED ||
        serial < 0)
        return fault(ret_fault, CONFD_FAULT_REQUEST);
    *ret_reply = (struct confd_reply){.status = (enum confd_status)status,
                                      .answer = json_incref(answer),
                                      .serial = (guint64)serial};
    return true;
}
