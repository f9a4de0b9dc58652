/* The configuration daemon: lock calls, the death of owners, nodes that have not answered. */
#include <string.h>

#include "base/log.h"
#include "proto/records.h"
#include "unit/core/world/wconf_world.h"

/* --- locks --- */

static void test_lock_waits(void)
{
    struct fake_reply second, third;
    world_set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    assert_says(job_locks(&world, 2, "x instance/web1", false),
                "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":0}],\"granted\":"
                "false,\"pending_nodes\":[],\"ticket\":0}");
    job_locks_start(2, "instance/web1", 60000, &second);
    job_locks_start(3, "instance/web1", 5000, &third);
    fake_advance(world.world, 5000);
    assert_says(world_reply(&third), "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":"
                                     "0},{\"job\":\"2\",\"livelock\":\"job-2\",\"pid\":0}],"
                                     "\"granted\":false,\"pending_nodes\":[],\"ticket\":5}");
    assert_says(
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    fake_settle(world.world);
    assert_says(world_reply(&second), GRANTED);
    assert_says(
        ask_wconf(&world, world.luxid, "list_locks", json_make("{s:o}", "owner", owner_json(2))),
        "{\"locks\":[{\"mode\":\"exclusive\",\"name\":\"instance/"
        "web1\",\"owner\":{\"job\":\"2\",\"livelock\":\"job-2\",\"pid\":0},\"since\":"
        "1700000006000000,\"waiting\":false}]}");
    world_tear_down();
}

static void test_lock_errors(void)
{
    world_set_up();
    assert_says(job_locks(&world, 1, "s node/" NODE1, false), GRANTED);
    assert_says(
        job_locks(&world, 1, "x instance/web1", false),
        "lock_order: order violation: requesting instance/web1 exclusive while holding node/" NODE1
        " shared");
    assert_says(job_locks(&world, 1, "x shelf/web1", false),
                "wrong_input: lock \"shelf/web1\": must be LEVEL/NAME with one of the levels "
                "cluster, instance, nodegroup, "
                "node, node-param, node-res, network");
    world_tear_down();
}

static void test_asking_again_replaces(void)
{
    struct fake_reply lost, again;
    world_set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    job_locks_start(2, "instance/web1", 60000, &lost);
    job_locks_start(2, "instance/web1", 60000, &again);
    assert_says(world_reply(&lost),
                "canceled: a newer request of the same owner has taken its place");
    assert_says(
        ask_wconf(&world, world.luxid, "free_locks", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    fake_settle(world.world);
    assert_says(world_reply(&again), GRANTED);
    world_tear_down();
}

static void test_journal_before_answer(void)
{
    world_set_up();
    fake_fail_files(world.world, "locks.journal", 1);
    assert_says(job_locks(&world, 1, "x instance/web1", false),
                "storage_error: the lock journal cannot be written: " NODE1
                "/run/locks.journal: input/output error (made by the test)");
    g_assert_nonnull(world.stepped_down);
    config_world_restart(&world);
    config_world_start(&world);
    assert_says(ask_wconf(&world, world.luxid, "list_all_locks", json_object()), "{\"locks\":[]}");
    world_tear_down();
}

/* --- death --- */

static void test_death_by_event(void)
{
    struct fake_reply waits;
    world_set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    job_locks_start(2, "instance/web1", 60000, &waits);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_DEAD);
    fake_settle(world.world);
    assert_says(world_reply(&waits), GRANTED);
    /* The file goes with the next sweep, not before. */
    g_assert_cmpint(world.wconfd->ops->livelock_probe(world.wconfd, "job-1"), ==, LIVELOCK_DEAD);
    fake_advance(world.world, 10000);
    g_assert_cmpint(world.wconfd->ops->livelock_probe(world.wconfd, "job-1"), ==, LIVELOCK_GONE);
    g_assert_cmpint(world.wconfd->ops->livelock_probe(world.wconfd, "job-2"), ==, LIVELOCK_ALIVE);
    world_tear_down();
}

static void test_death_of_a_waiter(void)
{
    struct fake_reply waits, next;
    world_set_up();
    assert_says(job_locks(&world, 1, "s node/" NODE2, false), GRANTED);
    job_locks_start(2, "node/" NODE2, 60000, &waits);
    fake_livelock(world.world, NODE1, "job-2", LIVELOCK_GONE);
    fake_settle(world.world);
    assert_says(world_reply(&waits), "canceled: job 2 is dead: nobody holds its lock file job-2");
    assert_says(job_locks(&world, 3, "s node/" NODE2, false), GRANTED);
    job_locks_start(4, "node/" NODE2, 1, &next);
    fake_advance(world.world, 1);
    fake_reply_clear(&next);
    world_tear_down();
}

static void test_hint_is_no_proof(void)
{
    world_set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    assert_says(
        ask_wconf(&world, world.luxid, "owner_gone", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    assert_says(job_locks(&world, 2, "x instance/web1", false),
                "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":0}],\"granted\":"
                "false,\"pending_nodes\":[],\"ticket\":0}");
    /* A probe that fails proves nothing either, in any number of sweeps. */
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_UNSURE);
    assert_says(
        ask_wconf(&world, world.luxid, "owner_gone", json_make("{s:o}", "owner", owner_json(1))),
        "{}");
    fake_advance(world.world, 50000);
    assert_says(job_locks(&world, 2, "x instance/web1", false),
                "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":0}],\"granted\":"
                "false,\"pending_nodes\":[],\"ticket\":0}");
    g_assert_cmpint(world.wconfd->ops->livelock_probe(world.wconfd, "job-1"), ==, LIVELOCK_UNSURE);
    world_tear_down();
}

