/* Create and remove: refusals with their exact words, order, and that nothing is left behind. */
#include "core/placement/placement_refusal.h"
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static json_t *mirror_op(void)
{
    return json_make("{ss ss ss s[{si}] si ss ss}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name",
                     "web1", "disk_template", "mirror", "disks", "size", 1000, "memory", 512,
                     "pnode", "node1", "snode", "node2");
}

static const char *with(const char *field, json_t *value)
{
    json_t *op = mirror_op();
    json_object_set_new(op, field, value);
    return ops_run_one(world, op);
}

static const struct instance *web(void)
{
    return config_find(world->config, "instance", "web1", NULL);
}

/* --- create --- */

static void test_create_mirror(void)
{
    world->image_bytes = 5 * 1024 * 1024;
    world->mirror_steps = 3;
    json_t *op = mirror_op();
    json_object_set_new(op, "os_type", json_string("debian"));
    json_object_set_new(op, "tags", json_make("[s, s]", "blue", "blue"));
    g_assert_cmpstr(ops_run_one(world, op), ==, "[\"node1\", \"node2\"]");
    ops_expect(
        world,
        "commit instance web1 g0 down @- node1/node2 creating; replica node2 g0 s1 stale; "
        "tag blue\n"
        "node1 disks_create debian\n"
        "node2 disks_create replica\n"
        "commit instance web1 g1 up @node1 node1/node2 creating; replica node2 g1 s2 syncing\n"
        "node2 replica_open g1\n"
        "node1 guest_start g1 mirror\n"
        "commit instance web1 g1 up @node1 node1/node2\n"
        "commit job success\n");
    g_autofree char *log = ops_log(world, 0);
    g_assert_cmpstr(log, ==,
                    "starting generation 1 of web1 on node1\n"
                    "copy to node2: 1000 of 1000 MiB\n");
    g_assert_cmpuint(web()->disks->len, ==, 1);
    g_assert_cmpuint(web()->ctime, >, 0);
    const struct replica *replica = config_get(world->config, "replica", web()->replica, NULL);
    g_assert_cmpint(replica->state, ==, REPLICA_IN_SYNC);
}

static void test_create_stopped_is_in_sync(void)
{
    g_assert_cmpstr(with("start", json_false()), ==, "[\"node1\", \"node2\"]");
    ops_expect(world,
               "commit instance web1 g0 down @- node1/node2 creating; replica node2 g0 s1 stale\n"
               "node1 disks_create\n"
               "node2 disks_create replica\n"
               "commit instance web1 g1 down @node1 node1/node2 creating; replica node2 g1 s2 "
               "syncing\n"
               "node2 replica_open g1\n"
               "node1 guest_start g1 mirror paused\n"
               "commit instance web1 g1 down @node1 node1/node2 creating\n"
               "node1 guest_stop g1\n"
               "node2 replica_close g2\n"
               "commit instance web1 g2 down @- node1/node2 clean creating; replica node2 g2 s4 "
               "in-sync\n"
               "commit instance web1 g2 down @- node1/node2 clean\n"
               "commit job success\n");
}

static void test_create_diskless(void)
{
    json_t *op = json_make("{ss ss ss si}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name", "web1",
                           "disk_template", "diskless", "memory", 100);
    world->memory[1] = 9000;
    g_assert_cmpstr(ops_run_one(world, op), ==, "[\"node2\"]");
    ops_expect(world, "commit instance web1 g0 down @- node2 creating\n"
                      "commit instance web1 g1 up @node2 node2 creating\n"
                      "node2 guest_start g1\n"
                      "commit instance web1 g1 up @node2 node2\n"
                      "commit job success\n");
}

static void test_create_chooses_nodes(void)
{
    json_t *op = mirror_op();
    json_object_del(op, "pnode");
    json_object_del(op, "snode");
    world->memory[2] = 9000;
    world->disk[0] = 20000;
    world->trace_locks = true;
    g_assert_cmpstr(ops_run_one(world, op), ==, "[\"node3\", \"node1\"]");
    g_assert_true(g_str_has_prefix(
        world->trace->str, "locks instance/web1=exclusive node/node3=shared node/node1=shared "
                           "node-res/node3=exclusive node-res/node1=exclusive\n"));
}

static void node3_fills_up(struct ops_world *changed)
{
    changed->memory[2] = 10;
}

static void test_create_chooses_anew(void)
{
    json_t *op = mirror_op();
    json_object_del(op, "pnode");
    world->memory[2] = 9000;
    world->on_locks = node3_fills_up;
    g_assert_cmpstr(ops_run_one(world, op), ==, "[\"node1\", \"node2\"]");
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd update_locks"), ==, 2);
}

