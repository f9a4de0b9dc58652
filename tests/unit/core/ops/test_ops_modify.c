/* Changing a stopped instance: memory, processors, kernel, network cards, display. */
#include "core/config/allocated.h"
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *modify(json_t *params)
{
    json_object_update_new(
        params, json_make("{ss ss}", "OP_ID", "OP_INSTANCE_SET_PARAMS", "instance_name", "web1"));
    return ops_run_one(world, params);
}

static const char *bind_to(const char *address)
{
    return modify(json_make("{ss}", "vnc_bind_address", address));
}

static void expect_display(const char *address, guint64 port)
{
    g_assert_cmpstr(ops_web(world)->vnc_bind_address, ==, address);
    g_assert_cmpuint(ops_web(world)->network_port, ==, port);
}

static void done(const char *result)
{
    g_assert_cmpstr(result, ==, "null");
    g_string_truncate(world->trace, 0);
}

static void put_stopped(void)
{
    ops_put_web(world, "in-sync", false);
}

/* Another instance whose display has that port. */
static void put_db(struct ops_world *changed, int port)
{
    static const char *const uuid = "00000000-0000-4000-8000-0000000000b2";
    ops_put(changed, "instance", uuid,
            json_make("{ss ss ss si ss ss si}", "uuid", uuid, "name", "db1", "disk_template",
                      "diskless", "memory", 64, "primary_node", NODE1, "vnc_bind_address",
                      "127.0.0.1", "network_port", port));
}

static void test_given_and_taken(void)
{
    put_stopped();
    done(bind_to("127.0.0.1"));
    expect_display("127.0.0.1", 11000);
    g_autofree char *quiet = ops_log(world, 0);
    g_assert_cmpstr(quiet, ==, "");
    done(bind_to("0.0.0.0"));
    expect_display("0.0.0.0", 11000);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "warning: whoever reaches port 11000 of the node that runs web1 can see its "
                    "screen and type: VNC has no password here; with vnc_bind_address 127.0.0.1 it "
                    "takes a login on that node\n");
    done(bind_to("::"));
    expect_display("::", 11000);
    g_autofree char *six = ops_log(world, 0);
    g_assert_cmpstr(six, ==, log);
    done(bind_to("none"));
    expect_display("", 0);
}

/* A creation takes the same word. */
static void test_made_without(void)
{
    json_autoptr opcode =
        json_make("{ss ss ss ss si}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name", "db1",
                  "disk_template", "diskless", "vnc_bind_address", "none", "network_port", 11000);
    ops_expect_refusal(world, ops_run_one(world, json_incref(opcode)),
                       "network_port: is the port of a display; give vnc_bind_address too",
                       "wrong_input");
    json_object_del(opcode, "network_port");
    g_assert_cmpstr(ops_run_one(world, json_incref(opcode)), ==, "[\"node1\"]");
    const struct instance *made = config_find(world->config, "instance", "db1", NULL);
    g_assert_cmpstr(made->vnc_bind_address, ==, "");
    g_assert_cmpuint(made->network_port, ==, 0);
}

static void test_other_port(void)
{
    put_stopped();
    put_db(world, 11000);
    done(bind_to("127.0.0.1"));
    expect_display("127.0.0.1", 11001);
    done(modify(json_make("{si}", "network_port", 14999)));
    expect_display("127.0.0.1", 14999);
    ops_expect_refusal(world, modify(json_make("{si}", "network_port", 11000)),
                       "network_port: 11000 is taken by instance \"db1\"", "already_exists");
}

/* A port of an earlier range stays what it is. */
static void test_earlier_range(void)
{
    put_stopped();
    done(bind_to("127.0.0.1"));
    ops_set(world, "cluster", CLUSTER, "port_range", json_string("20000-20009"));
    g_assert_cmpstr(
        modify(json_make("{ss si}", "vnc_bind_address", "0.0.0.0", "network_port", 11000)), ==,
        "null");
    expect_display("0.0.0.0", 11000);
    done(bind_to("none"));
    done(bind_to("127.0.0.1"));
    expect_display("127.0.0.1", 20000);
}

