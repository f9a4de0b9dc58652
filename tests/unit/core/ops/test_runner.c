/* The job runner: its file, its locks, its end. */
#include "unit/core/world/ops_case.h"

#include <string.h>

#include "core/job/job_state.h"

static struct ops_world *world;

static json_t *delay(double seconds)
{
    return json_make("{ss sf}", "OP_ID", "OP_TEST_DELAY", "duration", seconds);
}

static json_t *start_web(void)
{
    return json_make("{ss ss}", "OP_ID", "OP_INSTANCE_STARTUP", "instance_name", "web1");
}

static json_t *set_tag(const char *tag)
{
    return json_make("{ss ss s[s]}", "OP_ID", "OP_TAGS_SET", "kind", "cluster", "tags", tag);
}

static const struct job *record(void)
{
    return config_get(world->config, "job", "17", NULL);
}

static const struct job_op *op_of(const struct job *job, guint index)
{
    return job->ops->pdata[index];
}

static struct job *file(void)
{
    json_autoptr json = json_loads(fake_file(world->world, NODE1, FILE_QUEUE, "job-17"), 0, NULL);
    return job_parse(json, RECORD_KEEP, NULL);
}

static void run_job(void *data)
{
    runner_run(world->env, JOB, LIVELOCK, NULL);
}

/* --- the way of a job --- */

static void test_success(void)
{
    g_assert_cmpstr(ops_run_one(world, delay(0)), ==, "null");
    g_assert_cmpstr(world->done->status, ==, "success");
    g_assert_cmpstr(record()->status, ==, "success");
    g_assert_cmpuint(record()->end_us, >, 0);
    g_assert_cmpstr(record()->livelock, ==, LIVELOCK);
    g_assert_cmpint(world->env->ops->livelock_probe(world->env, LIVELOCK), ==, LIVELOCK_GONE);
    ops_expect(world, "commit job success\n");
}

static void test_progress_in_file(void)
{
    ops_submit(world, json_make("[o, o]", delay(5), delay(5)));
    task_spawn(world->env->tasks, run_job, NULL);
    fake_settle(world->world);
    record_autoptr(job) first = file();
    g_assert_cmpstr(first->status, ==, "running");
    g_assert_cmpstr(op_of(first, 0)->status, ==, "running");
    g_assert_cmpstr(op_of(first, 1)->status, ==, "queued");
    g_assert_cmpuint(op_of(first, 0)->exec_us, >=, op_of(first, 0)->start_us);
    fake_advance(world->world, 5000);
    record_autoptr(job) second = file();
    g_assert_cmpstr(op_of(second, 0)->status, ==, "success");
    g_assert_cmpstr(op_of(second, 1)->status, ==, "running");
    fake_advance(world->world, 5000);
    record_autoptr(job) third = file();
    g_assert_cmpstr(third->status, ==, "success");
}

static void test_log(void)
{
    json_autoptr op = delay(0.001);
    json_object_set_new(op, "repeat", json_integer(2));
    ops_run(world, json_make("[O, O]", op, op));
    const json_t *first = op_of(world->done, 0)->log;
    const json_t *second = op_of(world->done, 1)->log;
    g_assert_cmpint(json_integer_value(json_array_get(json_array_get(first, 0), 0)), ==, 1);
    g_assert_cmpuint(json_array_size(json_array_get(json_array_get(first, 0), 1)), ==, 2);
    g_assert_cmpstr(json_string_value(json_array_get(json_array_get(first, 1), 2)), ==, "message");
    g_assert_cmpstr(json_string_value(json_array_get(json_array_get(first, 1), 3)), ==,
                    "round 2 of 2");
    g_assert_cmpint(json_integer_value(json_array_get(json_array_get(second, 0), 0)), ==, 3);
}

/* However often it is told, one entry is kept, and the next message has a higher serial. */
static void test_progress(void)
{
    json_autoptr op = delay(4);
    json_object_set_new(op, "repeat", json_integer(2));
    ops_run(world, json_make("[O]", op));
    const json_t *log = op_of(world->done, 0)->log;
    g_assert_cmpuint(json_array_size(log), ==, 4);
    const json_t *wait = json_array_get(log, 1);
    g_autofree char *text = json_to_text(json_array_get(wait, 3));
    g_assert_cmpstr(text, ==, "{\"done\":4,\"total\":4,\"unit\":\"s\",\"what\":\"wait\"}");
    g_assert_cmpstr(json_string_value(json_array_get(wait, 2)), ==, "progress");
    g_assert_cmpint(json_integer_value(json_array_get(wait, 0)), ==, 5);
    g_assert_cmpint(json_integer_value(json_array_get(json_array_get(log, 2), 0)), ==, 6);
}

