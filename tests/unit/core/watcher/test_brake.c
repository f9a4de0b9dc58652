/* What holds auto-repair back: the storm brake, the limits, shadow mode, an interval of its own. */
#include "unit/core/world/watcher_world.h"

#include <string.h>

#define NOW 1700000000 /* wall clock of the fake world when it begins */
#define WEB(n) "aaaaaaaa-0000-4000-8000-0000000001" n

static gint64 now_s(const struct watcher_world *w)
{
    return w->env->ops->wall_us(w->env) / G_USEC_PER_SEC;
}

static void set_cluster(struct watcher_world *w, json_t *settings)
{
    change_object(w, "cluster", CLUSTER, settings);
}

/* A person says so, now. */
static void lose_node(struct watcher_world *w, const char *node)
{
    change_object(w, "node", node,
                  json_make("{sb sI}", "offline", 1, "offline_since", (json_int_t)now_s(w)));
}

static const struct repair_brake *brake(struct watcher_world *w)
{
    look(w);
    return config_get(w->view, "repair_brake", "cluster", NULL);
}

static void release(struct watcher_world *w)
{
    look(w);
    g_autofree char *said = job_commit(
        &w->base, 17, changes_of(config_delete(w->view, "repair_brake", "cluster"), NULL));
    g_assert_nonnull(strstr(said, "serial"));
}

/* More diskless guests on node1: they fail over to any node. */
static void put_guests(struct watcher_world *w, guint count)
{
    static const char *const uuids[] = {WEB("01"), WEB("02"), WEB("03"), WEB("04"), WEB("05")};
    g_assert_cmpuint(count, <=, G_N_ELEMENTS(uuids));
    for (guint i = 0; i < count; i++) {
        g_autofree char *name = g_strdup_printf("more%u", i + 1);
        look(w);
        g_autofree char *said = job_commit(
            &w->base, 17,
            changes_of(config_put(w->view, "instance", uuids[i],
                                  json_make("{ss ss ss si ss si}", "uuid", uuids[i], "name", name,
                                            "disk_template", "diskless", "memory", 64,
                                            "primary_node", NODE1, "generation", 1)),
                       NULL));
        g_assert_nonnull(strstr(said, "serial"));
    }
}

/* --- the storm brake --- */

static void test_storm(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "reinstall");
    passes(w, 1);
    g_assert_null(brake(w));
    set_tag(w, TAG_INSTANCE, WEB1, "suspend"); /* both losses come before the first step */
    lose_node(w, NODE2);
    passes(w, 1);
    g_assert_null(brake(w)); /* one of three is not more than half */
    lose_node(w, NODE1);
    passes(w, 1);
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    g_assert_nonnull(brake(w));
    g_assert_cmpstr(brake(w)->why, ==, "2 of 3 nodes were lost within 600 s, more than 50 %.");
    g_assert_cmpuint(brake(w)->nodes->len, ==, 2);
    const struct decision *said = latest_about(w, CLUSTER, "watcher/brake");
    g_assert_cmpstr(said->state, ==, "Storm brake on");
    g_assert_cmpuint(said->evidence->len, ==, 2);
    /* What is due is marked; nothing is done, and the record says why. */
    assert_tags(w, "pending:reinstall:I:T:");
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpstr(
        latest_about(w, WEB1, "watcher/repair")->summary, ==,
        "The storm brake is on: 2 of 3 nodes were lost within 600 s, more than 50 %. It "
        "is released by: fettle repair continue.");
    guint records = decisions_count(w);
    watcher_world_kill(w); /* a new watcher knows it too */
    watcher_world_start(w);
    fake_advance(w->base.world, 3600000); /* and time alone does not release it */
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_nonnull(brake(w));
    g_assert_cmpuint(decisions_count(w), ==, records);
    watcher_world_free(w);
}

static void test_storm_released(void)
{
    struct watcher_world *w = watcher_world_new();
    add_node4(w); /* room for a repair */
    set_cluster(w, json_make("{si}", "repair_storm_percent", 40));
    set_tag(w, TAG_CLUSTER, CLUSTER, "reinstall");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    lose_node(w, NODE1);
    lose_node(w, NODE2);
    passes(w, 1);
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    g_assert_nonnull(brake(w));
    g_assert_cmpuint(jobs(w), ==, 0);
    release(w);
    passes(w, 2);
    g_assert_null(brake(w)); /* the same losses do not pull it again … */
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(latest_about(w, CLUSTER, "watcher/brake")->state, ==, "Storm brake released");
    watcher_world_kill(w); /* … nor in the eyes of a new watcher */
    watcher_world_start(w);
    passes(w, 3);
    g_assert_null(brake(w));
    watcher_world_free(w);
}

