/* The configuration daemon: every lock call but update and list, and what a restart keeps. */
#include <string.h>

#include "core/locks/locks_journal.h"
#include "proto/records.h"
#include "unit/core/world/wconf_world.h"

/* "x instance/a, s node/n1" as a list. */
static json_t *requests_json(const char *text)
{
    json_t *list = json_array();
    g_auto(GStrv) parts = g_strsplit(text, ", ", -1);
    for (guint i = 0; parts[i]; i++)
        json_array_append_new(list, json_make("{s:s,s:s}", "name", parts[i] + 2, "mode",
                                              parts[i][0] == 'x' ? "exclusive" : "shared"));
    return list;
}

/* As a job, not waited for; `args` is stolen, the owner is added. */
static void start(guint job, const char *method, json_t *args, struct fake_reply *reply)
{
    g_autofree char *livelock = g_strdup_printf("job-%u", job);
    if (world.wconfd->ops->livelock_probe(world.wconfd, livelock) == LIVELOCK_GONE)
        fake_livelock(world.world, NODE1, livelock, LIVELOCK_ALIVE);
    json_object_set_new(args, "owner", owner_json(job));
    fake_call_start_stamped(world.job, job, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD,
                            method, args, reply);
    fake_settle(world.world);
}

static char *call(guint job, const char *method, json_t *args)
{
    struct fake_reply reply;
    start(job, method, args, &reply);
    return world_reply(&reply);
}

static char *held(guint job)
{
    g_autofree char *text = call(job, "list_locks", json_object());
    json_autoptr answer = json_parse_limited(text, strlen(text), KIB(64), NULL);
    GString *list = g_string_new(NULL);
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(answer, "locks"), i, row)
        g_string_append_printf(list, "%s%c %s", i ? ", " : "",
                               json_is_true(json_object_get(row, "waiting")) ? 'w'
                               : !strcmp(json_string_value(json_object_get(row, "mode")), "shared")
                                   ? 's'
                                   : 'x',
                               json_string_value(json_object_get(row, "name")));
    return g_string_free(list, FALSE);
}

static void start_update(guint job, const char *locks, bool disorderly, struct fake_reply *reply)
{
    start(job, "update_locks",
          json_make("{s:o,s:b,s:b,s:i}", "locks", requests_json(locks), "wait", 1, "out_of_order",
                    (int)disorderly, "wait_ms", 60000),
          reply);
}

static json_t *union_args(const char *locks, int count, int wait_ms)
{
    return json_make("{s:o,s:i,s:i}", "locks", requests_json(locks), "count", count, "wait_ms",
                     wait_ms);
}

/* --- unions --- */

static void test_union(void)
{
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/b, x node/d, x node/f", false), GRANTED);
    assert_says(job_locks(&world, 2, "s instance/web1", false), GRANTED);
    assert_says(call(2, "union_locks",
                     union_args("x node/a, x node/b, s node/c, x node/d, x node/e, x node/f, "
                                "s node/g, x node/h, s node/i, s node/j",
                                0, 0)),
                "{\"locks\":[\"node/a\",\"node/c\",\"node/e\",\"node/g\",\"node/h\",\"node/i\","
                "\"node/j\"]}");
    assert_says(held(2), "s instance/web1, x node/a, s node/c, x node/e, s node/g, x node/h, "
                         "s node/i, s node/j");
    /* Out of order, held by others, no lock at all: passed over, never an error. */
    assert_says(job_locks(&world, 3, "s node/m", false), GRANTED);
    assert_says(call(3, "union_locks", union_args("x node/aa, s node/z, s shelf/1", 0, 0)),
                "{\"locks\":[\"node/z\"]}");
    assert_says(call(4, "union_locks", union_args("s node/b, s node/d", 0, 0)), "{\"locks\":[]}");
    assert_says(held(4), "");
    assert_says(call(5, "list_lock_waiters", json_object()), "wrong_input: owner: is not known");
    assert_says(ask_wconf(&world, world.luxid, "list_lock_waiters", json_object()),
                "{\"waiters\":[]}");
    world_tear_down();
}

static void test_guarded_union(void)
{
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/b", false), GRANTED);
    json_t *args =
        json_make("{s:o,s:i}", "locks", requests_json("x node/a, x node/b, x node/c"), "count", 3);
    assert_says(call(2, "guarded_union_locks", args), "{\"locks\":[]}");
    assert_says(held(2), "");
    args =
        json_make("{s:o,s:i}", "locks", requests_json("x node/a, x node/b, x node/c"), "count", 2);
    assert_says(call(2, "guarded_union_locks", args), "{\"locks\":[\"node/a\",\"node/c\"]}");
    world_tear_down();
}

