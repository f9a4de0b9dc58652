/*
 * Network of the lab: a switch namespace with a bridge, a namespace per node, one cable each. In a
 * node the cable (eth0) is a port of the bridge br0, which has the node's address and takes the
 * cards of guests: so a guest keeps its address wherever it runs, and loses its network with its
 * node's cable. Names come from the layout, so labs do not meet.
 */
#pragma once

#include "lab/layout.h"

/* ENVIRONMENT, naming it, if a namespace of these names is there already. */
bool net_check_free(const char *prefix, GError **error);

bool net_make_switch(const struct layout *layout, GError **error);
/* Namespace, cable and address of a node. Its MAC address is always the same, as that of a card
 * would be. */
bool net_plug_node(const struct layout *layout, guint node, bool link, GError **error);
/* Takes the cable away, at once and in both directions: connections of processes that die after it
 * fall silent. */
bool net_cut_node(const struct layout *layout, guint node, GError **error);
/* Removes the namespace; no process may be left in it. */
bool net_remove_node(const struct layout *layout, guint node, GError **error);
bool net_set_link(const struct layout *layout, guint node, bool up, GError **error);

/* All namespaces whose names begin with `prefix`. */
GPtrArray *net_list(const char *prefix);
bool net_remove_all(const char *prefix, GError **error);

/* Opens a namespace, for setns(); -1 with errno. */
int net_open(const char *name);
