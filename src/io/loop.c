/* See loop.h. */
#include "io/loop.h"
#include "base/error.h"
#include "base/task.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void loop_init(void)
{
    struct rlimit files;

    task_set_poster(task_post_glib, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* --- running --- */

static GMainLoop *running;
static int exit_code;

static void (*on_terminate)(void *data);
static void *on_terminate_data;

static void terminate(void)
{
    if (on_terminate == NULL)
        loop_quit(0);
    else
        on_terminate(on_terminate_data);
}

void loop_on_terminate(void (*fn)(void *data), void *data)
{
    on_terminate = fn;
    on_terminate_data = data;
}

/* GLib would start a thread for them, which costs a job's process a tenth of its time. */
static int signals[2]; /* a pipe: one byte for each */

static void on_signal(int number)
{
    char byte = (char)number;
    int code = errno;

    /* A full pipe says enough. */
    (void)!write(signals[1], &byte, 1);
    errno = code;
}

static gboolean signals_cb(gint fd, GIOCondition condition, gpointer unused)
{
    char byte;

    while (read(fd, &byte, 1) == 1) {
        if (byte == SIGTERM)
            terminate();
        else
            loop_quit(0);
    }
    return G_SOURCE_CONTINUE;
}

static guint listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    if (!g_unix_open_pipe(signals, FD_CLOEXEC, NULL))
        g_error("cannot make a pipe: %s", g_strerror(errno));
    g_unix_set_fd_nonblocking(signals[0], TRUE, NULL);
    g_unix_set_fd_nonblocking(signals[1], TRUE, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    return g_unix_fd_add(signals[0], G_IO_IN, signals_cb, NULL);
}

static void ignore_signals(guint source)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    g_source_remove(source);
    close(signals[0]);
    close(signals[1]);
}

int loop_run(void)
{
    guint source = listen_to_signals();

    exit_code = 0;
    running = g_main_loop_new(NULL, FALSE);
    g_main_loop_run(running);
    g_clear_pointer(&running, g_main_loop_unref);
    ignore_signals(source);
    return exit_code;
}

void loop_quit(int code)
{
    exit_code = code;
    if (running != NULL)
        g_main_loop_quit(running);
}

static void wake_cb(void *data)
{
}

bool loop_run_until(const bool *done, guint timeout_ms)
{
    gint64 end = loop_boot_ms() + timeout_ms;
    guint timer = loop_timer(timeout_ms, wake_cb, NULL);

    while (!*done && loop_boot_ms() < end)
        g_main_context_iteration(NULL, TRUE);
    loop_timer_cancel(timer);
    return *done;
}

static void loop_sleep_cb(void *data)
{
    promise_complete(data);
}

bool loop_sleep(guint ms)
{
    struct promise over = {0};
    guint timer = loop_timer(ms, loop_sleep_cb, &over);
    bool alive = promise_wait(&over);

    loop_timer_cancel(timer);
    return alive;
}

/* --- posting --- */

struct posted {
    void (*fn)(void *data);
    void *data;
};

static gboolean posted_cb(gpointer data)
{
    struct posted *posted = data;
    posted->fn(posted->data);
    return G_SOURCE_REMOVE;
}

void loop_post(void (*fn)(void *data), void *data)
{
    struct posted *posted = g_new(struct posted, 1);
    *posted = (struct posted){fn, data};
    g_idle_add_full(G_PRIORITY_DEFAULT, posted_cb, posted, g_free);
}

/* --- after a turn: a source that is asked first whether it is ready, and never is --- */

static GArray *turn_ends; /* struct posted */

static gboolean turn_prepare(GSource *source, gint *ret_timeout_ms)
{
    *ret_timeout_ms = -1;
    for (guint i = 0; i < turn_ends->len; i++) {
        struct posted end = g_array_index(turn_ends, struct posted, i);
        end.fn(end.data);
    }
    g_array_set_size(turn_ends, 0);
    return FALSE;
}

static gboolean turn_dispatch(GSource *source, GSourceFunc unused, gpointer data)
{
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs turn_funcs = {.prepare = turn_prepare, .dispatch = turn_dispatch};

void loop_after_turn(void (*fn)(void *data), void *data)
{
    const struct posted end = {fn, data};

    if (turn_ends == NULL) {
        turn_ends = g_array_new(FALSE, FALSE, sizeof(struct posted));
        GSource *source = g_source_new(&turn_funcs, sizeof(GSource));
        g_source_set_name(source, "end of a turn");
        g_source_set_priority(source, G_MININT);
        g_source_attach(source, NULL);
    }
    g_array_append_val(turn_ends, end);
}

/* --- timers: a sequence sorted by time, with one GSource that is ready when the first is due ---
 */

struct timer {
    gint64 due_us; /* monotonic */
    guint handle;
    void (*fn)(void *data);
    void *data;
};

static struct {
    GSource *source;
    GSequence *by_time;
    GHashTable *by_handle; /* handle -> GSequenceIter */
    guint last_handle;
} timers;

static gint compare_timers(gconstpointer a, gconstpointer b, gpointer data)
{
    const struct timer *left = a;
    const struct timer *right = b;

    if (left->due_us != right->due_us)
        return left->due_us < right->due_us ? -1 : 1;
    return left->handle < right->handle ? -1 : left->handle > right->handle;
}

static void arm(void)
{
    GSequenceIter *first = g_sequence_get_begin_iter(timers.by_time);
    gint64 due = -1;

    if (!g_sequence_iter_is_end(first))
        due = ((const struct timer *)g_sequence_get(first))->due_us;
    g_source_set_ready_time(timers.source, due);
}

static gboolean timers_dispatch(GSource *source, GSourceFunc unused, gpointer data)
{
    gint64 now = g_source_get_time(source);

    for (;;) {
        GSequenceIter *first = g_sequence_get_begin_iter(timers.by_time);
        if (g_sequence_iter_is_end(first))
            break;
        struct timer timer = *(const struct timer *)g_sequence_get(first);
        if (timer.due_us > now)
            break;
        g_hash_table_remove(timers.by_handle, GUINT_TO_POINTER(timer.handle));
        g_sequence_remove(first);
        timer.fn(timer.data);
    }
    arm();
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs timers_funcs = {.dispatch = timers_dispatch};

guint loop_timer(guint ms, void (*fn)(void *data), void *data)
{
    if (timers.source == NULL) {
        timers.source = g_source_new(&timers_funcs, sizeof(GSource));
        g_source_set_name(timers.source, "timers");
        g_source_attach(timers.source, NULL);
        timers.by_time = g_sequence_new(g_free);
        timers.by_handle = g_hash_table_new(NULL, NULL);
    }
    struct timer *timer = g_new(struct timer, 1);
    *timer = (struct timer){
        .due_us = g_get_monotonic_time() + (gint64)ms * 1000, .fn = fn, .data = data};
    do
        timer->handle = ++timers.last_handle;
    while (timer->handle == 0 ||
           g_hash_table_contains(timers.by_handle, GUINT_TO_POINTER(timer->handle)));
    guint handle = timer->handle;
    GSequenceIter *place = g_sequence_insert_sorted(timers.by_time, timer, compare_timers, NULL);
    g_hash_table_insert(timers.by_handle, GUINT_TO_POINTER(handle), place);
    arm();
    return handle;
}

void loop_timer_cancel(guint handle)
{
    GSequenceIter *place = NULL;

    if (timers.source != NULL)
        place = g_hash_table_lookup(timers.by_handle, GUINT_TO_POINTER(handle));
    if (place == NULL)
        return;
    g_hash_table_remove(timers.by_handle, GUINT_TO_POINTER(handle));
    g_sequence_remove(place);
    arm();
}

/* --- clocks --- */

gint64 loop_boot_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (gint64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

gint64 loop_wall_us(void)
{
    static gsize read_once;
    static gint64 ahead_us;
    if (g_once_init_enter(&read_once)) {
        const char *ahead_ms = g_getenv("FETTLE_CLOCK_AHEAD_MS");
        ahead_us = ahead_ms != NULL ? g_ascii_strtoll(ahead_ms, NULL, 10) * 1000 : 0;
        g_once_init_leave(&read_once, 1);
    }
    return g_get_real_time() + ahead_us;
}

/* --- folders --- */

struct folder_watch {
    int fd;
    guint source;
    void (*changed)(const char *name, void *data);
    void *data;
};

static gboolean folder_cb(gint fd, GIOCondition condition, gpointer data)
{
    struct folder_watch *watch = data;
    char buffer[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t len = read(fd, buffer, sizeof buffer);

    for (ssize_t at = 0; at < len;) {
        const struct inotify_event *event = (const struct inotify_event *)(buffer + at);
        at += (ssize_t)(sizeof *event + event->len);
        if ((event->mask & IN_Q_OVERFLOW) != 0)
            watch->changed(NULL, watch->data);
        else if (event->len > 0)
            watch->changed(event->name, watch->data);
    }
    return G_SOURCE_CONTINUE;
}

struct folder_watch *folder_watch_new(const char *folder,
                                      void (*changed)(const char *name, void *data), void *data,
                                      GError **error)
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (fd < 0 || inotify_add_watch(fd, folder,
                                    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                        IN_ONLYDIR) < 0) {
        fettle_set_error(error, STORAGE, "cannot watch the folder %s: %s", folder,
                         g_strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct folder_watch *watch = g_new0(struct folder_watch, 1);
    watch->fd = fd;
    watch->changed = changed;
    watch->data = data;
    watch->source = g_unix_fd_add(fd, G_IO_IN, folder_cb, watch);
    return watch;
}

void folder_watch_free(struct folder_watch *watch)
{
    if (watch == NULL)
        return;
    g_source_remove(watch->source);
    close(watch->fd);
    g_free(watch);
}
