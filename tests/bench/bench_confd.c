/*
 * What one question to ConfD costs, from the datagram to the verified answer, over the loopback
 * interface, at so many instances; beside it the floor: the same datagrams to a process that only
 * sends them back. Both are measured twice: wherever the machine puts the two processes ("apart":
 * to wake another processor, of a virtual machine above all, may take longer than the whole
 * question), and on one processor, which is what a question costs. `bench_confd FETTLE-RCONFD
 * INSTANCES` prints "name value" lines, medians.
 */
#include "core/confd/copy.h"
#include "io/loop.h"
#include "io/net/confd_client.h"
#include "io/net/udp.h"
#include "io/sqlite/sqlite_engine.h"
#include "proto/change.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES 40
#define ROUNDS 5000
#define PORT 18140
#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define GROUP "99999999-0000-4000-8000-000000000001"
#define KEY "00112233445566778899aabbccddeeff"

static guint instances;

static char *uuid_of(char kind, guint number)
{
    return g_strdup_printf("%c0000000-0000-4000-8000-%012u", kind, number);
}

static void add(GPtrArray *changes, const char *kind, const char *key, json_t *object)
{
    g_ptr_array_add(changes, change_make(CHANGE_PUT, kind, key, 1, object));
}

static void add_instance(GPtrArray *changes, guint i)
{
    g_autofree char *uuid = uuid_of('b', i), *name = g_strdup_printf("web%u", i);
    g_autofree char *first = uuid_of('a', i % NODES), *second = uuid_of('a', (i + 7) % NODES);
    g_autofree char *disk = uuid_of('d', i), *nic = uuid_of('e', i);
    g_autofree char *mac =
        g_strdup_printf("aa:00:00:%02x:%02x:%02x", i >> 16, (i >> 8) & 255, i & 255);
    g_autofree char *ip = g_strdup_printf("10.0.%u.%u", i / 250, i % 250);
    add(changes, "instance", uuid,
        json_make("{ss ss ss si ss ss ss s[{ss si}] s[{ss ss ss ss}]}", "uuid", uuid, "name", name,
                  "disk_template", "mirror", "memory", 512, "primary_node", first, "secondary_node",
                  second, "admin_state", "up", "disks", "uuid", disk, "size", 10240, "nics", "uuid",
                  nic, "mac", mac, "link", "br0", "ip", ip));
}

static void make_store(const char *path)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *master = uuid_of('a', 0);
    add(changes, "cluster", CLUSTER,
        json_make("{ss ss ss}", "uuid", CLUSTER, "name", "bench", "master_node", master));
    add(changes, "nodegroup", GROUP, json_make("{ss ss}", "uuid", GROUP, "name", "default"));
    add(changes, "secret", "confd", json_make("{ss}", "value", KEY));
    for (guint i = 0; i < NODES; i++) {
        g_autofree char *uuid = uuid_of('a', i), *name = g_strdup_printf("node%u", i);
        add(changes, "node", uuid,
            json_make("{ss ss ss ss}", "uuid", uuid, "name", name, "primary_ip", "127.0.0.1",
                      "group", GROUP));
    }
    for (guint i = 0; i < instances; i++)
        add_instance(changes, i);
    if (!sqlite_engine_create(path, 1, changes, &error))
        g_error("%s", error->message);
}

static char *make_root(void)
{
    char *root = g_dir_make_tmp("bench-confd-XXXXXX", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(node_paths_t) paths = node_paths_new(root, &error);
    record_autoptr(node_config) config = node_config_new();
    g_free(config->node_uuid);
    config->node_uuid = uuid_of('a', 0);
    g_free(config->cluster_uuid);
    config->cluster_uuid = g_strdup(CLUSTER);
    g_free(config->name);
    config->name = g_strdup("node0");
    g_free(config->address);
    config->address = g_strdup("127.0.0.1");
    config->confd_port = PORT;
    if (!paths || !node_paths_make(paths, &error) || !node_config_write(paths, config, &error))
        g_error("%s", error->message);
    g_autofree char *store = g_build_filename(paths->var, "store.db", NULL);
    make_store(store);
    return root;
}

/* --- measuring --- */

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static ssize_t wait_reply(int fd, char *buffer)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    if (poll(&one, 1, 2000) != 1)
        g_error("no answer");
    return recv(fd, buffer, LIMIT_CONFD_REPLY_BYTES, 0);
}

