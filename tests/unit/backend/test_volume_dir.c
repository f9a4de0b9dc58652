/*
 * Volumes in real directories, by real children: the suite of all drivers, and what only
 * directories have.
 */
#include "unit/backend/volume_suite.h"
#include "world.h"

#include "backend/volume/dir_call.h"
#include "backend/volume/volumes_by_kind.h"
#include "io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIMIT_MS 3000u
#define HANGS ".hangs" /* beside a directory: calls at it do not come back */
#define NAME "11111111-0000-4000-8000-000000000001.17"

static struct volume_suite suite;
static char *program;
static guint times;
static int locked_fd = -1;

static struct backend *backend(const char *name, const char *uuid)
{
    struct backend *made = backend_new();
    g_free(made->name);
    g_free(made->uuid);
    g_free(made->path);
    made->name = g_strdup(name);
    made->uuid = g_strdup(uuid);
    made->path = g_strdup_printf("%s/%s.%u", world_folder(), name, times);
    g_assert_cmpint(g_mkdir(made->path, 0755), ==, 0);
    return made;
}

static void set_up(void)
{
    g_autofree char *folder = g_build_filename(world_folder(), "transfers", NULL);
    loop_init();
    times++;
    suite.driver = volumes_by_kind_new(program, folder, LIMIT_MS);
    suite.first = backend("dir1", "00000000-0000-4000-8000-0000000000d1");
    suite.second = backend("dir2", "00000000-0000-4000-8000-0000000000d2");
    suite.backups = suite.second;
    suite.cluster = cluster_new();
    g_free(suite.cluster->uuid);
    g_free(suite.cluster->name);
    suite.cluster->uuid = g_strdup("00000000-0000-4000-8000-0000000000c1");
    suite.cluster->name = g_strdup("berlin");
}

static void tear_down(void)
{
    volumes_by_kind_free(suite.driver);
    backend_free(suite.first);
    backend_free(suite.second);
    cluster_free(suite.cluster);
}

static char *path_of(const struct backend *at, const char *name)
{
    return g_build_filename(at->path, "volumes", name, NULL);
}

static void put(const struct backend *at, const char *name)
{
    g_autofree char *path = path_of(at, name);
    g_autoptr(GError) error = NULL;
    g_file_set_contents(path, "x", 1, &error);
    g_assert_no_error(error);
}

static void hang(const struct backend *at, bool hangs)
{
    g_autofree char *path = g_strconcat(at->path, HANGS, NULL);
    if (hangs)
        g_assert_true(g_file_set_contents(path, "", 0, NULL));
    else
        g_assert_cmpint(unlink(path), ==, 0);
}

/* As QEMU does (block/file-posix.c): bytes from 100 on say what an opener does. */
static void lock(const struct backend *at, const char *name, bool locked)
{
    struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 101, .l_len = 1};
    g_autofree char *path = path_of(at, name);
    if (!locked) {
        close(locked_fd);
        return;
    }
    locked_fd = open(path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fcntl(locked_fd, F_OFD_SETLK, &range), ==, 0);
}

/* --- what only directories have --- */

static void assert_open_says(bool make, const char *words)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(suite.driver->ops->open(suite.driver, suite.first, suite.cluster, make, &error));
    g_autofree char *wanted = g_strdup_printf("dir1: %s%s", suite.first->path, words);
    g_assert_cmpstr(error->message, ==, wanted);
}

/* An empty mount point is not the place, and what has something in it gets no marker. */
static void markers(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    assert_open_says(false, " has no marker of back end 00000000-0000-4000-8000-0000000000d1; is "
                            "it mounted? A new one gets it while it is empty");
    g_autofree char *there = g_build_filename(suite.first->path, "something", NULL);
    g_assert_true(g_file_set_contents(there, "", 0, NULL));
    assert_open_says(true, " has no marker of back end 00000000-0000-4000-8000-0000000000d1; is "
                           "it mounted? A new one gets it while it is empty");
    g_assert_cmpint(unlink(there), ==, 0);
    g_autofree char *found = g_build_filename(suite.first->path, "lost+found", NULL);
    g_assert_cmpint(g_mkdir(found, 0700), ==, 0);
    suite.driver->ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    g_assert_no_error(error);
    suite.first->uuid[0] = '9';
    assert_open_says(true, " belongs to back end 00000000-0000-4000-8000-0000000000d1 of cluster "
                           "berlin");
    suite.first->uuid[0] = '0';
    g_autofree char *aside = g_strconcat(suite.first->path, ".aside", NULL);
    g_assert_cmpint(g_rename(suite.first->path, aside), ==, 0);
    assert_open_says(true, " cannot be opened: No such file or directory");
    tear_down();
}

