/* See files.h. */
#include "io/files.h"
#include "io/crash.h"
#include "io/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MODE_DEFAULT 0600
#define MODE_OF_GROUP 0640 /* the folder gives them to its group */

bool files_error(const char *doing, const char *path, GError **error)
{
    int code = errno;
    fettle_set_error(error, STORAGE, "cannot %s %s: %s", doing, path, g_strerror(code));
    return false;
}

/* --- names --- */

static bool name_is_safe(const char *name)
{
    if (name == NULL || name[0] == '\0' || strlen(name) > LIMIT_STRING_CHARS)
        return false;
    g_auto(GStrv) parts = g_strsplit(name, "/", -1);
    for (guint i = 0; parts[i] != NULL; i++)
        if (parts[i][0] == '\0' || parts[i][0] == '.')
            return false;
    return true;
}

static char *area_folder(const struct node_paths *paths, enum file_area area)
{
    switch (area) {
    case FILE_STATE:
        return g_strdup(paths->var);
    case FILE_QUEUE:
        return g_build_filename(paths->run, "queue", NULL);
    case FILE_RUN:
        return g_strdup(paths->run);
    case FILE_STATS:
        return g_build_filename(paths->run, "stats", NULL);
    case FILE_MOND:
        return g_build_filename(paths->var, "mond", NULL);
    case FILE_RAPI:
        return g_build_filename(paths->var, "rapi", NULL);
    case FILE_PROC:
        return g_strdup("/proc");
    }
    g_assert_not_reached();
}

char *files_path(const struct node_paths *paths, enum file_area area, const char *name,
                 GError **error)
{
    if (!name_is_safe(name)) {
        fettle_set_error(
            error, WRONG_INPUT,
            "file name \"%s\": must be relative, without empty parts and without parts "
            "that begin with a dot",
            name != NULL ? name : "");
        return NULL;
    }
    g_autofree char *folder = area_folder(paths, area);
    return g_build_filename(folder, name, NULL);
}

char *files_folder(const struct node_paths *paths, enum file_area area, const char *folder,
                   GError **error)
{
    return folder[0] == '\0' ? area_folder(paths, area) : files_path(paths, area, folder, error);
}

/* --- what the kernel is asked, blocking --- */

static bool sync_folder_of(const char *path, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return files_error("open the folder", folder, error);
    crash_point("files: fsync folder");
    int result = fsync(fd);
    int code = errno;
    close(fd);
    errno = code;
    return result == 0 || files_error("sync the folder", folder, error);
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        crash_point("files: write");
        ssize_t written = write(fd, data, len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        data += written;
        len -= (size_t)written;
    }
    return true;
}

/* A new folder survives a power cut only if the one that it stands in is synced. */
static bool make_folder(const char *folder, bool sync)
{
    g_autofree char *above = g_path_get_dirname(folder);

    if (g_file_test(folder, G_FILE_TEST_IS_DIR))
        return true;
    if (!make_folder(above, sync))
        return false;
    crash_point("files: mkdir");
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return false;
    return !sync || sync_folder_of(folder, NULL);
}

bool files_make_folder(const char *path, guint mode, GError **error)
{
    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return true;
    g_autofree char *above = g_path_get_dirname(path);
    if (!files_make_folder(above, mode, error))
        return false;
    if (g_file_test(path, G_FILE_TEST_IS_DIR)) /* it ends with a separator */
        return true;
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *temporary = g_strdup_printf("%s/.%s.%d-%d", above, base, getpid(), gettid());
    if ((mkdir(temporary, 0700) == 0 || errno == EEXIST) && chmod(temporary, mode) == 0 &&
        rename(temporary, path) == 0)
        return true;
    int code = errno; /* somebody else may have been faster */
    rmdir(temporary);
    errno = code;
    return g_file_test(path, G_FILE_TEST_IS_DIR) || files_error("make the folder", path, error);
}

