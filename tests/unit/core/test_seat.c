/*
 * Candidates: a master of node1, followers of node2 and node3 with copies of their own, and a
 * person who makes one of them the master. core/config/seat.c, copying.c, takeover.c.
 */
#include "core/config/seat.h"

#include <string.h>

#include "config_world.h"
#include "core/guest/fence.h"
#include "helper/fake_authority.h"
#include "helper/fake_copy.h"
#include "proto/records.h"

#define NODES 3

static const char *const uuids[NODES] = {NODE1, NODE2, NODE3};

struct host {
    struct env *noded, *wconfd, *cli;
    struct fence *fence;
    struct fake_engine *engine; /* node1 */
    struct fake_copy *copy;     /* the others */
    struct fake_authority *authority;
    struct seat *seat;
    char *ended; /* why its wconfd has */
};

static struct fake_world *world;
static struct host hosts[NODES];

/* --- node daemons, of which only the fence counts --- */

struct call {
    struct host *host;
    struct rpc_request *request;
};

static json_t *answer_of(struct host *host, struct rpc_request *request, GError **error)
{
    if (!strcmp(request->name, "node_report"))
        return json_make("{s:s}", "node", host->noded->node_uuid);
    if (!strcmp(request->name, "announce")) {
        record_autoptr(announce_args) args = announce_args_parse(request->args, RECORD_LAX, error);
        return args && fence_announce(host->fence, request->from_node, args, error) ? json_object()
                                                                                    : NULL;
    }
    record_autoptr(promise_epoch_args) args =
        promise_epoch_args_parse(request->args, RECORD_LAX, error);
    record_autoptr(promise_epoch_result) result =
        args ? fence_promise(host->fence, request->from_node, args, error) : NULL;
    return result ? promise_epoch_result_to_json(result) : NULL;
}

static void call_task(void *data)
{
    g_autofree struct call *call = data;
    g_autoptr(GError) error = NULL;
    json_t *answer = answer_of(call->host, call->request, &error);
    if (answer)
        rpc_answer(call->request, answer);
    else
        rpc_fail(call->request, error);
}

static void noded_handle(struct rpc_request *request, void *data)
{
    struct call *call = g_new(struct call, 1);
    *call = (struct call){data, request};
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
    host->ended = g_strdup_printf("%s: %s", fettle_error_name(reason), reason->message);
}

static void start_task(void *data)
{
    g_autoptr(GError) error = NULL;
    if (!seat_start(((struct host *)data)->seat, &error))
        ended(error, data);
}

static void wconfd_start(struct host *host)
{
    host->wconfd = fake_process(world, host->noded->node_uuid, ROLE_WCONFD);
    host->wconfd->engine = host->engine ? fake_engine_base(host->engine) : NULL;
    host->wconfd->authority = fake_authority_base(host->authority);
    host->seat = seat_new(host->wconfd, host->engine ? NULL : fake_copy_base(host->copy));
    seat_on_end(host->seat, ended, host);
    fake_serve(host->wconfd, wconfd_handle, host);
    task_spawn(host->wconfd->tasks, start_task, host);
    fake_advance(world, 1);
}

/* Whoever waits for its role meanwhile is answered to the last. */
static void wconfd_kill(struct host *host)
{
    struct fake_reply waits;
    fake_call_start(
        host->cli, 0, host->noded->node_uuid, ROLE_WCONFD, "wait_role",
        json_make("{s:s,s:i,s:i}", "seat",
                  enum_word(&seat_role_words, host->engine ? SEAT_MASTER : SEAT_FOLLOWS), "epoch",
                  1, "wait_ms", 60000),
        &waits);
    fake_settle(world);
    if (host->engine)
        fake_engine_crash(host->engine);
    /* It is closed by now. */
    host->wconfd->engine = host->engine ? (struct engine *)host : NULL;
    fake_kill(host->wconfd);
    seat_free(host->seat);
    host->seat = NULL;
    fake_settle(world);
    g_assert_true(waits.done);
    fake_reply_clear(&waits);
    g_clear_pointer(&host->ended, g_free);
}

