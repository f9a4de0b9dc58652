/* Bounded children at back ends; see volume_children.h. */
#include "backend/volume/volume_children.h"

#include <string.h>
#include <unistd.h>

#include "backend/tool.h"
#include "base/limits.h"
#include "base/task.h"
#include "io/loop.h"

#define BURY_LOOK_MS 60000u
#define HANGS "it hangs; see to what is behind it, and ask again once it answers"

struct child {
    struct volume_children *children;
    char *backend, *from; /* UUIDs of those that it touches; NULL: not, or not any more */
    struct tool *tool;
    bool killed;
};

/* A task that waits for a place; on the heap, as it may be killed meanwhile. */
struct place_wait {
    struct promise over;
    guint timer;
};

struct volume_children {
    guint limit_ms;
    GPtrArray *all;     /* struct child */
    GPtrArray *waiting; /* struct place_wait, of tasks */
    bool ended;         /* freed by its owner; the last child frees the rest */
};

struct volume_children *volume_children_new(guint limit_ms)
{
    struct volume_children *children = g_new0(struct volume_children, 1);
    children->limit_ms = limit_ms;
    children->all = g_ptr_array_new();
    children->waiting = g_ptr_array_new();
    return children;
}

static void free_if_over(struct volume_children *children)
{
    if (!children->ended || children->all->len > 0 || children->waiting->len > 0)
        return;
    g_ptr_array_unref(children->all);
    g_ptr_array_unref(children->waiting);
    g_free(children);
}

void volume_children_free(struct volume_children *children)
{
    if (!children)
        return;
    children->ended = true;
    free_if_over(children);
}

static bool touches(const struct child *child, const char *backend)
{
    return g_strcmp0(child->backend, backend) == 0 || g_strcmp0(child->from, backend) == 0;
}

static guint count(const struct volume_children *children, const char *backend, bool killed)
{
    guint found = 0;
    for (guint i = 0; i < children->all->len; i++) {
        const struct child *child = children->all->pdata[i];
        found += touches(child, backend) && (child->killed || !killed);
    }
    return found;
}

guint volume_children_hanging(const struct volume_children *children, const char *backend)
{
    return count(children, backend, true);
}

static void wait_over(void *data)
{
    struct place_wait *wait = data;
    if (!wait->over.done)
        promise_complete(&wait->over);
}

static void wait_expired(void *data)
{
    ((struct place_wait *)data)->timer = 0;
    wait_over(data);
}

static bool has_place(const struct volume_children *children, const char *backend, const char *from)
{
    return children->all->len < LIMIT_VOLUME_CHILDREN &&
           count(children, backend, false) < LIMIT_BACKEND_CHILDREN &&
           (!from || count(children, from, false) < LIMIT_BACKEND_CHILDREN);
}

static bool await_place(struct volume_children *children, const char *backend, const char *from,
                        gint64 deadline)
{
    while (!has_place(children, backend, from)) {
        gint64 left = deadline - loop_boot_ms();
        if (left <= 0)
            return false;
        struct place_wait *wait = g_new0(struct place_wait, 1);
        wait->timer = loop_timer((guint)left, wait_expired, wait);
        g_ptr_array_add(children->waiting, wait);
        bool alive = promise_wait(&wait->over);
        g_ptr_array_remove_fast(children->waiting, wait);
        loop_timer_cancel(wait->timer);
        g_free(wait);
        if (!alive)
            return false;
    }
    return true;
}

static void child_free(struct child *child)
{
    struct volume_children *children = child->children;
    g_ptr_array_remove_fast(children->all, child);
    for (guint i = 0; i < children->waiting->len; i++)
        wait_over(children->waiting->pdata[i]);
    tool_free(child->tool);
    g_free(child->backend);
    g_free(child->from);
    g_free(child);
    free_if_over(children);
}

/* Waits for one that the kernel does not let go. */
static void bury(void *data)
{
    struct child *child = data;
    while (!tool_wait(child->tool, BURY_LOOK_MS) && !task_killed())
        continue;
    child_free(child);
}

