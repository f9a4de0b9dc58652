/* See connection.h. The bytes are channel.c's; here are hellos, calls and answers. */
#include "io/connection.h"
#include "io/channel.h"
#include "io/loop.h"

#include <string.h>

enum phase { PHASE_NO_TRANSPORT, PHASE_HELLO, PHASE_UP, PHASE_CLOSED };

struct connection {
    guint refs;
    char *what;
    bool dials;
    size_t frame_bytes;
    char *node;
    char *role;
    const struct connection_events *events;
    void *data;

    enum phase phase;
    struct channel *channel;
    int version;
    struct peer_name peer;
    guint hello_timer;
    GError *why;

    guint64 last_id;
    GHashTable *calls; /* id -> struct call */
    GQueue unsent;     /* ids of calls that wait for the hello */
    guint serving;     /* requests of the peer that are not answered yet */

    guint heartbeat_timer;
    guint ping_ms, dead_ms;
    gint64 last_beat;
    gint64 last_heard;
};

struct call {
    struct connection *connection;
    guint64 id;
    char *method;
    json_t *request;  /* until it is sent */
    guint64 position; /* in the outgoing stream; once sent */
    guint timer;
    guint timeout_ms;
    rpc_reply_fn done;
    void *data;
};

static void call_free(void *data)
{
    struct call *call = data;
    loop_timer_cancel(call->timer);
    json_decref(call->request);
    g_free(call->method);
    g_free(call);
}

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
    connection->events = options->events;
    connection->data = options->data;
    connection->calls = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, call_free);
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

static const char *why_closed(const struct connection *connection)
{
    return connection->why != NULL ? connection->why->message : "the peer ended the connection";
}

static void fail_call(struct connection *connection, struct call *call)
{
    bool sent = call->request == NULL && connection->channel != NULL &&
                call->position < channel_written(connection->channel);
    const char *why = why_closed(connection);
    g_autoptr(GError) error = NULL;

    if (sent)
        fettle_set_error(&error, UNKNOWN_RESULT,
                         "%s: %s: connection lost after the request was sent: %s", connection->what,
                         call->method, why);
    else
        fettle_set_error(&error, UNREACHABLE, "%s: %s: not delivered: %s", connection->what,
                         call->method, why);
    call->done(NULL, error, call->data);
}

