/* See envelope.h. Written by hand and not by the record interpreter: it is on the path of every
 * frame, and its `args` and `result` are passed on without being copied. */
#include "proto/envelope.h"

#include "proto/reader.h"

#include <string.h>

static bool refuse(GError **error, const char *what)
{
    fettle_set_error(error, PROTOCOL, "frame: %s", what);
    return false;
}

/* --- names of peers --- */

void peer_name_clear(struct peer_name *name)
{
    g_clear_pointer(&name->node, g_free);
    g_clear_pointer(&name->role, g_free);
    name->job = 0;
}

char *peer_name_format(const char *node, const char *role, guint job)
{
    return job != 0 ? g_strdup_printf("%s/%s/%u", node, role, job)
                    : g_strdup_printf("%s/%s", node, role);
}

static bool word_ok(size_t len)
{
    return len > 0 && len <= LIMIT_NAME_CHARS;
}

bool peer_name_parse(const char *text, struct peer_name *ret_name, GError **error)
{
    size_t node = strcspn(text, "/");
    const char *role = text + node + (text[node] == '/' ? 1 : 0);
    size_t role_len = strcspn(role, "/");
    const char *job_text = role[role_len] == '/' ? role + role_len + 1 : NULL;
    guint64 job = 0;
    if (!word_ok(node) || !word_ok(role_len) ||
        (job_text != NULL && !g_ascii_string_to_unsigned(job_text, 10, 1, G_MAXUINT, &job, NULL))) {
        fettle_set_error(error, PROTOCOL, "\"%.80s\" is no NODE/role[/job]", text);
        return false;
    }
    *ret_name = (struct peer_name){g_strndup(text, node), g_strndup(role, role_len), (guint)job};
    return true;
}

/* --- members of a frame --- */

static bool member_uint(const json_t *json, const char *name, guint64 *ret_value, GError **error)
{
    const json_t *member = json_object_get(json, name);
    if (json_is_integer(member) && json_integer_value(member) >= 0 &&
        json_integer_value(member) <= RECORD_NUMBER_MAX) {
        *ret_value = (guint64)json_integer_value(member);
        return true;
    }
    fettle_set_error(error, PROTOCOL, "frame: %s: must be a whole number from 0", name);
    return false;
}

static const char *member_text(const json_t *json, const char *name, GError **error)
{
    const char *text = json_string_value(json_object_get(json, name));
    if (text == NULL)
        fettle_set_error(error, PROTOCOL, "frame: %s: must be a text", name);
    return text;
}

/* {"code","message"}: an unknown code of a newer peer stays an error (INTERNAL). */
static GError *error_of(const json_t *json)
{
    const char *code = json_string_value(json_object_get(json, "code"));
    const char *message = json_string_value(json_object_get(json, "message"));
    return g_error_new_literal(FETTLE_ERROR, (int)fettle_error_from_name(code),
                               message != NULL ? message : "the peer gave no reason");
}

static json_t *error_to_json(const GError *error)
{
    g_autofree char *message = g_utf8_make_valid(error->message, -1);
    return json_make("{s:s, s:s}", "code", fettle_error_name(error), "message", message);
}

/* --- opening --- */

json_t *envelope_hello(int min, int max, const char *node, const char *role, guint job)
{
    g_autofree char *from = peer_name_format(node, role, job);
    return json_make("{s:{s:[i,i], s:s}}", "hello", "versions", min, max, "from", from);
}

bool envelope_hello_parse(const json_t *json, int min, int max, struct peer_name *ret_from,
                          int *ret_version, GError **error)
{
    const json_t *hello = json_object_get(json, "hello");
    const json_t *versions = json_object_get(hello, "versions");
    const json_t *low = json_array_get(versions, 0);
    const json_t *high = json_array_get(versions, 1);
    const char *from = json_string_value(json_object_get(hello, "from"));
    if (json_array_size(versions) != 2 || !json_is_integer(low) || !json_is_integer(high) ||
        json_integer_value(low) > json_integer_value(high) || from == NULL)
        return refuse(error, "must be a hello with versions [min, max] and from");
    json_int_t common = MIN(json_integer_value(high), max);
    if (common < min || common < json_integer_value(low)) {
        fettle_set_error(error, PROTOCOL,
                         "no common version: here %d to %d, peer %" JSON_INTEGER_FORMAT
                         " to %" JSON_INTEGER_FORMAT,
                         min, max, json_integer_value(low), json_integer_value(high));
        return false;
    }
    if (!peer_name_parse(from, ret_from, error)) {
        g_prefix_error(error, "frame: from: ");
        return false;
    }
    *ret_version = (int)common;
    return true;
}

