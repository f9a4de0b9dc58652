/* See rapi.h: from a request to the row that answers it. */
#include "core/rapi/rapi_private.h"

#include <string.h>

/* What its requests are counted by. */
#define GANETIS "ganeti"
#define OURS "fettle"
#define OTHERS "other" /* what is no route, and what is neither's */

struct rapi *rapi_new(const struct rapi_options *options, GError **error)
{
    struct rapi *rapi = g_new(struct rapi, 1);
    *rapi = (struct rapi){
        .env = options->env,
        .luxid = options->luxid,
        .users = options->users,
        .gzip = options->gzip,
        .tally = request_tally_new((const char *const[]){GANETIS, OURS, OTHERS, NULL})};
    rapi->hub = event_hub_new(options->env, options->luxid, options->users);
    return rapi;
}

void rapi_free(struct rapi *rapi)
{
    if (!rapi)
        return;
    request_tally_free(rapi->tally);
    event_hub_free(rapi->hub);
    g_free(rapi);
}

/* --- what a request says --- */

static const char *find_pair(const GPtrArray *pairs, const char *name)
{
    for (guint i = 0; pairs && i < pairs->len; i += 2)
        if (!strcmp(pairs->pdata[i], name))
            return pairs->pdata[i + 1];
    return NULL;
}

const char *rapi_var(const struct rapi_call *call, const char *name)
{
    const char *value = find_pair(call->vars, name);
    return value ? value : "";
}

const char *rapi_query(const struct rapi_call *call, const char *name)
{
    return find_pair(call->query, name);
}

bool rapi_query_flag(const struct rapi_call *call, const char *name, bool *ret, GError **error)
{
    const char *text = rapi_query(call, name);
    gint64 number = 0;
    *ret = false;
    if (!text || g_ascii_string_to_signed(text, 10, G_MININT32, G_MAXINT32, &number, NULL)) {
        *ret = number != 0;
        return true;
    }
    /* Clients in Python write their booleans so. */
    *ret = !strcmp(text, "True") || !strcmp(text, "true");
    if (*ret || !strcmp(text, "False") || !strcmp(text, "false"))
        return true;
    fettle_set_error(error, WRONG_INPUT, "%s: must be a number, 0 or 1", name);
    return false;
}

json_t *rapi_member(const struct rapi_call *call, const char *name)
{
    return json_object_get(call->body, name);
}

json_t *rapi_ask(const struct rapi_call *call, const char *method, json_t *args, GError **error)
{
    struct rapi_luxid *luxid = call->rapi->luxid;
    g_autofree char *user = g_strconcat("rapi:", call->user, NULL);
    return luxid->call(luxid, call->route->face, method, args, call->user[0] ? user : NULL, 0,
                       error);
}

char *rapi_ask_text(const struct rapi_call *call, const char *method, json_t *args, GError **error)
{
    struct rapi_luxid *luxid = call->rapi->luxid;
    g_autofree char *user = g_strconcat("rapi:", call->user, NULL);
    return luxid->call_text(luxid, call->route->face, method, args, call->user[0] ? user : NULL, 0,
                            error);
}

/* --- bodies --- */

static const char *kind_of(const json_t *json)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    return kinds[json_typeof(json)];
}

