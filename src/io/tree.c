/*
 * See tree.h.
 */
#include "io/tree.h"

#include "base/limits.h"
#include "io/crash.h"
#include "io/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
    int top; /* the folder that is emptied */
    dev_t device;
    guint entries; /* names that were looked at */
    guint moved;   /* folders that were moved up */
};

/* Open for reading, and ours alone from now on; -1 with errno. */
static int open_own(int at, const char *name, bool *ret_taken)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    bool ok = fd >= 0 && fstat(fd, &status) == 0;
    *ret_taken = ok && status.st_uid != geteuid();
    if (ok && *ret_taken)
        ok = fchown(fd, geteuid(), getegid()) == 0 && fchmod(fd, 0700) == 0;
    if (ok)
        return fd;
    int code = errno;
    if (fd >= 0)
        close(fd);
    errno = code;
    return -1;
}

/* Calls `each` for every name; false with errno as soon as it says so. */
static bool for_each(struct tree *tree, int fd,
                     bool (*each)(struct tree *tree, int fd, const char *name, void *data),
                     void *data)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    bool ok = dir != NULL;
    int code = errno;
    if (dir == NULL && copy >= 0)
        close(copy);
    if (dir != NULL)
        rewinddir(dir);
    for (struct dirent *entry; ok && (errno = 0, entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        ok = ++tree->entries <= LIMIT_TREE_ENTRIES && each(tree, fd, entry->d_name, data);
        if (tree->entries > LIMIT_TREE_ENTRIES)
            errno = E2BIG;
    }
    if (dir != NULL) {
        code = errno;
        ok = ok && code == 0;
        closedir(dir);
    }
    errno = code;
    return ok;
}

/* --- emptying --- */

static bool unlink_name(int fd, const char *name)
{
    crash_point("tree: unlink");
    return unlinkat(fd, name, 0) == 0 || errno == ENOENT;
}

/* A folder in a folder goes up to the top, so that no depth needs descriptors or a stack. */
static bool move_up(struct tree *tree, int fd, const char *name, void *unused)
{
    char up[32];
    if (unlink_name(fd, name))
        return true;
    if (errno != EISDIR && errno != EPERM)
        return false;
    while (tree->moved < LIMIT_TREE_ENTRIES) {
        g_snprintf(up, sizeof up, ".moved-%u", tree->moved++);
        if (renameat(fd, name, tree->top, up) == 0)
            return true;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            break;
    }
    return false;
}

static bool remove_folder(struct tree *tree, int fd, const char *name)
{
    bool taken = false;
    struct stat status;
    if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    if (status.st_dev != tree->device) {
        errno = EXDEV;
        return false;
    }
    int sub = open_own(fd, name, &taken);
    bool ok =
        sub >= 0 && for_each(tree, sub, move_up, NULL) && unlinkat(fd, name, AT_REMOVEDIR) == 0;
    int code = errno;
    if (sub >= 0)
        close(sub);
    errno = code;
    return ok;
}

static bool is_kept(int fd, const char *name, const char *const *keep)
{
    struct stat status;
    return keep != NULL && g_strv_contains(keep, name) &&
           fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode));
}

struct emptying {
    const char *const *keep;
    bool again; /* folders came up meanwhile */
};

static bool remove_entry(struct tree *tree, int fd, const char *name, void *data)
{
    struct emptying *emptying = data;
    if (is_kept(fd, name, emptying->keep) || unlink_name(fd, name))
        return true;
    if (errno != EISDIR && errno != EPERM)
        return false;
    emptying->again = true;
    return remove_folder(tree, fd, name);
}

/* What is in the open folder `fd`, which is ours. False with errno. */
static bool empty(int fd, const char *const *keep)
{
    struct tree tree = {.top = fd};
    struct emptying emptying = {.keep = keep};
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    tree.device = status.st_dev;
    do {
        emptying.again = false;
        if (!for_each(&tree, fd, remove_entry, &emptying))
            return false;
    } while (emptying.again);
    return true;
}

/* --- calls --- */

bool tree_remove(const char *path, GError **error)
{
    bool taken = false;
    if (unlink_name(AT_FDCWD, path))
        return true;
    if (errno != EISDIR && errno != EPERM)
        return files_error("remove", path, error);
    int fd = open_own(AT_FDCWD, path, &taken);
    bool ok = fd >= 0 && empty(fd, NULL) && rmdir(path) == 0;
    if (!ok)
        files_error("remove", path, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool tree_take(const char *path, guint mode, const char *const *keep, GError **error)
{
    bool taken = false;
    crash_point("tree: mkdir");
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return files_error("make folder", path, error);
    int fd = open_own(AT_FDCWD, path, &taken);
    bool ok = fd >= 0 && (!taken || empty(fd, keep)) && fchmod(fd, mode) == 0;
    if (!ok)
        files_error("take the folder", path, error);
    if (fd >= 0)
        close(fd);
    return ok;
}
