/* See objects.h. */
#include "core/confd/objects.h"

#include <string.h>

/* What Fettle's guests run under has this name in Ganeti. */
#define HYPERVISOR "kvm"

static guint64 version_of(const struct confd_copy *copy, const char *kind, const char *uuid)
{
    guint64 version = 0;
    config_get(confd_copy_config(copy), kind, uuid, &version);
    return version;
}

/* Every object ends with these. */
static json_t *with_common(const struct confd_copy *copy, json_t *object, const char *kind,
                           enum tag_kind tag_kind, const char *uuid, guint64 ctime)
{
    g_autoptr(GPtrArray) tags = config_tags(confd_copy_config(copy), tag_kind, uuid);
    json_t *list = json_array();
    for (guint i = 0; i < tags->len; i++)
        json_array_append_new(list, json_string(tags->pdata[i]));
    json_object_set_new(object, "ctime", json_real((double)ctime));
    json_object_set_new(object, "mtime", json_real((double)ctime));
    json_object_set_new(object, "uuid", json_string(uuid));
    json_object_set_new(object, "serial_no",
                        json_integer((json_int_t)version_of(copy, kind, uuid)));
    json_object_set_new(object, "tags", list);
    return object;
}

const char *confd_cluster_address(const struct config *config)
{
    const struct cluster *cluster = config_cluster(config);
    const struct node *master = config_get(config, "node", cluster->master_node, NULL);
    if (*cluster->master_ip || !master)
        return cluster->master_ip;
    return master->primary_ip;
}

/* Without a master IP there is no device and no prefix of it. */
static void add_master_ip(json_t *object, const struct config *config)
{
    const struct cluster *cluster = config_cluster(config);
    json_object_set_new(object, "master_ip", json_string(confd_cluster_address(config)));
    if (!*cluster->master_ip)
        return;
    json_object_set_new(object, "master_netmask",
                        json_integer((json_int_t)cluster->master_netmask));
    json_object_set_new(object, "master_netdev", json_string(cluster->master_netdev));
}

json_t *confd_cluster_json(const struct confd_copy *copy)
{
    const struct cluster *cluster = config_cluster(confd_copy_config(copy));
    json_t *object =
        json_make("{ss ss s[s] ss ss}", "cluster_name", cluster->name, "master_node",
                  cluster->master_node, "enabled_hypervisors", HYPERVISOR, "mac_prefix",
                  cluster->mac_prefix, "default_link", cluster->default_link);
    add_master_ip(object, confd_copy_config(copy));
    return with_common(copy, object, "cluster", TAG_CLUSTER, cluster->uuid, 0);
}

json_t *confd_nodegroup_json(const struct confd_copy *copy, const struct nodegroup *group)
{
    json_t *object = json_make("{ss}", "name", group->name);
    return with_common(copy, object, "nodegroup", TAG_NODEGROUP, group->uuid, 0);
}

json_t *confd_node_json(const struct confd_copy *copy, const struct node *node)
{
    json_t *object = json_make("{ss ss ss sb sb sb ss sb}", "name", node->name, "primary_ip",
                               node->primary_ip, "secondary_ip", node->primary_ip,
                               "master_candidate", node->master_candidate, "offline", node->offline,
                               "drained", node->drained, "group", node->group, "vm_capable", 1);
    return with_common(copy, object, "node", TAG_NODE, node->uuid, 0);
}

/* --- instances --- */

static void add_text(json_t *object, const char *name, const char *text)
{
    if (*text)
        json_object_set_new(object, name, json_string(text));
}

static json_t *parameters_of(const struct instance *instance)
{
    json_t *object = json_object();
    add_text(object, "kernel_path", instance->kernel_path);
    add_text(object, "initrd_path", instance->initrd_path);
    add_text(object, "kernel_args", instance->kernel_args);
    add_text(object, "vnc_bind_address", instance->vnc_bind_address);
    return object;
}

static json_t *nics_of(const struct instance *instance)
{
    json_t *list = json_array();
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        json_t *object = json_make("{ss s{ss ss} ss}", "mac", nic->mac, "nicparams", "mode",
                                   enum_word(&nic_mode_words, (int)nic->mode), "link", nic->link,
                                   "uuid", nic->uuid);
        add_text(object, "ip", nic->ip);
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *disk_uuids_of(const struct instance *instance)
{
    json_t *list = json_array();
    for (guint i = 0; i < instance->disks->len; i++)
        json_array_append_new(list, json_string(((struct disk *)instance->disks->pdata[i])->uuid));
    return list;
}

json_t *confd_instance_json(const struct confd_copy *copy, const struct instance *instance)
{
    bool up = instance->admin_state == ADMIN_UP;
    json_t *object = json_make(
        "{ss ss ss ss so s{sI sI sI} s{} s{} ss ss so so sb}", "name", instance->name,
        "primary_node", instance->primary_node, "os", instance->os, "hypervisor", HYPERVISOR,
        "hvparams", parameters_of(instance), "beparams", "minmem", (json_int_t)instance->memory,
        "maxmem", (json_int_t)instance->memory, "vcpus", (json_int_t)instance->vcpus, "osparams",
        "osparams_private", "admin_state",
        enum_word(&admin_state_words, (int)instance->admin_state), "admin_state_source", "admin",
        "nics", nics_of(instance), "disks", disk_uuids_of(instance), "disks_active", up);
    add_text(object, "secondary_node", instance->secondary_node);
    if (instance->network_port)
        json_object_set_new(object, "network_port",
                            json_integer((json_int_t)instance->network_port));
    add_text(object, "disk_template",
             enum_word(&disk_template_words, (int)instance->disk_template));
    return with_common(copy, object, "instance", TAG_INSTANCE, instance->uuid, instance->ctime);
}

static json_t *nodes_of(const struct instance *instance)
{
    json_t *list = json_array();
    json_array_append_new(list, json_string(instance->primary_node));
    if (*instance->secondary_node)
        json_array_append_new(list, json_string(instance->secondary_node));
    return list;
}

json_t *confd_disks_json(const struct confd_copy *copy, const struct instance *instance)
{
    json_t *list = json_array();
    guint64 serial = version_of(copy, "instance", instance->uuid);
    for (guint i = 0; i < instance->disks->len; i++) {
        const struct disk *disk = instance->disks->pdata[i];
        const char *format = enum_word(&disk_format_words, (int)disk->format);
        g_autofree char *image = g_strdup_printf("%s.disk%u.%s", instance->uuid, i, format);
        g_autofree char *name = g_strdup_printf("disk/%u", i);
        json_array_append_new(
            list, json_make("{ss s[ss] s[] so ss sI ss s{} ss sI}", "dev_type",
                            enum_word(&disk_template_words, (int)instance->disk_template),
                            "logical_id", format, image, "children", "nodes", nodes_of(instance),
                            "iv_name", name, "size", (json_int_t)disk->size, "mode", "rw", "params",
                            "uuid", disk->uuid, "serial_no", (json_int_t)serial));
    }
    return list;
}
