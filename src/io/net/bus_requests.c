/* Requests on the bus: which daemon of which node answers them, and who may ask; see bus.h. */
#include "io/net/bus_private.h"

#include <string.h>

#define RELAY_EXTRA_MS 2000 /* the caller's own limit is over first */

static guint relay_ms(const struct envelope *envelope, const char *role)
{
    const struct rpc_call call = {
        .to_role = role, .method = envelope->method, .args = envelope->args};
    guint limit = rpc_call_timeout_ms(&call);

    return limit == 0 ? 0 : limit + RELAY_EXTRA_MS;
}

/* --- relayed requests --- */

struct bus_relay {
    struct connection *asker;
    guint64 id;
};

struct bus_relay *bus_relay_new(struct connection *asker, const struct envelope *envelope)
{
    struct bus_relay *relay = g_new(struct bus_relay, 1);

    *relay = (struct bus_relay){connection_ref(asker), envelope->id};
    return relay;
}

void bus_relayed_cb(json_t *result, const GError *error, void *data)
{
    struct bus_relay *relay = data;

    connection_answer(relay->asker, relay->id, result, error);
    connection_unref(relay->asker);
    g_free(relay);
}

static void refuse(struct connection *asker, struct envelope *envelope, GError *error)
{
    connection_answer(asker, envelope->id, NULL, error);
    g_error_free(error);
    envelope_free(envelope);
}

/* To noded itself. */
static void serve(struct bus *bus, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;

    if (bus->options.admit(request->from_node, request->from_role, request->method, request->stamp,
                           &error, bus->options.data))
        bus->options.handle(request, bus->options.data);
    else
        rpc_fail(request, error);
}

static void serve_remote(struct bus *bus, struct connection *asker, struct envelope *envelope,
                         const char *from_node)
{
    struct rpc_request *request = connection_request(asker, envelope, from_node);
    g_autoptr(GError) error = NULL;

    if (rpc_request_check(request, ROLE_NODED, &error))
        serve(bus, request);
    else
        rpc_fail(request, error);
}

/* Who may call what is checked here, its arguments there. */
static bool may_call(const struct envelope *envelope, GError **error)
{
    const struct method *method = method_find(envelope->to_role, envelope->method);

    if (method == NULL) {
        fettle_set_error(error, PROTOCOL, "%s has no method \"%s\" for other nodes",
                         envelope->to_role, envelope->method);
        return false;
    }
    if (!method_allows(method, envelope->from.role)) {
        fettle_set_error(error, PERMISSION, "%s/%s: role \"%s\" may not call it", envelope->to_role,
                         envelope->method, envelope->from.role);
        return false;
    }
    return true;
}

/* Another node's request to a daemon of this host. */
static bool may_pass(struct bus *bus, const struct envelope *envelope, GError **error)
{
    const struct method *method = method_find(envelope->to_role, envelope->method);
    return may_call(envelope, error) &&
           bus->options.admit(envelope->from.node, envelope->from.role, method, envelope->stamp,
                              error, bus->options.data);
}

static bool check_remote(const struct bus *bus, const struct peer *peer,
                         const struct envelope *envelope, GError **error)
{
    if (strcmp(envelope->from.node, peer->node) != 0)
        fettle_set_error(error, PERMISSION, "from: is node %s, but the certificate is of node %s",
                         envelope->from.node, peer->node);
    else if (!bus_is_member(bus, peer->node))
        fettle_set_error(error, PERMISSION, "node %s is no member of this cluster", peer->node);
    else if (envelope->to_node[0] != '\0' && strcmp(envelope->to_node, bus->self) != 0)
        fettle_set_error(error, PROTOCOL,
                         "to: is node %s, but this is node %s; nodes pass nothing "
                         "on for each other",
                         envelope->to_node, bus->self);
    else
        return true;
    return false;
}

