/* Starting a job process: starter.c and the program fettle-job-start, through the real environment
 * (real_env.c). A shell script stands in for fettle-job. */
#include "world.h"

#include "io/files.h"
#include "io/livelock.h"
#include "io/real_env.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *job_start; /* path of the program, from the command line */

struct fixture {
    struct node_paths *paths;
    char *bin;
    struct env *env;
    /* what was heard */
    char *name;
    guint64 pid, ticks;
    guint named, broken;
    bool confirmed;
    bool confirm_at_once;
};

static void put_program(struct fixture *fixture, const char *name, const char *script)
{
    g_autofree char *path = g_build_filename(fixture->bin, name, NULL);

    g_unlink(path);
    g_assert_true(g_file_set_contents(path, script, -1, NULL));
    g_assert_cmpint(g_chmod(path, 0755), ==, 0);
}

static void set_up(struct fixture *fixture, gconstpointer unused)
{
    const struct real_env_options options = {.bin_folder = NULL};
    g_autoptr(GError) error = NULL;

    fixture->paths = world_new(NODE_A);
    fixture->bin = g_build_filename(fixture->paths->root, "bin", NULL);
    g_assert_cmpint(g_mkdir(fixture->bin, 0755), ==, 0);
    g_autofree char *script = g_strdup_printf("#!/bin/sh\nexec %s \"$@\"\n", job_start);
    put_program(fixture, "fettle-job-start", script);
    put_program(
        fixture, "fettle-job",
        "#!/bin/sh\necho \"$@\" > \"$2/started.new\"\nmv \"$2/started.new\" \"$2/started\"\n"
        "exec sleep 1000\n");
    g_setenv("FETTLE_BINDIR", fixture->bin, TRUE);
    fixture->env = real_env_new(fixture->paths->root, ROLE_LUXID, &options, &error);
    g_assert_no_error(error);
}

static void tear_down(struct fixture *fixture, gconstpointer unused)
{
    real_env_free(fixture->env);
    g_free(fixture->name);
    g_free(fixture->bin);
    world_remove(fixture->paths);
}

static void named_cb(struct starter *starter, const char *livelock, guint64 pid, guint64 ticks,
                     void *data)
{
    struct fixture *fixture = data;

    fixture->named++;
    fixture->name = g_strdup(livelock);
    fixture->pid = pid;
    fixture->ticks = ticks;
    g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, livelock), ==, LIVELOCK_ALIVE);
    if (fixture->confirm_at_once)
        g_assert_true(fixture->env->ops->starter_confirm(fixture->env, starter));
}

static void broken_cb(struct starter *starter, bool confirmed, void *data)
{
    struct fixture *fixture = data;

    fixture->broken++;
    fixture->confirmed = confirmed;
}

static const struct starter_events events = {named_cb, broken_cb};

static struct starter *start(struct fixture *fixture, guint64 job)
{
    g_autoptr(GError) error = NULL;
    struct starter *starter =
        fixture->env->ops->starter_spawn(fixture->env, job, &events, fixture, &error);

    g_assert_no_error(error);
    return starter;
}

static bool has_started(struct fixture *fixture, char **ret_words)
{
    g_autofree char *path = g_build_filename(fixture->paths->root, "started", NULL);
    return g_file_get_contents(path, ret_words, NULL, NULL);
}

static void wait_gone(struct fixture *fixture)
{
    while (fixture->env->ops->livelock_probe(fixture->env, fixture->name) == LIVELOCK_ALIVE)
        world_pause(2);
}

static void test_starts(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *words = NULL;

    fixture->confirm_at_once = true;
    start(fixture, 17);
    world_wait_count(&fixture->broken, 1);
    g_assert_true(fixture->confirmed);
    g_assert_cmpuint(fixture->named, ==, 1);
    g_assert_true(g_str_has_prefix(fixture->name, "job-17-"));
    while (!has_started(fixture, &words))
        world_pause(5);
    /* The same process, with the lock, as fettle-job expects it. */
    g_auto(GStrv) arguments = g_strsplit(g_strstrip(words), " ", -1);
    g_assert_cmpuint(g_strv_length(arguments), ==, 5);
    g_assert_cmpstr(arguments[0], ==, "--root");
    g_assert_cmpstr(arguments[1], ==, fixture->paths->root);
    g_assert_cmpstr(arguments[2], ==, "17");
    g_assert_cmpstr(arguments[4], ==, fixture->name);
    g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, fixture->name), ==,
                    LIVELOCK_ALIVE);
    g_autofree char *stat_path = g_strdup_printf("/proc/%u/stat", (guint)fixture->pid);
    g_autofree char *stat_text = NULL;
    g_assert_true(g_file_get_contents(stat_path, &stat_text, NULL, NULL));
    g_autofree char *ticks = g_strdup_printf(" %u ", (guint)fixture->ticks);
    g_assert_nonnull(strstr(stat_text, ticks));
    kill((pid_t)fixture->pid, SIGKILL);
    wait_gone(fixture);
    g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, fixture->name), ==,
                    LIVELOCK_DEAD);
    world_pause(20);
    g_assert_cmpuint(fixture->broken, ==, 1);
    /* No zombie is left. */
    g_assert_false(g_file_test(stat_path, G_FILE_TEST_EXISTS));
}

