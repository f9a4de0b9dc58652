/* What recovery would do next: the same that the pass then does, without a change, a job or a door
 * that is closed. core/recovery/recovery_plan.c */
#include "core/config/fault.h"
#include "core/config/follow.h"
#include "unit/core/world/watcher_world.h"

#include <string.h>

#define RECOVERY "watcher/recovery"

/* --- asking --- */

struct asking {
    struct watcher_world *w;
    struct recovery_question question;
    json_t *answer;
};

static void ask_task(void *data)
{
    struct asking *asking = data;
    const struct env *env = asking->w->base.luxid;
    g_autoptr(GError) error = NULL;
    struct follow *follow = follow_new(env, NULL, NULL);
    follow_start(follow, &error);
    g_assert_no_error(error);
    asking->answer = repair_plan_recovery(env, follow, &asking->question);
    follow_free(follow);
}

/* Nothing is other than before, and nobody is refused anything. */
static json_t *ask(struct watcher_world *w, const char *instance, bool hosts)
{
    struct asking asking = {w, {instance ? "instance" : NULL, instance, hosts}, NULL};
    look(w);
    guint64 serial = config_serial(w->view);
    guint submitted = jobs(w);
    w->refused = 0;
    fake_run(w->base.luxid, ask_task, &asking);
    look(w);
    g_assert_cmpuint(config_serial(w->view), ==, serial);
    g_assert_cmpuint(jobs(w), ==, submitted);
    g_assert_cmpuint(w->refused, ==, 0);
    g_assert_nonnull(asking.answer);
    return asking.answer;
}

/* The only row of an answer. */
static const json_t *row_of(const json_t *answer)
{
    const json_t *rows = json_object_get(answer, "rows");
    g_assert_cmpuint(json_array_size(rows), ==, 1);
    return json_array_get(rows, 0);
}

static const char *text(const json_t *object, const char *member)
{
    const char *said = json_string_value(json_object_get(object, member));
    return said ? said : "";
}

static void assert_row(const json_t *row, const char *outcome, const char *why, const char *next)
{
    g_assert_cmpstr(text(row, "outcome"), ==, outcome);
    g_assert_cmpstr(text(row, "why"), ==, why);
    g_assert_cmpstr(text(row, "next"), ==, next);
}

static void expect(struct watcher_world *w, const char *instance, const char *outcome,
                   const char *why, const char *next)
{
    json_autoptr answer = ask(w, instance, false);
    assert_row(row_of(answer), outcome, why, next);
}

/* --- a world whose watcher does not run --- */

static struct watcher_world *fresh(void)
{
    struct watcher_world *w = watcher_world_new();
    json_t *counter = json_make("{s:s,s:i}", "name", "job", "value", 901);
    watcher_world_kill(w);
    look(w);
    g_free(daemon_commit(&w->base, w->base.luxid,
                         changes_of(config_put(w->view, "counter", "job", counter), NULL)));
    g_free(job_locks(&w->base, 17, "r instance/web1", false));
    return w;
}

static void stick(struct watcher_world *w, const char *mark)
{
    patch_web1(w, json_make("{s:s,s:i,s:i}", "task_state", mark, "task_owner", 900, "task_since",
                            1600000000));
}

static void put_fault(struct watcher_world *w, bool blind)
{
    json_t *object = json_make("{s:s,s:s,s:i,s:s,s:s,s:i,s:b}", "subject_kind", "instance",
                               "subject", WEB1, "at_us", 5, "message", "nobody knows", "task",
                               "starting", "owner", 900, "blind", blind);
    look(w);
    g_free(daemon_commit(&w->base, w->base.luxid,
                         changes_of(config_put(w->view, "fault", "instance/" WEB1, object), NULL)));
}

/* --- the same as the pass --- */

static void runs(struct watcher_world *w)
{
    w->own_disks = 3;
}

static void is_half_there(struct watcher_world *w)
{
    w->guest_node = NULL;
    w->own_disks = 0;
}

static void is_gone(struct watcher_world *w)
{
    w->guest_node = NULL;
    w->own_disks = 0;
    w->replica_gone = true;
}

