/* See api.h. */
#include <string.h>

#include "core/api/api_private.h"
#include "core/api/identity_model.h"
#include "proto/metrics/request_tally.h"
#include "proto/records.h"

#define LIMIT_API_VALUES 50000 /* of a body */

typedef struct http_answer *(*handler)(struct api_call *call, GError **error);
static const handler handlers[] = {
/* in the order of the table of routes */
#define ROUTE(service, METHOD, path, action, min, max, need, body, wrapper, status, name, doc)     \
    api_##name,
#include "proto/api/routes.def"
};

struct api *api_new(const struct api_options *options, GError **error)
{
    struct identity *identity = identity_new(options->identity, error);
    if (!identity)
        return NULL;
    struct api *api = g_new0(struct api, 1);
    *api = (struct api){
        .env = options->env,
        .cell = options->cell,
        .crypto = options->crypto,
        .images = options->images,
        .identity = identity,
        .public_url = g_strdup(options->public_url),
        .region = g_strdup(options->region),
        .address = g_strdup(options->address ? options->address : ""),
        .audit = options->audit,
        .data = options->data,
        .tally = api_tally_new(),
    };
    return api;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    identity_free(api->identity);
    request_tally_free(api->tally);
    g_free(api->public_url);
    g_free(api->region);
    g_free(api->address);
    g_free(api);
}

void api_token_free(struct api_token *token)
{
    if (!token)
        return;
    g_free(token->user_id);
    g_free(token->user_name);
    g_free(token->project_id);
    g_free(token->project_name);
    g_ptr_array_unref(token->roles);
    g_ptr_array_unref(token->methods);
    g_ptr_array_unref(token->audit_ids);
    g_free(token->credential_id);
    g_free(token);
}

static void call_clear(struct api_call *call)
{
    if (call->vars)
        g_ptr_array_unref(call->vars);
    if (call->query)
        g_hash_table_unref(call->query);
    if (call->route && call->route->body)
        record_free(call->route->body, call->body);
    json_decref(call->json);
    api_token_free(call->token);
    g_free(call->request_id);
    g_free(call->base);
    g_free(call->resource);
    g_free(call->note);
}

/* --- microversions --- */

/* Sets call->minor by the header, `volume 3.27` among others, perhaps. An answer: it is refused. */
static struct http_answer *read_microversion(struct api_call *call)
{
    guint major = api_service_major(call->service), newest = api_service_newest(call->service);
    const char *header = http_request_header(call->request, "openstack-api-version");
    g_auto(GStrv) parts = g_strsplit(header, ",", -1);
    call->minor = 0;
    for (char **part = parts; *part; part++) {
        g_auto(GStrv) words = g_strsplit(g_strstrip(*part), " ", -1);
        if (g_strv_length(words) != 2 || strcmp(words[0], api_service_name(call->service)) != 0)
            continue;
        if (!strcmp(words[1], "latest")) {
            call->minor = newest;
            continue;
        }
        guint asked_major, asked;
        char rest;
        if (sscanf(words[1], "%5u.%5u%c", &asked_major, &asked, &rest) != 2 ||
            strchr("+- ", words[1][0]))
            return api_refuse(call, 400,
                              "API Version String %s is of invalid format. It must be of format "
                              "MajorNum.MinorNum.",
                              words[1]);
        if (asked_major != major || asked > newest)
            return api_refuse(call, 406,
                              "Version %s is not supported by the API. Minimum is %u.0 and maximum "
                              "is %u.%u.",
                              words[1], major, major, newest);
        call->minor = asked;
    }
    return NULL;
}

/* --- bodies --- */

/* Names as records have them: `-` and `:` of clients' names become `_`. Whatever else is said
 * stands under `properties`, of a record that has that. */
static json_t *with_plain_names(json_t *object, const struct record *record)
{
    json_t *plain = json_object(), *rest = json_object();
    bool keeps = record_field(record, "properties") != NULL;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        g_autofree char *name = g_strdelimit(g_strdup(key), "-:", '_');
        if (keeps && (!strcmp(name, "properties") || !record_field(record, name)))
            json_object_set(rest, key, value);
        else
            json_object_set(plain, name, value);
    }
    if (json_object_size(rest))
        json_object_set(plain, "properties", rest);
    json_decref(rest);
    return plain;
}

