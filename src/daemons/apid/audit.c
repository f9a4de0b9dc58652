/* See audit.h. */
#include "daemons/apid/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "io/crash.h"
#include "io/files.h"

struct audit {
    char *path, *older;
    guint64 most, bytes;
    int fd;
    bool failed; /* and told */
};

static bool begin(struct audit *audit, GError **error)
{
    struct stat about;
    audit->fd = open(audit->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (audit->fd < 0)
        return files_error("open", audit->path, error);
    audit->bytes = fstat(audit->fd, &about) == 0 ? (guint64)about.st_size : 0;
    return true;
}

struct audit *audit_open(const char *path, guint64 most_bytes, GError **error)
{
    struct audit *audit = g_new0(struct audit, 1);
    audit->path = g_strdup(path);
    audit->older = g_strconcat(path, ".1", NULL);
    audit->most = most_bytes;
    if (begin(audit, error))
        return audit;
    audit_free(audit);
    return NULL;
}

void audit_free(struct audit *audit)
{
    if (!audit)
        return;
    if (audit->fd >= 0)
        close(audit->fd);
    g_free(audit->path);
    g_free(audit->older);
    g_free(audit);
}

static bool begin_anew(struct audit *audit, GError **error)
{
    close(audit->fd);
    return begin(audit, error);
}

/* Another front end of the node, with the same file, may have written, or have begun another. */
static bool is_still_named(struct audit *audit)
{
    struct stat named, ours;
    if (stat(audit->path, &named) != 0 || fstat(audit->fd, &ours) != 0 ||
        named.st_ino != ours.st_ino || named.st_dev != ours.st_dev)
        return false;
    audit->bytes = (guint64)named.st_size;
    return true;
}

static bool follow(struct audit *audit, GError **error)
{
    if (audit->fd < 0)
        return begin(audit, error);
    return is_still_named(audit) || begin_anew(audit, error);
}

/* By one of them: who has its lock, and sees then that it is the file still. The others go on in
 * what there is, and wait for nobody. */
static bool turn(struct audit *audit, GError **error)
{
    if (flock(audit->fd, LOCK_EX | LOCK_NB) != 0)
        return true;
    if (!is_still_named(audit) || rename(audit->path, audit->older) == 0)
        return begin_anew(audit, error);
    files_error("rename", audit->path, error);
    flock(audit->fd, LOCK_UN);
    return false;
}

static bool append(struct audit *audit, const char *line, GError **error)
{
    g_autofree char *text = g_strconcat(line, "\n", NULL);
    size_t len = strlen(text);
    if (!follow(audit, error))
        return false;
    if (audit->bytes && audit->bytes + len > audit->most && !turn(audit, error))
        return false;
    crash_point("audit: write");
    ssize_t written = write(audit->fd, text, len);
    if (written > 0)
        audit->bytes += (guint64)written;
    if (written == (ssize_t)len)
        return true;
    if (written >= 0)
        errno = ENOSPC;
    return files_error("write", audit->path, error);
}

void audit_write(struct audit *audit, const char *line)
{
    g_autoptr(GError) error = NULL;
    bool ok = append(audit, line, &error);
    if (!ok && !audit->failed)
        log_error("", "requests are not on record: %s", error->message);
    audit->failed = !ok;
}
