/*
 * See address.h. What is there is read by getifaddrs(), changed by ip. An announcement is a frame
 * of our own: the kernel makes one only when a device goes up.
 */
#include "backend/network/address.h"

#include "backend/network/ip.h"
#include "backend/network/tap.h"
#include "proto/master_ip.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netpacket/packet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ETHERNET_BYTES 6
#define PROTOCOL_IP 0x0800
#define PROTOCOL_ARP 0x0806

/* --- what is there --- */

bool address_device_check(struct network_driver *network, const char *device, GError **error)
{
    if (!master_ip_check_netdev(device, error))
        return false;
    if (if_nametoindex(device) != 0)
        return true;
    fettle_set_error(error, ENVIRONMENT, "network device %s does not exist on this node", device);
    return false;
}

static struct ifaddrs *read_all(GError **error)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) == 0)
        return all;
    fettle_set_error(error, ENVIRONMENT, "the addresses of this node cannot be read: %s",
                     g_strerror(errno));
    return NULL;
}

static bool is_address(const struct ifaddrs *entry, const char *address)
{
    char text[INET6_ADDRSTRLEN] = "";
    const struct sockaddr *from = entry->ifa_addr;
    if (from != NULL && from->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)from)->sin_addr, text,
                  sizeof text);
    else if (from != NULL && from->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, text,
                  sizeof text);
    return text[0] != '\0' && master_ip_same(text, address);
}

/* A label is the name of a device, and more behind a colon. */
static char *device_of(const struct ifaddrs *entry)
{
    return g_strndup(entry->ifa_name, strcspn(entry->ifa_name, ":"));
}

GPtrArray *address_devices(struct network_driver *network, const char *address, GError **error)
{
    struct ifaddrs *all = read_all(error);
    if (all == NULL)
        return NULL;
    GPtrArray *devices = g_ptr_array_new_with_free_func(g_free);
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        g_autofree char *device = device_of(entry);
        if (is_address(entry, address) &&
            !g_ptr_array_find_with_equal_func(devices, device, g_str_equal, NULL))
            g_ptr_array_add(devices, g_steal_pointer(&device));
    }
    freeifaddrs(all);
    return devices;
}

