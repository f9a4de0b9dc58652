/*
 * The fail-stop plugin that exports a replica's disk, spoken to in plain NBD.
 */
#include "world.h"

#include "backend/storage/settle.h"
#include "helper/patience.h"
#include "io/process.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_S 60 /* with what must answer */

/* Runs nbdkit with the plugin and returns its exit code and last line; for parameters that it
 * refuses. */
static void assert_plugin_refuses(const char *const *parameters, const char *message)
{
    g_autofree char *plugin = program_path("fettle-failstop.so");
    g_autofree char *log = g_build_filename(world_folder(), "plugin.log", NULL);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    /* Given no name (-U -) it would make a folder in /tmp, and leave it when it refuses. */
    g_autofree char *socket = g_build_filename(world_folder(), "refused.sock", NULL);
    const char *fixed[] = {"nbdkit", "-f", "-U", socket, plugin};
    for (guint i = 0; i < G_N_ELEMENTS(fixed); i++)
        g_ptr_array_add(argv, (char *)fixed[i]);
    for (; *parameters != NULL; parameters++)
        g_ptr_array_add(argv, (char *)*parameters);
    g_ptr_array_add(argv, NULL);
    struct process_options options = {.argv = (const char *const *)argv->pdata, .errors_path = log};
    struct process *process = process_spawn(&options, NULL);
    g_assert_true(process_wait(process, 60000));
    g_assert_cmpint(process_exit_code(process), ==, 1);
    process_free(process);
    g_autofree char *said = NULL;
    g_assert_true(g_file_get_contents(log, &said, NULL, NULL));
    unlink(log);
    g_test_message("%s", said);
    g_assert_nonnull(strstr(said, message));
}

static void bad_parameters(void *unused)
{
    g_autofree char *image = g_build_filename(world_folder(), "image", NULL);
    g_autofree char *file = g_strconcat("file=", image, NULL);
    g_assert_true(g_file_set_contents(image, "x", 1, NULL));
#define REFUSED(message, ...)                                                                      \
    assert_plugin_refuses((const char *const[]){__VA_ARGS__, NULL}, message)
    REFUSED("parameters file, history, replica, generation and disk are all needed", file);
    REFUSED("unknown parameter size; known are file, history, replica, generation, disk, "
            "control, lazy",
            "size=1");
    REFUSED("a lazy export needs a control socket, or it would stay so for ever", file, "history=1",
            "replica=r", "generation=1", "disk=0", "lazy=true");
    REFUSED("parameter disk is given twice", "disk=1", "disk=1");
    REFUSED("parameter replica is empty", "replica=");
    REFUSED("generation", file, "history=1", "replica=r", "generation=x", "disk=0");
    REFUSED("No such file or directory", "file=/nowhere", "history=1", "replica=r", "generation=1",
            "disk=0");
#undef REFUSED
}

struct nbd {
    struct process *process;
    char *socket;
    char *log;
};

/* With a control socket it starts lazily. Each of its fdatasync() calls adds a byte to the file
 * syncs_of(), by a library that is loaded before the C library. */
static struct nbd nbd_start_with(const char *image, const char *control)
{
    struct nbd nbd = {.socket = g_build_filename(world_folder(), "nbd.sock", NULL),
                      .log = g_build_filename(world_folder(), "nbd.log", NULL)};
    unlink(nbd.socket); /* not on the disk of the image, which may be full */
    g_autofree char *plugin = program_path("fettle-failstop.so");
    g_autofree char *file = g_strconcat("file=", image, NULL);
    const char *argv[] = {"nbdkit", "-f",        "-U",        nbd.socket,     plugin,
                          file,     "history=1", "replica=r", "generation=2", "disk=0",
                          NULL,     NULL,        NULL};
    g_autofree char *asked = g_strdup_printf("control=%s", control);
    guint words = 10;
    g_assert_null(argv[words]);
    if (control != NULL) {
        argv[words++] = asked;
        argv[words++] = "lazy=true";
    }
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = g_path_get_dirname(self);
    g_autofree char *preload = g_strdup_printf("LD_PRELOAD=%s/../../helper/sync_count.so", folder);
    g_autofree char *count = g_strdup_printf("SYNC_COUNT=%s/syncs", world_folder());
    const char *environment[] = {preload, count, NULL};
    struct process_options options = {
        .argv = argv, .environment = environment, .errors_path = nbd.log};
    g_assert_true(g_file_set_contents(count + strlen("SYNC_COUNT="), "", 0, NULL));
    nbd.process = process_spawn(&options, NULL);
    g_assert_nonnull(nbd.process);
    while (!g_file_test(nbd.socket, G_FILE_TEST_EXISTS) && !process_ended(nbd.process))
        loop_sleep(5);
    return nbd;
}