static void is_half_there_with_no(struct watcher_world *w)
{
    is_half_there(w);
    change_object(w, "cluster", CLUSTER, json_make("{s:s}", "recovery_rectify_unstable", "no"));
}

static void is_busy(struct watcher_world *w)
{
    w->busy = NODE1;
}

/* What the dead job is at there is given up by the pass, which looks then; who only asks gives up
 * nothing. */
static void test_busy_with_the_dead_job(void)
{
    struct watcher_world *w = fresh();
    w->busy = NODE1;
    w->busy_job = 900;
    stick(w, "starting");
    expect(w, NULL, "unknown",
           "node1: its images are made by job 900; the next pass has that given up, and looks then",
           "at the next pass");
    watcher_world_free(w);
}

static void is_silent(struct watcher_world *w)
{
    w->silent = NODE1;
}

static void is_older(struct watcher_world *w)
{
    w->unasked = NODE1;
}

static void suspended(struct watcher_world *w)
{
    set_tag(w, TAG_INSTANCE, WEB1, "suspend");
}

static const struct {
    const char *mark;
    void (*set)(struct watcher_world *w);
    const char *outcome, *rule, *why, *next;
} cases[] = {
    {"starting", runs, "settled", "RCV-54", "its guest runs", "at the next pass"},
    {"removing", runs, "settled", "RCV-70", "its guest runs", "at the next pass"},
    {"removing", is_gone, "removed", "RCV-70", "nothing of it is left", "at the next pass"},
    {"creating", is_half_there, "finished", "RCV-47", "kept if it runs or is whole, else removed",
     "at the next pass, with at most 8 such jobs at once (recovery_max_jobs)"},
    {"creating", is_half_there_with_no, "error", "RCV-47",
     "guest absent, place nowhere, disks partial", "at the next pass"},
    {"starting", is_busy, "waits", "", "node1: its images are made by job 900", "at the next pass"},
    {"starting", is_older, "waits", "",
     "node1: its node daemon is of a version before, and cannot be asked; upgrade it",
     "at the next pass"},
    {"starting", is_silent, "unknown", "RCV-35", "node1 gave no answer", "at the next pass"},
};

static void test_same_as_the_pass(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct watcher_world *w = fresh();
        g_test_message("%s, case %u", cases[i].mark, i);
        cases[i].set(w);
        stick(w, cases[i].mark);
        json_autoptr answer = ask(w, NULL, false);
        const json_t *row = row_of(answer);
        assert_row(row, cases[i].outcome, cases[i].why, cases[i].next);
        g_assert_cmpstr(text(row, "rule"), ==, cases[i].rule);
        g_assert_cmpstr(text(row, "task"), ==, cases[i].mark);
        g_assert_cmpstr(text(row, "owner_state"), ==, "dead");
        g_assert_cmpstr(text(row, "owner_why"), ==, "it was archived after its end");
        g_assert_false(json_is_true(json_object_get(answer, "held")));
        watcher_world_start(w);
        passes(w, 1);
        const struct decision *told = latest_about(w, WEB1, RECOVERY);
        g_assert_cmpstr(told->summary, ==, text(row, "summary"));
        g_assert_cmpstr(told->rule, ==, text(row, "rule"));
        g_assert_cmpstr(told->new, ==, text(row, "state"));
        watcher_world_free(w);
    }
}

/* After the last look that fails. */
static void test_last_look(void)
{
    struct watcher_world *w = fresh();
    w->silent = NODE1;
    stick(w, "starting");
    json_t *stuck = json_make("{s:s,s:s,s:s,s:i,s:i,s:i}", "subject_kind", "instance", "subject",
                              WEB1, "task", "starting", "owner", 900, "since_us", 5, "looks", 5);
    look(w);
    g_free(daemon_commit(&w->base, w->base.luxid,
                         changes_of(config_put(w->view, "stuck", "instance/" WEB1, stuck), NULL)));
    json_autoptr answer = ask(w, NULL, false);
    assert_row(row_of(answer), "error", "node1 gave no answer",
               "attempt 5 of 5 within 60 s, or when its hosts answer");
    g_assert_cmpint(json_integer_value(json_object_get(row_of(answer), "looks")), ==, 5);
    w->silent = NULL;
    expect(w, NULL, "settled", "its guest runs",
           "attempt 5 of 5 within 60 s, or when its hosts answer");
    watcher_world_free(w);
}