/* Its holder lets go while the probe fails: there is no second event, and no sweep is waited for.
 */
static void test_unsure_is_asked_again(void)
{
    world_set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_DEAD);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_UNSURE);
    fake_advance(world.world, 1500);
    g_autofree char *said = job_locks(&world, 2, "x instance/web1", false);
    g_assert_nonnull(strstr(said, "\"granted\":false"));
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_DEAD);
    fake_advance(world.world, 1500);
    assert_says(job_locks(&world, 2, "x instance/web1", false), GRANTED);
    world_tear_down();
}

/* The same of one that turns out to be alive: it is watched as before. */
static void test_unsure_and_alive(void)
{
    world_set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_DEAD);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_UNSURE);
    fake_advance(world.world, 1500);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_ALIVE);
    fake_advance(world.world, 1500);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_DEAD);
    fake_settle(world.world);
    assert_says(job_locks(&world, 2, "x instance/web1", false), GRANTED);
    world_tear_down();
}

static void count_unsure(const char *line, void *data)
{
    guint *lines = data;
    *lines += strstr(line, "cannot tell whether its owner lives") != NULL;
}

/* Once for each time that it begins, however often it is looked at. */
static void test_unsure_is_said_once(void)
{
    guint lines = 0;
    world_set_up();
    assert_says(job_locks(&world, 1, "x instance/web1", false), GRANTED);
    log_set_sink(count_unsure, &lines);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_UNSURE);
    fake_advance(world.world, 50000);
    g_assert_cmpuint(lines, ==, 1);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_ALIVE);
    fake_advance(world.world, 20000);
    fake_livelock(world.world, NODE1, "job-1", LIVELOCK_UNSURE);
    fake_advance(world.world, 50000);
    g_assert_cmpuint(lines, ==, 2);
    log_set_sink(NULL, NULL);
    world_tear_down();
}