/* Opens for writing; makes the folder above if that is what is missing. */
static int open_making_folder(const char *path, int flags, mode_t mode, bool sync)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    g_autofree char *folder = g_path_get_dirname(path);
    if (!make_folder(folder, sync))
        return -1;
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode);
}

/* What is told of a file that takes the place of another. */
struct content {
    const char *data;
    size_t len;
    guint mode;
    guint32 uid; /* whose it is, user and group; 0: ours */
    bool sync;
    bool of_folder; /* it is of the folder's group */
};

static bool give_to_group_of(int fd, const char *path)
{
    struct stat about;
    g_autofree char *folder = g_path_get_dirname(path);
    return stat(folder, &about) == 0 &&
           (about.st_gid == getegid() || fchown(fd, (uid_t)-1, about.st_gid) == 0);
}

static bool fill_temporary(const char *temporary, const struct content *content, GError **error)
{
    bool sync = content->sync;
    crash_point("files: create");
    int fd = open_making_folder(temporary, O_WRONLY | O_CREAT | O_EXCL, content->mode, sync);
    if (fd < 0)
        return files_error("create", temporary, error);
    /* The umask keeps others out; who is let in is let in by name. */
    bool ok = ((content->mode & 077) == 0 || fchmod(fd, content->mode) == 0) &&
              write_all(fd, content->data, content->len) &&
              (content->uid == 0 || fchown(fd, content->uid, content->uid) == 0) &&
              (!content->of_folder || give_to_group_of(fd, temporary));
    if (ok && sync) {
        crash_point("files: fsync");
        ok = fsync(fd) == 0;
    }
    int code = errno;
    if (close(fd) != 0 && ok) {
        code = errno;
        ok = false;
    }
    errno = code;
    return ok || files_error("write", temporary, error);
}

/* Says who writes it (sweep_temporary()), and what nobody can foresee. */
static char *temporary_name(const char *path)
{
    g_autofree char *folder = g_path_get_dirname(path);
    g_autofree char *base = g_path_get_basename(path);
    guint64 number = 0;
    g_assert(getrandom(&number, sizeof number, 0) == (ssize_t)sizeof number);
    return g_strdup_printf("%s/.%s.%d-%d-%016" G_GINT64_MODIFIER "x", folder, base, getpid(),
                           gettid(), number);
}

static bool replace(const char *path, const struct content *content, GError **error)
{
    g_autofree char *temporary = temporary_name(path);
    if (!fill_temporary(temporary, content, error)) {
        unlink(temporary);
        return false;
    }
    crash_point("files: rename");
    if (rename(temporary, path) != 0) {
        files_error("rename into place", path, error);
        unlink(temporary);
        return false;
    }
    return !content->sync || sync_folder_of(path, error);
}

bool files_write_path(const char *path, const char *data, size_t len, guint mode, bool sync,
                      GError **error)
{
    const struct content content = {data, len, mode, 0, sync, false};
    return replace(path, &content, error);
}

bool files_write_typed(const char *path, const char *data, size_t len, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    struct stat status;
    if (stat(folder, &status) != 0) {
        fettle_set_error(error, WRONG_INPUT, "%s: folder %s: %s; make it first, or mount it", path,
                         folder, g_strerror(errno));
        return false;
    }
    if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        fettle_set_error(error, WRONG_INPUT,
                         "%s is there, and no plain file; what is written would take its place, so "
                         "give another name",
                         path);
        return false;
    }
    return files_write_path(path, data, len, 0600, true, error);
}

bool files_give_path(const char *path, const char *data, size_t len, guint32 uid, GError **error)
{
    const struct content content = {data, len, MODE_DEFAULT, uid, false, false};
    return replace(path, &content, error);
}

/* The file in run/ that was last appended to – in wconfd the lock journal, for every change of a
 * lock – stays open, as long as the file of that name is still that one. Not so elsewhere: that an
 * appended file is closed tells who watches its folder. Of the loop's thread only. */
static struct {
    char *path;
    int fd;
} appended = {NULL, -1};

static void appended_forget(void)
{
    if (appended.fd >= 0)
        close(appended.fd);
    g_clear_pointer(&appended.path, g_free);
    appended.fd = -1;
}

