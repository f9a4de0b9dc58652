/* Rows of kind LUXI and OWN; see rapi_private.h. */
#include <string.h>

#include "core/rapi/rapi_private.h"
#include "proto/metrics/metric_text.h"

#define API_VERSION 2
#define WAIT_S 10 /* of /2/jobs/{job}/wait, as Ganeti's */

/* --- LUXI --- */

static json_t *argument(const struct rapi_call *call, const struct rapi_part *part, GError **error)
{
    const char *text = rapi_query(call, part->from);
    bool yes;
    if (part->kind == RAPI_FIXED)
        return json_parse_own(part->from);
    if (part->kind == RAPI_PATH)
        return json_string(rapi_var(call, part->from));
    if (part->kind == RAPI_TEXT)
        return text ? json_string(text) : json_null();
    return rapi_query_flag(call, part->from, &yes, error) ? json_boolean(yes) : NULL;
}

struct http_answer *rapi_run_luxi(struct rapi_call *call, GError **error)
{
    const struct rapi_route *route = call->route;
    json_autoptr args = json_array();
    for (size_t i = 0; i < route->part_count; i++) {
        const struct rapi_part *part = &route->parts[i];
        json_t *value = part->kind == RAPI_ALIAS ? NULL : argument(call, part, error);
        if (value)
            json_array_append_new(args, value);
        else if (part->kind != RAPI_ALIAS)
            return NULL;
    }
    if (!rapi_route_part(route, RAPI_ALIAS, NULL)) {
        char *text = rapi_ask_text(call, route->what, json_steal(&args), error);
        return text ? rapi_answer_text(text) : NULL;
    }
    json_autoptr result = rapi_ask(call, route->what, json_steal(&args), error);
    for (size_t i = 0; result && i < route->part_count; i++)
        if (route->parts[i].kind == RAPI_ALIAS)
            json_object_set(result, route->parts[i].to,
                            json_object_get(result, route->parts[i].from));
    return result ? rapi_answer(json_steal(&result)) : NULL;
}

/* --- what is always the same --- */

struct http_answer *rapi_answer_master(struct rapi_call *call, json_t *answer, GError **error)
{
    json_autoptr same = answer;
    json_autoptr asked =
        rapi_ask(call, "QueryConfigValues", json_make("[[s]]", "master_node"), error);
    return asked ? rapi_answer(json_steal(&same)) : NULL;
}

struct http_answer *rapi_own_null(struct rapi_call *call, GError **error)
{
    return rapi_answer_master(call, json_null(), error);
}

struct http_answer *rapi_own_version(struct rapi_call *call, GError **error)
{
    return rapi_answer_master(call, json_integer(API_VERSION), error);
}

struct http_answer *rapi_own_features(struct rapi_call *call, GError **error)
{
    json_t *features = json_make("[ssss]", "node-migrate-reqv1", "node-evac-res1",
                                 "instance-create-reqv1", "instance-reinstall-reqv1");
    return rapi_answer_master(call, features, error);
}

struct http_answer *rapi_own_no_tags(struct rapi_call *call, GError **error)
{
    json_autoptr found = rapi_ask(call, "QueryNetworks",
                                  json_make("[[s][s]]", rapi_var(call, "network"), "name"), error);
    return found ? rapi_answer(json_array()) : NULL;
}

/* --- metrics --- */

struct http_answer *rapi_own_metrics(struct rapi_call *call, GError **error)
{
    json_autoptr document = rapi_ask(call, "QueryMetrics", json_array(), error);
    const char *type;
    size_t length;
    if (!document)
        return NULL;
    json_autoptr requests = request_tally_tell(call->rapi->tally);
    const struct metric_document documents[] = {
        {"cluster", document}, {"rapid", requests}, {NULL, NULL}};
    char *text =
        metrics_of_samples(documents, http_request_header(call->request, "accept"), &type, &length);
    struct http_answer *answer = http_answer_new(200);
    http_answer_set_body(answer, type, text);
    http_answer_add_header(answer, "Vary", "Accept");
    return answer;
}

/* --- objects --- */

static void set_strange(const char *method, GError **error)
{
    fettle_set_error(error, PROTOCOL, "luxid: %s: the answer is none that it can have", method);
}

