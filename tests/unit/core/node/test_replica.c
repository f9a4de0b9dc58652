/* Images, exports, failover and replacing replicas: core/node replica.c and mirror.c. */
#include "unit/core/world/guest_steps.h"

/* --- images and exports --- */

static json_t *disks_args(const char *replica)
{
    return json_make("{s:s,s:s,s:[{s:s,s:i}]}", "instance", WEB1, "replica", replica, "disks",
                     "uuid", OTHER_REPLICA, "size", 1);
}

static void test_create_not_anew(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    json_t *answer = nw_call(nw, &nw->a, "disks_create", disks_args(""), &error);
    assert_refused(answer, error, UNSAFE,
                   "the images of instance web1 were already used here under generation 2; they "
                   "are not made anew");
    answer = nw_call(nw, &nw->b, "disks_create", disks_args(nw->web1.replica), &error);
    assert_refused(
        answer, error, UNSAFE,
        "replica 33333333-3333-4333-8333-000000000001 of instance "
        "11111111-1111-4111-8111-111111111111 was already opened under generation 2; its images "
        "are not made anew");
    node_world_free(nw);
}

static json_t *anew_args(guint64 generation)
{
    json_t *args = disks_args("");
    json_object_set_new(args, "generation", json_integer((json_int_t)generation));
    return args;
}

/* A stopped instance whose record has gone one further: its first disk is written again. */
static void test_create_anew(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_stop(nw, 0, &error);
    g_assert_no_error(error);
    guint64 generation = ++nw->web1.generation;
    for (guint i = 0; i < 2; i++) { /* the answer to the first may have been lost */
        json_autoptr done = nw_call(nw, &nw->a, "disks_create", anew_args(generation), &error);
        g_assert_no_error(error);
        g_assert_nonnull(done);
    }
    json_autoptr report = nw_report(nw, &nw->a);
    g_assert_cmpuint(json_array_size(json_object_get(report, "leftovers")), ==, 0);
    /* A start that was delayed on its way is over, and so is this once the next one has run. */
    nw->web1.state = REPLICA_STALE;
    fake_hosts_give_up(nw->hosts, WEB1, 1);
    nw_start(nw, &error);
    g_assert_no_error(error);
    json_t *late = nw_call(nw, &nw->a, "disks_create", anew_args(generation), &error);
    g_autofree char *text = g_strdup_printf(
        "the images of instance web1 were already used here under generation %" G_GUINT64_FORMAT
        "; they are not made anew",
        nw->web1.generation);
    assert_refused(late, error, UNSAFE, text);
    g_assert_true(runs(&nw->a, nw->web1.generation));
    node_world_free(nw);
}

static void test_open_needs_confirmation(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 1, &error);
    nw_commit_start(nw);
    nw->mood = MASTER_DEPOSED;
    json_t *answer = nw_open_replica(nw, &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
    g_clear_error(&error);
    nw->mood = MASTER_ANSWERS;
    nw->web1.secondary = NODE_A;
    nw->web1.generation++;
    struct fake_reply reply;
    nw_call_start(nw, &nw->b, "replica_open", nw->stamp,
                  json_make("{s:s,s:s,s:i,s:[{s:s,s:i}]}", "instance", WEB1, "replica",
                            nw->web1.replica, "generation", 2, "disks", "uuid", OTHER_REPLICA,
                            "size", 1),
                  &reply);
    nw_until(nw, reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
    g_assert_cmpstr(reply.error->message, ==,
                    "generation 2 of instance 11111111-1111-4111-8111-111111111111 may not export "
                    "here: generation 3 is on record");
    g_assert_cmpuint(fake_host_count(nw->b.host, "export_open"), ==, 0);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

static void test_open_again(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 2, &error);
    nw_commit_start(nw);
    json_autoptr first = nw_open_replica(nw, &error);
    json_autoptr second = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    g_assert_true(json_equal(first, second));
    /* Under the next generation it is another export, with another name and key. */
    nw_commit_start(nw);
    json_autoptr third = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    g_assert_false(json_equal(first, third));
    json_t *answer = nw_call(
        nw, &nw->b, "replica_close",
        json_make("{s:s,s:s,s:i}", "instance", WEB1, "replica", nw->web1.replica, "generation", 2),
        &error);
    assert_refused(answer, error, REFUSED,
                   "replica 33333333-3333-4333-8333-000000000001 was opened again for generation "
                   "3, after generation 2");
    g_assert_true(fake_host_exports(nw->b.host, WEB1));
    node_world_free(nw);
}

/* Who does not hold the instance does not say when all is written, also with the key. */
static void test_settle_of_holder(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, NODE_B, 1, &error);
    nw_commit_start(nw);
    json_autoptr target = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    const char *const nodes[] = {NODE_M, NODE_A};
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        struct fake_reply reply;
        fake_call_start_stamped(fake_process(nw->world, nodes[i], ROLE_NODED), 0, nw->stamp, NODE_B,
                                ROLE_NODED, "replica_settle",
                                json_make("{s:s,s:s,s:i,s:O}", "instance", WEB1, "replica",
                                          nw->web1.replica, "generation", 2, "target", target),
                                &reply);
        nw_until(nw, reply.done);
        if (i)
            g_assert_no_error(reply.error);
        else
            g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_PERMISSION);
        if (!i)
            g_assert_cmpstr(reply.error->message, ==,
                            "replica 33333333-3333-4333-8333-000000000001 is mirrored to by "
                            "node " NODE_A ", which holds generation 2 of instance " WEB1
                            "; node " NODE_M " may not settle it");
        fake_reply_clear(&reply);
    }
    node_world_free(nw);
}

