/* The configuration daemon: confirmations and replica states, with a fake engine that holds its
 * answers back. */
#include <string.h>

#include "core/wconfd/wconf_private.h"
#include "proto/confd.h"
#include "proto/records.h"
#include "unit/core/world/wconf_world.h"

/* --- confirmations --- */

static char *confirm(guint node, const char *role, const char *instance, int generation,
                     const char *replica)
{
    return ask_wconf(&world, world.noded[node], "confirm",
                     json_make("{s:[{s:s,s:s,s:i,s:s}]}", "items", "role", role, "instance",
                               instance, "generation", generation, "replica", replica));
}

#define ANSWER(word, rest) "{\"items\":[{\"answer\":\"" word "\"," rest "}]}"
#define AT4                                                                                        \
    "\"generation\":4,\"holder\":\"\",\"kept\":false,\"other\":false,\"primary_node\":\"" NODE1    \
    "\",\"removed\":false,\"replica_state\":\"in-sync\",\"sync\":7"
#define AT4_EXPORT                                                                                 \
    "\"generation\":4,\"holder\":\"" NODE1                                                         \
    "\",\"kept\":false,\"other\":false,\"primary_node\":\"" NODE1                                  \
    "\",\"removed\":false,\"replica_state\":\"in-sync\",\"sync\":7"
#define AT4_HELD                                                                                   \
    "\"generation\":4,\"holder\":\"\",\"kept\":false,\"other\":true,\"primary_node\":\"" NODE1     \
    "\",\"removed\":false,\"replica_state\":\"in-sync\",\"sync\":7"
#define AT4_OTHER                                                                                  \
    "\"generation\":4,\"holder\":\"\",\"kept\":false,\"other\":false,\"primary_node\":\"" NODE1    \
    "\",\"removed\":false,\"replica_state\":\"\",\"sync\":0"

static void test_confirm(void)
{
    world_set_up();
    assert_says(confirm(0, "run", WEB1, 4, ""), ANSWER("confirmed", AT4));
    assert_says(confirm(0, "mirror", WEB1, 4, REPLICA1), ANSWER("confirmed", AT4));
    assert_says(confirm(1, "export", WEB1, 4, REPLICA1), ANSWER("confirmed", AT4_EXPORT));
    /* Another node, another replica, a generation that is over, or that never was. */
    assert_says(confirm(1, "run", WEB1, 4, ""), ANSWER("refused", AT4_HELD));
    assert_says(confirm(2, "export", WEB1, 4, REPLICA1), ANSWER("refused", AT4));
    assert_says(confirm(1, "export", WEB1, 4, REPLICA2), ANSWER("refused", AT4_OTHER));
    assert_says(confirm(0, "mirror", WEB1, 4, REPLICA2), ANSWER("refused", AT4_OTHER));
    assert_says(confirm(0, "run", WEB1, 3, ""), ANSWER("refused", AT4));
    assert_says(confirm(0, "run", WEB1, 5, ""), ANSWER("refused", AT4));
    assert_says(confirm(0, "run", NODE1, 4, ""),
                ANSWER("refused",
                       "\"generation\":0,\"holder\":\"\",\"kept\":false,\"other\":false,\"primary_"
                       "node\":\"\",\"removed\":false,"
                       "\"replica_state\":\"\",\"sync\":0"));
    world_tear_down();
}

/* Its holder has stated that it runs, to a master who may lack words of the one before: what
 * another has of a later generation is another's, and over (SAF-09). Of the holder it is only
 * unknown. */
static void test_confirm_stated(void)
{
    world_set_up();
    assert_says(confirm(1, "run", WEB1, 6, ""), ANSWER("refused", AT4));
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17,
                           changes_of(put("instance", WEB1, 1,
                                          with(object_web1(), "stated", json_integer(4))),
                                      NULL)),
                "{\"serial\":2}");
    assert_says(confirm(1, "run", WEB1, 6, ""), ANSWER("refused", AT4_HELD));
    assert_says(confirm(1, "run", WEB1, 3, ""), ANSWER("refused", AT4));
    assert_says(confirm(0, "run", WEB1, 6, ""), ANSWER("refused", AT4));
    world_tear_down();
}

