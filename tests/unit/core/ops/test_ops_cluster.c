/* Settings, advice, the release of the brake, and tags for all that match. */
#include "base/limits.h"
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const struct cluster *cluster(void)
{
    return config_get(world->config, "cluster", CLUSTER, NULL);
}

static const char *run(const char *id, json_t *params)
{
    json_object_set_new(params, "OP_ID", json_string(id));
    return ops_run_one(world, params);
}

/* --- settings --- */

static void test_settings(void)
{
    world->trace_locks = true;
    g_assert_cmpstr(run("OP_CLUSTER_SET_PARAMS",
                        json_make("{si sf ss ss}", "replica_lost_ms", 2500, "memory_ratio", 1.5,
                                  "repair_shadow", "yes", "mac_prefix", "02:AB:cd")),
                    ==, "null");
    g_assert_true(g_str_has_prefix(world->trace->str, "locks cluster/BGL=exclusive\n"));
    g_assert_cmpuint(cluster()->replica_lost_ms, ==, 2500);
    g_assert_cmpfloat(cluster()->memory_ratio, ==, 1.5);
    g_assert_true(cluster()->repair_shadow);
    g_assert_cmpstr(cluster()->mac_prefix, ==, "02:ab:cd");
    g_assert_cmpfloat(cluster()->disk_ratio, ==, 1);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "replica_lost_ms: 1500 -> 2500\n"
                    "mac_prefix: aa:00:00 -> 02:ab:cd\n"
                    "memory_ratio: 1.0 -> 1.5\n"
                    "repair_shadow: no -> yes\n");
    g_assert_cmpstr(run("OP_CLUSTER_SET_PARAMS",
                        json_make("{ss si}", "repair_shadow", "no", "repair_interval_ms", 0)),
                    ==, "null");
    g_assert_false(cluster()->repair_shadow);
    g_assert_cmpint(cluster()->lock_coverage, ==, COVERAGE_MANDATORY);
    g_assert_cmpstr(run("OP_CLUSTER_SET_PARAMS",
                        json_make("{ss si si si}", "lock_coverage", "log", "commit_copies", 0,
                                  "copy_patience_ms", 500, "sweep_interval_ms", 2000)),
                    ==, "null");
    g_assert_cmpuint(cluster()->candidate_pool_size, ==, 3);
    g_assert_cmpstr(run("OP_CLUSTER_SET_PARAMS", json_make("{si}", "candidate_pool_size", 7)), ==,
                    "null");
    g_assert_cmpuint(cluster()->candidate_pool_size, ==, 7);
    g_assert_cmpint(cluster()->lock_coverage, ==, COVERAGE_LOG);
    g_assert_cmpuint(cluster()->commit_copies, ==, 0);
    g_assert_cmpuint(cluster()->copy_patience_ms, ==, 500);
    g_assert_cmpuint(cluster()->sweep_interval_ms, ==, 2000);
    g_assert_false(cluster()->auto_cleanup_enabled || cluster()->upgrading);
    g_assert_cmpuint(cluster()->auto_cleanup_checks, ==, 3);
    g_assert_cmpstr(
        run("OP_CLUSTER_SET_PARAMS", json_make("{ss si ss}", "auto_cleanup_enabled", "yes",
                                               "auto_cleanup_checks", 5, "upgrading", "yes")),
        ==, "null");
    g_assert_true(cluster()->auto_cleanup_enabled && cluster()->upgrading);
    g_assert_cmpuint(cluster()->auto_cleanup_checks, ==, 5);
    g_assert_cmpint(cluster()->accelerator, ==, ACCEL_AUTO);
    g_assert_cmpstr(run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "accelerator", "kvm")), ==,
                    "null");
    g_assert_cmpint(cluster()->accelerator, ==, ACCEL_KVM);
}