static guint count_bits(const struct sockaddr *mask)
{
    const guint8 *bytes =
        mask->sa_family == AF_INET
            ? (const guint8 *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr
            : (const guint8 *)&((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr;
    guint count = 0;
    for (guint i = 0; i < (mask->sa_family == AF_INET ? 4 : 16); i++)
        count += (guint)__builtin_popcount(bytes[i]);
    return count;
}

/* Lengths of the prefixes with which a device has it. */
static GArray *prefixes_on(const char *device, const char *address, GError **error)
{
    struct ifaddrs *all = read_all(error);
    if (all == NULL)
        return NULL;
    GArray *prefixes = g_array_new(FALSE, FALSE, sizeof(guint));
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        g_autofree char *name = device_of(entry);
        if (strcmp(name, device) != 0 || !is_address(entry, address) || entry->ifa_netmask == NULL)
            continue;
        guint bits = count_bits(entry->ifa_netmask);
        g_array_append_val(prefixes, bits);
    }
    freeifaddrs(all);
    return prefixes;
}

/* --- changes --- */

static int family_of(const char *address)
{
    return strchr(address, ':') != NULL ? AF_INET6 : AF_INET;
}

/* When an address goes, others of its network on that device must not go with it. */
static void keep_others(const char *device)
{
    g_autofree char *path =
        g_strdup_printf("/proc/sys/net/ipv4/conf/%s/promote_secondaries", device);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t done = fd >= 0 ? write(fd, "1", 1) : 0;
    (void)done; /* then it is as the host's owner has set it */
    if (fd >= 0)
        close(fd);
}

static bool remove_prefixes(const char *device, const char *address, const GArray *prefixes,
                            GError **error)
{
    g_autoptr(GString) lines = g_string_new(NULL);
    if (family_of(address) == AF_INET && prefixes->len > 0)
        keep_others(device);
    for (guint i = 0; i < prefixes->len; i++)
        g_string_append_printf(lines, "address del %s/%u dev %s\n", address,
                               g_array_index(prefixes, guint, i), device);
    return prefixes->len == 0 || ip_batch(family_of(address), lines->str, error);
}

bool address_remove(struct network_driver *network, const char *device, const char *address,
                    GError **error)
{
    g_autoptr(GArray) prefixes = prefixes_on(device, address, error);
    return prefixes != NULL && remove_prefixes(device, address, prefixes, error);
}

bool address_add(struct network_driver *network, const char *device, const char *address,
                 guint netmask, GError **error)
{
    if (!address_device_check(network, device, error))
        return false;
    g_autoptr(GArray) prefixes = prefixes_on(device, address, error);
    if (prefixes == NULL)
        return false;
    if (prefixes->len == 1 && g_array_index(prefixes, guint, 0) == netmask)
        return true;
    if (!remove_prefixes(device, address, prefixes, error))
        return false;
    bool six = family_of(address) == AF_INET6;
    /* IPv6: usable at once, since its last holder may be cut off and still answer for it; and no
     * source for what this host begins. IPv4: an address of the same network that was there before
     * stays the source. */
    g_autofree char *line = g_strdup_printf("address add %s/%u dev %s%s\n", address, netmask,
                                            device, six ? " nodad preferred_lft 0" : "");
    return ip_batch(six ? AF_INET6 : AF_INET, line, error);
}

/* --- telling the neighbours --- */

static bool read_card(const char *device, struct sockaddr_ll *ret_card, GError **error)
{
    struct ifaddrs *all = read_all(error);
    bool found = false;
    for (const struct ifaddrs *entry = all; entry != NULL && !found; entry = entry->ifa_next) {
        found = entry->ifa_addr != NULL && entry->ifa_addr->sa_family == AF_PACKET &&
                strcmp(entry->ifa_name, device) == 0;
        if (found)
            memcpy(ret_card, entry->ifa_addr, sizeof *ret_card);
    }
    if (all != NULL)
        freeifaddrs(all);
    if (all != NULL && !found)
        fettle_set_error(error, ENVIRONMENT, "network device %s does not exist on this node",
                         device);
    return found;
}

static bool failed(const char *device, int fd, GError **error)
{
    int code = errno;
    fettle_set_error(error, ENVIRONMENT, "the neighbours cannot be told on %s: %s", device,
                     g_strerror(code));
    if (fd >= 0)
        close(fd);
    return false;
}

/* RFC 5227: a request for the address, by the address, to everybody. */
static bool announce_four(const char *device, const struct sockaddr_ll *card, const char *address,
                          GError **error)
{
    struct __attribute__((packed)) {
        struct arphdr head;
        guint8 from_card[ETHERNET_BYTES], from[4], to_card[ETHERNET_BYTES], to[4];
    } arp = {
        .head = {htons(ARPHRD_ETHER), htons(PROTOCOL_IP), ETHERNET_BYTES, 4, htons(ARPOP_REQUEST)}};
    struct sockaddr_ll everybody = {.sll_family = AF_PACKET,
                                    .sll_protocol = htons(PROTOCOL_ARP),
                                    .sll_ifindex = card->sll_ifindex,
                                    .sll_halen = ETHERNET_BYTES};
    memset(everybody.sll_addr, 0xff, ETHERNET_BYTES);
    memcpy(arp.from_card, card->sll_addr, ETHERNET_BYTES);
    inet_pton(AF_INET, address, arp.from);
    memcpy(arp.to, arp.from, sizeof arp.to);
    int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || sendto(fd, &arp, sizeof arp, 0, (struct sockaddr *)&everybody,
                         sizeof everybody) != (ssize_t)sizeof arp)
        return failed(device, fd, error);
    close(fd);
    return true;
}

/* RFC 4861, 7.2.6: an advertisement that nobody has asked for, to all nodes. */
static bool announce_six(const char *device, const struct sockaddr_ll *card, const char *address,
                         GError **error)
{
    struct __attribute__((packed)) {
        struct nd_neighbor_advert head;
        struct nd_opt_hdr option;
        guint8 card[ETHERNET_BYTES];
    } advert = {.option = {ND_OPT_TARGET_LINKADDR, 1}};
    struct sockaddr_in6 source = {.sin6_family = AF_INET6};
    struct sockaddr_in6 all = {.sin6_family = AF_INET6,
                               .sin6_scope_id = (guint32)card->sll_ifindex};
    const int hops = 255;
    inet_pton(AF_INET6, "ff02::1", &all.sin6_addr);
    inet_pton(AF_INET6, address, &source.sin6_addr);
    advert.head.nd_na_type = ND_NEIGHBOR_ADVERT;
    advert.head.nd_na_flags_reserved = ND_NA_FLAG_OVERRIDE;
    advert.head.nd_na_target = source.sin6_addr;
    memcpy(advert.card, card->sll_addr, ETHERNET_BYTES);
    int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMPV6);
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops) != 0 ||
        bind(fd, (struct sockaddr *)&source, sizeof source) != 0 ||
        sendto(fd, &advert, sizeof advert, 0, (struct sockaddr *)&all, sizeof all) !=
            (ssize_t)sizeof advert)
        return failed(device, fd, error);
    close(fd);
    return true;
}

bool address_announce(struct network_driver *network, const char *device, const char *address,
                      GError **error)
{
    struct sockaddr_ll card;
    if (!read_card(device, &card, error))
        return false;
    if (card.sll_hatype != ARPHRD_ETHER || card.sll_halen != ETHERNET_BYTES)
        return true;
    return family_of(address) == AF_INET ? announce_four(device, &card, address, error)
                                         : announce_six(device, &card, address, error);
}

static bool has_proxy_arp(const char *device)
{
    g_autofree char *path = g_strdup_printf("/proc/sys/net/ipv4/conf/%s/proxy_arp", device);
    g_autofree char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) && atoi(text) != 0;
}

/* A guest that hears its own address from another card would take it for a conflict. */
static bool speaks_for_guests(const struct ifaddrs *entry)
{
    const struct sockaddr_ll *card = (const struct sockaddr_ll *)(const void *)entry->ifa_addr;
    return card != NULL && card->sll_family == AF_PACKET && card->sll_hatype == ARPHRD_ETHER &&
           card->sll_halen == ETHERNET_BYTES && (entry->ifa_flags & IFF_UP) != 0 &&
           !tap_is_name(entry->ifa_name) &&
           (has_proxy_arp(entry->ifa_name) || has_proxy_arp("all"));
}

bool address_announce_routed(const char *address, GError **error)
{
    struct ifaddrs *all = read_all(error);
    bool told = all != NULL;
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next) {
        struct sockaddr_ll card;
        if (!speaks_for_guests(entry))
            continue;
        memcpy(&card, entry->ifa_addr, sizeof card);
        /* One that fails keeps the others from nothing; the first reason is told. */
        g_autoptr(GError) failure = NULL;
        if (announce_four(entry->ifa_name, &card, address, &failure))
            continue;
        if (told)
            g_propagate_error(error, g_steal_pointer(&failure));
        told = false;
    }
    if (all != NULL)
        freeifaddrs(all);
    return told;
}
