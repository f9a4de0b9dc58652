/* See deadline.h. */
#include "core/node/deadline.h"

#include "core/node/node_private.h"

struct asking {
    guint refs; /* the asker's, and the task's */
    struct guest *guest;
    deadline_fn ask;
    bool answer;
    GError *error;
    bool over; /* by its end, or by the moment */
    bool late; /* by the moment */
    struct promise done;
    guint timer;
};

static void asking_unref(struct asking *asking)
{
    if (--asking->refs > 0)
        return;
    g_clear_error(&asking->error);
    g_free(asking);
}

static void asking_end(struct asking *asking, bool late)
{
    if (asking->over)
        return;
    asking->over = true;
    asking->late = late;
    promise_complete(&asking->done);
}

static void asking_run(void *data)
{
    struct asking *asking = data;
    struct node_core *node = asking->guest->node;
    asking->answer = asking->ask(asking->guest, &asking->error);
    asking_end(asking, false);
    asking_unref(asking);
    node_release(node);
}

static void time_is_over(void *data)
{
    struct asking *asking = data;
    asking->timer = 0;
    asking_end(asking, true);
}

static bool take_answer(struct asking *asking, GError **error)
{
    if (asking->late)
        fettle_set_error(error, TIMEOUT, "it does not answer");
    else if (asking->error)
        g_propagate_error(error, g_steal_pointer(&asking->error));
    return !asking->late && asking->answer;
}

bool deadline_ask(struct guest *guest, gint64 until_ms, deadline_fn ask, GError **error)
{
    const struct env *env = guest->node->env;
    gint64 left = until_ms - env->ops->boot_ms(env);
    struct asking *asking = g_new0(struct asking, 1);
    *asking = (struct asking){.refs = 2, .guest = guest, .ask = ask};
    node_hold(guest->node);
    task_spawn(env->tasks, asking_run, asking);
    asking->timer = env->ops->timer(env, (guint)MAX(left, 0), time_is_over, asking);
    bool alive = promise_wait(&asking->done);
    if (asking->timer)
        env->ops->timer_cancel(env, asking->timer);
    asking->timer = 0;
    /* A task that is being killed must not touch the promise of one that is gone. */
    asking->over = true;
    bool answer = alive ? take_answer(asking, error) : node_killed(error);
    asking_unref(asking);
    return answer;
}
