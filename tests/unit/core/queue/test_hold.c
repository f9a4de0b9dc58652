/*
 * What holds queued jobs back: locks that running jobs have, rules of operators, limits in reasons;
 * and that nobody is held for ever.
 */
#include "unit/core/world/queue_world.h"

#include <string.h>

#define RULE "dddddddd-0000-4000-8000-000000000001"

/* Jobs of one opcode that locks an instance (none: no locks). */
static json_t *delay_on(const char *instance)
{
    return queue_delay(json_make("{s[s] sb}", "on_instances", instance, "no_locks", 0));
}

static guint64 submit_on(struct queue_world *w, const char *instance)
{
    return queue_submit(
        w, instance ? json_make("{s[s] sb}", "on_instances", instance, "no_locks", 0) : NULL);
}

static guint64 submit_for(struct queue_world *w, const char *reason)
{
    return queue_submit(w, json_make("{s[[ssi]]}", "reason", "user", reason, 1));
}

static void assert_started(struct queue_world *w, guint64 id, bool started)
{
    g_assert_cmpstr(queue_status(w, id), ==, started ? "waiting" : "queued");
}

/* What clients are told of why a job waits. */
static char *why(struct queue_world *w, guint64 id)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        queue_call(w, "QueryJobs", json_make("[[I], [s]]", (json_int_t)id, "held"), &error);

    g_assert_no_error(error);
    return g_strdup(json_string_value(json_array_get(json_array_get(answer, 0), 0)));
}

static void assert_why(struct queue_world *w, guint64 id, const char *expected)
{
    g_autofree char *told = why(w, id);

    g_assert_cmpstr(told, ==, expected);
}

/* Which job it is that has to end, and since when: a time that is there as long as a reason is. */
static void assert_behind(struct queue_world *w, guint64 id, guint64 other)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(
        w, "QueryJobs", json_make("[[I], [ss]]", (json_int_t)id, "held_by", "held_since"), &error);
    const json_t *row = json_array_get(answer, 0);

    g_assert_cmpint(json_integer_value(json_array_get(row, 0)), ==, (json_int_t)other);
    g_assert_true(json_is_integer(json_array_get(row, 1)) == (other != 0));
}

/* --- locks --- */

/* The requirement's example: limit 4, one holder, ten that need its lock, one that does not. */
static void test_slots_are_not_spent(void)
{
    struct queue_world *w = queue_world_new(4);
    guint64 holder = submit_on(w, "web1"), free_job;
    guint64 behind[10];

    for (guint i = 0; i < G_N_ELEMENTS(behind); i++)
        behind[i] = submit_on(w, "web1");
    free_job = submit_on(w, "web2");
    assert_started(w, holder, true);
    assert_started(w, free_job, true);
    queue_job_runs(w, free_job);
    g_assert_cmpstr(queue_status(w, free_job), ==, "success");
    for (guint i = 0; i < G_N_ELEMENTS(behind); i++)
        assert_started(w, behind[i], false);
    assert_why(w, behind[0],
               "it would wait for locks that job 1 has or waits for: instance/web1 (exclusive)");
    assert_behind(w, behind[0], holder);
    /* One after the other, in their order. */
    queue_job_runs(w, holder);
    for (guint i = 0; i < G_N_ELEMENTS(behind); i++) {
        assert_started(w, behind[i], true);
        assert_why(w, behind[i], NULL);
        assert_behind(w, behind[i], 0);
        if (i + 1 < G_N_ELEMENTS(behind))
            assert_started(w, behind[i + 1], false);
        queue_job_runs(w, behind[i]);
    }
    queue_world_free(w);
}

/* Three locks are named; that there are more is said only if there are. */
static void test_named_locks(void)
{
    struct queue_world *w = queue_world_new(4);
    json_autoptr three = json_make("{s[sss] sb}", "on_instances", "a", "b", "c", "no_locks", 0);
    json_autoptr four =
        json_make("{s[ssss] sb}", "on_instances", "d", "e", "f", "g", "no_locks", 0);
    guint64 behind_three, behind_four;

    queue_submit(w, json_incref(three));
    queue_submit(w, json_incref(four));
    behind_three = queue_submit(w, json_incref(three));
    behind_four = queue_submit(w, json_incref(four));
    assert_why(w, behind_three,
               "it would wait for locks that job 1 has or waits for: instance/a (exclusive), "
               "instance/b (exclusive), instance/c (exclusive)");
    assert_why(w, behind_four,
               "it would wait for locks that job 2 has or waits for: instance/d (exclusive), "
               "instance/e (exclusive), instance/f (exclusive) …");
    queue_world_free(w);
}