static void assert_entry(const json_t *log, size_t index, json_int_t serial, const char *text)
{
    const json_t *entry = json_array_get(log, index);
    g_assert_cmpint(json_integer_value(json_array_get(entry, 0)), ==, serial);
    g_assert_cmpstr(json_string_value(json_array_get(entry, 2)), ==, "message");
    g_assert_cmpstr(json_string_value(json_array_get(entry, 3)), ==, text);
}

#define EARLIER (LIMIT_JOB_LOG_ENTRIES - 10)

/* The first opcode's log in the job file has so many entries already. */
static void fill_log(guint entries, const char *message)
{
    json_autoptr json = json_loads(fake_file(world->world, NODE1, FILE_QUEUE, "job-17"), 0, NULL);
    json_t *log = json_array();
    for (guint i = 0; i < entries; i++)
        json_array_append_new(log, json_make("[i, [i, i], s, s]", 1, 1, 0, "message", message));
    json_object_set_new(json_array_get(json_object_get(json, "ops"), 0), "log", log);
    g_autofree char *text = json_to_text(json);
    fake_file_put(world->world, NODE1, FILE_QUEUE, "job-17", text);
}

/* Each round has a message and a progress. The last entry is never a progress: it says that the log
 * is full; after it nothing is kept. The job goes on, and the next opcode has a log of its own. */
static void test_log_limit(void)
{
    json_t *many = delay(2 * PROGRESS_PAUSE_MS / 1000.0), *one = delay(0);
    json_object_set_new(many, "repeat", json_integer(8));
    json_object_set_new(one, "repeat", json_integer(1));
    ops_submit(world, json_make("[o, o]", many, one));
    fill_log(EARLIER, "earlier");
    task_spawn(world->env->tasks, run_job, NULL);
    fake_advance(world->world, 60000);
    record_autoptr(job) ended = file();
    g_assert_cmpstr(ended->status, ==, "success");
    const json_t *log = op_of(ended, 0)->log;
    g_assert_cmpuint(json_array_size(log), ==, LIMIT_JOB_LOG_ENTRIES);
    assert_entry(log, EARLIER, 1, "round 1 of 8");
    assert_entry(log, LIMIT_JOB_LOG_ENTRIES - 2, 9, "round 5 of 8");
    assert_entry(log, LIMIT_JOB_LOG_ENTRIES - 1, 10, "the log is full; nothing more is kept");
    assert_entry(op_of(ended, 1)->log, 0, 11, "round 1 of 1");
    g_assert_cmpstr(record()->status, ==, "success");
}

static size_t log_bytes(const struct job *job)
{
    size_t bytes = 0;
    for (guint i = 0; i < job->ops->len; i++)
        bytes += json_dumpb(op_of(job, i)->log, NULL, 0, JSON_COMPACT);
    return bytes;
}

/* All opcodes share one room for their logs, however few entries each has; what is kept then can be
 * read again. */
static void test_log_bytes(void)
{
    json_t *many = delay(2 * PROGRESS_PAUSE_MS / 1000.0), *one = delay(0);
    g_autofree char *earlier = g_strnfill(LIMIT_JOB_LOG_BYTES - 500, 'x');
    json_object_set_new(many, "repeat", json_integer(8));
    json_object_set_new(one, "repeat", json_integer(1));
    ops_submit(world, json_make("[o, o]", many, one));
    fill_log(1, earlier);
    task_spawn(world->env->tasks, run_job, NULL);
    fake_advance(world->world, 60000);
    record_autoptr(job) ended = file();
    g_assert_cmpstr(ended->status, ==, "success");
    const json_t *log = op_of(ended, 0)->log;
    assert_entry(log, 1, 1, "round 1 of 8");
    const json_t *last = json_array_get(log, json_array_size(log) - 1);
    g_assert_cmpstr(json_string_value(json_array_get(last, 3)), ==,
                    "the log is full; nothing more is kept");
    g_assert_cmpuint(json_array_size(op_of(ended, 1)->log), ==, 0);
    g_assert_cmpuint(log_bytes(ended), <=, LIMIT_JOB_LOG_BYTES);
    g_assert_cmpstr(record()->status, ==, "success");
}

