/*
 * A daemon's Unix socket for the internal protocol: accepts, checks the peer's credentials (root,
 * our own user, noded also the API's), exchanges hellos, checks each request against the method
 * table (known, role allowed, arguments by record) and hands it on. Any number of requests may be
 * under way on a connection; answers go out as they come.
 *
 * Broken, oversized or wrong-version frames end the connection, never the daemon.
 */
#pragma once

#include "proto/rpc.h"

struct rpc_server;
struct connection;
struct envelope;

#define LIMIT_API_CONNECTIONS 8 /* of the API's user, who needs one for each front end */

struct rpc_server_options {
    const char
        *path; /* of the socket; mode 0600; a socket of a dead predecessor there is replaced */
    const char *role;      /* whose methods are served */
    const char *node_uuid; /* of this host: what `from` of local peers is */
    /* Answers by rpc_answer() or rpc_fail(), now or later. */
    void (*handle)(struct rpc_request *request, void *data);
    /* Only the bus: takes a request (and the envelope) that is for somebody else, and then answers
     * it; false: it is for this role. May be NULL. */
    bool (*route)(struct connection *connection, struct envelope *envelope, void *data);
    /* One line on a connection that was refused or ended for a fault; may be NULL. */
    void (*complain)(const char *line, void *data);
    void *data;
    /* Handlers take arguments by rpc_request_args() alone: request->args may be NULL. Requests are
     * read in one go then (reader.h). */
    bool reads_records;
    /* Whether a user who is neither root nor our own may come, and speak in the role `apid` alone;
     * NULL: none may. */
    bool (*is_api)(uid_t uid, void *data);
};

/* WRONG_STATE if another live process listens there, STORAGE if the socket cannot be made. */
struct rpc_server *rpc_server_new(const struct rpc_server_options *options, GError **error);
/* Closes every connection; requests under way may still be answered, to nobody. */
void rpc_server_free(struct rpc_server *server);
guint rpc_server_connections(const struct rpc_server *server);
