/* See bus.h. This file: links to other nodes. Where requests go is bus_requests.c, TLS is
 * bus_tls.c. */
#include "io/api_place.h"
#include "io/net/bus_private.h"

#include "io/loop.h"
#include "io/net/bus_join.h"
#include "io/net/bus_tls.h"
#include "io/real_env.h"
#include "proto/master_ip.h"

#include <string.h>

#define MASTER_CHECK_MS 500
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MOST_MS 1000
#define BACKOFF_REFUSED_MS 10000 /* a node that does not want us */
#define RETIRE_MS 5000

static void complain(struct bus *bus, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void complain(struct bus *bus, const char *format, ...)
{
    va_list args;

    if (bus->options.complain == NULL)
        return;
    va_start(args, format);
    g_autofree char *line = g_strdup_vprintf(format, args);
    va_end(args);
    bus->options.complain(line, bus->options.data);
}

/* --- members --- */

static const struct member *find_member(const struct bus *bus, const char *node)
{
    const GPtrArray *members = bus->options.members(bus->options.data);

    for (guint i = 0; members != NULL && i < members->len; i++) {
        const struct member *member = members->pdata[i];
        if (strcmp(member->uuid, node) == 0)
            return member;
    }
    return NULL;
}

/* A node that knows no members yet lets in any node of its cluster, so that the master can announce
 * itself. */
bool bus_is_member(const struct bus *bus, const char *node)
{
    const GPtrArray *members = bus->options.members(bus->options.data);

    return members == NULL || members->len == 0 || find_member(bus, node) != NULL;
}

const char *bus_master_of(const struct bus *bus)
{
    const char *master = bus->options.master(bus->options.data);
    return master != NULL ? master : "";
}

static const char *name_of(const struct bus *bus, const char *node)
{
    const struct member *member = find_member(bus, node);
    return member != NULL ? member->name : node;
}

/* --- life of peers and links --- */

static struct peer *peer_of(struct bus *bus, const char *node)
{
    struct peer *peer = g_hash_table_lookup(bus->peers, node);

    if (peer != NULL)
        return peer;
    peer = g_new0(struct peer, 1);
    peer->bus = bus;
    peer->node = g_strdup(node);
    peer->links = g_ptr_array_new();
    g_hash_table_insert(bus->peers, peer->node, peer);
    return peer;
}

static void link_free(struct link *link)
{
    bus_dial_cancel(link->dial);
    loop_timer_cancel(link->retire_timer);
    connection_unref(link->connection);
    g_clear_object(&link->stream);
    g_free(link->signed_by);
    g_free(link);
}

static void peer_free(void *data)
{
    struct peer *peer = data;

    for (guint i = 0; i < peer->links->len; i++) {
        struct link *link = peer->links->pdata[i];
        connection_abandon(link->connection);
        link_free(link);
    }
    g_ptr_array_unref(peer->links);
    g_free(peer->last_failure);
    g_free(peer->node);
    g_free(peer);
}

static bool link_admit(struct connection *connection, const struct peer_name *from, GError **error,
                       void *data);
static void link_up(struct connection *connection, void *data);
static void link_closed(struct connection *connection, const GError *why, void *data);

static const struct connection_events link_events = {
    .admit = link_admit,
    .up = link_up,
    .request = bus_link_request,
    .closed = link_closed,
};

static struct link *link_new(struct peer *peer, bool ours)
{
    struct bus *bus = peer->bus;
    struct link *link = g_new0(struct link, 1);
    g_autofree char *what = g_strdup_printf("node %s", name_of(bus, peer->node));
    const struct connection_options options = {
        .what = what,
        .dials = ours,
        .node = bus->self,
        .role = ROLE_NODED,
        .events = &link_events,
        .data = link,
    };

    link->peer = peer;
    link->ours = ours;
    link->connection = connection_new(&options);
    g_ptr_array_add(peer->links, link);
    return link;
}

static bool link_admit(struct connection *connection, const struct peer_name *from, GError **error,
                       void *data)
{
    const struct link *link = data;
    const struct peer *peer = link->peer;

    if (strcmp(from->node, peer->node) != 0 || strcmp(from->role, ROLE_NODED) != 0) {
        fettle_set_error(error, PERMISSION, "from: is %s/%s, but the certificate is of node %s",
                         from->node, from->role, peer->node);
        return false;
    }
    if (bus_is_member(peer->bus, peer->node))
        return true;
    fettle_set_error(error, PERMISSION,
                     "node %s is no member of this cluster: it was never added, or it was removed "
                     "and its certificate is revoked; it joins with a token of `fettle node "
                     "invite`",
                     peer->node);
    return false;
}

static void retire_cb(void *data)
{
    struct link *link = data;

    link->retire_timer = 0;
    if (connection_is_idle(link->connection))
        connection_close(link->connection, NULL);
    else
        link->retire_timer = loop_timer(RETIRE_MS, retire_cb, link);
}

/* What is under way on it ends there; nothing new starts. */
static void retire(struct link *link)
{
    if (link->retire_timer == 0)
        link->retire_timer = loop_timer(RETIRE_MS, retire_cb, link);
}

static void tell_master_reachable(struct bus *bus, const char *node)
{
    if (bus->options.master_reachable != NULL && strcmp(bus_master_of(bus), node) == 0)
        bus->options.master_reachable(bus->options.data);
}

/* One that was made before: what is under way on it ends there, and another one is made at once, by
 * which the other side knows – unless its peer is not believed any more. */
static void renew_link(struct bus *bus, struct link *link)
{
    g_autoptr(GError) why = NULL;
    if (link->stream == NULL)
        return;
    if (!bus_tls_trusts(bus->tls, link->stream)) {
        fettle_set_error(&why, UNREACHABLE, BUS_TLS_OLD);
        connection_close(link->connection, why);
        return;
    }
    bool was_current = link->peer->current == link;
    link->old = true;
    retire(link);
    if (!was_current)
        return;
    link->peer->current = NULL;
    bus_line_to(bus, link->peer->node, false, NULL);
}

static bool is_same_peer(const struct link *one, const struct link *other)
{
    return g_tls_certificate_is_same(
        g_tls_connection_get_peer_certificate(G_TLS_CONNECTION(one->stream)),
        g_tls_connection_get_peer_certificate(G_TLS_CONNECTION(other->stream)));
}

/* Both nodes may have dialled at once; both then choose the same link. A second one from the same
 * side means that the first is dead there; one with another certificate, that the peer has
 * forgotten that of the first. One that began before this node had the certificate of now is left
 * like those that were up then. */
static void link_up(struct connection *connection, void *data)
{
    struct link *link = data;
    struct peer *peer = link->peer;
    struct bus *bus = peer->bus;
    struct link *former = peer->current;

    if (peer->dialling == link)
        peer->dialling = NULL;
    peer->backoff_ms = 0;
    connection_heartbeat(connection, bus->options.ping_ms, bus->options.dead_ms);
    bool ours_wins = strcmp(bus->self, peer->node) < 0;
    if (link->old || !bus_tls_is_current(bus->tls, link->stream)) {
        peer->current = former ? former : link;
        renew_link(bus, link);
        return;
    }
    if (former != NULL && !is_same_peer(former, link)) {
        former->old = true;
    } else if (former != NULL && former->ours != link->ours && link->ours != ours_wins) {
        retire(link);
        return;
    }
    peer->current = link;
    if (former != NULL)
        retire(former);
    else
        tell_master_reachable(bus, peer->node);
}

/* A link that had to stand back, but lives. */
static void take_spare(struct peer *peer)
{
    peer->current = NULL;
    for (guint i = 0; i < peer->links->len && peer->current == NULL; i++) {
        struct link *spare = peer->links->pdata[i];
        if (spare->old || !connection_is_up(spare->connection))
            continue;
        loop_timer_cancel(spare->retire_timer);
        spare->retire_timer = 0;
        peer->current = spare;
    }
}

static void link_closed(struct connection *connection, const GError *why, void *data)
{
    struct link *link = data;
    struct peer *peer = link->peer;
    const char *text = why != NULL ? why->message : "the node ended the connection";

    if (peer->current == link || (!link->ours && why != NULL))
        complain(peer->bus, "bus: link to node %s lost: %s", name_of(peer->bus, peer->node), text);
    bool was_current = peer->current == link;
    if (peer->dialling == link) {
        peer->dialling = NULL;
        bool refused = why != NULL && fettle_error_is(why, PERMISSION);
        peer->backoff_ms = CLAMP(peer->backoff_ms * 2, BACKOFF_FIRST_MS, BACKOFF_MOST_MS);
        peer->next_dial_ms = loop_boot_ms() + (refused ? BACKOFF_REFUSED_MS : peer->backoff_ms);
        if (g_strcmp0(peer->last_failure, text) != 0)
            complain(peer->bus, "bus: no link to node %s: %s", name_of(peer->bus, peer->node),
                     text);
        g_free(peer->last_failure);
        peer->last_failure = g_strdup(text);
    }
    g_ptr_array_remove(peer->links, link);
    link_free(link);
    if (was_current)
        take_spare(peer);
}

/* --- dialling and accepting --- */

static void use_stream(struct link *link, GIOStream *stream)
{
    link->stream = g_object_ref(stream);
    link->signed_by = bus_tls_signed_by(link->peer->bus->tls, stream);
    connection_use(link->connection, transport_stream(stream));
}

static void dialled_cb(GIOStream *stream, const GError *error, void *data)
{
    struct link *link = data;

    link->dial = NULL;
    if (error != NULL)
        connection_close(link->connection, error);
    else
        use_stream(link, stream);
}

static void dial(struct peer *peer, const struct member *member, guint limit_ms)
{
    struct link *link = link_new(peer, true);

    peer->dialling = link;
    link->dial = bus_tls_dial(peer->bus->tls, member->address, (guint)member->port, peer->node,
                              limit_ms, dialled_cb, link);
}

static void accepted_cb(GIOStream *stream, const char *node, void *data)
{
    struct bus *bus = data;

    if (strcmp(node, bus->self) == 0) {
        complain(bus, "bus: connection refused: its certificate is that of this very node");
        return;
    }
    if (!bus_is_member(bus, node))
        complain(bus, "bus: node %s refused: it is no member of this cluster", node);
    /* Its reason is told in the answer to its hello. */
    use_stream(link_new(peer_of(bus, node), false), stream);
}

/* Only the master can let a host join. */
static void anonymous_cb(GIOStream *stream, const char *place, void *data)
{
    struct bus *bus = data;

    bus_joiners_accept(bus->joiners, stream, place, strcmp(bus_master_of(bus), bus->self) == 0);
}

/* One that misses beats may be dead already, which shows later only. */
static bool is_heard(const struct link *link)
{
    return connection_silent_ms(link->connection) <= 2 * (gint64)link->peer->bus->options.ping_ms;
}

struct connection *bus_line_to(struct bus *bus, const char *node, bool fresh, GError **error)
{
    const struct member *member = find_member(bus, node);
    struct peer *peer = g_hash_table_lookup(bus->peers, node);

    if (peer != NULL && peer->current != NULL && (!fresh || is_heard(peer->current)))
        return peer->current->connection;
    if (member == NULL) {
        fettle_set_error(error, UNREACHABLE, "node %s is not known here", node);
        return NULL;
    }
    peer = peer_of(bus, node);
    if (fresh) {
        dial(peer, member, LIMIT_FRESH_DIAL_MS); /* beside one that may have begun long ago */
    } else if (peer->dialling == NULL) {
        if (loop_boot_ms() < peer->next_dial_ms) {
            fettle_set_error(error, UNREACHABLE, "node %s: not delivered: %s", member->name,
                             peer->last_failure);
            return NULL;
        }
        dial(peer, member, LIMIT_DIAL_MS);
    }
    return peer->dialling->connection;
}

/* --- the master --- */

/* Keeps the link to the master up. */
static void master_cb(void *data)
{
    struct bus *bus = data;
    const char *master = bus_master_of(bus);
    bool self = strcmp(master, bus->self) == 0;

    bus->master_timer = loop_timer(MASTER_CHECK_MS, master_cb, bus);
    if (self && !bus->was_master)
        tell_master_reachable(bus, bus->self);
    bus->was_master = self;
    if (!self && master[0] != '\0')
        bus_line_to(bus, master, false, NULL);
}

static void drop_strangers(struct bus *bus)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, bus->peers);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct peer *peer = value;
        g_autoptr(GError) why = NULL;
        if (bus_is_member(bus, peer->node))
            continue;
        fettle_set_error(&why, PERMISSION, "the node is no member any more");
        for (guint i = 0; i < peer->links->len; i++)
            connection_close(((struct link *)peer->links->pdata[i])->connection, why);
    }
}

