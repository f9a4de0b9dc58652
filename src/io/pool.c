/* See pool.h. */
#include "io/pool.h"

#include "base/error.h"
#include "base/task.h"
#include "io/loop.h"

struct pool {
    const char *what;
    GThreadPool *threads;
    guint most;
    guint under_way; /* atomic: run or wait */
};

/* Shared by the task and the thread; its end is the loop's. */
struct run {
    struct pool *pool;
    void (*fn)(void *work);
    void (*free_work)(void *work);
    void *work;
    struct promise done;
    bool abandoned; /* of the loop alone: nobody waits any more */
};

static void run_done(void *data)
{
    struct run *run = data;
    if (!run->abandoned) {
        promise_complete(&run->done);
        return;
    }
    run->free_work(run->work);
    g_free(run);
}

static void run_in_thread(void *data, void *unused)
{
    struct run *run = data;
    run->fn(run->work);
    g_atomic_int_add(&run->pool->under_way, -1); /* the last look at the pool */
    loop_post(run_done, run);
}

struct pool *pool_new(const char *what, guint threads, guint waiting)
{
    struct pool *pool = g_new0(struct pool, 1);
    pool->what = what;
    pool->most = threads + waiting;
    pool->threads = g_thread_pool_new(run_in_thread, NULL, (gint)threads, FALSE, NULL);
    return pool;
}

void pool_free(struct pool *pool)
{
    g_thread_pool_free(pool->threads, FALSE, TRUE);
    g_free(pool);
}

bool pool_run(struct pool *pool, void (*fn)(void *work), void (*free_work)(void *work), void *work,
              GError **error)
{
    if (!task_self()) {
        fn(work);
        return true;
    }
    if ((guint)g_atomic_int_get(&pool->under_way) >= pool->most) {
        free_work(work);
        fettle_set_error(error, TEMPORARY, "%u %s are under way already; try again in a moment",
                         pool->most, pool->what);
        return false;
    }
    struct run *run = g_new0(struct run, 1);
    *run = (struct run){.pool = pool, .fn = fn, .free_work = free_work, .work = work};
    g_atomic_int_inc(&pool->under_way);
    g_thread_pool_push(pool->threads, run, NULL);
    if (!promise_wait(&run->done) && !run->done.done) {
        run->abandoned = true;
        return fettle_set_ended(error, "the process");
    }
    g_free(run);
    return true;
}