json_t *envelope_welcome(int version, const char *node, const char *role)
{
    g_autofree char *from = peer_name_format(node, role, 0);
    return json_make("{s:{s:i, s:s}}", "welcome", "version", version, "from", from);
}

json_t *envelope_refusal(const GError *error)
{
    return json_make("{s:{s:o}}", "welcome", "error", error_to_json(error));
}

bool envelope_welcome_parse(const json_t *json, int min, int max, int *ret_version, GError **error)
{
    const json_t *welcome = json_object_get(json, "welcome");
    const json_t *problem = json_object_get(welcome, "error");
    if (problem != NULL) {
        g_propagate_prefixed_error(error, error_of(problem), "refused by the peer: ");
        return false;
    }
    const json_t *version = json_object_get(welcome, "version");
    if (!json_is_integer(version))
        return refuse(error, "must be a welcome with a version");
    if (json_integer_value(version) < min || json_integer_value(version) > max) {
        fettle_set_error(error, PROTOCOL,
                         "the peer chose version %" JSON_INTEGER_FORMAT ": here %d to %d",
                         json_integer_value(version), min, max);
        return false;
    }
    *ret_version = (int)json_integer_value(version);
    return true;
}

/* --- writing --- */

static void set_to(json_t *json, const char *node, const char *role)
{
    if (node == NULL || node[0] == '\0')
        return;
    g_autofree char *to = peer_name_format(node, role, 0);
    json_object_set_new(json, "to", json_string(to));
}

static json_t *request_make(int version, guint64 id, struct stamp stamp, const char *from,
                            const char *method, json_t *args)
{
    return json_make("{s:i, s:I, s:I, s:I, s:s, s:s, s:O}", "v", version, "history",
                     (json_int_t)stamp.history, "epoch", (json_int_t)stamp.epoch, "id",
                     (json_int_t)id, "from", from, "method", method, "args", args);
}

json_t *envelope_request(int version, guint64 id, const struct rpc_call *call,
                         const char *from_node, const char *from_role)
{
    g_autofree char *from = peer_name_format(from_node, from_role, call->job);
    json_t *json = request_make(version, id, call->stamp, from, call->method, call->args);
    set_to(json, call->to_node, call->to_role);
    return json;
}

json_t *envelope_forward(int version, guint64 id, const struct envelope *request,
                         const char *from_node)
{
    g_autofree char *from = peer_name_format(from_node, request->from.role, request->from.job);
    json_t *json = request_make(version, id, request->stamp, from, request->method, request->args);
    set_to(json, request->to_node, request->to_role);
    if (request->signed_by != NULL)
        json_object_set_new(json, "signed_by", json_string(request->signed_by));
    return json;
}

json_t *envelope_reply(int version, guint64 id, json_t *result, const GError *error)
{
    json_t *json = json_make("{s:i, s:I}", "v", version, "id", (json_int_t)id);
    if (error != NULL)
        json_object_set_new(json, "error", error_to_json(error));
    else if (result != NULL)
        json_object_set(json, "result", result);
    else
        json_object_set_new(json, "result", json_object());
    return json;
}

/* --- reading --- */

static bool parse_reply(struct envelope *envelope, const json_t *json, GError **error)
{
    json_t *result = json_object_get(json, "result");
    const json_t *problem = json_object_get(json, "error");
    if ((result != NULL) == (problem != NULL))
        return refuse(error, "must have exactly one of method, result and error");
    envelope->is_reply = true;
    if (problem != NULL)
        envelope->error = error_of(problem);
    else
        envelope->result = json_incref(result);
    return true;
}

static bool parse_to(struct envelope *envelope, const json_t *json, GError **error)
{
    if (json_object_get(json, "to") == NULL) {
        envelope->to_node = g_strdup(NODE_LOCAL);
        envelope->to_role = g_strdup("");
        return true;
    }
    const char *text = member_text(json, "to", error);
    struct peer_name to;
    if (text == NULL)
        return false;
    if (!peer_name_parse(text, &to, error)) {
        g_prefix_error(error, "frame: to: ");
        return false;
    }
    envelope->to_node = to.node;
    envelope->to_role = to.role;
    return true;
}

