/* Auto-repair by what nodes answer, by advice and by the whole table; what it notices of the
 * cluster; records. */
#include "unit/core/world/watcher_world.h"

#include <string.h>

#define NOW 1700000000
#define ADVICE "eeeeeeee-0000-4000-8000-000000000001"

/* --- images that are gone --- */

static void test_replica_gone(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    w->tell_images = true;
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 0);
    const struct decision *room = latest_about(w, CLUSTER, "watcher/room");
    g_autofree char *cluster_check = g_strdup(room ? room->uuid : NULL);
    w->replica_gone = true;
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    /* It is the check of the instance that finds it, not that of its node or of the cluster. */
    g_assert_null(latest_about(w, NODE2, "watcher/node"));
    room = latest_about(w, CLUSTER, "watcher/room");
    g_assert_cmpstr(room ? room->uuid : NULL, ==, cluster_check);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->evidence->pdata[0], ==,
                    "node2 answers that it does not have the images of the replica");
    w->replica_gone = false;
    play_job(w, 0);
    look(w);
    passes(w, 3);
    assert_tags(w, "result:fix-storage:I:T:success:1");
    assert_state(w, "Healthy");
    watcher_world_free(w);
}

/* One of two images is gone: the replica is of no more use than without both. */
static void test_disk_gone(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    change_object(w, "instance", WEB1,
                  json_make("{s[{ss si}{ss si}]}", "disks", "uuid", DISK1, "size", 64, "uuid",
                            "dddddddd-0000-4000-8000-000000000002", "size", 64));
    w->tell_images = true;
    passes(w, 3);
    w->disk_gone = w->old_version = true; /* then nobody knows */
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->old_version = false;
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->evidence->pdata[0], ==,
                    "node2 answers that it does not have the image of disk 1 of the replica");
    w->disk_gone = false;
    play_job(w, 0);
    passes(w, 3);
    assert_tags(w, "result:fix-storage:I:T:success:1");
    watcher_world_free(w);
}

/* No evidence: one answer alone, a node that does not say what it has, a node that is silent, an
 * instance that a job is at work on. */
static void test_replica_not_known_to_be_gone(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "reinstall");
    passes(w, 3);
    w->replica_gone = true; /* but nodes do not say which images they have */
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->replica_gone = false;
    w->tell_images = true;
    passes(w, 2);
    for (guint i = 0; i < 5; i++) { /* never in two passes, one after the other */
        w->replica_gone = true;
        fake_advance(w->base.world, 1000);
        w->replica_gone = false;
        fake_advance(w->base.world, 1000);
    }
    g_assert_cmpuint(jobs(w), ==, 0);
    w->silent = NODE2;
    w->replica_gone = true;
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 0);
    change_object(
        w, "instance", WEB1,
        json_make("{ss sI}", "task_state", "replacing-disks", "task_owner", (json_int_t)0));
    w->silent = NULL;
    fake_advance(w->base.world, 700);
    for (guint i = 0; i < jobs(w); i++) /* the mark is mended, nothing is replaced */
        g_assert_cmpstr(job(w, i)->op_id, !=, "OP_INSTANCE_REPLACE_DISKS");
    watcher_world_free(w);
}

/* What a report has from memory is no evidence: neither of images that are gone, nor of disks that
 * have failed, nor of a guest that is down; and no silence of its node (SAF-91). */
static void test_late_is_no_news(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "reinstall");
    w->tell_images = true;
    passes(w, 3);
    w->late = NODE2;
    w->replica_gone = true;
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->replica_gone = false;
    w->late = NODE1;
    w->failed = NODE1;
    w->guest_state = "shutdown";
    w->mirror = "lost";
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->failed = NULL;
    fake_advance(w->base.world, 60000);
    g_assert_null(latest_about(w, NODE1, "watcher/node"));
    g_assert_cmpuint(jobs(w), ==, 0);
    /* One of an older version gives no report while its disks hang, but an answer. */
    w->refuses = NODE1;
    fake_advance(w->base.world, 60000);
    g_assert_null(latest_about(w, NODE1, "watcher/node"));
    w->refuses = w->late = NULL; /* the guest was off indeed */
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

