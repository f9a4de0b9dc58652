/*
 * Live migration with everything that can go wrong: either node daemon killed, or its power cut, at
 * each of its steps; and faults of all kinds at any moment, by seeds. Afterwards the cleanup of the
 * watcher runs, and the guest must run once, with all that was acknowledged (which node_world
 * checks after every step of time).
 */
#include "base/sm.h"
#include "unit/core/world/guest_steps.h"
#include "unit/core/world/node_chaos.h"

static void begin_world(struct node_world *nw, enum disk_template disk_template)
{
    g_autoptr(GError) error = NULL;
    bool mirrored = disk_template == TEMPLATE_MIRROR;
    nw->web1.disk_template = disk_template;
    nw->web1.nics = 1;
    nw_create(nw, NODE_A, mirrored ? NODE_B : "", disk_template == TEMPLATE_DISKLESS ? 0 : 2,
              &error);
    g_assert_no_error(error);
    nw_start(nw, &error);
    g_assert_no_error(error);
    nw_until(nw, !mirrored || nw->web1.state == REPLICA_IN_SYNC);
    nw_pass(nw, 100);
}

/* What its job does, as far as it gets. */
static void migrate(struct node_world *nw)
{
    struct test_node *source = nw_node(nw, nw->web1.holder);
    nw_commit_migration(nw, nw->web1.generation % 2 ? MOVE_1 : MOVE_2);
    json_autoptr target = nw_incoming_open(nw, NULL);
    if (!target) {
        nw_migrate_undo(nw, NULL);
        return;
    }
    enum migration_state state =
        nw_migration_start(nw, target, NULL) ? nw_migration_wait(nw, source) : MIGRATION_NONE;
    if (state == MIGRATION_MOVED)
        nw_migrate_finish(nw, NULL);
    else if (state != MIGRATION_NONE)
        nw_migrate_undo(nw, NULL);
}

static void revive_all(struct node_world *nw)
{
    struct test_node *nodes[] = {&nw->a, &nw->b};
    nw->each_step = NULL;
    nw->mood = MASTER_ANSWERS;
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        nw_cut(nw, nodes[i], false);
        fake_host_set_hook(nodes[i]->host, NULL, NULL);
        fake_host_clear_faults(nodes[i]->host);
        fake_host_set_deaf(nodes[i]->host, false);
        if (!nodes[i]->env)
            nw_daemon_start(nw, nodes[i]);
        nw_until(nw, nw_announce(nw, nodes[i], NULL)); /* it may still be starting */
    }
}

/* The watcher: the migration that a dead job left, then a guest that should run and does not. */
static void make_whole(struct node_world *nw)
{
    struct master_record *web1 = &nw->web1;
    bool mirrored = web1->disk_template == TEMPLATE_MIRROR;
    g_autoptr(GError) error = NULL;
    revive_all(nw);
    nw_pass(nw, 7000);
    for (guint tries = 0; web1->migration && tries < 10; tries++) {
        g_clear_error(&error);
        if (!nw_migrate_cleanup(nw, &error))
            nw_pass(nw, 5000);
    }
    if (web1->migration)
        g_error("the migration is not cleared: %s", error->message);
    g_clear_error(&error);
    nw_pass(nw, 7000);
    if (!guest_reported(nw))
        nw_start(nw, &error);
    g_assert_no_error(error);
    nw_pass(nw, 3000);
    if (mirrored && web1->state == REPLICA_STALE)
        nw_replace_replica(nw, &error);
    g_assert_no_error(error);
    nw_until(nw, !mirrored || web1->state == REPLICA_IN_SYNC);
    nw_until(nw, fake_hosts_running(nw->hosts, WEB1) == 1);
}

