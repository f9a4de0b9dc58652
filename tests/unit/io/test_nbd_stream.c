/*
 * Tests of io/net/nbd_stream.h: bytes to and from a real qemu-nbd, by socket and by TCP with a key;
 * one that stands still, ends, is full; and servers that are none.
 */
#include "io/net/nbd_stream.h"

#include "helper/patience.h"
#include "world.h"

#include "base/limits.h"
#include "io/process.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define STALL_MS 60000u
#define SHORT_MS 300u /* for what is to stand still */
#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define BYTES (11 * MIB(1) + 777) /* more than is under way, and no whole number of anything */

static char *folder;
static char *image, *socket_path;
static struct process *server;

static void start(const char *const *more)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, (char *)"qemu-nbd");
    g_ptr_array_add(argv, (char *)"-f");
    g_ptr_array_add(argv, (char *)"raw");
    for (; *more; more++)
        g_ptr_array_add(argv, (char *)*more);
    g_ptr_array_add(argv, image);
    g_ptr_array_add(argv, NULL);
    unlink(socket_path);
    server =
        process_spawn(&(struct process_options){.argv = (const char *const *)argv->pdata}, &error);
    g_assert_no_error(error);
}

static void end(void)
{
    g_autoptr(GError) error = NULL;
    if (!process_ended(server))
        process_kill(server, &error);
    g_assert_no_error(error);
    process_free(server);
    server = NULL;
}

static void make_image(gsize bytes)
{
    int fd = open(image, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    g_assert_cmpint(ftruncate(fd, (off_t)bytes), ==, 0);
    close(fd);
}

static const struct nbd_place *local(guint stall_ms)
{
    static struct nbd_place place;
    place = (struct nbd_place){.path = socket_path, .stall_ms = stall_ms};
    return &place;
}

/* It listens a moment after it was started. */
static struct nbd_stream *dial(const struct nbd_place *place)
{
    gint64 since_ms = loop_boot_ms();
    for (;;) {
        g_autoptr(GError) error = NULL;
        struct nbd_stream *stream = nbd_stream_open(place, &error);
        if (stream)
            return stream;
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_UNREACHABLE);
        g_assert_false(patience_is_over(since_ms, PATIENCE_MS));
        g_assert_true(loop_sleep(20));
    }
}

static guint8 *pattern(gsize bytes)
{
    guint8 *made = g_malloc(bytes);
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (gsize i = 0; i < bytes; i++)
        made[i] = (guint8)g_rand_int(rand);
    memset(made + 3 * MIB(1), 0, 2 * MIB(1)); /* that are not sent */
    return made;
}

/* In pieces of all sizes. */
static void put(struct nbd_stream *stream, const guint8 *bytes, gsize length, GError **error)
{
    gsize some = 1;
    for (gsize at = 0; at < length && !*error; at += some) {
        some = MIN(length - at, some * 3 % 2000003 + 1);
        nbd_stream_write(stream, bytes + at, some, error);
    }
}

static void assert_read(struct nbd_stream *stream, const guint8 *bytes, gsize length)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *found = g_malloc(MIB(2));
    gsize at = 0;
    for (gsize wanted = 1;; wanted = wanted * 3 % 2000003 + 1) {
        gssize got = nbd_stream_read(stream, found, wanted, &error);
        g_assert_no_error(error);
        if (got == 0)
            break;
        g_assert_cmpint(got, >, 0);
        gsize known = at < length ? MIN((gsize)got, length - at) : 0;
        g_assert_true(memcmp(found, bytes + at, known) == 0);
        at += (gsize)got;
    }
    g_assert_cmpuint(at, ==, (length + 511) / 512 * 512); /* as QEMU rounds it up */
}

static void go_both_ways(const char *const *more, const struct nbd_place *place)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *bytes = pattern(BYTES);
    g_autofree char *there = NULL;
    gsize length;
    struct stat status;
    make_image(BYTES);
    start(more);
    struct nbd_stream *stream = dial(place);
    g_assert_cmpuint(nbd_stream_size(stream), >=, BYTES);
    put(stream, bytes, BYTES, &error);
    g_assert_no_error(error);
    nbd_stream_flush(stream, &error);
    g_assert_no_error(error);
    nbd_stream_free(stream);
    until(process_ended(server)); /* with its client */
    end();
    g_assert_true(g_file_get_contents(image, &there, &length, NULL));
    g_assert_cmpuint(length, ==, BYTES);
    g_assert_true(memcmp(there, bytes, BYTES) == 0);
    g_assert_cmpint(stat(image, &status), ==, 0);
    g_assert_cmpint(status.st_blocks * 512, <, (gint64)BYTES - (gint64)MIB(1));
    start(more);
    stream = dial(place);
    assert_read(stream, bytes, BYTES);
    nbd_stream_free(stream);
    until(process_ended(server));
    end();
}

