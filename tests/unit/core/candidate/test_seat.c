/*
 * Candidates: a master of node1, followers of node2 and node3 with copies of their own.
 * core/candidate/seat.c, replication.c, authority_key.c.
 */
#include "unit/core/world/seat_world.h"

#include <string.h>

static void test_follows(void)
{
    set_up();
    assert_role(0, "master 5/1/1");
    assert_role(1, "follows 5/1/1");
    assert_role(2, "follows 5/1/1");
    g_assert_cmpuint(fake_copy_refills(hosts[1].copy), ==, 1);
    commit_tag("a");
    commit_tag("b");
    fake_advance(world, 5);
    assert_role(1, "follows 5/1/3");
    g_assert_cmpuint(digest_of(1), ==, digest_of(2));

    /* The master is restarted and goes on; a copy that was cut off goes on where it was. */
    fake_cut(world, NODE3, true);
    commit_tag("c");
    wconfd_kill(&hosts[0]);
    wconfd_start(&hosts[0]);
    assert_role(0, "master 5/1/4");
    commit_tag("d");
    fake_cut(world, NODE3, false);
    fake_advance(world, 40000);
    assert_role(2, "follows 5/1/5");
    g_assert_cmpuint(digest_of(1), ==, digest_of(2));
    tear_down();
}

/* A copy that is not what the master has is found at its next question. */
static void test_wrong_copy(void)
{
    set_up();
    g_assert_cmpuint(fake_copy_refills(hosts[1].copy), ==, 1);
    fake_copy_corrupt(hosts[1].copy);
    g_assert_cmpuint(digest_of(1), !=, digest_of(2));
    fake_advance(world, 60000);
    g_assert_cmpuint(fake_copy_refills(hosts[1].copy), ==, 2);
    g_assert_cmpuint(digest_of(1), ==, digest_of(2));

    /* A disk that fails: it is tried again, and said meanwhile. */
    fake_copy_fail(hosts[2].copy, 3);
    commit_tag("a");
    fake_advance(world, 100);
    assert_role(2, "follows 5/1/1 the disk has failed");
    fake_advance(world, 5000);
    assert_role(2, "follows 5/1/2");
    g_assert_cmpuint(digest_of(1), ==, digest_of(2));
    tear_down();
}

