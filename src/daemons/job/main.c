/*
 * fettle-job: the nursery of job processes, and each of them. fettle-luxid starts it, with its
 * requests on descriptor NURSERY_REQUESTS_FD (io/nursery.h):
 *
 *     fettle-job --root DIR WORDS
 *
 * It forks one process for each job, which makes the job's lock file, waits for luxid's
 * confirmation (start.h), writes `fettle-job --root DIR JOB LOCK-NAME` over its arguments, and runs
 * the job. All thinking is core/ops/job.c's. What they log goes where luxid's log goes: a file for
 * each job would cost more than the job, and nobody would remove it.
 *
 * The nursery itself does nothing else: no thread, no loop and no chance, which all that it forks
 * would share.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "core/ops/job.h"
#include "daemons/job/start.h"
#include "daemons/job/words.h"
#include "io/crash.h"
#include "io/loop.h"
#include "io/nursery.h"
#include "io/real_env.h"

static struct {
    char *program; /* its path, as luxid has it */
    struct node_paths *paths;
} nursery;

static int complain(const GError *error)
{
    log_error("", "%s", error->message);
    return fettle_error_exit_code(error);
}

/* --- the process of a job --- */

struct run {
    guint64 job;
    const char *lock_name;
    struct env *env;
    int exit_code;
};

static void run_task(void *data)
{
    struct run *run = data;
    g_autoptr(GError) error = NULL;
    if (!job_run(run->env, run->job, run->lock_name, &error))
        run->exit_code = complain(error);
    loop_quit(run->exit_code);
}

/* `livelock` is taken. */
static int run_job(guint64 job, struct livelock *livelock)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_strdup(livelock_name(livelock));
    struct run run = {.job = job, .lock_name = name};
    const struct real_env_options options = {.livelock = livelock};
    loop_init();
    run.env = real_env_new(nursery.paths->root, ROLE_JOB, &options, &error);
    if (!run.env)
        return complain(error);
    task_spawn(run.env->tasks, run_task, &run);
    int code = loop_run();
    real_env_free(run.env);
    return code;
}

/* Nothing of the nursery may be left in it: its descriptors would keep channels open. */
static int be_child(guint64 job, int channel)
{
    g_autoptr(GError) error = NULL;
    close(NURSERY_REQUESTS_FD);
    setsid();
    signal(SIGCHLD, SIG_DFL);
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, job);
    g_autofree char *name = g_strconcat(NURSERY_PROGRAM " ", id, NULL);
    log_init(name);
    crash_become("JOB_START");
    struct livelock *livelock = start_job(nursery.paths, job, channel, &error);
    if (!livelock)
        return complain(error);
    crash_become("JOB");
    const char *const words[] = {nursery.program,         "--root", nursery.paths->root, id,
                                 livelock_name(livelock), NULL};
    if (!words_set(words))
        log_warning("",
                    "ps shows this process under the words of its nursery, not as job %s: those "
                    "were too short for its own",
                    id);
    int code = run_job(job, livelock);
    log_init(NURSERY_PROGRAM);
    return code;
}

/* --- the nursery --- */

static bool parse(int argc, char **argv, GError **error)
{
    if (argc != 4 || strcmp(argv[1], "--root") != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "usage: fettle-job --root DIR WORDS; it is started by fettle-luxid only");
        return false;
    }
    nursery.program = g_str_has_suffix(argv[0], NURSERY_SUFFIX)
                          ? g_strndup(argv[0], strlen(argv[0]) - strlen(NURSERY_SUFFIX))
                          : g_strdup(argv[0]);
    nursery.paths = node_paths_new(argv[2], error);
    return nursery.paths != NULL;
}

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

/* What main() ends with; in a child too. */
static int serve(GError **error)
{
    guint64 job;
    int channel;
    while (receive(&job, &channel, error)) {
        crash_point("nursery: fork");
        pid_t pid = fork();
        if (pid == 0)
            return be_child(job, channel);
        if (pid < 0)
            log_error("", "job %" G_GUINT64_FORMAT " does not start: no process for it: %s", job,
                      g_strerror(errno));
        close(channel);
    }
    return 0;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    log_init(NURSERY_PROGRAM);
    words_init(argc, argv);
    int code = 0;
    if (parse(argc, argv, &error)) {
        signal(SIGCHLD, SIG_IGN); /* the kernel reaps them */
        signal(SIGPIPE, SIG_IGN); /* nobody may read the log */
        code = serve(&error);
    }
    if (error)
        code = complain(error);
    node_paths_free(nursery.paths);
    g_free(nursery.program);
    return code;
}
