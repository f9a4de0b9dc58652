/*
 * Tap devices, bridges and routes by ip and ovs-vsctl. See network_linux.h.
 *
 * Every call can be repeated: what is there is brought to the state that is wanted. What stands in
 * a batch of ip is checked first, since it has a syntax.
 */
#include "backend/network/network_linux.h"

#include "backend/network/address.h"
#include "backend/network/ip.h"
#include "backend/network/known_bridges.h"
#include "backend/network/tap.h"
#include "backend/tool.h"
#include "base/limits.h"
#include "io/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define OVS "ovs-vsctl"
#define OVS_NO_SUCH_BRIDGE 2 /* exit code of br-exists */

struct network_linux {
    struct network_driver base;
    struct known_bridges bridges;
};

/* --- what a card asks for --- */

static bool check_word(const char *what, const char *word, GError **error)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    if (word[0] != '\0' && word[0] != '-' && strspn(word, letters) == strlen(word) &&
        strlen(word) < TAP_NAME_BYTES)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "%s \"%s\": 1 to 15 letters, digits, dots, dashes and underscores are needed",
                     what, word);
    return false;
}

static bool check_bridge(const char *name, guint *ret_mtu, GError **error)
{
    if (!check_word("bridge", name, error))
        return false;
    json_autoptr found = ip_links(name, NULL, error);
    if (found == NULL)
        return false;
    const json_t *link = json_array_get(found, 0);
    if (link == NULL) {
        fettle_set_error(error, ENVIRONMENT,
                         "bridge %s does not exist on this node; make it, or give the card another "
                         "link",
                         name);
        return false;
    }
    if (strcmp(ip_link_kind(link), "bridge") != 0) {
        fettle_set_error(error, ENVIRONMENT,
                         "%s is no bridge on this node; give the card another link", name);
        return false;
    }
    *ret_mtu = ip_link_mtu(link);
    return true;
}

/* AF_INET or AF_INET6; 0 with the error. */
static int check_address(const struct nic *nic, GError **error)
{
    guint8 bytes[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, nic->ip, bytes) == 1)
        return AF_INET;
    if (inet_pton(AF_INET6, nic->ip, bytes) == 1)
        return AF_INET6;
    fettle_set_error(error, WRONG_INPUT,
                     "network card %s is routed and needs an address, not \"%s\"", nic->mac,
                     nic->ip);
    return 0;
}

static bool ovs_run(const char *const *words, int ok_code, int *ret_code, char **ret_output,
                    GError **error)
{
    const char *argv[16] = {OVS, "--timeout=5"};
    for (guint i = 0; words[i] != NULL && i + 3 < G_N_ELEMENTS(argv); i++)
        argv[i + 2] = words[i];
    g_autofree char *output = NULL;
    *ret_code = tool_run(argv, NULL, LIMIT_NETWORK_TOOL_MS, &output, error);
    if (*ret_code > 0 && *ret_code != ok_code) {
        g_autofree char *said = tool_last_words(output);
        if (strstr(said, "database connection failed") != NULL)
            fettle_set_error(
                error, ENVIRONMENT,
                "Open vSwitch does not run on this node (ovs-vsctl: %s); start it with: "
                "systemctl start openvswitch-switch, or give the card the mode bridged",
                said);
        else
            fettle_set_error(error, ENVIRONMENT, "ovs-vsctl: %s", said);
        return false;
    }
    if (*ret_code >= 0 && ret_output != NULL)
        *ret_output = g_steal_pointer(&output);
    return *ret_code >= 0;
}

static bool ovs_is_there(void)
{
    g_autofree char *path = g_find_program_in_path(OVS);
    return path != NULL;
}

static bool check_ovs(const char *bridge, GError **error)
{
    const char *words[] = {"br-exists", bridge, NULL};
    int code;
    if (!check_word("bridge", bridge, error))
        return false;
    if (!ovs_is_there()) {
        fettle_set_error(error, ENVIRONMENT,
                         "the program ovs-vsctl is missing on this node, so no card can be "
                         "connected to the Open vSwitch bridge %s; install openvswitch-switch, or "
                         "give the card the mode bridged",
                         bridge);
        return false;
    }
    if (!ovs_run(words, OVS_NO_SUCH_BRIDGE, &code, NULL, error))
        return false;
    if (code == 0)
        return true;
    fettle_set_error(
        error, ENVIRONMENT,
        "Open vSwitch bridge %s does not exist on this node; make it, or give the card "
        "another link",
        bridge);
    return false;
}

