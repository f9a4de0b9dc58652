/* Every rule about the configuration and its steps, each with the exact refusal. */
#include "unit/core/world/config_world.h"

static char *check(struct change *first, struct change *second)
{
    return check_as(NULL, second ? changes_of(first, second, NULL) : changes_of(first, NULL),
                    AUTHOR_COMMIT);
}

/* web1 with members set: "generation", 5, "holder", "" … */
static json_t *web1(int generation, const char *primary, const char *holder, bool clean)
{
    json_t *json = with(object_web1(), "generation", json_integer(generation));
    json = with(json, "primary_node", json_string(primary));
    json = with(json, "holder", json_string(holder));
    return with(json, "clean", json_boolean(clean));
}

static json_t *bare(json_t *json)
{
    return with(with(json, "replica", json_string("")), "secondary_node", json_string(""));
}

static json_t *replica(int generation, int sync, const char *state)
{
    json_t *json = with(object_replica1(), "generation", json_integer(generation));
    return with(with(json, "sync", json_integer(sync)), "state", json_string(state));
}

static struct change *put_web1(json_t *object)
{
    return put("instance", WEB1, 1, object);
}

static struct change *put_replica(json_t *object)
{
    return put("replica", REPLICA1, 1, object);
}

static struct change *node_offline(const char *uuid)
{
    return put("node", uuid, 1, with(object_node(uuid), "offline", json_true()));
}

#define WEB1_IS "instance web1 (" WEB1 "): "
#define REPLICA1_IS "replica " REPLICA1 ": "

/* --- the state --- */

static void test_names(void)
{
    assert_says(
        check(put("instance", DB1, 1, with(object_db1(), "name", json_string("web1"))), NULL),
        "already_exists: instance web1 (" DB1
        "): name: another instance has the name \"web1\" already");
    assert_says(
        check(put("node", NODE2, 1, with(object_node(NODE2), "name", json_string("node3"))), NULL),
        "already_exists: node node3 (" NODE2
        "): name: another node has the name \"node3\" already");
    assert_says(
        check(put("nodegroup", WEB1, 0, json_make("{s:s,s:s}", "uuid", WEB1, "name", "default")),
              NULL),
        "already_exists: nodegroup default (" WEB1
        "): name: another nodegroup has the name \"default\" already");
    /* Two may swap their names in one step. */
    assert_says(check(put("instance", DB1, 1, with(object_db1(), "name", json_string("web1"))),
                      put_web1(with(object_web1(), "name", json_string("db1")))),
                "ok");
}

static void test_references(void)
{
    assert_says(
        check(put("node", NODE2, 1, with(object_node(NODE2), "group", json_string(WEB1))), NULL),
        "unknown_entity: node node2 (" NODE2 "): group: there is no nodegroup " WEB1);
    assert_says(check(put("instance", DB1, 1,
                          with(with(object_db1(), "primary_node", json_string(WEB1)), "generation",
                               json_integer(3))),
                      NULL),
                "unknown_entity: instance db1 (" DB1 "): primary_node: there is no node " WEB1);
    assert_says(check(put_web1(with(object_web1(), "replica", json_string(REPLICA2))), NULL),
                "unknown_entity: " WEB1_IS "replica: there is no replica " REPLICA2);
    assert_says(
        check(put("tag", "instance/" NODE1 "/x", 0,
                  json_make("{s:s,s:s,s:s}", "kind", "instance", "object", NODE1, "tag", "x")),
              NULL),
        "unknown_entity: tag instance/" NODE1 "/x: object: there is no instance " NODE1);
    assert_says(
        check(put("cluster", CLUSTER, 1,
                  json_make("{s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node", WEB1)),
              NULL),
        "unknown_entity: cluster c1 (" CLUSTER "): master_node: there is no node " WEB1);
    assert_says(
        check(put("cluster", GROUP, 0,
                  json_make("{s:s,s:s,s:s}", "uuid", GROUP, "name", "c2", "master_node", NODE1)),
              NULL),
        "already_exists: cluster c2 (" GROUP "): there is a cluster already; a store has one");
}

static struct change *cluster_with(const char *engine)
{
    return put("cluster", CLUSTER, 1,
               json_make("{s:s,s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c2", "master_node", NODE1,
                         "engine", engine));
}

