/* See rapi_turns.h. */
#include "core/rapi/rapi_turns.h"

struct rapi_turns {
    const struct env *env;
    guint under_way, long_ones;
    GQueue waiting, long_waiting; /* struct turn */
};

/* One that waits until it may begin. */
struct turn {
    GQueue *queue; /* where it stands */
    struct promise promise;
    bool may;
};

struct rapi_turns *rapi_turns_new(const struct env *env)
{
    struct rapi_turns *turns = g_new0(struct rapi_turns, 1);
    turns->env = env;
    return turns;
}

void rapi_turns_free(struct rapi_turns *turns)
{
    g_free(turns);
}

/* They wait for something to happen, or ask each node. WatchChanges is none of them: it is asked
 * once for all who follow events, and they wait for nobody else who waits. */
bool rapi_turns_is_long(const char *method)
{
    static const char *const long_ones[] = {"WaitForJobChange", "Verify", "PlanRecovery",
                                            "PlanNode", NULL};
    return g_strv_contains(long_ones, method);
}

static bool has_room(const struct rapi_turns *turns, bool is_long)
{
    return turns->under_way < LIMIT_RAPI_CALLS &&
           (!is_long || turns->long_ones < LIMIT_RAPI_LONG_CALLS);
}

static void count(struct rapi_turns *turns, bool is_long, int more)
{
    turns->under_way += (guint)more;
    if (is_long)
        turns->long_ones += (guint)more;
}

static void let_in(struct rapi_turns *turns, GQueue *queue, bool is_long)
{
    while (queue->length && has_room(turns, is_long)) {
        struct turn *turn = g_queue_pop_head(queue);
        count(turns, is_long, 1);
        turn->may = true;
        promise_complete(&turn->promise);
    }
}

void rapi_turns_give_back(struct rapi_turns *turns, bool is_long)
{
    count(turns, is_long, -1);
    let_in(turns, &turns->waiting, false);
    let_in(turns, &turns->long_waiting, true);
}

/* Its turn has not come. */
static void late_cb(void *data)
{
    struct turn *turn = data;
    if (g_queue_remove(turn->queue, turn))
        promise_complete(&turn->promise);
}

static bool wait_turn(struct rapi_turns *turns, GQueue *queue, bool is_long, guint *left_ms,
                      GError **error)
{
    const struct env *env = turns->env;
    guint most_ms = *left_ms / 2;
    struct turn turn = {.queue = queue};
    gint64 since_ms = env->ops->boot_ms(env);
    g_queue_push_tail(queue, &turn);
    guint timer = env->ops->timer(env, most_ms, late_cb, &turn);
    bool alive = promise_wait(&turn.promise);
    env->ops->timer_cancel(env, timer);
    g_queue_remove(queue, &turn);
    if (!alive && turn.may)
        rapi_turns_give_back(turns, is_long);
    gint64 left = *left_ms - (env->ops->boot_ms(env) - since_ms);
    if (!alive)
        fettle_set_error(error, KILLED, "luxid: the calling process ends");
    else if (!turn.may)
        fettle_set_error(error, TEMPORARY, "luxid was busy with other requests for %u s; try again",
                         most_ms / 1000);
    else
        *left_ms = (guint)MAX(left, 1);
    return alive && turn.may;
}

bool rapi_turns_take(struct rapi_turns *turns, bool is_long, guint *left_ms, GError **error)
{
    GQueue *queue = is_long ? &turns->long_waiting : &turns->waiting;
    if (!queue->length && has_room(turns, is_long)) {
        count(turns, is_long, 1);
        return true;
    }
    if (queue->length < LIMIT_RAPI_WAITING)
        return wait_turn(turns, queue, is_long, left_ms, error);
    fettle_set_error(error, TEMPORARY, "%d requests wait for luxid already; try again",
                     LIMIT_RAPI_WAITING);
    return false;
}
