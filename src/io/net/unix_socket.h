/*
 * Unix sockets: listening ones that let in root and our own user only, and connecting. Used by
 * rpc_server.c, luxi_server.c, bus.c and the clients.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct unix_listener;

struct unix_listener_events {
    /* A connection of somebody who may come; the descriptor is the callee's. */
    void (*accepted)(int fd, void *data);
    /* Whether a user who is neither root nor the daemon's own may come; NULL: none may. */
    bool (*may_come)(uid_t uid, void *data);
    /* One line on somebody who may not; may be NULL. */
    void (*complain)(const char *line, void *data);
};

/* Mode 0600. A socket that a dead process left behind is replaced; WRONG_STATE if a live one
 * listens there. */
struct unix_listener *unix_listener_new(const char *path, const struct unix_listener_events *events,
                                        void *data, GError **error);
/* Removes the socket. */
void unix_listener_free(struct unix_listener *listener);

/* The account behind a connection, as it logged in (also after sudo), or the present one if the
 * host does not keep that; "#1000" if /etc/passwd has no name for it (no directory service is
 * asked, which might hang); NULL: it has gone. Free with g_free(). */
char *unix_peer_user(int fd);

/* The user of the process behind a connection; G_MAXUINT32: it has gone. */
uid_t unix_peer_uid(int fd);

/* A connected, non-blocking descriptor; -1 with UNREACHABLE. */
int unix_connect(const char *path, GError **error);
