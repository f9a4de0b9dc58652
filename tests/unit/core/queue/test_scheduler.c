/*
 * Which job starts when, the start procedure step by step, and what becomes of jobs whose process
 * or luxid dies at any of its steps.
 */
#include "unit/core/world/queue_world.h"

#include <string.h>

static void assert_status(struct queue_world *w, guint64 id, const char *status)
{
    g_assert_cmpstr(queue_status(w, id), ==, status);
}

static void assert_error(struct queue_world *w, guint64 id, const char *expected)
{
    g_autofree char *message = queue_message(w, id);

    assert_status(w, id, "error");
    g_assert_cmpstr(message, ==, expected);
}

static json_t *priority(int value)
{
    return json_make("{si}", "priority", value);
}

static json_t *after(guint64 id, const char *state)
{
    return json_make("{s[[I[s]]]}", "depends", (json_int_t)id, state);
}

static bool has_starter(struct queue_world *w, guint64 id)
{
    for (guint i = 0; i < fake_starters(w->world); i++)
        if (fake_starter_job(w->world, i) == id)
            return true;
    return false;
}

static guint owner_gone_calls(struct queue_world *w)
{
    return fake_count_calls(w->world, MASTER "/wconfd owner_gone");
}

/* --- the start procedure --- */

static void test_handshake(struct queue_world *w)
{
    guint64 id = queue_submit(w, NULL);
    record_autoptr(job) record = queue_record(w, id);
    record_autoptr(job) before = queue_file(w, id);
    record_autoptr(job) named = NULL;

    /* On record before anything else, with the mastership that it belongs to. */
    g_assert_true(record->started);
    g_assert_cmpuint(record->history, ==, 1);
    g_assert_cmpuint(record->epoch, ==, 1);
    assert_status(w, id, "waiting");
    /* luxid answers for it until the child has a name. */
    g_assert_true(g_str_has_prefix(before->livelock, "luxid-"));
    g_assert_cmpint(w->luxid->ops->livelock_probe(w->luxid, before->livelock), ==, LIVELOCK_ALIVE);
    g_assert_cmpuint(before->epoch, ==, 1);
    g_assert_false(queue_child_confirmed(w, id));

    queue_child_named(w, id);
    named = queue_file(w, id);
    g_assert_cmpstr(named->livelock, ==, "job-1-1");
    g_assert_cmpuint(named->process_id, ==, 1001);
    g_assert_cmpuint(named->process_start, ==, 5001);
    g_assert_true(queue_child_confirmed(w, id));
}

static void test_child_dies_unnamed(struct queue_world *w)
{
    guint64 id = queue_submit(w, NULL), next = queue_submit(w, NULL);

    queue_child_breaks(w, id);
    assert_error(w, id,
                 "job 1 did not start: its process ended before the confirmation; nothing has run");
    g_assert_false(queue_child_confirmed(w, id));
    g_assert_true(has_starter(w, next));
}

/* The child dies after it has sent its name, before luxid could write it down. */
static void test_child_dies_named(struct queue_world *w)
{
    guint64 id = queue_submit(w, NULL);

    fake_fail_files(w->world, "job-1", 1);
    queue_child_named(w, id);
    queue_child_breaks(w, id);
    fake_advance(w->world, 2000);
    g_assert_false(queue_child_confirmed(w, id));
    assert_error(w, id,
                 "job 1 did not start: its process ended before the confirmation; nothing has run");
}

/* No confirmation as long as the name is not in the file. */
static void test_name_not_written(struct queue_world *w)
{
    guint64 id = queue_submit(w, NULL);

    fake_fail_files(w->world, "job-1", 3);
    queue_child_named(w, id);
    fake_advance(w->world, 500);
    g_assert_false(queue_child_confirmed(w, id));
    fake_advance(w->world, 5000);
    g_assert_true(queue_child_confirmed(w, id));
    assert_status(w, id, "waiting");
}

