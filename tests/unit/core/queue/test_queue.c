/* The index of the queue and the state tables of jobs: order, dependencies, what is shown when. */
#include "core/queue/queue.h"

#include <string.h>

/* A queued job with one opcode. `depends` is JSON text or NULL. */
static struct job *make_job(guint64 id, gint64 priority, const char *depends)
{
    struct job *job = job_new();
    struct job_op *op = job_op_new();

    job->id = id;
    json_decref(op->input);
    op->input =
        json_make("{ss, sI, so}", "OP_ID", "OP_TEST_DELAY", "priority", (json_int_t)priority,
                  "depends", depends == NULL ? json_null() : json_loads(depends, 0, NULL));
    g_ptr_array_add(job->ops, op);
    job_update_status(job);
    return job;
}

static void add(struct queue *queue, guint64 id, gint64 priority, const char *depends)
{
    record_autoptr(job) job = make_job(id, priority, depends);

    g_assert_true(queue_put(queue, job));
}

static struct job_op *add_op(struct job *job, const char *status)
{
    struct job_op *op = job_op_new();

    g_free(op->status);
    op->status = g_strdup(status);
    g_ptr_array_add(job->ops, op);
    return op;
}

static void end(struct queue *queue, guint64 id, enum job_state state)
{
    record_autoptr(job) job = make_job(id, 0, NULL);
    struct job_op *op = g_ptr_array_index(job->ops, 0);

    g_free(op->status);
    op->status = g_strdup(sm_name(&job_op_sm, state));
    job->started = true;
    queue_put(queue, job);
}

static void assert_next(const struct queue *queue, guint64 id)
{
    const struct queue_job *job = queue_next(queue);

    g_assert_cmpuint(job == NULL ? 0 : job->id, ==, id);
}

static void start(struct queue *queue, guint64 id)
{
    queue_set_phase(queue, queue_find(queue, id), JOB_PHASE_STARTING);
}

/* --- states --- */

static void check_state(const char *statuses, bool started, enum job_state expected)
{
    record_autoptr(job) job = job_new();
    g_auto(GStrv) words = g_strsplit(statuses, " ", -1);

    job->started = started;
    for (char **word = words; *word != NULL; word++)
        add_op(job, *word);
    g_assert_cmpstr(sm_name(&job_sm, job_state_of(job)), ==, sm_name(&job_sm, expected));
}

static void test_job_state(void)
{
    check_state("queued queued", false, JOB_QUEUED);
    check_state("queued queued", true, JOB_WAITING);
    check_state("waiting queued", true, JOB_WAITING);
    check_state("success running queued", true, JOB_RUNNING);
    check_state("success waiting", true, JOB_WAITING);
    check_state("success queued", true, JOB_WAITING);
    check_state("success success", true, JOB_SUCCESS);
    check_state("success error queued", true, JOB_ERROR);
    check_state("canceled running", true, JOB_CANCELED);
    check_state("success canceling", true, JOB_CANCELING);
    check_state("nonsense success", true, JOB_ERROR);
}

/* Final states lead nowhere; every other can end in each of them. */
static void test_state_table(void)
{
    for (unsigned from = 0; from < JOB_STATE_COUNT; from++) {
        for (unsigned to = JOB_CANCELED; to <= JOB_ERROR; to++)
            g_assert_true(sm_may_move(&job_sm, from, to) == !job_state_final((enum job_state)from));
        g_assert_false(sm_may_move(&job_sm, from, JOB_QUEUED));
    }
    g_assert_true(sm_may_move(&job_op_sm, JOB_WAITING, JOB_RUNNING));
    g_assert_false(sm_may_move(&job_op_sm, JOB_RUNNING, JOB_WAITING));
}