static void overtake(struct ops_world *changed, guint number)
{
    if (number > 1)
        return;
    put_db(changed, 11000);
    ops_fail(changed, "wconfd", "commit", FETTLE_ERROR_ALREADY_EXISTS,
             "instance web1: network_port: 11000 is taken by instance \"db1\"", 1);
}

static void test_drawn_anew(void)
{
    put_stopped();
    world->on_commit = overtake;
    done(bind_to("127.0.0.1"));
    expect_display("127.0.0.1", 11001);
}

/* One that was named is not drawn anew. */
static void test_overtaken(void)
{
    put_stopped();
    world->on_commit = overtake;
    g_assert_cmpstr(
        modify(json_make("{ss si}", "vnc_bind_address", "127.0.0.1", "network_port", 11000)), ==,
        "[\"OpExecError\", [\"network_port: 11000 is taken by instance \\\"db1\\\"\", "
        "\"already_exists\", false]]");
    expect_display("", 0);
}

static void test_refused(void)
{
    put_stopped();
    ops_expect_refusal(world, modify(json_object()),
                       "nothing to change: name at least one parameter", "wrong_input");
    ops_expect_refusal(world, bind_to("none"), "nothing to change: instance \"web1\" is so already",
                       "wrong_input");
    ops_expect_refusal(world, modify(json_make("{si}", "network_port", 11000)),
                       "network_port: is the port of a display; give vnc_bind_address too",
                       "wrong_input");
    ops_expect_refusal(
        world, bind_to("10.0.0.1"),
        "vnc_bind_address: \"10.0.0.1\" is no address that every node has; there are 127.0.0.1 "
        "(only from the node itself, or by a tunnel), 0.0.0.0, and :: with IPv6 too (from "
        "everywhere, without a password)",
        "wrong_input");
    ops_expect_refusal(
        world, modify(json_make("{ss si}", "vnc_bind_address", "127.0.0.1", "network_port", 5900)),
        "network_port: 5900 is not in the cluster's port_range, 11000-14999; see fettle cluster "
        "modify --port-range",
        "wrong_input");
    expect_display("", 0);
}

static void test_full(void)
{
    put_stopped();
    put_db(world, 12000);
    ops_set(world, "cluster", CLUSTER, "port_range", json_string("12000-12000"));
    ops_expect_refusal(world, bind_to("127.0.0.1"),
                       "port_range 12000-12000 has no free port left; make it larger: fettle "
                       "cluster modify --port-range FIRST-LAST",
                       "limit_exceeded");
}

static void test_running(void)
{
    ops_put_web(world, "in-sync", true);
    ops_expect_refusal(world, bind_to("127.0.0.1"),
                       "instance \"web1\" is not stopped, and a running guest keeps the devices "
                       "that it was started with; stop it first: fettle instance shutdown web1",
                       "wrong_state");
}

/* --- memory, processors, kernel --- */

static void test_size(void)
{
    put_stopped(); /* 512 MiB on node1, which has 8192 */
    done(modify(json_make("{si si}", "memory", 1024, "vcpus", 3)));
    g_assert_cmpuint(ops_web(world)->memory, ==, 1024);
    g_assert_cmpuint(ops_web(world)->vcpus, ==, 3);
    done(modify(json_make("{si}", "memory", 256)));
    g_assert_cmpuint(ops_web(world)->memory, ==, 256);
    g_assert_cmpuint(ops_web(world)->vcpus, ==, 3);
    g_assert_cmpstr(ops_web(world)->vnc_bind_address, ==, "");
    ops_expect_refusal(world, modify(json_make("{si si}", "memory", 256, "vcpus", 3)),
                       "nothing to change: instance \"web1\" is so already", "wrong_input");
}

