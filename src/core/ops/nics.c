/*
 * Network cards of a new instance. See nics.h.
 */
#include "core/ops/nics.h"

#include "core/config/addresses.h"

#include <string.h>

#define MAC_BYTES 6
#define MAC_CHARS 17
#define AUTO "auto"
#define POOL "pool"

/* --- addresses --- */

static bool parse_mac(const char *text, guint8 *ret_bytes)
{
    if (strlen(text) != MAC_CHARS)
        return false;
    for (guint i = 0; i < MAC_BYTES; i++) {
        int high = g_ascii_xdigit_value(text[i * 3]);
        int low = g_ascii_xdigit_value(text[i * 3 + 1]);
        if (high < 0 || low < 0 || (i + 1 < MAC_BYTES && text[i * 3 + 2] != ':'))
            return false;
        ret_bytes[i] = (guint8)(high << 4 | low);
    }
    return true;
}

char *mac_normal(const char *text, GError **error)
{
    static const guint8 zero[MAC_BYTES];
    guint8 bytes[MAC_BYTES];
    if (!parse_mac(text, bytes))
        fettle_set_error(error, WRONG_INPUT,
                         "\"%s\" is no MAC address; one looks like aa:00:00:12:34:56", text);
    else if (bytes[0] & 1)
        fettle_set_error(error, WRONG_INPUT,
                         "%s is the address of a group (the lowest bit of its first byte is set); "
                         "a card needs one of its own",
                         text);
    else if (!memcmp(bytes, zero, sizeof(bytes)))
        fettle_set_error(error, WRONG_INPUT, "%s is no address that a card can have", text);
    else
        return g_ascii_strdown(text, -1);
    return NULL;
}

static bool has_mac(const GPtrArray *nics, const char *mac)
{
    for (guint i = 0; nics && i < nics->len; i++) {
        if (!g_ascii_strcasecmp(((const struct nic *)nics->pdata[i])->mac, mac))
            return true;
    }
    return false;
}

/* A random address with that prefix that neither the configuration nor `nics` has. */
static char *draw_mac(struct op *op, const char *prefix, const GPtrArray *nics, GError **error)
{
    for (guint tries = 0; tries < LIMIT_MAC_TRIES; tries++) {
        guint8 rest[3];
        op->env->ops->random(op->env, rest, sizeof(rest));
        g_autofree char *mac =
            g_strdup_printf("%s:%02x:%02x:%02x", prefix, rest[0], rest[1], rest[2]);
        g_autofree char *user = NULL;
        if (!op_address_user(op, mac, &user, error))
            return NULL;
        if (!has_mac(nics, mac) && !user)
            return g_steal_pointer(&mac);
    }
    fettle_set_error(error, LIMIT,
                     "no free MAC address was found under %s in %d tries; give the cluster, or the "
                     "network, another prefix: fettle cluster modify --mac-prefix",
                     prefix, LIMIT_MAC_TRIES);
    return NULL;
}

/* --- what is asked for --- */

static bool is_auto(const struct nic_spec *spec)
{
    return !strcmp(spec->mac, AUTO);
}

static bool spec_twice(const GPtrArray *specs, guint index)
{
    const struct nic_spec *spec = specs->pdata[index];
    for (guint i = 0; i < index && !is_auto(spec); i++) {
        if (!g_ascii_strcasecmp(((const struct nic_spec *)specs->pdata[i])->mac, spec->mac))
            return true;
    }
    return false;
}

/* What the network says cannot be said of the card. */
static bool network_is_alone(const struct nic_spec *spec, guint index, GError **error)
{
    if (*spec->network && *spec->link)
        fettle_set_error(error, WRONG_INPUT,
                         "nics[%u].link: network \"%s\" says how its cards are connected", index,
                         spec->network);
    else if (!*spec->network && !strcmp(spec->ip, POOL))
        fettle_set_error(error, WRONG_INPUT,
                         "nics[%u].ip: a pool belongs to a network; name it: network=NAME,ip=pool",
                         index);
    else
        return true;
    return false;
}

bool nics_check(const GPtrArray *specs, GError **error)
{
    for (guint i = 0; specs && i < specs->len; i++) {
        const struct nic_spec *spec = specs->pdata[i];
        g_autofree char *mac = is_auto(spec) ? NULL : mac_normal(spec->mac, error);
        if (!is_auto(spec) && !mac) {
            g_prefix_error(error, "nics[%u].mac: ", i);
            return false;
        }
        if (!network_is_alone(spec, i, error))
            return false;
        if (spec_twice(specs, i))
            fettle_set_error(error, WRONG_INPUT, "nics[%u].mac: %s is given twice", i, mac);
        else if (spec->mode == NIC_ROUTED && !*spec->ip)
            fettle_set_error(error, WRONG_INPUT,
                             "nics[%u].ip: a routed card needs the address that is routed to it",
                             i);
        else
            continue;
        return false;
    }
    return true;
}

/* --- networks --- */

