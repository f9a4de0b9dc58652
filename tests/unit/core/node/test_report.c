/*
 * A report is given in bounded time, whatever hangs on its node, and says what of it is an answer
 * to the question (SAF-90): core/node look.c, parts.c, report.c.
 */
#include "helper/node_world.h"

#include "base/limits.h"
#include "base/task.h"
#include "core/node/look.h"

#define OP_MS 5 /* what a call to a host that is well may take */

static json_t *ask(struct node_world *nw, bool looks, GError **error)
{
    json_t *args = looks ? json_make("{s:b}", "looks", 1) : json_object();
    return nw_call(nw, &nw->a, "node_report", args, error);
}

static gint64 now_ms(const struct node_world *nw)
{
    return nw->job->ops->boot_ms(nw->job);
}

/* As a new asker, who gets it within `most_ms`. */
static json_t *ask_within(struct node_world *nw, gint64 most_ms)
{
    g_autoptr(GError) error = NULL;
    gint64 began = now_ms(nw);
    json_t *report = ask(nw, true, &error);
    g_assert_no_error(error);
    g_assert_cmpint(now_ms(nw) - began, <=, most_ms + 20 * OP_MS);
    return report;
}

static const json_t *guest_of(const json_t *report)
{
    return json_array_get(json_object_get(report, "guests"), 0);
}

static const char *text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

/* NULL: it is not late. */
static const json_t *late_part(const json_t *report, const char *name)
{
    size_t i;
    const json_t *part;
    json_array_foreach(json_object_get(report, "late"), i, part) {
        if (strcmp(text(part, "part"), name) == 0)
            return part;
    }
    return NULL;
}

static struct node_world *world_with_guest(void)
{
    struct node_world *nw = node_world_new(1);
    g_autoptr(GError) error = NULL;
    nw_create(nw, NODE_A, "", 0, &error);
    nw_start(nw, &error);
    g_assert_no_error(error);
    return nw;
}

/* Told from memory, as late and with its age, until it answers again. */
static void test_hung_guest(void)
{
    struct node_world *nw = world_with_guest();
    json_autoptr well = ask_within(nw, 0);
    g_assert_true(json_is_false(json_object_get(guest_of(well), "late")));
    g_assert_cmpint(json_integer_value(json_object_get(guest_of(well), "age_ms")), ==, 0);

    fake_host_hang(nw->a.host, WEB1, true);
    json_autoptr first = ask_within(nw, LOOK_WAIT_MS);
    g_assert_true(json_is_true(json_object_get(guest_of(first), "late")));
    g_assert_cmpstr(text(guest_of(first), "state"), ==, "running");
    g_assert_cmpuint(json_array_size(json_object_get(first, "late")), ==, 0);
    /* It is waited for less from then on, and asked all the same. */
    json_autoptr second = ask_within(nw, LOOK_LATE_MS);
    g_assert_true(json_is_true(json_object_get(guest_of(second), "late")));
    g_assert_cmpint(json_integer_value(json_object_get(guest_of(second), "age_ms")), >=,
                    LOOK_WAIT_MS);
    nw_pass(nw, 60000);
    json_autoptr third = ask_within(nw, LOOK_LATE_MS);
    g_assert_cmpint(json_integer_value(json_object_get(guest_of(third), "age_ms")), >=, 60000);

    fake_host_hang(nw->a.host, WEB1, false);
    nw_pass(nw, 10000); /* the look of before ends */
    json_autoptr again = ask_within(nw, 0);
    g_assert_true(json_is_false(json_object_get(guest_of(again), "late")));
    fake_host_guest_crash(nw->a.host, WEB1);
    json_autoptr gone = ask_within(nw, 0);
    g_assert_cmpuint(json_array_size(json_object_get(gone, "guests")), ==, 0);
    node_world_free(nw);
}

/* What began between the memory and the question is there; what was in memory before is over. */
static void test_started_between(void)
{
    struct node_world *nw = world_with_guest();
    g_autoptr(GError) error = NULL;
    nw_stop(nw, 0, &error);
    g_assert_no_error(error);
    json_autoptr before = ask_within(nw, 0);
    g_assert_cmpuint(json_array_size(json_object_get(before, "guests")), ==, 0);
    nw_start(nw, &error);
    g_assert_no_error(error);
    fake_host_hang(nw->a.host, WEB1, true);
    json_autoptr report = ask_within(nw, LOOK_WAIT_MS);
    const json_t *guest = guest_of(report);
    g_assert_cmpstr(text(guest, "instance"), ==, WEB1);
    g_assert_cmpint(json_integer_value(json_object_get(guest, "generation")), ==,
                    (json_int_t)nw->web1.generation);
    g_assert_cmpstr(text(guest, "state"), ==, "running");
    g_assert_true(json_is_true(json_object_get(guest, "late")));
    node_world_free(nw);
}

