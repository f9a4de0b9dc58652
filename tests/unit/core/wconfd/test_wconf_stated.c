/* Words that a new master does not know: what nodes state with their answer to its announcement,
 * and what becomes of the record. core/wconfd/wconf_stated.c, wconf_announce.c.
 */
#include <string.h>

#include "unit/core/world/wconf_world.h"

#define OTHER_REPLICA "33333333-0000-4000-8000-0000000000ff"

/* What the nodes say. */
struct nodes {
    json_t *states;  /* of node1; NULL: it is of the version before */
    json_t *reports; /* the guests of its report then */
    bool silent;     /* it answers nothing */
    guint asked;     /* to tell their guests; all nodes together */
};

static json_t *answer_announce(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    struct nodes *nodes = data;
    bool first = !strcmp(to_node, NODE1);
    if (first && nodes->silent) {
        fettle_set_error(error, UNREACHABLE, "no way (made by the test)");
        return NULL;
    }
    if (!json_is_true(json_object_get(request->args, "asks")))
        return json_object();
    nodes->asked++;
    if (first && !nodes->states)
        return json_object();
    return json_make("{s:b,s:o}", "states", 1, "guests",
                     first ? json_deep_copy(nodes->states) : json_array());
}

static json_t *answer_report(const struct rpc_request *request, const char *to_node, void *data,
                             GError **error)
{
    const struct nodes *nodes = data;
    return json_make("{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:o}", "node", to_node, "version", "0.1",
                     "boot_id", "b", "memory_total", 1, "memory_free", 1, "disk_total", 1,
                     "disk_free", 1, "cpus", 1, "guests",
                     nodes->reports ? json_deep_copy(nodes->reports) : json_array());
}

/* What node1 says of web1. */
static json_t *says(guint64 generation, const char *replica, guint64 sync, const char *state)
{
    return json_make("[{s:s,s:i,s:b,s:s,s:i,s:s,s:b}]", "instance", WEB1, "generation",
                     (int)generation, "runs", 1, "replica", replica, "sync", (int)sync, "state",
                     state, "told", 1);
}

static json_t *unheard(const char *uuid)
{
    return with(with(object_node(uuid), "unheard_since", json_integer(5)), "offline",
                json_boolean(false));
}

/* `objects` (stolen) on top of a cluster whose nodes have told nothing. */
static void begin(struct nodes *nodes, GPtrArray *objects)
{
    static const char *const uuids[] = {NODE1, NODE2, NODE3};
    GPtrArray *all = initial_changes();
    for (guint i = 0; i < G_N_ELEMENTS(uuids); i++)
        g_ptr_array_add(all, put("node", uuids[i], 1, unheard(uuids[i])));
    for (guint i = 0; objects && i < objects->len; i++)
        g_ptr_array_add(all, change_copy(objects->pdata[i]));
    if (objects)
        g_ptr_array_unref(objects);
    config_world_init(&world, all);
    fake_script(world.world, NULL, ROLE_NODED, "announce", answer_announce, nodes);
    fake_script(world.world, NULL, ROLE_NODED, "node_report", answer_report, nodes);
    config_world_start(&world);
    fake_advance(world.world, 100);
}

static void end(struct nodes *nodes)
{
    world_tear_down();
    json_decref(nodes->states);
    json_decref(nodes->reports);
}

static char *replica_now(void)
{
    const struct replica *replica =
        config_get(wconf_config(world.wconf), "replica", REPLICA1, NULL);
    return replica ? g_strdup_printf("%s g%u s%u: %s",
                                     enum_word(&replica_state_words, (int)replica->state),
                                     (guint)replica->generation, (guint)replica->sync, replica->why)
                   : g_strdup("none");
}

static char *web1_now(void)
{
    const struct instance *web1 = config_get(wconf_config(world.wconf), "instance", WEB1, NULL);
    return g_strdup_printf("g%u on %s held by %s", (guint)web1->generation,
                           config_node_name(wconf_config(world.wconf), web1->primary_node),
                           config_node_name(wconf_config(world.wconf), web1->holder));
}

static guint64 unheard_of(const char *uuid)
{
    return ((const struct node *)config_get(wconf_config(world.wconf), "node", uuid, NULL))
        ->unheard_since;
}

