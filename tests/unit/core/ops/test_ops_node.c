/* Nodes and tags. */
#include "unit/core/world/ops_case.h"

#include <string.h>

#define NODE5 "55555555-0000-4000-8000-000000000005"

#define NODE4 "00000000-0000-4000-8000-000000000004"

static struct ops_world *world;

/* --- add --- */

static const char *add_node(const char *name, const char *ip, const char *uuid)
{
    return ops_run_one(world, json_make("{ss ss ss ss}", "OP_ID", "OP_NODE_ADD", "node_name", name,
                                        "primary_ip", ip, "node_uuid", uuid));
}

static void test_add(void)
{
    world->trace_locks = true;
    g_assert_cmpstr(add_node("node4", "10.0.0.4", NODE4), ==, "null");
    ops_expect(world, "locks node/" NODE4 "=exclusive\ncommit node node4 \nfree\n"
                      "commit job success\n");
    const struct node *node = config_get(world->config, "node", NODE4, NULL);
    g_assert_cmpstr(node->group, ==, GROUP);
    g_assert_cmpuint(node->port, ==, 1811);
    g_assert_false(node->offline);
}

static void assert_node(const char *uuid, bool candidate, bool capable)
{
    const struct node *node = config_get(world->config, "node", uuid, NULL);
    g_assert_cmpint(node->master_candidate, ==, candidate);
    g_assert_cmpint(node->master_capable, ==, capable);
}

static void test_add_waits(void)
{
    g_ptr_array_add(world->pending, (void *)NODE4);
    world->pending_polls = 5;
    g_assert_cmpstr(add_node("node4", "10.0.0.4", NODE4), ==, "null");
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd cluster_status"), ==, 6);
}

static void test_add_not_capable(void)
{
    g_assert_cmpstr(ops_run_one(world, json_make("{ss ss ss ss sb}", "OP_ID", "OP_NODE_ADD",
                                                 "node_name", "node4", "primary_ip", "10.0.0.4",
                                                 "node_uuid", NODE4, "master_capable", 0)),
                    ==, "null");
    assert_node(NODE4, false, false);
    g_assert_cmpstr(add_node("node5", "10.0.0.5", NODE5), ==, "null");
    assert_node(NODE5, false, true);
}

static void test_add_no_answer(void)
{
    g_ptr_array_add(world->pending, (void *)NODE4);
    g_assert_cmpstr(add_node("node4", "10.0.0.4", NODE4), ==,
                    "[\"OpExecError\", [\"the node daemon of \\\"node4\\\" at 10.0.0.4 port 1811 "
                    "did not answer within 20 s; is it running, with a certificate of this cluster "
                    "for " NODE4 "?\", \"unreachable\", false]]");
    ops_expect(world, "commit node node4 \ncommit delete node\ncommit job error\n");
}

static void test_add_refused(void)
{
    ops_expect_refusal(world, add_node("node4", "10.0.0.4", NODE2),
                       "node_uuid: " NODE2 " is node \"node2\" already", "already_exists");
    ops_expect_refusal(world, add_node("node2", "10.0.0.4", NODE4), "node \"node2\" exists already",
                       "already_exists");
    ops_expect_refusal(world, add_node("node4", "10.0.0.2", NODE4),
                       "primary_ip: 10.0.0.2 port 1811 is the address of node \"node2\"",
                       "already_exists");
    ops_expect_refusal(world,
                       ops_run_one(world, json_make("{ss ss ss ss ss}", "OP_ID", "OP_NODE_ADD",
                                                    "node_name", "node4", "primary_ip", "10.0.0.4",
                                                    "node_uuid", NODE4, "group", "attic")),
                       "nodegroup \"attic\" does not exist", "unknown_entity");
}

