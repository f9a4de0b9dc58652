/* The master IP: who carries it, and when it goes (core/node/master_ip.c), between two nodes whose
 * wconfd say what the test makes them say. */
#include "helper/node_world.h"

#include "core/config/voucher.h"
#include "helper/fake_authority.h"
#include "proto/master_ip.h"

#include <string.h>

#define ADDRESS "192.0.2.10"
#define OTHER "192.0.2.11"
#define NODES 2

struct side {
    struct test_node *node;
    struct env *wconfd;
    enum seat_role seat;
    guint64 epoch;
    bool silent;
};

static struct node_world *nw;
static struct side sides[NODES];
static const char *address, *netdev; /* what the cluster has */
static guint netmask;

/* --- the world --- */

static void wconfd_handle(struct rpc_request *request, void *data)
{
    const struct side *side = data;
    if (side->silent) {
        g_ptr_array_add(nw->unanswered, request);
        return;
    }
    const struct role_status status = {.seat = side->seat,
                                       .history = 1,
                                       .epoch = side->epoch,
                                       .master_node = (char *)"",
                                       .why = (char *)""};
    rpc_answer(request, role_status_to_json(&status));
}

static void set_up(void)
{
    nw = node_world_new(1);
    address = ADDRESS;
    netdev = "eth0";
    netmask = 24;
    for (guint i = 0; i < NODES; i++) {
        struct side *side = &sides[i];
        *side = (struct side){.node = i == 0 ? &nw->a : &nw->b, .seat = SEAT_FOLLOWS};
        side->wconfd = fake_process(nw->world, side->node->uuid, ROLE_WCONFD);
        fake_serve(side->wconfd, wconfd_handle, side);
    }
}

static void tear_down(void)
{
    node_world_free(nw);
}

static json_t *members(void)
{
    json_t *list = json_array();
    for (guint i = 0; i < NODES; i++) {
        g_autofree char *name = g_strdup_printf("node%u", i + 1);
        json_array_append_new(list, json_make("{s:s,s:s,s:s,s:i}", "uuid", sides[i].node->uuid,
                                              "name", name, "address", "10.0.0.9", "port", 1811));
    }
    return list;
}

static void announce_start(guint master, guint64 epoch, guint to, struct fake_reply *reply)
{
    static guint64 serial = 1;
    char signature[LIMIT_VOUCHER_CHARS + 1];
    sides[master].wconfd->authority = fake_authority_of(true);
    voucher_sign(sides[master].wconfd, CLUSTER, (struct stamp){1, epoch}, true, signature);
    fake_call_start_stamped(sides[master].wconfd, 0, (struct stamp){1, epoch}, sides[to].node->uuid,
                            ROLE_NODED, "announce",
                            json_make("{s:i,s:I,s:s,s:s,s:I,s:o,s:s,s:i,s:s,s:s}", "history", 1,
                                      "epoch", (json_int_t)epoch, "cluster", CLUSTER, "master_node",
                                      sides[master].node->uuid, "serial", (json_int_t)++serial,
                                      "members", members(), "master_ip", address, "master_netmask",
                                      netmask, "master_netdev", netdev, "signature", signature),
                            reply);
}

static void announce_end(struct fake_reply *reply)
{
    nw_until(nw, reply->done);
    g_assert_no_error(reply->error);
    fake_reply_clear(reply);
}

/* The master tells a node; that it is known in memory is all that counts here. */
static void announce(guint master, guint64 epoch, guint to)
{
    struct fake_reply reply;
    announce_start(master, epoch, to, &reply);
    announce_end(&reply);
}

/* Its wconfd is the master, and all have heard of it. */
static void make_master(guint master, guint64 epoch)
{
    sides[master].seat = SEAT_MASTER;
    sides[master].epoch = epoch;
    for (guint i = 0; i < NODES; i++)
        announce(master, epoch, i);
}