static void test_union_waits(void)
{
    static const char five[] = "x node/a, x node/b, x node/c, x node/d, x node/e";
    struct fake_reply reply;
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/a, x node/b, x node/c", false), GRANTED);
    start(2, "union_locks", union_args(five, 3, 2000), &reply);
    fake_advance(world.world, 1000);
    g_assert_false(reply.done);
    assert_says(held(2), ""); /* it holds nobody up */
    assert_says(call(1, "free_locks", json_object()), "{}");
    assert_says(world_reply(&reply),
                "{\"locks\":[\"node/a\",\"node/b\",\"node/c\",\"node/d\",\"node/e\"]}");
    assert_says(call(2, "free_locks", json_object()), "{}");
    /* The time is over first: what can be had then. */
    assert_says(job_locks(&world, 1, "x node/a, x node/b, x node/c", false), GRANTED);
    start(2, "union_locks", union_args(five, 3, 2000), &reply);
    fake_advance(world.world, 1999);
    g_assert_false(reply.done);
    fake_advance(world.world, 1);
    assert_says(world_reply(&reply), "{\"locks\":[\"node/d\",\"node/e\"]}");
    /* The waiter's death ends it. */
    start(3, "union_locks", union_args(five, 3, 2000), &reply);
    fake_livelock(world.world, NODE1, "job-3", LIVELOCK_DEAD);
    fake_settle(world.world);
    assert_says(world_reply(&reply), "canceled: job 3 is dead: nobody holds its lock file job-3");
    world_tear_down();
}

/* Who lost the connection asks again, and is whom the grant is told: else the owner would hold what
 * nobody told it of. */
static void test_union_again(void)
{
    static const char both[] = "x node/a, x node/b";
    struct fake_reply lost, again;
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/a", false), GRANTED);
    start(2, "union_locks", union_args(both, 2, 60000), &lost);
    start(2, "union_locks", union_args(both, 2, 60000), &again);
    assert_says(world_reply(&lost), "canceled: a newer request of the same owner has taken its "
                                    "place");
    g_assert_false(again.done);
    /* One that does not wait gets nothing beside it, and changes nothing. */
    assert_says(call(2, "union_locks", union_args(both, 0, 0)), "{\"locks\":[]}");
    g_assert_false(again.done);
    assert_says(call(1, "free_locks", json_object()), "{}");
    assert_says(world_reply(&again), "{\"locks\":[\"node/a\",\"node/b\"]}");
    assert_says(held(2), both);
    world_tear_down();
}

/* The one that has the better priority now is served, also of unions. */
static void test_union_priority(void)
{
    struct fake_reply first, second;
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/a", false), GRANTED);
    start(2, "union_locks", union_args("x node/a", 1, 60000), &first);
    start(3, "union_locks", union_args("x node/a", 1, 60000), &second);
    assert_says(call(3, "set_lock_priority", json_make("{s:i}", "priority", -5)), "{}");
    assert_says(call(1, "free_locks", json_object()), "{}");
    assert_says(world_reply(&second), "{\"locks\":[\"node/a\"]}");
    g_assert_false(first.done);
    assert_says(call(3, "set_lock_priority", json_make("{s:i}", "priority", -5)),
                "wrong_state: job 3 does not wait for locks");
    assert_says(call(3, "free_locks", json_object()), "{}");
    assert_says(world_reply(&first), "{\"locks\":[\"node/a\"]}");
    world_tear_down();
}

/* --- less --- */

static void test_intersection(void)
{
    struct fake_reply reply;
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/a, s node/b, x node/c", false), GRANTED);
    start_update(2, "s node/a", false, &reply);
    json_t *names = json_make("{s:[s,s,s,s]}", "locks", "node/b", "node/c", "node/d", "nonsense");
    g_autofree char *left = call(1, "intersect_locks", names);
    g_assert_null(strstr(left, "node/a"));
    assert_says(held(1), "s node/b, x node/c");
    assert_says(world_reply(&reply), GRANTED);
    assert_says(call(9, "intersect_locks", json_make("{s:[]}", "locks")), "{\"locks\":[]}");
    world_tear_down();
}

