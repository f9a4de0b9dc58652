/*
 * The serial line of a guest. What it prints is appended by QEMU to log/guests/NAME-UUID.console;
 * what is typed goes through the socket con.sock.
 *
 * The file is bounded by holes: what is older than the last LIMIT_CONSOLE_BYTES is given back to
 * the file system where it lies. So offsets count all that was ever printed, nothing is lost
 * between QEMU and a rotation, and the name that somebody follows stays.
 */
#include "backend/hypervisor/qemu_private.h"
#include "base/limits.h"
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define READ_POLL_MS 20
#define WRITE_POLL_MS 2
#define HOLE_BYTES (off_t) KIB(64) /* whole blocks of any file system */

/* --- reading --- */

/* By the end of its name: a guest that runs no more is known to nobody here, and what it said last
 * is what one wants to read. NULL if there is none. */
static char *find_file(const struct qemu *qemu, const char *instance)
{
    g_autofree char *folder = g_build_filename(qemu->paths->log, "guests", NULL);
    g_autofree char *ending = g_strdup_printf("-%s.console", instance);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        if (g_str_has_suffix(name, ending))
            return g_build_filename(folder, name, NULL);
    return NULL;
}

static int open_file(const struct qemu *qemu, const char *instance, GError **error)
{
    g_autofree char *path = find_file(qemu, instance);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (path == NULL)
        fettle_set_error(error, UNKNOWN_ENTITY, "no guest of instance %s has printed on this node",
                         instance);
    else if (fd < 0)
        fettle_set_error(error, STORAGE, "%s: %s", path, g_strerror(errno));
    return fd;
}

static guint64 size_of(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 ? (guint64)status.st_size : 0;
}

guint64 console_size(const struct qemu *qemu, const char *instance)
{
    int fd = open_file(qemu, instance, NULL);
    guint64 size = fd >= 0 ? size_of(fd) : 0;
    if (fd >= 0)
        close(fd);
    return size;
}

/* Where to begin: what is older may lie in a hole by now. */
static guint64 first_byte(const struct qemu *qemu, const char *instance, int fd, gint64 offset)
{
    const struct guest *guest = g_hash_table_lookup(qemu->guests, instance);
    guint64 size = size_of(fd), from;
    if (offset == CONSOLE_SINCE_START)
        from = guest != NULL ? guest->console : size;
    else
        from = offset >= 0 ? (guint64)offset : size - MIN((guint64)-offset, size);
    off_t data = from < size ? lseek(fd, (off_t)from, SEEK_DATA) : -1;
    return data >= 0 ? (guint64)data : MIN(from, size);
}

static GBytes *read_from(int fd, guint64 from, guint64 *ret_offset, GError **error)
{
    g_autofree char *buffer = g_malloc(LIMIT_CONSOLE_READ_BYTES);
    ssize_t got = pread(fd, buffer, LIMIT_CONSOLE_READ_BYTES, (off_t)from);
    if (got < 0) {
        fettle_set_error(error, STORAGE, "cannot read a console: %s", g_strerror(errno));
        return NULL;
    }
    *ret_offset = from + (guint64)got;
    return g_bytes_new(buffer, (gsize)got);
}

GBytes *qemu_console_read(struct hypervisor *hv, const char *instance, gint64 offset, guint wait_ms,
                          guint64 *ret_offset, GError **error)
{
    const struct qemu *qemu = (struct qemu *)hv;
    int fd = open_file(qemu, instance, error);
    if (fd < 0)
        return NULL;
    gint64 deadline = loop_boot_ms() + wait_ms;
    guint64 from = first_byte(qemu, instance, fd, offset);
    while (size_of(fd) <= from && loop_boot_ms() < deadline)
        if (!loop_sleep(READ_POLL_MS))
            break;
    GBytes *bytes = read_from(fd, from, ret_offset, error);
    close(fd);
    return bytes;
}

/* --- keeping it small --- */

/* A file system that can make no holes keeps everything. */
static void trim(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && (size_t)status.st_size > LIMIT_CONSOLE_BYTES &&
        (size_t)status.st_blocks * 512 > LIMIT_CONSOLE_BYTES + LIMIT_CONSOLE_BYTES / 4)
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  (status.st_size - (off_t)LIMIT_CONSOLE_BYTES) / HOLE_BYTES * HOLE_BYTES);
}

static void trim_all(struct qemu *qemu)
{
    GHashTableIter iter;
    gpointer instance;
    g_hash_table_iter_init(&iter, qemu->guests);
    while (g_hash_table_iter_next(&iter, &instance, NULL)) {
        int fd = open_file(qemu, instance, NULL);
        if (fd < 0)
            continue;
        trim(fd);
        close(fd);
    }
}

static void trim_again(void *data)
{
    struct qemu *qemu = data;
    trim_all(qemu);
    consoles_watch(qemu);
}

void consoles_watch(struct qemu *qemu)
{
    qemu->trimming = loop_timer(CONSOLE_TRIM_MS, trim_again, qemu);
}

/* --- writing --- */

static int connect_to(const char *path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    fettle_set_error(error, UNREACHABLE, "its serial line: %s", g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* What the guest prints comes here too; it is in the file, and unread it would hold the guest up.
 */
static void throw_away(int fd)
{
    char chunk[4096];
    while (recv(fd, chunk, sizeof chunk, 0) > 0)
        ;
}

/* Until QEMU has taken every byte: what is left in the socket when it is closed is lost. */
static bool type(int fd, const char *at, gsize left, GError **error)
{
    gint64 deadline = loop_boot_ms() + CONSOLE_WRITE_MS;
    int waiting = 0;
    do {
        ssize_t sent = left > 0 ? send(fd, at, left, MSG_NOSIGNAL) : 0;
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            break;
        at += MAX(sent, 0);
        left -= (gsize)MAX(sent, 0);
        throw_away(fd);
        if (left == 0 && ioctl(fd, SIOCOUTQ, &waiting) == 0 && waiting == 0)
            return true;
    } while (loop_sleep(WRITE_POLL_MS) && loop_boot_ms() < deadline);
    fettle_set_error(error, TIMEOUT, "its serial line took not all that was typed within %u ms",
                     CONSOLE_WRITE_MS);
    return false;
}

static bool write_locked(struct guest *guest, GBytes *data, GError **error)
{
    gsize len = 0;
    const char *bytes = g_bytes_get_data(data, &len);
    g_autofree char *path = guest_path(guest, "con.sock");
    int fd = connect_to(path, error);
    if (fd < 0)
        return false;
    bool done = type(fd, bytes, len, error);
    close(fd);
    return done;
}

bool qemu_console_write(struct hypervisor *hv, const char *instance, GBytes *data, GError **error)
{
    struct qemu *qemu = (struct qemu *)hv;
    const struct guest *there = g_hash_table_lookup(qemu->guests, instance);
    guest_autoptr guest = guest_find(qemu, instance, there != NULL ? there->generation : 0, error);
    if (guest == NULL)
        return false;
    if (!task_mutex_lock(&guest->typing)) {
        fettle_set_error(error, KILLED, "the process that typed for guest %s has ended",
                         guest->name);
        return false;
    }
    bool done = write_locked(guest, data, error);
    task_mutex_unlock(&guest->typing);
    if (!done)
        g_prefix_error(error, "guest %s: ", guest->name);
    return done;
}
