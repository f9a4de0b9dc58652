/* See luxi_client.h. */
#include "io/net/luxi_client.h"
#include "io/loop.h"
#include "io/net/channel.h"
#include "io/net/connection.h"
#include "io/net/unix_socket.h"
#include "proto/luxi.h"

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
    rpc_reply_fn done; /* NULL: idle */
    void *data;
};

static void line_free(void *data)
{
    struct line *line = data;

    loop_timer_cancel(line->timer);
    channel_free(line->channel);
    g_free(line->method);
    g_free(line);
}

/* Ends the call; the connection is kept for the next one or not. */
static void finish(struct line *line, bool keep, json_t *result, const GError *error)
{
    struct luxi_client *client = line->client;
    rpc_reply_fn done = line->done;
    void *data = line->data;

    loop_timer_cancel(line->timer);
    line->timer = 0;
    line->done = NULL;
    g_clear_pointer(&line->method, g_free);
    g_hash_table_steal(client->busy, line);
    if (keep && client->idle.length < LUXI_IDLE_KEPT)
        g_queue_push_tail(&client->idle, line);
    else
        line_free(line);
    done(result, error, data);
}

static void frame_cb(struct channel *channel, const char *data, size_t len, void *user)
{
    struct line *line = user;
    g_autoptr(GError) error = NULL;

    if (line->done == NULL) {
        /* Something that nobody asked for: this connection cannot be trusted. */
        g_queue_remove(&line->client->idle, line);
        line_free(line);
        return;
    }
    json_autoptr document = json_parse_limited(data, len, LIMIT_FRAME_BYTES, &error);
    bool readable = document != NULL;
    json_autoptr result = readable ? luxi_reply_parse(document, &error) : NULL;
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

    if (line->done == NULL) {
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
    line->channel = channel_new(transport_fd(fd), LIMIT_FRAME_BYTES, &channel_events, line);
    return line;
}

void luxi_client_call(struct luxi_client *client, const struct rpc_call *call, rpc_reply_fn done,
                      void *data)
{
    GError *error = NULL;
    guint timeout_ms = rpc_call_timeout_ms(call);
    json_autoptr request =
        luxi_request_make(call->method, call->args != NULL ? call->args : json_array());
    struct line *line = take_line(client, &error);

    if (line == NULL) {
        g_prefix_error(&error, "luxid: %s: ", call->method);
        connection_fail_later(done, data, error);
        return;
    }
    if (!channel_send(line->channel, request, LIMIT_LUXI_FRAME_BYTES, &line->position, &error)) {
        line_free(line);
        connection_fail_later(done, data, error);
        return;
    }
    line->method = g_strdup(call->method);
    line->done = done;
    line->data = data;
    line->timeout_ms = timeout_ms;
    line->timer = loop_timer(timeout_ms, timeout_cb, line);
    g_hash_table_add(client->busy, line);
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
        ((struct line *)line)->done(NULL, error, ((struct line *)line)->data);
    }
    g_queue_clear_full(&client->idle, line_free);
    g_hash_table_unref(client->busy);
    g_free(client->path);
    g_free(client);
}