static void test_add_limit(void)
{
    for (guint i = config_count(world->config, "node"); i < LIMIT_NODES; i++) {
        g_autofree char *uuid = g_strdup_printf("99999999-0000-4000-8000-%012u", i);
        g_autofree char *name = g_strdup_printf("host%u", i);
        ops_put(world, "node", uuid,
                json_make("{ss ss ss ss}", "uuid", uuid, "name", name, "primary_ip", "192.0.2.1",
                          "group", GROUP));
    }
    ops_expect_refusal(world, add_node("node4", "10.0.0.4", NODE4),
                       "the cluster has 4096 nodes, which is the limit", "limit_exceeded");
}

/* --- remove --- */

static const char *remove_node(const char *name)
{
    return ops_run_one(world, json_make("{ss ss}", "OP_ID", "OP_NODE_REMOVE", "node_name", name));
}

static void test_remove(void)
{
    g_autofree char *key = config_tag_key(TAG_NODE, NODE3, "blue");
    ops_put(world, "tag", key,
            json_make("{ss ss ss}", "kind", "node", "object", NODE3, "tag", "blue"));
    world->trace_locks = true;
    g_assert_cmpstr(remove_node("node3"), ==, "null");
    ops_expect(world, "locks node/node3=exclusive\ncommit revoked ; delete tag; delete node\nfree\n"
                      "commit job success\n");
}

/* With etcd a candidate has a member of it, which is taken out while the node can be asked. */
static void test_member_refused(void)
{
    static const char said[] =
        "node \"node2\" is a candidate of a cluster with the engine etcd, and so has a member of "
        "it; "
        "make it no candidate first: fettle node modify node2 --master-candidate no";
    ops_set(world, "node", NODE2, "master_candidate", json_true());
    ops_set(world, "node", NODE3, "master_candidate", json_true());
    ops_set(world, "cluster", CLUSTER, "engine", json_string("etcd"));
    ops_expect_refusal(world, remove_node("node2"), said, "wrong_state");
    g_assert_cmpstr(ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS",
                                                 "node_name", "node2", "master_candidate", "no")),
                    ==, "null");
}

/* The guest may have arrived there already. */
static void test_remove_refused_for_a_migration(void)
{
    ops_put_web(world, NULL, true);
    json_t *web = config_object_json(world->config, "instance", WEB);
    json_object_set_new(web, "disk_template", json_string("file"));
    json_object_set_new(web, "task_state", json_string("migrating"));
    json_object_set_new(web, "migration", json_string("00000000-0000-4000-8000-0000000000f1"));
    json_object_set_new(web, "migration_node", json_string(NODE3));
    ops_put(world, "instance", WEB, web);
    ops_expect_refusal(world, remove_node("node3"),
                       "a migration of instance \"web1\" to node \"node3\" is on record; settle "
                       "it first: fettle instance migrate web1 --cleanup",
                       "wrong_state");
}

static void test_remove_refused(void)
{
    ops_put_web(world, "in-sync", false);
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_expect_refusal(world, remove_node("node1"),
                       "node \"node1\" is the master and cannot be removed", "wrong_state");
    ops_expect_refusal(world, remove_node("node2"),
                       "node \"node2\" is the secondary node of instance "
                       "\"web1\"; replace its disks or remove it first",
                       "wrong_state");
    ops_expect_refusal(world, remove_node("node3"),
                       "node \"node3\" is the primary node of instance "
                       "\"web1\"; fail it over or remove it first",
                       "wrong_state");
    ops_expect_refusal(world, remove_node("node9"), "node \"node9\" does not exist",
                       "unknown_entity");
}

/* --- offline --- */

static const char *modify(const char *name, const char *offline, const char *statement, bool force)
{
    return ops_run_one(world, json_make("{ss ss ss ss sb}", "OP_ID", "OP_NODE_SET_PARAMS",
                                        "node_name", name, "offline", offline, "statement",
                                        statement, "force", (int)force));
}

