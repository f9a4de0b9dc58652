/* See http.h. */
#include "proto/http/http.h"

#include <string.h>

const char *http_request_header(const struct http_request *request, const char *name)
{
    const char *value = g_hash_table_lookup(request->headers, name);
    return value ? value : "";
}

bool http_request_is_text(const struct http_request *request)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, request->headers);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (!g_utf8_validate(value, -1, NULL))
            return false;
    return g_utf8_validate(request->method, -1, NULL) && g_utf8_validate(request->query, -1, NULL);
}

bool http_request_is_json(const struct http_request *request)
{
    const char *type = http_request_header(request, "content-type");
    size_t len = strcspn(type, "; ");
    return len == strlen("application/json") && !g_ascii_strncasecmp(type, "application/json", len);
}

bool http_request_has_few_values(const struct http_request *request, guint most, GError **error)
{
    guint count = 0; /* of what there is once for each value, or almost */
    for (size_t i = 0; i < request->body_len && count <= most; i++)
        count += strchr(",[{", request->body[i]) && request->body[i];
    if (count > most)
        fettle_set_error(error, WRONG_INPUT, "the body has more than %u values", most);
    return count <= most;
}

GPtrArray *http_query_parse(const char *query)
{
    GPtrArray *pairs = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) parts = g_strsplit(query, "&", -1);
    for (char **part = parts; *part; part++) {
        if (!**part)
            continue;
        char *value = strchr(*part, '=');
        if (value)
            *value++ = '\0';
        g_strdelimit(*part, "+", ' ');
        if (value)
            g_strdelimit(value, "+", ' ');
        g_autofree char *name = g_uri_unescape_string(*part, NULL);
        g_autofree char *text = g_uri_unescape_string(value ? value : "", NULL);
        if (!name || !text || !g_utf8_validate(name, -1, NULL) || !g_utf8_validate(text, -1, NULL))
            continue;
        g_ptr_array_add(pairs, g_steal_pointer(&name));
        g_ptr_array_add(pairs, g_steal_pointer(&text));
    }
    return pairs;
}

void http_request_free(struct http_request *request)
{
    if (!request)
        return;
    g_free(request->method);
    g_free(request->path);
    g_free(request->query);
    g_hash_table_unref(request->headers);
    g_free(request->body);
    if (request->stream)
        request->stream->free(request->stream);
    g_free(request->peer);
    g_free(request);
}

void http_request_free_ptr(struct http_request **request)
{
    http_request_free(*request);
}

struct http_answer *http_answer_new(guint status)
{
    struct http_answer *answer = g_new0(struct http_answer, 1);
    answer->status = status;
    answer->headers = g_ptr_array_new_with_free_func(g_free);
    return answer;
}

void http_answer_add_header(struct http_answer *answer, const char *name, const char *value)
{
    g_ptr_array_add(answer->headers, g_strdup(name));
    g_ptr_array_add(answer->headers, g_strdup(value));
}

void http_answer_set_body(struct http_answer *answer, const char *type, char *text)
{
    http_answer_add_header(answer, "Content-Type", type);
    g_free(answer->body);
    answer->body = text;
    answer->body_len = strlen(text);
}

void http_answer_set_stream(struct http_answer *answer, const char *type, struct http_bytes *stream,
                            guint64 length)
{
    http_answer_add_header(answer, "Content-Type", type);
    answer->stream = stream;
    answer->stream_len = length;
}

void http_answer_set_feed(struct http_answer *answer, const char *type, struct http_feed *feed)
{
    http_answer_add_header(answer, "Content-Type", type);
    answer->feed = feed;
}

void http_answer_free(struct http_answer *answer)
{
    if (!answer)
        return;
    g_ptr_array_unref(answer->headers);
    g_free(answer->body);
    if (answer->stream)
        answer->stream->free(answer->stream);
    if (answer->feed)
        answer->feed->free(answer->feed);
    g_free(answer);
}

char *http_path_decode(const char *path)
{
    g_autofree char *decoded = g_uri_unescape_string(path, "/"); /* NULL: a NUL, "/", or none */
    if (!decoded || decoded[0] != '/' || !g_utf8_validate(decoded, -1, NULL))
        return NULL;
    g_auto(GStrv) segments = g_strsplit(decoded, "/", -1);
    for (char **segment = segments; *segment; segment++)
        if (!strcmp(*segment, ".") || !strcmp(*segment, ".."))
            return NULL;
    return g_steal_pointer(&decoded);
}
