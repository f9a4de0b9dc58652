/*
 * Rows of the requirements of auto-repair that take more than one instance, more than one node
 * group, or much time: who is repaired beside whom, what a thousand quiet passes do, what many
 * repairs have in common.
 */
#include "core/repair/repair_case.h"
#include "unit/core/world/watcher_world.h"

#include <string.h>

#define NOW 1700000000 /* wall clock of the fake world when it begins */
#define OTHER_GROUP "99999999-0000-4000-8000-000000000002"
#define MORE(n) "aaaaaaaa-0000-4000-8000-0000000001" n

static const char *const more[] = {MORE("01"), MORE("02"), MORE("03"), MORE("04"), MORE("05")};

static void commit_one(struct watcher_world *w, struct change *change)
{
    GPtrArray *changes = changes_of(change, NULL);
    g_autofree char *said = g_str_equal(change->kind, "job")
                                ? daemon_commit(&w->base, w->base.luxid, changes)
                                : job_commit(&w->base, 17, changes);
    g_assert_nonnull(strstr(said, "serial"));
}

/* Diskless guests more1, more2, … on a node: they fail over to any other. */
static void put_guests(struct watcher_world *w, guint count, const char *node)
{
    for (guint i = 0; i < count; i++) {
        g_autofree char *name = g_strdup_printf("more%u", i + 1);
        look(w);
        commit_one(w, config_put(w->view, "instance", more[i],
                                 json_make("{ss ss ss si ss si}", "uuid", more[i], "name", name,
                                           "disk_template", "diskless", "memory", 64,
                                           "primary_node", node, "generation", 1)));
    }
}

/* Auto-repair's tags of an instance with this prefix. */
static guint tags_with(struct watcher_world *w, const char *instance, const char *prefix)
{
    g_autofree char *whole = g_strconcat(TAG_PREFIX, prefix, NULL);
    guint count = 0;
    look(w);
    g_autoptr(GPtrArray) tags = config_tags(w->view, TAG_INSTANCE, instance);
    for (guint i = 0; i < tags->len; i++)
        count += g_str_has_prefix(tags->pdata[i], whole) ? 1 : 0;
    return count;
}

/* Names of the instances that got a job, in order, joined by blanks. */
static char *who_got_jobs(const struct watcher_world *w)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < jobs(w); i++)
        g_string_append_printf(names, "%s%s", i > 0 ? " " : "", job(w, i)->instance);
    return g_string_free(g_steal_pointer(&names), FALSE);
}

/* --- two node groups --- */

/* web1 and more1 to more5 are of one group, on node1; db1 of another, on node3. node2 has room. */
static struct watcher_world *two_groups(void)
{
    struct watcher_world *w = watcher_world_new();
    look(w);
    commit_one(w, config_put(w->view, "nodegroup", OTHER_GROUP,
                             json_make("{ss ss}", "uuid", OTHER_GROUP, "name", "other")));
    change_object(w, "node", NODE3, json_make("{ss}", "group", OTHER_GROUP));
    change_object(w, "cluster", CLUSTER, json_make("{si}", "repair_storm_percent", 100));
    put_guests(w, 5, NODE1);
    return w;
}

static void lose_both_groups(struct watcher_world *w)
{
    set_tag(w, TAG_INSTANCE, DB1, "suspend"); /* until both are lost */
    set_node(w, NODE1, "offline");
    set_node(w, NODE3, "offline");
    drop_tag(w, TAG_INSTANCE, DB1, "suspend");
    passes(w, 10);
}

static void check_untouched(struct watcher_world *w, const char *state)
{
    g_assert_cmpuint(tags_with(w, WEB1, "pending:"), ==, 0);
    g_assert_cmpstr(latest_about(w, WEB1, "watcher/repair")->state, ==, state);
    for (guint i = 0; i < G_N_ELEMENTS(more); i++) {
        g_assert_cmpuint(tags_with(w, more[i], ""), ==, 0);
        g_assert_cmpstr(latest_about(w, more[i], "watcher/repair")->state, ==, state);
    }
}

/* One group is suspended: its six broken instances stay as they are, the other group's is mended.
 */