static void test_offline_and_back(void)
{
    fake_cut(world->world, NODE3, true);
    g_assert_cmpstr(modify("node3", "yes", "operator: the plug is out", false), ==, "null");
    ops_expect(world, "commit node node3 offline operator: the plug is out\n"
                      "commit job success\n");
    const struct node *node = config_get(world->config, "node", NODE3, NULL);
    g_assert_cmpuint(node->offline_since, >, 0);
    fake_cut(world->world, NODE3, false);
    g_assert_cmpstr(modify("node3", "no", "", false), ==, "null");
    ops_expect(world, "commit node node3 \ncommit job success\n");
    node = config_get(world->config, "node", NODE3, NULL);
    g_assert_cmpuint(node->offline_since, ==, 0);
    g_assert_cmpstr(modify("node3", "no", "", false), ==, "null");
    ops_expect(world, "commit job success\n");
}

/* Whoever takes it back learns why it may not come. */
static void test_back_without_its_keys(void)
{
    ops_node_offline(world, NODE3);
    ops_set(world, "node", NODE3, "keys_missed", json_true());
    modify("node3", "no", "", false);
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "node3 may have missed a renewal of the keys: if it stays "
                                 "unavailable: fettle node invite node3 --primary-ip "));
}

static void test_offline_goes_first(void)
{
    fake_cut(world->world, NODE3, true);
    modify("node3", "yes", "dead", false);
    const char *asked = NULL;
    for (guint i = 0; i < fake_calls(world->world)->len; i++) {
        const char *call = fake_calls(world->world)->pdata[i];
        if (g_str_has_prefix(call, NODE1 "/wconfd update_locks"))
            asked = call;
    }
    g_assert_nonnull(asked);
    g_assert_nonnull(strstr(asked, "\"priority\":-20"));
}

/* Only a change of offline waits for the jobs that act there. */
static void test_finer_locks(void)
{
    world->trace_locks = true;
    const char *drain = ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS",
                                                     "node_name", "node3", "drained", "yes"));
    g_assert_cmpstr(drain, ==, "null");
    ops_expect(world, "locks node-param/" NODE3 "=exclusive\ncommit node node3 \nfree\n"
                      "commit job success\n");
    g_assert_cmpstr(modify("node3", "yes", "dead", true), ==, "null");
    ops_expect(world, "locks node/node3=exclusive\ncommit node node3 offline dead\nfree\n"
                      "commit job success\n");
}

static void test_offline_refused_while_it_answers(void)
{
    const char *refusal = "node \"node3\" still answers, so it is not dead, and its guests may "
                          "run; power it off first, or use --force if you know better";
    ops_expect_refusal(world, modify("node3", "yes", "dead", false), refusal, "unsafe");
    /* A refusal is an answer too, and so is what an older node daemon says of a new question. */
    ops_fail(world, NODE3, "node_alive", FETTLE_ERROR_STALE_EPOCH, "older epoch", 1);
    ops_expect_refusal(world, modify("node3", "yes", "dead", false), refusal, "unsafe");
    ops_fail(world, NODE3, "node_alive", FETTLE_ERROR_PROTOCOL, "noded has no such method", 1);
    ops_expect_refusal(world, modify("node3", "yes", "dead", false), refusal, "unsafe");
    /* It answers; that it cannot say what it has is another matter. */
    ops_fail(world, NODE3, "node_report", FETTLE_ERROR_TIMEOUT, "no answer", 10);
    ops_expect_refusal(world, modify("node3", "yes", "dead", false), refusal, "unsafe");
    /* The connection ended under the question: the next one is answered. */
    ops_fail(world, NODE3, "node_alive", FETTLE_ERROR_UNKNOWN_RESULT, "connection lost", 1);
    ops_expect_refusal(world, modify("node3", "yes", "dead", false), refusal, "unsafe");
    g_assert_cmpstr(modify("node3", "yes", "dead", true), ==, "null");
    ops_expect(world, "commit node node3 offline dead\ncommit job success\n");
}

