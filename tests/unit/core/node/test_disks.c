/* Disks that grow, the making of images, kernels, the serial line: core/node disks.c, console.c. */
#include "unit/core/world/guest_steps.h"

#include <string.h>

static json_t *grow_args(const struct node_world *nw, const char *replica, guint disk, guint mib)
{
    json_t *args = nw_guest_args(nw);
    json_object_set_new(args, "replica", json_string(replica));
    json_object_set_new(args, "disk", json_integer(disk));
    json_object_set_new(args, "size", json_integer(mib));
    return args;
}

static void grow_ok(struct node_world *nw, struct test_node *node, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = nw_call(nw, node, "disk_grow", args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
}

static void test_grow(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->web1.disk_template = TEMPLATE_FILE;
    nw_create(nw, NODE_A, "", 2, &error);
    grow_ok(nw, &nw->a, grow_args(nw, "", 1, 3)); /* stopped */
    g_assert_true(nw_start(nw, &error));
    grow_ok(nw, &nw->a, grow_args(nw, "", 1, 4));
    grow_ok(nw, &nw->a, grow_args(nw, "", 1, 4)); /* again */
    g_assert_cmpuint(fake_host_disk_mib(nw->a.host, WEB1, "", 0), ==, 1);
    g_assert_cmpuint(fake_host_disk_mib(nw->a.host, WEB1, "", 1), ==, 4);
    g_assert_cmpuint(fake_host_count(nw->a.host, "disk_resize"), ==, 2);
    json_t *answer = nw_call(nw, &nw->a, "disk_grow", grow_args(nw, "", 1, 2), &error);
    assert_refused(answer, error, WRONG_INPUT, "size: disk 1 has 4 MiB already");
    answer = nw_call(nw, &nw->a, "disk_grow", grow_args(nw, "", 7, 2), &error);
    assert_refused(answer, error, WRONG_INPUT, "disk: instance web1 has 2 disks");
    nw->web1.generation--;
    answer = nw_call(nw, &nw->a, "disk_grow", grow_args(nw, "", 0, 2), &error);
    assert_refused(answer, error, REFUSED,
                   "generation 1 of instance web1 is over: generation 2 was already used here");
    node_world_free(nw);
}

static void test_grow_mirrored(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    json_t *answer = nw_call(nw, &nw->a, "disk_grow", grow_args(nw, "", 0, 2), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "instance web1 has a mirror to replica 33333333-3333-4333-8333-000000000001; "
                   "its disks grow without it");
    grow_ok(nw, &nw->b, grow_args(nw, nw->web1.replica, 0, 2));
    g_assert_cmpuint(fake_host_disk_mib(nw->b.host, WEB1, nw->web1.replica, 0), ==, 2);
    node_world_free(nw);
}

static json_t *renew_args(const struct node_world *nw, const char *replica, guint disks,
                          guint first)
{
    static const char *const uuids[] = {OTHER_REPLICA, "33333333-3333-4333-8333-0000000000a1",
                                        "33333333-3333-4333-8333-0000000000a2"};
    json_t *args = nw_guest_args(nw);
    json_t *list = json_array();
    for (guint i = 0; i < disks; i++)
        json_array_append_new(list, json_make("{s:s,s:i}", "uuid", uuids[i], "size", (int)i + 2));
    json_object_set_new(args, "replica", json_string(replica));
    json_object_set_new(args, "disk_template", json_string("file"));
    json_object_set_new(args, "disks", list);
    json_object_set_new(args, "first", json_integer(first));
    return args;
}

/* The first ones stay; what was used since is not made anew by a request that comes late. */
static void test_renew(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->web1.disk_template = TEMPLATE_FILE;
    nw_create(nw, NODE_A, "", 2, &error);
    nw->web1.generation = 1; /* the commit of the job: nobody holds it */
    json_autoptr late = renew_args(nw, "", 3, 1);
    for (guint again = 0; again < 2; again++) {
        json_autoptr done = nw_call(nw, &nw->a, "disks_renew", renew_args(nw, "", 3, 1), &error);
        g_assert_no_error(error);
        g_assert_nonnull(done);
    }
    g_assert_cmpuint(fake_host_disk_mib(nw->a.host, WEB1, "", 0), ==, 1);
    g_assert_cmpuint(fake_host_disk_mib(nw->a.host, WEB1, "", 2), ==, 4);
    g_assert_true(nw_start(nw, &error));
    nw->web1.generation++;
    json_t *answer = nw_call(nw, &nw->a, "disks_renew", renew_args(nw, "", 2, 1), &error);
    assert_refused(answer, error, TEMPORARY,
                   "a process of instance web1 from before generation 3 is still here; it ends "
                   "when the master has been asked about it");
    error = NULL;
    answer = nw_call(nw, &nw->a, "disks_renew", json_steal(&late), &error);
    assert_refused(answer, error, REFUSED,
                   "generation 1 of instance web1 is over: generation 2 was already used here");
    node_world_free(nw);
}

/* A replica is the copy of all disks that are to be, so a promotion finds what is on record. */
static void test_renew_replica(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw); /* with two disks */
    nw_stop(nw, 0, &error);
    g_assert_no_error(error);
    guint64 before = nw->web1.generation++;
    json_autoptr late = renew_args(nw, nw->web1.replica, 2, 1);
    json_object_set_new(late, "generation", json_integer((json_int_t)before - 1));
    json_autoptr done =
        nw_call(nw, &nw->b, "disks_renew", renew_args(nw, nw->web1.replica, 3, 2), &error);
    g_assert_no_error(error);
    g_assert_nonnull(done);
    g_assert_cmpuint(fake_host_disk_mib(nw->b.host, WEB1, nw->web1.replica, 2), ==, 4);
    g_assert_false(fake_host_exports(nw->b.host, WEB1));
    json_t *answer = nw_call(nw, &nw->b, "disks_renew", json_steal(&late), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
    node_world_free(nw);
}

/* web1 with two disks on B by the record, whose images still have the name of the replica: the job
 * that failed it over has died. */
static struct node_world *failed_over(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw_pass(nw, 300);
    nw_power_cut(nw, &nw->a);
    nw->web1.generation++;
    nw->web1.primary = NODE_B;
    nw->web1.secondary = nw->web1.holder = "";
    nw_until(nw, !fake_host_exports(nw->b.host, WEB1));
    g_assert_true(fake_host_has_image(nw->b.host, WEB1, nw->web1.replica));
    return nw;
}

/* Its own disks as they are to be. */
static json_t *renew_own_args(struct node_world *nw, guint disks, guint first)
{
    json_t *args = renew_args(nw, "", 0, first);
    nw->web1.disks = disks;
    record_autoptr(instance) record = nw_instance(nw);
    json_autoptr instance = instance_to_json(record);
    json_object_set(args, "disks", json_object_get(instance, "disks"));
    return args;
}

/* The images are put in place first: else the next start would do that over what is new. */
static void test_failover_finished_by_renew(void)
{
    struct node_world *nw = failed_over();
    g_autoptr(GError) error = NULL;
    guint64 first = fake_host_disk_mib(nw->b.host, WEB1, nw->web1.replica, 0);
    nw->web1.generation++;
    for (guint i = 0; i < 2; i++) {
        json_autoptr done = nw_call(nw, &nw->b, "disks_renew", renew_own_args(nw, 3, 2), &error);
        g_assert_no_error(error);
        g_assert_nonnull(done);
    }
    g_assert_false(fake_host_has_image(nw->b.host, WEB1, nw->web1.replica));
    g_assert_true(fake_host_has_disks(nw->b.host, WEB1, ""));
    g_assert_cmpuint(fake_host_disk_mib(nw->b.host, WEB1, "", 0), ==, first);
    guint promoted = fake_host_count(nw->b.host, "promote");
    nw_commit_start(nw);
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    g_assert_cmpuint(fake_host_count(nw->b.host, "promote"), ==, promoted);
    node_world_free(nw);
}

static void test_failover_finished_by_grow(void)
{
    struct node_world *nw = failed_over();
    grow_ok(nw, &nw->b, grow_args(nw, "", 1, 4));
    g_assert_cmpuint(fake_host_disk_mib(nw->b.host, WEB1, "", 1), ==, 4);
    nw_commit_start(nw);
    start_ok(nw, nw_start_args(nw, NULL, true, true));
    g_assert_cmpuint(fake_host_disk_mib(nw->b.host, WEB1, "", 1), ==, 4);
    node_world_free(nw);
}

/* A request from when B was the primary, which comes while it has the replica of another: that is
 * not taken for its own images. */
static void test_late_at_secondary(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    nw->web1.generation--;
    json_t *const late[] = {renew_own_args(nw, 2, 1), grow_args(nw, "", 0, 2),
                            json_make("{ss sI s[{ss si}]}", "instance", WEB1, "generation",
                                      (json_int_t)nw->web1.generation, "disks", "uuid",
                                      OTHER_REPLICA, "size", 1)};
    static const char *const methods[] = {"disks_renew", "disk_grow", "disks_create"};
    for (guint i = 0; i < G_N_ELEMENTS(methods); i++) {
        GError *error = NULL;
        json_t *answer = nw_call(nw, &nw->b, methods[i], late[i], &error);
        g_assert_null(answer);
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_REFUSED);
        g_assert_nonnull(strstr(error->message, "is over: generation 2 was already used here"));
        g_error_free(error);
    }
    g_assert_true(fake_host_exports(nw->b.host, WEB1));
    node_world_free(nw);
}

