/*
 * The indexes of a configuration against a slow recount of everything, after each of many random
 * changes; and the sums that placement keeps from step to step against a count from the beginning.
 */
#include "core/config/attachments.h"
#include "core/config/resource.h"
#include "core/config/usage.h"
#include "core/placement/placement.h"

#include <string.h>

#define STEPS 3000
#define NODES 4u
#define INSTANCES 12
#define PORTS 5
#define FIRST_PORT 11000

static char *uuid_of(char kind, guint number)
{
    return g_strdup_printf("%c0000000-0000-4000-8000-%012u", kind, number);
}

/* One of the nodes; sometimes "" if that is allowed. */
static char *some_node(GRand *rand, bool may_be_none)
{
    guint pick = g_rand_int(rand) % (may_be_none ? NODES + 2 : NODES);
    return pick < NODES ? uuid_of('a', pick) : g_strdup("");
}

static json_t *some_instance(GRand *rand, const char *uuid, guint number)
{
    static const char *const templates[] = {"mirror", "file", "sharedfile", "diskless"};
    g_autofree char *primary = some_node(rand, false), *secondary = some_node(rand, true);
    g_autofree char *target = some_node(rand, true), *name = g_strdup_printf("web%u", number);
    return json_make("{ss ss ss si si ss ss ss si s[{ss si}{ss si}]}", "uuid", uuid, "name", name,
                     "disk_template", templates[g_rand_int(rand) % G_N_ELEMENTS(templates)],
                     "network_port", (int)(FIRST_PORT + g_rand_int(rand) % PORTS), "memory",
                     (int)(1 + g_rand_int(rand) % 512), "primary_node", primary, "secondary_node",
                     secondary, "migration_node", target, "generation", (int)(g_rand_int(rand) % 2),
                     "disks", "uuid", uuid, "size", (int)(1 + g_rand_int(rand) % 100), "uuid", uuid,
                     "size", 7);
}

static void put(struct config *config, const char *kind, const char *key, json_t *object)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(change) change =
        object ? config_put(config, kind, key, object) : config_delete(config, kind, key);
    config_apply(config, change, &error);
    g_assert_no_error(error);
}

static void change_something(struct config *config, GRand *rand)
{
    guint number = g_rand_int(rand) % INSTANCES;
    g_autofree char *uuid = uuid_of('b', number);
    g_autofree char *text = g_strdup_printf("t%u", g_rand_int(rand) % 3);
    g_autofree char *key = config_tag_key(TAG_INSTANCE, uuid, text);
    switch (g_rand_int(rand) % 4) {
    case 0:
        put(config, "instance", uuid, NULL);
        break;
    case 1:
        put(config, "tag", key, NULL);
        break;
    case 2:
        put(config, "tag", key,
            json_make("{ss ss ss}", "kind", "instance", "object", uuid, "tag", text));
        break;
    default:
        put(config, "instance", uuid, some_instance(rand, uuid, number));
    }
}

static void check_node(const struct config *config, const char *node)
{
    struct allocated slow = {0}, kept = config_promised(config, node);
    g_autoptr(GPtrArray) all = config_list(config, "instance");
    g_autoptr(GPtrArray) found = config_node_instances(config, node);
    for (guint i = 0; i < all->len; i++) {
        const struct instance *instance = all->pdata[i];
        struct allocated part = allocated_to(instance, node);
        bool there = !strcmp(instance->primary_node, node) ||
                     !strcmp(instance->secondary_node, node) ||
                     !strcmp(instance->migration_node, node);
        allocated_add(&slow, &part);
        g_assert_cmpint(g_ptr_array_find(found, instance, NULL), ==, there);
    }
    g_assert_true(!memcmp(&kept, &slow, sizeof(slow)));
    g_assert_cmpuint(found->len, ==, slow.instances);
    for (guint i = 1; i < found->len; i++)
        g_assert_cmpstr(((const struct instance *)found->pdata[i - 1])->name, <,
                        ((const struct instance *)found->pdata[i])->name);
}

static void check_tags(const struct config *config, const char *object)
{
    guint slow = 0;
    g_autoptr(GPtrArray) all = config_list(config, "tag");
    g_autoptr(GPtrArray) found = config_tags(config, TAG_INSTANCE, object);
    for (guint i = 0; i < all->len; i++)
        slow += !strcmp(((const struct tag *)all->pdata[i])->object, object);
    g_assert_cmpuint(found->len, ==, slow);
    g_assert_cmpint(config_has_tags(config, TAG_INSTANCE, object), ==, slow > 0);
    g_assert_false(config_has_tags(config, TAG_NODE, object));
}

