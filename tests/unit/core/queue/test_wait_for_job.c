/* WaitForJobChange: what is new at once, what is told when it comes, and when the wait is over. */
#include "core/job/job_state.h"
#include "unit/core/world/queue_world.h"

#include <string.h>

static json_t *wait_args(guint64 id, json_t *known, json_t *serial, int timeout)
{
    return json_make("[I, [s], o, o, i]", (json_int_t)id, "status", known, serial, timeout);
}

static void test_wait_at_once(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autoptr(GError) error = NULL;
    guint64 id;
    json_autoptr answer = NULL;
    json_autoptr expected = json_make("[[s], []]", "queued");
    json_autoptr unknown = NULL;

    queue_submit(w, NULL);
    id = queue_submit(w, NULL);
    answer = queue_call(w, "WaitForJobChange", wait_args(id, json_null(), json_null(), 5), &error);
    g_assert_no_error(error);
    g_assert_true(json_equal(answer, expected));
    unknown = queue_call(w, "WaitForJobChange", wait_args(99, json_null(), json_null(), 5), &error);
    g_assert_no_error(error);
    g_assert_true(json_is_null(unknown));
    queue_world_free(w);
}

static void test_wait_pushed(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply reply = {0};
    json_autoptr expected = json_make("[[s], []]", "running");
    guint64 id = queue_submit_named(w);

    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "WaitForJobChange",
                    wait_args(id, json_make("[s]", "waiting"), json_null(), 60), &reply);
    fake_advance(w->world, 1000);
    g_assert_false(reply.done);
    queue_job_writes(w, id, "running");
    g_assert_true(reply.done);
    g_assert_true(json_equal(reply.result, expected));
    fake_reply_clear(&reply);
    queue_world_free(w);
}

static void test_wait_over(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autoptr(GError) error = NULL;
    json_autoptr answer = NULL;

    queue_submit(w, NULL);
    queue_submit(w, NULL);
    answer = queue_call(w, "WaitForJobChange",
                        wait_args(2, json_make("[s]", "queued"), json_null(), 5), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(answer), ==, "nochange");
    queue_world_free(w);
}

/* A job that has ended changes no more, and Ganeti's clients ask for it again and again until they
 * are told its last state once without a log entry. */
static void test_wait_final(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autoptr(GError) error = NULL;
    struct fake_reply reply = {0};
    json_autoptr expected = json_make("[[s], []]", "success");
    json_autoptr no_fields = json_make("[[], []]");
    guint64 id = queue_submit_running(w);

    /* Of whoever asks for nothing that changes with the end. */
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "WaitForJobChange",
                    json_make("[I, [], [], i, i]", (json_int_t)id, 1, 60), &reply);
    fake_settle(w->world);
    g_assert_false(reply.done);
    queue_job_ends(w, id);
    g_assert_true(reply.done);
    g_assert_true(json_equal(reply.result, no_fields));
    fake_reply_clear(&reply);

    json_autoptr answer =
        queue_call(w, "WaitForJobChange",
                   wait_args(id, json_make("[s]", "success"), json_integer(1), 60), &error);
    g_assert_no_error(error);
    g_assert_true(json_equal(answer, expected));
    queue_world_free(w);
}

/* As long as was asked for. */
static void test_wait_long(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply reply = {0};
    guint64 id = queue_submit_running(w);

    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "WaitForJobChange",
                    wait_args(id, json_make("[s]", "running"), json_null(), 3600), &reply);
    fake_advance(w->world, 3599 * 1000);
    g_assert_false(reply.done);
    fake_advance(w->world, 2000);
    g_assert_true(reply.done);
    g_assert_cmpstr(json_string_value(reply.result), ==, "nochange");
    fake_reply_clear(&reply);
    queue_world_free(w);
}

/* Log entries arrive as the job writes them, each once. */
static void test_wait_log(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply reply = {0};
    guint64 id = queue_submit(w, NULL);
    record_autoptr(job) file = NULL;
    json_autoptr json = NULL;
    g_autofree char *text = NULL;
    json_autoptr expected =
        json_make("[[s], [[i, [i, i], s, s]]]", "running", 2, 5, 6, "message", "copied half");

    queue_child_named(w, id);
    queue_job_writes(w, id, "running");
    fake_call_start(w->cli, 0, MASTER, ROLE_LUXID, "WaitForJobChange",
                    wait_args(id, json_make("[s]", "running"), json_integer(1), 60), &reply);
    fake_settle(w->world);
    g_assert_false(reply.done);
    file = queue_file(w, id);
    ((struct job_op *)g_ptr_array_index(file->ops, 0))->log =
        json_make("[[i, [i, i], s, s], [i, [i, i], s, s]]", 1, 3, 4, "message", "begun", 2, 5, 6,
                  "message", "copied half");
    json = job_to_json(file);
    text = json_to_text(json);
    fake_file_put(w->world, MASTER, FILE_QUEUE, "job-1", text);
    fake_settle(w->world);
    g_assert_true(reply.done);
    if (!json_equal(reply.result, expected))
        g_error("answered %s", json_dumps(reply.result, 0));
    fake_reply_clear(&reply);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/luxi/wait-at-once", test_wait_at_once);
    g_test_add_func("/luxi/wait-pushed#LUX-33", test_wait_pushed);
    g_test_add_func("/luxi/wait-over", test_wait_over);
    g_test_add_func("/luxi/wait-final#LUX-33", test_wait_final);
    g_test_add_func("/luxi/wait-long", test_wait_long);
    g_test_add_func("/luxi/wait-log#LUX-33", test_wait_log);
    return g_test_run();
}
