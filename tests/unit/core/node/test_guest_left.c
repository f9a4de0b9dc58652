/* What a failover leaves on the former primary becomes the replica: replica.c, reconcile.c
 * (SAF-26).
 */
#include "helper/node_world.h"
#include "unit/core/world/guest_steps.h"

#include <string.h>

#define LEFT "33333333-3333-4333-8333-0000000000aa"
#define OTHER_LEFT "33333333-3333-4333-8333-0000000000ab"
#define DISK "22222222-2222-4222-8222-000000000000"

static json_t *leave_args(const struct node_world *nw, guint64 generation, const char *replica)
{
    record_autoptr(instance) instance = nw_instance(nw);
    struct replica_leave_args args = {.instance = instance->uuid,
                                      .replica = (char *)replica,
                                      .generation = generation,
                                      .disks = instance->disks};
    return replica_leave_args_to_json(&args);
}

/* In-sync copies on both, nobody runs. */
static struct node_world *stopped(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_pass(nw, 200);
    nw_stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(nw->web1.clean);
    return nw;
}

static bool leave(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        nw_call(nw, &nw->a, "replica_leave", leave_args(nw, nw->web1.generation, LEFT), &error);
    g_assert_no_error(error);
    return json_is_true(json_object_get(answer, "equal"));
}

/* The commit. */
static void move(struct node_world *nw, enum replica_state state)
{
    struct master_record *web1 = &nw->web1;
    web1->generation++;
    web1->primary = NODE_B;
    web1->secondary = NODE_A;
    g_strlcpy(web1->replica, LEFT, sizeof(web1->replica));
    web1->replica_generation = web1->generation;
    web1->state = state;
    web1->sync = 1;
    web1->clean = state == REPLICA_IN_SYNC;
    nw->serial++;
}

static void back_on_a(struct node_world *nw)
{
    nw->web1.generation++;
    nw->web1.primary = NODE_A;
    nw->web1.secondary = NODE_B;
    g_strlcpy(nw->web1.replica, OTHER_LEFT, sizeof(nw->web1.replica));
    nw->web1.replica_generation = nw->web1.generation;
    nw->serial++;
}

static json_t *close_args(const struct node_world *nw, const char *replica, bool promote)
{
    record_autoptr(instance) instance = nw_instance(nw);
    struct replica_close_args args = {.instance = instance->uuid,
                                      .replica = (char *)replica,
                                      .generation = nw->web1.generation,
                                      .promote = promote,
                                      .equal = promote,
                                      .disks = instance->disks};
    return replica_close_args_to_json(&args);
}

static void call_ok(struct node_world *nw, struct test_node *node, const char *method, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = nw_call(nw, node, method, args, &error);
    g_assert_no_error(error);
    g_assert_nonnull(answer);
}

static bool has(struct node_world *nw, const char *node, const char *replica)
{
    return fake_hosts_whole(nw->hosts, node, WEB1, replica);
}

/* Without a word of anybody: its job has died right after the commit. */
static void test_named_by_return(void)
{
    struct node_world *nw = stopped();
    char promoted[37];
    g_strlcpy(promoted, nw->web1.replica, sizeof(promoted));
    g_assert_true(leave(nw));
    nw_daemon_kill(nw, &nw->a); /* what it has promised it keeps */
    nw_daemon_start(nw, &nw->a);
    json_autoptr report = nw_report(nw, &nw->a);
    g_assert_cmpstr(json_string_value(json_array_get(json_object_get(report, "left"), 0)), ==,
                    WEB1 " " LEFT);
    g_assert_true(has(nw, NODE_A, ""));
    move(nw, REPLICA_IN_SYNC);
    nw_until(nw, has(nw, NODE_A, LEFT));
    g_assert_false(has(nw, NODE_A, ""));
    /* And back again, with equal copies all the way. */
    call_ok(nw, &nw->b, "replica_close", close_args(nw, promoted, true));
    g_autoptr(GError) error = NULL;
    json_autoptr back = nw_call(nw, &nw->b, "replica_leave",
                                leave_args(nw, nw->web1.generation, OTHER_LEFT), &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(json_object_get(back, "equal")));
    back_on_a(nw);
    call_ok(nw, &nw->a, "replica_close", close_args(nw, LEFT, true));
    g_assert_true(has(nw, NODE_A, ""));
    nw_until(nw, has(nw, NODE_B, OTHER_LEFT));
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->a, nw->web1.generation));
    nw_pass(nw, 500);
    g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
    node_world_free(nw);
}

