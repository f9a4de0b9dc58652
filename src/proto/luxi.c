/* See luxi.h. The shapes and the words of refusals are those that Ganeti's clients know. */
#include "proto/luxi.h"

#include <string.h>

#define REQUEST_PROBLEM "Failed to parse request: "

/* Python classes of Ganeti's errors, by our code; its clients raise them. */
static const char *class_of(const GError *error)
{
    static const enum fettle_error prerequisites[] = {
        FETTLE_ERROR_WRONG_INPUT, FETTLE_ERROR_UNKNOWN_ENTITY, FETTLE_ERROR_ALREADY_EXISTS,
        FETTLE_ERROR_WRONG_STATE, FETTLE_ERROR_NO_RESOURCES,   FETTLE_ERROR_TEMPORARY,
        FETTLE_ERROR_UNSAFE,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(prerequisites); i++)
        if (g_error_matches(error, FETTLE_ERROR, (int)prerequisites[i]))
            return "OpPrereqError";
    return "GenericError";
}

/* --- arguments --- */

/* The id of a job may come as its text. */
static json_t *job_id(const json_t *value)
{
    guint64 id;
    return json_is_string(value) && g_ascii_string_to_unsigned(json_string_value(value), 10, 0,
                                                               G_MAXINT64, &id, NULL)
               ? json_integer((json_int_t)id)
               : NULL;
}

void *luxi_args_parse(const struct luxi_method *method, const json_t *args, GError **error)
{
    json_autoptr object = json_object();
    size_t i = 0;
    const struct field *field = method->args->fields();
    for (; field[i].name != NULL && i < json_array_size(args); i++) {
        json_t *value = json_array_get(args, i);
        json_t *id = strcmp(field[i].name, "job") == 0 ? job_id(value) : NULL;
        json_object_set_new(object, field[i].name, id != NULL ? id : json_incref(value));
    }
    if (json_array_size(args) > i) {
        fettle_set_error(error, WRONG_INPUT, "%s: takes at most %zu arguments, got %zu",
                         method->name, i, json_array_size(args));
        return NULL;
    }
    void *value = record_parse(method->args, object, RECORD_STRICT, error);
    if (value == NULL)
        g_prefix_error(error, "%s: ", method->name);
    return value;
}

json_t *luxi_args_write(const struct luxi_method *method, const void *args)
{
    json_autoptr object = record_to_json(method->args, args);
    json_t *array = json_array();
    for (const struct field *field = method->args->fields(); field->name != NULL; field++) {
        json_t *member = json_object_get(object, field->name);
        json_array_append_new(array, member != NULL ? json_incref(member) : json_null());
    }
    return array;
}

/* --- requests --- */

json_t *luxi_request_make(const char *method, json_t *args, const char *user)
{
    json_t *request = json_make("{s:s, s:o}", "method", method, "args", args);
    if (user)
        json_object_set_new(request, "user", json_string(user));
    return request;
}

bool luxi_request_parse(const char *data, size_t len, char **ret_method, json_t **ret_args,
                        char **ret_user, GError **error)
{
    json_autoptr json = json_parse_limited(data, len, LIMIT_LUXI_FRAME_BYTES, error);
    if (json == NULL)
        return false;
    const char *method = json_string_value(json_object_get(json, "method"));
    json_t *args = json_object_get(json, "args");
    const json_t *version = json_object_get(json, "version");
    const json_t *user = json_object_get(json, "user");
    const char *problem = NULL;
    if (!json_is_object(json))
        problem = "must be an object";
    else if (method == NULL)
        problem = "method: must be a text";
    else if (!json_is_array(args))
        problem = "args: must be a list";
    else if (version != NULL && !json_is_null(version) && !json_is_integer(version))
        problem = "version: must be a whole number";
    else if (user && !json_is_null(user) && !json_is_string(user))
        problem = "user: must be a text";
    if (problem != NULL) {
        fettle_set_error(error, PROTOCOL, "LUXI request: %s", problem);
        return false;
    }
    *ret_method = g_strdup(method);
    *ret_args = json_incref(args);
    *ret_user = g_strdup(json_string_value(user));
    return true;
}

const struct luxi_method *luxi_check_method(const char *name, GError **error)
{
    const struct luxi_method *method = luxi_method_find(name);
    if (method == NULL)
        fettle_set_error(error, PROTOCOL,
                         "Unable to parse LUXI request method: "
                         "Invalid string value for type LuxiReq: \"%s\"",
                         name);
    return method;
}

/* --- replies --- */

json_t *luxi_reply_result(json_t *result)
{
    return json_make("{s:b, s:o}", "success", 1, "result", result != NULL ? result : json_null());
}

json_t *luxi_reply_unparsed(const GError *error)
{
    g_autofree char *text = g_strconcat(REQUEST_PROBLEM, error->message, NULL);
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    return json_make("{s:b, s:s}", "success", 0, "result", valid);
}

json_t *luxi_reply_error(const GError *error)
{
    return json_make("{s:b, s:o}", "success", 0, "result", luxi_error_make(error));
}

json_t *luxi_error_make(const GError *error)
{
    g_autofree char *message = g_utf8_make_valid(error->message, -1);
    return json_make("[s, [s, s]]", class_of(error), message, fettle_error_name(error));
}

GError *luxi_error_parse(const json_t *value)
{
    if (json_is_string(value)) {
        bool unparsed = g_str_has_prefix(json_string_value(value), REQUEST_PROBLEM);
        return g_error_new_literal(
            FETTLE_ERROR, unparsed ? (int)FETTLE_ERROR_PROTOCOL : (int)FETTLE_ERROR_INTERNAL,
            json_string_value(value));
    }
    const json_t *parts = json_array_get(value, 1);
    const char *message = json_string_value(json_array_get(parts, 0));
    const char *code = json_string_value(json_array_get(parts, 1));
    if (message == NULL)
        return g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_INTERNAL,
                                   "an error that says nothing");
    return g_error_new_literal(FETTLE_ERROR, (int)fettle_error_from_name(code), message);
}

json_t *luxi_reply_parse(const json_t *reply, GError **error)
{
    const json_t *success = json_object_get(reply, "success");
    json_t *result = json_object_get(reply, "result");
    if (!json_is_boolean(success) || result == NULL) {
        fettle_set_error(error, PROTOCOL, "LUXI reply: must have success and result");
        return NULL;
    }
    if (json_is_true(success))
        return json_incref(result);
    g_propagate_error(error, luxi_error_parse(result));
    return NULL;
}
