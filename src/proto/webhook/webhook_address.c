/* Which addresses webhooks may be sent to; see webhook.h. */
#include "proto/webhook/webhook.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/error.h"

#define BITS 128
#define FOUR_BITS 32 /* of an IPv4 address, at the end */

/* All are IPv6 here, those of IPv4 behind ::ffff:. */
struct address {
    guint8 bytes[BITS / 8];
};
struct ip_network {
    struct address first;
    guint bits;
};

static bool read_address(const char *text, struct address *ret_address, bool *ret_four)
{
    static const guint8 mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    guint8 four[4];
    *ret_four = inet_pton(AF_INET, text, four) == 1;
    if (!*ret_four)
        return inet_pton(AF_INET6, text, ret_address->bytes) == 1;
    memcpy(ret_address->bytes, mapped, sizeof mapped);
    memcpy(ret_address->bytes + sizeof mapped, four, sizeof four);
    return true;
}

static bool read_network(const char *text, struct ip_network *ret_network)
{
    g_auto(GStrv) parts = g_strsplit(text, "/", 2);
    guint64 bits = 0;
    bool four = false;
    if (!parts[0] || !read_address(parts[0], &ret_network->first, &four))
        return false;
    guint most = four ? FOUR_BITS : BITS;
    if (!parts[1])
        bits = most;
    else if (!g_ascii_string_to_unsigned(parts[1], 10, 0, most, &bits, NULL))
        return false;
    ret_network->bits = (guint)bits + (BITS - most);
    return true;
}

static bool is_in(const struct address *address, const struct ip_network *network)
{
    guint whole = network->bits / 8, rest = network->bits % 8;
    guint8 mask = (guint8)(0xff << (8 - rest));
    return !memcmp(address->bytes, network->first.bytes, whole) &&
           (!rest || !((address->bytes[whole] ^ network->first.bytes[whole]) & mask));
}

bool webhook_network_check(const char *text, GError **error)
{
    struct ip_network network;
    if (read_network(text, &network))
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "webhook_allow: \"%s\" is no network such as 192.0.2.0/24 or 2001:db8::/32",
                     text);
    return false;
}

static bool is_in_any(const struct address *address, const GPtrArray *networks)
{
    for (guint i = 0; i < networks->len; i++) {
        struct ip_network network;
        if (read_network(networks->pdata[i], &network) && is_in(address, &network))
            return true;
    }
    return false;
}

bool webhook_address_is_in(const char *text, const GPtrArray *networks)
{
    struct address address;
    bool four;
    return read_address(text, &address, &four) && is_in_any(&address, networks);
}

/* No host of the outside has one: local translation (RFC 8215) and Teredo, which carry an address
 * of IPv4 where a network likes, or hidden, among them. */
static bool is_special(const struct address *address)
{
    static const char *const special[] = {
        "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4",    "::/128",
        "::1/128",   "fe80::/10",   "fec0::/10",      "ff00::/8",    "64:ff9b:1::/48", "2001::/32"};
    for (size_t i = 0; i < G_N_ELEMENTS(special); i++) {
        struct ip_network network;
        if (read_network(special[i], &network) && is_in(address, &network))
            return true;
    }
    return false;
}

static void take_four(const struct address *address, guint at, struct address *ret_four)
{
    bool four;
    read_address("0.0.0.0", ret_four, &four);
    memcpy(ret_four->bytes + 12, address->bytes + at, 4);
}

/* ISATAP (RFC 5214) has its mark in the middle, whatever the network. */
static bool is_isatap(const struct address *address)
{
    static const guint8 mark[] = {0, 0x5e, 0xfe};
    return !(address->bytes[8] & ~2) && !memcmp(address->bytes + 9, mark, sizeof mark);
}

/* The IPv4 address that one of IPv6 stands for: compatible (::a.b.c.d), translated (RFC 6052,
 * 7915), 6to4 (RFC 3056), ISATAP. */
static bool stands_for(const struct address *address, struct address *ret_four)
{
    static const struct {
        const char *network;
        guint at;
    } forms[] = {{"::/96", 12}, {"64:ff9b::/96", 12}, {"::ffff:0:0:0/96", 12}, {"2002::/16", 2}};
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        struct ip_network network;
        if (!read_network(forms[i].network, &network) || !is_in(address, &network))
            continue;
        take_four(address, forms[i].at, ret_four);
        return true;
    }
    bool isatap = is_isatap(address);
    if (isatap)
        take_four(address, 12, ret_four);
    return isatap;
}

static bool is_good(const struct address *address, const GPtrArray *refused,
                    const GPtrArray *allowed)
{
    return is_in_any(address, allowed) || (!is_special(address) && !is_in_any(address, refused));
}

bool webhook_address_is_good(const char *text, const GPtrArray *refused, const GPtrArray *allowed)
{
    struct address address, four;
    bool is_four;
    return read_address(text, &address, &is_four) && is_good(&address, refused, allowed) &&
           (!stands_for(&address, &four) || is_in_any(&address, allowed) ||
            is_good(&four, refused, allowed));
}