/* What a person has called dead may still run what it runs, but begins nothing. */
static void test_confirm_start(void)
{
    world_set_up();
    assert_says(confirm(0, "start", WEB1, 4, ""), ANSWER("confirmed", AT4));
    assert_says(confirm(1, "start", WEB1, 4, ""), ANSWER("refused", AT4));
    assert_says(job_locks(&world, 18, "x node/" NODE1, false), GRANTED);
    json_t *dead = with(object_node(NODE1), "offline", json_true());
    assert_says(job_commit(&world, 18, changes_of(put("node", NODE1, 1, dead), NULL)),
                "{\"serial\":2}");
    assert_says(confirm(0, "start", WEB1, 4, ""), ANSWER("refused", AT4));
    assert_says(confirm(0, "run", WEB1, 4, ""), ANSWER("confirmed", AT4));
    world_tear_down();
}

/* New images may be made under the mark, for the generation after this one; then they are those
 * that the record names, and nobody else's. */
static void test_confirm_new_disks(void)
{
    world_set_up();
    assert_says(confirm(2, "new-disks", WEB1, 5, ID_A), ANSWER("refused", AT4_OTHER));
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    assert_says(job_commit(&world, 17,
                           changes_of(put("instance", WEB1, 1,
                                          with(with(object_web1(), "task_state",
                                                    json_string("recreating-disks")),
                                               "task_owner", json_integer(17))),
                                      NULL)),
                "{\"serial\":2}");
    assert_says(confirm(2, "new-disks", WEB1, 5, ID_A), ANSWER("confirmed", AT4_OTHER));
    assert_says(confirm(2, "new-disks", WEB1, 4, ID_A), ANSWER("refused", AT4_OTHER));
    assert_says(confirm(2, "new-disks", WEB1, 6, ID_A), ANSWER("refused", AT4_OTHER));
    assert_says(confirm(0, "new-disks", WEB1, 4, DISK1), ANSWER("confirmed", AT4_OTHER));
    assert_says(confirm(1, "new-disks", WEB1, 4, DISK1), ANSWER("refused", AT4_OTHER));
    assert_says(confirm(1, "new-disks", WEB1, 4, REPLICA1), ANSWER("confirmed", AT4));
    assert_says(confirm(1, "new-disks", WEB1, 3, REPLICA1), ANSWER("confirmed", AT4));
    assert_says(confirm(0, "new-disks", WEB1, 4, REPLICA1), ANSWER("refused", AT4));
    world_tear_down();
}

/* etcd whose members nobody has seen yet may have one only (test_engine_members.c). */
static void test_confirm_kept(void)
{
    world_set_up();
    fake_engine_base(world.engine)->replicated = true;
    assert_says(confirm(0, "mirror", WEB1, 4, REPLICA1),
                ANSWER("confirmed",
                       "\"generation\":4,\"holder\":\"\",\"kept\":false,\"other\":false,"
                       "\"primary_node\":\"" NODE1
                       "\",\"removed\":false,\"replica_state\":\"in-sync\",\"sync\":7"));
    world_tear_down();
}

static void test_confirm_removed(void)
{
    world_set_up();
    struct change *removed = put(
        "removed", DB1, 0, json_make("{s:s,s:s,s:i}", "uuid", DB1, "name", "db1", "generation", 3));
    assert_says(job_locks(&world, 17, "x instance/db1", false), GRANTED);
    assert_says(job_commit(&world, 17, changes_of(del("instance", DB1, 1), removed, NULL)),
                "{\"serial\":2}");
    assert_says(confirm(0, "run", DB1, 2, ""),
                ANSWER("refused",
                       "\"generation\":3,\"holder\":\"\",\"kept\":false,\"other\":false,\"primary_"
                       "node\":\"\",\"removed\":true,"
                       "\"replica_state\":\"\",\"sync\":0"));
    world_tear_down();
}

/* A job's stop of web1, on its way to the engine. */
static void begin_stop(struct fake_reply *ret_stop)
{
    json_t *web1 =
        with(with(object_web1(), "generation", json_integer(5)), "holder", json_string(""));
    json_t *stale =
        with(with(with(object_replica1(), "generation", json_integer(5)), "sync", json_integer(8)),
             "state", json_string("stale"));
    record_autoptr(commit_args) args = commit_args_new();
    g_free(args->commit_id);
    args->commit_id = g_strdup(ID_A);
    g_ptr_array_unref(args->changes);
    args->changes =
        changes_of(put("instance", WEB1, 1, web1), put("replica", REPLICA1, 1, stale), NULL);
    json_t *json = commit_args_to_json(args);
    json_object_set_new(json, "owner", owner_json(17));
    fake_call_start_stamped(world.job, 17, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD,
                            "commit", json, ret_stop);
    fake_settle(world.world);
}

