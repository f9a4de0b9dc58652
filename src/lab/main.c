/*
 * fettle-lab DIR: the supervisor of the lab in DIR, started by lab_up(). Says on standard output,
 * as one JSON document, whether the lab could be built, and closes it then. Its own log is
 * DIR/lab.log.
 *
 * DIR/lab.lock is locked while it lives and names it ("PID START-TIME"), so that lab_down() finds
 * it.
 */
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "io/process.h"
#include "lab/supervisor.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool take_lock(const struct layout *layout, GError **error)
{
    g_autofree char *path = layout_file(layout, "lab.lock");
    int fd = open(path, O_RDWR | O_CLOEXEC); /* made by lab_up(): not here, it may be gone */
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || ftruncate(fd, 0) != 0 ||
        dprintf(fd, "%d %" G_GUINT64_FORMAT "\n", (int)getpid(),
                process_read_start_ticks((guint64)getpid())) < 0) {
        fettle_set_error(error, WRONG_STATE, "another supervisor serves the lab in %s (%s: %s)",
                         layout->dir, path, g_strerror(errno));
        return false;
    }
    /* The descriptor stays open for the life of the process. Asked again under the lock: somebody
     * may have removed the lab since its description was read. */
    if (layout_exists(layout->dir))
        return true;
    fettle_set_error(error, UNKNOWN_ENTITY, "the lab in %s was removed meanwhile", layout->dir);
    return false;
}

static bool open_log(const struct layout *layout, GError **error)
{
    g_autofree char *path = layout_file(layout, "lab.log");
    int fd = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && dup2(fd, STDERR_FILENO) >= 0;
    if (!ok)
        fettle_set_error(error, STORAGE, "cannot open %s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool become_supervisor(const struct layout *layout, GError **error)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL); /* they come through a signalfd */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    if (chdir("/") != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        fettle_set_error(error, ENVIRONMENT, "cannot adopt orphans: %s", g_strerror(errno));
        return false;
    }
    /* The lock first: before it nothing may be made that a lab_down() at this moment would not see.
     */
    return take_lock(layout, error) && open_log(layout, error);
}

static void say_result(const GError *error)
{
    json_autoptr answer =
        error ? json_make("{s:[s, s]}", "error", fettle_error_name(error), error->message)
              : json_make("{s:b}", "result", true);
    g_autofree char *text = json_to_text(answer);
    printf("%s\n", text);
    fflush(stdout);
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nowhere, STDOUT_FILENO);
    close(nowhere);
}

static struct supervisor *build(const struct layout *layout, GError **error)
{
    return become_supervisor(layout, error) ? supervisor_new(layout, error) : NULL;
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    g_autoptr(GError) error = NULL;
    log_init("fettle-lab");
    if (argc != 2) {
        g_printerr(
            "fettle-lab is started by `fettle lab up`; its one argument is the lab's folder\n");
        return 2;
    }
    layout_autoptr layout = layout_load(argv[1], &error);
    struct supervisor *supervisor = layout ? build(layout, &error) : NULL;
    say_result(error);
    if (supervisor)
        supervisor_run(supervisor);
    log_error("", "%s", error->message);
    return fettle_error_exit_code(error);
}