/* What it has already is its own: only what comes on top has to be there. */
static void test_size_without_room(void)
{
    put_stopped();
    world->memory[0] = 1000;
    ops_expect_refusal(world, modify(json_make("{si}", "memory", 1001)),
                       "memory: node1 has 488 MiB of memory left, instance \"web1\" needs 489 MiB "
                       "more",
                       "insufficient_resources");
    done(modify(json_make("{si}", "memory", 1000)));
    world->memory[0] = 100; /* more is promised than there is */
    done(modify(json_make("{si}", "memory", 999)));
    done(modify(json_make("{si}", "vcpus", 2)));
    ops_node_offline(world, NODE1);
    done(modify(json_make("{si}", "memory", 64)));
    ops_expect_refusal(world, modify(json_make("{si}", "memory", 65)),
                       "node1, the primary node of instance \"web1\", is offline", "wrong_state");
}

static void test_size_locks(void)
{
    put_stopped();
    world->trace_locks = true;
    modify(json_make("{si}", "memory", 1024));
    g_assert_nonnull(strstr(world->trace->str, "node-res/node1=exclusive"));
    g_string_truncate(world->trace, 0);
    modify(json_make("{si}", "memory", 512));
    g_assert_null(strstr(world->trace->str, "node-res"));
}

/* --- the next start of one that runs --- */

static void expect_sizes(guint64 memory, guint64 vcpus, guint64 memory_next, guint64 vcpus_next)
{
    g_assert_cmpuint(ops_web(world)->memory, ==, memory);
    g_assert_cmpuint(ops_web(world)->vcpus, ==, vcpus);
    g_assert_cmpuint(ops_web(world)->memory_next, ==, memory_next);
    g_assert_cmpuint(ops_web(world)->vcpus_next, ==, vcpus_next);
}

static const char *act(const char *id)
{
    return ops_run_one(world, json_make("{ss ss}", "OP_ID", id, "instance_name", "web1"));
}

/* Nothing is asked of a node, and the running sizes stay, for a migration too. */
static void put_pending(void)
{
    ops_put_web(world, "in-sync", true);
    done(modify(json_make("{si si}", "memory", 1024, "vcpus", 3)));
    expect_sizes(512, 1, 1024, 3);
}

static void test_pending(void)
{
    put_pending();
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "the guest keeps its 512 MiB of memory and 1 processor(s) until its next "
                    "start, which gives it 1024 MiB and 3: fettle instance reboot --reboot-type "
                    "full web1\n");
    ops_expect_refusal(world, modify(json_make("{si si}", "memory", 1024, "vcpus", 3)),
                       "nothing to change: instance \"web1\" is so already", "wrong_input");
    ops_expect_refusal(world, modify(json_make("{si ss}", "memory", 64, "kernel_path", "vmlinuz")),
                       "instance \"web1\" is not stopped, and a running guest keeps the devices "
                       "that it was started with; stop it first: fettle instance shutdown web1",
                       "wrong_state");
    done(modify(json_make("{si}", "memory", 512))); /* what it has: taken back */
    expect_sizes(512, 1, 0, 3);
    done(modify(json_make("{si}", "vcpus", 1)));
    expect_sizes(512, 1, 0, 0);
}

static void test_pending_starts(void)
{
    put_pending();
    done(ops_run_one(world, json_make("{ss ss ss}", "OP_ID", "OP_INSTANCE_REBOOT", "instance_name",
                                      "web1", "reboot_type", "full")));
    expect_sizes(1024, 3, 0, 0);
    done(modify(json_make("{si}", "memory", 256)));
    expect_sizes(1024, 3, 256, 0);
    world->guest_node = NULL; /* and its end is on record with the next start */
    g_assert_cmpstr(act("OP_INSTANCE_STARTUP"), ==, "null");
    expect_sizes(256, 3, 0, 0);
}

/* One that is stopped has what was asked for, and what is asked for then. */
static void test_pending_stopped(void)
{
    put_pending();
    g_assert_cmpstr(act("OP_INSTANCE_SHUTDOWN"), ==, "null");
    expect_sizes(1024, 3, 0, 0);
    done(modify(json_make("{si}", "memory", 256)));
    expect_sizes(256, 3, 0, 0);
}