#define STALE                                                                                      \
    ": its holder has no mirror to it in sync; the master before may have had that on record"
#define IN_SYNC ": its holder had it on record as in sync with the master before"

/* What the record calls in-sync and its holder does not. */
static void test_replica(void)
{
    const struct {
        const char *record; /* state of the replica on record, sync 7 */
        json_t *states;
        const char *then;
    } rows[] = {
        {"in-sync", says(4, REPLICA1, 7, "in-sync"), "in-sync g4 s7: "},
        {"in-sync", says(4, REPLICA1, 9, "in-sync"), "in-sync g4 s7: "},
        {"in-sync", says(4, "", 0, "stale"), "stale g4 s8" STALE},
        {"in-sync", says(4, REPLICA1, 8, "stale"), "stale g4 s9" STALE},
        {"in-sync", says(4, REPLICA1, 9, "syncing"), "stale g4 s10" STALE},
        {"in-sync", says(4, OTHER_REPLICA, 1, "in-sync"), "stale g4 s8" STALE},
        {"in-sync", json_array(), "in-sync g4 s7: "},            /* it has not begun */
        {"in-sync", says(3, "", 0, "stale"), "in-sync g4 s7: "}, /* of before */
        {"syncing", says(4, REPLICA1, 8, "in-sync"), "in-sync g4 s9" IN_SYNC},
        {"stale", says(4, REPLICA1, 9, "in-sync"), "in-sync g4 s10" IN_SYNC},
        {"stale", says(4, REPLICA1, 6, "in-sync"), "stale g4 s7: "}, /* it has not heard of that */
        {"syncing", says(4, REPLICA1, 7, "syncing"), "syncing g4 s7: "},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct nodes nodes = {.states = rows[i].states};
        begin(&nodes, changes_of(put("replica", REPLICA1, 1,
                                     with(object_replica1(), "state", json_string(rows[i].record))),
                                 NULL));
        assert_says(replica_now(), rows[i].then);
        g_assert_cmpuint(unheard_of(NODE1) + unheard_of(NODE2) + unheard_of(NODE3), ==, 0);
        g_assert_cmpuint(nodes.asked, ==, 3);
        assert_says(web1_now(), "g4 on node1 held by node1");
        end(&nodes);
    }
}

/* By what the mirror looks like a copy is whole only if the record knows that mirror. */
static void test_not_told(void)
{
    for (guint sync = 7; sync <= 8; sync++) {
        struct nodes nodes = {.states = says(4, REPLICA1, sync, "in-sync")};
        json_object_set_new(json_array_get(nodes.states, 0), "told", json_false());
        begin(&nodes, NULL);
        assert_says(replica_now(), sync == 7 ? "in-sync g4 s7: " : "stale g4 s9" STALE);
        end(&nodes);
    }
}

/* The gate of SAF-06 waits for it, and a node that is offline is not asked. */
static void test_gate(void)
{
    struct nodes nodes = {.states = says(4, "", 0, "stale"), .silent = true};
    struct fake_reply reply;
    begin(&nodes,
          changes_of(put("node", NODE3, 1, with(unheard(NODE3), "offline", json_true())), NULL));
    job_locks_start_as(17, "node/" NODE1, "shared", 60000, &reply);
    fake_advance(world.world, 5000);
    g_assert_false(reply.done);
    assert_says(replica_now(), "in-sync g4 s7: ");
    g_assert_cmpuint(unheard_of(NODE1), ==, 5);
    nodes.silent = false;
    fake_advance(world.world, 3000);
    assert_says(world_reply(&reply), GRANTED);
    assert_says(replica_now(), "stale g4 s8" STALE);
    g_assert_cmpuint(unheard_of(NODE1), ==, 0);
    g_assert_cmpuint(unheard_of(NODE3), ==, 5);
    g_assert_cmpuint(nodes.asked, ==, 2);
    end(&nodes);
}