void bus_members_changed(struct bus *bus)
{
    drop_strangers(bus);
    loop_timer_cancel(bus->master_timer);
    bus->master_timer = loop_timer(0, master_cb, bus);
}

/* --- other certificates --- */

static void renew_links(struct bus *bus)
{
    g_autoptr(GList) peers = g_hash_table_get_values(bus->peers);
    for (GList *at = peers; at != NULL; at = at->next) {
        const struct peer *peer = at->data;
        g_autoptr(GPtrArray) links = g_ptr_array_copy(peer->links, NULL, NULL);
        for (guint i = 0; i < links->len; i++)
            renew_link(bus, links->pdata[i]);
    }
}

bool bus_renew(struct bus *bus, GError **error)
{
    if (!bus_tls_renew(bus->tls, error))
        return false;
    renew_links(bus);
    bus_members_changed(bus);
    return true;
}

bool bus_connected(const struct bus *bus, const char *node_uuid)
{
    const struct peer *peer = g_hash_table_lookup(bus->peers, node_uuid);
    return peer != NULL && peer->current != NULL;
}

/* --- life --- */

static void call_cb(void *carrier, const struct rpc_call *call, rpc_reply_fn done, void *data)
{
    bus_call(carrier, call, done, data);
}

void real_env_set_bus(struct env *env, struct bus *bus)
{
    real_env_set_call(env, call_cb, bus);
}