static guint aside(struct node_world *nw)
{
    json_autoptr report = nw_report(nw, &nw->b);
    return (guint)json_array_size(json_object_get(report, "aside_sets"));
}

/* Copied anew although it was whole: its images stay aside until it is so again. */
static void test_open_keeps_images(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_stop(nw, 10000, &error);
    g_assert_no_error(error);
    nw->web1.clean = false; /* as after a crash */
    nw_commit_start(nw);
    json_autoptr target = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(json_object_get(target, "kept")));
    g_assert_cmpuint(aside(nw), ==, 1);
    g_assert_false(fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica)); /* blank */

    /* Asked again, by a job or by the one after it: what a copy has begun is not kept too. */
    json_autoptr again = nw_open_replica(nw, &error);
    g_assert_true(json_is_true(json_object_get(again, "kept")));
    nw_daemon_kill(nw, &nw->b);
    nw_daemon_start(nw, &nw->b);
    nw_commit_start(nw);
    json_autoptr next = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(json_object_get(next, "kept")));
    g_assert_cmpuint(aside(nw), ==, 1);

    start_ok(nw, nw_start_args(nw, next, true, true));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    nw_until(nw, aside(nw) == 0);
    g_assert_true(fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica));
    node_world_free(nw);
}

/* At any moment of such a copy the disk that it is made from can fail: until the replica is on
 * record as in-sync again, what it was is still there. */
static void test_disk_fails_in_the_copy(void)
{
    guint kept = 0, copied = 0;
    for (guint ms = 0; ms <= 400; ms += 10) {
        struct node_world *nw = node_world_new(ms + 1);
        g_autoptr(GError) error = NULL;
        nw_create_and_start(nw);
        nw_pass(nw, 200);
        nw_stop(nw, 10000, &error);
        nw->web1.clean = false; /* as after a crash */
        fake_host_set_quiet(nw->a.host, true);
        nw_start(nw, &error);
        g_assert_no_error(error);
        nw_pass(nw, ms);
        fake_host_set_disks_failed(nw->a.host, true);
        nw_pass(nw, 8000);
        bool whole = fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica);
        copied += nw->web1.state == REPLICA_IN_SYNC;
        kept += nw->web1.state != REPLICA_IN_SYNC;
        if (nw->web1.state == REPLICA_IN_SYNC)
            g_assert_true(whole);
        else
            g_assert_true(fake_hosts_kept_whole(nw->hosts, NODE_B, WEB1));
        node_world_free(nw);
    }
    g_assert_cmpuint(kept, >, 0); /* moments of both kinds */
    g_assert_cmpuint(copied, >, 0);
}

