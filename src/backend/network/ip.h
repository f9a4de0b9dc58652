/*
 * The program ip (iproute2): changes as batches, what there is as JSON. In a task.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/* Does the lines, in one process; stops at the first that fails: ENVIRONMENT with what ip said.
 * `family`: AF_INET or AF_INET6, which addresses, routes and rules need; AF_UNSPEC otherwise. */
bool ip_batch(int family, const char *lines, GError **error);

/* `ip -details -json link show …`: an array of interfaces. `dev` NULL: all; `kind` NULL: of any
 * kind. An interface that is not there is an empty array. */
json_t *ip_links(const char *dev, const char *kind, GError **error);

/* Members of an interface; "" or 0 if it has none of that name. */
const char *ip_link_kind(const json_t *link);
const char *ip_link_text(const json_t *link, const char *member);
guint ip_link_mtu(const json_t *link);
