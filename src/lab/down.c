/*
 * lab_down(): removes a lab from outside, always in the same way, whether its supervisor lives,
 * died, or never came to life. What is to be removed is found by looking (namespaces by prefix,
 * mounts by path, loop devices by file), not by what somebody wrote down; lab.json goes last, so an
 * interrupted removal can be repeated.
 */
#include "lab/lab.h"

#include "base/error.h"
#include "io/process.h"
#include "io/tree.h"
#include "lab/disk.h"
#include "lab/layout.h"
#include "lab/net.h"
#include "lab/proc.h"
#include "lab/tools.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define KILL_TIMEOUT_MS 5000
#define LOCK_STEP_US 10000
#define LOCK_STEPS 500

/* Kills the process that the lock file names, if it is still that one. */
static void kill_named(int fd)
{
    char text[64] = "";
    int pid;
    guint64 start;
    ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
    if (len <= 0 || sscanf(text, "%d %" G_GUINT64_FORMAT, &pid, &start) != 2 || pid <= 1)
        return;
    int pidfd = proc_open(pid);
    if (pidfd < 0)
        return;
    if (process_read_start_ticks((guint64)pid) == start && proc_signal(pidfd, SIGKILL))
        proc_wait(pidfd, KILL_TIMEOUT_MS);
    close(pidfd);
}

/* Ends the supervisor and keeps another from starting: whoever holds the lock is alone. Returns the
 * descriptor. */
static int stop_supervisor(const char *dir, GError **error)
{
    g_autofree char *path = g_build_filename(dir, "lab.lock", NULL);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    for (int i = 0; fd >= 0 && i < LOCK_STEPS; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return fd;
        kill_named(fd);
        g_usleep(LOCK_STEP_US);
    }
    fettle_set_error(error, WRONG_STATE, "cannot stop the supervisor of the lab in %s (%s: %s)",
                     dir, path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool remove_machines(const char *dir, GError **error)
{
    g_autofree char *prefix = layout_prefix(dir);
    g_autofree char *below = g_strdup_printf("%s/", dir);
    g_autoptr(GPtrArray) spaces = net_list(prefix);
    disk_cut_below(dir); /* nothing of it is needed any more: no time is lost by writing it back */
    return proc_kill_netns(spaces, error) && net_remove_all(prefix, error) &&
           disk_unmount_below(dir, error) && disk_wait_detached(below, error);
}

/* What files_make_folder() had begun when its process was killed has a dot before the name. */
static bool is_of_lab(const char *name)
{
    bool begun = *name == '.';
    name += begun;
    g_autofree char *stem = g_strndup(name, strcspn(name, ".-"));
    return layout_node_number(stem) > 0 || strcmp(stem, "shared") == 0 ||
           strcmp(name, "clouds.yaml") == 0 || strcmp(begun ? stem : name, "ceph") == 0 ||
           strcmp(begun ? stem : name, "log") == 0 ||
           (g_str_has_prefix(name, "lab.") && strcmp(name, "lab.json") != 0);
}

static bool remove_files(const char *dir, GError **error)
{
    g_autofree char *description = g_build_filename(dir, "lab.json", NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) folder = g_dir_open(dir, 0, NULL);
    const char *name;
    while (folder && (name = g_dir_read_name(folder)))
        if (is_of_lab(name))
            g_ptr_array_add(names, g_build_filename(dir, name, NULL));
    for (guint i = 0; i < names->len; i++)
        if (!tree_remove(g_ptr_array_index(names, i), error))
            return false;
    return tree_remove(description, error);
}

/* Whether the folder goes with the lab; a damaged description counts as no. */
static bool was_made(const char *dir)
{
    layout_autoptr layout = layout_load(dir, NULL);
    return layout && layout->made_dir;
}

/* A folder without lab.json in which there is nothing, or only what a lab_up() that died early had
 * begun to write. */
static bool is_unborn(const char *dir)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GDir) folder = g_dir_open(dir, 0, &error);
    const char *name;
    while (folder && (name = g_dir_read_name(folder)))
        if (!g_str_has_prefix(name, "lab.json.") && strcmp(name, "lab.lock") != 0)
            return false;
    return folder || g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
}

static bool remove_unborn(const char *dir, GError **error)
{
    if (is_unborn(dir)) /* one whose folder was deleted by hand still has its namespaces */
        return remove_machines(dir, error) && remove_files(dir, error);
    fettle_set_error(error, WRONG_INPUT, "%s is not a lab's folder: nothing was removed", dir);
    return false;
}

bool lab_down(const char *dir, GError **error)
{
    g_autofree char *resolved = layout_resolve(dir, error);
    if (!resolved || !tools_check_root(error))
        return false;
    if (!layout_exists(resolved))
        return remove_unborn(resolved, error);
    int lock = stop_supervisor(resolved, error);
    if (lock < 0)
        return false;
    bool made = was_made(resolved);
    bool ok = remove_machines(resolved, error) && remove_files(resolved, error);
    close(lock);
    if (ok && made)
        rmdir(resolved);
    return ok;
}
