/*
 * Requests, the epoch fence, what survives, the report of a node: core/node node.c, core/epoch
 * epoch_fence.c, report.c.
 */
#include "core/node/node_private.h"
#include "helper/node_world.h"

#define NODE_X "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee"

static json_t *call_stamped(struct node_world *nw, guint64 history, guint64 epoch, GError **error)
{
    struct fake_reply reply;
    nw_call_start(nw, &nw->a, "image_info", (struct stamp){history, epoch},
                  json_make("{s:s}", "os_type", "tick"), &reply);
    nw_until(nw, reply.done);
    if (reply.error)
        g_propagate_error(error, reply.error);
    return reply.result;
}

static void test_stamps(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->stamp = (struct stamp){2, 5};
    g_assert_true(nw_announce(nw, &nw->a, NULL));

    json_t *answer = call_stamped(nw, 2, 4, &error);
    assert_refused(answer, error, STALE_EPOCH,
                   "the request is of history 2 epoch 4, this node has seen history 2 epoch 5");
    answer = call_stamped(nw, 1, 9, &error);
    assert_refused(answer, error, STALE_EPOCH,
                   "the request is of history 1 epoch 9, this node has seen history 2 epoch 5");
    answer = call_stamped(nw, 2, 6, &error);
    assert_refused(answer, error, TEMPORARY,
                   "history 2 epoch 6 was not announced to this node yet; try again");
    json_autoptr good = call_stamped(nw, 2, 5, &error);
    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(json_object_get(good, "bytes")), ==, 1024 * 1024);

    /* A report is no action: it may be asked for under any epoch. */
    struct fake_reply reply;
    nw_call_start(nw, &nw->a, "node_report", (struct stamp){1, 1}, json_object(), &reply);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

static bool admit(struct node_world *nw, const struct node_core *core, const char *from,
                  const char *name, GError **error)
{
    const struct method *method = method_find(ROLE_NODED, name);
    return node_core_admit(core, from, method_allows(method, ROLE_JOB) ? ROLE_JOB : ROLE_WCONFD,
                           method, nw->stamp, error);
}

