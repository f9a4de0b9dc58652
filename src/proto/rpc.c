/* See rpc.h. Answering gives the request back to its carrier, which sends the answer and frees it.
 */
#include "proto/rpc.h"

#include "proto/luxi.h"

int stamp_compare(struct stamp a, struct stamp b)
{
    if (a.history != b.history)
        return a.history < b.history ? -1 : 1;
    if (a.epoch != b.epoch)
        return a.epoch < b.epoch ? -1 : 1;
    return 0;
}

/* Milliseconds that the arguments name: `wait_ms`, else its default; nothing for a call whose
 * `wait` is false. */
static guint named_wait_ms(const struct record *args, const json_t *json)
{
    const struct field *flag = record_field(args, "wait");
    const struct field *field = record_field(args, "wait_ms");
    if (field == NULL || (flag != NULL && !json_is_true(json_object_get(json, "wait"))))
        return 0;
    const json_t *member = json_object_get(json, "wait_ms");
    gint64 wait = json_is_integer(member)
                      ? json_integer_value(member)
                      : g_ascii_strtoll(field->def != NULL ? field->def : "0", NULL, 10);
    return (guint)CLAMP(wait, 0, (gint64)field->max);
}

static guint class_timeout_ms(const struct method *method, const json_t *args)
{
    switch (method->timeout) {
    case TIMEOUT_QUICK:
    case TIMEOUT_FRESH:
        return TIMEOUT_QUICK_MS;
    case TIMEOUT_NORMAL:
        return TIMEOUT_NORMAL_MS;
    case TIMEOUT_COPY:
        return 0;
    case TIMEOUT_WAIT:
        return named_wait_ms(method->args, args) + TIMEOUT_WAIT_EXTRA_MS;
    }
    g_assert_not_reached();
}

/* Calls that wait name their wait in their last argument, in seconds. */
static guint luxi_timeout_ms(const struct rpc_call *call)
{
    bool job = g_strcmp0(call->method, "WaitForJobChange") == 0;
    if (g_strcmp0(call->method, "Verify") == 0)
        return TIMEOUT_NORMAL_MS * LIMIT_LONG_QUERIES; /* it waits for its turn */
    if (!job && g_strcmp0(call->method, "WatchChanges") != 0)
        return TIMEOUT_NORMAL_MS;
    double seconds = json_number_value(json_array_get(call->args, job ? 4 : 3));
    return (guint)(CLAMP(seconds, 0, LIMIT_WAIT_S) * 1000) + TIMEOUT_WAIT_EXTRA_MS;
}

guint rpc_call_timeout_ms(const struct rpc_call *call)
{
    if (call->timeout_ms > 0)
        return call->timeout_ms;
    if (g_strcmp0(call->to_role, ROLE_LUXID) == 0)
        return luxi_timeout_ms(call);
    const struct method *method = method_find(call->to_role, call->method);
    return method != NULL ? class_timeout_ms(method, call->args) : TIMEOUT_NORMAL_MS;
}

void rpc_answer(struct rpc_request *request, json_t *result)
{
    if (result == NULL)
        rpc_answer_text(request, "{}");
    else
        request->answer(request, result, NULL);
}

void rpc_answer_text(struct rpc_request *request, const char *text)
{
    if (request->answer_text != NULL) {
        request->answer_text(request, text);
        return;
    }
    json_t *result = json_parse_own(text);
    g_assert(result != NULL);
    request->answer(request, result, NULL);
}

void rpc_fail(struct rpc_request *request, const GError *error)
{
    request->answer(request, NULL, error);
}

void rpc_fail_new(struct rpc_request *request, enum fettle_error code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autoptr(GError) error = g_error_new_valist(FETTLE_ERROR, (int)code, format, args);
    va_end(args);
    rpc_fail(request, error);
}

void rpc_on_gone(struct rpc_request *request, void (*fn)(struct rpc_request *request, void *data),
                 void *data)
{
    request->gone = fn;
    request->gone_data = data;
    if (request->watch_caller != NULL)
        request->watch_caller(request);
}

void rpc_request_gone(struct rpc_request *request)
{
    if (request->gone != NULL)
        request->gone(request, request->gone_data);
}

void rpc_request_free(struct rpc_request *request)
{
    if (request == NULL)
        return;
    g_free(request->name);
    g_free(request->from_node);
    g_free(request->signed_by);
    g_free(request->from_role);
    g_free(request->user);
    json_decref(request->args);
    if (request->record != NULL)
        record_free(request->method->args, request->record);
    g_free(request);
}

bool rpc_request_check(struct rpc_request *request, const char *role, GError **error)
{
    if (request->method == NULL)
        request->method = method_find(role, request->name);
    if (request->method == NULL) {
        fettle_set_error(error, PROTOCOL, "%s has no method \"%s\"", role, request->name);
        return false;
    }
    if (!method_allows(request->method, request->from_role)) {
        fettle_set_error(error, PERMISSION, "%s/%s: role \"%s\" may not call it", role,
                         request->name, request->from_role);
        return false;
    }
    if (request->record != NULL)
        return true;
    /* The other side may be of a later version (FUT-12). What an older receiver must not pass over
     * needs a higher version of the protocol. */
    request->record = record_parse(request->method->args, request->args, RECORD_LAX, error);
    if (request->record == NULL)
        g_prefix_error(error, "%s/%s: ", role, request->name);
    return request->record != NULL;
}

void *rpc_request_args(struct rpc_request *request, const struct record *record, GError **error)
{
    g_assert(request->method == NULL || request->method->args == record);
    void *args = request->record != NULL ? g_steal_pointer(&request->record)
                                         : record_parse(record, request->args, RECORD_LAX, error);
    if (args != NULL)
        g_clear_pointer(&request->args, json_decref); /* many small pieces, soon used again */
    return args;
}