static struct nbd nbd_start(const char *image)
{
    return nbd_start_with(image, NULL);
}

static guint syncs(void)
{
    g_autofree char *path = g_build_filename(world_folder(), "syncs", NULL);
    struct stat status;
    g_assert_cmpint(stat(path, &status), ==, 0);
    return (guint)status.st_size;
}

static void nbd_stop(struct nbd *nbd)
{
    g_assert_true(process_kill(nbd->process, NULL));
    process_free(nbd->process);
    g_free(nbd->socket);
    g_free(nbd->log);
}

/* These block; the other end is another process. */
static void put(int fd, const void *data, size_t len)
{
    g_assert_cmpint(send(fd, data, len, MSG_NOSIGNAL), ==, (gssize)len);
}

static bool get(int fd, void *data, size_t len)
{
    return recv(fd, data, len, MSG_WAITALL) == (ssize_t)len;
}

static void wait_for_answers(int fd, struct timeval wait)
{
    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), ==, 0);
}

/* A connection to the export, -1 if that is refused. */
static int nbd_connect(const struct nbd *nbd, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, nbd->socket, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char greeting[18], answer[10];
    /* The socket is there a moment before anybody listens. */
    for (guint i = 0; connect(fd, (struct sockaddr *)&address, sizeof address) != 0; i++) {
        g_assert_cmpuint(i, <, PATIENCE_S * 1000);
        g_usleep(1000);
    }
    wait_for_answers(fd, (struct timeval){.tv_sec = PATIENCE_S});
    g_assert_true(get(fd, greeting, sizeof greeting));
    /* In one piece: who refuses the name may have gone after its length. */
    guint32 len = htonl((guint32)strlen(name));
    g_autoptr(GByteArray) option = g_byte_array_new();
    g_byte_array_append(option, (const guint8 *)"\0\0\0\3IHAVEOPT\0\0\0\1", 16);
    g_byte_array_append(option, (const guint8 *)&len, 4);
    g_byte_array_append(option, (const guint8 *)name, (guint)strlen(name));
    put(fd, option->data, option->len);
    if (get(fd, answer, sizeof answer))
        return fd;
    close(fd);
    return -1;
}

enum { NBD_READ, NBD_WRITE, NBD_DISCONNECT, NBD_FLUSH, NBD_TRIM, NBD_CACHE, NBD_ZERO };

static void nbd_send(int fd, guint16 type, guint64 offset, guint32 len, const void *data)
{
    struct __attribute__((packed)) {
        guint32 magic;
        guint16 flags, type;
        guint64 cookie, offset;
        guint32 len;
    } request = {htonl(0x25609513), 0, htons(type), 42, htobe64(offset), htonl(len)};
    put(fd, &request, sizeof request);
    if (type == NBD_WRITE)
        put(fd, data, len);
}

/* The error number of the reply; -1 if none comes. */
static int nbd_answer(int fd, guint16 type, guint32 len, void *data)
{
    guint32 reply[4];
    if (!get(fd, reply, sizeof reply))
        return -1;
    g_assert_cmpuint(ntohl(reply[0]), ==, 0x67446698);
    if (type == NBD_READ && reply[1] == 0)
        g_assert_true(get(fd, data, len));
    return (int)ntohl(reply[1]);
}

static int nbd_request(int fd, guint16 type, guint64 offset, guint32 len, void *data)
{
    nbd_send(fd, type, offset, len, data);
    return nbd_answer(fd, type, len, data);
}

static char *plugin_image(const char *name, goffset size)
{
    char *image = g_build_filename(world_folder(), name, NULL);
    int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(ftruncate(fd, size), ==, 0);
    close(fd);
    return image;
}

static void plugin_io(void *unused)
{
    g_autofree char *image = plugin_image("io", 1 << 20);
    struct nbd nbd = nbd_start(image);
    g_assert_cmpint(nbd_connect(&nbd, "1.r.1.0"), ==, -1);
    g_assert_cmpint(nbd_connect(&nbd, ""), ==, -1);
    g_assert_cmpint(nbd_connect(&nbd, "1.r.2.00"), ==, -1);
    int fd = nbd_connect(&nbd, "1.r.2.0");
    g_assert_cmpint(fd, >=, 0);
    char block[4096], read[4096], zeros[4096] = {0};
    memset(block, 'a', sizeof block);
    g_assert_cmpint(nbd_request(fd, NBD_WRITE, 0, sizeof block, block), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_WRITE, 8192, sizeof block, block), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_FLUSH, 0, 0, NULL), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_READ, 8192, sizeof read, read), ==, 0);
    g_assert_cmpint(memcmp(read, block, sizeof read), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_ZERO, 0, sizeof block, NULL), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_READ, 0, sizeof read, read), ==, 0);
    g_assert_cmpint(memcmp(read, zeros, sizeof read), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_TRIM, 8192, sizeof block, NULL), ==, 0);
    close(fd);
    nbd_stop(&nbd);
}