/* Silence proves nothing: it is put on record once, with what a person can do, and its end too. */
static void test_silent_node(void)
{
    struct watcher_world *w = watcher_world_new();
    w->silent = NODE2;
    fake_advance(w->base.world, 25000);
    g_assert_null(latest_about(w, NODE2, "watcher/node"));
    fake_advance(w->base.world, 20000);
    const struct decision *said = latest_about(w, NODE2, "watcher/node");
    g_assert_cmpstr(said->state, ==, "Silent");
    g_assert_cmpint(said->verdict, ==, VERDICT_WAIT);
    g_assert_cmpstr(
        said->summary, ==,
        "It does not answer, which does not prove that it is dead: what needs it waits. "
        "If it is dead: fettle node modify node2 --offline yes --statement \"…\".");
    g_assert_cmpstr(said->evidence->pdata[1], ==,
                    "it is the primary node of 0 instances, the secondary of 1");
    guint records = decisions_count(w);
    watcher_world_kill(w); /* the next one tells nothing twice */
    watcher_world_start(w);
    fake_advance(w->base.world, 60000);
    g_assert_cmpuint(decisions_count(w), ==, records);
    w->silent = NULL;
    passes(w, 2);
    g_assert_cmpstr(latest_about(w, NODE2, "watcher/node")->state, ==, "Answers");
    w->silent = NODE2;
    fake_advance(w->base.world, 45000);
    set_node(w, NODE2, "offline");
    passes(w, 2);
    g_assert_cmpstr(latest_about(w, NODE2, "watcher/node")->state, ==, "Offline");
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* --- disks that fail --- */

/* Certain after 30 s and three passes, by a node's trial or by what its guest was answered; then
 * the guest is failed over, under one repair, and its replica comes last. */
static void check_disks_failed(const char *fault, guint io_errors, const char *io_stop,
                               const char *evidence)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    w->well = true;
    passes(w, 3);
    w->fault = fault;
    w->io_errors = io_errors;
    w->io_stop = io_stop;
    fake_advance(w->base.world, 28000);
    g_assert_null(latest_about(w, WEB1, "watcher/repair"));
    fake_advance(w->base.world, 5000);
    g_assert_cmpuint(jobs(w), ==, 0); /* a restart needs failover */
    assert_state(w, "Needs repair, disallowed");
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->evidence->pdata[0], ==, evidence);
    drop_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_FAILOVER");
    g_assert_nonnull(strstr(job(w, 0)->body, "\"shutdown_timeout\":0"));
    w->io_errors = 0;
    w->io_stop = NULL;
    play_job(w, 0);
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpstr(job(w, 1)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    play_job(w, 1);
    passes(w, 2);
    g_autofree char *tags = web1_tags(w);
    g_assert_nonnull(strstr(tags, "result:failover:I:T:success:1+2"));
    watcher_world_free(w);
}

/* It came, and no other. */
static void test_disk_errors_past(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    w->well = true;
    w->errors_past = true;
    passes(w, 3);
    w->io_errors = 1;
    fake_advance(w->base.world, 100000);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->errors_past = false; /* they come again */
    fake_advance(w->base.world, 40000);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_FAILOVER");
    watcher_world_free(w);
}

static void test_primary_disks_failed(void)
{
    check_disks_failed(NODE1, 0, NULL,
                       "primary node node1 cannot write to its disks: Input/output error");
    check_disks_failed(NULL, 3, NULL,
                       "primary node node1 has answered its guest with I/O errors from disk 0");
    check_disks_failed(NULL, 0, "failed",
                       "primary node node1 holds its guest for ever, although there is room: "
                       "requests of disk 0 fail");
}

/* No evidence: no space at all, a trial that does not come back, a guest that waits for room or
 * that does not answer, a node that does not, what comes and goes. */
static void test_disks_not_known_to_fail(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "reinstall");
    w->failed = NODE1;
    fake_advance(w->base.world, 60000);
    w->fault = NODE1;
    w->silent_trial = true;
    fake_advance(w->base.world, 60000);
    w->io_stop = "no-space"; /* and there is none elsewhere either */
    w->full = NODE2;
    fake_advance(w->base.world, 60000);
    w->io_stop = NULL;
    w->late_guest = true;
    w->io_errors = 1;
    fake_advance(w->base.world, 60000);
    w->io_errors = 0;
    w->late_guest = w->silent_trial = false;
    w->fault = w->failed = NULL;
    w->well = true;
    passes(w, 2);
    for (guint i = 0; i < 5; i++) {
        w->fault = NODE1;
        fake_advance(w->base.world, 20000);
        w->fault = NULL;
        passes(w, 1);
    }
    w->fault = NODE1;
    passes(w, 2); /* two of three */
    w->silent = NODE1;
    fake_advance(w->base.world, 60000);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_null(web1_tag(w, "pending"));
    watcher_world_free(w);
}

