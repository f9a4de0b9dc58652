/*
 * What must be true of a network and of the cards in it at any time; see invariants.h.
 */
#include <string.h>

#include "core/config/addresses.h"
#include "core/config/invariants.h"

static bool gateway_rule(const struct network *network, const struct ip_range *range,
                         GError **error)
{
    guint32 gateway = 0;
    if (!*network->gateway)
        return true;
    if (ip_parse(network->gateway, &gateway) && gateway > range->first && gateway < range->last)
        return true;
    fettle_set_error(error, WRONG_INPUT, "gateway: \"%s\" is no address of a host in %s",
                     network->gateway, network->network);
    return false;
}

static bool reserved_rule(const struct network *network, const struct ip_range *range,
                          GError **error)
{
    for (guint i = 0; i < network->reserved->len; i++) {
        const char *text = network->reserved->pdata[i];
        struct ip_range reserved;
        if (!ip_range_of_reserved(text, &reserved, error)) {
            g_prefix_error(error, "reserved[%u]: ", i);
            return false;
        }
        if (reserved.first >= range->first && reserved.last <= range->last)
            continue;
        fettle_set_error(error, WRONG_INPUT, "reserved[%u]: %s is not in %s", i, text,
                         network->network);
        return false;
    }
    return true;
}

static bool connection_rule(const struct network *network, GError **error)
{
    g_autofree char *mac = g_strdup_printf("%s:00:00:01", network->mac_prefix);
    if (*network->mac_prefix && !invariants_mac_is_good(mac)) {
        fettle_set_error(error, WRONG_INPUT,
                         "mac_prefix: \"%s\" does not begin the address of a card, as aa:00:00 "
                         "does",
                         network->mac_prefix);
        return false;
    }
    if (network->mode == NIC_ROUTED || *network->link)
        return true;
    fettle_set_error(error, WRONG_INPUT, "link: a network in mode %s needs a bridge",
                     enum_word(&nic_mode_words, (int)network->mode));
    return false;
}

/* One address on one link would belong to two pools. */
static bool overlap_rule(const struct config *config, const struct network *network,
                         const struct ip_range *range, GError **error)
{
    g_autoptr(GPtrArray) networks = config_list(config, "network");
    for (guint i = 0; i < networks->len; i++) {
        const struct network *other = networks->pdata[i];
        struct ip_range theirs;
        if (!strcmp(other->uuid, network->uuid) || strcmp(other->link, network->link) != 0 ||
            !ip_range_of_network(other->network, &theirs, NULL) || theirs.first > range->last ||
            theirs.last < range->first)
            continue;
        fettle_set_error(error, ALREADY_EXISTS,
                         "network: %s overlaps with %s of network \"%s\", which has the same link",
                         network->network, other->network, other->name);
        return false;
    }
    return true;
}

bool invariants_network(const struct config *config, const void *object, GError **error)
{
    const struct network *network = object;
    struct ip_range range;
    if (!invariants_unique_name(config, "network", network->name, error))
        return false;
    if (!ip_range_of_network(network->network, &range, error)) {
        g_prefix_error(error, "network: ");
        return false;
    }
    return gateway_rule(network, &range, error) && reserved_rule(network, &range, error) &&
           connection_rule(network, error) && overlap_rule(config, network, &range, error);
}

bool invariants_card_in_network(const struct config *config, const struct instance *instance,
                                guint index, GError **error)
{
    const struct nic *nic = instance->nics->pdata[index];
    g_autofree char *field = g_strdup_printf("nics[%u].network", index);
    if (!*nic->network)
        return true;
    if (!invariants_exists(config, "network", nic->network, field, error))
        return false;
    const struct network *network = config_get(config, "network", nic->network, NULL);
    if (nic->mode != network->mode || strcmp(nic->link, network->link) != 0) {
        fettle_set_error(error, WRONG_STATE,
                         "%s: cards in \"%s\" are %s on \"%s\", this one is %s "
                         "on \"%s\"",
                         field, network->name, enum_word(&nic_mode_words, (int)network->mode),
                         network->link, enum_word(&nic_mode_words, (int)nic->mode), nic->link);
        return false;
    }
    if (!*nic->ip)
        return true;
    g_autofree char *key = config_ip_key(nic);
    g_autofree char *user = config_address_user(config, key, instance->uuid);
    g_autofree char *why = network_keeps(network, nic->ip);
    if (user)
        fettle_set_error(error, ALREADY_EXISTS, "nics[%u].ip: %s is taken by %s", index, nic->ip,
                         user);
    else if (why)
        fettle_set_error(error, WRONG_INPUT, "nics[%u].ip: %s %s (network \"%s\")", index, nic->ip,
                         why, network->name);
    return !user && !why;
}