/* Shared locks go together; a job whose locks cannot be told is started as before. */
static void test_shared(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 first = queue_submit(w, json_make("{s[s] sb}", "on_nodes", "node1", "no_locks", 0));
    guint64 second = queue_submit(w, json_make("{s[s] sb}", "on_nodes", "node1", "no_locks", 0));
    guint64 unknown = queue_submit(w, json_make("{s[s] sb}", "on_nodes", "node9", "no_locks", 0));

    assert_started(w, first, true);
    assert_started(w, second, true);
    assert_started(w, unknown, true);
    queue_world_free(w);
}

/* The second opcode of a running job needs other locks than its first. */
static void test_next_opcode(void)
{
    struct queue_world *w = queue_world_new(10);
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        queue_call(w, "SubmitJob", json_make("[[o, o]]", delay_on("a"), delay_on("b")), &error);
    guint64 both = (guint64)json_integer_value(answer), a, b;

    g_assert_no_error(error);
    fake_settle(w->world);
    a = submit_on(w, "a");
    assert_started(w, both, true);
    assert_started(w, a, false);
    queue_child_named(w, both);
    queue_job_writes(w, both, "success"); /* of its first opcode */
    assert_started(w, a, true);
    b = submit_on(w, "b");
    assert_started(w, b, false);
    queue_world_free(w);
}

/* A restarted luxid knows what running jobs hold. */
static void test_luxid_restarts(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 holder = submit_on(w, "web1"), behind;

    queue_child_named(w, holder);
    queue_job_writes(w, holder, "running");
    queue_world_restart_luxid(w);
    behind = submit_on(w, "web1");
    assert_started(w, behind, false);
    queue_world_free(w);
}

/* Two kinds of jobs alternate on what a third one needs as a whole: it gets it. */
static void test_no_starvation(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 left = submit_on(w, "a"), right = submit_on(w, "b");
    guint64 both =
        queue_submit(w, json_make("{s[ss] sb}", "on_instances", "a", "b", "no_locks", 0));
    guint rounds = 0;

    while (!strcmp(queue_status(w, both), "queued")) {
        guint64 next = submit_on(w, rounds % 2 ? "b" : "a");
        guint64 *oldest = rounds % 2 ? &right : &left;

        g_assert_cmpuint(++rounds, <, 100);
        fake_advance(w->world, 10000);
        if (*oldest != 0)
            queue_job_runs(w, *oldest);
        *oldest = strcmp(queue_status(w, next), "queued") ? next : 0;
    }
    g_assert_cmpuint(rounds, >, 2);
    queue_world_free(w);
}

/* It gives its reservation up when it is canceled. */
static void test_reservation_ends(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 left = submit_on(w, "a"), right = submit_on(w, "b");
    guint64 both =
                queue_submit(w, json_make("{s[ss] sb}", "on_instances", "a", "b", "no_locks", 0)),
            later;
    g_autoptr(GError) error = NULL;
    json_autoptr answer = NULL;

    fake_advance(w->world, 61000);
    queue_job_runs(w, left); /* looked at again: it is behind `right` now, and patient no more */
    later = submit_on(w, "a");
    assert_started(w, later, false);
    assert_why(w, later,
               "it would wait for locks that job 3 is to have first: instance/a (exclusive)");
    answer = queue_call(w, "CancelJob", json_make("[I]", (json_int_t)both), &error);
    fake_settle(w->world);
    assert_started(w, later, true);
    assert_started(w, right, true);
    queue_world_free(w);
}

/* Behind a lock with a long line everybody comes to wait for long; who needs more than that lock,
 * and has waited for longer, takes the reservation from them. */
static void test_older_reserves(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 left = submit_on(w, "a"), right = submit_on(w, "b");
    guint64 both =
        queue_submit(w, json_make("{s[ss] sb}", "on_instances", "a", "b", "no_locks", 0));
    guint64 young, younger, late;

    fake_advance(w->world, 1000);
    young = submit_on(w, "b");
    younger = submit_on(w, "b");
    fake_advance(w->world, 61000);
    queue_job_runs(w, right); /* `young` passes `both`, and `younger` reserves */
    assert_started(w, young, true);
    queue_job_runs(w, left);
    assert_started(w, both, false);
    late = submit_on(w, "a");
    assert_started(w, late, false);
    assert_why(w, late,
               "it would wait for locks that job 3 is to have first: instance/a (exclusive)");
    queue_job_runs(w, young);
    assert_started(w, both, true);
    assert_started(w, younger, false);
    queue_job_runs(w, both);
    assert_started(w, younger, true);
    assert_started(w, late, true);
    queue_world_free(w);
}

