/*
 * Candidates of a replicated engine: who takes a free seat, the master's own copy, and a person who
 * hands the seat to another node. core/candidate/seat_campaign.c, seat_handover.c.
 */
#include "core/candidate/seat.h"

#include <string.h>

#include "core/epoch/epoch_fence.h"
#include "helper/fake_authority.h"
#include "helper/fake_copy.h"
#include "helper/fake_private.h"
#include "proto/records.h"
#include "unit/core/world/config_world.h"
#include "unit/core/world/seat_calls.h"

#define NODES 3

static const char *const uuids[NODES] = {NODE1, NODE2, NODE3};

struct host {
    struct env *noded, *wconfd, *cli;
    struct epoch_fence *fence;
    struct fake_copy *copy;
    struct seat *seat;
    char *ended; /* why its wconfd has */
};

static struct fake_world *world;
static struct fake_engine *engine;
static struct host hosts[NODES];

/* --- node daemons, of which only the fence counts --- */

struct call {
    struct host *host;
    struct rpc_request *request;
};

static void call_task(void *data)
{
    g_autofree struct call *call = data;
    g_autoptr(GError) error = NULL;
    record_autoptr(announce_args) args =
        announce_args_parse(call->request->args, RECORD_LAX, &error);
    if (args && epoch_fence_announce(call->host->fence, call->request->from_node, args, &error)) {
        fake_world_set_master(world, args->again ? call->request->from_node : args->master_node);
        rpc_answer(call->request, NULL);
    } else {
        rpc_fail(call->request, error);
    }
}

static void noded_handle(struct rpc_request *request, void *data)
{
    struct call *call = g_new(struct call, 1);
    *call = (struct call){data, request};
    if (!strcmp(request->name, "node_report")) { /* it lives */
        g_free(call);
        rpc_fail_new(request, FETTLE_ERROR_WRONG_STATE, "made by the test");
        return;
    }
    g_assert_cmpstr(request->name, ==, "announce");
    task_spawn(call->host->noded->tasks, call_task, call);
}

/* --- wconfd --- */

static void wconfd_handle(struct rpc_request *request, void *data)
{
    seat_handle(((struct host *)data)->seat, request);
}

static void ended(const GError *reason, void *data)
{
    struct host *host = data;
    g_free(host->ended);
    host->ended = g_strdup_printf("%s: %s", fettle_error_name(reason), reason->message);
}

static void start_task(void *data)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(seat_start(((struct host *)data)->seat, &error));
}

static void wconfd_open(struct host *host)
{
    host->wconfd = fake_process(world, host->noded->node_uuid, ROLE_WCONFD);
    host->wconfd->engine = fake_engine_base(engine);
    host->wconfd->authority = fake_authority_of(true);
    host->seat = seat_new(host->wconfd, fake_copy_base(host->copy));
    seat_on_end(host->seat, ended, host);
    fake_serve(host->wconfd, wconfd_handle, host);
}

static void wconfd_run(struct host *host)
{
    task_spawn(host->wconfd->tasks, start_task, host);
    fake_advance(world, 1);
}

static void wconfd_start(struct host *host)
{
    wconfd_open(host);
    wconfd_run(host);
}

static void wconfd_kill(struct host *host)
{
    fake_kill(host->wconfd);
    seat_free(host->seat);
    host->seat = NULL;
    fake_settle(world);
    g_clear_pointer(&host->ended, g_free);
}

static void set_up_nodes(void)
{
    g_autoptr(GPtrArray) start = initial_candidates();
    world = fake_world_new();
    engine = fake_engine_new(5, start);
    fake_engine_replicate(engine);
    for (guint i = 0; i < NODES; i++) {
        struct host *host = &hosts[i];
        *host = (struct host){.noded = fake_process(world, uuids[i], ROLE_NODED)};
        host->cli = fake_process(world, uuids[i], ROLE_CLI);
        host->fence = epoch_fence_new(host->noded, CLUSTER);
        host->copy = fake_copy_new();
        fake_serve(host->noded, noded_handle, host);
    }
}