/* A node that does not know the question speaks by its report. */
static void test_version_before(void)
{
    const struct {
        const char *mirror, *replica, *then;
    } rows[] = {{"ready", REPLICA1, "in-sync g4 s7: "},
                {"syncing", REPLICA1, "stale g4 s8" STALE},
                {"none", "", "stale g4 s8" STALE}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct nodes nodes = {.reports = json_make("[{s:s,s:i,s:s,s:s,s:s}]", "instance", WEB1,
                                                   "generation", 4, "state", "running", "mirror",
                                                   rows[i].mirror, "replica", rows[i].replica)};
        begin(&nodes, NULL);
        assert_says(replica_now(), rows[i].then);
        g_assert_cmpuint(unheard_of(NODE1), ==, 0);
        end(&nodes);
    }
}

/* A generation that the record does not have yet was given by the master before: a start. */
static void test_start_lost(void)
{
    struct nodes nodes = {.states = says(6, REPLICA1, 9, "in-sync")};
    json_t *web1 = with(with(object_web1(), "holder", json_string("")), "clean", json_true());
    begin(&nodes, changes_of(put("instance", WEB1, 1, web1), NULL));
    assert_says(web1_now(), "g6 on node1 held by node1");
    assert_says(replica_now(), "in-sync g6 s10: ");
    end(&nodes);
}

/* A restart: of what the record still calls running nothing is known of its images. */
static void test_restart_lost(void)
{
    struct nodes nodes = {.states = says(6, REPLICA1, 9, "in-sync")};
    begin(&nodes, NULL);
    assert_says(web1_now(), "g6 on node1 held by node1");
    assert_says(replica_now(), "in-sync g6 s10: ");
    end(&nodes);
}

static void test_start_alone_lost(void)
{
    struct nodes nodes = {.states = says(6, "", 0, "stale")};
    json_t *web1 = with(with(object_web1(), "holder", json_string("")), "clean", json_true());
    begin(&nodes, changes_of(put("instance", WEB1, 1, web1), NULL));
    assert_says(web1_now(), "g6 on node1 held by node1");
    assert_says(replica_now(), "stale g4 s8" STALE);
    end(&nodes);
}

/* A failover to where the guest runs now; and a migration that its old node tells of. */
static json_t *on_node2(void)
{
    json_t *web1 =
        with(with(object_web1(), "primary_node", json_string(NODE2)), "holder", json_string(NODE2));
    return with(web1, "secondary_node", json_string(NODE1));
}

static struct change *replica_on_node1(void)
{
    return put("replica", REPLICA1, 1, with(object_replica1(), "node", json_string(NODE1)));
}

static void test_failover_lost(void)
{
    struct nodes nodes = {.states = says(5, "", 0, "stale")};
    begin(&nodes, changes_of(put("instance", WEB1, 1, on_node2()), replica_on_node1(), NULL));
    assert_says(web1_now(), "g5 on node1 held by node1");
    assert_says(replica_now(), "none");
    end(&nodes);
}

/* But its holder on record lives, and has stated that its guest runs: under this master it goes on,
 * and what comes late is over. */
static void test_failover_lost_but_it_runs(void)
{
    struct nodes nodes = {.states = says(5, "", 0, "stale")};
    json_t *web1 = with(on_node2(), "stated", json_integer(4));
    begin(&nodes, changes_of(put("instance", WEB1, 1, web1), replica_on_node1(), NULL));
    assert_says(web1_now(), "g4 on node2 held by node2");
    g_assert_cmpuint(unheard_of(NODE1), ==, 0);
    end(&nodes);
    /* Of a generation that is over it says nothing. */
    struct nodes late = {.states = says(5, "", 0, "stale")};
    web1 = with(on_node2(), "stated", json_integer(3));
    begin(&late, changes_of(put("instance", WEB1, 1, web1), replica_on_node1(), NULL));
    assert_says(web1_now(), "g5 on node1 held by node1");
    end(&late);
}

static guint64 stated_now(void)
{
    return ((const struct instance *)config_get(wconf_config(world.wconf), "instance", WEB1, NULL))
        ->stated;
}

static void test_holder_is_noted(void)
{
    struct nodes nodes = {.states = says(4, REPLICA1, 7, "in-sync")};
    begin(&nodes, NULL);
    g_assert_cmpuint(stated_now(), ==, 4);
    end(&nodes);
    struct nodes ended = {.states = says(4, REPLICA1, 7, "in-sync")};
    json_object_set_new(json_array_get(ended.states, 0), "runs", json_false());
    begin(&ended, NULL);
    g_assert_cmpuint(stated_now(), ==, 0);
    end(&ended);
}

