/* Auto-repair by the real watcher, on the real configuration daemon: states, steps, tags, records.
 */
#include "unit/core/world/watcher_world.h"

#include <string.h>

#include "base/text.h"

#define NOW 1700000000 /* wall clock of the fake world when it begins */

/* --- due, allowed, repaired --- */

static void test_repair_of_two_steps(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(decisions_count(w), ==, 0);
    set_node(w, NODE1, "offline");
    passes(w, 1);
    assert_tags(w, "pending:failover:I:T:1");
    g_autofree char *first = web1_tag(w, "pending:");
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_FAILOVER");
    assert_state(w, "Pending repair");
    passes(w, 20); /* an hour may pass as well: nothing moves while the job is under way */
    assert_tags(w, "pending:failover:I:T:1");
    g_assert_cmpuint(jobs(w), ==, 1);
    play_job(w, 0);
    passes(w, 1);
    assert_tags(w, "pending:failover:I:T:1+2");
    g_autofree char *second = web1_tag(w, "pending:");
    g_autofree char *expected = g_strconcat(first, "+2", NULL);
    g_assert_cmpstr(second, ==, expected); /* id and time are the same */
    g_assert_cmpstr(job(w, 1)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    play_job(w, 1);
    passes(w, 1);
    assert_tags(w, "result:failover:I:T:success:1+2");
    assert_state(w, "Healthy");
    g_autofree char *result = web1_tag(w, "result:");
    g_auto(GStrv) was = g_strsplit(first, ":", -1), is = g_strsplit(result, ":", -1);
    g_assert_cmpstr(was[5], ==, is[5]); /* the id */
    g_assert_cmpstr(was[6], !=, is[6]); /* the time is that of the end */
    g_assert_nonnull(
        config_get(w->view, "tag", "cluster/" CLUSTER "/" TAG_PREFIX "failover", NULL));
    guint records = decisions_count(w);
    passes(w, 50);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpuint(decisions_count(w), ==, records);
    watcher_world_free(w);
}

static void test_not_enabled(void)
{
    struct watcher_world *w = watcher_world_new();
    set_node(w, NODE2, "drained");
    passes(w, 20);
    assert_tags(w, "");
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_state(w, "Needs repair, not enabled");
    g_assert_cmpuint(decisions_count(w), ==, 1);
    set_tag(w, TAG_NODEGROUP, GROUP, "fix-storage");
    passes(w, 1);
    assert_tags(w, "pending:fix-storage:I:T:1");
    watcher_world_free(w);
}

/* All 16 pairs of policy and needed type: a job exactly if the policy allows it. */
static void test_pairs(void)
{
    static const char *const types[] = {"fix-storage", "migrate", "failover", "reinstall"};
    static const char *const first[] = {"OP_INSTANCE_REPLACE_DISKS", "OP_INSTANCE_MIGRATE",
                                        "OP_INSTANCE_FAILOVER", "OP_INSTANCE_RECREATE_DISKS"};
    for (guint policy = 0; policy < 4; policy++) {
        for (guint needed = 0; needed < 4; needed++) {
            struct watcher_world *w = watcher_world_new();
            g_test_message("policy %s, needed %s", types[policy], types[needed]);
            add_node4(w);
            set_tag(w, TAG_INSTANCE, WEB1, types[policy]);
            set_tag(w, TAG_INSTANCE, WEB1, "suspend");
            if (needed == 0 || needed == 3)
                set_node(w, NODE2, "offline");
            if (needed > 0)
                set_node(w, NODE1, needed == 1 ? "drained" : "offline");
            drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
            passes(w, 3);
            g_assert_cmpuint(jobs(w), ==, needed <= policy ? 1 : 0);
            if (needed > policy)
                assert_state(w, "Needs repair, disallowed");
            else
                g_assert_cmpstr(job(w, 0)->op_id, ==, first[needed]);
            watcher_world_free(w);
        }
    }
}

static void test_milder(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "reinstall");
    set_node(w, NODE2, "offline");
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    assert_tags(w, "pending:fix-storage:I:T:1 reinstall");
    watcher_world_free(w);
}