/* Fields of one object by an old call, a row of as many values. */
static json_t *ask_row(struct rapi_call *call, const char *method, const char *name, json_t *fields,
                       GError **error)
{
    size_t count = json_array_size(fields);
    json_autoptr rows = rapi_ask(call, method, json_make("[[s]o]", name, fields), error);
    json_t *row = json_array_get(rows, 0);
    if (rows && json_array_size(row) != count)
        set_strange(method, error);
    return json_array_size(row) == count ? json_incref(row) : NULL;
}

static const struct {
    const char *letter, *word;
} roles[] = {{"M", "master"},
             {"C", "master-candidate"},
             {"D", "drained"},
             {"O", "offline"},
             {"R", "regular"}};

struct http_answer *rapi_own_node_role(struct rapi_call *call, GError **error)
{
    json_autoptr row =
        ask_row(call, "QueryNodes", rapi_var(call, "node"), json_make("[s]", "role"), error);
    const char *letter = json_string_value(json_array_get(row, 0));
    for (size_t i = 0; letter && i < G_N_ELEMENTS(roles); i++)
        if (!strcmp(roles[i].letter, letter))
            return rapi_answer(json_string(roles[i].word));
    if (row)
        set_strange("QueryNodes", error);
    return NULL;
}

struct http_answer *rapi_own_console(struct rapi_call *call, GError **error)
{
    const char *name = rapi_var(call, "instance");
    json_autoptr row =
        ask_row(call, "QueryInstances", name, json_make("[ss]", "console", "oper_state"), error);
    json_t *console = json_array_get(row, 0);
    if (!row)
        return NULL;
    if (!json_is_true(json_array_get(row, 1)))
        return rapi_refuse(503, "Instance console unavailable: \"%s\" does not run", name);
    if (!json_is_object(console))
        return rapi_refuse(503,
                           "Instance console unavailable: \"%s\" has no VNC display; its serial "
                           "line: fettle instance console %s",
                           name, name);
    return rapi_answer(json_incref(console));
}

/* --- jobs --- */

struct http_answer *rapi_own_wait(struct rapi_call *call, GError **error)
{
    const char *id = rapi_var(call, "job");
    json_t *fields = rapi_member(call, "fields");
    json_t *info = rapi_member(call, "previous_job_info");
    json_t *serial = rapi_member(call, "previous_log_serial");
    if (!json_is_array(fields))
        return rapi_refuse(400, "The 'fields' parameter should be a list");
    if (info && !json_is_null(info) && !json_is_array(info))
        return rapi_refuse(400, "The 'previous_job_info' parameter should be a list");
    if (serial && !json_is_null(serial) && !json_is_integer(serial))
        return rapi_refuse(400, "The 'previous_log_serial' parameter should be a number");
    json_t *args = json_make("[sOO?O?i]", id, fields, info, serial, WAIT_S);
    json_autoptr result = rapi_ask(call, "WaitForJobChange", args, error);
    if (!result)
        return NULL;
    if (json_is_null(result))
        return rapi_refuse(404, "job \"%s\" does not exist", id);
    if (!json_is_array(result))
        return rapi_answer(json_null());
    if (json_array_size(result) != 2) {
        set_strange("WaitForJobChange", error);
        return NULL;
    }
    return rapi_answer(json_make("{sO, sO}", "job_info", json_array_get(result, 0), "log_entries",
                                 json_array_get(result, 1)));
}

/* --- Query --- */

/* Names with commas between; NULL: there are none. */
static json_t *fields_of(const char *text)
{
    if (!text)
        return NULL;
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    json_t *list = json_array();
    for (char **name = names; *name; name++)
        json_array_append_new(list, json_string(g_strstrip(*name)));
    return list;
}

/* Of the body, or of ours, which stands behind "?". */
static json_t *filter_of(const struct rapi_call *call, GError **error)
{
    json_t *filter = rapi_member(call, "qfilter");
    const char *text = call->route->face == FACE_OWN ? rapi_query(call, "filter") : NULL;
    if (!filter || json_is_null(filter))
        filter = rapi_member(call, "filter");
    if (filter)
        return json_incref(filter);
    if (!text)
        return json_null();
    g_autoptr(GError) local = NULL;
    json_t *parsed = json_parse_limited(text, strlen(text), strlen(text), &local);
    if (!parsed)
        fettle_set_error(error, WRONG_INPUT, "filter: %s", local->message);
    return parsed;
}