static void by_socket(void *unused)
{
    go_both_ways((const char *const[]){"-k", socket_path, NULL}, local(STALL_MS));
}

/* What is under way comes there while its sender waits for more, and that the server has gone is
 * seen, too. */
static void rests(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *bytes = pattern(BYTES);
    int ends[2];
    char c = 'x';
    g_autofree char *there = NULL;
    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    make_image(BYTES);
    start((const char *const[]){"-k", socket_path, NULL});
    struct nbd_stream *stream = dial(local(STALL_MS));
    put(stream, bytes, 3 * MIB(1), &error);
    for (bool come = false; !come;) {
        g_assert_true(nbd_stream_rest(stream, ends[0], 100, &error));
        g_clear_pointer(&there, g_free);
        g_assert_true(g_file_get_contents(image, &there, NULL, NULL));
        come = memcmp(there, bytes, 3 * MIB(1)) == 0;
    }
    g_assert_cmpint(write(ends[1], &c, 1), ==, 1);
    g_assert_true(nbd_stream_rest(stream, ends[0], STALL_MS, &error));
    g_assert_cmpint(read(ends[0], &c, 1), ==, 1);
    end();
    while (nbd_stream_rest(stream, ends[0], STALL_MS, &error))
        continue;
    assert_error(&error, UNREACHABLE, "the connection was lost");
    nbd_stream_free(stream);
    close(ends[0]);
    close(ends[1]);
}

static void write_key(const char *key)
{
    g_autofree char *path = g_build_filename(folder, "keys.psk", NULL);
    g_autofree char *line = g_strdup_printf(NBD_STREAM_USER ":%s\n", key);
    g_assert_true(g_file_set_contents(path, line, -1, NULL));
}

static void by_tcp(void *unused)
{
    g_autoptr(GError) error = NULL;
    guint number = world_free_port();
    g_autofree char *port = g_strdup_printf("%u", number);
    g_autofree char *creds = g_strdup_printf("tls-creds-psk,id=t0,endpoint=server,dir=%s", folder);
    const char *const more[] = {"--object",  creds, "--tls-creds", "t0", "-b",
                                "127.0.0.1", "-p",  port,          NULL};
    struct nbd_place place = {
        .address = "127.0.0.1", .port = number, .key = KEY, .stall_ms = STALL_MS};
    write_key(KEY);
    go_both_ways(more, &place);
    /* Who has another key gets nothing. */
    make_image(MIB(1));
    start((const char *const[]){"-t", "--object", creds, "--tls-creds", "t0", "-b", "127.0.0.1",
                                "-p", port, NULL});
    nbd_stream_free(dial(&place));
    place.key = "ff" KEY;
    g_assert_null(nbd_stream_open(&place, &error));
    assert_error(&error, PERMISSION, "does not take the key");
    place.key = "";
    g_assert_null(nbd_stream_open(&place, &error));
    assert_error(&error, PROTOCOL, "");
    end();
}

/* --- what goes wrong --- */

static void no_room(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *bytes = pattern(BYTES);
    make_image(MIB(2));
    start((const char *const[]){"-k", socket_path, NULL});
    struct nbd_stream *stream = dial(local(STALL_MS));
    put(stream, bytes, BYTES, &error);
    assert_error(&error, LIMIT, "more than the 2097152 bytes that there is room for");
    nbd_stream_free(stream);
    end();
}

static void full(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *bytes = pattern(BYTES);
    if (!world_own_mounts() || mount("none", folder, "tmpfs", 0, "size=4m") != 0) {
        g_test_skip("nothing can be mounted here");
        return;
    }
    make_image(BYTES);
    start((const char *const[]){"-k", socket_path, NULL});
    struct nbd_stream *stream = dial(local(STALL_MS));
    put(stream, bytes, BYTES, &error);
    if (!error)
        nbd_stream_flush(stream, &error);
    assert_error(&error, NO_RESOURCES, "No space left on device");
    nbd_stream_free(stream);
    end();
    g_assert_cmpint(umount2(folder, MNT_DETACH), ==, 0);
}

/* More than its memory and the socket's take. */
static void put_much(struct nbd_stream *stream, const guint8 *bytes, GError **error)
{
    for (guint i = 0; i < 8 && !*error; i++)
        put(stream, bytes, BYTES, error);
}

static void stands_still(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *bytes = pattern(BYTES);
    make_image(8 * BYTES);
    start((const char *const[]){"-t", "-k", socket_path, NULL});
    nbd_stream_free(dial(local(STALL_MS)));
    struct nbd_stream *stream = dial(local(SHORT_MS));
    patience_stop((pid_t)process_pid(server));
    put_much(stream, bytes, &error);
    assert_error(&error, TIMEOUT, "got no further for 0 s");
    nbd_stream_free(stream);
    g_assert_null(nbd_stream_open(local(SHORT_MS), &error));
    assert_error(&error, TIMEOUT, "got no further for 0 s");
    end();
}

