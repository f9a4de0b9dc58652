/*
 * luxid's socket: the LUXI protocol as Ganeti's clients speak it. Frames as in the internal
 * protocol, but no hello, no ids: requests of a connection are handled one after the other, the
 * next one when the answers to the former ones have been taken, but for LIMIT_UNREAD_BYTES: so much
 * and one answer is all that is kept for a client, and one that takes nothing is dropped
 * (channel.h). A request becomes a struct rpc_request with the
 * method's name, the positional array as args, from_role "cli" and no method row.
 *
 * Who may come are root and our own user, and the one that speaks for others: the REST daemon,
 * whose requests may say for which of its users they are. Of anybody else such a request is
 * refused; one of that user that says nothing is of LUXI_REST_USER alone. The socket is opened to
 * that user by an access control list; where that cannot be, one line says so, and the others are
 * served.
 *
 * A request that cannot be parsed is answered with a plain string and the connection is closed. A
 * handler that finds a request unparsable (unknown method, malformed opcode) says so by failing it
 * with PROTOCOL: it is then answered the same way, "Failed to parse request: MESSAGE". Every other
 * error is answered as [class, [message, code]].
 */
#pragma once

#include "proto/rpc.h"

struct luxi_server;

struct luxi_server_options {
    const char *path;      /* of the socket; mode 0600 */
    uid_t speaker;         /* who speaks for others; ours: no other user may come */
    enum face face;        /* of who comes there */
    const char *node_uuid; /* of this host */
    void (*handle)(struct rpc_request *request, void *data);
    void (*complain)(const char *line, void *data); /* may be NULL */
    void *data;
    guint patience_ms; /* with whoever does not read; 0: LIMIT_SLOW_READER_MS */
};

struct luxi_server *luxi_server_new(const struct luxi_server_options *options, GError **error);
void luxi_server_free(struct luxi_server *server);
guint luxi_server_connections(const struct luxi_server *server);
