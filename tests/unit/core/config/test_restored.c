/* A configuration that was put back from a backup: what a restore commits, which steps rest until
 * the brake is released, and that its release takes reality over. */
#include <string.h>

#include "core/config/restored.h"
#include "unit/core/world/config_world.h"

#define RECORD "eeeeeeee-0000-4000-8000-000000000001"
#define WORDS                                                                                      \
    "the configuration was restored from a backup and is not compared with the nodes yet, so "     \
    "nothing starts, stops or moves: look at `fettle cluster verify`, then say `fettle repair "    \
    "continue`"

static struct change *brake(bool restored)
{
    return put("repair_brake", "cluster", 1,
               json_make("{s:i,s:s,s:b}", "since", 1, "why", "It was restored.", "restored",
                         (int)restored));
}

static char *check(bool restored, struct change *first, struct change *second)
{
    return check_as(changes_of(brake(restored), NULL), changes_of(first, second, NULL),
                    AUTHOR_COMMIT);
}

static struct change *web1_with(const char *member, json_t *value)
{
    json_t *object = with(object_web1(), member, value);
    if (!strcmp(member, "primary_node")) {
        object = with(object, "holder", json_string(NODE3));
        object = with(object, "generation", json_integer(9));
    }
    return put("instance", WEB1, 1, object);
}

static void test_rests(void)
{
    static const char refused[] = "wrong_state: instance web1 (" WEB1 "): " WORDS;
    assert_says(check(true, web1_with("generation", json_integer(5)), NULL), refused);
    assert_says(check(true, web1_with("holder", json_string("")), NULL), refused);
    assert_says(check(true, del("instance", WEB1, 1), NULL), refused);
    g_autofree char *born =
        check_as(changes_of(brake(true), NULL),
                 changes_of(put("instance", RECORD, 0,
                                with(with(object_db1(), "uuid", json_string(RECORD)), "name",
                                     json_string("new"))),
                            NULL),
                 AUTHOR_COMMIT);
    g_assert_true(g_str_has_prefix(born, "wrong_state: instance new"));
    /* Wishes are free. */
    assert_says(check(true, web1_with("memory", json_integer(512)), NULL), "ok");
    /* The brake of a storm is another matter. */
    json_t *closed = with(object_web1(), "holder", json_string(""));
    assert_says(check(false, put("instance", WEB1, 1, with(closed, "generation", json_integer(5))),
                      put("replica", REPLICA1, 1,
                          with(with(object_replica1(), "state", json_string("stale")), "sync",
                               json_integer(8)))),
                "ok");
}

/* A jump of generations, another primary, a replica in sync without word from its holder: each is
 * refused as a step, and all are taken over with the release. */
static void test_release_takes_reality(void)
{
    struct change *moved = put("instance", WEB1, 1,
                               with(with(with(object_web1(), "generation", json_integer(9)),
                                         "secondary_node", json_string("")),
                                    "replica", json_string("")));
    moved->object =
        with(with(moved->object, "primary_node", json_string(NODE3)), "holder", json_string(NODE3));
    assert_says(check_as(changes_of(brake(true), NULL),
                         changes_of(moved, del("replica", REPLICA1, 1),
                                    del("repair_brake", "cluster", 1), NULL),
                         AUTHOR_COMMIT),
                "ok");
    assert_says(check_as(changes_of(brake(true), NULL),
                         changes_of(put("instance", WEB1, 1,
                                        with(object_web1(), "generation", json_integer(9))),
                                    put("replica", REPLICA1, 1,
                                        with(with(object_replica1(), "generation", json_integer(9)),
                                             "sync", json_integer(8))),
                                    del("repair_brake", "cluster", 1), NULL),
                         AUTHOR_COMMIT),
                "ok");
    /* What must be true of every state stays so. */
    g_autofree char *said = check_as(
        changes_of(brake(true), NULL),
        changes_of(put("instance", WEB1, 1, with(object_web1(), "holder", json_string(NODE2))),
                   del("repair_brake", "cluster", 1), NULL),
        AUTHOR_COMMIT);
    g_assert_cmpstr(said, ==,
                    "unsafe: instance web1 (" WEB1 "): holder: node2 is not the primary node "
                    "(node1)");
}

/* --- what a restore commits --- */

static struct config *config_of(GPtrArray *more)
{
    g_autoptr(GPtrArray) start = initial_changes();
    g_autoptr(GPtrArray) owned = more;
    struct config *config = config_new();
    for (guint i = 0; i < start->len; i++)
        g_assert_true(config_apply(config, start->pdata[i], NULL));
    for (guint i = 0; i < owned->len; i++)
        g_assert_true(config_apply(config, owned->pdata[i], NULL));
    return config;
}

static struct change *job(int id, const char *status)
{
    g_autofree char *key = g_strdup_printf("%d", id);
    return put("job", key, 1,
               json_make("{s:i,s:[{s:{s:s},s:s}],s:s,s:b}", "id", id, "ops", "input", "OP_ID",
                         "OP_TEST_DELAY", "status", status, "status", status, "started", 1));
}

