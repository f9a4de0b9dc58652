/* See ports.h. */
#include "core/config/ports.h"

#include <string.h>

bool port_range_parse(const char *text, struct port_range *ret_range, GError **error)
{
    g_auto(GStrv) ends = g_strsplit(text, "-", 2);
    guint64 first = 0, last = 0;
    bool good = ends[0] && ends[1] &&
                g_ascii_string_to_unsigned(ends[0], 10, PORT_OF_DISPLAY_0, 65535, &first, NULL) &&
                g_ascii_string_to_unsigned(ends[1], 10, first, 65535, &last, NULL);
    if (good)
        *ret_range = (struct port_range){first, last};
    else
        fettle_set_error(error, WRONG_INPUT,
                         "port_range: \"%s\" is no range of ports from %d to 65535; one looks like "
                         "11000-14999",
                         text, PORT_OF_DISPLAY_0);
    return good;
}

static bool range_of(const struct config *config, const char **ret_text,
                     struct port_range *ret_range, GError **error)
{
    const struct cluster *cluster = config_cluster(config);
    if (!cluster) {
        fettle_set_error(error, UNKNOWN_ENTITY, "there is no cluster yet");
        return false;
    }
    *ret_text = cluster->port_range;
    return port_range_parse(cluster->port_range, ret_range, error);
}

/* What daemons of the cluster listen on, on one node or another. */
static GHashTable *daemon_ports(const struct config *config)
{
    const struct cluster *cluster = config_cluster(config);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    GHashTable *ports = g_hash_table_new(g_direct_hash, g_direct_equal);
    g_hash_table_add(ports, GUINT_TO_POINTER((guint)cluster->etcd_client_port));
    g_hash_table_add(ports, GUINT_TO_POINTER((guint)cluster->etcd_peer_port));
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        g_hash_table_add(ports, GUINT_TO_POINTER((guint)node->port));
    }
    return ports;
}

bool port_is_in_range(const struct config *config, guint64 port, GError **error)
{
    const char *text;
    struct port_range range;
    if (!range_of(config, &text, &range, error))
        return false;
    g_autoptr(GHashTable) daemons = daemon_ports(config);
    bool inside = port >= range.first && port <= range.last;
    bool used = g_hash_table_contains(daemons, GUINT_TO_POINTER((guint)port));
    if (inside && !used)
        return true;
    if (inside) {
        fettle_set_error(error, WRONG_INPUT,
                         "network_port: at %" G_GUINT64_FORMAT
                         " a daemon of the cluster listens; name another one, or let one be given "
                         "out",
                         port);
        return false;
    }
    fettle_set_error(error, WRONG_INPUT,
                     "network_port: %" G_GUINT64_FORMAT
                     " is not in the cluster's port_range, %s; see fettle cluster modify "
                     "--port-range",
                     port, text);
    return false;
}

bool display_is_everywhere(const char *address)
{
    return !strcmp(address, "0.0.0.0") || !strcmp(address, "::");
}

bool display_address_check(const char *address, GError **error)
{
    if (!*address || !strcmp(address, "127.0.0.1") || display_is_everywhere(address))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "vnc_bind_address: \"%s\" is no address that every node has; there are "
                     "127.0.0.1 (only from the node itself, or by a tunnel), 0.0.0.0, and :: with "
                     "IPv6 too (from everywhere, without a password)",
                     address);
    return false;
}

/* --- giving out --- */

static bool is_free(const struct config *config, guint64 port)
{
    g_autofree char *key = config_port_key(port);
    g_autofree char *user = config_address_user(config, key, "");
    return user == NULL;
}

bool port_draw(const struct config *config, guint64 *ret_port, GError **error)
{
    const char *text;
    struct port_range range;
    if (!range_of(config, &text, &range, error))
        return false;
    g_autoptr(GHashTable) daemons = daemon_ports(config);
    for (guint64 port = range.first; port <= range.last; port++) {
        if (g_hash_table_contains(daemons, GUINT_TO_POINTER((guint)port)) || !is_free(config, port))
            continue;
        *ret_port = port;
        return true;
    }
    fettle_set_error(error, LIMIT,
                     "port_range %s has no free port left; make it larger: fettle cluster modify "
                     "--port-range FIRST-LAST",
                     text);
    return false;
}