/* Only the procedure that changes the engine says what it is, and its step is no commit. */
static void test_engine(void)
{
    static const char to_etcd[] =
        "permission_denied: cluster c2 (" CLUSTER "): engine: is sqlite, and no change of the "
        "configuration makes it etcd: fettle cluster engine etcd";
    static const char to_sqlite[] =
        "permission_denied: cluster c2 (" CLUSTER "): engine: is etcd, and no change of the "
        "configuration makes it sqlite: fettle cluster engine sqlite";
    assert_says(check(cluster_with("sqlite"), NULL), "ok");
    assert_says(check(cluster_with("etcd"), NULL), to_etcd);
    assert_says(check_as(NULL, changes_of(cluster_with("etcd"), NULL), AUTHOR_HOLDER), to_etcd);
    assert_says(check_as(changes_of(cluster_with("etcd"), NULL),
                         changes_of(cluster_with("sqlite"), NULL), AUTHOR_COMMIT),
                to_sqlite);
}

static void test_deletions(void)
{
    assert_says(check(del("node", NODE2, 1), NULL),
                "wrong_state: node node2 (" NODE2
                "): cannot be deleted, instance web1 refers to it");
    assert_says(check(del("node", NODE3, 1), NULL), "ok");
    assert_says(check(del("nodegroup", GROUP, 1), NULL),
                "wrong_state: nodegroup default (" GROUP
                "): cannot be deleted, node node1 refers to it");
    assert_says(check(del("replica", REPLICA1, 1), NULL),
                "wrong_state: " REPLICA1_IS "cannot be deleted, instance web1 refers to it");
    static const char hook[] = "99999999-0000-4000-8000-000000000005";
    json_t *pager = json_make("{ss ss ss ss s[s]}", "uuid", hook, "name", "pager", "url",
                              "https://a.example/", "secret", "s", "events", "*");
    assert_says(
        check_as(changes_of(put("webhook", hook, 1, pager),
                            put("webhook_mark", hook, 1, json_make("{ss}", "uuid", hook)), NULL),
                 changes_of(del("webhook", hook, 1), NULL), AUTHOR_COMMIT),
        "wrong_state: webhook pager (99999999-0000-4000-8000-000000000005): cannot be "
        "deleted, webhook_mark 99999999-0000-4000-8000-000000000005 refers to it");
    assert_says(check(del("cluster", CLUSTER, 1), NULL),
                "unsafe: cluster c1 (" CLUSTER "): is never deleted");
    assert_says(check_as(changes_of(put("tag", "node/" NODE3 "/x", 1,
                                        json_make("{s:s,s:s,s:s}", "kind", "node", "object", NODE3,
                                                  "tag", "x")),
                                    NULL),
                         changes_of(del("node", NODE3, 1), NULL), AUTHOR_COMMIT),
                "wrong_state: node node3 (" NODE3 "): cannot be deleted, tag x refers to it");
}

static struct change *put_service(const char *uuid, const char *node, const char *name)
{
    return put("service", uuid, 0,
               json_make("{s:s,s:s,s:s,s:s,s:i}", "uuid", uuid, "name", name, "node", node,
                         "version", "1", "since", 5));
}

/* Each once: its key is made of node and name. */
static void test_services(void)
{
    g_autofree char *luxid = config_service_key(NODE3, "luxid");
    g_autofree char *lost = config_service_key(WEB1, "luxid");
    g_assert_cmpstr(luxid, ==, "3503620b-27ba-5b7f-853a-7d5e592bad5d");
    assert_says(check(put_service(luxid, NODE3, "luxid"), NULL), "ok");
    assert_says(check(put_service(WEB1, NODE3, "luxid"), NULL),
                "wrong_input: service luxid (" WEB1 "): uuid: that of service luxid of node " NODE3
                " is 3503620b-27ba-5b7f-853a-7d5e592bad5d");
    g_autofree char *expected =
        g_strdup_printf("unknown_entity: service luxid (%s): node: there is no node " WEB1, lost);
    assert_says(check(put_service(lost, WEB1, "luxid"), NULL), expected);
    assert_says(check_as(changes_of(put_service(luxid, NODE3, "luxid"), NULL),
                         changes_of(del("node", NODE3, 1), NULL), AUTHOR_COMMIT),
                "wrong_state: node node3 (" NODE3
                "): cannot be deleted, service luxid refers to it");
}

