/* set_migrated: who may say that a guest has gone over, once, and what is on record then. */
#include "unit/core/world/wconf_world.h"

#include <string.h>

#include "proto/records.h"

#define MIGRATION "eeeeeeee-0000-4000-8000-000000000001"
#define OTHER "eeeeeeee-0000-4000-8000-000000000002"

static GPtrArray *migrating_cluster(void)
{
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < objects->len; i++) {
        struct change *change = objects->pdata[i];
        if (strcmp(change->key, WEB1) != 0)
            continue;
        json_object_set_new(change->object, "task_state", json_string("migrating"));
        json_object_set_new(change->object, "task_owner", json_integer(17));
        json_object_set_new(change->object, "migration", json_string(MIGRATION));
        json_object_set_new(change->object, "migration_node", json_string(NODE2));
    }
    return objects;
}

static void set_up(void)
{
    config_world_init(&world, migrating_cluster());
    config_world_start(&world);
}

static json_t *move_args(int generation, const char *migration, bool clean)
{
    return json_make("{s:s,s:i,s:s,s:b}", "instance", WEB1, "generation", generation, "migration",
                     migration, "clean", clean);
}

static char *migrated(guint node, int generation, const char *migration, bool clean)
{
    return ask_wconf(&world, world.noded[node], "set_migrated",
                     move_args(generation, migration, clean));
}

static char *confirm(guint node, const char *role, int generation, const char *replica)
{
    g_autofree char *said =
        ask_wconf(&world, world.noded[node], "confirm",
                  json_make("{s:[{s:s,s:s,s:i,s:s}]}", "items", "role", role, "instance", WEB1,
                            "generation", generation, "replica", replica));
    return g_strdup(strstr(said, "\"answer\":\"confirmed\"") ? "confirmed" : "refused");
}

/* Kind and key of every object that has changed since the first serial, with what matters of it. */
static char *changed_since_first(void)
{
    g_autofree char *said = ask_wconf(&world, world.luxid, "wait_changes",
                                      json_make("{s:i,s:i}", "history", 5, "serial", 1));
    json_autoptr json = json_parse_limited(said, strlen(said), MIB(1), NULL);
    GString *text = g_string_new(NULL);
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(json, "changes"), i, item) {
        const json_t *object = json_object_get(item, "object");
        static const char *const members[] = {
            "node",  "primary_node", "holder", "generation", "secondary_node", "replica",
            "clean", "sync",         "state",  "migration",  "migration_node", "task_state"};
        g_string_append_printf(text, "%s%s", i ? "; " : "",
                               json_string_value(json_object_get(item, "kind")));
        for (guint m = 0; m < G_N_ELEMENTS(members); m++) {
            const json_t *value = object ? json_object_get(object, members[m]) : NULL;
            g_autofree char *word = value ? json_to_text(value) : NULL;
            if (word)
                g_string_append_printf(text, " %s=%s", members[m], word);
        }
        if (!object)
            g_string_append(text, " deleted");
    }
    return g_string_free(text, FALSE);
}

#define MOVED                                                                                      \
    "instance primary_node=\"" NODE2 "\" holder=\"" NODE2                                          \
    "\" generation=5 secondary_node=\"" NODE1 "\" replica=\"" MIGRATION                            \
    "\" clean=false migration=\"" MIGRATION "\" migration_node=\"" NODE2                           \
    "\" task_state=\"migrating\""
#define LEFT(state) "replica node=\"" NODE1 "\" generation=5 sync=1 state=\"" state "\""

static void test_moved(void)
{
    for (int clean = 0; clean <= 1; clean++) {
        set_up();
        assert_says(migrated(0, 4, MIGRATION, clean), "{\"serial\":2}");
        g_autofree char *changed = changed_since_first();
        g_assert_nonnull(strstr(changed, MOVED));
        g_assert_nonnull(strstr(changed, clean ? LEFT("syncing") : LEFT("stale")));
        g_assert_nonnull(strstr(changed, "replica deleted"));
        assert_says(world_status("problems"), "[]");
        world_tear_down();
    }
}