/* A watcher that has just begun knows too little to call a repair done. */
static void test_disks_failed_new_watcher(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    w->fault = NODE1;
    fake_advance(w->base.world, 33000);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_kill(w);
    end_job(w, 0, "error", job_error("node1 does not answer", "unreachable", false));
    watcher_world_start(w);
    passes(w, 3);
    g_autofree char *pending = web1_tag(w, "pending");
    g_assert_nonnull(pending);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->summary, ==,
                    "Whether disks of its nodes have failed is not certain yet.");
    fake_advance(w->base.world, 40000);
    g_assert_cmpuint(jobs(w), ==, 2);
    w->silent = NODE1; /* and then nobody can ask it */
    end_job(w, 1, "error", job_error("node1 does not answer", "unreachable", false));
    fake_advance(w->base.world, 100000);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_nonnull(strstr(latest_about(w, WEB1, "watcher/repair")->summary,
                            "Its primary node node1 does not answer, and failover needs it"));
    watcher_world_free(w);
}

/* It ended, and its own images are not known to be whole: it is not started from them again, with a
 * policy or without. */
static void test_unsound_is_not_started(void)
{
    struct watcher_world *w = watcher_world_new();
    end_guest(w, 0, false, "no");
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_state(w, "Needs repair, not enabled");
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_FAILOVER");
    watcher_world_free(w);
}

/* Nodes whose disks fail count for the storm brake as lost ones do. */
static void test_failed_disks_and_the_brake(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    passes(w, 3);
    w->io_errors = 1;
    fake_advance(w->base.world, 20000);
    w->fault = NODE3;
    fake_advance(w->base.world, 13000);
    /* That of node1 is certain, that of node3 is not yet: the first step waits for it. */
    g_assert_null(latest_about(w, CLUSTER, "watcher/brake"));
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpstr(
        latest_about(w, WEB1, "watcher/repair")->summary, ==,
        "It waits: disks of so many nodes may have failed that the storm brake would be "
        "pulled, and that is not certain yet.");
    fake_advance(w->base.world, 20000);
    g_assert_cmpuint(jobs(w), ==, 0);
    const struct decision *brake = latest_about(w, CLUSTER, "watcher/brake");
    g_assert_nonnull(brake);
    g_assert_nonnull(strstr(brake->evidence->pdata[0], "node1 has disks that fail since "));
    g_assert_nonnull(strstr(brake->evidence->pdata[1], "node3 has disks that fail since "));
    watcher_world_free(w);
}

/* --- disks without room --- */

/* Told when it begins and when it is over, and not in every pass; nothing is done without a policy.
 */