static void complain_cb(const char *line, void *data)
{
    complain(data, "%s", line);
}

static bool is_api_cb(uid_t uid, void *data)
{
    const struct bus *bus = data;
    struct api_owner user;
    return api_user_of(bus->options.paths, &user) && user.uid == uid;
}

static bool has_address_cb(const char *address, void *data)
{
    const struct bus *bus = data;
    const GPtrArray *members = bus->options.members(bus->options.data);

    for (guint i = 0; members != NULL && i < members->len; i++)
        if (master_ip_same(((const struct member *)members->pdata[i])->address, address))
            return true;
    return false;
}

static const struct bus_tls_events tls_events = {accepted_cb, anonymous_cb, has_address_cb,
                                                 complain_cb};

struct bus *bus_new(const struct bus_options *options, GError **error)
{
    struct bus *bus = g_new0(struct bus, 1);
    g_autofree char *socket = node_paths_socket(options->paths, ROLE_NODED);
    g_autoptr(GError) local = NULL;
    const struct rpc_server_options server = {
        .path = socket,
        .role = ROLE_NODED,
        .node_uuid = options->config->node_uuid,
        .handle = bus_handle_cb,
        .route = bus_route_cb,
        .complain = complain_cb,
        .is_api = is_api_cb,
        .data = bus,
    };

