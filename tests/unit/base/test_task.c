/*
 * Tests of base/task.h on a loop of our own, so that the order of turns is under control: waits,
 * wakes, groups and their end, promises, the fair mutex, stacks; and once on GLib's loop.
 */
#include "base/limits.h"
#include "base/task.h"

#include <string.h>

/* --- a loop by hand --- */

struct item {
    void (*fn)(void *data);
    void *data;
};
static GQueue items = G_QUEUE_INIT;
static GString *trace;

static void post(void (*fn)(void *data), void *data, void *ctx)
{
    struct item *item = g_new(struct item, 1);
    *item = (struct item){fn, data};
    g_queue_push_tail(&items, item);
}

static bool turn(void)
{
    struct item *item = g_queue_pop_head(&items);
    if (item == NULL)
        return false;
    item->fn(item->data);
    g_free(item);
    return true;
}

static void turn_all(void)
{
    while (turn())
        ;
}

static void setup(void)
{
    task_set_poster(post, NULL);
    trace = g_string_new(NULL);
}

static void teardown(const char *expected)
{
    turn_all();
    g_assert_cmpstr(trace->str, ==, expected);
    g_string_free(trace, TRUE);
    g_assert_null(task_self());
}

/* --- waits and wakes --- */

static struct task *sleeper;

static void waiter(void *name)
{
    sleeper = task_self();
    g_string_append_printf(trace, "%s+ ", (char *)name);
    bool alive = task_wait();
    g_string_append_printf(trace, "%s%s ", (char *)name, alive ? "!" : "x");
}

static void test_wait(void)
{
    setup();
    task_spawn(NULL, waiter, "a");
    g_assert_cmpstr(trace->str, ==, ""); /* not before the next turn */
    turn_all();
    g_assert_cmpstr(trace->str, ==, "a+ ");
    task_wake(sleeper);
    g_assert_cmpstr(trace->str, ==, "a+ "); /* waking does not run it */
    task_wake(sleeper);
    g_assert_cmpuint(items.length, ==, 1); /* a second wake is the same wake */
    teardown("a+ a! ");
}

static void wake_first(void *unused)
{
    task_wake(task_self());
    task_wake(task_self());
    bool alive = task_wait();
    g_string_append(trace, alive ? "remembered " : "killed ");
    sleeper = task_self();
    task_wait(); /* remembered once only */
    g_string_append(trace, "second ");
}

static void test_wake_before_wait(void)
{
    setup();
    task_spawn(NULL, wake_first, NULL);
    turn_all();
    g_assert_cmpstr(trace->str, ==, "remembered ");
    task_wake(sleeper);
    teardown("remembered second ");
}

static void spawner(void *unused)
{
    g_string_append(trace, "outer ");
    task_spawn(NULL, waiter, "inner");
    g_string_append(trace, "outer-end ");
}

static void test_spawn_inherits_group(void)
{
    setup();
    struct task_group *group = task_group_new();
    task_spawn(group, spawner, NULL);
    turn_all();
    g_assert_cmpstr(trace->str, ==, "outer outer-end inner+ ");
    task_group_kill(group);
    task_group_unref(group);
    teardown("outer outer-end inner+ innerx ");
}

/* --- groups --- */

static void persistent(void *unused)
{
    g_string_append(trace, task_killed() ? "dead " : "alive ");
    for (int i = 0; i < 3; i++)
        g_string_append(trace, task_wait() ? "on " : "off ");
}

static void test_kill(void)
{
    setup();
    struct task_group *group = task_group_new();
    struct task_group *other = task_group_new();
    task_spawn(group, persistent, NULL);
    task_spawn(other, waiter, "b");
    turn_all();
    g_assert_false(task_group_killed(group));
    task_group_kill(group);
    task_group_kill(group);
    g_assert_true(task_group_killed(group));
    g_assert_false(task_group_killed(other));
    task_spawn(group, persistent, NULL); /* runs, so that it can free its data; waits fail */
    task_group_unref(group);
    turn_all();
    task_wake(sleeper);
    task_group_unref(other);
    teardown("alive b+ off off off dead off off off b! ");
}

static void suicide(void *group)
{
    task_group_kill(group);
    g_string_append(trace, task_wait() ? "on " : "off ");
}

