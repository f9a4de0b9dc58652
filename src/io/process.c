/*
 * Starting, watching and killing processes by pidfd, on GLib's loop. See process.h.
 */
#include "io/process.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/crash.h"
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* One task that waits for the end; on the heap, so that a killed task leaves nothing behind on its
 * stack. */
struct waiter {
    struct promise over;
    struct process *process; /* NULL once it has ended or is watched no more: it may be freed */
    bool ended;
    guint timer;
};

struct process {
    guint64 pid;
    guint64 start_ticks;
    int pidfd;
    guint source;
    bool ours; /* our child, so we reap it */
    bool ended;
    int exit_code;
    process_exit_fn exited;
    void *data;
    GPtrArray *waiters; /* struct waiter, borrowed from the waiting tasks */
};

/* Fields 3 and following of /proc/PID/stat, so that field n is [n - 2]; NULL if there is no such
 * process, or only what is left to reap of it. */
static char **read_stat(guint64 pid)
{
    g_autofree char *name = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/stat", pid);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(name, &text, NULL, NULL))
        return NULL;
    /* The program's name stands in brackets and may hold anything; what follows the last bracket is
     * a space and field 3. */
    const char *rest = strrchr(text, ')');
    if (rest == NULL)
        return NULL;
    char **fields = g_strsplit(rest + 1, " ", 24);
    if (g_strv_length(fields) > 20 && fields[1][0] != 'Z' && fields[1][0] != 'X')
        return fields;
    g_strfreev(fields);
    return NULL;
}

guint64 process_read_start_ticks(guint64 pid)
{
    g_auto(GStrv) fields = read_stat(pid);
    return fields == NULL ? 0 : g_ascii_strtoull(fields[20], NULL, 10);
}

void process_figures(guint64 pid, guint64 *ret_cpu_us, guint64 *ret_resident_bytes,
                     guint64 *ret_uptime_us)
{
    g_auto(GStrv) fields = read_stat(pid);
    guint64 tick_us = G_USEC_PER_SEC / (guint64)MAX(sysconf(_SC_CLK_TCK), 1);
    guint64 page = (guint64)MAX(sysconf(_SC_PAGESIZE), 0);
    if (fields == NULL || g_strv_length(fields) < 23)
        return;
    guint64 user = g_ascii_strtoull(fields[12], NULL, 10);
    guint64 system = g_ascii_strtoull(fields[13], NULL, 10);
    guint64 since_us = g_ascii_strtoull(fields[20], NULL, 10) * tick_us;
    guint64 now_us = (guint64)loop_boot_ms() * 1000;
    *ret_cpu_us = (user + system) * tick_us;
    *ret_resident_bytes = g_ascii_strtoull(fields[22], NULL, 10) * page;
    *ret_uptime_us = now_us > since_us ? now_us - since_us : 0;
}

bool process_user(const struct process *process, guint32 *ret_uid)
{
    g_autofree char *name = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/status", process->pid);
    g_autofree char *text = NULL;
    const char *line = g_file_get_contents(name, &text, NULL, NULL) ? strstr(text, "\nUid:") : NULL;
    guint real, effective, saved, files;
    if (line == NULL ||
        sscanf(line, "\nUid: %u %u %u %u", &real, &effective, &saved, &files) != 4 ||
        effective != real || saved != real || files != real)
        return false;
    *ret_uid = real;
    return true;
}

/* A process without arguments that is no kernel thread stands in the middle of its exec: the kernel
 * takes the old ones away, and lets the parent go on, before the new ones can be read. */
static bool is_in_exec(guint64 pid)
{
    const guint64 kernel_thread = 0x00200000; /* PF_KTHREAD of include/linux/sched.h */
    const guint64 young_s = 30; /* older ones have taken their arguments away for good */
    g_auto(GStrv) fields = read_stat(pid);
    if (fields == NULL || (g_ascii_strtoull(fields[7], NULL, 10) & kernel_thread) != 0)
        return false;
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    guint64 started_s = g_ascii_strtoull(fields[20], NULL, 10) / (guint64)sysconf(_SC_CLK_TCK);
    return started_s + young_s > (guint64)now.tv_sec;
}

static guint64 find_by_argument(const char *argument, bool *ret_again)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    const char *name;
    while (proc != NULL && (name = g_dir_read_name(proc)) != NULL) {
        guint64 pid = g_ascii_strtoull(name, NULL, 10);
        g_autofree char *path = g_build_filename("/proc", name, "cmdline", NULL);
        g_autofree char *line = NULL;
        gsize len = 0;
        if (pid == 0 || !g_file_get_contents(path, &line, &len, NULL))
            continue;
        if (len == 0 && is_in_exec(pid))
            *ret_again = true;
        for (const char *word = line; word < line + len; word += strlen(word) + 1)
            if (strcmp(word, argument) == 0 && process_read_start_ticks(pid) != 0)
                return pid;
    }
    return 0;
}