static void begin_question(struct fake_reply *ret_question)
{
    fake_call_start(
        world.noded[0], 0, NODE1, ROLE_WCONFD, "confirm",
        json_make("{s:[{s:s,s:s,s:i}]}", "items", "role", "run", "instance", WEB1, "generation", 4),
        ret_question);
    fake_settle(world.world);
}

static void test_confirm_waits_for_barrier(void)
{
    struct fake_reply stop, question;
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    fake_engine_hold(world.engine);
    begin_stop(&stop);
    /* Asked while the stop is on its way: the answer comes after it, and shows it. */
    begin_question(&question);
    g_assert_false(question.done);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&stop), "{\"serial\":2}");
    assert_says(world_reply(&question),
                ANSWER("refused", "\"generation\":5,\"holder\":\"\",\"kept\":false,\"other\":false,"
                                  "\"primary_node\":\"" NODE1
                                  "\",\"removed\":false,\"replica_state\":\"stale\",\"sync\":8"));
    world_tear_down();
}

/* The engine's word that this is the master says nothing of what is asked after it was asked for;
 * and what it has not stored yet is no answer to anybody. */
static void test_confirm_needs_a_barrier_of_its_own(void)
{
    struct fake_reply before, stop, after;
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    fake_engine_hold(world.engine);
    begin_question(&before);
    begin_stop(&stop);
    begin_question(&after);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    assert_says(world_reply(&before), ANSWER("confirmed", AT4));
    assert_says(world_reply(&stop), "{\"serial\":2}");
    assert_says(world_reply(&after),
                ANSWER("refused", "\"generation\":5,\"holder\":\"\",\"kept\":false,\"other\":false,"
                                  "\"primary_node\":\"" NODE1
                                  "\",\"removed\":false,\"replica_state\":\"stale\",\"sync\":8"));
    world_tear_down();
}

static void test_confirms_share_a_barrier(void)
{
    enum { QUESTIONS = 20 };
    struct fake_reply replies[QUESTIONS];
    world_set_up();
    fake_engine_hold(world.engine);
    for (guint i = 0; i < QUESTIONS; i++) {
        fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "confirm",
                        json_make("{s:[{s:s,s:s,s:i}]}", "items", "role", "run", "instance", WEB1,
                                  "generation", 4),
                        &replies[i]);
        fake_settle(world.world);
    }
    g_assert_cmpuint(fake_engine_queued(world.engine), ==, 1);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    for (guint i = 0; i < QUESTIONS; i++)
        assert_says(world_reply(&replies[i]), ANSWER("confirmed", AT4));
    world_tear_down();
}

/* --- replica states --- */

static char *set_replica(guint node, const char *replica, int generation, int sync,
                         const char *state)
{
    return ask_wconf(&world, world.noded[node], "set_replica_state",
                     json_make("{s:s,s:s,s:i,s:i,s:s,s:s}", "instance", WEB1, "replica", replica,
                               "generation", generation, "sync", sync, "state", state, "why",
                               "test"));
}

static void test_set_replica_state(void)
{
    world_set_up();
    assert_says(set_replica(0, REPLICA1, 4, 7, "stale"), "{\"sync\":8}");
    assert_says(set_replica(0, REPLICA1, 4, 7, "stale"), "{\"sync\":8}");
    assert_says(set_replica(0, REPLICA1, 4, 7, "syncing"),
                "version_conflict: instance web1: replica " REPLICA1
                ": was known at sync 7, it is stale at sync 8 now");
    assert_says(set_replica(0, REPLICA1, 4, 8, "in-sync"),
                "wrong_state: instance web1: replica " REPLICA1
                ": is stale, only a syncing one becomes in-sync (SAF-12)");
    assert_says(set_replica(0, REPLICA1, 4, 8, "syncing"), "{\"sync\":9}");
    /* The late repeat of the first: its time is over. */
    assert_says(set_replica(0, REPLICA1, 4, 7, "stale"),
                "version_conflict: instance web1: replica " REPLICA1
                ": was known at sync 7, it is syncing at sync 9 now");
    assert_says(set_replica(0, REPLICA1, 4, 9, "in-sync"), "{\"sync\":10}");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 3);
    assert_says(confirm(0, "mirror", WEB1, 4, REPLICA1),
                ANSWER("confirmed",
                       "\"generation\":4,\"holder\":\"\",\"kept\":false,\"other\":false,\"primary_"
                       "node\":\"" NODE1
                       "\",\"removed\":false,\"replica_state\":\"in-sync\",\"sync\":10"));
    world_tear_down();
}

