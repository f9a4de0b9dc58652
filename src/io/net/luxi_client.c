/* See luxi_client.h. */
#include "io/net/luxi_client.h"
#include "io/loop.h"
#include "io/net/channel.h"
#include "io/net/connection.h"
#include "io/net/unix_socket.h"
#include "proto/luxi.h"

#include <string.h>

#define LUXI_IDLE_KEPT 4 /* connections */

struct luxi_client {
    char *path;
    GQueue idle;      /* struct line */
    GHashTable *busy; /* set of struct line */
};

/* A connection, and the call on it. */
struct line {
    struct luxi_client *client;
    struct channel *channel;
    char *method;
    guint64 position;
    guint timer;
    guint timeout_ms;
    rpc_reply_fn done;      /* this or the next one; both NULL: idle */
    luxi_text_fn text_done; /* of a call that wants the text */
    void *data;
};

static bool is_idle(const struct line *line)
{
    return !line->done && !line->text_done;
}

static void line_free(void *data)
{
    struct line *line = data;

    loop_timer_cancel(line->timer);
    channel_free(line->channel);
    g_free(line->method);
    g_free(line);
}

/* Ends the call; the connection is kept for the next one or not. */
static void release(struct line *line, bool keep)
{
    struct luxi_client *client = line->client;

    loop_timer_cancel(line->timer);
    line->timer = 0;
    line->done = NULL;
    line->text_done = NULL;
    g_clear_pointer(&line->method, g_free);
    g_hash_table_steal(client->busy, line);
    if (keep && client->idle.length < LUXI_IDLE_KEPT)
        g_queue_push_tail(&client->idle, line);
    else
        line_free(line);
}

static void finish(struct line *line, bool keep, json_t *result, const GError *error)
{
    rpc_reply_fn done = line->done;
    luxi_text_fn text_done = line->text_done;
    void *data = line->data;

    release(line, keep);
    if (done)
        done(result, error, data);
    else
        text_done(NULL, 0, error, data);
}

/* Where the result stands in a reply, which luxid writes in one of two ways; false: it is none of
 * both, as one with an error is. */
static bool find_result(const char *data, size_t len, size_t *ret_first, size_t *ret_len)
{
    static const char *const around[][2] = {{LUXI_RESULT_BEFORE, LUXI_RESULT_AFTER},
                                            {"{\"success\":true,\"result\":", "}"}};
    for (size_t i = 0; i < G_N_ELEMENTS(around); i++) {
        const size_t first = strlen(around[i][0]), last = strlen(around[i][1]);
        if (len < first + last || memcmp(data, around[i][0], first) != 0 ||
            memcmp(data + len - last, around[i][1], last) != 0)
            continue;
        *ret_first = first;
        *ret_len = len - first - last;
        return true;
    }
    return false;
}

static bool hand_over_text(struct line *line, const char *data, size_t len)
{
    size_t first, length;
    if (!line->text_done || !find_result(data, len, &first, &length))
        return false;
    luxi_text_fn text_done = line->text_done;
    void *user = line->data;
    char *text = g_strndup(data + first, length);
    release(line, true);
    text_done(text, length, NULL, user);
    return true;
}

static void frame_cb(struct channel *channel, const char *data, size_t len, void *user)
{
    struct line *line = user;
    g_autoptr(GError) error = NULL;

    if (is_idle(line)) {
        /* Something that nobody asked for: this connection cannot be trusted. */
        g_queue_remove(&line->client->idle, line);
        line_free(line);
        return;
    }
    if (hand_over_text(line, data, len))
        return;
    json_autoptr document = json_parse_limited(data, len, LIMIT_LUXI_ANSWER_BYTES, &error);
    bool readable = document != NULL;
    json_autoptr result = readable ? luxi_reply_parse(document, &error) : NULL;
    if (error == NULL && line->text_done)
        fettle_set_error(&error, PROTOCOL, "the answer does not stand where it should");
    if (error != NULL)
        g_prefix_error(&error, "luxid: %s: ", line->method);
    /* The server ends the connection after what it could not parse. */
    finish(line, error == NULL, result, error);
}

