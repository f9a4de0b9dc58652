/* See elsewhere.h. */
#include "lab/elsewhere.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

char *elsewhere_unescape(const char *text)
{
    GString *plain = g_string_new(NULL);
    while (*text) {
        if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] && text[3]) {
            g_string_append_c(plain,
                              (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0')));
            text += 4;
        } else {
            g_string_append_c(plain, *text++);
        }
    }
    return g_string_free(plain, FALSE);
}

/* --- processes --- */

/* The next one of /proc but this; 0: no more. */
static pid_t next_process(GDir *processes)
{
    const char *name;
    while (processes && (name = g_dir_read_name(processes))) {
        pid_t pid = (pid_t)atoi(name);
        if (pid > 0 && pid != getpid())
            return pid;
    }
    return 0;
}

/* Mount points of the device in the mount namespace of a process, in the order in which they were
 * mounted. */
static GPtrArray *points_of(pid_t pid, dev_t device)
{
    GPtrArray *points = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *path = g_strdup_printf("/proc/%d/mountinfo", (int)pid);
    g_autofree char *mark = g_strdup_printf("%u:%u", major(device), minor(device));
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return points;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) words = g_strsplit(*line, " ", 6);
        if (g_strv_length(words) == 6 && !strcmp(words[2], mark))
            g_ptr_array_add(points, elsewhere_unescape(words[4]));
    }
    return points;
}

static int open_space(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/ns/mnt", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* --- unmounting --- */

/* In a process of its own: who has entered a mount namespace does not get out again. */
static void unmount_in(int space, const GPtrArray *points)
{
    pid_t child = fork();
    if (child == 0) {
        if (setns(space, CLONE_NEWNS) != 0)
            _exit(1);
        for (guint i = points->len; i > 0; i--)
            umount2(points->pdata[i - 1], MNT_DETACH | UMOUNT_NOFOLLOW);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

static bool is_ours(int space)
{
    struct stat theirs, ours;
    return fstat(space, &theirs) != 0 || stat("/proc/self/ns/mnt", &ours) != 0 ||
           (theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev);
}

void elsewhere_unmount(dev_t device)
{
    g_autoptr(GDir) processes = g_dir_open("/proc", 0, NULL);
    for (pid_t pid = next_process(processes); pid; pid = next_process(processes)) {
        int space = open_space(pid);
        g_autoptr(GPtrArray) points = space >= 0 ? points_of(pid, device) : NULL;
        if (points && points->len > 0 && !is_ours(space))
            unmount_in(space, points);
        if (space >= 0)
            close(space);
    }
}

/* --- who has it --- */

static bool is_on(const char *path, dev_t device)
{
    struct stat about;
    return stat(path, &about) == 0 && about.st_dev == device;
}

static bool has_file(pid_t pid, dev_t device)
{
    g_autofree char *process = g_strdup_printf("/proc/%d", (int)pid);
    g_autofree char *folder = g_build_filename(process, "fd", NULL);
    static const char *const own[] = {"cwd", "root", "exe"};
    for (guint i = 0; i < G_N_ELEMENTS(own); i++) {
        g_autofree char *path = g_build_filename(process, own[i], NULL);
        if (is_on(path, device))
            return true;
    }
    g_autoptr(GDir) files = g_dir_open(folder, 0, NULL);
    const char *name;
    while (files && (name = g_dir_read_name(files))) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (is_on(path, device))
            return true;
    }
    return false;
}

char *elsewhere_user(dev_t device)
{
    g_autoptr(GDir) processes = g_dir_open("/proc", 0, NULL);
    for (pid_t pid = next_process(processes); pid; pid = next_process(processes)) {
        g_autoptr(GPtrArray) points = points_of(pid, device);
        bool file = has_file(pid, device);
        if (!file && points->len == 0)
            continue;
        g_autofree char *path = g_strdup_printf("/proc/%d/comm", (int)pid);
        g_autofree char *comm = NULL;
        if (g_file_get_contents(path, &comm, NULL, NULL))
            g_strchomp(comm);
        return g_strdup_printf("process %d (%s), which has %s", (int)pid, comm ? comm : "ended",
                               file ? "a file or its working folder in there" : "it mounted");
    }
    return NULL;
}