struct http_answer *rapi_own_query(struct rapi_call *call, GError **error)
{
    json_t *said = rapi_member(call, "fields");
    json_autoptr fields = said ? json_incref(said) : fields_of(rapi_query(call, "fields"));
    if (!fields)
        return rapi_refuse(400, "Missing 'fields' query argument");
    json_t *filter = filter_of(call, error);
    if (!filter)
        return NULL;
    json_t *args = json_make("[sOo]", rapi_var(call, "resource"), fields, filter);
    char *text = rapi_ask_text(call, "Query", args, error);
    return text ? rapi_answer_text(text) : NULL;
}

struct http_answer *rapi_own_query_fields(struct rapi_call *call, GError **error)
{
    json_t *fields = fields_of(rapi_query(call, "fields"));
    json_t *args = json_make("[so]", rapi_var(call, "resource"), fields ? fields : json_null());
    json_t *result = rapi_ask(call, "QueryFields", args, error);
    return result ? rapi_answer(result) : NULL;
}

/* --- rules about jobs --- */

static struct http_answer *write_filter(struct rapi_call *call, json_t *uuid, GError **error)
{
    static const char *const known[] = {"priority", "predicates", "action", "reason", NULL};
    json_autoptr which = uuid;
    const char *name;
    json_t *value;
    json_object_foreach(call->body, name, value)
        if (!g_strv_contains(known, name))
            return rapi_refuse(400,
                               "Invalid body parameters: filter rule doesn't support the "
                               "parameter '%s'",
                               name);
    json_autoptr filled = json_make("{si, s[], ss, s[]}", "priority", 0, "predicates", "action",
                                    "CONTINUE", "reason");
    if (json_is_object(call->body))
        json_object_update(filled, call->body);
    json_t *args = json_make("[OOOOO]", which, json_object_get(filled, "priority"),
                             json_object_get(filled, "predicates"),
                             json_object_get(filled, "action"), json_object_get(filled, "reason"));
    json_t *result = rapi_ask(call, "ReplaceFilter", args, error);
    return result ? rapi_answer(result) : NULL;
}

struct http_answer *rapi_own_add_filter(struct rapi_call *call, GError **error)
{
    return write_filter(call, json_null(), error);
}

struct http_answer *rapi_own_replace_filter(struct rapi_call *call, GError **error)
{
    return write_filter(call, json_string(rapi_var(call, "filter")), error);
}

/* --- ours --- */

/* Objects of a kind that match a filter, stolen, with the fields of their lists. */
static json_t *ask_objects(struct rapi_call *call, const char *resource, json_t *filter,
                           GError **error)
{
    g_autoptr(GPtrArray) fields = rapi_fields(FACE_OWN, resource, false);
    json_autoptr answer = rapi_ask(
        call, "Query", json_make("[soo]", resource, rapi_fields_json(fields), filter), error);
    json_t *list = answer ? json_array() : NULL, *row;
    size_t i;
    json_array_foreach(json_object_get(answer, "data"), i, row) {
        json_t *object = json_object();
        for (guint at = 0; at < fields->len; at++)
            json_object_set(object, fields->pdata[at], json_array_get(json_array_get(row, at), 1));
        json_array_append_new(list, object);
    }
    return list;
}

struct http_answer *rapi_own_why(struct rapi_call *call, GError **error)
{
    json_autoptr row = ask_row(call, "QueryInstances", rapi_var(call, "instance"),
                               json_make("[sss]", "name", "uuid", "status"), error);
    const char *name = json_string_value(json_array_get(row, 0));
    const char *uuid = json_string_value(json_array_get(row, 1));
    if (row && (!name || !uuid))
        set_strange("QueryInstances", error);
    if (!name || !uuid)
        return NULL;
    json_autoptr decisions =
        ask_objects(call, "decision", json_make("[sss]", "=", "subject", uuid), error);
    json_autoptr repairs =
        decisions ? ask_objects(call, "repair", json_make("[sss]", "=", "instance", name), error)
                  : NULL;
    json_autoptr recovery =
        repairs ? rapi_ask(call, "PlanRecovery", json_make("[ssb]", "instance", uuid, true), error)
                : NULL;
    if (!recovery)
        return NULL;
    return rapi_answer(json_make("{sO, sO, sO, sO, sO, sO}", "name", json_array_get(row, 0), "uuid",
                                 json_array_get(row, 1), "status", json_array_get(row, 2),
                                 "decisions", decisions, "repairs", repairs, "recovery", recovery));
}
