/*
 * Loop devices, mounts and power cuts of file systems (disk.h).
 */
#include "lab/disk.h"

#include "base/error.h"
#include "base/limits.h"
#include "lab/elsewhere.h"
#include "lab/run.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LOOP_MAJOR 7
#define BUSY_STEP_US 10000
#define BUSY_US (10 * G_USEC_PER_SEC)
#define LOOK_STEPS 50 /* before others that have it mounted are looked for */
#define FILL_NAME ".lab-fill"

/* From the kernel's fs/ext4/ext4.h; not in its public headers of every age. */
#define LAB_EXT4_IOC_SHUTDOWN _IOR('X', 125, __u32)
#define LAB_EXT4_NOLOGFLUSH 2u

bool disk_create(const char *image, guint mib, guint files, GError **error)
{
    g_autofree char *inodes = g_strdup_printf("%u", files);
    int fd = open(image, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)MIB(mib)) != 0) {
        fettle_set_error(error, STORAGE, "cannot make %s: %s", image, g_strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    close(fd);
    /* A new sparse file reads as zeros, so neither discarding nor clearing of the journal or of the
     * tables of inodes is needed; disk_mount() sees to it that the kernel does not clear those
     * either, behind a test's back. So room for more files costs nothing until it is used. */
    const char *argv[] = {"mkfs.ext4",
                          "-q",
                          "-F",
                          "-m",
                          "0",
                          "-b",
                          "4096",
                          "-N",
                          inodes,
                          "-E",
                          "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
                          image,
                          NULL};
    return run_program(argv, NULL, error);
}

/* Opens a free loop device, making its node if there is none; -1 with errno. */
static int open_free_loop(int control, char *path, size_t size)
{
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0)
        return -1;
    g_snprintf(path, (gulong)size, "/dev/loop%d", number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        if (mknod(path, S_IFBLK | 0600, makedev(LOOP_MAJOR, (unsigned)number)) != 0 &&
            errno != EEXIST)
            return -1;
        fd = open(path, O_RDWR | O_CLOEXEC);
    }
    return fd;
}

/* Attaches the image; the descriptor keeps the device until something is mounted from it. */
static int attach(int control, int file, const char *image, char *path, size_t size)
{
    for (int i = 0; i < LIMIT_LAB_LOOP_TRIES; i++) {
        int fd = open_free_loop(control, path, size);
        if (fd < 0)
            return -1;
        struct loop_config config = {.fd = (__u32)file, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
        g_strlcpy((char *)config.info.lo_file_name, image, LO_NAME_SIZE);
        if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
            return fd;
        int failed = errno;
        close(fd);
        errno = failed;
        if (failed != EBUSY) /* busy: somebody else took the free one first */
            return -1;
    }
    return -1;
}

static int attach_image(const char *image, char *path, size_t size, GError **error)
{
    int loop = -1;
    int file = open(image, O_RDWR | O_CLOEXEC);
    int control = file >= 0 ? open("/dev/loop-control", O_RDWR | O_CLOEXEC) : -1;
    if (control >= 0)
        loop = attach(control, file, image, path, size);
    if (loop < 0)
        fettle_set_error(error, STORAGE, "cannot attach %s to a loop device: %s", image,
                         g_strerror(errno));
    if (control >= 0)
        close(control);
    if (file >= 0)
        close(file);
    return loop;
}

static bool mount_checked(const char *source, const char *folder, const char *type,
                          unsigned long flags, const char *options, GError **error)
{
    if (mount(source, folder, type, flags, options) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot mount %s at %s: %s", source, folder,
                     g_strerror(errno));
    return false;
}

bool disk_mount(const char *image, const char *folder, GError **error)
{
    char path[32];
    if (!disk_wait_detached(image, error))
        return false;
    int loop = attach_image(image, path, sizeof(path), error);
    if (loop < 0)
        return false;
    bool ok = mount_checked(path, folder, "ext4", MS_NOATIME, "noinit_itable", error);
    close(loop);
    return ok;
}

bool disk_mount_tmpfs(const char *folder, GError **error)
{
    return mount_checked("tmpfs", folder, "tmpfs", 0, "mode=0755", error);
}

bool disk_bind(const char *source, const char *folder, GError **error)
{
    return mount_checked(source, folder, NULL, MS_BIND, NULL, error);
}

static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == 0 || path[len] == '/');
}

