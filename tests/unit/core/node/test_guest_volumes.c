/*
 * Volumes of guests on nodes: core/node/volume/volumes.c. Nothing is opened without the master's
 * word, and what a guest was asked to give up stays its until that is seen (SAF-57, SAF-124).
 */
#include "core/node/volume/volumes.h"
#include "helper/node_world.h"

static json_t *attach_args(const struct node_world *nw)
{
    json_t *args = nw_guest_args(nw);
    json_object_set_new(args, "volume", nw_volume(nw));
    return args;
}

static bool has_it(struct test_node *node)
{
    return fake_host_has_volume(node->host, WEB1, ATTACHMENT_1);
}

static struct node_world *with_volume(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw->web1.attachment = ATTACHMENT_1;
    json_autoptr done = nw_call(nw, &nw->a, "volume_attach", attach_args(nw), &error);
    g_assert_no_error(error);
    g_assert_nonnull(done);
    g_assert_true(has_it(&nw->a));
    return nw;
}

/* Whether the node says that the guest has it no more. */
static bool asked(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    json_autoptr said = nw_call(nw, &nw->a, "volume_detach", attach_args(nw), &error);
    g_assert_no_error(error);
    return json_is_true(json_object_get(said, "gone"));
}

static void test_attach_and_detach(void)
{
    struct node_world *nw = with_volume();
    g_autoptr(GError) error = NULL;
    json_autoptr again = nw_call(nw, &nw->a, "volume_attach", attach_args(nw), &error);
    g_assert_no_error(error);
    g_assert_nonnull(again);
    g_assert_true(asked(nw));
    g_assert_false(has_it(&nw->a));
    g_assert_true(asked(nw));
    node_world_free(nw);
}

/* The request of a job that has died, after another one was told that the volume is not there. */
static void test_not_on_record(void)
{
    struct node_world *nw = with_volume();
    g_autoptr(GError) error = NULL;
    json_autoptr late = attach_args(nw);
    g_assert_true(asked(nw));
    nw->web1.attachment = NULL;
    json_t *answer = nw_call(nw, &nw->a, "volume_attach", json_incref(late), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "generation 2 of instance " WEB1 " may not attach here: the record "
                   "(generation 2) does not say so");
    g_assert_false(has_it(&nw->a));
    node_world_free(nw);
}

/* After a restore the record may give it to nobody, or to another one, and its guest runs on: its
 * node says so, until that is put right. */
static void test_strange(void)
{
    struct node_world *nw = with_volume();
    nw_pass(nw, 100000);
    g_assert_null(volumes_strange_text(nw->a.core));
    nw->web1.attachment = NULL;
    nw_pass(nw, 20000);
    g_assert_null(volumes_strange_text(nw->a.core)); /* it may be about to go */
    nw_pass(nw, 60000);
    g_autofree char *said = volumes_strange_text(nw->a.core);
    g_assert_cmpstr(said, ==,
                    "has volume " VOLUME_1
                    " open in the guest of instance web1, to which the record does "
                    "not give it; stop that guest, and attach the volume anew");
    nw->mood = MASTER_DEPOSED; /* nobody says otherwise */
    nw->web1.attachment = ATTACHMENT_1;
    nw_pass(nw, 100000);
    nw->mood = MASTER_ANSWERS;
    nw_pass(nw, 40000);
    g_assert_null(volumes_strange_text(nw->a.core));
    g_assert_true(has_it(&nw->a));
    node_world_free(nw);
}

/* A start, too: the record has to say that its volumes are its own. */
static void test_start(void)
{
    struct node_world *nw = with_volume();
    g_autoptr(GError) error = NULL;
    g_assert_true(nw_stop(nw, 0, &error));
    g_assert_true(nw_start(nw, &error));
    g_assert_true(has_it(&nw->a));
    g_assert_true(nw_stop(nw, 0, &error));
    nw->web1.generation++;
    nw->web1.holder = nw->web1.primary;
    json_autoptr late = nw_start_args(nw, NULL, true, true);
    nw->web1.attachment = NULL;
    json_t *answer = nw_call(nw, &nw->a, "guest_start", json_incref(late), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    g_assert_nonnull(strstr(error->message, "may not attach here"));
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, NULL), ==, GUEST_ABSENT);
    node_world_free(nw);
}

/* It is the guest's until that gives it up, also for the next node daemon, which tells the master.
 */
