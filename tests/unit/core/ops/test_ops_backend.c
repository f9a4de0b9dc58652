/* Back ends of volumes by opcodes: made, changed, removed; each refusal in its words. */
#include "unit/core/world/ops_case.h"

#include <string.h>

#define VOLUME "eeeeeeee-1000-4000-8000-000000000000"
#define DIR1 "dddddddd-1111-4000-8000-000000000000"

static struct ops_world *world;

static const char *run(const char *id, json_t *params)
{
    json_object_set_new(params, "OP_ID", json_string(id));
    return ops_run_one(world, params);
}

static const char *add(const char *name, const char *node, const char *path)
{
    return run("OP_BACKEND_ADD", json_make("{ss s[ss] ss}", "backend_name", name, "nodes", "node1",
                                           node, "path", path));
}

static const char *modify(const char *name, json_t *nodes)
{
    return run("OP_BACKEND_SET_PARAMS", json_make("{ss so}", "backend_name", name, "nodes", nodes));
}

static const char *remove_dir1(void)
{
    return run("OP_BACKEND_REMOVE", json_make("{ss}", "backend_name", "dir1"));
}

static void put_dir1(void)
{
    ops_put(world, "backend", DIR1,
            json_make("{ss ss ss s[s] ss}", "uuid", DIR1, "name", "dir1", "kind", "dir", "nodes",
                      NODE1, "path", "/mnt/a"));
}

static void test_life(void)
{
    world->trace_locks = true;
    g_assert_cmpstr(add("dir1", "node2", "/mnt//a/"), ==, "null");
    g_assert_null(strstr(world->trace->str, "exclusive"));
    const struct backend *backend = config_find(world->config, "backend", "dir1", NULL);
    g_assert_nonnull(backend);
    g_assert_cmpstr(backend->path, ==, "/mnt/a");
    g_assert_cmpint(backend->kind, ==, BACKEND_DIR);
    g_assert_cmpuint(backend->nodes->len, ==, 2);
    g_assert_cmpstr(backend->nodes->pdata[1], ==, NODE2);
    g_assert_cmpstr(modify("dir1", json_make("[sss]", "node3", "node2", "node3")), ==, "null");
    backend = config_find(world->config, "backend", "dir1", NULL);
    g_assert_cmpuint(backend->nodes->len, ==, 2);
    g_assert_cmpstr(backend->nodes->pdata[0], ==, NODE3);
    g_assert_cmpstr(remove_dir1(), ==, "null");
    g_assert_cmpuint(config_count(world->config, "backend"), ==, 0);
}

/* How full it may get; what is not named stays. */
static void test_room(void)
{
    g_assert_cmpstr(run("OP_BACKEND_ADD",
                        json_make("{ss s[s] ss si si}", "backend_name", "dir1", "nodes", "node1",
                                  "path", "/mnt/a", "reserved_percent", 5, "overcommit", 200)),
                    ==, "null");
    const struct backend *backend = config_find(world->config, "backend", "dir1", NULL);
    g_assert_cmpuint(backend->reserved_percent, ==, 5);
    g_assert_cmpuint(backend->overcommit, ==, 200);
    g_assert_cmpstr(run("OP_BACKEND_SET_PARAMS",
                        json_make("{ss si}", "backend_name", "dir1", "reserved_percent", 0)),
                    ==, "null");
    backend = config_find(world->config, "backend", "dir1", NULL);
    g_assert_cmpuint(backend->reserved_percent, ==, 0);
    g_assert_cmpuint(backend->overcommit, ==, 200);
}

