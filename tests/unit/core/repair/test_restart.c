/* The watcher's other duties, and its deaths: guests that should run, and a
 * kill at every moment of a repair. */
#include "proto/task_table.h"
#include "unit/core/world/watcher_world.h"

#include <string.h>

/* --- guests that should run --- */

static void test_restart(void)
{
    struct watcher_world *w = watcher_world_new();
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->guest_node = NULL;
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_STARTUP");
    g_assert_cmpstr(job(w, 0)->request_id, ==, "restart/" WEB1 "/4/1");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/tend")->state, ==, "Down");
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, 1);
    w->guest_node = NODE1;
    end_job(w, 0, "success", NULL);
    passes(w, 2);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/tend")->state, ==, "Running");
    guint records = decisions_count(w);
    passes(w, 20);
    g_assert_cmpuint(decisions_count(w), ==, records);
    watcher_world_free(w);
}

/* Where no state can be written nothing can be started, and no try is used up by it. */
static void test_restart_waits_for_its_node(void)
{
    struct watcher_world *w = watcher_world_new();
    w->fault = NODE1;
    w->fault_kind = "state";
    w->guest_node = NULL;
    fake_advance(w->base.world, 600000);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpint(latest_about(w, WEB1, "watcher/tend")->verdict, ==, VERDICT_WAIT);
    w->fault = NULL;
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_STARTUP");
    watcher_world_free(w);
}

static void test_restart_gives_up(void)
{
    struct watcher_world *w = watcher_world_new();
    w->guest_node = NULL;
    for (guint n = 0; n < LIMIT_REPAIR_TRIES; n++) {
        fake_advance(w->base.world, 20000);
        g_assert_cmpuint(jobs(w), ==, n + 1);
        end_job(w, n, "error", job_error("no", "hypervisor_error", false));
    }
    fake_advance(w->base.world, 600000);
    g_assert_cmpuint(jobs(w), ==, LIMIT_REPAIR_TRIES);
    const struct decision *latest = latest_about(w, WEB1, "watcher/tend");
    g_assert_cmpint(latest->verdict, ==, VERDICT_LEAVE);
    guint records = decisions_count(w);
    passes(w, 20); /* the two authors do not answer each other for ever */
    g_assert_cmpuint(decisions_count(w), ==, records);
    watcher_world_free(w);
}

/* Jobs that died while they waited for their locks have tried nothing; but not for ever. */
static void test_deaths_in_the_queue_are_no_tries(void)
{
    struct watcher_world *w = watcher_world_new();
    w->guest_node = NULL;
    for (guint n = 0; n < LIMIT_REPAIR_DEATHS + LIMIT_REPAIR_TRIES; n++) {
        fake_advance(w->base.world, 600000);
        g_assert_cmpuint(jobs(w), ==, n + 1);
        g_assert_cmpint(latest_about(w, WEB1, "watcher/tend")->verdict, !=, VERDICT_LEAVE);
        end_job(w, n, "error", json_string("Job found dead"));
    }
    fake_advance(w->base.world, 600000);
    g_assert_cmpuint(jobs(w), ==, LIMIT_REPAIR_DEATHS + LIMIT_REPAIR_TRIES);
    g_assert_cmpint(latest_about(w, WEB1, "watcher/tend")->verdict, ==, VERDICT_LEAVE);
    watcher_world_free(w);
}

/* Under the request id of an earlier try luxid would answer with that old job (SAF-31). */
static void test_new_watcher_counts_on(void)
{
    struct watcher_world *w = watcher_world_new();
    w->guest_node = NULL;
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_kill(w);
    watcher_world_start(w);
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1); /* that one is under way */
    end_job(w, 0, "error", job_error("no", "hypervisor_error", false));
    watcher_world_kill(w);
    watcher_world_start(w);
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpstr(job(w, 1)->request_id, ==, "restart/" WEB1 "/4/2");
    watcher_world_free(w);
}

