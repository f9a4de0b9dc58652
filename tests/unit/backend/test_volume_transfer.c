/*
 * Bytes of images to and from real directories, by a real qemu-nbd for each transfer: who gets in,
 * what is left of whom, and what is taken for the image that was said (SAF-60).
 */
#include "helper/patience.h"
#include "world.h"

#include "backend/tool.h"
#include "backend/volume/dir_call.h"
#include "backend/volume/dir_settle.h"
#include "backend/volume/dir_volumes.h"
#include "backend/volume/volumes_by_kind.h"
#include "io/net/nbd_stream.h"
#include "io/volume_user.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define LIMIT_MS 30000u
#define NAME "11111111-0000-4000-8000-000000000001.17"
#define OTHER "11111111-0000-4000-8000-000000000001.18"
#define BYTES (3 * MIB(1) + 87)

static struct volume_driver *driver;
static struct cluster *cluster;
static struct backend *backend;
static char *program;
static guint times;

static void set_up(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_build_filename(world_folder(), "trans,fers", NULL);
    loop_init();
    driver = volumes_by_kind_new(program, folder, LIMIT_MS);
    cluster = cluster_new();
    g_free(cluster->uuid);
    g_free(cluster->name);
    cluster->uuid = g_strdup("00000000-0000-4000-8000-0000000000c1");
    cluster->name = g_strdup("berlin");
    backend = backend_new();
    g_free(backend->name);
    g_free(backend->uuid);
    g_free(backend->path);
    backend->name = g_strdup("dir1");
    backend->uuid = g_strdup("00000000-0000-4000-8000-0000000000d1");
    backend->path = g_strdup_printf("%s/dir1.%u", world_folder(), times++);
    g_assert_cmpint(g_mkdir(backend->path, 0755), ==, 0);
    driver->ops->open(driver, backend, cluster, true, &error);
    g_assert_no_error(error);
}

static void tear_down(void)
{
    volumes_by_kind_free(driver);
    backend_free(backend);
    cluster_free(cluster);
}

static void assert_fails(GError **error, enum fettle_error code, const char *part)
{
    g_assert_error(*error, FETTLE_ERROR, (gint)code);
    if (!strstr((*error)->message, part))
        g_error("\"%s\" says nothing of \"%s\"", (*error)->message, part);
    g_clear_error(error);
}

static char *path_of(const char *name)
{
    return g_build_filename(backend->path, "images", name, NULL);
}

static struct volume_transfer *begin(const char *name, guint64 bytes, const char *address)
{
    g_autoptr(GError) error = NULL;
    struct volume_transfer *transfer =
        driver->ops->transfer(driver, backend, name, bytes, address, &error);
    g_assert_no_error(error);
    return transfer;
}

static struct nbd_stream *dial(const struct volume_transfer *transfer)
{
    g_autoptr(GError) error = NULL;
    const struct nbd_place place = {.path = transfer->path,
                                    .address = transfer->address,
                                    .port = transfer->port,
                                    .key = transfer->key,
                                    .stall_ms = LIMIT_MS};
    struct nbd_stream *stream = nbd_stream_open(&place, &error);
    g_assert_no_error(error);
    return stream;
}

static guint8 *pattern(void)
{
    guint8 *bytes = g_malloc(BYTES);
    for (gsize i = 0; i < BYTES; i++)
        bytes[i] = (guint8)(i * 7 + i / 4096);
    return bytes;
}

static void put(struct nbd_stream *stream, const void *bytes, gsize length)
{
    g_autoptr(GError) error = NULL;
    nbd_stream_write(stream, bytes, length, &error);
    g_assert_no_error(error);
    nbd_stream_flush(stream, &error);
    g_assert_no_error(error);
}

static void assert_state(const struct volume_transfer *transfer, enum volume_transfer_state state)
{
    g_assert_cmpint(driver->ops->transfer_state(transfer), ==, state);
}