#define assert_on(side, expected)                                                                  \
    do {                                                                                           \
        g_autofree char *said_ = fake_host_addresses(sides[side].node->host);                      \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

#define HAS "eth0 192.0.2.10/24"

/* --- who has it --- */

static void test_carried(void)
{
    set_up();
    make_master(0, 2);
    nw_pass(nw, 1000);
    assert_on(0, HAS);
    assert_on(1, "");
    nw_pass(nw, 10000);
    g_assert_cmpuint(fake_host_announced(nw->a.host), ==, 5);
    g_assert_cmpuint(fake_host_announced(nw->b.host), ==, 0);

    /* Taken away by somebody: it comes back, and the neighbours hear of it. */
    fake_host_set_address(nw->a.host, HAS, false);
    nw_pass(nw, 10000);
    assert_on(0, HAS);
    g_assert_cmpuint(fake_host_announced(nw->a.host), ==, 10);

    /* It stays while the same master goes on, under the next epoch too. */
    make_master(0, 3);
    assert_on(0, HAS);
    nw_pass(nw, 1000);
    assert_on(0, HAS);
    tear_down();
}

/* Another is announced: gone before the announcement is answered, whatever wconfd does. */
static void test_follows_the_epoch(void)
{
    set_up();
    make_master(0, 2);
    nw_pass(nw, 1000);
    sides[0].silent = true;
    nw_pass(nw, 600); /* a question to it is under way */
    sides[1].seat = SEAT_MASTER;
    sides[1].epoch = 3;
    announce(1, 3, 0);
    nw_pass(nw, 5);
    assert_on(0, "");
    announce(1, 3, 1);
    nw_pass(nw, 1000);
    assert_on(1, HAS);
    nw_pass(nw, 60000);
    assert_on(0, "");
    assert_on(1, HAS);
    tear_down();
}

/* Announcements that come while the host is asked and changed. */
static void test_announced_again_and_again(void)
{
    set_up();
    make_master(0, 2);
    nw_pass(nw, 1000);
    sides[1].seat = SEAT_MASTER;
    sides[1].epoch = 3;
    struct fake_reply replies[20];
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++) {
        announce_start(1, 3, 0, &replies[i]);
        fake_advance(nw->world, 1);
    }
    for (guint i = 0; i < G_N_ELEMENTS(replies); i++)
        announce_end(&replies[i]);
    assert_on(0, "");

    /* One that comes while an earlier one is dealt with is not left for the next sweep. */
    for (guint between = 0; between < 8; between++) {
        sides[0].epoch = 5 + 2 * between;
        sides[0].seat = SEAT_FOLLOWS;
        announce_start(1, 4 + 2 * between, 0, &replies[0]);
        fake_advance(nw->world, between);
        announce_start(0, 5 + 2 * between, 0, &replies[1]);
        nw_until(nw, replies[0].done); /* it may have been overtaken */
        fake_reply_clear(&replies[0]);
        announce_end(&replies[1]);
        sides[0].seat = SEAT_MASTER;
        nw_pass(nw, 1000);
        assert_on(0, HAS);
    }
    tear_down();
}

/* A promise to another candidate is the end of it as well. */
static void test_promised(void)
{
    struct fake_reply reply;
    char signature[LIMIT_VOUCHER_CHARS + 1];
    set_up();
    make_master(0, 2);
    nw_pass(nw, 1000);
    sides[1].wconfd->authority = fake_authority_of(true);
    voucher_sign(sides[1].wconfd, CLUSTER, (struct stamp){1, 3}, false, signature);
    fake_call_start_stamped(sides[1].wconfd, 0, (struct stamp){1, 3}, NODE_A, ROLE_NODED,
                            "promise_epoch",
                            json_make("{s:i,s:i,s:i,s:s,s:s}", "history", 1, "epoch", 3, "since", 2,
                                      "node", NODE_B, "signature", signature),
                            &reply);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    g_assert_true(json_is_true(json_object_get(reply.result, "granted")));
    fake_reply_clear(&reply);
    nw_pass(nw, 600);
    assert_on(0, "");
    tear_down();
}

/* --- a master that is none any more --- */

static void test_steps_down(void)
{
    set_up();
    make_master(0, 2);
    nw_pass(nw, 1000);
    sides[0].seat = SEAT_FOLLOWS;
    nw_pass(nw, 600);
    assert_on(0, "");
    sides[0].seat = SEAT_MASTER;
    sides[0].epoch = 3; /* that is not announced yet */
    nw_pass(nw, 2000);
    assert_on(0, "");
    announce(0, 3, 0);
    nw_pass(nw, 1000);
    assert_on(0, HAS);

    /* A restart of wconfd: silence, a campaign, the same epoch. */
    sides[0].silent = true;
    nw_pass(nw, 2000);
    sides[0].silent = false;
    sides[0].seat = SEAT_CAMPAIGNS;
    nw_pass(nw, 1500);
    assert_on(0, HAS);
    sides[0].seat = SEAT_MASTER;
    nw_pass(nw, 20000);
    assert_on(0, HAS);

    /* Silence without end. */
    sides[0].silent = true;
    nw_pass(nw, 4000);
    assert_on(0, HAS);
    nw_pass(nw, 3000);
    assert_on(0, "");
    tear_down();
}

/* What is not on disk would be known to no later node daemon: it is not done. */
static void test_remembered_first(void)
{
    set_up();
    fake_fail_files(nw->world, "node/master_ip.json", 1000);
    make_master(0, 2);
    nw_pass(nw, 3000);
    assert_on(0, "");
    fake_fail_files(nw->world, "node/master_ip.json", 0);
    nw_pass(nw, 3000);
    assert_on(0, HAS);
    tear_down();
}