void bus_link_request(struct connection *connection, struct envelope *envelope, void *data)
{
    const struct link *link = data;
    const struct peer *peer = link->peer;
    struct bus *bus = peer->bus;
    GError *error = NULL;

    g_free(envelope->signed_by); /* whatever the peer says of itself */
    envelope->signed_by = g_strdup(link->signed_by);
    if (!check_remote(bus, peer, envelope, &error)) {
        refuse(connection, envelope, error);
        return;
    }
    if (envelope->to_role[0] == '\0' || strcmp(envelope->to_role, ROLE_NODED) == 0) {
        serve_remote(bus, connection, envelope, peer->node);
        return;
    }
    if (!may_pass(bus, envelope, &error)) {
        refuse(connection, envelope, error);
        return;
    }
    rpc_client_forward(bus->daemons, envelope->to_role, envelope,
                       relay_ms(envelope, envelope->to_role), bus_relayed_cb,
                       bus_relay_new(connection, envelope));
    envelope_free(envelope);
}

/* "master" becomes the node that it is. */
static bool resolve(const struct bus *bus, const char **node, GError **error)
{
    if (strcmp(*node, NODE_MASTER) != 0)
        return true;
    *node = bus_master_of(bus);
    if ((*node)[0] != '\0')
        return true;
    fettle_set_error(error, UNREACHABLE, "this node has not heard of a master yet");
    return false;
}

/* Whether what such a call asks must not rest on a connection that was begun before it. */
static bool is_fresh(const char *role, const char *method_name)
{
    const struct method *method = method_find(role[0] == '\0' ? ROLE_NODED : role, method_name);

    return method != NULL && method->timeout == TIMEOUT_FRESH;
}

bool bus_route_cb(struct connection *connection, struct envelope *envelope, void *data)
{
    struct bus *bus = data;
    const char *node = envelope->to_node;
    GError *error = NULL;

    g_clear_pointer(&envelope->signed_by, g_free);
    if (!resolve(bus, &node, &error)) {
        refuse(connection, envelope, error);
        return true;
    }
    if (node != envelope->to_node) {
        g_free(envelope->to_node);
        node = envelope->to_node = g_strdup(node);
    }
    bool here = node[0] == '\0' || strcmp(node, bus->self) == 0;
    if (here && (envelope->to_role[0] == '\0' || strcmp(envelope->to_role, ROLE_NODED) == 0))
        return false;
    /* It may be of another user than root, who chooses no socket of root's. */
    if (here && strcmp(envelope->from.role, ROLE_APID) == 0 && !may_call(envelope, &error)) {
        refuse(connection, envelope, error);
        return true;
    }
    guint limit = relay_ms(envelope, envelope->to_role);
    bool fresh = is_fresh(envelope->to_role, envelope->method);
    struct connection *line = here ? NULL : bus_line_to(bus, node, fresh, &error);
    if (here)
        rpc_client_forward(bus->daemons, envelope->to_role, envelope, limit, bus_relayed_cb,
                           bus_relay_new(connection, envelope));
    else if (line != NULL)
        connection_forward(line, envelope, bus->self, limit, bus_relayed_cb,
                           bus_relay_new(connection, envelope));
    if (error != NULL)
        refuse(connection, envelope, error);
    else
        envelope_free(envelope);
    return true;
}

void bus_handle_cb(struct rpc_request *request, void *data)
{
    serve(data, request);
}

void bus_call(struct bus *bus, const struct rpc_call *call, rpc_reply_fn done, void *data)
{
    struct rpc_call resolved = *call;
    GError *error = NULL;

    if (resolved.to_node == NULL)
        resolved.to_node = NODE_LOCAL;
    bool found = resolve(bus, &resolved.to_node, &error);
    bool here = resolved.to_node[0] == '\0' || strcmp(resolved.to_node, bus->self) == 0;
    bool fresh = is_fresh(resolved.to_role, resolved.method);
    struct connection *line =
        found && !here ? bus_line_to(bus, resolved.to_node, fresh, &error) : NULL;
    if (error != NULL) {
        g_prefix_error(&error, "%s/%s: ", call->to_role, call->method);
        json_decref(resolved.args);
        connection_fail_later(done, data, error);
    } else if (here) {
        rpc_client_call(bus->daemons, &resolved, done, data);
    } else {
        connection_call(line, &resolved, rpc_call_timeout_ms(&resolved), done, data);
    }
}
