/* All that keeps a queued job from starting, as it is told: also while its turn has not come. */
#include "unit/core/world/queue_world.h"

#include <string.h>

/* The field `holds` of a job, an entry a line: "kind: why -> until [job]". */
static char *holds(struct queue_world *w, guint64 id)
{
    g_autoptr(GError) error = NULL;
    json_autoptr rows =
        queue_call(w, "QueryJobs", json_make("[[I], [s]]", (json_int_t)id, "holds"), &error);
    const json_t *list = json_array_get(json_array_get(rows, 0), 0), *entry;
    GString *text = g_string_new(json_is_null(list) ? "null" : NULL);
    size_t i;

    g_assert_no_error(error);
    json_array_foreach(list, i, entry) {
        json_int_t job = json_integer_value(json_object_get(entry, "job"));

        g_assert_cmpint(json_integer_value(json_object_get(entry, "since")), >, 0);
        g_string_append_printf(text, "%s: %s -> %s",
                               json_string_value(json_object_get(entry, "kind")),
                               json_string_value(json_object_get(entry, "why")),
                               json_string_value(json_object_get(entry, "until")));
        if (job != 0)
            g_string_append_printf(text, " [%" JSON_INTEGER_FORMAT "]", job);
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

static void expect(struct queue_world *w, guint64 id, const char *expected)
{
    g_autofree char *told = holds(w, id);

    g_assert_cmpstr(told, ==, expected);
}

#define ONE_RUNS "1 jobs are under way, and at most 1 may be (max_running_jobs)"

static char *add_rule(struct queue_world *w, json_t *action)
{
    g_autoptr(GError) error = NULL;
    json_autoptr uuid =
        queue_call(w, "ReplaceFilter",
                   json_make("[n, i, [[s, [s, s, s]]], o, [[s, s, I]]]", 0, "reason", "=", "reason",
                             "x", action, "gnt:user", "test", (json_int_t)1),
                   &error);

    g_assert_no_error(error);
    fake_settle(w->world);
    return g_strdup(json_string_value(uuid));
}

static json_t *for_reason(const char *text)
{
    return json_make("{s[[ssi]]}", "reason", "user", text, 1);
}

static void test_turn(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL), next = queue_submit(w, NULL);
    guint64 last = queue_submit(w, NULL);

    expect(w, running, "null");
    expect(w, next, "slots: " ONE_RUNS " -> one of them has ended\n");
    expect(w, last,
           "slots: " ONE_RUNS " -> one of them has ended for it, and for 1 before it in line\n");
    queue_job_runs(w, running);
    expect(w, next, "null");
    queue_world_free(w);
}

/* Rules are looked at although no slot is free. */
static void test_rules(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL), paused = queue_submit(w, for_reason("x"));
    g_autofree char *rule = add_rule(w, json_string("PAUSE"));
    g_autofree char *expected =
        g_strdup_printf("rule: filter %s (\"test\") pauses it -> that rule is gone\n"
                        "slots: " ONE_RUNS " -> one of them has ended\n",
                        rule);
    g_autofree char *alone =
        g_strdup_printf("rule: filter %s (\"test\") pauses it -> that rule is gone\n", rule);

    expect(w, paused, expected);
    queue_job_runs(w, running);
    expect(w, paused, alone);
    queue_world_free(w);
}

static void test_limits(void)
{
    struct queue_world *w = queue_world_new(10);
    g_autofree char *rule = add_rule(w, json_make("[s, i]", "RATE_LIMIT", 1));
    g_autofree char *expected = g_strdup_printf(
        "rule: filter %s (\"test\") lets 1 run at once, and 1 do -> one of those has ended, or the "
        "rule is gone\n",
        rule);

    queue_submit(w, for_reason("x"));
    expect(w, queue_submit(w, for_reason("x")), expected);
    queue_submit(w, for_reason("rate-limit:1:a"));
    expect(w, queue_submit(w, for_reason("rate-limit:1:a")),
           "limit: its reason \"rate-limit:1:a\" allows no more at once, and 1 run -> one of those "
           "has ended\n");
    queue_world_free(w);
}

static void test_dependencies(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, NULL), other = queue_submit(w, NULL), last;

    last = queue_submit(w, json_make("{s[[I, [s, s]], [I, []]]}", "depends", (json_int_t)running,
                                     "success", "error", (json_int_t)other));
    expect(w, last,
           "dependency: it depends on job 1, which is waiting -> job 1 has ended in success or "
           "error [1]\n"
           "dependency: it depends on job 2, which is queued -> job 2 has ended, in whatever state "
           "[2]\n"
           "slots: " ONE_RUNS " -> one of them has ended\n");
    queue_job_runs(w, running);
    expect(
        w, last,
        "dependency: it depends on job 2, which is waiting -> job 2 has ended, in whatever state "
        "[2]\n"
        "slots: " ONE_RUNS " -> one of them has ended\n");
    queue_world_free(w);
}

