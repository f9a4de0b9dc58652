/*
 * How fast wconfd grants locks: the real daemon over its Unix socket, prepared frames on the
 * client's side so that almost all that is measured is the daemon. Argument: the program
 * fettle-wconfd. Prints one line a figure: name and value. scripts/bench shows them beside the
 * others. A pair is an exclusive lock taken and released by two calls; the floor is the call
 * `ping` on the same connection, measured in turn with the pairs.
 *
 *   floor_ping_per_s              one call after the other
 *   floor_ping_pipelined_per_s    many in flight
 *   lock_pairs_per_s              one client, one call after the other
 *   lock_pairs_pipelined_per_s    one client, many calls in flight
 *   lock_pair_pipelined_cpu_us    processor time that the daemon takes for one of those pairs;
 * unlike the others it does not depend on what else the machine does
 *   ..._1000_held                 the same while 1,000 other locks are held
 *   wait_grant_us                 from sending the release to having read the waiter's grant
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <gio/gio.h>

#include "io/real_env.h"
#include "proto/frame.h"

#define NODE "11111111-1111-4111-8111-111111111111"
#define CLUSTER "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
#define INIT                                                                                       \
    "{\"OP_ID\":\"OP_CLUSTER_INIT\",\"cluster_name\":\"c1\",\"node_name\":\"node1\","              \
    "\"primary_ip\":\"127.0.0.1\"}"

#define ROUNDS 5        /* of each figure; the median counts */
#define CALLS 2000      /* of one round, one after the other */
#define PIPELINED 20000 /* of one round, in flight */
#define WINDOW 2000     /* of them at once */
#define GRANTS 200

/* --- the daemon --- */

static char *root;
static GSubprocess *daemon_process;

static void must(bool ok, const char *what)
{
    if (!ok)
        g_error("%s: %s", what, g_strerror(errno));
}

static void start_daemon(const char *program)
{
    g_autoptr(GError) error = NULL;
    root = g_dir_make_tmp("bench-locks-XXXXXX", &error);
    must(root != NULL, "temporary folder");
    g_autofree char *etc = g_build_filename(root, "etc", NULL);
    g_autofree char *node = g_build_filename(etc, "node.json", NULL);
    g_autofree char *ready = g_build_filename(root, "run/wconfd.ready", NULL);
    must(g_mkdir_with_parents(etc, 0755) == 0, etc);
    must(g_file_set_contents(node,
                             "{\"node_uuid\":\"" NODE "\",\"name\":\"node1\",\"cluster_uuid\":"
                             "\"" CLUSTER "\",\"address\":\"127.0.0.1\"}",
                             -1, NULL),
         node);
    g_autoptr(GSubprocess) first = g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE, &error, program,
                                                    "--root", root, "--bootstrap", NULL);
    must(first && g_subprocess_communicate_utf8(first, INIT, NULL, NULL, NULL, &error) &&
             g_subprocess_get_successful(first),
         "bootstrap");
    daemon_process =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDERR_SILENCE, &error, program, "--root", root, NULL);
    must(daemon_process != NULL, program);
    for (guint i = 0; i < 5000 && !g_file_test(ready, G_FILE_TEST_EXISTS); i++)
        g_usleep(2000);
    must(g_file_test(ready, G_FILE_TEST_EXISTS), "the daemon is not ready");
}

static void stop_daemon(void)
{
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", root);
    g_subprocess_send_signal(daemon_process, SIGTERM);
    g_subprocess_wait(daemon_process, NULL, NULL);
    g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL);
}

/* --- a client --- */

struct client {
    int fd;
    char *livelock;
    GString *in;  /* what was read and not looked at */
    guint64 last; /* id of the last request */
};

static void send_all(struct client *client, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = write(client->fd, text, len);
        must(sent > 0, "write");
        text += sent;
        len -= (size_t)sent;
    }
}

/* Reads until so many frames have come; the last of them (for its text). */
static char *read_frames(struct client *client, guint count)
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
        must(got > 0, "read");
        g_string_append_len(client->in, buffer, got);
    }
}

