/*
 * See task.h. A task's stack is entered once by setcontext() and from then on left and entered by
 * _setjmp() and _longjmp(), which make no system call. Stacks of ended tasks wait in a pool, inside
 * the loop of stack_main(), for the next task. The address sanitizer is told of every switch, and
 * the leak sanitizer of every stack in use.
 */
#undef _FORTIFY_SOURCE /* its longjmp() aborts when the jump goes to another stack */

#include "base/task.h"

#include "base/limits.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

struct task_group {
    guint refs; /* the owner's and one for each task */
    bool killed;
    GQueue tasks;
};

/* One end of a switch: the loop's own stack, or a task's. */
struct side {
    jmp_buf jump;
    const void *bottom; /* of the stack, for the address sanitizer */
    size_t size;
    void *fake_stack;
};

struct stack {
    struct side side;
    char *base; /* guard page first */
    size_t mapped;
    ucontext_t entry;
    bool entered;
    struct task *task;  /* that runs on it */
    struct stack *next; /* in the pool */
};

struct task {
    struct task_group *group;
    GList link; /* in group->tasks */
    task_fn fn;
    void *data;
    struct stack *stack; /* from the first turn on */
    bool waiting;
    bool posted;
    bool woken; /* a wake that came before its wait */
    bool ended;
};

static struct side loop_side;
static struct task *current;
static struct stack *pool;
static unsigned pool_size;
static task_poster poster = task_post_glib;
static void *poster_ctx;

void task_set_poster(task_poster post, void *ctx)
{
    poster = post != NULL ? post : task_post_glib;
    poster_ctx = ctx;
}

/* --- switching --- */

/* The arriving side calls it first; tells where the other side's stack lies. */
static void switch_finish(struct side *here, struct side *ret_other)
{
#ifdef WITH_ASAN
    const void *bottom = NULL;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(here->fake_stack, &bottom, &size);
    if (ret_other != NULL && ret_other->bottom == NULL) {
        ret_other->bottom = bottom;
        ret_other->size = size;
    }
#endif
}

static void switch_start(struct side *from, const struct side *to)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->size);
#endif
}

static void __attribute__((noinline)) switch_to(struct side *from, struct side *to)
{
    switch_start(from, to);
    if (_setjmp(from->jump) == 0)
        _longjmp(to->jump, 1);
    switch_finish(from, NULL);
}

static void __attribute__((noinline)) switch_enter(struct side *from, struct stack *stack)
{
    switch_start(from, &stack->side);
    if (_setjmp(from->jump) == 0)
        setcontext(&stack->entry);
    switch_finish(from, NULL);
}

/* --- stacks --- */

static void stack_main(unsigned high, unsigned low)
{
    struct stack *stack = (struct stack *)(((guintptr)high << 32) | (guintptr)low);
    switch_finish(&stack->side, &loop_side);
    for (;;) {
        stack->task->fn(stack->task->data);
        stack->task->ended = true;
        switch_to(&stack->side, &loop_side);
    }
}

static struct stack *stack_new(void)
{
    struct stack *stack = g_new0(struct stack, 1);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    stack->mapped = TASK_STACK_BYTES + page;
    stack->base = mmap(NULL, stack->mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack->base == MAP_FAILED || mprotect(stack->base, page, PROT_NONE) != 0)
        g_error("no memory for the stack of a task: %s", g_strerror(errno));
    stack->side.bottom = stack->base + page;
    stack->side.size = TASK_STACK_BYTES;
    if (getcontext(&stack->entry) != 0)
        g_error("getcontext: %s", g_strerror(errno));
    stack->entry.uc_stack.ss_sp = stack->base + page;
    stack->entry.uc_stack.ss_size = TASK_STACK_BYTES;
    guintptr address = (guintptr)stack;
    makecontext(&stack->entry, (void (*)(void))stack_main, 2, (unsigned)(address >> 32),
                (unsigned)(address & G_MAXUINT32));
    return stack;
}

static struct stack *stack_take(struct task *task)
{
    struct stack *stack = pool;
    if (stack != NULL) {
        pool = stack->next;
        pool_size--;
    } else {
        stack = stack_new();
    }
    stack->task = task;
#ifdef WITH_ASAN
    __lsan_register_root_region(stack->side.bottom, stack->side.size);
#endif
    return stack;
}

static void stack_give_back(struct stack *stack)
{
#ifdef WITH_ASAN
    __lsan_unregister_root_region(stack->side.bottom, stack->side.size);
#endif
    stack->task = NULL;
    if (pool_size < LIMIT_TASK_STACKS_KEPT) {
        stack->next = pool;
        pool = stack;
        pool_size++;
        return;
    }
    munmap(stack->base, stack->mapped);
    g_free(stack);
}

/* --- groups --- */

struct task_group *task_group_new(void)
{
    struct task_group *group = g_new0(struct task_group, 1);
    group->refs = 1;
    return group;
}

