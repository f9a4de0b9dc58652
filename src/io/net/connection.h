/*
 * One connection of the internal protocol: frames over a Unix socket or a TLS stream, the hello,
 * calls and answers in both directions, any number in flight. Servers, clients and the bus are
 * built from it.
 *
 * A connection may be made before its transport is there (a bus link that is being dialled): calls
 * wait in it until the hellos are exchanged. Whatever goes wrong ends the connection, once: every
 * call outstanding on it is answered with UNREACHABLE if not a byte of it was sent, else with
 * UNKNOWN_RESULT, then closed() is called. Nothing of this happens inside a call to this module:
 * callbacks come from the loop.
 */
#pragma once

#include "io/net/transport.h"
#include "proto/envelope.h"

struct connection;

struct connection_events {
    /* Answering side: may this peer speak to us? Its name is `from`; NULL: anybody. The error goes
     * to the peer. */
    bool (*admit)(struct connection *connection, const struct peer_name *from, GError **error,
                  void *data);
    /* The hellos are exchanged; may be NULL. */
    void (*up)(struct connection *connection, void *data);
    /* A request; the envelope is the receiver's. Answer with connection_answer(). NULL: requests
     * are refused. */
    void (*request)(struct connection *connection, struct envelope *request, void *data);
    /* Last. `why` is NULL if the peer simply ended it or connection_close() was called without a
     * reason. */
    void (*closed)(struct connection *connection, const GError *why, void *data);
};

struct connection_options {
    const char *what;   /* for messages: "wconfd of this host", "node node2" */
    bool dials;         /* we say hello first */
    size_t frame_bytes; /* the largest frame that is taken; 0: LIMIT_FRAME_BYTES */
    const char *node;   /* who we are */
    const char *role;
    /* Requests are read straight into the records of this role's methods where that can be done:
     * envelope->args is NULL then. Not for who passes requests on. */
    bool reads_records;
    const struct connection_events *events; /* kept by reference */
    void *data;
};

struct connection *connection_new(const struct connection_options *options);
struct connection *connection_ref(struct connection *connection);
void connection_unref(struct connection *connection);

/* Gives it its transport, which it owns from then on. */
void connection_use(struct connection *connection, struct transport *transport);

/* `why` (borrowed) may be NULL. Closing again is allowed. */
void connection_close(struct connection *connection, const GError *why);
/* For owners that end first: closes, without events; calls under way are answered with KILLED now.
 */
void connection_abandon(struct connection *connection);

bool connection_is_up(const struct connection *connection);
bool connection_is_closed(const struct connection *connection);
/* Who the peer says it is; of the answering side only, and after admit. */
const struct peer_name *connection_peer(const struct connection *connection);

/* A call of our own. `call->args` is stolen. `timeout_ms` 0: none. */
void connection_call(struct connection *connection, const struct rpc_call *call, guint timeout_ms,
                     rpc_reply_fn done, void *data);
/* Passes somebody's request on; `from_node` as proven. */
void connection_forward(struct connection *connection, const struct envelope *request,
                        const char *from_node, guint timeout_ms, rpc_reply_fn done, void *data);
/* Answers request `id`; exactly one of result (borrowed; NULL: empty) and error counts. */
void connection_answer(struct connection *connection, guint64 id, json_t *result,
                       const GError *error);

/* The same with a result that is JSON text already. */
void connection_answer_text(struct connection *connection, guint64 id, const char *text);

/* Nothing is under way on it, in either direction. */
bool connection_is_idle(const struct connection *connection);

/* Answers a call that could not even be started, from the loop. `error` is stolen. */
void connection_fail_later(rpc_reply_fn done, void *data, GError *error);

/* A request as a handler gets it; answering it answers the connection. Takes the envelope. */
struct rpc_request *connection_request(struct connection *connection, struct envelope *envelope,
                                       const char *from_node);

/* From now on: something is sent each `ping_ms`, and the connection ends if nothing came for
 * `dead_ms`. */
void connection_heartbeat(struct connection *connection, guint ping_ms, guint dead_ms);
/* Since when the peer has given no sign of life; of one with a heartbeat. */
gint64 connection_silent_ms(const struct connection *connection);
