/* See bench_wire.h. */
#include "bench_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "proto/frame.h"

void bench_must(bool ok, const char *what)
{
    if (!ok)
        g_error("%s: %s", what, g_strerror(errno));
}

double bench_since_s(gint64 start_us)
{
    return (double)(g_get_monotonic_time() - start_us) / G_USEC_PER_SEC;
}

/* --- the daemon --- */

char *bench_root_new(void)
{
    g_autoptr(GError) error = NULL;
    char *root = g_dir_make_tmp("bench-XXXXXX", &error);
    bench_must(root != NULL, "temporary folder");
    g_autofree char *etc = g_build_filename(root, "etc", NULL);
    g_autofree char *var = g_build_filename(root, "var", NULL);
    g_autofree char *node = g_build_filename(etc, "node.json", NULL);
    g_autofree char *run = g_build_filename(root, "run", NULL);
    char memory[] = "/dev/shm/bench-XXXXXX"; /* run/ is a tmpfs on every node */
    bench_must(g_mkdtemp(memory) != NULL && symlink(memory, run) == 0, run);
    bench_must(g_mkdir_with_parents(etc, 0755) == 0, etc);
    bench_must(g_mkdir_with_parents(var, 0700) == 0, var);
    bench_must(g_file_set_contents(node,
                                   "{\"node_uuid\":\"" BENCH_NODE "\",\"name\":\"node0\","
                                   "\"cluster_uuid\":\"" BENCH_CLUSTER_UUID
                                   "\",\"address\":\"127.0.0.1\"}",
                                   -1, NULL),
               node);
    return root;
}

void bench_root_free(char *root)
{
    g_autofree char *link = g_build_filename(root, "run", NULL);
    g_autofree char *memory = g_file_read_link(link, NULL);
    char *command[] = {"rm", "-rf", root, memory, NULL};
    g_spawn_sync(NULL, command, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL, NULL);
    g_free(root);
}

/* Whatever becomes of the benchmark, the daemon ends with it. */
static void end_with_parent(gpointer data)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void bench_daemon_start(struct bench_daemon *daemon, const char *program, char *root)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *ready = g_build_filename(root, "run", "wconfd.ready", NULL);
    char *command[] = {(char *)program, "--root", root, NULL};
    gint64 start = g_get_monotonic_time();
    unlink(ready);
    if (!g_spawn_async(NULL, command, NULL,
                       G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDERR_TO_DEV_NULL |
                           G_SPAWN_STDOUT_TO_DEV_NULL,
                       end_with_parent, NULL, &daemon->pid, &error))
        g_error("%s", error->message);
    for (guint i = 0; i < 120000 && access(ready, F_OK) != 0; i++)
        g_usleep(500);
    bench_must(access(ready, F_OK) == 0, "the daemon is not ready");
    daemon->ready_ms = bench_since_s(start) * 1000;
    daemon->root = root;
}

void bench_daemon_stop(struct bench_daemon *daemon)
{
    kill(daemon->pid, SIGTERM);
    waitpid(daemon->pid, NULL, 0);
    g_spawn_close_pid(daemon->pid);
}

double bench_daemon_cpu_us(const struct bench_daemon *daemon)
{
    clockid_t clock;
    struct timespec used;
    bench_must(clock_getcpuclockid(daemon->pid, &clock) == 0 && clock_gettime(clock, &used) == 0,
               "the daemon's clock");
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

double bench_daemon_resident_mb(const struct bench_daemon *daemon)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)daemon->pid), *text = NULL;
    bench_must(g_file_get_contents(path, &text, NULL, NULL), path);
    const char *line = strstr(text, "VmRSS:");
    bench_must(line != NULL, "VmRSS");
    return g_ascii_strtod(line + 6, NULL) / 1024;
}

void bench_livelock_take(const struct bench_daemon *daemon, const char *name)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    g_autofree char *path = g_build_filename(daemon->root, "run", "livelocks", name, NULL);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bench_must(fd >= 0 && fcntl(fd, F_OFD_SETLK, &whole) == 0, path);
}

/* --- a client --- */

void bench_send(struct bench_client *client, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = write(client->fd, text, len);
        bench_must(sent > 0, "write");
        text += sent;
        len -= (size_t)sent;
    }
}

char *bench_read(struct bench_client *client, guint count)
{
    static char buffer[KIB(256)];
    size_t start = 0, at = 0;
    for (;;) {
        for (; at < client->in->len; at++) {
            if (client->in->str[at] != FRAME_END)
                continue;
            if (--count == 0) {
                char *frame = g_strndup(client->in->str + start, at - start);
                g_string_erase(client->in, 0, (gssize)at + 1);
                return frame;
            }
            start = at + 1;
        }
        ssize_t got = read(client->fd, buffer, sizeof buffer);
        bench_must(got > 0, "read");
        g_string_append_len(client->in, buffer, got);
    }
}

void bench_add_request(struct bench_client *client, GString *text, const char *from,
                       const char *method, const char *args)
{
    g_autofree char *own = g_strdup_printf(BENCH_NODE "/%s", client->role);
    g_string_append_printf(text,
                           "{\"v\":1,\"history\":1,\"epoch\":1,\"id\":%" G_GUINT64_FORMAT
                           ",\"from\":\"%s\",\"method\":\"%s\",\"args\":%s}%c",
                           ++client->last, from ? from : own, method, args, FRAME_END);
}

void bench_expect(const char *frame, const char *part)
{
    if (!strstr(frame, part))
        g_error("not answered with %s: %s", part, frame);
}

void bench_call(struct bench_client *client, const GString *frame, const char *part)
{
    bench_send(client, frame->str, frame->len);
    g_autofree char *answer = bench_read(client, 1);
    bench_expect(answer, part);
}

void bench_client_open(struct bench_client *client, const struct bench_daemon *daemon,
                       const char *role)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *client = (struct bench_client){.role = role, .in = g_string_new(NULL)};
    g_snprintf(address.sun_path, sizeof address.sun_path, "%s/run/wconfd.sock", daemon->root);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bench_must(client->fd >= 0 &&
                   connect(client->fd, (struct sockaddr *)&address, sizeof address) == 0,
               "connect");
    g_autoptr(GString) hello = g_string_new(NULL);
    g_string_printf(hello, "{\"hello\":{\"versions\":[1,1],\"from\":\"" BENCH_NODE "/%s\"}}%c",
                    role, FRAME_END);
    bench_call(client, hello, "welcome");
}

void bench_client_close(struct bench_client *client)
{
    close(client->fd);
    g_string_free(client->in, TRUE);
}
