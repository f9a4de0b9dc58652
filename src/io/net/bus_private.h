/* Inside of the bus (bus.h): bus.c keeps links to other nodes, bus_requests.c says where requests
 * go. */
#pragma once

#include "io/net/bus.h"
#include "io/net/connection.h"
#include "io/net/rpc_client.h"
#include "io/net/rpc_server.h"

#include <gio/gio.h>

struct bus {
    struct bus_options options;
    const char *self; /* UUID of this node */
    struct bus_tls *tls;
    struct bus_joiners *joiners;
    struct rpc_server *server;  /* noded.sock */
    struct rpc_client *daemons; /* of this host */
    GHashTable *peers;          /* UUID -> struct peer */
    guint master_timer;
    bool was_master;
};

/* Another node. */
struct peer {
    struct bus *bus;
    char *node;
    GPtrArray *links;     /* all that are not closed */
    struct link *current; /* up, used for new calls */
    struct link *dialling;
    guint backoff_ms;
    gint64 next_dial_ms;
    char *last_failure;
};

/* One connection with another node. */
struct link {
    struct peer *peer;
    bool ours; /* we dialled */
    struct connection *connection;
    struct bus_dial *dial;
    GIOStream *stream; /* of TLS, once it is made, */
    char *signed_by;   /* and the authority that has signed the peer's certificate */
    guint retire_timer;
    bool old; /* of certificates that one side has no more: nothing begins on it again */
};

/* --- bus.c --- */

bool bus_is_member(const struct bus *bus, const char *node);
/* UUID of the node that is the master, as far as this node has heard; "". */
const char *bus_master_of(const struct bus *bus);
/* A connection to a node, which may still be dialled. `fresh`: if none is up, or that gives no sign
 * of life, one that begins now. UNREACHABLE with the reason why there can be none. */
struct connection *bus_line_to(struct bus *bus, const char *node, bool fresh, GError **error);

/* --- bus_requests.c --- */

/* A request of `asker` that somebody else answers: what rpc_client_forward() is given with
 * bus_relayed_cb(), which passes the answer on. */
struct bus_relay;
struct bus_relay *bus_relay_new(struct connection *asker, const struct envelope *envelope);
void bus_relayed_cb(json_t *result, const GError *error, void *relay);

/* From another node; `data` is its link. */
void bus_link_request(struct connection *connection, struct envelope *envelope, void *data);
/* From a daemon of this host: what is not for noded of this host is taken. `data` is the bus. */
bool bus_route_cb(struct connection *connection, struct envelope *envelope, void *data);
/* The rest. */
void bus_handle_cb(struct rpc_request *request, void *data);