static void test_pending_failover(void)
{
    put_pending();
    g_assert_cmpstr(act("OP_INSTANCE_FAILOVER"), ==, "null");
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE2);
    expect_sizes(1024, 3, 0, 0);
}

/* Both sides have the running sizes; what is pending stays so. */
static void test_pending_migrates(void)
{
    put_pending();
    world->migration_steps = 1;
    g_assert_cmpstr(act("OP_INSTANCE_MIGRATE"), ==, "null");
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE2);
    expect_sizes(512, 1, 1024, 3);
}

/* Room is kept for whichever is more, of its node and of that to which it moves. */
static void test_pending_room(void)
{
    ops_put_web(world, "in-sync", true);
    world->memory[0] = 1000;
    ops_expect_refusal(world, modify(json_make("{si}", "memory", 1001)),
                       "memory: node1 has 488 MiB of memory left, instance \"web1\" needs 489 MiB "
                       "more",
                       "insufficient_resources");
    done(modify(json_make("{si}", "memory", 1000)));
    g_assert_cmpuint(allocated_memory(ops_web(world), NODE1), ==, 1000);
    done(modify(json_make("{si}", "memory", 64)));
    g_assert_cmpuint(allocated_memory(ops_web(world), NODE1), ==, 512);
    done(modify(json_make("{si}", "memory", 1000)));
    world->memory[1] = 900;
    world->migration_steps = 1;
    g_assert_nonnull(strstr(act("OP_INSTANCE_MIGRATE"), "insufficient_resources"));
    g_assert_nonnull(strstr(act("OP_INSTANCE_FAILOVER"), "insufficient_resources"));
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE1);
}

/* Its node has what it has now in use, and nothing yet of what comes on top. */
static void test_pending_waits(void)
{
    ops_put_web(world, "in-sync", true);
    world->memory_used[0] = 1500 + 512;
    done(modify(json_make("{si}", "memory", 2012)));
    ops_expect_refusal(world, modify(json_make("{si}", "memory", 2597)),
                       "memory: node1 has 584 MiB of memory left, instance \"web1\" needs 585 MiB "
                       "more",
                       "insufficient_resources");
    done(modify(json_make("{si}", "memory", 2596)));
    done(modify(json_make("{si}", "memory", 64)));
    done(modify(json_make("{si}", "memory", 2596)));
}

/* There is room on either node only for what is asked for. */
static void put_smaller(void)
{
    ops_put_web(world, "in-sync", true);
    done(modify(json_make("{si}", "memory", 64)));
    expect_sizes(512, 1, 64, 0);
    world->memory[0] = world->memory[1] = 100;
}

static void test_smaller_starts(void)
{
    put_smaller();
    world->guest_node = NULL;
    g_assert_cmpstr(act("OP_INSTANCE_STARTUP"), ==, "null");
    expect_sizes(64, 1, 0, 0);
}

static void test_smaller_without_room(void)
{
    put_smaller();
    world->guest_node = NULL;
    world->memory[0] = 63;
    const char *refused = "node1 has 63 MiB of memory left, instance \"web1\" needs 64 MiB";
    ops_expect_refusal(world, act("OP_INSTANCE_STARTUP"), refused, "insufficient_resources");
}

static void test_smaller_fails_over(void)
{
    put_smaller();
    g_assert_cmpstr(act("OP_INSTANCE_FAILOVER"), ==, "null");
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE2);
    expect_sizes(64, 1, 0, 0);
}