/* Only what was written while the replica was away is copied when it is back. */
static void test_attach_since(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_cut(nw, &nw->b, true);
    nw_until(nw, nw->web1.state == REPLICA_STALE);
    nw_pass(nw, 300);
    nw_cut(nw, &nw->b, false);
    nw->web1.state = REPLICA_SYNCING;
    nw->web1.sync++;
    json_autoptr target = nw_open_replica(nw, &error);
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "target", target);
    json_object_set_new(args, "sync", json_integer((json_int_t)nw->web1.sync));
    json_object_set_new(args, "since", json_true());
    json_autoptr answer = nw_call(nw, &nw->a, "mirror_attach", args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
    nw_until(nw, nw->web1.state == REPLICA_IN_SYNC);
    nw_pass(nw, 500); /* with the checks of SAF-13 */
    node_world_free(nw);
}

static void test_progress(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply reply;
    json_t *asked = json_make("{s:s}", "instance", WEB1);
    fake_host_set_create_ms(nw->a.host, 500);
    nw_call_start(nw, &nw->a, "disks_create", nw->stamp,
                  json_make("{s:s,s:[{s:s,s:i}]}", "instance", WEB1, "disks", "uuid", OTHER_REPLICA,
                            "size", 2),
                  &reply);
    nw_pass(nw, 100);
    json_autoptr half = nw_call(nw, &nw->a, "disks_progress", json_incref(asked), NULL);
    g_assert_true(answer_is(half, "running"));
    g_assert_cmpint(json_integer_value(json_object_get(half, "total_mib")), ==, 2);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    json_autoptr over = nw_call(nw, &nw->a, "disks_progress", asked, NULL);
    g_assert_false(answer_is(over, "running"));
    fake_reply_clear(&reply);
    node_world_free(nw);
}

