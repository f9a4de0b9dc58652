/* What the rules of several kinds ask, and how they name an object; see invariants.h. */
#include "core/config/invariants.h"
#include "proto/master_ip.h"

#include <string.h>

char *invariants_subject(const char *kind, const char *key, const void *object)
{
    const struct record *record = object_record(kind);
    const struct field *name = object && record ? record_field(record, "name") : NULL;
    if (!name)
        return g_strdup_printf("%s %s", kind, key);
    const char *text = *(char *const *)((const char *)object + name->offset);
    return g_strdup_printf("%s %s (%s)", kind, text, key);
}

bool invariants_exists(const struct config *config, const char *kind, const char *key,
                       const char *field, GError **error)
{
    if (config_get(config, kind, key, NULL))
        return true;
    fettle_set_error(error, UNKNOWN_ENTITY, "%s: there is no %s %s", field, kind, key);
    return false;
}

bool invariants_unique_name(const struct config *config, const char *kind, const char *name,
                            GError **error)
{
    if (config_count_name(config, kind, name) <= 1)
        return true;
    fettle_set_error(error, ALREADY_EXISTS, "name: another %s has the name \"%s\" already", kind,
                     name);
    return false;
}

bool invariants_no_master_ip(const struct config *config, const char *field, const char *address,
                             GError **error)
{
    const struct cluster *cluster = config_cluster(config);
    if (!cluster || !*cluster->master_ip || !master_ip_same(cluster->master_ip, address))
        return true;
    fettle_set_error(error, ALREADY_EXISTS, "%s: %s is the master IP of the cluster", field,
                     address);
    return false;
}

bool invariants_mac_is_good(const char *mac)
{
    if (strlen(mac) != 17 || strcmp(mac, "00:00:00:00:00:00") == 0)
        return false;
    for (guint i = 0; i < 17; i++) {
        bool good = i % 3 == 2 ? mac[i] == ':' : strchr("0123456789abcdef", mac[i]) != NULL;
        if (!good)
            return false;
    }
    return g_ascii_xdigit_value(mac[1]) % 2 == 0;
}