/* One guest, where the record says; nothing waits, no tap device and no copy is left. */
static void assert_whole(struct node_world *nw)
{
    const struct master_record *web1 = &nw->web1;
    struct test_node *here = nw_node(nw, web1->holder);
    struct test_node *other = here == &nw->a ? &nw->b : &nw->a;
    guint64 before = fake_hosts_acknowledged(nw->hosts, WEB1);
    nw_pass(nw, 7000);
    g_assert_true(runs(here, web1->generation));
    g_assert_cmpint(fake_host_state(other->host, WEB1, NULL), ==, GUEST_ABSENT);
    g_assert_cmpuint(fake_host_taps(here->host, WEB1), ==, 1);
    g_assert_cmpuint(fake_host_taps(other->host, WEB1), ==, 0);
    if (web1->disk_template != TEMPLATE_DISKLESS) {
        g_assert_cmpuint(fake_hosts_acknowledged(nw->hosts, WEB1), >, before);
        g_assert_true(fake_hosts_whole(nw->hosts, here->uuid, WEB1, ""));
    }
    if (web1->disk_template == TEMPLATE_FILE) {
        g_assert_false(fake_host_has_image(other->host, WEB1, MOVE_1));
        g_assert_false(fake_host_has_image(other->host, WEB1, MOVE_2));
    }
}

/* The daemon of `uuid` dies at its n-th step; false: it has fewer. */
static bool run_killed_at(enum disk_template disk_template, const char *uuid, guint n, bool power)
{
    struct node_world *nw = node_world_new(n);
    struct killer killer = {.node = nw_node(nw, uuid), .countdown = n};
    begin_world(nw, disk_template);
    killer_begin(nw, &killer);
    migrate(nw);
    nw_pass(nw, 50);
    bool died = killer.dead;
    if (died && power)
        nw_power_cut(nw, killer.node);
    make_whole(nw);
    assert_whole(nw);
    node_world_free(nw);
    return died;
}

static void test_killed_at_each_step(gconstpointer data)
{
    static const char *const nodes[] = {NODE_A, NODE_B};
    enum disk_template disk_template = GPOINTER_TO_UINT(data);
    guint all = 0;
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++)
        for (guint power = 0; power < 2; power++) {
            guint n = 0;
            while (n < MOST_STEPS && run_killed_at(disk_template, nodes[i], n, power))
                n++;
            g_assert_cmpuint(n, <, MOST_STEPS);
            g_assert_cmpuint(n, >, 10);
            all += n;
        }
    g_test_message("%u deaths", all);
}

/* The source dies at each step while the master's answers get lost or it answers nothing. */
static void test_killed_without_master(void)
{
    for (guint mood = MASTER_DEPOSED; mood <= MASTER_LOSES_ANSWER; mood++)
        for (guint n = 0; n < 60; n += 3) {
            struct node_world *nw = node_world_new(n);
            struct killer killer = {.node = &nw->a, .countdown = n};
            begin_world(nw, TEMPLATE_MIRROR);
            nw_commit_migration(nw, MOVE_1);
            json_autoptr target = nw_incoming_open(nw, NULL);
            g_assert_true(nw_migration_start(nw, target, NULL));
            nw->mood = (enum master_mood)mood;
            killer_begin(nw, &killer);
            nw_pass(nw, 20000);
            make_whole(nw);
            assert_whole(nw);
            node_world_free(nw);
        }
}

/* --- anything at any time --- */

#define SEEDS (g_strcmp0(g_getenv("FETTLE_LONG"), "1") == 0 ? 300u : 50u)
#define ROUNDS 5

static const char *const calls[] = {"prepare",
                                    "run",
                                    "query",
                                    "mirror_start",
                                    "kill",
                                    "mirror_finish",
                                    "sync",
                                    "export_open",
                                    "export_close",
                                    "migrate_start",
                                    "migrate_query",
                                    "mirror_release",
                                    "migrate_cancel",
                                    "migrate_continue",
                                    "incoming_prepare",
                                    "incoming_finish",
                                    "promote",
                                    "demote",
                                    "tap_create",
                                    "tap_remove",
                                    "create",
                                    "remove",
                                    "probe",
                                    "set_aside",
                                    "files",
                                    NULL};

static void own_fault(struct node_world *nw, struct chaos *chaos, struct test_node *node,
                      guint which)
{
    if (which == 0)
        call_fault(chaos, node);
    else if (which == 1)
        fake_host_set_deaf(node->host, true);
    else
        fake_host_migration_break(node->host, WEB1);
}