#define BACKUP "33333333-0000-4000-8000-000000000003.19"

static void set_byte(const struct backend *at, const char *folder, const char *name, off_t where,
                     char byte)
{
    g_autofree char *path = g_build_filename(at->path, folder, name, NULL);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(pwrite(fd, &byte, 1, where), ==, 1);
    close(fd);
}

static char byte_of(const struct backend *at, const char *name, off_t where)
{
    g_autofree char *path = path_of(at, name);
    char byte = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(pread(fd, &byte, 1, where), ==, 1);
    close(fd);
    return byte;
}

/* Stands in that folder, made by a program that has its path instead of FILE; its path. */
static char *put_made(const struct backend *at, const char *in, const char *name,
                      const char *const *make)
{
    g_autofree char *folder = g_build_filename(at->path, in, NULL);
    char *path = g_build_filename(folder, name, NULL);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    int status = 0;
    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    unlink(path);
    for (; *make; make++)
        g_ptr_array_add(argv, (char *)(strcmp(*make, "FILE") == 0 ? path : *make));
    g_ptr_array_add(argv, NULL);
    g_assert_true(g_spawn_sync(folder, (char **)argv->pdata, NULL,
                               G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                               NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    return path;
}

/* Stands where a backup does, with the sum that it really has. */
static void put_backup(const struct backend *at, struct backup *backup, const char *const *make)
{
    g_autofree char *path = put_made(at, "backups", BACKUP, make), *text = NULL;
    gsize length = 0;
    g_assert_true(g_file_get_contents(path, &text, &length, NULL));
    g_free(backup->sum);
    backup->sum = g_compute_checksum_for_data(G_CHECKSUM_SHA512, (guchar *)text, length);
}

static void assert_not_restored(struct backup *backup, const char *why)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *said = g_strdup_printf("dir1: backup %s %s", BACKUP, why);
    g_assert_false(suite.driver->ops->restore(suite.driver, suite.first, backup, suite.first,
                                              "11111111-0000-4000-8000-000000000001.30", 1,
                                              &error));
    g_assert_cmpstr(error->message, ==, said);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
}

/* Byte by byte; and whoever can write to the directory has no other file read. */
static void backups(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *data = g_strdup(BACKUP);
    struct backup backup = {.data = data};
    set_up();
    const struct volume_driver_ops *ops = suite.driver->ops;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    ops->create(suite.driver, suite.first, RESOURCE_VOLUME, NAME, 1, &error);
    set_byte(suite.first, "volumes", NAME, 7, 'a');
    set_byte(suite.first, "volumes", NAME, (1 << 30) - 1, 'z');
    ops->back_up(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.first, BACKUP, 1,
                 &backup.bytes, &backup.sum, &error);
    set_byte(suite.first, "volumes", NAME, 7, 'b');
    ops->restore(suite.driver, suite.first, &backup, suite.first,
                 "11111111-0000-4000-8000-000000000001.20", 1, &error);
    g_assert_no_error(error);
    g_assert_cmpint(byte_of(suite.first, "11111111-0000-4000-8000-000000000001.20", 7), ==, 'a');
    g_assert_cmpint(byte_of(suite.first, "11111111-0000-4000-8000-000000000001.20", (1 << 30) - 1),
                    ==, 'z');
    g_assert_cmpint(byte_of(suite.first, "11111111-0000-4000-8000-000000000001.20", 8), ==, 0);
    /* What is longer than its record says, by a late extension, is read as far as that says. */
    g_free(backup.sum);
    backup.sum = NULL;
    ops->grow(suite.driver, suite.first, NAME, 2, &error);
    set_byte(suite.first, "volumes", NAME, 1 << 30, 'l');
    ops->remove(suite.driver, suite.first, RESOURCE_BACKUP, BACKUP, &error);
    ops->back_up(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.first, BACKUP, 1,
                 &backup.bytes, &backup.sum, &error);
    g_assert_no_error(error);
    ops->restore(suite.driver, suite.first, &backup, suite.first,
                 "11111111-0000-4000-8000-000000000001.21", 1, &error);
    g_assert_no_error(error);
    g_assert_cmpint(byte_of(suite.first, "11111111-0000-4000-8000-000000000001.21", (1 << 30) - 1),
                    ==, 'z');
    put_backup(suite.first, &backup,
               (const char *const[]){"qemu-img", "create", "-f", "qcow2", "-u", "-b", "/etc/passwd",
                                     "-F", "raw", "FILE", "1G", NULL});
    assert_not_restored(&backup, "refers to another file, \"/etc/passwd\", and is to rest on none");
    put_backup(suite.first, &backup,
               (const char *const[]){"qemu-img", "create", "-f", "qcow2", "-o",
                                     "data_file=other,data_file_raw=on", "FILE", "1G", NULL});
    assert_not_restored(&backup, "refers to another file, \"other\", and is to rest on none");
    put_backup(suite.first, &backup,
               (const char *const[]){"qemu-img", "create", "-f", "qcow2", "FILE", "2G", NULL});
    assert_not_restored(&backup, "has a disk of 2147483648 bytes, and not of 1073741824 at most");
    put_backup(suite.first, &backup, (const char *const[]){"truncate", "-s", "1M", "FILE", NULL});
    assert_not_restored(&backup, "is no qcow2 file");
    g_free(backup.sum);
    tear_down();
}

/* In the place of qemu-img: whoever has taken that over, by what he has written into an image. */
#define HOSTILE                                                                                    \
    "#!/bin/sh\n"                                                                                  \
    "for word; do before=$last; last=$word; done\n"                                                \
    "source=/proc/self/fd/$(echo \"$before\" | sed -n 's|.*/proc/self/fd/\\([0-9]*\\).*|\\1|p')\n" \
    "can() { if (eval \"$2\") 2>/dev/null; then echo \"$1 \"; fi; }\n"                             \
    "status() { sed -n \"s/^$1:[[:space:]]*//p\" /proc/self/status | tr '\\t' ' '; }\n"            \
    "echo qemu-img: user $(id -u) group $(id -G) new privileges $(status NoNewPrivs) "             \
    "capabilities "                                                                                \
    "$(status CapPrm) can: $(can read-source ': < $source') $(can write-source ': >> $source') "   \
    "$(can write-target ': >> $last') $(can chmod-target 'chmod 0666 $last') "                     \
    "$(can read-others 'cat %1$s/volumes/* > /dev/null') $(can list 'ls %1$s/volumes') "           \
    "$(can make ': > %1$s/volumes/x') $(can mark ': >> %1$s/fettle-backend')\n"                    \
    "exit 1\n"

/* A program that follows what somebody has written has what it is handed, and nothing else. */
static void hostile_programs(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_strdup(g_getenv("PATH")), *sum = NULL;
    g_autofree char *folder = g_strdup_printf("%s/hostile", world_folder());
    g_autofree char *file = g_build_filename(folder, "qemu-img", NULL);
    g_autofree char *paths = g_strjoin(":", folder, path, NULL);
    guint64 bytes;
    struct stat status;
    if (geteuid() != 0) {
        g_test_skip("only root has other users");
        return;
    }
    set_up();
    g_autofree char *text = g_strdup_printf(HOSTILE, suite.first->path);
    g_assert_cmpint(g_mkdir(folder, 0755), ==, 0);
    g_assert_cmpint(chmod(world_folder(), 0711), ==, 0);
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
    g_assert_cmpint(chmod(file, 0755), ==, 0);
    g_assert_cmpint(chmod(folder, 0755), ==, 0);
    const struct volume_driver_ops *ops = suite.driver->ops;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    ops->create(suite.driver, suite.first, RESOURCE_VOLUME, NAME, 1, &error);
    g_assert_no_error(error);
    g_setenv("PATH", paths, TRUE);
    ops->back_up(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.first, BACKUP, 1, &bytes,
                 &sum, &error);
    g_setenv("PATH", path, TRUE);
    g_assert_cmpstr(
        error->message, ==,
        "dir1: qemu-img: user 1879048191 group 1879048191 new privileges 1 capabilities "
        "0000000000000000 can: read-source write-target");
    g_clear_error(&error);
    /* What is whole is root's alone. */
    ops->remove(suite.driver, suite.first, RESOURCE_BACKUP, BACKUP, &error);
    ops->back_up(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.first, BACKUP, 1, &bytes,
                 &sum, &error);
    g_assert_no_error(error);
    g_autofree char *made = g_build_filename(suite.first->path, "backups", BACKUP, NULL);
    g_assert_cmpint(stat(made, &status), ==, 0);
    g_assert_true(status.st_uid == 0 && status.st_gid == 0 && (status.st_mode & 07777) == 0600);
    tear_down();
}

#define IMAGE "44444444-0000-4000-8000-000000000004.19"

static void assert_not_measured(enum disk_format format, const char *why)
{
    g_autoptr(GError) error = NULL;
    struct image_sums sums;
    g_autofree char *said = g_strdup_printf("dir1: image %s %s", IMAGE, why);
    g_assert_false(suite.driver->ops->measure(suite.driver, suite.first, IMAGE, format,
                                              &(struct image_sums){0}, &sums, &error));
    g_assert_cmpstr(error->message, ==, said);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
}

static void assert_not_downloaded(const char *why)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *said = g_strdup_printf("dir1: image %s %s", IMAGE, why);
    const struct image image = {.data = (char *)IMAGE, .disk_format = FORMAT_QCOW2};
    g_assert_false(suite.driver->ops->download(suite.driver, suite.first, &image, suite.first,
                                               "11111111-0000-4000-8000-000000000001.30", 1,
                                               &error));
    g_assert_cmpstr(error->message, ==, said);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
}