/* Without room the copy goes over them, which is said. */
static void test_open_has_no_room_to_keep(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_stop(nw, 10000, &error);
    nw->web1.clean = false; /* as after a crash */
    nw_commit_start(nw);
    fake_host_fault(nw->b.host, "space", FAKE_FAULT_FAILS, 1);
    json_autoptr target = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    g_assert_false(json_is_true(json_object_get(target, "kept")));
    g_assert_cmpuint(aside(nw), ==, 0);
    g_assert_true(fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica));
    node_world_free(nw);
}

/* There was none when it was opened first, and there is now: what has them open is closed, and they
 * are kept. */
static void test_open_finds_room_later(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_stop(nw, 10000, &error);
    nw->web1.clean = false; /* as after a crash */
    nw_commit_start(nw);
    fake_host_fault(nw->b.host, "space", FAKE_FAULT_FAILS, 1);
    json_autoptr first = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    g_assert_false(json_is_true(json_object_get(first, "kept")));
    guint closed = fake_host_count(nw->b.host, "export_close");
    json_autoptr target = nw_open_replica(nw, &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(json_object_get(target, "kept")));
    g_assert_cmpuint(fake_host_count(nw->b.host, "export_close"), ==, closed + 1);
    g_assert_cmpuint(aside(nw), ==, 1);
    g_assert_true(fake_hosts_kept_whole(nw->hosts, NODE_B, WEB1));

    start_ok(nw, nw_start_args(nw, target, true, true));
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    nw_until(nw, aside(nw) == 0);
    g_assert_true(fake_hosts_whole(nw->hosts, NODE_B, WEB1, nw->web1.replica));
    node_world_free(nw);
}

static void test_remove(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    json_t *stale = json_make("{s:s,s:i}", "instance", WEB1, "generation", 1);
    json_t *answer = nw_call(nw, &nw->a, "disks_remove", stale, &error);
    assert_refused(answer, error, REFUSED,
                   "images of instance 11111111-1111-4111-8111-111111111111 were used here under "
                   "generation 2, the request knows of 1 only");
    g_assert_true(runs(&nw->a, 2));
    nw->web1.removed = true;
    nw->web1.generation = 3;
    /* What it forbids is on disk before anything goes. */
    fake_fail_files(nw->world, "node/guests", 1);
    answer = nw_call(nw, &nw->a, "disks_remove", nw_guest_args(nw), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_clear_error(&error);
    g_assert_true(fake_host_has_image(nw->a.host, WEB1, ""));
    json_autoptr on_a = nw_call(nw, &nw->a, "disks_remove", nw_guest_args(nw), &error);
    g_assert_no_error(error);
    g_assert_nonnull(on_a);
    json_autoptr on_b = nw_call(nw, &nw->b, "disks_remove", nw_guest_args(nw), &error);
    g_assert_no_error(error);
    g_assert_nonnull(on_b);
    json_autoptr again = nw_call(nw, &nw->b, "disks_remove", nw_guest_args(nw), &error);
    g_assert_no_error(error);
    g_assert_nonnull(again);
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    g_assert_false(fake_host_exports(nw->b.host, WEB1));
    g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, nw->web1.replica));
    node_world_free(nw);
}

/* --- failover --- */

static void test_failover(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 500);
    nw_power_cut(nw, &nw->a);
    nw_failover(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->b, 3));
    guint64 before = fake_hosts_acknowledged(nw->hosts, WEB1);
    nw_pass(nw, 500);
    g_assert_cmpuint(fake_hosts_acknowledged(nw->hosts, WEB1), >, before);
    node_world_free(nw);
}

/* The old primary is only cut off: what it still runs gets nothing acknowledged, and is ended and
 * set aside when it hears of it. Then the instance fails back. */
/* Images that node A keeps aside, by its own report. */
static size_t kept_aside(struct node_world *nw)
{
    json_autoptr report = nw_call(nw, &nw->a, "node_report", json_object(), NULL);
    g_assert_nonnull(report);
    return json_array_size(json_object_get(report, "leftovers"));
}

