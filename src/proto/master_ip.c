/* See master_ip.h. */
#include "proto/master_ip.h"

#include <arpa/inet.h>
#include <string.h>

#define FORM "an address with the length of its prefix is needed, such as 192.0.2.10/24"
#define NETDEV_CHARS 15 /* IFNAMSIZ - 1 */

/* --- addresses --- */

struct address {
    int family; /* 0: none */
    union {
        struct in_addr four;
        struct in6_addr six;
    };
};

static struct address read_address(const char *text)
{
    struct address address = {0};
    if (inet_pton(AF_INET, text, &address.four) == 1)
        address.family = AF_INET;
    else if (inet_pton(AF_INET6, text, &address.six) == 1)
        address.family = AF_INET6;
    return address;
}

/* Why no host can carry it for others; NULL: it can. */
static const char *why_not(const struct address *address)
{
    if (address->family == AF_INET) {
        guint32 host = ntohl(address->four.s_addr);
        return host >> 24 == 0     ? "is no address of a host"
               : host >> 24 == 127 ? "is a loopback address"
               : host >> 28 == 14  ? "is a multicast address"
               : host >> 28 == 15  ? "is no address of a host"
                                   : NULL;
    }
    const struct in6_addr *six = &address->six;
    return IN6_IS_ADDR_UNSPECIFIED(six) ? "is no address of a host"
           : IN6_IS_ADDR_LOOPBACK(six)  ? "is a loopback address"
           : IN6_IS_ADDR_MULTICAST(six) ? "is a multicast address"
           : IN6_IS_ADDR_LINKLOCAL(six) ? "is a link-local address, which is nobody's alone"
           : IN6_IS_ADDR_V4MAPPED(six)  ? "is an IPv4 address in another form"
                                        : NULL;
}

static bool read_prefix(const char *text, guint most, guint *ret_netmask)
{
    guint64 value = 0;
    if (!g_ascii_string_to_unsigned(text, 10, 1, most, &value, NULL))
        return false;
    *ret_netmask = (guint)value;
    return true;
}

bool master_ip_parse(const char *text, char **ret_address, guint *ret_netmask, GError **error)
{
    g_auto(GStrv) halves = g_strsplit(text, "/", 2);
    struct address address = halves[0] ? read_address(halves[0]) : (struct address){0};
    if (address.family == 0 || !halves[1]) {
        fettle_set_error(error, WRONG_INPUT, "master_ip: \"%s\": " FORM, text);
        return false;
    }
    guint most = address.family == AF_INET ? 32 : 128;
    if (!read_prefix(halves[1], most, ret_netmask)) {
        fettle_set_error(error, WRONG_INPUT,
                         "master_ip: \"%s\": the length of the prefix is a number from 1 to %u",
                         text, most);
        return false;
    }
    const char *why = why_not(&address);
    if (why) {
        fettle_set_error(error, WRONG_INPUT, "master_ip: %s %s", halves[0], why);
        return false;
    }
    char spelled[INET6_ADDRSTRLEN];
    inet_ntop(address.family, address.family == AF_INET ? (void *)&address.four : &address.six,
              spelled, sizeof spelled);
    *ret_address = g_strdup(spelled);
    return true;
}

bool master_ip_same(const char *one, const char *other)
{
    struct address a = read_address(one), b = read_address(other);
    if (a.family == 0 || a.family != b.family)
        return false;
    return a.family == AF_INET ? a.four.s_addr == b.four.s_addr
                               : IN6_ARE_ADDR_EQUAL(&a.six, &b.six);
}

/* --- devices --- */

bool master_ip_check_netdev(const char *netdev, GError **error)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    if (*netdev && *netdev != '-' && *netdev != '.' && strspn(netdev, letters) == strlen(netdev) &&
        strlen(netdev) <= NETDEV_CHARS)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "master_netdev: \"%s\": the name of a network device is needed: 1 to %d "
                     "letters, digits, dots, dashes and underscores",
                     netdev, NETDEV_CHARS);
    return false;
}