bool nics_lock_networks(struct op *op, const GPtrArray *specs, GError **error)
{
    for (guint i = 0; specs && i < specs->len; i++) {
        const struct nic_spec *spec = specs->pdata[i];
        const struct network *network =
            *spec->network ? config_find(op_config(op), "network", spec->network, error) : NULL;
        if (*spec->network && !network) {
            g_prefix_error(error, "nics[%u].network: ", i);
            return false;
        }
        if (network)
            op_lock_network(op, network->uuid, LOCK_SHARED);
    }
    return true;
}

void nics_connect(const struct op *op, const struct nic_spec *spec, enum nic_mode *ret_mode,
                  const char **ret_link)
{
    const struct cluster *cluster = config_cluster(op_config(op));
    const struct network *network =
        *spec->network ? config_find(op_config(op), "network", spec->network, NULL) : NULL;
    bool bridge = spec->mode != NIC_ROUTED && !*spec->link;
    *ret_mode = network ? network->mode : spec->mode;
    *ret_link = network ? network->link : bridge && cluster ? cluster->default_link : spec->link;
}

/* --- cards --- */

static bool address_is_free(const struct op *op, const char *key, const char *field,
                            const char *address, guint index, GError **error)
{
    g_autofree char *user = NULL;
    if (!op_address_user(op, key, &user, error))
        return false;
    if (user)
        fettle_set_error(error, ALREADY_EXISTS, "nics[%u].%s: %s is taken by %s%s", index, field,
                         address, user,
                         !strcmp(field, "mac") ? "; choose another, or mac=auto" : "");
    return user == NULL;
}

/* Given out, or as it was asked for. */
static bool set_mac(struct op *op, struct nic *nic, const struct nic_spec *spec,
                    const struct network *network, const GPtrArray *nics, GError **error)
{
    const struct cluster *cluster = config_cluster(op_config(op));
    const char *prefix = network && *network->mac_prefix ? network->mac_prefix
                         : cluster                       ? cluster->mac_prefix
                                                         : "aa:00:00";
    g_autofree char *mac =
        is_auto(spec) ? draw_mac(op, prefix, nics, error) : mac_normal(spec->mac, error);
    if (!mac || (!is_auto(spec) && !address_is_free(op, mac, "mac", mac, nics->len, error)))
        return false;
    text_set(&nic->mac, mac);
    return true;
}

static bool set_ip(struct op *op, struct nic *nic, const struct nic_spec *spec,
                   const struct network *network, const GPtrArray *nics, GError **error)
{
    bool drawn = network && !strcmp(spec->ip, POOL);
    g_autofree char *address =
        drawn ? op_draw_address(op, network, nics, error) : g_strdup(spec->ip);
    if (!address) {
        g_prefix_error(error, "nics[%u].ip: ", nics->len);
        return false;
    }
    text_set(&nic->ip, address);
    g_autofree char *why = network && *address ? network_keeps(network, address) : NULL;
    g_autofree char *key = config_ip_key(nic);
    if (why)
        fettle_set_error(error, WRONG_INPUT, "nics[%u].ip: %s %s (network \"%s\")", nics->len,
                         address, why, network->name);
    else if (network && network->mode == NIC_ROUTED && !*address)
        fettle_set_error(error, WRONG_INPUT,
                         "nics[%u].ip: a routed card needs the address that is routed to it; from "
                         "the network: ip=pool",
                         nics->len);
    else
        return !*address || drawn || address_is_free(op, key, "ip", address, nics->len, error);
    return false;
}

static struct nic *make_nic(struct op *op, const struct nic_spec *spec, const GPtrArray *nics,
                            GError **error)
{
    g_autofree char *uuid = env_uuid(op->env);
    record_autoptr(nic) nic = nic_new();
    const struct network *network = NULL;
    const char *link = "";
    if (*spec->network) {
        network = config_find(op_config(op), "network", spec->network, error);
        if (!network) {
            g_prefix_error(error, "nics[%u].network: ", nics->len);
            return NULL;
        }
        text_set(&nic->network, network->uuid);
    }
    nics_connect(op, spec, &nic->mode, &link);
    text_set(&nic->uuid, uuid);
    text_set(&nic->link, link);
    if (!set_mac(op, nic, spec, network, nics, error) ||
        !set_ip(op, nic, spec, network, nics, error))
        return NULL;
    return g_steal_pointer(&nic);
}

static void nic_unref(void *nic)
{
    nic_free(nic);
}

GPtrArray *nics_new(struct op *op, const GPtrArray *specs, GError **error)
{
    g_autoptr(GPtrArray) nics = g_ptr_array_new_with_free_func(nic_unref);
    for (guint i = 0; specs && i < specs->len; i++) {
        struct nic *nic = make_nic(op, specs->pdata[i], nics, error);
        if (!nic)
            return NULL;
        g_ptr_array_add(nics, nic);
    }
    return g_steal_pointer(&nics);
}

/* --- cards that are there --- */