static void test_failover_cut_and_back(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_cut(nw, &nw->a, true);
    nw_pass(nw, 300);
    nw_failover(nw, &error);
    g_assert_no_error(error);
    nw_pass(nw, 3000);
    g_assert_true(fake_host_held(nw->a.host, WEB1));
    nw_cut(nw, &nw->a, false);
    nw_until(nw, fake_host_state(nw->a.host, WEB1, NULL) == GUEST_ABSENT);
    nw_until(nw, !fake_host_has_image(nw->a.host, WEB1, ""));
    g_assert_cmpuint(kept_aside(nw), ==, 1);
    /* It stays there until there is another copy of everything. */
    fake_host_fault(nw->b.host, "query", FAKE_FAULT_SILENT, 1000);
    nw_replace_replica(nw, &error);
    g_assert_no_error(error);
    nw_pass(nw, 12000);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_SYNCING);
    g_assert_cmpuint(kept_aside(nw), ==, 1);
    fake_host_clear_faults(nw->b.host);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    nw_until(nw, kept_aside(nw) == 0);
    nw_power_cut(nw, &nw->b);
    nw_failover(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->a, 4));
    nw_pass(nw, 500);
    node_world_free(nw);
}

/* Which replica it has is known to the next node daemon, from the first write to it on. */
static void test_failover_by_the_next_daemon(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_daemon_kill(nw, &nw->b);
    nw_daemon_start(nw, &nw->b);
    nw_pass(nw, 300);
    nw_power_cut(nw, &nw->a);
    nw_failover(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->b, 3));
    nw_pass(nw, 300);
    node_world_free(nw);
}

/* Of the generation that the replica was the copy of nothing starts, whoever says so. */
static void test_promoted_is_no_copy(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 300);
    nw_power_cut(nw, &nw->a);
    nw->web1.primary = nw->web1.holder = NODE_B;
    nw->web1.secondary = "";
    json_t *late = nw_start_args(nw, NULL, true, true);
    nw->web1.generation++;
    json_autoptr closed = nw_call(nw, &nw->b, "replica_close",
                                  json_make("{s:s,s:s,s:i,s:b}", "instance", WEB1, "replica",
                                            nw->web1.replica, "generation", 3, "promote", 1),
                                  &error);
    g_assert_no_error(error);
    nw->mood = MASTER_SILENT;
    json_t *answer = nw_call(nw, &nw->b, "guest_start", late, &error);
    assert_refused(answer, error, REFUSED,
                   "generation 2 was already used here: instance " WEB1 " needs a higher one to "
                   "be started");
    node_world_free(nw);
}

/* The first disk is made anew on B, in the next generation. */
static void reinstall_on_b(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    nw->web1.generation++;
    record_autoptr(instance) record = nw_instance(nw);
    json_autoptr instance = instance_to_json(record);
    json_autoptr made = nw_call(nw, &nw->b, "disks_create",
                                json_make("{ss sI s[O]}", "instance", WEB1, "generation",
                                          (json_int_t)nw->web1.generation, "disks",
                                          json_array_get(json_object_get(instance, "disks"), 0)),
                                &error);
    g_assert_no_error(error);
}

/* The same death, and then its first disk is installed anew: no later start puts the replica's in
 * the place of that, and its other disks are the replica's. */
static void test_failover_finished_by_reinstall(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_pass(nw, 300);
    nw_power_cut(nw, &nw->a);
    nw->web1.generation++;
    nw->web1.primary = NODE_B;
    nw->web1.secondary = nw->web1.holder = "";
    nw_until(nw, !fake_host_exports(nw->b.host, WEB1));
    fake_hosts_give_up(nw->hosts, WEB1, 1);
    reinstall_on_b(nw);
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, nw->web1.replica));
    g_assert_true(fake_host_has_disks(nw->b.host, WEB1, ""));
    guint promoted = fake_host_count(nw->b.host, "promote");
    nw_commit_start(nw);
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    g_assert_cmpuint(fake_host_count(nw->b.host, "promote"), ==, promoted);
    node_world_free(nw);
}

/* So with what a migration has copied here, whose process went before it could take over. */
static void test_migration_finished_by_reinstall(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->web1.disk_template = TEMPLATE_FILE;
    nw_create(nw, NODE_A, "", 2, &error);
    g_assert_no_error(error);
    nw_start(nw, &error);
    g_assert_no_error(error);
    nw_migrate_begin(nw, MOVE_1, &error);
    g_assert_no_error(error);
    g_assert_cmpint(nw_migration_wait(nw, &nw->a), ==, MIGRATION_MOVED);
    fake_host_guest_crash(nw->b.host, WEB1);
    reinstall_on_b(nw);
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, MOVE_1));
    g_assert_cmpuint(fake_host_disk_mib(nw->b.host, WEB1, "", 1), >, 0);
    node_world_free(nw);
}