static void test_verbs(void)
{
    g_autofree char *running = NULL;
    g_autofree char *ended = NULL;

    g_assert_true(job_verb_allowed(JOB_VERB_CANCEL, JOB_QUEUED, 7, NULL));
    g_assert_true(job_verb_allowed(JOB_VERB_CANCEL, JOB_RUNNING, 7, NULL));
    g_assert_true(job_verb_allowed(JOB_VERB_PRIORITY, JOB_WAITING, 7, NULL));
    g_assert_false(job_verb_allowed(JOB_VERB_ARCHIVE, JOB_RUNNING, 7, &running));
    g_assert_cmpstr(running, ==, "Job 7 has not ended; only a job that has can be archived");
    g_assert_false(job_verb_allowed(JOB_VERB_CANCEL, JOB_SUCCESS, 7, &ended));
    g_assert_cmpstr(ended, ==, "Job 7 has ended already");
}

static void test_job_end(void)
{
    record_autoptr(job) job = job_new();
    json_autoptr result = job_error_result(FETTLE_ERROR_JOB_FAILED, "detected death of job 3");
    const struct job_op *first = add_op(job, "success");
    const struct job_op *second = add_op(job, "running");
    const struct job_op *third = add_op(job, "queued");

    job_end(job, JOB_ERROR, result, 42);
    g_assert_cmpstr(first->status, ==, "success");
    g_assert_cmpuint(first->end_us, ==, 0);
    g_assert_cmpstr(second->status, ==, "error");
    g_assert_cmpuint(second->end_us, ==, 42);
    g_assert_true(json_equal(second->result, result));
    g_assert_cmpstr(third->status, ==, "error");
    g_assert_cmpstr(job->status, ==, "error");
    g_assert_cmpuint(job->end_us, ==, 42);
    g_assert_cmpstr(json_string_value(json_array_get(json_array_get(result, 1), 0)), ==,
                    "detected death of job 3");
}

/* --- order --- */

static void test_order(void)
{
    struct queue *queue = queue_new();

    add(queue, 1, 0, NULL);
    add(queue, 2, 0, NULL);
    add(queue, 3, -10, NULL);
    add(queue, 4, 10, NULL);
    g_assert_cmpuint(queue_waiting(queue), ==, 4);
    assert_next(queue, 3);
    start(queue, 3);
    assert_next(queue, 1);
    start(queue, 1);
    assert_next(queue, 2);
    start(queue, 2);
    assert_next(queue, 4);
    start(queue, 4);
    assert_next(queue, 0);
    g_assert_cmpuint(queue_active(queue), ==, 4);
    g_assert_cmpuint(queue_waiting(queue), ==, 0);
    queue_free(queue);
}

static void test_busy(void)
{
    struct queue *queue = queue_new();

    add(queue, 1, 0, NULL);
    add(queue, 2, 0, NULL);
    queue_set_busy(queue, queue_find(queue, 1), true);
    assert_next(queue, 2);
    queue_set_busy(queue, queue_find(queue, 1), false);
    assert_next(queue, 1);
    queue_free(queue);
}

static void test_ids(void)
{
    struct queue *queue = queue_new();
    g_autoptr(GArray) ids = NULL;

    add(queue, 10, 0, NULL);
    add(queue, 9, 0, NULL);
    add(queue, 100, 0, NULL);
    ids = queue_ids(queue);
    g_assert_cmpuint(ids->len, ==, 3);
    g_assert_cmpuint(g_array_index(ids, guint64, 0), ==, 9);
    g_assert_cmpuint(g_array_index(ids, guint64, 1), ==, 10);
    g_assert_cmpuint(g_array_index(ids, guint64, 2), ==, 100);
    g_assert_null(queue_find(queue, 11));
    queue_free(queue);
}

/* --- dependencies --- */

static void test_dependency_met(void)
{
    struct queue *queue = queue_new();

    add(queue, 1, 0, NULL);
    add(queue, 2, -20, "[[1, [\"success\"]]]");
    assert_next(queue, 1);
    start(queue, 1);
    assert_next(queue, 0);
    end(queue, 1, JOB_SUCCESS);
    assert_next(queue, 2);
    g_assert_null(queue_next_doomed(queue));
    queue_free(queue);
}

