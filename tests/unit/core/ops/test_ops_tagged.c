/*
 * Opcodes and the calls that they make know nothing of auto-repair: each does the same, step by
 * step, on objects with its tags and on objects with as many tags that mean nothing.
 */
#include "unit/core/world/ops_world.h"

#include <string.h>

#define P "ganeti:watcher:autorepair:"

struct row {
    const char *op, *more; /* more: further members, as JSON text */
    bool running;
    void (*prepare)(struct ops_world *world);
};

/* Its primary node, node2 then, is dead; its replica is on node3. */
static void lose_primary(struct ops_world *world)
{
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE2));
    ops_set(world, "instance", WEB, "holder", json_string(NODE2));
    ops_set(world, "instance", WEB, "secondary_node", json_string(NODE3));
    ops_set(world, "replica", REPLICA, "node", json_string(NODE3));
    world->guest_node = NULL;
    ops_node_offline(world, NODE2);
}

static void lose_copies(struct ops_world *world)
{
    lose_primary(world);
    ops_set(world, "replica", REPLICA, "state", json_string("stale"));
}

static void give_image(struct ops_world *world)
{
    world->image_bytes = MIB(4);
    ops_set(world, "instance", WEB, "os", json_string("tick"));
}

static void half_migrated(struct ops_world *world)
{
    ops_set(world, "instance", WEB, "task_state", json_string("migrating"));
    ops_set(world, "instance", WEB, "migration", json_string(REPLICA));
    ops_set(world, "instance", WEB, "migration_node", json_string(NODE2));
}

static void half_made(struct ops_world *world)
{
    ops_set(world, "instance", WEB, "task_state", json_string("creating"));
}

#define WEB1 "\"instance_name\": \"web1\""
static const struct row rows[] = {
    {"OP_INSTANCE_STARTUP", WEB1, false, NULL},
    {"OP_INSTANCE_SHUTDOWN", WEB1, true, NULL},
    {"OP_INSTANCE_REBOOT", WEB1 ", \"reboot_type\": \"full\"", true, NULL},
    {"OP_INSTANCE_FAILOVER", WEB1, true, NULL},
    {"OP_INSTANCE_FAILOVER", WEB1, true, lose_primary},
    {"OP_INSTANCE_FAILOVER", WEB1, true, lose_copies}, /* refused */
    {"OP_INSTANCE_MIGRATE", WEB1, true, NULL},
    {"OP_INSTANCE_MIGRATE", WEB1 ", \"cleanup\": true", true, half_migrated},
    {"OP_INSTANCE_REPLACE_DISKS", WEB1, true, NULL},
    {"OP_INSTANCE_REPLACE_DISKS", WEB1 ", \"mode\": \"replace_new_secondary\"", false, NULL},
    {"OP_INSTANCE_GROW_DISK", WEB1 ", \"disk\": 0, \"amount\": 8", true, NULL},
    {"OP_INSTANCE_ACTIVATE_DISKS", WEB1, false, NULL},
    {"OP_INSTANCE_SET_PARAMS", WEB1 ", \"vnc_bind_address\": \"127.0.0.1\"", false, NULL},
    {"OP_INSTANCE_DEACTIVATE_DISKS", WEB1, false, NULL},
    {"OP_INSTANCE_RECREATE_DISKS", WEB1, true, lose_copies},
    {"OP_INSTANCE_REINSTALL", WEB1, false, give_image},
    {"OP_INSTANCE_VERIFY", WEB1, true, NULL},
    {"OP_INSTANCE_REMOVE", WEB1, true, NULL},
    {"OP_INSTANCE_SETTLE", WEB1, true, half_made},
    {"OP_NODE_SET_PARAMS", "\"node_name\": \"node2\", \"drained\": \"yes\"", true, NULL},
    {"OP_NODE_MIGRATE", "\"node_name\": \"node1\"", true, NULL},
    {"OP_NODE_EVACUATE", "\"node_name\": \"node2\"", true, NULL},
    {"OP_NODE_REMOVE", "\"node_name\": \"node3\"", true, NULL},
    {"OP_CLUSTER_SET_PARAMS", "\"max_running_jobs\": 7", true, NULL},
};

static void put_tag(struct ops_world *world, enum tag_kind kind, const char *object,
                    const char *text)
{
    g_autofree char *key = config_tag_key(kind, object, text);
    ops_put(world, "tag", key,
            json_make("{ss ss ss}", "kind", enum_word(&tag_kind_words, (int)kind), "object", object,
                      "tag", text));
}

/* Every kind of tag that auto-repair has, or as many of another kind. */
static void put_tags(struct ops_world *world, bool repair)
{
    static const struct {
        enum tag_kind kind;
        const char *object, *text;
    } tags[] = {
        {TAG_INSTANCE, WEB, P "fix-storage"},
        {TAG_INSTANCE, WEB, P "suspend"},
        {TAG_INSTANCE, WEB, P "pending:failover:X:1600000000:9"},
        {TAG_INSTANCE, WEB, P "result:migrate:Y:1600000000:failure:8"},
        {TAG_INSTANCE, WEB, P "reboot"},
        {TAG_NODEGROUP, GROUP, P "reinstall"},
        {TAG_NODEGROUP, GROUP, P "suspend:1900000000"},
        {TAG_CLUSTER, CLUSTER, P "suspend"},
        {TAG_NODE, NODE1, P "suspend"},
        {TAG_NODE, NODE3, P "failover"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(tags); i++) {
        g_autofree char *other = g_strdup_printf("other:%u", i);
        put_tag(world, tags[i].kind, tags[i].object, repair ? tags[i].text : other);
    }
}

static void add_object(const char *kind, const char *key, guint64 version, const void *value,
                       void *data)
{
    struct {
        const struct config *config;
        GPtrArray *lines;
    } *all = data;
    if (strcmp(kind, "tag") == 0)
        return;
    json_autoptr json = config_object_json(all->config, kind, key);
    g_autofree char *text = json_to_text(json);
    g_ptr_array_add(all->lines, g_strdup_printf("%s %s %s", kind, key, text));
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *all_objects(const struct ops_world *world)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    struct {
        const struct config *config;
        GPtrArray *lines;
    } all = {world->config, lines};
    config_each(world->config, add_object, &all);
    g_ptr_array_sort(lines, by_text);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("\n", (char **)lines->pdata);
}

/* All that can be seen of one run: locks, calls and commits in their order, its log and result, and
 * what is on record then. */
static char *run(const struct row *row, bool repair)
{
    struct ops_world *world = ops_world_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *body = g_strdup_printf("{\"OP_ID\": \"%s\", %s}", row->op, row->more);
    json_t *opcode = json_parse_limited(body, strlen(body), KIB(4), &error);
    g_assert_no_error(error);
    ops_put_web(world, "in-sync", row->running);
    if (row->prepare != NULL)
        row->prepare(world);
    put_tags(world, repair);
    g_assert_cmpuint(config_count(world->config, "tag"), ==, 10);
    world->trace_locks = true;
    g_string_truncate(world->trace, 0);
    const char *result = ops_run_one(world, opcode);
    g_autofree char *log = ops_log(world, 0), *objects = all_objects(world);
    char *all = g_strjoin("\n", result, log, world->trace->str, objects, NULL);
    ops_world_free(world);
    return all;
}

static void test_same(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *tagged = run(&rows[i], true), *plain = run(&rows[i], false);
        g_test_message("%s %s: %.60s", rows[i].op, rows[i].more, plain);
        g_assert_cmpstr(tagged, ==, plain);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ops-tagged/same-with-and-without#ARP-05", test_same);
    return g_test_run();
}