static void test_offline_without_statement(void)
{
    fake_cut(world->world, NODE3, true);
    g_assert_cmpstr(modify("node3", "yes", "", false), ==, "null");
    ops_expect(world, "commit node node3 offline \ncommit job success\n");
    g_assert_cmpstr(modify("node3", "yes", "it burns", false), ==, "null");
    ops_expect(world, "commit node node3 offline it burns\ncommit job success\n");
    g_assert_cmpstr(modify("node3", "yes", "it is under water", false), ==, "null");
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "node3 was offline already; in place of what was said then: it burns\n");
}

static void test_offline_refused(void)
{
    ops_expect_refusal(
        world, modify("node1", "yes", "", true),
        "node \"node1\" is the master, which carries out this very job; it cannot be "
        "offline",
        "wrong_state");
    ops_expect_refusal(world, modify("node3", "maybe", "", false),
                       "offline: must be yes or no, not \"maybe\"", "wrong_input");
    ops_expect_refusal(
        world, modify("node3", "", "", false),
        "nothing to change: set offline, drained, master_candidate or master_capable",
        "wrong_input");
    ops_expect_refusal(world, modify("node9", "yes", "", false), "node \"node9\" does not exist",
                       "unknown_entity");
}

/* --- candidates --- */

static const char *set(const char *node, const char *candidate, const char *capable)
{
    return ops_run_one(world,
                       json_make("{ss ss ss ss}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name", node,
                                 "master_candidate", candidate, "master_capable", capable));
}

/* Whom a person takes off the list the watcher does not put there again, unless it is told so. */
static void test_candidate(void)
{
    ops_set(world, "node", NODE1, "master_candidate", json_true());
    ops_set(world, "node", NODE2, "master_candidate", json_true());
    assert_node(NODE2, true, true);
    g_assert_cmpstr(set("node2", "no", ""), ==, "null");
    assert_node(NODE2, false, false);
    g_assert_cmpstr(set("node2", "yes", ""), ==, "null");
    assert_node(NODE2, true, true);
    g_assert_cmpstr(set("node2", "no", "yes"), ==, "null");
    assert_node(NODE2, false, true);
    g_assert_cmpstr(set("node2", "", "no"), ==, "null");
    assert_node(NODE2, false, false);
    g_assert_cmpstr(set("node2", "yes", "no"), ==, "null");
    assert_node(NODE2, true, false);
}

/* Whoever has judged by a record does not override what was said of the node since. */
static void test_if_version(void)
{
    guint64 version = 0;
    ops_set(world, "node", NODE2, "master_capable", json_false());
    config_get(world->config, "node", NODE2, &version);
    json_t *judged = json_make("{ss ss ss sI}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name", "node2",
                               "master_candidate", "yes", "if_version", (json_int_t)version - 1);
    g_autofree char *expected = g_strdup_printf(
        "node node2 has been changed since this was asked for (its record has version "
        "%" G_GUINT64_FORMAT ", not %" G_GUINT64_FORMAT
        "); it stays as it is; look at it (fettle node info node2) and ask again",
        version, version - 1);
    ops_expect_refusal(world, ops_run_one(world, json_incref(judged)), expected, "wrong_state");
    assert_node(NODE2, false, false);
    json_object_set_new(judged, "if_version", json_integer((json_int_t)version));
    g_assert_cmpstr(ops_run_one(world, judged), ==, "null");
    assert_node(NODE2, true, true);
}

/* Somebody speaks up between the look at the record and the commit, which is refused for that. */
static void drained_meanwhile(struct ops_world *changed, guint number)
{
    if (number == 1)
        ops_set(changed, "node", NODE2, "drained", json_true());
}