/* Whether it may hold backups, and images: only if somebody says so; what is not named stays. */
static void test_backups(void)
{
    put_dir1();
    const struct backend *backend = config_find(world->config, "backend", "dir1", NULL);
    g_assert_false(backend->backups);
    g_assert_false(backend->images);
    g_assert_cmpstr(run("OP_BACKEND_SET_PARAMS",
                        json_make("{ss ss}", "backend_name", "dir1", "backups", "yes")),
                    ==, "null");
    g_assert_cmpstr(run("OP_BACKEND_SET_PARAMS",
                        json_make("{ss si}", "backend_name", "dir1", "overcommit", 200)),
                    ==, "null");
    backend = config_find(world->config, "backend", "dir1", NULL);
    g_assert_true(backend->backups);
    g_assert_false(backend->images);
    g_assert_cmpstr(
        run("OP_BACKEND_SET_PARAMS", json_make("{ss ss}", "backend_name", "dir1", "images", "yes")),
        ==, "null");
    backend = config_find(world->config, "backend", "dir1", NULL);
    g_assert_true(backend->images);
    g_assert_true(backend->backups);
}

static void test_add_refused(void)
{
    static const struct {
        const char *name, *node, *path, *message, *code;
    } bad[] = {
        {"dir2", "node9", "/mnt/b", "nodes: node \"node9\" does not exist", "unknown_entity"},
        {"dir2", "node2", "mnt/b",
         "path: \"mnt/b\" does not begin with /; it must be the same on every node", "wrong_input"},
        {"dir1", "node2", "/mnt/b", "back end \"dir1\" exists already", "already_exists"},
    };
    put_dir1();
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        ops_expect_refusal(world, add(bad[i].name, bad[i].node, bad[i].path), bad[i].message,
                           bad[i].code);
}

static void test_modify_refused(void)
{
    put_dir1();
    ops_expect_refusal(world, modify("dir1", json_make("[s]", "node9")),
                       "nodes: node \"node9\" does not exist", "unknown_entity");
    ops_expect_refusal(world, modify("dir1", json_make("[s]", "node1")),
                       "nothing to change: back end \"dir1\" is so already", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_BACKEND_SET_PARAMS",
                           json_make("{ss si}", "backend_name", "dir1", "overcommit", 99)),
                       "overcommit: must be at least 100 (%)", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_BACKEND_SET_PARAMS",
                           json_make("{ss ss}", "backend_name", "dir1", "backups", "maybe")),
                       "backups: must be yes or no, not \"maybe\"", "wrong_input");
    ops_expect_refusal(world, modify("dir2", json_make("[s]", "node1")),
                       "backend \"dir2\" does not exist", "unknown_entity");
}

static void test_node_stays(void)
{
    put_dir1();
    ops_set(world, "backend", DIR1, "nodes", json_make("[ss]", NODE1, NODE3));
    ops_expect_refusal(world, run("OP_NODE_REMOVE", json_make("{ss}", "node_name", "node3")),
                       "node \"node3\" serves back end \"dir1\"; name the nodes that do without "
                       "it first: fettle backend modify dir1 --nodes NODES",
                       "wrong_state");
    ops_set(world, "backend", DIR1, "nodes", json_make("[s]", NODE1));
    ops_put(world, "api_front_end", NODE3, json_make("{ss}", "node", NODE3));
    ops_expect_refusal(world, run("OP_NODE_REMOVE", json_make("{ss}", "node_name", "node3")),
                       "node \"node3\" has a front end of the API; take that away first: fettle "
                       "api remove --node node3",
                       "wrong_state");
}

static void test_remove_refused(void)
{
    put_dir1();
    ops_put(world, "volume", VOLUME,
            json_make("{ss si ss ss}", "uuid", VOLUME, "size", 1, "status", "available", "backend",
                      DIR1));
    ops_expect_refusal(world, remove_dir1(), "back end dir1 has 1 volume; delete it first",
                       "wrong_state");
    g_assert_cmpuint(config_count(world->config, "backend"), ==, 1);
}

static void add_case(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_case("/backend/life", test_life);
    add_case("/backend/room", test_room);
    add_case("/backend/backups", test_backups);
    add_case("/backend/add-refused", test_add_refused);
    add_case("/backend/modify-refused", test_modify_refused);
    add_case("/backend/node-stays", test_node_stays);
    add_case("/backend/remove-refused", test_remove_refused);
    return g_test_run();
}