static void test_refuses_calls(void)
{
    g_autoptr(GError) error = NULL;
    set_up();
    struct env *luxid = fake_process(world, NODE2, ROLE_LUXID);
    g_assert_null(fake_call(luxid, NODE2, ROLE_WCONFD, "cluster_status", json_object(), &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_NOT_MASTER);
    g_assert_cmpstr(error->message, ==, "node2 is not the master; the master is node1");
    tear_down();
}

/* A node's record changes while its silent node daemon is asked for its promise. */
static void test_changed_meanwhile(void)
{
    set_up();
    fake_pause(hosts[2].noded);
    fake_advance(world, 2100); /* in the middle of the question whether all still follow */
    set_candidate(NODE3, false, 1);
    fake_advance(world, 60000);
    g_assert_null(hosts[0].ended);
    fake_resume(hosts[2].noded);
    fake_advance(world, 1000);
    assert_role(0, "master 5/1/2");
    tear_down();
}

/* The old master comes back after another one has begun: its store is not the engine any more. */
static void test_old_master(void)
{
    set_up();
    lose_master();
    struct env *other = fake_process(world, NODE2, ROLE_WCONFD);
    for (guint i = 1; i < NODES; i++) {
        g_autoptr(GError) error = NULL;
        json_autoptr answer = fake_call(other, uuids[i], ROLE_NODED, "promise_epoch",
                                        json_make("{s:i,s:i,s:i,s:s,s:b}", "history", 5, "epoch", 2,
                                                  "since", 1, "node", NODE2, "begins", 1),
                                        &error);
        g_assert_true(json_is_true(json_object_get(answer, "granted")));
    }
    reboot_node1();
    assert_replaced();
    tear_down();
}

/* A living master that was cut off finds out by itself, and does not go on under its epoch. */
static void test_finds_out(void)
{
    set_up();
    struct env *other = fake_process(world, NODE3, ROLE_WCONFD);
    g_autoptr(GError) error = NULL;
    json_autoptr answer = fake_call(
        other, NODE2, ROLE_NODED, "promise_epoch",
        json_make("{s:i,s:i,s:i,s:s}", "history", 5, "epoch", 7, "since", 1, "node", NODE3),
        &error);
    g_assert_true(json_is_true(json_object_get(answer, "granted")));
    fake_advance(world, 3000);
    g_assert_cmpstr(hosts[0].ended, ==,
                    "not_master: node node2 follows a later mastership, of node node3");
    /* It was a promise that came to nothing. */
    wconfd_kill(&hosts[0]);
    wconfd_start(&hosts[0]);
    fake_advance(world, 5000);
    g_assert_cmpstr(hosts[0].ended, ==, NULL);
    assert_role(0, "master 5/8/1");
    fake_advance(world, 30000);
    assert_role(1, "follows 5/8/1");
    tear_down();
}

/* The copy of a node that is no candidate any more stands still, until it is one again. */
static void test_retired(void)
{
    set_up();
    set_candidate(NODE3, false, 1);
    assert_role(2, "retired 5/1/2 node node3 is no master candidate: it keeps no copy of the "
                   "configuration");
    commit_tag("a");
    wconfd_kill(&hosts[2]);
    wconfd_start(&hosts[2]);
    fake_advance(world, 5000);
    assert_role(2, "retired 5/1/2 this node is no master candidate");
    set_candidate(NODE3, true, 2);
    fake_advance(world, 2000);
    assert_role(2, "follows 5/1/4");
    g_assert_cmpuint(fake_copy_refills(hosts[2].copy), ==, 2);
    g_assert_cmpuint(digest_of(1), ==, digest_of(2));
    tear_down();
}

/* The master comes back without its store: it does not begin anew, and says why. */
static void test_store_lost(void)
{
    set_up();
    struct fake_engine *lost = hosts[0].engine;
    wconfd_kill(&hosts[0]);
    hosts[0].engine = NULL;
    hosts[0].copy = fake_copy_new();
    wconfd_start(&hosts[0]);
    fake_advance(world, 60000);
    assert_role(0, "follows 0/0/0 this node was announced as the master, but its store is missing "
                   "or was put away; it waits for another one");
    assert_taken(1, "", "", "node2 2");
    wconfd_kill(&hosts[0]);
    hosts[0].engine = lost;
    tear_down();
}

/* --- the key of the cluster's authority --- */

#define assert_key(node, expected)                                                                 \
    g_assert_cmpstr(fake_authority_key(hosts[node].authority), ==, expected)

/* A node's wconfd asks for it, under an epoch: the key, or the error. */
static char *ask_key(guint node, guint64 epoch)
{
    struct fake_reply reply;
    fake_call_start_stamped(hosts[node].wconfd, 0, (struct stamp){5, epoch}, NODE1, ROLE_WCONFD,
                            "authority_key", json_object(), &reply);
    fake_advance(world, 100);
    g_assert_true(reply.done);
    char *said = reply.error ? g_strdup_printf("%s: %s", fettle_error_name(reply.error),
                                               reply.error->message)
                             : g_strdup(json_string_value(json_object_get(reply.result, "key")));
    fake_reply_clear(&reply);
    return said;
}

#define assert_given(node, epoch, expected)                                                        \
    do {                                                                                           \
        g_autofree char *said_ = ask_key(node, epoch);                                             \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* What the master says of the candidates' keys. */
static char *keys_on_record(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    struct env *luxid = fake_process(world, NODE1, ROLE_LUXID);
    json_autoptr json =
        fake_call(luxid, NODE1, ROLE_WCONFD, "cluster_status", json_object(), &error);
    g_assert_no_error(error);
    size_t i;
    const json_t *copy;
    g_string_append(text, json_is_true(json_object_get(json, "authority")) ? "here" : "none");
    json_array_foreach(json_object_get(json, "copies"), i, copy)
        g_string_append(text, json_is_true(json_object_get(copy, "authority")) ? " yes" : " no");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

#define assert_keys(expected)                                                                      \
    do {                                                                                           \
        g_autofree char *said_ = keys_on_record();                                                 \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* Candidates have it by themselves, and the master knows; no other node gets it. */
static void test_key_given(void)
{
    set_up();
    fake_advance(world, 1000);
    assert_key(1, "ca key");
    assert_key(2, "ca key");
    assert_keys("here yes yes");
    assert_given(1, 1, "ca key");
    assert_given(1, 0,
                 "stale_epoch: the key of the cluster's authority was asked for under history 5 "
                 "epoch 0, the master is at history 5 epoch 1");
    set_candidate(NODE3, false, 1);
    assert_given(
        2, 1,
        "permission_denied: node node3 is no master candidate: it does not get the key of the "
        "cluster's authority");
    tear_down();
}

/* One that does not fit is replaced, a full disk is tried again, a key that a person took away
 * comes back. */
static void test_key_mended(void)
{
    set_up();
    fake_advance(world, 1000);
    wconfd_kill(&hosts[1]);
    fake_authority_put(hosts[1].authority, "another key");
    fake_authority_fail(hosts[1].authority, 1);
    wconfd_start(&hosts[1]);
    fake_advance(world, 1000);
    assert_key(1, "another key");
    assert_keys("here no yes");
    fake_advance(world, 60000);
    assert_key(1, "ca key");
    fake_authority_put(hosts[2].authority, NULL);
    fake_advance(world, 60000);
    assert_key(2, "ca key");
    assert_keys("here yes yes");
    tear_down();
}

/* Who is no candidate any more removes it; but never the only one that there is. */
static void test_key_removed(void)
{
    set_up();
    fake_advance(world, 1000);
    fake_authority_put(hosts[0].authority, NULL);
    set_candidate(NODE3, false, 1);
    fake_advance(world, 20000);
    assert_key(2, "ca key");
    assert_keys("none yes");
    fake_authority_put(hosts[0].authority, "not this one");
    fake_advance(world, 20000);
    assert_key(2, "ca key");
    fake_authority_put(hosts[0].authority, "ca key");
    fake_advance(world, 20000);
    assert_key(2, NULL);
    assert_key(1, "ca key");

    /* Switched off meanwhile: when it comes back. */
    set_candidate(NODE3, true, 2);
    fake_advance(world, 2000);
    assert_key(2, "ca key");
    wconfd_kill(&hosts[2]);
    set_candidate(NODE3, false, 3);
    assert_key(2, "ca key");
    wconfd_start(&hosts[2]);
    fake_advance(world, 5000);
    assert_key(2, NULL);
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/seat/follows#WCF-04,SAF-07", test_follows);
    g_test_add_func("/seat/wrong-copy#SAF-07", test_wrong_copy);
    g_test_add_func("/seat/refuses-calls#WCF-01", test_refuses_calls);
    g_test_add_func("/seat/changed-meanwhile#SAF-06", test_changed_meanwhile);
    g_test_add_func("/seat/old-master#SAF-01,SAF-07", test_old_master);
    g_test_add_func("/seat/finds-out#SAF-05,SAF-06", test_finds_out);
    g_test_add_func("/seat/retired#WCF-04", test_retired);
    g_test_add_func("/seat/store-lost#SAF-07", test_store_lost);
    g_test_add_func("/seat/key-given", test_key_given);
    g_test_add_func("/seat/key-mended", test_key_mended);
    g_test_add_func("/seat/key-removed", test_key_removed);
    return g_test_run();
}