void task_group_unref(struct task_group *group)
{
    if (group != NULL && --group->refs == 0)
        g_free(group);
}

bool task_group_killed(const struct task_group *group)
{
    return group->killed;
}

static void resume(void *data);

static void post_resume(struct task *task)
{
    if (task->posted)
        return;
    task->posted = true;
    poster(resume, task, poster_ctx);
}

void task_group_kill(struct task_group *group)
{
    group->killed = true;
    for (GList *link = group->tasks.head; link != NULL; link = link->next) {
        struct task *task = link->data;
        if (task->waiting)
            post_resume(task);
    }
}

/* --- tasks --- */

static void task_free(struct task *task)
{
    stack_give_back(task->stack);
    if (task->group != NULL) {
        g_queue_unlink(&task->group->tasks, &task->link);
        task_group_unref(task->group);
    }
    g_free(task);
}

/* Gives the processor to a task until it waits or ends. */
static void resume(void *data)
{
    struct task *task = data;
    g_assert(current == NULL); /* handlers never nest */
    task->posted = false;
    task->waiting = false;
    task->woken = false;
    if (task->stack == NULL)
        task->stack = stack_take(task);
    current = task;
    if (task->stack->entered) {
        switch_to(&loop_side, &task->stack->side);
    } else {
        task->stack->entered = true;
        switch_enter(&loop_side, task->stack);
    }
    current = NULL;
    if (task->ended)
        task_free(task);
}

void task_spawn(struct task_group *group, task_fn fn, void *data)
{
    struct task *task = g_new0(struct task, 1);
    task->group = group != NULL ? group : (current != NULL ? current->group : NULL);
    task->fn = fn;
    task->data = data;
    task->link.data = task;
    if (task->group != NULL) {
        task->group->refs++;
        g_queue_push_tail_link(&task->group->tasks, &task->link);
    }
    post_resume(task);
}

struct task *task_self(void)
{
    return current;
}

bool task_killed(void)
{
    return current != NULL && current->group != NULL && current->group->killed;
}

bool task_wait(void)
{
    g_assert(current != NULL);
    if (task_killed())
        return false;
    if (current->woken) {
        current->woken = false;
        return true;
    }
    current->waiting = true;
    switch_to(&current->stack->side, &loop_side);
    return !task_killed();
}

void task_wake(struct task *task)
{
    if (task->waiting)
        post_resume(task);
    else
        task->woken = true;
}

/* --- promises --- */

void promise_complete(struct promise *promise)
{
    g_assert(!promise->done);
    promise->done = true;
    if (promise->waiter != NULL)
        task_wake(promise->waiter);
}

bool promise_wait(struct promise *promise)
{
    g_assert(promise->waiter == NULL);
    promise->waiter = current;
    bool alive = !task_killed();
    while (alive && !promise->done)
        alive = task_wait();
    promise->waiter = NULL;
    return alive;
}

/* --- mutexes --- */

struct mutex_waiter {
    struct task *task;
    bool granted;
};

bool task_mutex_lock(struct task_mutex *mutex)
{
    if (task_killed())
        return false;
    if (!mutex->locked) {
        mutex->locked = true;
        return true;
    }
    struct mutex_waiter self = {current, false};
    g_queue_push_tail(&mutex->waiters, &self);
    bool alive = true;
    while (alive && !self.granted)
        alive = task_wait();
    if (alive)
        return true;
    if (self.granted)
        task_mutex_unlock(mutex);
    else
        g_queue_remove(&mutex->waiters, &self);
    return false;
}

/* The lock goes to whoever has waited longest, without being free in between: that makes it fair.
 */
void task_mutex_unlock(struct task_mutex *mutex)
{
    g_assert(mutex->locked);
    struct mutex_waiter *next = g_queue_pop_head(&mutex->waiters);
    if (next == NULL) {
        mutex->locked = false;
        return;
    }
    next->granted = true;
    task_wake(next->task);
}

/* --- GLib --- */

struct posted {
    void (*fn)(void *data);
    void *data;
};

static GArray *posted_items;
static bool posted_source;

/* Runs what had been posted before this turn; what that posts gets the next turn, so other sources
 * are not starved. */
static gboolean post_dispatch_cb(void *unused)
{
    g_autoptr(GArray) batch = posted_items;
    posted_items = NULL;
    posted_source = false;
    for (guint i = 0; i < batch->len; i++) {
        const struct posted *item = &g_array_index(batch, struct posted, i);
        item->fn(item->data);
    }
    return G_SOURCE_REMOVE;
}

void task_post_glib(void (*fn)(void *data), void *data, void *ctx)
{
    struct posted item = {fn, data};
    if (posted_items == NULL)
        posted_items = g_array_new(FALSE, FALSE, sizeof item);
    g_array_append_val(posted_items, item);
    if (posted_source)
        return;
    posted_source = true;
    g_idle_add_full(G_PRIORITY_DEFAULT, post_dispatch_cb, NULL, NULL);
}
