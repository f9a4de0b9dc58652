/*
 * What changes of the configuration cost: the real fettle-wconfd with a real store, prepared frames
 * over its Unix socket (bench_wire.h), in clusters of 1 and 10,000 instances on 40 nodes and of
 * 50,000 on 2,000; and the clients' race with 64, as each needs an instance of its own. A child
 * process stands in for noded: nodes answer announcements, and nothing else. Argument: the program
 * fettle-wconfd; then, if not all are wanted, the numbers of instances. Prints one line a figure:
 * name and value; _1, _64 and _50000 stand behind those of the other clusters.
 *
 *   floor_fdatasync_ms         4 KiB overwritten and synced beside the store, in turn with commits
 *   config_commit_ms           one client: one instance changed by a transaction and answered
 *   config_commit_cpu_us       processor time that the daemon takes for one of these
 *   config_commits_per_s       16 clients, each with one transaction under way
 *   config_commits_cpu_us      processor time of the daemon for one of these
 *   config_fanout_us           from sending a commit until 16 subscribers have read the change
 *   config_fanout_cpu_us       processor time of the daemon for such a commit
 *   delta_bytes                frame that brings it to another candidate
 *   floor_object_bytes         the changed object as JSON
 *   config_load_ms             from the start of the process until it serves
 *   config_load_cpu_ms         processor time until then
 *   wconfd_rss_mb              resident after all that
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_store.h"
#include "bench_wire.h"
#include "io/loop.h"
#include "io/net/connection.h"
#include "io/net/rpc_server.h"
#include "io/net/unix_socket.h"

#define COMMITS 2000 /* one after the other */
#define CLIENTS 16
#define FEW 64    /* instances; enough for all clients */
#define RACE 1500 /* commits of one race of the clients */
#define RACES 3
#define FANOUTS 200
#define DELTAS 20
#define LOADS 3
#define HOLDER "bench" /* lock file of who changes */

/* What is measured at the moment. */
static struct {
    struct bench_store store;
    struct bench_daemon daemon;
    struct bench_client client; /* role luxid */
    const char *suffix;
    guint next;  /* instance whose turn it is */
    guint vcpus; /* so that every change changes something */
    guint id;    /* of the last commit */
} bench;

static void print(const char *name, double value)
{
    printf("%s%s %.2f\n", name, bench.suffix, value);
}

/* --- noded --- */

static bool answer_for_nodes(struct connection *connection, struct envelope *envelope, void *data)
{
    g_autoptr(GError) error = NULL;
    if (strcmp(envelope->method, "announce") != 0)
        fettle_set_error(&error, UNREACHABLE, "there is no such node");
    connection_answer(connection, envelope->id, NULL, error);
    envelope_free(envelope);
    return true;
}

static void never(struct rpc_request *request, void *data)
{
    rpc_fail_new(request, FETTLE_ERROR_INTERNAL, "not here");
}

static pid_t start_nodes(const char *root)
{
    g_autofree char *run = g_build_filename(root, "run", NULL);
    g_autofree char *path = g_build_filename(run, "noded.sock", NULL);
    bench_must(g_mkdir_with_parents(run, 0755) == 0, run);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    loop_init();
    const struct rpc_server_options options = {.path = path,
                                               .role = ROLE_NODED,
                                               .node_uuid = BENCH_NODE,
                                               .handle = never,
                                               .route = answer_for_nodes};
    g_autoptr(GError) error = NULL;
    if (!rpc_server_new(&options, &error))
        g_error("%s", error->message);
    loop_run();
    _exit(0);
}

/* --- changes --- */

static guint64 number_behind(const char *frame, const char *name)
{
    const char *at = strstr(frame, name);
    if (!at)
        g_error("no %s in %s", name, frame);
    return g_ascii_strtoull(at + strlen(name), NULL, 10);
}

static void add_commit(struct bench_client *client, GString *text, const char *kind,
                       const char *key, guint64 version, const char *object)
{
    g_autofree char *args = g_strdup_printf(
        "{\"owner\":{\"job\":\"luxid\",\"livelock\":\"" HOLDER "\",\"pid\":1},\"commit_id\":"
        "\"ffffffff-0000-4000-8000-%012u\",\"changes\":[{\"op\":\"put\",\"kind\":\"%s\",\"key\":"
        "\"%s\",\"version\":%" G_GUINT64_FORMAT ",\"object\":%s}]}",
        ++bench.id, kind, key, version, object);
    bench_add_request(client, text, NULL, "commit", args);
}