static void cancel_as(struct node_world *nw, guint job)
{
    json_autoptr said =
        nw_call_as_job(nw, &nw->a, job, "work_cancel", json_make("{s:s}", "instance", WEB1));
    g_assert_nonnull(said);
}

/* Its job gives it up; another one cannot, and what comes too late does nothing to the next. */
static void test_give_up(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply reply;
    json_t *args = json_make("{s:s,s:[{s:s,s:i}]}", "instance", WEB1, "disks", "uuid",
                             OTHER_REPLICA, "size", 2);
    fake_host_set_create_ms(nw->a.host, 500000);
    cancel_as(nw, 1); /* too early: nothing is under way */
    nw_call_start(nw, &nw->a, "disks_create", nw->stamp, json_incref(args), &reply);
    nw_pass(nw, 100);
    cancel_as(nw, 2);
    nw_pass(nw, 100);
    g_assert_false(reply.done);
    cancel_as(nw, 1);
    nw_pass(nw, 100);
    g_assert_true(reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_CANCELED);
    fake_reply_clear(&reply);
    g_assert_cmpuint(fake_host_disk_mib(nw->a.host, WEB1, "", 0), ==, 0);
    cancel_as(nw, 1); /* too late */
    fake_host_set_create_ms(nw->a.host, 10);
    nw_call_start(nw, &nw->a, "disks_create", nw->stamp, args, &reply);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* The wait for a guest that does not obey: it runs on, mirrored, and can be stopped later. */
static void test_give_up_stop(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply reply;
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    fake_host_set_powerdown_ms(nw->a.host, 0);
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 600000), &reply);
    nw_pass(nw, 1000);
    cancel_as(nw, 2);
    nw_pass(nw, 1000);
    g_assert_false(reply.done);
    cancel_as(nw, 1);
    nw_pass(nw, 1000);
    g_assert_true(reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_CANCELED);
    g_assert_cmpstr(reply.error->message, ==,
                    "instance web1 was asked to shut down and has not done so; it was left alone, "
                    "as its job was canceled");
    fake_reply_clear(&reply);
    g_assert_true(runs(&nw->a, nw->web1.generation));
    nw_pass(nw, 1000); /* with the checks of SAF-13 */
    fake_host_set_powerdown_ms(nw->a.host, 20);
    json_autoptr answer = stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(answer_is(answer, "clean"));
    node_world_free(nw);
}

static void test_kernel(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw->web1.kernel = "../../etc/shadow";
    nw_create(nw, NODE_A, "", 1, &error);
    g_assert_false(nw_start(nw, &error));
    assert_refused(NULL, error, WRONG_INPUT,
                   "instance web1: kernel_path: ../../etc/shadow: names lie in the folder of "
                   "images");
    nw->web1.kernel = "vmlinuz";
    g_assert_false(nw_start(nw, &error));
    assert_refused(NULL, error, UNKNOWN_ENTITY,
                   "instance web1: kernel_path: image vmlinuz does not exist");
    nw->web1.kernel = "tick"; /* the one that is there */
    g_assert_true(nw_start(nw, &error));
    node_world_free(nw);
}