static void test_group_suspended(void)
{
    struct watcher_world *w = two_groups();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_tag(w, TAG_NODEGROUP, GROUP, "suspend");
    lose_both_groups(w);
    assert_says(who_got_jobs(w), "db1");
    g_assert_cmpuint(tags_with(w, DB1, "pending:failover:"), ==, 1);
    check_untouched(w, "Suspended");
    drop_tag(w, TAG_NODEGROUP, GROUP, "suspend");
    passes(w, 1);
    g_assert_cmpuint(tags_with(w, more[4], "pending:failover:"), ==, 1);
    watcher_world_free(w);
}

/* The cluster is suspended, one group enabled again: that one, and no other. */
static void test_group_enabled_again(void)
{
    struct watcher_world *w = two_groups();
    set_tag(w, TAG_CLUSTER, CLUSTER, "suspend");
    set_tag(w, TAG_NODEGROUP, OTHER_GROUP, "failover");
    lose_both_groups(w);
    assert_says(who_got_jobs(w), "db1");
    check_untouched(w, "Suspended");
    set_tag(w, TAG_INSTANCE, more[2], "failover"); /* and one instance of the other */
    passes(w, 2);
    assert_says(who_got_jobs(w), "db1 more3");
    g_assert_cmpuint(tags_with(w, more[1], ""), ==, 0);
    watcher_world_free(w);
}

/* One group has a policy, nothing else: the others are not enabled. Its tag stays. */
static void test_group_enabled(void)
{
    struct watcher_world *w = two_groups();
    set_tag(w, TAG_NODEGROUP, OTHER_GROUP, "failover");
    lose_both_groups(w);
    assert_says(who_got_jobs(w), "db1");
    check_untouched(w, "Needs repair, not enabled");
    look(w);
    g_assert_nonnull(
        config_get(w->view, "tag", "nodegroup/" OTHER_GROUP "/" TAG_PREFIX "failover", NULL));
    watcher_world_free(w);
}

/* --- nothing is broken --- */

/* A thousand passes, under each policy in turn; db1 is stopped, and that is no fault either. */
static void test_healthy(void)
{
    static const char *const types[] = {"fix-storage", "migrate", "failover", "reinstall"};
    struct watcher_world *w = watcher_world_new();
    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        set_tag(w, TAG_CLUSTER, CLUSTER, types[i]);
        set_tag(w, TAG_INSTANCE, WEB1, types[i]);
        passes(w, 250);
        g_assert_cmpuint(jobs(w), ==, 0);
        g_assert_cmpuint(decisions_count(w), ==, 0);
        assert_tags(w, types[i]);
        g_assert_cmpuint(tags_with(w, DB1, ""), ==, 0);
        drop_tag(w, TAG_CLUSTER, CLUSTER, types[i]);
        drop_tag(w, TAG_INSTANCE, WEB1, types[i]);
    }
    watcher_world_free(w);
}

/* A tag that says success makes nobody healthy. */
static void test_success_is_no_health(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_INSTANCE, WEB1, "result:fix-storage:old:1600000000:success:3");
    set_node(w, NODE2, "offline");
    passes(w, 5);
    assert_state(w, "Needs repair, not enabled");
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    passes(w, 1);
    assert_state(w, "Pending repair");
    watcher_world_free(w);
}

/* --- many repairs, long ones --- */

/* Each repair has an id that no other has; its tags and its job carry the same. */
static void test_ids(void)
{
    struct watcher_world *w = watcher_world_new();
    g_autoptr(GHashTable) ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    change_object(w, "cluster", CLUSTER, json_make("{si}", "repair_max_per_hour", 100000));
    set_tag(w, TAG_INSTANCE, WEB1, "fix-storage");
    for (guint i = 0; i < 25; i++) {
        const char *broken = i % 2 == 0 ? NODE2 : NODE3;
        set_node(w, broken, "offline");
        passes(w, 1);
        g_assert_cmpuint(jobs(w), ==, i + 1);
        g_autofree char *pending = web1_tag(w, "pending:");
        g_auto(GStrv) words = g_strsplit(pending, ":", -1);
        g_assert_true(g_hash_table_add(ids, g_strdup(words[5])));
        g_autofree char *request = g_strconcat(words[5], "/1-replace-disks/1", NULL);
        g_assert_cmpstr(job(w, i)->request_id, ==, request);
        play_job(w, i);
        passes(w, 1);
        g_autofree char *result = g_strdup_printf("result:fix-storage:%s:", words[5]);
        g_assert_cmpuint(tags_with(w, WEB1, result), ==, 1);
        g_assert_cmpuint(tags_with(w, WEB1, "pending:"), ==, 0);
        set_node(w, broken, "online");
    }
    watcher_world_free(w);
}