/* Of children of ours; if we are not root there is no other user. */
static guint programs_as_user(void)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    guint found = geteuid() != 0;
    for (const char *name; (name = g_dir_read_name(proc));) {
        guint parent = 0, user = 0;
        g_autofree char *path = g_build_filename("/proc", name, "status", NULL), *text = NULL;
        if (!g_ascii_isdigit(*name) || !g_file_get_contents(path, &text, NULL, NULL))
            continue;
        const char *ppid = strstr(text, "\nPPid:"), *uid = strstr(text, "\nUid:");
        found += ppid && uid && sscanf(ppid, "\nPPid: %u", &parent) == 1 &&
                 sscanf(uid, "\nUid: %u", &user) == 1 && parent == (guint)getpid() &&
                 user == VOLUME_USER;
    }
    return found;
}

/* Each time that somebody comes it is the same; `address`: or from another node. */
static void go_both_ways(const char *address)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *bytes = pattern();
    g_autofree guint8 *found = g_malloc(BYTES);
    g_autofree char *path = NULL, *socket_path = NULL;
    char text[64] = "";
    set_up();
    struct volume_transfer *transfer = begin(NAME, BYTES, address);
    g_assert_true(address ? strlen(transfer->key) == 64 && transfer->port : !transfer->key);
    socket_path = g_strdup(transfer->path ? transfer->path : "/");
    path = path_of(NAME);
    assert_state(transfer, TRANSFER_WAITS);
    struct nbd_stream *stream = dial(transfer);
    assert_state(transfer, TRANSFER_STANDS);
    g_assert_cmpuint(programs_as_user(), ==, 1);
    put(stream, bytes, BYTES);
    g_assert_true(driver->ops->transfer_end(transfer));
    g_assert_true(address || g_access(socket_path, F_OK) != 0);
    g_assert_false(nbd_stream_flush(stream, &error));
    assert_fails(&error, FETTLE_ERROR_UNREACHABLE, "the connection was lost");
    nbd_stream_free(stream);
    g_assert_cmpint(getxattr(path, "user.fettle.whole", text, sizeof text), <, 0);
    struct image_sums said = {.size = BYTES}, sums;
    driver->ops->measure(driver, backend, NAME, FORMAT_RAW, &said, &sums, &error);
    g_assert_no_error(error);
    g_autofree char *sum = g_compute_checksum_for_data(G_CHECKSUM_SHA512, bytes, BYTES);
    g_autofree char *checksum = g_compute_checksum_for_data(G_CHECKSUM_MD5, bytes, BYTES);
    g_assert_cmpstr(sums.os_hash_value, ==, sum);
    g_assert_cmpstr(sums.checksum, ==, checksum);
    g_assert_cmpuint(sums.virtual_size, ==, BYTES);
    transfer = begin(NAME, 0, address);
    stream = dial(transfer);
    for (gsize at = 0; at < BYTES;) {
        gssize got = nbd_stream_read(stream, found + at, BYTES - at, &error);
        g_assert_no_error(error);
        at += (gsize)got;
    }
    g_assert_true(memcmp(found, bytes, BYTES) == 0);
    nbd_stream_free(stream);
    until(driver->ops->transfer_state(transfer) == TRANSFER_OVER);
    g_assert_true(driver->ops->transfer_end(transfer));
    tear_down();
}

static void here(void *unused)
{
    go_both_ways(NULL);
}

static void elsewhere(void *unused)
{
    go_both_ways("127.0.0.1");
}

