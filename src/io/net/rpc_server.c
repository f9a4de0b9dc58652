/* See rpc_server.h. */
#include "io/net/rpc_server.h"
#include "io/net/connection.h"
#include "io/net/unix_socket.h"

#include <string.h>
#include <unistd.h>

struct rpc_server {
    char *path;
    char *role;
    char *node_uuid;
    bool reads_records;
    void (*handle)(struct rpc_request *request, void *data);
    bool (*route)(struct connection *connection, struct envelope *envelope, void *data);
    void (*complain)(const char *line, void *data);
    bool (*is_api)(uid_t uid, void *data);
    void *data;
    struct unix_listener *listener;
    GHashTable *connections; /* struct connection -> whether it is of the API's user */
    guint of_api;            /* how many are */
};

static void complain(struct rpc_server *server, const char *line)
{
    if (server->complain != NULL)
        server->complain(line, server->data);
}

/* --- one connection --- */

static bool is_of_api(const struct rpc_server *server, struct connection *connection)
{
    return GPOINTER_TO_INT(g_hash_table_lookup(server->connections, connection));
}

/* Local peers of our own user have our own trust; what is checked there are mistakes. The node
 * daemon speaks for other nodes. */
static bool admit_cb(struct connection *connection, const struct peer_name *from, GError **error,
                     void *data)
{
    struct rpc_server *server = data;

    if (is_of_api(server, connection) && strcmp(from->role, ROLE_APID) != 0) {
        fettle_set_error(error, PERMISSION, "the API's user may come as %s, not as %s", ROLE_APID,
                         from->role);
        return false;
    }
    if (strcmp(from->node, server->node_uuid) == 0)
        return true;
    fettle_set_error(error, PERMISSION, "the peer says it is of node %s, this host is %s",
                     from->node, server->node_uuid);
    return false;
}

static bool check_from(struct rpc_server *server, struct connection *connection,
                       const struct envelope *envelope, GError **error)
{
    const struct peer_name *peer = connection_peer(connection);

    if (strcmp(peer->role, ROLE_NODED) == 0)
        return true;
    if (strcmp(envelope->from.node, server->node_uuid) == 0 &&
        strcmp(envelope->from.role, peer->role) == 0)
        return true;
    fettle_set_error(error, PERMISSION, "from: is %s/%s, but the connection is of %s/%s",
                     envelope->from.node, envelope->from.role, peer->node, peer->role);
    return false;
}

static bool check_to(struct rpc_server *server, const struct envelope *envelope, GError **error)
{
    bool here = envelope->to_node[0] == '\0' || strcmp(envelope->to_node, server->node_uuid) == 0;

    if (here && (envelope->to_role[0] == '\0' || strcmp(envelope->to_role, server->role) == 0))
        return true;
    fettle_set_error(error, PROTOCOL,
                     "to: is %s/%s, but this is %s of node %s; other nodes are reached by way of "
                     "noded.sock",
                     envelope->to_node, envelope->to_role, server->role, server->node_uuid);
    return false;
}

static void request_cb(struct connection *connection, struct envelope *envelope, void *data)
{
    struct rpc_server *server = data;
    g_autoptr(GError) error = NULL;
    bool sane = check_from(server, connection, envelope, &error);

    if (sane && server->route != NULL && server->route(connection, envelope, server->data))
        return;
    sane = sane && check_to(server, envelope, &error);
    g_autofree char *from_node = g_strdup(envelope->from.node);
    struct rpc_request *request = connection_request(connection, envelope, from_node);

    if (sane && rpc_request_check(request, server->role, &error))
        server->handle(request, server->data);
    else
        rpc_fail(request, error);
}

static void closed_cb(struct connection *connection, const GError *why, void *data)
{
    struct rpc_server *server = data;

    if (why != NULL) {
        const struct peer_name *peer = connection_peer(connection);
        g_autofree char *line =
            g_strdup_printf("%s: connection of %s ended: %s", server->path,
                            peer->role != NULL ? peer->role : "an unknown peer", why->message);
        complain(server, line);
    }
    server->of_api -= is_of_api(server, connection);
    g_hash_table_remove(server->connections, connection);
}

static const struct connection_events connection_events = {
    .admit = admit_cb,
    .request = request_cb,
    .closed = closed_cb,
};

/* --- the socket --- */

static bool has_place(struct rpc_server *server, bool of_api)
{
    bool full = g_hash_table_size(server->connections) >= LIMIT_CONNECTIONS;
    if (!full && (!of_api || server->of_api < LIMIT_API_CONNECTIONS))
        return true;
    g_autofree char *line =
        full ? g_strdup_printf("%s: a connection is refused: there are %d already", server->path,
                               LIMIT_CONNECTIONS)
             : g_strdup_printf("%s: a connection is refused: the API's user has %d already",
                               server->path, LIMIT_API_CONNECTIONS);
    complain(server, line);
    return false;
}

static void accepted_cb(int fd, void *data)
{
    struct rpc_server *server = data;
    const struct connection_options options = {
        .what = "local peer",
        .node = server->node_uuid,
        .role = server->role,
        .reads_records = server->reads_records,
        .events = &connection_events,
        .data = server,
    };

    uid_t uid = unix_peer_uid(fd);
    bool of_api = uid != 0 && uid != geteuid();
    if (!has_place(server, of_api)) {
        close(fd);
        return;
    }
    struct connection *connection = connection_new(&options);
    g_hash_table_insert(server->connections, connection, GINT_TO_POINTER(of_api));
    server->of_api += of_api;
    connection_use(connection, transport_fd(fd));
}

static void complain_cb(const char *line, void *data)
{
    complain(data, line);
}

static bool may_come_cb(uid_t uid, void *data)
{
    const struct rpc_server *server = data;
    return server->is_api && server->is_api(uid, server->data);
}

static const struct unix_listener_events listener_events = {
    .accepted = accepted_cb, .may_come = may_come_cb, .complain = complain_cb};

static void connection_drop(void *data)
{
    connection_unref(data);
}

struct rpc_server *rpc_server_new(const struct rpc_server_options *options, GError **error)
{
    struct rpc_server *server = g_new0(struct rpc_server, 1);

    server->path = g_strdup(options->path);
    server->role = g_strdup(options->role);
    server->node_uuid = g_strdup(options->node_uuid);
    server->reads_records = options->reads_records;
    server->handle = options->handle;
    server->route = options->route;
    server->is_api = options->is_api;
    server->complain = options->complain;
    server->data = options->data;
    server->connections = g_hash_table_new_full(NULL, NULL, connection_drop, NULL);
    server->listener = unix_listener_new(options->path, &listener_events, server, error);
    if (server->listener == NULL)
        g_clear_pointer(&server, rpc_server_free);
    return server;
}

void rpc_server_free(struct rpc_server *server)
{
    GHashTableIter iter;
    void *connection;

    if (server == NULL)
        return;
    unix_listener_free(server->listener);
    g_hash_table_iter_init(&iter, server->connections);
    while (g_hash_table_iter_next(&iter, &connection, NULL))
        connection_abandon(connection);
    g_hash_table_unref(server->connections);
    g_free(server->path);
    g_free(server->role);
    g_free(server->node_uuid);
    g_free(server);
}

guint rpc_server_connections(const struct rpc_server *server)
{
    return g_hash_table_size(server->connections);
}
