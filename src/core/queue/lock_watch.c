/* See lock_watch.h. */
#include "core/queue/lock_watch.h"

#include <string.h>

#include "core/query/query_rows.h"

/* What one look has found. */
struct seen {
    struct lock_states *states; /* the rows live in it */
    GPtrArray *rows;            /* struct query_lock */
    GHashTable *by_name;        /* -> struct query_lock */
};

struct lock_watch {
    const struct queue_context *context;
    void (*changed)(const char *name, void *data);
    void *data;
    struct seen seen;
    bool (*wanted)(void *data);
    bool goes_on;
};

static void seen_clear(struct seen *seen)
{
    g_clear_pointer(&seen->by_name, g_hash_table_unref);
    g_clear_pointer(&seen->rows, g_ptr_array_unref);
    g_clear_pointer(&seen->states, lock_states_free);
}

/* `states` is taken. */
static void seen_init(struct seen *seen, struct lock_states *states)
{
    seen->states = states;
    seen->rows = query_lock_rows(states);
    seen->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < seen->rows->len; i++) {
        struct query_lock *lock = seen->rows->pdata[i];
        g_hash_table_insert(seen->by_name, (void *)lock->name, lock);
    }
}

struct lock_watch *lock_watch_new(const struct queue_context *context,
                                  void (*changed)(const char *name, void *data), void *data)
{
    struct lock_watch *watch = g_new0(struct lock_watch, 1);
    *watch = (struct lock_watch){.context = context, .changed = changed, .data = data};
    seen_init(&watch->seen, lock_states_new());
    return watch;
}

void lock_watch_free(struct lock_watch *watch)
{
    if (!watch)
        return;
    seen_clear(&watch->seen);
    g_free(watch);
}

const void *lock_watch_row(const struct lock_watch *watch, const char *name)
{
    return g_hash_table_lookup(watch->seen.by_name, name);
}

/* --- what is not as it was --- */

static bool are_equal(const GPtrArray *left, const GPtrArray *right)
{
    if (left->len != right->len)
        return false;
    for (guint i = 0; i < left->len; i++) {
        const struct lock_state *a = left->pdata[i], *b = right->pdata[i];
        if (a->mode != b->mode || strcmp(a->owner->job, b->owner->job) != 0 ||
            strcmp(a->owner->livelock, b->owner->livelock) != 0)
            return false;
    }
    return true;
}

static bool is_as_it_was(const struct query_lock *before, const struct query_lock *now)
{
    return before && now && are_equal(before->owners, now->owners) &&
           are_equal(before->waiting, now->waiting);
}

static void tell_of(const struct lock_watch *watch, const struct seen *before)
{
    for (guint i = 0; i < watch->seen.rows->len; i++) {
        const struct query_lock *now = watch->seen.rows->pdata[i];
        if (!is_as_it_was(g_hash_table_lookup(before->by_name, now->name), now))
            watch->changed(now->name, watch->data);
    }
    for (guint i = 0; i < before->rows->len; i++) {
        const struct query_lock *gone = before->rows->pdata[i];
        if (!lock_watch_row(watch, gone->name))
            watch->changed(gone->name, watch->data);
    }
}

bool lock_watch_look(struct lock_watch *watch, GError **error)
{
    struct lock_states *states =
        env_call_record(watch->context->env, NODE_LOCAL, ROLE_WCONFD, "list_all_locks", NULL,
                        follow_stamp(watch->context->follow), 0, 0, error);
    if (!states)
        return false;
    struct seen before = watch->seen;
    seen_init(&watch->seen, states);
    tell_of(watch, &before);
    seen_clear(&before);
    return true;
}

/* --- again and again --- */

static void look_task(void *data)
{
    struct lock_watch *watch = data;
    const struct env *env = watch->context->env;
    /* A wconfd that does not answer has changed nothing. */
    while (env_sleep(env, LOCK_WATCH_MS) && watch->wanted(watch->data))
        lock_watch_look(watch, NULL);
    watch->goes_on = false;
}

void lock_watch_go_on(struct lock_watch *watch, bool (*wanted)(void *data))
{
    watch->wanted = wanted;
    if (watch->goes_on)
        return;
    watch->goes_on = true;
    task_spawn(watch->context->env->tasks, look_task, watch);
}