/* Whoever waited is told which call has ended its wait: most of them free nothing. */
static void test_less_ends_a_wait(void)
{
    static const char *const calls[] = {"intersect_locks", "free_locks_level",
                                        "downgrade_locks_level", "free_locks"};
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/a", false), GRANTED);
    for (guint i = 0; i < G_N_ELEMENTS(calls); i++) {
        struct fake_reply reply;
        json_t *args = i == 0   ? json_make("{s:[]}", "locks")
                       : i == 3 ? json_object()
                                : json_make("{s:s}", "level", "node");
        g_autofree char *expected = g_strdup_printf(
            "canceled: a call of %s has ended the wait of job 2 for locks", calls[i]);
        start_update(2, "x node/a", false, &reply);
        g_free(call(2, calls[i], args));
        assert_says(world_reply(&reply), expected);
    }
    world_tear_down();
}

/* The pessimistic way: all nodes, keep two, and another takes a third at once. */
static void test_pessimistic(void)
{
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/" NODE1 ", x node/" NODE2 ", x node/" NODE3, false),
                GRANTED);
    g_autofree char *left =
        call(1, "intersect_locks", json_make("{s:[s,s]}", "locks", "node/" NODE1, "node/" NODE2));
    g_assert_nonnull(strstr(left, NODE2));
    assert_says(job_locks(&world, 2, "x node/" NODE3, false), GRANTED);
    world_tear_down();
}

static void test_levels(void)
{
    world_set_up();
    assert_says(
        job_locks(&world, 1, "x instance/a, x node/[lockset], x node/n, x node-res/n", false),
        GRANTED);
    assert_says(call(1, "downgrade_locks_level", json_make("{s:s}", "level", "node")), "{}");
    assert_says(held(1), "x instance/a, s node/[lockset], s node/n, x node-res/n");
    assert_says(call(1, "free_locks_level", json_make("{s:s}", "level", "node")), "{}");
    assert_says(held(1), "x instance/a, x node-res/n");
    assert_says(call(1, "free_locks_level", json_make("{s:s}", "level", "shelf")),
                "wrong_input: level: must be one of cluster, instance, nodegroup, node, "
                "node-param, node-res, network, config");
    world_tear_down();
}

static void test_config_lock(void)
{
    world_set_up();
    assert_says(job_locks(&world, 1, "s cluster/config", false), GRANTED);
    assert_says(job_locks(&world, 2, "s cluster/config", false), GRANTED);
    g_autofree char *said = job_locks(&world, 3, "x cluster/config", false);
    g_assert_true(strstr(said, "\"granted\":false") && strstr(said, "\"job\":\"1\"") &&
                  strstr(said, "\"job\":\"2\""));
    assert_says(call(1, "free_locks_level", json_make("{s:s}", "level", "config")), "{}");
    assert_says(call(2, "free_locks", json_object()), "{}");
    assert_says(job_locks(&world, 3, "x cluster/config", false), GRANTED);
    g_autofree char *refused = job_locks(&world, 1, "s cluster/config", false);
    g_assert_nonnull(strstr(refused, "\"job\":\"3\""));
    world_tear_down();
}

/* --- the wait-for graph --- */

static void test_crosswise(void)
{
    struct fake_reply first, second, ordered;
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/b", false), GRANTED);
    assert_says(job_locks(&world, 2, "x instance/a", false), GRANTED);
    start_update(1, "x instance/a", true, &first);
    g_assert_false(first.done);
    start_update(2, "x node/b", true, &second);
    assert_says(world_reply(&second),
                "lock_cycle: waiting would close a circle: job 2 waits for node/b, held by job 1, "
                "which waits for instance/a, held by job 2");
    g_autofree char *graph = ask_wconf(&world, world.luxid, "list_lock_waiters", json_object());
    g_assert_nonnull(strstr(graph, "\"out_of_order\":true"));
    g_assert_nonnull(strstr(graph, "\"blockers\":[{\"mode\":\"exclusive\",\"name\":\"instance/a\","
                                   "\"owner\":{\"job\":\"2\""));
    assert_says(call(2, "free_locks", json_object()), "{}");
    assert_says(world_reply(&first), GRANTED);
    /* A request in order is never refused: the marked one gives way. */
    assert_says(
        call(1, "update_locks",
             json_make("{s:[{s:s,s:s}]}", "locks", "name", "instance/a", "mode", "release")),
        GRANTED);
    assert_says(job_locks(&world, 2, "x instance/a", false), GRANTED);
    start_update(1, "x instance/a", true, &first);
    start_update(2, "x node/b", false, &ordered);
    assert_says(world_reply(&first),
                "lock_cycle: waiting would close a circle: job 1 waits for instance/a, held by job "
                "2, which waits for node/b, held by job 1");
    assert_says(call(1, "free_locks", json_object()), "{}");
    assert_says(world_reply(&ordered), GRANTED);
    world_tear_down();
}