static bool parse_request(struct envelope *envelope, const json_t *json, GError **error)
{
    if (!member_uint(json, "history", &envelope->stamp.history, error) ||
        !member_uint(json, "epoch", &envelope->stamp.epoch, error))
        return false;
    const char *from = member_text(json, "from", error);
    if (from == NULL)
        return false;
    if (!peer_name_parse(from, &envelope->from, error)) {
        g_prefix_error(error, "frame: from: ");
        return false;
    }
    const char *method = member_text(json, "method", error);
    if (method == NULL || !parse_to(envelope, json, error))
        return false;
    json_t *args = json_object_get(json, "args");
    if (!json_is_object(args) && !json_is_array(args))
        return refuse(error, "args: must be an object (for LUXI a list)");
    envelope->method = g_strdup(method);
    envelope->signed_by = g_strdup(json_string_value(json_object_get(json, "signed_by")));
    envelope->args = json_incref(args);
    return true;
}

struct envelope *envelope_parse(const json_t *json, int version, GError **error)
{
    guint64 v;
    g_autoptr(envelope_t) envelope = g_new0(struct envelope, 1);
    if (!json_is_object(json)) {
        refuse(error, "must be an object");
        return NULL;
    }
    if (!member_uint(json, "v", &v, error))
        return NULL;
    if (v != (guint64)version) {
        fettle_set_error(error, PROTOCOL, "frame: v: is %" G_GUINT64_FORMAT ", settled was %d", v,
                         version);
        return NULL;
    }
    if (!member_uint(json, "id", &envelope->id, error))
        return NULL;
    bool good = json_object_get(json, "method") != NULL ? parse_request(envelope, json, error)
                                                        : parse_reply(envelope, json, error);
    return good ? g_steal_pointer(&envelope) : NULL;
}

/* --- reading at once --- */

static bool read_number(struct reader *reader, const char *name, guint64 *ret_number)
{
    gint64 number;
    if (!reader_member(reader, name) || !reader_number(reader, &number) || number < 0)
        return false;
    *ret_number = (guint64)number;
    return reader_take(reader, ',');
}

static bool read_text(struct reader *reader, const char *name, size_t max, char *ret_text)
{
    struct piece piece;
    if (!reader_member(reader, name) || !reader_text(reader, &piece) || piece.len > max)
        return false;
    memcpy(ret_text, piece.text, piece.len);
    ret_text[piece.len] = '\0';
    return reader_take(reader, ',');
}

static bool read_request(struct envelope *envelope, struct reader *reader, int version,
                         const char *role)
{
    char from[3 * LIMIT_NAME_CHARS], method[LIMIT_NAME_CHARS];
    guint64 v;
    if (!reader_take(reader, '{') || !read_number(reader, "v", &v) || v != (guint64)version ||
        !read_number(reader, "history", &envelope->stamp.history) ||
        !read_number(reader, "epoch", &envelope->stamp.epoch) ||
        !read_number(reader, "id", &envelope->id) ||
        !read_text(reader, "from", sizeof from - 1, from) ||
        !read_text(reader, "method", sizeof method - 1, method) ||
        !peer_name_parse(from, &envelope->from, NULL) ||
        (envelope->row = method_find(role, method)) == NULL || !reader_member(reader, "args"))
        return false;
    envelope->record = record_read(envelope->row->args, reader);
    if (envelope->record == NULL || !reader_take(reader, '}') || !reader_is_over(reader))
        return false;
    envelope->to_node = g_strdup(NODE_LOCAL);
    envelope->to_role = g_strdup("");
    envelope->method = g_strdup(method);
    return true;
}

struct envelope *envelope_read(const char *text, size_t len, int version, const char *role)
{
    struct reader reader = {text, text + len};
    g_autoptr(envelope_t) envelope = g_new0(struct envelope, 1);
    if (len > LIMIT_FRAME_BYTES || !read_request(envelope, &reader, version, role))
        return NULL;
    return g_steal_pointer(&envelope);
}

guint64 envelope_id(const json_t *json)
{
    guint64 id;
    return member_uint(json, "id", &id, NULL) ? id : 0;
}

void envelope_free(struct envelope *envelope)
{
    if (envelope == NULL)
        return;
    peer_name_clear(&envelope->from);
    g_free(envelope->signed_by);
    g_free(envelope->to_node);
    g_free(envelope->to_role);
    g_free(envelope->method);
    json_decref(envelope->args);
    if (envelope->record != NULL)
        record_free(envelope->row->args, envelope->record);
    json_decref(envelope->result);
    g_clear_error(&envelope->error);
    g_free(envelope);
}