/* Why it failed is cut, between two letters. */
static void test_long_message(void)
{
    g_autoptr(GString) why = g_string_new("x");
    while (why->len <= 2 * LIMIT_JOB_MESSAGE_BYTES)
        g_string_append(why, "€");
    ops_put_web(world, NULL, false);
    ops_fail(world, "wconfd", "update_locks", FETTLE_ERROR_STALE_EPOCH, why->str, 1);
    ops_run_one(world, start_web());
    g_assert_cmpstr(world->done->status, ==, "error");
    const json_t *result = op_of(world->done, 0)->result;
    const char *message = json_string_value(json_array_get(json_array_get(result, 1), 0));
    g_assert_cmpuint(strlen(message), <=, LIMIT_JOB_MESSAGE_BYTES);
    g_assert_cmpuint(strlen(message), >, LIMIT_JOB_MESSAGE_BYTES - 8);
    g_assert_true(g_str_has_suffix(message, "€…"));
}

/* The second opcode has so much to answer in the file that the first one's answer has no room. */
static void test_large_result(void)
{
    ops_put_web(world, "in-sync", false);
    world->guest_node = NULL;
    ops_submit(world, json_make("[{ss ss}, o]", "OP_ID", "OP_INSTANCE_VERIFY", "instance_name",
                                "web1", delay(0)));
    json_autoptr json = json_loads(fake_file(world->world, NODE1, FILE_QUEUE, "job-17"), 0, NULL);
    g_autofree char *large = g_strnfill(LIMIT_JOB_RESULT_BYTES - 2, 'x');
    json_object_set_new(json_array_get(json_object_get(json, "ops"), 1), "result",
                        json_string(large));
    g_autofree char *text = json_to_text(json);
    fake_file_put(world->world, NODE1, FILE_QUEUE, "job-17", text);
    task_spawn(world->env->tasks, run_job, NULL);
    fake_advance(world->world, 60000);
    record_autoptr(job) ended = file();
    g_assert_cmpstr(ended->status, ==, "success");
    g_assert_null(op_of(ended, 0)->result);
    const json_t *entry = json_array_get(op_of(ended, 0)->log, 0);
    g_assert_cmpstr(json_string_value(json_array_get(entry, 3)), ==,
                    "the answer of 2 bytes is not kept: there would be more than 1048576 bytes in "
                    "the job's");
}

static void test_failure_aborts_the_rest(void)
{
    const char *result = ops_run(world, json_make("[o, o, o]", start_web(), delay(0), delay(0)));
    g_assert_cmpstr(result, ==,
                    "[\"OpPrereqError\", [\"instance \\\"web1\\\" does not exist\", "
                    "\"unknown_entity\"]]");
    g_assert_cmpstr(world->done->status, ==, "error");
    for (guint i = 1; i < 3; i++) {
        g_autofree char *text = json_to_text(op_of(world->done, i)->result);
        g_assert_cmpstr(op_of(world->done, i)->status, ==, "error");
        g_assert_cmpstr(text, ==, "[\"OpExecError\",[\"Job aborted\",\"job_failed\",false]]");
    }
    ops_expect(world, "commit job error\n");
}

static void test_dry_run(void)
{
    json_t *op = set_tag("blue");
    json_object_set_new(op, "dry_run", json_true());
    g_assert_cmpstr(ops_run_one(world, op), ==, "null");
    ops_expect(world, "commit job success\n");
    op = set_tag("not a tag");
    json_object_set_new(op, "dry_run", json_true());
    g_assert_nonnull(strstr(ops_run_one(world, op), "OpPrereqError"));
}

static void test_unknown_opcode(void)
{
    g_assert_nonnull(strstr(ops_run_one(world, json_make("{ss}", "OP_ID", "OP_NOPE")), "OP_NOPE"));
    g_assert_nonnull(
        strstr(ops_run_one(world, json_make("{ss sf}", "OP_ID", "OP_TEST_DELAY", "duration", -1.0)),
               "duration"));
    g_assert_cmpstr(
        ops_run_one(world, json_make("{ss ss ss ss}", "OP_ID", "OP_CLUSTER_INIT", "cluster_name",
                                     "c", "node_name", "n", "primary_ip", "10.0.0.1")),
        ==, "[\"OpPrereqError\", [\"OP_CLUSTER_INIT cannot be run by a job\", \"wrong_input\"]]");
}

