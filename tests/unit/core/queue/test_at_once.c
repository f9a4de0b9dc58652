/* What meets in luxid: calls in one transaction, changes in one delta, an answer of the store that
 * comes after nobody waits for it any more. */
#include <string.h>

#include "unit/core/world/queue_world.h"

#define RULE "dddddddd-0000-4000-8000-000000000001"
#define OTHER_GROUP "bbbbbbbb-0000-4000-8000-000000000002"
#define WAITED_MS 60000 /* so long a commit is waited for */
#define ACCEPTED_MS (WAITED_MS + 15000)

static void start_call(struct queue_world *w, const char *method, json_t *args,
                       struct fake_reply *reply)
{
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, method, args, reply);
}

static json_t *one(json_t *extra)
{
    return json_make("[[o]]", queue_delay(extra));
}

static json_t *once(double duration)
{
    return one(json_make("{ss, sf}", "request_id", "once", "duration", duration));
}

/* The committer waits for the store: what is called now shares the next transaction. */
static void hold_back(struct queue_world *w, struct fake_reply *reply)
{
    store_hold(w->store, true);
    start_call(w, "SubmitJob", one(NULL), reply);
    fake_settle(w->world);
}

/* The transaction under way is made, the next one waits. */
static void make_one(struct queue_world *w)
{
    store_hold(w->store, false);
    store_hold(w->store, true);
    fake_settle(w->world);
}

static void let_go(struct queue_world *w)
{
    store_hold(w->store, false);
    fake_settle(w->world);
}

static void assert_answer(const struct fake_reply *reply, const char *expected)
{
    g_autofree char *text = NULL;

    g_assert_true(reply->done);
    g_assert_no_error(reply->error);
    text = json_to_text(reply->result);
    g_assert_cmpstr(text, ==, expected);
}

static void expect(struct queue_world *w, const char *method, json_t *args, const char *expected)
{
    struct fake_reply reply = {0};

    start_call(w, method, args, &reply);
    fake_settle(w->world);
    assert_answer(&reply, expected);
    fake_reply_clear(&reply);
}

/* --- a start that meets a cancel --- */

/* The job has lost its turn before its start is on record: the next one has the slot at once. */
static void test_canceled_before_start(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply priority = {0}, cancel = {0};
    guint64 first = queue_submit(w, NULL), second = queue_submit(w, NULL);

    queue_child_named(w, first);
    queue_job_writes(w, first, "success");
    queue_job_commits(w, first);
    store_hold(w->store, true);
    start_call(w, "ChangeJobPriority", json_make("[I, i]", (json_int_t)second, -5), &priority);
    fake_settle(w->world);
    start_call(w, "CancelJob", json_make("[I]", (json_int_t)second), &cancel);
    queue_job_gone(w, first, true);
    make_one(w);
    store_put(w->store, "nodegroup", OTHER_GROUP,
              json_make("{ss, ss}", "uuid", OTHER_GROUP, "name", "x"));
    fake_settle(w->world); /* the job is picked: of the cancel nobody knows yet */
    let_go(w);
    g_assert_true(priority.done && cancel.done);
    g_assert_cmpstr(queue_status(w, second), ==, "canceled");
    g_assert_cmpstr(queue_status(w, queue_submit(w, NULL)), ==, "waiting");
    fake_reply_clear(&priority);
    fake_reply_clear(&cancel);
    queue_world_free(w);
}

/* --- a start whose commit comes late --- */

/* The start of a job is on its way to the store, which stands still. */
static guint64 submit_stuck(struct queue_world *w)
{
    guint64 first = queue_submit(w, NULL), second = queue_submit(w, NULL);

    queue_child_named(w, first);
    queue_job_writes(w, first, "running");
    queue_job_writes(w, first, "success");
    queue_job_commits(w, first);
    store_hold(w->store, true);
    queue_job_gone(w, first, true);
    return second;
}

static void test_start_comes_late(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = submit_stuck(w);

    fake_advance(w->world, ACCEPTED_MS);
    g_assert_cmpstr(queue_status(w, id), ==, "queued");
    let_go(w);
    fake_advance(w->world, 2 * LIMIT_QUEUE_RETRY_MS);
    g_assert_cmpstr(queue_status(w, id), ==, "waiting");
    g_assert_cmpuint(fake_starters(w->world), ==, 2);
    queue_job_runs(w, id);
    g_assert_cmpstr(queue_status(w, id), ==, "success");
    queue_world_free(w);
}

/* Before it would have been tried again. */
static void test_start_comes_in_time(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = submit_stuck(w);

    while (!g_str_equal(queue_status(w, id), "queued") || fake_now_ms(w->world) < 60000)
        fake_advance(w->world, 100);
    let_go(w);
    fake_advance(w->world, 2 * LIMIT_QUEUE_RETRY_MS);
    g_assert_cmpuint(fake_starters(w->world), ==, 2);
    queue_job_runs(w, id);
    g_assert_cmpstr(queue_status(w, id), ==, "success");
    queue_world_free(w);
}