static void test_members(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    g_assert_true(admit(nw, nw->a.core, NODE_M, "guest_stop", &error));
    g_assert_false(admit(nw, nw->a.core, NODE_X, "guest_stop", &error));
    assert_refused(NULL, error, PERMISSION,
                   "node eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee is no member of this cluster");
    g_assert_false(admit(nw, nw->a.core, NODE_X, "announce", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PERMISSION);
    g_clear_error(&error);
    g_assert_cmpuint(node_core_members(nw->a.core)->len, ==, 3);
    g_assert_cmpstr(node_core_master(nw->a.core), ==, NODE_M);

    /* A node that has no members yet takes an announcement from anybody, nothing else. */
    struct env *env = fake_process(nw->world, NODE_M, ROLE_NODED);
    env->hypervisor = nw->b.env->hypervisor;
    env->network = nw->b.env->network;
    env->storage = nw->b.env->storage;
    struct node_core *newborn = node_core_new(env, CLUSTER, "10.0.0.3");
    g_assert_false(admit(nw, newborn, NODE_X, "announce", &error));
    assert_refused(NULL, error, TEMPORARY,
                   "the node daemon is starting and does not know yet what runs here; try again");
    g_assert_true(nw_try_start(env, newborn, NULL));
    g_assert_true(admit(nw, newborn, NODE_X, "announce", &error));
    g_assert_false(admit(nw, newborn, NODE_X, "node_report", &error));
    assert_refused(NULL, error, PERMISSION,
                   "node eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee is no member of this cluster: this "
                   "node knows no members before the first announcement");
    g_assert_cmpstr(node_core_master(newborn), ==, "");
    fake_kill(env);
    node_core_free(newborn);
    node_world_free(nw);
}

static json_t *announce_as(struct node_world *nw, const struct env *from, json_t *change,
                           GError **error)
{
    json_autoptr args =
        json_make("{s:i,s:i,s:s,s:s,s:i,s:[{s:s,s:s,s:s,s:i}]}", "history", 1, "epoch", 1,
                  "cluster", CLUSTER, "master_node", NODE_M, "serial", 2, "members", "uuid", NODE_M,
                  "name", "m", "address", "10.0.0.9", "port", 1811);
    json_object_update(args, change);
    json_decref(change);
    return fake_call(from, NODE_A, ROLE_NODED, "announce", json_incref(args), error);
}

static void test_announcements(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    json_t *answer = announce_as(nw, nw->master, json_make("{s:s}", "cluster", NODE_X), &error);
    assert_refused(answer, error, PERMISSION,
                   "the announcement is of cluster eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee, this node "
                   "belongs to cluster dddddddd-dddd-4ddd-8ddd-dddddddddddd");
    answer = announce_as(nw, nw->master, json_make("{s:i}", "epoch", 0), &error);
    assert_refused(answer, error, WRONG_INPUT, "epoch: must be at least 1");
    answer = announce_as(nw, nw->master, json_make("{s:i}", "history", 0), &error);
    assert_refused(answer, error, STALE_EPOCH,
                   "the request is of history 0 epoch 1, this node has seen history 1 epoch 1");
    struct env *impostor = fake_process(nw->world, NODE_B, ROLE_WCONFD);
    answer = announce_as(nw, impostor, json_make("{s:i}", "epoch", 2), &error);
    assert_refused(answer, error, PERMISSION,
                   "the announcement names node cccccccc-cccc-4ccc-8ccc-cccccccccccc as master but "
                   "comes from node bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb");
    answer = announce_as(nw, impostor, json_make("{s:s}", "master_node", NODE_B), &error);
    assert_refused(answer, error, STALE_EPOCH,
                   "epoch 1 is the mastership of node cccccccc-cccc-4ccc-8ccc-cccccccccccc, not of "
                   "node bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb");
    answer = announce_as(nw, nw->master,
                         json_make("{s:b,s:i,s:[]}", "again", 1, "serial", 3, "members"), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "this node has members 1 of epoch 1, not 3 of epoch 1; announce them whole");
    answer = announce_as(nw, nw->master,
                         json_make("{s:b,s:i,s:[]}", "again", 1, "serial", 1, "members"), &error);
    g_assert_no_error(error);
    json_decref(answer);
    g_assert_cmpuint(node_core_members(nw->a.core)->len, ==, 3);
    /* Members change under the same epoch; an older list does not come back. */
    answer = announce_as(nw, nw->master, json_make("{s:i}", "serial", 7), &error);
    g_assert_no_error(error);
    json_decref(answer);
    g_assert_cmpuint(node_core_members(nw->a.core)->len, ==, 1);
    g_assert_true(nw_announce(nw, &nw->a, &error));
    g_assert_cmpuint(node_core_members(nw->a.core)->len, ==, 1);
    node_world_free(nw);
}

/* What a job of epoch 1 does on node A takes its time. */
static void begin_create(struct node_world *nw, struct fake_reply *ret_create)
{
    fake_host_fault(nw->a.host, "create", FAKE_FAULT_SILENT, 1);
    json_t *disks = json_make("[{s:s,s:i}]", "uuid", NODE_X, "size", 1);
    nw_call_start(nw, &nw->a, "disks_create", nw->stamp,
                  json_make("{s:s,s:o}", "instance", WEB1, "disks", disks), ret_create);
    nw_pass(nw, 500);
    g_assert_false(ret_create->done);
}

static void begin_announcement(struct node_world *nw, int epoch, struct fake_reply *ret_announce)
{
    json_t *members = json_make("[{s:s,s:s,s:s,s:i,s:b}]", "uuid", NODE_M, "name", "m", "address",
                                "10.0.0.9", "port", 1811, "master_candidate", 1);
    fake_call_start(nw->master, 0, NODE_A, ROLE_NODED, "announce",
                    json_make("{s:i,s:i,s:s,s:s,s:i,s:o}", "history", 1, "epoch", epoch, "cluster",
                              CLUSTER, "master_node", NODE_M, "serial", 3, "members", members),
                    ret_announce);
    nw_pass(nw, 100);
    g_assert_false(ret_announce->done);
}

/* The one that is overtaken while it waits is not answered as if it counted. */
static void test_announcement_overtaken(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply create, second, third;
    begin_create(nw, &create);
    begin_announcement(nw, 2, &second);
    begin_announcement(nw, 3, &third);
    nw_until(nw, second.done && third.done);
    g_assert_error(second.error, FETTLE_ERROR, FETTLE_ERROR_STALE_EPOCH);
    g_assert_no_error(third.error);
    fake_reply_clear(&create);
    fake_reply_clear(&second);
    fake_reply_clear(&third);
    node_world_free(nw);
}

/* A new master's announcement waits for what runs under the old one, and nothing old begins. */
static void test_announcement_waits(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply create, announce, late;
    begin_create(nw, &create);
    struct stamp old = nw->stamp;
    begin_announcement(nw, 2, &announce);
    nw_call_start(nw, &nw->a, "image_info", old, json_make("{s:s}", "os_type", "tick"), &late);
    nw_pass(nw, 10);
    g_assert_true(late.done);
    g_assert_error(late.error, FETTLE_ERROR, FETTLE_ERROR_STALE_EPOCH);

    nw_until(nw, announce.done);
    g_assert_no_error(announce.error);
    g_assert_true(create.done);
    fake_reply_clear(&create);
    fake_reply_clear(&announce);
    fake_reply_clear(&late);
    node_world_free(nw);
}

/* What was answered is known after a power cut; what could not be stored is not answered. */
static void test_epoch_survives(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->stamp.epoch = 4;
    g_assert_true(nw_announce(nw, &nw->a, &error));
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    json_t *answer = call_stamped(nw, 1, 3, &error);
    assert_refused(answer, error, STALE_EPOCH,
                   "the request is of history 1 epoch 3, this node has seen history 1 epoch 4");
    g_assert_cmpuint(node_core_members(nw->a.core)->len, ==, 3);

    fake_fail_files(nw->world, "node/state.json", 1);
    nw->stamp.epoch = 5;
    g_assert_false(nw_announce(nw, &nw->a, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_assert_true(g_str_has_prefix(error->message, "var/node/state.json: "));
    g_clear_error(&error);
    /* Lower ones are refused all the same, and the repetition is stored. */
    answer = call_stamped(nw, 1, 4, &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STALE_EPOCH);
    g_clear_error(&error);
    g_assert_true(nw_announce(nw, &nw->a, &error));
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    json_autoptr good = call_stamped(nw, 1, 5, &error);
    g_assert_no_error(error);
    g_assert_nonnull(good);
    node_world_free(nw);
}

static void test_damaged_state(void)
{
    struct node_world *nw = node_world_new(1);
    nw_daemon_kill(nw, &nw->a);
    fake_file_put(nw->world, NODE_A, FILE_STATE, "node/state.json", "{\"history\":1");
    g_autofree char *why = nw_daemon_refuses(nw, &nw->a);
    g_assert_true(g_str_has_prefix(why, "var/node/state.json is damaged ("));
    node_world_free(nw);
}

static void handle_unstarted(struct rpc_request *request, void *data)
{
    node_core_handle(data, request);
}

static void test_not_ready(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    struct env *env = fake_process(nw->world, NODE_M, ROLE_NODED);
    env->hypervisor = fake_host_hypervisor(nw->a.host);
    env->network = fake_host_network(nw->a.host);
    env->storage = fake_host_storage(nw->a.host);
    struct node_core *core = node_core_new(env, CLUSTER, "10.0.0.1");
    fake_serve(env, handle_unstarted, core);
    json_t *answer =
        fake_call(nw->master, NODE_M, ROLE_NODED, "node_report", json_object(), &error);
    assert_refused(answer, error, TEMPORARY,
                   "the node daemon is starting and does not know yet what runs here; try again");
    node_core_free(core);
    node_world_free(nw);
}

static void test_operations_limited(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply *replies = g_new0(struct fake_reply, LIMIT_NODE_OPERATIONS + 1);
    fake_host_fault(nw->a.host, "create", FAKE_FAULT_SILENT, LIMIT_NODE_OPERATIONS + 1);
    for (guint i = 0; i <= LIMIT_NODE_OPERATIONS; i++) {
        g_autofree char *other = g_strdup_printf("44444444-4444-4444-8444-%012x", i);
        json_t *disks = json_make("[{s:s,s:i}]", "uuid", NODE_X, "size", 1);
        nw_call_start(nw, &nw->a, "disks_create", nw->stamp,
                      json_make("{s:s,s:o}", "instance", other, "disks", disks), &replies[i]);
    }
    nw_pass(nw, 50);
    g_assert_false(replies[0].done);
    g_assert_true(replies[LIMIT_NODE_OPERATIONS].done);
    g_assert_error(replies[LIMIT_NODE_OPERATIONS].error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    g_assert_cmpstr(replies[LIMIT_NODE_OPERATIONS].error->message, ==,
                    "1024 operations are under way on this node; try again later");
    nw_until(nw, replies[0].done);
    nw_pass(nw, 3000);
    for (guint i = 0; i <= LIMIT_NODE_OPERATIONS; i++)
        fake_reply_clear(&replies[i]);
    g_free(replies);
    node_world_free(nw);
}

static void test_report(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    json_autoptr of_a = nw_report(nw, &nw->a);
    const json_t *guest = json_array_get(json_object_get(of_a, "guests"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "instance")), ==, WEB1);
    g_assert_cmpint(json_integer_value(json_object_get(guest, "generation")), ==, 2);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "state")), ==, "running");
    g_assert_cmpstr(json_string_value(json_object_get(guest, "mirror")), ==, "ready");
    g_assert_cmpint(json_integer_value(json_object_get(of_a, "memory_total")), ==, 16384);
    g_assert_cmpint(json_integer_value(json_object_get(of_a, "memory_free")), ==, 16384 - 128);
    g_assert_cmpint(json_integer_value(json_object_get(of_a, "cpus")), ==, 8);
    g_assert_cmpstr(json_string_value(json_object_get(of_a, "node")), ==, NODE_A);

    g_assert_true(json_is_false(json_object_get(of_a, "sources_whole")));

    fake_host_set_sources(nw->b.host, "vmlinuz debian.raw");
    json_autoptr of_b = nw_report(nw, &nw->b);
    const json_t *sources = json_object_get(of_b, "sources");
    g_assert_true(json_is_true(json_object_get(of_b, "sources_whole")));
    g_assert_cmpuint(json_array_size(sources), ==, 2);
    g_assert_cmpstr(json_string_value(json_array_get(sources, 1)), ==, "debian.raw");
    const json_t *replica = json_array_get(json_object_get(of_b, "replicas"), 0);
    g_assert_cmpuint(json_array_size(json_object_get(of_b, "guests")), ==, 0);
    g_assert_cmpstr(json_string_value(json_object_get(replica, "replica")), ==, nw->web1.replica);
    g_assert_true(json_is_true(json_object_get(replica, "exported")));

    node_world_free(nw);
}