/* What came from others has no file of the host read, neither when it is taken in nor, by whoever
 * can write to the directory, later. */
static void hostile_images(void *unused)
{
    static const struct {
        const char *make[12], *why;
    } cases[] = {
        {{"qemu-img", "create", "-f", "qcow2", "-u", "-b", "/etc/passwd", "-F", "raw", "FILE",
          "1G"},
         "refers to another file, \"/etc/passwd\", and is to rest on none"},
        {{"qemu-img", "create", "-f", "qcow2", "-o", "data_file=other,data_file_raw=on", "FILE",
          "1G"},
         "refers to another file, \"other\", and is to rest on none"},
        {{"truncate", "-s", "1M", "FILE"}, "is no qcow2 file"},
    };
    g_autoptr(GError) error = NULL;
    set_up();
    suite.driver->ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    g_assert_no_error(error);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_free(put_made(suite.first, "images", IMAGE, cases[i].make));
        assert_not_measured(FORMAT_QCOW2, cases[i].why);
        assert_not_downloaded(cases[i].why);
    }
    g_free(
        put_made(suite.first, "images", IMAGE,
                 (const char *const[]){"qemu-img", "create", "-f", "qcow2", "FILE", "1G", NULL}));
    set_byte(suite.first, "images", IMAGE, 35, 1); /* the method of encryption */
    assert_not_measured(FORMAT_QCOW2, "is encrypted; decrypt it first with `qemu-img convert`");
    assert_not_downloaded("is encrypted; decrypt it first with `qemu-img convert`");
    g_free(put_made(suite.first, "images", IMAGE,
                    (const char *const[]){"truncate", "-s", "0", "FILE", NULL}));
    assert_not_measured(FORMAT_RAW, "has a disk of 0 bytes");
    g_free(
        put_made(suite.first, "images", IMAGE,
                 (const char *const[]){"qemu-img", "create", "-f", "qcow2", "FILE", "100T", NULL}));
    assert_not_measured(FORMAT_QCOW2, "claims a disk of 109951162777600 bytes; 1 to "
                                      "70368744177664 are possible");
    g_free(
        put_made(suite.first, "images", IMAGE,
                 (const char *const[]){"qemu-img", "create", "-f", "qcow2", "FILE", "2G", NULL}));
    assert_not_downloaded("has a disk of 2147483648 bytes, and not of 1073741824 at most");
    tear_down();
}

