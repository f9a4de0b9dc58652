/* Job files of an earlier version, in var/queue: jobs that its luxid has started are followed there
 * to their end by a newer one, what is of no use is put away. core/job/job_file.c, track.c. */
#include "core/job/job_state.h"
#include "core/queue/old_jobs.h"
#include "unit/core/world/queue_world.h"

/* The job's file lies where the earlier version had it. */
static void put_before(struct queue_world *w, guint64 id, const struct job *job)
{
    json_autoptr json = job_to_json(job);
    g_autofree char *text = json_to_text(json);
    g_autofree char *name = g_strdup_printf("queue/job-%" G_GUINT64_FORMAT, id);
    fake_file_put(w->world, MASTER, FILE_STATE, name, text);
    fake_settle(w->world);
}

static const char *file_before(struct queue_world *w, guint64 id)
{
    g_autofree char *name = g_strdup_printf("queue/job-%" G_GUINT64_FORMAT, id);
    return fake_file(w->world, MASTER, FILE_STATE, name);
}

/* A job under way, of `args`; luxid is upgraded meanwhile. Its file, as it was. */
static struct job *upgrade_beside(struct queue_world *w, json_t *args)
{
    g_autoptr(GError) error = NULL;
    json_autoptr answer = queue_call(w, "SubmitJob", args, &error);
    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(answer), ==, 1);
    fake_advance(w->world, 10);
    queue_child_named(w, 1);
    fake_advance(w->world, 10);
    queue_world_kill_luxid(w);
    struct job *file = queue_file(w, 1);
    put_before(w, 1, file);
    g_assert_true(w->cli->ops->file_remove(w->cli, FILE_QUEUE, "job-1", NULL));
    return file;
}

static json_t *evacuation(void)
{
    return json_make("[[{ss ss}]]", "OP_ID", "OP_NODE_EVACUATE", "node_name", "node1");
}

static void set_first(struct job *job, const char *status)
{
    struct job_op *op = job->ops->pdata[0];
    g_free(op->status);
    op->status = g_strdup(status);
    job_update_status(job);
}

/* An evacuation that the old program runs: what it asks for is queued with its end. */
static void test_evacuation(void)
{
    struct queue_world *w = queue_world_new(10);
    record_autoptr(job) file = upgrade_beside(w, evacuation());
    struct job_op *op = file->ops->pdata[0];
    queue_world_start_luxid(w);
    fake_advance(w->world, 100);
    g_assert_cmpstr(queue_status(w, 1), ==, "waiting");
    /* What its process writes is seen when it is written. */
    set_first(file, "running");
    put_before(w, 1, file);
    g_assert_cmpstr(queue_status(w, 1), ==, "running");
    set_first(file, "success");
    json_decref(op->result);
    op->result = json_make("{s[[{ss sf}]] s[]}", "jobs", "OP_ID", "OP_TEST_DELAY", "duration", 1.0,
                           "failed");
    put_before(w, 1, file);
    queue_job_gone(w, 1, true);
    fake_advance(w->world, 5000);
    record_autoptr(job) record = queue_record(w, 1);
    g_autofree char *text = json_to_text(((struct job_op *)record->ops->pdata[0])->result);
    g_assert_cmpstr(record->status, ==, "success");
    g_assert_cmpstr(text, ==, "{\"failed\":[],\"jobs\":[[true,2]]}");
    g_assert_null(file_before(w, 1));
    queue_world_free(w);
}

/* It ended while there was no luxid; and one that died in the middle. */
static void test_ended_meanwhile(void)
{
    for (int clean = 0; clean <= 1; clean++) {
        struct queue_world *w = queue_world_new(10);
        record_autoptr(job) file = upgrade_beside(w, evacuation());
        set_first(file, clean ? "success" : "running");
        put_before(w, 1, file);
        queue_job_gone(w, 1, clean);
        queue_world_start_luxid(w);
        fake_advance(w->world, 5000);
        g_autofree char *message = queue_message(w, 1);
        g_assert_cmpstr(queue_status(w, 1), ==, clean ? "success" : "error");
        g_assert_cmpstr(message, ==, clean ? "" : "detected death of job 1");
        g_assert_null(file_before(w, 1));
        queue_world_free(w);
    }
}