/* --- fairness --- */

static void test_priority(void)
{
    struct fake_reply older, younger;
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/a", false), GRANTED);
    start_update(2, "x node/a", false, &older);
    start_update(3, "x node/a", false, &younger);
    assert_says(call(3, "set_lock_priority", json_make("{s:i}", "priority", -5)), "{}");
    assert_says(call(4, "set_lock_priority", json_make("{s:i}", "priority", -5)),
                "wrong_state: job 4 does not wait for locks");
    assert_says(call(1, "free_locks", json_object()), "{}");
    assert_says(world_reply(&younger), GRANTED);
    g_assert_false(older.done);
    assert_says(call(3, "free_locks", json_object()), "{}");
    assert_says(world_reply(&older), GRANTED);
    world_tear_down();
}

/* Who asks again, because its time was over or the daemon died, is no younger for it. */
static void test_age_is_kept(void)
{
    struct fake_reply first, second;
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/a", false), GRANTED);
    job_locks_start(2, "node/a", 1000, &first);
    job_locks_start(3, "node/a", 60000, &second);
    fake_advance(world.world, 1000);
    g_autofree char *blocked = world_reply(&first);
    const char *ticket = strstr(blocked, "\"ticket\":");
    g_assert_nonnull(ticket);
    start(2, "update_locks",
          json_make("{s:o,s:b,s:I}", "locks", requests_json("x node/a"), "wait", 1, "ticket",
                    (json_int_t)g_ascii_strtoull(ticket + 9, NULL, 10)),
          &first);
    assert_says(call(1, "free_locks", json_object()), "{}");
    assert_says(world_reply(&first), GRANTED);
    g_assert_false(second.done);
    fake_livelock(world.world, NODE1, "job-3", LIVELOCK_GONE);
    fake_settle(world.world);
    fake_reply_clear(&second);
    world_tear_down();
}

/* Nor does it lose its place for a moment: whoever is behind it does not pass. */
static void test_place_is_kept(void)
{
    struct fake_reply lost, behind, again;
    world_set_up();
    assert_says(job_locks(&world, 1, "s node/a", false), GRANTED);
    start_update(2, "x node/a", false, &lost);
    start_update(3, "s node/a", false, &behind);
    start_update(2, "x node/a", false, &again);
    assert_says(world_reply(&lost), "canceled: a newer request of the same owner has taken its "
                                    "place");
    g_assert_false(behind.done);
    assert_says(held(3), "w node/a");
    assert_says(call(1, "free_locks", json_object()), "{}");
    assert_says(world_reply(&again), GRANTED);
    assert_says(call(2, "free_locks", json_object()), "{}");
    assert_says(world_reply(&behind), GRANTED);
    world_tear_down();
}

/* --- a restart --- */

static void test_restart_keeps_waits(void)
{
    struct fake_reply lost, younger, again;
    world_set_up();
    assert_says(job_locks(&world, 1, "x node/a", false), GRANTED);
    start_update(2, "x node/a", false, &lost);
    config_world_restart(&world);
    fake_settle(world.world);
    fake_reply_clear(&lost);
    config_world_start(&world);
    assert_says(held(2), "w node/a");
    start_update(3, "x node/a", false, &younger);
    start_update(2, "x node/a", false, &again);
    assert_says(call(1, "free_locks", json_object()), "{}");
    assert_says(world_reply(&again), GRANTED);
    g_assert_false(younger.done);
    /* A client that does not come back loses its place, however alive. */
    config_world_restart(&world);
    fake_settle(world.world);
    fake_reply_clear(&younger);
    config_world_start(&world);
    assert_says(held(3), "w node/a");
    fake_advance(world.world, LIMIT_LOCK_RETURN_MS);
    assert_says(held(3), "");
    assert_says(held(2), "x node/a");
    world_tear_down();
}