static void test_instance_state(void)
{
    assert_says(check(put_web1(web1(5, NODE1, NODE3, false)), NULL),
                "unsafe: " WEB1_IS "holder: node3 is not the primary node (node1)");
    assert_says(check(put_web1(with(object_web1(), "secondary_node", json_string(""))), NULL),
                "wrong_state: " WEB1_IS "secondary_node \"\" and replica \"" REPLICA1
                "\": either both or none");
    assert_says(check(put_web1(with(object_web1(), "secondary_node", json_string(NODE1))), NULL),
                "wrong_state: " WEB1_IS "secondary_node: node1 is the primary node too");
    assert_says(check(put_web1(with(object_web1(), "secondary_node", json_string(NODE3))), NULL),
                "wrong_state: " WEB1_IS "replica: " REPLICA1 " is on node2 and of instance " WEB1
                ", not on node3 and of this one");
    assert_says(
        check(put("instance", DB1, 1,
                  with(object_db1(), "disks", json_make("[{s:s,s:i}]", "uuid", DISK1, "size", 1))),
              NULL),
        "wrong_state: instance db1 (" DB1
        "): disks: disk template diskless does not go with 1 disks");
    assert_says(check(put("instance", DB1, 1,
                          with(with(object_db1(), "replica", json_string(REPLICA1)),
                               "secondary_node", json_string(NODE2))),
                      NULL),
                "wrong_state: instance db1 (" DB1 "): replica: disk template diskless has none");
}

static void test_one_replica(void)
{
    json_t *second = with(with(replica(4, 1, "syncing"), "uuid", json_string(REPLICA2)), "node",
                          json_string(NODE3));
    assert_says(check(put("replica", REPLICA2, 0, second), NULL),
                "wrong_state: replica " REPLICA2 ": instance web1 has the replica \"" REPLICA1
                "\"; it can have one only");
    /* Replaced in one step. */
    second = with(with(replica(4, 1, "syncing"), "uuid", json_string(REPLICA2)), "node",
                  json_string(NODE3));
    json_t *moved = with(with(object_web1(), "replica", json_string(REPLICA2)), "secondary_node",
                         json_string(NODE3));
    assert_says(check_as(NULL,
                         changes_of(put("replica", REPLICA2, 0, second), put_web1(moved),
                                    del("replica", REPLICA1, 1), NULL),
                         AUTHOR_COMMIT),
                "ok");
}

static void test_problems(void)
{
    struct config *config = config_new();
    g_autoptr(GPtrArray) start = initial_changes();
    for (guint i = 0; i < start->len; i++)
        g_assert_true(config_apply(config, start->pdata[i], NULL));
    g_autoptr(GPtrArray) none = invariants_problems(config, 10);
    g_assert_cmpuint(none->len, ==, 0);
    record_autoptr(change) gone = del("node", NODE2, 1);
    g_assert_true(config_apply(config, gone, NULL));
    g_autoptr(GPtrArray) two = invariants_problems(config, 10);
    g_assert_cmpuint(two->len, ==, 2);
    g_assert_cmpstr(two->pdata[0], ==, WEB1_IS "secondary_node: there is no node " NODE2);
    g_assert_cmpstr(two->pdata[1], ==, REPLICA1_IS "node: there is no node " NODE2);
    g_autoptr(GPtrArray) one = invariants_problems(config, 1);
    g_assert_cmpuint(one->len, ==, 1);
    config_free(config);
}

static void test_problem_migration(void)
{
    struct config *config = config_new();
    g_autoptr(GPtrArray) start = initial_changes();
    for (guint i = 0; i < start->len; i++)
        g_assert_true(config_apply(config, start->pdata[i], NULL));
    json_t *moving = with(with(object_web1(), "migration", json_string(REPLICA2)), "migration_node",
                          json_string(NODE2));
    record_autoptr(change) left = put("instance", WEB1, 1, json_deep_copy(moving));
    g_assert_true(config_apply(config, left, NULL));
    g_autoptr(GPtrArray) one = invariants_problems(config, 10);
    g_assert_cmpuint(one->len, ==, 1);
    g_assert_cmpstr(one->pdata[0], ==,
                    "instance \"web1\": a migration to node2 is on record and no job is at it; "
                    "settle it: fettle instance migrate web1 --cleanup");
    record_autoptr(change) at_it =
        put("instance", WEB1, 1, with(moving, "task_state", json_string("migrating")));
    g_assert_true(config_apply(config, at_it, NULL));
    g_autoptr(GPtrArray) none = invariants_problems(config, 10);
    g_assert_cmpuint(none->len, ==, 0);
    config_free(config);
}

