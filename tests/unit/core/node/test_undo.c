/* What a node removes as half made, and what it keeps: core/node/undo.c (SAF-23). */
#include "unit/core/world/guest_steps.h"

#include "base/limits.h"

static json_t *undo_args(const struct node_world *nw, bool look)
{
    record_autoptr(instance) record = nw_instance(nw);
    json_autoptr instance = instance_to_json(record);
    json_t *args = nw_guest_args(nw);
    json_object_set(args, "disks", json_object_get(instance, "disks"));
    json_object_set(args, "disk_template", json_object_get(instance, "disk_template"));
    json_object_set_new(args, "look", json_boolean(look));
    return args;
}

static void expect_undo(struct node_world *nw, bool look, const char *expected)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = nw_call(nw, &nw->a, "disks_undo", undo_args(nw, look), &error);
    g_assert_no_error(error);
    g_autofree char *text = json_to_text(answer);
    g_assert_cmpstr(text, ==, expected);
}

static guint removals(const struct node_world *nw)
{
    return fake_host_count(nw->a.host, "remove ");
}

/* A file instance of two disks on node A, generation 1, and running. */
static struct node_world *world_with(enum disk_template disk_template, bool running)
{
    g_autoptr(GError) error = NULL;
    struct node_world *nw = node_world_new(1);
    nw->web1.disk_template = disk_template;
    nw_create(nw, NODE_A, "", 2, &error);
    g_assert_no_error(error);
    if (running)
        g_assert_true(nw_start(nw, &error));
    return nw;
}

#define ANSWER(generation, removed, state, whole)                                                  \
    "{\"generation\":" generation ",\"removed\":" removed ",\"state\":\"" state                    \
    "\",\"whole\":" whole "}"

static void test_running(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    expect_undo(nw, false, ANSWER("2", "false", "running", "true"));
    fake_host_lose_disk(nw->a.host, WEB1, "", 1);
    expect_undo(nw, false, ANSWER("2", "false", "running", "false"));
    fake_host_guest_poweroff(nw->a.host, WEB1);
    nw_pass(nw, 100);
    expect_undo(nw, false, ANSWER("2", "false", "shutdown", "false"));
    g_assert_cmpuint(removals(nw), ==, 0);
    node_world_free(nw);
}

/* A monitor that says nothing is no proof that nothing runs. */
static void test_silent_monitor(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    nw_daemon_kill(nw, &nw->a);
    fake_host_lose_disk(nw->a.host, WEB1, "", 1);
    nw_daemon_start(nw, &nw->a);
    g_assert_true(nw_announce(nw, &nw->a, &error));
    fake_host_fault(nw->a.host, "query", FAKE_FAULT_SILENT, 1000);
    json_autoptr answer = nw_call(nw, &nw->a, "disks_undo", undo_args(nw, false), &error);
    g_assert_true(answer == NULL || !answer_is(answer, "removed"));
    g_assert_cmpuint(removals(nw), ==, 0);
    node_world_free(nw);
}

static void test_whole(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, false);
    expect_undo(nw, false, ANSWER("0", "false", "absent", "true"));
    g_assert_cmpuint(removals(nw), ==, 0);
    fake_host_lose_disk(nw->a.host, WEB1, "", 0);
    expect_undo(nw, true, ANSWER("0", "false", "absent", "false"));
    g_assert_cmpuint(removals(nw), ==, 0);
    expect_undo(nw, false, ANSWER("0", "true", "absent", "false"));
    g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    expect_undo(nw, false, ANSWER("1", "true", "absent", "false")); /* again */
    node_world_free(nw);
}

