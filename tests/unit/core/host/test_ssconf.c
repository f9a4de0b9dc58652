/* The small files of every node: what stands in them, and when they are written. */
#include <string.h>

#include "core/host/ssconf.h"
#include "helper/fake_env.h"
#include "proto/records.h"

#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define NODE1 "11111111-0000-4000-8000-000000000001"
#define NODE2 "22222222-0000-4000-8000-000000000002"
#define NODE3 "33333333-0000-4000-8000-000000000003"

static void add_member(struct announce_args *args, const char *uuid, const char *name,
                       const char *address, bool candidate, bool offline)
{
    const struct member member = {.uuid = (char *)uuid,
                                  .name = (char *)name,
                                  .address = (char *)address,
                                  .port = 1811,
                                  .master_candidate = candidate,
                                  .offline = offline};
    g_ptr_array_add(args->members, member_copy(&member));
}

static struct announce_args *announcement(const char *name, guint64 serial)
{
    struct announce_args *args = announce_args_new();
    g_free(args->cluster);
    args->cluster = g_strdup(CLUSTER);
    g_free(args->cluster_name);
    args->cluster_name = g_strdup(name);
    g_free(args->master_node);
    args->master_node = g_strdup(NODE2);
    args->serial = serial;
    add_member(args, NODE3, "node3", "10.0.0.3", false, true);
    add_member(args, NODE1, "node1", "10.0.0.1", false, false);
    add_member(args, NODE2, "node2", "10.0.0.2", true, false);
    return args;
}

static void test_facts(void)
{
    static const char *const expected[][2] = {
        {"cluster_name", "c1\n"},
        {"cluster_uuid", CLUSTER "\n"},
        {"master_node", "node2\n"},
        {"master_ip", "10.0.0.2\n"},
        {"node_list", "node1\nnode2\nnode3\n"},
        {"node_primary_ips", "node1 10.0.0.1\nnode2 10.0.0.2\nnode3 10.0.0.3\n"},
        {"master_candidates", "node2\n"},
        {"master_candidates_ips", "10.0.0.2\n"},
        {"online_nodes", "node1\nnode2\n"},
        {"offline_nodes", "node3\n"},
    };
    record_autoptr(announce_args) args = announcement("c1", 5);
    g_autoptr(GPtrArray) files = ssconf_files(args);
    g_assert_cmpuint(files->len, ==, G_N_ELEMENTS(expected));
    for (guint i = 0; i < files->len; i++) {
        const struct ssconf_file *file = files->pdata[i];
        g_assert_cmpstr(file->name, ==, expected[i][0]);
        g_assert_cmpstr(file->text, ==, expected[i][1]);
    }
}

/* --- on a node --- */

struct updating {
    const struct env *env;
    const struct announce_args *args;
};

static void update_task(void *data)
{
    const struct updating *updating = data;
    ssconf_update(updating->env, updating->args);
}

static void update_with(struct fake_world *world, const struct env *env,
                        const struct announce_args *args)
{
    struct updating updating = {env, args};
    task_spawn(env->tasks, update_task, &updating);
    fake_settle(world);
}

static void update(struct fake_world *world, const struct env *env, const char *name,
                   guint64 serial)
{
    record_autoptr(announce_args) args = announcement(name, serial);
    update_with(world, env, args);
}

static char *content(const struct env *env, const char *name)
{
    g_autofree char *path = g_strconcat("ssconf/", name, NULL);
    size_t len = 0;
    char *text = env->ops->file_read(env, FILE_STATE, path, KIB(4), &len, NULL);
    return text ? text : g_strdup("none");
}

static void assert_content(const struct env *env, const char *name, const char *expected)
{
    g_autofree char *text = content(env, name);
    g_assert_cmpstr(text, ==, expected);
}

/* The serial is that of the last change of a fact, not of the last announcement. */
static void test_update(void)
{
    struct fake_world *world = fake_world_new();
    struct env *env = fake_process(world, NODE1, ROLE_NODED);
    update(world, env, "c1", 5);
    assert_content(env, "cluster_name", "c1\n");
    assert_content(env, "serial", "5\n");
    update(world, env, "c1", 6);
    assert_content(env, "serial", "5\n");
    update(world, env, "c2", 7);
    assert_content(env, "cluster_name", "c2\n");
    assert_content(env, "node_list", "node1\nnode2\nnode3\n");
    assert_content(env, "serial", "7\n");
    /* A master of an older version tells no name. */
    update(world, env, "", 8);
    assert_content(env, "cluster_name", "c2\n");
    assert_content(env, "serial", "7\n");
    fake_world_free(world);
}

/* Also with as many nodes as there can be nothing is written again. */
static void test_many(void)
{
    struct fake_world *world = fake_world_new();
    struct env *env = fake_process(world, NODE1, ROLE_NODED);
    record_autoptr(announce_args) args = announcement("c1", 5);
    while (args->members->len < LIMIT_NODES) {
        g_autofree char *uuid =
            g_strdup_printf("99999999-0000-4000-8000-%012u", args->members->len);
        g_autofree char *name = g_strdup_printf("node%059u", args->members->len);
        add_member(args, uuid, name, "2001:1db8:1111:2222:3333:4444:5555:6666", false, false);
    }
    update_with(world, env, args);
    assert_content(env, "serial", "5\n");
    args->serial = 6;
    update_with(world, env, args);
    assert_content(env, "serial", "5\n");
    g_ptr_array_remove_index(args->members, args->members->len - 1);
    args->serial = 7;
    update_with(world, env, args);
    assert_content(env, "serial", "7\n");
    fake_world_free(world);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ssconf/facts", test_facts);
    g_test_add_func("/ssconf/update", test_update);
    g_test_add_func("/ssconf/many", test_many);
    return g_test_run();
}
