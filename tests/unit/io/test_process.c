/*
 * Tests of io/process.h on real processes.
 */
#include "io/process.h"

#include "world.h"

#include "base/task.h"
#include "io/loop.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static guint exits;

static void count_exit(struct process *process, void *data)
{
    exits++;
    g_assert_true(process_ended(process));
    g_assert_true(data == &exits);
}

static struct process *start(const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct process_options options = {.argv = argv, .exited = count_exit, .data = &exits};
    g_autoptr(GError) error = NULL;
    struct process *process = process_spawn(&options, &error);
    g_assert_no_error(error);
    return process;
}

static void exit_codes(void *unused)
{
    struct process *process = start("exit 7");
    g_assert_true(process_wait(process, 60000));
    g_assert_cmpint(process_exit_code(process), ==, 7);
    g_assert_cmpuint(exits, ==, 1);
    g_assert_true(process_wait(process, 0));
    process_signal(process, SIGKILL); /* hits nobody */
    process_free(process);
    process = start("kill -9 $$");
    g_assert_true(process_wait(process, 60000));
    g_assert_cmpint(process_exit_code(process), ==, 128 + SIGKILL);
    process_free(process);
    process_free(NULL);
}

static void waiting_and_killing(void *unused)
{
    struct process *process = start("trap '' TERM; while :; do sleep 100; done");
    g_autoptr(GError) error = NULL;
    guint64 pid = process_pid(process);
    g_assert_false(process_wait(process, 100));
    g_assert_cmpint(process_exit_code(process), ==, -1);
    process_signal(process, SIGSTOP);
    g_assert_cmpuint(process_read_start_ticks(pid), ==, process_start_ticks(process));
    g_assert_true(process_kill(process, &error)); /* a stopped one too */
    g_assert_true(process_kill(process, &error));
    g_assert_cmpuint(exits, ==, 1);
    g_assert_cmpuint(process_read_start_ticks(pid), ==, 0);
    process_free(process);
}

/* Stands in the way of the loop until both the process and the time have ended. */
static void block(void *unused)
{
    g_usleep(300000);
}

static void end_with_the_time(void *unused)
{
    struct process *process = start("sleep 0.1");
    loop_post(block, NULL);
    process_wait(process, 100); /* either is right */
    g_assert_true(process_wait(process, 60000));
    process_free(process);
}

