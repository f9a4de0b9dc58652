/* Rows of kind OP: what a request says becomes an opcode, which is queued as a job. Nothing of it
 * is looked at here but by its name: the reader of opcodes does, in luxid. */
#include <string.h>

#include "core/rapi/rapi_private.h"

#define REASON_USER "gnt:user"
#define REASON_REST "gnt:library:rlib2:"

/* --- parameters --- */

bool rapi_is_common(const char *name)
{
    return !strcmp(name, "depends") || !strcmp(name, "priority") || !strcmp(name, "comment") ||
           !strcmp(name, "dry_run") || !strcmp(name, "debug_level");
}

/* A text of the path, in the type of the parameter that it is. */
static json_t *typed(const struct rapi_route *route, const char *name, const char *text)
{
    const struct field *field = route->opcode ? record_field(route->opcode->params, name) : NULL;
    guint64 number;
    if (field && field->type == FIELD_TYPE_STRINGS)
        return json_make("[s]", text);
    if (field && field->type == FIELD_TYPE_UINT &&
        g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &number, NULL))
        return json_integer((json_int_t)number);
    return json_string(text);
}

static json_t *all_of_name(const GPtrArray *query, const char *name)
{
    json_t *list = json_array();
    for (guint i = 0; i < query->len; i += 2)
        if (!strcmp(query->pdata[i], name))
            json_array_append_new(list, json_string(query->pdata[i + 1]));
    return list;
}

/* What a part says; NULL: nothing, or with an error. */
static json_t *part_value(const struct rapi_call *call, const struct rapi_part *part,
                          GError **error)
{
    const char *text = rapi_query(call, part->from);
    bool yes;
    switch (part->kind) {
    case RAPI_PATH:
        return typed(call->route, part->to, rapi_var(call, part->from));
    case RAPI_TEXT:
        return text ? typed(call->route, part->to, text) : NULL;
    case RAPI_TEXTS:
        return all_of_name(call->query, part->from);
    case RAPI_FLAG:
        if (!text || !rapi_query_flag(call, part->from, &yes, error))
            return NULL;
        return json_boolean(yes);
    case RAPI_FIXED:
        return json_parse_own(part->from);
    case RAPI_BODY:
    case RAPI_RENAME:
    case RAPI_FORBID:
    case RAPI_KEY:
    case RAPI_ALIAS:
    case RAPI_OPCODE:
        return NULL;
    }
    g_assert_not_reached();
}

static bool refuse_member(const struct rapi_call *call, const char *name, GError **error)
{
    bool any = call->route->need == RAPI_NEED_WRITE && rapi_is_common(name);
    if (!rapi_route_part(call->route, RAPI_BODY, NULL) && !any) {
        fettle_set_error(error, WRONG_INPUT, "%s: nothing of that name is taken in the body", name);
        return false;
    }
    if (!rapi_route_part(call->route, RAPI_FORBID, name) && strcmp(name, "reason") != 0 &&
        strcmp(name, "OP_ID") != 0)
        return true;
    if (!strcmp(name, "reason"))
        fettle_set_error(error, WRONG_INPUT, "reason: stands behind \"?\"");
    else
        fettle_set_error(error, PERMISSION, "The parameter %s cannot be set via RAPI", name);
    return false;
}

/* Members of the body, by their names in the opcode. */
static bool take_body(const struct rapi_call *call, json_t *own, GError **error)
{
    const char *name;
    json_t *value;
    if (!json_is_object(call->body))
        return true;
    json_object_foreach(call->body, name, value) {
        const struct rapi_part *other = rapi_route_part(call->route, RAPI_RENAME, name);
        if (!refuse_member(call, name, error))
            return false;
        if (other && json_object_get(call->body, other->to)) {
            fettle_set_error(error, WRONG_INPUT,
                             "Parameter '%s' was renamed to '%s', but both are specified", name,
                             other->to);
            return false;
        }
        json_object_set(own, other ? other->to : name, value);
    }
    return true;
}

json_t *rapi_op_parameters(struct rapi_call *call, bool body, GError **error)
{
    const struct rapi_route *route = call->route;
    json_autoptr own = json_object();
    if (body && !take_body(call, own, error))
        return NULL;
    for (size_t i = 0; i < route->part_count; i++) {
        GError *local = NULL;
        const struct rapi_part *part = &route->parts[i];
        json_autoptr value = *part->to ? part_value(call, part, &local) : NULL;
        if (local) {
            g_propagate_error(error, local);
            return NULL;
        }
        if (value && json_object_get(own, part->to)) {
            fettle_set_error(error, WRONG_INPUT,
                             "%s: stands in the path, or behind \"?\", and may not stand in the "
                             "body, too",
                             part->to);
            return NULL;
        }
        if (value)
            json_object_set(own, part->to, value);
    }
    return json_steal(&own);
}

/* --- jobs --- */

static json_t *trail_of(const struct rapi_call *call)
{
    const struct env *env = call->rapi->env;
    const char *why = rapi_query(call, "reason");
    gint64 now = env->ops->wall_us(env) * 1000;
    g_autofree char *who = g_strconcat(REASON_REST, call->route->name, NULL);
    json_t *trail = json_array();
    if (why && *why)
        json_array_append_new(trail, json_make("[ssI]", REASON_USER, why, (json_int_t)now));
    json_array_append_new(trail, json_make("[ssI]", who, "", (json_int_t)now));
    return trail;
}

struct http_answer *rapi_submit(struct rapi_call *call, json_t *ops, GError **error)
{
    json_autoptr list = ops;
    size_t i;
    json_t *op;
    bool dry;
    if (!rapi_query_flag(call, "dry-run", &dry, error))
        return NULL;
    json_array_foreach(list, i, op) {
        json_object_set_new(op, "reason", trail_of(call));
        if (dry)
            json_object_set_new(op, "dry_run", json_true());
    }
    json_t *id = rapi_ask(call, "SubmitJob", json_make("[O]", list), error);
    return id ? rapi_answer(id) : NULL;
}

struct http_answer *rapi_run_op(struct rapi_call *call, GError **error)
{
    json_t *op = rapi_op_parameters(call, true, error);
    if (!op)
        return NULL;
    json_object_set_new(op, "OP_ID", json_string(call->route->opcode->id));
    return rapi_submit(call, json_make("[o]", op), error);
}