static void test_settings_of_recovery(void)
{
    g_assert_cmpstr(
        run("OP_CLUSTER_SET_PARAMS",
            json_make("{si si si si si ss}", "recovery_interval_period", 5, "recovery_stale_period",
                      1, "recovery_resync_count", 2, "recovery_resync_interval", 3,
                      "recovery_max_jobs", 4, "recovery_rectify_unstable", "all")),
        ==, "null");
    g_assert_cmpuint(cluster()->recovery_interval_period, ==, 5);
    g_assert_cmpuint(cluster()->recovery_stale_period, ==, 1);
    g_assert_cmpuint(cluster()->recovery_resync_count, ==, 2);
    g_assert_cmpuint(cluster()->recovery_resync_interval, ==, 3);
    g_assert_cmpuint(cluster()->recovery_max_jobs, ==, 4);
    g_assert_cmpint(cluster()->recovery_rectify_unstable, ==, RECTIFY_ALL);
}

static void test_webhook_allow(void)
{
    g_assert_cmpstr(run("OP_CLUSTER_SET_PARAMS",
                        json_make("{ss}", "webhook_allow", "192.0.2.0/24, 2001:db8::1")),
                    ==, "null");
    g_assert_cmpuint(cluster()->webhook_allow->len, ==, 2);
    g_assert_cmpstr(cluster()->webhook_allow->pdata[1], ==, "2001:db8::1");
    g_assert_cmpstr(run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "webhook_allow", "none")), ==,
                    "null");
    g_assert_cmpuint(cluster()->webhook_allow->len, ==, 0);
}

/* Commas or blanks between patterns, which a lone comma is not; `none` is none. */
static void test_patterns(void)
{
    static const char *const rows[][2] = {
        {"docker*, virbr*,,br?", "docker* virbr* br?"}, {"one", "one"}, {"none", ""}};
    g_assert_cmpstr(cluster()->recovery_ignore, ==, "docker* virbr* lxcbr* ovs-system");
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_assert_cmpstr(
            run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "recovery_ignore", rows[i][0])), ==,
            "null");
        g_assert_cmpstr(cluster()->recovery_ignore, ==, rows[i][1]);
    }
}

static void test_patterns_refused(void)
{
    g_autofree char *many = g_strnfill(2 * (LIMIT_IGNORE_PATTERNS + 1), ',');
    for (guint i = 0; i <= LIMIT_IGNORE_PATTERNS; i++)
        many[2 * i] = 'x';
    ops_expect_refusal(
        world, run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "recovery_ignore", ",")),
        "recovery_ignore: 0 patterns; 1 to 64 are allowed, as docker*,virbr*, or none",
        "wrong_input");
    ops_expect_refusal(
        world, run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "recovery_ignore", many)),
        "recovery_ignore: 65 patterns; 1 to 64 are allowed, as docker*,virbr*, or none",
        "wrong_input");
    g_autofree char *long_one = g_strnfill(LIMIT_IGNORE_PATTERN + 1, 'x');
    g_autofree char *refusal = g_strdup_printf(
        "recovery_ignore: \"%s\" is longer than 64 characters, which no name is that "
        "it is compared with",
        long_one);
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "recovery_ignore", long_one)),
                       refusal, "wrong_input");
}

/* Of each what differs from the table of collectors is on record. */
static void test_collectors(void)
{
    g_assert_cmpstr(
        run("OP_CLUSTER_SET_PARAMS", json_make("{s[ss] s[s]}", "data_collectors", "lv=no",
                                               "drbd=no", "data_collector_interval", "guests=30")),
        ==, "null");
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "collectors_off: [] -> [\"lv\",\"drbd\"]\n"
                    "collector_intervals: [] -> [\"guests=30\"]\n");
    g_assert_cmpstr(
        run("OP_CLUSTER_SET_PARAMS", json_make("{s{sb} s{si}}", "enabled_data_collectors", "lv", 1,
                                               "data_collector_interval", "guests", 0)),
        ==, "null");
    g_assert_cmpuint(cluster()->collectors_off->len, ==, 1);
    g_assert_cmpstr(cluster()->collectors_off->pdata[0], ==, "drbd");
    g_assert_cmpuint(cluster()->collector_intervals->len, ==, 0);
}