/* Byte by byte, in both formats; a raw file is raw, whatever it begins with. */
static void images(void *unused)
{
    g_autoptr(GError) error = NULL;
    struct image_sums sums;
    set_up();
    const struct volume_driver_ops *ops = suite.driver->ops;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    ops->create(suite.driver, suite.first, RESOURCE_VOLUME, NAME, 1, &error);
    set_byte(suite.first, "volumes", NAME, 7, 'a');
    ops->upload(suite.driver, suite.first, NAME, suite.first, IMAGE, FORMAT_QCOW2, 1, &sums,
                &error);
    g_assert_no_error(error);
    g_assert_cmpuint(sums.virtual_size, ==, 1 << 30);
    g_assert_cmpuint(sums.size, <, MIB(1));
    struct image image = {.data = (char *)IMAGE, .disk_format = FORMAT_QCOW2};
    ops->download(suite.driver, suite.first, &image, suite.second,
                  "11111111-0000-4000-8000-000000000001.20", 2, &error);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT); /* it has no marker yet */
    g_clear_error(&error);
    ops->open(suite.driver, suite.second, suite.cluster, true, &error);
    ops->download(suite.driver, suite.first, &image, suite.second,
                  "11111111-0000-4000-8000-000000000001.20", 2, &error);
    g_assert_no_error(error);
    g_assert_cmpint(byte_of(suite.second, "11111111-0000-4000-8000-000000000001.20", 7), ==, 'a');
    image.disk_format = FORMAT_RAW;
    ops->download(suite.driver, suite.first, &image, suite.first,
                  "11111111-0000-4000-8000-000000000001.21", 1, &error);
    g_assert_no_error(error);
    g_assert_cmpint(byte_of(suite.first, "11111111-0000-4000-8000-000000000001.21", 0), ==, 'Q');
    guint64 size = sums.size;
    ops->measure(suite.driver, suite.first, IMAGE, FORMAT_RAW, &(struct image_sums){0}, &sums,
                 &error);
    g_assert_no_error(error);
    g_assert_cmpuint(sums.virtual_size, ==, size);
    tear_down();
}