/* --- generations --- */

static void test_generation(void)
{
    assert_says(check(put_web1(web1(3, NODE1, NODE1, false)), NULL),
                "unsafe: " WEB1_IS "generation: goes from 4 to 3; a step is 0 or 1");
    assert_says(check(put_web1(web1(6, NODE1, NODE1, false)), NULL),
                "unsafe: " WEB1_IS "generation: goes from 4 to 6; a step is 0 or 1");
    assert_says(
        check(put_web1(web1(4, NODE1, "", false)), NULL),
        "unsafe: " WEB1_IS
        "generation: stays 4 although holder goes from node1 to nobody and primary_node from "
        "node1 to node1");
    /* A new start where the last one ran; what that has left is closed first. */
    assert_says(
        check(put_web1(web1(5, NODE1, NODE1, false)), put_replica(replica(5, 8, "syncing"))),
        "unsafe: " WEB1_IS
        "holder: a generation would begin on node1, of whose images it is not known that they are "
        "sound, beside a replica on node2 that has every acknowledged write (SAF-24)");
}

static void test_start_on_offline_node(void)
{
    assert_says(check_as(changes_of(node_offline(NODE1), NULL),
                         changes_of(put_web1(web1(5, NODE1, NODE1, false)),
                                    put_replica(replica(5, 8, "stale")), NULL),
                         AUTHOR_COMMIT),
                "unsafe: " WEB1_IS "holder: node1 is offline, nothing is started there");
    /* Marks and wishes may still be written. */
    assert_says(
        check_as(
            changes_of(node_offline(NODE1), NULL),
            changes_of(put_web1(with(object_web1(), "admin_state", json_string("down"))), NULL),
            AUTHOR_COMMIT),
        "ok");
}

static void test_clean_close(void)
{
    assert_says(check(put_web1(web1(5, NODE1, "", true)), put_replica(replica(5, 8, "in-sync"))),
                "ok");
    assert_says(check(put_web1(web1(5, NODE1, "", false)), put_replica(replica(5, 8, "stale"))),
                "ok");
    /* What was acknowledged is there all the same. */
    assert_says(check(put_web1(web1(5, NODE1, "", false)), put_replica(replica(5, 8, "in-sync"))),
                "ok");
    assert_says(check(put_web1(web1(5, NODE1, "", true)), NULL),
                "unsafe: " REPLICA1_IS
                "in-sync with generation 4, but instance web1 is at generation 5");
    assert_says(check(put_web1(web1(4, NODE1, NODE1, true)), NULL),
                "unsafe: " WEB1_IS
                "clean: becomes true although no generation ends (holder node1 at 4, then node1 at "
                "4)");
    assert_says(check(put_web1(web1(5, NODE1, NODE1, true)), put_replica(replica(5, 8, "stale"))),
                "unsafe: " WEB1_IS
                "clean: becomes true although no generation ends (holder node1 at 4, then node1 at "
                "5)");
}

/* Beside a replica that has every acknowledged write a copy begins only from sound images. */
static void test_start_beside_a_whole_replica(void)
{
    static const char *const sound[] = {"unknown", "yes", "no"};
    for (guint i = 0; i < G_N_ELEMENTS(sound); i++) {
        json_t *closed = with(web1(5, NODE1, "", false), "sound", json_string(sound[i]));
        assert_says(
            check_as(changes_of(put_web1(closed), put_replica(replica(5, 8, "in-sync")), NULL),
                     changes_of(put_web1(web1(6, NODE1, NODE1, false)),
                                put_replica(replica(6, 9, "syncing")), NULL),
                     AUTHOR_COMMIT),
            i == 1 ? "ok"
                   : "unsafe: " WEB1_IS
                     "holder: a generation would begin on node1, of whose images it is not "
                     "known that they are sound, beside a replica on node2 that has every "
                     "acknowledged write (SAF-24)");
    }
    assert_says(check_as(changes_of(put_web1(web1(5, NODE1, "", false)),
                                    put_replica(replica(5, 8, "stale")), NULL),
                         changes_of(put_web1(web1(6, NODE1, NODE1, false)),
                                    put_replica(replica(6, 9, "syncing")), NULL),
                         AUTHOR_COMMIT),
                "ok"); /* a person's word, or a replica that was lost */
}