static void broken_cb(struct channel *channel, const GError *why, void *user)
{
    struct line *line = user;
    const char *text = why != NULL ? why->message : "the peer ended the connection";
    g_autoptr(GError) error = NULL;

    if (is_idle(line)) {
        g_queue_remove(&line->client->idle, line);
        line_free(line);
        return;
    }
    if (channel_written(channel) > line->position)
        fettle_set_error(&error, UNKNOWN_RESULT,
                         "luxid: %s: connection lost after the request was sent: %s", line->method,
                         text);
    else
        fettle_set_error(&error, UNREACHABLE, "luxid: %s: not delivered: %s", line->method, text);
    finish(line, false, NULL, error);
}

static const struct channel_events channel_events = {frame_cb, broken_cb, NULL, NULL};

static void timeout_cb(void *data)
{
    struct line *line = data;
    g_autoptr(GError) error = NULL;

    line->timer = 0;
    fettle_set_error(&error, TIMEOUT, "luxid: %s: no answer within %u ms", line->method,
                     line->timeout_ms);
    finish(line, false, NULL, error);
}

static struct line *take_line(struct luxi_client *client, GError **error)
{
    struct line *line = g_queue_pop_tail(&client->idle);

    if (line != NULL)
        return line;
    int fd = unix_connect(client->path, error);
    if (fd < 0)
        return NULL;
    line = g_new0(struct line, 1);
    line->client = client;
    line->channel = channel_new(transport_fd(fd), LIMIT_LUXI_ANSWER_BYTES, &channel_events, line);
    return line;
}

/* The connection that it goes on; NULL with an error. */
static struct line *send_call(struct luxi_client *client, const struct rpc_call *call, void *data,
                              GError **error)
{
    json_autoptr request =
        luxi_request_make(call->method, call->args ? call->args : json_array(), call->user);
    guint timeout_ms = rpc_call_timeout_ms(call);
    struct line *line = take_line(client, error);
    if (!line) {
        g_prefix_error(error, "luxid: %s: ", call->method);
        return NULL;
    }
    if (!channel_send(line->channel, request, LIMIT_LUXI_FRAME_BYTES, &line->position, error)) {
        line_free(line);
        return NULL;
    }
    line->method = g_strdup(call->method);
    line->data = data;
    line->timeout_ms = timeout_ms;
    line->timer = loop_timer(timeout_ms, timeout_cb, line);
    g_hash_table_add(client->busy, line);
    return line;
}

void luxi_client_call(struct luxi_client *client, const struct rpc_call *call, rpc_reply_fn done,
                      void *data)
{
    GError *error = NULL;
    struct line *line = send_call(client, call, data, &error);
    if (line)
        line->done = done;
    else
        connection_fail_later(done, data, error);
}

struct refused {
    luxi_text_fn done;
    void *data;
};

static void refused_cb(json_t *result, const GError *error, void *data)
{
    g_autofree struct refused *refused = data;
    refused->done(NULL, 0, error, refused->data);
}

void luxi_client_call_text(struct luxi_client *client, const struct rpc_call *call,
                           luxi_text_fn done, void *data)
{
    GError *error = NULL;
    struct line *line = send_call(client, call, data, &error);
    if (line) {
        line->text_done = done;
        return;
    }
    struct refused *refused = g_new(struct refused, 1);
    *refused = (struct refused){done, data};
    connection_fail_later(refused_cb, refused, error);
}

struct luxi_client *luxi_client_new(const char *path)
{
    struct luxi_client *client = g_new0(struct luxi_client, 1);

    client->path = g_strdup(path);
    g_queue_init(&client->idle);
    client->busy = g_hash_table_new_full(NULL, NULL, line_free, NULL);
    return client;
}

void luxi_client_free(struct luxi_client *client)
{
    if (client == NULL)
        return;
    GHashTableIter iter;
    void *line;

    g_hash_table_iter_init(&iter, client->busy);
    while (g_hash_table_iter_next(&iter, &line, NULL)) {
        g_autoptr(GError) error = NULL;
        fettle_set_error(&error, KILLED, "luxid: %s: the calling process ends",
                         ((struct line *)line)->method);
        struct line *lost = line;
        if (lost->done)
            lost->done(NULL, error, lost->data);
        else
            lost->text_done(NULL, 0, error, lost->data);
    }
    g_queue_clear_full(&client->idle, line_free);
    g_hash_table_unref(client->busy);
    g_free(client->path);
    g_free(client);
}