static json_t *file_op(const char *disk_template, const char *format)
{
    return json_make("{ss ss ss s[{siss}{si}] si ss}", "OP_ID", "OP_INSTANCE_CREATE",
                     "instance_name", "web1", "disk_template", disk_template, "disks", "size", 1000,
                     "format", format, "size", 500, "memory", 512, "pnode", "node1");
}

static void test_create_file(void)
{
    world->disk[0] = 1500;
    g_assert_cmpstr(ops_run_one(world, file_op("file", "qcow2")), ==, "[\"node1\"]");
    ops_expect(world, "commit instance web1 g0 down @- node1 creating\n"
                      "node1 disks_create\n"
                      "commit instance web1 g1 up @node1 node1 creating\n"
                      "node1 guest_start g1\n"
                      "commit instance web1 g1 up @node1 node1\n"
                      "commit job success\n");
    const struct disk *first = web()->disks->pdata[0], *second = web()->disks->pdata[1];
    g_assert_cmpint(first->format, ==, FORMAT_QCOW2);
    g_assert_cmpint(second->format, ==, FORMAT_RAW);
    g_assert_cmpstr(first->uuid, !=, second->uuid);
    const char *call = fake_calls(world->world)->pdata[0];
    for (guint i = 0; i < fake_calls(world->world)->len; i++)
        if (strstr(fake_calls(world->world)->pdata[i], "disks_create"))
            call = fake_calls(world->world)->pdata[i];
    g_assert_nonnull(strstr(call, "\"disk_template\":\"file\""));
}

static void test_create_sharedfile(void)
{
    world->disk[0] = 10; /* its images lie elsewhere */
    g_assert_cmpstr(ops_run_one(world, file_op("sharedfile", "raw")), ==, "[\"node1\"]");
    g_assert_cmpint(web()->disk_template, ==, TEMPLATE_SHAREDFILE);
    g_assert_cmpuint(fake_count_calls(world->world, NODE2 "/noded disks_create"), ==, 0);
}

static void test_create_sharedfile_unmounted(void)
{
    world->shared[0] = world->shared[2] = "";
    g_assert_cmpstr(ops_run_one(world, file_op("sharedfile", "raw")), ==,
                    "[\"OpPrereqError\", [\"pnode: node \\\"node1\\\" does not mount the shared "
                    "folder; mount it there\", \"environment\"]]");
    /* Nobody has used one yet: the first to do so makes it what it is. */
    world->shared[1] = "";
    g_assert_cmpstr(ops_run_one(world, file_op("sharedfile", "raw")), ==, "[\"node1\"]");
}

/* --- network cards --- */

static const char *with_nics(json_t *nics)
{
    return with("nics", nics);
}

static const struct nic *card(guint index)
{
    return web()->nics->pdata[index];
}

static void test_create_cards(void)
{
    world->bridges[0] = world->bridges[1] = "br7";
    ops_set(world, "cluster", CLUSTER, "mac_prefix", json_string("02:ab:cd"));
    ops_set(world, "cluster", CLUSTER, "default_link", json_string("br7"));
    g_assert_cmpstr(with_nics(json_make("[{} {ss} {ss ss}]", "mac", "0A:00:00:00:00:0F", "mode",
                                        "routed", "ip", "10.1.2.3")),
                    ==, "[\"node1\", \"node2\"]");
    g_assert_true(g_str_has_prefix(card(0)->mac, "02:ab:cd:"));
    g_assert_cmpuint(strlen(card(0)->mac), ==, 17);
    g_assert_cmpstr(card(0)->link, ==, "br7");
    g_assert_cmpstr(card(1)->mac, ==, "0a:00:00:00:00:0f");
    g_assert_cmpint(card(2)->mode, ==, NIC_ROUTED);
    g_assert_cmpstr(card(2)->link, ==, ""); /* the main routing table */
    g_assert_cmpstr(card(2)->ip, ==, "10.1.2.3");
    g_assert_cmpstr(card(0)->mac, !=, card(2)->mac);
}

static guint refusals;

/* As wconfd does when another creation has drawn the same address a moment ago. */
static void refuse_address(struct ops_world *changed, guint number)
{
    if (number <= refusals)
        ops_fail(changed, "wconfd", "commit", FETTLE_ERROR_ALREADY_EXISTS,
                 "instance web1: nics[0].mac: aa:00:00:01:02:03 is taken by instance \"web2\"", 1);
}

