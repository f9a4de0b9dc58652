/* luxid's calls: submitting, cancelling; every refusal with its exact words. */
#include "unit/core/world/queue_world.h"

#include "base/log.h"

static json_t *submit_args(json_t *op)
{
    return json_make("[[o]]", op);
}

/* --- submitting --- */

static void test_submit(void)
{
    struct queue_world *w = queue_world_new(0 + 1);
    guint64 first = queue_submit(w, NULL), second = queue_submit(w, NULL);
    record_autoptr(job) record = queue_record(w, second);
    const struct job_op *op = g_ptr_array_index(record->ops, 0);

    g_assert_cmpuint(first, ==, 1);
    g_assert_cmpuint(second, ==, 2);
    g_assert_cmpstr(record->status, ==, "queued");
    g_assert_false(record->started);
    /* Stored with its defaults. */
    g_assert_true(json_is_true(json_object_get(op->input, "no_locks")));
    g_assert_cmpint(json_integer_value(json_object_get(op->input, "priority")), ==, 0);
    g_assert_cmpint(
        json_integer_value(json_object_get(store_get(w->store, "counter", "job"), "value")), ==, 2);
    queue_world_free(w);
}

/* The id is answered after the commit, and only then. */
static void test_answer_after_commit(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply reply = {0};

    store_hold(w->store, true);
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob", submit_args(queue_delay(NULL)),
                    &reply);
    fake_advance(w->world, 100);
    g_assert_false(reply.done);
    g_assert_null(store_get(w->store, "job", "1"));
    store_hold(w->store, false);
    fake_advance(w->world, 100);
    g_assert_true(reply.done);
    g_assert_cmpint(json_integer_value(reply.result), ==, 1);
    g_assert_nonnull(store_get(w->store, "job", "1"));
    fake_reply_clear(&reply);
    queue_world_free(w);
}

/* What comes while a commit is under way shares the next one. */
static void test_batch(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply replies[20] = {0};
    guint before = store_commits(w->store);
    bool seen[21] = {false};

    store_hold(w->store, true);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob", submit_args(queue_delay(NULL)),
                        &replies[i]);
        fake_settle(w->world);
    }
    store_hold(w->store, false);
    fake_settle(w->world);
    /* One for the first, one for the other 19; starts come later. */
    g_assert_cmpuint(store_commits(w->store) - before, <=, 4);
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        json_int_t id = json_integer_value(replies[i].result);

        g_assert_true(replies[i].done);
        g_assert_cmpint(id, >=, 1);
        g_assert_cmpint(id, <=, 20);
        g_assert_false(seen[id]);
        seen[id] = true;
        fake_reply_clear(&replies[i]);
    }
    queue_world_free(w);
}

static void test_refused_commit(void)
{
    struct queue_world *w = queue_world_new(1);

    store_fail_next(w->store, FETTLE_ERROR_STORAGE, "the disk is full");
    queue_refuse(w, "SubmitJob", submit_args(queue_delay(NULL)), FETTLE_ERROR_STORAGE,
                 "the disk is full");
    g_assert_cmpuint(queue_submit(w, NULL), ==, 1);
    queue_world_free(w);
}

