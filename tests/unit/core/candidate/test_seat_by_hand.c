/*
 * A person who makes a candidate the master, or lets it go on without the others, with the engine
 * sqlite. core/candidate/seat_by_hand.c, takeover.c, promises.c, wconf_promise_watch.c.
 */
#include "core/config/voucher.h"
#include "unit/core/world/seat_calls.h"
#include "unit/core/world/seat_world.h"

#include <string.h>

static void test_master_lives(void)
{
    set_up();
    assert_taken(0, "", "", "wrong_state: this node is the master");
    assert_taken(1, "", "",
                 "unsafe: node node1 is the master, and answers; power it off first if it cannot "
                 "be master any more");
    assert_taken(1, "node1", "", "wrong_state: node \"node1\" is the master already");
    assert_taken(1, "node9", "", "unknown_entity: node \"node9\" is no master candidate");
    wconfd_kill(&hosts[0]);
    assert_taken(1, "", "",
                 "unsafe: the node daemon of node node1, which is the master, answers; power it "
                 "off first if it cannot be master any more");
    tear_down();
}

/* No node has told the new master what it runs (SAF-09). */
static void count_unheard(const char *kind, const char *key, guint64 version, json_t *object,
                          void *data)
{
    bool unheard = json_integer_value(json_object_get(object, "unheard_since")) > 0;
    *(guint *)data += !strcmp(kind, "node") && unheard;
}

static guint unheard_in(struct fake_copy *copy)
{
    guint count = 0;
    g_autoptr(GError) error = NULL;
    fake_copy_base(copy)->ops->load(fake_copy_base(copy), count_unheard, &count, &error);
    g_assert_no_error(error);
    return count;
}

static void test_takes_over(void)
{
    set_up();
    commit_tag("a");
    fake_advance(world, 5);
    /* Node3 lags behind. */
    fake_cut(world, NODE3, true);
    commit_tag("b");
    fake_advance(world, 2000);
    lose_master();
    assert_taken(1, "", "",
                 "resource_not_available: a majority of the 3 candidates must promise to follow "
                 "this node; no answer of their node daemons: node1, node3. If they are gone for "
                 "good, say so: --alone --statement TEXT");
    fake_cut(world, NODE3, false);
    fake_advance(world, 5000);
    assert_taken(2, "node3", "",
                 "unsafe: the copy of node node2 is newer: it has serial 3 of epoch 1, that of "
                 "node node3 serial 2 of epoch 1");
    /* Asked for on node3, the newest takes the seat. */
    assert_taken(2, "", "", "node2 4");
    fake_advance(world, 100);
    g_assert_cmpstr(hosts[1].ended, ==,
                    "resource_not_available: this node becomes the master; starting anew");
    struct copy_position at;
    fake_copy_base(hosts[1].copy)->ops->position(fake_copy_base(hosts[1].copy), &at);
    g_assert_cmpint(at.role, ==, COPY_ENGINE);
    g_assert_cmpuint(at.epoch, ==, 2);
    g_assert_cmpuint(unheard_in(hosts[1].copy), ==, 3);
    g_assert_cmpuint(unheard_in(hosts[2].copy), ==, 0);
    /* Above what the old master may have stored alone: ConfD answers with it (RCF-05). */
    g_assert_cmpuint(at.serial, >, LIMIT_SERIAL_LEAP);
    /* Whoever lost the answer to one of these, and repeats it there, is told its serial. */
    g_assert_cmpuint(fake_copy_lookup(hosts[1].copy, last_commit_id()), ==, 3);
    g_assert_cmpuint(fake_copy_lookup(hosts[2].copy, last_commit_id()), ==, 0);
    tear_down();
}

static void answer_as_master(struct rpc_request *request, void *data)
{
    g_assert_cmpstr(request->name, ==, "wait_role");
    rpc_answer(request, json_make("{s:s,s:i,s:i,s:i}", "seat", "master", "history", 5, "epoch", 2,
                                  "serial", 2));
}

static void answer_as_follower(struct rpc_request *request, void *data)
{
    g_assert_cmpstr(request->name, ==, "wait_role");
    rpc_answer(request, json_make("{s:s,s:i,s:i,s:i}", "seat", "follows", "history", 5, "epoch", 2,
                                  "serial", 1));
}