static void test_drawn_anew(void)
{
    refusals = 30;
    world->on_commit = refuse_address;
    g_assert_cmpstr(with_nics(json_make("[{}]")), ==, "[\"node1\", \"node2\"]");
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd reserve"), ==, 31);
}

static void test_drawn_too_often(void)
{
    refusals = G_MAXUINT;
    world->on_commit = refuse_address;
    g_assert_cmpstr(
        with_nics(json_make("[{}]")), ==,
        "[\"OpExecError\", [\"instance web1: nics[0].mac: aa:00:00:01:02:03 is taken by "
        "instance \\\"web2\\\"\", \"already_exists\", false]]");
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd reserve"), ==,
                     LIMIT_RESERVE_TRIES);
    g_assert_null(web());
}

/* --- display --- */

static const char *with_display(const char *address, json_int_t port)
{
    json_t *op = mirror_op();
    json_object_update_new(op,
                           json_make("{ss sI}", "vnc_bind_address", address, "network_port", port));
    return ops_run_one(world, op);
}

static void test_create_display(void)
{
    g_assert_cmpstr(with_display("0.0.0.0", 0), ==, "[\"node1\", \"node2\"]");
    g_assert_cmpstr(web()->vnc_bind_address, ==, "0.0.0.0");
    g_assert_cmpuint(web()->network_port, ==, 11000);
    g_autofree char *log = ops_log(world, 0);
    g_assert_true(g_str_has_prefix(log, "warning: whoever reaches port 11000 of the node that "));
    json_t *other = json_make("{ss ss ss ss}", "OP_ID", "OP_INSTANCE_CREATE", "instance_name",
                              "db1", "disk_template", "diskless", "vnc_bind_address", "127.0.0.1");
    g_assert_cmpstr(ops_run_one(world, other), ==, "[\"node3\"]");
    const struct instance *db = config_find(world->config, "instance", "db1", NULL);
    g_assert_cmpuint(db->network_port, ==, 11001);
}

static guint64 reserved_port;

/* Another creation has reserved the port that this one has drawn. */
static void take_port(struct ops_world *changed, guint number)
{
    static const char *const uuid = "00000000-0000-4000-8000-000000000778";
    if (number == 1) {
        ops_put(changed, "reservation", uuid,
                json_make("{ss ss s{ss ss} si}", "uuid", uuid, "name", "other", "owner", "job",
                          "18", "livelock", "job-18", "port", 11000));
        ops_fail(changed, "wconfd", "commit", FETTLE_ERROR_ALREADY_EXISTS,
                 "reservation web1: port: 11000 is taken by job 18 for instance \"other\"", 1);
    }
    g_autoptr(GPtrArray) all = config_list(changed->config, "reservation");
    for (guint i = 0; i < all->len; i++) {
        const struct reservation *reservation = all->pdata[i];
        if (!strcmp(reservation->name, "web1"))
            reserved_port = reservation->port;
    }
}

static void test_port_drawn_anew(void)
{
    world->on_commit = take_port;
    g_assert_cmpstr(with_display("127.0.0.1", 0), ==, "[\"node1\", \"node2\"]");
    g_assert_cmpuint(fake_count_calls(world->world, NODE1 "/wconfd reserve"), ==, 2);
    g_assert_cmpuint(web()->network_port, ==, 11001);
    g_assert_cmpuint(reserved_port, ==, 11001);
}

static void test_refused_display(void)
{
    ops_expect_refusal(world, with_display("", 11000),
                       "network_port: is the port of a display; give vnc_bind_address too",
                       "wrong_input");
    ops_expect_refusal(world, with_display("127.0.0.1", 80),
                       "network_port: 80 is not in the cluster's port_range, 11000-14999; see "
                       "fettle cluster modify --port-range",
                       "wrong_input");
    ops_expect_refusal(
        world, with_display("localhost", 0),
        "vnc_bind_address: \"localhost\" is no address that every node has; there are 127.0.0.1 "
        "(only from the node itself, or by a tunnel), 0.0.0.0, and :: with IPv6 too (from "
        "everywhere, without a password)",
        "wrong_input");
}

/* --- images --- */

/* The answer to disks_create takes long; nothing else does. */
static guint slowly(const char *from_node, const char *to_node, void *data)
{
    bool *held = data;
    if (*held || !g_str_equal(to_node, NODE2) || !strstr(world->trace->str, "disks_create"))
        return 0;
    *held = true;
    return 5500;
}