static GPtrArray *objects(void)
{
    GPtrArray *all = initial_changes();
    for (guint i = 0; i < NODES; i++)
        g_ptr_array_add(all, put("node", uuids[i], 1,
                                 with(object_node(uuids[i]), "master_candidate", json_true())));
    return all;
}

static void set_up(void)
{
    g_autoptr(GPtrArray) start = objects();
    world = fake_world_new();
    fake_world_set_master(world, NODE1);
    for (guint i = 0; i < NODES; i++) {
        struct host *host = &hosts[i];
        *host = (struct host){.noded = fake_process(world, uuids[i], ROLE_NODED)};
        host->cli = fake_process(world, uuids[i], ROLE_CLI);
        host->fence = fence_new(host->noded, CLUSTER);
        host->engine = i == 0 ? fake_engine_new(5, start) : NULL;
        host->copy = i > 0 ? fake_copy_new() : NULL;
        host->authority = fake_authority_new("ca", i == 0 ? "ca key" : NULL);
        fake_serve(host->noded, noded_handle, host);
    }
    for (guint i = 0; i < NODES; i++)
        wconfd_start(&hosts[i]);
    fake_advance(world, 500);
}

static void tear_down(void)
{
    for (guint i = 0; i < NODES; i++) {
        struct host *host = &hosts[i];
        if (host->seat)
            wconfd_kill(host);
        fake_kill(host->noded);
        fence_free(host->fence);
        if (host->copy)
            fake_copy_free(host->copy);
        fake_authority_free(host->authority);
    }
    fake_world_free(world);
    fake_engine_free(hosts[0].engine);
}

/* --- questions --- */

/* "ROLE history/epoch/serial" (an epoch after a leap: "leapt"), with " why" if there is a reason.
 */
static char *role_of(guint node)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json =
        fake_call(hosts[node].cli, uuids[node], ROLE_WCONFD, "wait_role", json_object(), &error);
    g_assert_no_error(error);
    record_autoptr(role_status) status = role_status_parse(json, RECORD_LAX, &error);
    g_assert_no_error(error);
    g_autofree char *epoch = status->epoch > LIMIT_EPOCH_LEAP
                                 ? g_strdup("leapt")
                                 : g_strdup_printf("%d", (int)status->epoch);
    return g_strdup_printf("%s %d/%s/%d%s%s", enum_word(&seat_role_words, (int)status->seat),
                           (int)status->history, epoch, (int)status->serial,
                           *status->why ? " " : "", status->why);
}