static void test_collectors_refused(void)
{
    ops_expect_refusal(
        world, run("OP_CLUSTER_SET_PARAMS", json_make("{s[s]}", "data_collectors", "drbd=perhaps")),
        "data_collectors: drbd=perhaps: must be drbd=yes or drbd=no", "wrong_input");
}

static void test_settings_refused(void)
{
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{si}", "recovery_stale_period", 0)),
                       "recovery_stale_period: must be at least 1 (s)", "wrong_input");
    ops_expect_refusal(
        world, run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "recovery_rectify_unstable", "some")),
        "recovery_rectify_unstable: must be one of no, jobs, all", "wrong_input");
    ops_expect_refusal(world, run("OP_CLUSTER_SET_PARAMS", json_object()),
                       "nothing to change: name at least one setting", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{si}", "replica_lost_ms", 10)),
                       "replica_lost_ms: must be at least 100", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{si}", "watcher_interval_ms", 0)),
                       "watcher_interval_ms: must be at least 50", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{si}", "candidate_pool_size", 0)),
                       "candidate_pool_size: must be at least 1", "wrong_input");
    ops_expect_refusal(world, run("OP_CLUSTER_SET_PARAMS", json_make("{sf}", "disk_ratio", 0.01)),
                       "disk_ratio: must be at least 0.1", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "repair_shadow", "maybe")),
                       "repair_shadow: must be yes or no, not \"maybe\"", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "accelerator", "fast")),
                       "accelerator: must be one of auto, tcg, kvm", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "lock_coverage", "off")),
                       "lock_coverage: must be one of mandatory, log", "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "mac_prefix", "01:00:5e")),
                       "mac_prefix: \"01:00:5e\" does not begin the address of a card, as aa:00:00 "
                       "does",
                       "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "port_range", "80-11000")),
                       "port_range: must have at least 9 characters, has 8", "wrong_input");
    ops_expect_refusal(
        world, run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "port_range", "5000-11000")),
        "port_range: \"5000-11000\" is no range of ports from 5900 to 65535; one looks like "
        "11000-14999",
        "wrong_input");
    ops_expect_refusal(world,
                       run("OP_CLUSTER_SET_PARAMS", json_make("{ss}", "mac_prefix", "aa-00-00")),
                       "mac_prefix: \"aa-00-00\" does not begin the address of a card, as aa:00:00 "
                       "does",
                       "wrong_input");
}

/* --- advice --- */

static const char *advise(const char *node, const char *why, json_int_t until, bool withdraw)
{
    return run("OP_ADVICE_SET", json_make("{ss ss ss sI sb}", "node_name", node, "author", "smartd",
                                          "why", why, "until", until, "withdraw", (int)withdraw));
}

static const struct advice *advice(void)
{
    g_autoptr(GPtrArray) all = config_list(world->config, "advice");
    g_assert_cmpuint(all->len, ==, 1);
    return all->pdata[0];
}

static void test_advice(void)
{
    g_assert_cmpstr(advise("node2", "sda fails", 0, false), ==, "null");
    g_assert_cmpstr(advice()->subject, ==, NODE2);
    g_assert_cmpstr(advice()->advice, ==, "avoid");
    g_autofree char *uuid = g_strdup(advice()->uuid);
    /* The same author's next word takes its place; the record keeps its identity. */
    g_assert_cmpstr(advise(NODE2, "sdb fails too", 4000000000, false), ==, "null");
    g_assert_cmpstr(advice()->uuid, ==, uuid);
    g_assert_cmpstr(advice()->reason, ==, "sdb fails too");
    g_assert_cmpuint(advice()->until, ==, 4000000000);
    g_assert_cmpstr(advise("node2", "", 0, true), ==, "null");
    g_assert_cmpuint(config_count(world->config, "advice"), ==, 0);
}