/* Death of the job right after the commit: the start alone finds the replica and promotes it. */
static void test_failover_finished_by_start(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_pass(nw, 300);
    nw_power_cut(nw, &nw->a);
    nw->web1.generation++;
    nw->web1.primary = nw->web1.holder = NODE_B;
    nw->web1.secondary = "";
    /* The node hears from the master first that its export is over: it must not set it aside. */
    nw_until(nw, !fake_host_exports(nw->b.host, WEB1));
    nw_pass(nw, 11000);
    g_assert_true(fake_host_has_image(nw->b.host, WEB1, nw->web1.replica));
    nw_commit_start(nw);
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    g_assert_true(runs(&nw->b, 4));
    nw_pass(nw, 300);
    node_world_free(nw);
}

static void test_failover_repeated(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 300);
    nw_power_cut(nw, &nw->a);
    json_t *args = json_make("{s:s,s:s,s:i,s:b}", "instance", WEB1, "replica", nw->web1.replica,
                             "generation", 3, "promote", 1);
    nw_failover(nw, &error);
    g_assert_no_error(error);
    /* A late repetition of the promotion finds it done, and touches nothing. */
    json_autoptr again = nw_call(nw, &nw->b, "replica_close", args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(again);
    g_assert_true(runs(&nw->b, 3));
    g_assert_cmpuint(fake_host_count(nw->b.host, "promote"), ==, 1);
    nw_pass(nw, 300);
    node_world_free(nw);
}

/* --- replace --- */

static void test_replace(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    json_t *answer = nw_call(nw, &nw->a, "mirror_detach", nw_guest_args(nw), &error);
    assert_refused(answer, error, UNSAFE,
                   "the replica of instance web1 is on record as in-sync; it must be recorded "
                   "stale before its mirror may end");
    g_autofree char *old = g_strdup(nw->web1.replica);
    nw_replace_replica(nw, &error);
    g_assert_no_error(error);
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, old));
    json_t *wait = nw_guest_args(nw);
    json_object_set_new(wait, "wait_ms", json_integer(60000));
    json_autoptr status = nw_call(nw, &nw->a, "mirror_wait", wait, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_object_get(status, "state")), ==, "ready");
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    nw_pass(nw, 300);
    nw_power_cut(nw, &nw->a);
    nw_failover(nw, &error);
    g_assert_no_error(error);
    node_world_free(nw);
}

static void test_attach_refused(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    json_autoptr target = nw_open_replica(nw, &error);
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "target", target);
    json_object_set_new(args, "sync", json_integer(3));
    json_autoptr again = nw_call(nw, &nw->a, "mirror_attach", json_deep_copy(args), &error);
    g_assert_no_error(error); /* it is attached */
    g_assert_nonnull(again);
    json_object_set_new(target, "replica", json_string(OTHER_REPLICA));
    json_t *answer = nw_call(nw, &nw->a, "mirror_attach", args, &error);
    assert_refused(answer, error, WRONG_STATE,
                   "instance web1 still has a mirror to replica "
                   "33333333-3333-4333-8333-000000000001; detach it first");
    answer = nw_call(nw, &nw->b, "mirror_wait", nw_guest_args(nw), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "generation 2 of instance 11111111-1111-4111-8111-111111111111 does not run on "
                   "this node");
    node_world_free(nw);
}

/* Both nodes answer the master, but not each other: nothing is begun, and that is told from a copy
 * that fails. */
static void test_attach_parted(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_fault(nw->a.host, "probe", FAKE_FAULT_FAILS, 1);
    g_assert_false(nw_replace_replica(nw, &error));
    g_assert_true(fettle_error_is(error, PARTED));
    g_assert_true(g_str_has_prefix(error->message, "the export of replica "));
    g_assert_true(g_str_has_suffix(error->message, " does not answer here"));
    g_clear_error(&error);
    g_assert_true(nw_replace_replica(nw, &error)); /* nothing stands in the way of the next try */
    g_assert_no_error(error);
    node_world_free(nw);
}