static void test_if_version_overtaken(void)
{
    guint64 version = 0, now = 0;
    ops_set(world, "node", NODE2, "master_capable", json_false());
    config_get(world->config, "node", NODE2, &version);
    world->on_commit = drained_meanwhile;
    g_autofree char *result = g_strdup(ops_run_one(
        world, json_make("{ss ss ss sI}", "OP_ID", "OP_NODE_SET_PARAMS", "node_name", "node2",
                         "master_candidate", "yes", "if_version", (json_int_t)version)));
    const struct node *node = config_get(world->config, "node", NODE2, &now);
    g_autofree char *expected = g_strdup_printf(
        "[\"OpExecError\", [\"node node2 has been changed since this was asked for (its record has "
        "version %" G_GUINT64_FORMAT ", not %" G_GUINT64_FORMAT
        "); it stays as it is; look at it (fettle node info node2) and ask again\", "
        "\"wrong_state\", false]]",
        now, version);
    g_assert_cmpstr(result, ==, expected);
    g_assert_true(node->drained);
    assert_node(NODE2, false, false);
}

static void test_candidate_refused(void)
{
    ops_expect_refusal(world, set("node2", "maybe", ""),
                       "master_candidate: must be yes or no, not \"maybe\"", "wrong_input");
    ops_expect_refusal(world, set("node2", "", "1"), "master_capable: must be yes or no, not \"1\"",
                       "wrong_input");
    ops_expect_refusal(world, set("node1", "no", ""),
                       "node \"node1\" is the master, so it is a master candidate; make another "
                       "node the master first",
                       "wrong_state");
}

/* --- tags --- */

static const char *tags(const char *id, const char *kind, const char *name, json_t *list)
{
    return ops_run_one(
        world, json_make("{ss ss ss so}", "OP_ID", id, "kind", kind, "name", name, "tags", list));
}

static void test_tags(void)
{
    ops_put_web(world, NULL, false);
    g_assert_cmpstr(tags("OP_TAGS_SET", "instance", "web1", json_make("[s, s, s]", "a", "b", "a")),
                    ==, "null");
    ops_expect(world, "commit tag a; tag b\ncommit job success\n");
    g_assert_cmpstr(tags("OP_TAGS_SET", "instance", WEB, json_make("[s, s]", "b", "c")), ==,
                    "null");
    ops_expect(world, "commit tag c\ncommit job success\n");
    g_assert_cmpstr(tags("OP_TAGS_SET", "instance", WEB, json_make("[s]", "c")), ==, "null");
    ops_expect(world, "commit job success\n");
    g_assert_cmpstr(tags("OP_TAGS_DEL", "instance", "web1", json_make("[s, s, s]", "a", "c", "a")),
                    ==, "null");
    g_autoptr(GPtrArray) left = config_tags(world->config, TAG_INSTANCE, WEB);
    g_assert_cmpuint(left->len, ==, 1);
    g_assert_cmpstr(left->pdata[0], ==, "b");
}

static void test_tags_of_each_kind(void)
{
    g_assert_cmpstr(tags("OP_TAGS_SET", "cluster", "", json_make("[s]", "a")), ==, "null");
    g_assert_cmpstr(tags("OP_TAGS_SET", "nodegroup", "default", json_make("[s]", "a")), ==, "null");
    g_assert_cmpstr(tags("OP_TAGS_SET", "node", "node2", json_make("[s]", "a")), ==, "null");
    g_autoptr(GPtrArray) cluster = config_tags(world->config, TAG_CLUSTER, CLUSTER);
    g_autoptr(GPtrArray) group = config_tags(world->config, TAG_NODEGROUP, GROUP);
    g_autoptr(GPtrArray) node = config_tags(world->config, TAG_NODE, NODE2);
    g_assert_cmpuint(cluster->len + group->len + node->len, ==, 3);
}

static void test_tags_take_no_locks(void)
{
    world->trace_locks = true;
    tags("OP_TAGS_SET", "cluster", "", json_make("[s]", "a"));
    ops_expect(world, "commit tag a\ncommit job success\n");
}

static void same_tag(struct ops_world *changed, guint number)
{
    g_autofree char *key = config_tag_key(TAG_CLUSTER, CLUSTER, "a");
    if (number == 1)
        ops_put(changed, "tag", key,
                json_make("{ss ss ss}", "kind", "cluster", "object", CLUSTER, "tag", "a"));
}

