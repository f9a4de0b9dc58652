/* Answers and errors in the form of each service. */
#include <string.h>

#include "core/api/api_private.h"
#include "proto/env.h"

#define RETRY_AFTER_S "5"

struct http_answer *api_answer(const struct api_call *call, json_t *json)
{
    struct http_answer *answer = http_answer_new(call->route->status);
    if (json) {
        http_answer_set_body(answer, "application/json", json_to_text(json));
        json_decref(json);
    }
    return answer;
}

static const char *title_of(guint status)
{
    switch (status) {
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 406:
        return "Not Acceptable";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 413:
        return "Request Entity Too Large";
    case 415:
        return "Unsupported Media Type";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    default:
        return status < 500 ? "Bad Request" : "Internal Server Error";
    }
}

/* What block storage calls an error. */
static const char *fault_of(guint status)
{
    switch (status) {
    case 400:
        return "badRequest";
    case 401:
        return "unauthorized";
    case 403:
        return "forbidden";
    case 404:
        return "itemNotFound";
    case 405:
        return "badMethod";
    case 409:
        return "conflictingRequest";
    case 413:
        return "overLimit";
    case 415:
        return "badMediaType";
    case 503:
        return "serviceUnavailable";
    default:
        return "computeFault";
    }
}

static json_t *error_body(enum api_service service, guint status, const char *message)
{
    switch (service) {
    case API_VOLUME:
        return json_make("{s:{s:i, s:s}}", fault_of(status), "code", (int)status, "message",
                         message);
    case API_IMAGE: {
        g_autofree char *code = g_strdup_printf("%u %s", status, title_of(status));
        return json_make("{s:s, s:s, s:s}", "message", message, "code", code, "title",
                         title_of(status));
    }
    case API_IDENTITY:
    case API_SERVICES:
    default:
        return json_make("{s:{s:i, s:s, s:s}}", "error", "code", (int)status, "title",
                         title_of(status), "message", message);
    }
}

/* Glance's errors are pages for who takes them: its client reads those, and breaks at JSON. */
static bool wants_page(const struct api_call *call)
{
    const char *accept = http_request_header(call->request, "accept");
    return call->service == API_IMAGE && *accept && !strstr(accept, "json");
}

static char *error_page(guint status, const char *message)
{
    g_autofree char *line = g_strdup_printf("%u %s", status, title_of(status));
    return g_markup_printf_escaped("<html><head><title>%s</title></head><body><h1>%s</h1>%s<br />"
                                   "</body></html>",
                                   line, line, message);
}

/* Of an image, and there are some. */
static bool sends_bytes(const struct http_request *request)
{
    const char *length = http_request_header(request, "content-length");
    return api_wants_stream(request) && (*http_request_header(request, "transfer-encoding") ||
                                         strspn(length, "0") != strlen(length));
}

/* Clients ask again by themselves after 401 and 503, with what they have not sent yet of a file or
 * a pipe: so neither is an answer to bytes of an image (docs/design/api.md, 23). */
static guint status_for_bytes(const struct api_call *call, guint status)
{
    bool repeated =
        (status == 401 || (status == 503 && !call->guarded)) && sends_bytes(call->request);
    return !repeated ? status : status == 401 ? 403 : 409;
}

struct http_answer *api_refuse(const struct api_call *call, guint asked, const char *format, ...)
{
    va_list list;
    guint status = status_for_bytes(call, asked);
    const char *then =
        status == asked ? "" : "; nothing of the image is kept: send all of it again";
    va_start(list, format);
    g_autofree char *words = g_strdup_vprintf(format, list);
    g_autofree char *message = g_strconcat(words, then, NULL);
    va_end(list);
    struct http_answer *answer = http_answer_new(status);
    if (wants_page(call)) {
        http_answer_set_body(answer, "text/html; charset=UTF-8", error_page(status, message));
    } else {
        json_autoptr body = error_body(call->service, status, message);
        http_answer_set_body(answer, "application/json", json_to_text(body));
    }
    if (status == 503)
        http_answer_add_header(answer, "Retry-After", RETRY_AFTER_S);
    return answer;
}

struct http_answer *api_unauthorized(const struct api_call *call, const char *why)
{
    struct http_answer *answer = api_refuse(call, 401, "%s", why);
    g_autofree char *keystone =
        g_strdup_printf("Keystone uri=\"%s/%s\"", call->base, api_service_name(API_IDENTITY));
    if (answer->status == 401)
        http_answer_add_header(answer, "WWW-Authenticate", keystone);
    return answer;
}

struct http_answer *api_answer_error(const struct api_call *call, const GError *error)
{
    const char *words = error->message;
    bool looks = !strcmp(call->request->method, "GET") || !strcmp(call->request->method, "HEAD");
    switch (error->domain == FETTLE_ERROR ? error->code : FETTLE_ERROR_INTERNAL) {
    case FETTLE_ERROR_WRONG_INPUT:
    case FETTLE_ERROR_PROTOCOL:
        return api_refuse(call, 400, "%s", words);
    case FETTLE_ERROR_WRONG_STATE: /* as clients of block storage know it */
        return api_refuse(call, call->service == API_VOLUME ? 400 : 409, "%s", words);
    case FETTLE_ERROR_UNKNOWN_ENTITY:
        return api_refuse(call, 404, "%s", words);
    case FETTLE_ERROR_PERMISSION:
        return call->token ? api_refuse(call, 403, "%s", words) : api_unauthorized(call, words);
    case FETTLE_ERROR_LIMIT:
        return api_refuse(call, 413, "%s", words);
    case FETTLE_ERROR_ALREADY_EXISTS:
    case FETTLE_ERROR_NO_RESOURCES:
    case FETTLE_ERROR_VERSION_CONFLICT:
    case FETTLE_ERROR_REFUSED:
    case FETTLE_ERROR_UNSAFE:
        return api_refuse(call, 409, "%s", words);
    case FETTLE_ERROR_TEMPORARY:
    case FETTLE_ERROR_NOT_MASTER:
    case FETTLE_ERROR_UNREACHABLE:
    case FETTLE_ERROR_STALE_EPOCH:
    case FETTLE_ERROR_PARTED:
        return api_refuse(call, 503, "%s", words);
    case FETTLE_ERROR_KILLED: /* who waited for it: a master that has asked others */
    case FETTLE_ERROR_TIMEOUT:
    case FETTLE_ERROR_UNKNOWN_RESULT: /* no client repeats that by itself */
        return api_refuse(call, looks ? 503 : 504, "%s", words);
    default:
        return api_refuse(call, 500, "%s", words);
    }
}

static json_t *time_text(gint64 us, const char *end)
{
    if (us <= 0)
        return json_null();
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(us / G_USEC_PER_SEC);
    g_autofree char *seconds = time ? g_date_time_format(time, "%Y-%m-%dT%H:%M:%S") : NULL;
    g_autofree char *text = g_strdup_printf("%s.%06d%s", seconds ? seconds : "9999-12-31T23:59:59",
                                            (int)(us % G_USEC_PER_SEC), end);
    return json_string(text);
}

json_t *api_time(gint64 us)
{
    return time_text(us, "");
}

json_t *api_time_utc(gint64 us)
{
    return time_text(us, "Z");
}
