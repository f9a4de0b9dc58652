/*
 * How many bytes have passed by connections of other processes of this host, as the kernel has
 * counted them (sock_diag): who serves is asked for nothing, and need not be looked into.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* Of all that are established at a local port, of this network: what has come, and what was sent
 * and acknowledged. False: it cannot be seen. */
bool tcp_moved(guint64 port, guint64 *ret_received, guint64 *ret_sent);