static void test_create_tells_progress(void)
{
    json_t *op = file_op("file", "raw");
    json_object_set_new(op, "os_type", json_string("debian"));
    json_object_set_new(op, "pnode", json_string("node2"));
    world->image_bytes = 1;
    bool held = false;
    fake_set_delay(world->world, slowly, &held);
    g_assert_cmpstr(ops_run_one(world, op), ==, "[\"node2\"]");
    g_assert_cmpuint(world->looks, ==, 5);
    fake_set_delay(world->world, NULL, NULL);
    const struct job_op *row = world->done->ops->pdata[0];
    g_autofree char *log = json_to_text(row->log);
    g_assert_nonnull(strstr(log, "\"what\":\"image debian\""));
    g_assert_nonnull(strstr(log, "\"done\":50,\"total\":100"));
}

static void test_kernel(void)
{
    world->image_bytes = 1;
    world->no_image = "initrd";
    json_t *op = mirror_op();
    json_object_set_new(op, "kernel_path", json_string("vmlinuz"));
    json_object_set_new(op, "kernel_args", json_string("console=ttyS0"));
    json_t *second = json_deep_copy(op);
    g_assert_cmpstr(ops_run_one(world, op), ==, "[\"node1\", \"node2\"]");
    g_assert_cmpstr(web()->kernel_path, ==, "vmlinuz");
    g_assert_cmpstr(web()->kernel_args, ==, "console=ttyS0");
    json_object_set_new(second, "instance_name", json_string("web2"));
    json_object_set_new(second, "initrd_path", json_string("initrd"));
    g_assert_cmpstr(
        ops_run_one(world, second), ==,
        "[\"OpPrereqError\", [\"initrd_path: file \\\"initrd\\\" does not exist on node "
        "\\\"node1\\\"; put it into var/images there\", \"unknown_entity\"]]");
}

/* --- refused --- */

static void test_refused_shape(void)
{
    ops_expect_refusal(world, with("disk_template", json_string("diskless")),
                       "disks: a diskless instance has none", "wrong_input");
    ops_expect_refusal(world, with("disks", json_array()),
                       "disks: a mirrored instance needs at least one", "wrong_input");
    ops_expect_refusal(world, with("snode", json_string("node1")),
                       "snode: \"node1\" is the primary node; the replica needs another",
                       "wrong_input");
    ops_expect_refusal(
        world, with("tags", json_make("[s]", "a b")),
        "tags: \"a b\" has characters other than letters, digits and _ . + * / : @ -",
        "wrong_input");
    json_t *op = mirror_op();
    json_object_update_new(
        op, json_make("{ss, s[], ss}", "disk_template", "diskless", "disks", "os_type", "debian"));
    json_t *second = json_deep_copy(op);
    ops_expect_refusal(world, ops_run_one(world, op),
                       "snode: a diskless instance has no secondary node", "wrong_input");
    json_object_del(second, "snode");
    g_assert_cmpstr(ops_run_one(world, second), ==, "[\"node1\"]");
    g_autofree char *log = ops_log(world, 0);
    g_assert_true(g_str_has_prefix(log, "os_type: \"debian\" is left out: an instance without"));
}

static void test_refused_template(void)
{
    json_t *op = file_op("file", "raw");
    json_object_set_new(op, "snode", json_string("node2"));
    ops_expect_refusal(world, ops_run_one(world, op),
                       "snode: an instance of template file has no secondary node", "wrong_input");
    op = file_op("sharedfile", "raw");
    json_object_set_new(op, "disks", json_array());
    ops_expect_refusal(world, ops_run_one(world, op),
                       "disks: an instance of template sharedfile needs at least one",
                       "wrong_input");
    ops_expect_refusal(
        world, with("disks", json_make("[{si} {siss}]", "size", 10, "size", 10, "format", "qcow2")),
        "disks[1].format: a mirrored instance has raw disks only; the copy is byte by "
        "byte",
        "wrong_input");
    ops_expect_refusal(world, with("initrd_path", json_string("initrd")),
                       "initrd_path: needs a kernel_path that it is for", "wrong_input");
    ops_expect_refusal(world, with("kernel_args", json_string("quiet")),
                       "kernel_args: needs a kernel_path that it is for", "wrong_input");
    ops_expect_refusal(
        world, with("kernel_path", json_string("vmlinuz")),
        "kernel_path: kernel \"vmlinuz\" does not exist on node \"node1\"; put it into "
        "var/images there",
        "unknown_entity");
}