/* --- what is left to others --- */

static void put_job(struct watcher_world *w, guint id, const char *request_id, bool started)
{
    g_autofree char *key = g_strdup_printf("%u", id);
    json_t *job =
        json_make("{s:i,s:[{s:{},s:s}],s:s,s:s,s:b}", "id", (int)id, "ops", "input", "status",
                  "queued", "status", "queued", "request_id", request_id, "started", started);
    look(w);
    g_autofree char *said = daemon_commit(&w->base, w->base.luxid,
                                          changes_of(config_put(w->view, "job", key, job), NULL));
    g_assert_nonnull(strstr(said, "serial"));
}

static void give_to(struct watcher_world *w, guint job)
{
    patch_web1(w, json_make("{s:s,s:i}", "task_state", "starting", "task_owner", (int)job));
}

static void test_others(void)
{
    struct watcher_world *w = fresh();
    put_job(w, 5, "", true);
    put_job(w, 6, "", false);
    give_to(w, 5);
    expect(w, WEB1, "left", "its owner lives", "when job 5 ends");
    json_autoptr nothing = ask(w, NULL, false); /* it is under way */
    g_assert_cmpuint(json_array_size(json_object_get(nothing, "rows")), ==, 0);
    give_to(w, 6);
    expect(w, WEB1, "left", "its owner has not begun", "when job 6 has run");
    give_to(w, 1000);
    expect(w, NULL, "left", "its owner may live", "when that is known, or it is reset");
    g_assert_cmpuint(w->collects, ==, 0);
    give_to(w, 900);
    suspended(w);
    expect(w, NULL, "waits", "a person has suspended what is done to it by itself",
           "at the next pass");
    drop_tag(w, TAG_INSTANCE, WEB1, "suspend");
    take_locks(w);
    expect(w, NULL, "waits", "job 17 has its lock", "at the next pass");
    put_job(w, 7, "finish/" WEB1 "/900/4/1", false);
    expect(w, NULL, "waits", "job 7 is finishing it", "at the next pass");
    watcher_world_free(w);
}

/* What is in ERROR is judged anew by itself if its hosts could not be asked, else on a person's
 * word. */
static void test_faults(void)
{
    struct watcher_world *w = fresh();
    put_fault(w, false);
    json_autoptr none = ask(w, NULL, false);
    g_assert_cmpuint(json_array_size(json_object_get(none, "rows")), ==, 0);
    json_autoptr answer = ask(w, WEB1, false);
    assert_row(row_of(answer), "settled", "its guest runs",
               "when a person says: fettle recovery retry instance web1");
    g_assert_true(json_is_true(json_object_get(row_of(answer), "on_retry")));
    put_fault(w, true);
    expect(w, NULL, "settled", "its guest runs", "at the next pass");
    w->silent = NODE1;
    expect(w, NULL, "unknown", "node1 gave no answer", "when its hosts answer");
    watcher_world_free(w);
}

/* --- what holds all of it up --- */

static void assert_held(struct watcher_world *w, const char *note)
{
    json_autoptr answer = ask(w, NULL, false);
    const json_t *notes = json_object_get(answer, "notes");
    g_assert_true(json_is_true(json_object_get(answer, "held")));
    g_assert_cmpuint(json_array_size(notes), ==, 1);
    g_assert_cmpstr(json_string_value(json_array_get(notes, 0)), ==, note);
    assert_row(row_of(answer), "settled", "its guest runs", "at the next pass");
}

