/* Too few master candidates: what the watcher waits for, submits, and puts on record. */
#include "unit/core/world/watcher_world.h"

#include <string.h>

#define AUTHOR "watcher/candidates"

/* Four nodes; node1, the master, and node2 are candidates, and there should be three. */
static struct watcher_world *two_of_three_with(const char *engine)
{
    struct watcher_world *w = watcher_world_new_with(engine, NULL);
    add_node4(w);
    change_object(w, "node", NODE2, json_make("{sb}", "master_candidate", 1));
    change_object(w, "cluster", CLUSTER, json_make("{si}", "candidate_pool_size", 3));
    return w;
}

static struct watcher_world *two_of_three(void)
{
    return two_of_three_with("sqlite");
}

static void assert_said(struct watcher_world *w, const char *state, const char *summary)
{
    const struct decision *said = latest_about(w, CLUSTER, AUTHOR);
    g_assert_nonnull(said);
    g_assert_cmpstr(said->summary, ==, summary);
    g_assert_cmpstr(said->state, ==, state);
}

static guint records(struct watcher_world *w)
{
    guint count = 0;
    look(w);
    g_autoptr(GPtrArray) all = config_list(w->view, "decision");
    for (guint i = 0; i < all->len; i++)
        count += g_str_equal(((const struct decision *)all->pdata[i])->author, AUTHOR);
    return count;
}

static void promote(struct watcher_world *w, const char *node)
{
    change_object(w, "node", node, json_make("{sb}", "master_candidate", 1));
}

static void test_promoted(void)
{
    struct watcher_world *w = two_of_three();
    passes(w, LIMIT_POOL_PATIENCE_S - 2);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_null(latest_about(w, CLUSTER, AUTHOR));
    passes(w, 4);
    g_assert_cmpuint(jobs(w), ==, 1);
    assert_said(w, "Too few master candidates",
                "2 of 3 master candidates are usable (candidate_pool_size); node3 becomes one.");
    g_assert_cmpint(latest_about(w, CLUSTER, AUTHOR)->verdict, ==, VERDICT_ACT);
    g_assert_nonnull(strstr(job(w, 0)->body, "\"OP_NODE_SET_PARAMS\""));
    g_assert_nonnull(strstr(job(w, 0)->body, "\"node_name\":\"node3\""));
    g_assert_nonnull(strstr(job(w, 0)->body, "\"master_candidate\":\"yes\""));
    g_assert_true(g_str_has_prefix(job(w, 0)->request_id, "promote/" NODE3 "/"));
    passes(w, 60); /* one at a time */
    g_assert_cmpuint(jobs(w), ==, 1);
    promote(w, NODE3);
    end_job(w, 0, "success", NULL);
    passes(w, 3);
    assert_said(w, "Enough master candidates",
                "There are 3 usable master candidates, as there should be.");
    passes(w, 60);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpuint(records(w), ==, 2);
    watcher_world_free(w);
}