static guint aside(struct queue_world *w, const char *prefix)
{
    g_autoptr(GPtrArray) names = w->cli->ops->file_list(w->cli, FILE_STATE, "queue", NULL);
    guint count = 0;
    for (guint i = 0; i < names->len; i++)
        count += g_str_has_prefix(names->pdata[i], prefix) ? 1 : 0;
    return count;
}

/* What no job under way has written does not stay there. */
static void test_leftovers(void)
{
    struct queue_world *w = queue_world_new(10);
    record_autoptr(job) file =
        upgrade_beside(w, json_make("[[{ss sf}]]", "OP_ID", "OP_TEST_DELAY", "duration", 1.0));
    guint64 queued = 0;
    set_first(file, "success");
    put_before(w, 1, file);
    store_put(w->store, "job", "1", job_to_json(file)); /* it has committed its end */
    fake_file_put(w->world, MASTER, FILE_STATE, "queue/job-77", "garbage");
    file->id = 78;
    put_before(w, 78, file);
    queue_job_gone(w, 1, true);
    queue_world_start_luxid(w);
    fake_advance(w->world, 1000);
    g_assert_cmpstr(queue_status(w, 1), ==, "success");
    g_assert_null(file_before(w, 1));
    g_assert_null(file_before(w, 77));
    g_assert_null(file_before(w, 78));
    g_assert_cmpuint(aside(w, "bad-job-77-"), ==, 1);
    g_assert_cmpuint(aside(w, "bad-job-78-"), ==, 1);
    /* Jobs of this version are none of that place's. */
    queued = queue_submit(w, NULL);
    queue_job_runs(w, queued);
    g_assert_null(file_before(w, queued));
    g_assert_cmpstr(queue_status(w, queued), ==, "success");
    queue_world_free(w);
}

static void test_damaged(void)
{
    struct queue_world *w = queue_world_new(10);
    job_free(upgrade_beside(w, evacuation()));
    fake_file_put(w->world, MASTER, FILE_STATE, "queue/job-1", "{\"id\": 1, \"ops");
    queue_job_gone(w, 1, false);
    queue_world_start_luxid(w);
    fake_advance(w->world, 5000);
    g_autofree char *message = queue_message(w, 1);
    g_assert_cmpstr(message, ==, "detected death of job 1; its job file was damaged");
    g_assert_cmpuint(aside(w, "bad-job-1-"), ==, 1);
    queue_world_free(w);
}

/* One that cannot be read is not taken for one that is not there: its job has run. */
static void test_unreadable(void)
{
    struct queue_world *w = queue_world_new(10);
    job_free(upgrade_beside(w, evacuation()));
    g_autofree char *huge = g_strnfill(LIMIT_JOB_FILE_BYTES + 1, ' ');
    fake_file_put(w->world, MASTER, FILE_STATE, "queue/job-1", huge);
    queue_job_gone(w, 1, false);
    queue_world_start_luxid(w);
    fake_advance(w->world, 5000);
    g_autofree char *message = queue_message(w, 1);
    g_assert_cmpstr(message, ==, "detected death of job 1; its job file was damaged");
    queue_world_free(w);
}

struct ending {
    struct queue_world *w;
    struct stamp newest;
};

static void end_task(void *data)
{
    const struct ending *ending = data;
    old_jobs_end(ending->w->cli, ending->newest);
}

/* A later mastership ends its process like any other's. */
static void test_deposed(void)
{
    struct queue_world *w = queue_world_new(10);
    job_free(upgrade_beside(w, evacuation()));
    struct ending ending = {w, {1, 2}};
    task_spawn(w->cli->tasks, end_task, &ending);
    fake_settle(w->world);
    g_assert_cmpuint(fake_signals(w->world)->len, ==, 1);
    g_assert_cmpstr(fake_signals(w->world)->pdata[0], ==, "job-1-1 KILL");
    queue_world_start_luxid(w);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/job-files-before/evacuation#LUX-33", test_evacuation);
    g_test_add_func("/job-files-before/ended-meanwhile#LUX-34,LUX-36", test_ended_meanwhile);
    g_test_add_func("/job-files-before/leftovers#LUX-30", test_leftovers);
    g_test_add_func("/job-files-before/damaged#LUX-36", test_damaged);
    g_test_add_func("/job-files-before/unreadable#LUX-36", test_unreadable);
    g_test_add_func("/job-files-before/deposed#SAF-06", test_deposed);
    return g_test_run();
}