/* Who has the port; of several any. */
static void check_port(const struct config *config, guint64 port)
{
    g_autofree char *key = config_port_key(port);
    g_autofree char *user = config_address_user(config, key, "");
    g_autoptr(GPtrArray) all = config_list(config, "instance");
    guint users = 0, named = 0;
    for (guint i = 0; i < all->len; i++) {
        const struct instance *instance = all->pdata[i];
        g_autofree char *name = g_strdup_printf("instance \"%s\"", instance->name);
        bool has = instance->network_port == port;
        users += has;
        named += has && !g_strcmp0(user, name);
    }
    g_assert_cmpuint(named, ==, users > 0);
    g_assert_cmpint(user != NULL, ==, users > 0);
}

static void test_indexes(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    struct config *config = config_new();
    for (guint step = 0; step < STEPS; step++) {
        change_something(config, rand);
        for (guint i = 0; i < NODES; i++) {
            g_autofree char *node = uuid_of('a', i);
            check_node(config, node);
        }
        g_autofree char *object = uuid_of('b', step % INSTANCES);
        check_tags(config, object);
        check_port(config, FIRST_PORT + step % PORTS);
    }
    config_reset(config);
    g_autofree char *node = uuid_of('a', 0);
    g_assert_cmpuint(config_promised(config, node).instances, ==, 0);
    config_free(config);
}

/* --- sums --- */

static GPtrArray *some_reports(GRand *rand)
{
    GPtrArray *reports = g_ptr_array_new_with_free_func((GDestroyNotify)node_report_free);
    for (guint i = 0; i < NODES; i++) {
        g_autofree char *node = uuid_of('a', i);
        json_t *guests = json_array();
        for (guint k = 0; k < INSTANCES; k++) {
            g_autofree char *guest = uuid_of('b', k);
            if (g_rand_int(rand) % 3 == 0)
                json_array_append_new(
                    guests, json_make("{ss si ss}", "instance", guest, "generation", 1, "state",
                                      g_rand_int(rand) % 2 ? "running" : "absent"));
        }
        json_autoptr json =
            json_make("{ss si si si si so}", "node", node, "memory_total", 4096, "memory_free",
                      4000, "disk_total", 4096, "disk_free", 3000, "guests", guests);
        g_ptr_array_add(reports, node_report_parse(json, RECORD_STRICT, NULL));
    }
    return reports;
}

/* A need that no node can meet: the refusal names the room of each. */
static char *rooms(const struct config *config, const GPtrArray *reports,
                   struct placement_sums *sums, bool memory)
{
    g_autoptr(GError) error = NULL;
    struct placement_need need = {
        .what = "it", .memory = memory ? 1000000 : 0, .disk = memory ? 0 : 1000000, .sums = sums};
    g_assert_null(placement_choose(config, reports, &need, &error));
    return g_strdup(error->message);
}

static void check_sums(const struct config *config, const GPtrArray *reports,
                       struct placement_sums *sums)
{
    for (guint i = 0; i < 2; i++) {
        g_autofree char *kept = rooms(config, reports, sums, i == 0);
        g_autofree char *counted = rooms(config, reports, NULL, i == 0);
        g_assert_cmpstr(kept, ==, counted);
    }
}

static void test_sums(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(12);
    struct config *config = config_new();
    g_autoptr(GPtrArray) reports = some_reports(rand);
    for (guint i = 0; i < NODES; i++) {
        g_autofree char *uuid = uuid_of('a', i), *name = g_strdup_printf("node%u", i);
        put(config, "node", uuid,
            json_make("{ss ss ss ss}", "uuid", uuid, "name", name, "primary_ip", "10.0.0.1",
                      "group", uuid));
    }
    for (guint i = 0; i < INSTANCES; i++)
        change_something(config, rand);
    struct placement_sums *sums = placement_sums_new(config, reports);
    for (guint step = 0; step < 500; step++) {
        guint number = g_rand_int(rand) % INSTANCES;
        g_autofree char *uuid = uuid_of('b', number);
        const struct instance *before = config_get(config, "instance", uuid, NULL);
        json_autoptr json = some_instance(rand, uuid, number);
        record_autoptr(instance) after = instance_parse(json, RECORD_STRICT, NULL);
        placement_sums_move(sums, before, after);
        put(config, "instance", uuid, json_incref(json));
        check_sums(config, reports, sums);
    }
    placement_sums_free(sums);
    config_free(config);
}