static void test_bad_opcodes(void)
{
    struct queue_world *w = queue_world_new(1);
    guint before = store_commits(w->store);

    queue_refuse(w, "SubmitJob", json_make("[[{ss}]]", "OP_ID", "OP_NOPE"),
                 FETTLE_ERROR_WRONG_INPUT, "ops[0].OP_ID: unknown opcode \"OP_NOPE\"");
    queue_refuse(w, "SubmitJob", json_make("[[{ss}]]", "OP_ID", "OP_TEST_DELAY"),
                 FETTLE_ERROR_WRONG_INPUT, "ops[0].duration: is missing");
    queue_refuse(w, "SubmitJob", json_make("[[]]"), FETTLE_ERROR_WRONG_INPUT,
                 "ops: must be a list of 1 to 256 opcodes");
    queue_refuse(w, "SubmitJob", json_make("[s]", "x"), FETTLE_ERROR_WRONG_INPUT,
                 "ops: must be a list of 1 to 256 opcodes");
    queue_refuse(w, "SubmitJob", submit_args(queue_delay(json_make("{si}", "priority", 20))),
                 FETTLE_ERROR_WRONG_INPUT, "ops[0].priority: must be at most 19");
    queue_refuse(w, "SubmitJob", submit_args(queue_delay(json_make("{ss}", "reason", "why"))),
                 FETTLE_ERROR_WRONG_INPUT, "ops[0].reason: must be a list");
    queue_refuse(w, "SubmitJob", submit_args(queue_delay(json_make("{s[s]}", "reason", "why"))),
                 FETTLE_ERROR_WRONG_INPUT, "ops[0].reason[0]: must be [source, text, nanoseconds]");
    queue_refuse(
        w, "SubmitJob",
        json_make("[[o, {ss, si}]]", queue_delay(NULL), "OP_ID", "OP_TEST_DELAY", "duration", -1),
        FETTLE_ERROR_WRONG_INPUT, "ops[1].duration: must be at least 0");
    g_assert_cmpuint(store_commits(w->store), ==, before);
    queue_world_free(w);
}

static void test_bad_depends(void)
{
    struct queue_world *w = queue_world_new(1);

    queue_refuse(w, "SubmitJob", submit_args(queue_delay(json_make("{s[i]}", "depends", 1))),
                 FETTLE_ERROR_WRONG_INPUT, "ops[0].depends[0]: must be [job id, [states]]");
    queue_refuse(w, "SubmitJob",
                 submit_args(queue_delay(json_make("{s[[i[s]]]}", "depends", 1, "running"))),
                 FETTLE_ERROR_WRONG_INPUT,
                 "ops[0].depends[0][1][0]: must be one of canceled, success, error");
    queue_refuse(w, "SubmitJob", submit_args(queue_delay(json_make("{s[[i[]]]}", "depends", 99))),
                 FETTLE_ERROR_UNKNOWN_ENTITY, "depends: job 99 does not exist");
    queue_refuse(w, "SubmitJob", submit_args(queue_delay(json_make("{s[[i[]]]}", "depends", -1))),
                 FETTLE_ERROR_WRONG_INPUT,
                 "depends: -1 goes back before the first job of the call");
    queue_world_free(w);
}

static void test_cluster_init_is_no_job(void)
{
    struct queue_world *w = queue_world_new(1);

    queue_refuse(w, "SubmitJob",
                 json_make("[[{ss, ss, ss, ss}]]", "OP_ID", "OP_CLUSTER_INIT", "cluster_name", "x",
                           "node_name", "y", "primary_ip", "192.0.2.1"),
                 FETTLE_ERROR_WRONG_INPUT, "ops[0].OP_ID: OP_CLUSTER_INIT does not run as a job");
    queue_world_free(w);
}

static void test_submit_many(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autoptr(GError) error = NULL;
    json_autoptr answers =
        queue_call(w, "SubmitManyJobs",
                   json_make("[[[o], [{ss}], [o], [o]]]", queue_delay(NULL), "OP_ID", "OP_NOPE",
                             queue_delay(json_make("{s[[i[s]]]}", "depends", -2, "success")),
                             queue_delay(json_make("{s[[i[]]]}", "depends", -2))),
                   &error);
    json_autoptr expected = json_make("[[b, i], [b, s], [b, i], [b, s]]", 1, 1, 0,
                                      "ops[0].OP_ID: unknown opcode \"OP_NOPE\"", 1, 2, 0,
                                      "depends: the job that it depends on is refused");
    record_autoptr(job) record = NULL;

    g_assert_no_error(error);
    if (!json_equal(answers, expected))
        g_error("answered %s", json_dumps(answers, 0));
    record = queue_record(w, 2);
    json_autoptr depends = json_make("[[i, [s]]]", 1, "success");
    g_assert_true(json_equal(
        json_object_get(((struct job_op *)g_ptr_array_index(record->ops, 0))->input, "depends"),
        depends));
    queue_world_free(w);
}

/* --- request ids --- */

static json_t *with_request(const char *request_id, double duration, const char *why)
{
    return queue_delay(json_make("{ss, sf, s[[ssi]]}", "request_id", request_id, "duration",
                                 duration, "reason", "test", why, 1));
}

