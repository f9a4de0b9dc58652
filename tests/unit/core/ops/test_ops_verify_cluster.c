/* The opcodes that check the cluster: which jobs they ask for, and what luxid's answer becomes. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static void check(const char *opcode, const char *group, const char *expected)
{
    json_t *json = json_make("{ss}", "OP_ID", opcode);
    if (group)
        json_object_set_new(json, "group_name", json_string(group));
    json_autoptr found = json_loads(ops_run_one(world, json), JSON_DECODE_ANY, NULL);
    g_autofree char *text = json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY);
    g_assert_cmpstr(text, ==, expected);
}

static void check_log(const char *expected)
{
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, expected);
}

static void test_jobs(void)
{
    check("OP_CLUSTER_VERIFY", NULL,
          "{\"jobs\":[[{\"OP_ID\":\"OP_CLUSTER_VERIFY_CONFIG\"}],[{\"OP_ID\":"
          "\"OP_CLUSTER_VERIFY_GROUP\",\"group_name\":\"default\"}]]}");
    check("OP_CLUSTER_VERIFY", "default",
          "{\"jobs\":[[{\"OP_ID\":\"OP_CLUSTER_VERIFY_GROUP\",\"group_name\":\"default\"}]]}");
    check("OP_CLUSTER_VERIFY_DISKS", NULL,
          "{\"jobs\":[[{\"OP_ID\":\"OP_GROUP_VERIFY_DISKS\",\"group_name\":\"default\"}]]}");
}

static void test_no_group(void)
{
    static const char *const opcodes[] = {"OP_CLUSTER_VERIFY", "OP_CLUSTER_VERIFY_GROUP",
                                          "OP_CLUSTER_VERIFY_DISKS", "OP_GROUP_VERIFY_DISKS"};
    for (guint i = 0; i < G_N_ELEMENTS(opcodes); i++)
        check(opcodes[i], "nix",
              "[\"OpPrereqError\",[\"nodegroup \\\"nix\\\" does not exist\",\"unknown_entity\"]]");
}

/* What it is asked about goes into the answer. */
static json_t *answer(const struct rpc_request *request, const char *to_node, void *problems,
                      GError **error)
{
    g_autofree char *asked = json_dumps(request->args, JSON_COMPACT);
    return json_make("{sO s[s]}", "problems", problems, "notes", asked);
}

static void test_looks(void)
{
    json_autoptr none = json_array();
    json_autoptr some = json_make("[s, s]", "node node2: is offline", "instance web1: x");
    fake_script(world->world, NODE1, ROLE_LUXID, "Verify", answer, none);
    check("OP_CLUSTER_VERIFY_CONFIG", NULL, "true");
    check_log("* Checking the cluster itself\n  - NOTICE: [\"\",\"\",true]\n");
    fake_script(world->world, NODE1, ROLE_LUXID, "Verify", NULL, NULL);
    fake_script(world->world, NODE1, ROLE_LUXID, "Verify", answer, some);
    check("OP_CLUSTER_VERIFY_GROUP", "default", "false");
    check_log("* Checking group default\n  - ERROR: node node2: is offline\n"
              "  - ERROR: instance web1: x\n  - NOTICE: [\"\",\"default\",false]\n");
}

/* As long as luxid has too much to do, or does not answer. */
static json_t *answer_busy(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    guint *left = data;
    if (*left == 0)
        return json_make("{s[] s[]}", "problems", "notes");
    --*left;
    if (*left % 2)
        fettle_set_error(error, TEMPORARY, "8 queries that take long are under way already");
    else
        fettle_set_error(error, TIMEOUT, "no answer in time");
    return NULL;
}

static json_t *answer_failing(const struct rpc_request *request, const char *to_node, void *data,
                              GError **error)
{
    fettle_set_error(error, LIMIT, "the answer is too large");
    return NULL;
}

static void test_busy(void)
{
    guint busy = 9;
    fake_script(world->world, NODE1, ROLE_LUXID, "Verify", answer_busy, &busy);
    check("OP_CLUSTER_VERIFY_GROUP", "default", "true");
    g_assert_cmpuint(busy, ==, 0);
    fake_script(world->world, NODE1, ROLE_LUXID, "Verify", NULL, NULL);
    fake_script(world->world, NODE1, ROLE_LUXID, "Verify", answer_failing, NULL);
    g_assert_nonnull(
        strstr(ops_run_one(world, json_make("{ss ss}", "OP_ID", "OP_CLUSTER_VERIFY_GROUP",
                                            "group_name", "default")),
               "the answer is too large"));
}

static void test_disks(void)
{
    ops_put_web(world, "in-sync", false);
    check("OP_GROUP_VERIFY_DISKS", "default", "[{},[],{}]");
    ops_put_web(world, "stale", true);
    check("OP_GROUP_VERIFY_DISKS", "default", "[{},[],{}]");
    ops_put_web(world, "stale", false);
    check("OP_GROUP_VERIFY_DISKS", "default", "[{},[\"web1\"],{}]");
    fake_cut(world->world, NODE3, true);
    check("OP_GROUP_VERIFY_DISKS", "default", "[{\"node3\":\"does not answer\"},[\"web1\"],{}]");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ops_case("/ops/verify-cluster/jobs#ARP-70", test_jobs, &world, NULL);
    ops_case("/ops/verify-cluster/no-such-group", test_no_group, &world, NULL);
    ops_case("/ops/verify-cluster/looks#ARP-70", test_looks, &world, NULL);
    ops_case("/ops/verify-cluster/busy#ARP-70", test_busy, &world, NULL);
    ops_case("/ops/verify-cluster/disks#ARP-70", test_disks, &world, NULL);
    return g_test_run();
}