/* Of a transfer nothing is left but its file, which is nobody's yet. */
static void ends(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *bytes = pattern();
    g_autofree char *path = NULL;
    struct stat status;
    set_up();
    path = path_of(NAME);
    struct volume_transfer *transfer = begin(NAME, BYTES, NULL);
    g_assert_cmpint(stat(path, &status), ==, 0);
    g_assert_cmpint(status.st_mode & 07777, ==, geteuid() ? 0600 : 0660);
    g_assert_true(geteuid() || (status.st_uid == 0 && status.st_gid == VOLUME_USER));
    g_assert_null(driver->ops->transfer(driver, backend, NAME, BYTES, NULL,
                                        &error)); /* never over what is there */
    assert_fails(&error, FETTLE_ERROR_ALREADY_EXISTS, "is there already");
    struct nbd_stream *stream = dial(transfer);
    nbd_stream_write(stream, bytes, BYTES, &error);
    g_assert_no_error(error);
    nbd_stream_free(stream); /* the sender is gone */
    until(driver->ops->transfer_state(transfer) == TRANSFER_OVER);
    g_assert_true(driver->ops->transfer_end(transfer));
    g_assert_null(driver->ops->transfer(driver, backend, OTHER, 0, NULL, &error));
    assert_fails(&error, FETTLE_ERROR_UNKNOWN_ENTITY, "dir1: there is no " OTHER);
    /* SAF-123: it opens nothing where the marker is another's. */
    backend->uuid[0] = '9';
    g_assert_null(driver->ops->transfer(driver, backend, OTHER, BYTES, NULL, &error));
    assert_fails(&error, FETTLE_ERROR_UNSAFE, "belongs to back end");
    g_autofree char *none = path_of(OTHER);
    g_assert_cmpint(g_access(none, F_OK), !=, 0);
    tear_down();
}

/* Each is a call at its back end, as long as it stands. */
static void places(void *unused)
{
    g_autoptr(GError) error = NULL;
    struct volume_transfer *all[LIMIT_BACKEND_CHILDREN];
    set_up();
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autofree char *name = volume_data_name("11111111-0000-4000-8000-000000000001", i + 1);
        all[i] = begin(name, BYTES, NULL);
    }
    g_assert_cmpint(driver->ops->hanging(driver, backend), ==, 0);
    g_assert_true(driver->ops->transfer_end(all[0]));
    g_autoptr(GPtrArray) list = driver->ops->list(driver, backend, &error);
    g_assert_no_error(error);
    g_assert_cmpint(list->len, ==, LIMIT_BACKEND_CHILDREN);
    for (guint i = 1; i < G_N_ELEMENTS(all); i++)
        g_assert_true(driver->ops->transfer_end(all[i]));
    tear_down();
}

/* --- who is not its client --- */

static int knock(const struct volume_transfer *transfer)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((guint16)transfer->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&at, sizeof at), ==, 0);
    return fd;
}

/* Who knocks and leaves takes nobody's place. */
static void passes_by(void *unused)
{
    set_up();
    struct volume_transfer *transfer = begin(NAME, BYTES, "127.0.0.1");
    int fd = knock(transfer);
    until(driver->ops->transfer_state(transfer) == TRANSFER_STANDS);
    close(fd);
    until(driver->ops->transfer_state(transfer) == TRANSFER_WAITS);
    struct nbd_stream *stream = dial(transfer);
    assert_state(transfer, TRANSFER_STANDS);
    nbd_stream_free(stream);
    until(driver->ops->transfer_state(transfer) == TRANSFER_OVER);
    g_assert_true(driver->ops->transfer_end(transfer));
    tear_down();
}

/* Who stays without a word has it for a time; so has one who was let in and goes no further. */
static void says_nothing(void *unused)
{
    set_up();
    dir_volumes_set_patience(volumes_by_kind_dir(driver), 1000, 3600000);
    struct volume_transfer *transfer = begin(NAME, BYTES, "127.0.0.1");
    struct nbd_stream *stream = dial(transfer); /* by now it has read what it starts with */
    assert_state(transfer, TRANSFER_STANDS);
    g_assert_true(loop_sleep(1500));
    assert_state(transfer, TRANSFER_STANDS); /* who has shown his key is no stranger */
    nbd_stream_free(stream);
    until(driver->ops->transfer_state(transfer) == TRANSFER_OVER);
    g_assert_true(driver->ops->transfer_end(transfer));

    transfer = begin(OTHER, BYTES, "127.0.0.1");
    int fd = knock(transfer);
    until(driver->ops->transfer_state(transfer) == TRANSFER_STANDS);
    close(fd);
    until(driver->ops->transfer_state(transfer) == TRANSFER_WAITS);
    fd = knock(transfer);
    until(driver->ops->transfer_state(transfer) == TRANSFER_STUCK);
    close(fd);
    g_assert_true(driver->ops->transfer_end(transfer));

    dir_volumes_set_patience(volumes_by_kind_dir(driver), 3600000, 1000);
    transfer = begin(OTHER, 0, NULL);
    stream = dial(transfer);
    until(driver->ops->transfer_state(transfer) == TRANSFER_STUCK);
    g_assert_true(driver->ops->transfer_end(transfer));
    nbd_stream_free(stream);
    tear_down();
}

