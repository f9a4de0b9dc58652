/* Files and locks of a check; see dir_check.h. */
#include "backend/volume/dir_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backend/storage/disk_images.h"
#include "backend/volume/volume_user.h"
#include "base/limits.h"

#define PROBE ".fettle-check."
#define STEP_US 100000
#define STEPS (LIMIT_BACKEND_CHECK_MS * 1000 / STEP_US)
#define LEFT_S 600 /* by the clock of the directory: whoever has made it is gone */
#define TEXT_BYTES 64
#define QEMU_LOCK 101 /* one of those that QEMU takes (images_check_unused()) */

static char *probe_name(const char *token)
{
    return g_strconcat(PROBE, token, NULL);
}

static char *mark_name(const char *token, guint place)
{
    return g_strdup_printf(PROBE "%s.%u", token, place);
}

/* A new file that has the token in it, on stable storage; -1: errno. */
static int make(int folder, const char *name, const char *token)
{
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t length = (ssize_t)strlen(token);
    if (fd < 0 || (write(fd, token, (size_t)length) == length && fsync(fd) == 0))
        return fd;
    int why = errno;
    close(fd);
    unlinkat(folder, name, 0);
    errno = why;
    return -1;
}

static bool lock(int fd, off_t byte)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

static bool is_there(int folder, const char *name, const char *token)
{
    char text[TEXT_BYTES] = "";
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool there = fd >= 0 && read(fd, text, sizeof text - 1) >= 0 && strcmp(text, token) == 0;
    if (fd >= 0)
        close(fd);
    return there;
}

/* An NFS client remembers for a while that a name is not there, until the directory changes by its
 * own hand. */
static void touch(int folder, const char *token)
{
    g_autofree char *random = g_uuid_string_random();
    g_autofree char *name = g_strconcat(PROBE, random, NULL);
    int fd = make(folder, name, token);
    if (fd < 0)
        return;
    close(fd);
    unlinkat(folder, name, 0);
}

static bool await(int folder, const char *name, const char *token, bool there)
{
    for (guint i = 0; i < STEPS; i++) {
        if (is_there(folder, name, token) == there)
            return true;
        g_usleep(STEP_US);
        if (there)
            touch(folder, token);
    }
    return false;
}

/* --- the first node --- */

/* What a check has left that was killed. */
static void sweep(int folder, const struct stat *now)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct stat status;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (g_str_has_prefix(entry->d_name, PROBE) &&
            fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            status.st_mtime < now->st_mtime - LEFT_S)
            unlinkat(folder, entry->d_name, 0);
    if (dir)
        closedir(dir);
}

/* Guests' disks are opened so. */
static void check_direct(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDWR | O_DIRECT | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        printf(DIR_PROBLEM
               "files there cannot be opened as guests' disks are, without a cache: %s; "
               "use another kind of file system\n",
               g_strerror(errno));
    else
        close(fd);
}

/* Of what programs get of the data. */
static void check_lending(int fd)
{
    g_autoptr(GError) error = NULL;
    if (!volume_user_lend(fd, false, &error) || !volume_user_take_back(fd, &error))
        printf(DIR_PROBLEM "copies, backups and images cannot be made: %s\n", error->message);
}

static void check_attribute(int fd)
{
    if (fsetxattr(fd, "user.fettle.check", "1", 1, 0) != 0)
        printf(DIR_NOTE "the file system keeps no attributes (%s), so recovery cannot tell whole "
                        "data from what was half made, and asks a person (NFS: 4.2 has them)\n",
               g_strerror(errno));
}

static bool hold(int folder, int fd, const char *made, const char *token, guint others)
{
    g_autofree char *name = probe_name(token);
    struct stat status;
    if (!lock(fd, 0) || !lock(fd, QEMU_LOCK)) {
        printf(DIR_PROBLEM "no lock can be taken there: %s; a guest does not start without (NFS: "
                           "mount it without nolock)\n",
               g_strerror(errno));
        unlinkat(folder, made, 0);
        return true;
    }
    check_direct(folder, made);
    check_attribute(fd);
    check_lending(fd);
    if (fstat(fd, &status) == 0)
        sweep(folder, &status);
    if (renameat(folder, made, folder, name) != 0) {
        int why = errno;
        unlinkat(folder, made, 0);
        errno = why;
        return false;
    }
    fflush(stdout);
    for (guint place = 1; place <= others; place++) {
        g_autofree char *mark = mark_name(token, place);
        if (!await(folder, mark, token, true))
            break; /* that one says why; the others have tried meanwhile */
    }
    unlinkat(folder, name, 0);
    return true;
}

bool dir_check_hold(int folder, const char *token, guint others)
{
    /* It is seen by the others once it is locked. */
    g_autofree char *made = mark_name(token, 0);
    int fd = make(folder, made, token);
    bool ok = fd >= 0 && hold(folder, fd, made, token, others);
    int why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return ok;
}

/* --- the others --- */

static void try_locks(int folder, const char *name)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d/%s", folder, name);
    g_autoptr(GError) error = NULL;
    int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool got = fd >= 0 && lock(fd, 0);
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (got || (images_check_unused(path, &error) && !error))
        printf(DIR_PROBLEM "a lock that another node holds there is not seen here, so two guests "
                           "could write to one volume; mount it with locks that reach the server "
                           "(NFS: without nolock and local_lock)\n");
    else if (fd < 0 || (why != EAGAIN && why != EACCES))
        printf(DIR_PROBLEM "no lock can be asked for there: %s\n", g_strerror(why));
}

bool dir_check_try(int folder, const char *token, guint place)
{
    g_autofree char *name = probe_name(token);
    g_autofree char *mark = mark_name(token, place);
    bool seen = await(folder, name, token, true);
    if (seen)
        try_locks(folder, name);
    else
        printf(DIR_UNSEEN "\n");
    int fd = make(folder, mark, token);
    if (fd < 0)
        return false;
    close(fd);
    if (seen)
        await(folder, name, token, false); /* so it has seen the mark */
    unlinkat(folder, mark, 0);
    return true;
}