/* --- asked to give up --- */

/* What luxid does when somebody cancels the job. */
static void ask(void)
{
    fake_ask(world->env);
    fake_settle(world->world);
}

static void assert_canceled(void)
{
    record_autoptr(job) ended = file();
    g_assert_cmpstr(ended->status, ==, "canceled");
    g_assert_cmpstr(record()->status, ==, "canceled");
    g_assert_cmpint(world->env->ops->livelock_probe(world->env, LIVELOCK), ==, LIVELOCK_GONE);
}

/* In the middle of an opcode that looks for it; the next one does not begin. */
static void test_asked_while_running(void)
{
    ops_submit(world, json_make("[o, o]", delay(50), set_tag("blue")));
    task_spawn(world->env->tasks, run_job, NULL);
    fake_advance(world->world, 100);
    ask();
    fake_advance(world->world, 60000);
    assert_canceled();
    g_assert_null(strstr(world->trace->str, "tag"));
}

/* An opcode that cannot be given up comes to its end; what is after it does not run. */
static void test_asked_between(void)
{
    ops_put_web(world, NULL, false);
    ops_submit(world, json_make("[o, o]", start_web(), set_tag("blue")));
    json_t *wish = config_object_json(world->config, "job", "17");
    json_object_set_new(wish, "cancel", json_true());
    ops_put(world, "job", "17", wish);
    task_spawn(world->env->tasks, run_job, NULL);
    fake_settle(world->world);
    assert_canceled();
    ops_expect(world, "commit job canceled\n");
}

static void ask_now(struct ops_world *asked)
{
    asked->on_blocked = NULL;
    fake_ask(asked->env);
}

/* While it waits for locks: nothing has begun. */
static void test_asked_while_waiting(void)
{
    world->blocked = 1000;
    world->on_blocked = ask_now;
    ops_put_web(world, NULL, false);
    g_assert_nonnull(strstr(ops_run_one(world, start_web()), "Job canceled by request"));
    g_assert_cmpuint(world->blocked, >, 900);
    assert_canceled();
    ops_expect(world, "commit job canceled\n");
}

static void lose_wconfd(struct ops_world *broken)
{
    broken->on_locks = NULL;
    ops_fail(broken, "wconfd", "wait_changes", FETTLE_ERROR_UNREACHABLE, "away", 100000);
}

static void assert_gives_up(void)
{
    ops_submit(world, json_make("[o, o]", start_web(), set_tag("blue")));
    task_spawn(world->env->tasks, run_job, NULL);
    fake_advance(world->world, JOB_RELEASE_MS / 2);
    record_autoptr(job) waiting = file();
    g_assert_cmpuint(waiting->end_us, ==, 0);
    ask();
    fake_advance(world->world, JOB_RETRY_MS);
    assert_canceled();
    record_autoptr(job) ended = file();
    g_autofree char *result = json_to_text(op_of(ended, 0)->result);
    g_assert_cmpstr(result, ==, "[\"OpPrereqError\",[\"Job canceled by request\",\"canceled\"]]");
    ops_expect(world, "commit job canceled\n");
}

/* While the configuration daemon, which is to say what there is now, is away. */
static void test_asked_while_wconfd_away(void)
{
    ops_put_web(world, NULL, false);
    world->on_locks = lose_wconfd;
    assert_gives_up();
}

/* While it does not say what is promised of the nodes. */
static void test_asked_while_looking(void)
{
    ops_put_web(world, NULL, false);
    ops_fail(world, "wconfd", "promised", FETTLE_ERROR_UNREACHABLE, "away", 100000);
    assert_gives_up();
}

/* --- another priority --- */

static void become_urgent(struct ops_world *changed)
{
    json_t *object = config_object_json(changed->config, "job", "17");
    for (size_t i = 0; i < 2; i++) {
        json_t *op = json_array_get(json_object_get(object, "ops"), i);
        json_object_set_new(json_object_get(op, "input"), "priority", json_integer(-7));
    }
    changed->on_locks = NULL;
    ops_put(changed, "job", "17", object);
}

