/*
 * Making the images of an instance or a replica: copied from a source image or empty, complete
 * under a temporary name first. A failure leaves nothing behind.
 */
#include "backend/storage/images.h"
#include "base/limits.h"
#include "io/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_SUFFIX ".new"

void images_sweep(const struct images *images)
{
    g_autoptr(GDir) dir = g_dir_open(images->disks, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(images->disks, name, NULL);
        if (g_str_has_suffix(name, ".raw" NEW_SUFFIX))
            unlink(path);
    }
}

/* A full disk is the caller's to plan around, everything else is a fault. */
static bool fail_with_errno(const char *what, const char *path, GError **error)
{
    int code = errno;
    bool full = code == ENOSPC || code == EDQUOT;
    g_set_error(error, FETTLE_ERROR, full ? FETTLE_ERROR_NO_RESOURCES : FETTLE_ERROR_STORAGE,
                "cannot %s %s: %s", what, path, g_strerror(code));
    return false;
}

static char *source_path(const struct images *images, const char *os_type, GError **error)
{
    if (os_type[0] == '\0' || os_type[0] == '.' || strchr(os_type, '/') != NULL) {
        fettle_set_error(error, WRONG_INPUT,
                         "image \"%s\": a name without slashes that begins with no dot is needed",
                         os_type);
        return NULL;
    }
    g_autofree char *plain = g_build_filename(images->sources, os_type, NULL);
    g_autofree char *raw = g_strconcat(plain, ".raw", NULL);
    if (g_file_test(plain, G_FILE_TEST_IS_REGULAR))
        return g_steal_pointer(&plain);
    if (g_file_test(raw, G_FILE_TEST_IS_REGULAR))
        return g_steal_pointer(&raw);
    fettle_set_error(error, UNKNOWN_ENTITY, "image \"%s\" is not in %s", os_type, images->sources);
    return NULL;
}

bool images_source_size(const struct images *images, const char *os_type, guint64 *ret_bytes,
                        GError **error)
{
    g_autofree char *path = source_path(images, os_type, error);
    struct stat status;
    if (path == NULL)
        return false;
    if (stat(path, &status) != 0)
        return fail_with_errno("look at", path, error);
    *ret_bytes = (guint64)status.st_size;
    return true;
}

static bool check_fits(const struct images *images, const char *os_type, guint64 first_mib,
                       GError **error)
{
    guint64 bytes = 0;
    if (!images_source_size(images, os_type, &bytes, error))
        return false;
    guint64 mib = (bytes + MIB(1) - 1) / MIB(1);
    if (mib <= first_mib)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "image \"%s\" is %" G_GUINT64_FORMAT " MiB, disk 0 only %" G_GUINT64_FORMAT
                     " MiB",
                     os_type, mib, first_mib);
    return false;
}

/* One run of data. copy_file_range() shares blocks where the file system can; where it cannot copy
 * at all (between file systems of different kinds) bytes are read and written. */
static bool copy_run(int from, int to, off_t offset, off_t end)
{
    char buffer[65536];
    bool by_kernel = true;
    while (offset < end) {
        off_t in = offset, out = offset;
        ssize_t done = -1;
        if (by_kernel)
            done = copy_file_range(from, &in, to, &out, (size_t)(end - offset), 0);
        if (done <= 0 && by_kernel &&
            (done == 0 || errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP ||
             errno == ENOSYS))
            by_kernel = false;
        if (!by_kernel) {
            done = pread(from, buffer, MIN(sizeof buffer, (size_t)(end - offset)), offset);
            if (done > 0)
                done = pwrite(to, buffer, (size_t)done, offset);
        }
        if (done < 0)
            return false;
        if (done == 0)
            break; /* the source was cut short meanwhile: the rest reads as zeros */
        offset += done;
    }
    return true;
}

/* Holes stay holes. */
static bool copy_data(int from, int to)
{
    off_t data = 0;
    while ((data = lseek(from, data, SEEK_DATA)) >= 0) {
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0 || !copy_run(from, to, data, hole))
            return false;
        data = hole;
    }
    return errno == ENXIO; /* no more data */
}

static bool fill_image(const struct images *images, int to, const char *temporary,
                       const char *source, guint64 size_mib, GError **error)
{
    if (source != NULL) {
        int from = open(source, O_RDONLY | O_CLOEXEC);
        bool copied = from >= 0 && copy_data(from, to);
        int failure = errno;
        if (from >= 0)
            close(from);
        errno = failure;
        if (!copied) {
            g_autofree char *what = g_strdup_printf("copy %s to", source);
            return fail_with_errno(what, temporary, error);
        }
    }
    crash_point("images: fill");
    if (ftruncate(to, (off_t)(size_mib * MIB(1))) != 0 || fsync(to) != 0)
        return fail_with_errno("write", temporary, error);
    if (images->uid != 0 && fchown(to, images->uid, images->uid) != 0)
        return fail_with_errno("change the owner of", temporary, error);
    return true;
}

static bool make_temporary(const struct images *images, const char *temporary, const char *source,
                           guint64 size_mib, GError **error)
{
    crash_point("images: create");
    int to = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (to < 0)
        return fail_with_errno("create", temporary, error);
    bool filled = fill_image(images, to, temporary, source, size_mib, error);
    close(to);
    return filled;
}

struct creation {
    GPtrArray *temporaries; /* char *, in order of disks */
    GPtrArray *finals;
    guint renamed;
};

static bool make_all(const struct images *images, struct creation *creation,
                     const GArray *sizes_mib, const char *source, GError **error)
{
    for (guint i = 0; i < sizes_mib->len; i++)
        if (!make_temporary(images, creation->temporaries->pdata[i], i == 0 ? source : NULL,
                            g_array_index(sizes_mib, guint64, i), error))
            return false;
    for (; creation->renamed < sizes_mib->len; creation->renamed++) {
        const char *from = creation->temporaries->pdata[creation->renamed];
        crash_point("images: rename");
        if (rename(from, creation->finals->pdata[creation->renamed]) != 0)
            return fail_with_errno("rename", from, error);
    }
    return images_sync_folder(images->disks, error);
}

/* What stood there before is touched only where it had been replaced already: half a new set is
 * none. */
static void undo(const struct creation *creation)
{
    for (guint i = 0; i < creation->temporaries->len; i++)
        unlink(creation->temporaries->pdata[i]);
    for (guint i = 0; i < creation->renamed; i++)
        unlink(creation->finals->pdata[i]);
}

bool images_create(const struct images *images, const char *instance, const char *replica,
                   const GArray *sizes_mib, const char *os_type, GError **error)
{
    g_autoptr(GPtrArray) temporaries = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) finals = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *source = NULL;
    if (os_type[0] != '\0' && sizes_mib->len > 0) {
        if (!check_fits(images, os_type, g_array_index(sizes_mib, guint64, 0), error))
            return false;
        source = source_path(images, os_type, error);
        if (source == NULL)
            return false;
    }
    for (guint i = 0; i < sizes_mib->len; i++) {
        char *path = images_path(images, instance, replica, i);
        g_ptr_array_add(finals, path);
        g_ptr_array_add(temporaries, g_strconcat(path, NEW_SUFFIX, NULL));
    }
    struct creation creation = {temporaries, finals, 0};
    bool made = make_all(images, &creation, sizes_mib, source, error);
    if (!made)
        undo(&creation);
    return made;
}
