/*
 * An upgrade: what the store gets while a candidate runs another version, which may have to become
 * the master. core/wconfd/wconf_followers.c
 */
#include "unit/core/world/copies_world.h"

#define STUCK "instance/" WEB1

/* Its configuration daemon asks for what is new; NULL: it is of a version that says none. */
static void follow_as(struct env *from, const char *version)
{
    g_autofree char *now = digest();
    json_t *args = json_make("{sI sI ss}", "history", (json_int_t)5, "serial",
                             (json_int_t)config_serial(wconf_config(world.wconf)), "digest", now);
    if (version)
        json_object_set_new(args, "version", json_string(version));
    struct fake_reply reply;
    fake_call_start_stamped(from, 0, (struct stamp){5, world.epoch}, NODE1, ROLE_WCONFD, "follow",
                            args, &reply);
    fake_settle(world.world);
    fake_reply_clear(&reply);
}

static char *count(guint64 version)
{
    return daemon_commit(
        &world, world.watcher,
        changes_of(put("stuck", STUCK, version,
                       json_make("{ss ss ss si}", "subject_kind", "instance", "subject", WEB1,
                                 "task", "starting", "since_us", 1000)),
                   NULL));
}

static void expect(guint64 version, const char *expected)
{
    g_autofree char *said = count(version);
    if (expected)
        g_assert_cmpstr(said, ==, expected);
    else
        g_assert_true(g_str_has_prefix(said, "{\"serial\":"));
}

static const char refused[] =
    "resource_not_available: stuck " STUCK
    ": not put on record while the master candidate node2 runs another "
    "version, which could not load it; bring that to version " FETTLE_VERSION;

static void test_first_of_a_new_kind(void)
{
    static const char *const others[] = {NULL, "0.0.1"};
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        copies_set_up();
        follow_as(node2, others[i]);
        follow_as(node3, FETTLE_VERSION);
        expect(0, refused);
        follow_as(node2, FETTLE_VERSION);
        expect(0, NULL);
        /* It has one now: nothing is lost by more. */
        follow_as(node2, others[i]);
        expect(config_serial(wconf_config(world.wconf)), NULL);
        world_tear_down();
    }
}

/* Kinds that it knows are made as ever, and who is dead on record becomes no master. */
static void test_what_it_does_not_stop(void)
{
    copies_set_up();
    follow_as(node2, NULL);
    g_autofree char *known = daemon_commit(&world, world.luxid, changes_of(put_tag("a"), NULL));
    g_assert_true(g_str_has_prefix(known, "{\"serial\":"));
    expect(0, refused);
    g_autofree char *locked = job_locks(&world, 18, "x node/" NODE2, false);
    json_t *offline =
        with(with(object_node(NODE2), "offline", json_true()), "master_candidate", json_true());
    g_autofree char *said =
        job_commit(&world, 18, changes_of(put("node", NODE2, 1, offline), NULL));
    g_assert_true(g_str_has_prefix(said, "{\"serial\":"));
    expect(0, NULL);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/may-make/first-of-a-new-kind", test_first_of_a_new_kind);
    g_test_add_func("/may-make/what-it-does-not-stop", test_what_it_does_not_stop);
    return g_test_run();
}