/* Without the confirmation there is no job; the end of luxid stands in for a closed channel. */
static void test_not_confirmed(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *words = NULL;
    int status = 0;
    pid_t luxid = fork();

    if (luxid == 0) {
        start(fixture, 18);
        world_wait_count(&fixture->named, 1);
        world_pause(300); /* held back: no exec in that time */
        g_autofree char *early = NULL;
        _exit(has_started(fixture, &early) ? 1 : 0);
    }
    g_assert_cmpint(waitpid(luxid, &status, 0), ==, luxid);
    g_assert_cmpint(status, ==, 0);
    g_autofree char *log = g_build_filename(fixture->paths->log, "job-18.log", NULL);
    g_autofree char *text = NULL;
    while (text == NULL || strstr(text, "does not start") == NULL) {
        g_clear_pointer(&text, g_free);
        g_file_get_contents(log, &text, NULL, NULL);
        world_pause(5);
    }
    for (;;) {
        g_autoptr(GPtrArray) names = fixture->env->ops->livelock_list(fixture->env);
        if (names->len == 0)
            break;
        world_pause(5);
    }
    g_assert_false(has_started(fixture, &words));
}

static void test_child_dies_first(struct fixture *fixture, gconstpointer unused)
{
    put_program(fixture, "fettle-job-start", "#!/bin/sh\nexit 3\n");
    start(fixture, 1);
    world_wait_count(&fixture->broken, 1);
    g_assert_false(fixture->confirmed);
    g_assert_cmpuint(fixture->named, ==, 0);
}

static void named_and_kill_cb(struct starter *starter, const char *livelock, guint64 pid,
                              guint64 ticks, void *data)
{
    struct fixture *fixture = data;

    fixture->named++;
    kill((pid_t)pid, SIGKILL);
    world_pause(100);
    /* The pipe is broken already, or breaks: either way it is told once. */
    fixture->env->ops->starter_confirm(fixture->env, starter);
}

static void test_child_killed(struct fixture *fixture, gconstpointer unused)
{
    static const struct starter_events killing = {named_and_kill_cb, broken_cb};
    g_autofree char *words = NULL;
    g_autoptr(GError) error = NULL;

    fixture->env->ops->starter_spawn(fixture->env, 5, &killing, fixture, &error);
    g_assert_no_error(error);
    world_wait_count(&fixture->broken, 1);
    world_pause(50);
    g_assert_cmpuint(fixture->broken, ==, 1);
    g_assert_false(fixture->confirmed);
    g_assert_false(has_started(fixture, &words));
}

static void test_bad_lines(struct fixture *fixture, gconstpointer unused)
{
    static const char *const scripts[] = {
        "#!/bin/sh\necho only-a-name >&3\nread x <&3\n",
        "#!/bin/sh\necho job-1 nought 7 >&3\nread x <&3\n",
        "#!/bin/sh\necho job-1 1 7 8 >&3\nread x <&3\n",
        "#!/bin/sh\nhead -c 1000 /dev/zero | tr '\\0' x >&3\nread x <&3\n",
        "#!/bin/sh\n",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(scripts); i++) {
        fixture->broken = 0;
        put_program(fixture, "fettle-job-start", scripts[i]);
        start(fixture, 3);
        world_wait_count(&fixture->broken, 1);
        g_assert_cmpuint(fixture->named, ==, 0);
    }
}

static void test_no_program(struct fixture *fixture, gconstpointer unused)
{
    g_autofree char *path = g_build_filename(fixture->bin, "fettle-job-start", NULL);
    g_autoptr(GError) error = NULL;

    g_unlink(path);
    g_assert_null(fixture->env->ops->starter_spawn(fixture->env, 1, &events, fixture, &error));
    assert_error(&error, ENVIRONMENT, "cannot start");
}

/* The program's own bad input. */
static void test_program_usage(struct fixture *fixture, gconstpointer unused)
{
    const char *const rows[][5] = {
        {job_start, NULL},
        {job_start, "--root", "/nonexistent", "1", NULL},
        {job_start, "--root", fixture->paths->root, "zero", NULL},
        {job_start, "--root", fixture->paths->root, "0", NULL},
        {job_start, "--root", fixture->paths->root, "4", NULL}, /* no channel */
    };
    static const char *const parts[] = {"usage: fettle-job-start", "there is no such folder",
                                        "\"zero\" is no job id", "\"0\" is no job id",
                                        "job 4 does not start"};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *complaint = NULL;
        int status = 0;
        g_assert_true(g_spawn_sync(NULL, (char **)rows[i], NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL,
                                   &complaint, &status, NULL));
        g_assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
        if (strstr(complaint, parts[i]) == NULL)
            g_error("row %zu: %s", i, complaint);
    }
}