static void test_weak_policy_once(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "fix-storage");
    set_node(w, NODE1, "drained");
    set_node(w, NODE2, "offline");
    passes(w, 2);
    g_autofree char *first = web1_tags(w);
    g_autofree char *tag = web1_tag(w, "result:migrate:");
    assert_state(w, "Needs repair, disallowed");
    passes(w, 100);
    g_autofree char *same = web1_tag(w, "result:migrate:");
    g_assert_cmpstr(tag, ==, same);
    assert_tags(w, first);
    for (guint i = 0; i < jobs(w); i++)
        g_assert_cmpstr(job(w, i)->op_id, !=, "OP_INSTANCE_FAILOVER");
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_kill(w); /* nor does a new watcher say it again */
    watcher_world_start(w);
    passes(w, 3);
    assert_tags(w, first);
    watcher_world_free(w);
}

static void test_policy_changes(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "fix-storage");
    set_node(w, NODE1, "offline");
    passes(w, 1);
    assert_tags(w, "fix-storage result:failover:I:T:enoperm:");
    assert_state(w, "Needs repair, disallowed");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    assert_state(w, "Suspended");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    drop_tag(w, TAG_INSTANCE, WEB1, "fix-storage");
    set_tag(w, TAG_INSTANCE, WEB1, "failover");
    passes(w, 1);
    assert_state(w, "Pending repair");
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

static void test_manual_repair(void)
{
    struct watcher_world *w = watcher_world_new();
    set_node(w, NODE2, "offline");
    passes(w, 1);
    assert_state(w, "Needs repair, not enabled");
    set_node(w, NODE2, "online");
    passes(w, 1);
    assert_state(w, "Healthy");
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* --- suspension --- */

static void test_suspended(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    assert_state(w, "Suspended");
    set_node(w, NODE1, "offline");
    passes(w, 10);
    assert_tags(w, "suspend");
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_state(w, "Suspended");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->policy, ==,
                    "suspended, by a tag of the instance");
    watcher_world_free(w);
}

static void test_suspended_in_the_middle(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_node(w, NODE1, "offline");
    passes(w, 1);
    g_autofree char *pending = web1_tag(w, "pending:");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 2);
    play_job(w, 0); /* what was submitted may finish */
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 1);
    assert_tags(w, "pending:failover:I:T:1 suspend");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    g_autofree char *later = web1_tag(w, "pending:");
    g_autofree char *expected = g_strconcat(pending, "+2", NULL);
    g_assert_cmpstr(later, ==, expected);
    watcher_world_free(w);
}

static void test_suspension_ends(void)
{
    struct watcher_world *w = watcher_world_new();
    g_autofree char *soon = g_strdup_printf("suspend:%d", NOW + 60);
    g_autofree char *late = g_strdup_printf("suspend:%d", NOW + 100);
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_tag(w, TAG_CLUSTER, CLUSTER, soon);
    set_tag(w, TAG_NODEGROUP, GROUP, soon);
    set_tag(w, TAG_INSTANCE, WEB1, soon);
    set_tag(w, TAG_INSTANCE, WEB1, late);
    set_node(w, NODE1, "offline");
    fake_advance(w->base.world, 50000);
    look(w);
    g_assert_cmpuint(config_count(w->view, "tag"), ==, 5);
    fake_advance(w->base.world, 15000);
    look(w);
    g_assert_cmpuint(config_count(w->view, "tag"), ==, 2); /* failover and the later end */
    assert_tags(w, late);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpint(latest_about(w, CLUSTER, "watcher/suspend")->verdict, ==, VERDICT_ACT);
    g_assert_cmpstr(latest_about(w, GROUP, "watcher/suspend")->state, ==, "Suspension ended");
    fake_advance(w->base.world, 40000);
    assert_tags(w, "pending:failover:I:T:1");
    watcher_world_free(w);
}

static void test_bare_suspension_stays(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "reinstall");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend:1600000000");
    set_node(w, NODE1, "offline");
    passes(w, 3);
    assert_tags(w, "reinstall suspend");
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* --- tags from outside --- */

