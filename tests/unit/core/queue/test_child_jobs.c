/* Jobs that a job asks for: on record with its end, each exactly once, whoever dies. */
#include "unit/core/world/queue_world.h"

#include "core/job/job_state.h"

#include <string.h>

/* An evacuation under way, as luxid has started it. */
static guint64 start_job(struct queue_world *w, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "SubmitJob", args, &error);
    g_assert_no_error(error);
    guint64 id = (guint64)json_integer_value(answer);
    fake_advance(w->world, 10);
    queue_child_named(w, id);
    fake_advance(w->world, 10);
    queue_job_writes(w, id, "running");
    fake_advance(w->world, 10);
    return id;
}

static guint64 start_evacuation(struct queue_world *w)
{
    return start_job(w,
                     json_make("[[{ss ss}]]", "OP_ID", "OP_NODE_EVACUATE", "node_name", "node1"));
}

/* Its process writes how it ended, and ends without a commit. */
static void end_opcodes(struct queue_world *w, guint64 id, json_t *jobs, const char *second)
{
    record_autoptr(job) file = queue_file(w, id);
    struct job_op *op = file->ops->pdata[0];
    g_free(file->user);
    file->user = g_strdup("ann");
    g_free(op->status);
    op->status = g_strdup("success");
    json_decref(op->result);
    op->result = json_make("{so s[]}", "jobs", jobs, "failed");
    if (file->ops->len > 1) {
        op = file->ops->pdata[1];
        g_free(op->status);
        op->status = g_strdup(second);
    }
    job_update_status(file);
    json_autoptr json = job_to_json(file);
    g_autofree char *text = json_to_text(json);
    g_autofree char *name = g_strdup_printf("job-%" G_GUINT64_FORMAT, id);
    fake_file_put(w->world, MASTER, FILE_QUEUE, name, text);
}

static void end_evacuation(struct queue_world *w, guint64 id, json_t *jobs)
{
    end_opcodes(w, id, jobs, NULL);
}

static json_t *two_jobs(void)
{
    return json_make("[[{ss sf}], [{ss sf}, {ss sf}]]", "OP_ID", "OP_TEST_DELAY", "duration", 1.0,
                     "OP_ID", "OP_TEST_DELAY", "duration", 2.0, "OP_ID", "OP_TEST_DELAY",
                     "duration", 3.0);
}

/* Each opcode that a job has asked for says which it is; they are of the same user. */
static void assert_begun(struct queue_world *w, guint64 id, guint ops)
{
    record_autoptr(job) record = queue_record(w, id);
    g_assert_cmpuint(record->ops->len, ==, ops);
    g_assert_cmpstr(record->user, ==, "ann");
    for (guint i = 0; i < ops; i++) {
        const struct job_op *op = record->ops->pdata[i];
        g_autofree char *text = g_strdup_printf("job=%" G_GUINT64_FORMAT ";index=%u", id, i);
        const json_t *entry = json_array_get(json_object_get(op->input, "reason"), 0);
        g_assert_cmpstr(json_string_value(json_array_get(entry, 0)), ==, "gnt:opcode:test_delay");
        g_assert_cmpstr(json_string_value(json_array_get(entry, 1)), ==, text);
    }
}

static void assert_result(struct queue_world *w, guint64 id, const char *expected)
{
    record_autoptr(job) record = queue_record(w, id);
    const struct job_op *op = record->ops->pdata[0];
    g_autofree char *text = json_to_text(op->result);
    g_assert_cmpstr(record->status, ==, "success");
    g_assert_cmpstr(text, ==, expected);
}

static void assert_no_job(struct queue_world *w, guint64 id)
{
    record_autoptr(job) record = queue_record(w, id);
    g_assert_null(record);
}

#define BOTH "{\"failed\":[],\"jobs\":[[true,2],[true,3]]}"

static void test_queued(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 id = start_evacuation(w);
    end_evacuation(w, id, two_jobs());
    fake_advance(w->world, 100);
    assert_no_job(w, 2);
    queue_job_gone(w, id, true);
    fake_advance(w->world, 2000);
    assert_result(w, id, BOTH);
    assert_begun(w, 2, 1);
    assert_begun(w, 3, 2);
    assert_no_job(w, 4);
    /* They run like any other. */
    queue_child_named(w, 2);
    queue_job_runs(w, 2);
    g_assert_cmpstr(queue_status(w, 2), ==, "success");
    queue_world_free(w);
}

/* luxid dies before it has seen the end, or right after it has committed it. */
static void test_luxid_dies(void)
{
    for (int early = 0; early <= 1; early++) {
        struct queue_world *w = queue_world_new(10);
        guint64 id = start_evacuation(w);
        end_evacuation(w, id, two_jobs());
        if (early)
            queue_world_kill_luxid(w);
        queue_job_gone(w, id, true);
        fake_advance(w->world, 2000);
        if (!early)
            queue_world_kill_luxid(w);
        queue_world_start_luxid(w);
        fake_advance(w->world, 5000);
        assert_result(w, id, BOTH);
        assert_no_job(w, 4);
        queue_world_free(w);
    }
}

