/* Answers in the form of Ganeti's remote API; see rapi_private.h. */
#include <string.h>

#include "core/rapi/rapi_private.h"
#include "proto/luxi.h"

static const char *phrase_of(guint status)
{
    static const struct {
        guint status;
        const char *phrase;
    } phrases[] = {
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {413, "Request Entity Too Large"},
        {415, "Unsupported Media Type"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(phrases); i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Internal Server Error";
}

/* With the spaces that Ganeti writes. */
static struct http_answer *with_json(guint status, json_t *json)
{
    struct http_answer *answer = http_answer_new(status);
    char *text = json_dumps(json, JSON_ENCODE_ANY);
    g_assert(text);
    http_answer_set_body(answer, "application/json", g_strdup(text));
    free(text);
    json_decref(json);
    return answer;
}

struct http_answer *rapi_answer(json_t *json)
{
    return with_json(200, json);
}

struct http_answer *rapi_answer_text(char *text)
{
    struct http_answer *answer = http_answer_new(200);
    http_answer_set_body(answer, "application/json", text);
    return answer;
}

struct http_answer *rapi_refuse(guint status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *why = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *explain = g_utf8_make_valid(why, -1);
    return with_json(status, json_make("{si, ss, ss}", "code", (int)status, "message",
                                       phrase_of(status), "explain", explain));
}

static guint status_of(const GError *error)
{
    static const guint statuses[] = {
#define ERROR(NAME, wire, exit_code, http_status, doc) http_status,
#include "base/error.def"
#undef ERROR
    };
    if (error->domain != FETTLE_ERROR || error->code < 0 ||
        (guint)error->code >= G_N_ELEMENTS(statuses))
        return 500;
    return fettle_error_is(error, UNREACHABLE) || fettle_error_is(error, PROTOCOL)
               ? 502
               : statuses[error->code];
}

/* Behind "luxid: SubmitJob: ": whoever asks by HTTP has not heard of either. */
static const char *past_method(const char *why)
{
    for (;;) {
        const char *end = strstr(why, ": ");
        g_autofree char *word = end ? g_strndup(why, (gsize)(end - why)) : NULL;
        if (!word || (strcmp(word, "luxid") != 0 && !luxi_method_find(word)))
            return why;
        why = end + strlen(": ");
    }
}

struct http_answer *rapi_answer_error(const GError *error)
{
    struct http_answer *answer = rapi_refuse(status_of(error), "%s", past_method(error->message));
    if (fettle_error_is(error, TEMPORARY))
        http_answer_add_header(answer, "Retry-After", "1");
    return answer;
}