/* A mirror that does not start under a running guest: stale, and the guest runs on. */
static void test_attach_fails(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_fault(nw->a.host, "mirror_start", FAKE_FAULT_FAILS, 1);
    bool replaced = nw_replace_replica(nw, &error);
    g_assert_false(replaced);
    g_assert_cmpstr(error->message, ==,
                    "the mirror did not start: mirror_start: failed as the test wanted");
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    guint64 before = fake_hosts_acknowledged(nw->hosts, WEB1);
    nw_pass(nw, 500);
    g_assert_cmpuint(fake_hosts_acknowledged(nw->hosts, WEB1), >, before);
    node_world_free(nw);
}

/* A restored store starts again from low generations; those of the old history are over. */
static void test_history(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 1, &error);
    nw->web1.generation = 7;
    nw_commit_start(nw);
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    g_assert_true(runs(&nw->a, 8));
    nw->stamp = (struct stamp){2, 1};
    g_assert_true(nw_announce(nw, &nw->a, NULL));
    /* The same record: the guest goes on in the new history. */
    json_autoptr same = start(nw, nw_start_args(nw, NULL, true, true), &error);
    g_assert_no_error(error);
    g_assert_nonnull(same);
    g_assert_cmpuint(fake_host_count(nw->a.host, "prepare"), ==, 1);
    /* An older one, restored: a lower number is newer there. */
    nw_stop(nw, 0, &error);
    g_assert_no_error(error);
    nw->stamp = (struct stamp){3, 1};
    g_assert_true(nw_announce(nw, &nw->a, NULL));
    nw->web1.generation = 4;
    nw_commit_start(nw);
    json_autoptr lower = start(nw, nw_start_args(nw, NULL, true, false), &error);
    g_assert_no_error(error);
    g_assert_nonnull(lower);
    guint64 generation;
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, &generation), ==, GUEST_PREPARED);
    g_assert_cmpuint(generation, ==, 5);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/create-not-anew#SAF-20", test_create_not_anew);
    g_test_add_func("/guest/create-anew#SAF-20", test_create_anew);
    g_test_add_func("/guest/open-needs-confirmation#SAF-03,SAF-14", test_open_needs_confirmation);
    g_test_add_func("/guest/open-again#SAF-14,SAF-16,SAF-20", test_open_again);
    g_test_add_func("/guest/settle-of-holder#SAF-101", test_settle_of_holder);
    g_test_add_func("/guest/open-keeps-images#SAF-24", test_open_keeps_images);
    g_test_add_func("/guest/disk-fails-in-the-copy#SAF-24", test_disk_fails_in_the_copy);
    g_test_add_func("/guest/open-has-no-room-to-keep#SAF-24", test_open_has_no_room_to_keep);
    g_test_add_func("/guest/open-finds-room-later#SAF-24", test_open_finds_room_later);
    g_test_add_func("/guest/remove#SAF-20", test_remove);
    g_test_add_func("/guest/failover#SAF-16", test_failover);
    g_test_add_func("/guest/failover-cut-and-back#SAF-13,SAF-16,SAF-19",
                    test_failover_cut_and_back);
    g_test_add_func("/guest/failover-by-the-next-daemon#SAF-16", test_failover_by_the_next_daemon);
    g_test_add_func("/guest/failover-finished-by-reinstall#SAF-16,SAF-22",
                    test_failover_finished_by_reinstall);
    g_test_add_func("/guest/migration-finished-by-reinstall#SAF-17,SAF-22",
                    test_migration_finished_by_reinstall);
    g_test_add_func("/guest/promoted-is-no-copy#SAF-10,SAF-16", test_promoted_is_no_copy);
    g_test_add_func("/guest/failover-finished-by-start#SAF-16,SAF-19",
                    test_failover_finished_by_start);
    g_test_add_func("/guest/failover-repeated#SAF-16,SAF-20", test_failover_repeated);
    g_test_add_func("/guest/replace#SAF-18", test_replace);
    g_test_add_func("/guest/attach-refused#SAF-18,SAF-20", test_attach_refused);
    g_test_add_func("/guest/attach-parted#ARP-54,SAF-18", test_attach_parted);
    g_test_add_func("/guest/attach-fails#SAF-18,SAF-13", test_attach_fails);
    g_test_add_func("/guest/history#SAF-02", test_history);
    return g_test_run();
}