/* A report in the middle of a start asks no process that is not there yet, and takes nothing from
 * the guest that it becomes. */
static void test_report_while_made(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply reply;
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 0, &error);
    nw_start(nw, &error);
    g_assert_true(nw_stop(nw, 1000, &error));
    fake_host_set_prepare_ms(nw->a.host, 8000);
    nw_commit_start(nw);
    nw_call_start(nw, &nw->a, "guest_start", nw->stamp, nw_start_args(nw, NULL, false, true),
                  &reply);
    nw_pass(nw, 4000);
    g_assert_false(reply.done);
    guint asked = fake_host_count(nw->a.host, "query");
    json_autoptr made = nw_report(nw, &nw->a);
    const json_t *guest = json_array_get(json_object_get(made, "guests"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "state")), ==, "prepared");
    g_assert_cmpint(json_integer_value(json_object_get(guest, "generation")), ==,
                    (json_int_t)nw->web1.generation);
    g_assert_cmpuint(fake_host_count(nw->a.host, "query"), ==, asked);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    fake_reply_clear(&reply);
    json_autoptr after = nw_report(nw, &nw->a);
    guest = json_array_get(json_object_get(after, "guests"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(guest, "state")), ==, "running");
    node_world_free(nw);
}

static void announce_named(struct node_world *nw, bool again)
{
    const struct announce_args *known = epoch_fence_announced(nw->a.core->fence);
    record_autoptr(announce_args) args = announce_args_copy(known);
    struct fake_reply reply;
    text_set(&args->cluster_name, "named");
    args->again = again;
    fake_call_start_stamped(nw->master, 0, nw->stamp, NODE_A, ROLE_NODED, "announce",
                            announce_args_to_json(args), &reply);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    fake_reply_clear(&reply);
}