/* A record that is older than reality is no reason to start anything. */
static void test_restored(void)
{
    struct watcher_world *w = watcher_world_new();
    look(w);
    json_t *brake = json_make("{si ss sb}", "since", 1, "why", "from a backup", "restored", 1);
    g_autofree char *said = job_commit(
        &w->base, 17, changes_of(config_put(w->view, "repair_brake", "cluster", brake), NULL));
    g_assert_nonnull(strstr(said, "serial"));
    /* One guest is down, one was being stopped when its job died, and a node is gone that has a
     * replica. */
    w->guest_node = NULL;
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    set_node(w, NODE2, "offline");
    change_object(w, "instance", DB1,
                  json_make("{ss sI}", "task_state", "stopping", "task_owner", (json_int_t)16));
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_tags(w, "pending:fix-storage:I:T:"); /* the repair is due, and held back */
    look(w);
    g_autofree char *released = job_commit(
        &w->base, 17, changes_of(config_delete(w->view, "repair_brake", "cluster"), NULL));
    g_assert_nonnull(strstr(released, "serial"));
    passes(w, 3);
    g_autoptr(GString) done = g_string_new(NULL);
    for (guint i = 0; i < jobs(w); i++)
        g_string_append_printf(done, "%s %s;", job(w, i)->op_id, job(w, i)->instance);
    g_assert_nonnull(strstr(done->str, "OP_INSTANCE_STARTUP web1;"));
    watcher_world_free(w);
}

static void test_no_restart(void)
{
    struct watcher_world *w = watcher_world_new();
    w->silent = NODE1; /* without a report nothing is known */
    w->guest_node = NULL;
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 0);
    set_tag(w, TAG_NODEGROUP, GROUP, "suspend");
    w->silent = NULL;
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 0);
    set_node(w, NODE1, "offline"); /* a dead node is a matter of repair */
    drop_tag(w, TAG_NODEGROUP, GROUP, "suspend");
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 0);
    set_node(w, NODE1, "online");
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

static guint slow_answers(const char *from, const char *to, void *data)
{
    return 300;
}

/* A report that was asked for before the record changed proves nothing about the record. */
static void test_stale_report(void)
{
    struct watcher_world *w = watcher_world_new();
    change_object(w, "instance", WEB1, json_make("{s:s}", "admin_state", "down"));
    passes(w, 2);
    fake_set_delay(w->base.world, slow_answers, w);
    w->guest_node = NULL;
    fake_advance(w->base.world, 700); /* some pass waits for reports now */
    w->guest_node = NODE1;
    change_object(w, "instance", WEB1, json_make("{s:s}", "admin_state", "up"));
    fake_set_delay(w->base.world, NULL, NULL);
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

static void test_switched_off(void)
{
    struct watcher_world *w = watcher_world_new();
    w->guest_state = "shutdown";
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_SHUTDOWN");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/tend")->state, ==, "Switched off");
    watcher_world_free(w);
}

/* A stop failed after the guest had ended: nobody runs it, and somebody holds it. One that runs all
 * the same, or has never been started, is left to whoever gave the word. */
static void test_not_closed(void)
{
    struct watcher_world *w = watcher_world_new();
    change_object(w, "instance", WEB1, json_make("{ss}", "admin_state", "down"));
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->guest_node = NULL;
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_SHUTDOWN");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/tend")->summary, ==,
                    "It is to be down, and does not run, but its last run was not closed; it is "
                    "closed.");
    watcher_world_free(w);

    w = watcher_world_new(); /* nothing comes of it where no state can be written */
    change_object(w, "instance", WEB1, json_make("{ss}", "admin_state", "down"));
    w->fault = NODE1;
    w->fault_kind = "state";
    w->guest_node = NULL;
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/tend")->summary, ==,
                    "It is to be down, and does not run, but its last run was not closed, and its "
                    "node node1 cannot write to its disks: Input/output error; it is closed when "
                    "that is over.");
    watcher_world_free(w);

    w = watcher_world_new();
    change_object(w, "replica", REPLICA1, json_make("{ss si}", "state", "stale", "sync", 8));
    change_object(w, "instance", WEB1,
                  json_make("{ss ss si}", "admin_state", "down", "holder", "", "generation", 5));
    w->guest_node = NULL;
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* It was handed over to this node, by the record too, and did not come to run there: what waits is
 * no guest. */
static void test_only_waits(void)
{
    struct watcher_world *w = watcher_world_new();
    w->guest_state = "incoming";
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_STARTUP");
    watcher_world_free(w);
}

/* A fault whose task keeps others off holds up a start, and a repair, as its mark would; any other
 * one does not. */
static void check_fault(const char *task, bool keeps_off)
{
    struct watcher_world *w = watcher_world_new();
    g_test_message("%s", task);
    change_object(w, "fault", "instance/" WEB1,
                  json_make("{s:s,s:s,s:i,s:s,s:s,s:i}", "subject_kind", "instance", "subject",
                            WEB1, "at_us", 1, "message", "nobody knows", "task", task, "owner",
                            900));
    w->guest_node = NULL;
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, keeps_off ? 0 : 1);
    watcher_world_free(w);
}

static void test_faults(void)
{
    for (const struct task_row *row = task_rows; row->word; row++)
        if (row->kind == TASK_KIND_instance)
            check_fault(row->word, row->flags & TASK_KEEPS_OFF);
    check_fault("", false);
}

