/*
 * Namespaces, bridge and cables (net.h), by iproute2.
 */
#include "lab/net.h"

#include "base/error.h"
#include "lab/run.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NETNS_FOLDER "/run/netns"
#define BUSY_TRIES 50
#define BUSY_PAUSE_US 10000

/* Runs lines of `ip` commands inside a namespace, NULL for the machine's own. */
static bool ip_batch(const char *netns, const char *lines, GError **error)
{
    const char *inside[] = {"ip", "-n", netns, "-batch", "-", NULL};
    const char *outside[] = {"ip", "-batch", "-", NULL};
    return run_program(netns ? inside : outside, lines, error);
}

bool net_check_free(const char *prefix, GError **error)
{
    g_autoptr(GPtrArray) names = net_list(prefix);
    if (names->len == 0)
        return true;
    const char *name = g_ptr_array_index(names, 0);
    fettle_set_error(
        error, ENVIRONMENT,
        "the network namespace %s exists already; remove it with `ip netns delete %s`, "
        "or choose another folder for the lab",
        name, name);
    return false;
}

/* Usable at once, without a look whether somebody else has it: nobody has. */
static char *address_words(const struct layout *layout, const char *address)
{
    g_autofree char *full = layout_with_prefix(layout, address);
    return g_strconcat(full, layout->ipv6 ? " nodad" : "", NULL);
}

bool net_make_switch(const struct layout *layout, GError **error)
{
    g_autofree char *name = layout_switch(layout);
    g_autofree char *add = g_strdup_printf("netns add %s\n", name);
    g_autofree char *own = layout_switch_address(layout);
    g_autofree char *address = address_words(layout, own);
    g_autofree char *inside = g_strdup_printf("link set lo up\n"
                                              "link add br0 address 02:00:0a:63:00:fe type bridge\n"
                                              "addr add %s dev br0\n"
                                              "link set br0 up\n",
                                              address);
    return ip_batch(NULL, add, error) && ip_batch(name, inside, error);
}

bool net_plug_node(const struct layout *layout, guint node, bool link, GError **error)
{
    g_autofree char *name = layout_netns(layout, node);
    g_autofree char *hub = layout_switch(layout);
    g_autofree char *own = layout_address(layout, node);
    g_autofree char *address = address_words(layout, own);
    g_autofree char *add = g_strdup_printf("netns add %s\n", name);
    g_autofree char *cable = g_strdup_printf(
        "link add p%u type veth peer name eth0 address 02:00:0a:63:00:%02x netns %s\n"
        "link set p%u master br0 %s\n",
        node, node, name, node, link ? "up" : "down");
    g_autofree char *inside =
        g_strdup_printf("link set lo up\n"
                        "link add br0 address 02:00:0a:63:00:%02x type bridge\n"
                        "link set eth0 master br0 up\n"
                        "addr add %s dev br0\n"
                        "link set br0 up\n",
                        node, address);
    return ip_batch(NULL, add, error) && ip_batch(hub, cable, error) &&
           ip_batch(name, inside, error);
}

bool net_cut_node(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *hub = layout_switch(layout);
    g_autofree char *lines = g_strdup_printf("link delete p%u\n", node);
    return ip_batch(hub, lines, error);
}

bool net_remove_node(const struct layout *layout, guint node, GError **error)
{
    g_autofree char *name = layout_netns(layout, node);
    g_autofree char *lines = g_strdup_printf("netns delete %s\n", name);
    return ip_batch(NULL, lines, error);
}

bool net_set_link(const struct layout *layout, guint node, bool up, GError **error)
{
    g_autofree char *hub = layout_switch(layout);
    g_autofree char *lines = g_strdup_printf("link set p%u %s\n", node, up ? "up" : "down");
    return ip_batch(hub, lines, error);
}

GPtrArray *net_list(const char *prefix)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *start = g_strdup_printf("%s-", prefix);
    g_autoptr(GDir) folder = g_dir_open(NETNS_FOLDER, 0, NULL);
    const char *name;
    while (folder && (name = g_dir_read_name(folder)))
        if (g_str_has_prefix(name, start))
            g_ptr_array_add(names, g_strdup(name));
    return names;
}

bool net_remove_all(const char *prefix, GError **error)
{
    g_autoptr(GError) local = NULL;
    /* A namespace that was being made when its maker was killed is busy for a moment more. */
    for (int try = 0; try < BUSY_TRIES; try++) {
        g_autoptr(GPtrArray) names = net_list(prefix);
        g_autoptr(GString) lines = g_string_new(NULL);
        if (names->len == 0)
            return true;
        for (guint i = 0; i < names->len; i++)
            g_string_append_printf(lines, "netns delete %s\n",
                                   (const char *)g_ptr_array_index(names, i));
        g_clear_error(&local);
        if (!ip_batch(NULL, lines->str, &local))
            g_usleep(BUSY_PAUSE_US);
    }
    if (local == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

int net_open(const char *name)
{
    g_autofree char *path = g_build_filename(NETNS_FOLDER, name, NULL);
    return open(path, O_RDONLY | O_CLOEXEC);
}