static void test_once_off(void)
{
    struct watcher_world *w = watcher_world_new();
    set_node(w, NODE1, "offline");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:X:1600000000:");
    passes(w, 1);
    g_autofree char *tag = web1_tag(w, "pending:");
    g_assert_cmpstr(tag, ==, TAG_PREFIX "pending:failover:X:1600000000:1");
    g_assert_true(g_str_has_prefix(job(w, 0)->request_id, "X/1-failover/1"));
    play_job(w, 0);
    passes(w, 1);
    play_job(w, 1);
    passes(w, 1);
    assert_tags(w, "result:failover:I:T:success:1+2");
    set_node(w, NODE3, "offline");
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 2);
    assert_state(w, "Needs repair, not enabled");
    watcher_world_free(w);
}

static void test_pending_on_healthy(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:X:1600000000:");
    passes(w, 2);
    g_autofree char *tag = web1_tag(w, "result:");
    g_assert_true(g_str_has_prefix(tag, TAG_PREFIX "result:failover:X:17"));
    assert_tags(w, "result:failover:I:T:success:");
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

static void test_order_of_pending(void)
{
    struct watcher_world *w = watcher_world_new();
    set_node(w, NODE1, "offline");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:fix-storage:E:1600000005:");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:fix-storage:A:1600000001:");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:C:1600000003:");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:B:1600000003:");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    /* A went as far as it may, B does the work, C and E wait. */
    assert_tags(w, "pending:failover:I:T:1 pending:failover:I:T: pending:fix-storage:I:T: "
                   "result:fix-storage:I:T:enoperm:");
    g_assert_true(g_str_has_prefix(job(w, 0)->request_id, "B/"));
    play_job(w, 0);
    passes(w, 1);
    g_assert_true(g_str_has_prefix(job(w, 1)->request_id, "B/"));
    play_job(w, 1);
    passes(w, 1);
    assert_tags(w, "result:failover:I:T:success:1+2 result:failover:I:T:success: "
                   "result:fix-storage:I:T:enoperm: result:fix-storage:I:T:success:");
    g_assert_cmpuint(jobs(w), ==, 2);
    watcher_world_free(w);
}

static void test_copies_of_a_tag(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    set_node(w, NODE1, "offline");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:X:1600000003:");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:X:1600000003:900");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 2);
    /* Job 900 is known to nobody: not success, hence failure; both copies are gone. */
    assert_tags(w, "result:failover:I:T:failure:900");
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_state(w, "Failed");
    watcher_world_free(w);
}

static void test_enoperm_halfway(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "failover");
    set_node(w, NODE2, "offline");
    passes(w, 1);
    assert_tags(w, "failover pending:fix-storage:I:T:1");
    set_node(w, NODE2, "online");
    set_node(w, NODE1, "offline");
    end_job(w, 0, "success", NULL);
    passes(w, 1);
    /* A new repair of the type that is needed now, with an id of its own. */
    assert_tags(w, "failover pending:failover:I:T:2 result:fix-storage:I:T:enoperm:1");
    g_assert_cmpstr(job(w, 1)->op_id, ==, "OP_INSTANCE_FAILOVER");
    watcher_world_free(w);
}

static void test_unreadable_tags(void)
{
    static const char *const bad[] = {"pending:failover:X:soon:", "reboot",
                                      "result:failover:X:5:maybe:1"};
    struct watcher_world *w = watcher_world_new();
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        set_tag(w, TAG_INSTANCE, WEB1, bad[i]);
    set_tag(w, TAG_CLUSTER, CLUSTER, "suspend:tomorrow");
    passes(w, 1);
    const struct decision *said = latest_about(w, WEB1, "watcher/tags");
    g_assert_nonnull(said);
    g_assert_cmpuint(said->evidence->len, ==, 3);
    g_assert_cmpstr(said->evidence->pdata[0], ==, TAG_PREFIX "pending:failover:X:soon:");
    g_assert_cmpstr(latest_about(w, CLUSTER, "watcher/tags")->subject_name, ==, "c1");
    assert_state(w, "Suspended");
    guint records = decisions_count(w);
    passes(w, 30);
    g_assert_cmpuint(decisions_count(w), ==, records);
    look(w);
    g_assert_cmpuint(config_count(w->view, "tag"), ==, 4);
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* --- failures --- */

static void break_web1(struct watcher_world *w)
{
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_node(w, NODE1, "offline");
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
}

static void test_tries(void)
{
    struct watcher_world *w = watcher_world_new();
    break_web1(w);
    end_job(w, 0, "error", job_error("node2 is busy", "resource_not_available", false));
    fake_advance(w->base.world, LIMIT_REPAIR_FIRST_PAUSE_S * 1000 + 1000);
    g_assert_cmpuint(jobs(w), ==, 2);
    end_job(w, 1, "error", json_string("detected death of job 2"));
    fake_advance(w->base.world, LIMIT_REPAIR_NEXT_PAUSE_S * 1000 + 1000);
    g_assert_cmpuint(jobs(w), ==, 3);
    end_job(w, 2, "error", json_make("[s,[s,s]]", "OpExecError", "died", "job_failed"));
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 3);
    assert_tags(w, "result:failover:I:T:failure:1+2+3");
    assert_state(w, "Failed");
    g_assert_cmpstr(job(w, 0)->op_id, ==, job(w, 2)->op_id);
    g_assert_true(g_str_has_suffix(job(w, 2)->request_id, "/1-failover/3"));
    watcher_world_free(w);
}

