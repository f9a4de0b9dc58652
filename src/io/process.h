/*
 * Processes of other programs: started, watched, killed, and found again after our own death. Used
 * by backend/ for QEMU and nbdkit.
 *
 * A process is held by a pidfd, so a signal never hits a stranger that got its number; its death is
 * an event of the loop. It is named on disk by (pid, start time), which together are never used
 * twice while a host is up. A child that we started gets its own session and outlives us; after our
 * restart it is adopted by that name.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct process;

/* Called once from the loop, after the process has ended: its files are closed and its locks are
 * free. */
typedef void (*process_exit_fn)(struct process *process, void *data);

#define PROCESS_KEEP_FDS 64

struct process_options {
    const char *const *argv; /* argv[0] is looked up in PATH */
    const char *errors_path; /* standard output and error are appended to it, which is no link;
                              * NULL: thrown away */
    int errors_fd;           /* takes them instead; 0: none does */
    const char *const *environment; /* "NAME=value" on top of ours; NULL: nothing */
    const int *keep_fds;            /* become 3, 4, … in the child; nothing else is inherited */
    guint keep_fd_count;            /* at most PROCESS_KEEP_FDS */
    process_exit_fn exited;         /* may be NULL */
    void *data;
};

/* ENVIRONMENT if the program cannot be started. */
struct process *process_spawn(const struct process_options *options, GError **error);

/* The words that run `argv` as a child of this process that does not outlive it, and gets no new
 * privileges: given to process_spawn() here, not after another fork. g_strfreev() them. */
char **process_bound(const char *const *argv);

/* Takes over a process that is not our child. UNKNOWN_ENTITY if it has ended, or if the pid is
 * another's by now. */
struct process *process_adopt(guint64 pid, guint64 start_ticks, process_exit_fn exited, void *data,
                              GError **error);

guint64 process_pid(const struct process *process);
guint64 process_start_ticks(const struct process *process);
bool process_ended(const struct process *process);
/* Exit code of a child that has ended; 128 + signal if it was killed; -1 if unknown (adopted, or
 * still alive). */
int process_exit_code(const struct process *process);

/* Whose it is. False if it has ended, or if its user ids are not all the same. */
bool process_user(const struct process *process, guint32 *ret_uid);

/* Sends a signal; nothing happens if it has ended. */
void process_signal(const struct process *process, int signal);

/* In a task: waits for the end, at most `timeout_ms`. False: it still lives, or we were killed
 * while waiting. */
bool process_wait(struct process *process, guint timeout_ms);

/* In a task: SIGKILL, and the exit seen. TIMEOUT if the kernel does not let it go (a disk that
 * hangs). */
bool process_kill(struct process *process, GError **error);

/* Stops watching; the process lives on. NULL is allowed. */
void process_free(struct process *process);

/* Start time of a process in clock ticks since boot, from /proc/PID/stat; 0 if there is no such
 * process. */
guint64 process_read_start_ticks(guint64 pid);

/* What it has used of the host: processor time, memory, and since when it is there; nothing is
 * touched if there is no such process. */
void process_figures(guint64 pid, guint64 *ret_cpu_us, guint64 *ret_resident_bytes,
                     guint64 *ret_uptime_us);

/* Pid of the one process that has `argument` among its arguments; 0 if none has. Looks at all of
 * /proc, and waits up to two seconds for a process that stands in the middle of its exec: only for
 * finding a child whose pid could not be written down any more. */
guint64 process_find_by_argument(const char *argument);

/* Absolute name of a program or module of ours: in FETTLE_LIBEXEC_DIR if that is set; else beside
 * the running program or elsewhere in the build tree that it was built in; else where it was
 * installed. Free with g_free(). */
char *program_path(const char *name);
