/* See trial.h. */
#include "io/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/task.h"
#include "io/loop.h"

#define TRIAL_BYTES 4096 /* aligned, too: for O_DIRECT */
#define TRIAL_NAME ".trial"

struct trial {
    char *folder;
    int failed; /* errno; 0: all is well */
    struct promise done;
    bool abandoned;
};

static void trial_free(struct trial *trial)
{
    g_free(trial->folder);
    g_free(trial);
}

/* A file without a name leaves nothing behind; where there are no such, one with a name. Past the
 * cache if that can be, so that what is read comes from the disk. */
static int trial_open(const char *folder)
{
    int flags = O_RDWR | O_CLOEXEC;
    int fd = open(folder, flags | O_TMPFILE | O_DIRECT, 0600);
    if (fd < 0 && errno == EINVAL)
        fd = open(folder, flags | O_TMPFILE, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    g_autofree char *path = g_build_filename(folder, TRIAL_NAME, NULL);
    fd = open(path, flags | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* What is written to while it is full has a block free now and then, so a block is not room. A file
 * system that cannot be asked for room is tried with what is written. */
static int trial_room(int fd)
{
    int failed = 0;
    do {
        failed = fallocate(fd, 0, 0, HEALTH_ROOM_BYTES) == 0 ? 0 : errno;
    } while (failed == EINTR);
    return failed == EOPNOTSUPP || failed == ENOSYS || failed == EINVAL ? 0 : failed;
}

static int trial_pass(int fd, char *bytes)
{
    int failed = trial_room(fd);
    if (failed != 0)
        return failed;
    memset(bytes, 'f', TRIAL_BYTES);
    errno = EIO; /* of a write or a read that is short */
    if (pwrite(fd, bytes, TRIAL_BYTES, 0) != TRIAL_BYTES || fsync(fd) != 0)
        return errno;
    memset(bytes, 0, TRIAL_BYTES);
    errno = EIO;
    if (pread(fd, bytes, TRIAL_BYTES, 0) != TRIAL_BYTES)
        return errno;
    return bytes[0] == 'f' && bytes[TRIAL_BYTES - 1] == 'f' ? 0 : EIO;
}

static void trial_done(void *data)
{
    struct trial *trial = data;
    if (trial->abandoned)
        trial_free(trial);
    else
        promise_complete(&trial->done);
}

static void *trial_run(void *data)
{
    struct trial *trial = data;
    char *bytes = aligned_alloc(TRIAL_BYTES, TRIAL_BYTES);
    int fd = trial_open(trial->folder);
    g_assert(bytes != NULL);
    trial->failed = fd < 0 ? errno : trial_pass(fd, bytes);
    if (fd >= 0)
        close(fd);
    free(bytes);
    loop_post(trial_done, trial);
    return NULL;
}

static bool trial_judge(const char *folder, int failed, GError **error)
{
    if (failed == ENOSPC || failed == EDQUOT)
        fettle_set_error(error, NO_RESOURCES, "%s: %s", folder, g_strerror(failed));
    else if (failed == EMFILE || failed == ENFILE || failed == ENOMEM || failed == EAGAIN)
        fettle_set_error(error, TEMPORARY, "%s: %s", folder, g_strerror(failed));
    else if (failed != 0)
        fettle_set_error(error, STORAGE, "%s: %s", folder, g_strerror(failed));
    return failed == 0;
}

bool trial_write(const char *folder, GError **error)
{
    struct trial *trial = g_new0(struct trial, 1);
    trial->folder = g_strdup(folder);
    GThread *thread = g_thread_try_new("trial", trial_run, trial, NULL);
    if (thread == NULL) {
        trial_free(trial);
        return trial_judge(folder, EAGAIN, error);
    }
    g_thread_unref(thread);
    if (!promise_wait(&trial->done)) {
        trial->abandoned = true;
        fettle_set_error(error, KILLED, "the process ended while it waited for a disk");
        return false;
    }
    bool ok = trial_judge(folder, trial->failed, error);
    trial_free(trial);
    return ok;
}