static int unix_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(connect(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    wait_for_answers(fd, (struct timeval){.tv_sec = PATIENCE_S});
    return fd;
}

/* Lazy: no sync at all, unless a request asks for one. Settled: one before every answer. */
static void plugin_settles(void *unused)
{
    g_autofree char *image = plugin_image("settled", 1 << 20);
    g_autofree char *control = g_build_filename(world_folder(), "control.sock", NULL);
    char block[4096] = {1}, said[sizeof SETTLED] = "";
    struct nbd nbd = nbd_start_with(image, control);
    int fd = nbd_connect(&nbd, "1.r.2.0");
    for (guint i = 0; i < 8; i++)
        g_assert_cmpint(nbd_request(fd, NBD_WRITE, i * sizeof block, sizeof block, block), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_ZERO, 65536, sizeof block, NULL), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_TRIM, 131072, sizeof block, NULL), ==, 0);
    g_assert_cmpuint(syncs(), ==, 0);
    g_assert_cmpint(nbd_request(fd, NBD_FLUSH, 0, 0, NULL), ==, 0);
    g_assert_cmpuint(syncs(), ==, 1);
    for (guint twice = 0; twice < 2; twice++) {
        int asks = unix_connect(control);
        g_assert_true(get(asks, said, strlen(SETTLED)));
        g_assert_cmpstr(said, ==, SETTLED);
        g_assert_cmpint((int)recv(asks, said, 1, 0), ==, 0);
        close(asks);
    }
    guint before = syncs();
    g_assert_cmpuint(before, >=, 3);
    for (guint i = 1; i <= 8; i++) {
        g_assert_cmpint(nbd_request(fd, NBD_WRITE, i * sizeof block, sizeof block, block), ==, 0);
        g_assert_cmpuint(syncs(), ==, before + i);
    }
    g_assert_cmpint(nbd_request(fd, NBD_TRIM, 131072, sizeof block, NULL), ==, 0);
    g_assert_cmpuint(syncs(), ==, before + 9);
    close(fd);
    nbd_stop(&nbd);
}

/* Without a control socket it is durable from the beginning. */
static void plugin_syncs(void *unused)
{
    g_autofree char *image = plugin_image("synced", 1 << 20);
    char block[4096] = {1};
    struct nbd nbd = nbd_start(image);
    int fd = nbd_connect(&nbd, "1.r.2.0");
    for (guint i = 1; i <= 8; i++) {
        g_assert_cmpint(nbd_request(fd, NBD_WRITE, i * sizeof block, sizeof block, block), ==, 0);
        g_assert_cmpuint(syncs(), ==, i);
    }
    close(fd);
    nbd_stop(&nbd);
}

static void plugin_superseded(void *unused)
{
    g_autofree char *image = plugin_image("superseded", 1 << 20);
    struct nbd nbd = nbd_start(image);
    char one[512], two[512], read[512];
    memset(one, '1', sizeof one);
    memset(two, '2', sizeof two);
    int old = nbd_connect(&nbd, "1.r.2.0");
    g_assert_cmpint(nbd_request(old, NBD_WRITE, 0, sizeof one, one), ==, 0);
    int new = nbd_connect(&nbd, "1.r.2.0");
    g_assert_cmpint(nbd_request(new, NBD_WRITE, 0, sizeof two, two), ==, 0);
    /* The late write of the connection that was given up is neither done nor answered. */
    wait_for_answers(old, (struct timeval){.tv_usec = 500000});
    g_assert_cmpint(nbd_request(old, NBD_WRITE, 0, sizeof one, one), ==, -1);
    g_assert_cmpint(nbd_request(new, NBD_READ, 0, sizeof read, read), ==, 0);
    g_assert_cmpint(memcmp(read, two, sizeof read), ==, 0);
    close(old);
    g_assert_cmpint(nbd_request(new, NBD_WRITE, 512, sizeof two, two), ==, 0);
    close(new);
    nbd_stop(&nbd);
}

/* Requests that are there when it is told to end: each is done or has no answer, none has an error,
 * as nbdkit would give. */