static void test_start_after_close(void)
{
    for (int clean = 0; clean <= 1; clean++) {
        json_t *web = with(web1(5, NODE1, "", clean), "sound", json_string("yes"));
        GPtrArray *closed = changes_of(put_web1(web), put_replica(replica(5, 8, "in-sync")), NULL);
        GPtrArray *starts = changes_of(put_web1(web1(6, NODE1, NODE1, false)),
                                       put_replica(replica(6, 9, "in-sync")), NULL);
        assert_says(check_as(closed, starts, AUTHOR_COMMIT),
                    clean ? "ok"
                          : "unsafe: " REPLICA1_IS
                            "would be in-sync at generation 6 (was in-sync at 5) without a clean "
                            "close and without word from its holder's node");
    }
    assert_says(check_as(changes_of(put_web1(web1(5, NODE1, "", true)),
                                    put_replica(replica(5, 8, "in-sync")), NULL),
                         changes_of(put_web1(web1(6, NODE1, NODE1, true)),
                                    put_replica(replica(6, 9, "in-sync")), NULL),
                         AUTHOR_COMMIT),
                "unsafe: " WEB1_IS
                "clean: generation 6 may run on node1, so nothing has been closed (SAF-11)");
}

/* --- promotion --- */

static GPtrArray *failover(const char *to)
{
    return changes_of(put_web1(bare(web1(5, to, to, false))), del("replica", REPLICA1, 1), NULL);
}

static void test_promotion(void)
{
    assert_says(check_as(changes_of(node_offline(NODE1), NULL), failover(NODE2), AUTHOR_COMMIT),
                "ok");
    assert_says(
        check_as(NULL, failover(NODE2), AUTHOR_COMMIT),
        "unsafe: " WEB1_IS
        "primary_node: node1 still holds generation 4 and is not offline; stop the instance "
        "there first, or give evidence that the node is dead");
    assert_says(check_as(changes_of(node_offline(NODE1), NULL), failover(NODE3), AUTHOR_COMMIT),
                "unsafe: " WEB1_IS "primary_node: node3 has no replica of it (replica: node2)");
    static const char *const states[] = {"stale", "syncing"};
    for (guint i = 0; i < G_N_ELEMENTS(states); i++) {
        g_autofree char *expected =
            g_strdup_printf("unsafe: " WEB1_IS
                            "primary_node: the replica on node2 is %s (generation 4, sync 8), only "
                            "an in-sync one of generation 4 can be promoted",
                            states[i]);
        assert_says(
            check_as(changes_of(node_offline(NODE1), put_replica(replica(4, 8, states[i])), NULL),
                     failover(NODE2), AUTHOR_COMMIT),
            expected);
    }
    /* Stopped, holder nobody: no evidence is needed. */
    assert_says(check_as(changes_of(put_web1(web1(4, NODE1, "", true)), NULL), failover(NODE2),
                         AUTHOR_COMMIT),
                "ok");
}

static void test_promotion_keeps_no_replica(void)
{
    GPtrArray *half = changes_of(put_web1(web1(5, NODE2, NODE2, false)), NULL);
    assert_says(check_as(changes_of(node_offline(NODE1), NULL), half, AUTHOR_COMMIT),
                "wrong_state: " WEB1_IS "secondary_node: node2 is the primary node too");
}

/* SAF-26: the copies change places, and another replica than the promoted one is born. */
struct swap {
    bool was_clean, clean;
    const char *primary, *holder, *left_on, *state;
    bool well;
};

static GPtrArray *swapped(const struct swap *swap)
{
    json_t *moved =
        with(web1(6, swap->primary, swap->holder, swap->clean), "replica", json_string(REPLICA2));
    json_t *left = with(with(replica(6, 1, swap->state), "uuid", json_string(REPLICA2)), "node",
                        json_string(swap->left_on));
    return changes_of(put_web1(with(moved, "secondary_node", json_string(swap->left_on))),
                      put("replica", REPLICA2, 0, left), del("replica", REPLICA1, 1), NULL);
}