/* The images of a dead job's failover, which nobody has promoted yet. */
static void test_under_another_name(void)
{
    struct node_world *nw = world_with(TEMPLATE_MIRROR, false);
    g_autoptr(GError) error = NULL;
    json_t *args = nw_guest_args(nw);
    record_autoptr(instance) record = nw_instance(nw);
    json_autoptr instance = instance_to_json(record);
    json_object_set(args, "disks", json_object_get(instance, "disks"));
    json_object_set_new(args, "replica", json_string(OTHER_REPLICA));
    json_object_set_new(args, "generation", json_integer(0));
    json_autoptr made = nw_call(nw, &nw->a, "disks_create", args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(made);
    fake_host_lose_disk(nw->a.host, WEB1, "", 0);
    expect_undo(nw, false, ANSWER("0", "false", "absent", "true"));
    g_assert_cmpuint(removals(nw), ==, 0);
    node_world_free(nw);
}

static void test_shared(void)
{
    struct node_world *nw = world_with(TEMPLATE_SHAREDFILE, false);
    g_autoptr(GError) error = NULL;
    expect_undo(nw, false, ANSWER("0", "false", "absent", "true"));
    fake_host_set_shared(nw->a.host, false);
    json_t *answer = nw_call(nw, &nw->a, "disks_undo", undo_args(nw, false), &error);
    assert_refused(answer, error, TEMPORARY,
                   "the shared folder is not mounted here, or its server does not answer: whether "
                   "the images are there is not known");
    fake_host_set_shared(nw->a.host, true);
    fake_host_lose_disk(nw->a.host, WEB1, "", 1);
    g_assert_cmpuint(removals(nw), ==, 0);
    expect_undo(nw, false, ANSWER("0", "true", "absent", "false"));
    g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    node_world_free(nw);
}

/* What the dead job has under way is given up, and the answer is what there is then. */
static void test_images_under_way(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply making = {0};
    nw->web1 = (struct master_record){.generation = 0,
                                      .primary = NODE_A,
                                      .holder = "",
                                      .secondary = "",
                                      .disks = 2,
                                      .disk_template = TEMPLATE_FILE};
    fake_host_set_create_ms(nw->a.host, 60000);
    json_t *create = undo_args(nw, false);
    json_object_del(create, "look");
    nw_call_start(nw, &nw->a, "disks_create", nw->stamp, create, &making);
    nw_pass(nw, 100);
    expect_undo(nw, false, ANSWER("0", "true", "absent", "false"));
    nw_until(nw, making.done);
    g_assert_error(making.error, FETTLE_ERROR, FETTLE_ERROR_CANCELED);
    g_assert_false(fake_host_has_image(nw->a.host, WEB1, ""));
    fake_reply_clear(&making);
    node_world_free(nw);
}

/* A guest that does not listen is not ended by a stop whose job is dead. */
static void test_stop_under_way(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    struct fake_reply stopping = {0};
    fake_host_set_powerdown_ms(nw->a.host, 0);
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 60000), &stopping);
    nw_pass(nw, 1000);
    expect_undo(nw, false, ANSWER("2", "false", "running", "true"));
    g_assert_error(stopping.error, FETTLE_ERROR, FETTLE_ERROR_CANCELED);
    nw_pass(nw, 70000);
    g_assert_true(runs(&nw->a, 2));
    fake_reply_clear(&stopping);
    node_world_free(nw);
}

/* It decides when its turn comes, by what is there then. */
static void test_in_its_turn(void)
{
    struct node_world *nw = node_world_new(1);
    struct fake_reply making = {0}, undone = {0};
    nw->web1 = (struct master_record){.generation = 0,
                                      .primary = NODE_A,
                                      .holder = "",
                                      .secondary = "",
                                      .disks = 2,
                                      .disk_template = TEMPLATE_FILE};
    json_t *args = undo_args(nw, false);
    json_t *create = json_deep_copy(args);
    json_object_del(create, "look");
    nw_call_start(nw, &nw->a, "disks_create", nw->stamp, create, &making);
    nw_call_start(nw, &nw->a, "disks_undo", nw->stamp, args, &undone);
    nw_until(nw, making.done && undone.done);
    g_assert_no_error(undone.error);
    g_assert_true(answer_is(undone.result, "whole"));
    g_assert_cmpuint(removals(nw), ==, 0);
    fake_reply_clear(&making);
    fake_reply_clear(&undone);
    node_world_free(nw);
}