/* What says of itself that it is whole, and of which claim. */
static void whole(void *unused)
{
    g_autoptr(GError) error = NULL;
    char text[64] = "";
    struct stat status;
    set_up();
    suite.driver->ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    suite.driver->ops->create(suite.driver, suite.first, RESOURCE_VOLUME, NAME, 4, &error);
    g_assert_no_error(error);
    g_autofree char *path = path_of(suite.first, NAME);
    g_assert_cmpint(stat(path, &status), ==, 0);
    g_assert_cmpint(status.st_mode & 07777, ==, 0600);
    g_assert_cmpint(status.st_blocks, <, 64); /* sparse */
    if (getxattr(path, "user.fettle.whole", text, sizeof text - 1) < 0 && errno == ENOTSUP) {
        g_test_skip("no extended attributes here");
    } else {
        g_assert_cmpstr(text, ==, "17 4294967296");
        g_assert_cmpint(setxattr(path, "user.fettle.whole", "16 4294967296", 13, 0), ==, 0);
        struct volume_data *data =
            suite.driver->ops->look(suite.driver, suite.first, RESOURCE_VOLUME, NAME, &error);
        g_assert_no_error(error);
        g_assert_false(data->whole);
        volume_data_free(data);
    }
    tear_down();
}

#define COPIED "22222222-0000-4000-8000-000000000002.18"

static void fill(const char *path, const char *text, off_t at)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    g_assert_cmpint(pwrite(fd, text, strlen(text), at), ==, (ssize_t)strlen(text));
    close(fd);
}