static void test_locks(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 running = queue_submit(w, json_make("{s[s] sb}", "on_instances", "a", "no_locks", 0));
    guint64 behind = queue_submit(w, json_make("{s[s] sb}", "on_instances", "a", "no_locks", 0));

    g_assert_cmpuint(running, ==, 1);
    expect(w, behind,
           "locks: it would wait for locks that job 1 has or waits for: instance/a (exclusive) -> "
           "job 1 has ended [1]\n"
           "slots: " ONE_RUNS " -> one of them has ended\n");
    queue_world_free(w);
}

static guint64 received_s(struct queue_world *w, guint64 id)
{
    record_autoptr(job) job = queue_record(w, id);

    return job->received_us / G_USEC_PER_SEC;
}

/* Since when, in seconds after it was submitted, of the nth entry. */
static guint64 since(struct queue_world *w, guint64 id, guint nth)
{
    g_autoptr(GError) error = NULL;
    json_autoptr rows =
        queue_call(w, "QueryJobs", json_make("[[I], [s]]", (json_int_t)id, "holds"), &error);
    const json_t *list = json_array_get(json_array_get(rows, 0), 0);

    g_assert_no_error(error);
    return (guint64)json_integer_value(json_object_get(json_array_get(list, nth), "since")) -
           received_s(w, id);
}

/* Writes into its file when its opcode began, or it ended. */
static void write_times(struct queue_world *w, guint64 id, guint64 start_s, guint64 end_s)
{
    record_autoptr(job) job = queue_file(w, id);
    struct job_op *op = g_ptr_array_index(job->ops, 0);
    g_autofree char *name = g_strdup_printf("job-%" G_GUINT64_FORMAT, id);
    json_autoptr json = NULL;
    g_autofree char *text = NULL;

    op->start_us = start_s * G_USEC_PER_SEC;
    job->end_us = end_s * G_USEC_PER_SEC;
    json = job_to_json(job);
    text = json_to_text(json);
    fake_file_put(w->world, MASTER, FILE_QUEUE, name, text);
    fake_settle(w->world);
}

/* Since it was submitted at the earliest, and not before what holds it was there. */
static void test_since(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 first = queue_submit(w, NULL);
    guint64 holder = queue_submit(w, json_make("{s[s] sb}", "on_instances", "a", "no_locks", 0));
    guint64 last = queue_submit(w, json_make("{s[s] sb s[[I, []]]}", "on_instances", "a",
                                             "no_locks", 0, "depends", (json_int_t)first));
    guint64 paused = queue_submit(w, for_reason("x"));
    guint64 begun = received_s(w, first);
    g_autoptr(GError) error = NULL;
    json_autoptr rule = queue_call(w, "ReplaceFilter",
                                   json_make("[n, i, [[s, [s, s, s]]], s, [[s, s, I]]]", 0,
                                             "reason", "=", "reason", "x", "PAUSE", "gnt:user",
                                             "test", (json_int_t)((begun + 70) * 1000000000)),
                                   &error);

    g_assert_no_error(error);
    fake_settle(w->world);
    g_assert_cmpuint(since(w, last, 0), ==, 0); /* its dependency */
    queue_child_named(w, first);
    write_times(w, first, begun, begun + 40);
    queue_job_ends(w, first);
    queue_child_named(w, holder);
    write_times(w, holder, begun + 50, 0);
    queue_job_writes(w, holder, "running");
    g_assert_cmpuint(since(w, last, 0), ==, 50);   /* locks: since the other is at that opcode */
    g_assert_cmpuint(since(w, last, 1), ==, 40);   /* its turn: since its dependency ended */
    g_assert_cmpuint(since(w, paused, 0), ==, 70); /* a rule: since it was made */
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hold-explain/turn#LUX-13", test_turn);
    g_test_add_func("/hold-explain/rules#LUX-13,FUT-13", test_rules);
    g_test_add_func("/hold-explain/limits#FUT-13", test_limits);
    g_test_add_func("/hold-explain/dependencies#LUX-13", test_dependencies);
    g_test_add_func("/hold-explain/locks#LUX-13", test_locks);
    g_test_add_func("/hold-explain/since#LUX-13", test_since);
    return g_test_run();
}