/* `ret_state` is what it is now. */
static int open_for_append(const char *path, bool sync, bool keep, struct stat *ret_state)
{
    if (keep && appended.fd >= 0 && strcmp(appended.path, path) == 0 &&
        fstat(appended.fd, ret_state) == 0 && ret_state->st_nlink > 0)
        return appended.fd;
    crash_point("files: open for append");
    int fd = open_making_folder(path, O_WRONLY | O_CREAT | O_APPEND, MODE_DEFAULT, sync);
    if (fd < 0)
        return -1;
    if (fstat(fd, ret_state) != 0) {
        close(fd);
        return -1;
    }
    if (keep) {
        appended_forget();
        appended.path = g_strdup(path);
        appended.fd = fd;
    }
    return fd;
}

static bool append_path(const char *path, const char *data, size_t len, bool sync, bool keep,
                        GError **error)
{
    struct stat before;
    int fd = open_for_append(path, sync, keep, &before);

    if (fd < 0)
        return files_error("open", path, error);
    bool ok = write_all(fd, data, len);
    if (ok && sync) {
        crash_point("files: fsync");
        ok = fsync(fd) == 0;
    }
    if (!ok) {
        int code = errno;
        (void)!ftruncate(fd, before.st_size);
        errno = code;
        files_error("append to", path, error);
    }
    if (!keep)
        close(fd);
    else if (!ok)
        appended_forget();
    return ok && (!sync || sync_folder_of(path, error));
}

/* Its user may be younger than what was put there for him. Of a folder of ours alone: what somebody
 * else has in his may be another name of a file that is none of his. */
static bool give_files(const char *path, gid_t gid)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    struct stat about;
    bool ok = folder != NULL;
    while (ok && (entry = readdir(folder)) != NULL) {
        if (fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(about.st_mode) && about.st_uid == geteuid() && about.st_gid != gid)
            ok = fchownat(dirfd(folder), entry->d_name, (uid_t)-1, gid, AT_SYMLINK_NOFOLLOW) == 0 ||
                 errno == ENOENT;
    }
    if (folder != NULL)
        closedir(folder);
    return ok;
}

bool files_give_folder(const char *path, guint mode, guint32 uid, guint32 gid, GError **error)
{
    struct stat about;
    if (!files_make_folder(path, mode, error))
        return false;
    bool ok = lstat(path, &about) == 0;
    if (ok && (about.st_uid != uid || about.st_gid != gid))
        ok = lchown(path, uid, gid) == 0;
    if (ok && (about.st_mode & 07777) != mode)
        ok = chmod(path, mode) == 0;
    if (ok && uid == geteuid())
        ok = give_files(path, gid);
    return ok || files_error("give to its user", path, error);
}

bool files_remove_path(const char *path, bool sync, GError **error)
{
    crash_point("files: unlink");
    if (unlink(path) != 0) {
        if (errno == ENOENT)
            return true;
        return files_error("remove", path, error);
    }
    return !sync || sync_folder_of(path, error);
}

static char *read_open(int fd, const char *path, size_t max, size_t *ret_len, GError **error)
{
    struct stat info;

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        errno = EINVAL;
        files_error("read", path, error);
        return NULL;
    }
    if ((guint64)info.st_size > max) {
        fettle_set_error(error, LIMIT, "%s has %" G_GUINT64_FORMAT " bytes; at most %zu are read",
                         path, (guint64)info.st_size, max);
        return NULL;
    }
    size_t size = (size_t)info.st_size;
    size_t len = 0;
    g_autofree char *data = g_malloc(size + 1);
    while (len < size) {
        ssize_t got = read(fd, data + len, size - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            files_error("read", path, error);
            return NULL;
        }
        if (got == 0)
            break;
        len += (size_t)got;
    }
    data[len] = '\0';
    if (ret_len != NULL)
        *ret_len = len;
    return g_steal_pointer(&data);
}

