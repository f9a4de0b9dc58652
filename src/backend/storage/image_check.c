/*
 * Whether images can be read from the disk itself, past what the kernel remembers of them. Not all
 * of it is read: a guest waits for the answer. Samples tell a disk that has failed from one that
 * works; that a single sector is bad is found by whoever copies it.
 */
#include "backend/storage/images.h"
#include "io/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLES 16
#define SAMPLE_BYTES 4096 /* aligned, as O_DIRECT wants it */

static bool read_sample(int fd, off_t offset, void *buffer)
{
    ssize_t got;
    do
        got = pread(fd, buffer, SAMPLE_BYTES, offset);
    while (got < 0 && errno == EINTR);
    return got >= 0;
}

/* Where something was written, at even distances: a hole is on no disk. */
static bool read_samples(int fd, void *buffer)
{
    off_t size = lseek(fd, 0, SEEK_END), last = -1;
    if (size < 0)
        return false;
    for (off_t i = 0; i < SAMPLES; i++) {
        off_t data = lseek(fd, size / SAMPLES * i, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return true; /* nothing but holes up to the end */
        if (data < 0)
            return false;
        data -= data % SAMPLE_BYTES;
        if (data > last && !read_sample(fd, data, buffer))
            return false;
        last = MAX(data, last);
    }
    return true;
}

static bool check_file(const char *path, GError **error)
{
    void *buffer = NULL;
    crash_point("images: check");
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (fd < 0 && errno == EINVAL) /* a file system in memory has no disk to be asked */
        fd = open(path, O_RDONLY | O_CLOEXEC);
    g_assert(posix_memalign(&buffer, SAMPLE_BYTES, SAMPLE_BYTES) == 0);
    bool good = fd >= 0 && read_samples(fd, buffer);
    if (!good)
        images_fail("read", path, error);
    if (fd >= 0)
        close(fd);
    free(buffer);
    return good;
}

bool images_check(const struct images *images, const char *instance, const char *replica,
                  guint count, bool shared, GError **error)
{
    g_autoptr(GPtrArray) files = images_files(images, instance, replica, count, shared, error);
    for (guint i = 0; files != NULL && i < files->len; i++)
        if (!check_file(files->pdata[i], error))
            return false;
    return files != NULL;
}