/* What a later master has done counts for more than what an earlier one has done after it. */
static void test_later_epoch(void)
{
    set_up();
    commit_tag("a");
    fake_advance(world, 2000);
    lose_master();
    wconfd_kill(&hosts[2]);
    struct env *other = fake_process(world, NODE3, ROLE_WCONFD);
    fake_serve(other, answer_as_follower, NULL);
    assert_taken(1, "node2", "",
                 "unsafe: the copy of node node3 is newer: it has serial 1 of epoch 2, that of "
                 "node node2 serial 2 of epoch 1");
    fake_kill(other);
    wconfd_start(&hosts[2]);
    tear_down();
}

/* Node3 is the master of epoch 2, in the place of node1, as node2's node daemon knows. */
static struct env *become_master(void)
{
    g_autoptr(GError) error = NULL;
    lose_master();
    wconfd_kill(&hosts[2]);
    struct env *other = fake_process(world, NODE3, ROLE_WCONFD);
    fake_serve(other, answer_as_master, NULL);
    json_autoptr answer = fake_call(other, NODE2, ROLE_NODED, "promise_epoch",
                                    json_make("{s:i,s:i,s:i,s:s,s:b}", "history", 5, "epoch", 2,
                                              "since", 1, "node", NODE3, "begins", 1),
                                    &error);
    g_assert_true(json_is_true(json_object_get(answer, "granted")));
    return other;
}

/* Two words, or the same one again after its answer was lost: node3 has become the master, and its
 * wconfd did not answer when node2 looked. */