static void test_promotion_leaves_a_replica(void)
{
    static const struct swap cases[] = {
        {true, true, NODE2, "", NODE1, "in-sync", true},
        {true, false, NODE2, "", NODE1, "stale", true},
        {false, false, NODE2, "", NODE1, "stale", true},
        {true, false, NODE2, "", NODE1, "in-sync", false},    /* nobody says that it is equal */
        {false, false, NODE2, "", NODE1, "in-sync", false},   /* nor was it closed so */
        {true, false, NODE2, NODE2, NODE1, "in-sync", false}, /* it runs already */
        {true, true, NODE2, "", NODE3, "in-sync", false},     /* which has nothing of it */
        {true, true, NODE1, "", NODE3, "in-sync", false},     /* no promotion at all */
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        json_t *web = with(web1(5, NODE1, "", cases[i].was_clean), "sound", json_string("yes"));
        GPtrArray *closed = changes_of(put_web1(web), put_replica(replica(5, 8, "in-sync")), NULL);
        assert_says(check_as(closed, swapped(&cases[i]), AUTHOR_COMMIT),
                    cases[i].well
                        ? "ok"
                        : "unsafe: replica " REPLICA2
                          ": would be in-sync at generation 6 (was nothing at 0) without a clean "
                          "close and without word from its holder's node");
    }
}

static void test_promotion_needs_state_before(void)
{
    /* The replica may not become in-sync in the commit that promotes it. */
    GPtrArray *trick = changes_of(put_replica(replica(4, 9, "in-sync")),
                                  put_web1(bare(web1(5, NODE2, NODE2, false))), NULL);
    assert_says(check_as(changes_of(node_offline(NODE1), put_replica(replica(4, 8, "stale")), NULL),
                         trick, AUTHOR_COMMIT),
                "unsafe: " REPLICA1_IS
                "would be in-sync at generation 4 (was stale at 4) without a clean close and "
                "without word from its holder's node");
}

static void test_diskless_moves(void)
{
    json_t *moved =
        with(with(object_db1(), "primary_node", json_string(NODE3)), "generation", json_integer(3));
    assert_says(check(put("instance", DB1, 1, moved), NULL), "ok");
    json_t *running =
        with(with(object_db1(), "holder", json_string(NODE1)), "generation", json_integer(2));
    moved =
        with(with(object_db1(), "primary_node", json_string(NODE3)), "generation", json_integer(3));
    assert_says(check_as(changes_of(put("instance", DB1, 1, running), NULL),
                         changes_of(put("instance", DB1, 1, moved), NULL), AUTHOR_COMMIT),
                "unsafe: instance db1 (" DB1
                "): primary_node: node1 still holds generation 2 and is not offline; stop "
                "the instance there first, or give evidence that the node is dead");
}

/* --- replicas --- */

static void test_replica_steps(void)
{
    assert_says(check(put_replica(replica(4, 7, "stale")), NULL),
                "unsafe: " REPLICA1_IS
                "sync: goes from 7 (in-sync) to 7 (stale); it rises with each change of state "
                "(SAF-12)");
    assert_says(check(put_replica(replica(4, 6, "in-sync")), NULL),
                "unsafe: " REPLICA1_IS
                "sync: goes from 7 (in-sync) to 6 (in-sync); it rises with each change of state "
                "(SAF-12)");
    assert_says(check(put_replica(replica(4, 8, "stale")), NULL), "ok");
    assert_says(check(put_replica(replica(5, 8, "stale")), NULL),
                "unsafe: " REPLICA1_IS
                "stale with generation 5, but instance web1 is at generation 4");
    assert_says(check(put_replica(with(replica(4, 8, "stale"), "node", json_string(NODE3))), NULL),
                "unsafe: " REPLICA1_IS "moves from instance " WEB1 " on node " NODE2
                " to instance " WEB1 " on node " NODE3 "; another copy is another replica");
}

