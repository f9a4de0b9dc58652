/* See seat_world.h. */
#include "unit/core/world/seat_world.h"

#include <string.h>

#include "helper/fence_calls.h"
#include "unit/core/world/seat_calls.h"

const char *const uuids[NODES] = {NODE1, NODE2, NODE3};

struct fake_world *world;
struct host hosts[NODES];

/* --- node daemons, of which only the fence counts --- */

struct call {
    struct host *host;
    struct rpc_request *request;
};

static json_t *answer_of(struct host *host, struct rpc_request *request, GError **error)
{
    if (!strcmp(request->name, "node_report"))
        return json_make("{s:s}", "node", host->noded->node_uuid);
    return fence_call(host->fence, request, NULL, error);
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

void noded_handle(struct rpc_request *request, void *data)
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

void wconfd_start(struct host *host)
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
void wconfd_kill(struct host *host)
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

void set_up(void)
{
    g_autoptr(GPtrArray) start = initial_candidates();
    world = fake_world_new();
    fake_world_set_master(world, NODE1);
    for (guint i = 0; i < NODES; i++) {
        struct host *host = &hosts[i];
        *host = (struct host){.noded = fake_process(world, uuids[i], ROLE_NODED)};
        host->cli = fake_process(world, uuids[i], ROLE_CLI);
        host->fence = epoch_fence_new(host->noded, CLUSTER);
        host->engine = i == 0 ? fake_engine_new(5, start) : NULL;
        host->copy = i > 0 ? fake_copy_new() : NULL;
        host->authority = fake_authority_new("ca", i == 0 ? "ca key" : NULL);
        fake_serve(host->noded, noded_handle, host);
    }
    for (guint i = 0; i < NODES; i++)
        wconfd_start(&hosts[i]);
    fake_advance(world, 500);
}

void tear_down(void)
{
    for (guint i = 0; i < NODES; i++) {
        struct host *host = &hosts[i];
        if (host->seat)
            wconfd_kill(host);
        fake_kill(host->noded);
        epoch_fence_free(host->fence);
        if (host->copy)
            fake_copy_free(host->copy);
        fake_authority_free(host->authority);
    }
    fake_world_free(world);
    fake_engine_free(hosts[0].engine);
}

/* --- questions --- */

/* "ROLE history/epoch/serial" (an epoch after a leap: "leapt"; a serial without its leaps), with
 * " why" if there is a reason. */
char *role_of(guint node)
{
    record_autoptr(role_status) status = ask_seat(hosts[node].cli);
    g_autofree char *epoch = status->epoch > LIMIT_EPOCH_LEAP
                                 ? g_strdup("leapt")
                                 : g_strdup_printf("%d", (int)status->epoch);
    return g_strdup_printf("%s %d/%s/%d%s%s", enum_word(&seat_role_words, (int)status->seat),
                           (int)status->history, epoch,
                           (int)(status->serial % LIMIT_SERIALS_PER_SECOND),
                           *status->why ? " " : "", status->why);
}

static guint number; /* of the last commit */

const char *last_commit_id(void)
{
    static char id[37];
    g_snprintf(id, sizeof id, "00000000-0000-4000-8000-%012x", number);
    return id;
}

/* By luxid of node1. */
void commit_tag(const char *text)
{
    fake_livelock(world, NODE1, "luxid-1", LIVELOCK_ALIVE);
    ask_commit_tag(fake_process(world, NODE1, ROLE_LUXID), ++number, text);
}

/* By a job of node1 that holds the node's lock; `version` is the record's. */
void set_candidate(const char *node, bool candidate, guint version)
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
char *take_over(guint node, const char *to, const char *statement)
{
    return ask_take_over(hosts[node].cli, to, statement);
}

guint64 digest_of(guint node)
{
    struct copy *copy = fake_copy_base(hosts[node].copy);
    struct copy_position at;
    copy->ops->position(copy, &at);
    return at.digest;
}

/* --- what happens to them --- */

/* Node1 has lost its power. */
void lose_master(void)
{
    wconfd_kill(&hosts[0]);
    fake_kill(hosts[0].noded);
    fake_cut(world, NODE1, true);
}

static void reboot(struct host *host)
{
    const char *uuid = host->noded->node_uuid;
    fake_kill(host->noded);
    epoch_fence_free(host->fence);
    fake_reboot(world, uuid);
    host->noded = fake_process(world, uuid, ROLE_NODED);
    host->cli = fake_process(world, uuid, ROLE_CLI);
    host->fence = epoch_fence_new(host->noded, CLUSTER);
}

void reboot_node1(void)
{
    fake_cut(world, NODE1, false);
    reboot(&hosts[0]);
    fake_serve(hosts[0].noded, noded_handle, &hosts[0]);
}

/* After a power cut of all, only the one with the engine comes back. */
void reboot_alone(void)
{
    for (guint i = 0; i < NODES; i++) {
        wconfd_kill(&hosts[i]);
        reboot(&hosts[i]);
    }
    fake_serve(hosts[0].noded, noded_handle, &hosts[0]);
    wconfd_start(&hosts[0]);
    fake_advance(world, 60000);
}

void assert_replaced(void)
{
    wconfd_start(&hosts[0]);
    fake_advance(world, 5000);
    g_assert_true(g_str_has_prefix(hosts[0].ended,
                                   "stale_epoch: node node2 has become master meanwhile: the store "
                                   "of this node is not the engine any more (node node"));
}
