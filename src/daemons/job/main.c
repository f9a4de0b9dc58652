/*
 * fettle-job: the nursery of job processes, and each of them. fettle-luxid starts it, with its
 * requests on descriptor NURSERY_REQUESTS_FD (io/nursery.h):
 *
 *     fettle-job --root DIR WORDS
 *
 * It forks one process for each job (serve.h), which makes the job's lock file, waits for luxid's
 * confirmation (start.h), writes `fettle-job --root DIR JOB LOCK-NAME` over its arguments, and runs
 * the job. All thinking is core/ops/runner.c's. What they log goes where luxid's log goes: a file
 * for each job would cost more than the job, and nobody would remove it.
 *
 * The nursery itself does nothing else: no thread, no loop and no chance, which all that it forks
 * would share.
 */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "core/ops/runner.h"
#include "daemons/job/serve.h"
#include "daemons/job/start.h"
#include "daemons/job/words.h"
#include "io/crash.h"
#include "io/loop.h"
#include "io/nursery.h"
#include "io/real_env.h"

static struct {
    char *program; /* its path, as luxid has it */
    struct node_paths *paths;
    struct env *env; /* of the process of a job, made ahead if it can be; NULL in the nursery */
} nursery;

static int complain(const GError *error)
{
    log_error("", "%s", error->message);
    return fettle_error_exit_code(error);
}

/* --- the environment of a job --- */

static bool make_env(GError **error)
{
    const struct real_env_options options = {.folders_made = true};
    if (!nursery.env)
        nursery.env = real_env_new(nursery.paths->root, ROLE_JOB, &options, error);
    return nursery.env != NULL;
}

/* What cannot be made now is tried again, and complained of, by the job. */
static void prepare(void)
{
    make_env(NULL);
}

static void discard(void)
{
    g_clear_pointer(&nursery.env, real_env_free);
}

/* --- the process of a job --- */

struct run {
    guint64 job;
    const char *lock_name;
    int exit_code;
};

static void run_task(void *data)
{
    struct run *run = data;
    g_autoptr(GError) error = NULL;
    if (!runner_run(nursery.env, run->job, run->lock_name, &error))
        run->exit_code = complain(error);
    loop_quit(run->exit_code);
}

/* `livelock` is taken. */
static int run_job(guint64 job, struct livelock *livelock)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_strdup(livelock_name(livelock));
    struct run run = {.job = job, .lock_name = name};
    if (!make_env(&error)) {
        livelock_drop(livelock);
        return complain(error);
    }
    real_env_take_livelock(nursery.env, livelock);
    task_spawn(nursery.env->tasks, run_task, &run);
    return loop_run();
}

static void write_words(const char *id, const struct livelock *livelock)
{
    const char *const words[] = {nursery.program,         "--root", nursery.paths->root, id,
                                 livelock_name(livelock), NULL};
    if (!words_set(words))
        log_warning("",
                    "ps shows this process under the words of its nursery, not as job %s: those "
                    "were too short for its own",
                    id);
}

static int be_job(guint64 job, int channel)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, job);
    g_autofree char *name = g_strconcat(NURSERY_PROGRAM " ", id, NULL);
    int code;
    log_init(name);
    crash_become("JOB_START");
    struct livelock *livelock = start_job(nursery.paths, job, channel, &error);
    if (livelock) {
        crash_become("JOB");
        write_words(id, livelock);
        code = run_job(job, livelock);
    } else {
        code = complain(error);
    }
    discard();
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

static const struct serve_work work = {.prepare = prepare, .run = be_job, .discard = discard};

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    g_autoptr(GError) error = NULL;
    log_init(NURSERY_PROGRAM);
    words_init(argc, argv);
    int code = 0;
    if (parse(argc, argv, &error)) {
        signal(SIGCHLD, SIG_IGN); /* the kernel reaps them */
        signal(SIGPIPE, SIG_IGN); /* nobody may read the log */
        code = serve_requests(&work, &error);
    }
    if (error)
        code = complain(error);
    node_paths_free(nursery.paths);
    g_free(nursery.program);
    return code;
}