/* What is away for a moment does not use them up; nor does a watcher that begins anew. */
static void test_pauses(void)
{
    struct watcher_world *w = watcher_world_new();
    break_web1(w);
    for (guint n = 0; n < 2; n++) {
        guint pause_s = n == 0 ? LIMIT_REPAIR_FIRST_PAUSE_S : LIMIT_REPAIR_NEXT_PAUSE_S;
        gint64 end_us = w->env->ops->wall_us(w->env) + pause_s * (gint64)G_USEC_PER_SEC;
        g_autofree char *time = text_time((end_us + G_USEC_PER_SEC - 1) / G_USEC_PER_SEC);
        g_autofree char *when = g_strconcat("at ", time, NULL);
        g_autofree char *what = g_strdup_printf("Try %u of 3 failed, and the next one comes after "
                                                "a pause: node2 is busy",
                                                n + 1);
        end_job(w, n, "error", job_error("node2 is busy", "resource_not_available", false));
        fake_advance(w->base.world, (pause_s - 2) * 1000);
        watcher_world_kill(w);
        watcher_world_start(w);
        fake_advance(w->base.world, 1500);
        g_assert_cmpuint(jobs(w), ==, n + 1);
        const struct decision *said = latest_about(w, WEB1, "watcher/repair");
        g_assert_cmpstr(said->state, ==, "Pending repair");
        g_assert_cmpstr(said->summary, ==, what);
        g_assert_cmpstr(said->next_check, ==, when);
        fake_advance(w->base.world, 2000);
        g_assert_cmpuint(jobs(w), ==, n + 2);
    }
    play_job(w, 2);
    passes(w, 1);
    assert_tags(w, "pending:failover:I:T:1+2+3+4"); /* on with the next step */
    watcher_world_free(w);
}

/* What ended in the future ended when that was seen first: the pause is no longer for it. */
static void test_pause_by_another_clock(void)
{
    struct watcher_world *w = watcher_world_new();
    break_web1(w);
    end_job(w, 0, "error", job_error("node2 is busy", "resource_not_available", false));
    change_object(w, "job", "1", json_make("{sI}", "end_us", (json_int_t)1900000000000000));
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
    fake_advance(w->base.world, LIMIT_REPAIR_FIRST_PAUSE_S * 1000 + 1000);
    g_assert_cmpuint(jobs(w), ==, 2);
    watcher_world_free(w);
}