static void test_refused_mac(void)
{
    ops_expect_refusal(world, with_nics(json_make("[{ss}]", "mac", "aa:00:00:12:34")),
                       "nics[0].mac: \"aa:00:00:12:34\" is no MAC address; one looks like "
                       "aa:00:00:12:34:56",
                       "wrong_input");
    ops_expect_refusal(world, with_nics(json_make("[{} {ss}]", "mac", "aa-00-00-12-34-56")),
                       "nics[1].mac: \"aa-00-00-12-34-56\" is no MAC address; one looks like "
                       "aa:00:00:12:34:56",
                       "wrong_input");
    ops_expect_refusal(
        world, with_nics(json_make("[{ss}]", "mac", "01:00:5e:00:00:01")),
        "nics[0].mac: 01:00:5e:00:00:01 is the address of a group (the lowest bit of "
        "its first byte is set); a card needs one of its own",
        "wrong_input");
    ops_expect_refusal(world, with_nics(json_make("[{ss}]", "mac", "00:00:00:00:00:00")),
                       "nics[0].mac: 00:00:00:00:00:00 is no address that a card can have",
                       "wrong_input");
    ops_expect_refusal(
        world,
        with_nics(json_make("[{ss} {ss}]", "mac", "0a:00:00:00:00:0f", "mac", "0A:00:00:00:00:0F")),
        "nics[1].mac: 0a:00:00:00:00:0f is given twice", "wrong_input");
    ops_expect_refusal(world, with_nics(json_make("[{ss}]", "mode", "routed")),
                       "nics[0].ip: a routed card needs the address that is routed to it",
                       "wrong_input");
}

static void test_refused_mac_taken(void)
{
    ops_put_web(world, NULL, false);
    ops_set(world, "instance", WEB, "name", json_string("db"));
    ops_set(world, "instance", WEB, "nics",
            json_make("[{ss ss ss}]", "uuid", WEB, "mac", "0a:00:00:00:00:0f", "link", "br0"));
    ops_expect_refusal(
        world, with_nics(json_make("[{ss}]", "mac", "0A:00:00:00:00:0F")),
        "nics[0].mac: 0a:00:00:00:00:0f is taken by instance \"db\"; choose another, or mac=auto",
        "already_exists");
}

#define PNODE "pnode: node \"node1\""
#define expect_no_bridge(nics, sentence)                                                           \
    ops_expect_refusal(world, with_nics(nics), sentence PLACEMENT_REFUSAL_NO_BRIDGE, "environment")

static void test_refused_bridge(void)
{
    world->bridges[1] = "br9";
    expect_no_bridge(json_make("[{}]"), "snode: node \"node2\" has no bridge \"br0\"");
    expect_no_bridge(json_make("[{ss}]", "link", "br9"), PNODE " has no bridge \"br9\"");
    json_t *op = mirror_op();
    json_object_set_new(op, "nics", json_make("[{}]"));
    json_object_del(op, "snode");
    g_assert_cmpstr(ops_run_one(world, op), ==, "[\"node1\", \"node3\"]");
}

static void test_refused_name(void)
{
    ops_put_web(world, NULL, false);
    ops_expect_refusal(world, ops_run_one(world, mirror_op()), "instance \"web1\" exists already",
                       "already_exists");
}

static void test_refused_nodes(void)
{
    ops_expect_refusal(world, with("pnode", json_string("node9")), "node \"node9\" does not exist",
                       "unknown_entity");
    ops_set(world, "node", NODE2, "drained", json_true());
    ops_expect_refusal(world, ops_run_one(world, mirror_op()), "snode: node \"node2\" is drained",
                       "wrong_state");
    ops_node_offline(world, NODE2);
    ops_expect_refusal(world, ops_run_one(world, mirror_op()), "snode: node \"node2\" is offline",
                       "wrong_state");
    fake_cut(world->world, NODE3, true);
    ops_expect_refusal(world, with("snode", json_string("node3")),
                       "snode: node \"node3\" does not answer", "resource_not_available");
}

static void test_refused_one_node(void)
{
    ops_delete_object(world, "node", NODE2);
    ops_delete_object(world, "node", NODE3);
    ops_expect_refusal(world, ops_run_one(world, mirror_op()),
                       "a mirrored instance needs two nodes, the cluster has 1", "wrong_state");
}

#define NO_ROOM PLACEMENT_REFUSAL_NO_ROOM, "insufficient_resources"
#define no_room(op, s) ops_expect_refusal(world, ops_run_one(world, op), s NO_ROOM)