/* Whoever may read ids may commit something else by them. */
static void test_id_of_another(void)
{
    struct fake_reply reply;
    set_up();
    luxid_commit_start(MIGRATION, changes_of(put_tag("x"), NULL), &reply);
    fake_settle(world.world);
    fake_reply_clear(&reply);
    assert_says(migrated(0, 4, MIGRATION, true), "{\"serial\":3}");
    g_autofree char *changed = changed_since_first();
    g_assert_nonnull(strstr(changed, MOVED));
    /* which has an id of its own: a store has room for one commit of each */
    luxid_commit_start(MIGRATION, changes_of(put_tag("x"), NULL), &reply);
    fake_settle(world.world);
    g_assert_cmpint(json_integer_value(json_object_get(reply.result, "serial")), ==, 2);
    fake_reply_clear(&reply);
    world_tear_down();
}

/* The answer was lost: however late the question comes again, it is answered in the same way, and
 * nothing is done twice. */
static void test_repeated(void)
{
    set_up();
    assert_says(migrated(0, 4, MIGRATION, true), "{\"serial\":2}");
    assert_says(migrated(0, 4, MIGRATION, true), "{\"serial\":2}");
    struct fake_reply reply;
    luxid_commit_start(ID_A, changes_of(put_tag("x"), NULL), &reply);
    fake_reply_clear(&reply);
    config_world_restart(&world);
    fake_script(world.world, NULL, ROLE_NODED, "announce", fake_answer_nothing, NULL);
    config_world_start(&world);
    assert_says(migrated(0, 4, MIGRATION, true), "{\"serial\":2}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 2);
    world_tear_down();
}

/* Two questions while the first is being stored share its fate. */
static void test_repeated_on_its_way(void)
{
    struct fake_reply one, two;
    set_up();
    fake_engine_hold(world.engine);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_migrated",
                    move_args(4, MIGRATION, true), &one);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_migrated",
                    move_args(4, MIGRATION, true), &two);
    fake_settle(world.world);
    g_assert_false(one.done || two.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&one), "{\"serial\":2}");
    assert_says(world_reply(&two), "{\"serial\":2}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 1);
    world_tear_down();
}

static void test_refusals(void)
{
    set_up();
    assert_says(migrated(1, 4, MIGRATION, true),
                "permission_denied: instance web1: node2 does not hold generation 4, node1 does");
    assert_says(migrated(0, 3, MIGRATION, true),
                "superseded: instance web1: generation 3 is over, 4 is on record (holder: node1)");
    assert_says(migrated(0, 5, MIGRATION, true),
                "wrong_state: instance web1: generation 5 was never committed, 4 is on record");
    assert_says(migrated(0, 4, OTHER, true),
                "wrong_state: instance web1: migration " OTHER " is not under way (" MIGRATION
                " is on record); it stays with node1");
    assert_says(ask_wconf(&world, world.noded[0], "set_migrated",
                          json_make("{s:s,s:i,s:s,s:b}", "instance", NODE3, "generation", 4,
                                    "migration", MIGRATION, "clean", 1)),
                "unknown_entity: instance " NODE3 " does not exist");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 0);
    /* Moved: another migration of the same generation is over with it. */
    assert_says(migrated(0, 4, MIGRATION, true), "{\"serial\":2}");
    assert_says(migrated(0, 4, OTHER, true),
                "superseded: instance web1: generation 4 is over, 5 is on record (holder: node2)");
    world_tear_down();
}

static void test_no_migration(void)
{
    world_set_up();
    assert_says(migrated(0, 4, MIGRATION, true),
                "wrong_state: instance web1: migration " MIGRATION
                " is not under way (none is on record); it stays with node1");
    world_tear_down();
}

/* A target that a person has called dead since takes no guest: it stays where its images are. */
static void test_dead_target(void)
{
    set_up();
    assert_says(job_locks(&world, 18, "x node/" NODE2, false), GRANTED);
    assert_says(job_commit(&world, 18,
                           changes_of(put("node", NODE2, 1,
                                          with(object_node(NODE2), "offline", json_true())),
                                      NULL)),
                "{\"serial\":2}");
    assert_says(migrated(0, 4, MIGRATION, true),
                "unsafe: instance web1 (" WEB1
                "): holder: node2 is offline, nothing is started there");
    world_tear_down();
}

/* Nor does the word of a source that was called dead count any more: what waited on the target may
 * be gone. */