static void test_first_write_fails(struct queue_world *w)
{
    guint64 id;
    g_autofree char *message = NULL;

    fake_fail_files(w->world, "job-1", 1);
    id = queue_submit(w, NULL);
    message = queue_message(w, id);
    assert_status(w, id, "error");
    g_assert_true(g_str_has_prefix(message, "job 1 did not start: job file job-1: "));
    g_assert_true(g_str_has_suffix(message, "; nothing has run"));
    g_assert_cmpuint(fake_starters(w->world), ==, 0);
}

/* After the confirmation a broken pipe means nothing, and luxid's hands are off the file. */
static void test_broken_after_confirmation(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);
    g_autofree char *before = NULL;

    before = g_strdup(fake_file(w->world, MASTER, FILE_QUEUE, "job-1"));
    queue_child_breaks(w, id);
    fake_advance(w->world, 10000);
    assert_status(w, id, "waiting");
    g_assert_cmpstr(fake_file(w->world, MASTER, FILE_QUEUE, "job-1"), ==, before);
    queue_job_writes(w, id, "running");
    assert_status(w, id, "running");
}

static void test_start_not_recorded(struct queue_world *w)
{
    guint64 first = queue_submit(w, NULL), id = queue_submit(w, NULL);

    queue_child_named(w, first);
    queue_job_writes(w, first, "success");
    queue_job_commits(w, first);
    store_fail_next(w->store, FETTLE_ERROR_STORAGE, "the disk is full");
    queue_job_gone(w, first, true);
    assert_status(w, id, "queued");
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
    fake_advance(w->world, 2000);
    assert_status(w, id, "waiting");
    g_assert_cmpuint(fake_starters(w->world), ==, 2);
}

/* Whoever makes the processes is behind with that: the job waits, and is not lost. */
static void test_start_has_to_wait(struct queue_world *w)
{
    fake_starters_busy(w->world, 3);
    guint64 id = queue_submit(w, NULL);
    assert_status(w, id, "waiting");
    g_assert_cmpuint(fake_starters(w->world), ==, 0);
    fake_advance(w->world, 3 * LIMIT_QUEUE_RETRY_MS + 1);
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
    queue_job_runs(w, id);
    assert_status(w, id, "success");
}

/* --- order --- */

static void test_slots(struct queue_world *w)
{
    guint before;

    for (guint i = 0; i < 10; i++)
        queue_submit(w, NULL);
    for (guint64 done = 0; done < 10; done++) {
        before = fake_starters(w->world);
        g_assert_cmpuint(before, ==, MIN(done + 4, 10));
        queue_job_runs(w, done + 1);
        assert_status(w, done + 1, "success");
    }
    g_assert_cmpuint(fake_starters(w->world), ==, 10);
}

/* A job whose final state is on record keeps its slot until its process is gone. */
static void test_slot_until_gone(struct queue_world *w)
{
    guint64 first = queue_submit(w, NULL), second = queue_submit(w, NULL);

    queue_child_named(w, first);
    queue_job_writes(w, first, "success");
    queue_job_commits(w, first);
    assert_status(w, first, "success");
    g_assert_false(has_starter(w, second));
    queue_job_gone(w, first, true);
    g_assert_true(has_starter(w, second));
}

static void test_starts_share_commits(struct queue_world *w)
{
    json_autoptr jobs = json_array();
    g_autoptr(GError) error = NULL;
    guint before = store_commits(w->store);

    for (guint i = 0; i < 20; i++)
        json_array_append_new(jobs, json_make("[o]", queue_delay(NULL)));
    json_autoptr answers = queue_call(w, "SubmitManyJobs", json_make("[O]", jobs), &error);
    fake_settle(w->world);
    g_assert_no_error(error);
    g_assert_cmpuint(json_array_size(answers), ==, 20);
    g_assert_cmpuint(fake_starters(w->world), ==, 20);
    g_assert_cmpuint(store_commits(w->store) - before, ==, 2);
}