guint nics_find(const GPtrArray *nics, const char *text)
{
    guint64 number;
    if (g_ascii_string_to_unsigned(text, 10, 0, LIMIT_NICS, &number, NULL))
        return number < nics->len ? (guint)number : G_MAXUINT;
    for (guint i = 0; i < nics->len; i++)
        if (!g_ascii_strcasecmp(((const struct nic *)nics->pdata[i])->mac, text))
            return i;
    return G_MAXUINT;
}

void nics_lock_changed(struct op *op, const GPtrArray *nics, const GPtrArray *changes)
{
    for (guint i = 0; changes && i < changes->len; i++) {
        const struct nic_edit *change = changes->pdata[i];
        guint card = nics_find(nics, change->card);
        const struct nic *nic = card == G_MAXUINT ? NULL : nics->pdata[card];
        if (nic && *nic->network)
            op_lock_network(op, nic->network, LOCK_SHARED);
    }
}

static bool change_link(struct nic *nic, const struct nic_edit *change,
                        const struct network *network, guint index, GError **error)
{
    int mode = *change->mode ? enum_parse(&nic_mode_words, change->mode) : (int)nic->mode;
    if (network && (*change->link || *change->mode)) {
        fettle_set_error(error, WRONG_INPUT,
                         "change_nics[%u].%s: network \"%s\" says how its cards are connected",
                         index, *change->link ? "link" : "mode", network->name);
        return false;
    }
    if (mode < 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "change_nics[%u].mode: must be bridged, routed or openvswitch, not \"%s\"",
                         index, change->mode);
        return false;
    }
    nic->mode = (enum nic_mode)mode;
    if (*change->link)
        text_set(&nic->link, change->link);
    return true;
}

static bool change_mac(struct op *op, struct nic *nic, const struct nic_edit *change,
                       const struct network *network, const GPtrArray *nics, guint index,
                       GError **error)
{
    struct nic_spec spec = {.mac = change->mac};
    g_autofree char *normal =
        !*change->mac || is_auto(&spec) ? NULL : mac_normal(change->mac, error);
    if (!*change->mac || (normal && !strcmp(normal, nic->mac)))
        return true;
    if (!is_auto(&spec) && !normal) {
        g_prefix_error(error, "change_nics[%u].mac: ", index);
        return false;
    }
    if (normal && has_mac(nics, normal)) {
        fettle_set_error(error, WRONG_INPUT,
                         "change_nics[%u].mac: another card of the instance has %s", index, normal);
        return false;
    }
    return set_mac(op, nic, &spec, network, nics, error);
}

static bool change_ip(struct op *op, struct nic *nic, const struct nic_edit *change,
                      const struct network *network, const GPtrArray *nics, guint index,
                      GError **error)
{
    bool none = !strcmp(change->ip, "none"), pool = !strcmp(change->ip, POOL);
    struct nic_spec spec = {.ip = none ? (char *)"" : change->ip};
    if (pool && !network) {
        fettle_set_error(
            error, WRONG_INPUT,
            "change_nics[%u].ip: a pool belongs to a network, and this card is in none", index);
        return false;
    }
    if (*change->ip && strcmp(change->ip, nic->ip) != 0 &&
        !set_ip(op, nic, &spec, network, nics, error))
        return false;
    if (nic->mode != NIC_ROUTED || *nic->ip)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "change_nics[%u].ip: a routed card needs the address that is routed to it",
                     index);
    return false;
}

static bool change_card(struct op *op, GPtrArray *nics, guint index, const struct nic_edit *change,
                        guint *ret_card, GError **error)
{
    guint card = nics_find(nics, change->card);
    if (card == G_MAXUINT) {
        fettle_set_error(error, WRONG_INPUT,
                         "change_nics[%u].card: \"%s\" is neither the number nor the MAC address "
                         "of a network card of the instance, which has %u",
                         index, change->card, nics->len);
        return false;
    }
    struct nic *nic = nics->pdata[card];
    const struct network *network =
        *nic->network ? config_get(op_config(op), "network", nic->network, NULL) : NULL;
    GError *local = NULL;
    *ret_card = card;
    if (change_link(nic, change, network, index, &local) &&
        change_mac(op, nic, change, network, nics, index, &local) &&
        change_ip(op, nic, change, network, nics, index, &local))
        return true;
    /* What is said of the cards of a new instance, which count from the end of the list. */
    const char *rest =
        g_str_has_prefix(local->message, "nics[") ? strstr(local->message, "].") : NULL;
    if (rest) {
        g_autofree char *message = g_strdup_printf("change_nics[%u%s", index, rest);
        fettle_set_error(error, WRONG_INPUT, "%s", message);
        (*error)->code = local->code;
        g_error_free(local);
    } else {
        g_propagate_error(error, local);
    }
    return false;
}

bool nics_change(struct op *op, GPtrArray *nics, const GPtrArray *changes, bool *ret_changed,
                 GError **error)
{
    for (guint i = 0; changes && i < changes->len; i++) {
        guint card = 0;
        if (!change_card(op, nics, i, changes->pdata[i], &card, error))
            return false;
        ret_changed[card] = true;
    }
    return true;
}
