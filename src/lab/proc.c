/*
 * Ending processes by pidfd (proc.h).
 */
#include "lab/proc.h"

#include "base/error.h"
#include "lab/net.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_TIMEOUT_MS 5000
#define KILL_ROUNDS 50

int proc_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool proc_signal(int pidfd, int signal)
{
    return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0;
}

bool proc_stop(int pidfd, guint timeout_ms)
{
    siginfo_t info = {.si_pid = 0};
    int result = proc_signal(pidfd, SIGSTOP) ? 0 : -1;
    for (guint waited = 0; result == 0 && info.si_pid == 0 && waited <= timeout_ms; waited++) {
        if (waited > 0)
            g_usleep(1000);
        result =
            waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WSTOPPED | WEXITED | WNOHANG | WNOWAIT);
    }
    return result == 0 && info.si_pid != 0;
}

bool proc_wait(int pidfd, guint timeout_ms)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    int result;
    do {
        result = poll(&wait, 1, (int)timeout_ms);
    } while (result < 0 && errno == EINTR);
    return result > 0;
}

struct space {
    dev_t device;
    ino_t inode;
};

static bool in_spaces(pid_t pid, const GArray *spaces)
{
    char path[32];
    struct stat about;
    g_snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
    if (stat(path, &about) != 0)
        return false; /* ended, or a zombie: it holds nothing any more */
    for (guint i = 0; i < spaces->len; i++) {
        const struct space *space = &g_array_index(spaces, struct space, i);
        if (about.st_ino == space->inode && about.st_dev == space->device)
            return true;
    }
    return false;
}

/* Kills what is there now. Out: how many were found, and one that did not end in time. */
static guint kill_round(const GArray *spaces, pid_t *ret_stuck)
{
    g_autoptr(GArray) killed = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) pids = g_array_new(FALSE, FALSE, sizeof(pid_t));
    g_autoptr(GDir) processes = g_dir_open("/proc", 0, NULL);
    const char *name;
    while (processes && (name = g_dir_read_name(processes))) {
        pid_t pid = (pid_t)atoi(name);
        if (pid <= 0 || pid == getpid() || !in_spaces(pid, spaces))
            continue;
        int pidfd = proc_open(pid);
        /* Asked again behind the pidfd: the pid may have got another owner in between. */
        if (pidfd >= 0 && in_spaces(pid, spaces) && proc_signal(pidfd, SIGKILL)) {
            g_array_append_val(killed, pidfd);
            g_array_append_val(pids, pid);
        } else if (pidfd >= 0) {
            close(pidfd);
        }
    }
    for (guint i = 0; i < killed->len; i++) {
        int pidfd = g_array_index(killed, int, i);
        if (!proc_wait(pidfd, KILL_TIMEOUT_MS))
            *ret_stuck = g_array_index(pids, pid_t, i);
        close(pidfd);
    }
    return killed->len;
}

bool proc_kill_netns(const GPtrArray *names, GError **error)
{
    g_autoptr(GArray) spaces = g_array_new(FALSE, FALSE, sizeof(struct space));
    for (guint i = 0; i < names->len; i++) {
        struct stat about;
        int fd = net_open(g_ptr_array_index(names, i));
        if (fd < 0)
            continue;
        if (fstat(fd, &about) == 0) {
            struct space space = {about.st_dev, about.st_ino};
            g_array_append_val(spaces, space);
        }
        close(fd);
    }
    pid_t stuck = 0;
    for (int round = 0; round < KILL_ROUNDS && stuck == 0; round++)
        if (kill_round(spaces, &stuck) == 0)
            return true;
    if (stuck != 0)
        fettle_set_error(error, INTERNAL,
                         "process %d of the lab was killed and has not ended after %d s",
                         (int)stuck, KILL_TIMEOUT_MS / 1000);
    else
        fettle_set_error(error, INTERNAL,
                         "processes of the lab are born faster than they are killed");
    return false;
}
