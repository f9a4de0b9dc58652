/*
 * See long_call.h.
 */
#include "core/ops/long_call.h"

/* Outlives the call only by a question that has not been answered yet. */
struct attendant {
    struct op *op; /* NULL: the call is over, or the job is being killed */
    const struct env *env;
    struct stamp stamp;
    guint job;
    char *node, *instance, *progress;
    struct task *waiting; /* for the next look */
    guint timer;
    guint references;
};

static void attendant_unref(struct attendant *attendant)
{
    if (--attendant->references)
        return;
    g_free(attendant->node);
    g_free(attendant->instance);
    g_free(attendant->progress);
    g_free(attendant);
}

static void attendant_wake(struct attendant *attendant)
{
    struct task *task = attendant->waiting;
    attendant->waiting = NULL;
    if (task)
        task_wake(task);
}

static void attendant_timer_cb(void *data)
{
    struct attendant *attendant = data;
    attendant->timer = 0;
    attendant_wake(attendant);
}

/* False: there is nothing to look after any more. */
static bool attendant_pause(struct attendant *attendant)
{
    const struct env *env = attendant->env;
    attendant->waiting = task_self();
    attendant->timer = env->ops->timer(env, ATTEND_MS, attendant_timer_cb, attendant);
    bool alive = task_wait();
    attendant->waiting = NULL;
    if (attendant->timer)
        env->ops->timer_cancel(env, attendant->timer);
    attendant->timer = 0;
    return alive && attendant->op;
}

static void look(struct attendant *attendant)
{
    struct disks_progress_args args = {.instance = attendant->instance};
    /* A node that does not tell says nothing against the images. */
    g_autoptr(GError) ignored = NULL;
    record_autoptr(disks_progress) progress =
        env_call_record(attendant->env, attendant->node, ROLE_NODED, "disks_progress", &args,
                        attendant->stamp, attendant->job, 0, &ignored);
    if (progress && progress->running && attendant->op)
        op_progress(attendant->op, attendant->progress, progress->done_mib, progress->total_mib,
                    "MiB");
}

/* Said again at each look: the node may be just about to begin, or its daemon have been restarted.
 */
static void cancel(struct attendant *attendant)
{
    struct work_cancel_args args = {.instance = attendant->instance};
    g_autoptr(GError) ignored = NULL;
    record_autoptr(nothing) heard =
        env_call_record(attendant->env, attendant->node, ROLE_NODED, "work_cancel", &args,
                        attendant->stamp, attendant->job, 0, &ignored);
}

static void attendant_run(void *data)
{
    struct attendant *attendant = data;
    while (attendant->op && attendant_pause(attendant)) {
        /* By the signal: luxid says so again when it is restarted. */
        if (op_is_asked(attendant->op))
            cancel(attendant);
        else if (attendant->progress)
            look(attendant);
    }
    attendant_unref(attendant);
}

static struct attendant *attendant_start(struct op *op, const char *node,
                                         const struct attended *call)
{
    struct attendant *attendant = g_new0(struct attendant, 1);
    *attendant = (struct attendant){.op = op,
                                    .env = op->env,
                                    .stamp = op->stamp,
                                    .job = (guint)op->job,
                                    .node = g_strdup(node),
                                    .instance = g_strdup(call->instance),
                                    .progress = g_strdup(call->progress),
                                    .references = 2};
    task_spawn(op->env->tasks, attendant_run, attendant);
    return attendant;
}

static void attendant_stop(struct attendant *attendant)
{
    attendant->op = NULL;
    attendant_wake(attendant);
    attendant_unref(attendant);
}

void *long_call_act(struct op *op, const char *node_uuid, const struct attended *call,
                    GError **error)
{
    struct attendant *attendant = attendant_start(op, node_uuid, call);
    void *answer = op_act(op, node_uuid, call->method, call->args, ACT_PATIENCE_MS, error);
    attendant_stop(attendant);
    return answer;
}