static void test_refused_room(void)
{
    world->memory[0] = 100;
    no_room(mirror_op(), PNODE " has 100 MiB of memory left, 512 MiB are needed");
    world->memory[0] = 4096;
    world->disk[1] = 999;
    no_room(mirror_op(), "snode: node \"node2\" has 999 MiB of disk left, 1000 MiB are needed");
    json_t *op = mirror_op();
    json_object_del(op, "snode");
    world->disk[2] = 1;
    ops_expect_refusal(
        world, ops_run_one(world, op),
        "no node can be the secondary node: node1 is to be the primary node; node2 has "
        "999 MiB of disk left, 1000 MiB are needed; node3 has 1 MiB of disk left, 1000 "
        "MiB are needed",
        "insufficient_resources");
}

static void test_refused_promised(void)
{
    /* node1 has 4096 MiB, of which the configuration has promised 512 to a stopped instance. */
    ops_put_web(world, NULL, false);
    json_t *op = mirror_op();
    json_object_set_new(op, "instance_name", json_string("web2"));
    json_object_set_new(op, "memory", json_integer(3600));
    no_room(op, PNODE " has 3584 MiB of memory left, 3600 MiB are needed");
}

static void test_refused_image(void)
{
    ops_expect_refusal(world, with("os_type", json_string("debian")),
                       "os_type: image \"debian\" does not exist on node \"node1\"; put it into "
                       "var/images there",
                       "unknown_entity");
    world->image_bytes = (guint64)1000 * 1024 * 1024 + 1;
    ops_expect_refusal(world, with("os_type", json_string("debian")),
                       "disks[0].size: image \"debian\" has 1001 MiB, the disk only 1000 MiB",
                       "wrong_input");
}

/* --- undoing --- */

static void assert_nothing_left(void)
{
    g_assert_null(web());
    g_assert_cmpuint(config_count(world->config, "replica"), ==, 0);
    g_assert_cmpuint(config_count(world->config, "tag"), ==, 0);
    g_assert_cmpuint(config_count(world->config, "removed"), ==, 1);
}

static void test_undo_disks(void)
{
    ops_fail(world, NODE2, "disks_create", FETTLE_ERROR_STORAGE, "disk full", 1);
    g_assert_cmpstr(with("tags", json_make("[s]", "blue")), ==,
                    "[\"OpExecError\", [\"node2: disk full\", \"storage_error\", false]]");
    assert_nothing_left();
    ops_expect(world,
               "commit instance web1 g0 down @- node1/node2 creating; replica node2 g0 s1 stale; "
               "tag blue\n"
               "node1 disks_create\n"
               "node2 disks_create replica\n"
               "commit instance web1 g0 down @- node1/node2 removing\n"
               "node2 disks_remove g0\n"
               "node1 disks_remove g0\n"
               "commit removed web1 g1; delete replica; delete tag; delete instance\n"
               "commit job error\n");
}

static void test_undo_start(void)
{
    ops_fail(world, NODE1, "guest_start", FETTLE_ERROR_HYPERVISOR, "no such machine", 1);
    g_assert_cmpstr(ops_run_one(world, mirror_op()), ==,
                    "[\"OpExecError\", [\"node1: no such machine\", \"hypervisor_error\", false]]");
    assert_nothing_left();
}

static void test_undo_lost_copy(void)
{
    world->mirror = "lost";
    g_assert_cmpstr(ops_run_one(world, mirror_op()), ==,
                    "[\"OpExecError\", [\"the replica of instance \\\"web1\\\" was lost during the "
                    "copy\", \"storage_error\", false]]");
    assert_nothing_left();
    g_assert_null(world->guest_node);
}

static void test_undo_names_what_is_left(void)
{
    ops_fail(world, NODE2, "disks_create", FETTLE_ERROR_UNREACHABLE, "gone", 1000);
    ops_fail(world, NODE2, "disks_remove", FETTLE_ERROR_UNREACHABLE, "gone", 1000);
    g_assert_cmpstr(ops_run_one(world, mirror_op()), ==,
                    "[\"OpExecError\", [\"node2: gone; what was made on node2 could not be "
                    "removed\", \"unreachable\", true]]");
    assert_nothing_left();
}

static void fail_the_last(struct ops_world *broken, guint number)
{
    if (number >= 3) /* after the reservation and the instance */
        ops_fail(broken, "wconfd", "commit", FETTLE_ERROR_STORAGE, "store is full", 1);
}

static void test_undo_fails(void)
{
    world->on_commit = fail_the_last;
    g_assert_cmpstr(ops_run_one(world, mirror_op()), ==,
                    "[\"OpExecError\", [\"store is full; the half made instance could not be "
                    "removed: store is full\", \"storage_error\", true]]");
    g_assert_cmpint(web()->task_state, ==, TASK_CREATING); /* the watcher settles it */
}

