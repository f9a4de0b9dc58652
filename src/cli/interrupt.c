/* See interrupt.h. */
#include "cli/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/error.h"

static volatile sig_atomic_t interrupts;
static sigset_t mask_while_waiting;
static bool catching;

static void count_interrupt(int number)
{
    (void)number;
    if (++interrupts > 1)
        _exit(130);
}

void cli_interrupt_catch(void)
{
    if (catching)
        return;
    /* Blocked but while waiting, so that none comes between a look at the counter and the wait. */
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, &mask_while_waiting);
    sigdelset(&mask_while_waiting, SIGINT);
    struct sigaction action = {.sa_handler = count_interrupt};
    sigaction(SIGINT, &action, NULL);
    catching = true;
}

bool cli_interrupted(void)
{
    return interrupts > 0;
}

static char *ids_text(const guint64 *jobs, guint count)
{
    GString *ids = g_string_new(NULL);
    for (guint i = 0; i < count; i++)
        g_string_append_printf(ids, "%s%" G_GUINT64_FORMAT, i > 0 ? " " : "", jobs[i]);
    return g_string_free(ids, FALSE);
}

void cli_set_detached(const guint64 *jobs, guint count, GError **error)
{
    g_autofree char *ids = ids_text(jobs, count);
    if (count == 1)
        fettle_set_error(error, DETACHED,
                         "job %s goes on; come back to it with: fettle job watch %s", ids, ids);
    else
        fettle_set_error(error, DETACHED,
                         "jobs %s go on; come back to one with: fettle job watch ID, or see them "
                         "with: fettle job list",
                         ids);
}

void cli_prefix_followed(const guint64 *jobs, guint count, GError **error)
{
    g_autofree char *ids = ids_text(jobs, count);
    if (count == 1)
        g_prefix_error(error, "how job %s ends is not known here: ", ids);
    else
        g_prefix_error(error, "how jobs %s end is not known here: ", ids);
}

enum cli_wait cli_wait_readable(int fd, int timeout_ms, bool stop)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    struct timespec limit = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    for (;;) {
        if (stop && interrupts > 0)
            return CLI_WAIT_INTERRUPTED;
        int got = ppoll(&watched, 1, timeout_ms < 0 ? NULL : &limit,
                        catching ? &mask_while_waiting : NULL);
        if (got >= 0 || errno != EINTR)
            return got == 0 ? CLI_WAIT_TIMEOUT : CLI_WAIT_READABLE;
    }
}