static void test_priority(struct queue_world *w)
{
    guint64 first = queue_submit(w, NULL), low = queue_submit(w, priority(10));
    guint64 normal = queue_submit(w, NULL), high = queue_submit(w, priority(-10));
    const guint64 order[] = {first, high, normal, low};

    for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
        g_assert_cmpuint(fake_starters(w->world), ==, i + 1);
        g_assert_true(has_starter(w, order[i]));
        queue_job_runs(w, order[i]);
    }
}

static void test_depends(struct queue_world *w)
{
    guint64 first = queue_submit(w, NULL), second = queue_submit(w, after(1, "success"));
    guint64 third = queue_submit(w, after(1, "error"));

    g_assert_true(has_starter(w, first));
    g_assert_false(has_starter(w, second));
    queue_job_runs(w, first);
    g_assert_true(has_starter(w, second));
    g_assert_false(has_starter(w, third));
    assert_error(w, third,
                 "job 3 was not started: it depends on job 1, which ended in state success; "
                 "nothing has run");
}

/* --- following --- */

/* What the file says is shown, but a final state only once it is on record. */
static void test_final_after_commit(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);

    assert_status(w, id, "waiting");
    queue_job_writes(w, id, "running");
    assert_status(w, id, "running");
    queue_job_writes(w, id, "success");
    fake_advance(w->world, 5000);
    assert_status(w, id, "running");
    queue_job_commits(w, id);
    assert_status(w, id, "success");
    queue_job_gone(w, id, true);
    g_assert_null(fake_file(w->world, MASTER, FILE_QUEUE, "job-1"));
    g_assert_cmpuint(owner_gone_calls(w), ==, 0);
}

/* The reason trail of the first opcode: sources and texts. */
static void assert_trail(const struct job *record, const char *expected)
{
    const json_t *input = ((const struct job_op *)g_ptr_array_index(record->ops, 0))->input;
    g_autoptr(GString) text = g_string_new(NULL);
    size_t i;
    const json_t *entry;

    json_array_foreach(json_object_get(input, "reason"), i, entry) {
        g_string_append_printf(text, "%s %s\n", json_string_value(json_array_get(entry, 0)),
                               json_string_value(json_array_get(entry, 1)));
        g_assert_cmpint(json_integer_value(json_array_get(entry, 2)), >, 0);
    }
    g_assert_cmpstr(text->str, ==, expected);
}

static void test_death(struct queue_world *w)
{
    guint64 id = queue_submit(w, NULL), next = queue_submit(w, NULL);
    record_autoptr(job) record = NULL;

    queue_child_named(w, id);
    queue_job_writes(w, id, "running");
    queue_job_dies(w, id);
    assert_error(w, id, "detected death of job 1");
    record = queue_record(w, id);
    g_assert_cmpstr(record->status, ==, "error");
    g_assert_cmpuint(record->end_us, >, 0);
    assert_trail(record, "gnt:opcode:test_delay job=1;index=0\n"
                         "gnt:daemon:luxid:deathdetection detected death of job 1\n");
    g_assert_cmpuint(owner_gone_calls(w), ==, 1);
    g_assert_true(has_starter(w, next));
}

/* Confirmed, but it never came to run. */
static void test_death_before_first_opcode(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);

    queue_job_dies(w, id);
    assert_error(w, id, "detected death of job 1 before its first opcode began");
}

/* The job's own end stands, although it could not commit it. */
static void test_end_not_committed(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);

    queue_job_writes(w, id, "success");
    queue_job_gone(w, id, true);
    fake_advance(w->world, 1000);
    assert_status(w, id, "success");
    /* It could not free its locks either. */
    g_assert_cmpuint(owner_gone_calls(w), ==, 1);
}

