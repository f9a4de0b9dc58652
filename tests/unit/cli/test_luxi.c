/* Tests of cli/luxi.c: how long an answer is waited for. Beside a luxid that stands still, and one
 * that takes its time over one answer and gives others. */
#include "cli/cli.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER "{\"success\": true, \"result\": 7}\x03"

/* A luxid of that kind below a folder of its own. */
struct luxid {
    char *root, *path;
    int fd;
    gint others; /* have been answered before the first question is */
    GThread *thread;
};

#define LATE 1

static int take(int fd)
{
    char buffer[1024];
    int taken = accept(fd, NULL, NULL);
    g_assert_cmpint(taken, >=, 0);
    g_assert_cmpint(read(taken, buffer, sizeof(buffer)), >, 0);
    return taken;
}

static void answer(int fd)
{
    g_assert_cmpint(write(fd, ANSWER, strlen(ANSWER)), ==, strlen(ANSWER));
    close(fd);
}

static void *serve(void *data)
{
    struct luxid *luxid = data;
    int first = take(luxid->fd);
    for (int i = 0; i < LATE; i++) {
        answer(take(luxid->fd));
        g_atomic_int_inc(&luxid->others);
    }
    answer(first);
    return NULL;
}

/* It ends in the middle of its first answer, and is there again. */
static void *break_off(void *data)
{
    struct luxid *luxid = data;
    int first = take(luxid->fd);
    g_assert_cmpint(write(first, ANSWER, 10), ==, 10);
    close(first);
    answer(take(luxid->fd));
    return NULL;
}

static struct luxid *luxid_new(GThreadFunc act)
{
    struct luxid *luxid = g_new0(struct luxid, 1);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    luxid->root = g_dir_make_tmp("fettle-XXXXXX", NULL);
    g_autofree char *run = g_build_filename(luxid->root, "run", NULL);
    luxid->path = g_build_filename(run, "luxid.sock", NULL);
    g_mkdir(run, 0700);
    luxid->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    g_strlcpy(address.sun_path, luxid->path, sizeof(address.sun_path));
    g_assert_cmpint(bind(luxid->fd, (struct sockaddr *)&address, sizeof(address)), ==, 0);
    g_assert_cmpint(listen(luxid->fd, 8), ==, 0);

    luxid->thread = act ? g_thread_new("luxid", act, luxid) : NULL;
    return luxid;
}

static void luxid_free(struct luxid *luxid)
{
    if (luxid->thread)
        g_thread_join(luxid->thread);
    close(luxid->fd);
    g_autofree char *run = g_path_get_dirname(luxid->path);
    g_unlink(luxid->path);
    g_rmdir(run);
    g_rmdir(luxid->root);
    g_free(luxid->root);
    g_free(luxid->path);
    g_free(luxid);
}

/* Sockets are taken by the kernel, and nothing ever comes. */
static void test_silent(void)
{
    struct luxid *luxid = luxid_new(NULL);
    struct cli cli = {.root = luxid->root, .silence_ms = 50};
    g_autoptr(GError) error = NULL;
    g_assert_null(cli_call(&cli, "QueryClusterInfo", json_array(), &error));
    g_assert_true(fettle_error_is(error, UNREACHABLE));
    g_assert_true(g_str_has_prefix(error->message,
                                   "fettle-luxid of this node has answered nothing for 0 s, "
                                   "although it runs: what was asked for may still be done when it "
                                   "goes on. It may be stopped or stand still: look at its log "));
    g_assert_true(cli.silent);
    g_assert_null(cli.luxi); /* a late answer is nobody's */
    luxid_free(luxid);
}

static void test_silent_while_waiting(void)
{
    struct luxid *luxid = luxid_new(NULL);
    struct cli cli = {.root = luxid->root, .silence_ms = 50};
    g_autoptr(GError) error = NULL;
    g_assert_null(
        cli_call(&cli, "WaitForJobChange", json_make("[i[s]nii]", 1, "status", -1, 60), &error));
    g_assert_true(fettle_error_is(error, UNREACHABLE));
    luxid_free(luxid);
}

/* Longer than any silence, and it is waited for. */
static void test_slow(void)
{
    struct luxid *luxid = luxid_new(serve);
    struct cli cli = {.root = luxid->root, .silence_ms = 3000};
    g_autoptr(GError) error = NULL;
    json_autoptr got = cli_call(&cli, "QueryClusterInfo", json_array(), &error);
    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(got), ==, 7);
    g_assert_cmpint(g_atomic_int_get(&luxid->others), ==, LATE);
    g_assert_false(cli.silent);
    cli_disconnect(&cli);
    luxid_free(luxid);
}

/* Whether it was done is not known; what is asked next does not go into the broken connection. */
static void test_breaks_off(void)
{
    struct luxid *luxid = luxid_new(break_off);
    struct cli cli = {.root = luxid->root};
    g_autoptr(GError) error = NULL;
    g_assert_null(cli_call(&cli, "QueryClusterInfo", json_array(), &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_RESULT);
    g_assert_cmpstr(error->message, ==,
                    "luxid closed the connection before it answered. What was asked for may have "
                    "been done: look at `fettle job list`.");
    g_clear_error(&error);
    json_autoptr got = cli_call(&cli, "QueryClusterInfo", json_array(), &error);
    g_assert_no_error(error);
    g_assert_cmpint(json_integer_value(got), ==, 7);
    cli_disconnect(&cli);
    luxid_free(luxid);
}

static void test_away(void)
{
    struct luxid *luxid = luxid_new(NULL);
    struct cli cli = {.root = luxid->root};
    g_autoptr(GError) error = NULL;
    g_unlink(luxid->path);
    g_assert_null(cli_call(&cli, "QueryClusterInfo", json_array(), &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
    luxid_free(luxid);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/luxi/who-answers-nobody-is-not-waited-for", test_silent);
    g_test_add_func("/luxi/nor-by-who-waits-for-a-change", test_silent_while_waiting);
    g_test_add_func("/luxi/who-answers-others-is-waited-for", test_slow);
    g_test_add_func("/luxi/who-breaks-off-is-asked-anew", test_breaks_off);
    g_test_add_func("/luxi/who-is-away-is-not-reached", test_away);
    return g_test_run();
}