#define assert_role(node, expected)                                                                \
    do {                                                                                           \
        g_autofree char *said_ = role_of(node);                                                    \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

/* By luxid of node1. */
static void commit_tag(const char *text)
{
    static guint number;
    g_autoptr(GError) error = NULL;
    struct env *luxid = fake_process(world, NODE1, ROLE_LUXID);
    g_autofree char *key = g_strdup_printf("instance/" WEB1 "/%s", text);
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012x", ++number);
    json_autoptr answer = fake_call(
        luxid, NODE1, ROLE_WCONFD, "commit",
        json_make("{s:{s:s,s:s},s:s,s:[{s:s,s:s,s:s,s:{s:s,s:s,s:s}}]}", "owner", "job", "luxid",
                  "livelock", "luxid-1", "commit_id", id, "changes", "op", "put", "kind", "tag",
                  "key", key, "object", "kind", "instance", "object", WEB1, "tag", text),
        &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
}

/* By a job of node1 that holds the node's lock; `version` is the record's. */
static void set_candidate(const char *node, bool candidate, guint version)
{
    struct env *job = fake_process(world, NODE1, ROLE_JOB);
    struct fake_reply reply;
    g_autofree char *lock = g_strdup_printf("node-param/%s", node);
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-9000-%012x", version);
    fake_livelock(world, NODE1, "job-17", LIVELOCK_ALIVE);
    fake_call_start_stamped(job, 17, (struct stamp){5, 1}, NODE1, ROLE_WCONFD, "update_locks",
                            json_make("{s:o,s:[{s:s,s:s}]}", "owner", owner_json(17), "locks",
                                      "name", lock, "mode", "exclusive"),
                            &reply);
    fake_settle(world);
    fake_reply_clear(&reply);
    fake_call_start_stamped(
        job, 17, (struct stamp){5, 1}, NODE1, ROLE_WCONFD, "commit",
        json_make("{s:o,s:s,s:[{s:s,s:s,s:s,s:i,s:o}]}", "owner", owner_json(17), "commit_id", id,
                  "changes", "op", "put", "kind", "node", "key", node, "version", version, "object",
                  with(object_node(node), "master_candidate", json_boolean(candidate))),
        &reply);
    fake_advance(world, 10);
    g_assert_true(reply.done);
    g_assert_no_error(reply.error);
    fake_reply_clear(&reply);
    fake_advance(world, 1000);
}

/* A person on a node: "node SERIAL", or the error. */
static char *take_over(guint node, const char *to, const char *statement)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = fake_call(
        hosts[node].cli, uuids[node], ROLE_WCONFD, "take_over",
        json_make("{s:s,s:b,s:s}", "node", to, "alone", *statement != '\0', "statement", statement),
        &error);
    if (!json)
        return g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    return g_strdup_printf("%s %d", json_string_value(json_object_get(json, "name")),
                           (int)json_integer_value(json_object_get(json, "serial")));
}

#define assert_taken(node, to, statement, expected)                                                \
    do {                                                                                           \
        g_autofree char *said_ = take_over(node, to, statement);                                   \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

static guint64 digest_of(guint node)
{
    struct copy *copy = fake_copy_base(hosts[node].copy);
    struct copy_position at;
    copy->ops->position(copy, &at);
    return at.digest;
}

/* --- tests --- */

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
    g_assert_cmpstr(error->message, ==, "this node is not the master, node1 (10.0.0.1) is");
    tear_down();
}

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

/* Node1 has lost its power. */
static void lose_master(void)
{
    wconfd_kill(&hosts[0]);
    fake_kill(hosts[0].noded);
    fake_cut(world, NODE1, true);
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
    tear_down();
}

static void answer_as_master(struct rpc_request *request, void *data)
{
    g_assert_cmpstr(request->name, ==, "wait_role");
    rpc_answer(request, json_make("{s:s,s:i,s:i,s:i}", "seat", "master", "history", 5, "epoch", 2,
                                  "serial", 2));
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
         "stale_epoch: node node3 has become master meanwhile: this one is made it no more"},
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
        g_string_append_printf(text, "candidate %d;",
                               json_is_true(json_object_get(object, "master_candidate")));
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
    g_assert_nonnull(strstr(text->str, "candidate 0;"));
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

static void reboot_node1(void)
{
    struct host *host = &hosts[0];
    fake_kill(host->noded);
    fence_free(host->fence);
    fake_reboot(world, NODE1);
    host->noded = fake_process(world, NODE1, ROLE_NODED);
    host->cli = fake_process(world, NODE1, ROLE_CLI);
    host->fence = fence_new(host->noded, CLUSTER);
    fake_serve(host->noded, noded_handle, host);
}

/* After a power cut of all, only the one with the engine comes back. */
static void reboot_alone(void)
{
    for (guint i = 0; i < NODES; i++) {
        struct host *host = &hosts[i];
        wconfd_kill(host);
        fake_kill(host->noded);
        fence_free(host->fence);
        fake_reboot(world, uuids[i]);
        host->noded = fake_process(world, uuids[i], ROLE_NODED);
        host->cli = fake_process(world, uuids[i], ROLE_CLI);
        host->fence = fence_new(host->noded, CLUSTER);
        if (i == 0)
            fake_serve(host->noded, noded_handle, host);
    }
    wconfd_start(&hosts[0]);
    fake_advance(world, 60000);
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
    assert_taken(0, "", "both burned", "node1 3");
    fake_advance(world, 5000);
    assert_role(0, "master 5/leapt/3");
    assert_taken(0, "", "both burned", "wrong_state: this node is the master");
    g_autoptr(GString) text = g_string_new(NULL);
    guint64 history, serial;
    g_assert_true(hosts[0].wconfd->engine->ops->load(hosts[0].wconfd->engine, &history, &serial,
                                                     find_master, text, NULL));
    g_assert_nonnull(strstr(text->str, "goes on as the master without the candidates that are "
                                       "silent, by a person's word: both burned;"));
    g_assert_nonnull(strstr(text->str, "candidate 1;")); /* node1 */

    /* The next time the others are asked, and that they are silent is no hindrance. */
    wconfd_kill(&hosts[0]);
    reboot_node1();
    wconfd_start(&hosts[0]);
    fake_advance(world, 25000);
    assert_role(0, "campaigns 5/leapt/3");
    fake_advance(world, 40000);
    assert_role(0, "master 5/leapt/3");
    for (guint i = 1; i < NODES; i++)
        wconfd_start(&hosts[i]);
    tear_down();
}

/* By a second word, of which node1 knows nothing, node2 has become the master: one that has begun,
 * as far as this node's daemon has heard. */
static void second_word(guint heard_by)
{
    struct env *other = fake_process(world, NODE2, ROLE_WCONFD);
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        fake_call(other, uuids[heard_by], ROLE_NODED, "promise_epoch",
                  json_make("{s:i,s:I,s:I,s:s,s:b}", "history", 5, "epoch", (json_int_t)1 << 52,
                            "since", (json_int_t)1 << 52, "node", NODE2, "begins", 1),
                  &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(json_object_get(answer, "granted")));
}

/* Node1 is the only candidate by a person's word, and so is node2 by another one: whoever comes
 * back asks all nodes, as its own list of candidates proves nothing. */
static void test_two_words(void)
{
    set_up();
    reboot_alone();
    assert_taken(0, "", "both burned", "node1 2");
    fake_advance(world, 5000);
    assert_role(0, "master 5/leapt/2");
    wconfd_kill(&hosts[0]);
    /* Node3 tells it: the new master itself is out of reach. */
    fake_serve(hosts[2].noded, noded_handle, &hosts[2]);
    second_word(2);
    reboot_node1();
    wconfd_start(&hosts[0]);
    fake_advance(world, 5000);
    g_assert_cmpstr(hosts[0].ended, ==,
                    "stale_epoch: node node2 has become master meanwhile: the store of this node "
                    "is not the engine any more");
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
    fake_reboot(world, NODE1);
    fake_cut(world, NODE1, false);
    hosts[0].noded = fake_process(world, NODE1, ROLE_NODED);
    fence_free(hosts[0].fence);
    hosts[0].fence = fence_new(hosts[0].noded, CLUSTER);
    fake_serve(hosts[0].noded, noded_handle, &hosts[0]);
    wconfd_start(&hosts[0]);
    fake_advance(world, 5000);
    g_assert_cmpstr(hosts[0].ended, ==,
                    "stale_epoch: node node2 has become master meanwhile: the store of this node "
                    "is not the engine any more");
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
                    "not_master: a node follows a later mastership, of node " NODE3);
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
    g_test_add_func("/seat/master-lives#SAF-07", test_master_lives);
    g_test_add_func("/seat/undecided-elsewhere#SAF-07", test_undecided);
    g_test_add_func("/seat/failover-that-has-happened#SAF-07", test_has_happened);
    g_test_add_func("/seat/takes-over#SAF-07", test_takes_over);
    g_test_add_func("/seat/alone#SAF-07", test_alone);
    g_test_add_func("/seat/engine-alone#SAF-07", test_engine_alone);
    g_test_add_func("/seat/two-words#SAF-06,SAF-07", test_two_words);
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