/* The commit fails at first: the end is not lost, nobody sees it too early. */
static void test_end_committed_later(struct queue_world *w)
{
    guint64 id = queue_submit_running(w);

    store_fail_next(w->store, FETTLE_ERROR_STORAGE, "the disk is full");
    queue_job_gone(w, id, false);
    fake_advance(w->world, 500);
    assert_status(w, id, "running");
    fake_advance(w->world, 5000);
    assert_error(w, id, "detected death of job 1");
}

/* The event comes before the lock is really free: the job is looked at again. */
static void test_event_before_release(struct queue_world *w)
{
    guint64 id = queue_submit_running(w);

    fake_livelock(w->world, MASTER, "job-1-1", LIVELOCK_DEAD);
    fake_livelock(w->world, MASTER, "job-1-1", LIVELOCK_ALIVE);
    fake_settle(w->world);
    assert_status(w, id, "running");
    fake_livelock(w->world, MASTER, "job-1-1", LIVELOCK_DEAD);
    fake_advance(w->world, 1000);
    assert_error(w, id, "detected death of job 1");
}

/* An event for a job that lives changes nothing, and its death is still seen. */
static void test_false_event(struct queue_world *w)
{
    guint64 id = queue_submit_running(w);

    fake_livelock(w->world, MASTER, "job-1-1", LIVELOCK_DEAD);
    fake_livelock(w->world, MASTER, "job-1-1", LIVELOCK_ALIVE);
    fake_advance(w->world, 1000);
    assert_status(w, id, "running");
    queue_job_dies(w, id);
    assert_error(w, id, "detected death of job 1");
}

/* A release that nobody tells of is found by the sweep. */
static void test_sweep(struct queue_world *w)
{
    guint64 id = queue_submit_running(w);

    fake_reboot(w->world, MASTER);
    fake_settle(w->world);
    assert_status(w, id, "running");
    fake_advance(w->world, 11000);
    assert_error(w, id, "detected death of job 1");
}

/* A probe that fails is proof of nothing. */
static void test_unsure(struct queue_world *w)
{
    guint64 id = queue_submit_running(w);

    queue_world_kill_luxid(w);
    fake_livelock(w->world, MASTER, "job-1-1", LIVELOCK_UNSURE);
    queue_world_start_luxid(w);
    fake_advance(w->world, 30000);
    assert_status(w, id, "running");
    fake_livelock(w->world, MASTER, "job-1-1", LIVELOCK_DEAD);
    fake_advance(w->world, 5000);
    assert_error(w, id, "detected death of job 1");
}

/* --- restarts of luxid --- */

/* It is asked to end while it starts a job: that one runs first, no other one is begun, and the
 * next luxid goes on with both. */
static void test_drain(struct queue_world *w)
{
    guint64 starting = queue_submit(w, NULL), queued;

    g_assert_false(luxi_drain(w->luxi));
    queued = queue_submit(w, NULL);
    fake_advance(w->world, LIMIT_QUEUE_RETRY_MS);
    assert_status(w, queued, "queued");
    g_assert_false(has_starter(w, queued));
    g_assert_false(luxi_drain(w->luxi));
    queue_child_named(w, starting);
    g_assert_true(queue_child_confirmed(w, starting));
    queue_child_breaks(w, starting); /* it has read that */
    g_assert_true(luxi_drain(w->luxi));
    queue_world_restart_luxid(w);
    assert_status(w, starting, "waiting"); /* its process has not said more yet */
    queue_job_runs(w, starting);
    queue_child_named(w, queued);
    queue_job_runs(w, queued);
    assert_status(w, starting, "success");
    assert_status(w, queued, "success");
}

static void test_restart_running(struct queue_world *w)
{
    guint64 running = queue_submit(w, NULL), queued = queue_submit(w, NULL);

    queue_child_named(w, running);
    queue_job_writes(w, running, "running");
    queue_world_restart_luxid(w);
    assert_status(w, running, "running");
    assert_status(w, queued, "queued");
    g_assert_false(has_starter(w, queued));
    queue_job_ends(w, running);
    assert_status(w, running, "success");
    g_assert_true(has_starter(w, queued));
}