static json_t *typed(struct node_world *nw, const char *data, GError **error)
{
    struct fake_reply reply;
    struct env *luxid = fake_process(nw->world, NODE_A, ROLE_LUXID);
    fake_call_start_stamped(luxid, 0, nw->stamp, NODE_A, ROLE_NODED, "console_write",
                            json_make("{s:s,s:s}", "instance", WEB1, "data", data), &reply);
    nw_until(nw, reply.done);
    if (reply.error)
        g_propagate_error(error, reply.error);
    return reply.result;
}

static void test_serial_line(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    json_t *answer = typed(nw, "bm8gYmFzZTY0IQ", &error);
    assert_refused(answer, error, WRONG_INPUT, "data: is not base64");
    json_autoptr ok = typed(nw, "aGVsbG8=", &error);
    g_assert_no_error(error);
    g_assert_nonnull(ok);
    struct fake_reply reply;
    struct env *luxid = fake_process(nw->world, NODE_A, ROLE_LUXID);
    fake_call_start_stamped(luxid, 0, nw->stamp, NODE_A, ROLE_NODED, "console_read",
                            json_make("{s:s,s:i}", "instance", WEB1, "offset", 1), &reply);
    nw_until(nw, reply.done);
    g_assert_cmpstr(json_string_value(json_object_get(reply.result, "data")), ==, "ZWxsbw==");
    g_assert_cmpint(json_integer_value(json_object_get(reply.result, "offset")), ==, 5);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

static char *report_set(const json_t *report, size_t at)
{
    return json_dumps(json_array_get(json_object_get(report, "image_sets"), at),
                      JSON_COMPACT | JSON_SORT_KEYS);
}

static void test_report(void)
{
    struct node_world *nw = node_world_new(2);
    nw_create_and_start(nw);
    fake_host_set_version(nw->b.host, "8.0.1");
    json_autoptr report = nw_report(nw, &nw->b);
    g_assert_cmpstr(json_string_value(json_object_get(report, "qemu_version")), ==, "8.0.1");
    g_assert_cmpstr(json_string_value(json_array_get(json_object_get(report, "bridges"), 0)), ==,
                    "br0");
    g_autofree char *images = g_strdup_printf("%s %s", WEB1, nw->web1.replica);
    g_assert_cmpstr(json_string_value(json_array_get(json_object_get(report, "images"), 0)), ==,
                    images);
    g_autofree char *set = report_set(report, 0);
    g_autofree char *whole = g_strdup_printf(
        "{\"disks\":3,\"generation\":0,\"instance\":\"%s\",\"replica\":\"%s\",\"space\":0}", WEB1,
        nw->web1.replica);
    g_assert_cmpstr(set, ==, whole);
    fake_host_lose_disk(nw->b.host, WEB1, nw->web1.replica, 0);
    json_autoptr later = nw_report(nw, &nw->b);
    g_autofree char *lacking = report_set(later, 0);
    g_autofree char *second = g_strdup_printf(
        "{\"disks\":2,\"generation\":0,\"instance\":\"%s\",\"replica\":\"%s\",\"space\":0}", WEB1,
        nw->web1.replica);
    g_assert_cmpstr(lacking, ==, second);
    json_autoptr primary = nw_report(nw, &nw->a);
    g_assert_cmpstr(json_string_value(json_array_get(json_object_get(primary, "images"), 0)), ==,
                    WEB1);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/grow#SAF-20", test_grow);
    g_test_add_func("/guest/grow-mirrored", test_grow_mirrored);
    g_test_add_func("/guest/renew#SAF-20", test_renew);
    g_test_add_func("/guest/renew-replica", test_renew_replica);
    g_test_add_func("/guest/failover-finished-by-renew#SAF-16,SAF-22",
                    test_failover_finished_by_renew);
    g_test_add_func("/guest/failover-finished-by-grow#SAF-16", test_failover_finished_by_grow);
    g_test_add_func("/guest/late-at-secondary#SAF-10,SAF-16", test_late_at_secondary);
    g_test_add_func("/guest/attach-since#SAF-12,SAF-13", test_attach_since);
    g_test_add_func("/guest/progress", test_progress);
    g_test_add_func("/guest/give-up/images#LUX-08", test_give_up);
    g_test_add_func("/guest/give-up/stop#LUX-08,SAF-13", test_give_up_stop);
    g_test_add_func("/guest/kernel", test_kernel);
    g_test_add_func("/guest/serial-line", test_serial_line);
    g_test_add_func("/guest/report#ARP-70", test_report);
    return g_test_run();
}