static void add_request(struct client *client, GString *text, const char *method, const char *args)
{
    g_string_append_printf(text,
                           "{\"v\":1,\"history\":1,\"epoch\":1,\"id\":%" G_GUINT64_FORMAT
                           ",\"from\":\"" NODE "/luxid\",\"method\":\"%s\",\"args\":%s}%c",
                           ++client->last, method, args, FRAME_END);
}

static void add_update(struct client *client, GString *text, const char *name, const char *mode,
                       bool wait)
{
    g_autofree char *args = g_strdup_printf(
        "{\"owner\":{\"job\":\"luxid\",\"livelock\":\"%s\",\"pid\":1},\"locks\":[{\"name\":\"%s\","
        "\"mode\":\"%s\"}]%s}",
        client->livelock, name, mode, wait ? ",\"wait\":true" : "");
    add_request(client, text, "update_locks", args);
}

static void expect(const char *frame, const char *part)
{
    if (!strstr(frame, part))
        g_error("not answered with %s: %s", part, frame);
}

static void call(struct client *client, const GString *frame, const char *part)
{
    send_all(client, frame->str, frame->len);
    g_autofree char *answer = read_frames(client, 1);
    expect(answer, part);
}

static void client_open(struct client *client, struct env *env)
{
    g_autoptr(GError) error = NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *client = (struct client){.in = g_string_new(NULL)};
    g_snprintf(address.sun_path, sizeof address.sun_path, "%s/run/wconfd.sock", root);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(client->fd >= 0 && connect(client->fd, (struct sockaddr *)&address, sizeof address) == 0,
         "connect");
    client->livelock = env->ops->livelock_make(env, "luxid", &error);
    must(client->livelock != NULL, "lock file");
    g_autoptr(GString) hello = g_string_new(NULL);
    g_string_printf(hello, "{\"hello\":{\"versions\":[1,1],\"from\":\"" NODE "/luxid\"}}%c",
                    FRAME_END);
    call(client, hello, "welcome");
}

static void client_close(struct client *client)
{
    close(client->fd);
    g_free(client->livelock);
    g_string_free(client->in, TRUE);
}