/* What is on record counts from the next opcode on, and is not lost with the job's end. */
static void test_priority_changes(void)
{
    ops_put_web(world, NULL, true);
    world->on_locks = become_urgent;
    ops_run(world, json_make("[o, o]", start_web(), start_web()));
    g_assert_cmpstr(record()->status, ==, "success");
    g_assert_cmpint(job_op_priority(op_of(record(), 1)), ==, -7);
}

static void become_urgent_once(struct ops_world *changed)
{
    changed->on_blocked = NULL;
    become_urgent(changed);
}

/* A request that is repeated after a while has it too. */
static void test_priority_changes_while_waiting(void)
{
    ops_put_web(world, NULL, false);
    world->blocked = 2;
    world->on_blocked = become_urgent_once;
    ops_run_one(world, start_web());
    g_assert_cmpint(world->lock_priority, ==, -7);
    g_assert_cmpstr(record()->status, ==, "success");
}

/* --- bad files --- */

static void refused(void *data)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(runner_run(world->env, JOB, LIVELOCK, &error));
    g_assert_cmpstr(error->message, ==, data);
}

static void test_bad_files(void)
{
    fake_run(world->env, refused, (void *)NODE1 "/queue/job-17 does not exist");
    json_autoptr other = json_make("{si s[]}", "id", 18, "ops");
    g_autofree char *text = json_to_text(other);
    fake_file_put(world->world, NODE1, FILE_QUEUE, "job-17", text);
    fake_run(world->env, refused, (void *)"job-17 is the file of job 18");
    ops_run_one(world, delay(0));
    fake_run(world->env, refused, (void *)"job 17 has run before; it is not run twice");
    ops_expect(world, "commit job success\n");
}

static void test_torn_file(void)
{
    fake_file_put(world->world, NODE1, FILE_QUEUE, "job-17", "{\"id\":17,\"ops\":[{");
    fake_run(world->env, refused,
             (void *)"job-17: broken JSON at byte 17 (line 1): string or '}' expected near end of "
                     "file");
    ops_expect(world, "");
}

static void break_file(struct ops_world *broken)
{
    fake_fail_files(broken->world, "queue/job-17", 1);
}

static void test_unwritable_file(void)
{
    world->on_locks = break_file;
    ops_put_web(world, NULL, false);
    g_assert_cmpstr(ops_run_one(world, start_web()), ==,
                    "[\"OpPrereqError\", [\"job file: " NODE1
                    "/queue/job-17: input/output error (made by the test)\", \"storage_error\"]]");
    ops_expect(world, "commit job error\n");
}

/* --- locks --- */

static void test_locks_before_action(void)
{
    world->trace_locks = true;
    ops_put_web(world, NULL, false);
    ops_set(world, "instance", WEB, "disk_template", json_string("diskless"));
    ops_set(world, "instance", WEB, "disks", json_array());
    ops_run_one(world, start_web());
    ops_expect(world, "locks instance/web1=exclusive node/node1=shared\n"
                      "commit instance web1 g2 up @node1 node1 starting\n"
                      "node1 guest_start g2\n"
                      "commit instance web1 g2 up @node1 node1\n"
                      "free\n"
                      "commit job success\n");
}

static void move_web(struct ops_world *moved)
{
    moved->on_locks = NULL;
    ops_set(moved, "instance", WEB, "primary_node", json_string(NODE3));
}

static void test_declaration_grew(void)
{
    world->trace_locks = true;
    world->on_locks = move_web;
    ops_put_web(world, NULL, false);
    ops_run_one(world, start_web());
    g_assert_true(g_str_has_prefix(world->trace->str,
                                   "locks instance/web1=exclusive node/node1=shared\n"
                                   "free\n"
                                   "locks instance/web1=exclusive node/node3=shared\n"
                                   "commit instance web1 g2 up @node3 node3 starting\n"));
}

static void keep_moving(struct ops_world *moved)
{
    bool first = !strcmp(ops_web(moved)->primary_node, NODE1);
    ops_set(moved, "instance", WEB, "primary_node", json_string(first ? NODE3 : NODE1));
}

static void test_declaration_never_settles(void)
{
    world->on_locks = keep_moving;
    ops_put_web(world, NULL, false);
    g_assert_cmpstr(ops_run_one(world, start_web()), ==,
                    "[\"OpPrereqError\", [\"what the opcode works on changed 10 times while it "
                    "waited for locks\", \"resource_not_available\"]]");
    ops_expect(world, "commit job error\n");
}

