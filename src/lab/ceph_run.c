/* See ceph_run.h. */
#include "lab/ceph_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/error.h"
#include "io/files.h"
#include "lab/ceph.h"
#include "lab/proc.h"

#define END_TIMEOUT_MS 20000
#define STOP_TIMEOUT_MS 5000

struct ceph_run {
    char *dir, *netns, *address, *log;
    int pidfds[CEPH_DAEMONS]; /* -1: does not run */
    bool power, paused;
};

/* In the child, between fork and exec. */
static void detach_cb(gpointer data)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
}

static bool start_one(struct ceph_run *run, guint number, GError **error)
{
    g_auto(GStrv) words = ceph_command(run->dir, number);
    g_auto(GStrv) argv = ceph_inside(run->netns, (const char *const *)words);
    g_autofree char *name = g_strdup_printf("%s.log", ceph_daemon(number));
    g_autofree char *path = g_build_filename(run->log, name, NULL);
    g_autoptr(GError) local = NULL;
    int log = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    GPid pid = 0;
    bool ok =
        g_spawn_async_with_fds("/", argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD,
                               detach_cb, NULL, &pid, -1, log, log, &local);
    if (ok)
        run->pidfds[number] = proc_open(pid);
    else
        fettle_set_error(error, ENVIRONMENT, "cannot start ceph-%s: %s", ceph_daemon(number),
                         local->message);
    if (log >= 0)
        close(log);
    return ok;
}

/* The last one first: an OSD that ends says so to the monitor. */
static void stop_all(struct ceph_run *run)
{
    for (guint i = CEPH_DAEMONS; i > 0; i--) {
        int *pidfd = &run->pidfds[i - 1];
        if (*pidfd < 0)
            continue;
        proc_signal(*pidfd, SIGCONT);
        proc_signal(*pidfd, SIGTERM);
        if (!proc_wait(*pidfd, END_TIMEOUT_MS)) {
            proc_signal(*pidfd, SIGKILL);
            proc_wait(*pidfd, STOP_TIMEOUT_MS);
        }
        close(*pidfd);
        *pidfd = -1;
    }
    run->power = run->paused = false;
}

static bool start_all(struct ceph_run *run, GError **error)
{
    for (guint i = 0; i < CEPH_DAEMONS; i++)
        if (!start_one(run, i, error)) {
            stop_all(run);
            return false;
        }
    run->power = true;
    return true;
}

struct ceph_run *ceph_run_new(const struct layout *layout, GError **error)
{
    struct ceph_run *run = g_new0(struct ceph_run, 1);
    run->dir = layout_ceph(layout);
    run->netns = layout_switch(layout);
    run->address = layout_switch_address(layout);
    run->log = g_build_filename(layout->dir, "log", "ceph", NULL);
    for (guint i = 0; i < CEPH_DAEMONS; i++)
        run->pidfds[i] = -1;
    /* On failure the process ends, and what was started goes with the namespace. */
    bool ok = files_make_folder(run->log, 0755, error) &&
              ceph_make(run->dir, run->address, error) && start_all(run, error) &&
              ceph_settle(run->dir, run->netns, error);
    return ok ? run : NULL;
}

bool ceph_run_power(struct ceph_run *run, bool on, GError **error)
{
    if (on == run->power)
        return true;
    if (on)
        return start_all(run, error);
    stop_all(run);
    return true;
}

bool ceph_run_pause(struct ceph_run *run, bool pause, GError **error)
{
    if (!run->power) {
        fettle_set_error(error, WRONG_STATE, "ceph has no power");
        return false;
    }
    for (guint i = 0; i < CEPH_DAEMONS; i++)
        if (pause)
            proc_stop(run->pidfds[i], STOP_TIMEOUT_MS);
        else
            proc_signal(run->pidfds[i], SIGCONT);
    run->paused = pause;
    return true;
}

json_t *ceph_run_to_json(const struct ceph_run *run)
{
    g_autofree char *conf = ceph_conf(run->dir);
    return json_make("{s:s, s:s, s:b, s:b}", "address", run->address, "conf", conf, "power",
                     run->power, "paused", run->paused);
}