static guint64 submit_offline(struct queue_world *w, const char *node)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "SubmitJob",
                                     json_make("[[{ss ss ss}]]", "OP_ID", "OP_NODE_SET_PARAMS",
                                               "node_name", node, "offline", "yes"),
                                     &error);

    g_assert_no_error(error);
    fake_settle(w->world);
    return (guint64)json_integer_value(answer);
}

/* What says that a node is offline goes before all others where the locks are: it is started to
 * stand in line there, behind what runs and before what would wait here. */
static void test_urgent(void)
{
    struct queue_world *w = queue_world_new(3);
    guint64 holder = submit_offline(w, "node1"), urgent = submit_offline(w, "node1");
    guint64 patient = submit_on(w, "web1"), behind = submit_on(w, "web1");

    assert_started(w, holder, true);
    assert_started(w, urgent, true);
    assert_why(w, urgent, NULL);
    assert_started(w, patient, true);
    assert_started(w, behind, false);
    queue_world_free(w);
}

/* --- rules --- */

static char *add_rule(struct queue_world *w, json_t *predicates, json_t *action)
{
    g_autoptr(GError) error = NULL;
    json_autoptr uuid = queue_call(
        w, "ReplaceFilter",
        json_make("[n, i, o, o, [[s, s, i]]]", 0, predicates, action, "user", "test", 1), &error);

    g_assert_no_error(error);
    fake_settle(w->world);
    return g_strdup(json_string_value(uuid));
}

static void delete_rule(struct queue_world *w, const char *uuid)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "DeleteFilter", json_make("[s]", uuid), &error);

    g_assert_no_error(error);
    g_assert_true(json_is_null(answer));
    fake_settle(w->world);
}

static json_t *of_reason(const char *text)
{
    return json_make("[[s, [s, s, s]]]", "reason", "=", "reason", text);
}

/* The requirement's example: at most one of a reason, others are not delayed. */
static void test_rate_limit(void)
{
    struct queue_world *w = queue_world_new(10);
    g_autofree char *rule = add_rule(w, of_reason("nightly"), json_make("[s, i]", "RATE_LIMIT", 1));
    guint64 first = submit_for(w, "nightly"), second = submit_for(w, "nightly");
    guint64 other = submit_for(w, "by hand");
    g_autofree char *expected =
        g_strdup_printf("filter %s (\"test\") lets 1 run at once, and 1 do", rule);

    assert_started(w, first, true);
    assert_started(w, second, false);
    assert_started(w, other, true);
    assert_why(w, second, expected);
    queue_job_runs(w, first);
    assert_started(w, second, true);
    queue_world_free(w);
}

static void test_pause(void)
{
    struct queue_world *w = queue_world_new(10);
    g_autofree char *rule =
        add_rule(w, json_make("[[s, [s, s, s]]]", "opcode", "=", "OP_ID", "OP_TEST_DELAY"),
                 json_string("PAUSE"));
    guint64 id = queue_submit(w, NULL);
    g_autofree char *expected = g_strdup_printf("filter %s (\"test\") pauses it", rule);

    assert_started(w, id, false);
    assert_why(w, id, expected);
    fake_advance(w->world, 3600000);
    assert_started(w, id, false);
    delete_rule(w, rule);
    assert_started(w, id, true);
    queue_world_free(w);
}

/* A rule may pause a job for days: nobody waits for what it has reserved. */
static void test_pause_reserves_nothing(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 left = submit_on(w, "a"), right = submit_on(w, "b");
    guint64 both =
        queue_submit(w, json_make("{s[ss] sb}", "on_instances", "a", "b", "no_locks", 0));
    guint64 late;
    g_autofree char *rule = NULL;

    fake_advance(w->world, 61000);
    queue_job_runs(w, left);
    late = submit_on(w, "a");
    assert_started(w, late, false);
    rule = add_rule(w, json_make("[[s, [s, s, I]]]", "jobid", "=", "id", (json_int_t)both),
                    json_string("PAUSE"));
    assert_started(w, late, true);
    delete_rule(w, rule);
    queue_job_runs(w, right);
    assert_started(w, both, false);
    queue_job_runs(w, late);
    assert_started(w, both, true);
    queue_world_free(w);
}

