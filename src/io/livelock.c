/* See livelock.h. */
#include "io/livelock.h"
#include "io/crash.h"
#include "io/files.h"
#include "io/loop.h"
#include "io/nursery.h"
#include "io/process.h"
#include "proto/api/place.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "livelocks"
#define PROBES_AFTER_CLOSE 8 /* 1, 2, 4 … 128 ms */

struct livelock {
    char *name;
    char *path;
    int fd;
};

/* Those of another user than root lie in a folder of its own. */
static bool name_is_plain(const char *name)
{
    if (name != NULL)
        name += strlen(place_of_livelock(name));
    return name != NULL && name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL &&
           strlen(name) <= LIMIT_TAG_CHARS;
}

static char *path_of(const struct node_paths *paths, const char *name)
{
    return g_build_filename(paths->run, *place_of_livelock(name) ? "" : FOLDER, name, NULL);
}

static bool lock_exclusively(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/* Makes and locks `temporary`, and renames it to `path`; the descriptor, or -1 with errno. */
static int make_locked(const char *temporary, const char *path)
{
    crash_point("livelock: create");
    int fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    crash_point("livelock: lock");
    bool ok = lock_exclusively(fd);
    if (ok) {
        crash_point("livelock: rename");
        ok = rename(temporary, path) == 0;
    }
    if (ok)
        return fd;
    int code = errno;
    unlink(temporary);
    close(fd);
    errno = code;
    return -1;
}

struct livelock *livelock_make(const struct node_paths *paths, const char *stem, GError **error)
{
    if (!name_is_plain(stem) || strlen(stem) > LIMIT_NAME_CHARS) {
        fettle_set_error(error, WRONG_INPUT, "lock file \"%s\": must be a plain file name",
                         stem != NULL ? stem : "");
        return NULL;
    }
    g_autofree char *name =
        g_strdup_printf("%s-%d-%08x%08x", stem, getpid(), g_random_int(), g_random_int());
    g_autofree char *path = path_of(paths, name);
    g_autofree char *folder = g_path_get_dirname(path), *base = g_path_get_basename(path);
    g_autofree char *temporary = g_strconcat(folder, "/.", base, NULL);
    int fd = make_locked(temporary, path);
    if (fd < 0) {
        int code = errno;
        fettle_set_error(error, STORAGE, "cannot make the lock file %s: %s", path,
                         g_strerror(code));
        return NULL;
    }
    struct livelock *livelock = g_new0(struct livelock, 1);
    livelock->name = g_steal_pointer(&name);
    livelock->path = g_steal_pointer(&path);
    livelock->fd = fd;
    return livelock;
}

const char *livelock_name(const struct livelock *livelock)
{
    return livelock->name;
}

void livelock_drop(struct livelock *livelock)
{
    if (livelock == NULL)
        return;
    crash_point("livelock: unlink");
    unlink(livelock->path);
    close(livelock->fd);
    g_free(livelock->name);
    g_free(livelock->path);
    g_free(livelock);
}

enum livelock_verdict livelock_probe(const struct node_paths *paths, const char *name)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    struct stat info;

    if (!name_is_plain(name))
        return LIVELOCK_UNSURE;
    g_autofree char *path = path_of(paths, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? LIVELOCK_GONE : LIVELOCK_UNSURE;
    bool asked =
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && fcntl(fd, F_OFD_GETLK, &lock) == 0;
    close(fd);
    if (!asked)
        return LIVELOCK_UNSURE;
    return lock.l_type == F_UNLCK ? LIVELOCK_DEAD : LIVELOCK_ALIVE;
}

/* --- who holds it --- */

/* Of STEM-PID-RANDOM; 0: there is none. */
static guint64 pid_in(const char *name)
{
    const char *random = strrchr(name, '-');
    g_autofree char *before = random == NULL ? NULL : g_strndup(name, (gsize)(random - name));
    const char *pid = before == NULL ? NULL : strrchr(before, '-');
    guint64 number = 0;

    if (pid == NULL || !g_ascii_string_to_unsigned(pid + 1, 10, 1, G_MAXINT, &number, NULL))
        return 0;
    return number;
}

static bool runs_job_program(guint64 pid)
{
    g_autofree char *link = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/exe", pid);
    g_autofree char *path = g_file_read_link(link, NULL);
    g_autofree char *program = path == NULL ? NULL : g_path_get_basename(path);

    /* " (deleted)": it was replaced by a newer one meanwhile. */
    return program != NULL && (g_str_equal(program, NURSERY_PROGRAM) ||
                               g_str_equal(program, NURSERY_PROGRAM " (deleted)"));
}

static bool has_open(guint64 pid, const struct stat *file)
{
    g_autofree char *folder = g_strdup_printf("/proc/%" G_GUINT64_FORMAT "/fd", pid);
    g_autoptr(GDir) descriptors = g_dir_open(folder, 0, NULL);
    const char *name;
    bool found = false;

    while (!found && descriptors != NULL && (name = g_dir_read_name(descriptors)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        struct stat info;

        found =
            stat(path, &info) == 0 && info.st_dev == file->st_dev && info.st_ino == file->st_ino;
    }
    return found;
}

/* The start time is read first: if the number is another's when the rest is looked at, that one
 * does not have the file, and if it becomes another's later, the start time does not fit. */
bool livelock_find_holder(const struct node_paths *paths, const char *name, guint64 *ret_pid,
                          guint64 *ret_start_ticks)
{
    guint64 pid = name_is_plain(name) ? pid_in(name) : 0;
    guint64 ticks = pid == 0 ? 0 : process_read_start_ticks(pid);
    g_autofree char *path = pid == 0 ? NULL : path_of(paths, name);
    struct stat file;

    if (ticks == 0 || stat(path, &file) != 0 || !runs_job_program(pid) || !has_open(pid, &file))
        return false;
    *ret_pid = pid;
    *ret_start_ticks = ticks;
    return true;
}

GPtrArray *livelock_list(const struct node_paths *paths)
{
    GPtrArray *names = files_list(paths, FILE_RUN, FOLDER, NULL);
    return names != NULL ? names : g_ptr_array_new_with_free_func(g_free);
}

void livelock_remove(const struct node_paths *paths, const char *name)
{
    if (livelock_probe(paths, name) != LIVELOCK_DEAD)
        return;
    g_autofree char *path = path_of(paths, name);
    crash_point("livelock: remove");
    unlink(path);
}

/* --- watching --- */

struct livelock_watcher {
    const struct node_paths *paths;
    struct folder_watch *folder;
    GHashTable *watches; /* name -> GPtrArray of struct watch */
};

struct watch {
    struct livelock_watcher *watcher;
    char *name;
    void (*released)(const char *name, void *data);
    void *data;
    guint tries; /* probes since the last close of the file */
    guint timer;
};

static void watch_free(void *data)
{
    struct watch *watch = data;
    loop_timer_cancel(watch->timer);
    g_free(watch->name);
    g_free(watch);
}

static void watch_look(struct watch *watch);

static void look_cb(void *data)
{
    struct watch *watch = data;
    watch->timer = 0;
    watch_look(watch);
}

/* The kernel tells of the close before it drops the lock: a probe right after may still meet it,
 * hence a few more. */
static void watch_look(struct watch *watch)
{
    struct livelock_watcher *watcher = watch->watcher;

    if (livelock_probe(watcher->paths, watch->name) == LIVELOCK_ALIVE) {
        if (watch->tries < PROBES_AFTER_CLOSE && watch->timer == 0)
            watch->timer = loop_timer(1u << watch->tries++, look_cb, watch);
        return;
    }
    GPtrArray *same = g_hash_table_lookup(watcher->watches, watch->name);
    g_ptr_array_remove(same, watch);
    if (same->len == 0)
        g_hash_table_remove(watcher->watches, watch->name);
    watch->released(watch->name, watch->data);
    watch_free(watch);
}

static void look_again(struct watch *watch)
{
    watch->tries = 0;
    if (watch->timer == 0)
        watch->timer = loop_timer(0, look_cb, watch);
}

static void look_at_all(GPtrArray *watches)
{
    for (guint i = 0; i < watches->len; i++)
        look_again(watches->pdata[i]);
}

static void folder_changed(const char *name, void *data)
{
    struct livelock_watcher *watcher = data;
    GHashTableIter iter;
    void *watches;

    if (name != NULL) {
        watches = g_hash_table_lookup(watcher->watches, name);
        if (watches != NULL)
            look_at_all(watches);
        return;
    }
    g_hash_table_iter_init(&iter, watcher->watches);
    while (g_hash_table_iter_next(&iter, NULL, &watches))
        look_at_all(watches);
}

struct livelock_watcher *livelock_watcher_new(const struct node_paths *paths, GError **error)
{
    struct livelock_watcher *watcher = g_new0(struct livelock_watcher, 1);
    g_autofree char *folder = g_build_filename(paths->run, FOLDER, NULL);

    watcher->paths = paths;
    watcher->watches =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref);
    watcher->folder = folder_watch_new(folder, folder_changed, watcher, error);
    if (watcher->folder == NULL)
        g_clear_pointer(&watcher, livelock_watcher_free);
    return watcher;
}

void livelock_watcher_free(struct livelock_watcher *watcher)
{
    GHashTableIter iter;
    void *watches;

    if (watcher == NULL)
        return;
    g_hash_table_iter_init(&iter, watcher->watches);
    while (g_hash_table_iter_next(&iter, NULL, &watches))
        g_ptr_array_set_free_func(watches, watch_free);
    g_hash_table_unref(watcher->watches);
    folder_watch_free(watcher->folder);
    g_free(watcher);
}

void livelock_watcher_add(struct livelock_watcher *watcher, const char *name,
                          void (*released)(const char *name, void *data), void *data)
{
    struct watch *watch = g_new0(struct watch, 1);

    watch->watcher = watcher;
    watch->name = g_strdup(name);
    watch->released = released;
    watch->data = data;
    GPtrArray *same = g_hash_table_lookup(watcher->watches, name);
    if (same == NULL) {
        same = g_ptr_array_new();
        g_hash_table_insert(watcher->watches, g_strdup(name), same);
    }
    g_ptr_array_add(same, watch);
    look_again(watch);
}
