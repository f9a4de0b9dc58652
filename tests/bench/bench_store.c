/* See bench_store.h. */
#include "bench_store.h"

#include "bench_wire.h"
#include "core/config/model.h"
#include "io/sqlite/sqlite_engine.h"
#include "proto/change.h"
#include "proto/digest.h"

#define GROUP "99999999-0000-4000-8000-000000000001"
#define KEY "00112233445566778899aabbccddeeff"

static char *uuid_of(char kind, guint number)
{
    return g_strdup_printf("%c0000000-0000-4000-8000-%012u", kind, number);
}

char *bench_node_uuid(guint number)
{
    return uuid_of('a', number);
}

char *bench_instance_uuid(guint number)
{
    return uuid_of('b', number);
}

/* --- objects --- */

static json_t *node_json(guint number, bool candidate)
{
    g_autofree char *uuid = bench_node_uuid(number), *name = g_strdup_printf("node%u", number);
    json_autoptr json = json_make("{ss ss ss ss sb}", "uuid", uuid, "name", name, "primary_ip",
                                  "127.0.0.1", "group", GROUP, "master_candidate", candidate);
    record_autoptr(node) node = node_parse(json, RECORD_STRICT, NULL);
    return node_to_json(node);
}

static json_t *nics_json(guint number)
{
    json_t *nics = json_array();
    for (guint i = 0; i < 2; i++) {
        g_autofree char *uuid = uuid_of('e', 2 * number + i);
        g_autofree char *mac = g_strdup_printf("aa:00:%02x:%02x:%02x:%02x", i, number >> 16,
                                               (number >> 8) & 255, number & 255);
        g_autofree char *ip =
            i ? g_strdup("")
              : g_strdup_printf("10.%u.%u.%u", number >> 16, (number >> 8) & 255, number & 255);
        json_array_append_new(nics, json_make("{ss ss ss ss}", "uuid", uuid, "mac", mac, "link",
                                              i ? "br1" : "br0", "ip", ip));
    }
    return nics;
}

/* Every field of the record, as daemons send it. */
static json_t *instance_json(const struct bench_store *store, guint number, guint vcpus)
{
    g_autofree char *uuid = bench_instance_uuid(number), *name = g_strdup_printf("web%u", number);
    g_autofree char *replica = uuid_of('c', number);
    g_autofree char *first = bench_node_uuid(number % store->nodes);
    g_autofree char *second = bench_node_uuid((number + 7) % store->nodes);
    g_autofree char *disk = uuid_of('d', 2 * number), *data = uuid_of('d', 2 * number + 1);
    json_autoptr json = json_make(
        "{ss ss ss si si si ss ss ss ss si ss ss s[{ss si}{ss si}] so}", "uuid", uuid, "name", name,
        "disk_template", "mirror", "memory", 512, "vcpus", (int)vcpus, "ctime", 1700000000,
        "primary_node", first, "secondary_node", second, "replica", replica, "holder", first,
        "generation", 3, "admin_state", "up", "os", "debian-12", "disks", "uuid", disk, "size",
        10240, "uuid", data, "size", 20480, "nics", nics_json(number));
    record_autoptr(instance) instance = instance_parse(json, RECORD_STRICT, NULL);
    return instance_to_json(instance);
}

static json_t *replica_json(const struct bench_store *store, guint number)
{
    g_autofree char *uuid = uuid_of('c', number), *instance = bench_instance_uuid(number);
    g_autofree char *node = bench_node_uuid((number + 7) % store->nodes);
    json_autoptr json = json_make("{ss ss ss si si ss}", "uuid", uuid, "instance", instance, "node",
                                  node, "generation", 3, "sync", 2, "state", "in-sync");
    record_autoptr(replica) replica = replica_parse(json, RECORD_STRICT, NULL);
    return replica_to_json(replica);
}

char *bench_instance_text(const struct bench_store *store, guint number, guint vcpus)
{
    json_autoptr json = instance_json(store, number, vcpus);
    return json_to_text(json);
}

char *bench_candidate_text(void)
{
    json_autoptr json = node_json(1, true);
    return json_to_text(json);
}

/* --- the store --- */

static void add(struct bench_store *store, GPtrArray *changes, const char *kind, const char *key,
                json_t *object)
{
    g_ptr_array_add(changes, change_make(CHANGE_PUT, kind, key, 1, object));
    store->digest ^= digest_object(kind, key, 1);
}

static void add_tag(struct bench_store *store, GPtrArray *changes, const char *object,
                    const char *tag)
{
    g_autofree char *key = config_tag_key(TAG_INSTANCE, object, tag);
    add(store, changes, "tag", key,
        json_make("{ss ss ss}", "kind", "instance", "object", object, "tag", tag));
}

static void add_instance(struct bench_store *store, GPtrArray *changes, guint number)
{
    static const char *const owners[] = {"owner:shop", "owner:mail", "owner:lab"};
    g_autofree char *uuid = bench_instance_uuid(number), *replica = uuid_of('c', number);
    add(store, changes, "instance", uuid, instance_json(store, number, 1));
    add(store, changes, "replica", replica, replica_json(store, number));
    add_tag(store, changes, uuid, owners[number % G_N_ELEMENTS(owners)]);
    add_tag(store, changes, uuid, "ganeti:watcher:autorepair:failover");
}

void bench_store_make(struct bench_store *store, const char *path, guint nodes, guint instances)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    g_autoptr(GError) error = NULL;
    *store = (struct bench_store){.nodes = nodes,
                                  .instances = instances,
                                  .serial = 1,
                                  .versions = g_new(guint64, instances),
                                  .node_version = 1};
    add(store, changes, "cluster", BENCH_CLUSTER_UUID,
        json_make("{ss ss ss}", "uuid", BENCH_CLUSTER_UUID, "name", "bench", "master_node",
                  BENCH_NODE));
    add(store, changes, "nodegroup", GROUP, json_make("{ss ss}", "uuid", GROUP, "name", "default"));
    add(store, changes, "secret", "confd", json_make("{ss}", "value", KEY));
    for (guint i = 0; i < nodes; i++) {
        g_autofree char *uuid = bench_node_uuid(i);
        add(store, changes, "node", uuid, node_json(i, i == 0));
    }
    for (guint i = 0; i < instances; i++) {
        store->versions[i] = 1;
        add_instance(store, changes, i);
    }
    if (!sqlite_engine_create(path, 1, changes, &error))
        g_error("%s", error->message);
}

void bench_store_clear(struct bench_store *store)
{
    g_free(store->versions);
}

static void changed(struct bench_store *store, const char *kind, const char *key, guint64 *version,
                    guint64 serial)
{
    store->digest ^= digest_object(kind, key, *version) ^ digest_object(kind, key, serial);
    *version = serial;
    store->serial = MAX(store->serial, serial);
}

void bench_store_changed(struct bench_store *store, guint number, guint64 serial)
{
    g_autofree char *uuid = bench_instance_uuid(number);
    changed(store, "instance", uuid, &store->versions[number], serial);
}

void bench_store_node_changed(struct bench_store *store, guint64 serial)
{
    g_autofree char *uuid = bench_node_uuid(1);
    changed(store, "node", uuid, &store->node_version, serial);
}
