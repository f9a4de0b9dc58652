/*
 * Whether images are what they should be.
 *
 * They can be read from the disk itself, past what the kernel remembers of them. Not all of it is
 * read: a guest waits for the answer. Samples tell a disk that has failed from one that works; that
 * a single sector is bad is found by whoever copies it.
 *
 * The header of a qcow2 image names no other file: the user of a guest can write it, and QEMU,
 * qemu-img too, opens what it names before it gives up root.
 */
#include "backend/storage/disk_images.h"
#include "backend/storage/qcow2.h"
#include "base/limits.h"
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

static bool names_nothing(const char *path, const struct qcow2_header *header, GError **error)
{
    const char *name = header->data_file ? header->data_file : header->backing;
    if (name)
        fettle_set_error(error, CORRUPT,
                         "image \"%s\": its header names a %s (%s), which no image of an instance "
                         "rests on; not opened",
                         path, header->data_file ? "data file" : "backing file", name);
    return !name;
}

bool images_check_header(const char *path, guint64 *ret_bytes, GError **error)
{
    g_autofree guint8 *bytes = g_malloc(LIMIT_QCOW2_HEADER_BYTES);
    struct qcow2_header header = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t len = fd >= 0 ? pread(fd, bytes, LIMIT_QCOW2_HEADER_BYTES, 0) : -1;
    if (len < 0)
        images_fail("read", path, error);
    if (fd >= 0)
        close(fd);
    if (len < 0)
        return false;
    if (!qcow2_parse(bytes, (gsize)len, &header, error)) {
        g_prefix_error(error, "image %s ", path);
        return false;
    }
    *ret_bytes = header.size;
    bool alone = names_nothing(path, &header, error);
    qcow2_header_clear(&header);
    return alone;
}

bool images_check_headers(const GPtrArray *files, GError **error)
{
    guint64 bytes;
    for (guint i = 0; i < files->len; i++)
        if (g_str_has_suffix(files->pdata[i], ".qcow2") &&
            !images_check_header(files->pdata[i], &bytes, error))
            return false;
    return true;
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
