/* Processes of jobs whose mastership is over are ended: by luxid while it stands by, and by the
 * next one that is active on this node. core/queue/old_jobs.c, track_settle.c. */
#include "core/queue/old_jobs.h"

#include "unit/core/world/queue_world.h"

struct ending {
    struct queue_world *w;
    struct stamp newest;
};

static void end_task(void *data)
{
    const struct ending *ending = data;
    old_jobs_end(ending->w->cli, ending->newest);
}

/* What was sent to processes, when that mastership is heard of: "job-1-1 KILL", or "". */
static char *sent(struct queue_world *w, guint64 history, guint64 epoch)
{
    struct ending ending = {w, {history, epoch}};
    const GPtrArray *signals = fake_signals(w->world);
    guint before = signals->len;
    GString *text = g_string_new(NULL);
    task_spawn(w->cli->tasks, end_task, &ending);
    fake_settle(w->world);
    for (guint i = before; i < signals->len; i++)
        g_string_append_printf(text, "%s%s", text->len ? ", " : "", (char *)signals->pdata[i]);
    return g_string_free(text, FALSE);
}

#define assert_sent(w, history, epoch, expected)                                                   \
    do {                                                                                           \
        g_autofree char *sent_ = sent(w, history, epoch);                                          \
        g_assert_cmpstr(sent_, ==, expected);                                                      \
    } while (0)

/* Of three jobs under epoch 1 one has ended and one was never confirmed. */
static void test_standby(void)
{
    struct queue_world *w = queue_world_new(3);
    guint64 lives = queue_submit(w, NULL), gone = queue_submit(w, NULL);

    queue_submit(w, NULL);
    queue_child_named(w, lives);
    queue_child_named(w, gone);
    queue_world_kill_luxid(w);
    queue_job_gone(w, gone, false);
    /* Its own mastership may go on, an older one is no news. */
    assert_sent(w, 1, 1, "");
    assert_sent(w, 1, 0, "");
    assert_sent(w, 0, 7, "");
    assert_sent(w, 1, 2, "job-1-1 KILL");
    assert_sent(w, 2, 0, "job-1-1 KILL");
    /* What cannot be read is nobody's process. */
    fake_file_put(w->world, MASTER, FILE_QUEUE, "job-1", "{\"id\": 1, \"ops");
    assert_sent(w, 1, 2, "");
    queue_world_start_luxid(w);
    queue_world_free(w);
}

/* The node is the master again, under a later epoch, and the process still runs. */
static void test_next_mastership(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = queue_submit(w, NULL);
    const GPtrArray *signals = fake_signals(w->world);

    queue_child_named(w, id);
    queue_job_writes(w, id, "running");
    queue_world_kill_luxid(w);
    store_set_epoch(w->store, 2);
    queue_world_start_luxid(w);
    fake_settle(w->world);
    g_assert_cmpuint(signals->len, >, 0);
    g_assert_cmpstr(signals->pdata[0], ==, "job-1-1 KILL");
    queue_job_gone(w, id, false);
    fake_advance(w->world, 5000);
    g_autofree char *message = queue_message(w, id);
    g_assert_cmpstr(queue_status(w, id), ==, "error");
    g_assert_cmpstr(message, ==,
                    "detected death of job 1: it ran under epoch 1, which ended with its master's "
                    "restart or loss");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/deposed/standing-by#SAF-01,SAF-06", test_standby);
    g_test_add_func("/deposed/next-mastership#SAF-06,SAF-30", test_next_mastership);
    return g_test_run();
}
