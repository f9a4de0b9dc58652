/* Emptying a node: which jobs do it, by the table of auto-repair, and what stays. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

/* "web1: MIGRATE, REPLACE_DISKS; …" and what stays, of the result. */
static char *jobs_of(const char *opcode, const char *mode, const char *target)
{
    bool evacuate = !strcmp(opcode, "OP_NODE_EVACUATE");
    json_t *json = json_make("{ss ss}", "OP_ID", opcode, "node_name", "node1");
    if (mode)
        json_object_set_new(json, "mode", json_string(mode));
    if (target)
        json_object_set_new(json, evacuate ? "remote_node" : "target_node", json_string(target));
    g_autofree char *text = g_strdup(ops_run_one(world, json));
    json_autoptr result = json_loads(text, 0, NULL);
    GString *jobs = g_string_new(NULL);
    size_t i, k;
    json_t *job, *op;
    if (!json_is_object(result)) {
        g_string_free(jobs, TRUE);
        return g_steal_pointer(&text);
    }
    json_array_foreach(json_object_get(result, "jobs"), i, job) {
        json_array_foreach(job, k, op) {
            const char *to = json_string_value(json_object_get(op, "remote_node"));
            to = to ? to : json_string_value(json_object_get(op, "target_node"));
            const char *id = json_string_value(json_object_get(op, "OP_ID"));
            g_string_append_printf(jobs, "%s%s%s%s",
                                   k   ? ", "
                                   : i ? "; "
                                       : "",
                                   id + strlen("OP_INSTANCE_"), to ? ">" : "", to ? to : "");
        }
    }
    json_array_foreach(json_object_get(result, "failed"), i, job)
        g_string_append_printf(jobs, " [%s]", json_string_value(json_array_get(job, 1)));
    return g_string_free(jobs, FALSE);
}

#define assert_jobs(said, expected)                                                                \
    do {                                                                                           \
        g_autofree char *said_ = (said);                                                           \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

static char *evacuate(const char *mode)
{
    return jobs_of("OP_NODE_EVACUATE", mode, NULL);
}

static void set_template(const char *disk_template, bool running)
{
    ops_put_web(world, NULL, running);
    json_t *web = config_object_json(world->config, "instance", WEB);
    json_object_set_new(web, "disk_template", json_string(disk_template));
    ops_put(world, "instance", WEB, web);
}

/* --- mirror --- */

static void test_primary(void)
{
    ops_put_web(world, "in-sync", true);
    assert_jobs(evacuate("all"), "MIGRATE, REPLACE_DISKS");
    assert_jobs(evacuate("primary-only"), "MIGRATE");
    assert_jobs(evacuate("secondary-only"), "");
    assert_jobs(jobs_of("OP_NODE_MIGRATE", NULL, NULL), "MIGRATE");
    assert_jobs(jobs_of("OP_NODE_EVACUATE", "all", "node3"), "MIGRATE, REPLACE_DISKS>node3");
}

/* What is asked of the migrations stands in each of them. */
static void test_limits(void)
{
    static const char *const opcodes[] = {"OP_NODE_MIGRATE", "OP_NODE_EVACUATE"};
    ops_put_web(world, "in-sync", true);
    for (size_t i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        g_autofree char *text = g_strdup(ops_run_one(
            world, json_make("{ss ss si si si}", "OP_ID", opcodes[i], "node_name", "node1",
                             "bandwidth", 20, "downtime_ms", 50, "timeout", 900)));
        json_autoptr result = json_loads(text, 0, NULL);
        const json_t *op = json_array_get(json_array_get(json_object_get(result, "jobs"), 0), 0);
        g_assert_cmpint(json_integer_value(json_object_get(op, "bandwidth")), ==, 20);
        g_assert_cmpint(json_integer_value(json_object_get(op, "downtime_ms")), ==, 50);
        g_assert_cmpint(json_integer_value(json_object_get(op, "timeout")), ==, 900);
    }
}

/* First a good secondary, then the move, then the replica that is left here. */
static void test_bad_secondary(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "node", NODE2, "drained", json_true());
    assert_jobs(evacuate("all"), "REPLACE_DISKS, MIGRATE, REPLACE_DISKS");
    ops_put_web(world, "stale", true);
    ops_set(world, "node", NODE2, "drained", json_false());
    assert_jobs(jobs_of("OP_NODE_EVACUATE", "all", "node3"),
                "REPLACE_DISKS>node3, MIGRATE, REPLACE_DISKS");
}