static void test_changes(void)
{
    struct config *config =
        config_of(changes_of(job(3, "success"), job(4, "running"), job(5, "queued"),
                             put("counter", "job", 1, json_make("{s:i}", "value", 5)), NULL));
    const struct restoring restoring = {
        .node_uuid = NODE2, .now = 2000, .taken = 1000, .record_uuid = RECORD};
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) changes = restored_changes(config, &restoring, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < changes->len; i++)
        g_assert_true(config_apply(config, changes->pdata[i], NULL));
    g_assert_cmpstr(config_cluster(config)->master_node, ==, NODE2);
    static const char *const nodes[] = {NODE1, NODE2, NODE3};
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        const struct node *node = config_get(config, "node", nodes[i], NULL);
        g_assert_cmpuint(node->unheard_since, ==, 1000); /* SAF-09 */
    }
    const struct repair_brake *pulled = restored_brake(config);
    g_assert_nonnull(pulled);
    g_assert_cmpstr(pulled->why, ==,
                    "The configuration was restored from a backup of 1970-01-01 00:16:40 UTC.");
    static const char *const ids[][2] = {{"3", "success"}, {"4", "error"}, {"5", "error"}};
    for (guint i = 0; i < G_N_ELEMENTS(ids); i++) {
        const struct job *ended = config_get(config, "job", ids[i][0], NULL);
        g_assert_cmpstr(ended->status, ==, ids[i][1]);
    }
    const struct job *ended = config_get(config, "job", "4", NULL);
    const struct job_op *op = ended->ops->pdata[0];
    g_assert_cmpstr(op->status, ==, "error");
    g_assert_cmpstr(json_string_value(op->result), ==,
                    "the cluster was restored from a backup while this job was not over; whether "
                    "it ran to its end is unknown");
    const struct counter *counter = config_get(config, "counter", "job", NULL);
    g_assert_cmpuint(counter->value, ==, 5 + RESTORE_JOB_GAP);
    g_autoptr(GPtrArray) problems = invariants_problems(config, LIMIT_PROBLEMS);
    g_assert_cmpuint(problems->len, ==, 1);
    g_assert_cmpstr(problems->pdata[0], ==,
                    "The configuration was restored from a backup of 1970-01-01 00:16:40 UTC. "
                    "Nothing starts, stops or moves until a person says: fettle repair continue");
    config_free(config);
}

/* Whom nodes trust is theirs to say, and what was renewed since is not taken back. */
static void test_keys(void)
{
    g_autofree char *old = g_strnfill(64, 'a'), *new = g_strnfill(64, 'b');
    struct config *config = config_of(
        changes_of(put("node", NODE3, 1, with(object_node(NODE3), "keys_missed", json_true())),
                   put("secret", "confd", 1, json_make("{s:s}", "value", old)), NULL));
    struct cluster *cluster = cluster_copy(config_cluster(config));
    text_set(&cluster->authority, "x");
    cluster->renewal = RENEWAL_REISSUE;
    g_autoptr(GPtrArray) renews =
        changes_of(put("cluster", CLUSTER, 1, cluster_to_json(cluster)), NULL);
    g_assert_true(config_apply(config, renews->pdata[0], NULL));
    cluster_free(cluster);
    const struct restoring restoring = {
        .node_uuid = NODE2, .now = 2000, .taken = 1000, .record_uuid = RECORD, .secret = new};
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) changes = restored_changes(config, &restoring, &error);
    for (guint i = 0; i < changes->len; i++)
        g_assert_true(config_apply(config, changes->pdata[i], NULL));
    const struct node *node = config_get(config, "node", NODE3, NULL);
    const struct secret *secret = config_get(config, "secret", "confd", NULL);
    g_assert_false(node->keys_missed);
    g_assert_cmpstr(secret->value, ==, new);
    g_assert_cmpstr(config_cluster(config)->authority, ==, "");
    g_assert_cmpint(config_cluster(config)->renewal, ==, RENEWAL_NONE);
    config_free(config);
}

static void test_strange_host(void)
{
    struct config *config = config_of(changes_of(job(3, "success"), NULL));
    const struct restoring restoring = {.node_uuid = WEB1, .record_uuid = RECORD};
    g_autoptr(GError) error = NULL;
    g_assert_null(restored_changes(config, &restoring, &error));
    g_assert_cmpstr(error->message, ==,
                    "this host (node " WEB1 ") is no node of the cluster in the backup; restore it "
                    "on one that was a node then");
    config_free(config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/restored/rests", test_rests);
    g_test_add_func("/restored/release-takes-reality", test_release_takes_reality);
    g_test_add_func("/restored/changes", test_changes);
    g_test_add_func("/restored/keys#SAF-94", test_keys);
    g_test_add_func("/restored/strange-host", test_strange_host);
    return g_test_run();
}