/* --- deaths --- */

static guint one_ms(const char *from, const char *to, void *data)
{
    return 1;
}

/* Lets jobs end a while after they were submitted. */
static void play_ready(struct watcher_world *w, guint *age)
{
    for (guint n = 0; n < jobs(w); n++) {
        if (!job(w, n)->ended && ++*age > 20 && job_committed(w, n)) {
            *age = 0;
            play_job(w, n);
        }
    }
}

/* One repair, the watcher being killed after `moment` milliseconds; returns when it was over.
 * `repeats`: submissions that luxid knew already. */
static guint repair_with_kill(guint moment, guint luxid_pause_ms, guint *repeats)
{
    struct watcher_world *w = watcher_world_new();
    w->luxid_pause_ms = luxid_pause_ms;
    guint age = 0;
    guint at = 0;
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    passes(w, 1);
    /* So that its first pass begins with the loop below. */
    watcher_world_kill(w);
    set_node(w, NODE1, "offline");
    fake_set_delay(w->base.world, one_ms, NULL);
    watcher_world_start(w);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_autofree char *tags = NULL;
    while (tags == NULL || strstr(tags, "result:") == NULL) {
        g_assert_cmpuint(at, <, 20000);
        if (at++ == moment) {
            watcher_world_kill(w);
            watcher_world_start(w);
        }
        fake_advance(w->base.world, 1);
        play_ready(w, &age);
        if (at % 50 == 0)
            tags = (g_free(tags), web1_tags(w));
    }
    g_test_message("killed at %u: %s, %u repeats", moment, tags, w->repeats);
    g_assert_cmpstr(tags, ==, "result:failover:I:T:success:1+2");
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpuint(w->conflicts, ==, 0);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_FAILOVER");
    g_assert_cmpstr(job(w, 1)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    g_autofree char *result = web1_tag(w, "result:");
    g_auto(GStrv) parts = g_strsplit(result, ":", -1);
    g_autofree char *first = g_strdup_printf("%s/1-failover/1", parts[5]);
    g_autofree char *second = g_strdup_printf("%s/2-replace-disks/1", parts[5]);
    g_assert_cmpstr(job(w, 0)->request_id, ==, first);
    g_assert_cmpstr(job(w, 1)->request_id, ==, second);
    *repeats += w->repeats;
    watcher_world_free(w);
    return at;
}

static void test_kill_at_every_moment(void)
{
    guint repeats = 0;
    guint over = repair_with_kill(G_MAXUINT, 0, &repeats);
    for (guint moment = 0; moment < over; moment++)
        repair_with_kill(moment, 0, &repeats);
}

/* A job that was submitted but is not in the configuration yet cannot be found: it is submitted
 * again, and is the same. */
static void test_kill_while_luxid_is_slow(void)
{
    guint repeats = 0;
    guint over = repair_with_kill(G_MAXUINT, 60, &repeats);
    g_assert_cmpuint(repeats, ==, 0);
    for (guint moment = 0; moment < over; moment++)
        repair_with_kill(moment, 60, &repeats);
    g_assert_cmpuint(repeats, >, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watcher-tend/restart", test_restart);
    g_test_add_func("/watcher-tend/gives-up#ARP-68", test_restart_gives_up);
    g_test_add_func("/watcher-tend/restart-waits-for-its-node#SAF-92",
                    test_restart_waits_for_its_node);
    g_test_add_func("/watcher-tend/deaths-in-the-queue#ARP-68",
                    test_deaths_in_the_queue_are_no_tries);
    g_test_add_func("/watcher-tend/new-watcher-counts-on#SAF-31", test_new_watcher_counts_on);
    g_test_add_func("/watcher-tend/restored#SAF-02", test_restored);
    g_test_add_func("/watcher-tend/only-waits#SAF-17", test_only_waits);
    g_test_add_func("/watcher-tend/no-restart#ARP-17,ARP-45", test_no_restart);
    g_test_add_func("/watcher-tend/stale-report", test_stale_report);
    g_test_add_func("/watcher-tend/switched-off#SAF-11", test_switched_off);
    g_test_add_func("/watcher-tend/not-closed#SAF-11", test_not_closed);
    g_test_add_func("/watcher-tend/faults#SAF-84", test_faults);
    g_test_add_func("/watcher-tend/kill-at-every-moment#SAF-31,ARP-28,ARP-29,ARP-31",
                    test_kill_at_every_moment);
    g_test_add_func("/watcher-tend/kill-while-luxid-is-slow#SAF-31", test_kill_while_luxid_is_slow);
    return g_test_run();
}
