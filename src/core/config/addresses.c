/* See addresses.h. */
#include "core/config/addresses.h"

#include <string.h>

#define SMALLEST 30
#define LARGEST 16

/* --- addresses and ranges --- */

bool ip_parse(const char *text, guint32 *ret_address)
{
    g_auto(GStrv) parts = g_strsplit(text, ".", 5);
    guint32 address = 0;
    if (g_strv_length(parts) != 4)
        return false;
    for (guint i = 0; i < 4; i++) {
        guint64 number;
        if ((parts[i][0] == '0' && parts[i][1]) ||
            !g_ascii_string_to_unsigned(parts[i], 10, 0, 255, &number, NULL))
            return false;
        address = address << 8 | (guint32)number;
    }
    *ret_address = address;
    return true;
}

char *ip_text(guint32 address)
{
    return g_strdup_printf("%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255,
                           address & 255);
}

bool ip_range_of_network(const char *text, struct ip_range *ret_range, GError **error)
{
    g_auto(GStrv) halves = g_strsplit(text, "/", 2);
    guint64 bits = 0;
    guint32 address = 0;
    if (!halves[0] || !halves[1] || !ip_parse(halves[0], &address) ||
        !g_ascii_string_to_unsigned(halves[1], 10, LARGEST, SMALLEST, &bits, NULL)) {
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\" is no network; one looks like 192.0.2.0/24, and has /%d to /%d",
                         text, LARGEST, SMALLEST);
        return false;
    }
    guint32 rest = (1u << (32 - bits)) - 1;
    if (address & rest) {
        g_autofree char *first = ip_text(address & ~rest);
        fettle_set_error(error, WRONG_INPUT,
                         "%s is not the first address of its network; that is "
                         "%s/%" G_GUINT64_FORMAT,
                         text, first, bits);
        return false;
    }
    *ret_range = (struct ip_range){address, address | rest};
    return true;
}

bool ip_range_of_reserved(const char *text, struct ip_range *ret_range, GError **error)
{
    g_auto(GStrv) ends = g_strsplit(text, "-", 2);
    struct ip_range range;
    bool good = ends[0] && ip_parse(ends[0], &range.first) &&
                ip_parse(ends[1] ? ends[1] : ends[0], &range.last) && range.first <= range.last;
    if (good)
        *ret_range = range;
    else
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\" is no address and no range; they look like 192.0.2.5 and "
                         "192.0.2.5-192.0.2.9",
                         text);
    return good;
}

/* --- the pool --- */

char *network_key(const struct network *network, const char *address)
{
    const struct nic nic = {.ip = (char *)address, .link = network->link};
    return config_ip_key(&nic);
}

static const char *keeps(const struct network *network, const struct ip_range *range,
                         guint32 address)
{
    guint32 gateway = 0;
    if (address == range->first)
        return "is the address of the network itself";
    if (address == range->last)
        return "is its broadcast address";
    if (ip_parse(network->gateway, &gateway) && address == gateway)
        return "is its gateway";
    for (guint i = 0; i < network->reserved->len; i++) {
        struct ip_range reserved;
        if (ip_range_of_reserved(network->reserved->pdata[i], &reserved, NULL) &&
            address >= reserved.first && address <= reserved.last)
            return "is reserved";
    }
    return NULL;
}

char *network_keeps(const struct network *network, const char *text)
{
    struct ip_range range;
    guint32 address;
    if (!ip_parse(text, &address))
        return g_strdup("is no IPv4 address, such as 192.0.2.7");
    if (!ip_range_of_network(network->network, &range, NULL) || address < range.first ||
        address > range.last)
        return g_strdup_printf("is not in %s", network->network);
    return g_strdup(keeps(network, &range, address));
}

static bool in_list(const GPtrArray *nics, const struct network *network, const char *address)
{
    for (guint i = 0; nics && i < nics->len; i++) {
        const struct nic *nic = nics->pdata[i];
        if (!strcmp(nic->ip, address) && !strcmp(nic->link, network->link))
            return true;
    }
    return false;
}