/* It takes what it reads for news: of all that a late guest may be, "running" hurts nobody. */
static void test_old_asker(void)
{
    struct node_world *nw = world_with_guest();
    g_autoptr(GError) error = NULL;
    nw_pass(nw, 100);
    fake_host_hang(nw->a.host, WEB1, true);
    json_autoptr report = ask(nw, false, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(text(guest_of(report), "state"), ==, "running");
    g_assert_true(json_is_false(json_object_get(guest_of(report), "late")));

    /* Without the shared folder it hears that there is none, as ever; without a look at the disks
     * nothing, as "no image" would be news. */
    fake_host_hang(nw->a.host, "shared", true);
    json_autoptr unshared = ask(nw, false, &error);
    g_assert_cmpstr(text(unshared, "shared"), ==, "");
    g_assert_cmpuint(json_array_size(json_object_get(unshared, "late")), ==, 0);
    fake_host_hang(nw->a.host, "list", true);
    json_t *none = ask(nw, false, &error);
    assert_refused(none, error, TEMPORARY, "the disks of this node do not answer");
    fake_host_hang(nw->a.host, "list", false);
    nw_pass(nw, 100);
    fake_host_fault(nw->a.host, "list", FAKE_FAULT_FAILS, 1);
    none = ask(nw, false, &error);
    assert_refused(none, error, TEMPORARY,
                   "the disks of this node cannot be read: list: failed as the test wanted");
    node_world_free(nw);
}

/* Every part that hangs: what it said is told, as late; the others are as new as ever. */
static void test_hung_parts(void)
{
    static const struct {
        const char *op, *part;
    } rows[] = {
        {"space", "disks"},     {"list", "disks"},      {"shared", "shared"},
        {"sources", "sources"}, {"bridges", "bridges"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct node_world *nw = world_with_guest();
        fake_host_set_sources(nw->a.host, "vmlinuz");
        json_autoptr well = ask_within(nw, 0);
        g_assert_cmpuint(json_array_size(json_object_get(well, "late")), ==, 0);
        fake_host_hang(nw->a.host, rows[i].op, true);
        json_autoptr report = ask_within(nw, LOOK_WAIT_MS);
        const json_t *late = late_part(report, rows[i].part);
        g_assert_cmpuint(json_array_size(json_object_get(report, "late")), ==, 1);
        g_assert_true(json_is_false(json_object_get(late, "unknown")));
        g_assert_cmpint(json_integer_value(json_object_get(late, "age_ms")), >=, LOOK_WAIT_MS);
        g_assert_cmpstr(text(late, "why"), ==, "");
        g_assert_true(json_is_false(json_object_get(guest_of(report), "late")));
        for (const char *const *field = (const char *const[]){"disk_total", "shared", "bridges",
                                                              "images", "sources", NULL};
             *field; field++)
            g_assert_true(
                json_equal(json_object_get(report, *field), json_object_get(well, *field)));
        g_assert_true(json_is_true(json_object_get(report, "sources_whole")) ==
                      (strcmp(rows[i].part, "sources") != 0));
        fake_host_hang(nw->a.host, rows[i].op, false);
        nw_pass(nw, 100);
        json_autoptr again = ask_within(nw, 0);
        g_assert_cmpuint(json_array_size(json_object_get(again, "late")), ==, 0);
        node_world_free(nw);
    }
}

/* A node daemon that began beside it knows nothing, and says so. */
static void test_never_heard(void)
{
    struct node_world *nw = world_with_guest();
    nw_daemon_kill(nw, &nw->a);
    fake_host_hang(nw->a.host, "bridges", true);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 3000);
    json_autoptr report = ask_within(nw, LOOK_WAIT_MS);
    const json_t *late = late_part(report, "bridges");
    g_assert_true(json_is_true(json_object_get(late, "unknown")));
    g_assert_cmpint(json_integer_value(json_object_get(late, "age_ms")), >=, 3000);
    g_assert_cmpuint(json_array_size(json_object_get(report, "bridges")), ==, 0);
    node_world_free(nw);
}

static void test_part_fails(void)
{
    struct node_world *nw = world_with_guest();
    fake_host_fault(nw->a.host, "list", FAKE_FAULT_FAILS, 1);
    json_autoptr report = ask_within(nw, 0);
    const json_t *late = late_part(report, "disks");
    g_assert_cmpstr(text(late, "why"), ==, "list: failed as the test wanted");
    g_assert_true(json_is_true(json_object_get(late, "unknown")));
    g_assert_cmpstr(text(guest_of(report), "state"), ==, "running");
    json_autoptr again = ask_within(nw, 0);
    g_assert_null(late_part(again, "disks"));
    node_world_free(nw);
}

/* Who asks while a look is under way gets one that begins afterwards; two of them share it. */
static void test_shared_look(void)
{
    struct node_world *nw = world_with_guest();
    json_autoptr well = ask_within(nw, 0);
    guint before = fake_host_count(nw->a.host, "bridges");
    struct fake_reply replies[3];
    fake_host_hang(nw->a.host, "bridges", true);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        nw_call_start(nw, &nw->a, "node_report", nw->stamp, json_make("{s:b}", "looks", 1),
                      &replies[i]);
        nw_pass(nw, 50);
    }
    g_assert_cmpuint(fake_host_count(nw->a.host, "bridges"), ==, before + 1);
    fake_host_hang(nw->a.host, "bridges", false);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        nw_until(nw, replies[i].done);
        g_assert_no_error(replies[i].error);
        g_assert_null(late_part(replies[i].result, "bridges"));
        fake_reply_clear(&replies[i]);
    }
    g_assert_cmpuint(fake_host_count(nw->a.host, "bridges"), ==, before + 2);
    node_world_free(nw);
}

