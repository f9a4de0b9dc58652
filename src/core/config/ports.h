/*
 * Ports of guests' displays (instance.network_port). A display listens on whichever node runs its
 * guest, at the same port before and after a move, so the port must be free on every node: the
 * cluster gives it out, each once. Who has one stands in the configuration (instances and
 * reservations, config_address_user() with config_port_key()), so there is no second list. Pure.
 */
#pragma once

#include "core/config/model.h"

/* The port of display 0: lower ones cannot be said to QEMU. */
#define PORT_OF_DISPLAY_0 5900

/* First and last. */
struct port_range {
    guint64 first, last;
};

/* "11000-14999", from PORT_OF_DISPLAY_0 on; WRONG_INPUT. */
bool port_range_parse(const char *text, struct port_range *ret_range, GError **error);
/* WRONG_INPUT if the port is not one that the cluster gives out (now): it is not of the range, or a
 * daemon of the cluster is known to listen there. */
bool port_is_in_range(const struct config *config, guint64 port, GError **error);
/* WRONG_INPUT if `address` is not one that every node has; "" is none, and right. */
bool display_address_check(const char *address, GError **error);
/* Whoever reaches the node reaches the display too. */
bool display_is_everywhere(const char *address);

/* The lowest port of the range that no instance has, nobody has reserved and no daemon of the
 * cluster is known to listen on. LIMIT if there is none. */
bool port_draw(const struct config *config, guint64 *ret_port, GError **error);