static void plugin_told_to_end(void *unused)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    g_autofree char *image = plugin_image("ended", 1 << 20);
    char block[512] = {1};
    for (guint i = 0; i < G_N_ELEMENTS(signals); i++) {
        struct nbd nbd = nbd_start(image);
        pid_t pid = (pid_t)process_pid(nbd.process);
        int fd = nbd_connect(&nbd, "1.r.2.0");
        g_assert_cmpint(nbd_request(fd, NBD_WRITE, 0, sizeof block, block), ==, 0);
        patience_stop(pid);
        for (guint k = 0; k < 32; k++)
            nbd_send(fd, NBD_WRITE, k * sizeof block, sizeof block, block);
        kill(pid, signals[i]);
        kill(pid, SIGCONT);
        int answer = 0;
        for (guint k = 0; k < 32 && answer == 0; k++)
            answer = nbd_answer(fd, NBD_WRITE, 0, NULL);
        g_assert_cmpint(answer, <=, 0);
        g_assert_true(process_wait(nbd.process, PATIENCE_S * 1000));
        g_assert_cmpint(process_exit_code(nbd.process), ==, 128 + signals[i]);
        close(fd);
        nbd_stop(&nbd);
    }
}

#define ORPHAN                                                                                     \
    "nbdkit -f -U $1 $2 $3 history=1 replica=r generation=2 disk=0 & "                             \
    "while ! test -e $1; do sleep 0.01; done"

/* As root, where no change of the user takes away what nbdkit has asked for. */
static void plugin_outlives_its_parent(void *unused)
{
    g_autofree char *image = plugin_image("orphan", 1 << 20);
    g_autofree char *plugin = program_path("fettle-failstop.so");
    g_autofree char *socket = g_build_filename(world_folder(), "orphan.sock", NULL);
    g_autofree char *file = g_strconcat("file=", image, NULL);
    char block[512] = {1};
    const char *argv[] = {"sh", "-c", ORPHAN, "sh", socket, plugin, file, NULL};
    struct process_options options = {.argv = argv, .errors_fd = STDERR_FILENO};
    struct process *parent = process_spawn(&options, NULL);
    g_assert_nonnull(parent);
    g_assert_true(process_wait(parent, PATIENCE_S * 1000));
    process_free(parent);
    guint64 pid = process_find_by_argument(file);
    loop_sleep(200); /* it would end at once */
    struct nbd nbd = {.socket = socket};
    int fd = nbd_connect(&nbd, "1.r.2.0");
    g_assert_cmpint(nbd_request(fd, NBD_WRITE, 0, sizeof block, block), ==, 0);
    close(fd);
    kill((pid_t)pid, SIGKILL);
    world_await_gone(pid);
}

static void plugin_fault(void *unused)
{
    struct world_node *node = world_node_new("fault");
    world_limit_disks(node, 128);
    g_autofree char *image = g_build_filename(node->paths->var, "disks", "x", NULL);
    int file = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(ftruncate(file, 1 << 20), ==, 0);
    close(file);
    struct nbd nbd = nbd_start(image);
    int fd = nbd_connect(&nbd, "1.r.2.0");
    char block[65536] = {1};
    int answer = 0;
    for (guint i = 0; answer == 0 && i < 16; i++)
        answer = nbd_request(fd, NBD_WRITE, i * sizeof block, sizeof block, block);
    g_assert_cmpint(answer, ==, -1); /* no error reply: no reply */
    g_assert_true(process_wait(nbd.process, 60000));
    g_assert_cmpint(process_exit_code(nbd.process), ==, 3);
    g_autofree char *said = NULL;
    g_assert_true(g_file_get_contents(nbd.log, &said, NULL, NULL));
    g_test_message("%s", said);
    g_assert_nonnull(
        strstr(said, "write: No space left on device; ending, so that the writer waits"));
    close(fd);
    nbd_stop(&nbd);
    world_node_free(node);
}

static void add_tests(void)
{
    world_test("/failstop/bad-parameters", bad_parameters);
    world_test("/failstop/syncs-every-write#SAF-14", plugin_syncs);
    world_test("/failstop/settles#SAF-12,SAF-14", plugin_settles);
    world_test("/failstop/requests-and-export-name#SAF-14", plugin_io);
    world_test("/failstop/superseded-connection-is-held#SAF-13,SAF-14", plugin_superseded);
    world_test("/failstop/told-to-end-it-answers-no-error#SAF-14", plugin_told_to_end);
    world_test("/failstop/outlives-its-parent#SAF-19", plugin_outlives_its_parent);
    world_test("/failstop/fault-ends-it-without-an-answer#SAF-14", plugin_fault);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}
