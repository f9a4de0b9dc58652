/* New disks on a node (SAF-22): made and kept waiting before the record knows of them, taken after,
 * gone if it never will; and a replica of other disks, which is never started from. */
#include "unit/core/world/guest_steps.h"

#include <string.h>

/* UUID that nw_instance() gives to the first disk: what the record says when it is committed. */
#define NEW_DISK "22222222-2222-4222-8222-222222222220"
#define NEW_DISK_1 "22222222-2222-4222-8222-222222222221"
#define GUEST "instance " WEB1

/* web1 ran on A, generation 2, with a stale replica on B. A job has marked it. */
static struct node_world *new_world(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw->web1.state = REPLICA_STALE;
    nw->web1.recreating = true;
    return nw;
}

static json_t *disks(void)
{
    return json_make("[{s:s,s:i},{s:s,s:i}]", "uuid", NEW_DISK, "size", 1, "uuid", NEW_DISK_1,
                     "size", 1);
}

static json_t *make(struct node_world *nw, struct test_node *node, const char *name,
                    guint64 generation, GError **error)
{
    return nw_call(nw, node, "disks_create",
                   json_make("{s:s,s:s,s:I,s:b,s:o}", "instance", WEB1, "replica", name,
                             "generation", (json_int_t)generation, "set_aside", 1, "disks",
                             disks()),
                   error);
}

static void make_ok(struct node_world *nw, struct test_node *node, const char *name)
{
    g_autoptr(GError) error = NULL;
    json_autoptr made = make(nw, node, name, nw->web1.generation + 1, &error);
    g_assert_no_error(error);
    g_assert_nonnull(made);
}

static json_t *take(struct node_world *nw, const char *name, GError **error)
{
    return nw_call(nw, &nw->b, "replica_close",
                   json_make("{s:s,s:s,s:I,s:b,s:o}", "instance", WEB1, "replica", name,
                             "generation", (json_int_t)nw->web1.generation, "promote", 1, "disks",
                             disks()),
                   error);
}

/* The record of the new disks: on B, a replica on A, nobody holds them. */
static void commit_new_disks(struct node_world *nw)
{
    struct master_record *web1 = &nw->web1;
    web1->generation++;
    web1->holder = "";
    web1->primary = NODE_B;
    web1->secondary = NODE_A;
    web1->new_disk = NEW_DISK;
    web1->clean = false;
    g_strlcpy(web1->replica, OTHER_REPLICA, sizeof(web1->replica));
    fake_hosts_give_up(nw->hosts, WEB1, 2);
}

static void expect_aside(struct node_world *nw, struct test_node *node, const char *text)
{
    json_autoptr report = nw_report(nw, node);
    json_autoptr wanted = json_loads(text, 0, NULL);
    g_assert_true(json_equal(json_object_get(report, "leftovers"), wanted));
}

/* All that is left of the old ones is kept; the new ones wait under their name until the record
 * says that they are the instance's. */
static void test_made_then_taken(void)
{
    struct node_world *nw = new_world();
    g_autoptr(GError) error = NULL;
    g_autofree char *old = g_strdup(nw->web1.replica);
    for (guint i = 0; i < 2; i++) { /* the answer to the first may have been lost */
        make_ok(nw, &nw->b, NEW_DISK);
        make_ok(nw, &nw->a, OTHER_REPLICA);
    }
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    g_assert_true(fake_host_has_image(nw->a.host, WEB1, OTHER_REPLICA));
    g_assert_false(fake_host_exports(nw->b.host, WEB1));
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, old));
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, ""));
    g_assert_true(fake_host_has_image(nw->b.host, WEB1, NEW_DISK));
    expect_aside(nw, &nw->a, "[\"" WEB1 " 2\"]");
    expect_aside(nw, &nw->b, "[\"" WEB1 " 2\"]");

    commit_new_disks(nw);
    for (guint i = 0; i < 2; i++) {
        json_autoptr taken = take(nw, NEW_DISK, &error);
        g_assert_no_error(error);
        g_assert_nonnull(taken);
    }
    g_assert_true(fake_host_has_image(nw->b.host, WEB1, ""));
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, NEW_DISK));
    /* A request that was delayed on its way finds them used. */
    json_t *late = make(nw, &nw->b, NEW_DISK, nw->web1.generation, &error);
    assert_refused(late, error, REFUSED,
                   "new disks of " GUEST " for generation 3 are over: generation 3 was already "
                   "used here");
    nw->web1.recreating = false;
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->b, nw->web1.generation));
    node_world_free(nw);
}

/* The job that made them dies between the record and this: a start takes them. */
static void test_taken_by_start(void)
{
    struct node_world *nw = new_world();
    g_autoptr(GError) error = NULL;
    make_ok(nw, &nw->b, NEW_DISK);
    commit_new_disks(nw);
    nw->web1.recreating = false;
    nw_power_cut(nw, &nw->b); /* what waits survives that */
    nw_daemon_start(nw, &nw->b);
    nw_pass(nw, 6000);
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->b, nw->web1.generation));
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, NEW_DISK));
    node_world_free(nw);
}

