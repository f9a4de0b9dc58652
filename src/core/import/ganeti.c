/* See ganeti.h. What is read becomes a document of our own form, laid over what is there already;
 * import.c does the rest. This file: the cluster, its groups, nodes and tags. */
#include "core/import/ganeti.h"

#include <string.h>

#include "core/import/ganeti_private.h"

#define VALUE_CHARS 100 /* shown of a value that has no counterpart */

/* --- members --- */

const char *ganeti_text(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

json_int_t ganeti_number(const json_t *object, const char *member, json_int_t fallback)
{
    const json_t *value = json_object_get(object, member);
    double number = json_number_value(value);
    bool good = json_is_number(value) && number >= 0 && number < (double)RECORD_NUMBER_MAX;
    return good ? (json_int_t)number : fallback;
}

bool ganeti_is_empty(const json_t *value)
{
    if (!value || json_is_null(value) || json_is_false(value))
        return true;
    if (json_is_string(value))
        return !*json_string_value(value);
    if (json_is_number(value))
        return json_number_value(value) == 0;
    if (json_is_array(value))
        return json_array_size(value) == 0;
    return json_is_object(value) && json_object_size(value) == 0;
}

char *ganeti_value_text(const json_t *value)
{
    g_autofree char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
    if (g_utf8_strlen(text, -1) <= VALUE_CHARS)
        return g_steal_pointer(&text);
    g_autofree char *head = g_utf8_substring(text, 0, VALUE_CHARS);
    return g_strconcat(head, " …", NULL);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *ganeti_names(const json_t *object)
{
    GPtrArray *names = g_ptr_array_new();
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
        g_ptr_array_add(names, (char *)name);
    g_ptr_array_sort(names, compare_texts);
    return names;
}

void ganeti_note_rest(struct reader *reader, const char *subject, const json_t *object,
                      const char *const *known)
{
    /* Of Ganeti's own book-keeping. */
    static const char *const own[] = {"uuid", "serial_no", "ctime", "mtime", "name", "tags", NULL};
    g_autoptr(GPtrArray) names = ganeti_names(object);
    for (guint i = 0; i < names->len; i++) {
        const char *name = names->pdata[i];
        const json_t *value = json_object_get(object, name);
        if (ganeti_is_empty(value) || g_strv_contains(own, name) || g_strv_contains(known, name))
            continue;
        g_autofree char *text = ganeti_value_text(value);
        import_note(reader->import, "%s: %s has no counterpart here: %s", subject, name, text);
    }
}

void ganeti_put(struct reader *reader, const char *kind, const char *key, json_t *object)
{
    json_t *objects = json_object_get(reader->objects, kind);
    if (!objects) {
        objects = json_object();
        json_object_set_new(reader->objects, kind, objects);
    }
    json_object_set_new(objects, key, object);
}

void ganeti_tags(struct reader *reader, const char *kind, const char *uuid, const json_t *object)
{
    size_t index;
    json_t *tag;
    json_array_foreach(json_object_get(object, "tags"), index, tag) {
        const char *text = json_string_value(tag);
        if (!text || !*text)
            continue;
        g_autofree char *key = g_strdup_printf("%s/%s/%s", kind, uuid, text);
        ganeti_put(reader, "tag", key,
                   json_make("{s:s,s:s,s:s}", "kind", kind, "object", uuid, "tag", text));
    }
}

const char *ganeti_node(const struct reader *reader, const char *uuid)
{
    const char *ours = g_hash_table_lookup(reader->nodes, uuid);
    return ours ? ours : "";
}

/* --- node groups --- */

static void read_group(struct reader *reader, const char *uuid, const json_t *from)
{
    static const char *const known[] = {"members", "alloc_policy", "networks", NULL};
    const char *name = ganeti_text(from, "name");
    g_autofree char *subject = g_strdup_printf("node group %s", *name ? name : uuid);
    const struct nodegroup *here = config_find(reader->now, "nodegroup", name, NULL);
    const char *key = here ? here->uuid : uuid;
    if (!here)
        ganeti_put(reader, "nodegroup", key, json_make("{s:s,s:s}", "uuid", key, "name", name));
    g_hash_table_insert(reader->groups, g_strdup(uuid), g_strdup(key));
    ganeti_tags(reader, "nodegroup", key, from);
    const char *policy = ganeti_text(from, "alloc_policy");
    if (*policy && strcmp(policy, "preferred") != 0)
        import_note(reader->import, "%s: alloc_policy %s has no counterpart here", subject, policy);
    ganeti_note_rest(reader, subject, from, known);
}

/* --- nodes --- */

/* Who has a copy of the configuration is settled among the nodes that are here. */
static void note_candidate(struct reader *reader, const char *subject, const struct node *here,
                           const json_t *from)
{
    const json_t *theirs = json_object_get(from, "master_candidate");
    if (json_is_true(theirs) && !here->master_candidate)
        import_note(reader->import,
                    "%s: is a master candidate there and none here; the watcher promotes nodes "
                    "while there are too few (fettle node modify %s --master-candidate yes)",
                    subject, here->name);
    if (json_is_false(theirs) && here->master_candidate)
        import_note(reader->import, "%s: is no master candidate there, and stays one here",
                    subject);
}

static void note_node(struct reader *reader, const char *subject, const json_t *from)
{
    static const char *const known[] = {
        "primary_ip", "secondary_ip",     "group",   "drained",        "offline",
        "vm_capable", "master_candidate", "powered", "master_capable", NULL};
    const char *primary = ganeti_text(from, "primary_ip");
    const char *secondary = ganeti_text(from, "secondary_ip");
    if (*secondary && strcmp(primary, secondary) != 0)
        import_note(reader->import,
                    "%s: secondary_ip %s has no counterpart here; copies of disks "
                    "take the node's one address",
                    subject, secondary);
    if (json_is_true(json_object_get(from, "offline")))
        import_note(reader->import,
                    "%s: is offline there; here that is a person's word that it is dead "
                    "(fettle node modify --offline)",
                    subject);
    if (json_is_false(json_object_get(from, "vm_capable")))
        import_note(reader->import, "%s: vm_capable no has no counterpart here", subject);
    if (json_is_false(json_object_get(from, "powered")))
        import_note(reader->import, "%s: powered no has no counterpart here", subject);
    ganeti_note_rest(reader, subject, from, known);
}

static void read_node(struct reader *reader, const char *uuid, const json_t *from)
{
    const char *name = ganeti_text(from, "name");
    g_autofree char *subject = g_strdup_printf("node %s", *name ? name : uuid);
    const struct node *here = config_find(reader->now, "node", name, NULL);
    if (!here) {
        import_problem(reader->import,
                       "%s: is no node of this cluster; let the host join first (fettle node "
                       "invite %s)",
                       subject, name);
        return;
    }
    g_hash_table_insert(reader->nodes, g_strdup(uuid), g_strdup(here->uuid));
    json_t *node = config_object_json(reader->now, "node", here->uuid);
    const char *group = g_hash_table_lookup(reader->groups, ganeti_text(from, "group"));
    if (group)
        json_object_set_new(node, "group", json_string(group));
    else
        import_problem(reader->import, "%s: group: the file has no node group \"%s\"", subject,
                       ganeti_text(from, "group"));
    if (json_is_true(json_object_get(from, "drained")))
        json_object_set_new(node, "drained", json_true());
    if (json_is_false(json_object_get(from, "master_capable")))
        json_object_set_new(node, "master_capable", json_false());
    ganeti_put(reader, "node", here->uuid, node);
    ganeti_tags(reader, "node", here->uuid, from);
    note_candidate(reader, subject, here, from);
    note_node(reader, subject, from);
}

/* --- the cluster --- */

static void take_setting(json_t *cluster, const char *ours, json_t *value)
{
    if (!ganeti_is_empty(value))
        json_object_set(cluster, ours, value);
}

/* Ganeti takes any number, and 10 if it is told none. */
static void take_pool_size(struct reader *reader, json_t *cluster)
{
    json_t *theirs = json_object_get(reader->cluster, "candidate_pool_size");
    json_int_t size = json_integer_value(theirs);
    if (!theirs || json_is_null(theirs))
        return;
    if (size >= 1 && size <= LIMIT_ENGINE_MEMBERS) {
        json_object_set(cluster, "candidate_pool_size", theirs);
        return;
    }
    g_autofree char *text = ganeti_value_text(theirs);
    import_note(reader->import,
                "cluster: candidate_pool_size stays %" G_GUINT64_FORMAT
                " (the file has %s, and here there can be 1 to %d)",
                config_cluster(reader->now)->candidate_pool_size, text, LIMIT_ENGINE_MEMBERS);
}

static void read_cluster(struct reader *reader)
{
    /* Taken, looked at elsewhere, or of no meaning outside of Ganeti. */
    static const char *const known[] = {"mac_prefix",        "max_running_jobs",
                                        "nicparams",         "beparams",
                                        "master_node",       "cluster_name",
                                        "rsahostkeypub",     "dsahostkeypub",
                                        "highest_used_port", "tcpudp_port_pool",
                                        "candidate_certs",   "candidate_pool_size",
                                        "data_collectors",   "compression_tools",
                                        "hv_state_static",   "disk_state_static",
                                        "primary_ip_family", "ssh_key_type",
                                        "ssh_key_bits",      "diskparams",
                                        "hvparams",          NULL};
    const struct cluster *here = config_cluster(reader->now);
    json_t *cluster = config_object_json(reader->now, "cluster", here->uuid);
    const json_t *nic = json_object_get(json_object_get(reader->cluster, "nicparams"), "default");
    g_autofree char *prefix = g_ascii_strdown(ganeti_text(reader->cluster, "mac_prefix"), -1);
    json_autoptr lower = json_string(prefix);
    take_setting(cluster, "mac_prefix", lower);
    take_setting(cluster, "max_running_jobs", json_object_get(reader->cluster, "max_running_jobs"));
    take_setting(cluster, "default_link", json_object_get(nic, "link"));
    take_pool_size(reader, cluster);
    ganeti_put(reader, "cluster", here->uuid, cluster);
    ganeti_tags(reader, "cluster", here->uuid, reader->cluster);
    const char *name = ganeti_text(reader->cluster, "cluster_name");
    if (*name && strcmp(name, here->name) != 0)
        import_note(reader->import, "cluster: the name stays %s (the file is of %s)", here->name,
                    name);
    import_note(
        reader->import,
        "cluster: hvparams (all but vnc_bind_address) and diskparams have no counterpart here; "
        "guests run under QEMU with what their instance says");
    ganeti_note_rest(reader, "cluster", reader->cluster, known);
}

/* --- the file --- */

/* 2.16 is 2160000, 3.0 is 3000000. */
static bool check_head(struct reader *reader, GError **error)
{
    static const json_int_t versions[] = {216, 300, 301};
    static const char *const parts[] = {"cluster", "nodes", "nodegroups", "instances"};
    const json_t *version = json_object_get(reader->data, "version");
    json_int_t number = json_integer_value(version);
    if (!json_is_integer(version)) {
        fettle_set_error(error, WRONG_INPUT,
                         "version: is missing; this is no config.data of Ganeti");
        return false;
    }
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (json_is_object(json_object_get(reader->data, parts[i])))
            continue;
        fettle_set_error(error, WRONG_INPUT,
                         "%s: is missing, or is no object; this is no config.data of Ganeti",
                         parts[i]);
        return false;
    }
    for (guint i = 0; i < G_N_ELEMENTS(versions); i++) {
        if (number / 10000 == versions[i])
            return true;
    }
    fettle_set_error(error, WRONG_INPUT,
                     "version: is %" JSON_INTEGER_FORMAT " (Ganeti %" JSON_INTEGER_FORMAT
                     ".%" JSON_INTEGER_FORMAT
                     "); files of 2.16, 3.0 and 3.1 can be read: upgrade that cluster first",
                     number, number / 1000000, number / 10000 % 100);
    return false;
}

static void take_present(const char *kind, const char *key, guint64 version, const void *value,
                         void *data)
{
    struct reader *reader = data;
    static const char *const kinds[] = {"cluster", "nodegroup", "network",    "node", "instance",
                                        "tag",     "advice",    "job_filter", NULL};
    if (g_strv_contains(kinds, kind))
        ganeti_put(reader, kind, key, config_object_json(reader->now, kind, key));
}

static void read_each(struct reader *reader, const char *part,
                      void (*take)(struct reader *reader, const char *uuid, const json_t *from))
{
    const json_t *objects = json_object_get(reader->data, part);
    g_autoptr(GPtrArray) uuids = ganeti_names(objects);
    for (guint i = 0; i < uuids->len; i++) {
        const json_t *object = json_object_get(objects, uuids->pdata[i]);
        if (json_is_object(object))
            take(reader, uuids->pdata[i], object);
        else
            import_problem(reader->import, "%s.%s: must be an object", part,
                           (const char *)uuids->pdata[i]);
    }
}

static void read_file(struct reader *reader)
{
    static const char *const known[] = {"version",  "cluster", "nodes",   "nodegroups", "instances",
                                        "networks", "disks",   "filters", NULL};
    config_each(reader->now, take_present, reader);
    read_cluster(reader);
    read_each(reader, "nodegroups", read_group);
    read_each(reader, "nodes", read_node);
    read_each(reader, "networks", ganeti_network);
    read_each(reader, "instances", ganeti_instance);
    ganeti_filters(reader);
    ganeti_note_rest(reader, "file", reader->data, known);
}

/* In our own form, for import.c. */
static json_t *make_document(const struct reader *reader)
{
    const struct cluster *here = config_cluster(reader->now);
    return json_make("{s:s,s:i,s:{s:s,s:s},s:O}", "format", DOCUMENT_FORMAT, "version",
                     DOCUMENT_VERSION, "cluster", "uuid", here->uuid, "name", here->name, "objects",
                     reader->objects);
}

static void free_network(void *network)
{
    network_free(network);
}

bool import_ganeti(struct import *import, const struct config *now, const json_t *data,
                   GError **error)
{
    json_autoptr objects = json_object();
    g_autoptr(GHashTable) nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) groups = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) ports = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) networks =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_network);
    struct reader reader = {.import = import,
                            .now = now,
                            .data = data,
                            .cluster = json_object_get(data, "cluster"),
                            .objects = objects,
                            .nodes = nodes,
                            .groups = groups,
                            .networks = networks,
                            .ports = ports};
    if (!check_head(&reader, error))
        return false;
    read_file(&reader);
    json_autoptr document = make_document(&reader);
    return import_document(import, now, document, error);
}