/* What was put on record under an older generation is no answer to what this one asks for. */
static void test_set_replica_state_of_an_older_one(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    json_t *web1 = with(object_web1(), "generation", json_integer(5));
    json_t *stale =
        with(with(object_replica1(), "sync", json_integer(8)), "state", json_string("stale"));
    assert_says(job_commit(&world, 17, changes_of(put("replica", REPLICA1, 1, stale), NULL)),
                "{\"serial\":2}");
    assert_says(job_commit(&world, 17, changes_of(put("instance", WEB1, 1, web1), NULL)),
                "{\"serial\":3}");
    assert_says(set_replica(0, REPLICA1, 5, 7, "stale"),
                "version_conflict: instance web1: replica " REPLICA1
                ": was known at sync 7, it is stale at sync 8 now");
    world_tear_down();
}

static void test_set_replica_state_refusals(void)
{
    world_set_up();
    assert_says(set_replica(1, REPLICA1, 4, 7, "stale"),
                "permission_denied: instance web1: node2 does not hold generation 4, node1 does");
    assert_says(set_replica(0, REPLICA1, 3, 7, "stale"),
                "superseded: instance web1: generation 3 is over, 4 is on record (holder: node1)");
    assert_says(set_replica(0, REPLICA1, 5, 7, "stale"),
                "wrong_state: instance web1: generation 5 was never committed, 4 is on record");
    assert_says(set_replica(0, REPLICA2, 4, 7, "stale"),
                "unknown_entity: instance web1: replica " REPLICA2 " is not on record (" REPLICA1
                " is)");
    assert_says(ask_wconf(&world, world.noded[0], "set_replica_state",
                          json_make("{s:s,s:s,s:i,s:i,s:s}", "instance", NODE3, "replica", REPLICA1,
                                    "generation", 4, "sync", 7, "state", "stale")),
                "unknown_entity: instance " NODE3 " does not exist");
    g_assert_cmpuint(fake_engine_commits(world.engine), ==, 0);
    world_tear_down();
}

static void test_refusal_needs_commit(void)
{
    struct fake_reply failover, question;
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1, x node/" NODE1, false), GRANTED);
    fake_engine_hold(world.engine);
    json_t *moved = with(with(with(object_web1(), "generation", json_integer(5)), "primary_node",
                              json_string(NODE2)),
                         "holder", json_string(NODE2));
    moved = with(with(moved, "replica", json_string("")), "secondary_node", json_string(""));
    record_autoptr(commit_args) args = commit_args_new();
    g_free(args->commit_id);
    args->commit_id = g_strdup(ID_A);
    g_ptr_array_unref(args->changes);
    args->changes =
        changes_of(put("instance", WEB1, 1, moved), del("replica", REPLICA1, 1),
                   put("node", NODE1, 1, with(object_node(NODE1), "offline", json_true())), NULL);
    json_t *json = commit_args_to_json(args);
    json_object_set_new(json, "owner", owner_json(17));
    fake_call_start_stamped(world.job, 17, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD,
                            "commit", json, &failover);
    fake_settle(world.world);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_replica_state",
                    json_make("{s:s,s:s,s:i,s:i,s:s}", "instance", WEB1, "replica", REPLICA1,
                              "generation", 4, "sync", 7, "state", "stale"),
                    &question);
    fake_settle(world.world);
    g_assert_false(question.done);
    /* The failover is not stored after all: then there was no refusal either. */
    fake_engine_fail_next(world.engine, ENGINE_REFUSED, false);
    fake_engine_release(world.engine);
    fake_settle(world.world);
    g_assert_true(question.done);
    g_assert_true(fettle_error_is(question.error, TEMPORARY));
    fake_reply_clear(&question);
    fake_reply_clear(&failover);
    world_tear_down();
}

/* A change of engine holds commits, and refuses them when its step is done. What was asked again
 * meanwhile is no more accepted than what was asked first, and nothing is refused because of it. */
