/* See dir_copy.h. */
#include "backend/volume/dir_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

#define PIECE_BYTES ((off_t)MIB(1))

/* What has no way of its own inside the kernel. */
static bool copy_by_hand(int source, int target, off_t from, off_t to)
{
    g_autofree char *piece = g_malloc((gsize)PIECE_BYTES);
    while (from < to) {
        ssize_t got = pread(source, piece, (size_t)MIN(PIECE_BYTES, to - from), from);
        if (got <= 0) {
            errno = got == 0 ? EIO : errno; /* it was longer when it was looked at */
            return false;
        }
        for (ssize_t done = 0; done < got;) {
            ssize_t put = pwrite(target, piece + done, (size_t)(got - done), from + done);
            if (put < 0)
                return false;
            done += put;
        }
        from += got;
    }
    return true;
}

static bool copy_data(int source, int target, off_t from, off_t to)
{
    while (from < to) {
        off_t in = from, out = from;
        ssize_t done = copy_file_range(source, &in, target, &out, (size_t)(to - from), 0);
        if (done < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO))
            return false;
        if (done <= 0) /* some file systems copy nothing, and say no error */
            return copy_by_hand(source, target, from, to);
        from += done;
    }
    return true;
}

/* Where nothing tells of holes all is data. */
static bool copy_sparse(int source, int target, off_t end)
{
    for (off_t at = 0; at < end;) {
        off_t data = lseek(source, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return true;
        off_t hole = data < 0 ? end : lseek(source, data, SEEK_HOLE);
        data = data < 0 ? at : data;
        hole = hole < 0 || hole > end ? end : hole;
        if (!copy_data(source, target, data, hole))
            return false;
        at = hole;
    }
    return true;
}

bool dir_copy_bytes(int source, int target, guint64 bytes)
{
    struct stat status;
    if (fstat(source, &status) != 0)
        return false;
    off_t end = (off_t)MIN((guint64)status.st_size, bytes);
    if (ioctl(target, FICLONE, source) != 0 && !copy_sparse(source, target, end))
        return false;
    return ftruncate(target, end) == 0;
}