static void test_ended_while_away(struct queue_world *w)
{
    guint64 committed = queue_submit(w, NULL), only_file = queue_submit(w, NULL);

    queue_child_named(w, committed);
    queue_child_named(w, only_file);
    queue_world_kill_luxid(w);
    queue_job_ends(w, committed);
    queue_job_writes(w, only_file, "success");
    queue_job_gone(w, only_file, true);
    queue_world_start_luxid(w);
    fake_advance(w->world, 1000);
    assert_status(w, committed, "success");
    assert_status(w, only_file, "success");
    g_assert_null(fake_file(w->world, MASTER, FILE_QUEUE, "job-1"));
}

static void test_died_while_away(struct queue_world *w)
{
    guint64 id = queue_submit_running(w);

    queue_world_kill_luxid(w);
    queue_job_gone(w, id, false);
    queue_world_start_luxid(w);
    fake_advance(w->world, 1000);
    assert_error(w, id, "detected death of job 1");
}

/* luxid dies while its own lock file is the one named. */
static void test_luxid_dies_before_name(struct queue_world *w)
{
    guint64 id = queue_submit(w, NULL);

    queue_world_restart_luxid(w);
    fake_advance(w->world, 1000);
    assert_error(w, id,
                 "job 1 did not start: luxid ended while it was starting it; nothing has run");
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
}

/* The dead luxid's lock is still held for a moment, by a child of it that has not come to its own
 * program: it answers for several jobs. */
static void test_luxid_dies_slowly(struct queue_world *w)
{
    guint64 first = queue_submit(w, NULL), second = queue_submit(w, NULL);
    record_autoptr(job) file = queue_file(w, first);

    queue_world_kill_luxid(w);
    fake_livelock(w->world, MASTER, file->livelock, LIVELOCK_ALIVE);
    queue_world_start_luxid(w);
    fake_advance(w->world, 1000);
    assert_status(w, first, "waiting");
    assert_status(w, second, "waiting");
    fake_livelock(w->world, MASTER, file->livelock, LIVELOCK_DEAD);
    fake_advance(w->world, 1000);
    assert_error(w, first,
                 "job 1 did not start: luxid ended while it was starting it; nothing has run");
    assert_error(w, second,
                 "job 2 did not start: luxid ended while it was starting it; nothing has run");
}

/* Started on record, no job file yet. */
static void test_luxid_dies_before_file(struct queue_world *w)
{
    queue_world_kill_luxid(w);
    store_put(w->store, "job", "1",
              json_make("{si, s[{s{ss, sf}}], ss, sb, si, si}", "id", 1, "ops", "input", "OP_ID",
                        "OP_TEST_DELAY", "duration", 0.0, "status", "waiting", "started", 1,
                        "history", 1, "epoch", 1));
    queue_world_start_luxid(w);
    fake_advance(w->world, 1000);
    assert_error(
        w, 1,
        "job 1 did not start: luxid ended before it had written the job file; nothing has run");
}

/* The file is gone, but a lock file tells that there was a process: nobody can say that nothing has
 * run. */
static void test_file_gone(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);

    queue_world_kill_luxid(w);
    w->cli->ops->file_remove(w->cli, FILE_QUEUE, "job-1", NULL);
    queue_world_start_luxid(w);
    fake_advance(w->world, 5000);
    assert_status(w, id, "waiting");
    queue_job_gone(w, id, false);
    fake_advance(w->world, 5000);
    assert_error(w, id, "detected death of job 1; its job file is gone");
}

/* The child's name is stored, the confirmation never sent: the child ends with luxid. */
static void test_luxid_dies_before_confirmation(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);

    queue_world_kill_luxid(w);
    queue_job_gone(w, id, false);
    queue_world_start_luxid(w);
    fake_advance(w->world, 1000);
    assert_error(w, id, "detected death of job 1 before its first opcode began");
}

