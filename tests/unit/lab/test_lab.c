/*
 * The lab itself, with small shell scripts as daemons: power cuts lose exactly what was not synced,
 * cables carry or do not, daemons come back, and nothing is left after any end. Needs root; skipped
 * without.
 */
#include "look.h"

#include "base/error.h"
#include "lab/lab.h"
#include "lab/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_US 5000
#define KILL_ROUNDS 12
#define KILL_WITHIN_US 200000 /* about as long as lab_up() takes */
#define SILENT_TRIES 40       /* the first is heard at once where there is a cable */
#define PORT 4711
#define NOBODY 65534
#define SILENCE "nothing was heard"

/* A daemon that leaves an orphan behind, tells its environment, and is ready. */
static const char SCRIPT[] = "(sleep 1000 & echo $! >$FETTLE_ROOT/run/orphan)\n"
                             "echo \"$LAB_TEST\" >$FETTLE_ROOT/run/said\n"
                             "echo started\n"
                             "touch $FETTLE_ROOT/run/dummy.ready\n"
                             "exec sleep 1000\n";
static const char *const COMMAND[] = {"sh", "-c", SCRIPT, NULL};
static const char MASTER_SCRIPT[] = "touch $FETTLE_ROOT/run/chief.ready; exec sleep 1000";
static const char *const MASTER_COMMAND[] = {"sh", "-c", MASTER_SCRIPT, NULL};
static const struct lab_daemon DAEMONS[] = {
    {"dummy", COMMAND, false}, {"chief", MASTER_COMMAND, true}, {NULL, NULL, false}};

static char *base; /* folder of all labs of this run */

static char *new_lab(const char *name)
{
    g_autofree char *dir = g_build_filename(base, name, NULL);
    struct lab_options options = {.dir = dir,
                                  .nodes = 2,
                                  .root_mib = 32,
                                  .disks_mib = 32,
                                  .no_identity = true,
                                  .daemons = DAEMONS};
    check(lab_up(&options, &check_error));
    return g_steal_pointer(&dir);
}

static void down(const char *dir)
{
    check(lab_down(dir, &check_error));
}

/* --- tests --- */

static void test_refusals(void)
{
    g_autofree char *dir = g_build_filename(base, "refused", NULL);
    g_autofree char *file = g_build_filename(dir, "letter", NULL);
    g_autofree char *inner = g_build_filename(dir, "inner", NULL);
    g_autofree char *far =
        g_build_filename(base, "a-name-that-is-longer-than-a-socket-may-be", NULL);
    struct lab_options options = {.dir = dir, .no_identity = true, .daemons = DAEMONS};
    g_assert_cmpint(mkdir(dir, 0755), ==, 0);
    g_assert_true(g_file_set_contents(file, "mine", -1, NULL));
    check_fails(lab_up(&options, &check_error), WRONG_INPUT, "is not empty and no lab");
    check_fails(lab_down(dir, &check_error), WRONG_INPUT, "nothing was removed");
    g_assert_true(g_file_test(file, G_FILE_TEST_EXISTS));
    check_fails(lab_power(dir, "node1", false, &check_error), UNKNOWN_ENTITY, "there is no lab in");
    options.dir = far;
    check_fails(lab_up(&options, &check_error), WRONG_INPUT, "names of sockets below it");
    options.dir = "/";
    check_fails(lab_up(&options, &check_error), WRONG_INPUT, "cannot be in the folder /");
    options.dir = dir;
    options.nodes = 1000;
    check_fails(lab_up(&options, &check_error), WRONG_INPUT, "at most 32 nodes, not 1000");
    options.nodes = 1;
    options.disks_mib = 1;
    check_fails(lab_up(&options, &check_error), WRONG_INPUT, "at least 16 MiB");
    g_assert_cmpint(unlink(file), ==, 0);
    options.disks_mib = 0;
    options.dir = inner;
    g_assert_cmpint(chmod(dir, 0700), ==, 0);
    check_fails(lab_up(&options, &check_error), WRONG_INPUT, "may not pass through");
    g_assert_false(g_file_test(inner, G_FILE_TEST_EXISTS));
    g_assert_cmpint(rmdir(dir), ==, 0);
    down(dir); /* a missing folder is nothing to complain about */
}

