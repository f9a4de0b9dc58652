/* One call at a directory; see dir_call.h. */
#include "backend/volume/dir_call.h"

#include "backend/volume/dir_backup.h"
#include "backend/volume/dir_check.h"
#include "backend/volume/dir_copy.h"
#include "backend/volume/dir_settle.h"
#include "backend/volume/dir_text.h"
#include "backend/volume/dir_transfer.h"
#include "backend/volume/volume_user.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backend/storage/disk_images.h"
#include "base/limits.h"
#include "io/crypto/sum.h"
#include "proto/storage/volume_driver.h"

#define WHOLE "user.fettle.whole"
#define MARKER_NEW "." DIR_MARKER "."
#define MARKER_BYTES 512

struct name {
    enum resource_type type;
    const char *text; /* "": none */
};

struct place {
    const char *path, *backend; /* the latter by its UUID; "": none */
    int folder;                 /* the directory */
    int folders[DIR_FOLDERS];   /* what is in it, by kind; -1: nothing yet */
};

struct call {
    const char *verb, *cluster, *cluster_name, *word; /* word: see dir_call.h */
    const char *outside;                              /* NULL: nothing is */
    struct name name, source;
    guint64 number;
    struct place here, there; /* there: only if the source is at another place */
};

static bool fail(const char *doing, const struct call *call, GError **error)
{
    int why = errno;
    const char *reason = g_strerror(why);
    const char *name = *call->name.text ? call->name.text : call->here.path;
    if (why == ENOSPC || why == EDQUOT)
        fettle_set_error(error, NO_RESOURCES, "cannot %s %s: %s", doing, name, reason);
    else
        fettle_set_error(error, STORAGE, "cannot %s %s: %s", doing, name, reason);
    return false;
}

/* --- the marker --- */