/* A change of the next instance in turn, which is far from the one before. */
struct change_text {
    guint number;
    char *key, *object;
};

static struct change_text next_change(void)
{
    guint number = bench.next;
    bench.next = (bench.next + 617) % bench.store.instances;
    bench.vcpus = bench.vcpus % 64 + 1;
    return (struct change_text){number, bench_instance_uuid(number),
                                bench_instance_text(&bench.store, number, bench.vcpus)};
}

static guint send_change(struct bench_client *client, GString *text, struct change_text *change)
{
    add_commit(client, text, "instance", change->key, bench.store.versions[change->number],
               change->object);
    g_free(change->key);
    g_free(change->object);
    return change->number;
}

static guint add_change(struct bench_client *client, GString *text)
{
    struct change_text change = next_change();
    return send_change(client, text, &change);
}

static guint64 read_serial(struct bench_client *client)
{
    g_autofree char *answer = bench_read(client, 1);
    return number_behind(answer, "\"result\":{\"serial\":");
}

static void lock_all_as(const char *mode)
{
    g_autoptr(GString) frame = g_string_new(NULL);
    g_autofree char *args = g_strdup_printf(
        "{\"owner\":{\"job\":\"luxid\",\"livelock\":\"" HOLDER "\",\"pid\":1},\"locks\":[{\"name\":"
        "\"instance/[lockset]\",\"mode\":\"%s\"},{\"name\":\"node/[lockset]\",\"mode\":\"%s\"}],"
        "\"wait\":true,\"wait_ms\":600000}",
        mode, mode);
    bench_add_request(&bench.client, frame, NULL, "update_locks", args);
    bench_call(&bench.client, frame, "\"granted\":true");
}

static void free_all(void)
{
    g_autoptr(GString) frame = g_string_new(NULL);
    bench_add_request(&bench.client, frame, NULL, "free_locks",
                      "{\"owner\":{\"job\":\"luxid\",\"livelock\":\"" HOLDER "\",\"pid\":1}}");
    bench_call(&bench.client, frame, "\"result\"");
}

/* Nodes are shared with nobody before they have answered the announcement, so what comes after this
 * is not measured beside thousands of those. */
static void lock_all(void)
{
    lock_all_as("shared");
    free_all();
    lock_all_as("exclusive");
}

/* --- one client --- */

static void commits(void)
{
    static double times[COMMITS], syncs[COMMITS], cpu[COMMITS];
    g_autofree char *path = g_build_filename(bench.daemon.root, "var", "floor", NULL);
    char page[4096] = "floor";
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bench_must(fd >= 0 && posix_fallocate(fd, 0, COMMITS * (off_t)sizeof page) == 0, path);
    for (guint i = 0; i < COMMITS; i++)
        bench_must(pwrite(fd, page, sizeof page, i * (off_t)sizeof page) == sizeof page, path);
    bench_must(fsync(fd) == 0, path);
    for (guint i = 0; i < COMMITS; i++) {
        g_autoptr(GString) frame = g_string_new(NULL);
        gint64 start = g_get_monotonic_time();
        bench_must(pwrite(fd, page, sizeof page, i * (off_t)sizeof page) == sizeof page &&
                       fdatasync(fd) == 0,
                   path);
        syncs[i] = bench_since_s(start) * 1000;
        guint number = add_change(&bench.client, frame);
        double before = bench_daemon_cpu_us(&bench.daemon);
        start = g_get_monotonic_time();
        bench_send(&bench.client, frame->str, frame->len);
        guint64 serial = read_serial(&bench.client);
        times[i] = bench_since_s(start) * 1000;
        cpu[i] = bench_daemon_cpu_us(&bench.daemon) - before;
        bench_store_changed(&bench.store, number, serial);
    }
    close(fd);
    print("floor_fdatasync_ms", bench_median(syncs, COMMITS));
    print("config_commit_ms", bench_median(times, COMMITS));
    print("config_commit_cpu_us", bench_median(cpu, COMMITS));
}

/* --- 16 clients --- */

struct racer {
    struct bench_client client;
    guint number; /* instance that it changes; its own */
    GString *frame;
};

static void racer_go(struct racer *racer, struct change_text *change)
{
    racer->number = send_change(&racer->client, g_string_truncate(racer->frame, 0), change);
    bench_send(&racer->client, racer->frame->str, racer->frame->len);
}

