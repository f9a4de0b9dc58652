/* Instances of a config.data, with their disks and network cards; see ganeti.h. */
#include <string.h>

#include "core/config/addresses.h"
#include "core/config/ports.h"
#include "core/import/ganeti_private.h"

/* What becomes of their kinds of disks. */
static const struct {
    const char *theirs;
    const char *ours;
    bool other; /* the bytes lie somewhere else now */
} templates[] = {
    {"drbd", "mirror", true},        {"drbd8", "mirror", true}, {"plain", "file", true},
    {"lvm", "file", true},           {"file", "file", false},   {"sharedfile", "sharedfile", false},
    {"diskless", "diskless", false},
};

struct instance_reader {
    struct reader *reader;
    const json_t *from;
    char *subject;
    const char *name;
    const char *template; /* ours; NULL: not known yet */
    const char *theirs;
    const char *secondary; /* their UUID of its second node; NULL: none */
};

/* --- parameters: the cluster's, and the instance's own over them --- */

static const json_t *parameter(const struct instance_reader *instance, const char *group,
                               const char *name)
{
    const json_t *own = json_object_get(json_object_get(instance->from, group), name);
    const json_t *defaults = json_object_get(
        json_object_get(json_object_get(instance->reader->cluster, group), "default"), name);
    return own && !json_is_null(own) ? own : defaults;
}

