/*
 * What the lab needs from the machine, checked before anything is touched.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* ENVIRONMENT with one sentence if we are not root. */
bool tools_check_root(GError **error);
/* ENVIRONMENT if this machine has no IPv6. */
bool tools_check_ipv6(GError **error);
/* ENVIRONMENT, naming the package, if a program is missing; `guests`: also those that run
 * instances. */
bool tools_check(bool guests, GError **error);