static void test_dependency_any(void)
{
    struct queue *queue = queue_new();

    add(queue, 1, 0, NULL);
    add(queue, 2, 0, "[[1, []]]");
    end(queue, 1, JOB_ERROR);
    assert_next(queue, 2);
    queue_free(queue);
}

static void test_dependency_failed(void)
{
    struct queue *queue = queue_new();
    struct queue_job *job;

    add(queue, 1, 0, NULL);
    add(queue, 2, 0, "[[1, [\"success\"]]]");
    add(queue, 3, 0, "[[1, [\"success\", \"error\"]]]");
    end(queue, 1, JOB_ERROR);
    assert_next(queue, 3);
    job = queue_next_doomed(queue);
    g_assert_cmpuint(job->id, ==, 2);
    g_assert_cmpstr(job->doom, ==, "it depends on job 1, which ended in state error");
    g_assert_cmpint((int)job->doom_state, ==, (int)JOB_ERROR);
    g_assert_null(queue_next_doomed(queue));
    queue_free(queue);
}

/* A job that was busy when it was looked at comes again. */
static void test_doomed_busy(void)
{
    struct queue *queue = queue_new();

    add(queue, 1, 0, NULL);
    add(queue, 2, 0, "[[1, [\"success\"]]]");
    queue_set_busy(queue, queue_find(queue, 2), true);
    end(queue, 1, JOB_CANCELED);
    g_assert_null(queue_next_doomed(queue));
    queue_set_busy(queue, queue_find(queue, 2), false);
    g_assert_cmpuint(queue_next_doomed(queue)->id, ==, 2);
    g_assert_cmpint((int)queue_find(queue, 2)->doom_state, ==, (int)JOB_CANCELED);
    queue_free(queue);
}

static void test_dependency_ended_before(void)
{
    struct queue *queue = queue_new();

    end(queue, 1, JOB_SUCCESS);
    add(queue, 2, 0, "[[1, [\"success\"]]]");
    add(queue, 3, 0, "[[1, [\"error\"]]]");
    add(queue, 4, 0, "[[99, []]]");
    assert_next(queue, 2);
    g_assert_cmpuint(queue_next_doomed(queue)->id, ==, 3);
    g_assert_cmpuint(queue_next_doomed(queue)->id, ==, 4);
    g_assert_cmpstr(queue_find(queue, 4)->doom, ==,
                    "it depends on job 99, which does not exist any more");
    queue_free(queue);
}

static void test_two_dependencies(void)
{
    struct queue *queue = queue_new();

    add(queue, 1, 0, NULL);
    add(queue, 2, 0, NULL);
    add(queue, 3, -20, "[[1, []], [2, []]]");
    end(queue, 1, JOB_SUCCESS);
    assert_next(queue, 2);
    start(queue, 2);
    assert_next(queue, 0);
    end(queue, 2, JOB_SUCCESS);
    assert_next(queue, 3);
    queue_free(queue);
}

static void test_forget(void)
{
    struct queue *queue = queue_new();

    add(queue, 1, 0, NULL);
    add(queue, 2, 0, "[[1, []]]");
    queue_forget(queue, 1);
    queue_forget(queue, 1);
    g_assert_null(queue_find(queue, 1));
    g_assert_cmpuint(queue_waiting(queue), ==, 1);
    g_assert_cmpuint(queue_next_doomed(queue)->id, ==, 2);
    queue_free(queue);
}

/* --- what is shown --- */