static void test_sweep_takes_only_the_dead(void)
{
    world_set_up();
    fake_livelock(world.world, NODE1, "job-dead", LIVELOCK_DEAD);
    fake_livelock(world.world, NODE1, "job-alive", LIVELOCK_ALIVE);
    fake_livelock(world.world, NODE1, "job-unsure", LIVELOCK_UNSURE);
    fake_advance(world.world, 10000);
    g_autoptr(GPtrArray) left = world.wconfd->ops->livelock_list(world.wconfd);
    g_assert_cmpuint(left->len, ==, 2);
    g_assert_cmpstr(left->pdata[0], ==, "job-alive");
    g_assert_cmpstr(left->pdata[1], ==, "job-unsure");
    world_tear_down();
}

/* --- nodes --- */

static bool silent[3];

static json_t *answer_announce(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    if (!silent[to_node[0] - '1'])
        return json_object();
    fettle_set_error(error, TIMEOUT, "no answer in time");
    return NULL;
}

static void set_up_with_silent_node3(void)
{
    config_world_init(&world, initial_changes());
    fake_script(world.world, NULL, ROLE_NODED, "announce", answer_announce, NULL);
    silent[2] = true;
    config_world_start(&world);
}

/* A request that waits for a node survives a restart, and goes on waiting for that node. */
static void test_gate_after_restart(void)
{
    struct fake_reply waits;
    set_up_with_silent_node3();
    job_locks_start_as(3, "node/" NODE3, "shared", 60000, &waits);
    config_world_restart(&world);
    fake_settle(world.world);
    fake_reply_clear(&waits);
    config_world_start(&world);
    job_locks_start_as(3, "node/" NODE3, "shared", 60000, &waits);
    fake_advance(world.world, 5000);
    g_assert_false(waits.done);
    silent[2] = false;
    fake_advance(world.world, 1000);
    assert_says(world_reply(&waits), GRANTED);
    world_tear_down();
}

static void test_gate_of_silent_node(void)
{
    struct fake_reply waits;
    set_up_with_silent_node3();
    assert_says(world_status("nodes_pending"), "[\"" NODE3 "\"]");
    assert_says(job_locks(&world, 1, "s node/" NODE2, false), GRANTED);
    assert_says(job_locks(&world, 2, "s node/" NODE3, false),
                "{\"blockers\":[],\"granted\":false,\"pending_nodes\":[\"" NODE3
                "\"],\"ticket\":0}");
    assert_says(job_locks(&world, 2, "s node/[lockset]", false),
                "{\"blockers\":[],\"granted\":false,\"pending_nodes\":[\"" NODE3
                "\"],\"ticket\":0}");
    assert_says(job_locks(&world, 2, "s node-res/" NODE3, false),
                "{\"blockers\":[],\"granted\":false,\"pending_nodes\":[\"" NODE3
                "\"],\"ticket\":0}");
    job_locks_start_as(3, "node/" NODE3, "shared", 60000, &waits);
    fake_advance(world.world, 5000);
    g_assert_false(waits.done);
    g_assert_cmpuint(fake_count_calls(world.world, NODE3 "/noded announce"), >, 3);
    silent[2] = false;
    fake_advance(world.world, 1000);
    assert_says(world_reply(&waits), GRANTED);
    assert_says(world_status("nodes_pending"), "[]");
    world_tear_down();
}

static void test_offline_node_is_not_waited_for(void)
{
    struct fake_reply waits;
    set_up_with_silent_node3();
    job_locks_start_as(3, "node/[lockset]", "shared", 60000, &waits);
    /* Its record can be changed all the same, or nobody could ever say that it is dead. */
    json_t *dead = with(object_node(NODE3), "offline", json_true());
    assert_says(job_locks(&world, 1, "x node/" NODE3, false), GRANTED);
    assert_says(job_commit(&world, 1, changes_of(put("node", NODE3, 1, dead), NULL)),
                "{\"serial\":2}");
    g_assert_false(waits.done);
    assert_says(job_locks(&world, 1, "r node/" NODE3, false), GRANTED);
    fake_settle(world.world);
    assert_says(world_reply(&waits), GRANTED);
    world_tear_down();
    /* On record as offline from the start. */
    GPtrArray *objects = initial_changes();
    json_object_set_new(((struct change *)objects->pdata[4])->object, "offline", json_true());
    config_world_init(&world, objects);
    fake_script(world.world, NULL, ROLE_NODED, "announce", answer_announce, NULL);
    config_world_start(&world);
    assert_says(world_status("nodes_pending"), "[]");
    g_assert_cmpuint(fake_count_calls(world.world, NODE3 "/noded announce"), ==, 0);
    assert_says(job_locks(&world, 1, "x node/" NODE3, false), GRANTED);
    /* Back online it has to answer first. */
    assert_says(job_commit(&world, 1, changes_of(put("node", NODE3, 1, object_node(NODE3)), NULL)),
                "{\"serial\":2}");
    assert_says(world_status("nodes_pending"), "[\"" NODE3 "\"]");
    world_tear_down();
}