/* Ten thousand of them, begun one after the other. */
static void test_many_ids(void)
{
    struct watcher_world *w = watcher_world_new();
    g_autoptr(GHashTable) ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    set_node(w, NODE2, "offline");
    passes(w, 1);
    assert_state(w, "Needs repair, not enabled");
    for (guint i = 0; i < 10000; i++) {
        struct repair_case *subject = repair_case_examine(w->watcher, WEB1);
        g_autoptr(GPtrArray) changes = watcher_changes_new();
        subject->policy.kind = REPAIR_POLICY_ENABLED;
        subject->policy.type = REPAIR_FIX_STORAGE;
        g_assert_true(repair_triage(w->watcher, subject, changes));
        const struct change *tag = changes->pdata[0];
        g_assert_cmpstr(tag->kind, ==, "tag");
        g_auto(GStrv) words =
            g_strsplit(json_string_value(json_object_get(tag->object, "tag")), ":", -1);
        g_assert_cmpstr(words[3], ==, "pending");
        g_assert_true(g_hash_table_add(ids, g_strdup(words[5])));
        repair_case_free(subject);
    }
    g_assert_cmpuint(g_hash_table_size(ids), ==, 10000);
    watcher_world_free(w);
}

/* A job of half an hour: nothing moves, and nothing is said again. */
static void test_long_job(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_node(w, NODE1, "offline");
    passes(w, 1);
    g_autofree char *before = web1_tag(w, "pending:");
    guint records = decisions_count(w);
    fake_advance(w->base.world, 30 * 60 * 1000);
    g_autofree char *after = web1_tag(w, "pending:");
    g_assert_cmpstr(before, ==, after);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpuint(decisions_count(w), ==, records);
    watcher_world_free(w);
}

/* The newest ten of the others stay beside a failure, which does not count. */
static void test_results_beside_a_failure(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
    for (guint i = 0; i < LIMIT_RESULT_TAGS + 3; i++) {
        g_autofree char *text = g_strdup_printf("result:failover:%02u:16000000%02u:%s:", i, i,
                                                i % 2 == 0 ? "success" : "enoperm");
        set_tag(w, TAG_INSTANCE, WEB1, text);
    }
    set_node(w, NODE1, "offline");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    passes(w, 1);
    end_job(w, 0, "error", job_error("the disk broke", "storage_error", true));
    passes(w, 2);
    assert_state(w, "Failed");
    g_assert_cmpuint(tags_with(w, WEB1, "result:"), ==, LIMIT_RESULT_TAGS + 1);
    for (guint i = 0; i < LIMIT_RESULT_TAGS + 3; i++) {
        g_autofree char *text = g_strdup_printf("result:failover:%02u:", i);
        g_assert_cmpuint(tags_with(w, WEB1, text), ==, i < 3 ? 0 : 1);
    }
    g_autofree char *failure = web1_tag(w, "pending:");
    g_assert_null(failure);
    watcher_world_free(w);
}

/* A copy that runs is waited for, also when the guest has to leave; one that nobody carries on is
 * made anew. */