static bool parse_json(struct api_call *call, GError **error)
{
    const struct http_request *request = call->request;
    if (!request->body_len)
        return true;
    if (!http_request_has_few_values(request, LIMIT_API_VALUES, error))
        return false;
    call->json = json_parse_limited(request->body, request->body_len, request->body_len, error);
    if (!call->json) {
        g_prefix_error(error, "the body is no JSON: ");
        return false;
    }
    if (json_is_object(call->json))
        return true;
    fettle_set_error(error, WRONG_INPUT, "the body must be an object");
    return false;
}

/* Of a POST to …/action: its only key says which. */
static struct http_answer *choose_action(struct api_call *call)
{
    const struct route *route = NULL;
    if (call->json && json_object_size(call->json) == 1)
        route = route_action(call->route, json_object_iter_key(json_object_iter(call->json)),
                             call->minor);
    if (!route) {
        const char *key = call->json ? json_object_iter_key(json_object_iter(call->json)) : NULL;
        return api_refuse(call, 400, "There is no such action: %s", key ? key : "");
    }
    call->route = route;
    return NULL;
}

static bool read_body(struct api_call *call, GError **error)
{
    const struct route *route = call->route;
    const char *wrapper = route->action[0] ? route->action : route->wrapper;
    json_t *inner = call->json;
    if (wrapper[0]) {
        inner = call->json ? json_object_get(call->json, wrapper) : NULL;
        if (route->action[0] &&
            (json_is_null(inner) || (json_is_string(inner) && !json_string_value(inner)[0])))
            inner = NULL; /* clients send null, or "", to who needs nothing */
        else if (!json_is_object(inner)) {
            fettle_set_error(error, WRONG_INPUT,
                             "the body must be an object with the key %s, "
                             "which is an object",
                             wrapper);
            return false;
        }
    }
    json_autoptr empty = json_object();
    json_autoptr plain = with_plain_names(inner ? inner : empty, route->body);
    call->body = record_parse(route->body, plain, RECORD_STRICT, error);
    if (!call->body && wrapper[0])
        g_prefix_error(error, "%s.", wrapper);
    return call->body;
}

/* --- from a request to its handler --- */

static struct http_answer *check_policy(struct api_call *call)
{
    const struct route *route = call->route;
    const char *project = api_var(call, "project_id");
    if (route->need >= NEED_READER && !call->token->project_id[0])
        return api_refuse(call, 403, "%s needs a token that is for a project", route->name);
    if (call->service == API_VOLUME && project[0] && route->path[4] == '{' &&
        strcmp(project, call->token->project_id) != 0)
        return api_refuse(call, 400, "Malformed request url");
    if (call->token->highest < route->need)
        return api_refuse(call, 403,
                          "%s needs the role %s, or one above it, in the project of the "
                          "token",
                          route->name, api_need_name(route->need));
    return NULL;
}

static struct http_answer *run(struct api_call *call, GError **error)
{
    const struct http_request *request = call->request;
    const char *rest;
    if (!http_request_is_text(request))
        return api_refuse(call, 400, "Method, query and headers must be UTF-8");
    if (request->refused) /* by the server: it was no good request */
        return api_refuse(call, request->refused, "%s", request->refused_why);
    if (!strcmp(request->path, API_METRICS_PATH))
        return api_metrics(call, error);
    if (!route_service(request->path, &call->service, &rest))
        return api_refuse(call, 404, "There is nothing at %s", request->path);
    call->counted_as = api_service_name(call->service);
    if (g_hash_table_size(call->query) > LIMIT_API_QUERY)
        return api_refuse(call, 400, "the query has more than %d names", LIMIT_API_QUERY);
    struct http_answer *answer = read_microversion(call);
    if (answer)
        return answer;
    struct route_found found;
    route_find(call->service, request->method, rest, call->minor, &found);
    call->vars = g_ptr_array_ref(found.vars);
    call->route = found.route;
    if (!found.methods)
        answer = api_refuse(call, 404, "There is nothing at %s", request->path);
    else if (!found.route) {
        answer = api_refuse(call, 405, "%s is answered to %s alone", request->path, found.allowed);
        http_answer_add_header(answer, "Allow", found.allowed);
    }
    route_found_clear(&found);
    if (answer)
        return answer;
    if (call->route->need != NEED_NOBODY && !api_authenticate(call, error))
        return NULL;
    bool reads = call->route->body || call->route->action[0];
    if (reads && request->body_len && !http_request_is_json(request))
        return api_refuse(call, 415, "Content-Type must be application/json");
    if (reads && !parse_json(call, error))
        return NULL;
    if (call->route->action[0] && (answer = choose_action(call)))
        return answer;
    if (call->token && (answer = check_policy(call)))
        return answer;
    if (call->route->body && call->route->body != &anything_record && !read_body(call, error))
        return NULL;
    if (call->service != API_IDENTITY && !cell_await_own(call->api->cell, error))
        return NULL;
    size_t count;
    return handlers[call->route - route_table(&count)](call, error);
}

