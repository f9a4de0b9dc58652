/* See start.h. */
#include "daemons/job/start.h"
#include "io/crash.h"
#include "io/process.h"
#include "io/starter.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ID G_GUINT64_FORMAT

static bool tell_name(const struct livelock *livelock, guint64 job, int channel, GError **error)
{
    guint64 ticks = process_read_start_ticks((guint64)getpid());

    if (ticks == 0) {
        fettle_set_error(error, ENVIRONMENT, "cannot read the own start time from /proc/self/stat");
        return false;
    }
    g_autofree char *line =
        g_strdup_printf("%s %d %" ID "\n", livelock_name(livelock), getpid(), ticks);
    crash_point("job-start: send name");
    if (send(channel, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line))
        return true;
    fettle_set_error(error, CANCELED, "job %" ID " does not start: fettle-luxid is gone", job);
    return false;
}

static bool wait_for_confirmation(guint64 job, int channel, GError **error)
{
    char byte = 0;
    ssize_t got;

    crash_point("job-start: wait for confirmation");
    do
        got = read(channel, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1 && byte == STARTER_CONFIRMATION)
        return true;
    fettle_set_error(error, CANCELED,
                     "job %" ID " does not start: the channel to fettle-luxid ended before the "
                     "confirmation",
                     job);
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

struct livelock *start_job(const struct node_paths *paths, guint64 job, int channel, GError **error)
{
    g_autofree char *stem = g_strdup_printf("job-%" ID, job);
    struct livelock *livelock = livelock_make(paths, stem, error);

    hold_back_terminate();
    if (livelock != NULL && (!tell_name(livelock, job, channel, error) ||
                             !wait_for_confirmation(job, channel, error))) {
        livelock_drop(livelock);
        livelock = NULL;
    }
    if (livelock != NULL)
        crash_point("job-start: become the job");
    close(channel);
    return livelock;
}
