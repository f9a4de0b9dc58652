/* See look.h. */
#include "core/node/look.h"

struct wanted {
    struct look *look;
    guint64 number; /* of the first look that will do */
    bool late;      /* it was, before */
};

struct look_round {
    struct node_core *node;
    GHashTable *wanted; /* look, borrowed -> struct wanted */
    guint open, open_late;
    bool late_over; /* those that were late have had their time */
    bool over;
    struct promise done;
    guint timer;
};

struct looking {
    struct node_core *node;
    struct look *look;
    look_fn fn;
    void *thing;
};

struct look_round *look_round_new(struct node_core *node)
{
    struct look_round *round = g_new0(struct look_round, 1);
    round->node = node;
    round->wanted = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return round;
}

static void check_over(struct look_round *round)
{
    if (round->over || round->open > 0 || (round->open_late > 0 && !round->late_over))
        return;
    round->over = true;
    promise_complete(&round->done);
}

static void leave(struct look_round *round, struct wanted *wanted)
{
    g_ptr_array_remove_fast(wanted->look->rounds, round);
    if (wanted->late)
        round->open_late--;
    else
        round->open--;
}

/* Tells those whom this look will do; whether anybody waits for a later one. */
static bool tell(struct look *look, guint64 number)
{
    for (guint i = look->rounds->len; i > 0; i--) {
        struct look_round *round = look->rounds->pdata[i - 1];
        struct wanted *wanted = g_hash_table_lookup(round->wanted, look);
        if (wanted->number > number)
            continue;
        leave(round, wanted);
        check_over(round);
    }
    return look->rounds->len > 0;
}

static void look_task(void *data)
{
    struct looking *looking = data;
    struct look *look = looking->look;
    bool again = !task_killed();
    while (again) {
        guint64 number = look->begun;
        bool answered = looking->fn(looking->node, looking->thing) && !task_killed();
        look->ended = number;
        if (answered)
            look->answered = number;
        look->late = !answered;
        again = tell(look, number) && !task_killed();
        if (again)
            look->begun++;
    }
    look->ended = look->begun;
    node_release(looking->node);
    g_free(looking);
}

static void begin(struct node_core *node, struct look *look, look_fn fn, void *thing)
{
    struct looking *looking = g_new(struct looking, 1);
    *looking = (struct looking){node, look, fn, thing};
    look->begun++;
    node_hold(node);
    task_spawn(node->env->tasks, look_task, looking);
}

void look_round_add(struct look_round *round, struct look *look, look_fn fn, void *thing)
{
    struct wanted *wanted = g_new(struct wanted, 1);
    *wanted = (struct wanted){look, look->begun + 1, look->late};
    g_hash_table_insert(round->wanted, look, wanted);
    if (look->late)
        round->open_late++;
    else
        round->open++;
    if (!look->rounds)
        look->rounds = g_ptr_array_new();
    g_ptr_array_add(look->rounds, round);
    if (look->begun == look->ended)
        begin(round->node, look, fn, thing);
}

static void time_is_over(void *data)
{
    struct look_round *round = data;
    round->timer = 0;
    if (round->over)
        return; /* by the last answer, in this very turn */
    round->over = true;
    promise_complete(&round->done);
}

static void late_time_is_over(void *data)
{
    struct look_round *round = data;
    const struct env *env = round->node->env;
    round->late_over = true;
    round->timer = env->ops->timer(env, LOOK_WAIT_MS - LOOK_LATE_MS, time_is_over, round);
    check_over(round);
}

static bool wait_until(struct look_round *round, guint ms, void (*over)(void *data))
{
    const struct env *env = round->node->env;
    if (round->open + round->open_late > 0)
        round->timer = env->ops->timer(env, ms, over, round);
    else
        check_over(round);
    return promise_wait(&round->done);
}

bool look_round_wait(struct look_round *round)
{
    return wait_until(round, LOOK_LATE_MS, late_time_is_over);
}

bool look_round_wait_long(struct look_round *round, guint ms)
{
    return wait_until(round, ms, time_is_over);
}

bool look_round_answered(const struct look_round *round, const struct look *look)
{
    const struct wanted *wanted = g_hash_table_lookup(round->wanted, look);
    return wanted && look->answered >= wanted->number;
}

gint64 look_round_now(const struct look_round *round)
{
    const struct env *env = round->node->env;
    return env->ops->boot_ms(env);
}

void look_round_free(struct look_round *round)
{
    const struct env *env = round->node->env;
    GHashTableIter iter;
    void *value;
    if (round->timer)
        env->ops->timer_cancel(env, round->timer);
    g_hash_table_iter_init(&iter, round->wanted);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct wanted *wanted = value;
        if (wanted->look->ended >= wanted->number ||
            !g_ptr_array_remove_fast(wanted->look->rounds, round))
            continue;
        wanted->look->late = true; /* its time is over */
    }
    g_hash_table_unref(round->wanted);
    g_free(round);
}

void look_clear(struct look *look)
{
    g_clear_pointer(&look->rounds, g_ptr_array_unref);
}