static void test_kill_by_own_task(void)
{
    setup();
    struct task_group *group = task_group_new();
    task_spawn(group, suicide, group);
    turn_all();
    task_group_unref(group);
    teardown("off ");
}

/* --- promises --- */

static void promise_waiter(void *promise)
{
    bool alive = promise_wait(promise);
    g_string_append(trace, alive ? "kept " : "broken ");
}

static void test_promise(void)
{
    setup();
    struct promise early = {0}, late = {0};
    promise_complete(&early);
    task_spawn(NULL, promise_waiter, &early);
    task_spawn(NULL, promise_waiter, &late);
    turn_all();
    g_assert_cmpstr(trace->str, ==, "kept ");
    promise_complete(&late);
    teardown("kept kept ");
}

/* A wake that was meant for something else does not end the wait. */
static void woken_promise_waiter(void *promise)
{
    sleeper = task_self();
    task_wake(task_self());
    promise_waiter(promise);
}

static void test_promise_spurious(void)
{
    setup();
    struct promise promise = {0};
    task_spawn(NULL, woken_promise_waiter, &promise);
    turn_all();
    task_wake(sleeper);
    turn_all();
    g_assert_cmpstr(trace->str, ==, "");
    promise_complete(&promise);
    teardown("kept ");
}

static void test_promise_killed(void)
{
    setup();
    struct task_group *group = task_group_new();
    struct promise never = {0}, just_before = {0};
    task_spawn(group, promise_waiter, &never);
    task_spawn(group, promise_waiter, &just_before);
    turn_all();
    promise_complete(&just_before);
    task_group_kill(group);
    turn_all();
    g_assert_null(never.waiter);
    g_assert_false(never.done);
    g_assert_true(just_before.done); /* the owner can tell that the completer was there */
    task_group_unref(group);
    teardown("broken broken ");
}

/* --- mutex --- */

static struct task_mutex mutex = TASK_MUTEX_INIT;
static struct task *holders[8];

struct locker {
    const char *name;
    int slot;
};

static void locker(void *data)
{
    struct locker *self = data;
    holders[self->slot] = task_self();
    if (!task_mutex_lock(&mutex)) {
        g_string_append_printf(trace, "%s:no ", self->name);
        return;
    }
    g_string_append_printf(trace, "%s:in ", self->name);
    task_wait();
    g_string_append_printf(trace, "%s:out ", self->name);
    task_mutex_unlock(&mutex);
}

static void test_mutex_fair(void)
{
    setup();
    struct locker a = {"a", 0}, b = {"b", 1}, c = {"c", 2};
    task_spawn(NULL, locker, &a);
    task_spawn(NULL, locker, &b);
    task_spawn(NULL, locker, &c);
    turn_all();
    g_assert_cmpstr(trace->str, ==, "a:in ");
    task_wake(holders[0]);
    turn_all();
    task_wake(holders[1]);
    turn_all();
    task_wake(holders[2]);
    teardown("a:in a:out b:in b:out c:in c:out ");
    g_assert_false(mutex.locked);
}

/* b is killed while it waits, c after the lock was handed to it but before it ran: d must get it
 * both times. */
static void test_mutex_killed(void)
{
    setup();
    struct task_group *doomed = task_group_new(), *late = task_group_new();
    struct locker a = {"a", 0}, b = {"b", 1}, c = {"c", 2}, d = {"d", 3};
    task_spawn(NULL, locker, &a);
    task_spawn(doomed, locker, &b);
    task_spawn(late, locker, &c);
    task_spawn(NULL, locker, &d);
    turn_all();
    task_group_kill(doomed);
    turn_all();
    task_wake(holders[0]);
    g_assert_true(turn()); /* a unlocks: handed to c, whose turn is still to come */
    task_group_kill(late);
    turn_all();
    task_wake(holders[3]);
    task_group_unref(doomed);
    task_group_unref(late);
    teardown("a:in b:no a:out c:no d:in d:out ");
    g_assert_false(mutex.locked);
    g_assert_cmpuint(mutex.waiters.length, ==, 0);
}

/* --- stacks --- */