static void lose_node(struct ops_world *changed)
{
    ops_set(changed, "instance", WEB, "secondary_node", json_string(""));
    ops_set(changed, "instance", WEB, "replica", json_string(""));
}

static void test_declaration_shrank(void)
{
    world->trace_locks = true;
    world->on_locks = lose_node;
    ops_put_web(world, "in-sync", false);
    ops_run_one(world, start_web());
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd update_locks"), ==, 1);
}

static void note_wait(struct ops_world *waiting)
{
    /* Whoever waits for a silent node is told soon; then it is asked seldom. */
    if (waiting->blocked == 2)
        g_assert_cmpuint(waiting->lock_wait_ms, <=, 5000);
    else
        g_assert_cmpuint(waiting->lock_wait_ms, ==, LOCK_WAIT_MS);
}

static void test_waiting_for_locks(void)
{
    world->blocked = 3;
    world->on_blocked = note_wait;
    ops_put_web(world, NULL, false);
    ops_run_one(world, start_web());
    g_autofree char *log = ops_log(world, 0);
    g_assert_true(g_str_has_prefix(log, "still waiting for locks: job 16, node node3, which has "
                                        "not answered this master yet (if it is dead: fettle "
                                        "node modify node3 --offline yes --statement \"…\")\n"
                                        "starting generation 2"));
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd update_locks"), ==, 4);
}

static void test_wconfd_restarts_while_waiting(void)
{
    ops_put_web(world, NULL, false);
    ops_fail(world, "wconfd", "update_locks", FETTLE_ERROR_UNKNOWN_RESULT, "gone", 2);
    ops_fail(world, "wconfd", "update_locks", FETTLE_ERROR_UNREACHABLE, "away", 5);
    g_assert_cmpstr(ops_run_one(world, start_web()), ==, "null");
}

static void test_deposed_master(void)
{
    ops_put_web(world, NULL, false);
    ops_fail(world, "wconfd", "update_locks", FETTLE_ERROR_STALE_EPOCH, "epoch 5 is over", 1);
    g_assert_cmpstr(ops_run_one(world, start_web()), ==,
                    "[\"OpPrereqError\", [\"locks: epoch 5 is over\", \"stale_epoch\"]]");
}

static void test_free_between_opcodes_is_insisted_on(void)
{
    world->trace_locks = true;
    ops_put_web(world, NULL, true);
    ops_fail(world, "wconfd", "free_locks", FETTLE_ERROR_UNREACHABLE, "away", 3);
    ops_run(world, json_make("[o, o]", start_web(), start_web()));
    g_assert_cmpstr(world->done->status, ==, "success");
    ops_expect(world, "locks instance/web1=exclusive node/node1=shared\n"
                      "free\n"
                      "locks instance/web1=exclusive node/node1=shared\n"
                      "free\n"
                      "commit job success\n");
}

/* --- the end --- */

static void test_end_waits_for_wconfd(void)
{
    ops_fail(world, "wconfd", "commit", FETTLE_ERROR_UNREACHABLE, "away", 20);
    ops_run_one(world, delay(0));
    g_assert_cmpstr(record()->status, ==, "success");
}

static void test_end_without_wconfd(void)
{
    ops_fail(world, "wconfd", "commit", FETTLE_ERROR_UNREACHABLE, "away", 100000);
    ops_run_one(world, delay(0));
    g_assert_cmpstr(world->done->status, ==, "success"); /* the file has it, luxid commits it */
    g_assert_cmpstr(record()->status, ==, "waiting");
    g_assert_cmpint(world->env->ops->livelock_probe(world->env, LIVELOCK), ==, LIVELOCK_GONE);
}

static void declared_dead(struct ops_world *changed, guint number)
{
    json_t *object = config_object_json(changed->config, "job", "17");
    json_object_set_new(json_array_get(json_object_get(object, "ops"), 0), "status",
                        json_string("error"));
    json_object_set_new(object, "status", json_string("error"));
    if (number == 1)
        ops_put(changed, "job", "17", object);
    else
        json_decref(object);
}

static void test_final_state_is_never_replaced(void)
{
    world->on_commit = declared_dead;
    ops_run_one(world, delay(0));
    g_assert_cmpstr(record()->status, ==, "error");
    ops_expect(world, "");
}

static void record_touched(struct ops_world *changed, guint number)
{
    if (number == 1)
        ops_set(changed, "job", "17", "process_id", json_integer(4711));
}

