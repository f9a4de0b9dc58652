/*
 * A UDP socket that answers: each datagram is given to a function, whose result goes back to where
 * the datagram came from. Used by fettle-rconfd.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

struct udp_server;

struct udp_options {
    const char *address; /* of this host, IPv4 or IPv6; it need not be there yet */
    guint port;          /* 0: any free one */
    size_t max_bytes;    /* of one datagram; more is cut off, and told by its `len` */
    /* The reply, which is freed; NULL: none. `data` has min(len, max_bytes) bytes; `from` is the
     * address that it came from, without the port. */
    char *(*answer)(const char *from, const char *data, size_t len, size_t *ret_len, void *user);
    void *user;
};

/* WRONG_INPUT if the address is none, ENVIRONMENT if it is taken. */
struct udp_server *udp_server_new(const struct udp_options *options, GError **error);
/* Not from within `answer`. */
void udp_server_free(struct udp_server *server);
guint udp_server_port(const struct udp_server *server);

/* A socket connected to a peer, for asking: non-blocking, -1 with the error. The caller closes it.
 */
int udp_dial(const char *address, guint port, GError **error);
/* The same from an address of this host; NULL: the host chooses one. */
int udp_dial_from(const char *from, const char *address, guint port, GError **error);