static void test_leaving(void)
{
    struct node_world *nw = with_volume();
    g_autoptr(GError) error = NULL;
    fake_host_keep_volumes(nw->a.host, true);
    g_assert_false(asked(nw));
    nw_pass(nw, 12000);
    g_assert_true(has_it(&nw->a));
    g_assert_cmpstr(nw->web1.attachment, ==, ATTACHMENT_1);
    json_t *answer = nw_call(nw, &nw->a, "volume_attach", attach_args(nw), &error);
    assert_refused(answer, error, WRONG_STATE, "the guest is asked to give this volume up");
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    fake_host_keep_volumes(nw->a.host, false);
    nw_until(nw, !nw->web1.attachment);
    g_assert_false(has_it(&nw->a));
    node_world_free(nw);
}

/* A master that does not answer is told again. */
static void test_told_again(void)
{
    struct node_world *nw = with_volume();
    fake_host_keep_volumes(nw->a.host, true);
    g_assert_false(asked(nw));
    nw->mood = MASTER_DEPOSED;
    fake_host_keep_volumes(nw->a.host, false);
    nw_until(nw, !has_it(&nw->a));
    nw_pass(nw, 2000);
    g_assert_cmpstr(nw->web1.attachment, ==, ATTACHMENT_1);
    nw->mood = MASTER_ANSWERS;
    nw_until(nw, !nw->web1.attachment);
    node_world_free(nw);
}

/* Both sides of a migration have it, one that is to be given up too. */
static void test_migration(void)
{
    struct node_world *nw = with_volume();
    g_autoptr(GError) error = NULL;
    fake_host_keep_volumes(nw->a.host, true);
    fake_host_keep_volumes(nw->b.host, true);
    g_assert_false(asked(nw));
    g_assert_true(nw_migrate_begin(nw, MOVE_1, &error));
    g_assert_no_error(error);
    g_assert_true(has_it(&nw->a));
    g_assert_true(has_it(&nw->b));
    nw_until(nw, strcmp(nw->web1.holder, NODE_B) == 0);
    g_assert_true(nw_migrate_finish(nw, &error));
    g_assert_no_error(error);
    g_assert_true(has_it(&nw->b));
    g_assert_cmpstr(nw->web1.attachment, ==, ATTACHMENT_1);
    node_world_free(nw);
}

/* What recovery is shown (RCV-75): what the guest may have, and has. */
static void expect_shown(struct node_world *nw, bool may, bool leaving, bool has)
{
    g_autoptr(GError) error = NULL;
    json_autoptr said = nw_call(nw, &nw->a, "collect",
                                json_make("{s:[{s:s,s:i,s:[],s:s}]}", "subjects", "instance", WEB1,
                                          "dead_job", 0, "disks", "disk_template", "diskless"),
                                &error);
    g_assert_no_error(error);
    record_autoptr(collect_result) result =
        record_parse(&collect_result_record, said, RECORD_STRICT, &error);
    g_assert_no_error(error);
    const struct sight *sight = result->sights->pdata[0];
    const struct guest_volume *volume = sight->volumes->len ? sight->volumes->pdata[0] : NULL;
    g_autofree char *name = g_strdup_printf(VOLUME_DRIVE, ATTACHMENT_1);
    g_assert_true(may == (volume != NULL));
    g_assert_true(!may || volume->leaving == leaving);
    g_assert_true(has == g_ptr_array_find_with_equal_func(sight->drives, name, g_str_equal, NULL));
}

static void test_collect(void)
{
    struct node_world *nw = with_volume();
    expect_shown(nw, true, false, true);
    fake_host_keep_volumes(nw->a.host, true);
    g_assert_false(asked(nw));
    expect_shown(nw, true, true, true);
    fake_host_keep_volumes(nw->a.host, false);
    g_assert_true(asked(nw));
    expect_shown(nw, false, false, false);
    node_world_free(nw);
    nw = with_volume();
    fake_host_guest_crash(nw->a.host, WEB1);
    nw_pass(nw, 100);
    expect_shown(nw, false, false, false);
    node_world_free(nw);
}

/* A process that is gone has nothing. */
static void test_gone(void)
{
    struct node_world *nw = with_volume();
    fake_host_keep_volumes(nw->a.host, true);
    fake_host_guest_crash(nw->a.host, WEB1);
    nw_pass(nw, 100);
    g_assert_true(asked(nw));
    node_world_free(nw);
}

#define GIB(n) ((guint64)(n) << 30)