/* Of an image in a pool nothing is seen but what passes by the port. */
static void stands_at_a_port(void *unused)
{
    static const char *const words[] = {"sh", "-c", "echo ready; exec sleep 600", NULL};
    static const char greeting[256];
    g_autoptr(GError) error = NULL;
    set_up();
    struct volume_driver *dir = volumes_by_kind_dir(driver);
    dir_volumes_set_patience(dir, 1000, 3600000);
    struct volume_transfer *transfer =
        dir_volumes_serve(dir, backend, words, "", "127.0.0.1", &error);
    g_assert_no_error(error);
    assert_state(transfer, TRANSFER_WAITS);
    int fd = knock(transfer);
    until(driver->ops->transfer_state(transfer) != TRANSFER_WAITS); /* seen late it is stuck */
    until(driver->ops->transfer_state(transfer) == TRANSFER_STUCK);
    close(fd);
    until(driver->ops->transfer_state(transfer) == TRANSFER_WAITS);
    fd = knock(transfer); /* that one is given no less time */
    g_assert_cmpint(write(fd, greeting, sizeof greeting), ==, sizeof greeting);
    until(driver->ops->transfer_state(transfer) == TRANSFER_STANDS);
    g_assert_true(loop_sleep(1500));
    assert_state(transfer, TRANSFER_STANDS);
    close(fd);
    g_assert_true(driver->ops->transfer_end(transfer));

    dir_volumes_set_patience(dir, 3600000, 3000);
    transfer = dir_volumes_serve(dir, backend, words, "", "127.0.0.1", &error);
    g_assert_no_error(error);
    fd = knock(transfer);
    for (guint i = 0; i < 50; i++) { /* it gets further, for longer than anybody may stand still */
        g_assert_cmpint(write(fd, greeting, sizeof greeting), ==, sizeof greeting);
        g_assert_true(loop_sleep(100));
        assert_state(transfer, TRANSFER_STANDS);
    }
    until(driver->ops->transfer_state(transfer) == TRANSFER_STUCK);
    close(fd);
    g_assert_true(driver->ops->transfer_end(transfer));
    tear_down();
}

/* A pipe that has nothing, a file that has nothing but zeroes: its client is seen there. */
static void is_slow(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *zeroes = g_malloc0(MIB(1));
    set_up();
    dir_volumes_set_patience(volumes_by_kind_dir(driver), 3600000, 4000);
    struct volume_transfer *transfer = begin(NAME, 1024 * MIB(1), NULL);
    const struct nbd_place place = {.path = transfer->path, .stall_ms = 400};
    struct nbd_stream *stream = nbd_stream_open(&place, &error);
    g_assert_no_error(error);
    assert_state(transfer, TRANSFER_STANDS);
    for (guint i = 0; i < 60; i++) {
        if (i % 2)
            nbd_stream_write(stream, zeroes, MIB(1), &error);
        else
            nbd_stream_rest(stream, -1, 100, &error);
        g_assert_no_error(error);
        g_assert_true(loop_sleep(50));
        assert_state(transfer, TRANSFER_STANDS);
    }
    nbd_stream_flush(stream, &error);
    g_assert_no_error(error);
    nbd_stream_free(stream);
    g_assert_true(driver->ops->transfer_end(transfer));
    tear_down();
}

