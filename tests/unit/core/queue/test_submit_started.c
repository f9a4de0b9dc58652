/*
 * A job that would be picked as soon as it is on record is started in the transaction that submits
 * it: which jobs that are, and what becomes of one when that transaction is slow, refused, or
 * outlives luxid.
 */
#include "unit/core/world/queue_world.h"

static json_t *submit_args(json_t *extra)
{
    return json_make("[[o]]", queue_delay(extra));
}

static void submit_start(struct queue_world *w, struct fake_reply *reply)
{
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob", submit_args(NULL), reply);
}

/* Submits a job; whether it was on record as started with the first commit. */
static bool starts_at_once(struct queue_world *w, json_t *extra)
{
    guint commits = store_commits(w->store);
    guint64 id = queue_submit(w, extra);
    record_autoptr(job) record = queue_record(w, id);
    bool one = store_commits(w->store) == commits + 1;

    g_assert_cmpuint(store_commits(w->store), <=, commits + 2);
    return one && record->started;
}

static json_t *on(const char *instance)
{
    return json_make("{s[s] sb}", "on_instances", instance, "no_locks", 0);
}

static json_t *for_reason(const char *reason)
{
    return json_make("{s[[ssi]]}", "reason", "user", reason, 1);
}

static void assert_status(struct queue_world *w, guint64 id, const char *status)
{
    g_assert_cmpstr(queue_status(w, id), ==, status);
}

/* --- which --- */

static void test_one_commit(void)
{
    struct queue_world *w = queue_world_new(2);

    g_assert_true(starts_at_once(w, NULL));
    record_autoptr(job) record = queue_record(w, 1);
    g_assert_cmpuint(record->history, ==, 1);
    g_assert_cmpuint(record->epoch, ==, 1);
    g_assert_cmpuint(record->start_us, ==, record->received_us);
    assert_status(w, 1, "waiting");
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
    queue_job_runs(w, 1);
    assert_status(w, 1, "success");
    queue_world_free(w);
}

/* The second takes the last slot, the third has to wait for one. */
static void test_slots(void)
{
    struct queue_world *w = queue_world_new(2);

    g_assert_true(starts_at_once(w, NULL));
    g_assert_true(starts_at_once(w, NULL));
    g_assert_false(starts_at_once(w, NULL));
    assert_status(w, 3, "queued");
    g_assert_cmpuint(fake_starters(w->world), ==, 2);
    queue_world_free(w);
}

/* It does not pass those who wait, whatever for. */
static void test_line(void)
{
    struct queue_world *w = queue_world_new(3);

    queue_submit(w, on("web1"));
    g_assert_false(starts_at_once(w, on("web1")));
    assert_status(w, 2, "queued");
    g_assert_false(starts_at_once(w, NULL));
    assert_status(w, 3, "waiting"); /* a moment later, by the scheduler */
    queue_job_runs(w, 1);
    queue_job_runs(w, 2);
    g_assert_true(starts_at_once(w, NULL));
    queue_world_free(w);
}

static void test_locks(void)
{
    struct queue_world *w = queue_world_new(3);

    g_assert_true(starts_at_once(w, on("web1")));
    g_assert_true(starts_at_once(w, on("web2")));
    g_assert_false(starts_at_once(w, on("web2")));
    assert_status(w, 3, "queued");
    queue_world_free(w);
}

static void test_depends(void)
{
    struct queue_world *w = queue_world_new(3);

    g_assert_true(starts_at_once(w, NULL));
    g_assert_false(starts_at_once(w, json_make("{s[[i[s]]]}", "depends", 1, "success")));
    assert_status(w, 2, "queued");
    queue_world_free(w);
}

static void test_own_limit(void)
{
    struct queue_world *w = queue_world_new(3);

    g_assert_true(starts_at_once(w, for_reason("rate-limit:1:backup")));
    g_assert_false(starts_at_once(w, for_reason("rate-limit:1:backup")));
    assert_status(w, 2, "queued");
    queue_world_free(w);
}

static void test_rule(void)
{
    struct queue_world *w = queue_world_new(3);
    g_autoptr(GError) error = NULL;
    json_autoptr rule = queue_call(w, "ReplaceFilter",
                                   json_make("[n, i, [[s, [ssi]]], s, [[ssi]]]", 0, "jobid", ">",
                                             "id", 1, "PAUSE", "user", "test", 1),
                                   &error);

    g_assert_no_error(error);
    g_assert_true(starts_at_once(w, NULL));
    g_assert_false(starts_at_once(w, NULL));
    assert_status(w, 2, "queued");
    queue_world_free(w);
}

/* Of those that share a transaction the first; the others wait for their turn. */
static void test_at_once(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply replies[3] = {0};
    guint commits = store_commits(w->store);

    for (guint i = 0; i < G_N_ELEMENTS(replies); i++)
        submit_start(w, &replies[i]);
    fake_settle(w->world);
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
    g_assert_cmpuint(store_commits(w->store), <=, commits + 2);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        assert_status(w, (guint64)json_integer_value(replies[i].result), i ? "queued" : "waiting");
        fake_reply_clear(&replies[i]);
    }
    for (guint64 id = 1; id <= 3; id++)
        queue_job_runs(w, id);
    g_assert_cmpuint(fake_starters(w->world), ==, 3);
    queue_world_free(w);
}