/* --- the rest of the real environment --- */

static void changed_cb(const char *name, void *data)
{
    g_ptr_array_add(data, g_strdup(name));
}

static void test_environment(struct fixture *fixture, gconstpointer unused)
{
    const struct env *env = fixture->env;
    const struct env_ops *ops = env->ops;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;

    g_assert_cmpstr(env->node_uuid, ==, NODE_A);
    g_assert_cmpstr(env->role, ==, ROLE_LUXID);
    g_assert_cmpuint(strlen(env->boot_id), >, 0);
    g_assert_cmpint(ops->boot_ms(env), >, 0);
    g_assert_cmpint(ops->wall_us(env), >, 0);
    g_autofree char *first = env_uuid(env);
    g_autofree char *second = env_uuid(env);
    g_assert_true(g_uuid_string_is_valid(first));
    g_assert_cmpstr(first, !=, second);
    ops->file_watch(env, FILE_QUEUE, "", changed_cb, names);
    g_assert_true(ops->file_write(env, FILE_QUEUE, "job-9", "x", 1, &error));
    world_wait_line(names, "job-9");
    g_autofree char *livelock = ops->livelock_make(env, ROLE_LUXID, &error);
    g_assert_cmpint(ops->livelock_probe(env, livelock), ==, LIVELOCK_ALIVE);
    ops->livelock_drop(env, livelock);
    g_assert_cmpint(ops->livelock_probe(env, livelock), ==, LIVELOCK_GONE);

    g_autofree char *config = g_build_filename(fixture->paths->etc, "node.json", NULL);
    g_unlink(config);
    g_assert_null(real_env_new(fixture->paths->root, ROLE_JOB, NULL, &error));
    assert_error(&error, UNKNOWN_ENTITY, "this host belongs to no cluster");
}

/* As wconfd does, but without a pause. */
static pid_t sweep_for_ever(struct fixture *fixture)
{
    pid_t pid = fork();
    while (pid == 0) {
        g_autoptr(GPtrArray) names = livelock_list(fixture->paths);
        for (guint i = 0; i < names->len; i++)
            livelock_remove(fixture->paths, names->pdata[i]);
    }
    return pid;
}

/* Whatever is swept meanwhile: each started job has its file, locked, of the name that was told. */
static void test_starts_under_sweeps(struct fixture *fixture, gconstpointer unused)
{
    guint starts = g_test_quick() ? 100 : 10000;
    pid_t sweeper;
    int status;

    put_program(fixture, "fettle-job", "#!/bin/sh\n: > \"$2/started\"\nexec sleep 1000\n");
    fixture->confirm_at_once = true;
    sweeper = sweep_for_ever(fixture);
    for (guint i = 0; i < starts; i++) {
        g_autofree char *words = NULL;
        g_autofree char *flag = g_build_filename(fixture->paths->root, "started", NULL);
        start(fixture, i + 1);
        world_wait_count(&fixture->broken, i + 1);
        g_assert_true(fixture->confirmed);
        while (!has_started(fixture, &words))
            world_pause(1);
        g_autofree char *path =
            g_build_filename(fixture->paths->run, "livelocks", fixture->name, NULL);
        g_assert_cmpint(access(path, F_OK), ==, 0);
        g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, fixture->name), ==,
                        LIVELOCK_ALIVE);
        g_unlink(flag);
        kill((pid_t)fixture->pid, SIGKILL);
        wait_gone(fixture);
        g_clear_pointer(&fixture->name, g_free);
    }
    kill(sweeper, SIGKILL);
    g_assert_cmpint(waitpid(sweeper, &status, 0), ==, sweeper);
    g_assert_true(WIFSIGNALED(status));
}

#define ADD(path, fn) g_test_add(path, struct fixture, NULL, set_up, fn, tear_down)

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_assert_cmpint(argc, ==, 2);
    job_start = argv[1];
    ADD("/starter/starts#LUX-18,LUX-19,LUX-21,LUX-24,DTH-09", test_starts);
    ADD("/starter/not-confirmed#LUX-21,LUX-22", test_not_confirmed);
    ADD("/starter/child-dies-first#LUX-23", test_child_dies_first);
    ADD("/starter/child-killed#LUX-23", test_child_killed);
    ADD("/starter/bad-lines", test_bad_lines);
    ADD("/starter/no-program", test_no_program);
    ADD("/starter/program-usage", test_program_usage);
    ADD("/starter/sweeps#DTH-19,LUX-19", test_starts_under_sweeps);
    ADD("/real-env/parts", test_environment);
    return g_test_run();
}