static void test_smaller_survives_its_node(void)
{
    put_smaller();
    ops_set(world, "instance", WEB, "primary_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "holder", json_string(NODE3));
    ops_node_offline(world, NODE3);
    g_assert_cmpstr(act("OP_INSTANCE_FAILOVER"), ==, "null");
    g_assert_cmpstr(ops_web(world)->holder, ==, NODE2);
    expect_sizes(64, 1, 0, 0);
}

/* What runs goes over as it is. */
static void test_smaller_does_not_migrate(void)
{
    put_smaller();
    world->migration_steps = 1;
    ops_expect_refusal(world, act("OP_INSTANCE_MIGRATE"),
                       "instance \"web1\" cannot go to node2: it has 100 MiB of memory left, 512 "
                       "MiB are needed; make room there, or take another node: fettle node list",
                       "insufficient_resources");
    expect_sizes(512, 1, 64, 0);
}

static void test_kernel(void)
{
    put_stopped();
    ops_expect_refusal(world, modify(json_make("{ss}", "initrd_path", "initrd")),
                       "initrd_path: needs a kernel_path that it is for", "wrong_input");
    ops_expect_refusal(world, modify(json_make("{ss}", "kernel_args", "quiet")),
                       "kernel_args: needs a kernel_path that it is for", "wrong_input");
    world->image_bytes = 1;
    world->no_image = "initrd";
    world->no_image_on = NODE2;
    ops_expect_refusal(
        world, modify(json_make("{ss ss}", "kernel_path", "vmlinuz", "initrd_path", "initrd")),
        "initrd_path: file \"initrd\" does not exist on node \"node2\"; put it into var/images "
        "there",
        "unknown_entity");
    world->no_image = NULL;
    done(modify(json_make("{ss ss ss}", "kernel_path", "vmlinuz", "initrd_path", "initrd",
                          "kernel_args", "quiet")));
    done(modify(json_make("{ss ss}", "kernel_args", "none", "initrd_path", "other")));
    g_assert_cmpstr(ops_web(world)->kernel_path, ==, "vmlinuz");
    g_assert_cmpstr(ops_web(world)->initrd_path, ==, "other");
    g_assert_cmpstr(ops_web(world)->kernel_args, ==, "");
    done(modify(json_make("{ss}", "kernel_path", "none")));
    g_assert_cmpstr(ops_web(world)->kernel_path, ==, "");
    g_assert_cmpstr(ops_web(world)->initrd_path, ==, "");
}

/* --- network cards --- */

static const struct nic *card(guint number)
{
    g_assert_cmpuint(ops_web(world)->nics->len, >, number);
    return ops_web(world)->nics->pdata[number];
}

static void test_cards(void)
{
    put_stopped();
    done(modify(json_make("{s[{ss} {ssss}]}", "add_nics", "mac", "auto", "mac", "AA:00:00:12:34:56",
                          "ip", "192.0.2.7")));
    g_assert_cmpuint(ops_web(world)->nics->len, ==, 2);
    g_assert_true(g_str_has_prefix(card(0)->mac, "aa:00:00:"));
    g_assert_cmpstr(card(0)->link, ==, "br0");
    g_autofree char *drawn = g_strdup(card(0)->mac);
    g_autofree char *expected = g_strdup_printf(
        "network card 0 of web1 is %s\nnetwork card 1 of web1 is aa:00:00:12:34:56, 192.0.2.7\n",
        drawn);
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==, expected);
    /* Out by number, in again: after those that are there. */
    done(modify(
        json_make("{s[s] s[{ss}]}", "remove_nics", "0", "add_nics", "mac", "aa:00:00:00:00:09")));
    g_assert_cmpuint(ops_web(world)->nics->len, ==, 2);
    g_assert_cmpstr(card(0)->mac, ==, "aa:00:00:12:34:56");
    g_assert_cmpstr(card(1)->mac, ==, "aa:00:00:00:00:09");
    /* By address, however it is spelled, and twice is once. */
    done(modify(json_make("{s[s s]}", "remove_nics", "AA:00:00:12:34:56", "0")));
    g_assert_cmpuint(ops_web(world)->nics->len, ==, 1);
    g_assert_cmpstr(card(0)->mac, ==, "aa:00:00:00:00:09");
}