static char *read_whole(const char *path, int flags, size_t max, size_t *ret_len, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);

    if (fd < 0) {
        if (errno == ENOENT)
            fettle_set_error(error, UNKNOWN_ENTITY, "there is no file %s", path);
        else
            files_error("open", path, error);
        return NULL;
    }
    char *data = read_open(fd, path, max, ret_len, error);
    close(fd);
    return data;
}

/* The kernel does not say how much is to come. */
static char *read_proc(const char *path, size_t max, size_t *ret_len, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    g_autoptr(GString) text = g_string_new(NULL);
    char buffer[4096];
    ssize_t got = 0;
    if (fd < 0) {
        files_error("open", path, error);
        return NULL;
    }
    while (text->len <= max && (got = read(fd, buffer, sizeof buffer)) > 0)
        g_string_append_len(text, buffer, got);
    int code = errno;
    close(fd);
    errno = code;
    if (got < 0) {
        files_error("read", path, error);
        return NULL;
    }
    if (text->len > max) {
        fettle_set_error(error, LIMIT, "%s has more than %zu bytes, which are read at most", path,
                         max);
        return NULL;
    }
    if (ret_len != NULL)
        *ret_len = text->len;
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char *files_read_path(const char *path, size_t max, size_t *ret_len, GError **error)
{
    return read_whole(path, 0, max, ret_len, error);
}

/* --- the worker: one thread does what tasks wait for --- */

struct work {
    gatomicrefcount refs; /* the task, the worker */
    enum { WORK_WRITE, WORK_APPEND, WORK_REMOVE } what;
    char *path;
    char *data;
    size_t len;
    guint mode; /* of what is written whole */
    bool sync;
    bool keep; /* the file that is appended to stays open */
    bool ok;
    GError *error;
    struct promise done;
    bool abandoned; /* the task was killed while it waited */
};

static void work_unref(struct work *work)
{
    if (!g_atomic_ref_count_dec(&work->refs))
        return;
    g_free(work->path);
    g_free(work->data);
    g_clear_error(&work->error);
    g_free(work);
}

static bool write_whole(const struct work *work, GError **error)
{
    const struct content content = {work->data, work->len,  work->mode,
                                    0,          work->sync, work->mode == MODE_OF_GROUP};
    return replace(work->path, &content, error);
}

static bool work_do(struct work *work, GError **error)
{
    switch (work->what) {
    case WORK_WRITE:
        return write_whole(work, error);
    case WORK_APPEND:
        return append_path(work->path, work->data, work->len, work->sync, work->keep, error);
    case WORK_REMOVE:
        return files_remove_path(work->path, work->sync, error);
    }
    g_assert_not_reached();
}

static void work_done(void *data)
{
    struct work *work = data;
    if (!work->abandoned)
        promise_complete(&work->done);
    work_unref(work);
}

static void worker(gpointer data, gpointer unused)
{
    struct work *work = data;
    work->ok = work_do(work, &work->error);
    loop_post(work_done, work);
}

static GThreadPool *worker_pool(void)
{
    static GThreadPool *pool;

    if (pool == NULL)
        pool = g_thread_pool_new(worker, NULL, 1, FALSE, NULL);
    return pool;
}

/* Runs the work in the right place and frees it. */
static bool work_run(struct work *work, GError **error)
{
    if (!work->sync || task_self() == NULL) {
        bool ok = work_do(work, error);
        work_unref(work);
        return ok;
    }
    g_atomic_ref_count_inc(&work->refs);
    g_thread_pool_push(worker_pool(), work, NULL);
    if (!promise_wait(&work->done)) {
        work->abandoned = true;
        work_unref(work);
        fettle_set_error(error, KILLED, "the process ended while it waited for a disk");
        return false;
    }
    bool ok = work->ok;
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&work->error));
    work_unref(work);
    return ok;
}

/* `path` is stolen. */
static struct work *work_on(char *path, const char *data, size_t len)
{
    struct work *work = g_new0(struct work, 1);
    g_atomic_ref_count_init(&work->refs);
    work->path = path;
    work->data = g_memdup2(data, len);
    work->len = len;
    work->mode = MODE_DEFAULT;
    work->sync = true;
    return work;
}

