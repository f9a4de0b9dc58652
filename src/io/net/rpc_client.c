/* See rpc_client.h. */
#include "io/net/rpc_client.h"
#include "io/loop.h"
#include "io/net/connection.h"
#include "io/net/luxi_client.h"
#include "io/net/unix_socket.h"

#include <string.h>

struct rpc_client {
    const struct node_paths *paths;
    char *node_uuid;
    char *role;
    GHashTable *lines; /* role of this host -> struct connection, while it lives */
    struct luxi_client *luxi;
};

static void closed_cb(struct connection *connection, const GError *why, void *data)
{
    struct rpc_client *client = data;
    GHashTableIter iter;
    void *current;

    g_hash_table_iter_init(&iter, client->lines);
    while (g_hash_table_iter_next(&iter, NULL, &current))
        if (current == connection)
            g_hash_table_iter_remove(&iter);
}

static const struct connection_events connection_events = {.closed = closed_cb};

/* The connection to a daemon of this host. If it cannot be made, it exists, is closed, and tells
 * its calls why. */
static struct connection *line_to(struct rpc_client *client, const char *role)
{
    struct connection *line = g_hash_table_lookup(client->lines, role);
    g_autoptr(GError) error = NULL;

    if (line != NULL && !connection_is_closed(line))
        return line;
    const struct connection_options options = {
        .what = role,
        .dials = true,
        .node = client->node_uuid,
        .role = client->role,
        .events = &connection_events,
        .data = client,
    };
    line = connection_new(&options);
    g_hash_table_replace(client->lines, g_strdup(role), line);
    g_autofree char *path = node_paths_socket(client->paths, role);
    int fd = unix_connect(path, &error);
    if (fd >= 0)
        connection_use(line, transport_fd(fd));
    else
        connection_close(line, error);
    return line;
}

/* Whose socket a call goes to. */
static const char *way(const struct rpc_client *client, const struct rpc_call *call)
{
    bool here = call->to_node == NULL || call->to_node[0] == '\0' ||
                strcmp(call->to_node, client->node_uuid) == 0;

    here = here && strcmp(client->role, ROLE_APID) != 0; /* its user is let in there alone */
    return here ? call->to_role : ROLE_NODED;
}

void rpc_client_call(struct rpc_client *client, const struct rpc_call *call, rpc_reply_fn done,
                     void *data)
{
    if (strcmp(call->to_role, ROLE_LUXID) == 0)
        luxi_client_call(client->luxi, call, done, data);
    else
        connection_call(line_to(client, way(client, call)), call, rpc_call_timeout_ms(call), done,
                        data);
}

void rpc_client_forward(struct rpc_client *client, const char *role, const struct envelope *request,
                        guint timeout_ms, rpc_reply_fn done, void *data)
{
    connection_forward(line_to(client, role), request, request->from.node, timeout_ms, done, data);
}

static void drop_line(void *data)
{
    connection_unref(data);
}

struct rpc_client *rpc_client_new(const struct node_paths *paths, const char *node_uuid,
                                  const char *role)
{
    struct rpc_client *client = g_new0(struct rpc_client, 1);
    g_autofree char *luxi = node_paths_socket(paths, ROLE_LUXID);

    client->paths = paths;
    client->node_uuid = g_strdup(node_uuid);
    client->role = g_strdup(role);
    client->lines = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, drop_line);
    client->luxi = luxi_client_new(luxi);
    return client;
}

void rpc_client_free(struct rpc_client *client)
{
    GHashTableIter iter;
    void *line;

    if (client == NULL)
        return;
    g_hash_table_iter_init(&iter, client->lines);
    while (g_hash_table_iter_next(&iter, NULL, &line))
        connection_abandon(line);
    g_hash_table_unref(client->lines);
    luxi_client_free(client->luxi);
    g_free(client->node_uuid);
    g_free(client->role);
    g_free(client);
}