static void test_has_happened(void)
{
    static const struct {
        const char *to, *said;
    } words[] = {
        {"", "node3 2"},
        {"node3", "wrong_state: wconfd of node node3 does not answer"},
        {"node2",
         "stale_epoch: node node3 has become master meanwhile: this one is made it no more (node "
         "node2 says so)"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        struct fake_reply reply;
        set_up();
        struct env *other = become_master();
        fake_pause(other);
        fake_call_start(hosts[1].cli, 0, NODE2, ROLE_WCONFD, "take_over",
                        json_make("{s:s}", "node", words[i].to), &reply);
        fake_advance(world, TIMEOUT_QUICK_MS + 50);
        fake_resume(other);
        fake_advance(world, 20000);
        g_assert_true(reply.done);
        g_autofree char *said =
            reply.error
                ? g_strdup_printf("%s: %s", fettle_error_name(reply.error), reply.error->message)
                : g_strdup_printf("%s %d", json_string_value(json_object_get(reply.result, "name")),
                                  (int)json_integer_value(json_object_get(reply.result, "serial")));
        g_assert_cmpstr(said, ==, words[i].said);
        fake_reply_clear(&reply);
        fake_kill(other);
        wconfd_start(&hosts[2]);
        tear_down();
    }
}

/* Node3 was told of a change to etcd that the commit of serial 2 was to decide, and node2 was not:
 * etcd may be the engine, unless a copy has that serial. */
static void test_undecided(void)
{
    for (guint64 step = 2; step >= 1; step--) {
        set_up();
        lose_master();
        seat_set_engine(hosts[2].seat, ENGINE_KIND_ETCD, "not decided (made by the test)", true);
        seat_set_step(hosts[2].seat, step);
        assert_taken(1, "node2", "",
                     step == 2 ? "unsafe: node node3 was told of a change of the engine to etcd, "
                                 "which may have been made, and node node2 was not; say it for "
                                 "that one: fettle cluster master-failover --to node3"
                               : "node2 2");
        tear_down();
    }
}

static void find_master(const char *kind, const char *key, guint64 version, json_t *object,
                        void *data)
{
    GString *text = data;
    if (!strcmp(kind, "cluster"))
        g_string_append_printf(text, "master %s;",
                               json_string_value(json_object_get(object, "master_node")));
    if (!strcmp(kind, "decision"))
        g_string_append_printf(text, "%s;", json_string_value(json_object_get(object, "summary")));
    if (!strcmp(kind, "node") && !strcmp(key, NODE1))
        g_string_append_printf(text, "candidate %d, capable %d;",
                               json_is_true(json_object_get(object, "master_candidate")),
                               json_is_true(json_object_get(object, "master_capable")));
}

/* The word of a person, for those that are gone: it goes on record. */
static void test_alone(void)
{
    set_up();
    lose_master();
    fake_cut(world, NODE3, true);
    assert_taken(1, "", "both burned", "node2 2");
    struct copy *copy = fake_copy_base(hosts[1].copy);
    struct copy_position at;
    copy->ops->position(copy, &at);
    /* Above every mastership that the silent ones may have had since. */
    g_assert_cmpuint(at.epoch, >, 2 + LIMIT_EPOCH_LEAP);
    g_autoptr(GString) text = g_string_new(NULL);
    copy->ops->load(copy, find_master, text, NULL);
    g_assert_nonnull(strstr(text->str, "master " NODE2 ";"));
    g_assert_nonnull(strstr(text->str, "candidate 0, capable 0;"));
    g_assert_nonnull(strstr(text->str, "made the master in the place of node node1 by a person's "
                                       "word: both burned;"));
    tear_down();

    set_up();
    lose_master();
    g_autoptr(GError) error = NULL;
    g_assert_null(fake_call(hosts[1].cli, NODE2, ROLE_WCONFD, "take_over",
                            json_make("{s:b}", "alone", 1), &error));
    g_assert_cmpstr(error->message, ==,
                    "statement: --alone needs one: who says that the silent candidates are gone "
                    "for good, and why");
    tear_down();
}

/* Whoever was made the master before this moment, by another word, has not come so far: of ConfD's
 * answers the highest serial counts (RCF-05). */
static void assert_serial_leapt(guint node)
{
    record_autoptr(role_status) status = ask_seat(hosts[node].cli);
    guint64 seconds = (guint64)(hosts[node].cli->ops->wall_us(hosts[node].cli) / G_USEC_PER_SEC);
    g_assert_cmpuint(status->serial, >, (seconds - 10) * LIMIT_SERIALS_PER_SECOND);
}

/* The master's own store needs the others' promises; a person's word stands for those that are gone
 * for good, who are candidates no more. */
static void test_engine_alone(void)
{
    set_up();
    commit_tag("a");
    reboot_alone();
    assert_role(0, "campaigns 5/1/2");
    assert_taken(0, "", "",
                 "wrong_state: this node has the store of the last master, and becomes master by "
                 "itself when a majority of the candidates answers. If those that are silent are "
                 "gone for good, say so: --alone --statement TEXT");
    assert_taken(0, "node2", "burned", "wrong_state: wconfd of node node2 does not answer");
    assert_taken(0, "", "both burned", "node1 4");
    fake_advance(world, 5000);
    assert_role(0, "master 5/leapt/5");
    assert_serial_leapt(0);
    assert_taken(0, "", "both burned", "wrong_state: this node is the master");
    g_autoptr(GString) text = g_string_new(NULL);
    guint64 history, serial;
    g_assert_true(hosts[0].wconfd->engine->ops->load(hosts[0].wconfd->engine, &history, &serial,
                                                     find_master, text, NULL));
    g_assert_nonnull(strstr(text->str, "goes on as the master without the candidates that are "
                                       "silent, by a person's word: both burned;"));
    g_assert_nonnull(strstr(text->str, "candidate 1, ")); /* node1 */

    /* The next time the others are asked, and that they are silent is no hindrance. */
    wconfd_kill(&hosts[0]);
    reboot_node1();
    wconfd_start(&hosts[0]);
    fake_advance(world, 25000);
    assert_role(0, "campaigns 5/leapt/5");
    fake_advance(world, 40000);
    assert_role(0, "master 5/leapt/5");
    for (guint i = 1; i < NODES; i++)
        wconfd_start(&hosts[i]);
    tear_down();
}

/* By a second word, of which node1 knows nothing, node2 has become the master: one that has begun,
 * as far as this node's daemon has heard. */
static void second_word(guint heard_by)
{
    struct env *other = fake_process(world, NODE2, ROLE_WCONFD);
    struct stamp stamp = {5, 3000000000000};
    char signature[LIMIT_VOUCHER_CHARS + 1];
    g_autoptr(GError) error = NULL;
    other->authority = fake_authority_of(true);
    voucher_sign(other, CLUSTER, stamp, true, signature);
    json_autoptr answer = fake_call(other, uuids[heard_by], ROLE_NODED, "promise_epoch",
                                    json_make("{s:i,s:I,s:I,s:s,s:b,s:s}", "history", 5, "epoch",
                                              (json_int_t)stamp.epoch, "since", (json_int_t)1 << 52,
                                              "node", NODE2, "begins", 1, "signature", signature),
                                    &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(json_object_get(answer, "granted")));
}

static void set_up_alone(void)
{
    set_up();
    reboot_alone();
    assert_taken(0, "", "both burned", "node1 3");
    fake_advance(world, 5000);
    assert_role(0, "master 5/leapt/4"); /* and has heard of its own guests (SAF-09) */
}

/* Node1 is the only candidate by a person's word, and so is node2 by another one: whoever comes
 * back asks all nodes, as its own list of candidates proves nothing. */
static void test_two_words(void)
{
    set_up_alone();
    wconfd_kill(&hosts[0]);
    /* Node3 tells it: the new master itself is out of reach. */
    fake_serve(hosts[2].noded, noded_handle, &hosts[2]);
    second_word(2);
    reboot_node1();
    assert_replaced();
    tear_down();
}

static json_t *tell_lie(const struct rpc_request *request, const char *to_node, void *data,
                        GError **error)
{
    return json_make("{s:b,s:i,s:I,s:s,s:b,s:s}", "granted", 0, "history", 5, "epoch",
                     (json_int_t)RECORD_NUMBER_MAX - 1, "node", NODE2, "begun", *(bool *)data,
                     "signature", "ca/nonsense");
}

/* What a node says that is no candidate, and does not prove, keeps nobody from becoming the master,
 * takes no numbers away and ends nothing. */
static void test_lying_witness(void)
{
    for (guint i = 0; i < 2; i++) {
        bool begun = i == 0;
        set_up_alone();
        wconfd_kill(&hosts[0]);
        fake_script(world, NODE3, ROLE_NODED, "promise_epoch", tell_lie, &begun);
        reboot_node1();
        wconfd_start(&hosts[0]);
        fake_advance(world, 60000);
        record_autoptr(role_status) status = ask_seat(hosts[0].cli);
        g_assert_null(hosts[0].ended);
        g_assert_cmpint(status->seat, ==, SEAT_MASTER);
        g_assert_cmpuint(status->epoch, <, RECORD_NUMBER_MAX / 2);
        tear_down();
    }
}

/* Node1 is the only candidate by a person's word, and lives on: silence of the others ends nothing,
 * but any node that follows a later mastership does, though none of them is a candidate. */
static void test_watch_alone(void)
{
    set_up_alone();
    fake_advance(world, 120000);
    fake_serve(hosts[2].noded, noded_handle, &hosts[2]);
    fake_advance(world, 30000); /* node3 has answered the announcement */
    assert_role(0, "master 5/leapt/5");
    g_assert_null(hosts[0].ended);
    second_word(2);
    fake_advance(world, 3000);
    g_assert_cmpstr(hosts[0].ended, ==,
                    "not_master: node node3 follows a later mastership, of node node2");
    /* Its epoch does not go on: it asks anew, and was replaced. */
    wconfd_kill(&hosts[0]);
    assert_replaced();
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/seat/master-lives#SAF-07", test_master_lives);
    g_test_add_func("/seat/undecided-elsewhere#SAF-07", test_undecided);
    g_test_add_func("/seat/failover-that-has-happened#SAF-07", test_has_happened);
    g_test_add_func("/seat/takes-over#SAF-07", test_takes_over);
    g_test_add_func("/seat/later-epoch#SAF-07", test_later_epoch);
    g_test_add_func("/seat/alone#SAF-07", test_alone);
    g_test_add_func("/seat/engine-alone#SAF-07", test_engine_alone);
    g_test_add_func("/seat/two-words#SAF-06,SAF-07", test_two_words);
    g_test_add_func("/seat/lying-witness#SAF-07,SAF-102,SAF-103", test_lying_witness);
    g_test_add_func("/seat/watch-after-a-word#SAF-05,SAF-07", test_watch_alone);
    return g_test_run();
}