static void grown(struct node_world *nw, struct fake_reply *reply)
{
    const struct env *volumed = fake_process(nw->world, NODE_M, ROLE_VOLUMED);
    fake_call_start_stamped(volumed, 0, nw->stamp, NODE_A, ROLE_NODED, "volume_grown",
                            json_make("{s:s}", "volume", VOLUME_1), reply);
}

/* Two extensions, of which the first one's word is late, and the second one's comes twice: its
 * guest's device only grows. */
static void test_grown(void)
{
    struct node_world *nw = with_volume();
    struct fake_reply late = {0}, next = {0}, again = {0};
    nw_pass(nw, 12000);
    fake_host_set_volume_bytes(nw->a.host, GIB(3));
    fake_host_hang(nw->a.host, "volume_resize", true);
    guint before = fake_host_count(nw->a.host, "volume_resize");
    grown(nw, &late);
    nw_until(nw, fake_host_count(nw->a.host, "volume_resize") > before);
    fake_host_set_volume_bytes(nw->a.host, GIB(5));
    grown(nw, &next);
    nw_pass(nw, 2000);
    g_assert_false(late.done || next.done);
    fake_host_hang(nw->a.host, "volume_resize", false);
    nw_until(nw, late.done && next.done);
    g_assert_no_error(late.error);
    g_assert_no_error(next.error);
    g_assert_cmpuint(fake_host_volume_bytes(nw->a.host, WEB1), ==, GIB(5));
    grown(nw, &again);
    nw_until(nw, again.done);
    g_assert_no_error(again.error);
    g_assert_cmpuint(fake_host_volume_bytes(nw->a.host, WEB1), ==, GIB(5));
    fake_reply_clear(&late);
    fake_reply_clear(&next);
    fake_reply_clear(&again);
    node_world_free(nw);
}