static void test_held(void)
{
    struct watcher_world *w = fresh();
    stick(w, "starting");
    change_object(w, "cluster", CLUSTER, json_make("{s:b}", "repair_shadow", true));
    assert_held(w, "Shadow mode: nothing of this is done, only put on record.");
    change_object(w, "cluster", CLUSTER, json_make("{s:b}", "repair_shadow", false));
    look(w);
    json_t *brake = json_make("{s:i,s:s,s:b}", "since", 5, "why", "restored", "restored", true);
    g_free(daemon_commit(&w->base, w->base.watcher,
                         changes_of(config_put(w->view, "repair_brake", "cluster", brake), NULL)));
    assert_held(w, "The configuration came from a backup: nothing of this is done before a person "
                   "says: fettle repair continue.");
    watcher_world_free(w);
}

/* --- what hosts show --- */

static const json_t *host(const json_t *answer, size_t at)
{
    return json_array_get(json_object_get(row_of(answer), "hosts"), at);
}

static void assert_host(const json_t *answer, size_t at, const char *node, const char *said,
                        const char *why)
{
    g_assert_cmpstr(text(host(answer, at), "node"), ==, node);
    g_assert_cmpstr(text(host(answer, at), "answer"), ==, said);
    g_assert_cmpstr(text(host(answer, at), "why"), ==, why);
}

/* Of an instance with a task or without one, and each host in its own words. */
static void test_hosts(void)
{
    struct watcher_world *w = fresh();
    json_autoptr given = ask(w, WEB1, true);
    assert_row(row_of(given), "left", "it has no task", "");
    g_assert_cmpuint(json_array_size(json_object_get(row_of(given), "hosts")), ==, 2);
    assert_host(given, 0, "node1", "given", "");
    assert_host(given, 1, "node2", "given", "");
    const json_t *sight = json_object_get(host(given, 0), "sight");
    g_assert_cmpstr(text(sight, "state"), ==, "running");
    g_assert_cmpint(json_integer_value(json_object_get(sight, "taken_us")), ==, 1);
    stick(w, "starting");
    w->busy = NODE1;
    w->silent = NODE2;
    json_autoptr busy = ask(w, WEB1, true);
    assert_host(busy, 0, "node1", "busy", "its images are made by job 900");
    assert_host(busy, 1, "node2", "none", "gave no answer");
    g_assert_true(json_is_null(json_object_get(host(busy, 1), "sight")));
    w->busy = w->silent = NULL;
    w->late_guest = true;
    w->refuses = NODE2;
    json_autoptr silent = ask(w, WEB1, true);
    assert_host(silent, 0, "node1", "silent", "its monitor does not answer");
    assert_host(silent, 1, "node2", "refused", "the disks of this node do not answer");
    w->late_guest = false;
    w->refuses = NULL;
    w->unasked = NODE1;
    set_node(w, NODE2, "offline");
    json_autoptr older = ask(w, WEB1, true);
    assert_host(older, 0, "node1", "older",
                "its node daemon is of a version before, and cannot be asked; upgrade it");
    assert_host(older, 1, "node2", "offline", "it is on record as dead, so it was not asked");
    watcher_world_free(w);
}

/* A guest where its record has no place is asked about as well. */
static void test_stranger(void)
{
    struct watcher_world *w = fresh();
    w->guest_node = NODE3;
    json_autoptr answer = ask(w, WEB1, true);
    g_assert_cmpuint(json_array_size(json_object_get(row_of(answer), "hosts")), ==, 3);
    assert_host(answer, 2, "node3", "given", "");
    g_assert_cmpstr(text(json_object_get(host(answer, 2), "sight"), "state"), ==, "running");
    watcher_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recovery-plan/same-as-the-pass#RCV-33", test_same_as_the_pass);
    g_test_add_func("/recovery-plan/busy-with-the-dead-job#SAF-81", test_busy_with_the_dead_job);
    g_test_add_func("/recovery-plan/last-look#RCV-39", test_last_look);
    g_test_add_func("/recovery-plan/left-to-others#RCV-10,RCV-12,RCV-42", test_others);
    g_test_add_func("/recovery-plan/faults#RCV-30,RCV-40", test_faults);
    g_test_add_func("/recovery-plan/held", test_held);
    g_test_add_func("/recovery-plan/hosts#RCV-15,SAF-81", test_hosts);
    g_test_add_func("/recovery-plan/stranger#RCV-15", test_stranger);
    return g_test_run();
}
