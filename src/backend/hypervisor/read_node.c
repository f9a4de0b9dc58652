/*
 * See read_node.h.
 */
#include "backend/hypervisor/read_node.h"

#include "backend/hypervisor/block_jobs.h"
#include "base/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct job_set seconds_of(const struct guest *guest)
{
    return (struct job_set){.kind = 's', .number = guest->mirror.number};
}

char *read_node_name(const struct guest *guest, guint disk)
{
    struct job_set set = seconds_of(guest);
    return block_jobs_name(&set, disk);
}

/* The file under this name, if it is the image; -1. */
static int open_if_image(int folder, const char *name, const struct image_file *image)
{
    struct stat status;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_dev == image->device && status.st_ino == image->inode)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Among this node's images, where it may have been renamed since it was opened, as a replica that
 * became the guest's is. (QEMU's own descriptors are closed to a node daemon without
 * CAP_SYS_PTRACE.) -1 if there is none. */
static int open_image(const struct guest *guest, const struct image_file *image)
{
    g_autofree char *path = g_build_filename(guest->qemu->paths->var, "disks", NULL);
    DIR *folder = image->inode != 0 ? opendir(path) : NULL;
    const struct dirent *entry;
    int fd = -1;
    while (folder != NULL && fd < 0 && (entry = readdir(folder)) != NULL) {
        struct stat status;
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            status.st_dev == image->device && status.st_ino == image->inode)
            fd = open_if_image(dirfd(folder), entry->d_name, image);
    }
    if (folder != NULL)
        closedir(folder);
    return fd;
}

/* A set of descriptors is how QEMU names one that was handed to it. */
static bool add_node(struct guest *guest, guint disk, int fd, GError **error)
{
    int set = (int)(guest->mirror.number * LIMIT_DISKS + disk);
    g_autofree char *name = read_node_name(guest, disk);
    g_autofree char *file = g_strdup_printf("/dev/fdset/%d", set);
    if (!guest_give_descriptor(guest, "add-fd", json_make("{s:i}", "fdset-id", set), fd, error))
        return false;
    bool added = guest_command(guest, "blockdev-add",
                               json_make("{s:s,s:s,s:b,s:{s:s,s:s,s:s}}", "driver", "raw",
                                         "node-name", name, "read-only", 1, "file", "driver",
                                         "file", "filename", file, "locking", "off"),
                               LIMIT_QMP_COMMAND_MS, error);
    /* The node has its own copy. */
    guest_command(guest, "remove-fd", json_make("{s:i}", "fdset-id", set), LIMIT_QMP_COMMAND_MS,
                  NULL);
    return added;
}

bool read_nodes_add(struct guest *guest, GError **error)
{
    for (guint i = 0; i < guest->disks; i++) {
        int fd = open_image(guest, &guest->images[i]);
        if (fd < 0) {
            fettle_set_error(error, WRONG_STATE,
                             "guest %s: the image of disk %u cannot be read beside it", guest->name,
                             i);
            return false;
        }
        bool added = add_node(guest, i, fd, error);
        close(fd);
        if (!added)
            return false;
    }
    return true;
}

bool read_nodes_remove(struct guest *guest, GError **error)
{
    struct job_set set = seconds_of(guest);
    return block_jobs_remove_nodes(guest, &set, error);
}