/* What is not named stays, also the place. */
static void test_cards_changed(void)
{
    put_stopped();
    done(modify(json_make("{s[{ss} {ss ss}]}", "add_nics", "mac", "aa:00:00:00:00:01", "mac",
                          "aa:00:00:00:00:02", "ip", "192.0.2.7")));
    world->bridges[0] = world->bridges[1] = "br7";
    done(modify(json_make("{s[{ss ss} {ss ss ss}]}", "change_nics", "card", "0", "link", "br7",
                          "card", "AA:00:00:00:00:02", "mac", "AA:00:00:00:00:03", "ip", "none")));
    g_assert_cmpuint(ops_web(world)->nics->len, ==, 2);
    g_assert_cmpstr(card(0)->mac, ==, "aa:00:00:00:00:01");
    g_assert_cmpstr(card(0)->link, ==, "br7");
    g_assert_cmpstr(card(1)->mac, ==, "aa:00:00:00:00:03");
    g_assert_cmpstr(card(1)->link, ==, "br0");
    g_assert_cmpstr(card(1)->ip, ==, "");
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "network card 0 of web1 is aa:00:00:00:00:01\n"
                    "network card 1 of web1 is aa:00:00:00:00:03\n");
    done(modify(json_make("{s[{ss ss}]}", "change_nics", "card", "0", "mac", "auto")));
    g_assert_cmpstr(card(0)->mac, !=, "aa:00:00:00:00:01");
    /* The address that it has is its own. */
    done(modify(json_make("{s[{ss ss ss}]}", "change_nics", "card", "1", "mac", "aa:00:00:00:00:03",
                          "link", "br7")));
}

static void test_cards_not_changed(void)
{
    put_stopped();
    done(modify(json_make("{s[{ss} {ss}]}", "add_nics", "mac", "aa:00:00:00:00:01", "mac",
                          "aa:00:00:00:00:02")));
    ops_expect_refusal(world, modify(json_make("{s[{ss}]}", "change_nics", "card", "2")),
                       "change_nics[0].card: \"2\" is neither the number nor the MAC address of a "
                       "network card of the instance, which has 2",
                       "wrong_input");
    ops_expect_refusal(world,
                       modify(json_make("{s[{ss ss}]}", "change_nics", "card", "0", "link", "br9")),
                       "change_nics: node \"node1\" has no bridge \"br9\"; make that bridge there, "
                       "give the card another link, or take a node that has it",
                       "environment");
    ops_expect_refusal(
        world, modify(json_make("{s[{ss ss}]}", "change_nics", "card", "0", "mode", "wireless")),
        "change_nics[0].mode: must be bridged, routed or openvswitch, not \"wireless\"",
        "wrong_input");
    ops_expect_refusal(
        world, modify(json_make("{s[{ss ss}]}", "change_nics", "card", "0", "mode", "routed")),
        "change_nics[0].ip: a routed card needs the address that is routed to it", "wrong_input");
    ops_expect_refusal(
        world, modify(json_make("{s[{ss ss}]}", "change_nics", "card", "0", "ip", "pool")),
        "change_nics[0].ip: a pool belongs to a network, and this card is in none", "wrong_input");
    ops_expect_refusal(
        world,
        modify(json_make("{s[{ss ss}]}", "change_nics", "card", "0", "mac", "aa:00:00:00:00:02")),
        "change_nics[0].mac: another card of the instance has aa:00:00:00:00:02", "wrong_input");
    ops_expect_refusal(world,
                       modify(json_make("{s[{ss ss}]}", "change_nics", "card", "0", "mac", "xx")),
                       "change_nics[0].mac: \"xx\" is no MAC address; one looks like "
                       "aa:00:00:12:34:56",
                       "wrong_input");
    g_assert_cmpstr(card(0)->mac, ==, "aa:00:00:00:00:01");
}

