/*
 * The master IP as text: what is accepted as one. Pure. Used by core/ and by the command line.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* "192.0.2.10/24", "2001:db8::10/64": the address in its one spelling, to be freed, and the length
 * of the prefix. WRONG_INPUT for anything else, and for what no host can carry for others:
 * loopback, multicast, link-local and unspecified addresses. */
bool master_ip_parse(const char *text, char **ret_address, guint *ret_netmask, GError **error);
/* Whether two texts are the same address, however they are spelled; false if one is none. */
bool master_ip_same(const char *one, const char *other);
/* A name that a network device can have. WRONG_INPUT with what is wrong. */
bool master_ip_check_netdev(const char *netdev, GError **error);