static void die_when_named(struct node_world *nw, void *data)
{
    if (!has(nw, NODE_A, LEFT))
        return;
    nw->each_step = NULL;
    nw_daemon_kill(nw, &nw->a);
}

/* By whoever opens or closes it first. */
static void test_named_by_a_call(void)
{
    static const bool opened[] = {true, false};
    for (guint i = 0; i < G_N_ELEMENTS(opened); i++) {
        struct node_world *nw = stopped();
        g_autoptr(GError) error = NULL;
        char promoted[37];
        g_strlcpy(promoted, nw->web1.replica, sizeof(promoted));
        leave(nw);
        nw->mood = MASTER_SILENT; /* for Return */
        move(nw, REPLICA_IN_SYNC);
        if (!opened[i]) {
            call_ok(nw, &nw->a, "replica_close", close_args(nw, LEFT, false));
            g_assert_true(has(nw, NODE_A, LEFT));
        }
        nw_master_answers(nw);
        call_ok(nw, &nw->b, "replica_close", close_args(nw, promoted, true));
        nw_start(nw, &error);
        g_assert_no_error(error);
        g_assert_true(runs(&nw->b, nw->web1.generation));
        g_assert_true(has(nw, NODE_A, LEFT));
        g_assert_cmpint(nw->web1.state, ==, REPLICA_IN_SYNC);
        node_world_free(nw);
    }
}

/* Before they have their name they can be promoted again: they are its images. */
static void test_promoted_unnamed(void)
{
    struct node_world *nw = stopped();
    g_autoptr(GError) error = NULL;
    leave(nw);
    nw->mood = MASTER_SILENT;
    move(nw, REPLICA_IN_SYNC);
    nw->web1.generation++; /* B is dead; A holds it again */
    nw->web1.primary = NODE_A;
    nw->web1.secondary = "";
    nw->web1.clean = false;
    call_ok(nw, &nw->a, "replica_close", close_args(nw, LEFT, true));
    nw->web1.replica[0] = '\0';
    nw_master_answers(nw);
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->a, nw->web1.generation));
    node_world_free(nw);
}

/* The job has died before the commit: nothing has changed, and the next start ends the matter. */
static void test_start_takes_it_back(void)
{
    struct node_world *nw = stopped();
    g_autoptr(GError) error = NULL;
    leave(nw);
    nw_pass(nw, 12000);
    g_assert_true(has(nw, NODE_A, ""));
    nw_start(nw, &error);
    g_assert_no_error(error);
    g_assert_true(runs(&nw->a, nw->web1.generation));
    nw_stop(nw, 10000, &error);
    g_assert_no_error(error);
    move(nw, REPLICA_IN_SYNC); /* of a job that has not asked */
    nw->web1.state = REPLICA_STALE;
    nw_until(nw, !has(nw, NODE_A, ""));
    g_assert_false(has(nw, NODE_A, LEFT));
    g_assert_true(fake_hosts_kept_whole(nw->hosts, NODE_A, WEB1));
    node_world_free(nw);
}

/* A question of Return is under way when it is left and moved: its answer is of another matter. */
static void test_question_under_way(void)
{
    struct node_world *nw = stopped();
    nw->mood = MASTER_SILENT;
    nw_until(nw, nw->unanswered->len > 0);
    leave(nw);
    move(nw, REPLICA_IN_SYNC);
    nw_master_answers(nw);
    nw_until(nw, has(nw, NODE_A, LEFT));
    node_world_free(nw);
}

/* Back at A, at rest; then a close of what was its replica comes late. */
static void test_late_close(void)
{
    struct node_world *nw = stopped();
    char promoted[37];
    g_strlcpy(promoted, nw->web1.replica, sizeof(promoted));
    leave(nw);
    move(nw, REPLICA_IN_SYNC);
    nw_until(nw, has(nw, NODE_A, LEFT));
    json_t *late = close_args(nw, LEFT, false);
    call_ok(nw, &nw->b, "replica_close", close_args(nw, promoted, true));
    call_ok(nw, &nw->b, "replica_leave", leave_args(nw, nw->web1.generation, OTHER_LEFT));
    back_on_a(nw);
    call_ok(nw, &nw->a, "replica_close", close_args(nw, LEFT, true));
    nw_until(nw, has(nw, NODE_B, OTHER_LEFT));
    call_ok(nw, &nw->a, "replica_close", late);
    nw_pass(nw, 12000);
    g_assert_true(has(nw, NODE_A, ""));
    node_world_free(nw);
}