/* Uses most of a stack, so that a smaller one would hit the guard page. */
static void deep(void *unused)
{
    volatile char block[KIB(128)];
    memset((char *)block, 7, sizeof block);
    task_wake(task_self());
    task_wait();
    g_assert_cmpint(block[100], ==, 7);
}

static void test_stacks(void)
{
    setup();
    for (int round = 0; round < 2; round++) { /* the second uses the pool */
        for (int i = 0; i < 3 * LIMIT_TASK_STACKS_KEPT; i++)
            task_spawn(NULL, deep, NULL);
        turn_all();
    }
    teardown("");
}

static int __attribute__((noinline)) endless(int depth)
{
    volatile char block[4096];
    block[0] = (char)depth;
    if (depth < 0)
        return 0;
    return endless(depth + 1) + block[0];
}

static void overflow(void *unused)
{
    g_printerr("%d", endless(0));
}

static void test_guard_page(void)
{
    if (g_test_subprocess()) {
        setup();
        task_spawn(NULL, overflow, NULL);
        turn_all();
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_failed();
}

/* What only a suspended task's stack points to is in use, not leaked: the leak sanitizer must know.
 */
static void holder(void *unused)
{
    g_autofree char *block = g_strdup("held by a stack only");
    sleeper = task_self();
    task_wait();
    g_string_append(trace, block);
}

static void test_suspended_at_exit(void)
{
    if (g_test_subprocess()) {
        setup();
        task_spawn(NULL, holder, NULL);
        turn_all();
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed();
}

/* --- GLib --- */

static int left;

static void hopper(void *loop)
{
    for (int i = 0; i < 1000; i++) {
        task_wake(task_self());
        g_assert_true(task_wait());
        task_spawn(NULL, deep, NULL);
    }
    if (--left == 0)
        g_main_loop_quit(loop);
}

static gboolean tick_cb(gpointer count)
{
    (*(int *)count)++;
    return G_SOURCE_CONTINUE;
}

struct poster_check {
    GMainLoop *loop;
    int order[4];
    int count;
};
static struct poster_check check;

static void note_cb(void *number)
{
    check.order[check.count++] = GPOINTER_TO_INT(number);
    if (check.count == 1)
        task_post_glib(note_cb, GINT_TO_POINTER(4), NULL); /* posted from a turn: comes last */
    if (check.count == 4)
        g_main_loop_quit(check.loop);
}

static void test_glib_order(void)
{
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    check = (struct poster_check){.loop = loop};
    for (int i = 1; i <= 3; i++)
        task_post_glib(note_cb, GINT_TO_POINTER(i), NULL);
    g_assert_cmpint(check.count, ==, 0);
    g_main_loop_run(loop);
    for (int i = 0; i < 4; i++)
        g_assert_cmpint(check.order[i], ==, i + 1);
}

static void test_glib(void)
{
    task_set_poster(NULL, NULL);
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    left = 5;
    int ticks = 0;
    for (int i = 0; i < 5; i++)
        task_spawn(NULL, hopper, loop);
    guint source = g_timeout_add(0, tick_cb, &ticks);
    g_main_loop_run(loop);
    g_source_remove(source);
    while (g_main_context_iteration(NULL, FALSE))
        ;                         /* the tasks spawned last */
    g_assert_cmpint(ticks, >, 0); /* tasks that wake themselves do not starve other sources */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/task/wait", test_wait);
    g_test_add_func("/task/wake-before-wait", test_wake_before_wait);
    g_test_add_func("/task/spawn-inherits-group", test_spawn_inherits_group);
    g_test_add_func("/task/kill", test_kill);
    g_test_add_func("/task/kill-by-own-task", test_kill_by_own_task);
    g_test_add_func("/task/promise", test_promise);
    g_test_add_func("/task/promise-spurious", test_promise_spurious);
    g_test_add_func("/task/promise-killed", test_promise_killed);
    g_test_add_func("/task/mutex-fair", test_mutex_fair);
    g_test_add_func("/task/mutex-killed", test_mutex_killed);
    g_test_add_func("/task/stacks", test_stacks);
    g_test_add_func("/task/guard-page", test_guard_page);
    g_test_add_func("/task/suspended-at-exit", test_suspended_at_exit);
    g_test_add_func("/task/glib-order", test_glib_order);
    g_test_add_func("/task/glib", test_glib);
    return g_test_run();
}