static void test_request_id(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autoptr(GError) error = NULL;
    json_autoptr first =
        queue_call(w, "SubmitJob", submit_args(with_request("r/1", 0.5, "a")), &error);
    json_autoptr again =
        queue_call(w, "SubmitJob", submit_args(with_request("r/1", 0.5, "b")), &error);

    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(first), ==, 1);
    g_assert_cmpint(json_integer_value(again), ==, 1);
    queue_refuse(w, "SubmitJob", submit_args(with_request("r/1", 0.6, "a")),
                 FETTLE_ERROR_ALREADY_EXISTS,
                 "request id \"r/1\" belongs to job 1, which asks for something else");
    g_assert_null(store_get(w->store, "job", "2"));
    /* It holds over a restart of luxid. */
    queue_world_restart_luxid(w);
    json_decref(again);
    again = queue_call(w, "SubmitJob", submit_args(with_request("r/1", 0.5, "c")), &error);
    g_assert_cmpint(json_integer_value(again), ==, 1);
    queue_world_free(w);
}

/* The job that takes a volume back tells from whom, also when that has been done; and asked for
 * again by its id it is still that job. */
static void test_detach_names_its_instance(void)
{
    static const char volume[] = "eeeeeeee-1111-4000-8000-000000000001";
    struct queue_world *w = queue_world_new(1);
    g_autoptr(GError) error = NULL;
    static const char web1[] = "dddddddd-0000-4000-8000-000000000001";
    store_put(w->store, "instance", web1,
              json_make("{ss ss ss ss ss si}", "uuid", web1, "name", "web1", "admin_state", "up",
                        "disk_template", "diskless", "primary_node", MASTER, "memory", 8));
    json_t *attached = json_make("[{ss ss si ss}]", "uuid", volume, "instance", web1, "slot", 30,
                                 "state", "attached");
    json_t *record = json_make("{ss ss si ss ss so}", "uuid", volume, "name", "data1", "size", 1,
                               "status", "available", "data", "x.7", "attachments", attached);
    store_put(w->store, "volume", volume, json_deep_copy(record));
    fake_settle(w->world);
    json_t *op = json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_DETACH_VOLUME", "volume", "data1",
                           "request_id", "d/1");
    json_autoptr first = queue_call(w, "SubmitJob", submit_args(json_incref(op)), &error);
    g_assert_no_error(error);
    record_autoptr(job) job = queue_record(w, (guint64)json_integer_value(first));
    const struct job_op *noted = job->ops->pdata[0];
    g_assert_cmpstr(json_string_value(json_object_get(noted->input, "instance_name")), ==, "web1");
    json_object_del(record, "attachments");
    store_put(w->store, "volume", volume, record);
    fake_settle(w->world);
    json_autoptr again = queue_call(w, "SubmitJob", submit_args(op), &error);
    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(first), ==, json_integer_value(again));
    queue_world_free(w);
}

/* Two at the same moment, in one transaction. */
static void test_request_id_at_once(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply replies[3] = {0};

    store_hold(w->store, true);
    for (guint i = 0; i < 3; i++)
        fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob",
                        submit_args(i == 0 ? queue_delay(NULL) : with_request("r/2", 0.5, "a")),
                        &replies[i]);
    fake_settle(w->world);
    store_hold(w->store, false);
    fake_settle(w->world);
    g_assert_cmpint(json_integer_value(replies[1].result), ==,
                    json_integer_value(replies[2].result));
    g_assert_null(store_get(w->store, "job", "3"));
    for (guint i = 0; i < 3; i++)
        fake_reply_clear(&replies[i]);
    queue_world_free(w);
}

/* --- cancelling --- */

static void assert_cancel(struct queue_world *w, guint64 id, bool done, const char *sentence)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "CancelJob", json_make("[I]", (json_int_t)id), &error);
    json_autoptr expected = json_make("[b, s]", done, sentence);

    g_assert_no_error(error);
    if (!json_equal(answer, expected))
        g_error("answered %s", json_dumps(answer, 0));
}

