/* See connection.h. The bytes are channel.c's, calls of ours connection_calls.c's; here are hellos
 * and the peer's requests. */
#include "io/net/connection_private.h"

#include "io/loop.h"
#include "proto/frame.h"

#include <string.h>

struct connection *connection_ref(struct connection *connection)
{
    connection->refs++;
    return connection;
}

void connection_unref(struct connection *connection)
{
    if (connection == NULL || --connection->refs > 0)
        return;
    channel_free(connection->channel);
    loop_timer_cancel(connection->hello_timer);
    loop_timer_cancel(connection->heartbeat_timer);
    g_hash_table_unref(connection->calls);
    g_queue_clear_full(&connection->unsent, g_free);
    peer_name_clear(&connection->peer);
    g_clear_error(&connection->why);
    g_free(connection->what);
    g_free(connection->node);
    g_free(connection->role);
    g_free(connection);
}

struct connection *connection_new(const struct connection_options *options)
{
    struct connection *connection = g_new0(struct connection, 1);

    connection->refs = 1;
    connection->what = g_strdup(options->what);
    connection->dials = options->dials;
    connection->frame_bytes = options->frame_bytes > 0 ? options->frame_bytes : LIMIT_FRAME_BYTES;
    connection->node = g_strdup(options->node);
    connection->role = g_strdup(options->role);
    connection->reads_records = options->reads_records;
    connection->events = options->events;
    connection->data = options->data;
    connection->calls = connection_calls_new();
    g_queue_init(&connection->unsent);
    return connection;
}

bool connection_is_up(const struct connection *connection)
{
    return connection->phase == PHASE_UP;
}

bool connection_is_closed(const struct connection *connection)
{
    return connection->phase == PHASE_CLOSED;
}

bool connection_is_idle(const struct connection *connection)
{
    return g_hash_table_size(connection->calls) == 0 && connection->serving == 0;
}

const struct peer_name *connection_peer(const struct connection *connection)
{
    return &connection->peer;
}

/* --- the end --- */

static void closed_cb(void *data)
{
    struct connection *connection = data;

    connection_fail_calls(connection);
    if (connection->events != NULL && connection->events->closed != NULL)
        connection->events->closed(connection, connection->why, connection->data);
    connection_unref(connection);
}

void connection_close(struct connection *connection, const GError *why)
{
    if (connection->phase == PHASE_CLOSED)
        return;
    connection->phase = PHASE_CLOSED;
    connection->why = why != NULL ? g_error_copy(why) : NULL;
    if (connection->channel != NULL)
        channel_close(connection->channel);
    loop_timer_cancel(connection->hello_timer);
    loop_timer_cancel(connection->heartbeat_timer);
    connection->hello_timer = connection->heartbeat_timer = 0;
    loop_post(closed_cb, connection_ref(connection));
}

/* For what is always small. */
static void send_json(struct connection *connection, const json_t *json)
{
    channel_send(connection->channel, json, LIMIT_FRAME_BYTES, NULL, NULL);
}

/* Tells the peer what was wrong with what it sent, and ends the connection. */
static void end_for_fault(struct connection *connection, guint64 id, const GError *error)
{
    json_autoptr last = connection->phase == PHASE_UP
                            ? envelope_reply(connection->version, id, NULL, error)
                        : connection->dials ? NULL
                                            : envelope_refusal(error);
    g_autoptr(GError) why = g_error_copy(error);

    if (last != NULL)
        send_json(connection, last);
    connection_close(connection, why);
}

/* --- requests --- */

/* By hand: a document around another one costs as much as all the rest of an answer. */
static bool answer_around(struct connection *connection, guint64 id,
                          const struct frame_body *result, GError **error)
{
    char head[80];
    g_snprintf(head, sizeof head,
               "{\"v\":%d,\"id\":%" G_GUINT64_FORMAT ",\"result\":", connection->version, id);
    return channel_send_within(connection->channel, head, result, "}", LIMIT_FRAME_BYTES, NULL,
                               error);
}

/* Whether anybody still waits for it. */
static bool answer_begins(struct connection *connection)
{
    if (connection->serving > 0)
        connection->serving--;
    return connection->phase == PHASE_UP;
}

static void answer_too_large(struct connection *connection, guint64 id, const GError *error)
{
    json_autoptr apology = envelope_reply(connection->version, id, NULL, error);
    send_json(connection, apology);
}

void connection_answer_text(struct connection *connection, guint64 id, const char *text)
{
    g_autoptr(GError) too_large = NULL;
    const struct frame_body body = {.text = text};
    if (answer_begins(connection) && !answer_around(connection, id, &body, &too_large))
        answer_too_large(connection, id, too_large);
}