static void check_command_fails(const char *socket, json_t *command, enum fettle_error code,
                                const char *message)
{
    g_autoptr(GError) error = NULL;
    json_autoptr owned = command;
    g_assert_null(wire_call(socket, owned, &error));
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_bad_commands(void)
{
    g_autofree char *dir = new_lab("wire");
    g_autofree char *socket = g_build_filename(dir, "lab.sock", NULL);
    check_command_fails(socket, json_make("{s:s}", "do", "dance"), FETTLE_ERROR_WRONG_INPUT,
                        "do: the supervisor knows no command dance");
    check_command_fails(socket, json_make("[]"), FETTLE_ERROR_WRONG_INPUT,
                        "do: the supervisor knows no command without a name");
    check_command_fails(socket, json_make("{s:s}", "do", "power"), FETTLE_ERROR_UNKNOWN_ENTITY,
                        "no node without a name in this lab; it has node1 to node2");
    check_command_fails(socket,
                        json_make("{s:s, s:s, s:i}", "do", "power", "node", "node1", "on", 1),
                        FETTLE_ERROR_WRONG_INPUT, "on: must be true or false");
    check_command_fails(
        socket,
        json_make("{s:s, s:s, s:s}", "do", "signal", "daemon", "dummy@node1", "signal", "tickle"),
        FETTLE_ERROR_WRONG_INPUT, "signal: must be kill, pause or resume");
    check_command_fails(socket,
                        json_make("{s:s, s:s, s:[s]}", "do", "restart_with", "daemon",
                                  "dummy@node1", "variables", "LAB_TEST"),
                        FETTLE_ERROR_WRONG_INPUT, "variables[0]: must be NAME=value");
    check(lab_wait_ready(dir, NULL, PATIENCE_MS, &check_error)); /* it lives */
    down(dir);
}

static void test_occupied_name(void)
{
    g_autofree char *dir = g_build_filename(base, "taken", NULL);
    g_autofree char *netns = lab_node_netns(dir, "node2");
    g_autofree char *add = g_strdup_printf("ip netns add %s", netns);
    struct lab_options options = {.dir = dir, .no_identity = true, .daemons = DAEMONS};
    g_assert_cmpint(system(add), ==, 0);
    check_fails(lab_up(&options, &check_error), ENVIRONMENT, netns);
    g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
    down(dir); /* it has the name of a lab there, so it goes */
    look_no_trace(dir);
}

static void test_no_root(void)
{
    g_autofree char *dir = g_build_filename(base, "common", NULL);
    struct lab_options options = {.dir = dir, .no_identity = true, .daemons = DAEMONS};
    g_assert_cmpint(seteuid(NOBODY), ==, 0);
    g_autoptr(GError) up_error = NULL, down_error = NULL, power_error = NULL;
    bool up = lab_up(&options, &up_error), gone = lab_down(dir, &down_error);
    bool power = lab_power(dir, "node1", false, &power_error);
    g_assert_cmpint(seteuid(0), ==, 0);
    g_assert_false(up || gone || power);
    g_assert_error(up_error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_error(down_error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_error(power_error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_true(g_str_has_suffix(up_error->message, "run it as root"));
}

static void test_missing_program(void)
{
    g_autofree char *dir = g_build_filename(base, "poor", NULL);
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    struct lab_options options = {.dir = dir, .no_identity = true, .daemons = DAEMONS};
    g_setenv("PATH", base, TRUE);
    check_fails(lab_up(&options, &check_error), ENVIRONMENT, "apt-get install iproute2");
    g_setenv("PATH", path, TRUE);
    g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
}

static void test_power_cut(void)
{
    g_autofree char *dir = new_lab("power");
    g_autofree char *boot = look_node_text(dir, 1, "boot_id");
    int synced = look_open_new(dir, "node2", "var/synced");
    int unsynced = look_open_new(dir, "node2", "var/unsynced");
    int image = look_open_new(dir, "node2", "var/disks/image");
    look_write_text(unsynced, "old", true);
    look_write_text(image, "old", true);
    look_write_text(synced, "kept", true);
    look_write_text(unsynced, "new", false);
    look_write_text(image, "new", false);
    close(synced);
    close(unsynced);
    close(image);
    close(look_open_new(dir, "node2", "run/memory"));
    int orphan = look_hold_process(dir, "node2", "run/orphan");

    check(lab_power(dir, "node2", false, &check_error));
    g_assert_true(look_has_ended(orphan));
    close(orphan);
    g_autofree char *nothing = look_content(dir, "node2", "var/synced");
    g_assert_null(nothing);
    check(lab_power(dir, "node2", false, &check_error)); /* off already */
    check_fails(lab_signal(dir, "dummy@node2", LAB_KILL, &check_error), WRONG_STATE, "no power");
    check_fails(lab_disk_fill(dir, "node2", 1, &check_error), WRONG_STATE, "no power");

    check(lab_power(dir, "node2", true, &check_error));
    check(lab_wait_ready(dir, NULL, PATIENCE_MS, &check_error));
    g_autofree char *kept = look_content(dir, "node2", "var/synced");
    g_autofree char *lost = look_content(dir, "node2", "var/unsynced");
    g_autofree char *lost_image = look_content(dir, "node2", "var/disks/image");
    g_autofree char *memory = look_content(dir, "node2", "run/memory");
    g_autofree char *log = look_content(dir, "node2", "log/dummy.log");
    g_autofree char *new_boot = look_node_text(dir, 1, "boot_id");
    g_assert_cmpstr(kept, ==, "kept");
    g_assert_cmpstr(lost, ==, "old");
    g_assert_cmpstr(lost_image, ==, "old");
    g_assert_null(memory);
    g_assert_cmpstr(log, ==, "started\nstarted");
    g_assert_cmpstr(boot, !=, new_boot);
    down(dir);
    look_no_trace(dir);
}

/* What an installer would have left on a node is there, and survives the first power cut. */
static void test_identity(void)
{
    g_autofree char *dir = g_build_filename(base, "identity", NULL);
    struct lab_options options = {.dir = dir, .nodes = 2, .no_init = true, .daemons = DAEMONS};
    check(lab_up(&options, &check_error));
    check(lab_power(dir, "node2", false, &check_error));
    check(lab_power(dir, "node2", true, &check_error));
    static const char *const files[] = {"etc/node.crt", "etc/node.key", "etc/node.json",
                                        "var/images/tick.raw", "var/images/tick-fast.raw"};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = look_path(dir, "node2", files[i]);
        struct stat about;
        g_assert_cmpint(stat(path, &about), ==, 0);
        g_assert_cmpint(about.st_size, >, 0);
    }
    g_autofree char *authority = look_content(dir, "node1", "etc/ca.crt");
    g_autofree char *copy = look_content(dir, "node2", "etc/ca.crt");
    g_assert_cmpstr(authority, ==, copy);
    g_autofree char *secret = look_path(dir, "node1", "etc/ca.key");
    g_autofree char *no_secret = look_path(dir, "node2", "etc/ca.key");
    struct stat about;
    g_assert_cmpint(stat(secret, &about), ==, 0);
    g_assert_cmpint(about.st_mode & 0777, ==, 0600);
    g_assert_false(g_file_test(no_secret, G_FILE_TEST_EXISTS));
    g_autofree char *uuid = look_node_text(dir, 1, "uuid");
    g_autofree char *config = look_content(dir, "node2", "etc/node.json");
    g_assert_nonnull(strstr(config, uuid));
    down(dir);
}

/* A datagram socket in a node, bound to its address. */
static int socket_in(const char *dir, const char *node)
{
    g_autofree char *netns = lab_node_netns(dir, node);
    g_autofree char *path = g_build_filename("/run/netns", netns, NULL);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int there = open(path, O_RDONLY | O_CLOEXEC);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    g_assert_cmpint(setns(there, CLONE_NEWNET), ==, 0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    g_assert_cmpint(setns(home, CLONE_NEWNET), ==, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&any, sizeof(any)), ==, 0);
    close(there);
    close(home);
    return fd;
}

static void say(int fd, const char *node, const char *word)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    to.sin_addr.s_addr = htonl(0x0a630000u + (guint32)atoi(node + 4));
    sendto(fd, word, strlen(word), 0, (struct sockaddr *)&to, sizeof(to));
}

/* Says `word` again and again until something arrives at the other end, and returns that. */
static char *say_until_heard(int from, int at, const char *node, const char *word)
{
    char buffer[64] = "";
    for (int i = 0; i < PATIENCE_MS * 1000 / STEP_US; i++) {
        say(from, node, word);
        g_usleep(STEP_US);
        if (recv(at, buffer, sizeof(buffer) - 1, 0) > 0)
            return g_strdup(buffer);
    }
    return g_strdup(SILENCE);
}

static bool hears(int fd)
{
    char buffer[64];
    return recv(fd, buffer, sizeof(buffer), 0) > 0;
}

static void drain(int fd)
{
    while (hears(fd))
        continue;
}

static void check_silence(int one, int two)
{
    for (int i = 0; i < SILENT_TRIES; i++) {
        say(one, "node2", "lost");
        say(two, "node1", "lost");
        g_usleep(STEP_US);
        g_assert_false(hears(one));
        g_assert_false(hears(two));
    }
}

static void test_link(void)
{
    g_autofree char *dir = new_lab("link");
    int one = socket_in(dir, "node1"), two = socket_in(dir, "node2");
    g_autofree char *before = say_until_heard(one, two, "node2", "before");
    g_autofree char *back = say_until_heard(two, one, "node1", "back");
    g_assert_cmpstr(before, ==, "before");
    g_assert_cmpstr(back, ==, "back");

    check(lab_link(dir, "node2", false, &check_error));
    drain(one);
    drain(two);
    check_silence(one, two);
    check(lab_link(dir, "node2", true, &check_error));
    g_autofree char *after = say_until_heard(one, two, "node2", "after");
    g_autofree char *after_back = say_until_heard(two, one, "node1", "after");
    g_assert_cmpstr(after, !=, SILENCE);
    g_assert_cmpstr(after_back, !=, SILENCE);

    /* A power cycle plugs no cable in. */
    check(lab_link(dir, "node2", false, &check_error));
    check(lab_power(dir, "node2", false, &check_error));
    check(lab_power(dir, "node2", true, &check_error));
    close(two);
    two = socket_in(dir, "node2");
    drain(one);
    check_silence(one, two);
    check(lab_link(dir, "node2", true, &check_error));
    g_autofree char *last = say_until_heard(one, two, "node2", "last");
    g_assert_cmpstr(last, !=, SILENCE);
    close(one);
    close(two);
    check_fails(lab_link(dir, "node3", false, &check_error), UNKNOWN_ENTITY, "node1 to node2");
    down(dir);
}

/* The exit code of a command in a network of the lab. */
static int run_in(const char *dir, const char *where, const char *script)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        const char *const command[] = {"sh", "-c", script, NULL};
        lab_exec(dir, where, command, NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In node1 a guest: a namespace whose card is a port of the node's br0, as a tap device is. */
#define GUEST_ON                                                                                   \
    "link add g0 type veth peer name g1 address aa:00:00:00:00:05 && ip link set g0 master br0 "   \
    "up && "
#define GUEST_IN                                                                                   \
    "unshare -n sh -c 'ip link set lo up; echo $$ >%s/pid; exec sleep 60' & "                      \
    "sleep 0.2; pid=$(cat %s/pid); ip link set g1 netns $pid && "                                  \
    "nsenter -t $pid -n sh -c 'ip addr add 10.99.0.200/24 dev g1 && ip link set g1 up'"

static void start_guest(const char *dir, const char *node)
{
    g_autofree char *script = g_strdup_printf("ip " GUEST_ON GUEST_IN, base, base);
    g_assert_cmpint(run_in(dir, node, script), ==, 0);
}

static void test_guest_network(void)
{
    g_autofree char *dir = new_lab("guests");
    const char *ping = "ping -q -c 1 -W 1 10.99.0.200 >/dev/null";
    g_assert_cmpint(run_in(dir, "switch", ping), ==, 1); /* nobody is there yet */
    start_guest(dir, "node1");
    g_assert_cmpint(run_in(dir, "switch", "ping -q -c 20 -i 0.05 -W 1 10.99.0.200 >/dev/null"), ==,
                    0);
    g_assert_cmpint(run_in(dir, "node2", ping), ==, 0);
    g_assert_cmpint(run_in(dir, "node1", ping), ==, 0);
    /* With its node's power the guest is gone, and the same address may be elsewhere. */
    check(lab_power(dir, "node1", false, &check_error));
    g_assert_cmpint(run_in(dir, "switch", ping), ==, 1);
    start_guest(dir, "node2");
    g_assert_cmpint(run_in(dir, "switch",
                           "ip neigh flush all; ping -q -c 3 -i 0.1 -W 1 "
                           "10.99.0.200 >/dev/null"),
                    ==, 0);
    /* It hangs on the cable of its node. */
    check(lab_link(dir, "node2", false, &check_error));
    g_assert_cmpint(run_in(dir, "switch", ping), ==, 1);
    g_assert_cmpint(run_in(dir, "node2", ping), ==, 0);
    const char *const command[] = {"true", NULL};
    check_fails(lab_exec(dir, "node1", command, &check_error), WRONG_STATE, "node1 has no power");
    check_fails(lab_exec(dir, "node9", command, &check_error), UNKNOWN_ENTITY,
                "no network node9 in this lab; it has node1 to node2, and switch");
    down(dir);
}

static void test_shared_folder(void)
{
    g_autofree char *dir = new_lab("shared");
    int one = look_open_new(dir, "node1", "var/shared/letter");
    look_write_text(one, "not synced", false);
    g_autofree char *here = look_content(dir, "node2", "var/shared/letter");
    g_assert_cmpstr(here, ==, "not synced");
    int beside = look_open_new(dir, "node1", "var/disks/letter");
    look_write_text(beside, "lost", false);
    close(one);
    close(beside);
    /* The node's own disk loses what it had not synced; what it had handed to the server is there.
     */
    check(lab_power(dir, "node1", false, &check_error));
    int two = look_open_new(dir, "node2", "var/shared/letter");
    g_assert_cmpint(pwrite(two, "node2 goes on", 13, 0), ==, 13);
    close(two);
    check(lab_power(dir, "node1", true, &check_error));
    g_autofree char *again = look_content(dir, "node1", "var/shared/letter");
    g_autofree char *own = look_content(dir, "node1", "var/disks/letter");
    g_assert_cmpstr(again, ==, "node2 goes on");
    g_assert_cmpstr(own, !=, "lost");
    check(lab_disk_shutdown(dir, "node1", &check_error));
    int three = look_open_new(dir, "node1", "var/shared/letter");
    g_assert_cmpint(pwrite(three, "N", 1, 0), ==, 1); /* another disk */
    close(three);
    down(dir);
    look_no_trace(dir);
}

/* A program of one node alone is what its daemons start. */
static void test_programs(void)
{
    static const char script[] = "other-qemu >$FETTLE_ROOT/run/said 2>&1\n"
                                 "touch $FETTLE_ROOT/run/dummy.ready; exec sleep 1000\n";
    static const char *const command[] = {"sh", "-c", script, NULL};
    static const char *const none[] = {NULL};
    static const struct lab_daemon daemons[] = {{"dummy", command, false}, {NULL, NULL, false}};
    g_autofree char *dir = g_build_filename(base, "programs", NULL);
    g_autofree char *program = g_build_filename(dir, "node2.programs", "other-qemu", NULL);
    struct lab_options options = {.dir = dir,
                                  .nodes = 2,
                                  .root_mib = 32,
                                  .disks_mib = 32,
                                  .no_identity = true,
                                  .daemons = daemons};
    check(lab_up(&options, &check_error));
    g_assert_true(g_file_set_contents(program, "#!/bin/sh\necho newer\n", -1, NULL));
    g_assert_cmpint(chmod(program, 0755), ==, 0);
    for (guint node = 1; node <= 2; node++) {
        g_autofree char *name = g_strdup_printf("node%u", node);
        g_autofree char *daemon = g_strdup_printf("dummy@%s", name);
        check(lab_restart_with(dir, daemon, none, &check_error));
        check(lab_wait_ready(dir, name, PATIENCE_MS, &check_error));
        g_autofree char *said = look_content(dir, name, "run/said");
        g_assert_nonnull(strstr(said, node == 2 ? "newer" : "not found"));
    }
    down(dir);
}

static void test_supervision(void)
{
    g_autofree char *dir = new_lab("super");
    const char *const variables[] = {"LAB_TEST=once", NULL};
    int first = look_daemon_number(dir, "node1", "pid");
    check(lab_signal(dir, "dummy@node1", LAB_KILL, &check_error));
    check(lab_wait_ready(dir, "node1", PATIENCE_MS, &check_error));
    g_assert_cmpint(look_daemon_number(dir, "node1", "pid"), !=, first);
    g_assert_cmpint(look_daemon_number(dir, "node1", "restarts"), ==, 1);

    check(lab_restart_with(dir, "dummy@node1", variables, &check_error));
    check(lab_wait_ready(dir, "node1", PATIENCE_MS, &check_error));
    g_autofree char *said = look_content(dir, "node1", "run/said");
    g_assert_cmpstr(said, ==, "once");
    check(lab_signal(dir, "dummy@node1", LAB_KILL, &check_error));
    check(lab_wait_ready(dir, "node1", PATIENCE_MS, &check_error));
    g_autofree char *said_after = look_content(dir, "node1", "run/said");
    g_assert_cmpstr(said_after, ==, "");

    check(lab_signal(dir, "dummy@node1", LAB_PAUSE, &check_error));
    json_autoptr paused = look_daemon_status(dir, "node1", "dummy");
    g_assert_cmpstr(json_string_value(json_object_get(paused, "state")), ==, "paused");
    check(lab_signal(dir, "dummy@node1", LAB_RESUME, &check_error));
    json_autoptr resumed = look_daemon_status(dir, "node1", "dummy");
    g_assert_cmpstr(json_string_value(json_object_get(resumed, "state")), ==, "running");

    g_assert_null(look_daemon_status(dir, "node1", "chief"));
    check_fails(lab_signal(dir, "chief@node1", LAB_KILL, &check_error), WRONG_STATE, "no cluster");
    check(lab_enable_master(dir, &check_error));
    check(lab_wait_ready(dir, "node1", PATIENCE_MS, &check_error));
    json_autoptr chief = look_daemon_status(dir, "node1", "chief");
    g_assert_nonnull(chief);
    check_fails(lab_signal(dir, "chief@node2", LAB_KILL, &check_error), UNKNOWN_ENTITY,
                "no daemon chief@node2");
    down(dir);
}

static void test_disks(void)
{
    g_autofree char *dir = new_lab("disks");
    int image = look_open_new(dir, "node2", "var/disks/image");
    int other = look_open_new(dir, "node2", "var/other");
    /* Many small files below the root, such as archived jobs; few images. */
    struct statvfs root, disks;
    g_assert_true(fstatvfs(other, &root) == 0 && fstatvfs(image, &disks) == 0);
    g_assert_cmpuint(root.f_files, >=, root.f_blocks * root.f_frsize / (12 * 1024));
    g_assert_cmpuint(disks.f_files, >=, 4096);
    check(lab_disk_fill(dir, "node2", 4, &check_error));
    g_assert_true(look_write_mib(image, 3));
    g_assert_false(look_write_mib(image, 3));
    g_assert_cmpint(errno, ==, ENOSPC);
    check(lab_disk_unfill(dir, "node2", &check_error));
    g_assert_true(look_write_mib(image, 3));

    check(lab_disk_shutdown(dir, "node2", &check_error));
    g_assert_false(look_write_mib(image, 1));
    g_assert_cmpint(errno, ==, EIO);
    g_assert_true(look_write_mib(other, 1));
    check(lab_state_read_only(dir, "node2", &check_error));
    g_assert_false(look_write_mib(other, 1));
    g_assert_cmpint(errno, ==, EROFS);
    close(image);
    close(other);
    check(lab_power(dir, "node2", false, &check_error));
    check(lab_power(dir, "node2", true, &check_error));
    image = look_open_new(dir, "node2", "var/disks/image");
    other = look_open_new(dir, "node2", "var/other");
    g_assert_true(look_write_mib(image, 1) && look_write_mib(other, 1));
    close(image);
    close(other);
    down(dir);
}

static int code_of(pid_t pid)
{
    int status = 0;
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* It breaks for all nodes, in one way at a time, and is whole again with one word. */
static void test_shared_breaks(void)
{
    g_autofree char *dir = new_lab("breaks");
    g_autofree char *path = look_path(dir, "node1", "var/shared/later");
    check(lab_shared(dir, LAB_SHARED_FULL, &check_error));
    int fd = look_open_new(dir, "node2", "var/shared/image");
    g_assert_false(look_write_mib(fd, 1));
    g_assert_cmpint(errno, ==, ENOSPC);
    check_fails(lab_shared(dir, LAB_SHARED_READ_ONLY, &check_error), WRONG_STATE,
                "open for writing");
    g_assert_true(look_write_mib(fd, 1));
    close(fd);

    check(lab_shared(dir, LAB_SHARED_READ_ONLY, &check_error));
    g_assert_cmpint(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600), ==, -1);
    g_assert_cmpint(errno, ==, EROFS);

    check(lab_shared(dir, LAB_SHARED_HANGS, &check_error));
    pid_t child = look_writer(path);
    while (!look_waits_in_kernel(child))
        g_usleep(1000);
    check(lab_shared(dir, LAB_SHARED_OK, &check_error));
    g_assert_cmpint(code_of(child), ==, 0);

    check(lab_shared(dir, LAB_SHARED_HANGS, &check_error));
    child = look_writer(path);
    while (!look_waits_in_kernel(child))
        g_usleep(1000);
    down(dir);
    g_assert_cmpint(code_of(child), ==, 1);
    look_no_trace(dir);
    check_fails(lab_shared(dir, LAB_SHARED_OK, &check_error), UNKNOWN_ENTITY, "there is no lab in");
}

static pid_t supervisor_of(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "lab.lock", NULL);
    g_autofree char *text = NULL;
    return g_file_get_contents(path, &text, NULL, NULL) ? atoi(text) : 0;
}

static void kill_supervisor(const char *dir)
{
    int pidfd = (int)syscall(SYS_pidfd_open, supervisor_of(dir), 0);
    g_assert_cmpint(pidfd, >=, 0);
    g_assert_cmpint(syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0), ==, 0);
    g_assert_true(look_has_ended(pidfd));
    close(pidfd);
}

static void test_dead_supervisor(void)
{
    g_autofree char *dir = new_lab("dead");
    g_autofree char *beside = new_lab("beside");
    int orphan = look_hold_process(dir, "node1", "run/orphan");
    int other = look_hold_process(beside, "node1", "run/orphan");
    kill_supervisor(dir);
    check_fails(lab_power(dir, "node1", false, &check_error), WRONG_STATE,
                "supervisor does not run");
    json_autoptr status = lab_status(dir, NULL);
    g_assert_true(json_is_false(json_object_get(status, "supervisor")));
    static const char *const BEGUN[] = {".node3.1-1", ".shared.1-1", ".log.1-1"};
    for (guint i = 0; i < G_N_ELEMENTS(BEGUN); i++) { /* as files_make_folder() does */
        g_autofree char *path = g_build_filename(dir, BEGUN[i], NULL);
        g_assert_cmpint(mkdir(path, 0700), ==, 0);
    }
    down(dir);
    g_assert_true(look_has_ended(orphan));
    look_no_trace(dir);
    down(dir);

    /* The lab beside it has the same addresses and did not notice. */
    struct pollfd alive = {.fd = other, .events = POLLIN};
    g_assert_cmpint(poll(&alive, 1, 0), ==, 0);
    check(lab_wait_ready(beside, NULL, PATIENCE_MS, &check_error));
    down(beside);
    look_no_trace(beside);
    close(orphan);
    close(other);
}

/* Ends lab_up() and the supervisor that it started, at some moment of their work. */
static void test_killed_while_building(void)
{
    g_autofree char *dir = g_build_filename(base, "half", NULL);
    struct lab_options options = {.dir = dir,
                                  .nodes = 2,
                                  .root_mib = 32,
                                  .disks_mib = 32,
                                  .no_identity = true,
                                  .daemons = DAEMONS};
    for (int round = 0; round < KILL_ROUNDS; round++) {
        pid_t child = fork();
        if (child == 0) {
            lab_up(&options, NULL);
            _exit(0);
        }
        g_usleep((gulong)g_random_int_range(0, KILL_WITHIN_US));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (round % 2 && supervisor_of(dir) > 1)
            kill_supervisor(dir);
        down(dir);
        g_rmdir(dir); /* empty, if it was there before its description */
        look_no_trace(dir);
    }
}

static void test_damaged_description(void)
{
    g_autofree char *dir = new_lab("torn");
    g_autofree char *path = g_build_filename(dir, "lab.json", NULL);
    g_assert_true(g_file_set_contents(path, "{\"version\":1,", -1, NULL));
    check_fails(lab_power(dir, "node1", false, &check_error), CORRUPT, "is damaged");
    down(dir); /* works without it; only the folder itself stays, as nobody knows whose it is */
    g_assert_cmpint(rmdir(dir), ==, 0);
    look_no_trace(dir);
}

/* A process that has a mount namespace of its own, as `ip netns exec` makes one; with a working
 * folder in it if that is not NULL. */
static pid_t stranger(const char *folder)
{
    int told[2];
    char byte = 0;
    g_assert_cmpint(pipe2(told, O_CLOEXEC), ==, 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        bool apart = unshare(CLONE_NEWNS) == 0 &&
                     mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                     (!folder || chdir(folder) == 0);
        if (apart && write(told[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    close(told[1]);
    g_assert_cmpint((int)read(told[0], &byte, 1), ==, 1);
    close(told[0]);
    return child;
}

static void stranger_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Two labs at once, and processes of neither that have copied the mounts of both. */
static void test_side_by_side(void)
{
    g_autofree char *one = new_lab("one");
    pid_t first = stranger(NULL);
    g_autofree char *two = new_lab("two");
    pid_t second = stranger(NULL);
    check(lab_power(one, "node2", false, &check_error));
    check(lab_power(two, "node2", false, &check_error));
    check(lab_power(one, "node2", true, &check_error));
    check(lab_power(two, "node2", true, &check_error));
    check(lab_wait_ready(one, NULL, PATIENCE_MS, &check_error));
    check(lab_wait_ready(two, NULL, PATIENCE_MS, &check_error));
    down(one);
    look_no_trace(one);
    check(lab_wait_ready(two, NULL, PATIENCE_MS, &check_error));
    down(two);
    look_no_trace(two);
    stranger_end(first);
    stranger_end(second);
}

/* What cannot be taken back is named. */
static void test_stranger_inside(void)
{
    g_autofree char *dir = new_lab("inside");
    g_autofree char *folder = look_path(dir, "node2", "var");
    pid_t pid = stranger(folder);
    g_autofree char *name = g_strdup_printf("by process %d (test_lab), which has a file or its "
                                            "working folder in there; end it and try again",
                                            (int)pid);
    check_fails(lab_power(dir, "node2", false, &check_error), STORAGE, name);
    stranger_end(pid);
    check(lab_power(dir, "node2", true, &check_error));
    down(dir);
    look_no_trace(dir);
}

static int run_tests(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lab/refusals", test_refusals);
    g_test_add_func("/lab/bad-commands", test_bad_commands);
    g_test_add_func("/lab/occupied-name", test_occupied_name);
    g_test_add_func("/lab/no-root", test_no_root);
    g_test_add_func("/lab/missing-program", test_missing_program);
    g_test_add_func("/lab/power-cut", test_power_cut);
    g_test_add_func("/lab/identity", test_identity);
    g_test_add_func("/lab/link", test_link);
    g_test_add_func("/lab/guest-network", test_guest_network);
    g_test_add_func("/lab/shared-folder", test_shared_folder);
    g_test_add_func("/lab/programs-of-one-node", test_programs);
    g_test_add_func("/lab/supervision", test_supervision);
    g_test_add_func("/lab/disks", test_disks);
    g_test_add_func("/lab/shared-folder-breaks", test_shared_breaks);
    g_test_add_func("/lab/dead-supervisor", test_dead_supervisor);
    g_test_add_func("/lab/killed-while-building", test_killed_while_building);
    g_test_add_func("/lab/damaged-description", test_damaged_description);
    g_test_add_func("/lab/side-by-side", test_side_by_side);
    g_test_add_func("/lab/stranger-inside", test_stranger_inside);
    return g_test_run();
}

/* Labs that a failed test has left behind. */
static void remove_leftovers(void)
{
    g_autoptr(GDir) labs = g_dir_open(base, 0, NULL);
    const char *name;
    while (labs && (name = g_dir_read_name(labs))) {
        g_autofree char *dir = g_build_filename(base, name, NULL);
        lab_down(dir, NULL);
    }
    rmdir(base);
}

/* The tests run in a child, so that one that aborts leaves somebody to clean up. */
int main(int argc, char **argv)
{
    int status = 0;
    if (geteuid() != 0) {
        printf("1..0 # SKIP the lab needs root\n");
        return 0;
    }
    base = g_dir_make_tmp("fl-XXXXXX", NULL);
    chmod(base, 0755);
    pid_t child = fork();
    if (child == 0)
        return run_tests(argc, argv);
    waitpid(child, &status, 0);
    remove_leftovers();
    g_free(base);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