/* --- a transaction that is slow, or refused --- */

/* What is submitted meanwhile finds the slot taken. */
static void test_slow(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply first = {0}, second = {0};

    store_hold(w->store, true);
    submit_start(w, &first);
    fake_settle(w->world);
    submit_start(w, &second);
    fake_settle(w->world);
    g_assert_cmpuint(fake_starters(w->world), ==, 0);
    store_hold(w->store, false);
    fake_settle(w->world);
    assert_status(w, 1, "waiting");
    assert_status(w, 2, "queued");
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
    fake_reply_clear(&first);
    fake_reply_clear(&second);
    queue_world_free(w);
}

static void test_refused(void)
{
    struct queue_world *w = queue_world_new(1);

    store_fail_next(w->store, FETTLE_ERROR_STORAGE, "the disk is full");
    queue_refuse(w, "SubmitJob", submit_args(NULL), FETTLE_ERROR_STORAGE, "the disk is full");
    g_assert_cmpuint(fake_starters(w->world), ==, 0);
    g_assert_true(luxi_drain(w->luxi));
    queue_world_free(w);
}

/* luxid that is asked to end waits until it is known whether the job is on record, and then until
 * it runs; what comes later is not begun. */
static void test_drain(void)
{
    struct queue_world *w = queue_world_new(2);
    struct fake_reply reply = {0};

    store_hold(w->store, true);
    submit_start(w, &reply);
    fake_settle(w->world);
    g_assert_false(luxi_drain(w->luxi));
    store_hold(w->store, false);
    fake_settle(w->world);
    g_assert_true(reply.done);
    g_assert_false(luxi_drain(w->luxi));
    queue_child_named(w, 1);
    g_assert_true(queue_child_confirmed(w, 1));
    queue_child_breaks(w, 1); /* it has read that */
    g_assert_true(luxi_drain(w->luxi));
    g_assert_false(starts_at_once(w, NULL));
    assert_status(w, 2, "queued");
    fake_reply_clear(&reply);
    queue_world_free(w);
}

/* --- luxid dies --- */

static json_t *started_record(guint64 epoch)
{
    return json_make("{si, s[{s{ss, sf}, ss}], ss, sb, si, sI}", "id", 1, "ops", "input", "OP_ID",
                     "OP_TEST_DELAY", "duration", 0.0, "status", "queued", "status", "waiting",
                     "started", 1, "history", 1, "epoch", (json_int_t)epoch);
}

/* It died while the transaction was on its way, which is stored when the next luxid serves already:
 * nobody has done more about the job, so that one goes on, once. */
static void test_stored_later(void)
{
    struct queue_world *w = queue_world_new(1);

    store_put(w->store, "job", "1", started_record(1));
    fake_settle(w->world);
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
    queue_job_runs(w, 1);
    assert_status(w, 1, "success");
    fake_advance(w->world, 60000);
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
    queue_world_free(w);
}

/* The same of a mastership that is over: the job does not run. */
static void test_stored_by_an_older_master(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autofree char *message = NULL;

    store_set_epoch(w->store, 2);
    store_put(w->store, "job", "1", started_record(1));
    fake_advance(w->world, 5000);
    message = queue_message(w, 1);
    assert_status(w, 1, "error");
    g_assert_cmpstr(message, ==,
                    "detected death of job 1: it ran under epoch 1, which ended with its master's "
                    "restart or loss");
    g_assert_cmpuint(fake_starters(w->world), ==, 0);
    queue_world_free(w);
}

/* It is on record, answered, and luxid is killed before it has done anything else. */
static void test_killed_after_the_answer(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autofree char *message = NULL;

    queue_world_kill_luxid(w);
    store_put(w->store, "job", "1", started_record(1));
    queue_world_start_luxid(w);
    fake_advance(w->world, 5000);
    message = queue_message(w, 1);
    assert_status(w, 1, "error");
    g_assert_cmpstr(
        message, ==,
        "job 1 did not start: luxid ended before it had written the job file; nothing has run");
    g_assert_cmpuint(fake_starters(w->world), ==, 0);
    g_assert_true(starts_at_once(w, NULL));
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/submit-started/one-commit#SAF-30", test_one_commit);
    g_test_add_func("/submit-started/slots#LUX-12", test_slots);
    g_test_add_func("/submit-started/line#LUX-06", test_line);
    g_test_add_func("/submit-started/locks#LUX-13", test_locks);
    g_test_add_func("/submit-started/depends", test_depends);
    g_test_add_func("/submit-started/own-limit#FUT-13", test_own_limit);
    g_test_add_func("/submit-started/rule#FUT-13", test_rule);
    g_test_add_func("/submit-started/at-once#LUX-12", test_at_once);
    g_test_add_func("/submit-started/slow#LUX-12", test_slow);
    g_test_add_func("/submit-started/refused#SAF-30", test_refused);
    g_test_add_func("/submit-started/drain#FUT-12,LUX-26", test_drain);
    g_test_add_func("/submit-started/stored-later#LUX-06,LUX-07", test_stored_later);
    g_test_add_func("/submit-started/stored-by-an-older-master#SAF-06",
                    test_stored_by_an_older_master);
    g_test_add_func("/submit-started/killed-after-the-answer#LUX-26", test_killed_after_the_answer);
    return g_test_run();
}