static bool read_marker(const struct call *call, const struct place *place, char *text,
                        GError **error)
{
    int fd = openat(place->folder, DIR_MARKER, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = fd >= 0 ? read(fd, text, MARKER_BYTES - 1) : -1;
    int why = errno;
    if (fd >= 0)
        close(fd);
    text[MAX(got, 0)] = '\0';
    errno = why;
    return got >= 0 || why == ENOENT || fail("read the marker of", call, error);
}

static bool check_marker(const struct call *call, const struct place *place, GError **error)
{
    char text[MARKER_BYTES];
    struct dir_marker marker;
    if (!read_marker(call, place, text, error))
        return false;
    if (!dir_marker_parse(text, &marker)) {
        fettle_set_error(error, ENVIRONMENT,
                         "%s has no marker of back end %s; is it mounted? A new one gets "
                         "it while it is empty",
                         place->path, place->backend);
        return false;
    }
    if (strcmp(marker.backend, place->backend) == 0 && strcmp(marker.cluster, call->cluster) == 0)
        return true;
    fettle_set_error(error, UNSAFE, "%s belongs to back end %s of cluster %s", place->path,
                     marker.backend, marker.name);
    return false;
}

static bool is_empty(const struct call *call)
{
    int fd = openat(call->here.folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    bool empty = dir != NULL;
    for (struct dirent *entry; empty && (entry = readdir(dir));)
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                strcmp(entry->d_name, "lost+found") == 0 ||
                g_str_has_prefix(entry->d_name, MARKER_NEW);
    if (dir)
        closedir(dir);
    return empty;
}

static bool write_marker(const struct call *call, const char *name, GError **error)
{
    g_autofree char *text = g_strdup_printf("backend %s\ncluster %s %s\n", call->here.backend,
                                            call->cluster, call->cluster_name);
    int fd = openat(call->here.folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok || fail("write the marker of", call, error);
}

/* A link, so that of two that make it at once one does, and nobody reads half of one. */
static bool make_marker(const struct call *call, GError **error)
{
    g_autofree char *random = g_uuid_string_random();
    g_autofree char *name = g_strconcat(MARKER_NEW, random, NULL);
    bool ok = write_marker(call, name, error);
    if (ok && linkat(call->here.folder, name, call->here.folder, DIR_MARKER, 0) != 0 &&
        errno != EEXIST)
        ok = fail("make the marker of", call, error);
    unlinkat(call->here.folder, name, 0);
    return ok && (fsync(call->here.folder) == 0 || fail("sync", call, error));
}

/* --- the verbs --- */

static bool do_open(struct call *call, GError **error)
{
    if (call->number == 0 || faccessat(call->here.folder, DIR_MARKER, F_OK, 0) == 0 ||
        !is_empty(call))
        return true;
    return make_marker(call, error);
}

static bool do_space(struct call *call, GError **error)
{
    struct statvfs space;
    if (fstatvfs(call->here.folder, &space) != 0)
        return fail("look at", call, error);
    printf("%" PRIu64 " %" PRIu64 "\n", (uint64_t)space.f_bavail * space.f_frsize / MIB(1),
           (uint64_t)space.f_blocks * space.f_frsize / MIB(1));
    return true;
}

/* The folder that a name is in. */
static int folder_of(const struct call *call, const struct name *name)
{
    bool elsewhere = name == &call->source && *call->there.path;
    return (elsewhere ? &call->there : &call->here)->folders[name->type];
}

/* WRONG_STATE: a guest has it open, whatever the record says of that. */
static bool is_unused(const struct call *call, const struct name *name, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("/proc/self/fd/%d/%s", folder_of(call, name), name->text);
    g_autoptr(GError) local = NULL;
    if (images_check_unused(path, &local))
        return true;
    if (fettle_error_is(local, WRONG_STATE))
        fettle_set_error(error, WRONG_STATE, "%s is open in a running guest", name->text);
    else
        g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

static bool make_folder(struct call *call, GError **error)
{
    const char *folder = dir_folder(call->name.type);
    int *fd = &call->here.folders[call->name.type];
    if (*fd >= 0)
        return true;
    if ((mkdirat(call->here.folder, folder, 0700) != 0 && errno != EEXIST) ||
        fsync(call->here.folder) != 0)
        return fail("make the folder of", call, error);
    *fd = openat(call->here.folder, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return *fd >= 0 || fail("open the folder of", call, error);
}

/* Said only of what is on stable storage, with its name, and root's alone. Where there are no such
 * attributes nothing says it. */
static bool say_whole(const struct call *call, int fd, GError **error)
{
    if (!volume_user_take_back(fd, error))
        return false;
    g_autofree char *text =
        g_strdup_printf("%s %" PRIu64, strchr(call->name.text, '.') + 1, (uint64_t)call->number);
    if (fsetxattr(fd, WHOLE, text, strlen(text), 0) != 0)
        return errno == ENOTSUP || fail("mark", call, error);
    return fsync(fd) == 0 || fail("sync", call, error);
}

static int open_data(const struct call *call, const struct name *name, int flags,
                     struct stat *ret_status, GError **error)
{
    int folder = folder_of(call, name);
    errno = ENOENT;
    int fd =
        folder < 0 ? -1 : openat(folder, name->text, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        fettle_set_error(error, UNKNOWN_ENTITY, "there is no %s", name->text);
    else if (fd < 0 || fstat(fd, ret_status) != 0)
        fail("open", call, error);
    else if (S_ISREG(ret_status->st_mode))
        return fd;
    else
        fettle_set_error(error, STORAGE, "%s is no file", name->text);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A new, empty file; -1: an error. */
static int make_file(struct call *call, GError **error)
{
    if (!make_folder(call, error))
        return -1;
    int fd = openat(folder_of(call, &call->name), call->name.text,
                    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        fettle_set_error(error, ALREADY_EXISTS, "%s is there already", call->name.text);
    else if (fd < 0)
        fail("make", call, error);
    return fd;
}

/* On stable storage, and its name too. */
static bool sync_data(const struct call *call, int fd, GError **error)
{
    return (fsync(fd) == 0 && fsync(folder_of(call, &call->name)) == 0) ||
           fail("sync", call, error);
}

/* Nobody writes to an image, and whoever reads it may go on (SAF-120). */
static bool is_source_still(struct call *call, GError **error)
{
    return call->source.type == RESOURCE_IMAGE || is_unused(call, &call->source, error);
}

/* From `source` on, unless that is -1, which nobody can have written to meanwhile (SAF-120): whole,
 * and with its name on stable storage, before it says so. */
static bool make_data(struct call *call, int source, GError **error)
{
    int fd = make_file(call, error);
    if (fd < 0)
        return false;
    bool ok = source < 0 || dir_copy_bytes(source, fd, call->number) || fail("make", call, error);
    ok = ok && (ftruncate(fd, (off_t)call->number) == 0 || fail("size", call, error));
    ok = ok && sync_data(call, fd, error);
    ok = ok && (source < 0 || is_source_still(call, error));
    ok = ok && say_whole(call, fd, error);
    close(fd);
    return ok;
}

static bool do_create(struct call *call, GError **error)
{
    return make_data(call, -1, error);
}

static bool do_prepare(struct call *call, GError **error)
{
    int fd = make_file(call, error);
    bool ok = fd >= 0 && (ftruncate(fd, (off_t)call->number) == 0 || fail("size", call, error)) &&
              sync_data(call, fd, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Of a volume it is the copy of one moment, for a backup: were that whole, recovery could take it
 * for what the volume has. */
static bool do_fill_end(struct call *call, GError **error)
{
    struct stat status;
    if (!is_unused(call, &call->name, error))
        return false;
    int fd = open_data(call, &call->name, O_RDWR, &status, error);
    bool ok = fd >= 0 && (ftruncate(fd, (off_t)call->number) == 0 || fail("size", call, error)) &&
              sync_data(call, fd, error) &&
              (call->name.type == RESOURCE_VOLUME || say_whole(call, fd, error));
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool do_copy(struct call *call, GError **error)
{
    struct stat status;
    int source = open_data(call, &call->source, O_RDONLY, &status, error);
    bool ok = source >= 0 && is_source_still(call, error) && make_data(call, source, error);
    if (source >= 0)
        close(source);
    return ok;
}

/* The last byte is allocated, which makes a smaller file larger and never a larger one smaller,
 * whoever else does the same at the same time. */
static bool do_grow(struct call *call, GError **error)
{
    struct stat status;
    int fd = open_data(call, &call->name, O_RDWR, &status, error);
    if (fd < 0)
        return false;
    bool ok = (guint64)status.st_size >= call->number ||
              fallocate(fd, 0, (off_t)call->number - 1, 1) == 0 || fail("grow", call, error);
    ok = ok && (fsync(fd) == 0 || fail("sync", call, error));
    close(fd);
    return ok;
}

static bool do_remove(struct call *call, GError **error)
{
    int folder = folder_of(call, &call->name);
    if (folder < 0)
        return true;
    if (!is_unused(call, &call->name, error))
        return false;
    if (unlinkat(folder, call->name.text, 0) != 0 && errno != ENOENT)
        return fail("remove", call, error);
    return fsync(folder) == 0 || fail("sync", call, error);
}

/* As dir_list_parse() reads it. */
static int is_whole(const char *name, int fd, guint64 bytes)
{
    char text[64] = "";
    ssize_t got = fgetxattr(fd, WHOLE, text, sizeof text - 1);
    return got < 0 && errno == ENOTSUP ? DIR_MUTE : got > 0 && dir_whole_parse(text, name, bytes);
}

static void print_data(const struct name *name, int whole, bool open, const struct stat *status)
{
    printf("%d %d %" PRIu64 " %s/%s\n", whole, open, (uint64_t)status->st_size,
           dir_folder(name->type), name->text);
}

static bool do_look(struct call *call, GError **error)
{
    struct stat status;
    int fd = open_data(call, &call->name, O_RDONLY, &status, error);
    if (fd < 0)
        return false;
    print_data(&call->name, is_whole(call->name.text, fd, (guint64)status.st_size), false, &status);
    close(fd);
    return true;
}

/* True also if it has gone meanwhile. */
static bool find_one(const struct call *call, const struct name *name, GError **error)
{
    struct stat status;
    g_autoptr(GError) local = NULL;
    int fd = open_data(call, name, O_RDONLY, &status, &local);
    if (fd < 0) {
        bool gone = fettle_error_is(local, UNKNOWN_ENTITY);
        if (!gone)
            g_propagate_error(error, g_steal_pointer(&local));
        return gone;
    }
    int whole = is_whole(name->text, fd, (guint64)status.st_size);
    close(fd); /* ours would be in the way of nobody's lock, but of a look at it */
    bool open = !is_unused(call, name, &local);
    if (open && !fettle_error_is(local, WRONG_STATE)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    print_data(name, whole, open, &status);
    return true;
}

/* Of `find` those of one resource, whose UUID is its name. */
static bool list_one(const struct call *call, guint type, const char *name, GError **error)
{
    struct stat status;
    g_autofree char *uuid = NULL;
    guint64 claim;
    const struct name found = {type, name};
    if (!volume_data_parse(name, &uuid, &claim))
        return true;
    if (*call->name.text)
        return strcmp(call->name.text, uuid) != 0 || find_one(call, &found, error);
    if (fstatat(call->here.folders[type], name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || fail("look at", call, error);
    if (S_ISREG(status.st_mode))
        print_data(&found, false, false, &status);
    return true;
}

static bool list_folder(const struct call *call, guint type, GError **error)
{
    if (call->here.folders[type] < 0)
        return true;
    int fd = openat(call->here.folders[type], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir)
        return fail("list", call, error);
    bool ok = true;
    struct dirent *entry;
    errno = 0;
    while (ok && (entry = readdir(dir))) {
        ok = list_one(call, type, entry->d_name, error);
        errno = 0;
    }
    if (ok && errno != 0)
        ok = fail("list", call, error);
    closedir(dir);
    return ok;
}

static bool do_find(struct call *call, GError **error)
{
    return list_folder(call, call->name.type, error);
}

static bool do_list(struct call *call, GError **error)
{
    bool ok = true;
    for (guint i = 0; i < DIR_FOLDERS && ok; i++)
        ok = list_folder(call, i, error);
    return ok;
}

/* --- backups: what comes after qemu-img is a call of its own --- */

/* Of what is outside its own driver has seen to that. */
static bool source_unused(const struct call *call, GError **error)
{
    return call->outside || is_unused(call, &call->source, error);
}

static bool open_source(const struct call *call, struct dir_image *ret_source,
                        struct stat *ret_status, GError **error)
{
    *ret_source = (struct dir_image){.fd = -1, .outside = call->outside};
    if (!call->outside)
        ret_source->fd = open_data(call, &call->source, O_RDONLY, ret_status, error);
    return call->outside || (ret_source->fd >= 0 && is_unused(call, &call->source, error));
}

static bool do_pack(struct call *call, GError **error)
{
    struct stat status;
    struct dir_image source;
    int target = open_source(call, &source, &status, error) ? make_file(call, error) : -1;
    if (target >= 0)
        dir_backup_pack(&source, call->number, target, error);
    return false;
}

static bool do_take(struct call *call, GError **error)
{
    struct dir_image target = {.fd = make_file(call, error)};
    if (target.fd >= 0)
        dir_backup_copy(&(struct dir_image){.fd = -1, .outside = call->outside}, call->number,
                        &target, error);
    return false;
}

static bool do_give(struct call *call, GError **error)
{
    struct stat status;
    struct dir_image source = {.fd = open_data(call, &call->source, O_RDONLY, &status, error)};
    if (source.fd >= 0 && is_source_still(call, error))
        dir_backup_copy(&source, (guint64)status.st_size > call->number ? call->number : 0,
                        &(struct dir_image){.fd = -1, .outside = call->outside}, error);
    return false;
}

static bool do_unused(struct call *call, GError **error)
{
    return is_source_still(call, error);
}

static bool print_sum(struct call *call, int fd, GError **error)
{
    g_autofree char *sum = dir_backup_sum(fd, &call->number);
    if (sum)
        printf("%" PRIu64 " %s\n", (uint64_t)call->number, sum);
    return sum || fail("read", call, error);
}

static bool do_pack_end(struct call *call, GError **error)
{
    struct stat status;
    int fd = open_data(call, &call->name, O_RDWR, &status, error);
    bool ok = fd >= 0 && sync_data(call, fd, error) && source_unused(call, error) &&
              print_sum(call, fd, error) && say_whole(call, fd, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* It is what was made once, and leads nowhere else. */
static bool check_backup(const struct call *call, int fd, GError **error)
{
    guint64 bytes;
    g_autofree char *sum = dir_backup_sum(fd, &bytes);
    if (!sum)
        return fail("read the backup for", call, error);
    if (strcmp(sum, call->word) != 0) {
        fettle_set_error(error, CORRUPT,
                         "backup %s is not what was written: its SHA-512 is %.16s…, and not "
                         "%.16s…",
                         call->source.text, sum, call->word);
        return false;
    }
    guint64 size;
    if (dir_backup_check(fd, call->number, &size, error))
        return true;
    g_prefix_error(error, "backup %s ", call->source.text);
    return false;
}

/* Returns only with an error. */
static void unpack_from(struct call *call, int source, GError **error)
{
    struct dir_image target = {.fd = call->outside ? -1 : make_file(call, error),
                               .outside = call->outside};
    if (target.outside || target.fd >= 0)
        dir_backup_unpack(source, &target, error);
}

static bool do_unpack(struct call *call, GError **error)
{
    struct stat status;
    int source = open_data(call, &call->source, O_RDONLY, &status, error);
    if (source < 0 || !check_backup(call, source, error))
        return false;
    unpack_from(call, source, error);
    return false;
}

static bool do_unpack_end(struct call *call, GError **error)
{
    struct stat status;
    int fd = open_data(call, &call->name, O_RDWR, &status, error);
    if (fd < 0)
        return false;
    bool fits = (guint64)status.st_size <= call->number;
    if (!fits)
        fettle_set_error(error, CORRUPT, "%s has become more than %" PRIu64 " bytes",
                         call->source.text, (uint64_t)call->number);
    bool ok = fits && (ftruncate(fd, (off_t)call->number) == 0 || fail("size", call, error)) &&
              sync_data(call, fd, error) && say_whole(call, fd, error);
    close(fd);
    return ok;
}

/* --- checks, of which `word` is the token --- */

static bool do_check_hold(struct call *call, GError **error)
{
    return dir_check_hold(call->here.folder, call->word, (guint)call->number) ||
           fail("write to", call, error);
}

static bool do_check_try(struct call *call, GError **error)
{
    return dir_check_try(call->here.folder, call->word, (guint)call->number) ||
           fail("write to", call, error);
}

/* --- images --- */

static bool do_upload(struct call *call, GError **error)
{
    struct stat status;
    struct dir_image source;
    int target = open_source(call, &source, &status, error) ? make_file(call, error) : -1;
    if (target >= 0)
        dir_backup_upload(&source, call->number, call->word, target, error);
    return false;
}

/* Of a raw file that is its length. What a raw one begins with decides nothing. */
static bool disk_of(const struct call *call, int fd, const struct stat *status, guint64 *ret_size,
                    GError **error)
{
    guint64 most = (guint64)LIMIT_VOLUME_GIB * 1024 * MIB(1);
    bool raw = strcmp(call->word, enum_word(&disk_format_words, FORMAT_RAW)) == 0;
    *ret_size = (guint64)status->st_size;
    if (!raw && !dir_backup_check(fd, most, ret_size, error)) {
        g_prefix_error(error, "image %s ", call->name.text);
        return false;
    }
    if (*ret_size > 0 && *ret_size <= most)
        return true;
    fettle_set_error(error, CORRUPT, "image %s has a disk of %" PRIu64 " bytes", call->name.text,
                     *ret_size);
    return false;
}

/* `said`: what it is to be. */
static bool measure_file(struct call *call, int fd, const struct stat *status,
                         const struct image_sums *said, GError **error)
{
    guint64 size, disk;
    char sums[2][SUM_TEXT];
    if (!disk_of(call, fd, status, &disk, error) || !sync_data(call, fd, error) ||
        (*call->source.text && !is_unused(call, &call->source, error)))
        return false;
    if (!dir_image_sums(fd, &size, sums[0], sums[1]))
        return fail("read", call, error);
    if (!dir_settle_fits(said, sums[0], sums[1], error))
        return false;
    call->number = size;
    printf("%" PRIu64 " %" PRIu64 " %s %s\n", (uint64_t)size, (uint64_t)disk, sums[0], sums[1]);
    return say_whole(call, fd, error);
}

static bool do_measure(struct call *call, GError **error)
{
    struct stat status;
    int fd = open_data(call, &call->name, O_RDWR, &status, error);
    bool ok = fd >= 0 && measure_file(call, fd, &status, &(struct image_sums){0}, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* What was received is cut to what was said, before it is read: behind that is nobody's. */
static bool do_settle(struct call *call, GError **error)
{
    struct stat status;
    struct image_sums said;
    g_autofree char *format = dir_settle_parse(call->word, call->number, &said, error);
    int fd = format ? open_data(call, &call->name, O_RDWR, &status, error) : -1;
    call->word = format;
    bool ok = fd >= 0 && dir_settle_cut(fd, (guint64)status.st_size, said.size, error);
    status.st_size = said.size ? (off_t)said.size : status.st_size;
    ok = ok && measure_file(call, fd, &status, &said, error);
    if (fd >= 0)
        close(fd);
    return ok;
}

#define SECTOR 512 /* of which QEMU serves whole ones */

static bool do_receive(struct call *call, GError **error)
{
    int fd = make_file(call, error);
    off_t room = (off_t)((call->number + SECTOR - 1) / SECTOR * SECTOR);
    if (fd >= 0 && ftruncate(fd, room) == 0)
        dir_transfer_serve(fd, true, call->word, error);
    else if (fd >= 0)
        fail("size", call, error);
    return false;
}

static bool do_send(struct call *call, GError **error)
{
    struct stat status;
    int fd = open_data(call, &call->name, O_RDONLY, &status, error);
    if (fd >= 0)
        dir_transfer_serve(fd, false, call->word, error);
    return false;
}

static bool do_convert(struct call *call, GError **error)
{
    struct stat status;
    guint64 size;
    int source = open_data(call, &call->source, O_RDONLY, &status, error);
    bool fits = source >= 0 && dir_backup_check(source, call->number, &size, error);
    if (source >= 0 && !fits)
        g_prefix_error(error, "image %s ", call->source.text);
    if (fits)
        unpack_from(call, source, error);
    return false;
}

/* --- the call --- */

static const struct {
    const char *verb;
    bool (*run)(struct call *call, GError **error);
} verbs[] = {{"space", do_space},        {"create", do_create},     {"copy", do_copy},
             {"grow", do_grow},          {"remove", do_remove},     {"look", do_look},
             {"find", do_find},          {"list", do_list},         {"pack", do_pack},
             {"pack-end", do_pack_end},  {"unpack", do_unpack},     {"unpack-end", do_unpack_end},
             {"take", do_take},          {"give", do_give},         {"unused", do_unused},
             {"upload", do_upload},      {"measure", do_measure},   {"convert", do_convert},
             {"receive", do_receive},    {"send", do_send},         {"settle", do_settle},
             {"prepare", do_prepare},    {"fill-end", do_fill_end}, {"check-hold", do_check_hold},
             {"check-try", do_check_try}};

static bool open_place(const struct call *call, struct place *place, GError **error)
{
    place->folder = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (place->folder < 0) {
        fettle_set_error(error, ENVIRONMENT, "%s cannot be opened: %s", place->path,
                         g_strerror(errno));
        return false;
    }
    for (guint i = 0; i < DIR_FOLDERS; i++) {
        place->folders[i] =
            openat(place->folder, dir_folder(i), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (place->folders[i] < 0 && errno != ENOENT)
            return fail("open the folder of", call, error);
    }
    return true;
}

static void close_place(const struct place *place)
{
    for (guint i = 0; i < DIR_FOLDERS; i++)
        if (place->folders[i] >= 0)
            close(place->folders[i]);
    if (place->folder >= 0)
        close(place->folder);
}

static bool run(struct call *call, GError **error)
{
    bool opening = strcmp(call->verb, "open") == 0;
    if (!open_place(call, &call->here, error) || (opening && !do_open(call, error)) ||
        !check_marker(call, &call->here, error))
        return false;
    if (*call->there.path &&
        (!open_place(call, &call->there, error) || !check_marker(call, &call->there, error)))
        return false;
    for (guint i = 0; !opening && i < G_N_ELEMENTS(verbs); i++)
        if (strcmp(verbs[i].verb, call->verb) == 0)
            return verbs[i].run(call, error);
    return true;
}

int dir_call_main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    if (argc != DIR_CALL_ARGUMENTS)
        return 2;
    struct call call = {.verb = argv[2],
                        .here = {.path = argv[3], .backend = argv[4], .folder = -1},
                        .cluster = argv[5],
                        .cluster_name = argv[6],
                        .name = {.text = ""},
                        .source = {.text = ""},
                        .number = g_ascii_strtoull(argv[8], NULL, 10),
                        .there = {.path = argv[10], .backend = argv[11], .folder = -1},
                        .word = argv[12],
                        .outside = *argv[13] ? argv[13] : NULL};
    memset(call.here.folders, -1, sizeof call.here.folders);
    memset(call.there.folders, -1, sizeof call.there.folders);
    if ((*argv[7] && !dir_name_parse(argv[7], &call.name.type, &call.name.text)) ||
        (*argv[9] && !dir_name_parse(argv[9], &call.source.type, &call.source.text)))
        return 2;
    bool ok = run(&call, &error);
    close_place(&call.here);
    close_place(&call.there);
    if (!ok)
        printf("%s\n%s\n", fettle_error_name(error), error->message);
    return fflush(stdout) == 0 && ok ? 0 : 1;
}