static void assert_text(const char *path, const char *text, off_t at)
{
    char found[16] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(pread(fd, found, strlen(text), at), ==, (ssize_t)strlen(text));
    g_assert_cmpstr(found, ==, text);
    close(fd);
}

/* Others read an image meanwhile, as whoever saves it does. */
static void copies_what_is_read(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    const struct volume_driver_ops *ops = suite.driver->ops;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    ops->create(suite.driver, suite.first, RESOURCE_IMAGE, NAME, 1, &error);
    g_assert_no_error(error);
    struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 101, .l_len = 1};
    g_autofree char *path = g_build_filename(suite.first->path, "images", NAME, NULL);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fcntl(fd, F_OFD_SETLK, &range), ==, 0);
    ops->copy(suite.driver, suite.first, RESOURCE_IMAGE, NAME, suite.first, RESOURCE_VOLUME, COPIED,
              1, &error);
    g_assert_no_error(error);
    close(fd);
    tear_down();
}

/* Bytes at the beginning, in the middle and at the end, and holes between them. */
static void copies(void *unused)
{
    static const off_t places[] = {0, 12345678, (off_t)2 * 1024 * MIB(1) - 4};
    g_autoptr(GError) error = NULL;
    struct stat status;
    set_up();
    const struct volume_driver_ops *ops = suite.driver->ops;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    ops->create(suite.driver, suite.first, RESOURCE_VOLUME, NAME, 2, &error);
    ops->open(suite.driver, suite.second, suite.cluster, true, &error);
    g_assert_no_error(error);
    g_autofree char *source = path_of(suite.first, NAME);
    for (guint i = 0; i < G_N_ELEMENTS(places); i++)
        fill(source, "data", places[i]);
    const struct backend *const targets[] = {suite.first, suite.second};
    for (guint t = 0; t < G_N_ELEMENTS(targets); t++) {
        ops->copy(suite.driver, suite.first, RESOURCE_VOLUME, NAME, targets[t], RESOURCE_SNAPSHOT,
                  COPIED, 3, &error);
        g_assert_no_error(error);
        g_autofree char *target = g_build_filename(targets[t]->path, "snapshots", COPIED, NULL);
        for (guint i = 0; i < G_N_ELEMENTS(places); i++)
            assert_text(target, "data", places[i]);
        g_assert_cmpint(stat(target, &status), ==, 0);
        g_assert_cmpint(status.st_size, ==, (off_t)3 * 1024 * MIB(1));
        g_assert_cmpint(status.st_blocks, <, 4096); /* sparse */
        /* A later write to the one is none to the other. */
        fill(source, "more", 0);
        assert_text(target, "data", 0);
        fill(source, "data", 0);
    }
    tear_down();
}

/* Where nothing can be marked what is whole cannot say so, which is not that it is half made. */
static void mute(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", suite.first->path, "ramfs", 0, NULL) != 0) {
        g_test_skip("nothing can be mounted here");
        tear_down();
        return;
    }
    const struct volume_driver_ops *ops = suite.driver->ops;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    g_assert_no_error(error);
    g_autofree char *folder = g_build_filename(suite.first->path, "volumes", NULL);
    g_autofree char *path = path_of(suite.first, NAME);
    g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, "half", -1, NULL));
    struct volume_data *data = ops->look(suite.driver, suite.first, RESOURCE_VOLUME, NAME, &error);
    g_assert_no_error(error);
    g_assert_true(data->mute);
    g_assert_false(data->whole);
    volume_data_free(data);
    g_assert_cmpint(umount2(suite.first->path, MNT_DETACH), ==, 0);
    tear_down();
}

/* In a mount of its own, with room for half of it. */
static void full(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", suite.first->path, "tmpfs", 0, "size=8m") != 0) {
        g_test_skip("nothing can be mounted here");
        tear_down();
        return;
    }
    const struct volume_driver_ops *ops = suite.driver->ops;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    ops->create(suite.driver, suite.first, RESOURCE_VOLUME, NAME, 1, &error);
    g_assert_no_error(error);
    g_autofree char *source = path_of(suite.first, NAME);
    g_autofree char *text = g_strnfill(MIB(5), 'x');
    fill(source, text, 0);
    g_assert_false(ops->copy(suite.driver, suite.first, RESOURCE_VOLUME, NAME, suite.first,
                             RESOURCE_SNAPSHOT, COPIED, 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_NO_RESOURCES);
    g_assert_cmpint(umount2(suite.first->path, MNT_DETACH), ==, 0);
    tear_down();
}

