/* Rows of kind OWN that queue a job whose opcodes do not follow from the names alone. */
#include <string.h>

#include "core/rapi/rapi_private.h"

#define VERSION_KEY "__version__" /* of the form of a body */

static struct http_answer *submit_one(struct rapi_call *call, const char *id, json_t *op,
                                      GError **error)
{
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
    return op ? submit_one(call, "OP_INSTANCE_CREATE", op, error) : NULL;
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
        json_object_set_new(op, "node_name", json_string(rapi_var(call, "node")));
        json_object_set_new(op, "master_candidate", json_string(roles[i].candidate));
        json_object_set_new(op, "offline", json_string(roles[i].offline));
        json_object_set_new(op, "drained", json_string(roles[i].drained));
        return submit_one(call, "OP_NODE_SET_PARAMS", op, error);
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
    json_object_set_new(op, "node_name", json_string(rapi_var(call, "node")));
    return submit_one(call, "OP_NODE_MIGRATE", op, error);
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
    json_object_set_new(op, "instance_name", json_string(rapi_var(call, "instance")));
    return submit_one(call, "OP_INSTANCE_REPLACE_DISKS", op, error);
}

/* What is asked for: the image and whether it starts, by the body or by what stands behind "?". */
static bool read_reinstall(struct rapi_call *call, json_t *op, bool *ret_start, GError **error)
{
    const char *name;
    json_t *value, *start = rapi_member(call, "start");
    bool stays, body = json_object_size(call->body) > 0;
    if (!rapi_query_flag(call, "nostartup", &stays, error))
        return false;
    if (body && (rapi_query(call, "os") || rapi_query(call, "nostartup"))) {
        fettle_set_error(error, WRONG_INPUT, "Can't combine query and body parameters");
        return false;
    }
    if (start && !json_is_boolean(start)) {
        fettle_set_error(error, WRONG_INPUT, "start: must be true or false");
        return false;
    }
    *ret_start = start ? json_is_true(start) : !stays;
    if (rapi_query(call, "os"))
        json_object_set_new(op, "os_type", json_string(rapi_query(call, "os")));
    json_object_foreach(call->body, name, value)
        if (strcmp(name, "start") != 0)
            json_object_set(op, !strcmp(name, "os") ? "os_type" : name, value);
    return true;
}

struct http_answer *rapi_own_reinstall(struct rapi_call *call, GError **error)
{
    const char *name = rapi_var(call, "instance");
    json_autoptr op =
        json_make("{ss, ss}", "OP_ID", "OP_INSTANCE_REINSTALL", "instance_name", name);
    bool start;
    if (!read_reinstall(call, op, &start, error))
        return NULL;
    json_t *ops =
        json_make("[{ss, ss}, O]", "OP_ID", "OP_INSTANCE_SHUTDOWN", "instance_name", name, op);
    if (start)
        json_array_append_new(
            ops, json_make("{ss, ss}", "OP_ID", "OP_INSTANCE_STARTUP", "instance_name", name));
    return rapi_submit(call, ops, error);
}