/* Sockets of a process that died are nobody's. */
static void is_cleared(void *unused)
{
    g_autofree char *path =
        g_build_filename(world_folder(), "trans,fers", "0123456789abcdef", NULL);
    set_up();
    g_assert_true(driver->ops->transfer_end(begin(NAME, BYTES, NULL))); /* which makes the folder */
    g_assert_true(g_file_set_contents(path, "", 0, NULL));
    dir_volumes_clear(volumes_by_kind_dir(driver));
    g_assert_cmpint(g_access(path, F_OK), !=, 0);
    tear_down();
}

/* An earlier version, whose programs were root, has left it to root alone; the program that a
 * client of a port reaches looks for his key there. */
static void is_of_before(void *unused)
{
    g_autofree char *folder = g_build_filename(world_folder(), "trans,fers", NULL);
    struct stat about;
    set_up();
    g_assert_true(g_mkdir(folder, 0700) == 0 || g_chmod(folder, 0700) == 0);
    struct volume_transfer *transfer = begin(NAME, BYTES, "127.0.0.1");
    nbd_stream_free(dial(transfer));
    g_assert_true(driver->ops->transfer_end(transfer));
    g_assert_cmpint(g_stat(folder, &about), ==, 0);
    g_assert_cmpuint(about.st_mode & 0777, ==, 0711);
    tear_down();
}

/* --- what it was said to be --- */

