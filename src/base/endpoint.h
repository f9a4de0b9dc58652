/*
 * An address and a port in one text. An IPv6 address has colons of its own, so it stands in
 * brackets before a colon; whoever joins the two uses this.
 */
#pragma once

#include <glib.h>

/* "192.0.2.1:1811", "[2001:db8::1]:1811"; free with g_free(). */
char *endpoint_text(const char *address, guint64 port);
/* The address as it stands before a colon: "192.0.2.1", "[2001:db8::1]"; free with g_free(). */
char *endpoint_host(const char *address);