static bool check_nic(const struct nic *nic, guint *ret_mtu, GError **error)
{
    *ret_mtu = 0;
    switch (nic->mode) {
    case NIC_BRIDGED:
        return check_bridge(nic->link, ret_mtu, error);
    case NIC_ROUTED:
        return check_address(nic, error) != 0 &&
               (nic->link[0] == '\0' || check_word("routing table", nic->link, error));
    case NIC_OPENVSWITCH:
        return check_ovs(nic->link, error);
    }
    g_assert_not_reached();
}

static bool linux_check(struct network_driver *network, const struct nic *nic, GError **error)
{
    guint mtu;
    return check_nic(nic, &mtu, error);
}

/* --- making a tap device --- */

/* Whether it is there already; a device of that name that is not ours is refused. */
static bool find_tap(const char *name, const char *instance, bool *ret_there, GError **error)
{
    json_autoptr found = ip_links(name, NULL, error);
    if (found == NULL)
        return false;
    const json_t *link = json_array_get(found, 0);
    const char *alias = ip_link_text(link, "ifalias");
    enum nic_mode mode;
    g_autofree char *owner = tap_alias_parse(alias, &mode);
    *ret_there = link != NULL;
    if (link == NULL || g_strcmp0(owner, instance) == 0 ||
        (alias[0] == '\0' && strcmp(ip_link_kind(link), "tun") == 0))
        return true; /* without an alias: ours, from a moment before a death */
    fettle_set_error(error, ENVIRONMENT,
                     "interface %s is there already and belongs to \"%s\", not to instance %s; "
                     "remove it with `ip link delete %s`",
                     name, alias[0] != '\0' ? alias : ip_link_kind(link), instance, name);
    return false;
}

/* A bridge takes the lowest address of its ports as its own; one that begins with fe leaves the
 * bridge that of its real card. */
static char *host_mac(const char *mac)
{
    g_autofree char *lower = g_ascii_strdown(mac, -1);
    return strspn(lower, "0123456789abcdef:") == 17 ? g_strdup_printf("fe%s", lower + 2) : NULL;
}

static bool check_mac(const char *mac, char **ret_host_mac, GError **error)
{
    *ret_host_mac = host_mac(mac);
    if (*ret_host_mac == NULL)
        fettle_set_error(error, WRONG_INPUT, "\"%s\" is no MAC address", mac);
    return *ret_host_mac != NULL;
}

/* What only concerns the device itself; routes and Open vSwitch come after it. */
static char *device_lines(const char *name, const char *alias, const char *mac,
                          const struct nic *nic, bool there, guint mtu)
{
    GString *lines = g_string_new(NULL);
    /* What is nobody's, anybody may open. */
    if (!there)
        g_string_append_printf(lines, "tuntap add dev %s mode tap user %u\n", name, geteuid());
    g_string_append_printf(lines, "link set dev %s alias \"%s\"\n", name, alias);
    g_string_append_printf(lines, "link set dev %s address %s\n", name, mac);
    if (mtu != 0)
        g_string_append_printf(lines, "link set dev %s mtu %u\n", name, mtu);
    if (nic->mode == NIC_BRIDGED)
        g_string_append_printf(lines, "link set dev %s master %s\n", name, nic->link);
    g_string_append_printf(lines, "link set dev %s up\n", name);
    return g_string_free(lines, FALSE);
}