void connection_answer(struct connection *connection, guint64 id, json_t *result,
                       const GError *error)
{
    if (!answer_begins(connection))
        return;
    g_autoptr(GError) too_large = NULL;
    if (result != NULL && error == NULL) {
        const struct frame_body body = {.json = result};
        if (answer_around(connection, id, &body, &too_large))
            return;
    } else {
        json_autoptr reply = envelope_reply(connection->version, id, result, error);
        if (channel_send(connection->channel, reply, LIMIT_FRAME_BYTES, NULL, &too_large))
            return;
    }
    answer_too_large(connection, id, too_large);
}

static void refuse_request(struct connection *connection, struct envelope *envelope,
                           enum fettle_error code, const char *why)
{
    g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, (int)code, why);

    connection_answer(connection, envelope->id, NULL, error);
    envelope_free(envelope);
}

static void take_request(struct connection *connection, struct envelope *envelope)
{
    connection->serving++;
    if (connection->events == NULL || connection->events->request == NULL)
        refuse_request(connection, envelope, FETTLE_ERROR_PROTOCOL,
                       "this side of the connection serves nothing");
    else if (connection->serving > LIMIT_CALLS_IN_FLIGHT)
        refuse_request(connection, envelope, FETTLE_ERROR_TEMPORARY,
                       "too many calls are under way on this connection; try again");
    else
        connection->events->request(connection, envelope, connection->data);
}

struct carried_request {
    struct rpc_request request;
    struct connection *connection;
    guint64 id;
};

static void answer_carried(struct rpc_request *request, json_t *result, const GError *error)
{
    struct carried_request *carried = (struct carried_request *)request;

    connection_answer(carried->connection, carried->id, result, error);
    json_decref(result);
    connection_unref(carried->connection);
    rpc_request_free(request);
}

static void answer_carried_text(struct rpc_request *request, const char *text)
{
    struct carried_request *carried = (struct carried_request *)request;

    connection_answer_text(carried->connection, carried->id, text);
    connection_unref(carried->connection);
    rpc_request_free(request);
}

struct rpc_request *connection_request(struct connection *connection, struct envelope *envelope,
                                       const char *from_node)
{
    struct carried_request *carried = g_new0(struct carried_request, 1);
    struct rpc_request *request = &carried->request;

    carried->connection = connection_ref(connection);
    carried->id = envelope->id;
    request->name = g_steal_pointer(&envelope->method);
    request->from_node = g_strdup(from_node);
    request->signed_by = g_steal_pointer(&envelope->signed_by);
    request->from_role = g_steal_pointer(&envelope->from.role);
    request->from_job = envelope->from.job;
    request->stamp = envelope->stamp;
    request->args = json_steal(&envelope->args);
    request->method = envelope->row;
    request->record = g_steal_pointer(&envelope->record);
    request->answer = answer_carried;
    request->answer_text = answer_carried_text;
    request->carrier = carried;
    envelope_free(envelope);
    return request;
}

/* --- hellos --- */

static void hello_timeout_cb(void *data)
{
    struct connection *connection = data;
    g_autoptr(GError) why = NULL;

    connection->hello_timer = 0;
    fettle_set_error(&why, TIMEOUT, "no hello within %d ms", LIMIT_HELLO_WAIT_MS);
    connection_close(connection, why);
}

static void go_up(struct connection *connection)
{
    connection->phase = PHASE_UP;
    loop_timer_cancel(connection->hello_timer);
    connection->hello_timer = 0;
    channel_set_limit(connection->channel, connection->frame_bytes);
    connection_send_unsent(connection);
    if (connection->events != NULL && connection->events->up != NULL &&
        connection->phase == PHASE_UP)
        connection->events->up(connection, connection->data);
}

static bool take_hello(struct connection *connection, const json_t *json, GError **error)
{
    const struct connection_events *events = connection->events;

    if (connection->dials)
        return envelope_welcome_parse(json, PROTOCOL_VERSION_MIN, PROTOCOL_VERSION_MAX,
                                      &connection->version, error);
    if (!envelope_hello_parse(json, PROTOCOL_VERSION_MIN, PROTOCOL_VERSION_MAX, &connection->peer,
                              &connection->version, error))
        return false;
    if (events != NULL && events->admit != NULL &&
        !events->admit(connection, &connection->peer, error, connection->data))
        return false;
    json_autoptr welcome =
        envelope_welcome(connection->version, connection->node, connection->role);
    send_json(connection, welcome);
    return true;
}

/* --- what the channel brings --- */