static void test_copy_is_waited_for(void)
{
    struct watcher_world *w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "migrate");
    w->mirror = "syncing";
    change_object(w, "replica", REPLICA1, json_make("{ss si}", "state", "syncing", "sync", 8));
    set_node(w, NODE1, "drained");
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, 0);
    /* So is one that a repair asked for from outside finds, and that is told. */
    set_tag(w, TAG_INSTANCE, WEB1, "pending:migrate:X:1600000000:");
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, 0);
    assert_tags(w, "pending:migrate:I:T:");
    const struct decision *said = latest_about(w, WEB1, "watcher/repair");
    g_assert_cmpstr(said->summary, ==, "Its replica is being copied.");
    g_assert_cmpstr(said->next_check, ==, "when the copy is ready");
    set_replica(w, "in-sync");
    w->mirror = "ready";
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_MIGRATE");
    watcher_world_free(w);
    w = watcher_world_new();
    set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
    w->mirror = "none";
    change_object(w, "replica", REPLICA1, json_make("{ss si}", "state", "syncing", "sync", 8));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    watcher_world_free(w);
}

/* Under a limit guests that are down come before the copy of one that is up again, however old. */
static void test_down_before_copies(void)
{
    struct watcher_world *w = watcher_world_new();
    change_object(w, "cluster", CLUSTER, json_make("{si}", "repair_max_running", 1));
    put_guests(w, 2, NODE1);
    set_tag(w, TAG_INSTANCE, WEB1, "failover");
    set_node(w, NODE1, "offline");
    passes(w, 2);
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    passes(w, 2);
    play_job(w, 0);
    passes(w, 1);
    for (guint i = 0; i < 2; i++) {
        change_object(w, "instance", more[i],
                      json_make("{ss si}", "primary_node", NODE2, "generation", 2));
        end_job(w, 1 + i, "success", NULL);
        passes(w, 1);
    }
    assert_says(who_got_jobs(w), "web1 more1 more2 web1");
    g_assert_cmpstr(job(w, 3)->op_id, ==, "OP_INSTANCE_REPLACE_DISKS");
    watcher_world_free(w);
}

/* --- one job for several --- */

static void put_common_job(struct watcher_world *w, const char *status)
{
    look(w);
    commit_one(w, config_put(w->view, "job", "500",
                             json_make("{si s[{s{ss} ss}] ss}", "id", 500, "ops", "input", "OP_ID",
                                       "OP_NODE_EVACUATE", "status", status, "status", status)));
}

/* A tool has all guests of a dead node moved by one job, which it names in the tags of each: each
 * has its own repair, which ends by its own health. */
static void test_common_job(void)
{
    struct watcher_world *w = watcher_world_new();
    put_guests(w, 5, NODE1);
    set_tag(w, TAG_CLUSTER, CLUSTER, "suspend");
    set_node(w, NODE1, "offline");
    put_common_job(w, "running");
    for (guint i = 0; i < 5; i++) {
        g_autofree char *text = g_strdup_printf("pending:failover:tool-%u:1600000000:500", i);
        set_tag(w, TAG_INSTANCE, more[i], text);
    }
    drop_tag(w, TAG_CLUSTER, CLUSTER, "suspend");
    passes(w, 20);
    g_assert_cmpuint(jobs(w), ==, 0); /* it is under way: none of the five gets another */
    for (guint i = 0; i < 4; i++)     /* it moves all but the last */
        change_object(w, "instance", more[i],
                      json_make("{ss si}", "primary_node", NODE2, "generation", 2));
    passes(w, 5);
    for (guint i = 0; i < 5; i++)
        g_assert_cmpuint(tags_with(w, more[i], "pending:failover:tool-"), ==, 1);
    put_common_job(w, "success");
    passes(w, 2);
    for (guint i = 0; i < 4; i++) {
        g_autofree char *prefix = g_strdup_printf("result:failover:tool-%u:", i);
        g_assert_cmpuint(tags_with(w, more[i], prefix), ==, 1);
        g_assert_cmpuint(tags_with(w, more[i], "pending:"), ==, 0);
        g_assert_cmpstr(latest_about(w, more[i], "watcher/repair")->state, ==, "Healthy");
    }
    assert_says(who_got_jobs(w), "more5");
    g_assert_cmpuint(tags_with(w, more[4], "pending:failover:tool-4:1600000000:500+1"), ==, 1);
    watcher_world_free(w);
}

