/*
 * What must be true of one instance's record at any time: who may run it, where its copies are, its
 * disks and network cards, the migration that is under way; see invariants.h.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/config/invariants.h"
#include "core/config/ports.h"

/* SAF-10: at most one holder, and only where the current images are. */
static bool holder_rule(const struct config *config, const struct instance *instance,
                        GError **error)
{
    if (*instance->holder && strcmp(instance->holder, instance->primary_node) != 0) {
        fettle_set_error(error, UNSAFE, "holder: %s is not the primary node (%s)",
                         config_node_name(config, instance->holder),
                         config_node_name(config, instance->primary_node));
        return false;
    }
    if (*instance->holder && instance->clean) {
        fettle_set_error(error, UNSAFE,
                         "clean: generation %" G_GUINT64_FORMAT
                         " may run on %s, so nothing has been closed (SAF-11)",
                         instance->generation, config_node_name(config, instance->holder));
        return false;
    }
    return true;
}

static bool secondary_rule(const struct config *config, const struct instance *instance,
                           GError **error)
{
    if (!*instance->secondary_node != !*instance->replica) {
        fettle_set_error(error, WRONG_STATE,
                         "secondary_node \"%s\" and replica \"%s\": either both or none",
                         instance->secondary_node, instance->replica);
        return false;
    }
    if (!*instance->replica)
        return true;
    if (instance->disk_template != TEMPLATE_MIRROR) {
        fettle_set_error(error, WRONG_STATE, "replica: disk template %s has none",
                         enum_word(&disk_template_words, (int)instance->disk_template));
        return false;
    }
    if (strcmp(instance->secondary_node, instance->primary_node) == 0) {
        fettle_set_error(error, WRONG_STATE, "secondary_node: %s is the primary node too",
                         config_node_name(config, instance->primary_node));
        return false;
    }
    const struct replica *replica = config_get(config, "replica", instance->replica, NULL);
    if (!invariants_exists(config, "node", instance->secondary_node, "secondary_node", error) ||
        !invariants_exists(config, "replica", instance->replica, "replica", error))
        return false;
    if (strcmp(replica->node, instance->secondary_node) == 0 &&
        strcmp(replica->instance, instance->uuid) == 0)
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "replica: %s is on %s and of instance %s, not on %s and of this one",
                     replica->uuid, config_node_name(config, replica->node), replica->instance,
                     config_node_name(config, instance->secondary_node));
    return false;
}

/* --- disks and network cards --- */

static bool disk_rule(const struct instance *instance, guint index, GError **error)
{
    const struct disk *disk = instance->disks->pdata[index];
    for (guint i = 0; i < index; i++) {
        const struct disk *other = instance->disks->pdata[i];
        if (strcmp(disk->uuid, other->uuid) != 0)
            continue;
        fettle_set_error(error, ALREADY_EXISTS, "disks[%u].uuid: %s is disks[%u] already", index,
                         disk->uuid, i);
        return false;
    }
    if (instance->disk_template != TEMPLATE_MIRROR || disk->format == FORMAT_RAW)
        return true;
    fettle_set_error(error, WRONG_STATE, "disks[%u].format: is %s; a mirrored disk is always raw",
                     index, enum_word(&disk_format_words, (int)disk->format));
    return false;
}

static bool disks_rule(const struct instance *instance, GError **error)
{
    bool diskless = instance->disk_template == TEMPLATE_DISKLESS;
    if (diskless != (instance->disks->len == 0)) {
        fettle_set_error(error, WRONG_STATE, "disks: disk template %s does not go with %u disks",
                         enum_word(&disk_template_words, (int)instance->disk_template),
                         instance->disks->len);
        return false;
    }
    for (guint i = 0; i < instance->disks->len; i++) {
        if (!disk_rule(instance, i, error))
            return false;
    }
    return true;
}

static bool mac_rule(const struct config *config, const struct instance *instance, guint index,
                     GError **error)
{
    const char *mac = ((const struct nic *)instance->nics->pdata[index])->mac;
    g_autofree char *user = config_address_user(config, mac, instance->uuid);
    if (!invariants_mac_is_good(mac)) {
        fettle_set_error(error, WRONG_INPUT,
                         "nics[%u].mac: \"%s\" is not the address of one card, such as "
                         "aa:00:00:12:34:56 in lower case",
                         index, mac);
        return false;
    }
    if (user) {
        fettle_set_error(error, ALREADY_EXISTS,
                         "nics[%u].mac: %s is taken by %s; choose another, or mac=auto", index, mac,
                         user);
        return false;
    }
    for (guint i = 0; i < index; i++) {
        if (strcmp(((const struct nic *)instance->nics->pdata[i])->mac, mac) != 0)
            continue;
        fettle_set_error(error, ALREADY_EXISTS,
                         "nics[%u].mac: %s is taken by nics[%u]; choose another, or mac=auto",
                         index, mac, i);
        return false;
    }
    return true;
}