/* A look that hangs holds up neither its guest nor the next master's announcement. */
static void test_grown_hangs(void)
{
    struct node_world *nw = with_volume();
    g_autoptr(GError) error = NULL;
    struct fake_reply reply = {0};
    nw_pass(nw, 12000);
    fake_host_hang(nw->a.host, "look_at", true);
    grown(nw, &reply);
    nw_pass(nw, 2000);
    g_assert_false(reply.done);
    g_assert_true(asked(nw));
    g_assert_true(nw_stop(nw, 0, &error));
    fake_host_hang(nw->a.host, "look_at", false);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* Where nobody has it nothing is to be done; the next node daemon catches up on what it was not
 * told. */
static void test_grown_untold(void)
{
    struct node_world *nw = with_volume();
    nw_daemon_kill(nw, &nw->a);
    fake_host_set_volume_bytes(nw->a.host, GIB(7));
    nw_daemon_start(nw, &nw->a);
    nw_until(nw, fake_host_volume_bytes(nw->a.host, WEB1) == GIB(7));
    g_assert_true(asked(nw));
    fake_host_set_volume_bytes(nw->a.host, GIB(8));
    struct fake_reply reply = {0};
    grown(nw, &reply);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    g_assert_cmpuint(fake_host_volume_bytes(nw->a.host, WEB1), ==, GIB(7));
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* What was refused while its guest was about to leave is told when that does not leave after all.
 */
static void test_grown_in_migration(void)
{
    struct node_world *nw = with_volume();
    g_autoptr(GError) error = NULL;
    struct fake_reply reply = {0};
    nw_pass(nw, 12000);
    fake_host_set_slow(nw->a.host, 60000);
    g_assert_true(nw_migrate_begin(nw, MOVE_1, &error));
    fake_host_set_volume_bytes(nw->a.host, GIB(7));
    grown(nw, &reply);
    nw_until(nw, reply.done);
    g_assert_error(reply.error, FETTLE_ERROR, FETTLE_ERROR_WRONG_STATE);
    nw_pass(nw, 12000);
    g_assert_cmpuint(fake_host_volume_bytes(nw->a.host, WEB1), <, GIB(7));
    fake_host_migration_break(nw->a.host, WEB1);
    nw_until(nw, fake_host_volume_bytes(nw->a.host, WEB1) == GIB(7));
    guint looks = fake_host_count(nw->a.host, "look_at");
    nw_pass(nw, 20000);
    g_assert_cmpuint(fake_host_count(nw->a.host, "look_at"), ==, looks);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* A look of the node's own that fails is not the last. */
static void test_grown_look_fails(void)
{
    struct node_world *nw = with_volume();
    nw_daemon_kill(nw, &nw->a);
    fake_host_set_volume_bytes(nw->a.host, GIB(7));
    fake_host_fault(nw->a.host, "look_at", FAKE_FAULT_FAILS, 1);
    nw_daemon_start(nw, &nw->a);
    nw_until(nw, fake_host_volume_bytes(nw->a.host, WEB1) == GIB(7));
    node_world_free(nw);
}

/* However often it is asked for, one look hangs; what it was refused for is looked at afterwards.
 */
static void test_grown_asked_often(void)
{
    struct node_world *nw = with_volume();
    struct fake_reply first = {0};
    nw_pass(nw, 12000);
    guint before = fake_host_count(nw->a.host, "look_at");
    fake_host_hang(nw->a.host, "look_at", true);
    grown(nw, &first);
    for (guint i = 0; i < 4; i++) {
        struct fake_reply next = {0};
        nw_pass(nw, 6000);
        grown(nw, &next);
        nw_until(nw, next.done);
        g_assert_error(next.error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
        fake_reply_clear(&next);
    }
    g_assert_cmpuint(fake_host_count(nw->a.host, "look_at") - before, ==, 1);
    fake_host_hang(nw->a.host, "look_at", false);
    nw_until(nw, first.done);
    fake_host_set_volume_bytes(nw->a.host, GIB(9));
    nw_until(nw, fake_host_volume_bytes(nw->a.host, WEB1) == GIB(9));
    fake_reply_clear(&first);
    node_world_free(nw);
}

/* --- points in time --- */

#define CLAIM 41

static json_t *point_args(const char *method, guint64 claim)
{
    json_t *args = json_make("{s:s,s:I}", "volume", VOLUME_1, "claim", (json_int_t)claim);
    if (strcmp(method, "point_open") == 0) {
        g_autofree char *name = g_strdup_printf(VOLUME_1 ".%" G_GUINT64_FORMAT, claim);
        json_object_set_new(args, "resource_type", json_string("Snapshot"));
        json_object_set_new(args, "name", json_string(name));
    }
    return args;
}

/* What the node says: its state, "nothing" to an end, or the error. */
static char *point(struct node_world *nw, const char *method, guint64 claim)
{
    const struct env *volumed = fake_process(nw->world, NODE_M, ROLE_VOLUMED);
    struct fake_reply reply = {0};
    fake_call_start_stamped(volumed, 0, nw->stamp, NODE_A, ROLE_NODED, method,
                            point_args(method, claim), &reply);
    nw_until(nw, reply.done);
    char *said = reply.error ? g_strdup(reply.error->message)
                 : strcmp(method, "point_close") == 0
                     ? g_strdup("nothing")
                     : g_strdup(json_string_value(json_object_get(reply.result, "state")));
    fake_reply_clear(&reply);
    return said;
}

static void assert_point(struct node_world *nw, const char *method, guint64 claim,
                         const char *expected)
{
    g_autofree char *said = point(nw, method, claim);
    if (!strstr(said, expected))
        g_error("%s: %s, and not %s", method, said, expected);
}

static guint64 copied(struct node_world *nw)
{
    return fake_host_point(nw->a.host, WEB1);
}

/* From its beginning to its end, each of them twice; a late one begins nothing. */
static void test_point(void)
{
    struct node_world *nw = with_volume();
    assert_point(nw, "point_look", CLAIM, "none");
    nw->web1.claim = CLAIM;
    for (guint i = 0; i < 2; i++) {
        assert_point(nw, "point_open", CLAIM, "copied");
        g_assert_cmpuint(copied(nw), ==, CLAIM);
    }
    assert_point(nw, "point_close", CLAIM - 1, "nothing");
    g_assert_cmpuint(copied(nw), ==, CLAIM);
    for (guint i = 0; i < 2; i++)
        assert_point(nw, "point_close", CLAIM, "nothing");
    g_assert_cmpuint(copied(nw), ==, 0);
    assert_point(nw, "point_look", CLAIM, "none");
    nw->web1.claim = CLAIM + 1;
    assert_point(nw, "point_open", CLAIM, "does not say so");
    g_assert_cmpuint(copied(nw), ==, 0);
    node_world_free(nw);
}

/* Whoever cleans ends what the owner before has begun, once that claim is over; and so does the
 * next claim. */
static void test_point_of_before(void)
{
    struct node_world *nw = with_volume();
    nw->web1.claim = CLAIM;
    assert_point(nw, "point_open", CLAIM, "copied");
    assert_point(nw, "point_close", CLAIM + 5, "nothing");
    g_assert_cmpuint(copied(nw), ==, CLAIM);
    nw->web1.claim = CLAIM + 5;
    assert_point(nw, "point_close", CLAIM + 5, "nothing");
    g_assert_cmpuint(copied(nw), ==, 0);
    nw->web1.claim = CLAIM;
    assert_point(nw, "point_open", CLAIM, "copied");
    nw->web1.claim = CLAIM + 1;
    assert_point(nw, "point_open", CLAIM + 1, "copied");
    g_assert_cmpuint(copied(nw), ==, CLAIM + 1);
    assert_point(nw, "point_look", CLAIM, "none");
    node_world_free(nw);
}

/* Nobody closes it any more: the node finds that the claim is over, also the next node daemon; as
 * long as it stands, or nobody answers, it goes on. */
static void test_point_is_over(void)
{
    struct node_world *nw = with_volume();
    nw->web1.claim = CLAIM;
    assert_point(nw, "point_open", CLAIM, "copied");
    nw_pass(nw, 30000);
    g_assert_cmpuint(copied(nw), ==, CLAIM);
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 30000);
    g_assert_cmpuint(copied(nw), ==, CLAIM);
    nw->mood = MASTER_DEPOSED;
    nw->web1.claim = 0;
    nw_pass(nw, 30000);
    g_assert_cmpuint(copied(nw), ==, CLAIM);
    nw->mood = MASTER_ANSWERS;
    nw_until(nw, copied(nw) == 0);
    assert_point(nw, "point_look", CLAIM, "none");
    node_world_free(nw);
}

/* What is more urgent ends it: the guest moves, or gives the volume up. While it does not end they
 * wait, and while a guest moves none begins. */
static void test_point_gives_way(void)
{
    struct node_world *nw = with_volume();
    g_autoptr(GError) error = NULL;
    nw->web1.claim = CLAIM;
    fake_host_keep_points(nw->a.host, true);
    assert_point(nw, "point_open", CLAIM, "copying");
    assert_point(nw, "point_close", CLAIM, "has not ended yet; try again");
    g_assert_false(nw_migrate_begin(nw, MOVE_1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
    g_clear_error(&error);
    json_t *answer = nw_call(nw, &nw->a, "volume_detach", attach_args(nw), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
    g_clear_error(&error);
    fake_host_keep_points(nw->a.host, false);
    g_assert_true(asked(nw));
    g_assert_cmpuint(copied(nw), ==, 0);
    assert_point(nw, "point_open", CLAIM, "none");
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest-volumes/attach-and-detach", test_attach_and_detach);
    g_test_add_func("/guest-volumes/not-on-record#SAF-57", test_not_on_record);
    g_test_add_func("/guest-volumes/strange#SAF-57", test_strange);
    g_test_add_func("/guest-volumes/start#SAF-57", test_start);
    g_test_add_func("/guest-volumes/leaving#SAF-124", test_leaving);
    g_test_add_func("/guest-volumes/told-again#SAF-124", test_told_again);
    g_test_add_func("/guest-volumes/migration#SAF-124", test_migration);
    g_test_add_func("/guest-volumes/collect#RCV-75", test_collect);
    g_test_add_func("/guest-volumes/gone#SAF-57", test_gone);
    g_test_add_func("/guest-volumes/grown#SAF-53", test_grown);
    g_test_add_func("/guest-volumes/grown-hangs", test_grown_hangs);
    g_test_add_func("/guest-volumes/grown-untold#SAF-53", test_grown_untold);
    g_test_add_func("/guest-volumes/grown-in-migration#SAF-53", test_grown_in_migration);
    g_test_add_func("/guest-volumes/grown-look-fails#SAF-53", test_grown_look_fails);
    g_test_add_func("/guest-volumes/grown-asked-often", test_grown_asked_often);
    g_test_add_func("/guest-volumes/point#SAF-59", test_point);
    g_test_add_func("/guest-volumes/point-of-before#SAF-59", test_point_of_before);
    g_test_add_func("/guest-volumes/point-is-over#SAF-59", test_point_is_over);
    g_test_add_func("/guest-volumes/point-gives-way#SAF-59", test_point_gives_way);
    return g_test_run();
}
