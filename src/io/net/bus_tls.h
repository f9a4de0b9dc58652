/*
 * TLS for the bus: reads the node's certificates, dials, accepts, and tells which node is at the
 * other end, proven by its certificate. Only bus.c uses it.
 */
#pragma once

#include "io/node_config.h"

#include <gio/gio.h>

struct bus_tls;

/* `node` is the peer's UUID. */
typedef void (*bus_tls_accepted_fn)(GIOStream *stream, const char *node, void *data);
/* Exactly one of stream and error is set. */
typedef void (*bus_tls_dialled_fn)(GIOStream *stream, const GError *error, void *data);

struct bus_tls_events {
    bus_tls_accepted_fn accepted;
    /* A peer without a certificate: nothing is proven. `place` is "192.0.2.7:41234". NULL: such
     * peers are refused. */
    void (*anonymous)(GIOStream *stream, const char *place, void *data);
    /* Whether a member has that address. */
    bool (*is_member)(const char *address, void *data);
    void (*complain)(const char *line, void *data);
};

/* Listens on the node's address and port. */
struct bus_tls *bus_tls_new(const struct node_paths *paths, const struct node_config *config,
                            const struct bus_tls_events *events, void *data, GError **error);
/* Incoming connections beyond so many handshakes under way with strangers are ended;
 * LIMIT_HANDSHAKES at first. Those with the addresses of members are none of them (SAF-109). */
/* Reads the certificates anew; what is there stays if they cannot be read. Connections that are
 * made from now on go by them. */
bool bus_tls_renew(struct bus_tls *tls, GError **error);
#define BUS_TLS_OLD "its certificate is of an authority that is not trusted any more"
/* Whether the peer of a connection would be believed now. */
bool bus_tls_trusts(const struct bus_tls *tls, GIOStream *stream);
/* Whether this node's certificate is still the one that the connection was made with. */
bool bus_tls_is_current(const struct bus_tls *tls, GIOStream *stream);
/* SHA-256 of the authority, of those trusted now, that has signed its certificate; NULL: none has.
 * Free with g_free(). */
char *bus_tls_signed_by(const struct bus_tls *tls, GIOStream *stream);
void bus_tls_limit(struct bus_tls *tls, guint handshakes);
/* Handshakes under way end without a callback. */
void bus_tls_free(struct bus_tls *tls);

struct bus_dial;
/* Connects to a node, for at most `limit_ms`, and makes sure that it is that one. */
struct bus_dial *bus_tls_dial(struct bus_tls *tls, const char *address, guint port,
                              const char *node, guint limit_ms, bus_tls_dialled_fn done,
                              void *data);
/* No callback any more; not after the callback. */
void bus_dial_cancel(struct bus_dial *dial);
