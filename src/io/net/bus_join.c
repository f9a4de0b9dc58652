/* See bus_join.h. */
#include "io/net/bus_join.h"
#include "io/loop.h"
#include "io/net/bus_private.h"
#include "io/net/connection.h"

#include <string.h>

#define METHOD_JOIN "join"

struct bus_joiners {
    const char *self;
    struct rpc_client *daemons;
    void (*complain)(const char *line, void *data);
    void *data;
    GHashTable *peers; /* set of struct joiner */
};

struct joiner {
    struct bus_joiners *joiners;
    struct connection *connection;
    char *place;
    bool master;
    bool asked;
    guint timer;
};

static void complain(const struct bus_joiners *joiners, const char *place, const char *what)
{
    g_autofree char *line = g_strdup_printf("bus: %s, which has no certificate: %s", place, what);

    if (joiners->complain != NULL)
        joiners->complain(line, joiners->data);
}

static void joiner_free(void *data)
{
    struct joiner *joiner = data;

    loop_timer_cancel(joiner->timer);
    connection_unref(joiner->connection);
    g_free(joiner->place);
    g_free(joiner);
}

/* --- what it may --- */

static bool admit_cb(struct connection *connection, const struct peer_name *from, GError **error,
                     void *data)
{
    const struct joiner *joiner = data;

    if (strcmp(from->role, ROLE_JOINING) != 0)
        fettle_set_error(error, PERMISSION,
                         "%s/%s has shown no certificate, without which a host can only join",
                         from->node, from->role);
    else if (!joiner->master)
        fettle_set_error(error, NOT_MASTER,
                         "this node is not the master, which alone lets hosts join; make another "
                         "token with `fettle node invite`");
    else
        return true;
    return false;
}

static bool may_ask(const struct joiner *joiner, const struct envelope *envelope, GError **error)
{
    bool to_wconfd = envelope->to_role[0] == '\0' || strcmp(envelope->to_role, ROLE_WCONFD) == 0;
    bool here =
        envelope->to_node[0] == '\0' || strcmp(envelope->to_node, joiner->joiners->self) == 0;

    if (!here || !to_wconfd || strcmp(envelope->method, METHOD_JOIN) != 0 ||
        strcmp(envelope->from.role, ROLE_JOINING) != 0)
        fettle_set_error(error, PERMISSION,
                         "%s/%s: a peer without a certificate may only join, as role joining",
                         envelope->to_role, envelope->method);
    else if (joiner->asked)
        fettle_set_error(error, LIMIT, "a connection without a certificate has one question");
    else
        return true;
    return false;
}

static void request_cb(struct connection *connection, struct envelope *envelope, void *data)
{
    struct joiner *joiner = data;
    g_autoptr(GError) error = NULL;

    if (may_ask(joiner, envelope, &error)) {
        joiner->asked = true;
        rpc_client_forward(joiner->joiners->daemons, ROLE_WCONFD, envelope, LIMIT_JOIN_MS,
                           bus_relayed_cb, bus_relay_new(connection, envelope));
    } else {
        complain(joiner->joiners, joiner->place, error->message);
        connection_answer(connection, envelope->id, NULL, error);
        connection_close(connection, NULL);
    }
    envelope_free(envelope);
}

static void closed_cb(struct connection *connection, const GError *why, void *data)
{
    struct joiner *joiner = data;

    if (why != NULL)
        complain(joiner->joiners, joiner->place, why->message);
    g_hash_table_remove(joiner->joiners->peers, joiner);
}

static const struct connection_events joiner_events = {
    .admit = admit_cb,
    .request = request_cb,
    .closed = closed_cb,
};

/* --- life --- */

static void timeout_cb(void *data)
{
    struct joiner *joiner = data;
    g_autoptr(GError) why = NULL;

    joiner->timer = 0;
    fettle_set_error(&why, TIMEOUT, "it has stayed for %u ms, longer than a join takes",
                     LIMIT_JOIN_MS);
    connection_close(joiner->connection, why);
}

void bus_joiners_accept(struct bus_joiners *joiners, GIOStream *stream, const char *place,
                        bool master)
{
    if (g_hash_table_size(joiners->peers) >= LIMIT_JOINERS) {
        complain(joiners, place, "refused: too many hosts are joining already");
        g_io_stream_close_async(stream, G_PRIORITY_DEFAULT, NULL, NULL, NULL);
        return;
    }
    struct joiner *joiner = g_new0(struct joiner, 1);
    const struct connection_options options = {
        .what = place,
        .frame_bytes = LIMIT_JOIN_BYTES,
        .node = joiners->self,
        .role = ROLE_NODED,
        .events = &joiner_events,
        .data = joiner,
    };
    joiner->joiners = joiners;
    joiner->place = g_strdup(place);
    joiner->master = master;
    joiner->timer = loop_timer(LIMIT_JOIN_MS, timeout_cb, joiner);
    joiner->connection = connection_new(&options);
    g_hash_table_add(joiners->peers, joiner);
    connection_use(joiner->connection, transport_stream(stream));
}

struct bus_joiners *bus_joiners_new(const char *self, struct rpc_client *daemons,
                                    void (*complain_fn)(const char *line, void *data), void *data)
{
    struct bus_joiners *joiners = g_new0(struct bus_joiners, 1);

    joiners->self = self;
    joiners->daemons = daemons;
    joiners->complain = complain_fn;
    joiners->data = data;
    joiners->peers = g_hash_table_new_full(NULL, NULL, joiner_free, NULL);
    return joiners;
}

void bus_joiners_free(struct bus_joiners *joiners)
{
    GHashTableIter iter;
    void *joiner;

    if (joiners == NULL)
        return;
    g_hash_table_iter_init(&iter, joiners->peers);
    while (g_hash_table_iter_next(&iter, &joiner, NULL))
        connection_abandon(((struct joiner *)joiner)->connection);
    g_hash_table_unref(joiners->peers);
    g_free(joiners);
}