static void set_up(void)
{
    set_up_nodes();
    for (guint i = 0; i < NODES; i++)
        wconfd_start(&hosts[i]);
    fake_advance(world, 3000);
}

static void tear_down(void)
{
    for (guint i = 0; i < NODES; i++) {
        struct host *host = &hosts[i];
        if (host->seat)
            wconfd_kill(host);
        fake_kill(host->noded);
        epoch_fence_free(host->fence);
        fake_copy_free(host->copy);
    }
    fake_world_free(world);
    fake_engine_free(engine);
}

/* --- questions --- */

/* "ROLE epoch/serial", with " why" if there is a reason. */
static char *role_of(guint node)
{
    record_autoptr(role_status) status = ask_seat(hosts[node].cli);
    return g_strdup_printf("%s %d/%d%s%s", enum_word(&seat_role_words, (int)status->seat),
                           (int)status->epoch, (int)status->serial, *status->why ? " " : "",
                           status->why);
}

#define assert_role(node, expected)                                                                \
    do {                                                                                           \
        g_autofree char *said_ = role_of(node);                                                    \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

static guint64 copied(guint node)
{
    struct copy_position at;
    fake_copy_base(hosts[node].copy)->ops->position(fake_copy_base(hosts[node].copy), &at);
    return at.serial;
}

static guint number; /* of the newest tag */

/* The newest tag, of that serial. */
static void delete_tag(guint node, guint serial)
{
    struct env *luxid = fake_process(world, uuids[node], ROLE_LUXID);
    fake_livelock(world, uuids[node], "luxid-1", LIVELOCK_ALIVE);
    g_autoptr(GError) error = NULL;
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/t%u", number);
    json_autoptr answer = fake_call(
        luxid, uuids[node], ROLE_WCONFD, "commit",
        json_make("{s:{s:s,s:s},s:s,s:[{s:s,s:s,s:s,s:i}]}", "owner", "job", "luxid", "livelock",
                  "luxid-1", "commit_id", "00000000-0000-4000-8000-0000000000dd", "changes", "op",
                  "delete", "kind", "tag", "key", key, "version", (int)serial),
        &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
}

/* By luxid of the master's node. */
static void commit_tags(guint node, guint count)
{
    struct env *luxid = fake_process(world, uuids[node], ROLE_LUXID);
    fake_livelock(world, uuids[node], "luxid-1", LIVELOCK_ALIVE);
    for (guint i = 0; i < count; i++) {
        g_autofree char *tag = g_strdup_printf("t%u", ++number);
        ask_commit_tag(luxid, number, tag);
    }
}

#define assert_taken(node, to, statement, expected)                                                \
    do {                                                                                           \
        g_autofree char *said_ = ask_take_over(hosts[node].cli, to, statement);                    \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* --- tests --- */

/* The first takes the seat; the others follow, and so does its own copy. */
static void test_one_master(void)
{
    set_up();
    assert_role(0, "master 1/1");
    assert_role(1, "follows 1/1");
    assert_role(2, "follows 1/1");
    commit_tags(0, 3);
    fake_advance(world, 100);
    for (guint i = 0; i < NODES; i++)
        g_assert_cmpuint(copied(i), ==, 4);
    record_autoptr(role_status) status = ask_seat(hosts[1].cli);
    g_assert_cmpint((int)status->engine, ==, ENGINE_KIND_ETCD);
    g_assert_cmpstr(status->master_node, ==, NODE1);

    /* Restarted within its lease it goes on; its copy need not be filled anew. */
    guint filled = fake_copy_refills(hosts[0].copy);
    wconfd_kill(&hosts[0]);
    wconfd_start(&hosts[0]);
    fake_advance(world, 1000);
    assert_role(0, "master 1/4");
    commit_tags(0, 1);
    fake_advance(world, 100);
    g_assert_cmpuint(copied(0), ==, 5);
    g_assert_cmpuint(fake_copy_refills(hosts[0].copy), ==, filled);
    tear_down();
}

/* The master's host is lost: another one is master soon after the end of the lease, although its
 * question to the old one has no answer yet. It says who it is, in its first commit. */
static void test_next_master(void)
{
    set_up();
    commit_tags(0, 2);
    fake_advance(world, 100);
    fake_pause(hosts[0].wconfd);
    fake_pause(hosts[0].noded);
    fake_engine_expire(engine);
    fake_advance(world, 1100);
    assert_role(1, "master 2/4");
    record_autoptr(role_status) status = ask_seat(hosts[2].cli);
    g_assert_cmpstr(status->master_node, ==, NODE2);
    fake_advance(world, 30000);
    assert_role(2, "follows 2/4");
    g_assert_cmpuint(copied(1), ==, 4);
    g_assert_cmpuint(copied(2), ==, 4);
    tear_down();
}

/* A copy that is behind when the master is lost gets what it lacks from the next one, deletes too,
 * and is not filled anew. */
static void test_log_goes_on(void)
{
    set_up();
    commit_tags(0, 1);
    fake_advance(world, 100);
    fake_cut(world, NODE3, true);
    commit_tags(0, 3);
    delete_tag(0, 5);
    fake_advance(world, 100);
    guint filled = fake_copy_refills(hosts[2].copy);
    g_assert_cmpuint(copied(1), ==, 6);
    g_assert_cmpuint(copied(2), ==, 2);
    fake_cut(world, NODE1, true);
    fake_engine_expire(engine);
    fake_advance(world, 2000);
    assert_role(1, "master 2/7");
    fake_cut(world, NODE3, false);
    fake_advance(world, 60000);
    g_assert_cmpuint(copied(2), ==, 7);
    g_assert_cmpuint(fake_copy_refills(hosts[2].copy), ==, filled);
    struct copy_position left, right;
    fake_copy_base(hosts[1].copy)->ops->position(fake_copy_base(hosts[1].copy), &left);
    fake_copy_base(hosts[2].copy)->ops->position(fake_copy_base(hosts[2].copy), &right);
    g_assert_cmpuint(left.digest, ==, right.digest);

    /* Of a mastership before etcd's it may have what was lost with that, under the same serial. */
    struct fake_reply reply;
    fake_call_start_stamped(hosts[2].wconfd, 0, (struct stamp){5, 0}, NODE2, ROLE_WCONFD, "follow",
                            json_make("{s:i,s:i,s:s}", "history", 5, "serial", 4, "digest", "12"),
                            &reply);
    fake_advance(world, 10);
    g_assert_true(reply.done);
    g_assert_cmpstr(json_string_value(json_object_get(reply.result, "why")), ==,
                    "it is at serial 4 of epoch 0, and what the content was there is not known "
                    "any more");
    fake_reply_clear(&reply);
    tear_down();
}

/* By a job of the master's node. */
static json_t *ask_master(guint master, struct env *job, const char *method, json_t *args)
{
    g_autoptr(GError) error = NULL;
    struct fake_reply reply;
    fake_call_start_stamped(job, 17, (struct stamp){5, 1}, uuids[master], ROLE_WCONFD, method, args,
                            &reply);
    fake_advance(world, 10);
    g_assert_true(reply.done);
    g_assert_no_error(reply.error);
    json_t *answer = json_incref(reply.result);
    fake_reply_clear(&reply);
    return answer;
}

static void demote(guint node, guint master)
{
    struct env *job = fake_process(world, uuids[master], ROLE_JOB);
    g_autofree char *lock = g_strdup_printf("node-param/%s", uuids[node]);
    fake_livelock(world, uuids[master], "job-17", LIVELOCK_ALIVE);
    json_decref(ask_master(master, job, "update_locks",
                           json_make("{s:o,s:[{s:s,s:s}]}", "owner", owner_json(17), "locks",
                                     "name", lock, "mode", "exclusive")));
    json_decref(
        ask_master(master, job, "commit",
                   json_make("{s:o,s:s,s:[{s:s,s:s,s:s,s:i,s:o}]}", "owner", owner_json(17),
                             "commit_id", "00000000-0000-4000-8000-0000000000de", "changes", "op",
                             "put", "kind", "node", "key", uuids[node], "version", 1, "object",
                             with(object_node(uuids[node]), "master_candidate", json_false()))));
}

/* It was taken off the list while it was away, and is the only one when the master is lost too: its
 * copy still says that it is a candidate, and the seat is free. */
static void test_demoted_while_away(void)
{
    set_up();
    wconfd_kill(&hosts[1]);
    wconfd_kill(&hosts[2]);
    demote(2, 0);
    fake_advance(world, 100);
    wconfd_kill(&hosts[0]);
    fake_cut(world, NODE1, true);
    fake_engine_expire(engine);
    wconfd_start(&hosts[2]);
    fake_advance(world, 10000);
    assert_role(2, "follows 1/1 node node3 is no master candidate on record: the seat is left to "
                   "another one");
    g_assert_null(hosts[2].ended);
    wconfd_start(&hosts[1]);
    fake_advance(world, 30000);
    assert_role(1, "master 3/3"); /* it had the seat for a moment: that was epoch 2 */
    assert_role(2, "retired 1/1 node node3 is no master candidate: it keeps no copy of the "
                   "configuration");
    tear_down();
}

static void test_silent_engine(void)
{
    set_up_nodes();
    fake_engine_silence(engine, true);
    for (guint i = 0; i < NODES; i++)
        wconfd_start(&hosts[i]);
    fake_advance(world, 10000);
    assert_role(0, "follows 0/0 etcd does not answer (made by the test)");
    g_assert_cmpstr(hosts[0].ended, ==, NULL);
    assert_taken(0, "", "",
                 "resource_not_available: this node has no whole copy of the configuration yet");
    fake_engine_silence(engine, false);
    fake_advance(world, 3000);
    assert_role(0, "master 1/1");
    assert_role(1, "follows 1/1");
    tear_down();
}

/* A change of engine has begun: nobody takes the seat of the new one until it is proven that the
 * old one is over; a master of the new one proves it. */
static void undecided_start(guint node, guint64 step)
{
    wconfd_open(&hosts[node]);
    seat_set_engine(hosts[node].seat, ENGINE_KIND_ETCD, "not decided (made by the test)", true);
    seat_set_step(hosts[node].seat, step);
    wconfd_run(&hosts[node]);
}

/* Copies at serial 3 of the engine sqlite, and a change to etcd that node1 was to decide with the
 * commit of a serial. Its wconfd has ended; `told`: how many of the others know of it. */
static void set_up_lost(guint64 step, guint told)
{
    set_up();
    commit_tags(0, 2);
    fake_advance(world, 100);
    for (guint i = 0; i < NODES; i++)
        wconfd_kill(&hosts[i]);
    fake_engine_expire(engine);
    for (guint i = 1; i < NODES; i++)
        undecided_start(i, i <= told ? step : 0);
    fake_advance(world, 1000);
}

static guint decisions;

static void count_decision(const char *kind, const char *key, guint64 version, json_t *object,
                           void *data)
{
    if (!strcmp(kind, "decision") &&
        !strcmp(json_string_value(json_object_get(object, "summary")),
                "made the master in the place of node node1 by a person's word"))
        decisions++;
}

/* The one node that may know whether the step was done is lost for good. Etcd has everything that
 * was stored before it: a person's word makes that the engine. */
static void test_decided_by_word(void)
{
    set_up_lost(4, 2);
    assert_role(1, "follows 1/3 not decided (made by the test)");
    assert_taken(1, "", "",
                 "unsafe: the node daemon of node node1, which is the master, answers; power it "
                 "off first if it cannot be master any more");
    assert_taken(1, "", "all burned",
                 "wrong_input: alone, statement: are for the engine sqlite; with etcd nobody is "
                 "master without a majority of its members, and nothing of what they have is lost");
    fake_cut(world, NODE1, true);
    fake_advance(world, 60000);
    assert_role(1, "follows 1/3 not decided (made by the test)");
    fake_engine_silence(engine, true);
    fake_advance(world, 1000);
    assert_taken(
        1, "", "",
        "resource_not_available: whether the engine is etcd can be decided with a majority "
        "of its members only: etcd does not answer (made by the test)");
    fake_engine_silence(engine, false);
    fake_advance(world, 1000);
    /* Asked for on node2. */
    assert_taken(1, "node3", "", "node3 3");
    fake_advance(world, 3000);
    assert_role(2, "master 2/6"); /* with what it has put on record */
    assert_role(1, "follows 2/6");
    decisions = 0;
    fake_copy_base(hosts[1].copy)
        ->ops->load(fake_copy_base(hosts[1].copy), count_decision, NULL, NULL);
    g_assert_cmpuint(decisions, ==, 1);
    tear_down();
}

/* A copy that has the serial proves that the step was not done: this process is of no use. */
static void test_not_made(void)
{
    set_up_lost(3, 1);
    g_assert_cmpstr(hosts[1].ended, ==,
                    "resource_not_available: the change of the engine was not made: the copy of "
                    "this node has later changes of the engine sqlite; starting anew");
    g_assert_null(hosts[2].ended); /* its file does not say which serial it is */
    assert_role(2, "follows 1/3 not decided (made by the test)");
    tear_down();
}

static void test_undecided(void)
{
    set_up_nodes();
    for (guint i = 0; i < NODES; i++) {
        wconfd_open(&hosts[i]);
        seat_set_engine(hosts[i].seat, ENGINE_KIND_ETCD, "not decided (made by the test)", true);
        wconfd_run(&hosts[i]);
    }
    fake_advance(world, 10000);
    assert_role(0, "follows 0/0 not decided (made by the test)");
    assert_role(1, "follows 0/0 not decided (made by the test)");
    /* As node1 knows it, which made the step. */
    seat_set_engine(hosts[0].seat, ENGINE_KIND_ETCD, NULL, false);
    fake_advance(world, 3000);
    assert_role(0, "master 1/1");
    assert_role(1, "follows 1/1");
    fake_pause(hosts[0].wconfd);
    fake_engine_expire(engine);
    fake_advance(world, 3000);
    assert_role(1, "master 2/2");
    tear_down();
}

static void test_hand_over(void)
{
    set_up();
    assert_taken(0, "node1", "", "wrong_state: node \"node1\" is the master already");
    assert_taken(0, "node9", "", "unknown_entity: node \"node9\" does not exist");
    assert_taken(0, "node2", "so it be",
                 "wrong_input: alone, statement: are for the engine sqlite; with etcd nobody is "
                 "master without a majority of its members, and nothing of what they have is lost");
    /* Asked on node3, which is meant itself. */
    commit_tags(0, 1);
    fake_advance(world, 100);
    assert_taken(2, "", "", "node3 2");
    fake_advance(world, 100);
    g_assert_cmpstr(hosts[0].ended, ==,
                    "not_master: mastership was handed to node node3; starting anew");
    wconfd_kill(&hosts[0]);
    wconfd_start(&hosts[0]);
    fake_advance(world, 3000);
    assert_role(2, "master 2/3");
    assert_role(0, "follows 2/3");
    assert_role(1, "follows 2/3");
    /* Asked on the master, for anybody; by the name of one; by UUID. */
    assert_taken(2, NODE1, "", "node1 3");
    fake_advance(world, 100);
    wconfd_kill(&hosts[2]);
    wconfd_start(&hosts[2]);
    fake_advance(world, 3000);
    assert_role(0, "master 3/4");
    tear_down();
}

/* A follower far behind; `data` NULL: one without etc/engine.json. */
static json_t *answer_role(const struct rpc_request *request, const char *to_node, void *data,
                           GError **error)
{
    return json_make("{s:s,s:i,s:i,s:i,s:s}", "seat", data ? data : "follows", "history", 5,
                     "epoch", 1, "serial", 2, "engine", data ? "etcd" : "sqlite");
}

static void test_unfit(void)
{
    set_up();
    fake_cut(world, NODE3, true);
    assert_taken(0, "node3", "",
                 "wrong_state: wconfd of node node3 does not answer: the node cannot be reached");
    fake_cut(world, NODE3, false);
    fake_advance(world, 1000);

    fake_copy_fail(hosts[2].copy, 100000);
    commit_tags(0, 1);
    fake_advance(world, 1000);
    assert_taken(0, "node3", "",
                 "wrong_state: node node3 cannot become the master now: the disk has failed");
    fake_copy_fail(hosts[2].copy, 0);
    fake_advance(world, 1000);

    commit_tags(0, LIMIT_HANDOVER_LAG + 1);
    fake_advance(world, 1000);
    fake_script(world, NODE3, ROLE_WCONFD, "wait_role", answer_role, "follows");
    assert_taken(0, "node3", "",
                 "wrong_state: the copy of node node3 is far behind: it has serial 2 of epoch 1, "
                 "the master serial 1003 of epoch 1; wait until it has caught up");
    fake_script(world, NODE3, ROLE_WCONFD, "wait_role", answer_role, "retired");
    assert_taken(0, "node3", "",
                 "wrong_state: node node3 is no follower of this master (it says: retired)");
    fake_script(world, NODE3, ROLE_WCONFD, "wait_role", answer_role, NULL);
    assert_taken(0, "node3", "",
                 "wrong_state: node node3 does not know that the engine is etcd: its "
                 "etc/engine.json is missing, or its wconfd was not started since");
    /* The other one is taken if none is named. */
    assert_taken(0, "", "", "node2 1003");
    tear_down();
}

/* Of two that are ready the one with the newer copy is taken, wherever it stands in the list. */
static void test_newest(void)
{
    static const char *const older[] = {NODE2, NODE3}, *const taken[] = {"node3 4", "node2 4"};
    for (guint i = 0; i < 2; i++) {
        set_up();
        commit_tags(0, 3);
        fake_advance(world, 1000);
        fake_script(world, older[i], ROLE_WCONFD, "wait_role", answer_role, "follows");
        assert_taken(0, "", "", taken[i]);
        tear_down();
    }
}

/* etcd does not say what became of it: the master goes on, or ends. */
static void test_resign_fails(void)
{
    set_up();
    fake_engine_fail_resign(engine, FETTLE_ERROR_TEMPORARY);
    assert_taken(0, "node2", "", "resource_not_available: made by the test");
    commit_tags(0, 1);
    g_assert_cmpstr(hosts[0].ended, ==, NULL);
    fake_engine_fail_resign(engine, FETTLE_ERROR_UNKNOWN_RESULT);
    assert_taken(0, "node2", "", "unknown_result: made by the test");
    g_assert_cmpstr(hosts[0].ended, ==,
                    "unknown_result: mastership was to be handed to node node2, and it is not "
                    "known whether it was: made by the test");
    tear_down();
}

/* What was sent to the engine is stored before the seat is given up; new calls wait. */
static void test_drains(void)
{
    set_up();
    struct env *luxid = fake_process(world, NODE1, ROLE_LUXID);
    struct fake_reply commit, over;
    fake_livelock(world, NODE1, "luxid-1", LIVELOCK_ALIVE);
    fake_engine_hold(engine);
    fake_call_start(luxid, 0, NODE1, ROLE_WCONFD, "commit",
                    json_make("{s:{s:s,s:s},s:s,s:[{s:s,s:s,s:s,s:{s:s,s:s,s:s}}]}", "owner", "job",
                              "luxid", "livelock", "luxid-1", "commit_id",
                              "00000000-0000-4000-8000-0000000000ff", "changes", "op", "put",
                              "kind", "tag", "key", "instance/" WEB1 "/late", "object", "kind",
                              "instance", "object", WEB1, "tag", "late"),
                    &commit);
    fake_settle(world);
    fake_call_start(hosts[0].cli, 0, NODE1, ROLE_WCONFD, "take_over",
                    json_make("{s:s}", "node", "node2"), &over);
    fake_advance(world, 500);
    g_assert_false(over.done);
    g_autoptr(GError) error = NULL;
    g_assert_null(fake_call(luxid, NODE1, ROLE_WCONFD, "cluster_status", json_object(), &error));
    g_assert_cmpstr(error->message, ==,
                    "the mastership is being handed to another node; try again");
    fake_engine_release(engine);
    fake_advance(world, 50);
    g_assert_true(commit.done);
    g_assert_no_error(commit.error);
    g_assert_true(over.done);
    g_assert_no_error(over.error);
    fake_reply_clear(&commit);
    fake_reply_clear(&over);
    fake_advance(world, 2000);
    assert_role(1, "master 2/3");
    tear_down();
}

static bool no_observe(struct engine *closed, struct mastership *ret_master, GError **error)
{
    g_error("an engine that is closed is asked");
    return false;
}

static void close_and_kill(void *data)
{
    static const struct engine_ops no_ops = {.observe = no_observe};
    static struct engine closed = {.ops = &no_ops, .replicated = true};
    struct host *host = data;
    host->wconfd->engine = &closed;
    fake_kill(host->wconfd);
}

/* It ends in the moment in which it begins to look for a master. */
static void test_ends_at_once(void)
{
    set_up_nodes();
    wconfd_open(&hosts[0]);
    task_spawn(hosts[0].wconfd->tasks, start_task, &hosts[0]);
    fake_post(world, close_and_kill, &hosts[0]);
    fake_settle(world);
    seat_free(hosts[0].seat);
    hosts[0].seat = NULL;
    fake_settle(world);
    tear_down();
}

/* The old master stands still, and lets the others' questions wait: they turn to the new one. */
static void test_copies_turn(void)
{
    set_up();
    commit_tags(0, 1);
    fake_advance(world, 1000);
    fake_pause(hosts[0].wconfd);
    fake_engine_expire(engine);
    fake_advance(world, 3500);
    g_autofree char *role = role_of(1);
    guint next = g_str_has_prefix(role, "master") ? 1 : 2;
    guint other = 3 - next;
    struct copy_position at;
    fake_copy_base(hosts[other].copy)->ops->position(fake_copy_base(hosts[other].copy), &at);
    g_assert_cmpuint(at.epoch, ==, 2);
    fake_resume(hosts[0].wconfd);
    tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/seat-etcd/one-master#SAF-01,SAF-07,WCF-08", test_one_master);
    g_test_add_func("/seat-etcd/demoted-while-away#SAF-07", test_demoted_while_away);
    g_test_add_func("/seat-etcd/next-master#SAF-01,SAF-07", test_next_master);
    g_test_add_func("/seat-etcd/log-goes-on#SAF-07,WCF-04", test_log_goes_on);
    g_test_add_func("/seat-etcd/silent-engine#SAF-08", test_silent_engine);
    g_test_add_func("/seat-etcd/undecided#SAF-01", test_undecided);
    g_test_add_func("/seat-etcd/decided-by-a-word#SAF-01,SAF-07", test_decided_by_word);
    g_test_add_func("/seat-etcd/change-not-made#SAF-01,SAF-07", test_not_made);
    g_test_add_func("/seat-etcd/hand-over#SAF-01,SAF-08", test_hand_over);
    g_test_add_func("/seat-etcd/hand-over/newest#SAF-08", test_newest);
    g_test_add_func("/seat-etcd/unfit#SAF-07", test_unfit);
    g_test_add_func("/seat-etcd/resign-fails#SAF-04,SAF-08", test_resign_fails);
    g_test_add_func("/seat-etcd/drains#SAF-04", test_drains);
    g_test_add_func("/seat-etcd/ends-at-once", test_ends_at_once);
    g_test_add_func("/seat-etcd/copies-turn#SAF-07,WCF-04", test_copies_turn);
    return g_test_run();
}