/* Disks that fail say nothing about what was on them. */
static void test_failed_disks(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, false);
    g_autoptr(GError) error = NULL;
    fake_host_lose_disk(nw->a.host, WEB1, "", 0);
    fake_host_set_disks_failed(nw->a.host, true);
    json_t *answer = nw_call(nw, &nw->a, "disks_undo", undo_args(nw, false), &error);
    assert_refused(answer, error, TEMPORARY,
                   "the disks here do not work: whether the images are there is not known");
    g_assert_cmpuint(removals(nw), ==, 0);
    node_world_free(nw);
}

/* What does not answer says nothing, and holds up nobody: the guest's lock is free again, and what
 * hangs is asked by one look, however often it is asked for. */
static void hangs(enum disk_template disk_template, const char *op, const char *why)
{
    struct node_world *nw = world_with(disk_template, true);
    g_autoptr(GError) error = NULL;
    fake_host_hang(nw->a.host, op, true);
    guint before = fake_host_count(nw->a.host, op);
    for (guint i = 0; i < 3; i++) {
        struct fake_reply undone = {0};
        nw_call_start(nw, &nw->a, "disks_undo", nw->stamp, undo_args(nw, false), &undone);
        nw_pass(nw, UNDO_LOOK_MS + 1000);
        g_assert_true(undone.done);
        g_assert_error(undone.error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
        g_assert_cmpstr(undone.error->message, ==, why);
        fake_reply_clear(&undone);
    }
    g_assert_cmpuint(fake_host_count(nw->a.host, op), <=, before + 1);
    json_autoptr stopped = nw_call(nw, &nw->a, "guest_stop", nw_stop_args(nw, 0), &error);
    g_assert_no_error(error);
    g_assert_nonnull(stopped);
    fake_host_lose_disk(nw->a.host, WEB1, "", 1);
    fake_host_hang(nw->a.host, op, false);
    g_assert_cmpuint(removals(nw), ==, 0);
    expect_undo(nw, false, ANSWER("2", "true", "absent", "false"));
    node_world_free(nw);
}

static void test_hangs(void)
{
    static const char disks[] =
        "the disks do not answer here: whether the images are there is not known";
    static const char folder[] =
        "the shared folder does not answer here: whether the images are there is not known";
    hangs(TEMPLATE_SHAREDFILE, "shared", folder);
    hangs(TEMPLATE_FILE, "list", disks);
    hangs(TEMPLATE_FILE, "space", disks);
}

/* A request of a master that knows less than the node. */
static void test_late_request(void)
{
    struct node_world *nw = world_with(TEMPLATE_FILE, true);
    g_autoptr(GError) error = NULL;
    fake_host_guest_crash(nw->a.host, WEB1);
    nw_pass(nw, 100);
    fake_host_lose_disk(nw->a.host, WEB1, "", 0);
    nw->web1.generation--;
    json_t *answer = nw_call(nw, &nw->a, "disks_undo", undo_args(nw, false), &error);
    assert_refused(answer, error, REFUSED,
                   "images of instance " WEB1 " were used here under generation 2, the request "
                   "knows of 1 only");
    g_assert_cmpuint(removals(nw), ==, 0);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest-undo/running#SAF-23", test_running);
    g_test_add_func("/guest-undo/silent-monitor#SAF-23", test_silent_monitor);
    g_test_add_func("/guest-undo/whole#SAF-23", test_whole);
    g_test_add_func("/guest-undo/under-another-name#SAF-23", test_under_another_name);
    g_test_add_func("/guest-undo/shared#SAF-23", test_shared);
    g_test_add_func("/guest-undo/images-under-way#SAF-23", test_images_under_way);
    g_test_add_func("/guest-undo/stop-under-way#SAF-23", test_stop_under_way);
    g_test_add_func("/guest-undo/in-its-turn#SAF-23", test_in_its_turn);
    g_test_add_func("/guest-undo/failed-disks#SAF-23", test_failed_disks);
    g_test_add_func("/guest-undo/hangs#SAF-23,SAF-91", test_hangs);
    g_test_add_func("/guest-undo/late-request#SAF-20,SAF-23", test_late_request);
    return g_test_run();
}