/* A primary node that is silent could only fail: no try is spent on it. */
static void test_silent_primary(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    w->silent = NODE1;
    passes(w, 3);
    set_node(w, NODE2, "offline");
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_tags(w, "pending:fix-storage:I:T:");
    const struct decision *said = latest_about(w, WEB1, "watcher/repair");
    g_assert_cmpstr(said->summary, ==,
                    "Its primary node node1 does not answer, and replace-disks needs it; if it is "
                    "dead: fettle node modify node1 --offline yes --statement \"…\"");
    g_assert_cmpstr(said->next_check, ==, "when that node answers, or is marked offline");
    w->silent = NULL;
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

static void check_fatal(const char *status, json_t *result, const char *why)
{
    struct watcher_world *w = watcher_world_new();
    break_web1(w);
    end_job(w, 0, status, result);
    passes(w, 2);
    assert_tags(w, "result:failover:I:T:failure:1");
    g_assert_cmpuint(jobs(w), ==, 1);
    g_autoptr(GPtrArray) all = config_list(w->view, "decision");
    bool told = false;
    for (guint i = 0; i < all->len; i++)
        told |= strstr(((const struct decision *)all->pdata[i])->summary, why) != NULL;
    g_assert_true(told);
    watcher_world_free(w);
}

static void test_fatal(void)
{
    check_fatal("error", job_error("the disk broke", "storage_error", false), "the disk broke");
    check_fatal("error", job_error("in between", "resource_not_available", true), "in between");
    check_fatal("error", NULL, "no reason given");
    check_fatal("canceled", NULL, "job 1 was canceled");
}

static void test_failed_stays(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "result:failover:F:1600000000:failure:3");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:P:1600000001:");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:Q:1600000002:");
    passes(w, 100);
    assert_tags(w, "pending:failover:I:T: pending:failover:I:T: result:failover:I:T:failure:3");
    assert_state(w, "Failed");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    assert_state(w, "Suspended, failed");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    drop_tag(w, TAG_INSTANCE, WEB1, "result:failover:F:1600000000:failure:3");
    passes(w, 1);
    assert_tags(w, "result:failover:I:T:success: result:failover:I:T:success:");
    assert_state(w, "Healthy");
    watcher_world_free(w);
}

static void test_no_room(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    w->disk_free = 1;
    set_node(w, NODE2, "offline");
    passes(w, 1);
    g_autofree char *tag = web1_tag(w, "pending:");
    assert_tags(w, "pending:fix-storage:I:T:");
    passes(w, 100);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_autofree char *same = web1_tag(w, "pending:");
    g_assert_cmpstr(tag, ==, same);
    g_assert_nonnull(
        strstr(latest_about(w, WEB1, "watcher/repair")->summary, "no node can be a new secondary"));
    w->disk_free = 4096;
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_autofree char *later = web1_tag(w, "pending:");
    g_autofree char *expected = g_strconcat(tag, "1", NULL);
    g_assert_cmpstr(later, ==, expected);
    watcher_world_free(w);
}

/* Jobs that find no room although we saw some do not follow each other closely, nor for ever. */
static void test_no_room_for_the_job(void)
{
    struct watcher_world *w = watcher_world_new();
    break_web1(w);
    for (guint n = 0; n < 4; n++) {
        end_job(w, n, "error", job_error("no node", "insufficient_resources", false));
        passes(w, 1);
        g_assert_cmpuint(jobs(w), ==, n + 1);
        assert_tags(w, n == 0   ? "pending:failover:I:T:1"
                       : n == 1 ? "pending:failover:I:T:1+2"
                       : n == 2 ? "pending:failover:I:T:1+2+3"
                                : "pending:failover:I:T:1+2+3+4");
        fake_advance(w->base.world, 40000);
        g_assert_cmpuint(jobs(w), ==, n + 2);
    }
    watcher_world_free(w);
}

static void test_submission_fails(void)
{
    struct watcher_world *w = watcher_world_new();
    w->luxid_refuses = "the queue is full";
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_node(w, NODE1, "offline");
    passes(w, 3);
    assert_tags(w, "pending:failover:I:T:");
    guint records = decisions_count(w);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->summary, ==,
                    "failover could not be submitted: the queue is full");
    passes(w, 20);
    g_assert_cmpuint(decisions_count(w), ==, records);
    w->luxid_refuses = NULL;
    passes(w, 1);
    assert_tags(w, "pending:failover:I:T:1");
    watcher_world_free(w);
}

/* A node that failed a step is not asked again by the same repair while another fits, and only when
 * none is left the repair is a failure (SAF-92). */
static void check_other_node(const char *failure)
{
    struct watcher_world *w = watcher_world_new();
    add_node4(w);
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    set_node(w, NODE2, "offline");
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_null(strstr(job(w, 0)->body, "node4"));
    end_job(w, 0, "error", job_error(failure, "storage_error", false));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_nonnull(strstr(job(w, 1)->body, "\"remote_node\":\"node4\""));
    end_job(w, 1, "error",
            job_error("instance \"web1\": node4: Read-only file system", "storage_error", true));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 2);
    assert_tags(w, "result:fix-storage:I:T:failure:1+2");
    watcher_world_free(w);
}