/* It has ended there since: its images are the only ones that have what it wrote. */
static void test_failover_lost_and_ended(void)
{
    struct nodes nodes = {.states = says(5, "", 0, "stale")};
    json_object_set_new(json_array_get(nodes.states, 0), "runs", json_false());
    begin(&nodes, changes_of(put("instance", WEB1, 1, on_node2()), replica_on_node1(), NULL));
    assert_says(web1_now(), "g5 on node1 held by node1");
    assert_says(replica_now(), "none");
    end(&nodes);
}

static void test_migration_lost(void)
{
    struct nodes nodes = {.states = says(4, "", 0, "stale")};
    json_object_set_new(json_array_get(nodes.states, 0), "gone_to", json_string(NODE2));
    json_object_set_new(json_array_get(nodes.states, 0), "runs", json_false());
    begin(&nodes, NULL);
    assert_says(web1_now(), "g5 on node2 held by node2");
    assert_says(replica_now(), "none");
    end(&nodes);
}

/* After a restore a person has it compared first; only promises are taken back. */
static void test_restored(void)
{
    struct nodes nodes = {.states = says(6, "", 0, "stale")};
    begin(&nodes, changes_of(put("repair_brake", "cluster", 1,
                                 json_make("{s:i,s:s,s:b}", "since", 1, "why", "It was restored.",
                                           "restored", 1)),
                             NULL));
    assert_says(web1_now(), "g4 on node1 held by node1");
    assert_says(replica_now(), "stale g4 s8" STALE);
    g_assert_cmpuint(unheard_of(NODE1), ==, 0);
    end(&nodes);
}

/* What nobody asked for says nothing; what is no statement is an answer that does not count. */
static void test_bad_answer(void)
{
    struct nodes nodes = {.states = json_make("[{s:s}]", "instance", "web1")};
    begin(&nodes, NULL);
    g_assert_cmpuint(unheard_of(NODE1), ==, 5);
    assert_says(world_status("nodes_pending"), "[\"" NODE1 "\"]");
    end(&nodes);
}

/* Nobody is asked when nothing can be lost. */
static void test_nothing_lost(void)
{
    struct nodes nodes = {.states = says(4, "", 0, "stale")};
    config_world_init(&world, initial_changes());
    fake_script(world.world, NULL, ROLE_NODED, "announce", answer_announce, &nodes);
    config_world_start(&world);
    fake_advance(world.world, 100);
    g_assert_cmpuint(nodes.asked, ==, 0);
    assert_says(replica_now(), "in-sync g4 s7: ");
    end(&nodes);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stated/replica#SAF-09,SAF-13", test_replica);
    g_test_add_func("/stated/not-told#SAF-09", test_not_told);
    g_test_add_func("/stated/gate#SAF-06,SAF-09", test_gate);
    g_test_add_func("/stated/version-before#SAF-09", test_version_before);
    g_test_add_func("/stated/start-lost#SAF-09,SAF-10", test_start_lost);
    g_test_add_func("/stated/restart-lost#SAF-09,SAF-24", test_restart_lost);
    g_test_add_func("/stated/start-alone-lost#SAF-09,SAF-10", test_start_alone_lost);
    g_test_add_func("/stated/failover-lost#SAF-09,SAF-16", test_failover_lost);
    g_test_add_func("/stated/failover-lost-but-it-runs#SAF-09", test_failover_lost_but_it_runs);
    g_test_add_func("/stated/holder-is-noted#SAF-09", test_holder_is_noted);
    g_test_add_func("/stated/failover-lost-and-ended#SAF-09,SAF-16", test_failover_lost_and_ended);
    g_test_add_func("/stated/migration-lost#SAF-09,SAF-17", test_migration_lost);
    g_test_add_func("/stated/restored#SAF-09", test_restored);
    g_test_add_func("/stated/bad-answer#SAF-09", test_bad_answer);
    g_test_add_func("/stated/nothing-lost#SAF-09", test_nothing_lost);
    return g_test_run();
}