static void test_held(void)
{
    struct fake_reply first, again;
    const char *question = "{\"instance\":\"" WEB1 "\",\"replica\":\"" REPLICA1
                           "\",\"generation\":4,\"sync\":7,\"state\":\"stale\"}";
    world_set_up();
    wconf_hold_commits(world.wconf);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_replica_state",
                    json_loads(question, 0, NULL), &first);
    fake_settle(world.world);
    fake_call_start(world.noded[0], 0, NODE1, ROLE_WCONFD, "set_replica_state",
                    json_loads(question, 0, NULL), &again);
    fake_settle(world.world);
    g_assert_false(first.done || again.done);
    assert_says(set_replica(0, REPLICA1, 4, 7, "syncing"),
                "resource_not_available: instance web1: replica " REPLICA1
                ": was known at sync 7, it is stale at sync 8 now; but that change is not stored "
                "yet, and may still be refused: ask again");
    wconf_step_down(world.wconf, FETTLE_ERROR_NOT_MASTER, "the engine is another one");
    wconf_refuse_held_commits(world.wconf);
    fake_settle(world.world);
    g_assert_true(first.done && again.done);
    g_assert_true(fettle_error_is(first.error, TEMPORARY));
    g_assert_true(fettle_error_is(again.error, TEMPORARY));
    fake_reply_clear(&first);
    fake_reply_clear(&again);
    world_tear_down();
}

/* A higher generation that is held only is no refusal: a mirror would be given up for it. */
static void test_held_generation(void)
{
    struct fake_reply stop;
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/web1", false), GRANTED);
    wconf_hold_commits(world.wconf);
    begin_stop(&stop);
    assert_says(set_replica(0, REPLICA1, 4, 7, "stale"),
                "resource_not_available: instance web1: generation 4 is over, 5 is on record "
                "(holder: nobody); but that change is not stored yet, and may still be refused: "
                "ask again");
    wconf_release_commits(world.wconf);
    fake_settle(world.world);
    assert_says(world_reply(&stop), "{\"serial\":2}");
    assert_says(set_replica(0, REPLICA1, 4, 7, "stale"),
                "superseded: instance web1: generation 4 is over, 5 is on record (holder: nobody)");
    world_tear_down();
}

/* --- the key of a node's monitoring --- */

#define SECRET "0123456789abcdef0123456789abcdef"

static void test_monitor_key(void)
{
    GPtrArray *changes = initial_changes();
    g_ptr_array_add(changes, put("secret", "confd", 0, json_make("{ss}", "value", SECRET)));
    config_world_init(&world, changes);
    config_world_start(&world);
    g_autofree char *one = confd_node_key(SECRET, NODE1);
    g_autofree char *two = confd_node_key(SECRET, NODE2);
    g_autofree char *says_one = g_strdup_printf("{\"key\":\"%s\"}", one);
    g_autofree char *says_two = g_strdup_printf("{\"key\":\"%s\"}", two);
    g_assert_cmpstr(one, !=, two);
    assert_says(ask_wconf(&world, world.noded[0], "monitor_key", json_object()), says_one);
    assert_says(ask_wconf(&world, world.noded[1], "monitor_key", json_object()), says_two);
    config_world_clear(&world);
}

static void test_no_monitor_key(void)
{
    world_set_up();
    g_autofree char *said = ask_wconf(&world, world.noded[0], "monitor_key", json_object());
    g_assert_nonnull(strstr(said, "this cluster has no key of ConfD"));
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf/confirm#SAF-03,SAF-04", test_confirm);
    g_test_add_func("/confirm/stated#SAF-09", test_confirm_stated);
    g_test_add_func("/wconf/confirm/kept#SAF-09", test_confirm_kept);
    g_test_add_func("/wconf/confirm/start#SAF-03,SAF-10", test_confirm_start);
    g_test_add_func("/wconf/confirm/new-disks#SAF-03,SAF-22", test_confirm_new_disks);
    g_test_add_func("/wconf/confirm/removed#SAF-04", test_confirm_removed);
    g_test_add_func("/wconf/confirm/barrier#SAF-03", test_confirm_waits_for_barrier);
    g_test_add_func("/wconf/confirm/own-barrier#SAF-03", test_confirm_needs_a_barrier_of_its_own);
    g_test_add_func("/wconf/confirm/shared-barrier#SAF-03", test_confirms_share_a_barrier);
    g_test_add_func("/wconf/replica#SAF-12", test_set_replica_state);
    g_test_add_func("/wconf/replica/older#SAF-12", test_set_replica_state_of_an_older_one);
    g_test_add_func("/wconf/replica/refusals#SAF-12,SAF-04", test_set_replica_state_refusals);
    g_test_add_func("/wconf/replica/barrier#SAF-03,SAF-04", test_refusal_needs_commit);
    g_test_add_func("/wconf/replica/held#SAF-04,SAF-13", test_held);
    g_test_add_func("/wconf/replica/held-generation#SAF-04,SAF-13", test_held_generation);
    g_test_add_func("/wconf/confirm/monitor-key#MON-04", test_monitor_key);
    g_test_add_func("/wconf/confirm/no-monitor-key", test_no_monitor_key);
    return g_test_run();
}
