/* See starter_world.h. */
#include "starter_world.h"

#include "io/files.h"
#include "io/livelock.h"

#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

char *job_program;

void put_program(struct fixture *fixture, const char *script)
{
    g_autofree char *path = g_build_filename(fixture->bin, NURSERY_PROGRAM, NULL);

    g_unlink(path);
    g_assert_true(g_file_set_contents(path, script, -1, NULL));
    g_assert_cmpint(g_chmod(path, 0755), ==, 0);
}

void put_job_file(struct fixture *fixture, guint64 job)
{
    g_autofree char *name = g_strdup_printf("job-%" G_GUINT64_FORMAT, job);
    g_autofree char *text = g_strdup_printf(
        "{\"id\":%" G_GUINT64_FORMAT ",\"ops\":[{\"input\":{},\"status\":\"queued\"}]}", job);
    g_autoptr(GError) error = NULL;

    files_write(fixture->paths, FILE_QUEUE, name, text, strlen(text), &error);
    g_assert_no_error(error);
}

static int listen_as_wconfd(struct fixture *fixture)
{
    g_autofree char *path = node_paths_socket(fixture->paths, ROLE_WCONFD);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(fd, 100), ==, 0);
    return fd;
}

bool has_begun(struct fixture *fixture, int timeout_ms)
{
    struct pollfd begun = {.fd = fixture->wconfd, .events = POLLIN};

    if (poll(&begun, 1, timeout_ms) <= 0)
        return false;
    int connection = accept(fixture->wconfd, NULL, NULL);
    g_assert_cmpint(connection, >=, 0);
    close(connection);
    return true;
}

void set_up(struct fixture *fixture, gconstpointer unused)
{
    const struct real_env_options options = {.bin_folder = NULL};
    g_autoptr(GError) error = NULL;

    fixture->paths = world_new(NODE_A);
    fixture->bin = g_build_filename(fixture->paths->root, "bin", NULL);
    g_assert_cmpint(g_mkdir(fixture->bin, 0755), ==, 0);
    g_autofree char *link = g_build_filename(fixture->bin, NURSERY_PROGRAM, NULL);
    g_assert_cmpint(symlink(job_program, link), ==, 0);
    g_setenv("FETTLE_BINDIR", fixture->bin, TRUE);
    fixture->env = real_env_new(fixture->paths->root, ROLE_LUXID, &options, &error);
    g_assert_no_error(error);
    fixture->wconfd = listen_as_wconfd(fixture);
}

void tear_down(struct fixture *fixture, gconstpointer unused)
{
    real_env_free(fixture->env);
    close(fixture->wconfd);
    g_free(fixture->name);
    g_free(fixture->bin);
    world_remove(fixture->paths);
}

void named_cb(struct starter *starter, const char *livelock, guint64 pid, guint64 ticks, void *data)
{
    struct fixture *fixture = data;

    fixture->named++;
    fixture->name = g_strdup(livelock);
    fixture->pid = pid;
    fixture->ticks = ticks;
    if (!fixture->dying)
        g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, livelock), ==,
                        LIVELOCK_ALIVE);
    if (fixture->confirm_at_once)
        g_assert_true(fixture->env->ops->starter_confirm(fixture->env, starter));
}

void broken_cb(struct starter *starter, bool confirmed, void *data)
{
    struct fixture *fixture = data;

    fixture->broken++;
    fixture->confirmed = confirmed;
}

const struct starter_events events = {named_cb, broken_cb};

struct starter *start(struct fixture *fixture, guint64 job)
{
    g_autoptr(GError) error = NULL;
    struct starter *starter =
        fixture->env->ops->starter_spawn(fixture->env, job, &events, fixture, &error);

    g_assert_no_error(error);
    return starter;
}

void wait_gone(struct fixture *fixture)
{
    while (fixture->env->ops->livelock_probe(fixture->env, fixture->name) == LIVELOCK_ALIVE)
        world_pause(2);
}

char **words_of(guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/cmdline", (guint)pid);
    char *text = NULL;
    gsize len = 0;

    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    while (len > 1 && text[len - 1] == '\0')
        len--;
    for (gsize i = 0; i < len; i++)
        if (text[i] == '\0')
            text[i] = '\n';
    g_autofree char *lines = g_strndup(text, len);
    g_free(text);
    return g_strsplit(lines, "\n", -1);
}

void begin(struct fixture *fixture, guint64 job)
{
    fixture->confirm_at_once = true;
    put_job_file(fixture, job);
    start(fixture, job);
    world_wait_count(&fixture->broken, 1);
    g_assert_true(fixture->confirmed);
    g_assert_true(has_begun(fixture, 60000));
}

void end(struct fixture *fixture)
{
    kill((pid_t)fixture->pid, SIGKILL);
    wait_gone(fixture);
    g_assert_cmpint(fixture->env->ops->livelock_probe(fixture->env, fixture->name), ==,
                    LIVELOCK_DEAD);
}

guint64 parent_of(guint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%u/stat", (guint)pid);
    g_autofree char *text = NULL;
    guint64 parent = 0;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) fields = g_strsplit(strrchr(text, ')'), " ", 4);
    g_assert_true(g_ascii_string_to_unsigned(fields[2], 10, 1, G_MAXINT32, &parent, NULL));
    return parent;
}

void wait_no_child(void)
{
    siginfo_t info;

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        world_pause(2);
}
