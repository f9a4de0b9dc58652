/* See serve.h. */
#include "daemons/job/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "io/crash.h"
#include "io/nursery.h"

/* What the warm process tells the nursery, or else the exit code with which the nursery ends: luxid
 * has ended, or its request was wrong. That it has a job it tells nobody: a job's process makes its
 * lock file before it talks (DTH-07). */
#define WARM_IS_READY                                                                              \
    (-1)                  /* when it tells nothing more, it has a job, or died: the next follows   \
                           */
#define WARM_IS_LOST (-2) /* tells nothing: it died in its preparation, or could not be made */

/* --- requests --- */

static void take_channel(struct msghdr *message, int *ret_channel)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(ret_channel, CMSG_DATA(header), sizeof(int));
}

/* False without an error: luxid has ended. */
static bool receive(guint64 *ret_job, int *ret_channel, GError **error)
{
    char text[NURSERY_REQUEST_BYTES + 1] = "";
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(__alignof__(struct cmsghdr))));
    struct iovec part = {text, NURSERY_REQUEST_BYTES};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t got;
    do
        got = recvmsg(NURSERY_REQUESTS_FD, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got == 0)
        return false;
    if (got < 0) {
        fettle_set_error(error, ENVIRONMENT,
                         "no requests of fettle-luxid come as descriptor %d: %s",
                         NURSERY_REQUESTS_FD, g_strerror(errno));
        return false;
    }
    *ret_channel = -1;
    take_channel(&message, ret_channel);
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || *ret_channel < 0 ||
        strlen(text) != (size_t)got ||
        !g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT64, ret_job, NULL)) {
        fettle_set_error(error, WRONG_INPUT,
                         "a request of fettle-luxid is no job id with one descriptor");
        return false;
    }
    return true;
}

/* --- in what was forked --- */

/* Nothing of the nursery may be left in it: its descriptors would keep channels open. */
static int be_job(const struct serve_work *work, guint64 job, int channel)
{
    close(NURSERY_REQUESTS_FD);
    return work->run(job, channel);
}

static void leave_nursery(void)
{
    setsid();
    signal(SIGCHLD, SIG_DFL);
}

/* The nursery that has died hears nothing. */
static void tell(int fd, int word)
{
    (void)!write(fd, &word, sizeof word);
}

static int exit_code(const GError *error)
{
    return error ? fettle_error_exit_code(error) : 0;
}

static int be_warm(const struct serve_work *work, int told, GError **error)
{
    g_autoptr(GError) local = NULL;
    guint64 job;
    int channel;
    leave_nursery();
    crash_point("nursery: prepare");
    work->prepare();
    tell(told, WARM_IS_READY);
    bool has_job = receive(&job, &channel, &local);
    if (!has_job)
        tell(told, exit_code(local));
    close(told);
    if (has_job)
        return be_job(work, job, channel);
    work->discard();
    int code = exit_code(local);
    if (local)
        g_propagate_error(error, g_steal_pointer(&local));
    return code;
}

/* --- in the nursery --- */

static bool hear(int fd, int *ret_word)
{
    ssize_t got;
    do
        got = read(fd, ret_word, sizeof *ret_word);
    while (got < 0 && errno == EINTR);
    return got == sizeof *ret_word;
}

/* What it told last, when it has told everything; nobody is woken before that. */
static int listen_to_warm(int fd)
{
    struct pollfd end = {.fd = fd};
    int last = WARM_IS_LOST, word;
    while (poll(&end, 1, -1) < 0 && errno == EINTR)
        ;
    while (hear(fd, &word))
        last = word;
    close(fd);
    return last;
}

/* In the nursery what became of the warm process, when that is known; `*ret_child`: this is the
 * process that was forked, and the result its exit code. */
static int make_warm(const struct serve_work *work, bool *ret_child, GError **error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return WARM_IS_LOST;
    crash_point("nursery: fork");
    pid_t pid = fork();
    *ret_child = pid == 0;
    close(ends[pid == 0 ? 0 : 1]);
    if (pid == 0)
        return be_warm(work, ends[1], error);
    if (pid > 0)
        return listen_to_warm(ends[0]);
    close(ends[0]);
    return WARM_IS_LOST;
}

/* The same for a job that no warm process has taken: forked when its request is there. */
static int make_cold(const struct serve_work *work, bool *ret_child, GError **error)
{
    guint64 job;
    int channel;
    if (!receive(&job, &channel, error))
        return 0;
    pid_t pid = fork();
    *ret_child = pid == 0;
    if (pid == 0) {
        leave_nursery();
        return be_job(work, job, channel);
    }
    if (pid < 0)
        log_error("", "job %" G_GUINT64_FORMAT " does not start: no process for it: %s", job,
                  g_strerror(errno));
    close(channel);
    return WARM_IS_READY;
}

int serve_requests(const struct serve_work *work, GError **error)
{
    bool child = false;
    int outcome;
    do {
        outcome = make_warm(work, &child, error);
        if (!child && outcome == WARM_IS_LOST)
            outcome = make_cold(work, &child, error);
    } while (!child && outcome == WARM_IS_READY);
    return outcome;
}