static void test_power_cut(struct queue_world *w)
{
    guint64 running = queue_submit(w, NULL), queued = queue_submit(w, NULL);

    queue_child_named(w, running);
    queue_job_writes(w, running, "success");
    queue_world_kill_luxid(w);
    fake_reboot(w->world, MASTER);
    store_set_epoch(w->store, 2);
    store_set_pending(w->store, MASTER);
    queue_world_start_luxid(w);
    /* Not before every node has answered the new epoch. */
    fake_advance(w->world, 10000);
    assert_status(w, running, "waiting");
    store_set_pending(w->store, NULL);
    fake_advance(w->world, 5000);
    /* The file of a lower epoch is not believed, even if it tells of success. */
    assert_error(w, running,
                 "detected death of job 1: it ran under epoch 1, which ended with its master's "
                 "restart or loss");
    queue_job_runs(w, queued);
    assert_status(w, queued, "success");
}

/* The mastership ends while luxid and the job live on: the job's own end does not count any more.
 */
static void test_epoch_ends_under_a_job(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);

    queue_job_writes(w, id, "success");
    store_set_epoch(w->store, 2);
    /* Its death is noticed before the new epoch is. */
    queue_job_gone(w, id, true);
    fake_advance(w->world, 500);
    assert_status(w, id, "waiting");
    store_put(w->store, "nodegroup", "bbbbbbbb-0000-4000-8000-000000000002",
              json_make("{ss, ss}", "uuid", "bbbbbbbb-0000-4000-8000-000000000002", "name", "x"));
    fake_advance(w->world, 5000);
    assert_error(w, id,
                 "detected death of job 1: it ran under epoch 1, which ended with its master's "
                 "restart or loss");
}

static guint files_beginning(struct queue_world *w, const char *prefix)
{
    g_autoptr(GPtrArray) names = w->cli->ops->file_list(w->cli, FILE_QUEUE, "", NULL);
    guint count = 0;

    for (guint i = 0; i < names->len; i++)
        if (g_str_has_prefix(g_ptr_array_index(names, i), prefix))
            count++;
    return count;
}

static void test_file_cut_short(struct queue_world *w)
{
    guint64 dead = queue_submit(w, NULL), alive = queue_submit(w, NULL);
    guint64 queued = queue_submit(w, NULL);

    queue_child_named(w, dead);
    queue_child_named(w, alive);
    queue_world_kill_luxid(w);
    fake_file_put(w->world, MASTER, FILE_QUEUE, "job-1", "{\"id\": 1, \"ops");
    fake_file_put(w->world, MASTER, FILE_QUEUE, "job-2", "");
    fake_file_put(w->world, MASTER, FILE_QUEUE, "job-77", "garbage");
    queue_job_gone(w, dead, false);
    queue_world_start_luxid(w);
    fake_advance(w->world, 1000);
    assert_error(w, dead, "detected death of job 1; its job file was damaged");
    /* Its lock file tells that it lives. */
    assert_status(w, alive, "waiting");
    g_assert_true(has_starter(w, queued));
    g_assert_cmpuint(files_beginning(w, "bad-job-1-"), ==, 1);
    g_assert_cmpuint(files_beginning(w, "bad-job-2-"), ==, 1);
    g_assert_cmpuint(files_beginning(w, "bad-job-77-"), ==, 1);
    g_assert_null(fake_file(w->world, MASTER, FILE_QUEUE, "job-77"));
    json_autoptr info = queue_call(w, "QueryClusterInfo", json_make("[]"), NULL);
    const json_t *told = json_object_get(info, "bad_job_files");
    g_assert_cmpuint(json_array_size(told), ==, 3);
    for (size_t i = 0; i < 3; i++) {
        static const char *const begin[] = {"run/queue/bad-job-1-", "run/queue/bad-job-2-",
                                            "run/queue/bad-job-77-"};
        g_assert_true(g_str_has_prefix(json_string_value(json_array_get(told, i)), begin[i]));
    }
}