/* Silence counts after a while, if the node had answered and we are not blind ourselves. */
static void test_storm_of_silence(void)
{
    struct watcher_world *w = watcher_world_new();
    set_cluster(w, json_make("{si}", "repair_storm_percent", 20));
    passes(w, 2);
    w->silent = NODE2;
    fake_advance(w->base.world, 25000);
    g_assert_null(brake(w));
    fake_advance(w->base.world, 15000);
    g_assert_nonnull(brake(w));
    g_assert_nonnull(strstr(latest_about(w, CLUSTER, "watcher/brake")->evidence->pdata[0],
                            "node2 does not answer since "));
    watcher_world_free(w);
    w = watcher_world_new();
    set_cluster(w, json_make("{si}", "repair_storm_percent", 20));
    passes(w, 2);
    w->silent = "all";
    fake_advance(w->base.world, 120000);
    g_assert_null(brake(w));
    watcher_world_free(w);
}

/* Nodes that were lost long ago are no part of a storm, nor of the cluster that it meets. */
static void test_storm_window(void)
{
    struct watcher_world *w = watcher_world_new();
    set_cluster(w, json_make("{si}", "repair_storm_window_s", 60));
    lose_node(w, NODE3);
    fake_advance(w->base.world, 90000);
    g_assert_null(brake(w));
    lose_node(w, NODE2); /* one of two that were left: not more than half */
    passes(w, 2);
    g_assert_null(brake(w));
    set_cluster(w, json_make("{si}", "repair_storm_percent", 49));
    passes(w, 2);
    g_assert_nonnull(brake(w));
    g_assert_cmpstr(brake(w)->why, ==, "1 of 2 nodes were lost within 60 s, more than 49 %.");
    watcher_world_free(w);
}

/* --- limits --- */

static void test_max_running(void)
{
    struct watcher_world *w = watcher_world_new();
    set_cluster(w, json_make("{si}", "repair_max_running", 2));
    put_guests(w, 5);
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    lose_node(w, NODE1);
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 2);
    look(w);
    g_autoptr(GPtrArray) decisions = config_list(w->view, "decision");
    guint waiting = 0;
    for (guint i = 0; i < decisions->len; i++) {
        const struct decision *decision = decisions->pdata[i];
        waiting += strcmp(decision->summary, "It waits its turn: no more than 2 repairs are under "
                                             "way at once (repair_max_running).") == 0;
    }
    g_assert_cmpuint(waiting, ==, 4); /* of six, once each */
    watcher_world_kill(w);
    watcher_world_start(w);
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 2);
    end_job(w, 0, "error", job_error("broken", "storage_error", true));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 3);
    watcher_world_free(w);
}

/* What can take long leaves one place to guests that are down. */
static void test_last_place(void)
{
    struct watcher_world *w = watcher_world_new();
    set_cluster(w, json_make("{si}", "repair_max_running", 2));
    put_guests(w, 5);
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_node(w, NODE1, "drained");
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_MIGRATE");
    g_autofree char *first = g_strdup(job(w, 0)->instance);
    look(w);
    g_autoptr(GPtrArray) decisions = config_list(w->view, "decision");
    guint waiting = 0;
    for (guint i = 0; i < decisions->len; i++) {
        const struct decision *decision = decisions->pdata[i];
        waiting += strcmp(decision->summary,
                          "It waits its turn: no more than 2 repairs are under way at once "
                          "(repair_max_running), and the last place is for guests that are "
                          "down.") == 0;
    }
    g_assert_cmpuint(waiting, ==, 5);
    lose_node(w, NODE1);
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpstr(job(w, 1)->op_id, ==, "OP_INSTANCE_FAILOVER");
    g_assert_cmpstr(job(w, 1)->instance, !=, first);
    /* Guests that are down may have all places: the first one's migration ends, and the next of
     * them takes it. */
    end_job(w, 0, "error", job_error("its node is gone", "resource_not_available", false));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 3);
    g_assert_cmpstr(job(w, 2)->op_id, ==, "OP_INSTANCE_FAILOVER");
    g_assert_cmpstr(job(w, 2)->instance, !=, job(w, 1)->instance);
    watcher_world_free(w);
}