/* --- what a back end has promised --- */

#define BACKENDS 2u
#define RESOURCES 6u
#define IN_ORDER 30u
#define GIB_MIB 1024u

static const char *some_word(GRand *rand, const struct enum_words *words)
{
    return enum_word(words, (gint)(g_rand_int(rand) % g_strv_length((char **)words->words)));
}

static json_t *some_resource(GRand *rand, enum resource_type type, const char *uuid)
{
    g_autofree char *backend = uuid_of('d', g_rand_int(rand) % BACKENDS);
    g_autofree char *data = g_strconcat(uuid, ".1", NULL);
    json_t *made =
        json_make("{ss ss ss ss si}", "uuid", uuid, "name", "x", "backend", backend, "data",
                  g_rand_int(rand) % 3 ? data : "", "size", (int)(1 + g_rand_int(rand) % 9));
    const struct enum_words *words[] = {[RESOURCE_VOLUME] = &volume_status_words,
                                        [RESOURCE_SNAPSHOT] = &snapshot_status_words,
                                        [RESOURCE_BACKUP] = &backup_status_words,
                                        [RESOURCE_IMAGE] = &image_status_words};
    json_object_set_new(made, "status", json_string(some_word(rand, words[type])));
    if (type == RESOURCE_SNAPSHOT || type == RESOURCE_BACKUP)
        json_object_set_new(made, "volume", json_string(uuid));
    if (type == RESOURCE_BACKUP)
        json_object_set_new(made, "bytes", json_integer((json_int_t)g_rand_int(rand)));
    if (type == RESOURCE_IMAGE) {
        json_object_set_new(made, "disk_format", json_string("raw"));
        json_object_set_new(made, "size", json_integer((json_int_t)g_rand_int(rand)));
        json_object_set_new(made, "virtual_size", json_integer((json_int_t)g_rand_int(rand)));
    }
    return made;
}

/* Of a volume that grows, is restored, or moves to that back end. */
static json_t *some_row(GRand *rand, const char *volume)
{
    g_autofree char *other = uuid_of('e', RESOURCES + 1);
    g_autofree char *backend = uuid_of('d', g_rand_int(rand) % BACKENDS);
    guint pick = g_rand_int(rand) % 3;
    if (pick == 0)
        return json_make("{ss ss ss ss ss s{ss ss ss}}", "resource_type", "Volume", "resource_id",
                         volume, "operation", "migrate-volume", "status", "maintenance", "backend",
                         backend, "source", "resource_type", "Volume", "resource_id", volume,
                         "data", "before");
    if (pick == 1)
        return json_make("{ss ss ss ss ss si}", "resource_type", "Volume", "resource_id", volume,
                         "operation", "extend-volume", "status", "extending", "backend", backend,
                         "size", 20);
    return json_make("{ss ss ss ss ss ss ss}", "resource_type", "Backup", "resource_id", other,
                     "operation", "restore-backup", "status", "restoring", "backend", backend,
                     "partner_type", "Volume", "partner_id", volume);
}

static void change_some_resource(struct config *config, GRand *rand)
{
    static const char *const kinds[] = {[RESOURCE_VOLUME] = "volume",
                                        [RESOURCE_SNAPSHOT] = "snapshot",
                                        [RESOURCE_BACKUP] = "backup",
                                        [RESOURCE_IMAGE] = "image"};
    guint pick = g_rand_int(rand) % (G_N_ELEMENTS(kinds) + 1);
    bool goes = g_rand_int(rand) % 3 == 0;
    g_autofree char *uuid = uuid_of('e', g_rand_int(rand) % RESOURCES);
    if (pick < G_N_ELEMENTS(kinds)) {
        put(config, kinds[pick], uuid,
            goes ? NULL : some_resource(rand, (enum resource_type)pick, uuid));
        return;
    }
    json_t *row = some_row(rand, uuid);
    g_autofree char *key =
        g_strconcat(json_string_value(json_object_get(row, "resource_type")), "/",
                    json_string_value(json_object_get(row, "resource_id")), NULL);
    if (goes)
        json_decref(row);
    put(config, "worker", key, goes ? NULL : row);
}