/* New jobs are refused, queued ones are canceled, running ones go on. */
static void test_reject(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = submit_for(w, "bad"), queued = submit_for(w, "bad"), good;
    g_autofree char *rule = add_rule(w, of_reason("bad"), json_string("REJECT"));
    g_autofree char *refusal =
        g_strdup_printf("the job is not accepted: filter %s (\"test\") rejects it", rule);
    g_autofree char *message = NULL;
    g_autofree char *expected = g_strdup_printf(
        "job 2 was not started: filter %s (\"test\") rejects it; nothing has run", rule);

    fake_settle(w->world);
    assert_started(w, running, true);
    g_assert_cmpstr(queue_status(w, queued), ==, "canceled");
    message = queue_message(w, queued);
    g_assert_cmpstr(message, ==, expected);
    queue_refuse(w, "SubmitJob",
                 json_make("[[o]]", queue_delay(json_make("{s[[ssi]]}", "reason", "u", "bad", 1))),
                 FETTLE_ERROR_PERMISSION, refusal);
    /* The id of the refused job was not used. */
    good = submit_for(w, "good");
    g_assert_cmpuint(good, ==, 3);
    queue_world_free(w);
}

/* A rule that is made in the same moment as a job that it rejects. */
static void test_reject_at_once(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply replies[3] = {0};

    queue_submit(w, NULL); /* has the slot */
    store_hold(w->store, true);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        json_t *args = i == 1 ? json_make("[n, i, [], s, []]", 0, "REJECT")
                              : json_make("[[o]]", queue_delay(NULL));
        fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, i == 1 ? "ReplaceFilter" : "SubmitJob", args,
                        &replies[i]);
        fake_settle(w->world);
    }
    store_hold(w->store, false);
    fake_advance(w->world, 1000);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        g_assert_true(replies[i].done);
        g_assert_no_error(replies[i].error);
        if (i != 1)
            g_assert_cmpstr(queue_status(w, (guint64)json_integer_value(replies[i].result)), ==,
                            "canceled");
        fake_reply_clear(&replies[i]);
    }
    queue_world_free(w);
}

/* The first rule that does not say CONTINUE decides, in the order of priorities. */
static void test_order(void)
{
    struct queue_world *w = queue_world_new(10);
    static const struct {
        int priority;
        const char *action;
    } rules[] = {{5, "REJECT"}, {3, "ACCEPT"}, {1, "CONTINUE"}};

    for (guint i = 0; i < G_N_ELEMENTS(rules); i++) {
        g_autoptr(GError) error = NULL;
        json_autoptr uuid =
            queue_call(w, "ReplaceFilter",
                       json_make("[n, i, [], s, []]", rules[i].priority, rules[i].action), &error);
        g_assert_no_error(error);
        fake_settle(w->world);
    }
    assert_started(w, queue_submit(w, NULL), true);
    queue_world_free(w);
}

/* Only jobs that are newer than the rule. */
static void test_watermark(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL), old = queue_submit(w, NULL);
    g_autofree char *rule = add_rule(
        w, json_make("[[s, [s, s, s]]]", "jobid", ">", "id", "watermark"), json_string("REJECT"));
    g_autofree char *refusal =
        g_strdup_printf("the job is not accepted: filter %s (\"test\") rejects it", rule);

    fake_settle(w->world);
    assert_started(w, running, true);
    assert_started(w, old, false);
    queue_refuse(w, "SubmitJob", json_make("[[o]]", queue_delay(NULL)), FETTLE_ERROR_PERMISSION,
                 refusal);
    queue_world_free(w);
}

/* Jobs that run already count under a rule that is made later. */
static void test_rate_limit_of_running(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 first = submit_for(w, "x"), second;
    g_autofree char *rule = add_rule(w, of_reason("x"), json_make("[s, i]", "RATE_LIMIT", 1));

    fake_settle(w->world);
    second = submit_for(w, "x");
    assert_started(w, second, false);
    queue_job_runs(w, first);
    assert_started(w, second, true);
    queue_world_free(w);
}

static void set_priority(struct queue_world *w, guint64 id, int priority)
{
    json_autoptr answer =
        queue_call(w, "ChangeJobPriority", json_make("[I, i]", (json_int_t)id, priority), NULL);

    g_assert_true(json_is_true(json_array_get(answer, 0)));
    fake_settle(w->world);
}