static void take_frame(struct connection *connection, const json_t *json)
{
    g_autoptr(GError) error = NULL;

    if (connection->phase == PHASE_HELLO) {
        if (take_hello(connection, json, &error))
            go_up(connection);
        else
            end_for_fault(connection, 0, error);
        return;
    }
    g_autoptr(envelope_t) envelope = envelope_parse(json, connection->version, &error);
    if (envelope == NULL)
        end_for_fault(connection, envelope_id(json), error);
    else if (envelope->is_reply)
        connection_take_reply(connection, envelope);
    else
        take_request(connection, g_steal_pointer(&envelope));
}

/* This process was stopped, and the peer has given this connection up for that: whatever it had
 * asked is not to be done so late. Who asked may be dead, and that on record (SAF-81). */
static bool ends_after_stop(struct connection *connection, gint64 now)
{
    g_autoptr(GError) why = NULL;
    gint64 stopped_ms = now - connection->last_beat;

    if (connection->dead_ms == 0 || stopped_ms <= connection->dead_ms)
        return false;
    fettle_set_error(&why, UNREACHABLE, "this process stood still for %" G_GINT64_FORMAT " ms",
                     stopped_ms);
    connection_close(connection, why);
    return true;
}

static void frame_cb(struct channel *channel, const char *data, size_t len, void *user)
{
    struct connection *connection = user;
    g_autoptr(GError) error = NULL;

    connection->last_heard = loop_boot_ms();
    if (ends_after_stop(connection, connection->last_heard))
        return;
    if (connection->reads_records && connection->phase == PHASE_UP) {
        struct envelope *envelope = envelope_read(data, len, connection->version, connection->role);
        if (envelope != NULL) {
            take_request(connection, envelope);
            return;
        }
    }
    json_autoptr json = json_parse_limited(data, len, LIMIT_FRAME_BYTES, &error);
    if (json == NULL)
        end_for_fault(connection, 0, error);
    else
        take_frame(connection, json);
}

static void broken_cb(struct channel *channel, const GError *why, void *user)
{
    struct connection *connection = user;

    /* A frame over the limit: the peer is told, if it still listens. */
    if (why != NULL && fettle_error_is(why, LIMIT))
        end_for_fault(connection, 0, why);
    else
        connection_close(connection, why);
}

static const struct channel_events channel_events = {frame_cb, broken_cb, NULL, NULL};

void connection_use(struct connection *connection, struct transport *transport)
{
    connection->channel = channel_new(transport, LIMIT_HELLO_BYTES, &channel_events, connection);
    /* A server that we have asked may be busy for long. */
    if (!connection->dials)
        channel_expect_reader(connection->channel, LIMIT_SLOW_READER_MS);
    connection->phase = PHASE_HELLO;
    connection->last_heard = loop_boot_ms();
    connection->hello_timer = loop_timer(LIMIT_HELLO_WAIT_MS, hello_timeout_cb, connection);
    if (!connection->dials)
        return;
    json_autoptr hello = envelope_hello(PROTOCOL_VERSION_MIN, PROTOCOL_VERSION_MAX,
                                        connection->node, connection->role, 0);
    send_json(connection, hello);
}

/* --- heartbeat --- */

/* An answer to a call that never was: every version ignores it. */
static void beat(struct connection *connection)
{
    json_autoptr nothing = envelope_reply(connection->version, 0, NULL, NULL);
    send_json(connection, nothing);
}

static void heartbeat_cb(void *data)
{
    struct connection *connection = data;
    gint64 now = loop_boot_ms();

    connection->heartbeat_timer = 0;
    if (ends_after_stop(connection, now))
        return;
    /* If this process itself was stopped for less, what came meanwhile has not been read yet. */
    if (now - connection->last_beat > 2 * (gint64)connection->ping_ms)
        connection->last_heard = now;
    connection->last_beat = now;
    if (now - connection->last_heard > connection->dead_ms) {
        g_autoptr(GError) why = NULL;
        fettle_set_error(&why, UNREACHABLE, "no sign of life for %u ms", connection->dead_ms);
        connection_close(connection, why);
        return;
    }
    if (connection->phase == PHASE_UP)
        beat(connection);
    if (connection->phase != PHASE_CLOSED)
        connection->heartbeat_timer = loop_timer(connection->ping_ms, heartbeat_cb, connection);
}

gint64 connection_silent_ms(const struct connection *connection)
{
    return loop_boot_ms() - connection->last_heard;
}

void connection_heartbeat(struct connection *connection, guint ping_ms, guint dead_ms)
{
    if (connection->phase == PHASE_CLOSED || connection->heartbeat_timer != 0)
        return;
    connection->ping_ms = ping_ms;
    connection->dead_ms = dead_ms;
    connection->last_beat = connection->last_heard = loop_boot_ms();
    connection->heartbeat_timer = loop_timer(ping_ms, heartbeat_cb, connection);
}