/* A word of an earlier job comes late: the one that is on record stays. */
static void test_late_leave(void)
{
    struct node_world *nw = stopped();
    g_autoptr(GError) error = NULL;
    json_t *late = leave_args(nw, nw->web1.generation, OTHER_LEFT);
    leave(nw);
    nw->mood = MASTER_SILENT;
    move(nw, REPLICA_IN_SYNC);
    json_autoptr answer = nw_call(nw, &nw->a, "replica_leave", late, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_object_get(answer, "replica")), ==, LEFT);
    nw_master_answers(nw);
    nw_until(nw, has(nw, NODE_A, LEFT));
    node_world_free(nw);
}

/* The images have their other name, and a death has kept the node from noting it. */
static void test_half_named(void)
{
    static const bool promoted_again[] = {true, false};
    for (guint i = 0; i < G_N_ELEMENTS(promoted_again); i++) {
        struct node_world *nw = stopped();
        g_autoptr(GError) error = NULL;
        leave(nw);
        move(nw, REPLICA_IN_SYNC);
        nw->each_step = die_when_named;
        nw_until(nw, nw->each_step == NULL);
        g_assert_true(has(nw, NODE_A, LEFT));
        if (promoted_again[i]) {
            nw->web1.generation++;
            nw->web1.primary = NODE_A;
            nw->web1.secondary = "";
            nw->web1.clean = false;
        }
        nw_daemon_start(nw, &nw->a);
        if (promoted_again[i]) {
            call_ok(nw, &nw->a, "replica_close", close_args(nw, LEFT, true));
            nw->web1.replica[0] = '\0';
            nw_start(nw, &error);
            g_assert_no_error(error);
            g_assert_true(runs(&nw->a, nw->web1.generation));
        } else {
            nw_pass(nw, 12000);
            g_assert_true(has(nw, NODE_A, LEFT));
        }
        node_world_free(nw);
    }
}

/* A replica that the record does not name is none: aside, as all that is superseded. */
static void test_left_for_nothing(void)
{
    struct node_world *nw = stopped();
    leave(nw);
    move(nw, REPLICA_IN_SYNC);
    g_strlcpy(nw->web1.replica, OTHER_LEFT, sizeof(nw->web1.replica));
    nw->web1.state = REPLICA_STALE;
    nw->web1.clean = false;
    nw_until(nw, fake_hosts_kept_whole(nw->hosts, NODE_A, WEB1));
    g_assert_false(has(nw, NODE_A, ""));
    g_assert_false(has(nw, NODE_A, LEFT));
    nw_pass(nw, 100);
    json_autoptr report = nw_report(nw, &nw->a); /* and it is not noted any more */
    g_assert_cmpuint(json_array_size(json_object_get(report, "left")), ==, 0);
    node_world_free(nw);
}

static void test_refused(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    json_t *answer =
        nw_call(nw, &nw->a, "replica_leave", leave_args(nw, nw->web1.generation, LEFT), &error);
    assert_refused(answer, error, WRONG_STATE, "no guest of instance web1 has ended here: it runs");
    nw_stop(nw, 10000, &error);
    g_assert_no_error(error);
    answer = nw_call(nw, &nw->a, "replica_leave", leave_args(nw, 1, LEFT), &error);
    assert_refused(answer, error, REFUSED,
                   "generation 1 of instance web1 is over: generation 2 was already used here");
    answer =
        nw_call(nw, &nw->b, "replica_leave", leave_args(nw, nw->web1.generation, LEFT), &error);
    assert_refused(answer, error, WRONG_STATE,
                   "no guest of instance " WEB1 " has ended here: it never ran here");
    node_world_free(nw);
}

/* Not closed clean: it is told so. */
static void test_not_equal(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create_and_start(nw);
    nw_power_cut(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_stop(nw, 0, &error);
    g_assert_no_error(error);
    g_assert_false(leave(nw));
    node_world_free(nw);
}

static void assert_not_left(struct node_world *nw)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        nw_call(nw, &nw->a, "replica_leave", leave_args(nw, nw->web1.generation, LEFT), &error);
    g_assert_null(answer);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    const char *file = fake_file(nw->world, NODE_A, FILE_STATE, "node/guests/" WEB1 ".json");
    g_assert_null(strstr(file, LEFT));
}