static void test_tags_at_the_same_time(void)
{
    world->on_commit = same_tag;
    g_assert_cmpstr(tags("OP_TAGS_SET", "cluster", "", json_make("[s, s]", "a", "b")), ==, "null");
    ops_expect(world, "commit tag b\ncommit job success\n");
}

static void test_tags_conflict_is_bounded(void)
{
    ops_fail(world, "wconfd", "commit", FETTLE_ERROR_VERSION_CONFLICT, "it changed",
             LIMIT_COMMIT_TRIES);
    g_assert_cmpstr(tags("OP_TAGS_SET", "cluster", "", json_make("[s]", "a")), ==,
                    "[\"OpExecError\", [\"it changed\", \"version_conflict\", false]]");
    ops_expect(world, "commit job error\n");
}

/* A misspelt policy protects nothing. */
static void test_tags_misspelt(void)
{
    g_assert_cmpstr(
        tags("OP_TAGS_SET", "cluster", "", json_make("[s]", "ganeti:watcher:autorepair:failovr")),
        ==, "null");
    g_autofree char *log = ops_log(world, 0);
    g_assert_true(g_str_has_suffix(log, "did you mean ganeti:watcher:autorepair:failover?\n"));
}

static void test_tags_refused(void)
{
    g_autofree char *big = g_strnfill(129, 'x');
    ops_expect_refusal(world, tags("OP_TAGS_SET", "instance", "web9", json_make("[s]", "a")),
                       "instance \"web9\" does not exist", "unknown_entity");
    ops_expect_refusal(world, tags("OP_TAGS_SET", "cluster", "", json_make("[s]", "")),
                       "tags: a tag must not be empty", "wrong_input");
    ops_expect_refusal(world, tags("OP_TAGS_DEL", "node", "node2", json_make("[s]", "a")),
                       "node \"node2\" has no tag \"a\"", "unknown_entity");
    ops_expect_refusal(world, tags("OP_TAGS_DEL", "cluster", "", json_make("[s]", "a")),
                       "the cluster has no tag \"a\"", "unknown_entity");
    g_assert_nonnull(strstr(tags("OP_TAGS_SET", "cluster", "", json_make("[s]", big)),
                            "is longer than 128 characters"));
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/node/add", test_add);
    add("/node/add/waits", test_add_waits);
    add("/node/add/not-capable#ARP-71", test_add_not_capable);
    add("/node/add/no-answer", test_add_no_answer);
    add("/node/add/limit", test_add_limit);
    add("/node/add/refused", test_add_refused);
    add("/node/remove", test_remove);
    add("/node/remove/refused", test_remove_refused);
    add("/node/remove/refused-for-a-migration#SAF-17", test_remove_refused_for_a_migration);
    add("/node/remove/with-a-member#SAF-07", test_member_refused);
    add("/node/offline", test_offline_and_back);
    add("/node/offline/keys-missed#SAF-96", test_back_without_its_keys);
    add("/node/offline/urgent#SAF-06", test_offline_goes_first);
    add("/node/offline/answers#SAF-16", test_offline_refused_while_it_answers);
    add("/node/offline/statement#SAF-48", test_offline_without_statement);
    add("/node/offline/refused", test_offline_refused);
    add("/node/candidate#ARP-71", test_candidate);
    add("/node/if-version#ARP-71", test_if_version);
    add("/node/if-version/overtaken#ARP-71", test_if_version_overtaken);
    add("/node/candidate/refused#ARP-71", test_candidate_refused);
    add("/tags", test_tags);
    add("/tags/kinds", test_tags_of_each_kind);
    add("/node/finer-locks#FUT-01", test_finer_locks);
    add("/tags/no-locks#WCF-03", test_tags_take_no_locks);
    add("/tags/same-time#WCF-03", test_tags_at_the_same_time);
    add("/tags/conflict", test_tags_conflict_is_bounded);
    add("/node/tags/misspelt-policy", test_tags_misspelt);
    add("/tags/refused", test_tags_refused);
    return g_test_run();
}