static void forbid(struct queue_world *w)
{
    store_put(w->store, "job_filter", RULE,
              json_make("{ss, si, si, s[[s, [s, s, s]]], ss}", "uuid", RULE, "priority", 0,
                        "watermark", 0, "predicates", "opcode", "=", "OP_ID", "OP_TEST_DELAY",
                        "action", "REJECT"));
    fake_settle(w->world);
}

/* Nobody knows of its start when a rule comes that forbids it. True: that ends it, as it would
 * have without a start; else it has been picked before, and begins. */
static bool is_doomed(guint rule_ms, guint store_ms)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = submit_stuck(w);
    g_autofree char *message = NULL;
    bool doomed;

    fake_advance(w->world, rule_ms);
    forbid(w);
    fake_advance(w->world, store_ms);
    let_go(w);
    fake_advance(w->world, 2 * LIMIT_QUEUE_RETRY_MS);
    doomed = !g_str_equal(queue_status(w, id), "waiting");
    g_assert_cmpuint(fake_starters(w->world), ==, doomed ? 1 : 2);
    if (doomed) {
        message = queue_message(w, id);
        g_assert_cmpstr(queue_status(w, id), ==, "canceled");
        g_assert_nonnull(strstr(message, "rejects it; nothing has run"));
        g_assert_null(queue_file(w, id));
    }
    queue_world_free(w);
    return doomed;
}

static void test_doomed_while_unknown(void)
{
    guint doomed = 0;

    /* The start is unknown first; then its end is, too. */
    for (guint ms = WAITED_MS - 500; ms < WAITED_MS + 2500; ms += 250) {
        doomed += is_doomed(ms, 500);
        for (guint more = WAITED_MS - 1000; more < WAITED_MS + 3000; more += 500)
            doomed += is_doomed(ms, more);
    }
    g_assert_cmpuint(doomed, >, 0);
}

/* It was made under a mastership that is over: nothing of it runs any more. */
static void test_start_of_older_mastership(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = submit_stuck(w);
    g_autofree char *message = NULL;

    fake_advance(w->world, ACCEPTED_MS);
    let_go(w);
    store_set_epoch(w->store, 2);
    store_put(w->store, "nodegroup", "bbbbbbbb-0000-4000-8000-000000000002",
              json_make("{ss, ss}", "uuid", "bbbbbbbb-0000-4000-8000-000000000002", "name", "x"));
    fake_advance(w->world, ACCEPTED_MS);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    queue_world_free(w);
}

/* --- ends that meet others --- */

/* The job's process was gone in the middle of it, as far as its file tells. */
static guint64 die_behind(struct queue_world *w, const char *says, struct fake_reply *ret_other)
{
    guint64 id = queue_submit_named(w);

    queue_job_writes(w, id, says);
    hold_back(w, ret_other);
    queue_job_gone(w, id, false);
    fake_advance(w->world, 2 * LIMIT_FINAL_STATE_LAG_MS);
    return id;
}

/* What it has committed itself stands, however late that comes (SAF-30). */
static void test_end_beside_its_own(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply other;
    guint64 id = die_behind(w, "running", &other);

    queue_job_writes(w, id, "success");
    queue_job_commits(w, id);
    let_go(w);
    fake_advance(w->world, 10000);
    g_assert_cmpstr(queue_status(w, id), ==, "success");
    fake_reply_clear(&other);
    queue_world_free(w);
}

/* The file of a job is not believed any more when its mastership has ended on the way. */
static void test_end_of_older_mastership(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply other;
    guint64 id = die_behind(w, "success", &other);

    store_set_epoch(w->store, 2);
    store_put(w->store, "nodegroup", "bbbbbbbb-0000-4000-8000-000000000002",
              json_make("{ss, ss}", "uuid", "bbbbbbbb-0000-4000-8000-000000000002", "name", "x"));
    fake_settle(w->world);
    let_go(w);
    fake_advance(w->world, 10000);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    fake_reply_clear(&other);
    queue_world_free(w);
}

/* --- in one transaction --- */

/* Behind a transaction that is held back; the next one has both. */
static void submit_twice_at_once(struct queue_world *w, struct fake_reply replies[3])
{
    hold_back(w, &replies[0]);
    start_call(w, "SubmitJob", once(0.5), &replies[1]);
    start_call(w, "SubmitJob", once(0.5), &replies[2]);
    make_one(w);
}