static void test_cards_refused(void)
{
    put_stopped();
    ops_expect_refusal(
        world, modify(json_make("{s[s]}", "remove_nics", "0")),
        "remove_nics[0]: \"0\" is neither the number nor the MAC address of a network "
        "card of instance \"web1\", which has 0",
        "wrong_input");
    ops_expect_refusal(world, modify(json_make("{s[{ss}]}", "add_nics", "link", "br7")),
                       "add_nics: node \"node1\" has no bridge \"br7\"; make that bridge there, "
                       "give the card another link, or take a node that has it",
                       "environment");
    ops_expect_refusal(world, modify(json_make("{s[{} {ss}]}", "add_nics", "mac", "xx:yy")),
                       "add_nics[1].mac: \"xx:yy\" is no MAC address; one looks like "
                       "aa:00:00:12:34:56",
                       "wrong_input");
    ops_expect_refusal(world, modify(json_make("{s[{ss}]}", "add_nics", "network", "prod")),
                       "add_nics[0].network: network \"prod\" does not exist", "unknown_entity");
    json_t *many = json_array();
    for (guint i = 0; i < 8; i++)
        json_array_append_new(many, json_object());
    done(modify(json_make("{so}", "add_nics", many)));
    ops_expect_refusal(world, modify(json_make("{s[{}]}", "add_nics")),
                       "add_nics: instance \"web1\" would have 9 network cards; 8 are the limit",
                       "limit_exceeded");
    g_autofree char *taken = g_strdup(card(3)->mac);
    g_autofree char *message = g_strdup_printf(
        "add_nics[0].mac: %s is taken by instance \"web1\"; choose another, or mac=auto", taken);
    ops_expect_refusal(
        world, modify(json_make("{s[s] s[{ss}]}", "remove_nics", "7", "add_nics", "mac", taken)),
        message, "already_exists");
    g_assert_cmpuint(ops_web(world)->nics->len, ==, 8);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ops_case("/modify/display", test_given_and_taken, &world, NULL);
    ops_case("/modify/made-without", test_made_without, &world, NULL);
    ops_case("/modify/port", test_other_port, &world, NULL);
    ops_case("/modify/earlier-range", test_earlier_range, &world, NULL);
    ops_case("/modify/drawn-anew", test_drawn_anew, &world, NULL);
    ops_case("/modify/overtaken", test_overtaken, &world, NULL);
    ops_case("/modify/refused", test_refused, &world, NULL);
    ops_case("/modify/full", test_full, &world, NULL);
    ops_case("/modify/size", test_size, &world, NULL);
    ops_case("/modify/size/no-room", test_size_without_room, &world, NULL);
    ops_case("/modify/size/locks", test_size_locks, &world, NULL);
    ops_case("/modify/pending", test_pending, &world, NULL);
    ops_case("/modify/pending/starts", test_pending_starts, &world, NULL);
    ops_case("/modify/pending/stopped", test_pending_stopped, &world, NULL);
    ops_case("/modify/pending/failover", test_pending_failover, &world, NULL);
    ops_case("/modify/pending/migrates", test_pending_migrates, &world, NULL);
    ops_case("/modify/pending/room", test_pending_room, &world, NULL);
    ops_case("/modify/pending/waits", test_pending_waits, &world, NULL);
    ops_case("/modify/smaller/starts", test_smaller_starts, &world, NULL);
    ops_case("/modify/smaller/without-room", test_smaller_without_room, &world, NULL);
    ops_case("/modify/smaller/fails-over", test_smaller_fails_over, &world, NULL);
    ops_case("/modify/smaller/survives-its-node", test_smaller_survives_its_node, &world, NULL);
    ops_case("/modify/smaller/migrates", test_smaller_does_not_migrate, &world, NULL);
    ops_case("/modify/kernel", test_kernel, &world, NULL);
    ops_case("/modify/cards", test_cards, &world, NULL);
    ops_case("/modify/cards/changed", test_cards_changed, &world, NULL);
    ops_case("/modify/cards/not-changed", test_cards_not_changed, &world, NULL);
    ops_case("/modify/cards/refused", test_cards_refused, &world, NULL);
    ops_case("/modify/running", test_running, &world, NULL);
    return g_test_run();
}