static void test_advice_refused(void)
{
    ops_expect_refusal(world, advise("node9", "", 0, false), "node \"node9\" does not exist",
                       "unknown_entity");
    ops_expect_refusal(world, advise("node2", "", 0, true),
                       "smartd gives no advice about node \"node2\"", "unknown_entity");
    const char *result = advise("node2", "", 1, false);
    g_assert_true(
        g_str_has_prefix(result, "[\"OpPrereqError\", [\"until: 1 has passed already (it is "));
}

/* What is placed next goes elsewhere. */
static void test_advice_is_heeded(void)
{
    world->memory[1] = 9000;
    advise("node2", "", 0, false);
    g_assert_cmpstr(run("OP_INSTANCE_CREATE",
                        json_make("{ss ss}", "instance_name", "web2", "disk_template", "diskless")),
                    ==, "[\"node1\"]");
    advise("node2", "", 0, true);
    g_assert_cmpstr(run("OP_INSTANCE_CREATE",
                        json_make("{ss ss}", "instance_name", "web3", "disk_template", "diskless")),
                    ==, "[\"node2\"]");
}

/* --- the brake --- */

static void test_continue(void)
{
    ops_expect_refusal(world, run("OP_REPAIR_CONTINUE", json_object()),
                       "auto-repair is not stopped; there is nothing to release", "wrong_state");
    ops_put(world, "repair_brake", "cluster",
            json_make("{si ss}", "since", 1000, "why", "2 of 3 nodes were lost within 600 s"));
    g_assert_cmpstr(
        run("OP_REPAIR_CONTINUE", json_make("{ss}", "statement", "Anna: power is back in hall 2")),
        ==, "null");
    g_assert_cmpuint(config_count(world->config, "repair_brake"), ==, 0);
    g_autoptr(GPtrArray) all = config_list(world->config, "decision");
    g_assert_cmpuint(all->len, ==, 1);
    const struct decision *decision = all->pdata[0];
    g_assert_cmpstr(decision->summary, ==,
                    "The storm brake is released; repairs go on. Anna: power is back in hall 2");
    g_assert_cmpstr(decision->evidence->pdata[0], ==, "2 of 3 nodes were lost within 600 s");
    g_assert_cmpstr(decision->author, ==, "person");
    g_assert_cmpstr(decision->jobs->pdata[0], ==, "17");
}

/* --- tags for all that match --- */

static void put_instance(guint number, const char *node)
{
    g_autofree char *uuid = g_strdup_printf("00000000-0000-4000-8000-0000000002%02u", number);
    g_autofree char *name = g_strdup_printf("vm%02u", number);
    ops_put(world, "instance", uuid,
            json_make("{ss ss ss si ss}", "uuid", uuid, "name", name, "disk_template", "diskless",
                      "memory", 64, "primary_node", node));
}

static json_t *on_node1(void)
{
    return json_make("[s, s, s]", "==", "pnode", "node1");
}

static const char *tag_all(const char *id, json_t *filter, const char *tag)
{
    return run(id, json_make("{ss s[s] so}", "kind", "instance", "tags", tag, "filter", filter));
}

static guint tagged(const char *tag, const char *node)
{
    g_autoptr(GPtrArray) all = config_list(world->config, "tag");
    guint count = 0;
    for (guint i = 0; i < all->len; i++) {
        const struct tag *found = all->pdata[i];
        const struct instance *instance =
            config_get(world->config, "instance", found->object, NULL);
        count += !strcmp(found->tag, tag) && !strcmp(instance->primary_node, node);
    }
    return count;
}