/* [cancel, kill_at] as clients see them: `kill_at` in whole seconds, null: never. */
static void assert_wish(struct queue_world *w, guint64 id, bool cancel, guint64 kill_us)
{
    g_autoptr(GError) error = NULL;
    json_autoptr rows = queue_call(
        w, "QueryJobs", json_make("[[I], [s, s]]", (json_int_t)id, "cancel", "kill_at"), &error);
    const json_t *kill_at = json_array_get(json_array_get(rows, 0), 1);

    g_assert_no_error(error);
    g_assert_true(json_is_true(json_array_get(json_array_get(rows, 0), 0)) == cancel);
    g_assert_true(json_is_integer(kill_at) == (kill_us != 0));
    g_assert_cmpint(json_integer_value(kill_at), ==, (json_int_t)(kill_us / G_USEC_PER_SEC));
}

/* A job under way is asked by a signal and on record; killed when it stays. */
static void test_cancel_under_way(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = queue_submit(w, NULL);
    const GPtrArray *signals = fake_signals(w->world);
    g_autoptr(GError) error = NULL;
    record_autoptr(job) record = NULL;
    json_autoptr answer = NULL;
    g_autofree char *text = NULL;

    queue_child_named(w, id);
    queue_job_writes(w, id, "running");
    assert_wish(w, id, false, 0);
    assert_cancel(w, id, true,
                  "Job will be canceled: it is asked to give up at the next safe point");
    fake_settle(w->world);
    assert_wish(w, id, true, 0);
    record = queue_record(w, id);
    g_assert_true(record->cancel);
    g_assert_cmpuint(signals->len, ==, 1);
    g_assert_cmpstr(g_ptr_array_index(signals, 0), ==, "job-1-1 TERM");
    answer = queue_call(w, "CancelJob", json_make("[I, b]", (json_int_t)id, 1), &error);
    text = json_to_text(answer);
    g_assert_cmpstr(text, ==,
                    "[true,\"Job is asked to give up, and ended for sure in 10 seconds\"]");
    assert_wish(w, id, true, (guint64)w->luxid->ops->wall_us(w->luxid) + JOB_KILL_GRACE_MS * 1000);
    fake_advance(w->world, JOB_KILL_GRACE_MS - 100);
    g_assert_cmpuint(signals->len, ==, 2);
    fake_advance(w->world, 200);
    g_assert_cmpuint(signals->len, ==, 3);
    g_assert_cmpstr(g_ptr_array_index(signals, 2), ==, "job-1-1 KILL");
    queue_world_free(w);
}

/* A job that runs, and that somebody wants to end for sure. */
static guint64 running_to_be_killed(struct queue_world *w)
{
    guint64 id = queue_submit_running(w);
    g_autoptr(GError) error = NULL;
    json_autoptr answer = NULL;

    answer = queue_call(w, "CancelJob", json_make("[I, b]", (json_int_t)id, 1), &error);
    g_assert_no_error(error);
    return id;
}

/* What was promised to a person outlives luxid: the next one asks again, and kills in time. */
static void test_kill_over_restart(void)
{
    struct queue_world *w = queue_world_new(1);
    const GPtrArray *signals = fake_signals(w->world);
    guint64 id = running_to_be_killed(w);

    fake_advance(w->world, JOB_KILL_GRACE_MS / 2);
    queue_world_restart_luxid(w);
    g_assert_cmpuint(signals->len, ==, 2);
    g_assert_cmpstr(g_ptr_array_index(signals, 1), ==, "job-1-1 TERM");
    fake_advance(w->world, JOB_KILL_GRACE_MS / 2 + 100);
    g_assert_cmpuint(signals->len, ==, 3);
    g_assert_cmpstr(g_ptr_array_index(signals, 2), ==, "job-1-1 KILL");
    fake_advance(w->world, JOB_KILL_GRACE_MS); /* it does not die at once */
    g_assert_cmpuint(signals->len, ==, 4);
    queue_job_gone(w, id, false);
    fake_advance(w->world, 2 * JOB_KILL_GRACE_MS);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    g_assert_cmpuint(signals->len, ==, 4);
    queue_world_free(w);
}