/* The objects are made before: what is measured is the daemon. */
static double race(struct racer *racers, guint clients)
{
    static struct change_text changes[RACE];
    struct pollfd fds[CLIENTS];
    guint under_way = 0, started = 0;
    for (guint i = 0; i < RACE; i++)
        changes[i] = next_change();
    for (guint i = 0; i < clients; i++)
        fds[i] = (struct pollfd){.fd = racers[i].client.fd, .events = POLLIN};
    gint64 start = g_get_monotonic_time();
    for (; under_way < clients; under_way++, started++)
        racer_go(&racers[under_way], &changes[started]);
    while (under_way > 0) {
        bench_must(poll(fds, clients, 60000) > 0, "poll");
        for (guint i = 0; i < clients; i++) {
            if (!(fds[i].revents & POLLIN))
                continue;
            bench_store_changed(&bench.store, racers[i].number, read_serial(&racers[i].client));
            under_way--;
            if (started == RACE)
                continue;
            racer_go(&racers[i], &changes[started]);
            started++;
            under_way++;
        }
    }
    return RACE / bench_since_s(start);
}

/* With one instance only one change can be under way. */
static void races(void)
{
    struct racer racers[CLIENTS];
    double rates[RACES];
    if (bench.store.instances < CLIENTS)
        return;
    for (guint i = 0; i < CLIENTS; i++) {
        bench_client_open(&racers[i].client, &bench.daemon, "luxid");
        racers[i].frame = g_string_new(NULL);
    }
    double cpu = -bench_daemon_cpu_us(&bench.daemon);
    for (guint i = 0; i < RACES; i++)
        rates[i] = race(racers, CLIENTS);
    cpu += bench_daemon_cpu_us(&bench.daemon);
    for (guint i = 0; i < CLIENTS; i++) {
        bench_client_close(&racers[i].client);
        g_string_free(racers[i].frame, TRUE);
    }
    print("config_commits_per_s", bench_median(rates, RACES));
    print("config_commits_cpu_us", cpu / (RACES * RACE));
}

/* --- subscribers and candidates --- */

static void listen_on(struct bench_client *client)
{
    g_autoptr(GString) frame = g_string_new(NULL);
    g_autofree char *args = g_strdup_printf(
        "{\"history\":1,\"serial\":%" G_GUINT64_FORMAT ",\"wait_ms\":60000}", bench.store.serial);
    bench_add_request(client, frame, NULL, "wait_changes", args);
    bench_send(client, frame->str, frame->len);
}

static void one_fanout(struct bench_client *listeners, double *ret_us, double *ret_cpu)
{
    g_autoptr(GString) frame = g_string_new(NULL);
    guint number = add_change(&bench.client, frame);
    for (guint i = 0; i < CLIENTS; i++)
        listen_on(&listeners[i]);
    g_usleep(500); /* they wait by now, and the daemon sleeps */
    double before = bench_daemon_cpu_us(&bench.daemon);
    gint64 start = g_get_monotonic_time();
    bench_send(&bench.client, frame->str, frame->len);
    for (guint i = 0; i < CLIENTS; i++) {
        g_autofree char *answer = bench_read(&listeners[i], 1);
        bench_expect(answer, "\"kind\":\"instance\"");
    }
    *ret_us = bench_since_s(start) * 1e6;
    bench_store_changed(&bench.store, number, read_serial(&bench.client));
    *ret_cpu = bench_daemon_cpu_us(&bench.daemon) - before;
}

static void fanouts(void)
{
    struct bench_client listeners[CLIENTS];
    double times[FANOUTS], cpu[FANOUTS];
    for (guint i = 0; i < CLIENTS; i++)
        bench_client_open(&listeners[i], &bench.daemon, "luxid");
    for (guint i = 0; i < FANOUTS; i++)
        one_fanout(listeners, &times[i], &cpu[i]);
    for (guint i = 0; i < CLIENTS; i++)
        bench_client_close(&listeners[i]);
    print("config_fanout_us", bench_median(times, FANOUTS));
    print("config_fanout_cpu_us", bench_median(cpu, FANOUTS));
}

static void follow(struct bench_client *noded, const char *from)
{
    g_autoptr(GString) frame = g_string_new(NULL);
    g_autofree char *args =
        g_strdup_printf("{\"history\":1,\"serial\":%" G_GUINT64_FORMAT
                        ",\"digest\":\"%" G_GINT64_MODIFIER "x\",\"wait_ms\":60000}",
                        bench.store.serial, bench.store.digest);
    bench_add_request(noded, frame, from, "follow", args);
    bench_send(noded, frame->str, frame->len);
}