/* --- figures --- */

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static double median(double *values, guint count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

static double since(gint64 start_us)
{
    return (double)(g_get_monotonic_time() - start_us) / G_USEC_PER_SEC;
}

/* One request after the other, `texts` in turn. */
static double one_by_one(struct client *client, GString *const *texts, guint kinds)
{
    gint64 start = g_get_monotonic_time();
    for (guint i = 0; i < CALLS; i++)
        call(client, texts[i % kinds], i % kinds ? "\"granted\":true" : "\"result\"");
    return CALLS / kinds / since(start);
}

/* A window of requests in one write, then their answers. */
static double in_flight(struct client *client, GString *const *texts, guint kinds)
{
    g_autoptr(GString) window = g_string_new(NULL);
    for (guint i = 0; i < WINDOW; i++)
        g_string_append_len(window, texts[i % kinds]->str, (gssize)texts[i % kinds]->len);
    gint64 start = g_get_monotonic_time();
    send_all(client, window->str, window->len);
    for (guint sent = WINDOW; sent < PIPELINED; sent += WINDOW) {
        g_autofree char *last = read_frames(client, WINDOW / 2);
        send_all(client, window->str, window->len);
        g_autofree char *end = read_frames(client, WINDOW / 2);
        expect(end, "\"result\"");
    }
    g_autofree char *end = read_frames(client, WINDOW);
    expect(end, "\"result\"");
    return PIPELINED / kinds / since(start);
}

/* Processor time of the daemon so far. */
static double daemon_cpu_us(void)
{
    clockid_t clock;
    struct timespec used;
    const char *pid = g_subprocess_get_identifier(daemon_process);
    must(clock_getcpuclockid((pid_t)atoi(pid), &clock) == 0 && clock_gettime(clock, &used) == 0,
         "the daemon's clock");
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

static void measure(struct client *client, const char *suffix)
{
    GString *ping = g_string_new(NULL), *take = g_string_new(NULL), *drop = g_string_new(NULL);
    GString *const pings[] = {ping}, *const pair[] = {take, drop};
    double floors[ROUNDS], pairs[ROUNDS], floors_piped[ROUNDS], piped[ROUNDS], cpu[ROUNDS];
    add_request(client, ping, "ping", "{}");
    add_update(client, take, "instance/web1", "exclusive", false);
    add_update(client, drop, "instance/web1", "release", false);
    for (guint i = 0; i < ROUNDS; i++) {
        floors[i] = one_by_one(client, pings, 1);
        pairs[i] = one_by_one(client, pair, 2);
        floors_piped[i] = in_flight(client, pings, 1);
        double before = daemon_cpu_us();
        piped[i] = in_flight(client, pair, 2);
        cpu[i] = (daemon_cpu_us() - before) / (PIPELINED / 2.0);
    }
    printf("floor_ping_per_s%s %.0f\n", suffix, median(floors, ROUNDS));
    printf("floor_ping_pipelined_per_s%s %.0f\n", suffix, median(floors_piped, ROUNDS));
    printf("lock_pairs_per_s%s %.0f\n", suffix, median(pairs, ROUNDS));
    printf("lock_pairs_pipelined_per_s%s %.0f\n", suffix, median(piped, ROUNDS));
    printf("lock_pair_pipelined_cpu_us%s %.1f\n", suffix, median(cpu, ROUNDS));
    g_string_free(ping, TRUE);
    g_string_free(take, TRUE);
    g_string_free(drop, TRUE);
}

static void hold_many(struct client *client, guint count)
{
    g_autoptr(GString) args = g_string_new(NULL), frame = g_string_new(NULL);
    g_string_printf(args,
                    "{\"owner\":{\"job\":\"luxid\",\"livelock\":\"%s\",\"pid\":1},\"locks\":[",
                    client->livelock);
    for (guint i = 0; i < count; i++)
        g_string_append_printf(args, "%s{\"name\":\"instance/held%u\",\"mode\":\"exclusive\"}",
                               i ? "," : "", i);
    g_string_append(args, "]}");
    add_request(client, frame, "update_locks", args->str);
    call(client, frame, "\"granted\":true");
}

static void grants(struct client *holder, struct client *waiter)
{
    double times[GRANTS];
    g_autoptr(GString) take = g_string_new(NULL), drop = g_string_new(NULL);
    g_autoptr(GString) wait = g_string_new(NULL), leave = g_string_new(NULL);
    add_update(holder, take, "instance/wanted", "exclusive", false);
    add_update(holder, drop, "instance/wanted", "release", false);
    add_update(waiter, wait, "instance/wanted", "exclusive", true);
    add_update(waiter, leave, "instance/wanted", "release", false);
    for (guint i = 0; i < GRANTS; i++) {
        call(holder, take, "\"granted\":true");
        send_all(waiter, wait->str, wait->len);
        g_usleep(500); /* it waits by now, and the daemon sleeps */
        gint64 start = g_get_monotonic_time();
        send_all(holder, drop->str, drop->len);
        g_autofree char *granted = read_frames(waiter, 1);
        times[i] = since(start) * 1e6;
        expect(granted, "\"granted\":true");
        g_autofree char *released = read_frames(holder, 1);
        call(waiter, leave, "\"granted\":true");
    }
    printf("wait_grant_us %.0f\n", median(times, GRANTS));
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    struct client client, other;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 2)
        g_error("usage: bench_locks FETTLE-WCONFD");
    start_daemon(argv[1]);
    struct env *env = real_env_new(root, ROLE_LUXID, NULL, &error);
    must(env != NULL, "environment");
    client_open(&client, env);
    client_open(&other, env);
    measure(&client, "");
    grants(&client, &other);
    hold_many(&other, 1000);
    measure(&client, "_1000_held");
    client_close(&client);
    client_close(&other);
    real_env_free(env);
    stop_daemon();
    return 0;
}