static double one_question(int fd, const struct confd_key *key, json_t *query, char *buffer,
                           bool verify)
{
    size_t len;
    enum confd_fault fault;
    struct confd_reply reply = {0};
    gint64 begun = g_get_monotonic_time();
    g_autofree char *datagram = confd_request_seal(
        key, loop_wall_us() / G_USEC_PER_SEC, CONFD_TYPE_node_by_instance_ip, query, "bench", &len);
    if (send(fd, datagram, len, 0) < 0)
        g_error("cannot send");
    ssize_t got = wait_reply(fd, buffer);
    if (verify && (!confd_reply_open(key, buffer, (size_t)got, "bench", &reply, &fault) ||
                   reply.status != CONFD_OK))
        g_error("a wrong answer");
    json_decref(reply.answer);
    return (double)(g_get_monotonic_time() - begun);
}

static double median(guint port, bool verify)
{
    static double times[ROUNDS];
    g_autoptr(confd_key_t) key = confd_key_new(KEY, strlen(KEY));
    g_autofree char *buffer = g_malloc(LIMIT_CONFD_REPLY_BYTES);
    int fd = udp_dial("127.0.0.1", port, NULL);
    for (guint i = 0; i < ROUNDS; i++) {
        guint asked = i % instances;
        g_autofree char *ip = g_strdup_printf("10.0.%u.%u", asked / 250, asked % 250);
        json_autoptr query = json_make("{ss}", "1", ip);
        times[i] = one_question(fd, key, query, buffer, verify);
    }
    close(fd);
    qsort(times, ROUNDS, sizeof times[0], compare);
    return times[ROUNDS / 2];
}

static char *echo(const char *data, size_t len, size_t *ret_len, void *user)
{
    *ret_len = len;
    return g_memdup2(data, len);
}

static double floor_us(void)
{
    const struct udp_options options = {"127.0.0.1", PORT + 1, LIMIT_CONFD_REQUEST_BYTES, echo,
                                        NULL};
    pid_t pid = fork();
    if (pid == 0) {
        loop_init();
        if (udp_server_new(&options, NULL))
            loop_run();
        _exit(0);
    }
    g_usleep(300000);
    double us = median(PORT + 1, false);
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    return us;
}

/* This process, its children to come and the daemon on the processor that this one is on. */
static void together(pid_t daemon)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0 ||
        sched_setaffinity(daemon, sizeof one, &one) != 0)
        g_error("cannot keep processes on one processor");
}

static void measure(const char *suffix)
{
    printf("floor_udp_us%s %.1f\n", suffix, floor_us());
    printf("confd_us%s %.1f\n", suffix, median(PORT, true));
}

static double resident_mb(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", (int)pid), *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return 0;
    const char *line = strstr(text, "VmRSS:");
    return line ? g_ascii_strtod(line + 6, NULL) / 1024 : 0;
}

static void wait_ready(const char *root)
{
    g_autofree char *key = g_build_filename(root, "var", "confd.key", NULL);
    for (guint i = 0; i < 300 && !g_file_test(key, G_FILE_TEST_EXISTS); i++)
        g_usleep(100000);
}

int main(int argc, char **argv)
{
    instances = argc == 3 ? (guint)g_ascii_strtoull(argv[2], NULL, 10) : 0;
    if (instances == 0) {
        fprintf(stderr, "usage: bench_confd FETTLE-RCONFD INSTANCES\n");
        return 2;
    }
    g_autofree char *root = make_root();
    char *command[] = {argv[1], "--root", root, NULL};
    GPid pid;
    if (!g_spawn_async(NULL, command, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, NULL))
        g_error("cannot start %s", argv[1]);
    wait_ready(root);
    measure("_apart");
    together(pid);
    measure("");
    printf("rconfd_rss_mb %.1f\n", resident_mb(pid));
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
    g_autofree char *clean = g_strdup_printf("rm -rf '%s'", root);
    return system(clean) == 0 ? 0 : 1;
}