static void test_end_after_a_conflict(void)
{
    world->on_commit = record_touched;
    ops_run_one(world, delay(0));
    g_assert_cmpstr(record()->status, ==, "success");
}

static void test_start_waits_for_wconfd(void)
{
    ops_fail(world, "wconfd", "wait_changes", FETTLE_ERROR_UNREACHABLE, "away", 10);
    g_assert_cmpstr(ops_run_one(world, delay(0)), ==, "null");
}

static void test_start_without_wconfd(void)
{
    ops_fail(world, "wconfd", "wait_changes", FETTLE_ERROR_UNREACHABLE, "away", 100000);
    g_assert_cmpstr(ops_run_one(world, set_tag("blue")), ==,
                    "[\"OpPrereqError\", [\"configuration: away\", \"unreachable\"]]");
    ops_expect(world, "");
}

static void wconfd_dies(struct ops_world *broken, guint number)
{
    ops_fail(broken, "wconfd", "wait_changes", FETTLE_ERROR_UNREACHABLE, "away", 3);
}

static void test_wconfd_dies_after_a_commit(void)
{
    world->on_commit = wconfd_dies;
    g_assert_cmpstr(ops_run_one(world, set_tag("blue")), ==, "null");
    ops_expect(world, "commit tag blue\ncommit job success\n");
}

static void test_killed(void)
{
    ops_submit(world, json_make("[o, o]", delay(60), set_tag("blue")));
    task_spawn(world->env->tasks, run_job, NULL);
    fake_settle(world->world);
    fake_kill(world->env);
    record_autoptr(job) left = file();
    g_assert_cmpstr(left->status, ==, "running"); /* nothing is written by the dead */
    ops_expect(world, "");
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/job/success#LUX-30,LUX-32,DTH-17,DTH-20,SAF-30", test_success);
    add("/job/progress#LUX-30", test_progress_in_file);
    add("/job/log#LUX-30", test_log);
    add("/job/progress-is-one-entry", test_progress);
    add("/job/log-limit#LUX-30", test_log_limit);
    add("/job/log-limit/bytes#LUX-30", test_log_bytes);
    add("/job/long-message#LUX-30", test_long_message);
    add("/job/large-result#LUX-30", test_large_result);
    add("/job/failure", test_failure_aborts_the_rest);
    add("/job/dry-run", test_dry_run);
    add("/job/unknown-opcode", test_unknown_opcode);
    add("/job/asked/running#LUX-08", test_asked_while_running);
    add("/job/asked/between#LUX-08", test_asked_between);
    add("/job/asked/waiting#LUX-08", test_asked_while_waiting);
    add("/job/asked/wconfd-away#LUX-08", test_asked_while_wconfd_away);
    add("/job/asked/looking#LUX-08", test_asked_while_looking);
    add("/job/priority#LUX-06", test_priority_changes);
    add("/job/priority/while-waiting#LUX-06", test_priority_changes_while_waiting);
    add("/job/bad-files", test_bad_files);
    add("/job/torn-file", test_torn_file);
    add("/job/unwritable-file", test_unwritable_file);
    add("/job/locks#LUX-09,DTH-08,DTH-20", test_locks_before_action);
    add("/job/locks/grew#FUT-05,LCK-25", test_declaration_grew);
    add("/job/locks/never-settles#FUT-05", test_declaration_never_settles);
    add("/job/locks/shrank#FUT-05", test_declaration_shrank);
    add("/job/locks/waiting#SAF-06", test_waiting_for_locks);
    add("/job/locks/wconfd-restarts#WCF-08", test_wconfd_restarts_while_waiting);
    add("/job/locks/deposed#SAF-05", test_deposed_master);
    add("/job/locks/free", test_free_between_opcodes_is_insisted_on);
    add("/job/end/wconfd-away#LUX-35", test_end_waits_for_wconfd);
    add("/job/end/without-wconfd#LUX-35,DTH-17", test_end_without_wconfd);
    add("/job/end/final#SAF-30", test_final_state_is_never_replaced);
    add("/job/end/conflict#SAF-30", test_end_after_a_conflict);
    add("/job/start/wconfd-away", test_start_waits_for_wconfd);
    add("/job/start/without-wconfd", test_start_without_wconfd);
    add("/job/wconfd-dies#WCF-16", test_wconfd_dies_after_a_commit);
    add("/job/killed#LUX-36", test_killed);
    return g_test_run();
}