static bool nic_rule(const struct nic *nic, guint index, GError **error)
{
    if (nic->mode != NIC_ROUTED && !*nic->link) {
        fettle_set_error(error, WRONG_INPUT, "nics[%u].link: a card in mode %s needs a bridge",
                         index, enum_word(&nic_mode_words, (int)nic->mode));
        return false;
    }
    if (nic->mode == NIC_ROUTED && !*nic->ip) {
        fettle_set_error(error, WRONG_INPUT, "nics[%u].ip: a routed card needs an address", index);
        return false;
    }
    if (!*nic->ip || g_hostname_is_ip_address(nic->ip))
        return true;
    fettle_set_error(error, WRONG_INPUT, "nics[%u].ip: \"%s\" is no address", index, nic->ip);
    return false;
}

static bool nics_rule(const struct config *config, const struct instance *instance, GError **error)
{
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        g_autofree char *field = g_strdup_printf("nics[%u].ip", i);
        if (!mac_rule(config, instance, i, error) || !nic_rule(nic, i, error) ||
            !invariants_no_master_ip(config, field, nic->ip, error) ||
            !invariants_card_in_network(config, instance, i, error))
            return false;
    }
    return true;
}

/* --- display --- */

static bool display_rule(const struct config *config, const struct instance *instance,
                         GError **error)
{
    guint64 port = instance->network_port;
    g_autofree char *key = config_port_key(port);
    g_autofree char *user = port ? config_address_user(config, key, instance->uuid) : NULL;
    if (!*instance->vnc_bind_address != !port)
        fettle_set_error(error, WRONG_STATE,
                         "vnc_bind_address \"%s\" and network_port %" G_GUINT64_FORMAT
                         ": either both or none",
                         instance->vnc_bind_address, port);
    else if (user)
        fettle_set_error(error, ALREADY_EXISTS,
                         "network_port: %" G_GUINT64_FORMAT " is taken by %s", port, user);
    else
        return display_address_check(instance->vnc_bind_address, error);
    return false;
}

/* --- migration (SAF-17) --- */

bool invariants_migrating(const struct instance *instance)
{
    return *instance->migration && strcmp(instance->migration_node, instance->primary_node) != 0;
}

/* Under way it goes to where the images will be current: for a mirror that is the replica's node
 * and no other. Over, until it is settled, its node is the primary. */
static bool migration_rule(const struct config *config, const struct instance *instance,
                           GError **error)
{
    if (!*instance->migration != !*instance->migration_node) {
        fettle_set_error(error, WRONG_STATE,
                         "migration \"%s\" and migration_node \"%s\": either both or none",
                         instance->migration, instance->migration_node);
        return false;
    }
    if (!*instance->migration)
        return true;
    if (!invariants_exists(config, "node", instance->migration_node, "migration_node", error))
        return false;
    if (!invariants_migrating(instance) || instance->disk_template != TEMPLATE_MIRROR ||
        strcmp(instance->migration_node, instance->secondary_node) == 0)
        return true;
    fettle_set_error(error, UNSAFE,
                     "migration_node: %s has no replica of it (%s has), so it cannot take the "
                     "guest over",
                     config_node_name(config, instance->migration_node),
                     config_node_name(config, instance->secondary_node));
    return false;
}

bool invariants_instance(const struct config *config, const void *object, GError **error)
{
    const struct instance *instance = object;
    if (config_get(config, "removed", instance->uuid, NULL)) {
        fettle_set_error(error, ALREADY_EXISTS,
                         "uuid: an instance with it was removed; its generations are over");
        return false;
    }
    return invariants_unique_name(config, "instance", instance->name, error) &&
           invariants_exists(config, "node", instance->primary_node, "primary_node", error) &&
           holder_rule(config, instance, error) && secondary_rule(config, instance, error) &&
           disks_rule(instance, error) && nics_rule(config, instance, error) &&
           display_rule(config, instance, error) && migration_rule(config, instance, error) &&
           attachment_places(config, instance, error);
}