/* The node daemon dies, and the node. */
static void test_lives(void)
{
    set_up();
    make_master(0, 2);
    nw_pass(nw, 1000);
    nw_daemon_kill(nw, &nw->a);
    assert_on(0, HAS);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 3000);
    assert_on(0, HAS);
    sides[0].silent = true;
    nw_daemon_kill(nw, &nw->a);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 3000);
    assert_on(0, HAS); /* wconfd is restarted with it */
    nw_pass(nw, 4000);
    assert_on(0, "");
    sides[0].silent = false;
    nw_pass(nw, 3000); /* the question that it has not answered is given up first */
    assert_on(0, HAS);

    /* After a power cut: not before it is the master again, under the epoch of this boot. */
    nw_power_cut(nw, &nw->a);
    assert_on(0, "");
    sides[0].wconfd = fake_process(nw->world, NODE_A, ROLE_WCONFD);
    fake_serve(sides[0].wconfd, wconfd_handle, &sides[0]);
    sides[0].seat = SEAT_CAMPAIGNS;
    sides[0].epoch = 2;
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 10000);
    assert_on(0, "");
    make_master(0, 3);
    nw_pass(nw, 1000);
    assert_on(0, HAS);

    /* It was replaced while it was dead, and only its node daemon was. */
    nw_daemon_kill(nw, &nw->a);
    sides[0].seat = SEAT_FOLLOWS;
    sides[1].seat = SEAT_MASTER;
    sides[1].epoch = 4;
    announce(1, 4, 1);
    nw_pass(nw, 1000);
    assert_on(0, HAS); /* nobody is there to remove it: documented */
    assert_on(1, HAS);
    nw_daemon_start(nw, &nw->a);
    nw_pass(nw, 1000);
    assert_on(0, "");
    tear_down();
}

/* --- another address --- */

static void test_changed(void)
{
    set_up();
    make_master(0, 2);
    nw_pass(nw, 1000);
    address = OTHER;
    netdev = "eth1";
    netmask = 32;
    announce(0, 2, 0);
    nw_pass(nw, 1000);
    assert_on(0, "eth1 192.0.2.11/32");

    /* Taken away while the node daemon was down, and the node lost its mastership. */
    nw_daemon_kill(nw, &nw->a);
    address = netdev = "";
    netmask = 0;
    nw_daemon_start(nw, &nw->a);
    sides[1].seat = SEAT_MASTER;
    sides[1].epoch = 3;
    announce(1, 3, 0);
    nw_pass(nw, 1000);
    assert_on(0, "");
    announce(1, 3, 1);
    nw_pass(nw, 1000);
    assert_on(1, "");
    tear_down();
}

/* --- trouble --- */

static char *report_of_a(void)
{
    struct fake_reply reply;
    fake_call_start_stamped(sides[0].wconfd, 0, (struct stamp){1, 2}, NODE_A, ROLE_NODED,
                            "node_report", json_object(), &reply);
    nw_until(nw, reply.done);
    g_assert_no_error(reply.error);
    char *text = json_to_text(json_object_get(reply.result, "master_ip"));
    fake_reply_clear(&reply);
    return text;
}

static void test_trouble(void)
{
    set_up();
    fake_host_fault(nw->a.host, "address_add", FAKE_FAULT_FAILS, 3);
    fake_host_set_address(nw->b.host, "eth0 192.0.2.10/32", true); /* by hand, at the wrong place */
    fake_host_set_address(nw->b.host, "eth1 192.0.2.10/32", true); /* not ours to judge */
    make_master(0, 2);
    nw_pass(nw, 100);
    assert_on(0, "");
    nw_pass(nw, 5000);
    assert_on(0, HAS);
    assert_on(1, "eth1 192.0.2.10/32");
    g_autofree char *reported = report_of_a();
    g_assert_cmpstr(reported, ==, "[\"eth0\"]");
    fake_host_set_address(nw->b.host, "eth0 192.0.2.10/32", true);
    fake_host_fault(nw->b.host, "address_remove", FAKE_FAULT_FAILS, 1);
    nw_pass(nw, 65000); /* looked for now and then */
    assert_on(1, "eth1 192.0.2.10/32");
    netdev = "eth7";
    announce(0, 2, 0);
    nw_pass(nw, 2000);
    assert_on(0, "");
    netdev = "eth0";
    announce(0, 2, 0);
    nw_pass(nw, 1000);
    assert_on(0, HAS);
    tear_down();
}