/* All new tags stand before the first job, also of repairs that were pending before. */
static void test_fresh_before_jobs(void)
{
    struct watcher_world *w = watcher_world_new();
    put_guests(w, 5, NODE1);
    change_object(w, "cluster", CLUSTER, json_make("{si}", "repair_max_running", 10));
    change_object(w, "instance", DB1, json_make("{ss si}", "primary_node", NODE1, "generation", 3));
    set_tag(w, TAG_CLUSTER, CLUSTER, "suspend");
    set_node(w, NODE1, "offline");
    for (guint i = 0; i < 3; i++) {
        g_autofree char *text = g_strdup_printf("pending:failover:before-%u:1600000000:", i);
        set_tag(w, TAG_INSTANCE, more[i], text);
    }
    set_tag(w, TAG_CLUSTER, CLUSTER, "failover");
    guint from = fake_calls(w->base.world)->len;
    drop_tag(w, TAG_CLUSTER, CLUSTER, "suspend");
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 7);
    const GPtrArray *calls = fake_calls(w->base.world);
    guint tagged = 0, at = from;
    for (; at < calls->len && strstr(calls->pdata[at], "SubmitJob") == NULL; at++) {
        const char *call = calls->pdata[at];
        while ((call = strstr(call, "\"tag\":\"" TAG_PREFIX "pending:")) != NULL) {
            call += strlen("\"tag\":\"");
            tagged += g_str_has_prefix(call, TAG_PREFIX "pending:failover:before-") ? 0 : 1;
        }
    }
    g_assert_cmpuint(at, <, calls->len);
    g_assert_cmpuint(tagged, ==, 4); /* web1, db1, more4, more5 */
    watcher_world_free(w);
}

/* --- apart from the other duties --- */

/* Repair is switched off, or has an interval of its own: a guest that is down is started all the
 * same, within the interval of the other duties. */
static void test_other_duties(void)
{
    for (guint off = 0; off < 2; off++) {
        struct watcher_world *w = watcher_world_new();
        change_object(w, "cluster", CLUSTER,
                      json_make("{si si sb}", "watcher_interval_ms", 5000, "repair_interval_ms",
                                off ? 0 : 600000, "repair_shadow", (int)off));
        set_tag(w, TAG_CLUSTER, CLUSTER, "fix-storage");
        change_object(w, "instance", WEB1, json_make("{ss}", "admin_state", "up"));
        fake_advance(w->base.world, 20000);
        g_assert_cmpuint(jobs(w), ==, 0);
        w->guest_node = NULL;
        set_node(w, NODE2, "drained");
        fake_advance(w->base.world, 6000);
        g_assert_cmpuint(jobs(w), ==, 1);
        g_assert_cmpstr(job(w, 0)->op_id, ==, "OP_INSTANCE_STARTUP");
        assert_tags(w, "");
        watcher_world_free(w);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watcher-rows/group-suspended#ARP-17,ARP-18", test_group_suspended);
    g_test_add_func("/watcher-rows/group-enabled-again#ARP-26,ARP-27", test_group_enabled_again);
    g_test_add_func("/watcher-rows/group-enabled#ARP-06,ARP-50", test_group_enabled);
    g_test_add_func("/watcher-rows/healthy#ARP-03,ARP-42", test_healthy);
    g_test_add_func("/watcher-rows/success-is-no-health#ARP-41", test_success_is_no_health);
    g_test_add_func("/watcher-rows/ids#ARP-29", test_ids);
    g_test_add_func("/watcher-rows/many-ids#ARP-29", test_many_ids);
    g_test_add_func("/watcher-rows/long-job#ARP-51", test_long_job);
    g_test_add_func("/watcher-rows/results-beside-a-failure", test_results_beside_a_failure);
    g_test_add_func("/watcher-rows/copy-is-waited-for#ARP-62", test_copy_is_waited_for);
    g_test_add_func("/watcher-rows/down-before-copies", test_down_before_copies);
    g_test_add_func("/watcher-rows/common-job#ARP-64", test_common_job);
    g_test_add_func("/watcher-rows/fresh-before-jobs#ARP-63", test_fresh_before_jobs);
    g_test_add_func("/watcher-rows/other-duties#ARP-02", test_other_duties);
    return g_test_run();
}