static void test_max_per_hour(void)
{
    struct watcher_world *w = watcher_world_new();
    set_cluster(w, json_make("{si}", "repair_max_per_hour", 2));
    put_guests(w, 3);
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    lose_node(w, NODE1);
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 2);
    /* Both end; the next tries are no new repairs, the third repair is. */
    end_job(w, 0, "error", job_error("busy", "resource_not_available", false));
    end_job(w, 1, "error", job_error("broken", "storage_error", true));
    fake_advance(w->base.world, LIMIT_REPAIR_FIRST_PAUSE_S * 1000 + 1000);
    g_assert_cmpuint(jobs(w), ==, 3);
    g_assert_cmpstr(job(w, 2)->instance, ==, job(w, 0)->instance);
    watcher_world_kill(w); /* a new watcher does not forget */
    watcher_world_start(w);
    fake_advance(w->base.world, 1800000);
    g_assert_cmpuint(jobs(w), ==, 3);
    fake_advance(w->base.world, 1900000);
    g_assert_cmpuint(jobs(w), ==, 5);
    watcher_world_free(w);
}

/* --- the clock is set (SAF-93) --- */

#define YEARS_MS (3 * 365 * 86400 * G_GINT64_CONSTANT(1000))

static const char *said_of_the_clock(struct watcher_world *w)
{
    const struct decision *latest = latest_about(w, CLUSTER, "watcher/clock");
    return latest != NULL ? latest->summary : "";
}

/* Two repairs have begun when the clock showed `first_ms` more; then it is set to `then_ms`. */
static struct watcher_world *set_after_two(gint64 first_ms, gint64 then_ms)
{
    struct watcher_world *w = watcher_world_new();
    fake_set_clock(w->base.world, w->env->node_uuid, first_ms);
    set_cluster(w, json_make("{si}", "repair_max_per_hour", 2));
    put_guests(w, 3);
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    lose_node(w, NODE1);
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 2);
    fake_set_clock(w->base.world, w->env->node_uuid, then_ms);
    passes(w, 2);
    return w;
}

/* What lies three years ahead is over an hour after it was seen, and counts until then. */
static void goes_on_after_an_hour(struct watcher_world *w)
{
    fake_advance(w->base.world, 1800000);
    g_assert_cmpuint(jobs(w), ==, 2);
    fake_advance(w->base.world, 1900000);
    g_assert_cmpuint(jobs(w), >, 2);
}

static void test_set_back(void)
{
    struct watcher_world *w = set_after_two(YEARS_MS, 0);
    g_assert_nonnull(
        strstr(said_of_the_clock(w), "was set back by 1095 days 0 h: it was 2026-11-1"));
    goes_on_after_an_hour(w);
    watcher_world_free(w);
}

static void test_set_forward(void)
{
    struct watcher_world *w = set_after_two(0, YEARS_MS);
    g_assert_nonnull(strstr(said_of_the_clock(w), "was set forward by 1095 days 0 h"));
    goes_on_after_an_hour(w);
    watcher_world_free(w);
}

/* A new watcher has no other clock to go by: an hour from its first look. */
static void test_set_back_and_restarted(void)
{
    struct watcher_world *w = set_after_two(YEARS_MS, 0);
    watcher_world_kill(w);
    watcher_world_start(w);
    goes_on_after_an_hour(w);
    watcher_world_free(w);
}

/* The newest is what was written last, and shows the time at which it was. */
static void test_order_of_records(void)
{
    struct watcher_world *w = watcher_world_new();
    fake_set_clock(w->base.world, w->env->node_uuid, YEARS_MS);
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    passes(w, 2);
    fake_set_clock(w->base.world, w->env->node_uuid, YEARS_MS - 60000);
    passes(w, 2);
    fake_set_clock(w->base.world, w->env->node_uuid, 0);
    passes(w, 2);
    g_assert_nonnull(strstr(said_of_the_clock(w), "was set back by 1094 days 23 h"));
    guint64 at_us = latest_about(w, CLUSTER, "watcher/clock")->at_us;
    g_assert_cmpuint(at_us, <, (guint64)(now_s(w) + 1) * G_USEC_PER_SEC);
    g_assert_cmpuint(at_us, >, (guint64)(now_s(w) - 60) * G_USEC_PER_SEC);
    watcher_world_free(w);
}

/* A replica on a full node gets another node, if there is one. */
static void full_secondary(bool another)
{
    struct watcher_world *w = watcher_world_new();
    w->full = NODE2;
    if (!another)
        set_node(w, NODE3, "offline");
    change_object(w, "replica", REPLICA1, json_make("{ss si}", "state", "stale", "sync", 8));
    set_tag(w, TAG_INSTANCE, WEB1, "fix-storage");
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->evidence->pdata[1], ==,
                    another ? "node3 has room"
                            : "node2 has no room left and keeps the replica all the same: no other "
                              "node fits");
    watcher_world_free(w);
}