static void test_tag_all(void)
{
    for (guint i = 0; i < 30; i++)
        put_instance(i, i % 3 ? NODE1 : NODE2);
    g_assert_cmpstr(tag_all("OP_TAGS_SET", on_node1(), "suspend"), ==, "null");
    g_assert_cmpuint(tagged("suspend", NODE1), ==, 20); /* all */
    g_assert_cmpuint(tagged("suspend", NODE2), ==, 0);  /* and only those */
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd change_tags"), ==, 1);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, "20 instances match; 20 were tagged\n");
    put_instance(40, NODE1);
    g_assert_cmpstr(tag_all("OP_TAGS_SET", on_node1(), "suspend"), ==, "null");
    g_autofree char *again = ops_log(world, 0);
    g_assert_cmpstr(again, ==, "21 instances match; 1 were tagged\n");
    g_assert_cmpstr(
        tag_all("OP_TAGS_DEL", json_make("[s, s, s]", "=[]", "tags", "suspend"), "suspend"), ==,
        "null");
    g_assert_cmpuint(config_count(world->config, "tag"), ==, 0);
    g_assert_cmpstr(tag_all("OP_TAGS_SET", json_make("[s, s, s]", "==", "name", "nobody"), "x"), ==,
                    "null");
    g_autofree char *nobody = ops_log(world, 0);
    g_assert_cmpstr(nobody, ==, "0 instances match; 0 were tagged\n");
}

/* More changes than one transaction takes go in several. */
static void test_tag_all_in_parts(void)
{
    for (guint i = 0; i < 9; i++)
        put_instance(i, NODE1);
    json_t *tags = json_array();
    for (guint i = 0; i < 1000; i++)
        json_array_append_new(tags, json_sprintf("t%u", i));
    g_assert_cmpstr(run("OP_TAGS_SET", json_make("{ss so so}", "kind", "instance", "tags", tags,
                                                 "filter", on_node1())),
                    ==, "null");
    g_assert_cmpuint(config_count(world->config, "tag"), ==, 9000);
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd change_tags"), ==, 3);
}

static void test_tag_all_refused(void)
{
    ops_expect_refusal(world,
                       run("OP_TAGS_SET", json_make("{ss s[s] so}", "kind", "node", "tags", "x",
                                                    "filter", on_node1())),
                       "filter: chooses instances, so the kind must be instance, not node",
                       "wrong_input");
    ops_expect_refusal(world,
                       run("OP_TAGS_DEL", json_make("{ss s[s] so ss}", "kind", "instance", "tags",
                                                    "x", "filter", on_node1(), "name", "web1")),
                       "name: give a name or a filter, not both", "wrong_input");
    ops_expect_refusal(world,
                       tag_all("OP_TAGS_SET", json_make("[s, s, s]", "==", "color", "red"), "x"),
                       "filter[1]: unknown field \"color\"", "wrong_input");
    ops_expect_refusal(
        world, tag_all("OP_TAGS_SET", json_make("[s, s, s]", "==", "status", "running"), "x"),
        "filter: field \"status\" is asked of the nodes; only what is on record can be "
        "matched here",
        "wrong_input");
    ops_expect_refusal(world, tag_all("OP_TAGS_SET", json_make("[s]", "~"), "x"),
                       "filter[0]: unknown operator \"~\"", "wrong_input");
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/settings/set", test_settings);
    add("/settings/collectors", test_collectors);
    add("/settings/collectors-refused", test_collectors_refused);
    add("/settings/of-recovery", test_settings_of_recovery);
    add("/settings/patterns#RCV-26", test_patterns);
    add("/settings/patterns-refused", test_patterns_refused);
    add("/settings/refused", test_settings_refused);
    add("/settings/webhook-allow", test_webhook_allow);
    add("/advice/set", test_advice);
    add("/advice/refused", test_advice_refused);
    add("/advice/heeded#ARP-69", test_advice_is_heeded);
    add("/repair/continue", test_continue);
    add("/tags/filter#ARP-72", test_tag_all);
    add("/tags/filter/parts#ARP-72", test_tag_all_in_parts);
    add("/tags/filter/refused", test_tag_all_refused);
    return g_test_run();
}