static char *check(guint node, const char *wanted, const char *device)
{
    struct fake_reply reply;
    struct env *job = fake_process(nw->world, NODE_A, ROLE_JOB);
    fake_call_start_stamped(job, 7, (struct stamp){1, 2}, sides[node].node->uuid, ROLE_NODED,
                            "address_check",
                            json_make("{s:s,s:s}", "address", wanted, "netdev", device), &reply);
    nw_until(nw, reply.done);
    char *said = g_strdup(reply.error ? reply.error->message : "");
    fake_reply_clear(&reply);
    return said;
}

#define assert_checked(node, wanted, device, expected)                                             \
    do {                                                                                           \
        g_autofree char *said_ = check(node, wanted, device);                                      \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

static void test_check(void)
{
    set_up();
    make_master(0, 2);
    nw_pass(nw, 1000);
    assert_checked(0, ADDRESS, "eth0", ""); /* the present one */
    assert_checked(0, OTHER, "eth1", "");
    assert_checked(0, OTHER, "eth7", "network device eth7 does not exist on this node");
    fake_host_set_address(nw->b.host, "eth1 192.0.2.11/24", true);
    assert_checked(1, OTHER, "eth0",
                   "192.0.2.11 is an address of this node already, on eth1; the master IP needs "
                   "one that no host has");
    tear_down();
}

/* --- text --- */

static void test_text(void)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"192.0.2.10/24", "192.0.2.10 24"},
        {"2001:DB8:0::10/64", "2001:db8::10 64"},
        {"2001:db8::10/128", "2001:db8::10 128"},
#define FORM "an address with the length of its prefix is needed, such as 192.0.2.10/24"
        {"192.0.2.10", "master_ip: \"192.0.2.10\": " FORM},
        {"/24", "master_ip: \"/24\": " FORM},
        {"node1/24", "master_ip: \"node1/24\": " FORM},
        {"192.0.2.300/24", "master_ip: \"192.0.2.300/24\": " FORM},
        {"192.0.2.10/33",
         "master_ip: \"192.0.2.10/33\": the length of the prefix is a number from 1 to 32"},
        {"192.0.2.10/0",
         "master_ip: \"192.0.2.10/0\": the length of the prefix is a number from 1 to 32"},
        {"192.0.2.10/2 4",
         "master_ip: \"192.0.2.10/2 4\": the length of the prefix is a number from 1 to 32"},
        {"2001:db8::10/129",
         "master_ip: \"2001:db8::10/129\": the length of the prefix is a number from 1 to 128"},
        {"0.0.0.0/24", "master_ip: 0.0.0.0 is no address of a host"},
        {"255.255.255.255/32", "master_ip: 255.255.255.255 is no address of a host"},
        {"127.0.0.1/8", "master_ip: 127.0.0.1 is a loopback address"},
        {"224.0.0.1/4", "master_ip: 224.0.0.1 is a multicast address"},
        {"::/64", "master_ip: :: is no address of a host"},
        {"::1/128", "master_ip: ::1 is a loopback address"},
        {"ff02::1/64", "master_ip: ff02::1 is a multicast address"},
        {"fe80::1/64", "master_ip: fe80::1 is a link-local address, which is nobody's alone"},
        {"::ffff:192.0.2.1/96", "master_ip: ::ffff:192.0.2.1 is an IPv4 address in another form"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *parsed = NULL;
        guint bits = 0;
        bool ok = master_ip_parse(cases[i].text, &parsed, &bits, &error);
        g_autofree char *said =
            ok ? g_strdup_printf("%s %u", parsed, bits) : g_strdup(error->message);
        g_assert_cmpstr(said, ==, cases[i].said);
    }
    g_assert_true(master_ip_same("2001:db8::10", "2001:0db8:0:0::10"));
    g_assert_false(master_ip_same("192.0.2.1", "192.0.2.2"));
    g_assert_false(master_ip_same("", ""));
    static const char *const bad[] = {"", "-x", ".x", "a b", "eth0/1", "sixteencharacter"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(master_ip_check_netdev(bad[i], NULL));
    g_assert_true(master_ip_check_netdev("bond0.100", NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/master-ip/carried", test_carried);
    g_test_add_func("/master-ip/follows-the-epoch#SAF-05", test_follows_the_epoch);
    g_test_add_func("/master-ip/announced-again-and-again#SAF-05", test_announced_again_and_again);
    g_test_add_func("/master-ip/promised#SAF-05", test_promised);
    g_test_add_func("/master-ip/steps-down#SAF-08", test_steps_down);
    g_test_add_func("/master-ip/remembered-first", test_remembered_first);
    g_test_add_func("/master-ip/lives", test_lives);
    g_test_add_func("/master-ip/changed", test_changed);
    g_test_add_func("/master-ip/trouble", test_trouble);
    g_test_add_func("/master-ip/check", test_check);
    g_test_add_func("/master-ip/text", test_text);
    return g_test_run();
}