static gint compare_calls(gconstpointer a, gconstpointer b)
{
    const struct call *left = *(struct call *const *)a;
    const struct call *right = *(struct call *const *)b;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* All calls under way, in the order in which they were made. */
static GPtrArray *steal_calls(struct connection *connection)
{
    GPtrArray *calls = g_ptr_array_new_with_free_func(call_free);
    GHashTableIter iter;
    void *call;

    g_hash_table_iter_init(&iter, connection->calls);
    while (g_hash_table_iter_next(&iter, NULL, &call)) {
        g_ptr_array_add(calls, call);
        g_hash_table_iter_steal(&iter);
    }
    g_ptr_array_sort(calls, compare_calls);
    return calls;
}

static void fail_calls(struct connection *connection)
{
    g_autoptr(GPtrArray) calls = steal_calls(connection);

    for (guint i = 0; i < calls->len; i++)
        fail_call(connection, calls->pdata[i]);
}

void connection_abandon(struct connection *connection)
{
    g_autoptr(GPtrArray) calls = steal_calls(connection);

    connection->events = NULL;
    connection_close(connection, NULL);
    for (guint i = 0; i < calls->len; i++) {
        struct call *call = calls->pdata[i];
        g_autoptr(GError) error = NULL;
        fettle_set_error(&error, KILLED, "%s: %s: the calling process ends", connection->what,
                         call->method);
        call->done(NULL, error, call->data);
    }
}

static void closed_cb(void *data)
{
    struct connection *connection = data;

    fail_calls(connection);
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

/* --- calls --- */

/* A call that fails before anything was sent; told from the loop like every answer. */
struct early_failure {
    rpc_reply_fn done;
    void *data;
    GError *error;
};

static void early_failure_cb(void *data)
{
    struct early_failure *failure = data;
    failure->done(NULL, failure->error, failure->data);
    g_error_free(failure->error);
    g_free(failure);
}

void connection_fail_later(rpc_reply_fn done, void *data, GError *error)
{
    struct early_failure *failure = g_new(struct early_failure, 1);

    *failure = (struct early_failure){done, data, error};
    loop_post(early_failure_cb, failure);
}

static void send_call(struct connection *connection, struct call *call)
{
    GError *error = NULL;

    json_object_set_new(call->request, "v", json_integer(connection->version));
    if (!channel_send(connection->channel, call->request, LIMIT_FRAME_BYTES, &call->position,
                      &error)) {
        g_prefix_error(&error, "%s: %s: ", connection->what, call->method);
        connection_fail_later(call->done, call->data, error);
        g_hash_table_remove(connection->calls, &call->id);
        return;
    }
    g_clear_pointer(&call->request, json_decref);
}

static void timeout_cb(void *data)
{
    struct call *call = data;
    struct connection *connection = call->connection;
    g_autoptr(GError) error = NULL;

    call->timer = 0;
    if (call->request != NULL)
        fettle_set_error(&error, UNREACHABLE, "%s: %s: not delivered within %u ms",
                         connection->what, call->method, call->timeout_ms);
    else
        fettle_set_error(&error, TIMEOUT, "%s: %s: no answer within %u ms", connection->what,
                         call->method, call->timeout_ms);
    g_hash_table_steal(connection->calls, &call->id);
    call->done(NULL, error, call->data);
    call_free(call);
}

static void start_call(struct connection *connection, json_t *request, const char *method,
                       guint timeout_ms, rpc_reply_fn done, void *data)
{
    g_autoptr(GError) error = NULL;

    if (connection->phase == PHASE_CLOSED)
        fettle_set_error(&error, UNREACHABLE, "%s: %s: not delivered: %s", connection->what, method,
                         why_closed(connection));
    else if (g_hash_table_size(connection->calls) >= LIMIT_CALLS_IN_FLIGHT)
        fettle_set_error(&error, TEMPORARY, "%s: %s: %d calls are under way already; try again",
                         connection->what, method, LIMIT_CALLS_IN_FLIGHT);
    if (error != NULL) {
        json_decref(request);
        connection_fail_later(done, data, g_steal_pointer(&error));
        return;
    }
    struct call *call = g_new0(struct call, 1);
    call->connection = connection;
    call->id = connection->last_id;
    call->method = g_strdup(method);
    call->request = request;
    call->done = done;
    call->data = data;
    call->timeout_ms = timeout_ms;
    if (timeout_ms > 0)
        call->timer = loop_timer(timeout_ms, timeout_cb, call);
    g_hash_table_insert(connection->calls, &call->id, call);
    if (connection->phase == PHASE_UP)
        send_call(connection, call);
    else
        g_queue_push_tail(&connection->unsent, g_memdup2(&call->id, sizeof call->id));
}

void connection_call(struct connection *connection, const struct rpc_call *call, guint timeout_ms,
                     rpc_reply_fn done, void *data)
{
    struct rpc_call complete = *call;

    if (complete.args == NULL)
        complete.args = json_object();
    json_t *request = envelope_request(PROTOCOL_VERSION_MAX, ++connection->last_id, &complete,
                                       connection->node, connection->role);
    json_decref(complete.args);
    start_call(connection, request, call->method, timeout_ms, done, data);
}

void connection_forward(struct connection *connection, const struct envelope *request,
                        const char *from_node, guint timeout_ms, rpc_reply_fn done, void *data)
{
    json_t *forwarded =
        envelope_forward(PROTOCOL_VERSION_MAX, ++connection->last_id, request, from_node);
    start_call(connection, forwarded, request->method, timeout_ms, done, data);
}

static void take_reply(struct connection *connection, struct envelope *envelope)
{
    void *found;

    /* An answer that nobody waits for any more: too late, or the heartbeat. */
    if (!g_hash_table_steal_extended(connection->calls, &envelope->id, NULL, &found))
        return;
    struct call *call = found;
    call->done(envelope->result, envelope->error, call->data);
    call_free(call);
}

/* --- requests --- */

void connection_answer(struct connection *connection, guint64 id, json_t *result,
                       const GError *error)
{
    if (connection->serving > 0)
        connection->serving--;
    if (connection->phase != PHASE_UP)
        return;
    g_autoptr(GError) too_large = NULL;
    json_autoptr reply = envelope_reply(connection->version, id, result, error);
    if (channel_send(connection->channel, reply, LIMIT_FRAME_BYTES, NULL, &too_large))
        return;
    json_autoptr apology = envelope_reply(connection->version, id, NULL, too_large);
    send_json(connection, apology);
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

struct rpc_request *connection_request(struct connection *connection, struct envelope *envelope,
                                       const char *from_node)
{
    struct carried_request *carried = g_new0(struct carried_request, 1);
    struct rpc_request *request = &carried->request;

    carried->connection = connection_ref(connection);
    carried->id = envelope->id;
    request->name = g_steal_pointer(&envelope->method);
    request->from_node = g_strdup(from_node);
    request->from_role = g_steal_pointer(&envelope->from.role);
    request->from_job = envelope->from.job;
    request->stamp = envelope->stamp;
    request->args = json_steal(&envelope->args);
    request->answer = answer_carried;
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
    guint64 *id;

    connection->phase = PHASE_UP;
    loop_timer_cancel(connection->hello_timer);
    connection->hello_timer = 0;
    channel_set_limit(connection->channel, connection->frame_bytes);
    while ((id = g_queue_pop_head(&connection->unsent)) != NULL) {
        struct call *call = g_hash_table_lookup(connection->calls, id);
        if (call != NULL && connection->phase == PHASE_UP)
            send_call(connection, call);
        g_free(id);
    }
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
        take_reply(connection, envelope);
    else
        take_request(connection, g_steal_pointer(&envelope));
}

static void frame_cb(struct channel *channel, const char *data, size_t len, void *user)
{
    struct connection *connection = user;
    g_autoptr(GError) error = NULL;

    connection->last_heard = loop_boot_ms();
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

static const struct channel_events channel_events = {frame_cb, broken_cb};

void connection_use(struct connection *connection, struct transport *transport)
{
    connection->channel = channel_new(transport, LIMIT_HELLO_BYTES, &channel_events, connection);
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
    /* If this process itself was stopped, what came meanwhile has not been read yet. */
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

void connection_heartbeat(struct connection *connection, guint ping_ms, guint dead_ms)
{
    if (connection->phase == PHASE_CLOSED || connection->heartbeat_timer != 0)
        return;
    connection->ping_ms = ping_ms;
    connection->dead_ms = dead_ms;
    connection->last_beat = connection->last_heard = loop_boot_ms();
    connection->heartbeat_timer = loop_timer(ping_ms, heartbeat_cb, connection);
}
