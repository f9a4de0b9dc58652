/*
 * Peers without a certificate, at the TLS port of the master: hosts that want to join. Such a peer
 * may ask wconfd's `join`, once, and nothing else. What it may send and how long it may stay are
 * bounded (LIMIT_JOIN…), and so is how many of them there are; whatever goes beyond ends it. Only
 * bus.c uses this.
 */
#pragma once

#include "io/net/rpc_client.h"

#include <gio/gio.h>

struct bus_joiners;

/* `self` and `daemons` are kept by reference. */
struct bus_joiners *bus_joiners_new(const char *self, struct rpc_client *daemons,
                                    void (*complain)(const char *line, void *data), void *data);
/* A peer whose TLS handshake is over; `place` is its address. `master`: this node is the master. */
void bus_joiners_accept(struct bus_joiners *joiners, GIOStream *stream, const char *place,
                        bool master);
void bus_joiners_free(struct bus_joiners *joiners);