static void put_reservation(const char *name, int memory)
{
    static const char *const uuid = "00000000-0000-4000-8000-000000000777";
    ops_put(world, "reservation", uuid,
            json_make("{ss ss s{ss ss} s[{ss si}]}", "uuid", uuid, "name", name, "owner", "job",
                      "18", "livelock", "job-18", "rooms", "node", NODE1, "memory", memory));
}

static void test_reserved_room_is_not_given_again(void)
{
    put_reservation("other", 4000);
    no_room(
        mirror_op(), PNODE
        " has 96 MiB of memory left, 512 MiB are needed; 4000 MiB are reserved for other (job 18)");
    g_assert_null(web());
    g_assert_cmpuint(config_count(world->config, "reservation"), ==, 1);
}

static void wconfd_takes_it_for_dead(struct ops_world *changed, guint number)
{
    g_autoptr(GPtrArray) all = config_list(changed->config, "reservation");
    if (number != 2)
        return;
    g_assert_cmpuint(all->len, ==, 1);
    ops_delete_object(changed, "reservation", ((const struct reservation *)all->pdata[0])->uuid);
}

/* Room that is not reserved any more may be somebody else's. */
static void test_reservation_lost(void)
{
    world->on_commit = wconfd_takes_it_for_dead;
    const char *said = ops_run_one(world, mirror_op());
    g_assert_nonnull(strstr(said, "what was reserved for web1 is free again"));
    g_assert_null(web());
    g_assert_cmpuint(config_count(world->config, "reservation"), ==, 0);
}

/* The whole way: room under node-res, then only the instance exclusively, while disks are made. */
static void test_locks_of_a_long_creation(void)
{
    world->trace_locks = true;
    g_assert_cmpstr(ops_run_one(world, mirror_op()), ==, "[\"node1\", \"node2\"]");
    g_assert_true(g_str_has_prefix(world->trace->str,
                                   "locks instance/web1=exclusive node/node1=shared "
                                   "node/node2=shared node-res/node1=exclusive "
                                   "node-res/node2=exclusive\n"
                                   "commit reservation \n"
                                   "rooms are free\n"
                                   "commit instance web1 g0 down @- node1/node2 creating; "));
    g_assert_cmpuint(config_count(world->config, "reservation"), ==, 0);
}

/* --- remove --- */

static const char *remove_web(bool ignore)
{
    return ops_run_one(world, json_make("{ss ss sb}", "OP_ID", "OP_INSTANCE_REMOVE",
                                        "instance_name", "web1", "ignore_failures", (int)ignore));
}

static void test_remove(void)
{
    ops_put_web(world, "in-sync", true);
    g_assert_cmpstr(remove_web(false), ==, "null");
    ops_expect(world, "commit instance web1 g1 down @node1 node1/node2 removing\n"
                      "node1 guest_stop g1\n"
                      "node2 disks_remove g1\n"
                      "node1 disks_remove g1\n"
                      "commit removed web1 g2; delete replica; delete instance\n"
                      "commit job success\n");
}

/* The mark and the process of a migration that died in the middle go with it. */
static void test_remove_in_migration(void)
{
    ops_put_web(world, "in-sync", true);
    ops_set(world, "instance", WEB, "disk_template", json_string("file"));
    ops_set(world, "instance", WEB, "migration", json_string(WEB));
    ops_set(world, "instance", WEB, "migration_node", json_string(NODE3));
    ops_set(world, "instance", WEB, "task_state", json_string("migrating"));
    g_assert_cmpstr(remove_web(false), ==, "null");
    g_assert_null(web());
    g_assert_cmpuint(fake_count_calls(world->world, NODE3 "/noded disks_remove"), ==, 1);
}

/* The images belong to no node, so the first that has them mounted removes them for the dead one.
 */
static void test_remove_shared(void)
{
    ops_put_web(world, NULL, true);
    ops_set(world, "instance", WEB, "disk_template", json_string("sharedfile"));
    ops_put(world, "cluster", CLUSTER,
            json_make("{ss ss ss}", "uuid", CLUSTER, "name", "c", "master_node", NODE3));
    ops_set(world, "node", NODE1, "offline", json_true());
    world->shared[1] = "";
    g_assert_cmpstr(remove_web(false), ==, "null");
    g_assert_null(web());
    g_assert_cmpuint(fake_count_calls(world->world, NODE2 "/noded disks_remove"), ==, 0);
    g_assert_cmpuint(fake_count_calls(world->world, NODE3 "/noded disks_remove"), ==, 1);
}