static void test_no_room(void)
{
    struct watcher_world *w = watcher_world_new();
    w->io_stop = "none";
    passes(w, 2);
    g_assert_null(latest_about(w, WEB1, "watcher/disk"));
    w->io_stop = "no-space"; /* and there is none elsewhere either */
    w->full = NODE2;
    passes(w, 3);
    const struct decision *told = latest_about(w, WEB1, "watcher/disk");
    g_assert_cmpstr(told->state, ==, "No-space");
    g_assert_cmpint(told->verdict, ==, VERDICT_WAIT);
    g_assert_nonnull(strstr(told->summary, "there is no room for its disks on node1"));
    g_autofree char *first = g_strdup(told->uuid);
    passes(w, 3);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/disk")->uuid, ==, first);
    w->io_stop = "failed";
    passes(w, 2);
    told = latest_about(w, WEB1, "watcher/disk");
    g_assert_cmpstr(told->state, ==, "Disk-failed");
    g_assert_cmpint(told->verdict, ==, VERDICT_LEAVE);
    w->io_stop = NULL; /* an older version does not tell: nothing is wrong with it */
    passes(w, 2);
    told = latest_about(w, WEB1, "watcher/disk");
    g_assert_cmpint(told->verdict, ==, VERDICT_DONE);
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* A policy that allows it moves it to its replica, if that has room. */
static void test_no_room_moves(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    w->io_stop = "no-space";
    w->full = NODE2;
    passes(w, 4);
    g_assert_cmpuint(jobs(w), ==, 0);
    w->full = NULL;
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_MIGRATE");
    g_assert_nonnull(strstr(latest_about(w, WEB1, "watcher/repair")->evidence->pdata[0],
                            "it stands still for lack of room on primary node node1"));
    watcher_world_free(w);
}

/* What is on a volume's back end is no other node's either: it waits, and that is told. */
static void test_no_room_for_a_volume(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    w->io_stop = "no-space";
    w->io_volume = "eeeeeeee-1111-4000-8000-000000000001";
    passes(w, 6);
    const struct decision *told = latest_about(w, WEB1, "watcher/disk");
    g_assert_cmpstr(told->state, ==, "Volume-no-space");
    g_assert_cmpint(told->verdict, ==, VERDICT_WAIT);
    g_assert_nonnull(strstr(told->summary, "because there is no room for its volume eeeeeeee"));
    g_assert_cmpuint(jobs(w), ==, 0);
    w->io_volume = NULL; /* now it is its own disks, which is seen by two passes first */
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

/* Also if there is room as soon as it stands still: the pass that sees it first only says it. */
static void test_no_room_twice(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    passes(w, 1);
    w->io_stop = "no-space";
    for (guint ms = 0; latest_about(w, WEB1, "watcher/disk") == NULL; ms += 10) {
        g_assert_cmpuint(ms, <, 5000);
        fake_advance(w->base.world, 10);
    }
    fake_advance(w->base.world, 300);
    g_assert_cmpuint(jobs(w), ==, 0);
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

static void test_filling(void)
{
    static const struct {
        guint used;
        const char *state;
    } steps[] = {{89, NULL},      {90, "Filling"}, {94, "Filling"}, {95, "Full"}, {94, "Full"},
                 {92, "Filling"}, {89, "Filling"}, {87, "Room"},    {99, "Full"}, {10, "Room"}};
    struct watcher_world *w = watcher_world_new();
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        w->disk_free = 4096 - 4096 * steps[i].used / 100 - 1;
        passes(w, 2);
        const struct decision *told = latest_about(w, NODE1, "watcher/disk");
        g_assert_cmpstr(told ? told->state : NULL, ==, steps[i].state);
    }
    g_assert_cmpuint(jobs(w), ==, 0);
    watcher_world_free(w);
}

/* --- the long rows of the table --- */

static void test_drained(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    set_node(w, NODE1, "drained");
    passes(w, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_MIGRATE");
    g_assert_nonnull(strstr(job(w, 0)->body, "\"allow_failover\":true"));
    play_job(w, 0);
    passes(w, 1);
    /* The replica is now on the drained node: it goes to another. */
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_cmpstr(job(w, 1)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    g_assert_nonnull(strstr(job(w, 1)->body, "replace_new_secondary"));
    play_job(w, 1);
    passes(w, 1);
    assert_tags(w, "result:migrate:I:T:success:1+2");
    watcher_world_free(w);
}

/* An older QEMU does not understand what a newer one wrote: nothing is tried until it is as new. */
static void test_drained_newer_qemu(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    w->newer = NODE1;
    set_node(w, NODE1, "drained");
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_state(w, "Pending repair");
    g_assert_cmpstr(
        latest_about(w, WEB1, "watcher/repair")->summary, ==,
        "it cannot go to node2: it has QEMU 8.0, and the guest runs under 8.1, which is "
        "newer");
    w->newer = NODE2;
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_MIGRATE");
    watcher_world_free(w);
}

/* Three steps: replace-disks, migrate, replace-disks. */
static void test_drained_and_offline(void)
{
    struct watcher_world *w = watcher_world_new();
    static const char *const expected[] = {"OP_INSTANCE_REPLACE_DISKS", "OP_INSTANCE_MIGRATE"};
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    set_node(w, NODE1, "drained");
    set_node(w, NODE2, "offline");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    for (guint i = 0; i < 2; i++) {
        passes(w, 1);
        g_assert_cmpuint(jobs(w), ==, i + 1);
        g_assert_cmpstr(job(w, i)->op_id, ==, expected[i]);
        play_job(w, i);
    }
    set_node(w, NODE2, "online"); /* room for the last step */
    passes(w, 1);
    g_assert_cmpstr(job(w, 2)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    play_job(w, 2);
    passes(w, 1);
    assert_tags(w, "result:migrate:I:T:success:1+2+3");
    watcher_world_free(w);
}

static void lose_both(struct watcher_world *w)
{
    add_node4(w);
    set_tag(w, TAG_CLUSTER, CLUSTER, "reinstall");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    change_object(w, "instance", WEB1, json_make("{ss}", "os", "tick"));
    set_node(w, NODE1, "offline");
    set_node(w, NODE2, "offline");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
}

static void test_reinstall(void)
{
    struct watcher_world *w = watcher_world_new();
    lose_both(w);
    const char *body = job(w, 0)->body;
    const char *recreate = strstr(body, "OP_INSTANCE_RECREATE_DISKS");
    const char *reinstall = strstr(body, "OP_INSTANCE_REINSTALL");
    const char *startup = strstr(body, "OP_INSTANCE_STARTUP");
    g_assert_true(recreate != NULL && reinstall > recreate && startup > reinstall);
    g_assert_true(g_str_has_suffix(job(w, 0)->request_id, "/1-reinstall/1"));
    /* Disks are new, the rest failed: never tried again, even for a passing reason. */
    w->fail_at = 1;
    end_job(w, 0, "error", job_error("busy", "resource_not_available", false));
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    assert_tags(w, "result:reinstall:I:T:failure:1");
    assert_state(w, "Failed");
    watcher_world_free(w);
}

/* The nodes are back when its job ends so. Returns its result tag. */
static char *end_when_back(const char *status, json_t *outcome)
{
    struct watcher_world *w = watcher_world_new();
    lose_both(w);
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    end_job(w, 0, status, outcome);
    set_node(w, NODE1, "online");
    set_node(w, NODE2, "online");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    char *result = web1_tag(w, "result:reinstall:");
    g_assert_nonnull(result);
    watcher_world_free(w);
    return result;
}

/* What broke off while it made disks anew may look healthy: it is no success. One that found no
 * room has changed nothing. */
static void test_reinstall_broke_off(void)
{
    g_autofree char *died = end_when_back("error", json_string("detected death of job 1"));
    g_assert_nonnull(strstr(died, ":failure:"));
    g_autofree char *refused =
        end_when_back("error", job_error("no node", "insufficient_resources", false));
    g_assert_nonnull(strstr(refused, ":success:"));
}

static struct watcher_world *with_node3_alone(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "reinstall");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    set_node(w, NODE1, "offline");
    set_node(w, NODE2, "offline");
    return w;
}

/* Nothing is given up while nobody can have the instance … */
static void test_reinstall_waits_for_room(void)
{
    struct watcher_world *w = with_node3_alone();
    set_node(w, NODE3, "drained");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 100);
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_tags(w, "pending:reinstall:I:T:");
    g_assert_nonnull(strstr(latest_about(w, WEB1, "watcher/repair")->summary,
                            "no node can be its new primary node"));
    add_node4(w);
    passes(w, 1);
    g_assert_nonnull(strstr(latest_about(w, WEB1, "watcher/repair")->summary,
                            "Step 1 of the repair: recreate-disks and reinstall."));
    watcher_world_free(w);
}

/* … but one without a replica is better off than a dead one. */
static void test_reinstall_without_replica(void)
{
    struct watcher_world *w = with_node3_alone();
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

static void test_local_drained(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "reinstall");
    change_object(
        w, "instance", DB1,
        json_make("{ss s[{ss si}]}", "disk_template", "file", "disks", "uuid", DISK1, "size", 64));
    set_node(w, NODE3, "drained");
    passes(w, 5);
    g_assert_cmpuint(jobs(w), ==, 0);
    const struct decision *said = latest_about(w, DB1, "watcher/repair");
    g_assert_cmpstr(said->state, ==, "Needs repair, by hand");
    g_assert_cmpstr(said->summary, ==,
                    "Its only data is there and alive: reinstalling would destroy it. Move it by "
                    "hand: fettle instance migrate.");
    watcher_world_free(w);
}

/* --- advice --- */

static void put_advice(struct watcher_world *w, const char *node, gint64 until)
{
    look(w);
    g_autofree char *said = job_commit(
        &w->base, 17,
        changes_of(config_put(w->view, "advice", ADVICE,
                              json_make("{ss ss ss ss ss ss sI}", "uuid", ADVICE, "author", "ops",
                                        "subject_kind", "node", "subject", node, "advice", "avoid",
                                        "reason", "new disks", "until", (json_int_t)until)),
                   NULL));
    g_assert_nonnull(strstr(said, "serial"));
}

static void test_advice(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    put_advice(w, NODE3, NOW + 100);
    set_node(w, NODE2, "offline");
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 0); /* the only node that is left is to be avoided */
    g_assert_nonnull(strstr(latest_about(w, WEB1, "watcher/repair")->summary,
                            "node3 is to be avoided until 2023-11-14 22:15:00 UTC, says ops"));
    fake_advance(w->base.world, 120000); /* its time has passed */
    g_assert_cmpuint(jobs(w), ==, 1);
    look(w);
    g_assert_cmpuint(config_count(w->view, "advice"), ==, 0);
    g_assert_cmpstr(latest_about(w, NODE3, "watcher/advice")->summary, ==,
                    "The time of the advice of ops to avoid it has passed.");
    watcher_world_free(w);
}

/* Another node is found: the record of the step names what was avoided. */
static void test_advice_named(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    change_object(w, "instance", DB1, json_make("{ss}", "primary_node", NODE3));
    put_advice(w, NODE1, 0);
    set_node(w, NODE3, "offline");
    passes(w, 2);
    const struct decision *said = latest_about(w, DB1, "watcher/repair");
    g_assert_cmpint(said->verdict, ==, VERDICT_ACT);
    g_assert_cmpstr(said->rejected->pdata[0], ==, "node1 is avoided: ops advises so: new disks");
    g_assert_cmpstr(said->evidence->pdata[1], ==, "node2 has room");
    watcher_world_free(w);
}

/* --- the cluster --- */

static void test_no_room_for_loss(void)
{
    struct watcher_world *w = watcher_world_new();
    passes(w, 3);
    g_assert_null(latest_about(w, CLUSTER, "watcher/room"));
    change_object(w, "instance", WEB1, json_make("{si}", "memory", 3000));
    change_object(w, "instance", DB1,
                  json_make("{si ss si ss}", "memory", 3000, "primary_node", NODE2, "generation", 3,
                            "admin_state", "down"));
    passes(w, 3);
    const struct decision *said = latest_about(w, CLUSTER, "watcher/room");
    g_assert_nonnull(said);
    g_assert_true(g_str_has_prefix(said->summary, "No room for loss of node node1."));
    g_assert_cmpuint(jobs(w), ==, 0); /* nothing is moved unasked */
    guint records = decisions_count(w);
    passes(w, 20);
    g_assert_cmpuint(decisions_count(w), ==, records);
    change_object(w, "instance", WEB1, json_make("{si}", "memory_next", 500)); /* what is started */
    passes(w, 2);
    g_assert_cmpint(latest_about(w, CLUSTER, "watcher/room")->verdict, ==, VERDICT_DONE);
    change_object(w, "instance", WEB1, json_make("{si}", "memory_next", 0));
    passes(w, 2);
    g_assert_cmpint(latest_about(w, CLUSTER, "watcher/room")->verdict, ==, VERDICT_LEAVE);
    w->memory = 8192;
    passes(w, 2);
    g_assert_cmpstr(latest_about(w, CLUSTER, "watcher/room")->state, ==, "Room for a loss");
    watcher_world_free(w);
}

/* --- records --- */

/* One record for a step, with its job. */
static void test_one_record_for_a_step(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_node(w, NODE1, "offline");
    passes(w, 1);
    guint records = decisions_count(w);
    const struct decision *said = latest_about(w, WEB1, "watcher/repair");
    g_assert_cmpstr(said->summary, ==, "Step 1 of the repair: failover.");
    g_assert_cmpuint(said->jobs->len, ==, 1);
    g_assert_cmpstr(said->jobs->pdata[0], ==, "1");
    passes(w, 30);
    g_assert_cmpuint(decisions_count(w), ==, records);
    play_job(w, 0);
    passes(w, 5);
    g_assert_cmpuint(decisions_count(w), ==, records + 1);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->summary, ==,
                    "Step 2 of the repair: replace-disks.");
    watcher_world_free(w);
}

/* Records about what exists no more go after a day. */
static void test_records_of_the_removed(void)
{
    struct watcher_world *w = watcher_world_new();
    set_node(w, NODE3, "offline");
    passes(w, 1);
    g_assert_nonnull(latest_about(w, DB1, "watcher/repair"));
    look(w);
    g_autofree char *said =
        job_commit(&w->base, 17,
                   changes_of(config_delete(w->view, "instance", DB1),
                              config_put(w->view, "removed", DB1,
                                         json_make("{ss ss si}", "uuid", DB1, "name", "db1",
                                                   "generation", 90)),
                              NULL));
    g_assert_nonnull(strstr(said, "serial"));
    change_object(w, "cluster", CLUSTER, json_make("{si}", "watcher_interval_ms", 600000));
    fake_advance(w->base.world, 20 * 3600 * 1000);
    g_assert_nonnull(latest_about(w, DB1, "watcher/repair"));
    fake_advance(w->base.world, 6 * 3600 * 1000);
    g_assert_null(latest_about(w, DB1, "watcher/repair"));
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watcher-sight/replica-gone#ARP-70", test_replica_gone);
    g_test_add_func("/watcher-sight/late-is-no-news#SAF-90,SAF-91", test_late_is_no_news);
    g_test_add_func("/watcher-sight/silent-node#ARP-68", test_silent_node);
    g_test_add_func("/watcher-sight/disk-gone#ARP-70", test_disk_gone);
    g_test_add_func("/watcher-sight/replica-not-known-to-be-gone",
                    test_replica_not_known_to_be_gone);
    g_test_add_func("/watcher-sight/primary-disks-failed#ARP-70,SAF-25", test_primary_disks_failed);
    g_test_add_func("/watcher-sight/disk-errors-past#ARP-70,SAF-25", test_disk_errors_past);
    g_test_add_func("/watcher-sight/disks-not-known-to-fail#SAF-25", test_disks_not_known_to_fail);
    g_test_add_func("/watcher-sight/disks-failed-and-a-new-watcher#SAF-25",
                    test_disks_failed_new_watcher);
    g_test_add_func("/watcher-sight/unsound-is-not-started#SAF-24", test_unsound_is_not_started);
    g_test_add_func("/watcher-sight/failed-disks-and-the-brake", test_failed_disks_and_the_brake);
    g_test_add_func("/watcher-sight/no-room#ARP-68,SAF-27", test_no_room);
    g_test_add_func("/watcher-sight/no-room-moves#SAF-27", test_no_room_moves);
    g_test_add_func("/watcher-sight/no-room-for-a-volume#SAF-27", test_no_room_for_a_volume);
    g_test_add_func("/watcher-sight/no-room-is-seen-twice#SAF-27,ARP-70", test_no_room_twice);
    g_test_add_func("/watcher-sight/filling#ARP-68", test_filling);
    g_test_add_func("/watcher-sight/drained#ARP-10,ARP-61", test_drained);
    g_test_add_func("/watcher-sight/drained-newer-qemu#SAF-17,ARP-57", test_drained_newer_qemu);
    g_test_add_func("/watcher-sight/drained-and-offline#ARP-30,ARP-61", test_drained_and_offline);
    g_test_add_func("/watcher-sight/reinstall#ARP-12,ARP-54", test_reinstall);
    g_test_add_func("/watcher-sight/reinstall-broke-off#ARP-54", test_reinstall_broke_off);
    g_test_add_func("/watcher-sight/reinstall-waits-for-room#ARP-57",
                    test_reinstall_waits_for_room);
    g_test_add_func("/watcher-sight/reinstall-without-replica#ARP-12",
                    test_reinstall_without_replica);
    g_test_add_func("/watcher-sight/local-drained#ARP-62,ARP-68", test_local_drained);
    g_test_add_func("/watcher-sight/advice#ARP-69", test_advice);
    g_test_add_func("/watcher-sight/advice-named#ARP-69", test_advice_named);
    g_test_add_func("/watcher-sight/no-room-for-loss#ARP-71", test_no_room_for_loss);
    g_test_add_func("/watcher-sight/one-record-for-a-step#ARP-68", test_one_record_for_a_step);
    g_test_add_func("/watcher-sight/records-of-the-removed", test_records_of_the_removed);
    return g_test_run();
}