/* --- the time of a round is over in the very turn in which it has its last answer --- */

static struct env_ops late_ops;
static struct {
    void (*fn)(void *data);
    void *data;
    guint made;
} late_timer; /* of the round; it fires when the test says so */

static guint keep_timer(const struct env *env, guint ms, void (*fn)(void *data), void *data)
{
    late_timer.fn = fn;
    late_timer.data = data;
    return ++late_timer.made;
}

static void forget_timer(const struct env *env, guint handle)
{
}

static void fire_timer(void *data)
{
    late_timer.fn(late_timer.data);
}

/* Is over with the task's turn; the timer fires before whoever waits has had one. */
static bool look_and_fire(struct node_core *node, void *thing)
{
    if (late_timer.made == 1)
        fire_timer(NULL); /* those that were late have had their time */
    task_spawn(node->env->tasks, fire_timer, NULL);
    return true;
}

static void round_over_twice(void *data)
{
    struct node_world *nw = data;
    struct look look = {0};
    struct look_round *round = look_round_new(nw->a.core);
    look_round_add(round, &look, look_and_fire, NULL);
    g_assert_true(look_round_wait(round));
    g_assert_true(look_round_answered(round, &look));
    look_round_free(round);
    look_clear(&look);
}

static void test_over_once(void)
{
    struct node_world *nw = node_world_new(1);
    const struct env_ops *ops = nw->a.env->ops;
    late_ops = *ops;
    late_ops.timer = keep_timer;
    late_ops.timer_cancel = forget_timer;
    nw->a.env->ops = &late_ops;
    fake_run(nw->a.env, round_over_twice, nw);
    g_assert_cmpuint(late_timer.made, ==, 2);
    nw->a.env->ops = ops;
    node_world_free(nw);
}

/* Nothing waits for ever where a node daemon is killed with looks under way. */
static void test_killed(void)
{
    struct node_world *nw = world_with_guest();
    struct fake_reply reply;
    fake_host_hang(nw->a.host, "bridges", true);
    fake_host_hang(nw->a.host, WEB1, true);
    nw_call_start(nw, &nw->a, "node_report", nw->stamp, json_object(), &reply);
    nw_pass(nw, 50);
    nw_daemon_kill(nw, &nw->a);
    nw_until(nw, reply.done);
    g_assert_nonnull(reply.error);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

/* With fakes of hypervisor and disks as with the real ones (tests/e2e/test_monitoring.py). */
static void test_form(void)
{
    struct node_world *nw = world_with_guest();
    json_autoptr report = ask_within(nw, 0);
    size_t count = 0;
    for (const struct field *field = node_report_record.fields(); field->name; field++) {
        bool there = json_object_get(report, field->name);
        g_assert_true(there || field->type == FIELD_TYPE_OBJECT);
        count += there;
    }
    g_assert_cmpuint(json_object_size(report), ==, count);
    node_world_free(nw);
}

/* A job's call goes on for long: its guest does not want to end. */
static void test_beside_a_long_call(void)
{
    struct node_world *nw = world_with_guest();
    struct fake_reply reply;
    fake_host_hang(nw->a.host, WEB1, true);
    nw_call_start(nw, &nw->a, "guest_stop", nw->stamp, nw_stop_args(nw, 60000), &reply);
    nw_pass(nw, 500);
    g_assert_false(reply.done);
    json_autoptr report = ask_within(nw, LOOK_WAIT_MS);
    g_assert_cmpuint(json_array_size(json_object_get(report, "guests")), ==, 1);
    g_assert_false(reply.done);
    fake_host_hang(nw->a.host, WEB1, false);
    nw_until(nw, reply.done);
    fake_reply_clear(&reply);
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/hung-guest#SAF-90", test_hung_guest);
    g_test_add_func("/report/started-between#SAF-90", test_started_between);
    g_test_add_func("/report/old-asker#SAF-90", test_old_asker);
    g_test_add_func("/report/hung-parts#SAF-90", test_hung_parts);
    g_test_add_func("/report/never-heard#SAF-90", test_never_heard);
    g_test_add_func("/report/part-fails#SAF-90", test_part_fails);
    g_test_add_func("/report/shared-look#SAF-90", test_shared_look);
    g_test_add_func("/report/over-once#SAF-90", test_over_once);
    g_test_add_func("/report/form#NOD-02", test_form);
    g_test_add_func("/report/beside-a-long-call#NOD-04", test_beside_a_long_call);
    g_test_add_func("/report/killed#SAF-90", test_killed);
    return g_test_run();
}