/* While the disk hangs one writer of the files about the cluster waits, however often a master that
 * is at rest announces itself again. */
static void test_announcements_hung(void)
{
    struct node_world *nw = node_world_new(1);
    fake_fail_files(nw->world, "ssconf/", 2); /* a look, and a write */
    announce_named(nw, false);
    nw_pass(nw, 100);
    fake_set_hung(nw->world, NODE_A, true);
    guint users = nw->a.core->users;
    for (guint i = 0; i < 20; i++)
        announce_named(nw, true);
    nw_pass(nw, 100);
    g_assert_cmpuint(nw->a.core->users, <=, users + 2);
    fake_set_hung(nw->world, NODE_A, false);
    nw_pass(nw, 1000);
    g_assert_cmpuint(nw->a.core->users, <=, users);
    g_assert_cmpuint(nw->a.core->ssconf_serial, ==, nw->serial);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/node/stamps#SAF-02,SAF-05", test_stamps);
    g_test_add_func("/node/members#SAF-05", test_members);
    g_test_add_func("/node/announcements#SAF-05,SAF-06", test_announcements);
    g_test_add_func("/node/announcement-waits#SAF-06", test_announcement_waits);
    g_test_add_func("/node/announcement-overtaken#SAF-06", test_announcement_overtaken);
    g_test_add_func("/node/announcements-while-the-disk-hangs#SAF-91", test_announcements_hung);
    g_test_add_func("/node/epoch-survives#SAF-05", test_epoch_survives);
    g_test_add_func("/node/damaged-state#SAF-05", test_damaged_state);
    g_test_add_func("/node/not-ready#SAF-19", test_not_ready);
    g_test_add_func("/node/operations-limited#SAF-06", test_operations_limited);
    g_test_add_func("/node/report#SAF-19", test_report);
    g_test_add_func("/node/report-while-made#SAF-28", test_report_while_made);
    return g_test_run();
}
