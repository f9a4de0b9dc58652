/* Tests of io/output.c: what could not be written is known, with its reason, however much it was;
 * a descriptor that is closed is nobody else's; a reader that is gone ends nobody in the middle. */
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

#define MANY 20000 /* lines: more than any buffer or pipe holds */

static int told; /* where a program says what became of its output */

/* What a program is, and what it does; it ends by itself. */
typedef void (*program_fn)(void);

static void tell(const char *said)
{
    g_autoptr(GError) error = NULL;
    const char *text = output_end(said, &error) ? "written" : error->message;
    g_assert_cmpint(write(told, text, strlen(text)), ==, (gssize)strlen(text));
    if (error)
        g_assert_true(fettle_error_is(error, OUTPUT));
    output_end_unread();
    _exit(error ? fettle_error_exit_code(error) : 0);
}

static void few(void)
{
    printf("a line\n");
    tell(NULL);
}

static void many(void)
{
    for (int i = 0; i < MANY; i++)
        printf("line %d\n", i);
    tell(NULL);
}

static void nothing(void)
{
    tell("Nothing was to be said.");
}

static void says(void)
{
    printf("web1 runs.\n");
    tell("web1 runs.");
}

/* What is opened later has a number of its own. */
static void opens(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fd, >, STDERR_FILENO);
    printf("for nobody else\n");
    tell(NULL);
}

static void past_the_stream(void)
{
    g_autoptr(GError) error = NULL;
    bool ok = output_write("text", 4, &error);
    g_assert_true(ok == (error == NULL));
    tell(NULL);
}

static void asks_for_its_reader(void)
{
    g_autoptr(GError) error = NULL;
    bool ok = output_is_read(&error);
    g_assert_true(ok == (error == NULL));
    tell(NULL);
}

static void by_glib(void)
{
    g_print("Usage: %s\n", "this");
    tell(NULL);
}

/* Runs it with that standard output (-1: closed); its exit code, or minus the signal. What it told
 * is to be freed. */
static int run(int out, program_fn program, bool pipe_ignored, char **ret_told)
{
    int ends[2];
    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    fflush(stdout);
    pid_t pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        told = ends[1];
        if (out < 0)
            close(STDOUT_FILENO);
        else
            dup2(out, STDOUT_FILENO);
        signal(SIGPIPE, pipe_ignored ? SIG_IGN : SIG_DFL);
        output_begin("program");
        program();
    }
    close(ends[1]);
    char text[200] = "";
    size_t len = 0;
    for (ssize_t got; (got = read(ends[0], text + len, sizeof text - 1 - len)) > 0;)
        len += (size_t)got;
    close(ends[0]);
    int status;
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    *ret_told = g_strdup(text);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void expect(int out, program_fn program, bool pipe_ignored, int code, const char *text)
{
    g_autofree char *said = NULL;
    g_assert_cmpint(run(out, program, pipe_ignored, &said), ==, code);
    g_assert_cmpstr(said, ==, text);
}

/* In front of each disk that is full. */
static void test_full(void)
{
    static const char full[] = "standard output: No space left on device";
    int out = open("/dev/full", O_WRONLY | O_CLOEXEC);
    g_assert_cmpint(out, >=, 0);
    expect(out, few, false, 30, full);
    expect(out, many, false, 30, full);
    expect(out, past_the_stream, false, 30, full);
    expect(out, says, false, 30,
           "standard output: No space left on device. What is now true: web1 runs.");
    expect(out, nothing, false, 0, "written");
    expect(out, asks_for_its_reader, false, 0, "written");
    g_autofree char *said = NULL;
    g_assert_cmpint(run(out, by_glib, false, &said), ==, 30); /* it ended there */
    g_assert_cmpstr(said, ==, "");
    close(out);
}

static void test_closed(void)
{
    static const char closed[] = "standard output: Bad file descriptor";
    expect(-1, few, false, 30, closed);
    expect(-1, many, false, 30, closed);
    expect(-1, opens, false, 30, closed);
    expect(-1, past_the_stream, false, 30, closed);
    expect(-1, nothing, false, 0, "written");
    int read_only = open("/dev/null", O_RDONLY | O_CLOEXEC);
    expect(read_only, few, false, 30, closed);
    close(read_only);
}

/* As `head` leaves: a silent end, unless whoever started the program wants an error. */
static void test_reader_gone(void)
{
    static const char gone[] = "standard output: Broken pipe";
    const program_fn programs[] = {few, many, past_the_stream, asks_for_its_reader};
    int ends[2];
    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    close(ends[0]);
    for (guint i = 0; i < G_N_ELEMENTS(programs); i++) {
        expect(ends[1], programs[i], false, -SIGPIPE, gone);
        expect(ends[1], programs[i], true, 30, gone);
    }
    expect(ends[1], nothing, false, 0, "written");
    close(ends[1]);
}

static gpointer read_slowly(gpointer data)
{
    int fd = GPOINTER_TO_INT(data);
    gsize all = 0;
    char buffer[512];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
        all += (gsize)got;
    return GSIZE_TO_POINTER(all);
}

/* A pipe that is full and was made not to block, as a shell's may be: nothing of it is lost. */
static void test_not_blocking(void)
{
    int ends[2];
    gsize expected = 0;
    for (int i = 0; i < MANY; i++)
        expected += (gsize)snprintf(NULL, 0, "line %d\n", i);
    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    g_assert_cmpint(fcntl(ends[1], F_SETFL, O_NONBLOCK), ==, 0);
    GThread *reader = g_thread_new("reader", read_slowly, GINT_TO_POINTER(ends[0]));
    expect(ends[1], many, false, 0, "written");
    close(ends[1]);
    g_assert_cmpuint(GPOINTER_TO_SIZE(g_thread_join(reader)), ==, expected);
    close(ends[0]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/output/full", test_full);
    g_test_add_func("/output/closed", test_closed);
    g_test_add_func("/output/reader-gone", test_reader_gone);
    g_test_add_func("/output/not-blocking", test_not_blocking);
    return g_test_run();
}