bool volume_child_end(struct child *child)
{
    if (!child)
        return true;
    bool gone = !task_killed() && tool_kill(child->tool, NULL);
    child->killed = true;
    if (gone || task_killed())
        child_free(child);
    else
        task_spawn(NULL, bury, child);
    return gone;
}

/* False: it has come to no end, and the child is seen to. */
static bool await_end(struct child *child, gint64 deadline, guint limit_ms, GError **error)
{
    if (tool_wait(child->tool, (guint)MAX(deadline - loop_boot_ms(), 0)))
        return true;
    child->killed = true;
    if (task_killed())
        fettle_set_ended(error, "the process that waited for a back end");
    else
        fettle_set_error(error, TIMEOUT, "no answer within %u s: " HANGS, limit_ms / 1000);
    volume_child_end(child);
    return false;
}

/* A call at that one alone has come back: what touches another one, too, hangs there. */
static void acquit(struct volume_children *children, const char *backend)
{
    for (guint i = 0; i < children->all->len; i++) {
        struct child *child = children->all->pdata[i];
        if (!child->killed || !child->backend || !child->from)
            continue;
        if (!strcmp(child->backend, backend))
            g_clear_pointer(&child->backend, g_free);
        else if (!strcmp(child->from, backend))
            g_clear_pointer(&child->from, g_free);
    }
}

/* A place, and the child in it; NULL with an error. */
static struct child *start(struct volume_children *children, const char *backend, const char *from,
                           const char *const *argv, const int *fds, guint fd_count, GError **error)
{
    if (!await_place(children, backend, from, loop_boot_ms() + children->limit_ms)) {
        guint before = count(children, backend, false);
        if (task_killed())
            fettle_set_ended(error, "the process that waited for a back end");
        else
            fettle_set_error(error, TIMEOUT, "%u calls before this one have not ended: " HANGS,
                             from ? MAX(before, count(children, from, false)) : before);
        free_if_over(children);
        return NULL;
    }
    struct tool *tool = tool_start_with(argv, fds, fd_count, error);
    if (!tool)
        return NULL;
    struct child *child = g_new0(struct child, 1);
    *child = (struct child){children, g_strdup(backend), g_strdup(from), tool, false};
    g_ptr_array_add(children->all, child);
    return child;
}

/* Each child has its own: whoever has taken one over changes none that another one reads. */
static guint open_texts(const char *const *texts, int *fds, GError **error)
{
    guint count = 0;
    while (texts && texts[count] && count < CHILD_TEXTS) {
        fds[count] = tool_text(texts[count], error);
        if (fds[count] < 0)
            break;
        count++;
    }
    return count;
}

int volume_children_run(struct volume_children *children, const char *backend, const char *from,
                        const char *const *argv, const char *const *texts, guint64 more_ms,
                        char **ret_output, GError **error)
{
    int fds[CHILD_TEXTS] = {0};
    guint fd_count = open_texts(texts, fds, error);
    bool opened = !texts || !texts[fd_count];
    struct child *child =
        opened ? start(children, backend, from, argv, fds, fd_count, error) : NULL;
    while (fd_count > 0)
        close(fds[--fd_count]);
    guint limit_ms = (guint)MIN(children->limit_ms + more_ms, G_MAXINT);
    if (!child || !await_end(child, loop_boot_ms() + limit_ms, limit_ms, error))
        return -1;
    if (!from)
        acquit(children, backend);
    int code = tool_exit_code(child->tool);
    *ret_output = tool_output(child->tool, LIMIT_TOOL_OUTPUT_BYTES);
    child_free(child);
    return code;
}

struct child *volume_children_start(struct volume_children *children, const char *backend,
                                    const char *const *argv, const int *fds, guint count,
                                    GError **error)
{
    return start(children, backend, NULL, argv, fds, count, error);
}

struct tool *volume_child_tool(const struct child *child)
{
    return child->tool;
}