/* Mount points at and below `folder`, in the order in which they were mounted. */
static GPtrArray *mounts_below(const char *folder)
{
    GPtrArray *mounts = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL))
        return mounts;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) words = g_strsplit(*line, " ", 6);
        if (g_strv_length(words) < 6)
            continue;
        g_autofree char *point = elsewhere_unescape(words[4]);
        if (is_below(point, folder))
            g_ptr_array_add(mounts, g_steal_pointer(&point));
    }
    return mounts;
}

bool disk_is_mounted(const char *folder)
{
    g_autoptr(GPtrArray) mounts = mounts_below(folder);
    for (guint i = 0; i < mounts->len; i++)
        if (strcmp(g_ptr_array_index(mounts, i), folder) == 0)
            return true;
    return false;
}

bool disk_cut(const char *folder, GError **error)
{
    guint32 flags = LAB_EXT4_NOLOGFLUSH;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && ioctl(fd, LAB_EXT4_IOC_SHUTDOWN, &flags) == 0;
    if (!ok)
        fettle_set_error(error, STORAGE, "cannot cut the power of the file system at %s: %s",
                         folder, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

void disk_cut_below(const char *folder)
{
    g_autoptr(GPtrArray) mounts = mounts_below(folder);
    for (guint i = 0; i < mounts->len; i++) {
        struct statfs about;
        const char *point = g_ptr_array_index(mounts, i);
        /* The bound log folder may lie on an ext4 too: the machine's own. Only roots of our own
         * disks are cut. */
        struct stat here;
        if (statfs(point, &about) == 0 && about.f_type == EXT4_SUPER_MAGIC &&
            stat(point, &here) == 0 && major(here.st_dev) == LOOP_MAJOR) {
            disk_cut(point, NULL);
            disk_thaw(point, NULL); /* or nobody who waits for it could be killed */
        }
    }
}

static bool unmount(const char *point, GError **error)
{
    for (gint64 end = g_get_monotonic_time() + BUSY_US; g_get_monotonic_time() < end;) {
        if (umount2(point, UMOUNT_NOFOLLOW) == 0 || errno == EINVAL || errno == ENOENT)
            return true;
        if (errno != EBUSY)
            break;
        g_usleep(BUSY_STEP_US);
    }
    if (umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot unmount %s: %s", point, g_strerror(errno));
    return false;
}

bool disk_unmount_below(const char *folder, GError **error)
{
    g_autoptr(GPtrArray) mounts = mounts_below(folder);
    for (guint i = mounts->len; i > 0; i--)
        if (!unmount(g_ptr_array_index(mounts, i - 1), error))
            return false;
    return true;
}

/* Name of a loop device that uses a file whose path begins with `path`, or NULL. */
static char *attached_to(const char *path)
{
    g_autoptr(GDir) devices = g_dir_open("/sys/block", 0, NULL);
    const char *name;
    while (devices && (name = g_dir_read_name(devices))) {
        if (!g_str_has_prefix(name, "loop"))
            continue;
        g_autofree char *about = g_strdup_printf("/sys/block/%s/loop/backing_file", name);
        g_autofree char *file = NULL;
        if (g_file_get_contents(about, &file, NULL, NULL) && g_str_has_prefix(file, path))
            return g_strdup(name);
    }
    return NULL;
}

static dev_t device_number(const char *name)
{
    struct stat about;
    g_autofree char *path = g_build_filename("/dev", name, NULL);
    return stat(path, &about) == 0 ? about.st_rdev : 0;
}

bool disk_wait_detached(const char *path, GError **error)
{
    g_autofree char *device = NULL;
    gint64 end = g_get_monotonic_time() + BUSY_US;
    for (int i = 0; i <= LOOK_STEPS || g_get_monotonic_time() < end; i++) {
        g_free(device);
        device = attached_to(path);
        if (!device)
            return true;
        if (i % LOOK_STEPS == LOOK_STEPS - 1)
            elsewhere_unmount(device_number(device));
        g_usleep(BUSY_STEP_US);
    }
    g_autofree char *user = elsewhere_user(device_number(device));
    fettle_set_error(error, STORAGE, "%s is still attached to /dev/%s by %s; end it and try again",
                     path, device,
                     user ? user
                          : "some process outside of the lab that has a file or its working "
                            "folder in there");
    return false;
}

bool disk_read_only(const char *folder, GError **error)
{
    if (mount(NULL, folder, NULL, MS_REMOUNT | MS_NOATIME, "abort") == 0)
        return true;
    fettle_set_error(error, STORAGE, "cannot make %s read-only: %s", folder, g_strerror(errno));
    return false;
}

bool disk_set_writable(const char *folder, bool writable, GError **error)
{
    unsigned long flags = MS_REMOUNT | MS_NOATIME | (writable ? 0 : MS_RDONLY);
    if (mount(NULL, folder, NULL, flags, NULL) == 0)
        return true;
    const char *state = writable ? "writable" : "read-only";
    if (errno == EBUSY)
        fettle_set_error(error, WRONG_STATE,
                         "%s cannot be made %s: something in it is open for writing; a guest's "
                         "disk or volume, for one",
                         folder, state);
    else
        fettle_set_error(error, STORAGE, "cannot make %s %s: %s", folder, state, g_strerror(errno));
    return false;
}

static bool freeze_or_thaw(const char *folder, unsigned long what, const char *word, GError **error)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && (ioctl(fd, what, 0) == 0 || (what == FITHAW && errno == EINVAL));
    if (!ok)
        fettle_set_error(error, STORAGE, "cannot %s the file system at %s: %s", word, folder,
                         g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool disk_freeze(const char *folder, GError **error)
{
    return freeze_or_thaw(folder, FIFREEZE, "freeze", error);
}

bool disk_thaw(const char *folder, GError **error)
{
    return freeze_or_thaw(folder, FITHAW, "thaw", error);
}

bool disk_fill(const char *folder, guint leave_mib, GError **error)
{
    g_autofree char *path = g_build_filename(folder, FILL_NAME, NULL);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    struct statvfs about;
    struct stat now;
    bool ok = fd >= 0 && syncfs(fd) == 0 && fstatvfs(fd, &about) == 0 && fstat(fd, &now) == 0;
    if (ok) {
        off_t block = (off_t)about.f_frsize;
        off_t free_bytes = (off_t)about.f_bavail * block - (off_t)MIB(leave_mib);
        off_t size = now.st_size;
        /* The file system needs blocks of its own for a file this large, so the last part is found
         * by halving. */
        for (off_t step = free_bytes - free_bytes % block; step >= block;) {
            if (fallocate(fd, 0, size, step) == 0)
                size += step;
            else if (errno != ENOSPC)
                break;
            step = MIN(step / 2, free_bytes - (size - now.st_size));
            step -= step % block;
        }
        ok = size > now.st_size || free_bytes < block;
    }
    if (!ok)
        fettle_set_error(error, STORAGE, "cannot fill %s: %s", folder, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool disk_unfill(const char *folder, GError **error)
{
    g_autofree char *path = g_build_filename(folder, FILL_NAME, NULL);
    if (unlink(path) == 0 || errno == ENOENT)
        return true;
    fettle_set_error(error, STORAGE, "cannot remove %s: %s", path, g_strerror(errno));
    return false;
}