static void ends(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree guint8 *bytes = pattern(BYTES);
    make_image(8 * BYTES);
    start((const char *const[]){"-k", socket_path, NULL});
    struct nbd_stream *stream = dial(local(STALL_MS));
    put(stream, bytes, BYTES, &error);
    g_assert_no_error(error);
    end();
    put_much(stream, bytes, &error);
    assert_error(&error, UNREACHABLE, "the connection was lost");
    nbd_stream_free(stream);
    g_assert_null(nbd_stream_open(local(STALL_MS), &error));
    assert_error(&error, UNREACHABLE, "cannot reach the server of the image");
}

/* Says that much, and hangs up, or says no more. */
struct liar {
    const char *says;
    bool stays;
    int listener;
    GThread *thread;
};

static gpointer lie(gpointer data)
{
    const struct liar *liar = data;
    char c;
    int fd = accept4(liar->listener, NULL, NULL, SOCK_CLOEXEC);
    g_assert_cmpint(send(fd, liar->says, strlen(liar->says), MSG_NOSIGNAL), >=, 0);
    if (!liar->stays)
        shutdown(fd, SHUT_WR);
    while (read(fd, &c, 1) == 1)
        continue;
    close(fd);
    return NULL;
}

static void assert_liar(const char *says, bool stays, enum fettle_error code)
{
    struct liar liar = {.says = says, .stays = stays};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autoptr(GError) error = NULL;
    unlink(socket_path);
    g_strlcpy(address.sun_path, socket_path, sizeof address.sun_path);
    liar.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(bind(liar.listener, (const struct sockaddr *)&address, sizeof address), ==, 0);
    g_assert_cmpint(listen(liar.listener, 1), ==, 0);
    liar.thread = g_thread_new("liar", lie, &liar);
    g_assert_null(nbd_stream_open(local(stays ? SHORT_MS : STALL_MS), &error));
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_thread_join(liar.thread);
    close(liar.listener);
}

static void liars(void *unused)
{
    assert_liar("", true, FETTLE_ERROR_TIMEOUT);
    assert_liar("NBDMAGIC", true, FETTLE_ERROR_TIMEOUT);
    assert_liar("", false, FETTLE_ERROR_UNREACHABLE);
    assert_liar("NBDMAGICIHAVEOPT", false, FETTLE_ERROR_UNREACHABLE);
    assert_liar("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", true,
                FETTLE_ERROR_PROTOCOL);
}

/* By what a server has seen: what was sent is on its way to the disk before anybody says that this
 * was all. */
static void syncs_along(void *unused)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *seen = g_build_filename(folder, "seen", NULL), *text = NULL;
    g_autofree char *log = g_strconcat("logfile=", seen, NULL);
    g_autofree guint8 *bytes = g_malloc(MIB(1));
    const char *argv[] = {"nbdkit", "-f",   "-U", socket_path, "--filter=log",
                          "memory", "128M", log,  NULL};
    memset(bytes, 'x', MIB(1));
    unlink(socket_path);
    server = process_spawn(&(struct process_options){.argv = argv}, &error);
    g_assert_no_error(error);
    struct nbd_stream *stream = dial(local(STALL_MS));
    for (guint i = 0; i < 65; i++)
        put(stream, bytes, MIB(1), &error);
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(seen, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, " Flush "));
    nbd_stream_flush(stream, &error);
    g_assert_no_error(error);
    nbd_stream_free(stream);
    end();
    unlink(seen);
}

static void run(gconstpointer fn)
{
    world_in_task((void (*)(void *))fn);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    folder = g_dir_make_tmp("fettle-nbd-XXXXXX", NULL);
    image = g_build_filename(folder, "image", NULL);
    socket_path = g_build_filename(folder, "sock", NULL);
    g_test_add_data_func("/nbd-stream/socket", by_socket, run);
    g_test_add_data_func("/nbd-stream/tcp", by_tcp, run);
    g_test_add_data_func("/nbd-stream/rests", rests, run);
    g_test_add_data_func("/nbd-stream/no-room", no_room, run);
    g_test_add_data_func("/nbd-stream/stands-still", stands_still, run);
    g_test_add_data_func("/nbd-stream/ends", ends, run);
    g_test_add_data_func("/nbd-stream/liars", liars, run);
    g_test_add_data_func("/nbd-stream/full", full, run);
    g_test_add_data_func("/nbd-stream/syncs-along", syncs_along, run);
    int code = g_test_run();
    g_autofree char *key = g_build_filename(folder, "keys.psk", NULL);
    unlink(key);
    unlink(image);
    unlink(socket_path);
    rmdir(folder);
    g_free(folder);
    g_free(image);
    g_free(socket_path);
    return code;
}
