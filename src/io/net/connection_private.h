/* Inside of a connection (connection.h): connection.c is its life and the peer's requests,
 * connection_calls.c the calls that we make over it. */
#pragma once

#include "io/net/channel.h"
#include "io/net/connection.h"

enum phase { PHASE_NO_TRANSPORT, PHASE_HELLO, PHASE_UP, PHASE_CLOSED };

struct connection {
    guint refs;
    char *what;
    bool dials;
    size_t frame_bytes;
    char *node;
    char *role;
    bool reads_records;
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

/* --- connection_calls.c --- */

/* For connection->calls; free with g_hash_table_unref(). */
GHashTable *connection_calls_new(void);
/* Those that waited for the hello go out. */
void connection_send_unsent(struct connection *connection);
/* The peer has answered one. */
void connection_take_reply(struct connection *connection, struct envelope *envelope);
/* It is closed: nothing is answered any more, which each caller is told. */
void connection_fail_calls(struct connection *connection);