/* A person takes one off the list and puts another on it: that is nobody's shortage. */
/* No well node fits: the best sick one is taken, and named with what is wrong with it. */
static void test_sick(void)
{
    struct watcher_world *w = two_of_three();
    set_node(w, NODE4, "drained");
    w->fault = NODE3;
    w->fault_kind = "memory";
    passes(w, LIMIT_POOL_PATIENCE_S + 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    assert_said(w, "Too few master candidates",
                "2 of 3 master candidates are usable (candidate_pool_size); node3 becomes one. "
                "node3 cannot write to its disks: Input/output error; it is taken all the same.");
    watcher_world_free(w);
}

static void test_moment(void)
{
    struct watcher_world *w = two_of_three();
    for (guint i = 0; i < 4; i++) {
        passes(w, LIMIT_POOL_PATIENCE_S - 5);
        change_object(w, "node", NODE4, json_make("{sb}", "master_candidate", i % 2 == 0));
    }
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(records(w), ==, 0);
    watcher_world_free(w);
}

/* A candidate that reboots brings nobody; one that is away for long brings advice, once. */
static void test_silent(void)
{
    struct watcher_world *w = two_of_three();
    promote(w, NODE3);
    w->silent = NODE2;
    passes(w, LIMIT_CANDIDATE_SILENT_S - 10);
    g_assert_cmpuint(records(w), ==, 0);
    w->silent = NULL;
    passes(w, 5);
    w->silent = NODE2;
    passes(w, LIMIT_CANDIDATE_SILENT_S - 10);
    g_assert_cmpuint(records(w), ==, 0);
    passes(w, 10 + LIMIT_POOL_PATIENCE_S + 120);
    g_assert_cmpuint(records(w), ==, 1);
    assert_said(
        w, "Too few master candidates",
        "2 of 3 master candidates are usable (candidate_pool_size). node2 still counts: with one "
        "more their number would be even, a majority would need one more of them, and the loss of "
        "no more could be borne; if it is dead: fettle node modify node2 --offline yes --statement "
        "\"…\".");
    g_assert_cmpuint(jobs(w), ==, 0);
    change_object(w, "node", NODE2, json_make("{sb}", "offline", 1));
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_nonnull(strstr(job(w, 0)->body, "\"node_name\":\"node4\""));
    watcher_world_free(w);
}

/* A master that hears nobody knows nothing. */
static void test_deaf(void)
{
    struct watcher_world *w = two_of_three();
    w->silent = "all";
    passes(w, 500);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(records(w), ==, 0);
    watcher_world_free(w);
}

static void test_nobody(void)
{
    struct watcher_world *w = two_of_three();
    set_node(w, NODE3, "drained");
    set_node(w, NODE4, "offline");
    passes(w, 200);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(records(w), ==, 1);
    assert_said(w, "Too few master candidates",
                "2 of 3 master candidates are usable (candidate_pool_size), and no other node can "
                "become one. Add a node, bring one back, or say that fewer will do: fettle cluster "
                "modify --candidate-pool-size 2.");
    const struct decision *said = latest_about(w, CLUSTER, AUTHOR);
    g_assert_cmpint(said->verdict, ==, VERDICT_LEAVE);
    g_assert_cmpuint(said->rejected->len, ==, 2);
    g_assert_cmpstr(said->rejected->pdata[0], ==, "node3 is drained");
    watcher_world_kill(w);
    watcher_world_start(w); /* nor does another watcher say it again */
    passes(w, 100);
    g_assert_cmpuint(records(w), ==, 1);
    set_node(w, NODE4, "online");
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

/* Nodes that are silent for a moment, one after the other, are no news. */
static void test_no_news(void)
{
    static const char *const turns[] = {NODE3, NULL, NODE4, NULL, NODE2, NULL};
    struct watcher_world *w = two_of_three();
    change_object(w, "cluster", CLUSTER, json_make("{sb}", "repair_shadow", 1));
    passes(w, LIMIT_POOL_PATIENCE_S + 2);
    g_assert_cmpuint(records(w), ==, 1);
    for (guint i = 0; i < 4 * G_N_ELEMENTS(turns); i++) {
        w->silent = turns[i % G_N_ELEMENTS(turns)];
        passes(w, 7);
    }
    g_assert_cmpuint(records(w), ==, 1);
    watcher_world_free(w);
}

static void test_even(void)
{
    struct watcher_world *w = two_of_three();
    change_object(w, "node", NODE2, json_make("{sb sb}", "master_candidate", 0, "drained", 1));
    set_node(w, NODE3, "offline");
    passes(w, 200);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(records(w), ==, 1);
    assert_said(
        w, "Too few master candidates",
        "1 of 3 master candidates is usable (candidate_pool_size). With node4 their "
        "number would be even: a majority would need one more of them, and the loss of no "
        "more could be borne; if you want it: fettle node modify node4 --master-candidate yes.");
    watcher_world_free(w);
}

static void test_brake(void)
{
    struct watcher_world *w = two_of_three();
    look(w);
    json_t *brake = json_make("{si ss}", "since", 1700000000, "why", "Half of it burned.");
    change_object(w, "cluster", CLUSTER, json_make("{si}", "candidate_pool_size", 1));
    g_autofree char *said = job_commit(
        &w->base, 17, changes_of(config_put(w->view, "repair_brake", "cluster", brake), NULL));
    g_assert_nonnull(strstr(said, "serial"));
    change_object(w, "cluster", CLUSTER, json_make("{si}", "candidate_pool_size", 3));
    passes(w, 100);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(records(w), ==, 1);
    assert_said(w, "Too few master candidates",
                "2 of 3 master candidates are usable (candidate_pool_size); node3 would become "
                "one. The storm brake is on: Half of it burned. It is released by: fettle repair "
                "continue.");
    g_assert_cmpint(latest_about(w, CLUSTER, AUTHOR)->verdict, ==, VERDICT_WAIT);
    look(w);
    g_autofree char *gone = job_commit(
        &w->base, 17, changes_of(config_delete(w->view, "repair_brake", "cluster"), NULL));
    g_assert_nonnull(strstr(gone, "serial"));
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

static void test_shadow(void)
{
    struct watcher_world *w = two_of_three();
    change_object(w, "cluster", CLUSTER, json_make("{sb}", "repair_shadow", 1));
    passes(w, 100);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(records(w), ==, 1);
    assert_said(w, "Too few master candidates, shadow mode",
                "Shadow mode: 2 of 3 master candidates are usable (candidate_pool_size); node3 "
                "would become one.");
    change_object(w, "cluster", CLUSTER, json_make("{sb}", "repair_shadow", 0));
    passes(w, 3);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

/* Another node's turn, after a pause that grows; a watcher that was started anew waits for the job
 * of the one before. */
static void test_failure(void)
{
    struct watcher_world *w = two_of_three();
    passes(w, LIMIT_POOL_PATIENCE_S + 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_kill(w);
    watcher_world_start(w);
    passes(w, LIMIT_POOL_PATIENCE_S + 10);
    g_assert_cmpuint(jobs(w), ==, 1);
    end_job(w, 0, "error", job_error("node3 has caught fire", "environment", false));
    passes(w, 1);
    g_assert_cmpuint(jobs(w), ==, 1);
    assert_said(w, "Too few master candidates",
                "2 of 3 master candidates are usable (candidate_pool_size). Job 1, which was to "
                "make node3 one, failed: node3 has caught fire");
    g_assert_cmpint(latest_about(w, CLUSTER, AUTHOR)->verdict, ==, VERDICT_WAIT);
    passes(w, 4);
    g_assert_cmpuint(jobs(w), ==, 2);
    g_assert_nonnull(strstr(job(w, 1)->body, "\"node_name\":\"node4\""));
    end_job(w, 1, "error", job_error("so has node4", "environment", false));
    passes(w, 2);
    g_assert_cmpuint(jobs(w), ==, 2);
    passes(w, 6);
    g_assert_cmpuint(jobs(w), ==, 3);
    g_assert_nonnull(strstr(job(w, 2)->body, "\"node_name\":\"node3\""));
    g_assert_cmpuint(w->conflicts, ==, 0);
    g_assert_true(g_str_has_suffix(job(w, 2)->request_id, "/2"));
    promote(w, NODE3);
    end_job(w, 2, "success", NULL);
    passes(w, 2);
    assert_said(w, "Enough master candidates",
                "There are 3 usable master candidates, as there should be.");
    watcher_world_free(w);
}

/* What luxid did not take is submitted again. */
static void test_not_taken(void)
{
    struct watcher_world *w = two_of_three();
    w->luxid_refuses = "the queue is full";
    passes(w, LIMIT_POOL_PATIENCE_S + 10);
    g_assert_cmpuint(jobs(w), ==, 0);
    g_assert_cmpuint(records(w), ==, 1);
    w->luxid_refuses = NULL;
    passes(w, 10);
    g_assert_cmpuint(jobs(w), ==, 1);
    watcher_world_free(w);
}

static void assert_version(const struct watcher_world *w, const json_t *opcode, const char *node)
{
    guint64 version = 0;
    config_get(w->view, "node", node, &version);
    g_assert_cmpuint(version, >, 0);
    g_assert_cmpint(json_integer_value(json_object_get(opcode, "if_version")), ==,
                    (json_int_t)version);
}

/* With etcd the member of a dead candidate counts, so that is taken out in the same job; what a
 * person has said about that node stays. With SQLite it returns as the candidate that it was. */
static void test_replaced(void)
{
    struct watcher_world *w = two_of_three_with("etcd");
    change_object(w, "node", NODE3, json_make("{sb sb}", "master_candidate", 1, "offline", 1));
    passes(w, LIMIT_POOL_PATIENCE_S + 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    assert_said(w, "Too few master candidates",
                "2 of 3 master candidates are usable (candidate_pool_size); node4 becomes one in "
                "the place of node3, whose member of etcd counts for every majority until then.");
    json_autoptr ops = json_loads(job(w, 0)->body, 0, NULL);
    g_assert_cmpuint(json_array_size(ops), ==, 2);
    const json_t *off = json_array_get(ops, 0), *on = json_array_get(ops, 1);
    g_assert_cmpstr(json_string_value(json_object_get(off, "node_name")), ==, "node3");
    g_assert_cmpstr(json_string_value(json_object_get(off, "master_candidate")), ==, "no");
    g_assert_cmpstr(json_string_value(json_object_get(off, "master_capable")), ==, "yes");
    g_assert_cmpstr(json_string_value(json_object_get(on, "node_name")), ==, "node4");
    g_assert_cmpstr(json_string_value(json_object_get(on, "master_candidate")), ==, "yes");
    /* Neither is to override what is said of these nodes from now on. */
    assert_version(w, off, NODE3);
    assert_version(w, on, NODE4);
    watcher_world_free(w);
    w = two_of_three();
    change_object(w, "node", NODE3, json_make("{sb sb}", "master_candidate", 1, "offline", 1));
    passes(w, LIMIT_POOL_PATIENCE_S + 2);
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_null(strstr(job(w, 0)->body, "node3"));
    promote(w, NODE4);
    end_job(w, 0, "success", NULL);
    set_node(w, NODE3, "online");
    passes(w, 100); /* one more than there should be: left alone */
    g_assert_cmpuint(jobs(w), ==, 1);
    g_assert_cmpuint(records(w), ==, 2);
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watcher-candidates/promoted#ARP-71", test_promoted);
    g_test_add_func("/watcher-candidates/sick#SAF-92", test_sick);
    g_test_add_func("/watcher-candidates/moment#ARP-71", test_moment);
    g_test_add_func("/watcher-candidates/silent#ARP-71", test_silent);
    g_test_add_func("/watcher-candidates/deaf#ARP-71", test_deaf);
    g_test_add_func("/watcher-candidates/nobody#ARP-68,ARP-71", test_nobody);
    g_test_add_func("/watcher-candidates/no-news#ARP-68,ARP-71", test_no_news);
    g_test_add_func("/watcher-candidates/even#ARP-71", test_even);
    g_test_add_func("/watcher-candidates/brake#ARP-71", test_brake);
    g_test_add_func("/watcher-candidates/shadow#ARP-71", test_shadow);
    g_test_add_func("/watcher-candidates/failure#ARP-71", test_failure);
    g_test_add_func("/watcher-candidates/not-taken#ARP-71", test_not_taken);
    g_test_add_func("/watcher-candidates/replaced#ARP-71", test_replaced);
    return g_test_run();
}