static void test_who_may_say_in_sync(void)
{
    GPtrArray *in_sync = changes_of(put_replica(replica(4, 9, "in-sync")), NULL);
    assert_says(check_as(changes_of(put_replica(replica(4, 8, "syncing")), NULL),
                         g_ptr_array_ref(in_sync), AUTHOR_HOLDER),
                "ok");
    assert_says(check_as(changes_of(put_replica(replica(4, 8, "syncing")), NULL),
                         g_ptr_array_ref(in_sync), AUTHOR_COMMIT),
                "unsafe: " REPLICA1_IS
                "would be in-sync at generation 4 (was syncing at 4) without a clean close and "
                "without word from its holder's node");
    assert_says(
        check_as(changes_of(put_replica(replica(4, 8, "stale")), NULL), in_sync, AUTHOR_HOLDER),
        "unsafe: " REPLICA1_IS
        "would be in-sync at generation 4 (was stale at 4) without a clean close and "
        "without word from its holder's node");
    json_t *born = with(with(replica(4, 1, "in-sync"), "uuid", json_string(REPLICA2)), "node",
                        json_string(NODE3));
    json_t *moved = with(with(object_web1(), "replica", json_string(REPLICA2)), "secondary_node",
                         json_string(NODE3));
    assert_says(check_as(NULL,
                         changes_of(put("replica", REPLICA2, 0, born), put_web1(moved),
                                    del("replica", REPLICA1, 1), NULL),
                         AUTHOR_COMMIT),
                "unsafe: replica " REPLICA2
                ": would be in-sync at generation 4 (was nothing at 0) without a clean close "
                "and without word from its holder's node");
}

/* --- removal and other records --- */

static struct change *put_removed(int generation)
{
    return put("removed", WEB1, 0,
               json_make("{s:s,s:s,s:i}", "uuid", WEB1, "name", "web1", "generation", generation));
}

static void test_removal(void)
{
    assert_says(check_as(NULL,
                         changes_of(del("instance", WEB1, 1), del("replica", REPLICA1, 1), NULL),
                         AUTHOR_COMMIT),
                "unsafe: " WEB1_IS
                "is deleted at generation 4 without a record \"removed\" of a higher one (0)");
    assert_says(check_as(NULL,
                         changes_of(del("instance", WEB1, 1), del("replica", REPLICA1, 1),
                                    put_removed(4), NULL),
                         AUTHOR_COMMIT),
                "unsafe: " WEB1_IS
                "is deleted at generation 4 without a record \"removed\" of a higher one (4)");
    assert_says(
        check_as(NULL, changes_of(del("instance", WEB1, 1), put_removed(5), NULL), AUTHOR_COMMIT),
        "wrong_state: " WEB1_IS "cannot be deleted, replica " REPLICA1 " refers to it");
    assert_says(check_as(NULL,
                         changes_of(del("instance", WEB1, 1), del("replica", REPLICA1, 1),
                                    put_removed(5), NULL),
                         AUTHOR_COMMIT),
                "ok");
    assert_says(check(put_removed(5), NULL),
                "wrong_state: removed web1 (" WEB1
                "): the instance is there; it cannot be removed and exist");
}

static void test_removed_stays(void)
{
    GPtrArray *gone =
        changes_of(del("instance", WEB1, 1), del("replica", REPLICA1, 1), put_removed(5), NULL);
    assert_says(check_as(g_ptr_array_ref(gone),
                         changes_of(put_web1(bare(web1(6, NODE1, "", false))), NULL),
                         AUTHOR_COMMIT),
                "already_exists: " WEB1_IS
                "uuid: an instance with it was removed; its generations are over");
    assert_says(
        check_as(g_ptr_array_ref(gone), changes_of(del("removed", WEB1, 1), NULL), AUTHOR_COMMIT),
        "unsafe: removed web1 (" WEB1 "): is never deleted");
    assert_says(check_as(gone, changes_of(put_removed(4), NULL), AUTHOR_COMMIT),
                "unsafe: removed web1 (" WEB1 "): generation: falls from 5 to 4; it only grows");
}

static void test_new_instance(void)
{
    static const char fresh[] = "aaaaaaaa-0000-4000-8000-000000000009";
    json_t *object =
        with(with(object_db1(), "uuid", json_string(fresh)), "name", json_string("db2"));
    assert_says(check(put("instance", fresh, 0, object), NULL), "ok");
    object = with(with(object_db1(), "uuid", json_string(fresh)), "name", json_string("db2"));
    assert_says(check(put("instance", fresh, 0, with(object, "clean", json_true())), NULL),
                "unsafe: instance db2 (aaaaaaaa-0000-4000-8000-000000000009): clean: is true in a "
                "new instance; nothing "
                "of it was ever closed");
}