static void missing_program(void *unused)
{
    const char *argv[] = {"fettle-no-such-program", NULL};
    struct process_options options = {.argv = argv};
    g_autoptr(GError) error = NULL;
    g_assert_null(process_spawn(&options, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_cmpstr(error->message, ==,
                    "cannot start fettle-no-such-program: No such file or directory");
}

/* A session of its own, the kept descriptors as 3 and 4 in that order, nothing else, signals as for
 * a fresh process. */
static void what_it_inherits(void *unused)
{
    g_autofree char *path = g_strdup_printf("/tmp/fettle-process-%d", (int)getpid());
    const char *argv[] = {
        "sh", "-c",
        "echo out; echo err >&2; cat <&3; cat <&4; ls /proc/self/fd; "
        "[ \"$(cut -d' ' -f6 /proc/self/stat)\" = $$ ] && echo session; "
        "sed -nE 's/^(Sig(Blk|Ign)):.*(.{7})$/\\1 \\3/p' /proc/self/status; echo $FETTLE_CRASH_AT.",
        NULL};
    int first[2], second[2], other;
    g_assert_cmpint(pipe2(first, O_CLOEXEC), ==, 0);
    g_assert_cmpint(pipe2(second, O_CLOEXEC), ==, 0);
    other = open("/dev/null", O_RDONLY); /* would leak */
    g_assert_cmpint(write(first[1], "one\n", 4), ==, 4);
    g_assert_cmpint(write(second[1], "two\n", 4), ==, 4);
    close(first[1]);
    close(second[1]);
    int keep[2] = {second[0], first[0]};
    struct process_options options = {
        .argv = argv, .errors_path = path, .keep_fds = keep, .keep_fd_count = 2};
    struct process *process = process_spawn(&options, NULL);
    g_assert_true(process_wait(process, 60000));
    g_autofree char *said = NULL;
    g_assert_true(g_file_get_contents(path, &said, NULL, NULL));
    g_assert_cmpstr(
        said, ==,
        "out\nerr\ntwo\none\n0\n1\n2\n3\n4\n5\nsession\nSigBlk 0000000\nSigIgn 0000000\n.\n");
    g_unlink(path);
    process_free(process);
    close(first[0]);
    close(second[0]);
    close(other);
}

static void adoption(void *unused)
{
    struct process *child = start("sleep 100");
    g_autoptr(GError) error = NULL;
    guint64 pid = process_pid(child), ticks = process_start_ticks(child);
    g_assert_null(process_adopt(pid, ticks + 1, count_exit, &exits, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    g_autofree char *expected = g_strdup_printf("process %" G_GUINT64_FORMAT
                                                " started at tick %" G_GUINT64_FORMAT " has ended",
                                                pid, ticks + 1);
    g_assert_cmpstr(error->message, ==, expected);
    g_clear_error(&error);
    g_assert_null(process_adopt(0, 0, count_exit, &exits, NULL));
    g_assert_null(process_adopt(G_MAXUINT64, 1, count_exit, &exits, NULL));

    struct process *adopted = process_adopt(pid, ticks, count_exit, &exits, &error);
    g_assert_no_error(error);
    g_assert_false(process_wait(adopted, 50));
    g_assert_true(process_kill(adopted, &error));
    g_assert_true(process_wait(child, 60000));
    g_assert_cmpuint(exits, ==, 2);
    g_assert_cmpint(process_exit_code(adopted), ==, -1);
    g_assert_cmpint(process_exit_code(child), ==, 128 + SIGKILL);
    g_assert_null(process_adopt(pid, ticks, count_exit, &exits, NULL));
    process_free(adopted);
    process_free(child);
}

static void users(void *unused)
{
    struct process *child = start("sleep 100");
    g_autoptr(GError) error = NULL;
    guint32 uid = G_MAXUINT32;
    g_assert_true(process_user(child, &uid));
    g_assert_cmpuint(uid, ==, getuid());
    g_assert_true(process_kill(child, &error));
    g_assert_false(process_user(child, &uid));
    process_free(child);
    if (getuid() != 0)
        return;
    child = start("exec setpriv --ruid=64100 sleep 100"); /* not all of its ids */
    while (process_user(child, &uid))
        loop_sleep(5);
    g_assert_false(process_ended(child));
    g_assert_true(process_kill(child, &error));
    process_free(child);
}

/* Whoever could put a link there would have any file made, or added to. */
static void words_to_link(void *unused)
{
    const char *argv[] = {"true", NULL};
    g_autofree char *link = g_strdup_printf("/tmp/fettle-link-%d", (int)getpid());
    g_autofree char *target = g_strconcat(link, ".target", NULL);
    const struct process_options options = {.argv = argv, .errors_path = link};
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(symlink(target, link), ==, 0);
    g_assert_null(process_spawn(&options, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_cmpstr(error->message, ==, "cannot start true: Too many levels of symbolic links");
    g_assert_false(g_file_test(target, G_FILE_TEST_EXISTS));
    g_unlink(link);
}

static void finding(void *unused)
{
    g_autofree char *mark = g_strdup_printf("fettle-mark-%d", (int)getpid());
    const char *argv[] = {"sh", "-c", "sleep 100; :", mark, NULL};
    struct process_options options = {.argv = argv};
    g_assert_cmpuint(process_find_by_argument(mark), ==, 0);
    struct process *process = process_spawn(&options, NULL);
    /* At once, although the child may still stand in the middle of its exec. */
    g_assert_cmpuint(process_find_by_argument(mark), ==, process_pid(process));
    g_assert_cmpuint(process_find_by_argument("fettle-mark-"), ==, 0); /* whole arguments only */
    process_signal(process, SIGKILL);
    while (process_read_start_ticks(process_pid(process)) != 0)
        g_usleep(1000); /* a zombie is not found */
    g_assert_cmpuint(process_find_by_argument(mark), ==, 0);
    g_assert_true(process_wait(process, 60000));
    process_free(process);
}

static void programs(void *unused)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *name = g_path_get_basename(self);
    g_autofree char *found = program_path(name);
    g_assert_cmpstr(found, ==, self);
    g_autofree char *installed = program_path("no-such-program");
    g_assert_cmpstr(installed, ==, FETTLE_LIBEXEC_DIR "/no-such-program");
    g_assert_true(g_setenv("FETTLE_LIBEXEC_DIR", "/opt/x", TRUE));
    g_autofree char *named = program_path(name);
    g_autofree char *expected = g_build_filename("/opt/x", name, NULL);
    g_assert_cmpstr(named, ==, expected);
    g_unsetenv("FETTLE_LIBEXEC_DIR");
}

/* --- freed and killed while somebody waits --- */

static bool ended, result;

static void waiting_task(void *process)
{
    result = process_wait(process, 60000);
    ended = true;
}

static void freed_while_waiting(void *unused)
{
    struct process *process = start("sleep 100");
    guint64 pid = process_pid(process), ticks = process_start_ticks(process);
    ended = false;
    task_spawn(NULL, waiting_task, process);
    loop_sleep(20);
    process_free(process);
    while (!ended)
        loop_sleep(5);
    g_assert_false(result);
    struct process *again = process_adopt(pid, ticks, NULL, NULL, NULL);
    g_assert_true(process_kill(again, NULL));
    process_free(again);
}

static void killed_while_waiting(void *unused)
{
    struct process *process = start("sleep 100");
    struct task_group *group = task_group_new();
    ended = false;
    task_spawn(group, waiting_task, process);
    loop_sleep(20);
    task_group_kill(group);
    while (!ended)
        loop_sleep(5);
    g_assert_false(result);
    g_assert_true(process_kill(process, NULL));
    process_free(process);
    task_group_unref(group);
}

/* --- running --- */

static void in_task(gconstpointer fn)
{
    exits = 0;
    world_in_task((void (*)(void *))fn);
}

int main(int argc, char **argv)
{
    loop_init();
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/process/exit-codes", exit_codes, in_task);
    g_test_add_data_func("/process/wait-and-kill#SAF-15", waiting_and_killing, in_task);
    g_test_add_data_func("/process/ends-with-the-time", end_with_the_time, in_task);
    g_test_add_data_func("/process/missing-program", missing_program, in_task);
    g_test_add_data_func("/process/inherits-nothing-else", what_it_inherits, in_task);
    g_test_add_data_func("/process/adopted-by-pid-and-start-time#SAF-19", adoption, in_task);
    g_test_add_data_func("/process/whose#SAF-104", users, in_task);
    g_test_add_data_func("/process/no-words-through-a-link#SAF-104", words_to_link, in_task);
    g_test_add_data_func("/process/found-by-argument#SAF-19", finding, in_task);
    g_test_add_data_func("/process/program-path", programs, in_task);
    g_test_add_data_func("/process/freed-while-waiting", freed_while_waiting, in_task);
    g_test_add_data_func("/process/killed-while-waiting", killed_while_waiting, in_task);
    return g_test_run();
}