static void test_remove_shared_unmounted(void)
{
    ops_put_web(world, NULL, true);
    ops_set(world, "instance", WEB, "disk_template", json_string("sharedfile"));
    ops_put(world, "cluster", CLUSTER,
            json_make("{ss ss ss}", "uuid", CLUSTER, "name", "c", "master_node", NODE3));
    ops_set(world, "node", NODE1, "offline", json_true());
    world->shared[1] = world->shared[2] = "";
    g_assert_cmpstr(remove_web(false), ==, "null");
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "its images in the shared folder could not be removed: no node "
                                 "that answers mounts the shared folder\n"));
}

static void test_remove_half_made(void)
{
    ops_put_web(world, "stale", false);
    ops_set(world, "instance", WEB, "task_state", json_string("creating"));
    g_assert_cmpstr(remove_web(false), ==, "null");
    g_assert_null(web());
}

static void test_remove_silent_node(void)
{
    ops_put_web(world, "in-sync", true);
    fake_cut(world->world, NODE2, true);
    g_assert_cmpstr(remove_web(false), ==,
                    "[\"OpPrereqError\", [\"node2, which has disks of instance \\\"web1\\\", does "
                    "not answer; try again, or with --ignore-failures\", "
                    "\"resource_not_available\"]]");
    g_assert_cmpstr(remove_web(true), ==, "null");
    g_assert_null(web());
    g_autofree char *log = ops_log(world, 0);
    g_assert_nonnull(strstr(log, "disks are left on node2; they are set aside when the node "
                                 "returns\n"));
}

static void test_remove_fails_halfway(void)
{
    ops_put_web(world, "in-sync", true);
    ops_fail(world, NODE2, "disks_remove", FETTLE_ERROR_STORAGE, "read-only", 1);
    g_assert_cmpstr(remove_web(false), ==,
                    "[\"OpExecError\", [\"node2: read-only\", \"storage_error\", true]]");
    g_assert_cmpint(web()->task_state, ==, TASK_REMOVING); /* nobody starts it any more */
    g_assert_cmpstr(remove_web(false), ==, "null");
    g_assert_null(web());
}

static void add(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("/create/mirror#SAF-10", test_create_mirror);
    add("/create/stopped#SAF-11", test_create_stopped_is_in_sync);
    add("/create/diskless", test_create_diskless);
    add("/create/chooses", test_create_chooses_nodes);
    add("/create/chooses-anew#FUT-05", test_create_chooses_anew);
    add("/create/refused/shape", test_refused_shape);
    add("/create/file", test_create_file);
    add("/create/sharedfile", test_create_sharedfile);
    add("/create/sharedfile/unmounted", test_create_sharedfile_unmounted);
    add("/remove/shared-images-of-a-dead-node", test_remove_shared);
    add("/remove/shared-images-nobody-mounts", test_remove_shared_unmounted);
    add("/create/cards", test_create_cards);
    add("/create/cards/drawn-anew", test_drawn_anew);
    add("/create/cards/drawn-too-often", test_drawn_too_often);
    add("/create/progress", test_create_tells_progress);
    add("/create/kernel", test_kernel);
    add("/create/refused/template", test_refused_template);
    add("/create/refused/mac", test_refused_mac);
    add("/create/refused/mac-taken", test_refused_mac_taken);
    add("/create/refused/bridge", test_refused_bridge);
    add("/create/refused/name", test_refused_name);
    add("/create/refused/nodes", test_refused_nodes);
    add("/create/refused/one-node", test_refused_one_node);
    add("/create/refused/room", test_refused_room);
    add("/create/refused/promised", test_refused_promised);
    add("/create/refused/image", test_refused_image);
    add("/create/undo/disks", test_undo_disks);
    add("/create/undo/start", test_undo_start);
    add("/create/undo/lost-copy", test_undo_lost_copy);
    add("/create/undo/left", test_undo_names_what_is_left);
    add("/create/undo/fails", test_undo_fails);
    add("/create/display", test_create_display);
    add("/create/display/drawn-anew#FUT-06", test_port_drawn_anew);
    add("/create/display/refused", test_refused_display);
    add("/create/reserved-room#FUT-06", test_reserved_room_is_not_given_again);
    add("/create/reservation-lost#FUT-07", test_reservation_lost);
    add("/create/locks#FUT-08,FUT-11", test_locks_of_a_long_creation);
    add("/remove#SAF-04", test_remove);
    add("/remove/in-migration#SAF-17", test_remove_in_migration);
    add("/remove/half-made", test_remove_half_made);
    add("/remove/silent", test_remove_silent_node);
    add("/remove/halfway", test_remove_fails_halfway);
    return g_test_run();
}
