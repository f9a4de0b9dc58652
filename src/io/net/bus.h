/*
 * The bus between nodes; only fettle-noded has one. It serves noded.sock for the daemons of this
 * host and a TLS port for the noded of other nodes, and carries each request where its "to" says:
 * to noded's own handler, to a daemon of this host (run/ROLE.sock), to another node.
 *
 * TLS is mutual, against etc/ca.crt; the certificate's subject names cluster and node. Another CA,
 * TLS is mutual, against etc/ca.crt; the certificate's subject names cluster and node. Another CA,
 * another cluster, a node that is no member (unless there are no members yet): refused, with one
 * line that says why. A peer without a certificate may ask one thing, to join (bus_join.h). One
 * connection is used for each pair of nodes, whoever opened it. With each request of another node
 * goes which authority has signed its certificate (rpc_request.signed_by). A link that answers no
 * ping for BUS_DEAD_MS is closed, and what was outstanding on it fails at once.
 */
#pragma once

#include "io/node_config.h"
#include "proto/rpc.h"

#define BUS_PING_MS 1000
#define BUS_DEAD_MS 4000

struct bus;

struct bus_options {
    const struct node_paths *paths;   /* kept by reference until bus_free() */
    const struct node_config *config; /* kept by reference until bus_free() */
    guint ping_ms;                    /* 0: BUS_PING_MS */
    guint dead_ms;                    /* 0: BUS_DEAD_MS */
    guint handshakes;                 /* at most under way; 0: LIMIT_HANDSHAKES */

    /* Requests for role noded of this node, already checked; answers now or later. */
    void (*handle)(struct rpc_request *request, void *data);
    /* Members (struct member) and the master's UUID, "" if unknown; asked each time, borrowed until
     * the next turn. */
    const GPtrArray *(*members)(void *data);
    const char *(*master)(void *data);
    /* May this request pass to a role of this node? Asked for requests of other nodes to any role
     * here, and of local daemons to noded. */
    bool (*admit)(const char *from_node, const char *from_role, const struct method *method,
                  struct stamp stamp, GError **error, void *data);
    /* There is (again) a connection to the master, or this node is the master; may be NULL. */
    void (*master_reachable)(void *data);
    /* One line on a refusal or a lost link; may be NULL. */
    void (*complain)(const char *line, void *data);
    void *data;
};

/* Reads the certificates, listens on both. CORRUPT or STORAGE with the file, ENVIRONMENT if the
 * port is taken or TLS is not there. */
struct bus *bus_new(const struct bus_options *options, GError **error);
void bus_free(struct bus *bus);

/* To be called when the answers of members() or master() have changed: the link to the master is
 * kept up from here. */
void bus_members_changed(struct bus *bus);

/* Certificates have changed: reads them anew. Every connection is made anew when what is under way
 * on it has ended; one to a node that is not believed any more ends at once. */
bool bus_renew(struct bus *bus, GError **error);

/* noded's own calls; as env's call(). */
void bus_call(struct bus *bus, const struct rpc_call *call, rpc_reply_fn done, void *data);

/* Whether there is a link to that node right now. */
bool bus_connected(const struct bus *bus, const char *node_uuid);