/* A rule may speak of the priority: another one is another question. */
static void test_priority_changes(void)
{
    struct queue_world *w = queue_world_new(10);
    g_autofree char *rule = add_rule(w, json_make("[[s, [s, s, i]]]", "opcode", ">", "priority", 5),
                                     json_string("PAUSE"));
    guint64 id = queue_submit(w, json_make("{si}", "priority", 10));

    assert_started(w, id, false);
    set_priority(w, id, 5);
    assert_started(w, id, true);
    queue_world_free(w);
}

static void test_priority_rejected(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL), queued = queue_submit(w, NULL);
    g_autofree char *rule = add_rule(w, json_make("[[s, [s, s, i]]]", "opcode", "<", "priority", 0),
                                     json_string("REJECT"));

    set_priority(w, running, -1);
    set_priority(w, queued, -1);
    assert_started(w, running, true);
    g_assert_cmpstr(queue_status(w, queued), ==, "canceled");
    queue_world_free(w);
}

static guint64 submit_both(struct queue_world *w, int first, int second)
{
    g_autoptr(GError) error = NULL;
    json_t *tags = json_make("{ss ss s[s] si}", "OP_ID", "OP_TAGS_SET", "kind", "cluster", "tags",
                             "x", "priority", first);
    json_autoptr answer = queue_call(
        w, "SubmitJob",
        json_make("[[o, o]]", tags, queue_delay(json_make("{si}", "priority", second))), &error);

    g_assert_no_error(error);
    fake_settle(w->world);
    return (guint64)json_integer_value(answer);
}

static json_t *of_delays(const char *than, int priority)
{
    return json_make("[[s, [s, [s, s, s], [s, s, i]]]]", "opcode", "&", "=", "OP_ID",
                     "OP_TEST_DELAY", than, "priority", priority);
}

/* The first opcode of a running job has ended, and keeps the priority that it had: the job is as
 * urgent as before, and the rule lets it go nevertheless. */
static void test_priority_of_running(void)
{
    struct queue_world *w = queue_world_new(10);
    g_autofree char *rule = add_rule(w, of_delays("<", 5), json_make("[s, i]", "RATE_LIMIT", 1));
    guint64 running = submit_both(w, 0, 0), queued = queue_submit(w, NULL);

    assert_started(w, queued, false);
    queue_child_named(w, running);
    queue_job_writes(w, running, "success");
    set_priority(w, running, 8);
    assert_started(w, queued, true);
    queue_world_free(w);
}

/* One of two opcodes gets another priority, which is not the least one. */
static void test_priority_of_one_opcode(void)
{
    struct queue_world *w = queue_world_new(10);
    g_autofree char *rule = add_rule(w, of_delays(">", 5), json_string("PAUSE"));
    guint64 id = submit_both(w, 0, 10);

    assert_started(w, id, false);
    set_priority(w, id, 0);
    assert_started(w, id, true);
    queue_world_free(w);
}

/* --- limits that jobs bring along --- */

static void test_own_limit(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 jobs[3];

    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++)
        jobs[i] = submit_for(w, "rate-limit:2:backup");
    assert_started(w, jobs[0], true);
    assert_started(w, jobs[1], true);
    assert_started(w, jobs[2], false);
    assert_why(w, jobs[2], "its reason \"rate-limit:2:backup\" allows no more at once, and 2 run");
    assert_started(w, submit_for(w, "rate-limit:2:other"), true);
    assert_started(w, submit_for(w, "rate-limit:0:none"), true);
    queue_job_runs(w, jobs[0]);
    assert_started(w, jobs[2], true);
    queue_world_free(w);
}

/* --- age --- */

/* 40 steps of priority are worth 200 minutes: what comes later than that waits behind. */
static void test_aging(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL);
    guint64 low = queue_submit(w, json_make("{si}", "priority", 19)), early, late;

    queue_child_named(w, running);
    queue_job_writes(w, running, "running");
    fake_advance(w->world, 190 * 60 * 1000);
    early = queue_submit(w, json_make("{si}", "priority", -20));
    fake_advance(w->world, 20 * 60 * 1000);
    late = queue_submit(w, json_make("{si}", "priority", -20));
    queue_job_ends(w, running);
    assert_started(w, early, true);
    queue_job_runs(w, early);
    assert_started(w, low, true);
    assert_started(w, late, false);
    queue_world_free(w);
}

/* --- bad input --- */