static bool write_setting(const char *family, const char *name, const char *setting,
                          const char *value, GError **error)
{
    g_autofree char *path = g_strdup_printf("/proc/sys/net/%s/conf/%s/%s", family, name, setting);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return true; /* a kernel without this family */
    bool ok = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    if (!ok)
        fettle_set_error(error, ENVIRONMENT, "cannot write %s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* The host itself speaks on no wire of a guest's; it only passes frames on. */
static bool mute(const char *name, GError **error)
{
    return write_setting("ipv6", name, "disable_ipv6", "1", error);
}

/* Rules stay when their device goes, and are added anew each time: so the old ones first. */
static void remove_rules(const char *name)
{
    for (guint i = 0; i < LIMIT_NICS; i++) {
        bool any = false;
        for (guint family = 0; family < 2; family++) {
            const char *argv[] = {"ip", family == 0 ? "-4" : "-6", "rule", "del", "iif", name,
                                  NULL};
            any = tool_run(argv, NULL, LIMIT_NETWORK_TOOL_MS, NULL, NULL) == 0 || any;
        }
        if (!any)
            return;
    }
}

/* Nobody answers neighbour discovery for everybody else, as proxy ARP does: an IPv6 guest has a
 * gateway instead, of the same address on whatever node. */
#define GATEWAY6 "fe80::1"

static bool make_route(const char *name, const struct nic *nic, GError **error)
{
    int family = check_address(nic, error);
    const char *words = family == AF_INET ? "ipv4" : "ipv6";
    const char *table = nic->link[0] != '\0' ? nic->link : "main";
    g_autoptr(GString) lines = g_string_new(NULL);
    if (family == 0)
        return false;
    if (nic->link[0] != '\0') {
        remove_rules(name);
        g_string_append_printf(lines, "rule add iif %s table %s\n", name, table);
    }
    if (family == AF_INET6)
        g_string_append_printf(lines, "address replace " GATEWAY6 "/64 dev %s nodad\n", name);
    g_string_append_printf(lines, "route replace %s/%d dev %s table %s proto static\n", nic->ip,
                           family == AF_INET ? 32 : 128, name, table);
    return write_setting(words, name, family == AF_INET ? "proxy_arp" : "proxy_ndp", "1", error) &&
           write_setting(words, name, "forwarding", "1", error) &&
           ip_batch(family, lines->str, error);
}

static bool plug_ovs(const char *name, const char *bridge, GError **error)
{
    const char *words[] = {"--may-exist", "add-port", bridge, name, NULL};
    int code;
    return ovs_run(words, 0, &code, NULL, error);
}

static bool connect_tap(struct network_linux *network, const char *name, const char *instance,
                        guint index, const struct nic *nic, bool *ret_made, GError **error)
{
    guint mtu = 0;
    bool there;
    g_autofree char *alias = tap_alias(instance, index, nic->mode);
    g_autofree char *mac = NULL;
    bool bare = nic->mode == NIC_ROUTED && nic->ip[0] == '\0';
    if (!check_mac(nic->mac, &mac, error) || (!bare && !check_nic(nic, &mtu, error)) ||
        !find_tap(name, instance, &there, error))
        return false;
    g_autofree char *lines = device_lines(name, alias, mac, nic, there, mtu);
    *ret_made = !there;
    if (!ip_batch(AF_UNSPEC, lines, error))
        return false;
    if (nic->mode == NIC_ROUTED)
        return bare || make_route(name, nic, error);
    return mute(name, error) && (nic->mode != NIC_OPENVSWITCH || plug_ovs(name, nic->link, error));
}

static bool delete_tap(const char *name, GError **error)
{
    g_autofree char *line = g_strdup_printf("link delete dev %s\n", name);
    return ip_batch(AF_UNSPEC, line, error);
}

static char *linux_tap_create(struct network_driver *base, const char *instance, guint index,
                              const struct nic *nic, GError **error)
{
    char name[TAP_NAME_BYTES];
    bool made = false;
    if (!g_uuid_string_is_valid(instance) || index >= LIMIT_NICS) {
        fettle_set_error(
            error, WRONG_INPUT,
            "network card %u of \"%s\": an instance's UUID and a number below %d are needed", index,
            instance, LIMIT_NICS);
        return NULL;
    }
    tap_name(instance, index, name);
    if (connect_tap((struct network_linux *)base, name, instance, index, nic, &made, error))
        return g_strdup(name);
    if (made)
        delete_tap(name, NULL);
    return NULL;
}

/* --- removing, listing --- */

static bool remove_tap(const char *name, enum nic_mode mode, GError **error)
{
    const char *words[] = {"--if-exists", "del-port", name, NULL};
    int code;
    if (mode == NIC_OPENVSWITCH && ovs_is_there() && !ovs_run(words, 0, &code, NULL, error))
        return false;
    if (mode == NIC_ROUTED)
        remove_rules(name); /* routes go with the device */
    return delete_tap(name, error);
}

static bool linux_tap_remove(struct network_driver *network, const char *instance, GError **error)
{
    json_autoptr links = ip_links(NULL, NULL, error);
    if (links == NULL)
        return false;
    size_t i;
    const json_t *link;
    json_array_foreach(links, i, link) {
        enum nic_mode mode;
        g_autofree char *owner = tap_alias_parse(ip_link_text(link, "ifalias"), &mode);
        if (g_strcmp0(owner, instance) == 0 &&
            !remove_tap(ip_link_text(link, "ifname"), mode, error))
            return false;
    }
    return true;
}

static bool linux_nic_announce(struct network_driver *network, const struct nic *nic,
                               GError **error)
{
    if (nic->mode != NIC_ROUTED)
        return true;
    int family = check_address(nic, error);
    return family == AF_INET6 || (family != 0 && address_announce_routed(nic->ip, error));
}

static gint compare_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_once(GPtrArray *list, const char *text)
{
    if (text[0] != '\0' && !g_ptr_array_find_with_equal_func(list, text, g_str_equal, NULL))
        g_ptr_array_add(list, g_strdup(text));
}

/* Of each tap device of ours what `add` makes of it, in order. */
static GPtrArray *walk_taps(void (*add)(GPtrArray *list, const char *owner, const json_t *link),
                            GError **error)
{
    json_autoptr links = ip_links(NULL, NULL, error);
    if (links == NULL)
        return NULL;
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    size_t i;
    const json_t *link;
    json_array_foreach(links, i, link) {
        enum nic_mode mode;
        g_autofree char *owner = tap_alias_parse(ip_link_text(link, "ifalias"), &mode);
        if (owner != NULL)
            add(list, owner, link);
    }
    g_ptr_array_sort(list, compare_text);
    return list;
}

static void add_owner(GPtrArray *list, const char *owner, const json_t *link)
{
    add_once(list, owner);
}

static GPtrArray *linux_list(struct network_driver *network, GError **error)
{
    return walk_taps(add_owner, error);
}

static void add_tap(GPtrArray *list, const char *owner, const json_t *link)
{
    const char *bridge = ip_link_text(link, "master");
    g_ptr_array_add(list, g_strdup_printf("%s %s%s%s", owner, ip_link_text(link, "ifname"),
                                          bridge[0] != '\0' ? " " : "", bridge));
}

static GPtrArray *linux_taps(struct network_driver *network, GError **error)
{
    return walk_taps(add_tap, error);
}

/* An Open vSwitch that does not answer has no bridges to offer; the others are there all the same.
 */
static void add_ovs_bridges(GPtrArray *list)
{
    const char *words[] = {"list-br", NULL};
    g_autofree char *output = NULL;
    int code;
    if (!ovs_is_there() || !ovs_run(words, 0, &code, &output, NULL))
        return;
    g_auto(GStrv) names = g_strsplit(output, "\n", -1);
    for (guint i = 0; names[i] != NULL; i++)
        add_once(list, g_strstrip(names[i]));
}

static GPtrArray *ask_bridges(GError **error)
{
    json_autoptr links = ip_links(NULL, "bridge", error);
    if (links == NULL)
        return NULL;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    size_t i;
    const json_t *link;
    json_array_foreach(links, i, link)
        add_once(list, ip_link_text(link, "ifname")); /* what is no bridge is an empty object */
    add_ovs_bridges(list);
    g_ptr_array_sort(list, compare_text);
    return g_steal_pointer(&list);
}

static GPtrArray *linux_bridges(struct network_driver *base, GError **error)
{
    struct network_linux *network = (struct network_linux *)base;
    g_autofree char *devices = known_bridges_devices();
    GPtrArray *list = known_bridges_get(&network->bridges, devices, loop_boot_ms());
    if (list == NULL && (list = ask_bridges(error)) != NULL)
        known_bridges_set(&network->bridges, list, devices, loop_boot_ms());
    return list;
}

/* --- counting --- */

static bool read_counter(const char *device, const char *name, guint64 *ret_count)
{
    g_autofree char *path = g_strdup_printf("/sys/class/net/%s/statistics/%s", device, name);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return false;
    *ret_count = MIN(g_ascii_strtoull(text, NULL, 10), (guint64)RECORD_NUMBER_MAX);
    return true;
}

/* What the host receives from a tap device its guest has sent. */
static void linux_count(struct network_driver *base, const char *instance, GPtrArray *ret_cards)
{
    for (guint i = 0; i < LIMIT_NICS; i++) {
        char device[TAP_NAME_BYTES];
        struct card_stats *card = card_stats_new();
        tap_name(instance, i, device);
        card->index = i;
        bool ok = read_counter(device, "tx_bytes", &card->received_bytes) &&
                  read_counter(device, "rx_bytes", &card->sent_bytes) &&
                  read_counter(device, "tx_packets", &card->received_packets) &&
                  read_counter(device, "rx_packets", &card->sent_packets) &&
                  read_counter(device, "tx_dropped", &card->received_dropped) &&
                  read_counter(device, "rx_dropped", &card->sent_dropped);
        if (ok)
            g_ptr_array_add(ret_cards, card);
        else
            card_stats_free(card);
    }
}

static const struct network_ops network_linux_ops = {
    .check = linux_check,
    .tap_create = linux_tap_create,
    .tap_remove = linux_tap_remove,
    .nic_announce = linux_nic_announce,
    .list = linux_list,
    .taps = linux_taps,
    .count = linux_count,
    .bridges = linux_bridges,
    .device_check = address_device_check,
    .address_devices = address_devices,
    .address_add = address_add,
    .address_remove = address_remove,
    .address_announce = address_announce,
};

struct network_driver *network_linux_new(void)
{
    struct network_linux *network = g_new0(struct network_linux, 1);
    network->base.ops = &network_linux_ops;
    return &network->base;
}

void network_linux_free(struct network_driver *base)
{
    struct network_linux *network = (struct network_linux *)base;
    known_bridges_clear(&network->bridges);
    g_free(network);
}
