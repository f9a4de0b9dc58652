/*
 * The program fettle-job: its arguments and its job file with every fault, and that it takes over
 * the lock file of its starter. FETTLE_JOB names the program.
 */
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

#include "io/livelock.h"

#define CHILD_FD 9 /* the lock file's descriptor in the program */

struct host {
    char *root;
    struct node_paths *paths;
};

static void write_file(const struct host *host, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(host->root, name, NULL);
    g_autofree char *folder = g_path_get_dirname(path);
    g_assert_cmpint(g_mkdir_with_parents(folder, 0755), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void host_init(struct host *host)
{
    g_autoptr(GError) error = NULL;
    *host = (struct host){.root = g_dir_make_tmp("job-XXXXXX", NULL)};
    write_file(host, "etc/node.json",
               "{\"node_uuid\":\"11111111-1111-4111-8111-111111111111\",\"name\":\"node1\","
               "\"cluster_uuid\":\"cccccccc-cccc-4ccc-8ccc-cccccccccccc\","
               "\"address\":\"127.0.0.1\"}");
    host->paths = node_paths_new(host->root, &error);
    g_assert_no_error(error);
    g_assert_true(node_paths_make(host->paths, &error));
}

static void host_clear(struct host *host)
{
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", host->root);
    node_paths_free(host->paths);
    g_assert_true(g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL));
    g_free(host->root);
}

/* Runs the program to its end: "CODE last line of what it said" without time and host's names. It
 * ends with its lock, so each gets a new one. */
static char *run(const struct host *host, const char *job, const char *fd, const char *name)
{
    g_autoptr(GError) error = NULL;
    struct livelock *livelock = livelock_make(host->paths, "job-17", &error);
    g_assert_no_error(error);
    g_autofree char *said = NULL;
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_take_fd(launcher, dup(livelock_pass(livelock)), CHILD_FD);
    g_autoptr(GSubprocess) child = g_subprocess_launcher_spawn(
        launcher, &error, g_getenv("FETTLE_JOB"), "--root", host->root, job, fd, name, NULL);
    g_assert_no_error(error);
    g_subprocess_communicate_utf8(child, NULL, NULL, NULL, &said, &error);
    g_assert_no_error(error);
    g_strchomp(said);
    const char *line = strrchr(said, '\n');
    const char *text = strstr(line ? line : said, "fettle-job: ");
    g_assert_nonnull(text);
    GString *clean = g_string_new(text + strlen("fettle-job: "));
    g_string_replace(clean, host->root, "ROOT", 0);
    g_string_replace(clean, livelock_name(livelock), "LOCK", 0);
    g_string_prepend_c(clean, ' ');
    livelock_drop(livelock);
    g_assert_true(g_subprocess_get_if_exited(child));
    g_autofree char *code = g_strdup_printf("%d", g_subprocess_get_exit_status(child));
    g_string_prepend(clean, code);
    return g_string_free(clean, FALSE);
}

#define assert_run(host, job, fd, name, expected)                                                  \
    do {                                                                                           \
        g_autofree char *said_ = run(host, job, fd, name);                                         \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

#define USAGE                                                                                      \
    "2 usage: fettle-job [--root DIR] JOB LOCK-DESCRIPTOR [LOCK-NAME]; it is started by "          \
    "fettle-job-start only"

static void test_arguments(void)
{
    struct host host;
    host_init(&host);
    assert_run(&host, NULL, NULL, NULL, USAGE);
    assert_run(&host, "17", NULL, NULL, USAGE);
    assert_run(&host, "0", "9", NULL, "2 \"0\" is no job id");
    assert_run(&host, "seventeen", "9", NULL, "2 \"seventeen\" is no job id");
    assert_run(&host, "17", "2", NULL, "2 \"2\" is no descriptor of a lock file");
    assert_run(&host, "17", "x", NULL, "2 \"x\" is no descriptor of a lock file");
    assert_run(&host, "17", "77", NULL, "2 descriptor 77 is no lock file of a job");
    host_clear(&host);
}

static void test_foreign_lock(void)
{
    struct host host;
    host_init(&host);
    g_autofree char *said = run(&host, "17", "9", "job-17-another");
    g_assert_true(g_str_has_prefix(said, "5 ")); /* wrong_state: not the lock it was given */
    g_assert_nonnull(strstr(said, "job-17-another"));
    host_clear(&host);
}

static void test_job_file(void)
{
    struct host host;
    host_init(&host);
    g_autofree char *missing = run(&host, "17", "9", NULL);
    g_assert_true(g_str_has_prefix(missing, "3 "));
    g_assert_nonnull(strstr(missing, "job-17"));
    write_file(&host, "var/queue/job-17", "{\"id\":17,\"ops\":[{\"inp");
    assert_run(&host, "17", "9", NULL,
               "21 job-17: broken JSON at byte 21 (line 1): premature end of input near '\"inp'");
    write_file(&host, "var/queue/job-17", "{\"id\":18,\"ops\":[]}");
    assert_run(&host, "17", "9", NULL, "23 job-17 is the file of job 18");
    write_file(&host, "var/queue/job-17",
               "{\"id\":17,\"ops\":[{\"input\":{},\"status\":\"running\"}]}");
    assert_run(&host, "17", "9", NULL, "5 job 17 has run before; it is not run twice");
    host_clear(&host);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fettle-job/arguments", test_arguments);
    g_test_add_func("/fettle-job/foreign-lock#DTH-09,SAF-32", test_foreign_lock);
    g_test_add_func("/fettle-job/job-file", test_job_file);
    return g_test_run();
}