static void test_refusals(void)
{
    struct queue_world *w = queue_world_new(1);
    static const struct {
        const char *args;
        enum fettle_error code;
        const char *message;
    } cases[] = {
        {"[null, 0, {}, \"ACCEPT\", []]", FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: predicates: must be a list of at most 32 of [what, filter]"},
        {"[null, 0, [[\"planet\", null]], \"ACCEPT\", []]", FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: predicates[0][0]: must be jobid, opcode, reason or user"},
        {"[null, 0, [[\"jobid\"]], \"ACCEPT\", []]", FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: predicates[0]: must be [what, filter]"},
        {"[null, 0, [[\"user\", [\"=\", \"name\", \"x\"]]], \"ACCEPT\", []]",
         FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: predicates[0][1]: filter[1]: unknown field \"name\""},
        {"[null, 0, [[\"opcode\", [\"|\", [\"=\", \"OP_ID\", \"OP_TEST_DELAY\"], [\"=\", "
         "\"OP_ID\", "
         "\"OP_INSTANCE_REMOV\"]]]], \"REJECT\", []]",
         FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: predicates[0]: there is no opcode \"OP_INSTANCE_REMOV\"; did you mean "
         "OP_INSTANCE_REMOVE?"},
        {"[null, 0, [], \"STOP\", []]", FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: action: must be ACCEPT, CONTINUE, PAUSE, REJECT or [\"RATE_LIMIT\", n] "
         "with n of at least 1"},
        {"[null, 0, [], [\"RATE_LIMIT\", 0], []]", FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: action: must be ACCEPT, CONTINUE, PAUSE, REJECT or [\"RATE_LIMIT\", n] "
         "with n of at least 1"},
        {"[null, 0, [], \"ACCEPT\", [1]]", FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: reason[0]: must be [source, text, nanoseconds]"},
        {"[null, 0, [], \"ACCEPT\", [[\"me\", \"a\\u009bb\", 1]]]", FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: reason[0]: must have no control characters, has \\x9b"},
        {"[null, -1, [], \"ACCEPT\", []]", FETTLE_ERROR_WRONG_INPUT,
         "ReplaceFilter: priority: must be at least 0"},
        {"[\"" RULE "\", 0, [], \"ACCEPT\", []]", FETTLE_ERROR_UNKNOWN_ENTITY,
         "filter " RULE " does not exist"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        queue_refuse(w, "ReplaceFilter", json_loads(cases[i].args, 0, NULL), cases[i].code,
                     cases[i].message);
    queue_refuse(w, "DeleteFilter", json_make("[s]", RULE), FETTLE_ERROR_UNKNOWN_ENTITY,
                 "filter " RULE " does not exist");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hold/locks/slots#LUX-13,LUX-12", test_slots_are_not_spent);
    g_test_add_func("/hold/locks/named", test_named_locks);
    g_test_add_func("/hold/locks/shared#LUX-13", test_shared);
    g_test_add_func("/hold/locks/next-opcode#LUX-13", test_next_opcode);
    g_test_add_func("/hold/locks/luxid-restarts#LUX-13", test_luxid_restarts);
    g_test_add_func("/hold/locks/no-starvation", test_no_starvation);
    g_test_add_func("/hold/locks/reservation-ends", test_reservation_ends);
    g_test_add_func("/hold/locks/older-reserves#LUX-13", test_older_reserves);
    g_test_add_func("/hold/locks/urgent#LUX-13,SAF-06", test_urgent);
    g_test_add_func("/hold/rules/rate-limit#FUT-13", test_rate_limit);
    g_test_add_func("/hold/rules/pause#FUT-13", test_pause);
    g_test_add_func("/hold/rules/pause-reserves-nothing#FUT-13", test_pause_reserves_nothing);
    g_test_add_func("/hold/rules/reject#FUT-13", test_reject);
    g_test_add_func("/hold/rules/reject-at-once#FUT-13", test_reject_at_once);
    g_test_add_func("/hold/rules/order#FUT-13", test_order);
    g_test_add_func("/hold/rules/watermark#FUT-13", test_watermark);
    g_test_add_func("/hold/rules/rate-limit-of-running#FUT-13", test_rate_limit_of_running);
    g_test_add_func("/hold/rules/priority-changes#FUT-13", test_priority_changes);
    g_test_add_func("/hold/rules/priority-of-running#FUT-13", test_priority_of_running);
    g_test_add_func("/hold/rules/priority-of-one-opcode#FUT-13", test_priority_of_one_opcode);
    g_test_add_func("/hold/rules/priority-rejected#FUT-13", test_priority_rejected);
    g_test_add_func("/hold/own-limit#FUT-13", test_own_limit);
    g_test_add_func("/hold/aging", test_aging);
    g_test_add_func("/hold/refusals", test_refusals);
    return g_test_run();
}