static void test_full_secondary(void)
{
    full_secondary(true);
    full_secondary(false);
}

/* What was said in an earlier pass was so whatever the clock shows since. */
static void moves_after_step(gint64 first_ms, gint64 then_ms)
{
    struct watcher_world *w = watcher_world_new();
    fake_set_clock(w->base.world, w->env->node_uuid, first_ms);
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    w->io_stop = "no-space";
    w->full = NODE2;
    passes(w, 2);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/disk")->state, ==, "No-space");
    fake_set_clock(w->base.world, w->env->node_uuid, then_ms);
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->full = NULL;
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

static void test_no_room_clock_set(void)
{
    moves_after_step(3600000, 0);
    moves_after_step(0, 3600000);
}

/* Records of what exists no more go in their time, however the clock was set meanwhile. */
static void test_sweep_after_set_back(void)
{
    static const char *const nobody = "99999999-9999-4999-8999-999999999999";
    struct watcher_world *w = watcher_world_new();
    fake_set_clock(w->base.world, w->env->node_uuid, YEARS_MS);
    lose_node(w, NODE1);
    passes(w, 2);
    g_autofree char *key = g_strdup(latest_about(w, WEB1, "watcher/repair")->uuid);
    fake_set_clock(w->base.world, w->env->node_uuid, 0);
    guint64 at_us = (guint64)(now_s(w) - LIMIT_DECISIONS_GONE_S) * G_USEC_PER_SEC;
    change_object(w, "decision", key,
                  json_make("{sssI}", "subject", nobody, "at_us", (json_int_t)at_us));
    g_assert_nonnull(latest_about(w, nobody, "watcher/repair"));
    fake_advance(w->base.world, LIMIT_DECISION_SWEEP_S * 1000 + 2000);
    g_assert_null(latest_about(w, nobody, "watcher/repair"));
    watcher_world_free(w);
}

/* A loss that is dated three years ahead is over as a storm when the window is. */
static void test_loss_in_the_future(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    fake_set_clock(w->base.world, w->env->node_uuid, YEARS_MS);
    lose_node(w, NODE1);
    passes(w, 2);
    fake_set_clock(w->base.world, w->env->node_uuid, 0);
    fake_advance(w->base.world, 700000);
    g_assert_null(brake(w));
    lose_node(w, NODE2); /* one of two that are left is no storm; two of three would be */
    passes(w, 2);
    g_assert_null(brake(w));
    watcher_world_free(w);
}

/* --- shadow mode --- */

static void test_shadow(void)
{
    struct watcher_world *w = watcher_world_new();
    g_autofree char *past = g_strdup_printf("suspend:%d", NOW - 5);
    set_cluster(w, json_make("{sb}", "repair_shadow", 1));
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_tag(w, TAG_NODEGROUP, GROUP, past);
    lose_node(w, NODE1);
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_tags(w, "");
    look(w);
    g_assert_cmpuint(config_count(w->view, "tag"), ==, 2); /* not even the suspension that ended */
    assert_state(w, "Needs repair, shadow mode");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->summary, ==,
                    "Shadow mode: a repair of type failover would begin now; first step: "
                    "failover.");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:X:1600000000:");
    passes(w, 5);
    assert_tags(w, "pending:failover:I:T:");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->summary, ==,
                    "Shadow mode: step 1 of the repair would be taken: failover.");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:fix-storage:W:1500000000:");
    passes(w, 5);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->summary, ==,
                    "Shadow mode: the repair would be ended with enoperm: the next step, failover, "
                    "needs failover, and this repair may do fix-storage at most.");
    g_assert_cmpuint(jobs(w), ==, 0);
    set_cluster(w, json_make("{sb}", "repair_shadow", 0));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    look(w);
    assert_tags(w, "pending:failover:I:T:1 result:fix-storage:I:T:enoperm:");
    watcher_world_free(w);
}

static void test_shadow_weak(void)
{
    struct watcher_world *w = watcher_world_new();
    set_cluster(w, json_make("{sb}", "repair_shadow", 1));
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    lose_node(w, NODE1);
    passes(w, 5);
    assert_tags(w, "");
    assert_state(w, "Needs repair, shadow mode");
    watcher_world_free(w);
}

/* --- an interval of its own --- */