static void back_up_task(void *data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *sum = NULL;
    guint64 bytes;
    g_assert_false(suite.driver->ops->back_up(suite.driver, suite.first, RESOURCE_VOLUME, NAME,
                                              suite.second, BACKUP, 1, &bytes, &sum, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNKNOWN_ENTITY);
    promise_complete(data);
}

/* What reads from one and writes to another has a place at both. */
static void places(void *unused)
{
    g_autoptr(GError) error = NULL;
    struct promise over[LIMIT_BACKEND_CHILDREN] = {0};
    set_up();
    const struct volume_driver_ops *ops = suite.driver->ops;
    ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    ops->open(suite.driver, suite.second, suite.cluster, true, &error);
    g_assert_no_error(error);
    hang(suite.first, true);
    for (guint i = 0; i < G_N_ELEMENTS(over); i++)
        task_spawn(NULL, back_up_task, &over[i]);
    /* They begin while this one waits for another place. */
    record_autoptr(backend) third = backend("dir3", "00000000-0000-4000-8000-0000000000d3");
    g_assert_null(ops->list(suite.driver, third, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_clear_error(&error);
    g_assert_null(ops->list(suite.driver, suite.first, &error));
    g_assert_cmpstr(error->message, ==,
                    "dir1: 4 calls before this one have not ended: it hangs; see to what is "
                    "behind it, and ask again once it answers");
    hang(suite.first, false);
    for (guint i = 0; i < G_N_ELEMENTS(over); i++)
        g_assert_true(promise_wait(&over[i]));
    g_clear_error(&error);
    g_autoptr(GPtrArray) list = ops->list(suite.driver, suite.first, &error);
    g_assert_no_error(error);
    tear_down();
}

/* A child that ends as none should. */
static void broken(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    struct volume_driver *other = volumes_by_kind_new("false", world_folder(), LIMIT_MS);
    g_assert_null(other->ops->list(other, suite.first, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
    volumes_by_kind_free(other);
    tear_down();
}

/* --- checks --- */

#define TOKEN "77777777-0000-4000-8000-000000000007"

struct part {
    struct volume_check check;
    bool ok;
    struct promise over;
};

static struct part *part_new(guint place, guint nodes)
{
    struct part *part = g_new0(struct part, 1);
    part->check = (struct volume_check){.token = TOKEN,
                                        .place = place,
                                        .nodes = nodes,
                                        .problems = g_ptr_array_new_with_free_func(g_free),
                                        .notes = g_ptr_array_new_with_free_func(g_free)};
    return part;
}

static void part_free(struct part *part)
{
    g_ptr_array_unref(part->check.problems);
    g_ptr_array_unref(part->check.notes);
    g_free(part);
}

static void part_run(void *data)
{
    struct part *part = data;
    part->ok = suite.driver->ops->check(suite.driver, suite.first, &part->check, NULL);
    promise_complete(&part->over);
}

/* Everything in the directory but the marker. */
static guint left_over(void)
{
    guint count = 0;
    g_autoptr(GDir) dir = g_dir_open(suite.first->path, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));)
        count += strcmp(name, DIR_MARKER) != 0;
    return count;
}

static void assert_one(const GPtrArray *lines, const char *words)
{
    g_assert_cmpuint(lines->len, ==, 1);
    g_assert_nonnull(strstr(lines->pdata[0], words));
}

/* One that holds and two that are refused, and one that a check has left long ago. */
static void checks(void *unused)
{
    g_autoptr(GError) error = NULL;
    struct part *parts[3];
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    set_up();
    suite.driver->ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    g_assert_no_error(error);
    g_autofree char *left = g_build_filename(suite.first->path, ".fettle-check.left", NULL);
    g_assert_true(g_file_set_contents(left, "", 0, NULL));
    g_assert_cmpint(utimensat(AT_FDCWD, left, long_ago, 0), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        parts[i] = part_new(i, G_N_ELEMENTS(parts));
        task_spawn(NULL, part_run, parts[i]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_assert_true(promise_wait(&parts[i]->over));
        g_assert_true(parts[i]->ok);
        g_assert_false(parts[i]->check.unseen);
        g_assert_cmpuint(parts[i]->check.problems->len, ==, 0);
        part_free(parts[i]);
    }
    g_assert_cmpuint(left_over(), ==, 0);
    tear_down();
}

/* The file of the first node is there, without the locks, as where they stay on that node. */
static void unlocked(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    suite.driver->ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    g_autofree char *probe = g_build_filename(suite.first->path, ".fettle-check." TOKEN, NULL);
    g_autofree char *mark = g_strconcat(probe, ".1", NULL);
    g_assert_true(g_file_set_contents(probe, TOKEN, -1, NULL));
    struct part *part = part_new(1, 2);
    task_spawn(NULL, part_run, part);
    while (!g_file_test(mark, G_FILE_TEST_EXISTS))
        g_assert_true(loop_sleep(1));
    g_assert_cmpint(unlink(probe), ==, 0);
    g_assert_true(promise_wait(&part->over));
    g_assert_true(part->ok && !part->check.unseen);
    assert_one(part->check.problems, "a lock that another node holds there is not seen here");
    g_assert_cmpuint(left_over(), ==, 0);
    part_free(part);
    tear_down();
}

/* Where nothing can be written nothing is tried. */
static void unwritable(void *unused)
{
    g_autoptr(GError) error = NULL;
    set_up();
    suite.driver->ops->open(suite.driver, suite.first, suite.cluster, true, &error);
    g_assert_no_error(error);
    struct part *part = part_new(0, 1);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(suite.first->path, suite.first->path, NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, suite.first->path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0) {
        g_test_skip("nothing can be mounted here");
    } else {
        g_assert_false(suite.driver->ops->check(suite.driver, suite.first, &part->check, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_STORAGE);
        g_assert_nonnull(strstr(error->message, "dir1: cannot write to "));
        g_assert_nonnull(strstr(error->message, "Read-only file system"));
        g_assert_cmpint(umount(suite.first->path), ==, 0);
    }
    part_free(part);
    tear_down();
}

static int run_tests(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    suite = (struct volume_suite){.set_up = set_up,
                                  .tear_down = tear_down,
                                  .run = world_run,
                                  .put = put,
                                  .hang = hang,
                                  .lock = lock};
    volume_suite_add("/volume-dir", &suite);
    world_test("/volume-dir/markers-of-directories#SAF-123", markers);
    world_test("/volume-dir/whole#SAF-52", whole);
    world_test("/volume-dir/mute#RCV-23", mute);
    world_test("/volume-dir/bytes-of-copies#SAF-52", copies);
    world_test("/volume-dir/copies-what-is-read#SAF-120", copies_what_is_read);
    world_test("/volume-dir/backups#SAF-52", backups);
    world_test("/volume-dir/images-byte-by-byte#SAF-60", images);
    world_test("/volume-dir/hostile-images#SAF-60", hostile_images);
    world_test("/volume-dir/hostile-programs#SAF-110", hostile_programs);
    world_test("/volume-dir/full#SAF-52", full);
    world_test("/volume-dir/checks", checks);
    world_test("/volume-dir/checks-without-locks", unlocked);
    world_test("/volume-dir/checks-read-only", unwritable);
    world_test("/volume-dir/places", places);
    world_test("/volume-dir/broken-child", broken);
    return g_test_run();
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], DIR_CALL_OPTION) == 0) {
        g_autofree char *here = g_strconcat(argv[3], HANGS, NULL);
        g_autofree char *there = g_strconcat(argc > 10 ? argv[10] : "", HANGS, NULL);
        while (g_file_test(here, G_FILE_TEST_EXISTS) || g_file_test(there, G_FILE_TEST_EXISTS))
            g_usleep(20000);
        return dir_call_main(argc, argv);
    }
    program = g_file_read_link("/proc/self/exe", NULL);
    return world_main(argc, argv, run_tests);
}
