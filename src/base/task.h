/*
 * Tasks: stackful coroutines, so that a procedure of many steps (an opcode body, starting a guest)
 * reads from top to bottom although every step waits for the loop. The same code runs under the
 * GLib loop of a daemon and under the simulator's virtual time; base/ knows neither, both give it a
 * way to post work (task_set_poster).
 *
 * Rules: a task runs until it waits; nothing else runs in between. Waking never runs the woken task
 * at once: it is posted, so handlers do not nest. Tasks of one process belong to a group; killing a
 * group makes every wait of its tasks return false, at once and from then on: the procedure then
 * unwinds without doing anything more. Code that waits therefore must check the result, and loops
 * must end on false.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

struct task;
struct task_group;

typedef void (*task_fn)(void *data);

/* How work is posted to the loop: `post(fn, data, ctx)` must call fn(data) later, from the loop, in
 * order of posting. */
typedef void (*task_poster)(void (*fn)(void *data), void *data, void *ctx);
void task_set_poster(task_poster post, void *ctx);

/* A poster for GLib's default main context. */
void task_post_glib(void (*fn)(void *data), void *data, void *ctx);

/* A group lives until its last task has ended and task_group_unref() was called. */
struct task_group *task_group_new(void);
void task_group_unref(struct task_group *group);
void task_group_kill(struct task_group *group);
bool task_group_killed(const struct task_group *group);

/* Starts `fn(data)` as a task at the next turn of the loop. `group` NULL: the group of the running
 * task, if any. If the group is killed before that turn `fn` runs all the same, so that it can free
 * `data`; its waits fail, and task_killed() tells it. */
void task_spawn(struct task_group *group, task_fn fn, void *data);

/* The running task; NULL outside of tasks. */
struct task *task_self(void);

/* Whether the running task's group has been killed. */
bool task_killed(void);

/* Suspends the running task until task_wake(); returns false if its group has been killed. A wake
 * that comes before the wait is remembered (once). */
bool task_wait(void);
void task_wake(struct task *task);

/* A value that arrives once. Whoever completes it may do so before or after the wait. Embedded,
 * plain. */
struct promise {
    bool done;
    struct task *waiter;
};
void promise_complete(struct promise *promise);
/* False if the group was killed before completion; the completer must then not touch `promise` any
 * more, so promises that an outsider completes live on the heap or are detached by their owner.
 * After false `done` still tells whether the completer has been there: if so, it will not come
 * again. */
bool promise_wait(struct promise *promise);

/* A fair mutex between tasks of one process. lock() returns false, without the lock, if the group
 * is killed. */
struct task_mutex {
    bool locked;
    GQueue waiters;
};
#define TASK_MUTEX_INIT                                                                            \
    {                                                                                              \
        false, G_QUEUE_INIT                                                                        \
    }
bool task_mutex_lock(struct task_mutex *mutex);
void task_mutex_unlock(struct task_mutex *mutex);
