/* See look.h. */
#include "look.h"

#include "lab/lab.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

char *look_path(const char *dir, const char *node, const char *name)
{
    g_autofree char *root = lab_node_root(dir, node);
    return g_build_filename(root, name, NULL);
}

char *look_content(const char *dir, const char *node, const char *name)
{
    g_autofree char *path = look_path(dir, node, name);
    char *text = NULL;
    g_file_get_contents(path, &text, NULL, NULL);
    return text ? g_strchomp(text) : NULL;
}

int look_open_new(const char *dir, const char *node, const char *name)
{
    g_autofree char *path = look_path(dir, node, name);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

void look_write_text(int fd, const char *text, bool synced)
{
    g_assert_cmpint(pwrite(fd, text, strlen(text), 0), ==, (int)strlen(text));
    if (synced)
        g_assert_cmpint(fsync(fd), ==, 0);
}

json_t *look_daemon_status(const char *dir, const char *node, const char *name)
{
    g_autoptr(GError) error = NULL;
    json_autoptr status = lab_status(dir, &error);
    g_assert_no_error(error);
    size_t i, j;
    json_t *machine, *daemon;
    json_array_foreach(json_object_get(status, "nodes"), i, machine) {
        if (strcmp(json_string_value(json_object_get(machine, "name")), node) != 0)
            continue;
        json_array_foreach(json_object_get(machine, "daemons"), j, daemon) {
            if (strcmp(json_string_value(json_object_get(daemon, "name")), name) == 0)
                return json_incref(daemon);
        }
    }
    return NULL;
}

int look_daemon_number(const char *dir, const char *node, const char *field)
{
    json_autoptr daemon = look_daemon_status(dir, node, "dummy");
    return (int)json_integer_value(json_object_get(daemon, field));
}

char *look_node_text(const char *dir, guint index, const char *field)
{
    json_autoptr status = lab_status(dir, NULL);
    return g_strdup(json_string_value(
        json_object_get(json_array_get(json_object_get(status, "nodes"), index), field)));
}

int look_hold_process(const char *dir, const char *node, const char *file)
{
    g_autofree char *text = look_content(dir, node, file);
    g_assert_nonnull(text);
    int pidfd = (int)syscall(SYS_pidfd_open, atoi(text), 0);
    g_assert_cmpint(pidfd, >=, 0);
    return pidfd;
}

bool look_has_ended(int pidfd)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    return poll(&wait, 1, PATIENCE_MS) > 0;
}

bool look_mentions(const char *file, const char *text)
{
    g_autofree char *all = NULL;
    return g_file_get_contents(file, &all, NULL, NULL) && strstr(all, text);
}

void look_no_trace(const char *dir)
{
    g_autofree char *netns = lab_node_netns(dir, "node1");
    g_autofree char *path = g_build_filename("/run/netns", netns, NULL);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_autoptr(GDir) folder = g_dir_open(dir, 0, NULL);
    if (folder)
        g_error("%s is still there; in it: %s", dir, g_dir_read_name(folder));
    g_assert_false(look_mentions("/proc/self/mountinfo", dir));
    g_autoptr(GDir) devices = g_dir_open("/sys/block", 0, NULL);
    const char *name;
    while (devices && (name = g_dir_read_name(devices))) {
        g_autofree char *about = g_strdup_printf("/sys/block/%s/loop/backing_file", name);
        g_assert_false(look_mentions(about, dir));
    }
}

bool look_write_mib(int fd, guint mib)
{
    enum { BLOCK = 1024 * 1024 };
    g_autofree char *block = g_malloc0(BLOCK);
    size_t left = (size_t)mib * BLOCK;
    while (left > 0) {
        ssize_t count = write(fd, block, MIN(left, BLOCK));
        if (count <= 0)
            return false;
        left -= (size_t)count;
    }
    return fsync(fd) == 0;
}

pid_t look_writer(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        _exit(fd >= 0 && look_write_mib(fd, 1) ? 0 : 1);
    }
    return child;
}

bool look_waits_in_kernel(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return g_str_has_prefix(strrchr(text, ')'), ") D");
}