/* --- what every answer has --- */

static void add_headers(struct api_call *call, struct http_answer *answer)
{
    http_answer_add_header(answer, "x-openstack-request-id", call->request_id);
    if (call->service == API_VOLUME) {
        g_autofree char *version = g_strdup_printf("volume 3.%u", call->minor);
        http_answer_add_header(answer, "OpenStack-API-Version", version);
        http_answer_add_header(answer, "Vary", "OpenStack-API-Version");
    }
    gint64 age = cell_age_ms(call->api->cell);
    if (age > 0 && call->service != API_IDENTITY) {
        g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT, age / 1000);
        http_answer_add_header(answer, "X-Fettle-Age", text);
    }
}

static void write_audit(const struct api_call *call, const struct http_answer *answer)
{
    const struct http_request *request = call->request;
    const struct api *api = call->api;
    if (!api->audit || !strcmp(request->method, "GET") || !strcmp(request->method, "HEAD"))
        return;
    g_autofree char *method = g_utf8_make_valid(request->method, -1);
    json_autoptr line = json_make("{s:o, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:s}", "time",
                                  api_time_utc(api->env->ops->wall_us(api->env)), "request_id",
                                  call->request_id, "user", call->token ? call->token->user_id : "",
                                  "project", call->token ? call->token->project_id : "", "method",
                                  method, "path", request->path, "status", (int)answer->status,
                                  "resource", call->resource ? call->resource : "", "note",
                                  call->note ? call->note : "", "peer", request->peer);
    g_autofree char *text = json_to_text(line);
    api->audit(text, api->data);
}

struct serving {
    struct api_call call;
    void (*done)(struct http_answer *answer, void *data);
    void *data;
};

static void serve(void *data)
{
    struct serving *serving = data;
    struct api_call *call = &serving->call;
    g_autoptr(GError) error = NULL;
    struct http_answer *answer = run(call, &error);
    if (!answer)
        answer = api_answer_error(call, error);
    if (task_killed()) {
        http_answer_free(answer);
    } else {
        add_headers(call, answer);
        write_audit(call, answer);
        api_count(call, answer->status);
        serving->done(answer, serving->data);
    }
    call_clear(call);
    g_free(serving);
}

bool api_wants_stream(const struct http_request *request)
{
    enum api_service service;
    const char *rest;
    struct route_found found;
    if (!route_service(request->path, &service, &rest) || service != API_IMAGE)
        return false;
    route_find(service, request->method, rest, 0, &found);
    bool wants = found.route && !strcmp(found.route->name, "image_upload");
    route_found_clear(&found);
    return wants;
}

void api_serve(struct api *api, const struct http_request *request,
               void (*done)(struct http_answer *answer, void *data), void *data)
{
    struct serving *serving = g_new0(struct serving, 1);
    *serving = (struct serving){.done = done, .data = data};
    struct api_call *call = &serving->call;
    g_autofree char *uuid = env_uuid(api->env);
    const char *host = http_request_header(request, "host");
    call->api = api;
    call->request = request;
    call->since_ms = api->env->ops->boot_ms(api->env);
    call->request_id = g_strconcat("req-", uuid, NULL);
    call->base = api->public_url[0]
                     ? g_strdup(api->public_url)
                     : g_strconcat(request->secure ? "https://" : "http://", host, NULL);
    call->query = api_query_parse(request->query);
    task_spawn(api->env->tasks, serve, serving);
}