/* A foreign record under a job's name is no record of it. */
static void test_file_of_another_job(struct queue_world *w)
{
    guint64 id = queue_submit_named(w);
    g_autofree char *text = NULL;

    text = g_strdup(fake_file(w->world, MASTER, FILE_QUEUE, "job-1"));
    queue_world_kill_luxid(w);
    fake_file_put(w->world, MASTER, FILE_QUEUE, "job-9", text);
    queue_world_start_luxid(w);
    g_assert_cmpuint(files_beginning(w, "bad-job-9-"), ==, 1);
    assert_status(w, id, "waiting");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    queue_case("/start/handshake#LUX-17,LUX-20,LUX-21,SAF-30", 1, test_handshake);
    queue_case("/start/child-dies-unnamed#LUX-23", 1, test_child_dies_unnamed);
    queue_case("/start/child-dies-named#LUX-23", 1, test_child_dies_named);
    queue_case("/start/name-not-written#LUX-20", 1, test_name_not_written);
    queue_case("/start/first-write-fails#LUX-17", 1, test_first_write_fails);
    queue_case("/start/broken-after-confirmation#LUX-24,LUX-31", 1, test_broken_after_confirmation);
    queue_case("/start/not-recorded#SAF-30", 1, test_start_not_recorded);
    queue_case("/start/has-to-wait#LUX-23", 1, test_start_has_to_wait);
    queue_case("/scheduler/slots#LUX-12", 4, test_slots);
    queue_case("/scheduler/slot-until-gone#LUX-12", 1, test_slot_until_gone);
    queue_case("/scheduler/starts-share-commits", 20, test_starts_share_commits);
    queue_case("/scheduler/priority#LUX-06", 1, test_priority);
    queue_case("/scheduler/depends", 10, test_depends);
    queue_case("/track/final-after-commit#SAF-30,LUX-33", 1, test_final_after_commit);
    queue_case("/track/death#LUX-14,LUX-36", 1, test_death);
    queue_case("/track/death-before-first-opcode#LUX-25", 1, test_death_before_first_opcode);
    queue_case("/track/end-not-committed#LUX-35", 1, test_end_not_committed);
    queue_case("/track/end-committed-later#LUX-36", 1, test_end_committed_later);
    queue_case("/track/event-before-release#DTH-09", 1, test_event_before_release);
    queue_case("/track/false-event#DTH-14", 1, test_false_event);
    queue_case("/track/sweep#LUX-36", 1, test_sweep);
    queue_case("/track/unsure#DTH-15", 1, test_unsure);
    queue_case("/scheduler/drain#FUT-12,LUX-26,LUX-27", 5, test_drain);
    queue_case("/restart/running#LUX-16,LUX-06", 1, test_restart_running);
    queue_case("/restart/ended-while-away#LUX-34,LUX-35", 2, test_ended_while_away);
    queue_case("/restart/died-while-away#LUX-36,DTH-02", 1, test_died_while_away);
    queue_case("/restart/before-name#LUX-26", 1, test_luxid_dies_before_name);
    queue_case("/restart/luxid-dies-slowly#LUX-26", 3, test_luxid_dies_slowly);
    queue_case("/restart/before-file#SAF-30", 1, test_luxid_dies_before_file);
    queue_case("/restart/file-gone#LUX-28", 1, test_file_gone);
    queue_case("/restart/before-confirmation#LUX-27", 1, test_luxid_dies_before_confirmation);
    queue_case("/restart/power-cut#SAF-06,SAF-30", 1, test_power_cut);
    queue_case("/restart/epoch-ends-under-a-job#SAF-30", 1, test_epoch_ends_under_a_job);
    queue_case("/restart/file-cut-short", 2, test_file_cut_short);
    queue_case("/restart/file-of-another-job", 1, test_file_of_another_job);
    return g_test_run();
}