static void test_secondary(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE2));
    ops_set(world, "instance", WEB, "holder", json_string(NODE2));
    ops_set(world, "instance", WEB, "secondary_node", json_string(NODE1));
    ops_set(world, "replica", REPLICA, "node", json_string(NODE1));
    assert_jobs(evacuate("all"), "REPLACE_DISKS");
    assert_jobs(evacuate("secondary-only"), "REPLACE_DISKS");
    assert_jobs(evacuate("primary-only"), "");
    assert_jobs(jobs_of("OP_NODE_MIGRATE", NULL, NULL), "");
}

static void test_offline(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "node", NODE1, "offline", json_true());
    assert_jobs(evacuate("all"), "FAILOVER, REPLACE_DISKS");
    /* What a lost master may have answered alone nobody knows; a person's word stands for it. */
    ops_set(world, "node", NODE1, "unheard_since", json_integer(86400));
    assert_jobs(evacuate("all"), "FAILOVER, REPLACE_DISKS");
    ops_put_web(world, "stale", true);
    assert_jobs(evacuate("all"), " [its node is offline and no replica in sync is left, so moving "
                                 "it would give up its data]");
}

/* --- other templates --- */

static void test_shared(void)
{
    static const char *const templates[] = {"sharedfile", "diskless"};
    for (guint i = 0; i < G_N_ELEMENTS(templates); i++) {
        ops_set(world, "node", NODE1, "offline", json_false());
        set_template(templates[i], true);
        assert_jobs(evacuate("all"), "MIGRATE");
        assert_jobs(jobs_of("OP_NODE_MIGRATE", NULL, "node3"), "MIGRATE>node3");
        ops_set(world, "node", NODE1, "offline", json_true());
        assert_jobs(evacuate("all"), "FAILOVER");
    }
}

static void test_file(void)
{
    set_template("file", true);
    assert_jobs(evacuate("all"), "MIGRATE");
    set_template("file", false);
    assert_jobs(evacuate("all"), " [its disks are on this node only, and only a running guest "
                                 "takes them along; start it, and say it again]");
    ops_set(world, "node", NODE1, "offline", json_true());
    assert_jobs(evacuate("all"), " [its disks are on this node only, which is offline]");
}

/* --- refused --- */

static void test_refused(void)
{
    assert_jobs(jobs_of("OP_NODE_EVACUATE", "all", "node1"),
                "[\"OpPrereqError\", [\"node \\\"node1\\\" is the one that is to be emptied\", "
                "\"wrong_input\"]]");
    ops_set(world, "node", NODE2, "drained", json_true());
    assert_jobs(jobs_of("OP_NODE_EVACUATE", "all", "node2"),
                "[\"OpPrereqError\", [\"node \\\"node2\\\" is drained and takes no instances\", "
                "\"wrong_state\"]]");
    assert_jobs(jobs_of("OP_NODE_EVACUATE", "all", "node9"),
                "[\"OpPrereqError\", [\"node \\\"node9\\\" does not exist\", \"unknown_entity\"]]");
    ops_set(world, "node", NODE1, "offline", json_true());
    assert_jobs(jobs_of("OP_NODE_MIGRATE", NULL, NULL),
                "[\"OpPrereqError\", [\"node \\\"node1\\\" is offline, so nothing runs there that "
                "could migrate; use node evacuate\", \"wrong_state\"]]");
}

/* The commit of an end that asks for other jobs is luxid's: here it is left out. */
static void test_end_is_left_to_luxid(void)
{
    ops_put_web(world, "in-sync", true);
    assert_jobs(evacuate("all"), "MIGRATE, REPLACE_DISKS");
    ops_expect(world, "");
    g_assert_cmpstr(world->done->status, ==, "success");
    assert_jobs(evacuate("secondary-only"), "");
    ops_expect(world, "commit job success\n");
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/evacuate/primary", test_primary);
    add("/evacuate/limits", test_limits);
    add("/evacuate/bad-secondary", test_bad_secondary);
    add("/evacuate/secondary", test_secondary);
    add("/evacuate/offline#SAF-16", test_offline);
    add("/evacuate/shared", test_shared);
    add("/evacuate/file", test_file);
    add("/evacuate/refused", test_refused);
    add("/evacuate/end#SAF-30", test_end_is_left_to_luxid);
    return g_test_run();
}