static json_int_t be(const struct instance_reader *instance, const char *name, json_int_t fallback)
{
    const json_t *value = parameter(instance, "beparams", name);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

/* --- disks --- */

/* Since 2.13 disks stand beside the instances; before, in them. */
static const json_t *find_disk(const struct instance_reader *instance, const json_t *word)
{
    const char *uuid = json_string_value(word);
    return uuid ? json_object_get(json_object_get(instance->reader->data, "disks"), uuid) : word;
}

/* The two nodes of a mirrored disk stand at the head of its logical_id. */
static void find_secondary(struct instance_reader *instance, const json_t *disk)
{
    const json_t *id = json_object_get(disk, "logical_id");
    const char *primary = ganeti_text(instance->from, "primary_node");
    for (size_t i = 0; i < 2; i++) {
        const char *node = json_string_value(json_array_get(id, i));
        if (node && strcmp(node, primary) != 0)
            instance->secondary = node;
    }
}

static bool take_template(struct instance_reader *instance, size_t index, const char *type)
{
    for (guint i = 0; i < G_N_ELEMENTS(templates); i++) {
        if (strcmp(templates[i].theirs, type) != 0)
            continue;
        if (instance->template && strcmp(instance->template, templates[i].ours) != 0) {
            import_problem(instance->reader->import,
                           "%s: disks[%zu].dev_type: is %s, and another disk is %s; here all disks "
                           "of an instance are kept alike",
                           instance->subject, index, type, instance->theirs);
            return false;
        }
        if (!instance->template && templates[i].other)
            import_note(instance->reader->import,
                        "%s: disk template %s becomes %s; its bytes have to be brought over",
                        instance->subject, type, templates[i].ours);
        instance->template = templates[i].ours;
        instance->theirs = templates[i].theirs;
        return true;
    }
    import_problem(instance->reader->import,
                   "%s: disks[%zu].dev_type: \"%s\" has no counterpart here; there are mirror, "
                   "file and sharedfile",
                   instance->subject, index, type);
    return false;
}

static json_t *read_disk(struct instance_reader *instance, size_t index, const json_t *disk)
{
    static const char *const known[] = {"dev_type",    "size",           "logical_id", "children",
                                        "iv_name",     "nodes",          "mode",       "spindles",
                                        "forthcoming", "dynamic_params", NULL};
    if (!take_template(instance, index, ganeti_text(disk, "dev_type")))
        return NULL;
    if (!strcmp(instance->template, "mirror"))
        find_secondary(instance, disk);
    g_autofree char *subject = g_strdup_printf("%s: disks[%zu]", instance->subject, index);
    if (!strcmp(ganeti_text(disk, "mode"), "ro"))
        import_note(instance->reader->import,
                    "%s: mode ro has no counterpart here; guests may "
                    "write to their disks",
                    subject);
    ganeti_note_rest(instance->reader, subject, disk, known);
    return json_make("{s:s,s:I}", "uuid", ganeti_text(disk, "uuid"), "size",
                     ganeti_number(disk, "size", 0));
}

static json_t *read_disks(struct instance_reader *instance)
{
    json_t *disks = json_array();
    size_t index;
    json_t *word;
    json_array_foreach(json_object_get(instance->from, "disks"), index, word) {
        const json_t *disk = find_disk(instance, word);
        if (!json_is_object(disk)) {
            import_problem(instance->reader->import, "%s: disks[%zu]: the file has no disk \"%s\"",
                           instance->subject, index,
                           json_is_string(word) ? json_string_value(word) : "");
            continue;
        }
        json_t *made = read_disk(instance, index, disk);
        if (made)
            json_array_append_new(disks, made);
    }
    if (!instance->template)
        instance->template = "diskless";
    return disks;
}

/* --- network cards --- */

/* How the node group of the primary node connects a network; NULL: it does not. */
static const json_t *connection_of(const struct instance_reader *instance, const char *network)
{
    const json_t *data = instance->reader->data;
    const json_t *node = json_object_get(json_object_get(data, "nodes"),
                                         ganeti_text(instance->from, "primary_node"));
    const json_t *group =
        json_object_get(json_object_get(data, "nodegroups"), ganeti_text(node, "group"));
    return json_object_get(json_object_get(group, "networks"), network);
}

/* "mode" or "link" of a card: its network's, its own, or the cluster's. */
static const char *nic_parameter(const struct instance_reader *instance, const json_t *nic,
                                 const char *name)
{
    const char *network = ganeti_text(nic, "network");
    const json_t *connection = *network ? connection_of(instance, network) : NULL;
    return ganeti_connected(instance->reader,
                            connection ? connection : json_object_get(nic, "nicparams"), name);
}

/* Why the card cannot be in it as it is; NULL: it can. Free with g_free(). */
static char *keeps_out(const struct network *network, const char *mode, const char *link,
                       const char *ip)
{
    const char *ours = enum_word(&nic_mode_words, (int)network->mode);
    if (strcmp(mode, ours) != 0 || strcmp(link, network->link) != 0)
        return g_strdup_printf("cards in it are %s on \"%s\" here", ours, network->link);
    g_autofree char *why = *ip ? network_keeps(network, ip) : NULL;
    return why ? g_strdup_printf("%s %s", ip, why) : NULL;
}

static const char *name_of_network(const struct instance_reader *instance, const char *uuid)
{
    const json_t *networks = json_object_get(instance->reader->data, "networks");
    const char *name = ganeti_text(json_object_get(networks, uuid), "name");
    return *name ? name : uuid;
}

/* UUID of its network here, "" if it is in none. */
static const char *network_of(struct instance_reader *instance, const char *subject,
                              const json_t *nic, const char *mode, const char *link)
{
    const char *uuid = ganeti_text(nic, "network");
    const struct network *network = g_hash_table_lookup(instance->reader->networks, uuid);
    if (!*uuid)
        return "";
    g_autofree char *why = network ? keeps_out(network, mode, link, ganeti_text(nic, "ip"))
                                   : g_strdup("it is not taken over");
    if (!why)
        return network->uuid;
    import_note(instance->reader->import,
                "%s: is in no network here, with mode %s and link %s; network %s: %s", subject,
                mode, link, name_of_network(instance, uuid), why);
    return "";
}

static json_t *read_nic(struct instance_reader *instance, size_t index, const json_t *nic)
{
    static const char *const known[] = {"mac", "ip", "network", "nicparams", "netinfo", NULL};
    g_autofree char *subject = g_strdup_printf("%s: nics[%zu]", instance->subject, index);
    g_autofree char *mac = g_ascii_strdown(ganeti_text(nic, "mac"), -1);
    const char *given = nic_parameter(instance, nic, "mode"), *mode = *given ? given : "bridged";
    const char *link = nic_parameter(instance, nic, "link");
    const char *network = network_of(instance, subject, nic, mode, link);
    const char *vlan = nic_parameter(instance, nic, "vlan");
    if (*vlan)
        import_note(instance->reader->import, "%s: vlan %s has no counterpart here", subject, vlan);
    ganeti_note_rest(instance->reader, subject, nic, known);
    return json_make("{s:s,s:s,s:s,s:s,s:s,s:s}", "uuid", ganeti_text(nic, "uuid"), "mac", mac,
                     "mode", mode, "link", link, "ip", ganeti_text(nic, "ip"), "network", network);
}

static json_t *read_nics(struct instance_reader *instance)
{
    json_t *nics = json_array();
    size_t index;
    json_t *nic;
    json_array_foreach(json_object_get(instance->from, "nics"), index, nic)
        json_array_append_new(nics, read_nic(instance, index, nic));
    return nics;
}

/* --- its display --- */

/* A hypervisor's parameter: the instance's own, or the cluster's for its hypervisor. */
static const char *hv(const struct instance_reader *instance, const char *name)
{
    const json_t *own = json_object_get(instance->from, "hvparams");
    const json_t *all = json_object_get(instance->reader->cluster, "hvparams");
    return ganeti_text(json_is_string(json_object_get(own, name))
                           ? own
                           : json_object_get(all, ganeti_text(instance->from, "hypervisor")),
                       name);
}

/* Why it cannot be at that port here; NULL: it can. Free with g_free(). */
static char *keeps_display_out(const struct instance_reader *instance, const char *address,
                               guint64 port)
{
    const struct config *now = instance->reader->now;
    g_autoptr(GError) error = NULL;
    g_autofree char *key = config_port_key(port);
    g_autofree char *user = port ? config_address_user(now, key, "") : NULL;
    if (!port)
        return g_strdup("network_port: is missing");
    if (user)
        return g_strdup_printf("network_port: %" G_GUINT64_FORMAT " is taken by %s", port, user);
    if (g_hash_table_contains(instance->reader->ports, key))
        return g_strdup_printf(
            "network_port: %" G_GUINT64_FORMAT " is that of another instance of the file", port);
    if (display_address_check(address, &error) && port_is_in_range(now, port, &error))
        return NULL;
    return g_strdup(error->message);
}

static void read_display(struct instance_reader *instance, json_t *made)
{
    struct import *import = instance->reader->import;
    const char *address = hv(instance, "vnc_bind_address");
    guint64 port = (guint64)ganeti_number(instance->from, "network_port", 0);
    if (!*address)
        return;
    g_autofree char *why = keeps_display_out(instance, address, port);
    if (why) {
        import_note(import,
                    "%s: its display is not taken over: %s; give it one: fettle instance modify "
                    "--vnc-bind-address 127.0.0.1 %s",
                    instance->subject, why, instance->name);
        return;
    }
    if (*hv(instance, "vnc_password_file"))
        import_note(import,
                    "%s: its display at %s, port %" G_GUINT64_FORMAT
                    " has no password here; vnc_password_file has no counterpart",
                    instance->subject, address, port);
    g_hash_table_add(instance->reader->ports, config_port_key(port));
    json_object_set_new(made, "vnc_bind_address", json_string(address));
    json_object_set_new(made, "network_port", json_integer((json_int_t)port));
}

/* --- the instance --- */

static void note_running(struct instance_reader *instance)
{
    struct import *import = instance->reader->import;
    const char *state = ganeti_text(instance->from, "admin_state");
    const char *hypervisor = ganeti_text(instance->from, "hypervisor");
    json_int_t most = be(instance, "maxmem", 0), least = be(instance, "minmem", most);
    if (!strcmp(state, "up"))
        import_note(import,
                    "%s: is up there and comes stopped; stop it there for good before it "
                    "is started here",
                    instance->subject);
    else if (*state && strcmp(state, "down") != 0)
        import_note(import, "%s: admin_state %s has no counterpart here; it comes stopped",
                    instance->subject, state);
    if (*hypervisor && strcmp(hypervisor, "kvm") != 0)
        import_note(import,
                    "%s: hypervisor %s: here it runs under QEMU, and needs an image that "
                    "boots there",
                    instance->subject, hypervisor);
    if (least != most)
        import_note(import,
                    "%s: minmem %" JSON_INTEGER_FORMAT " has no counterpart here; it has "
                    "maxmem, %" JSON_INTEGER_FORMAT " MiB",
                    instance->subject, least, most);
}

static void note_instance(struct instance_reader *instance)
{
    static const char *const known[] = {"primary_node", "os",
                                        "hypervisor",   "beparams",
                                        "admin_state",  "admin_state_source",
                                        "nics",         "disks",
                                        "disks_active", "disk_template",
                                        "network_port", "forthcoming",
                                        "hvparams",     NULL};
    static const char *const plain[] = {"maxmem", "minmem", "vcpus", NULL};
    static const char *const display[] = {"vnc_bind_address", "vnc_password_file", NULL};
    note_running(instance);
    if (instance->secondary) {
        const struct node *node =
            config_get(instance->reader->now, "node",
                       ganeti_node(instance->reader, instance->secondary), NULL);
        import_note(instance->reader->import,
                    "%s: its second copy%s%s is not taken over; when it has images give it one: "
                    "fettle instance replace-disks %s",
                    instance->subject, node ? " on " : "", node ? node->name : "", instance->name);
    }
    g_autofree char *beparams = g_strdup_printf("%s: beparams", instance->subject);
    ganeti_note_rest(instance->reader, beparams, json_object_get(instance->from, "beparams"),
                     plain);
    g_autofree char *hvparams = g_strdup_printf("%s: hvparams", instance->subject);
    ganeti_note_rest(instance->reader, hvparams, json_object_get(instance->from, "hvparams"),
                     display);
    ganeti_note_rest(instance->reader, instance->subject, instance->from, known);
}

static json_t *make_instance(struct instance_reader *instance, const char *uuid)
{
    const char *primary =
        ganeti_node(instance->reader, ganeti_text(instance->from, "primary_node"));
    if (!*primary)
        import_problem(instance->reader->import,
                       "%s: primary_node: \"%s\" is no node of this cluster", instance->subject,
                       ganeti_text(instance->from, "primary_node"));
    json_t *disks = read_disks(instance);
    return json_make("{s:s,s:s,s:s,s:I,s:I,s:s,s:s,s:o,s:o,s:I}", "uuid", uuid, "name",
                     instance->name, "disk_template", instance->template, "memory",
                     be(instance, "maxmem", 128), "vcpus", be(instance, "vcpus", 1), "os",
                     ganeti_text(instance->from, "os"), "primary_node", primary, "disks", disks,
                     "nics", read_nics(instance), "ctime",
                     ganeti_number(instance->from, "ctime", 0));
}

void ganeti_instance(struct reader *reader, const char *uuid, const json_t *from)
{
    const char *name = ganeti_text(from, "name");
    g_autofree char *subject = g_strdup_printf("instance %s", *name ? name : uuid);
    struct instance_reader instance = {
        .reader = reader, .from = from, .subject = subject, .name = name};
    if (config_get(reader->now, "instance", uuid, NULL)) {
        import_note(reader->import, "%s: is here already and is left as it is", subject);
        return;
    }
    guint before = reader->import->problems->len;
    json_t *made = make_instance(&instance, uuid);
    read_display(&instance, made);
    note_instance(&instance);
    if (reader->import->problems->len == before) {
        ganeti_put(reader, "instance", uuid, made);
        ganeti_tags(reader, "instance", uuid, from);
    } else {
        json_decref(made);
    }
}
