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

/* --- pools of a Ceph, which versions with back ends did not know --- */

#define BACKEND "00000000-0000-4000-8000-0000000000b%u"

static char *add_backend(guint number, const char *kind, guint64 version, const char *const *nodes)
{
    g_autofree char *uuid = g_strdup_printf(BACKEND, number);
    g_autofree char *name = g_strdup_printf("back%u", number);
    g_autofree char *path = g_strdup_printf("/mnt/%u", number);
    json_t *object = json_make("{ss ss ss s[]}", "uuid", uuid, "name", name, "kind", kind, "nodes");
    bool pool = !strcmp(kind, "rbd");
    json_object_set_new(object, pool ? "pool" : "path", json_string(pool ? name : path));
    json_object_set_new(object, "conf", json_string(pool ? "/etc/ceph/ceph.conf" : ""));
    json_object_set_new(object, "user", json_string(pool ? "fettle" : ""));
    while (*nodes)
        json_array_append_new(json_object_get(object, "nodes"), json_string(*nodes++));
    return job_commit(&world, 18, changes_of(put("backend", uuid, version, object), NULL));
}

static void expect_backend(guint number, const char *kind, guint64 version,
                           const char *const *nodes, const char *expected)
{
    g_autofree char *said = add_backend(number, kind, version, nodes);
    if (expected)
        g_assert_cmpstr(said, ==, expected);
    else
        g_assert_true(g_str_has_prefix(said, "{\"serial\":"));
}

/* What the watcher has noted of a daemon. */
static void note_service(const char *node, const char *name, const char *version)
{
    g_autofree char *key = config_service_key(node, name);
    guint64 known = 0;
    config_get(wconf_config(world.wconf), "service", key, &known);
    g_autofree char *said =
        daemon_commit(&world, world.watcher,
                      changes_of(put("service", key, known,
                                     json_make("{ss ss ss ss}", "uuid", key, "name", name, "node",
                                               node, "version", version)),
                                 NULL));
    g_assert_true(g_str_has_prefix(said, "{\"serial\":"));
}

static void test_first_pool(void)
{
    static const char *const nodes[] = {NODE1, NULL};
    copies_set_up();
    expect_backend(1, "dir", 0, nodes, NULL);
    follow_as(node2, "0.0.1");
    expect_backend(2, "dir", 0, nodes, NULL);
    expect_backend(3, "rbd", 0, nodes,
                   "resource_not_available: backend 00000000-0000-4000-8000-0000000000b3: not put "
                   "on record while the master candidate node2 runs another version, which could "
                   "not load it; bring that to version " FETTLE_VERSION);
    follow_as(node2, FETTLE_VERSION);
    expect_backend(3, "rbd", 0, nodes, NULL);
    follow_as(node2, "0.0.1");
    expect_backend(4, "rbd", 0, nodes, NULL);
    world_tear_down();
}

static void test_pool_of_older_nodes(void)
{
    static const char *const one[] = {NODE1, NULL}, *const two[] = {NODE1, NODE3, NULL};
    copies_set_up();
    note_service(NODE3, "noded", "0.0.1");
    expect_backend(1, "dir", 0, two, NULL);
    expect_backend(2, "rbd", 0, two,
                   "resource_not_available: backend back2: noded of node3 is of version 0.0.1, "
                   "which may not know pools of a Ceph; bring it to version " FETTLE_VERSION);
    expect_backend(2, "rbd", 0, one, NULL);
    note_service(NODE3, "noded", FETTLE_VERSION);
    note_service(NODE3, "volumed", "0.0.1");
    guint64 version = config_serial(wconf_config(world.wconf)) - 2;
    expect_backend(2, "rbd", version, two,
                   "resource_not_available: backend back2: volumed of node3 is of version 0.0.1, "
                   "which may not know pools of a Ceph; bring it to version " FETTLE_VERSION);
    note_service(NODE3, "volumed", FETTLE_VERSION);
    expect_backend(2, "rbd", version, two, NULL);
    /* What it serves already is no reason to change nothing. */
    note_service(NODE3, "volumed", "0.0.1");
    expect_backend(2, "rbd", config_serial(wconf_config(world.wconf)) - 1, two, NULL);
    world_tear_down();
}

/* --- volumes that guests may only read --- */

static char *add_volume(guint number, bool readonly)
{
    g_autofree char *uuid = g_strdup_printf("00000000-0000-4000-8000-0000000000c%u", number);
    json_t *object = json_make("{ss si ss sb}", "uuid", uuid, "size", 1, "status", "error",
                               "readonly", readonly);
    return job_commit(&world, 18, changes_of(put("volume", uuid, 0, object), NULL));
}

static void test_readonly(void)
{
    static const char by_candidate[] =
        "resource_not_available: volume 00000000-0000-4000-8000-0000000000c1: not made read-only "
        "while node2 runs another version";
    static const char by_node[] =
        "resource_not_available: volume 00000000-0000-4000-8000-0000000000c1: not made read-only "
        "while node3 runs another version";
    copies_set_up();
    follow_as(node2, "0.0.1");
    g_autofree char *first = add_volume(1, true);
    g_assert_true(g_str_has_prefix(first, by_candidate));
    follow_as(node2, FETTLE_VERSION);
    note_service(NODE3, "noded", "0.0.1");
    g_autofree char *second = add_volume(1, true);
    g_assert_true(g_str_has_prefix(second, by_node));
    g_autofree char *plain = add_volume(2, false);
    g_assert_nonnull(strstr(plain, "(SAF-50)")); /* by the next rule: jobs make none */
    note_service(NODE3, "noded", FETTLE_VERSION);
    g_autofree char *third = add_volume(1, true);
    g_assert_nonnull(strstr(third, "(SAF-50)"));
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/may-make/first-of-a-new-kind", test_first_of_a_new_kind);
    g_test_add_func("/may-make/what-it-does-not-stop", test_what_it_does_not_stop);
    g_test_add_func("/may-make/first-pool-of-a-ceph", test_first_pool);
    g_test_add_func("/may-make/pool-of-older-nodes", test_pool_of_older_nodes);
    g_test_add_func("/may-make/read-only", test_readonly);
    return g_test_run();
}