static void test_answer_after_commit(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply replies[3] = {0};

    submit_twice_at_once(w, replies);
    g_assert_true(replies[0].done);
    g_assert_false(replies[1].done);
    g_assert_false(replies[2].done); /* its job is not on record yet either */
    let_go(w);
    assert_answer(&replies[1], "2");
    assert_answer(&replies[2], "2");
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++)
        fake_reply_clear(&replies[i]);
    queue_world_free(w);
}

/* The one that the other would have shared a job with is refused by the store. */
static void test_first_is_refused(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply replies[3] = {0};

    submit_twice_at_once(w, replies);
    store_fail_next(w->store, FETTLE_ERROR_STORAGE, "the disk is full");
    let_go(w);
    g_assert_error(replies[1].error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_assert_error(replies[2].error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    g_assert_null(store_get(w->store, "job", "2"));
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++)
        fake_reply_clear(&replies[i]);
    queue_world_free(w);
}

static void test_cancel_beside_priority(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply priority = {0}, cancel = {0};
    guint64 id;

    queue_submit(w, NULL); /* takes the only slot */
    id = queue_submit(w, NULL);
    start_call(w, "ChangeJobPriority", json_make("[I, i]", (json_int_t)id, -5), &priority);
    start_call(w, "CancelJob", json_make("[I]", (json_int_t)id), &cancel);
    fake_settle(w->world);
    assert_answer(&priority, "[true,\"Priority of the opcodes that have not ended changed\"]");
    assert_answer(&cancel, "[true,\"Job successfully cancelled\"]");
    g_assert_cmpstr(queue_status(w, id), ==, "canceled");
    fake_reply_clear(&priority);
    fake_reply_clear(&cancel);
    queue_world_free(w);
}

/* A job gets a priority that a rule forbids, and the rule goes: nothing speaks against the job. */
static void test_rule_gone_beside_priority(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply replies[3] = {0};
    g_autoptr(GError) error = NULL;
    json_autoptr rule =
        queue_call(w, "ReplaceFilter",
                   json_make("[n, i, [[s, [s, s, i]]], s, [[s, s, i]]]", 0, "opcode", "=",
                             "priority", -5, "REJECT", "user", "not that urgent", 1),
                   &error);
    guint64 id;

    g_assert_no_error(error);
    queue_submit(w, NULL); /* takes the only slot */
    id = queue_submit(w, NULL);
    hold_back(w, &replies[0]);
    start_call(w, "ChangeJobPriority", json_make("[I, i]", (json_int_t)id, -5), &replies[1]);
    start_call(w, "DeleteFilter", json_make("[s]", json_string_value(rule)), &replies[2]);
    let_go(w);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        g_assert_true(replies[i].done);
        g_assert_no_error(replies[i].error);
        fake_reply_clear(&replies[i]);
    }
    g_assert_cmpstr(queue_status(w, id), ==, "queued");
    queue_world_free(w);
}

/* --- asked again --- */

static void test_retry_after_priority(void)
{
    struct queue_world *w = queue_world_new(1);

    queue_submit(w, NULL);
    expect(w, "SubmitJob", once(0.5), "2");
    expect(w, "ChangeJobPriority", json_make("[i, i]", 2, -5),
           "[true,\"Priority of the opcodes that have not ended changed\"]");
    expect(w, "SubmitJob", once(0.5), "2");
    queue_world_free(w);
}

static void set_drained(struct queue_world *w, bool drained)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "SetDrainFlag", json_make("[b]", drained), &error);

    g_assert_no_error(error);
    fake_settle(w->world);
}

static void test_retry_while_drained(void)
{
    struct queue_world *w = queue_world_new(1);
    static const char refusal[] =
        "the queue is drained: it takes no jobs until `fettle queue undrain`";

    expect(w, "SubmitJob", once(0.5), "1");
    set_drained(w, true);
    expect(w, "SubmitJob", once(0.5), "1");
    expect(w, "SubmitManyJobs", json_make("[o]", once(0.5)), "[[true,1]]");
    queue_refuse(w, "SubmitJob", once(0.6), FETTLE_ERROR_ALREADY_EXISTS,
                 "request id \"once\" belongs to job 1, which asks for something else");
    /* One of them would be new: none is taken. */
    queue_refuse(
        w, "SubmitManyJobs",
        json_make("[[[o], [o]]]", queue_delay(NULL),
                  queue_delay(json_make("{ss, sf}", "request_id", "once", "duration", 0.5))),
        FETTLE_ERROR_TEMPORARY, refusal);
    g_assert_null(store_get(w->store, "job", "2"));
    queue_world_free(w);
}