/* Who became a member in this epoch has nothing under way of lower ones (SAF-06): its silence keeps
 * nobody waiting, until it was said to be dead and comes back. */
static void test_newborn_is_not_waited_for(void)
{
    static const char node4[] = "44444444-0000-4000-8000-000000000004";
    g_autofree char *exclusive = g_strdup_printf("x node/%s", node4);
    g_autofree char *shared = g_strdup_printf("s node/%s", node4);
    world_set_up();
    fake_cut(world.world, node4, true);
    assert_says(job_locks(&world, 1, exclusive, false), GRANTED);
    assert_says(job_commit(&world, 1, changes_of(put("node", node4, 0, object_node(node4)), NULL)),
                "{\"serial\":2}");
    fake_settle(world.world);
    assert_says(world_status("nodes_pending"), "[\"44444444-0000-4000-8000-000000000004\"]");
    assert_says(job_locks(&world, 2, "s node/[lockset]", false),
                "{\"blockers\":[{\"job\":\"1\",\"livelock\":\"job-1\",\"pid\":0}],"
                "\"granted\":false,\"pending_nodes\":[],\"ticket\":0}");
    json_t *dead = with(object_node(node4), "offline", json_true());
    assert_says(job_commit(&world, 1, changes_of(put("node", node4, 2, dead), NULL)),
                "{\"serial\":3}");
    assert_says(job_commit(&world, 1, changes_of(put("node", node4, 3, object_node(node4)), NULL)),
                "{\"serial\":4}");
    g_autofree char *release = g_strdup_printf("r node/%s", node4);
    assert_says(job_locks(&world, 1, release, false), GRANTED);
    assert_says(job_locks(&world, 2, shared, false),
                "{\"blockers\":[],\"granted\":false,\"pending_nodes\":"
                "[\"44444444-0000-4000-8000-000000000004\"],\"ticket\":0}");
    world_tear_down();
}

static const char *last_announcement(const char *node)
{
    g_autofree char *prefix = g_strdup_printf("%s/noded announce", node);
    const GPtrArray *calls = fake_calls(world.world);
    guint i = calls->len;
    while (i > 0 && !g_str_has_prefix(calls->pdata[i - 1], prefix))
        i--;
    g_assert_cmpuint(i, >, 0);
    return calls->pdata[i - 1];
}

/* A node that has another list than the one it has answered (its disk was copied back) is told the
 * whole again. */
static void test_list_is_told_whole_again(void)
{
    set_up_with_silent_node3();
    silent[2] = false;
    fake_advance(world.world, 1000);
    assert_says(world_status("nodes_pending"), "[]");
    g_assert_nonnull(strstr(last_announcement(NODE3), "\"again\":false"));
    silent[2] = true;
    fake_advance(world.world, 10000);
    g_assert_nonnull(strstr(last_announcement(NODE3), "\"uuid\":\"" NODE3 "\""));
    silent[2] = false;
    fake_advance(world.world, 10000);
    g_assert_nonnull(strstr(last_announcement(NODE3), "\"again\":true"));
    world_tear_down();
}

