/*
 * fettle-job: runs one job. Started by fettle-job-start, which has made and locked the job's lock
 * file and leaves its descriptor open (architecture.md 6):
 *
 *     fettle-job [--root DIR] JOB LOCK-DESCRIPTOR [LOCK-NAME]
 *
 * One process for each job, so it starts small: no option parser, no TLS, no store. All thinking is
 * core/ops/job.c's.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "core/ops/job.h"
#include "io/loop.h"
#include "io/real_env.h"

struct run {
    const char *root;
    guint64 job;
    guint64 lock_fd;
    char *lock_name;
    struct env *env;
    int exit_code;
};

static int complain(const GError *error)
{
    log_error("", "%s", error->message);
    return fettle_error_exit_code(error);
}

/* The kernel knows the name of the file that was handed over. */
static char *name_of_descriptor(guint64 fd, GError **error)
{
    char target[4096];
    g_autofree char *link = g_strdup_printf("/proc/self/fd/%" G_GUINT64_FORMAT, fd);
    ssize_t len = readlink(link, target, sizeof target - 1);
    if (len <= 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "descriptor %" G_GUINT64_FORMAT " is no lock file of a job", fd);
        return NULL;
    }
    target[len] = '\0';
    return g_path_get_basename(target);
}

static bool parse(int argc, char **argv, struct run *run, GError **error)
{
    int i = 1;
    if (argc > 2 && !strcmp(argv[1], "--root")) {
        run->root = argv[2];
        i = 3;
    }
    if (argc - i < 2 || argc - i > 3) {
        fettle_set_error(error, WRONG_INPUT,
                         "usage: fettle-job [--root DIR] JOB LOCK-DESCRIPTOR [LOCK-NAME]; it is "
                         "started by fettle-job-start only");
        return false;
    }
    if (!g_ascii_string_to_unsigned(argv[i], 10, 1, G_MAXINT64, &run->job, NULL)) {
        fettle_set_error(error, WRONG_INPUT, "\"%s\" is no job id", argv[i]);
        return false;
    }
    if (!g_ascii_string_to_unsigned(argv[i + 1], 10, 3, 65535, &run->lock_fd, NULL)) {
        fettle_set_error(error, WRONG_INPUT, "\"%s\" is no descriptor of a lock file", argv[i + 1]);
        return false;
    }
    run->lock_name =
        argc - i == 3 ? g_strdup(argv[i + 2]) : name_of_descriptor(run->lock_fd, error);
    return run->lock_name != NULL;
}

static void run_task(void *data)
{
    struct run *run = data;
    g_autoptr(GError) error = NULL;
    if (!job_run(run->env, run->job, run->lock_name, &error))
        run->exit_code = complain(error);
    loop_quit(run->exit_code);
}

int main(int argc, char **argv)
{
    struct run run = {0};
    g_autoptr(GError) error = NULL;
    log_init("fettle-job");
    if (!parse(argc, argv, &run, &error))
        return complain(error);
    struct real_env_options options = {.livelock = run.lock_name, .livelock_fd = (int)run.lock_fd};
    loop_init();
    run.env = real_env_new(run.root, ROLE_JOB, &options, &error);
    if (!run.env) {
        g_free(run.lock_name);
        return complain(error);
    }
    task_spawn(run.env->tasks, run_task, &run);
    int code = loop_run();
    real_env_free(run.env);
    g_free(run.lock_name);
    return code;
}