static struct work *work_new(const struct node_paths *paths, enum file_area area, const char *name,
                             const char *data, size_t len, GError **error)
{
    char *path = files_path(paths, area, name, error);

    if (path == NULL)
        return NULL;
    struct work *work = work_on(path, data, len);
    work->sync = area == FILE_STATE || area == FILE_MOND || area == FILE_RAPI;
    if (area == FILE_STATS || area == FILE_MOND || area == FILE_RAPI)
        work->mode = MODE_OF_GROUP;
    work->keep = area == FILE_RUN;
    return work;
}

/* --- the calls --- */

bool files_write_synced(const char *path, const char *data, size_t len, guint mode, GError **error)
{
    struct work *work = work_on(g_strdup(path), data, len);
    work->what = WORK_WRITE;
    work->mode = mode;
    return work_run(work, error);
}

bool files_remove_synced(const char *path, GError **error)
{
    struct work *work = work_on(g_strdup(path), NULL, 0);
    work->what = WORK_REMOVE;
    return work_run(work, error);
}

bool files_write(const struct node_paths *paths, enum file_area area, const char *name,
                 const char *data, size_t len, GError **error)
{
    struct work *work = work_new(paths, area, name, data, len, error);

    if (work == NULL)
        return false;
    work->what = WORK_WRITE;
    return work_run(work, error);
}

bool files_append(const struct node_paths *paths, enum file_area area, const char *name,
                  const char *data, size_t len, GError **error)
{
    struct work *work = work_new(paths, area, name, data, len, error);

    if (work == NULL)
        return false;
    work->what = WORK_APPEND;
    return work_run(work, error);
}

bool files_remove(const struct node_paths *paths, enum file_area area, const char *name,
                  GError **error)
{
    struct work *work = work_new(paths, area, name, NULL, 0, error);

    if (work == NULL)
        return false;
    work->what = WORK_REMOVE;
    return work_run(work, error);
}

char *files_read(const struct node_paths *paths, enum file_area area, const char *name, size_t max,
                 size_t *ret_len, GError **error)
{
    g_autofree char *path = files_path(paths, area, name, error);

    if (path == NULL)
        return NULL;
    return area == FILE_PROC ? read_proc(path, max, ret_len, error)
                             : read_whole(path, O_NOFOLLOW, max, ret_len, error);
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A temporary name says which process writes it; what a dead one left half written goes. */
static void sweep_temporary(const char *folder, const char *name)
{
    const char *writer = strrchr(name, '.') + 1;
    char *end = NULL;
    guint64 pid = g_ascii_strtoull(writer, &end, 10);

    if (writer == name + 1 || end == writer || *end != '-' || pid == 0 || pid > G_MAXINT32)
        return;
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd >= 0) {
        close(fd);
        return;
    }
    if (errno != ESRCH)
        return;
    g_autofree char *path = g_build_filename(folder, name, NULL);
    crash_point("files: unlink");
    unlink(path);
}

void files_sweep(const char *folder)
{
    const char *name;
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    while (dir && (name = g_dir_read_name(dir)))
        if (name[0] == '.')
            sweep_temporary(folder, name);
}

GPtrArray *files_list(const struct node_paths *paths, enum file_area area, const char *folder,
                      GError **error)
{
    g_autofree char *path = files_folder(paths, area, folder, error);
    g_autoptr(GError) local = NULL;
    const char *name;

    if (path == NULL)
        return NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) dir = g_dir_open(path, 0, &local);
    if (dir == NULL && !g_error_matches(local, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
        fettle_set_error(error, STORAGE, "cannot list the folder %s: %s", path, local->message);
        return NULL;
    }
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        if (name[0] != '.')
            g_ptr_array_add(names, g_strdup(name));
        else
            sweep_temporary(path, name);
    g_ptr_array_sort(names, compare_names);
    return g_steal_pointer(&names);
}
