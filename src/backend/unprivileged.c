/*
 * See unprivileged.h.
 */
#include "backend/unprivileged.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The group by which a user gets at it; 0: none does, or everybody. */
static gid_t group_of(const char *device)
{
    struct stat status;
    if (device == NULL || stat(device, &status) != 0)
        return 0;
    bool others = (status.st_mode & S_IROTH) != 0 && (status.st_mode & S_IWOTH) != 0;
    bool group = (status.st_mode & S_IRGRP) != 0 && (status.st_mode & S_IWGRP) != 0;
    return group && !others ? status.st_gid : 0;
}

void unprivileged_words(GPtrArray *argv, guint32 uid, const char *device)
{
    gid_t group = group_of(device);
    if (uid == 0)
        return;
    g_ptr_array_add(argv, g_strdup("setpriv"));
    g_ptr_array_add(argv, g_strdup_printf("--reuid=%u", uid));
    g_ptr_array_add(argv, g_strdup_printf("--regid=%u", uid));
    g_ptr_array_add(argv, group != 0 ? g_strdup_printf("--groups=%u", group)
                                     : g_strdup("--clear-groups"));
    g_ptr_array_add(argv, g_strdup("--no-new-privs"));
}

int unprivileged_listen(const char *path, int backlog, guint32 uid, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        fettle_set_error(error, ENVIRONMENT, "socket name %s is longer than %zu bytes", path,
                         sizeof address.sun_path - 1);
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        chmod(path, 0600) == 0 && (uid == 0 || lchown(path, uid, uid) == 0) &&
        listen(fd, backlog) == 0)
        return fd;
    fettle_set_error(error, STORAGE, "cannot make socket %s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* --- files --- */

struct opening {
    gatomicrefcount refs; /* the thread's and the task's: either may end first */
    GPtrArray *paths;
    int flags;
    bool ours, readable;
    GArray *fds;
    GError *error;
    struct promise done;
    guint timer;
    bool opened;    /* or not, with the error; else nobody has answered yet */
    bool abandoned; /* the task was killed */
};

static void close_fd(void *fd)
{
    if (*(int *)fd >= 0)
        close(*(int *)fd);
}

static void opening_unref(struct opening *opening)
{
    if (!g_atomic_ref_count_dec(&opening->refs))
        return;
    g_ptr_array_unref(opening->paths);
    g_clear_pointer(&opening->fds, g_array_unref);
    g_clear_error(&opening->error);
    g_free(opening);
}

static bool make_ours(int fd, const struct stat *status)
{
    return geteuid() != 0 || status->st_uid == 0 ||
           (fchown(fd, 0, 0) == 0 && fchmod(fd, 0600) == 0);
}

/* Sealed, so that nobody writes to what was read. -1 with errno. */
static int copy_into_memory(int from, off_t bytes)
{
    int to = memfd_create("fettle", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    off_t left = bytes;
    while (to >= 0 && left > 0) {
        ssize_t sent = sendfile(to, from, NULL, (size_t)left);
        if (sent == 0)
            errno = EIO; /* it has become shorter */
        if (sent == 0 || (sent < 0 && errno != EINTR))
            break;
        left -= MAX(sent, 0);
    }
    if (to >= 0 && left == 0 &&
        fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return to;
    if (to >= 0)
        close(to);
    return -1;
}

static bool make_readable(int *fd, const struct stat *status)
{
    if (geteuid() != 0 || (status->st_mode & S_IROTH) != 0)
        return true;
    if ((guint64)status->st_size > LIMIT_KERNEL_BYTES) {
        errno = EFBIG;
        return false;
    }
    int copy = copy_into_memory(*fd, status->st_size), failed = errno;
    close(*fd);
    errno = failed;
    *fd = copy;
    return copy >= 0;
}

static bool open_one(const struct opening *opening, const char *path, int *ret_fd)
{
    struct stat status;
    *ret_fd = open(path, opening->flags | O_CLOEXEC);
    return *ret_fd >= 0 && fstat(*ret_fd, &status) == 0 &&
           (!opening->ours || make_ours(*ret_fd, &status)) &&
           (!opening->readable || make_readable(ret_fd, &status));
}

static void opened(void *data)
{
    struct opening *opening = data;
    opening->opened = true;
    if (!opening->abandoned && !opening->done.done)
        promise_complete(&opening->done);
    opening_unref(opening);
}

static void *open_all(void *data)
{
    struct opening *opening = data;
    for (guint i = 0; i < opening->paths->len && opening->error == NULL; i++) {
        const char *path = opening->paths->pdata[i];
        int fd;
        if (!open_one(opening, path, &fd))
            fettle_set_error(&opening->error, STORAGE, "cannot open %s: %s", path,
                             g_strerror(errno));
        g_array_append_val(opening->fds, fd);
    }
    loop_post(opened, opening);
    return NULL;
}

static void expire(void *data)
{
    struct opening *opening = data;
    opening->timer = 0;
    if (!opening->done.done)
        promise_complete(&opening->done);
}

static GArray *wait_for(struct opening *opening, guint timeout_ms, GError **error)
{
    GArray *fds = NULL;
    const char *first = opening->paths->pdata[0];
    opening->timer = loop_timer(timeout_ms, expire, opening);
    opening->abandoned = !promise_wait(&opening->done);
    loop_timer_cancel(opening->timer);
    if (opening->abandoned)
        fettle_set_error(error, KILLED, "the process that waited for %s has ended", first);
    else if (!opening->opened)
        fettle_set_error(error, TIMEOUT,
                         "%s was not opened in %u ms: its disk or its server does not answer",
                         first, timeout_ms);
    else if (opening->error != NULL)
        g_propagate_error(error, g_steal_pointer(&opening->error));
    else
        fds = g_steal_pointer(&opening->fds);
    opening_unref(opening);
    return fds;
}

static GArray *run(struct opening *opening, guint timeout_ms, GError **error)
{
    opening->fds = g_array_new(FALSE, FALSE, sizeof(int));
    g_array_set_clear_func(opening->fds, close_fd);
    g_atomic_ref_count_init(&opening->refs);
    if (opening->paths->len == 0) {
        GArray *none = g_steal_pointer(&opening->fds);
        opening_unref(opening);
        return none;
    }
    g_atomic_ref_count_inc(&opening->refs);
    GThread *thread = g_thread_try_new("open", open_all, opening, error);
    if (thread == NULL) {
        opening_unref(opening);
        opening_unref(opening);
        return NULL;
    }
    g_thread_unref(thread);
    return wait_for(opening, timeout_ms, error);
}

int unprivileged_first(GArray *fds)
{
    int first = fds != NULL ? g_array_index(fds, int, 0) : -1;
    if (fds == NULL)
        return -1;
    g_array_index(fds, int, 0) = -1;
    g_array_unref(fds);
    return first;
}

GArray *unprivileged_open(const GPtrArray *paths, int flags, bool ours, guint timeout_ms,
                          GError **error)
{
    struct opening *opening = g_new0(struct opening, 1);
    opening->paths = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; paths != NULL && i < paths->len; i++)
        g_ptr_array_add(opening->paths, g_strdup(paths->pdata[i]));
    opening->flags = flags;
    opening->ours = ours;
    return run(opening, timeout_ms, error);
}

int unprivileged_read(const char *path, guint timeout_ms, GError **error)
{
    struct opening *opening = g_new0(struct opening, 1);
    opening->paths = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(opening->paths, g_strdup(path));
    opening->flags = O_RDONLY;
    opening->readable = true;
    return unprivileged_first(run(opening, timeout_ms, error));
}