static guint64 volume_gib(const struct config *config, const struct volume *volume)
{
    bool grows = volume->status == VOLUME_EXTENDING;
    bool restored = volume->status == VOLUME_RESTORING_BACKUP;
    bool waits = volume->status == VOLUME_CREATING || volume->status == VOLUME_DOWNLOADING;
    g_autoptr(GPtrArray) rows = config_held_work(config, RESOURCE_VOLUME, volume->uuid);
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, volume->uuid);
    const struct worker *row = config_get(config, "worker", key, NULL);
    guint64 size = grows && row ? MAX(volume->size, row->size) : volume->size;
    if (!*volume->data)
        return waits || restored ? size : 0;
    return restored && rows->len ? 2 * size : size;
}

static guint64 count_promised(const struct config *config, const char *backend)
{
    guint64 mib = 0;
    g_autoptr(GPtrArray) volumes = config_list(config, "volume");
    g_autoptr(GPtrArray) snapshots = config_list(config, "snapshot");
    g_autoptr(GPtrArray) backups = config_list(config, "backup");
    g_autoptr(GPtrArray) images = config_list(config, "image");
    g_autoptr(GPtrArray) rows = config_list(config, "worker");
    for (guint i = 0; i < volumes->len; i++) {
        const struct volume *volume = volumes->pdata[i];
        if (!strcmp(volume->backend, backend))
            mib += volume_gib(config, volume) * GIB_MIB;
    }
    for (guint i = 0; i < snapshots->len; i++) {
        const struct snapshot *one = snapshots->pdata[i];
        if (!strcmp(one->backend, backend) && (*one->data || one->status == SNAPSHOT_CREATING))
            mib += one->size * GIB_MIB;
    }
    for (guint i = 0; i < backups->len; i++) {
        const struct backup *one = backups->pdata[i];
        if (!strcmp(one->backend, backend))
            mib += one->status == BACKUP_CREATING ? one->size * GIB_MIB : one->bytes / MIB(1);
    }
    for (guint i = 0; i < images->len; i++) {
        const struct image *one = images->pdata[i];
        if (!strcmp(one->backend, backend))
            mib += one->size / MIB(1) +
                   (one->status == IMAGE_SAVING ? (one->virtual_size + MIB(1) - 1) / MIB(1) : 0);
    }
    for (guint i = 0; i < rows->len; i++) {
        const struct worker *row = rows->pdata[i];
        const struct volume *volume =
            row->source ? config_get(config, "volume", row->resource_id, NULL) : NULL;
        if (volume && !strcmp(row->backend, backend))
            mib += volume->size * GIB_MIB;
    }
    return mib;
}

static void test_promised(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(23);
    struct config *config = config_new();
    for (guint step = 0; step < STEPS; step++) {
        change_some_resource(config, rand);
        for (guint i = 0; i < BACKENDS; i++) {
            g_autofree char *uuid = uuid_of('d', i);
            const struct backend backend = {.uuid = uuid};
            g_assert_cmpuint(usage_promised_mib(config, &backend), ==,
                             count_promised(config, uuid));
        }
    }
    config_free(config);
}

/* Volumes of one project, at whatever addresses. */
static char *order_of_volumes(GRand *rand)
{
    g_autoptr(GPtrArray) between = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) order = g_string_new("");
    struct config *config = config_new();
    for (guint i = 0; i < IN_ORDER; i++) {
        g_autofree char *uuid = uuid_of('e', i);
        json_t *volume = some_resource(rand, RESOURCE_VOLUME, uuid);
        json_object_set_new(volume, "project", json_string("p"));
        put(config, "volume", uuid, volume);
        for (guint j = g_rand_int(rand) % 8; j > 0; j--)
            g_ptr_array_add(between, g_malloc(1 + g_rand_int(rand) % 500));
    }
    g_autoptr(GPtrArray) volumes = config_project_volumes(config, "p");
    for (guint i = 0; i < volumes->len; i++)
        g_string_append_printf(order, "%s ", ((const struct volume *)volumes->pdata[i])->uuid);
    config_free(config);
    return g_string_free(g_steal_pointer(&order), FALSE);
}

static void test_order(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(24);
    g_autofree char *first = order_of_volumes(rand);
    g_assert_cmpuint(strlen(first), >, IN_ORDER * 36);
    for (guint i = 0; i < 5; i++) {
        g_autofree char *order = order_of_volumes(rand);
        g_assert_cmpstr(order, ==, first);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/model-index/kept-as-counted", test_indexes);
    g_test_add_func("/model-index/sums-kept-as-counted", test_sums);
    g_test_add_func("/model-index/promised-as-counted", test_promised);
    g_test_add_func("/model-index/order-without-addresses", test_order);
    return g_test_run();
}