/* A final state in the job file is not shown before it is on record, and then never changes. */
static void test_final_state(void)
{
    struct queue *queue = queue_new();
    struct job *running = make_job(1, 0, NULL), *ended = make_job(1, 0, NULL);
    struct queue_job *job;

    add(queue, 1, 0, NULL);
    job = queue_find(queue, 1);
    queue_set_phase(queue, job, JOB_PHASE_RUNNING);
    running->started = ended->started = true;
    g_free(((struct job_op *)g_ptr_array_index(running->ops, 0))->status);
    ((struct job_op *)g_ptr_array_index(running->ops, 0))->status = g_strdup("running");
    g_free(((struct job_op *)g_ptr_array_index(ended->ops, 0))->status);
    ((struct job_op *)g_ptr_array_index(ended->ops, 0))->status = g_strdup("success");

    g_assert_true(queue_put_live(queue, job, running));
    g_assert_cmpint((int)job->state, ==, (int)JOB_RUNNING);
    g_assert_false(queue_put_live(queue, job, ended));
    g_assert_cmpint((int)job->state, ==, (int)JOB_RUNNING);
    end(queue, 1, JOB_SUCCESS);
    g_assert_cmpint((int)job->state, ==, (int)JOB_SUCCESS);
    g_assert_null(job->live);
    end(queue, 1, JOB_ERROR);
    g_assert_cmpint((int)job->state, ==, (int)JOB_SUCCESS);
    /* The process may still be there: the slot stays taken. */
    g_assert_cmpuint(queue_active(queue), ==, 1);
    queue_set_phase(queue, job, JOB_PHASE_ENDED);
    g_assert_cmpuint(queue_active(queue), ==, 0);
    queue_free(queue);
}

static void test_requests(void)
{
    struct queue *queue = queue_new();
    record_autoptr(job) job = make_job(5, 0, NULL);

    g_free(job->request_id);
    job->request_id = g_strdup("repair-1/0/0");
    queue_put(queue, job);
    g_assert_cmpuint(queue_request(queue, "repair-1/0/0"), ==, 5);
    g_assert_cmpuint(queue_request(queue, "other"), ==, 0);
    queue_free(queue);
}

/* After a restart a job on record as started is under way until its lock file says otherwise. */
static void test_restart(void)
{
    struct queue *queue = queue_new();
    record_autoptr(job) job = make_job(1, 0, NULL);
    g_autoptr(GArray) active = NULL;

    job->started = true;
    queue_put(queue, job);
    end(queue, 2, JOB_SUCCESS);
    add(queue, 3, 0, NULL);
    active = queue_active_ids(queue);
    g_assert_cmpuint(active->len, ==, 1);
    g_assert_cmpuint(g_array_index(active, guint64, 0), ==, 1);
    g_assert_cmpint((int)queue_find(queue, 1)->state, ==, (int)JOB_WAITING);
    assert_next(queue, 3);
    queue_free(queue);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/job-state/computed", test_job_state);
    g_test_add_func("/job-state/table#SAF-30", test_state_table);
    g_test_add_func("/job-state/verbs", test_verbs);
    g_test_add_func("/job-state/end#LUX-36", test_job_end);
    g_test_add_func("/queue/order#LUX-06", test_order);
    g_test_add_func("/queue/busy", test_busy);
    g_test_add_func("/queue/ids", test_ids);
    g_test_add_func("/queue/dependency-met", test_dependency_met);
    g_test_add_func("/queue/dependency-any", test_dependency_any);
    g_test_add_func("/queue/dependency-failed", test_dependency_failed);
    g_test_add_func("/queue/doomed-busy", test_doomed_busy);
    g_test_add_func("/queue/dependency-ended-before", test_dependency_ended_before);
    g_test_add_func("/queue/two-dependencies", test_two_dependencies);
    g_test_add_func("/queue/forget", test_forget);
    g_test_add_func("/queue/final-state#SAF-30", test_final_state);
    g_test_add_func("/queue/requests#SAF-31", test_requests);
    g_test_add_func("/queue/restart#LUX-16", test_restart);
    return g_test_run();
}