static struct change *put_job(const char *status, bool started, int epoch)
{
    return put("job", "7", 1,
               json_make("{s:i,s:[],s:s,s:b,s:i}", "id", 7, "ops", "status", status, "started",
                         started, "epoch", epoch));
}

static void test_jobs(void)
{
    assert_says(check_as(changes_of(put_job("success", true, 3), NULL),
                         changes_of(put_job("error", true, 3), NULL), AUTHOR_COMMIT),
                "wrong_state: job 7: status: is success for ever, it cannot become error (SAF-30)");
    assert_says(check_as(changes_of(put_job("running", true, 3), NULL),
                         changes_of(put_job("queued", false, 3), NULL), AUTHOR_COMMIT),
                "wrong_state: job 7: started: it was started in epoch 3; that cannot be taken back "
                "(SAF-30)");
    assert_says(check_as(changes_of(put_job("running", true, 3), NULL),
                         changes_of(put_job("error", true, 4), NULL), AUTHOR_COMMIT),
                "wrong_state: job 7: started: it was started in epoch 3; that cannot be taken back "
                "(SAF-30)");
    assert_says(check_as(changes_of(put_job("running", true, 3), NULL),
                         changes_of(put_job("error", true, 3), NULL), AUTHOR_COMMIT),
                "ok");
    assert_says(check_as(changes_of(put_job("error", true, 3), NULL),
                         changes_of(del("job", "7", 1), NULL), AUTHOR_COMMIT),
                "ok");
}

static void test_counters(void)
{
    GPtrArray *seven = changes_of(put("counter", "job", 1, json_make("{s:i}", "value", 7)), NULL);
    assert_says(check_as(g_ptr_array_ref(seven),
                         changes_of(put("counter", "job", 1, json_make("{s:i}", "value", 6)), NULL),
                         AUTHOR_COMMIT),
                "unsafe: counter job: value: falls from 7 to 6; it only grows");
    assert_says(check_as(seven, changes_of(del("counter", "job", 1), NULL), AUTHOR_COMMIT),
                "unsafe: counter job: is never deleted");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/invariants/names#WCF-16", test_names);
    g_test_add_func("/invariants/references#WCF-16", test_references);
    g_test_add_func("/invariants/engine#SAF-07,WCF-16", test_engine);
    g_test_add_func("/invariants/deletions#WCF-16", test_deletions);
    g_test_add_func("/invariants/services", test_services);
    g_test_add_func("/invariants/instance#SAF-10", test_instance_state);
    g_test_add_func("/invariants/one-replica#SAF-18", test_one_replica);
    g_test_add_func("/invariants/problems", test_problems);
    g_test_add_func("/invariants/problems/migration#SAF-17", test_problem_migration);
    g_test_add_func("/invariants/generation#SAF-10", test_generation);
    g_test_add_func("/invariants/start/offline#SAF-10", test_start_on_offline_node);
    g_test_add_func("/invariants/close#SAF-11,SAF-13", test_clean_close);
    g_test_add_func("/invariants/start-beside-a-whole-replica#SAF-24",
                    test_start_beside_a_whole_replica);
    g_test_add_func("/invariants/start/after-close#SAF-11,SAF-13", test_start_after_close);
    g_test_add_func("/invariants/promotion#SAF-16,SAF-13", test_promotion);
    g_test_add_func("/invariants/promotion/no-replica#SAF-16", test_promotion_keeps_no_replica);
    g_test_add_func("/invariants/promotion/leaves-a-replica#SAF-26,SAF-13",
                    test_promotion_leaves_a_replica);
    g_test_add_func("/invariants/promotion/before#SAF-16,SAF-12",
                    test_promotion_needs_state_before);
    g_test_add_func("/invariants/diskless#SAF-16", test_diskless_moves);
    g_test_add_func("/invariants/replica#SAF-12", test_replica_steps);
    g_test_add_func("/invariants/in-sync#SAF-12,SAF-13", test_who_may_say_in_sync);
    g_test_add_func("/invariants/removal#SAF-04", test_removal);
    g_test_add_func("/invariants/removed-stays#SAF-04", test_removed_stays);
    g_test_add_func("/invariants/new-instance#SAF-11", test_new_instance);
    g_test_add_func("/invariants/jobs#SAF-30", test_jobs);
    g_test_add_func("/invariants/counters", test_counters);
    return g_test_run();
}