/* The job dies before the record: the guest starts where its data are, and nothing stays. */
static void test_never_committed(void)
{
    struct node_world *nw = new_world();
    g_autoptr(GError) error = NULL;
    make_ok(nw, &nw->b, NEW_DISK);
    nw_pass(nw, 11000);
    g_assert_true(fake_host_has_image(nw->b.host, WEB1, NEW_DISK)); /* the mark stands */
    make_ok(nw, &nw->b, OTHER_REPLICA); /* the next job's: the first ones are of no use to it */
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, NEW_DISK));
    g_assert_true(fake_host_has_image(nw->b.host, WEB1, OTHER_REPLICA));
    nw->web1.recreating = false;
    nw_pass(nw, 11000);
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, OTHER_REPLICA));
    g_assert_true(runs(&nw->a, 2));
    expect_aside(nw, &nw->b, "[\"" WEB1 " 2\"]");
    node_world_free(nw);
}

static void test_not_without_a_mark(void)
{
    struct node_world *nw = new_world();
    g_autoptr(GError) error = NULL;
    nw->web1.recreating = false;
    json_t *answer = make(nw, &nw->a, OTHER_REPLICA, 3, &error);
    assert_refused(answer, error, WRONG_STATE,
                   "generation 3 of " GUEST " may not have new disks here: the record (generation "
                   "2) does not say so");
    nw->web1.recreating = true;
    answer = make(nw, &nw->a, OTHER_REPLICA, 4, &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_clear_error(&error);
    answer = make(nw, &nw->a, "", 3, &error);
    assert_refused(answer, error, WRONG_INPUT,
                   "replica: new disks of instance web1 need a name to wait under, and the "
                   "generation that is to own them");
    nw->mood = MASTER_DEPOSED;
    answer = make(nw, &nw->b, NEW_DISK, 3, &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
    g_assert_true(runs(&nw->a, 2));
    g_assert_true(fake_host_exports(nw->b.host, WEB1));
    node_world_free(nw);
}

/* Opened for other disks than the record names now: whatever made the record say that this node is
 * the primary, its copy is not what it speaks of. */
static void test_other_disks(void)
{
    static const char refusal[] =
        "replica 33333333-3333-4333-8333-000000000001 of " GUEST " is no copy of disk 0 (" NEW_DISK
        ") on record, but of an earlier one; nothing is started from it: make new disks with "
        "fettle "
        "instance recreate-disks";
    static const char refusal_of_another[] =
        "replica 33333333-3333-4333-8333-000000000001 of " GUEST " is no copy of disk 1 (" NEW_DISK
        ") on record, but of an earlier one; nothing is started from it: make new disks with "
        "fettle "
        "instance recreate-disks";
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 1, &error);
    nw_commit_start(nw);
    json_autoptr opened =
        nw_call(nw, &nw->b, "replica_open",
                json_make("{s:s,s:s,s:I,s:[{s:s,s:i}]}", "instance", WEB1, "replica",
                          nw->web1.replica, "generation", (json_int_t)nw->web1.generation, "disks",
                          "uuid", OTHER_REPLICA, "size", 1),
                &error);
    g_assert_no_error(error);
    g_autofree char *replica = g_strdup(nw->web1.replica);
    nw->web1.primary = NODE_B;
    nw->web1.secondary = "";
    nw_commit_start(nw);
    json_t *answer = start(nw, nw_start_args(nw, NULL, true, true), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNSAFE);
    g_assert_cmpstr(error->message, ==, refusal);
    g_clear_error(&error);
    answer = take(nw, replica, &error);
    assert_refused(answer, error, UNSAFE, refusal);
    /* Nor is it for an installation, which names the first disk to write and the others to keep. */
    answer =
        nw_call(nw, &nw->b, "disks_create",
                json_make("{s:s,s:s,s:I,s:[{s:s,s:i}],s:[{s:s,s:i}]}", "instance", WEB1, "os_type",
                          "", "generation", (json_int_t)nw->web1.generation, "disks", "uuid",
                          OTHER_REPLICA, "size", 1, "kept", "uuid", NEW_DISK, "size", 1),
                &error);
    assert_refused(answer, error, UNSAFE, refusal_of_another);
    g_assert_true(fake_host_has_image(nw->b.host, WEB1, replica));
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, ""));
    g_assert_cmpint(fake_host_state(nw->b.host, WEB1, NULL), ==, GUEST_ABSENT);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/new-disks/made-then-taken#SAF-19,SAF-20,SAF-22", test_made_then_taken);
    g_test_add_func("/new-disks/taken-by-start#SAF-22", test_taken_by_start);
    g_test_add_func("/new-disks/never-committed#SAF-22", test_never_committed);
    g_test_add_func("/new-disks/not-without-a-mark#SAF-03,SAF-22", test_not_without_a_mark);
    g_test_add_func("/new-disks/other-disks#SAF-16,SAF-22", test_other_disks);
    return g_test_run();
}