/* Any value: who wants an object asks for that. */
static bool parse_body(struct rapi_call *call, GError **error)
{
    const struct http_request *request = call->request;
    json_error_t problem;
    if (!http_request_has_few_values(request, LIMIT_RAPI_VALUES, error))
        return false;
    g_autofree char *listed = g_strdup_printf("[%s]", request->body);
    json_autoptr list = strlen(request->body) == request->body_len
                            ? json_parse_limited(listed, strlen(listed), strlen(listed), NULL)
                            : NULL;
    if (json_array_size(list) == 1) {
        call->body = json_incref(json_array_get(list, 0));
        return true;
    }
    json_autoptr other = json_loadb(request->body, request->body_len,
                                    JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (other)
        fettle_set_error(error, WRONG_INPUT, "the body is nested deeper than %d levels",
                         LIMIT_JSON_DEPTH);
    else
        fettle_set_error(error, WRONG_INPUT, "the body is no JSON object (line %d: %s)",
                         problem.line, problem.text);
    return false;
}

/* Of the routes that take one: an object, or nothing. Others may get anything, and do not look: a
 * client of Ganeti adds a node's tags both behind "?" and as a list. */
static bool check_body(const struct rapi_call *call, GError **error)
{
    const json_t *body = call->body;
    if (!body || json_is_object(body) || json_is_null(body) ||
        !rapi_route_part(call->route, RAPI_BODY, NULL))
        return true;
    fettle_set_error(error, WRONG_INPUT, "the body is no JSON object (line 1: it is %s)",
                     kind_of(body));
    return false;
}

/* --- who may --- */

struct http_answer *rapi_answer_unknown(void)
{
    struct http_answer *answer = rapi_refuse(401, "No permission -- see authorization schemes");
    http_answer_add_header(answer, "WWW-Authenticate", "Basic realm=\"" RAPI_REALM "\"");
    return answer;
}

static struct http_answer *admit(struct rapi_call *call, GError **error)
{
    struct http_answer *answer;
    switch (rapi_users_check(call->rapi->users, call->request, &call->user, error)) {
    case RAPI_FAILED:
        return rapi_answer_error(*error);
    case RAPI_UNKNOWN:
        return rapi_answer_unknown();
    case RAPI_BARRED:
        answer = rapi_refuse(429, "too many wrong passwords have come from your address (of IPv6: "
                                  "from its /64); try again in a minute");
        http_answer_add_header(answer, "Retry-After", "60");
        return answer;
    case RAPI_READ:
        if (call->route->need == RAPI_NEED_READ ||
            (call->route->need == RAPI_NEED_NAME && call->user[0]))
            return NULL;
        return !call->user[0] ? rapi_answer_unknown()
                              : rapi_refuse(403, "user \"%s\" may only read", call->user);
    case RAPI_WRITE:
        return NULL;
    }
    g_assert_not_reached();
}

/* --- trials --- */

/* What changes something at once, and not by a job, which may be tried. */
static bool acts(const struct rapi_route *route)
{
    return route->need == RAPI_NEED_WRITE && strcmp(route->method, "GET") != 0 &&
           (route->kind == RAPI_LUXI || route->kind == RAPI_OWN);
}

/* Whoever asks for a trial must not get the deed. */
static bool check_trial(const struct rapi_call *call, GError **error)
{
    const char *name = json_object_iter_key(json_object_iter(call->body));
    bool dry;
    if (!acts(call->route))
        return true;
    if (!rapi_query_flag(call, "dry-run", &dry, error))
        return false;
    if (dry)
        fettle_set_error(error, WRONG_INPUT,
                         "nothing was done: dry-run is for what queues a job, and this would be "
                         "done at once");
    else if (name && !rapi_route_part(call->route, RAPI_BODY, NULL))
        fettle_set_error(error, WRONG_INPUT, "%s: nothing of that name is taken in the body", name);
    else
        return true;
    return false;
}

/* --- from a request to its answer --- */

static rapi_own_fn *const own[] = {
#define FN_OP(what) NULL,
#define FN_LIST(what) NULL,
#define FN_ONE(what) NULL,
#define FN_LUXI(what) NULL,
#define FN_NONE(what) NULL,
#define FN_OWN(what) rapi_own_##what,
#define FN_JOB(what) rapi_own_##what,
#define RAPI_ROUTE(METHOD, path, need, kind, what, name, doc) FN_##kind(what)
#define RAPI_PART(kind, from, to, doc)
#include "proto/rapi/rapi_routes.def"
};

static struct http_answer *run_route(struct rapi_call *call, GError **error)
{
    size_t count;
    const struct rapi_route *route = call->route;
    switch (route->kind) {
    case RAPI_OP:
        return rapi_run_op(call, error);
    case RAPI_LIST:
        return rapi_run_list(call, error);
    case RAPI_ONE:
        return rapi_run_one(call, error);
    case RAPI_LUXI:
        return rapi_run_luxi(call, error);
    case RAPI_OWN:
    case RAPI_JOB:
        return own[route - rapi_route_table(&count)](call, error);
    case RAPI_NONE:
        return rapi_refuse(501, "%s: %s; see the guide", call->request->path, route->what);
    }
    g_assert_not_reached();
}

/* Sets the route; an answer: there is none. */
static struct http_answer *find_route(struct rapi_call *call)
{
    const struct http_request *request = call->request;
    struct rapi_found found;
    struct http_answer *answer = NULL;
    rapi_route_find(request->method, request->path, &found);
    call->route = found.route;
    call->vars = g_ptr_array_ref(found.vars);
    if (!found.allowed[0])
        answer = rapi_refuse(404, "Nothing matches the given URI");
    else if (!found.route) {
        answer = rapi_refuse(405, "%s is answered to %s alone", request->path, found.allowed);
        http_answer_add_header(answer, "Allow", found.allowed);
    }
    rapi_found_clear(&found);
    return answer;
}

static struct http_answer *run(struct rapi_call *call, GError **error)
{
    const struct http_request *request = call->request;
    if (!http_request_is_text(request))
        return rapi_refuse(400, "method, query and headers must be UTF-8");
    if (request->refused) /* by the server: it was no good request */
        return rapi_refuse(request->refused, "%s", request->refused_why);
    if (call->query->len / 2 > LIMIT_RAPI_QUERY)
        return rapi_refuse(400, "more than %d arguments stand behind \"?\"", LIMIT_RAPI_QUERY);
    struct http_answer *answer = find_route(call);
    if (answer || (answer = admit(call, error)))
        return answer;
    if (request->body_len && !http_request_is_json(request))
        return rapi_refuse(415, "Content-Type must be application/json");
    if (request->body_len && (!parse_body(call, error) || !check_body(call, error)))
        return NULL;
    return check_trial(call, error) ? run_route(call, error) : NULL;
}

/* Its length is that of what is not sent. */
static void strip_body(struct http_answer *answer)
{
    if (answer->stream)
        answer->stream->free(answer->stream);
    answer->stream = NULL;
    if (answer->feed)
        answer->feed->free(answer->feed);
    answer->feed = NULL;
}

struct serving {
    struct rapi_call call;
    void (*done)(struct http_answer *answer, void *data);
    void *data;
    gint64 since_ms;
};

static void count(const struct serving *serving, guint status)
{
    const struct rapi *rapi = serving->call.rapi;
    const struct rapi_route *route = serving->call.route;
    const char *service = OTHERS;
    if (route && g_str_has_prefix(route->path, "/fettle/"))
        service = OURS;
    else if (route && strcmp(route->path, "/metrics") != 0)
        service = GANETIS;
    gint64 took_ms = rapi->env->ops->boot_ms(rapi->env) - serving->since_ms;
    request_tally_add(rapi->tally, service, status, (guint64)took_ms * 1000);
}

static void serving_free(struct serving *serving)
{
    struct rapi_call *call = &serving->call;
    if (call->vars)
        g_ptr_array_unref(call->vars);
    g_ptr_array_unref(call->query);
    g_free(call->user);
    json_decref(call->body);
    g_free(serving);
}

static void serve_task(void *data)
{
    struct serving *serving = data;
    g_autoptr(GError) error = NULL;
    struct http_answer *answer = run(&serving->call, &error);
    if (!answer)
        answer = rapi_answer_error(error);
    if (!strcmp(serving->call.request->method, "HEAD"))
        strip_body(answer);
    if (task_killed()) {
        http_answer_free(answer);
    } else {
        count(serving, answer->status);
        serving->done(answer, serving->data);
    }
    serving_free(serving);
}

void rapi_serve(struct rapi *rapi, const struct http_request *request,
                void (*done)(struct http_answer *answer, void *data), void *data)
{
    struct serving *serving = g_new0(struct serving, 1);
    *serving = (struct serving){
        .call = {.rapi = rapi, .request = request, .query = http_query_parse(request->query)},
        .done = done,
        .data = data,
        .since_ms = rapi->env->ops->boot_ms(rapi->env)};
    task_spawn(rapi->env->tasks, serve_task, serving);
}