static void keep_line(const char *line, void *lines)
{
    g_string_append_printf(lines, "%s\n", line);
}

/* Its file is damaged while luxid is away. */
static guint64 running_with_damaged_file(struct queue_world *w)
{
    guint64 id = queue_submit_running(w);

    queue_world_kill_luxid(w);
    fake_file_put(w->world, MASTER, FILE_QUEUE, "job-1", "{\"id\": 1, \"ops\": [{\"inp");
    queue_world_start_luxid(w);
    return id;
}

static void kill_job(struct queue_world *w, guint64 id)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        queue_call(w, "CancelJob", json_make("[I, b]", (json_int_t)id, 1), &error);

    g_assert_no_error(error);
    fake_advance(w->world, JOB_KILL_GRACE_MS + 100);
}

/* Its lock file tells which process it is. */
static void test_kill_by_lock_file(void)
{
    struct queue_world *w = queue_world_new(1);
    const GPtrArray *signals = fake_signals(w->world);
    guint64 id = running_with_damaged_file(w);

    kill_job(w, id);
    g_assert_cmpuint(signals->len, ==, 2);
    g_assert_cmpstr(g_ptr_array_index(signals, 0), ==, "job-1-1 TERM");
    g_assert_cmpstr(g_ptr_array_index(signals, 1), ==, "job-1-1 KILL");
    queue_job_gone(w, id, false);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    queue_world_free(w);
}

/* Nobody is killed on a guess; what to do is said. */
static void test_kill_nobody_known(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autoptr(GString) lines = g_string_new(NULL);
    guint64 id = running_with_damaged_file(w);

    fake_hide_holders(w->world);
    log_set_sink(keep_line, lines);
    kill_job(w, id);
    log_set_sink(NULL, NULL);
    g_assert_cmpuint(fake_signals(w->world)->len, ==, 0);
    g_assert_nonnull(strstr(lines->str,
                            "job 1 cannot be asked to end: neither its job file nor its lock file "
                            "tells which process it is. Look for the one that has the file open "
                            "(fuser -v run/livelocks/job-1-1) and kill that; luxid sees its end, "
                            "and ends the job"));
    g_assert_nonnull(strstr(lines->str, "job 1 cannot be killed: neither"));
    queue_job_gone(w, id, false);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    queue_world_free(w);
}

/* A child that hangs before it has a name keeps its slot for so long, and no longer. */
static void test_child_hangs(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = queue_submit(w, NULL);
    guint64 next = queue_submit(w, NULL);
    record_autoptr(job) record = NULL;
    const struct job_op *op;
    g_autofree char *result = NULL;

    fake_advance(w->world, LIMIT_CHILD_NAME_MS - 100);
    g_assert_cmpstr(queue_status(w, id), ==, "waiting");
    fake_advance(w->world, 200);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    record = queue_record(w, id);
    op = g_ptr_array_index(record->ops, 0);
    result = json_to_text(op->result);
    g_assert_nonnull(strstr(result, "job 1 did not start: its process did not name its lock file "
                                    "within 120 s; nothing has run"));
    queue_child_named(w, next);
    queue_job_writes(w, next, "running");
    g_assert_cmpstr(queue_status(w, next), ==, "running");
    queue_world_free(w);
}

/* It gives up in time: nobody is killed. */
static void test_cancel_in_time(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = running_to_be_killed(w);

    queue_job_writes(w, id, "canceled");
    queue_job_commits(w, id);
    queue_job_gone(w, id, true);
    fake_advance(w->world, 2 * JOB_KILL_GRACE_MS);
    g_assert_cmpstr(queue_status(w, id), ==, "canceled");
    g_assert_cmpuint(fake_signals(w->world)->len, ==, 1);
    queue_world_free(w);
}