static char *user_of(const struct config *config, const struct network *network,
                     const char *address)
{
    const struct cluster *cluster = config_cluster(config);
    if (cluster && !strcmp(cluster->master_ip, address))
        return g_strdup("the cluster, as its master IP");
    g_autofree char *key = network_key(network, address);
    return config_address_user(config, key, "");
}

/* What no card of the network gets, read once: what is reserved, and its gateway. */
static GArray *kept_ranges(const struct network *network)
{
    GArray *ranges = g_array_new(FALSE, FALSE, sizeof(struct ip_range));
    struct ip_range range;
    guint32 gateway = 0;
    for (guint i = 0; i < network->reserved->len; i++) {
        if (ip_range_of_reserved(network->reserved->pdata[i], &range, NULL))
            g_array_append_val(ranges, range);
    }
    if (ip_parse(network->gateway, &gateway)) {
        range = (struct ip_range){gateway, gateway};
        g_array_append_val(ranges, range);
    }
    return ranges;
}

static const struct ip_range *kept_in(const GArray *ranges, guint32 address)
{
    for (guint i = 0; i < ranges->len; i++) {
        const struct ip_range *range = &g_array_index(ranges, struct ip_range, i);
        if (address >= range->first && address <= range->last)
            return range;
    }
    return NULL;
}

char *network_draw(const struct config *config, const struct network *network,
                   const GPtrArray *nics, GError **error)
{
    struct ip_range range;
    if (!ip_range_of_network(network->network, &range, error))
        return NULL;
    g_autoptr(GArray) kept = kept_ranges(network);
    for (guint32 address = range.first + 1; address < range.last; address++) {
        const struct ip_range *over = kept_in(kept, address);
        if (over) {
            address = MIN(over->last, range.last);
            continue;
        }
        g_autofree char *text = ip_text(address);
        g_autofree char *user = user_of(config, network, text);
        if (!user && !in_list(nics, network, text))
            return g_steal_pointer(&text);
    }
    fettle_set_error(error, LIMIT,
                     "network \"%s\" (%s) has no free address left; see fettle network info %s",
                     network->name, network->network, network->name);
    return NULL;
}

void network_count(const struct config *config, const struct network *network, guint *ret_all,
                   guint *ret_free)
{
    struct ip_range range;
    *ret_all = *ret_free = 0;
    if (!ip_range_of_network(network->network, &range, NULL))
        return;
    g_autoptr(GArray) kept = kept_ranges(network);
    *ret_all = range.last - range.first + 1;
    for (guint32 address = range.first + 1; address < range.last; address++) {
        if (kept_in(kept, address))
            continue;
        g_autofree char *text = ip_text(address);
        g_autofree char *user = user_of(config, network, text);
        *ret_free += user ? 0 : 1;
    }
}

char *network_map(const struct config *config, const struct network *network)
{
    struct ip_range range;
    if (!ip_range_of_network(network->network, &range, NULL))
        return g_strdup("");
    g_autoptr(GArray) kept = kept_ranges(network);
    char *map = g_strnfill(range.last - range.first + 1, 'X');
    for (guint32 address = range.first + 1; address < range.last; address++) {
        if (kept_in(kept, address))
            continue;
        g_autofree char *text = ip_text(address);
        g_autofree char *user = user_of(config, network, text);
        if (!user)
            map[address - range.first] = '.';
    }
    return map;
}

void network_each_taken(const struct config *config, const struct network *network,
                        void (*taken)(const char *address, const char *who, void *data), void *data)
{
    struct ip_range range;
    if (!ip_range_of_network(network->network, &range, NULL))
        return;
    for (guint32 address = range.first; address < range.last; address++) {
        g_autofree char *text = ip_text(address);
        g_autofree char *user = user_of(config, network, text);
        if (user)
            taken(text, user, data);
    }
}

bool network_has(const struct network *network, const struct instance *instance)
{
    for (guint i = 0; i < instance->nics->len; i++) {
        if (!strcmp(((const struct nic *)instance->nics->pdata[i])->network, network->uuid))
            return true;
    }
    return false;
}