/* What another program reads from the journal is what the daemon says. */
static void test_journal_is_the_list(void)
{
    world_set_up();
    for (guint i = 0; i < 200; i++) {
        g_autofree char *locks = g_strdup_printf("%s node/n%u", i % 3 ? "s" : "x", i % 7);
        g_autofree char *said = job_locks(&world, 1 + i % 5, locks, false);
        if (i % 11 == 0)
            assert_says(call(1 + i % 5, "free_locks", json_object()), "{}");
        g_autofree char *told = ask_wconf(&world, world.luxid, "list_all_locks", json_object());
        g_autofree char *note = NULL;
        struct locks *copy = locks_new(NULL, NULL);
        struct locks_journal *journal = locks_journal_open(world.wconfd, copy, &note, NULL);
        g_assert_null(note);
        record_autoptr(lock_states) states = lock_states_new();
        g_ptr_array_unref(states->locks);
        states->locks = locks_list(copy, NULL);
        json_autoptr json = lock_states_to_json(states);
        assert_says(json_to_text(json), told);
        locks_journal_free(journal);
        locks_free(copy);
    }
    world_tear_down();
}

/* It ends while an answer about locks waits for its barrier: whoever asked hears of the end. */
static void test_end_before_answer(void)
{
    struct fake_reply reply;
    world_set_up();
    fake_engine_hold(world.engine);
    start_update(17, "x instance/web1", false, &reply);
    g_assert_false(reply.done);
    world_tear_down();
    g_assert_true(reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_RESULT);
    fake_reply_clear(&reply);
}

/* --- the table --- */

/* What asks for locks or changes the configuration names its owner, and is refused without. What
 * has none either changes nothing, or is a compare-and-set of a node daemon or a joining host. */
static void test_owner_is_required(void)
{
    static const char *const without[] = {"wait_changes",      "confirm",
                                          "set_replica_state", "set_migrated",
                                          "cluster_status",    "list_all_locks",
                                          "list_lock_waiters", "ping",
                                          "ca_info",           "join"};
    size_t count;
    guint owned = 0;
    const struct method *table = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        bool lockless = false;
        for (guint k = 0; k < G_N_ELEMENTS(without); k++)
            lockless = lockless || !strcmp(table[i].name, without[k]);
        const char *name = table[i].name;
        bool about_locks =
            strstr(name, "lock") || !strcmp(name, "commit") || !strcmp(name, "owner_gone");
        if (strcmp(table[i].server, ROLE_WCONFD) != 0 || lockless || !about_locks)
            continue;
        const struct field *owner = record_field(table[i].args, "owner");
        g_assert_true(owner && owner->required && owner->record == &owner_record);
        g_autoptr(GError) error = NULL;
        json_autoptr nothing = json_object();
        g_assert_null(record_parse(table[i].args, nothing, RECORD_STRICT, &error));
        g_assert_cmpstr(error->message, ==, "owner: is missing");
        owned++;
    }
    g_assert_cmpuint(owned, ==, 11);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wconf/locks/union#LCK-13,LCK-14,LCK-15", test_union);
    g_test_add_func("/wconf/locks/guarded-union#LCK-13", test_guarded_union);
    g_test_add_func("/wconf/locks/union-waits#FUT-10,WCF-15", test_union_waits);
    g_test_add_func("/wconf/locks/union-again#FUT-10,LCK-13", test_union_again);
    g_test_add_func("/wconf/locks/union-priority#FUT-10,LCK-11", test_union_priority);
    g_test_add_func("/wconf/locks/intersection#LCK-17,LCK-18", test_intersection);
    g_test_add_func("/wconf/locks/less-ends-a-wait#LCK-17", test_less_ends_a_wait);
    g_test_add_func("/wconf/locks/pessimistic#LCK-24", test_pessimistic);
    g_test_add_func("/wconf/locks/levels#LCK-08", test_levels);
    g_test_add_func("/wconf/locks/end-before-answer#SAF-03", test_end_before_answer);
    g_test_add_func("/wconf/locks/config#WCF-17", test_config_lock);
    g_test_add_func("/wconf/locks/crosswise#FUT-09", test_crosswise);
    g_test_add_func("/wconf/locks/priority#LCK-11", test_priority);
    g_test_add_func("/wconf/locks/age#LCK-11,LCK-26", test_age_is_kept);
    g_test_add_func("/wconf/locks/place#LCK-11,LCK-26", test_place_is_kept);
    g_test_add_func("/wconf/locks/restart#WCF-12,WCF-08", test_restart_keeps_waits);
    g_test_add_func("/wconf/locks/journal-is-list#WCF-07", test_journal_is_the_list);
    g_test_add_func("/wconf/locks/owner#DTH-20", test_owner_is_required);
    return g_test_run();
}