static void test_priority(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL), first = queue_submit(w, NULL);
    guint64 second = queue_submit(w, NULL);
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        queue_call(w, "ChangeJobPriority", json_make("[I, i]", (json_int_t)second, -5), &error);
    g_autofree char *text = json_to_text(answer);
    json_autoptr none = queue_call(w, "ChangeJobPriority", json_make("[i, i]", 99, 0), &error);
    g_autofree char *refused = json_to_text(none);

    g_assert_cmpstr(text, ==, "[true,\"Priority of the opcodes that have not ended changed\"]");
    g_assert_cmpstr(refused, ==, "[false,\"Job 99 not found in queue\"]");
    fake_settle(w->world);
    queue_job_runs(w, running);
    g_assert_cmpstr(queue_status(w, second), ==, "waiting");
    g_assert_cmpstr(queue_status(w, first), ==, "queued");
    queue_refuse(w, "ChangeJobPriority", json_make("[I, i]", (json_int_t)first, 20),
                 FETTLE_ERROR_WRONG_INPUT, "ChangeJobPriority: priority: must be at most 19");
    queue_refuse(w, "PickupJob", json_make("[I]", (json_int_t)first), FETTLE_ERROR_PERMISSION,
                 "Luxi call 'PickupJob' is for internal use only");
    queue_world_free(w);
}

/* What is asked of a running job at the moment at which its process commits its record. */
static char *asked_beside(const char *status, const char *method, json_t *args)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = queue_submit(w, NULL);
    struct fake_reply reply = {0};

    queue_child_named(w, id);
    queue_job_writes(w, id, status);
    store_hold(w->store, true);
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, method, args, &reply);
    fake_settle(w->world);
    queue_job_commits(w, id);
    store_hold(w->store, false);
    fake_advance(w->world, 1000);
    g_assert_true(reply.done);
    g_assert_no_error(reply.error);
    char *text = json_to_text(reply.result);
    fake_reply_clear(&reply);
    queue_world_free(w);
    return text;
}

static void test_verb_beside_its_process(void)
{
    static const struct {
        const char *status, *method, *answer;
    } all[] = {
        {"running", "ChangeJobPriority",
         "[true,\"Priority of the opcodes that have not ended changed\"]"},
        {"success", "ChangeJobPriority", "[false,\"Job 1 has ended already\"]"},
        {"running", "CancelJob",
         "[true,\"Job will be canceled: it is asked to give up at the next safe point\"]"},
        {"success", "CancelJob", "[false,\"Job 1 has ended already\"]"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        bool priority = g_str_equal(all[i].method, "ChangeJobPriority");
        json_t *args = priority ? json_make("[i, i]", 1, -5) : json_make("[i]", 1);
        g_autofree char *answer = asked_beside(all[i].status, all[i].method, args);

        g_assert_cmpstr(answer, ==, all[i].answer);
    }
}

static void set_drained(struct queue_world *w, bool drained)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "SetDrainFlag", json_make("[b]", drained), &error);

    g_assert_no_error(error);
    fake_settle(w->world);
}

static void test_drained(void)
{
    struct queue_world *w = queue_world_new(1);
    static const char refusal[] =
        "the queue is drained: it takes no jobs until `fettle queue undrain`";
    guint64 id = queue_submit(w, NULL);
    g_autoptr(GError) error = NULL;
    json_autoptr anyway = NULL;

    set_drained(w, true);
    queue_refuse(w, "SubmitJob", json_make("[[o]]", queue_delay(NULL)), FETTLE_ERROR_TEMPORARY,
                 refusal);
    queue_refuse(w, "SubmitManyJobs", json_make("[[[o]]]", queue_delay(NULL)),
                 FETTLE_ERROR_TEMPORARY, refusal);
    anyway =
        queue_call(w, "SubmitJobToDrainedQueue", json_make("[[o]]", queue_delay(NULL)), &error);
    g_assert_no_error(error);
    g_assert_cmpuint((guint64)json_integer_value(anyway), ==, id + 1);
    queue_job_runs(w, id); /* what is queued goes on */
    fake_settle(w->world);
    g_assert_cmpstr(queue_status(w, id + 1), ==, "waiting");
    queue_world_restart_luxid(w);
    queue_refuse(w, "SubmitJob", json_make("[[o]]", queue_delay(NULL)), FETTLE_ERROR_TEMPORARY,
                 refusal);
    set_drained(w, false);
    g_assert_cmpuint(queue_submit(w, NULL), ==, id + 2);
    queue_world_free(w);
}