static double one_delta(struct bench_client *noded, const char *from)
{
    g_autoptr(GString) frame = g_string_new(NULL);
    guint number = add_change(&bench.client, frame);
    bench_send(&bench.client, frame->str, frame->len);
    g_autofree char *delta = bench_read(noded, 1);
    bench_expect(delta, "\"snapshot\":false");
    bench_expect(delta, "\"kind\":\"instance\"");
    bench_store_changed(&bench.store, number, number_behind(delta, "\"serial\":"));
    follow(noded, from); /* which acknowledges it, so that the commit is answered */
    bench_store_changed(&bench.store, number, read_serial(&bench.client));
    return (double)strlen(delta) + 1;
}

/* Node 1 becomes a candidate, and follows as its wconfd would, through noded. */
static void deltas(void)
{
    double sizes[DELTAS];
    struct bench_client noded;
    g_autoptr(GString) frame = g_string_new(NULL);
    g_autofree char *uuid = bench_node_uuid(1), *from = g_strconcat(uuid, "/wconfd", NULL);
    g_autofree char *candidate = bench_candidate_text();
    g_autofree char *object = bench_instance_text(&bench.store, 0, 1);
    add_commit(&bench.client, frame, "node", uuid, bench.store.node_version, candidate);
    bench_send(&bench.client, frame->str, frame->len);
    bench_store_node_changed(&bench.store, read_serial(&bench.client));
    bench_client_open(&noded, &bench.daemon, "noded");
    follow(&noded, from);
    g_autofree char *epoch = bench_read(&noded, 1); /* under which it follows is told at once */
    bench_expect(epoch, "\"snapshot\":false");
    follow(&noded, from);
    for (guint i = 0; i < DELTAS; i++)
        sizes[i] = one_delta(&noded, from);
    bench_client_close(&noded);
    print("delta_bytes", bench_median(sizes, DELTAS));
    print("floor_object_bytes", (double)strlen(object));
}

/* --- the whole --- */

static void loads(const char *program, char *root)
{
    double times[LOADS], cpu[LOADS];
    guint count = bench.store.instances > 10000 ? 1 : LOADS; /* seconds each */
    for (guint i = 0; i < count; i++) {
        bench_daemon_start(&bench.daemon, program, root);
        times[i] = bench.daemon.ready_ms;
        cpu[i] = bench_daemon_cpu_us(&bench.daemon) / 1000;
        if (i + 1 < count)
            bench_daemon_stop(&bench.daemon);
    }
    print("config_load_ms", bench_median(times, count));
    print("config_load_cpu_ms", bench_median(cpu, count));
}

static void changes(void)
{
    commits();
    races();
    fanouts();
    print("wconfd_rss_mb", bench_daemon_resident_mb(&bench.daemon));
    deltas();
}

static void measure(const char *program, guint nodes, guint instances)
{
    bool few = instances == FEW;
    char *root = bench_root_new();
    g_autofree char *path = g_build_filename(root, "var", "store.db", NULL);
    bench_store_make(&bench.store, path, nodes, instances);
    pid_t noded = start_nodes(root);
    if (few)
        bench_daemon_start(&bench.daemon, program, root);
    else
        loads(program, root);
    bench_livelock_take(&bench.daemon, HOLDER);
    bench_client_open(&bench.client, &bench.daemon, "luxid");
    lock_all();
    if (few)
        races();
    else
        changes();
    bench_client_close(&bench.client);
    bench_daemon_stop(&bench.daemon);
    kill(noded, SIGTERM);
    waitpid(noded, NULL, 0);
    bench_store_clear(&bench.store);
    bench_root_free(root);
}

static const struct {
    guint instances, nodes;
    const char *suffix;
} clusters[] = {{1, 40, "_1"}, {FEW, 40, "_64"}, {10000, 40, ""}, {50000, 2000, "_50000"}};

static bool is_wanted(int argc, char **argv, guint instances)
{
    for (int i = 2; i < argc; i++)
        if (g_ascii_strtoull(argv[i], NULL, 10) == instances)
            return true;
    return argc == 2;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        g_error("usage: bench_config FETTLE-WCONFD [INSTANCES...]");
    for (guint i = 0; i < G_N_ELEMENTS(clusters); i++) {
        if (!is_wanted(argc, argv, clusters[i].instances))
            continue;
        bench.suffix = clusters[i].suffix;
        bench.next = 0;
        measure(argv[1], clusters[i].nodes, clusters[i].instances);
    }
    return 0;
}
