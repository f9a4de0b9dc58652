/* Rows of kind JOB: jobs whose opcodes do not follow from the names alone. */
#include <string.h>

#include "core/rapi/rapi_private.h"

#define VERSION_KEY "__version__" /* of the form of a body */

/* Of a route whose jobs have one opcode. */
static struct http_answer *submit_one(struct rapi_call *call, json_t *op, GError **error)
{
    const char *id = rapi_route_part(call->route, RAPI_OPCODE, NULL)->from;
    json_object_set_new(op, "OP_ID", json_string(id));
    return rapi_submit(call, json_make("[o]", op), error);
}

struct http_answer *rapi_own_create_instance(struct rapi_call *call, GError **error)
{
    json_int_t version = json_integer_value(rapi_member(call, VERSION_KEY));
    if (!version)
        return rapi_refuse(400, "Instance creation request version 0 is no longer supported: say "
                                "\"" VERSION_KEY "\": 1");
    if (version != 1)
        return rapi_refuse(400, "Unsupported request data version %" JSON_INTEGER_FORMAT, version);
    json_object_del(call->body, VERSION_KEY);
    json_t *op = rapi_op_parameters(call, true, error);
    return op ? submit_one(call, op, error) : NULL;
}

/* --- nodes --- */

/* What a word makes of a node; empty: it stays. */
static const struct {
    const char *word, *candidate, *offline, *drained;
} roles[] = {
    {"regular", "no", "no", "no"},
    {"master-candidate", "yes", "", ""},
    {"drained", "", "", "yes"},
    {"offline", "", "yes", ""},
};

struct http_answer *rapi_own_set_node_role(struct rapi_call *call, GError **error)
{
    const char *word = json_string_value(call->body);
    if (!word)
        return rapi_refuse(400, "the body is no text of JSON, as \"drained\"");
    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++) {
        if (strcmp(roles[i].word, word) != 0)
            continue;
        json_t *op = rapi_op_parameters(call, false, error);
        if (!op)
            return NULL;
        json_object_set_new(op, "master_candidate", json_string(roles[i].candidate));
        json_object_set_new(op, "offline", json_string(roles[i].offline));
        json_object_set_new(op, "drained", json_string(roles[i].drained));
        return submit_one(call, op, error);
    }
    return rapi_refuse(400, "Can't set '%s' role", word);
}

struct http_answer *rapi_own_node_migrate(struct rapi_call *call, GError **error)
{
    bool live;
    json_t *op = rapi_op_parameters(call, true, error);
    if (!op)
        return NULL;
    if (rapi_query(call, "live") && !rapi_query_flag(call, "live", &live, error)) {
        json_decref(op);
        return NULL;
    }
    if (rapi_query(call, "live") && json_object_get(op, "mode")) {
        json_decref(op);
        return rapi_refuse(400, "Only one of 'live' and 'mode' should be passed");
    }
    if (rapi_query(call, "live"))
        json_object_set_new(op, "mode", json_string(live ? "live" : "non-live"));
    return submit_one(call, op, error);
}

/* --- disks --- */

/* "0, 1", as it stands behind "?"; NULL: it is none. */
static json_t *numbers_of(const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    json_autoptr list = json_array();
    for (char **part = parts; *part; part++) {
        guint64 number;
        if (!g_ascii_string_to_unsigned(g_strstrip(*part), 10, 0, G_MAXINT32, &number, NULL))
            return NULL;
        json_array_append_new(list, json_integer((json_int_t)number));
    }
    return json_steal(&list);
}

struct http_answer *rapi_own_replace_disks(struct rapi_call *call, GError **error)
{
    json_t *op = rapi_op_parameters(call, true, error);
    if (!op)
        return NULL;
    const char *text = json_string_value(json_object_get(op, "disks"));
    json_t *disks = text && *text ? numbers_of(text) : json_array();
    if (!disks) {
        struct http_answer *answer = rapi_refuse(400, "Invalid disk index passed: %s", text);
        json_decref(op);
        return answer;
    }
    if (text)
        json_object_set(op, "disks", disks);
    json_decref(disks);
    return submit_one(call, op, error);
}

/* Takes out of the body's members whether it starts, which may stand behind "?" instead. */
static bool take_start(struct rapi_call *call, json_t *op, bool *ret_start, GError **error)
{
    json_autoptr start = json_incref(json_object_get(op, "start"));
    bool stays;
    if (!rapi_query_flag(call, "nostartup", &stays, error))
        return false;
    if (start && !json_is_boolean(start)) {
        fettle_set_error(error, WRONG_INPUT, "start: must be true or false");
        return false;
    }
    json_object_del(op, "start");
    *ret_start = start ? json_is_true(start) : !stays;
    return true;
}

/* Another opcode for the same instance, with what is asked for of any: who wants a trial gets one
 * of the whole job. */
static json_t *beside(const char *id, json_t *op)
{
    const char *name;
    json_t *value, *other = json_make("{ss}", "OP_ID", id);
    json_object_foreach(op, name, value)
        if (!strcmp(name, "instance_name") || rapi_is_common(name))
            json_object_set(other, name, value);
    return other;
}

struct http_answer *rapi_own_reinstall(struct rapi_call *call, GError **error)
{
    bool start;
    if (json_object_size(call->body) > 0 &&
        (rapi_query(call, "os") || rapi_query(call, "nostartup")))
        return rapi_refuse(400, "Can't combine query and body parameters");
    json_autoptr op = rapi_op_parameters(call, true, error);
    if (!op || !take_start(call, op, &start, error))
        return NULL;
    json_t *ops = json_make("[oO]", beside("OP_INSTANCE_SHUTDOWN", op), op);
    if (start)
        json_array_append_new(ops, beside("OP_INSTANCE_STARTUP", op));
    json_object_set_new(op, "OP_ID", json_string("OP_INSTANCE_REINSTALL"));
    return rapi_submit(call, ops, error);
}