/* One life of an instance; the job dies at any moment by giving up on an error. */
static void run_seed(guint seed)
{
    static const enum disk_template templates[] = {TEMPLATE_MIRROR, TEMPLATE_MIRROR, TEMPLATE_FILE,
                                                   TEMPLATE_SHAREDFILE};
    struct node_world *nw = node_world_new(seed);
    struct chaos chaos = {
        .random = g_rand_new_with_seed(seed), .every = 60, .calls = calls, .own = own_fault};
    begin_world(nw, templates[seed % G_N_ELEMENTS(templates)]);
    for (guint round = 0; round < ROUNDS; round++) {
        chaos_begin(nw, &chaos);
        migrate(nw);
        nw_pass(nw, 200);
        if (nw->web1.migration && pick(&chaos, 2))
            nw_migrate_cleanup(nw, NULL);
        make_whole(nw);
        assert_whole(nw);
    }
    g_rand_free(chaos.random);
    node_world_free(nw);
}

static void test_chaos(void)
{
    const char *only = g_getenv("SEED");
    if (only) {
        run_seed((guint)g_ascii_strtoull(only, NULL, 10));
        return;
    }
    for (guint seed = 1; seed <= SEEDS; seed++)
        run_seed(seed);
}

static bool die_in_take_back(struct fake_host *host, const char *op, bool after, void *data)
{
    bool *dead = data;
    *dead = *dead || (after && strcmp(op, "migrate_cancel") == 0);
    return *dead;
}

/* The guest goes on by itself, and the next moment its node is dead, with the only master who knew
 * that it goes on without its replica. */
static void test_breaks_late_and_dies(void)
{
    struct node_world *nw = node_world_new(1);
    bool dead = false;
    begin_world(nw, TEMPLATE_MIRROR);
    g_assert_true(nw_migrate_begin(nw, MOVE_1, NULL));
    nw_until(nw, fake_host_count(nw->a.host, "migrate_continue") > 0);
    fake_host_set_hook(nw->a.host, die_in_take_back, &dead);
    fake_host_migration_break(nw->a.host, WEB1);
    nw_until(nw, dead);
    nw_daemon_kill(nw, &nw->a);
    nw_power_cut(nw, &nw->a);
    fake_host_set_hook(nw->a.host, NULL, NULL);
    nw_daemon_start(nw, &nw->a);
    g_assert_true(nw_announce(nw, &nw->a, NULL));
    g_autofree char *stated = nw_statement(nw, &nw->a);
    g_assert_true(g_str_has_prefix(stated, "g2, "));
    g_assert_null(strstr(stated, "in-sync"));
    node_world_free(nw);
}

static void silent(const char *line, void *data)
{
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!g_getenv("SEED"))
        sm_set_sink(silent, NULL);
    g_test_add_data_func("/migration/killed-mirror#SAF-13,SAF-17,SAF-19",
                         GUINT_TO_POINTER(TEMPLATE_MIRROR), test_killed_at_each_step);
    g_test_add_data_func("/migration/killed-file#SAF-17", GUINT_TO_POINTER(TEMPLATE_FILE),
                         test_killed_at_each_step);
    g_test_add_data_func("/migration/killed-sharedfile#SAF-17,SAF-19",
                         GUINT_TO_POINTER(TEMPLATE_SHAREDFILE), test_killed_at_each_step);
    g_test_add_data_func("/migration/killed-diskless#SAF-17", GUINT_TO_POINTER(TEMPLATE_DISKLESS),
                         test_killed_at_each_step);
    g_test_add_func("/migration/killed-without-master#SAF-04,SAF-17", test_killed_without_master);
    g_test_add_func("/migration/breaks-late-and-dies#SAF-09,SAF-13,SAF-17",
                    test_breaks_late_and_dies);
    g_test_add_func("/migration/chaos#SAF-13,SAF-17,SAF-19", test_chaos);
    return g_test_run();
}