/* A call of several: the ids by which they depend on each other are those of the first time. */
static void test_retry_of_many(void)
{
    struct queue_world *w = queue_world_new(1);
    json_autoptr jobs = json_make(
        "[[[o], [o], [o]]]", queue_delay(json_make("{ss}", "request_id", "a")), queue_delay(NULL),
        queue_delay(json_make("{ss, s[[i, []], [i, [s]]]}", "request_id", "c", "depends", -2, -1,
                              "success")));

    expect(w, "SubmitManyJobs", json_deep_copy(jobs), "[[true,1],[true,2],[true,3]]");
    expect(w, "SubmitManyJobs", json_deep_copy(jobs), "[[true,1],[true,4],[true,3]]");
    /* Another one in the place that it depends on. */
    json_autoptr others = json_make(
        "[[[o], [o], [o]]]", queue_delay(json_make("{ss}", "request_id", "b")), queue_delay(NULL),
        queue_delay(json_make("{ss, s[[i, []], [i, [s]]]}", "request_id", "c", "depends", -2, -1,
                              "success")));
    expect(w, "SubmitManyJobs", json_deep_copy(others),
           "[[true,5],[true,6],[false,\"request id \\\"c\\\" belongs to job 3, which asks for "
           "something else\"]]");
    queue_world_free(w);
}

/* --- what is too much for one transaction --- */

/* A call of so many jobs with a reason of that length. */
static json_t *many(guint jobs, size_t chars)
{
    g_autofree char *why = g_strnfill(chars, 'x');
    json_t *list = json_array();

    for (guint i = 0; i < jobs; i++)
        json_array_append_new(
            list, json_make("[o]", queue_delay(json_make("{s[[ssi]]}", "reason", "test", why, 1))));
    return json_make("[o]", list);
}

/* Of four calls at once the store is told of three; the last one waits for the next turn. */
static void assert_shared_by_three(guint jobs, size_t chars)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply first, replies[4];

    hold_back(w, &first);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++)
        start_call(w, "SubmitManyJobs", many(jobs, chars), &replies[i]);
    fake_settle(w->world);
    make_one(w);
    g_assert_true(first.done);
    make_one(w);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++)
        g_assert_true(replies[i].done == (i < 3));
    let_go(w);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        g_assert_no_error(replies[i].error);
        g_assert_cmpuint(json_array_size(replies[i].result), ==, jobs);
        fake_reply_clear(&replies[i]);
    }
    fake_reply_clear(&first);
    queue_world_free(w);
}

static void test_too_many_changes(void)
{
    assert_shared_by_three(LIMIT_CHANGES_PER_COMMIT / 4, 1);
}

static void test_too_many_bytes(void)
{
    assert_shared_by_three(3, LIMIT_COMMIT_BYTES / 10);
}

/* What would not even fit alone is refused before anything is done. */
static void test_too_large_a_call(void)
{
    struct queue_world *w = queue_world_new(1);

    queue_refuse(w, "SubmitManyJobs", many(11, LIMIT_COMMIT_BYTES / 10), FETTLE_ERROR_LIMIT,
                 "jobs: they are too large for one call");
    g_assert_null(store_get(w->store, "job", "1"));
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/at-once/canceled-before-start#LUX-12", test_canceled_before_start);
    g_test_add_func("/at-once/start-comes-late#SAF-30,LUX-08", test_start_comes_late);
    g_test_add_func("/at-once/start-comes-in-time#SAF-30", test_start_comes_in_time);
    g_test_add_func("/at-once/start-of-older-mastership#SAF-06,SAF-30",
                    test_start_of_older_mastership);
    g_test_add_func("/at-once/doomed-while-unknown#FUT-13,SAF-30", test_doomed_while_unknown);
    g_test_add_func("/at-once/answer-after-commit#LUX-06,SAF-31", test_answer_after_commit);
    g_test_add_func("/at-once/first-is-refused#LUX-06,SAF-31", test_first_is_refused);
    g_test_add_func("/at-once/rule-gone-beside-priority#FUT-13", test_rule_gone_beside_priority);
    g_test_add_func("/at-once/cancel-beside-priority#LUX-08", test_cancel_beside_priority);
    g_test_add_func("/at-once/retry-after-priority#SAF-31", test_retry_after_priority);
    g_test_add_func("/at-once/retry-while-drained#SAF-31", test_retry_while_drained);
    g_test_add_func("/at-once/retry-of-many#SAF-31", test_retry_of_many);
    g_test_add_func("/at-once/end-beside-its-own#SAF-30", test_end_beside_its_own);
    g_test_add_func("/at-once/end-of-older-mastership#SAF-06,SAF-30", test_end_of_older_mastership);
    g_test_add_func("/at-once/too-many-changes", test_too_many_changes);
    g_test_add_func("/at-once/too-many-bytes", test_too_many_bytes);
    g_test_add_func("/at-once/too-large-a-call", test_too_large_a_call);
    return g_test_run();
}