static json_t *two_jobs(void)
{
    return json_make("[[[o], [o]]]", queue_delay(NULL), queue_delay(NULL));
}

/* No job too many, and none is lost; what runs does not count. */
static void test_full(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL), queued;
    g_autoptr(GError) error = NULL;
    json_autoptr known = NULL;
    json_t *op = queue_delay(json_make("{ss}", "request_id", "once"));

    luxi_limit_queue(w->luxi, 3);
    queued = queue_submit(w, json_make("{ss}", "request_id", "once"));
    queue_submit(w, NULL);
    queue_refuse(w, "SubmitManyJobs", two_jobs(), FETTLE_ERROR_TEMPORARY,
                 "the queue is full: 2 of at most 3 jobs are queued, and 2 more are too many; try "
                 "again when some have ended");
    queue_submit(w, NULL);
    queue_refuse(w, "SubmitJob", submit_args(queue_delay(NULL)), FETTLE_ERROR_TEMPORARY,
                 "the queue is full: 3 of at most 3 jobs are queued, and 1 more are too many; try "
                 "again when some have ended");
    known = queue_call(w, "SubmitJob", submit_args(op), &error);
    g_assert_no_error(error);
    g_assert_cmpuint((guint64)json_integer_value(known), ==, queued);
    queue_job_runs(w, running);
    g_assert_cmpuint(queue_submit(w, NULL), ==, 5);
    queue_world_restart_luxid(w); /* with the limit that it has by itself */
    g_assert_cmpuint(queue_submit(w, NULL), ==, 6);
    G_STATIC_ASSERT(LIMIT_QUEUED_JOBS == 100000);
    queue_world_free(w);
}

/* What is in the same transaction counts as well. */
static void test_full_at_once(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply replies[4] = {0};

    queue_submit(w, NULL);
    luxi_limit_queue(w->luxi, 2);
    store_hold(w->store, true);
    for (guint i = 0; i < 4; i++)
        fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "SubmitJob", submit_args(queue_delay(NULL)),
                        &replies[i]);
    fake_settle(w->world);
    store_hold(w->store, false);
    fake_settle(w->world);
    for (guint i = 0; i < 2; i++)
        g_assert_no_error(replies[i].error);
    for (guint i = 2; i < 4; i++) {
        g_assert_error(replies[i].error, FETTLE_ERROR, FETTLE_ERROR_TEMPORARY);
        g_assert_cmpstr(replies[i].error->message, ==,
                        "the queue is full: 2 of at most 2 jobs are queued, and 1 more are too "
                        "many; try again when some have ended");
    }
    g_assert_null(store_get(w->store, "job", "4"));
    for (guint i = 0; i < 4; i++)
        fake_reply_clear(&replies[i]);
    queue_world_free(w);
}

static void test_cancel(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL), queued = queue_submit(w, NULL);
    g_autofree char *message = NULL;

    assert_cancel(w, queued, true, "Job successfully cancelled");
    g_assert_cmpstr(queue_status(w, queued), ==, "canceled");
    message = queue_message(w, queued);
    g_assert_cmpstr(message, ==, "Job canceled by request");
    assert_cancel(w, queued, false, "Job 2 has ended already");
    assert_cancel(w, 99, false, "Job 99 not found in queue");
    queue_job_runs(w, running);
    fake_settle(w->world);
    g_assert_cmpuint(fake_starters(w->world), ==, 1);
    queue_world_free(w);
}

/* --- the envelope of calls --- */

static void test_bad_calls(void)
{
    struct queue_world *w = queue_world_new(1);

    queue_refuse(w, "Nope", json_make("[]"), FETTLE_ERROR_PROTOCOL,
                 "Unable to parse LUXI request method: Invalid string value for type LuxiReq: "
                 "\"Nope\"");
    queue_refuse(w, "SubmitJob", json_make("[]"), FETTLE_ERROR_WRONG_INPUT,
                 "SubmitJob: ops: is missing");
    queue_refuse(w, "CancelJob", json_make("[s]", "x"), FETTLE_ERROR_WRONG_INPUT,
                 "CancelJob: job: must be a number");
    queue_refuse(w, "QueryJobs", json_make("[[s], [s]]", "x", "id"), FETTLE_ERROR_WRONG_INPUT,
                 "QueryJobs: ids[0]: must be a job id");
    queue_refuse(w, "QueryJobs", json_make("[[], [s, s]]", "id", "nope"), FETTLE_ERROR_WRONG_INPUT,
                 "Unknown output fields selected: nope");
    queue_world_free(w);
}