static void test_members_are_told(void)
{
    world_set_up();
    static const char node4[] = "44444444-0000-4000-8000-000000000004";
    const GPtrArray *calls = fake_calls(world.world);
    const char *first = calls->pdata[0];
    g_assert_true(strstr(first, "/noded announce {") && strstr(first, "\"epoch\":1") &&
                  strstr(first, "\"history\":5") && strstr(first, "\"cluster\":\"" CLUSTER "\"") &&
                  strstr(first, "\"master_node\":\"" NODE1 "\"") &&
                  strstr(first,
                         "{\"address\":\"10.0.0.3\",\"master_candidate\":false,\"name\":"
                         "\"node3\",\"offline\":false,\"port\":1811,\"uuid\":\"" NODE3 "\"}"));
    guint before = fake_count_calls(world.world, NODE2 "/noded announce");
    g_autofree char *lock = g_strdup_printf("x node/%s", node4);
    assert_says(job_locks(&world, 1, lock, false), GRANTED);
    assert_says(job_commit(&world, 1, changes_of(put("node", node4, 0, object_node(node4)), NULL)),
                "{\"serial\":2}");
    fake_settle(world.world);
    g_assert_cmpuint(fake_count_calls(world.world, NODE2 "/noded announce"), ==, before + 1);
    g_assert_cmpuint(fake_count_calls(world.world, "44444444"), ==, 1);
    /* A tag concerns no node. */
    assert_says(job_commit(&world, 1, changes_of(put_tag("x"), NULL)), "{\"serial\":3}");
    g_assert_cmpuint(fake_count_calls(world.world, NODE2 "/noded announce"), ==, before + 1);
    /* Who came back meanwhile hears it again; the list only who has not answered it. */
    fake_advance(world.world, 10000);
    g_assert_cmpuint(fake_count_calls(world.world, NODE2 "/noded announce"), ==, before + 2);
    const char *last = last_announcement(NODE2);
    g_assert_true(strstr(last, "\"again\":true") && strstr(last, "\"members\":[]") &&
                  strstr(last, "\"serial\":2"));
    last = last_announcement(node4);
    g_assert_true(strstr(last, "\"again\":true"));
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf/locks/wait#LCK-11,LCK-16,WCF-06", test_lock_waits);
    g_test_add_func("/wconf/locks/errors#LCK-06,WCF-11", test_lock_errors);
    g_test_add_func("/wconf/locks/again#WCF-13", test_asking_again_replaces);
    g_test_add_func("/wconf/locks/journal#WCF-07", test_journal_before_answer);
    g_test_add_func("/wconf/death/event#WCF-15,DTH-12,DTH-18", test_death_by_event);
    g_test_add_func("/wconf/death/waiter#WCF-15,DTH-13", test_death_of_a_waiter);
    g_test_add_func("/wconf/death/hint#DTH-15,DTH-14", test_hint_is_no_proof);
    g_test_add_func("/wconf/locks/unsure-is-asked-again#DTH-15,WCF-15", test_unsure_is_asked_again);
    g_test_add_func("/wconf/locks/unsure-and-alive#DTH-15", test_unsure_and_alive);
    g_test_add_func("/wconf/locks/unsure-is-said-once#DTH-15", test_unsure_is_said_once);
    g_test_add_func("/wconf/death/sweep#DTH-18,DTH-19", test_sweep_takes_only_the_dead);
    g_test_add_func("/wconf/nodes/gate#SAF-06", test_gate_of_silent_node);
    g_test_add_func("/wconf/locks/gate-after-restart#SAF-06", test_gate_after_restart);
    g_test_add_func("/wconf/nodes/newborn#SAF-06", test_newborn_is_not_waited_for);
    g_test_add_func("/wconf/nodes/offline#SAF-06", test_offline_node_is_not_waited_for);
    g_test_add_func("/wconf/nodes/members#SAF-05,SAF-06", test_members_are_told);
    g_test_add_func("/wconf/nodes/members-whole-again#SAF-05", test_list_is_told_whole_again);
    return g_test_run();
}