guint64 process_find_by_argument(const char *argument)
{
    const guint tries = 1000, pause_us = 2000;
    for (guint i = 0; i < tries; i++) {
        bool again = false;
        guint64 pid = find_by_argument(argument, &again);
        if (pid != 0 || !again)
            return pid;
        g_usleep(pause_us);
    }
    return 0;
}

static void process_reap(struct process *process)
{
    siginfo_t info = {0};
    if (!process->ours ||
        waitid((idtype_t)P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG) != 0)
        return;
    if (info.si_pid != 0)
        process->exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

/* Its end and the end of the time may both come before the waiting task goes on. */
static void waiter_wake(struct waiter *waiter)
{
    if (!waiter->over.done)
        promise_complete(&waiter->over);
}

static void release_waiters(struct process *process)
{
    for (guint i = 0; i < process->waiters->len; i++) {
        struct waiter *waiter = process->waiters->pdata[i];
        waiter->process = NULL;
        waiter->ended = process->ended;
        waiter_wake(waiter);
    }
    g_ptr_array_set_size(process->waiters, 0);
}

static gboolean process_exited(gint fd, GIOCondition condition, gpointer data)
{
    struct process *process = data;
    process->source = 0;
    process->ended = true;
    process_reap(process);
    release_waiters(process);
    if (process->exited != NULL)
        process->exited(process, process->data); /* may free it */
    return G_SOURCE_REMOVE;
}

static struct process *process_watch(guint64 pid, int pidfd, bool ours, process_exit_fn exited,
                                     void *data)
{
    struct process *process = g_new0(struct process, 1);
    process->pid = pid;
    process->pidfd = pidfd;
    process->ours = ours;
    process->exit_code = -1;
    process->exited = exited;
    process->data = data;
    process->waiters = g_ptr_array_new();
    process->source = g_unix_fd_add(pidfd, G_IO_IN, process_exited, process);
    return process;
}

/* Copies the descriptors out of the way of the numbers they shall get, so that no dup2 hits one
 * still to be copied. False: no descriptor is left. */
static bool prepare_fds(const struct process_options *options, posix_spawn_file_actions_t *actions,
                        int *copies)
{
    bool copied = true;
    const char *errors = options->errors_path != NULL ? options->errors_path : "/dev/null";
    posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (options->errors_fd > 0)
        posix_spawn_file_actions_adddup2(actions, options->errors_fd, 1);
    else
        posix_spawn_file_actions_addopen(actions, 1, errors,
                                         O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
    posix_spawn_file_actions_adddup2(actions, 1, 2);
    for (guint i = 0; i < options->keep_fd_count; i++) {
        copies[i] = fcntl(options->keep_fds[i], F_DUPFD_CLOEXEC, 3 + PROCESS_KEEP_FDS);
        copied = copied && copies[i] >= 0;
        posix_spawn_file_actions_adddup2(actions, copies[i], 3 + (int)i);
    }
    posix_spawn_file_actions_addclosefrom_np(actions, 3 + (int)options->keep_fd_count);
    return copied;
}

static void prepare_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setflags(attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static char **environment_of(const struct process_options *options)
{
    char **environment = crash_environment();
    for (const char *const *entry = options->environment; entry != NULL && *entry != NULL;
         entry++) {
        const char *value = strchr(*entry, '=');
        g_assert(value != NULL);
        g_autofree char *name = g_strndup(*entry, (gsize)(value - *entry));
        environment = g_environ_setenv(environment, name, value + 1, TRUE);
    }
    return environment;
}

struct process *process_spawn(const struct process_options *options, GError **error)
{
    g_assert(options->keep_fd_count <= PROCESS_KEEP_FDS);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int copies[PROCESS_KEEP_FDS];
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    bool copied = prepare_fds(options, &actions, copies);
    prepare_attributes(&attributes);

    g_auto(GStrv) environment = environment_of(options);
    pid_t pid = 0;
    crash_point("process: spawn");
    int failure = copied ? posix_spawnp(&pid, options->argv[0], &actions, &attributes,
                                        (char *const *)options->argv, environment)
                         : EMFILE;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    for (guint i = 0; i < options->keep_fd_count; i++)
        if (copies[i] >= 0)
            close(copies[i]);
    if (failure != 0) {
        fettle_set_error(error, ENVIRONMENT, "cannot start %s: %s", options->argv[0],
                         g_strerror(failure));
        return NULL;
    }

    /* The child cannot be reaped by anybody but us, so the pid is still its own. */
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) { /* no descriptor is left */
        fettle_set_error(error, ENVIRONMENT, "cannot watch %s: %s; it was ended", options->argv[0],
                         g_strerror(errno));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return NULL;
    }
    struct process *process =
        process_watch((guint64)pid, pidfd, true, options->exited, options->data);
    process->start_ticks = process_read_start_ticks((guint64)pid);
    return process;
}

/* A parent that ends before setpriv has asked for its death is not waited for: the shell, which
 * comes after that, finds that it has another one. */
char **process_bound(const char *const *argv)
{
    g_autofree char *parent = g_strdup_printf("%d", (int)getpid());
    g_autoptr(GStrvBuilder) words = g_strv_builder_new();
    g_strv_builder_add_many(words, "setpriv", "--pdeathsig", "KILL", "--no-new-privs", "sh", "-c",
                            "[ $PPID = \"$0\" ] && exec \"$@\"", parent, NULL);
    g_strv_builder_addv(words, (const char **)argv);
    return g_strv_builder_end(words);
}

struct process *process_adopt(guint64 pid, guint64 start_ticks, process_exit_fn exited, void *data,
                              GError **error)
{
    int pidfd = pid == 0 || pid > G_MAXINT ? -1 : pidfd_open((pid_t)pid, 0);
    /* The start time is read after the pidfd was opened: if it is the right one, so is the pidfd.
     */
    if (pidfd < 0 || start_ticks == 0 || process_read_start_ticks(pid) != start_ticks) {
        if (pidfd >= 0)
            close(pidfd);
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "process %" G_GUINT64_FORMAT " started at tick %" G_GUINT64_FORMAT
                         " has ended",
                         pid, start_ticks);
        return NULL;
    }
    struct process *process = process_watch(pid, pidfd, false, exited, data);
    process->start_ticks = start_ticks;
    return process;
}

guint64 process_pid(const struct process *process)
{
    return process->pid;
}

guint64 process_start_ticks(const struct process *process)
{
    return process->start_ticks;
}

bool process_ended(const struct process *process)
{
    return process->ended;
}

int process_exit_code(const struct process *process)
{
    return process->exit_code;
}

void process_signal(const struct process *process, int signal)
{
    if (process->ended)
        return;
    crash_point("process: signal");
    pidfd_send_signal(process->pidfd, signal, NULL, 0);
}

static void process_wait_expired(void *data)
{
    struct waiter *waiter = data;
    waiter->timer = 0;
    waiter_wake(waiter);
}

bool process_wait(struct process *process, guint timeout_ms)
{
    if (process->ended)
        return true;
    struct waiter *waiter = g_new0(struct waiter, 1);
    waiter->process = process;
    waiter->timer = loop_timer(timeout_ms, process_wait_expired, waiter);
    g_ptr_array_add(process->waiters, waiter);
    promise_wait(&waiter->over);
    if (waiter->process != NULL)
        g_ptr_array_remove_fast(waiter->process->waiters, waiter);
    loop_timer_cancel(waiter->timer);
    bool ended = waiter->ended;
    g_free(waiter);
    return ended;
}

bool process_kill(struct process *process, GError **error)
{
    guint64 pid = process->pid;
    process_signal(process, SIGKILL);
    if (process_wait(process, LIMIT_KILL_WAIT_MS))
        return true;
    fettle_set_error(error, TIMEOUT,
                     "process %" G_GUINT64_FORMAT " was sent SIGKILL but has not ended in %u ms",
                     pid, LIMIT_KILL_WAIT_MS);
    return false;
}

void process_free(struct process *process)
{
    if (process == NULL)
        return;
    if (process->source != 0)
        g_source_remove(process->source);
    release_waiters(process);
    close(process->pidfd);
    g_ptr_array_unref(process->waiters);
    g_free(process);
}

static char *existing(const char *folder, const char *sub, const char *name)
{
    char *path = g_build_filename(folder, sub, name, NULL);
    if (g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return path;
    g_free(path);
    return NULL;
}

/* Looks below `folder` to the depth at which our build tree keeps what it builds: src/LAYER/MODULE.
 */
static char *find_below(const char *folder, const char *name, int depth)
{
    char *found = existing(folder, "", name);
    g_autoptr(GDir) dir = found == NULL && depth > 0 ? g_dir_open(folder, 0, NULL) : NULL;
    const char *sub;
    while (found == NULL && dir != NULL && (sub = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, sub, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR))
            found = find_below(path, name, depth - 1);
    }
    return found;
}

/* The build tree of a program at `folder`, recognised by the folder that meson keeps there; NULL if
 * installed. */
static char *build_root(const char *folder)
{
    g_autofree char *at = g_strdup(folder);
    while (strlen(at) > 1) {
        g_autofree char *mark = g_build_filename(at, "meson-private", NULL);
        if (g_file_test(mark, G_FILE_TEST_IS_DIR))
            return g_steal_pointer(&at);
        char *parent = g_path_get_dirname(at);
        g_free(at);
        at = parent;
    }
    return NULL;
}

char *program_path(const char *name)
{
    const char *named = g_getenv("FETTLE_LIBEXEC_DIR");
    if (named != NULL)
        return g_build_filename(named, name, NULL);
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = g_path_get_dirname(self != NULL ? self : "/");
    char *found = existing(folder, "", name);
    g_autofree char *root = found == NULL ? build_root(folder) : NULL;
    if (found == NULL && root != NULL) {
        g_autofree char *sources = g_build_filename(root, "src", NULL);
        found = find_below(sources, name, 2);
    }
    return found != NULL ? found : g_build_filename(FETTLE_LIBEXEC_DIR, name, NULL);
}