/* What cannot be a job is told in its place; the others are queued. */
static void test_refused(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 id = start_evacuation(w);
    end_evacuation(w, id,
                   json_make("[[{ss}], [{ss sf}]]", "OP_ID", "OP_NONE", "OP_ID", "OP_TEST_DELAY",
                             "duration", 1.0));
    queue_job_gone(w, id, true);
    fake_advance(w->world, 2000);
    record_autoptr(job) record = queue_record(w, id);
    g_autofree char *text = json_to_text(((struct job_op *)record->ops->pdata[0])->result);
    g_assert_nonnull(strstr(text, "[[false,\"ops[0].OP_ID: "));
    g_assert_nonnull(strstr(text, ",[true,2]]"));
    queue_world_free(w);
}

/* An opcode that comes after it in the same job ends otherwise: what was planned is planned all the
 * same, unless somebody wanted the job to end. */
static void check_later_opcode(const char *second, bool queued)
{
    struct queue_world *w = queue_world_new(10);
    guint64 id =
        start_job(w, json_make("[[{ss ss}, {ss sf}]]", "OP_ID", "OP_NODE_EVACUATE", "node_name",
                               "node1", "OP_ID", "OP_TEST_DELAY", "duration", 1.0));
    end_opcodes(w, id, two_jobs(), second);
    queue_job_gone(w, id, true);
    fake_advance(w->world, 2000);
    record_autoptr(job) record = queue_record(w, id);
    const struct job_op *op = record->ops->pdata[0];
    g_autofree char *text = json_to_text(op->result);
    g_assert_cmpstr(record->status, ==, second);
    g_assert_true(queued == (strcmp(text, BOTH) == 0));
    record_autoptr(job) child = queue_record(w, 3);
    g_assert_true(queued == (child != NULL));
    queue_world_free(w);
}

static void test_later_opcode(void)
{
    check_later_opcode("error", true);
    check_later_opcode("canceled", false);
}

/* Its process dies in the opcode after it: so too. */
static void test_died_later(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 id =
        start_job(w, json_make("[[{ss ss}, {ss sf}]]", "OP_ID", "OP_NODE_EVACUATE", "node_name",
                               "node1", "OP_ID", "OP_TEST_DELAY", "duration", 1.0));
    end_opcodes(w, id, two_jobs(), "running");
    queue_job_gone(w, id, false);
    fake_advance(w->world, 5000);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    record_autoptr(job) child = queue_record(w, 3);
    g_assert_nonnull(child);
    assert_no_job(w, 4);
    queue_world_free(w);
}

/* Only an end on record counts: the job was killed, so nothing comes of what it had planned. */
static void test_died(void)
{
    struct queue_world *w = queue_world_new(10);
    guint64 id = start_evacuation(w);
    queue_job_gone(w, id, false);
    fake_advance(w->world, 5000);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    assert_no_job(w, 2);
    queue_world_free(w);
}

/* --- a wish to end a running job --- */

static json_t *cancel(struct queue_world *w, guint64 id)
{
    g_autoptr(GError) error = NULL;
    json_t *answer = queue_call(w, "CancelJob", json_make("[I]", (json_int_t)id), &error);
    g_assert_no_error(error);
    return answer;
}

static void test_cancel_wish(void)
{
    struct queue_world *w = queue_world_new(10);
    g_autoptr(GError) error = NULL;
    json_autoptr submitted = queue_call(
        w, "SubmitJob",
        json_make("[[{ss ss}]]", "OP_ID", "OP_INSTANCE_MIGRATE", "instance_name", "web1"), &error);
    g_assert_no_error(error);
    guint64 id = (guint64)json_integer_value(submitted);
    fake_advance(w->world, 10);
    queue_child_named(w, id);
    fake_advance(w->world, 10);
    queue_job_writes(w, id, "running");
    fake_advance(w->world, 10);
    for (guint i = 0; i < 2; i++) {
        json_autoptr answer = cancel(w, id);
        g_autofree char *text = json_to_text(answer);
        g_assert_cmpstr(text, ==,
                        "[true,\"Job will be canceled: it is asked to give up at the next "
                        "safe point\"]");
        record_autoptr(job) record = queue_record(w, id);
        g_assert_true(record->cancel);
    }
    g_assert_cmpstr(queue_status(w, id), ==, "running");
    queue_world_free(w);
}

/* Those for which there is no room are refused, each by itself. */
static void test_full(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = start_evacuation(w);
    luxi_limit_queue(w->luxi, 1);
    end_evacuation(w, id, two_jobs());
    queue_job_gone(w, id, true);
    fake_advance(w->world, 2000);
    assert_result(w, id,
                  "{\"failed\":[],\"jobs\":[[true,2],[false,\"the queue is full: at most 1 jobs "
                  "are queued\"]]}");
    assert_no_job(w, 3);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/children/queued#SAF-30", test_queued);
    g_test_add_func("/children/luxid-dies#SAF-30,LUX-35", test_luxid_dies);
    g_test_add_func("/children/refused", test_refused);
    g_test_add_func("/children/full", test_full);
    g_test_add_func("/children/later-opcode#SAF-30", test_later_opcode);
    g_test_add_func("/children/died-later#SAF-30", test_died_later);
    g_test_add_func("/children/died#SAF-30", test_died);
    g_test_add_func("/cancel/wish", test_cancel_wish);
    return g_test_run();
}