    bus->options = *options;
    if (bus->options.ping_ms == 0)
        bus->options.ping_ms = BUS_PING_MS;
    if (bus->options.dead_ms == 0)
        bus->options.dead_ms = BUS_DEAD_MS;
    bus->self = options->config->node_uuid;
    bus->peers = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, peer_free);
    bus->daemons = rpc_client_new(options->paths, bus->self, ROLE_NODED);
    bus->joiners = bus_joiners_new(bus->self, bus->daemons, complain_cb, bus);
    bus->tls = bus_tls_new(options->paths, options->config, &tls_events, bus, error);
    if (bus->tls != NULL && options->handshakes > 0)
        bus_tls_limit(bus->tls, options->handshakes);
    bus->server = bus->tls != NULL ? rpc_server_new(&server, error) : NULL;
    if (bus->server == NULL)
        g_clear_pointer(&bus, bus_free);
    else
        bus_members_changed(bus);
    if (bus != NULL && !api_place_admit(options->paths, &local))
        complain(bus, "%s", local->message);
    return bus;
}

void bus_free(struct bus *bus)
{
    if (bus == NULL)
        return;
    loop_timer_cancel(bus->master_timer);
    g_clear_pointer(&bus->server, rpc_server_free);
    bus_joiners_free(bus->joiners);
    g_hash_table_unref(bus->peers);
    rpc_client_free(bus->daemons);
    bus_tls_free(bus->tls);
    g_free(bus);
}