/* Asked again, it does not say that it is noted before it is. */
static void test_not_noted(gconstpointer data)
{
    bool hangs = GPOINTER_TO_INT(data);
    struct node_world *nw = stopped();
    fake_set_hung(nw->world, NODE_A, hangs);
    fake_set_read_only(nw->world, NODE_A, !hangs);
    assert_not_left(nw);
    assert_not_left(nw);
    fake_set_hung(nw->world, NODE_A, false);
    fake_set_read_only(nw->world, NODE_A, false);
    nw_pass(nw, 1000);
    leave(nw);
    const char *file = fake_file(nw->world, NODE_A, FILE_STATE, "node/guests/" WEB1 ".json");
    g_assert_nonnull(strstr(file, LEFT));
    fake_set_read_only(nw->world, NODE_A, true);
    leave(nw); /* it stands */
    node_world_free(nw);
}

/* The same for a promotion: the replica that it was is not forgotten before that is noted. */
static void test_promoted_not_noted(void)
{
    struct node_world *nw = stopped();
    const char *of_b = "node/guests/" WEB1 ".json";
    g_autofree char *replica = g_strdup(nw->web1.replica);
    g_assert_nonnull(strstr(fake_file(nw->world, NODE_B, FILE_STATE, of_b), replica));
    fake_set_read_only(nw->world, NODE_B, true);
    g_autoptr(GError) error = NULL;
    g_assert_false(nw_failover(nw, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_clear_error(&error);
    json_t *again = json_make("{s:s,s:s,s:I,s:b}", "instance", WEB1, "replica", replica,
                              "generation", (json_int_t)nw->web1.generation, "promote", 1);
    g_assert_null(nw_call(nw, &nw->b, "replica_close", json_incref(again), &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_clear_error(&error);
    fake_set_read_only(nw->world, NODE_B, false);
    json_autoptr closed = nw_call(nw, &nw->b, "replica_close", again, &error);
    g_assert_no_error(error);
    g_assert_null(strstr(fake_file(nw->world, NODE_B, FILE_STATE, of_b), replica));
    node_world_free(nw);
}

/* It waits for its turn while the disk answers others. */
static void test_in_turn(void)
{
    struct node_world *nw = stopped();
    struct fake_reply ended[3] = {{0}};
    fake_set_slow(nw->world, NODE_A, 1500);
    for (guint i = 0; i < G_N_ELEMENTS(ended); i++) {
        g_autofree char *uuid = g_strdup_printf("44444444-4444-4444-8444-00000000000%u", i);
        json_t *args = nw_stop_args(nw, 0);
        json_object_set_new(args, "instance", json_string(uuid));
        nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, args, &ended[i]);
    }
    nw_pass(nw, 100);
    leave(nw);
    for (guint i = 0; i < G_N_ELEMENTS(ended); i++) {
        g_assert_true(ended[i].done);
        g_assert_no_error(ended[i].error);
        fake_reply_clear(&ended[i]);
    }
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/left/named-by-return#SAF-26,SAF-19", test_named_by_return);
    g_test_add_func("/left/named-by-a-call#SAF-26", test_named_by_a_call);
    g_test_add_func("/left/promoted-unnamed#SAF-26,SAF-16", test_promoted_unnamed);
    g_test_add_func("/left/start-takes-it-back#SAF-26,SAF-19", test_start_takes_it_back);
    g_test_add_func("/left/question-under-way#SAF-26,SAF-13", test_question_under_way);
    g_test_add_func("/left/late-close#SAF-26,SAF-20", test_late_close);
    g_test_add_func("/left/late-leave#SAF-26,SAF-20", test_late_leave);
    g_test_add_func("/left/half-named#SAF-26,SAF-16", test_half_named);
    g_test_add_func("/left/for-nothing#SAF-26,SAF-19", test_left_for_nothing);
    g_test_add_func("/left/refused#SAF-26", test_refused);
    g_test_add_func("/left/not-equal#SAF-24,SAF-26", test_not_equal);
    g_test_add_data_func("/left/not-noted/hangs#SAF-26", GINT_TO_POINTER(true), test_not_noted);
    g_test_add_data_func("/left/not-noted/fails#SAF-26", GINT_TO_POINTER(false), test_not_noted);
    g_test_add_func("/left/promoted-not-noted#SAF-16", test_promoted_not_noted);
    g_test_add_func("/left/in-turn#SAF-26", test_in_turn);
    return g_test_run();
}
