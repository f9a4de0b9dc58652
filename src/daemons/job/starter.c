/*
 * fettle-job-start: becomes a job process in two steps (architecture.md 6). Started by luxid with a
 * channel as descriptor STARTER_CHANNEL_FD:
 *
 *     fettle-job-start --root DIR JOB
 *
 * It makes and locks the job's lock file, sends "NAME PID START_TICKS\n", waits for one byte, and
 * only then becomes fettle-job, which inherits the lock. If the channel ends before that byte, the
 * job does not start: the lock file is removed and the program ends with the exit code of
 * "canceled".
 */
#include "io/starter.h"
#include "base/log.h"
#include "io/crash.h"
#include "io/files.h"
#include "io/livelock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct start {
    const char *root;
    const char *job;
    struct node_paths *paths;
    struct livelock *livelock;
};

static bool parse(int argc, char **argv, struct start *start, GError **error)
{
    guint64 id;

    if (argc != 4 || strcmp(argv[1], "--root") != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "usage: fettle-job-start --root DIR JOB; it is started by fettle-luxid "
                         "only");
        return false;
    }
    if (!g_ascii_string_to_unsigned(argv[3], 10, 1, G_MAXINT64, &id, NULL)) {
        fettle_set_error(error, WRONG_INPUT, "\"%s\" is no job id", argv[3]);
        return false;
    }
    start->root = argv[2];
    start->job = argv[3];
    start->paths = node_paths_new(start->root, error);
    return start->paths != NULL;
}

/* Field 22 of /proc/self/stat; the second one is in brackets and may have blanks. */
static bool own_start_ticks(guint64 *ret_ticks, GError **error)
{
    g_autofree char *text = NULL;

    if (g_file_get_contents("/proc/self/stat", &text, NULL, NULL)) {
        const char *rest = strrchr(text, ')');
        g_auto(GStrv) fields = g_strsplit(rest != NULL ? rest : "", " ", 22);
        if (g_strv_length(fields) > 20 &&
            g_ascii_string_to_unsigned(fields[20], 10, 0, G_MAXUINT64, ret_ticks, NULL))
            return true;
    }
    fettle_set_error(error, ENVIRONMENT, "cannot read the own start time from /proc/self/stat");
    return false;
}

static bool tell_name(const struct start *start, GError **error)
{
    guint64 ticks;

    if (!own_start_ticks(&ticks, error))
        return false;
    g_autofree char *line = g_strdup_printf("%s %d %" G_GUINT64_FORMAT "\n",
                                            livelock_name(start->livelock), getpid(), ticks);
    crash_point("job-start: send name");
    if (send(STARTER_CHANNEL_FD, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line))
        return true;
    fettle_set_error(error, CANCELED, "job %s does not start: fettle-luxid is gone", start->job);
    return false;
}

static bool wait_for_confirmation(const struct start *start, GError **error)
{
    char byte = 0;
    ssize_t got;

    crash_point("job-start: wait for confirmation");
    do
        got = read(STARTER_CHANNEL_FD, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1 && byte == STARTER_CONFIRMATION)
        return true;
    fettle_set_error(error, CANCELED,
                     "job %s does not start: the channel to fettle-luxid ended before the "
                     "confirmation",
                     start->job);
    return false;
}

/* Who asks the job to give up is heard as soon as the job can. */
static void hold_back_terminate(void)
{
    sigset_t terminate;

    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    sigprocmask(SIG_BLOCK, &terminate, NULL);
}

/* Returns only if it fails. */
static void become_job(const struct start *start, GError **error)
{
    g_autofree char *folder = starter_bin_folder(NULL);
    g_autofree char *program = starter_program(folder, "fettle-job");
    g_autofree char *fd = g_strdup_printf("%d", livelock_pass(start->livelock));
    g_auto(GStrv) environment = crash_environment_for("JOB");
    char *argv[] = {program,
                    (char *)"--root",
                    (char *)start->root,
                    (char *)start->job,
                    fd,
                    (char *)livelock_name(start->livelock),
                    NULL};

    hold_back_terminate();
    close(STARTER_CHANNEL_FD);
    crash_point("job-start: exec");
    execve(program, argv, environment);
    fettle_set_error(error, ENVIRONMENT, "job %s does not start: cannot run %s: %s", start->job,
                     program, g_strerror(errno));
}

static bool run(struct start *start, GError **error)
{
    g_autofree char *stem = g_strdup_printf("job-%s", start->job);

    start->livelock = livelock_make(start->paths, stem, error);
    if (start->livelock == NULL)
        return false;
    if (tell_name(start, error) && wait_for_confirmation(start, error))
        become_job(start, error);
    return false;
}

int main(int argc, char **argv)
{
    struct start start = {0};
    g_autoptr(GError) error = NULL;

    log_init("fettle-job-start");
    if (!parse(argc, argv, &start, &error) || !run(&start, &error))
        log_error("", "%s", error->message);
    livelock_drop(start.livelock);
    node_paths_free(start.paths);
    return fettle_error_exit_code(error);
}