static void test_other_node(void)
{
    check_other_node("node3: disk 0: Input/output error");
    check_other_node("node \"node3\" cannot take the replica of instance \"web1\": it cannot write "
                     "its state: var: No space left on device; look at it there");
}

/* An error that names no node, or its primary, is nobody else's. */
static void test_no_other_node(void)
{
    struct watcher_world *w = watcher_world_new();
    add_node4(w);
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    set_node(w, NODE2, "offline");
    passes(w, 1);
    end_job(w, 0, "error", job_error("it is broken", "storage_error", false));
    passes(w, 2);
    assert_tags(w, "result:fix-storage:I:T:failure:1");
    watcher_world_free(w);
}

/* --- what is kept --- */

static void test_results_kept(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    for (guint i = 0; i < 14; i++) {
        g_autofree char *text = g_strdup_printf("result:failover:%02u:16000000%02u:%s:", i, i,
                                                i % 7 == 0   ? "failure"
                                                : i % 2 == 0 ? "success"
                                                             : "enoperm");
        set_tag(w, TAG_INSTANCE, WEB1, text);
    }
    drop_tag(w, TAG_INSTANCE, WEB1, "result:failover:00:1600000000:failure:");
    drop_tag(w, TAG_INSTANCE, WEB1, "result:failover:07:1600000007:failure:");
    set_tag(w, TAG_INSTANCE, WEB1, "pending:failover:X:1600000099:");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 2);
    look(w);
    g_autoptr(GPtrArray) tags = config_tags(w->view, TAG_INSTANCE, WEB1);
    g_assert_cmpuint(tags->len, ==, LIMIT_RESULT_TAGS);
    for (guint i = 0; i < tags->len; i++) /* 01 to 03 went, the oldest of the twelve */
        g_assert_null(strstr(tags->pdata[i], ":1600000003:"));
    g_assert_nonnull(
        config_get(w->view, "tag",
                   "instance/" WEB1 "/" TAG_PREFIX "result:failover:13:1600000013:enoperm:", NULL));
    g_assert_null(
        config_get(w->view, "tag",
                   "instance/" WEB1 "/" TAG_PREFIX "result:failover:03:1600000003:enoperm:", NULL));
    watcher_world_free(w);
}

static void test_records_kept(void)
{
    struct watcher_world *w = watcher_world_new();
    for (guint i = 0; i < LIMIT_DECISIONS_PER_SUBJECT; i++) {
        set_node(w, NODE2, "drained");
        passes(w, 0);
        set_node(w, NODE2, "online");
        passes(w, 0);
    }
    g_assert_cmpuint(decisions_count(w), ==, LIMIT_DECISIONS_PER_SUBJECT);
    assert_state(w, "Healthy");
    watcher_world_free(w);
}

/* --- all first, then one by one --- */

static void test_pending_before_jobs(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    change_object(w, "instance", DB1,
                  json_make("{s:s,s:i}", "primary_node", NODE1, "generation", 3));
    passes(w, 1);
    guint before = fake_calls(w->base.world)->len;
    look(w);
    set_node(w, NODE1, "offline");
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 2);
    const GPtrArray *calls = fake_calls(w->base.world);
    bool submitted = false;
    guint tagged = 0;
    for (guint i = before; i < calls->len; i++) {
        const char *call = calls->pdata[i];
        submitted |= strstr(call, "SubmitJob") != NULL;
        if (submitted || strstr(call, "record_repairs") == NULL)
            continue;
        for (const char *at = call; (at = strstr(at, "\"tag\":\"" TAG_PREFIX "pending:")); at++)
            tagged++;
    }
    g_assert_true(submitted);
    g_assert_cmpuint(tagged, ==, 2);
    g_assert_cmpstr(job(w, 0)->request_id, !=, job(w, 1)->request_id);
    watcher_world_free(w);
}

#define REPORTS fake_count_calls(w->base.world, NODE2 "/noded node_report")

/* Changes all the time, one each 20 ms. */
static void busy(struct watcher_world *w, guint ms)
{
    for (guint i = 0; i < ms / 40; i++) {
        set_tag(w, TAG_INSTANCE, WEB1, "suspend");
        fake_advance(w->base.world, 20);
        drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
        fake_advance(w->base.world, 20);
    }
}