/* What is not read as it was said would not be looked at. */
static void words(void *unused)
{
    g_autoptr(GError) error = NULL;
    struct image_sums said = {.size = 7}, read;
    g_autofree char *none = dir_settle_text(FORMAT_RAW, &said);
    g_autofree char *format = dir_settle_parse(none, 7, &read, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(format, ==, "raw");
    g_assert_cmpstr(read.checksum, ==, "");
    g_assert_cmpstr(read.os_hash_value, ==, "");
    memset(said.os_hash_value, 'a', 128);
    memset(said.checksum, 'b', 32);
    g_autofree char *both = dir_settle_text(FORMAT_RAW, &said);
    g_free(dir_settle_parse(both, 7, &read, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(read.checksum, ==, said.checksum);
    g_assert_cmpstr(read.os_hash_value, ==, said.os_hash_value);
    said.checksum[31] = 'B';
    g_autofree char *large = dir_settle_text(FORMAT_RAW, &said);
    const char *const wrong[] = {large, "raw - abc", "raw abc -", "raw -", "raw  -", ""};
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_assert_null(dir_settle_parse(wrong[i], 7, &read, &error));
        assert_fails(&error, FETTLE_ERROR_WRONG_INPUT, "is no format with two sums");
    }
}

/* A long one is given the time that it takes. */
static void times_of(void *unused)
{
    g_assert_cmpuint(dir_measure_ms(0), ==, LIMIT_IMAGE_MEASURE_MS);
    g_assert_cmpuint(dir_measure_ms(1024 * MIB(1)), ==, LIMIT_IMAGE_MEASURE_MS);
    g_assert_cmpuint(dir_measure_ms(1000 * 1024 * MIB(1)), ==,
                     (guint64)1000 * LIMIT_VOLUME_BACKUP_MS);
}

static void make(const char *name, const char *const *words)
{
    g_autofree char *folder = g_build_filename(backend->path, "images", NULL);
    g_autofree char *path = path_of(name);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    unlink(path);
    g_ptr_array_add(argv, (char *)"env");
    g_ptr_array_add(argv, (char *)"-C");
    g_ptr_array_add(argv, folder);
    for (; *words; words++)
        g_ptr_array_add(argv, (char *)(strcmp(*words, "FILE") == 0 ? path : *words));
    g_ptr_array_add(argv, NULL);
    g_autofree char *output = NULL;
    int code = tool_run((const char *const *)argv->pdata, NULL, LIMIT_MS, &output, &error);
    g_assert_no_error(error);
    if (code != 0)
        g_error("%s", output);
}

static void assert_not(enum disk_format format, const struct image_sums *said, const char *why)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = path_of(NAME);
    struct image_sums sums;
    char text[64];
    g_assert_false(driver->ops->measure(driver, backend, NAME, format, said, &sums, &error));
    assert_fails(&error, FETTLE_ERROR_CORRUPT, why);
    g_assert_cmpint(getxattr(path, "user.fettle.whole", text, sizeof text), <, 0);
}

static void set_byte(off_t at, char byte)
{
    g_autofree char *path = path_of(NAME);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    g_assert_cmpint(pwrite(fd, &byte, 1, at), ==, 1);
    close(fd);
}

static guint64 length(void)
{
    g_autofree char *path = path_of(NAME);
    struct stat status;
    g_assert_cmpint(stat(path, &status), ==, 0);
    return (guint64)status.st_size;
}

static void said(void *unused)
{
    g_autoptr(GError) error = NULL;
    struct image_sums said = {.size = MIB(2)}, sums;
    set_up();
    make(NAME, (const char *const[]){"truncate", "-s", "1M", "FILE", NULL});
    assert_not(FORMAT_RAW, &said, "2097152 bytes were to come, and there is room for 1048576");
    said.size = MIB(1);
    memset(said.os_hash_value, 'a', 128);
    assert_not(FORMAT_RAW, &said,
               "what came is not what was sent: its SHA-512 is d6292685b380e338…, and not "
               "aaaaaaaaaaaaaaaa…");
    memset(said.os_hash_value, 0, 128);
    memset(said.checksum, 'b', 32);
    assert_not(FORMAT_RAW, &said, "its MD5 is b6d81b360a5672d8…, and not bbbbbbbbbbbbbbbb…");
    memset(said.checksum, 0, 32);
    assert_not(FORMAT_QCOW2, &said, "is no qcow2 file");
    make(NAME, (const char *const[]){"qemu-img", "create", "-f", "qcow2", "-u", "-b", "/etc/passwd",
                                     "-F", "raw", "FILE", "1G", NULL});
    said.size = length();
    assert_not(FORMAT_QCOW2, &said, "refers to another file, \"/etc/passwd\"");
    make(NAME, (const char *const[]){"qemu-img", "create", "-f", "qcow2", "-o",
                                     "data_file=other,data_file_raw=on", "FILE", "1G", NULL});
    said.size = length();
    assert_not(FORMAT_QCOW2, &said, "refers to another file, \"other\"");
    make(NAME, (const char *const[]){"qemu-img", "create", "-f", "qcow2", "FILE", "1G", NULL});
    set_byte(35, 1); /* crypt_method: AES */
    said.size = length();
    assert_not(FORMAT_QCOW2, &said, "is encrypted");
    make(NAME, (const char *const[]){"qemu-img", "create", "-f", "qcow2", "FILE", "5G", NULL});
    said.size = length();
    driver->ops->measure(driver, backend, NAME, FORMAT_QCOW2, &said, &sums, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(sums.virtual_size, ==, 5 * 1024 * MIB(1));
    tear_down();
}

static int run_tests(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    world_test("/volume-transfer/here#SAF-60", here);
    world_test("/volume-transfer/elsewhere#SAF-60", elsewhere);
    world_test("/volume-transfer/ends#SAF-52,SAF-123", ends);
    world_test("/volume-transfer/places", places);
    world_test("/volume-transfer/passes-by", passes_by);
    world_test("/volume-transfer/says-nothing", says_nothing);
    world_test("/volume-transfer/stands-at-a-port", stands_at_a_port);
    world_test("/volume-transfer/is-slow", is_slow);
    world_test("/volume-transfer/is-cleared", is_cleared);
    world_test("/volume-transfer/is-of-before#SAF-110", is_of_before);
    world_test("/volume-transfer/words#SAF-60", words);
    world_test("/volume-transfer/times", times_of);
    world_test("/volume-transfer/said#SAF-60", said);
    return g_test_run();
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], DIR_CALL_OPTION) == 0)
        return dir_call_main(argc, argv);
    program = g_file_read_link("/proc/self/exe", NULL);
    return world_main(argc, argv, run_tests);
}