/* --- its copy of the configuration --- */

/* Answers once; `data`: what was asked for. */
static json_t *note_kinds(const struct rpc_request *request, const char *to_node, void *data,
                          GError **error)
{
    json_t **kinds = data;
    if (*kinds) {
        fettle_set_error(error, UNREACHABLE, "gone");
        return NULL;
    }
    *kinds = json_incref(json_object_get(request->args, "kinds"));
    return json_make("{si, si, si, sb, s[]}", "history", 1, "epoch", 1, "serial", 1, "snapshot",
                     true, "changes");
}

/* All kinds but those that only the daemons have which work with them. */
static void test_kinds(void)
{
    struct queue_world *w = queue_world_new(1);
    json_autoptr kinds = NULL;
    size_t count, i;
    const struct record *const *all = object_table(&count);
    json_t *kind;

    queue_world_kill_luxid(w);
    fake_script(w->world, NULL, ROLE_WCONFD, "wait_changes", note_kinds, &kinds);
    queue_world_start_luxid(w);
    g_assert_nonnull(kinds);
    g_autoptr(GHashTable) asked = g_hash_table_new(g_str_hash, g_str_equal);
    json_array_foreach(kinds, i, kind)
        g_hash_table_add(asked, (char *)json_string_value(kind));
    for (i = 0; i < count; i++)
        g_assert_cmpint(g_hash_table_contains(asked, all[i]->name), ==,
                        object_view(all[i]->name) != VIEW_LUXID_NEVER);
    g_assert_false(g_hash_table_contains(asked, "revoked"));
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/luxi/kinds", test_kinds);
    g_test_add_func("/luxi/submit#LUX-06", test_submit);
    g_test_add_func("/luxi/answer-after-commit#LUX-06", test_answer_after_commit);
    g_test_add_func("/luxi/batch", test_batch);
    g_test_add_func("/luxi/refused-commit", test_refused_commit);
    g_test_add_func("/luxi/bad-opcodes", test_bad_opcodes);
    g_test_add_func("/luxi/bad-depends", test_bad_depends);
    g_test_add_func("/luxi/cluster-init-is-no-job", test_cluster_init_is_no_job);
    g_test_add_func("/luxi/submit-many", test_submit_many);
    g_test_add_func("/luxi/request-id#SAF-31", test_request_id);
    g_test_add_func("/luxi/request-id-at-once#SAF-31", test_request_id_at_once);
    g_test_add_func("/luxi/detach-names-its-instance#SAF-31", test_detach_names_its_instance);
    g_test_add_func("/luxi/cancel", test_cancel);
    g_test_add_func("/luxi/cancel-under-way#LUX-08", test_cancel_under_way);
    g_test_add_func("/luxi/cancel-in-time#LUX-08", test_cancel_in_time);
    g_test_add_func("/luxi/child-hangs#LUX-23", test_child_hangs);
    g_test_add_func("/luxi/cancel/kill-over-restart#LUX-16", test_kill_over_restart);
    g_test_add_func("/luxi/cancel/kill-by-lock-file#LUX-08", test_kill_by_lock_file);
    g_test_add_func("/luxi/cancel/kill-nobody-known#LUX-08", test_kill_nobody_known);
    g_test_add_func("/luxi/full#LUX-06", test_full);
    g_test_add_func("/luxi/queue-full/at-once", test_full_at_once);
    g_test_add_func("/luxi/priority#LUX-06", test_priority);
    g_test_add_func("/luxi/verb-beside-its-process#LUX-06", test_verb_beside_its_process);
    g_test_add_func("/luxi/drained#LUX-05", test_drained);
    g_test_add_func("/luxi/bad-calls", test_bad_calls);
    return g_test_run();
}
