/* See sqlite_space.h. */
#include "io/sqlite_space.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <unistd.h>

#define STEP 4096 /* of os_unix.c, unixShmMap(): the index grows by so much at a time */

typedef ssize_t (*pwrite_fn)(int fd, const void *data, size_t size, off_t offset);

static pwrite_fn of_sqlite;

static int reserve(int fd, off_t start)
{
    static const char zeros[STEP];
    if (fallocate(fd, 0, start, STEP) == 0)
        return 0;
    /* A file system without fallocate: the index is new here, so there is nothing to spoil. */
    return errno == EOPNOTSUPP && of_sqlite(fd, zeros, STEP, start) == STEP ? 0 : -1;
}

/* A handle of ours would not do: closing it would drop the locks that SQLite has on that file. Its
 * own is only here. */
static ssize_t write_at(int fd, const void *data, size_t size, off_t offset)
{
    bool extends = size == 1 && (offset + 1) % STEP == 0 && *(const char *)data == '\0';
    return extends && reserve(fd, offset + 1 - STEP) != 0 ? -1 : of_sqlite(fd, data, size, offset);
}

void sqlite_space_init(void)
{
    static const char *const names[] = {"pwrite64", "pwrite"};
    static gsize done;
    if (!g_once_init_enter(&done))
        return;
    sqlite3_vfs *vfs = sqlite3_initialize() == SQLITE_OK ? sqlite3_vfs_find(NULL) : NULL;
    for (guint i = 0; vfs && vfs->iVersion >= 3 && i < G_N_ELEMENTS(names); i++) {
        of_sqlite = (pwrite_fn)(void *)vfs->xGetSystemCall(vfs, names[i]);
        if (of_sqlite &&
            vfs->xSetSystemCall(vfs, names[i], (sqlite3_syscall_ptr)(void *)write_at) == SQLITE_OK)
            break;
    }
    g_once_init_leave(&done, 1);
}
