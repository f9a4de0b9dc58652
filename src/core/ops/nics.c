/*
 * Network cards of a new instance. See nics.h.
 */
#include "core/ops/nics.h"

#include <string.h>

#define MAC_BYTES 6
#define MAC_CHARS 17
#define AUTO "auto"

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

/* A random address of the pool that neither the configuration nor `nics` has. */
static char *draw_mac(struct op *op, const GPtrArray *nics, GError **error)
{
    const struct cluster *cluster = config_cluster(op_config(op));
    const char *prefix = cluster ? cluster->mac_prefix : "aa:00:00";
    for (guint tries = 0; tries < LIMIT_MAC_TRIES; tries++) {
        guint8 rest[3];
        op->env->ops->random(op->env, rest, sizeof(rest));
        g_autofree char *mac =
            g_strdup_printf("%s:%02x:%02x:%02x", prefix, rest[0], rest[1], rest[2]);
        g_autofree char *user = config_address_user(op_config(op), mac, "");
        if (!has_mac(nics, mac) && !user)
            return g_steal_pointer(&mac);
    }
    fettle_set_error(error, LIMIT,
                     "no free MAC address was found under %s in %d tries; give the cluster another "
                     "prefix: fettle cluster modify --mac-prefix",
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

bool nics_check(const GPtrArray *specs, GError **error)
{
    for (guint i = 0; specs && i < specs->len; i++) {
        const struct nic_spec *spec = specs->pdata[i];
        g_autofree char *mac = is_auto(spec) ? NULL : mac_normal(spec->mac, error);
        if (!is_auto(spec) && !mac) {
            g_prefix_error(error, "nics[%u].mac: ", i);
            return false;
        }
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

static bool mac_taken(const struct op *op, const char *mac, guint index, GError **error)
{
    g_autofree char *user = config_address_user(op_config(op), mac, "");
    if (user)
        fettle_set_error(error, ALREADY_EXISTS, "nics[%u].mac: %s is taken by %s", index, mac,
                         user);
    return user != NULL;
}

static void nic_unref(void *nic)
{
    nic_free(nic);
}

GPtrArray *nics_new(struct op *op, const GPtrArray *specs, GError **error)
{
    const struct cluster *cluster = config_cluster(op_config(op));
    g_autoptr(GPtrArray) nics = g_ptr_array_new_with_free_func(nic_unref);
    for (guint i = 0; specs && i < specs->len; i++) {
        const struct nic_spec *spec = specs->pdata[i];
        g_autofree char *uuid = env_uuid(op->env);
        g_autofree char *mac =
            is_auto(spec) ? draw_mac(op, nics, error) : mac_normal(spec->mac, error);
        if (!mac || (!is_auto(spec) && mac_taken(op, mac, i, error)))
            return NULL;
        bool bridge = spec->mode != NIC_ROUTED && !*spec->link;
        struct nic *nic = nic_new();
        op_set_text(&nic->uuid, uuid);
        op_set_text(&nic->mac, mac);
        nic->mode = spec->mode;
        op_set_text(&nic->link, bridge && cluster ? cluster->default_link : spec->link);
        op_set_text(&nic->ip, spec->ip);
        g_ptr_array_add(nics, nic);
    }
    return g_steal_pointer(&nics);
}