static void test_dead_source(void)
{
    set_up();
    assert_says(job_locks(&world, 18, "x node/" NODE1, false), GRANTED);
    json_t *dead = with(object_node(NODE1), "offline", json_true());
    assert_says(job_commit(&world, 18,
                           changes_of(put("node", NODE1, 1,
                                          with(dead, "offline_statement", json_string("seen"))),
                                      NULL)),
                "{\"serial\":2}");
    assert_says(migrated(0, 4, MIGRATION, true),
                "wrong_state: instance web1: node1 is offline on record, so a migration that it "
                "ends now counts no more");
    assert_says(migrated(0, 4, OTHER, true),
                "wrong_state: instance web1: migration " OTHER " is not under way (" MIGRATION
                " is on record); it stays with node1");
    world_tear_down();
}

/* A refusal is a word of the master, so it comes after a barrier. */
static void test_refusal_after_barrier(void)
{
    struct fake_reply reply;
    set_up();
    fake_engine_hold(world.engine);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_migrated",
                    move_args(3, MIGRATION, true), &reply);
    fake_settle(world.world);
    g_assert_false(reply.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&reply),
                "superseded: instance web1: generation 3 is over, 4 is on record (holder: node1)");
    world_tear_down();
}

/* --- confirm --- */

static void test_confirm_incoming(void)
{
    set_up();
    assert_says(confirm(1, "incoming", 5, MIGRATION), "confirmed");
    assert_says(confirm(1, "incoming", 4, MIGRATION), "refused");
    assert_says(confirm(1, "incoming", 5, OTHER), "refused");
    assert_says(confirm(2, "incoming", 5, MIGRATION), "refused");
    assert_says(confirm(0, "incoming", 5, MIGRATION), "refused");
    /* It may wait there, not run; the guest runs on where it is. */
    assert_says(confirm(1, "run", 5, ""), "refused");
    assert_says(confirm(0, "run", 4, ""), "confirmed");
    assert_says(migrated(0, 4, MIGRATION, true), "{\"serial\":2}");
    assert_says(confirm(1, "incoming", 5, MIGRATION), "refused");
    assert_says(confirm(1, "incoming", 6, MIGRATION), "refused");
    assert_says(confirm(1, "run", 5, ""), "confirmed");
    assert_says(confirm(0, "run", 4, ""), "refused");
    assert_says(confirm(0, "export", 5, MIGRATION), "confirmed");
    assert_says(confirm(1, "mirror", 5, MIGRATION), "confirmed");
    world_tear_down();
}

/* --- what needs no lock --- */

static void test_free_of_locks(void)
{
    world_set_up();
    assert_says(job_commit(&world, 17,
                           changes_of(put("advice", OTHER, 0,
                                          json_make("{s:s,s:s,s:s,s:s,s:s}", "uuid", OTHER,
                                                    "author", "rack", "subject_kind", "node",
                                                    "subject", NODE3, "advice", "avoid")),
                                      put("repair_brake", "cluster", 0,
                                          json_make("{s:i,s:s}", "since", 1, "why", "storm")),
                                      NULL)),
                "{\"serial\":2}");
    assert_says(job_commit(&world, 17, changes_of(del("repair_brake", "cluster", 1), NULL)),
                "version_conflict: repair_brake cluster: was read at version 1, it is at 2 now");
    assert_says(job_commit(&world, 17,
                           changes_of(put("cluster", CLUSTER, 1,
                                          json_make("{s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1",
                                                    "master_node", NODE1)),
                                      NULL)),
                "lock_missing: cluster c1 (" CLUSTER
                "): job 17 does not hold the lock cluster/BGL exclusively");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf/migrated#SAF-17", test_moved);
    g_test_add_func("/wconf/migrated/id-of-another#SAF-17", test_id_of_another);
    g_test_add_func("/wconf/migrated/repeated#SAF-17,SAF-04", test_repeated);
    g_test_add_func("/wconf/migrated/on-its-way#SAF-17,SAF-04", test_repeated_on_its_way);
    g_test_add_func("/wconf/migrated/refusals#SAF-17,SAF-04", test_refusals);
    g_test_add_func("/wconf/migrated/none#SAF-17", test_no_migration);
    g_test_add_func("/wconf/migrated/dead-target#SAF-17", test_dead_target);
    g_test_add_func("/wconf/migrated/dead-source#SAF-17", test_dead_source);
    g_test_add_func("/wconf/migrated/barrier#SAF-03,SAF-04", test_refusal_after_barrier);
    g_test_add_func("/wconf/confirm/incoming#SAF-03,SAF-17", test_confirm_incoming);
    g_test_add_func("/wconf/cover/free#FUT-04", test_free_of_locks);
    return g_test_run();
}
