/*
 * Programs run to their end: what they read and say, what becomes of those that do not end, and
 * that none outlives its parent.
 */
#include "world.h"

#include "backend/tool.h"
#include "base/limits.h"
#include "io/process.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(const char *script, const char *input, guint timeout_ms, char **ret_output,
               GError **error)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    return tool_run(argv, input, timeout_ms, ret_output, error);
}

static void says(void *unused)
{
    g_autofree char *output = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(run("cat " TOOL_INPUT "; echo out; echo err >&2; exit 3", "given\n", 10000,
                        &output, &error),
                    ==, 3);
    g_assert_no_error(error);
    g_assert_cmpstr(output, ==, "given\nout\nerr\n");
    g_autofree char *ended = NULL;
    g_assert_cmpint(run("kill -TERM $$", NULL, 10000, &ended, &error), ==, 128 + SIGTERM);
    g_autofree char *bytes = NULL;
    g_assert_cmpint(run("printf 'a\\377b\\000c'", NULL, 10000, &bytes, &error), ==, 0);
    g_assert_true(g_utf8_validate(bytes, -1, NULL));
    g_assert_true(g_str_has_prefix(bytes, "a"));
}

static void last_words(void)
{
    static const char *const cases[][2] = {
        {"qemu-img: Could not open 'x': gone\n", "Could not open 'x': gone"},
        {"first\nip: no such device\n\n", "no such device"},
        {"    (10.00/100%)\r    (20.00/100%)\rqemu-img: full\n    (20.00/100%)\r", "full"},
        {"Cannot find device: it is gone", "Cannot find device: it is gone"},
        {"", "no reason given"},
        {"\n\r\n", "no reason given"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words = tool_last_words(cases[i][0]);
        g_assert_cmpstr(words, ==, cases[i][1]);
    }
}

/* Of a program that says too much the end is kept. */
static void says_too_much(void *unused)
{
    const char *argv[] = {"sh", "-c", "head -c 100000 /dev/zero | tr '\\000' x; echo end", NULL};
    g_autoptr(GError) error = NULL;
    struct tool *tool = tool_start(argv, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(tool_wait(tool, 10000));
    g_autofree char *output = tool_output(tool, 10);
    g_assert_cmpstr(output, ==, "xxxxxxend\n");
    tool_free(tool);
}

static void refuses(void *unused)
{
    const char *missing[] = {"no-such-program", NULL};
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(tool_run(missing, NULL, 1000, NULL, &error), ==, -1);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_cmpstr(error->message, ==, "the program no-such-program is missing on this node");
    g_clear_error(&error);
    g_assert_cmpint(run("exec sleep 1000.5", NULL, 100, NULL, &error), ==, -1);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_TIMEOUT);
    g_assert_cmpstr(error->message, ==, "sh did not end within 100 ms");
    g_assert_cmpuint(process_find_by_argument("1000.5"), ==, 0);
}

/* A parent that is killed takes what it had begun along. */
static void dies_with_its_parent(void)
{
    const char *argv[] = {"sleep", "1000.25", NULL};
    pid_t parent = fork();
    if (parent == 0) {
        if (tool_start(argv, NULL, NULL) == NULL)
            _exit(1);
        for (guint i = 0; i < 1000 && process_find_by_argument("1000.25") == 0; i++)
            g_usleep(5000);
        raise(SIGKILL);
    }
    int status;
    g_assert_cmpint(waitpid(parent, &status, 0), ==, parent);
    g_assert_true(WIFSIGNALED(status));
    for (guint i = 0; i < 4000 && process_find_by_argument("1000.25") != 0; i++)
        g_usleep(5000);
    g_assert_cmpuint(process_find_by_argument("1000.25"), ==, 0);
}

/* Begins the tool with a setpriv in PATH that comes to nothing before there is a file `go`. */
static pid_t parent_with_late_setpriv(const char *folder, const char *const *argv)
{
    g_autofree char *late = g_build_filename(folder, "setpriv", NULL);
    g_autofree char *begun = g_build_filename(folder, "begun", NULL);
    g_autofree char *path = g_strconcat(folder, ":", g_getenv("PATH"), NULL);
    g_autofree char *real = g_find_program_in_path("setpriv");
    g_autofree char *script = g_strdup_printf("#!/bin/sh\ncd %s\n: >begun\n"
                                              "while [ ! -e go ]; do sleep 0.01; done\n"
                                              "exec %s \"$@\"\n",
                                              folder, real);
    g_assert_true(g_file_set_contents_full(late, script, -1, G_FILE_SET_CONTENTS_NONE, 0755, NULL));
    pid_t parent = fork();
    if (parent != 0)
        return parent;
    g_setenv("PATH", path, TRUE);
    if (tool_start(argv, NULL, NULL) == NULL)
        _exit(1);
    while (!g_file_test(begun, G_FILE_TEST_EXISTS))
        g_usleep(5000);
    raise(SIGKILL);
    _exit(1);
}

/* One that is killed before setpriv has bound them: the program never runs. */
static void dies_before_it_is_bound(void)
{
    g_autofree char *folder = g_build_filename(world_folder(), "late", NULL);
    g_autofree char *go = g_build_filename(folder, "go", NULL);
    g_autofree char *ran = g_build_filename(folder, "ran", NULL);
    const char *argv[] = {"touch", ran, NULL};
    g_assert_cmpint(g_mkdir(folder, 0755), ==, 0);
    pid_t parent = parent_with_late_setpriv(folder, argv);
    int status;
    g_assert_cmpint(waitpid(parent, &status, 0), ==, parent);
    g_assert_true(WIFSIGNALED(status));
    g_assert_cmpuint(process_find_by_argument(ran), !=, 0);
    g_assert_true(g_file_set_contents(go, "", 0, NULL));
    while (process_find_by_argument(ran) != 0)
        g_usleep(5000);
    g_assert_false(g_file_test(ran, G_FILE_TEST_EXISTS));
}

static void add_tests(void)
{
    world_test("/tool/reads-and-says", says);
    g_test_add_func("/tool/last-words", last_words);
    world_test("/tool/says-too-much", says_too_much);
    world_test("/tool/bad-programs", refuses);
    g_test_add_func("/tool/dies-with-its-parent", dies_with_its_parent);
    g_test_add_func("/tool/dies-before-it-is-bound", dies_before_it_is_bound);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}