/* Where news do not end, nodes are not asked for each of them; the first one after a quiet moment
 * is looked at at once. */
static void test_endless_news(void)
{
    struct watcher_world *w = watcher_world_new();
    passes(w, 2);
    busy(w, 2000);
    guint begun = REPORTS;
    busy(w, 4000);
    g_assert_cmpuint(REPORTS, <=, begun + 11);
    g_assert_cmpuint(REPORTS, >=, begun + 8);
    passes(w, 3);
    begun = REPORTS;
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    fake_advance(w->base.world, 10);
    g_assert_cmpuint(REPORTS, ==, begun + 1);
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watcher/two-steps#ARP-01,ARP-28,ARP-30,ARP-31,ARP-32,ARP-34,ARP-37,ARP-39,"
                    "ARP-42,ARP-49,ARP-50,ARP-51,ARP-52,ARP-58,ARP-61,ARP-68",
                    test_repair_of_two_steps);
    g_test_add_func("/watcher/not-enabled#ARP-04,ARP-44,ARP-48,ARP-68", test_not_enabled);
    g_test_add_func("/watcher/pairs#ARP-08,ARP-13", test_pairs);
    g_test_add_func("/watcher/milder#ARP-14", test_milder);
    g_test_add_func("/watcher/weak-policy-once#ARP-46,ARP-47,ARP-34", test_weak_policy_once);
    g_test_add_func("/watcher/policy-changes#ARP-44,ARP-45,ARP-47,ARP-48", test_policy_changes);
    g_test_add_func("/watcher/manual-repair#ARP-41,ARP-48", test_manual_repair);
    g_test_add_func("/watcher/suspended#ARP-17,ARP-45,ARP-49", test_suspended);
    g_test_add_func("/watcher/suspended-in-the-middle#ARP-19,ARP-20,ARP-45",
                    test_suspended_in_the_middle);
    g_test_add_func("/watcher/suspension-ends#ARP-21,ARP-24", test_suspension_ends);
    g_test_add_func("/watcher/bare-suspension-stays#ARP-23", test_bare_suspension_stays);
    g_test_add_func("/watcher/once-off#ARP-35", test_once_off);
    g_test_add_func("/watcher/pending-on-healthy#ARP-43,ARP-33", test_pending_on_healthy);
    g_test_add_func("/watcher/order-of-pending#ARP-36,ARP-40,ARP-53,ARP-56", test_order_of_pending);
    g_test_add_func("/watcher/copies-of-a-tag#ARP-31,ARP-51", test_copies_of_a_tag);
    g_test_add_func("/watcher/enoperm-halfway#ARP-40,ARP-55,ARP-56", test_enoperm_halfway);
    g_test_add_func("/watcher/unreadable-tags#ARP-38", test_unreadable_tags);
    g_test_add_func("/watcher/tries#ARP-54", test_tries);
    g_test_add_func("/watcher/pauses#ARP-54", test_pauses);
    g_test_add_func("/watcher/pause-by-another-clock", test_pause_by_another_clock);
    g_test_add_func("/watcher/silent-primary#ARP-54", test_silent_primary);
    g_test_add_func("/watcher/fatal#ARP-54,ARP-38", test_fatal);
    g_test_add_func("/watcher/failed-stays#ARP-59,ARP-60,ARP-45,ARP-53", test_failed_stays);
    g_test_add_func("/watcher/no-room#ARP-57,ARP-33", test_no_room);
    g_test_add_func("/watcher/no-room-for-the-job#ARP-57", test_no_room_for_the_job);
    g_test_add_func("/watcher/submission-fails#ARP-68,ARP-28", test_submission_fails);
    g_test_add_func("/watcher/another-node#SAF-92", test_other_node);
    g_test_add_func("/watcher/no-other-node#SAF-92", test_no_other_node);
    g_test_add_func("/watcher/results-kept", test_results_kept);
    g_test_add_func("/watcher/records-kept#ARP-68", test_records_kept);
    g_test_add_func("/watcher/pending-before-jobs#ARP-63,ARP-29", test_pending_before_jobs);
    g_test_add_func("/watcher/endless-news", test_endless_news);
    return g_test_run();
}