/* Repair each 60 s, the other duties each 5 s, whatever happens in between. */
static void test_interval(void)
{
    struct watcher_world *w = watcher_world_new();
    set_cluster(w, json_make("{si si}", "watcher_interval_ms", 5000, "repair_interval_ms", 60000));
    fake_advance(w->base.world, 70000);
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    gint64 broken = fake_now_ms(w->base.world);
    guint reports = fake_count_calls(w->base.world, NODE3 "/noded node_report");
    lose_node(w, NODE1);
    fake_advance(w->base.world, 30000);
    g_assert_cmpuint(fake_count_calls(w->base.world, NODE3 "/noded node_report") - reports, >=, 6);
    g_assert_cmpuint(fake_count_calls(w->base.world, NODE3 "/noded node_report") - reports, <=, 9);
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_tags(w, "");
    while (jobs(w) == 0 && fake_now_ms(w->base.world) < broken + 70000)
        fake_advance(w->base.world, 1000);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpint(fake_now_ms(w->base.world) - broken, <=, 61000);
    watcher_world_free(w);
}

/* --- what nobody needs any more --- */

static void put_token(struct watcher_world *w, const char *uuid, gint64 expires)
{
    g_autofree char *hash = g_strnfill(64, 'a');
    json_t *token =
        json_make("{ss ss ss ss ss sI}", "uuid", uuid, "secret_hash", hash, "node_name", "node9",
                  "primary_ip", "10.0.0.9", "group", GROUP, "expires", (json_int_t)expires);
    g_autofree char *said =
        job_commit(&w->base, 17, changes_of(put("join_token", uuid, 0, token), NULL));
    g_assert_nonnull(strstr(said, "serial"));
}

static void test_old_tokens(void)
{
    struct watcher_world *w = watcher_world_new();
    put_token(w, WEB("01"), NOW - JOIN_TOKEN_KEPT_S - 1);
    put_token(w, WEB("02"), NOW - 60); /* ended; a host that comes late is told so */
    put_token(w, WEB("03"), NOW + 600);
    watcher_world_kill(w); /* a new watcher looks at once, an old one every hour */
    watcher_world_start(w);
    passes(w, 2);
    look(w);
    g_assert_null(config_get(w->view, "join_token", WEB("01"), NULL));
    g_assert_nonnull(config_get(w->view, "join_token", WEB("02"), NULL));
    g_assert_nonnull(config_get(w->view, "join_token", WEB("03"), NULL));
    watcher_world_free(w);
}

/* --- a person's pause --- */

static void test_paused(void)
{
    struct watcher_world *w = watcher_world_new();
    guint64 now = (guint64)(w->env->ops->wall_us(w->env) / G_USEC_PER_SEC);
    GPtrArray *changes = g_ptr_array_new();

    g_ptr_array_add(changes,
                    put("switches", "switches", 0,
                        json_make("{sI}", "watcher_paused_until", (json_int_t)(now + 60))));
    g_free(daemon_commit(&w->base, w->base.luxid, changes));
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_node(w, NODE1, "offline");
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 0);
    passes(w, 60);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watcher-limits/storm", test_storm);
    g_test_add_func("/watcher-limits/storm-released", test_storm_released);
    g_test_add_func("/watcher-limits/storm-of-silence", test_storm_of_silence);
    g_test_add_func("/watcher-limits/storm-window", test_storm_window);
    g_test_add_func("/watcher-limits/max-running", test_max_running);
    g_test_add_func("/watcher-limits/last-place-for-guests-that-are-down", test_last_place);
    g_test_add_func("/watcher-limits/max-per-hour", test_max_per_hour);
    g_test_add_func("/watcher-limits/clock-set-back#SAF-93", test_set_back);
    g_test_add_func("/watcher-limits/clock-set-forward#SAF-93", test_set_forward);
    g_test_add_func("/watcher-limits/clock-set-back-and-restarted#SAF-93",
                    test_set_back_and_restarted);
    g_test_add_func("/watcher-limits/records-stay-in-order#SAF-93", test_order_of_records);
    g_test_add_func("/watcher/no-room-and-the-clock-is-set#SAF-27,SAF-93", test_no_room_clock_set);
    g_test_add_func("/watcher/sweep-after-the-clock-was-set-back#SAF-93",
                    test_sweep_after_set_back);
    g_test_add_func("/watcher-limits/loss-in-the-future#SAF-93", test_loss_in_the_future);
    g_test_add_func("/watcher-limits/shadow#ARP-68", test_shadow);
    g_test_add_func("/watcher-limits/shadow-weak-policy", test_shadow_weak);
    g_test_add_func("/watcher-limits/interval#ARP-02", test_interval);
    g_test_add_func("/watcher-limits/old-tokens", test_old_tokens);
    g_test_add_func("/watcher-limits/full-secondary#ARP-70", test_full_secondary);
    g_test_add_func("/watcher/paused", test_paused);
    return g_test_run();
}
