/* Calls over a connection, from the question to the answer, or to the reason why there is none; see
 * connection.h. */
#include "io/net/connection_private.h"

#include "io/loop.h"

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

GHashTable *connection_calls_new(void)
{
    return g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, call_free);
}

static const char *why_closed(const struct connection *connection)
{
    return connection->why != NULL ? connection->why->message : "the peer ended the connection";
}

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

void connection_send_unsent(struct connection *connection)
{
    guint64 *id;

    while ((id = g_queue_pop_head(&connection->unsent)) != NULL) {
        struct call *call = g_hash_table_lookup(connection->calls, id);
        if (call != NULL && connection->phase == PHASE_UP)
            send_call(connection, call);
        g_free(id);
    }
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

void connection_take_reply(struct connection *connection, struct envelope *envelope)
{
    void *found;

    /* An answer that nobody waits for any more: too late, or the heartbeat. */
    if (!g_hash_table_steal_extended(connection->calls, &envelope->id, NULL, &found))
        return;
    struct call *call = found;
    call->done(envelope->result, envelope->error, call->data);
    call_free(call);
}

/* --- without an answer --- */

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

void connection_fail_calls(struct connection *connection)
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
