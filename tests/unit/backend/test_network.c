/*
 * Network cards of guests: real tap devices, bridges and routes in a namespace of our own. Open
 * vSwitch is a real one in user space (datapath netdev: no kernel module), and for its failures a
 * script that writes down what it is told.
 */
#include "world.h"

#include "backend/network/network_linux.h"
#include "backend/network/tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define U1 "11111111-1111-4111-8111-111111111111"
#define U2 "22222222-2222-4222-8222-222222222222"

static void assert_shell(const char *command, const char *expected)
{
    g_autofree char *output = world_shell("%s", command);
    g_assert_cmpstr(output, ==, expected);
}

static struct nic *card(enum nic_mode mode, const char *link, const char *ip)
{
    json_autoptr json =
        json_make("{s:s, s:s, s:s, s:s, s:s}", "uuid", U1, "mac", "aa:00:00:12:34:56", "mode",
                  enum_word(&nic_mode_words, (int)mode), "link", link, "ip", ip);
    g_autoptr(GError) error = NULL;
    struct nic *nic = nic_parse(json, RECORD_KEEP, &error);
    g_assert_no_error(error);
    return nic;
}

static char *made(struct network_driver *network, const char *instance, guint index,
                  const struct nic *nic)
{
    g_autoptr(GError) error = NULL;
    char *name = network->ops->tap_create(network, instance, index, nic, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(strlen(name), <, IFNAMSIZ);
    return name;
}

static void removed(struct network_driver *network, const char *instance)
{
    g_autoptr(GError) error = NULL;
    network->ops->tap_remove(network, instance, &error);
    g_assert_no_error(error);
}

static char *joined(GPtrArray *list)
{
    g_ptr_array_add(list, NULL);
    char *text = g_strjoinv(" ", (char **)list->pdata);
    g_ptr_array_unref(list);
    return text;
}

static void assert_listed(struct network_driver *network, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *found = joined(network->ops->list(network, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(found, ==, expected);
}

#define EVERYTHING "ip -o link | cut -d: -f2; ip rule; ip -4 route show table all"

static void assert_refused(struct network_driver *network, const struct nic *nic,
                           enum fettle_error code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *before = world_shell(EVERYTHING);
    g_assert_null(network->ops->tap_create(network, U1, 0, nic, &error));
    g_assert_cmpstr(error->message, ==, message);
    g_assert_error(error, FETTLE_ERROR, (gint)code);
    g_autofree char *after = world_shell(EVERYTHING);
    g_assert_cmpstr(before, ==, after); /* nothing is left behind */
}

/* --- names --- */

static void names(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < 20000; i++) {
        char name[TAP_NAME_BYTES];
        g_autofree char *uuid = g_strdup_printf("%08x-0000-4000-8000-%012x", i * 2654435761u, i);
        tap_name(uuid, i % 8, name);
        g_assert_cmpuint(strlen(name), ==, TAP_NAME_BYTES - 1);
        g_assert_true(g_hash_table_add(seen, g_strdup(name)));
    }
    enum nic_mode mode;
    g_autofree char *alias = tap_alias(U1, 3, NIC_ROUTED);
    g_assert_cmpstr(alias, ==, "fettle routed " U1 " 3");
    g_autofree char *owner = tap_alias_parse(alias, &mode);
    g_assert_cmpstr(owner, ==, U1);
    g_assert_cmpint(mode, ==, NIC_ROUTED);
    char name[TAP_NAME_BYTES];
    tap_name(U1, 3, name);
    g_assert_true(tap_is_name(name));
    g_assert_false(tap_is_name("ft0"));
    g_assert_false(tap_is_name("ftth-to-office1"));
    g_assert_false(tap_is_name("eth012345678901"));
    static const char *const foreign[] = {"",
                                          "uplink to the office",
                                          "fettle routed x 0",
                                          "fettle flying " U1 " 0",
                                          "fettle routed " U1,
                                          "fettle routed " U1 " 0 1"};
    for (guint i = 0; i < G_N_ELEMENTS(foreign); i++)
        g_assert_null(tap_alias_parse(foreign[i], &mode));
}

/* --- bridged --- */

static int open_tap(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    g_strlcpy(request.ifr_name, name, IFNAMSIZ);
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ioctl(fd, TUNSETIFF, &request), ==, 0);
    return fd;
}

/* What one guest sends the other one gets. */
static void assert_frame_passes(const char *from, const char *to)
{
    guint8 frame[64] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xaa, 0,
                        0,    1,    2,    3,    0x88, 0xb5, 'h',  'i'};
    guint8 got[2048] = {0};
    int sender = open_tap(from), receiver = open_tap(to);
    bool passed = false;
    /* Until the ports are forwarding, frames are lost. */
    for (guint tries = 0; !passed && tries < 500; tries++) {
        struct pollfd poll_for = {.fd = receiver, .events = POLLIN};
        if (write(sender, frame, sizeof frame) < 0)
            g_assert_cmpint(errno, ==, EIO); /* not up yet */
        while (!passed && poll(&poll_for, 1, 10) == 1)
            passed = read(receiver, got, sizeof got) >= (ssize_t)sizeof frame &&
                     memcmp(got, frame, sizeof frame) == 0;
    }
    g_assert_true(passed);
    close(sender);
    close(receiver);
}

static void bridged(void *unused)
{
    struct network_driver *network = network_linux_new();
    g_autofree char *bridge =
        world_shell("ip link add br0 type bridge && ip link set br0 mtu 1400 up");
    record_autoptr(nic) nic = card(NIC_BRIDGED, "br0", "");
    g_autofree char *first = made(network, U1, 0, nic);
    g_autofree char *again = made(network, U1, 0, nic);
    g_autofree char *second = made(network, U1, 1, nic);
    g_autofree char *other = made(network, U2, 0, nic);
    g_assert_cmpstr(first, ==, again);
    g_assert_cmpstr(first, !=, second);
    g_assert_cmpstr(first, !=, other);
    g_autofree char *about = world_shell("ip -d -o link show dev %s", first);
    static const char *const parts[] = {"mtu 1400",
                                        "master br0",
                                        "tun type tap",
                                        "persist on",
                                        "user root",
                                        "state DOWN",
                                        "<NO-CARRIER,BROADCAST,MULTICAST,UP>",
                                        "fe:00:00:12:34:56",
                                        "alias fettle bridged " U1 " 0"};
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        g_assert_nonnull(strstr(about, parts[i]));
    g_autofree char *addresses = world_shell("ip -6 -o addr show dev %s", first);
    g_assert_cmpstr(addresses, ==, ""); /* the host does not speak there */
    assert_frame_passes(first, other);
    network_linux_free(network);

    /* After a restart of the node daemon, with another bridge on record. */
    network = network_linux_new();
    assert_listed(network, U1 " " U2);
    g_autofree char *another = world_shell("ip link add br1 type bridge && ip link set br1 up");
    record_autoptr(nic) moved = card(NIC_BRIDGED, "br1", "");
    g_autofree char *same = made(network, U1, 0, moved);
    g_assert_cmpstr(same, ==, first);
    g_autofree char *now = world_shell("ip -o link show dev %s", first);
    g_assert_nonnull(strstr(now, "master br1"));
    g_autoptr(GError) error = NULL;
    g_autofree char *bridges = joined(network->ops->bridges(network, &error));
    g_assert_cmpstr(bridges, ==, "br0 br1");
    assert_shell("ip link set br1 down && ip link set br1 name br2", "");
    g_autofree char *renamed = joined(network->ops->bridges(network, &error));
    g_assert_cmpstr(renamed, ==, "br0 br2");
    assert_shell("ip link set br2 name br1", "");
    g_autofree char *same_again = joined(network->ops->bridges(network, &error));
    g_autofree char *as_before = joined(network->ops->bridges(network, &error));
    g_assert_cmpstr(same_again, ==, "br0 br1");
    g_assert_cmpstr(as_before, ==, "br0 br1");
    removed(network, U1);
    removed(network, U1);
    assert_listed(network, U2);
    removed(network, U2);
    assert_listed(network, "");
    assert_shell("ip link delete br1; ip -o link | grep -c ft || true", "0");
    network_linux_free(network);
}

static void bad_bridges(void *unused)
{
    struct network_driver *network = network_linux_new();
    record_autoptr(nic) missing = card(NIC_BRIDGED, "br7", "");
    record_autoptr(nic) loopback = card(NIC_BRIDGED, "lo", "");
    record_autoptr(nic) none = card(NIC_BRIDGED, "", "");
    record_autoptr(nic) clever = card(NIC_BRIDGED, "br0\nlink del lo", "");
    record_autoptr(nic) option = card(NIC_BRIDGED, "-batch", "");
    record_autoptr(nic) mac = card(NIC_BRIDGED, "br0", "");
    const char *no_bridge =
        "bridge br7 does not exist on this node; make it, or give the card another link";
    g_autoptr(GError) error = NULL;
    assert_refused(network, missing, FETTLE_ERROR_ENVIRONMENT, no_bridge);
    g_assert_false(network->ops->check(network, missing, &error));
    g_assert_cmpstr(error->message, ==, no_bridge);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    assert_refused(network, loopback, FETTLE_ERROR_ENVIRONMENT,
                   "lo is no bridge on this node; give the card another link");
    assert_refused(network, none, FETTLE_ERROR_WRONG_INPUT,
                   "bridge \"\": 1 to 15 letters, digits, dots, dashes and underscores are needed");
    assert_refused(network, clever, FETTLE_ERROR_WRONG_INPUT,
                   "bridge \"br0\nlink del lo\": 1 to 15 letters, digits, dots, dashes and "
                   "underscores are needed");
    assert_refused(network, option, FETTLE_ERROR_WRONG_INPUT,
                   "bridge \"-batch\": 1 to 15 letters, digits, dots, dashes and underscores are "
                   "needed");
    g_free(mac->mac);
    mac->mac = g_strdup("aa:00:00:\n2:34:56");
    assert_refused(network, mac, FETTLE_ERROR_WRONG_INPUT,
                   "\"aa:00:00:\n2:34:56\" is no MAC address");
    g_clear_error(&error);
    g_assert_null(network->ops->tap_create(network, "../x", 0, missing, &error));
    g_assert_cmpstr(error->message, ==,
                    "network card 0 of \"../x\": an instance's UUID and a number below 8 are "
                    "needed");
    network_linux_free(network);
}

static void occupied(void *unused)
{
    struct network_driver *network = network_linux_new();
    record_autoptr(nic) nic = card(NIC_BRIDGED, "br0", "");
    char name[TAP_NAME_BYTES];
    tap_name(U1, 0, name);
    g_autofree char *taken = world_shell(
        "ip tuntap add dev %s mode tap && ip link set dev %s alias 'the office'", name, name);
    g_autofree char *message =
        g_strdup_printf("interface %s is there already and belongs to \"the office\", not to "
                        "instance " U1 "; remove it with `ip link delete %s`",
                        name, name);
    assert_refused(network, nic, FETTLE_ERROR_ENVIRONMENT, message);
    removed(network, U1); /* is none of ours */
    g_autofree char *still = world_shell("ip -o link show dev %s | grep -c office", name);
    g_assert_cmpstr(still, ==, "1");
    /* One that was made a moment before a death has no alias yet, and is taken over. */
    g_autofree char *bare =
        world_shell("ip link delete %s; ip tuntap add dev %s mode tap", name, name);
    g_autofree char *own = made(network, U1, 0, nic);
    g_assert_cmpstr(own, ==, name);
    assert_listed(network, U1);
    removed(network, U1);
    assert_listed(network, "");
    network_linux_free(network);
}

/* --- routed --- */

static void assert_setting(const char *name, const char *setting, const char *expected)
{
    g_autofree char *value = world_shell("cat /proc/sys/net/ipv4/conf/%s/%s", name, setting);
    g_assert_cmpstr(value, ==, expected);
}

static void routed(void *unused)
{
    struct network_driver *network = network_linux_new();
    record_autoptr(nic) plain = card(NIC_ROUTED, "", "192.0.2.7");
    record_autoptr(nic) table = card(NIC_ROUTED, "100", "192.0.2.8");
    g_autofree char *first = made(network, U1, 0, plain);
    g_autofree char *again = made(network, U1, 0, plain);
    g_autofree char *second = made(network, U2, 0, table);
    g_autofree char *twice = made(network, U2, 0, table);
    g_autofree char *route = world_shell("ip route show 192.0.2.7");
    g_autofree char *expected =
        g_strdup_printf("192.0.2.7 dev %s proto static scope link linkdown", first);
    g_assert_cmpstr(route, ==, expected);
    assert_shell("ip route show 192.0.2.8", "");
    g_autofree char *in_table = world_shell("ip route show table 100");
    g_autofree char *expected_too =
        g_strdup_printf("192.0.2.8 dev %s proto static scope link linkdown", second);
    g_assert_cmpstr(in_table, ==, expected_too);
    g_autofree char *rules = world_shell("ip rule show | grep -c 'iif %s lookup 100'", second);
    g_assert_cmpstr(rules, ==, "1");
    assert_setting(first, "proxy_arp", "1");
    assert_setting(first, "forwarding", "1");
    g_autofree char *about = world_shell("ip -o link show dev %s", first);
    g_assert_null(strstr(about, "master"));
    record_autoptr(nic) newer = card(NIC_ROUTED, "", "2001:db8::7");
    g_autofree char *third = made(network, U1, 1, newer);
    g_autofree char *sixth =
        world_shell("ip -6 route show 2001:db8::7 | grep -c 'dev %s proto static'", third);
    g_assert_cmpstr(sixth, ==, "1");
    g_autofree char *same = made(network, U1, 1, newer);
    g_autofree char *gateway =
        world_shell("ip -6 -o addr show dev %s scope link | grep -c ' fe80::1/64 '", same);
    g_assert_cmpstr(gateway, ==, "1");
    assert_listed(network, U1 " " U2);
    removed(network, U1);
    removed(network, U2);
    assert_shell("ip route show table all | grep 192.0.2; ip rule show | grep iif || true", "");
    assert_listed(network, "");
    network_linux_free(network);
}

/* Of an incoming guest: the device is there, and all traffic still goes where the guest is. */
static void routed_later(void *unused)
{
    struct network_driver *network = network_linux_new();
    record_autoptr(nic) bare = card(NIC_ROUTED, "100", "");
    record_autoptr(nic) whole = card(NIC_ROUTED, "100", "192.0.2.8");
    g_autofree char *name = made(network, U1, 0, bare);
    assert_shell("ip route show table all | grep 192.0.2; ip rule show | grep iif || true", "");
    assert_listed(network, U1);
    g_autofree char *same = made(network, U1, 0, whole);
    g_assert_cmpstr(same, ==, name);
    assert_shell("ip route show table 100 | grep -c 192.0.2.8", "1");
    removed(network, U1);
    network_linux_free(network);
}

/* The address in the next frame of ARP, and who is to be asked for it; "": there is none. */
static char *next_arp(int fd)
{
    guint8 frame[1500];
    ssize_t len;
    while ((len = recv(fd, frame, sizeof frame, MSG_DONTWAIT)) > 0)
        if (len >= 42 && frame[12] == 0x08 && frame[13] == 0x06)
            return g_strdup_printf("%u.%u.%u.%u at %02x:%02x:%02x:%02x:%02x:%02x", frame[28],
                                   frame[29], frame[30], frame[31], frame[22], frame[23], frame[24],
                                   frame[25], frame[26], frame[27]);
    return g_strdup("");
}

static void expect_arp(int fd, const char *expected)
{
    g_autofree char *heard = next_arp(fd);
    g_assert_cmpstr(heard, ==, expected);
}

/* Whether it is among all that come. */
static bool hears(int fd, const char *expected)
{
    bool found = false;
    for (;;) {
        g_autofree char *heard = next_arp(fd);
        if (!*heard)
            return found;
        found = found || g_str_equal(heard, expected);
    }
}

static int listen_to(const char *device)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    struct sockaddr_ll wire = {.sll_family = AF_PACKET,
                               .sll_protocol = htons(ETH_P_ALL),
                               .sll_ifindex = (int)if_nametoindex(device)};
    g_assert_cmpint(bind(fd, (struct sockaddr *)&wire, sizeof wire), ==, 0);
    return fd;
}

/* Who reaches the guest by proxy ARP hears of it, on those networks alone, and the guest does not.
 */
static void routed_is_told(void *unused)
{
    struct network_driver *network = network_linux_new();
    g_autoptr(GError) error = NULL;
    record_autoptr(nic) routed = card(NIC_ROUTED, "", "192.0.2.7");
    record_autoptr(nic) newer = card(NIC_ROUTED, "", "2001:db8::7");
    record_autoptr(nic) bridged = card(NIC_BRIDGED, "br0", "192.0.2.9");
    g_free(
        world_shell("ip link add up0 type veth peer name up1; ip link add in0 type veth peer name "
                    "in1; ip link set up0 address 02:00:00:00:00:01; ip link set in0 address "
                    "02:00:00:00:00:02; for d in up0 up1 in0 in1; "
                    "do ip link set $d up; done; echo 1 >/proc/sys/net/ipv4/conf/up0/proxy_arp"));
    g_autofree char *tap = made(network, U1, 0, routed);
    int up = listen_to("up1"), in = listen_to("in1"), guest = open_tap(tap);
    g_autofree char *before = next_arp(up);
    g_assert_true(network->ops->nic_announce(network, routed, &error));
    g_assert_no_error(error);
    expect_arp(up, "192.0.2.7 at 02:00:00:00:00:01");
    expect_arp(up, "");
    expect_arp(in, "");
    guint8 frame[1500];
    for (ssize_t len; (len = read(guest, frame, sizeof frame)) > 0;)
        g_assert_false(len >= 14 && frame[12] == 0x08 && frame[13] == 0x06);
    g_assert_true(network->ops->nic_announce(network, newer, &error));
    g_assert_true(network->ops->nic_announce(network, bridged, &error));
    expect_arp(up, "");
    /* On all devices at once, the far ends of the wires among them. */
    g_free(world_shell("echo 1 >/proc/sys/net/ipv4/conf/all/proxy_arp"));
    g_assert_true(network->ops->nic_announce(network, routed, &error));
    g_assert_true(hears(up, "192.0.2.7 at 02:00:00:00:00:01"));
    g_assert_true(hears(in, "192.0.2.7 at 02:00:00:00:00:02"));
    g_free(world_shell("echo 0 >/proc/sys/net/ipv4/conf/all/proxy_arp"));
    close(guest);
    close(up);
    close(in);
    removed(network, U1);
    g_free(world_shell("ip link del up0; ip link del in0"));
    network_linux_free(network);
}

static void bad_routes(void *unused)
{
    struct network_driver *network = network_linux_new();
    record_autoptr(nic) none = card(NIC_ROUTED, "", "");
    record_autoptr(nic) wrong = card(NIC_ROUTED, "", "192.0.2.300");
    record_autoptr(nic) clever = card(NIC_ROUTED, "main dev lo", "192.0.2.7");
    g_autoptr(GError) error = NULL;
    g_assert_false(network->ops->check(network, none, &error));
    g_assert_cmpstr(error->message, ==,
                    "network card aa:00:00:12:34:56 is routed and needs an address, not \"\"");
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    assert_refused(
        network, wrong, FETTLE_ERROR_WRONG_INPUT,
        "network card aa:00:00:12:34:56 is routed and needs an address, not \"192.0.2.300\"");
    assert_refused(network, clever, FETTLE_ERROR_WRONG_INPUT,
                   "routing table \"main dev lo\": 1 to 15 letters, digits, dots, dashes and "
                   "underscores are needed");
    network_linux_free(network);
}

/* --- Open vSwitch --- */

static const char ovs_script[] = "#!/bin/sh\n"
                                 "echo \"$@\" >> %s/ovs.log\n"
                                 "case \"$*\" in\n"
                                 "*br-exists\\ ovs0) exit 0;;\n"
                                 "*br-exists\\ full) exit 0;;\n"
                                 "*br-exists\\ away) echo 'ovs-vsctl: unix:/db.sock: database "
                                 "connection failed (No such file or directory)' >&2; exit 1;;\n"
                                 "*br-exists*) exit 2;;\n"
                                 "*list-br) echo ovs0;;\n"
                                 "*add-port\\ full*) echo 'ovs-vsctl: no room' >&2; exit 1;;\n"
                                 "esac\n";

/* The script stands before the real program in PATH; what PATH was, g_free() it. */
static char *put_script_first(void)
{
    char *path = g_strdup(g_getenv("PATH"));
    g_autofree char *bin = g_build_filename(world_folder(), "bin", NULL);
    g_autofree char *script = g_build_filename(bin, "ovs-vsctl", NULL);
    g_autofree char *text = g_strdup_printf(ovs_script, world_folder());
    g_autofree char *with = g_strdup_printf("%s:%s", bin, path);
    g_assert_cmpint(g_mkdir_with_parents(bin, 0755), ==, 0);
    g_assert_true(g_file_set_contents(script, text, -1, NULL));
    g_assert_cmpint(chmod(script, 0755), ==, 0);
    g_setenv("PATH", with, TRUE);
    return path;
}

static void openvswitch(void *unused)
{
    struct network_driver *network = network_linux_new();
    record_autoptr(nic) nic = card(NIC_OPENVSWITCH, "ovs0", "");
    record_autoptr(nic) missing = card(NIC_OPENVSWITCH, "ovs9", "");
    record_autoptr(nic) full = card(NIC_OPENVSWITCH, "full", "");
    record_autoptr(nic) away = card(NIC_OPENVSWITCH, "away", "");
    g_autoptr(GError) error = NULL;
    g_autofree char *there = g_find_program_in_path("ovs-vsctl");
    if (there == NULL)
        assert_refused(network, nic, FETTLE_ERROR_ENVIRONMENT,
                       "the program ovs-vsctl is missing on this node, so no card can be connected "
                       "to the Open vSwitch bridge ovs0; install openvswitch-switch, or give the "
                       "card the mode bridged");
    g_autofree char *path = put_script_first();
    assert_refused(
        network, missing, FETTLE_ERROR_ENVIRONMENT,
        "Open vSwitch bridge ovs9 does not exist on this node; make it, or give the card "
        "another link");
    assert_refused(network, full, FETTLE_ERROR_ENVIRONMENT, "ovs-vsctl: no room");
    assert_refused(network, away, FETTLE_ERROR_ENVIRONMENT,
                   "Open vSwitch does not run on this node (ovs-vsctl: unix:/db.sock: database "
                   "connection failed (No such file or directory)); start it with: systemctl start "
                   "openvswitch-switch, or give the card the mode bridged");
    g_autofree char *clean = world_shell("rm %s/ovs.log", world_folder());
    g_autofree char *name = made(network, U1, 0, nic);
    assert_listed(network, U1);
    g_autofree char *bridges = joined(network->ops->bridges(network, &error));
    g_assert_cmpstr(bridges, ==, "br0 ovs0");
    removed(network, U1);
    assert_listed(network, "");
    g_setenv("PATH", path, TRUE);
    g_autofree char *log = world_shell("cat %s/ovs.log", world_folder());
    g_autofree char *expected =
        g_strdup_printf("--timeout=5 br-exists ovs0\n--timeout=5 --may-exist add-port ovs0 %s\n"
                        "--timeout=5 list-br\n--timeout=5 --if-exists del-port %s",
                        name, name);
    g_assert_cmpstr(log, ==, expected);
    network_linux_free(network);
}

/* `bridges` are there after `command`, and by now the programs were asked so often. */
static void assert_asked(struct network_driver *network, const char *command, const char *bridges,
                         const char *times)
{
    g_autoptr(GError) error = NULL;
    assert_shell(command, "");
    g_autofree char *found = joined(network->ops->bridges(network, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(found, ==, bridges);
    g_autofree char *asked = world_shell("grep -c list-br %s/ovs.log", world_folder());
    g_assert_cmpstr(asked, ==, times);
}

/* Each report wants the bridges; programs are started for it only when devices have changed. That
 * they are after ten seconds, too, is in test_known_bridges.c. */
static void asked_anew(void *unused)
{
    struct network_driver *network = network_linux_new();
    g_autofree char *path = put_script_first();
    g_free(world_shell("rm -f %s/ovs.log", world_folder()));
    assert_asked(network, "true", "br0 ovs0", "1");
    assert_asked(network, "true", "br0 ovs0", "1");
    assert_asked(network, "ip link add br5 type bridge", "br0 br5 ovs0", "2");
    assert_asked(network, "true", "br0 br5 ovs0", "2");
    assert_asked(network, "ip link set br5 name br6", "br0 br6 ovs0", "3");
    assert_asked(network, "true", "br0 br6 ovs0", "3");
    assert_asked(network, "ip tuntap add dev d0 mode tap", "br0 br6 ovs0", "4");
    assert_asked(network, "ip link delete br6", "br0 ovs0", "5");
    assert_asked(network, "ip link delete d0", "br0 ovs0", "6");
    assert_asked(network, "true", "br0 ovs0", "6");
    /* Another driver has asked nothing yet. */
    network_linux_free(network);
    network = network_linux_new();
    assert_asked(network, "true", "br0 ovs0", "7");
    g_setenv("PATH", path, TRUE);
    network_linux_free(network);
}

/* The database and the switch, in the folder of the test; they end with it. */
static void start_ovs(const char *run)
{
    g_assert_cmpint(g_mkdir_with_parents(run, 0755), ==, 0);
    g_setenv("OVS_RUNDIR", run, TRUE);
    g_setenv("OVS_LOGDIR", run, TRUE);
    g_autofree char *said = world_shell(
        "cd %s && { ovsdb-tool create $PWD/conf.db /usr/share/openvswitch/vswitch.ovsschema &&"
        " ovsdb-server $PWD/conf.db --remote=punix:$PWD/db.sock --log-file --detach --pidfile"
        " && ovs-vsctl --no-wait init &&"
        " ovs-vswitchd unix:$PWD/db.sock --disable-system --log-file --detach --pidfile &&"
        " ovs-vsctl --timeout=20 add-br ovs0 -- set bridge ovs0 datapath_type=netdev; }"
        " >said 2>&1 </dev/null || cat said",
        run);
    g_assert_cmpstr(said, ==, "");
}

/* Frames of one card come out of another; a card that is gone is no port any more. */
static void openvswitch_real(void *unused)
{
    struct network_driver *network = network_linux_new();
    record_autoptr(nic) nic = card(NIC_OPENVSWITCH, "ovs0", "");
    record_autoptr(nic) missing = card(NIC_OPENVSWITCH, "ovs9", "");
    g_autofree char *run = g_build_filename(world_folder(), "ovs", NULL);
    g_autoptr(GError) error = NULL;
    start_ovs(run);
    assert_refused(
        network, missing, FETTLE_ERROR_ENVIRONMENT,
        "Open vSwitch bridge ovs9 does not exist on this node; make it, or give the card "
        "another link");
    g_autofree char *bridges = joined(network->ops->bridges(network, &error));
    g_assert_true(g_str_has_suffix(bridges, "ovs0"));
    g_autofree char *first = made(network, U1, 0, nic);
    g_autofree char *again = made(network, U1, 0, nic);
    g_autofree char *other = made(network, U2, 0, nic);
    g_assert_cmpstr(first, ==, again);
    assert_listed(network, U1 " " U2);
    assert_frame_passes(first, other);
    removed(network, U1);
    removed(network, U1);
    g_autofree char *ports = world_shell("ovs-vsctl --timeout=5 list-ports ovs0");
    g_assert_cmpstr(ports, ==, other);
    removed(network, U2);
    assert_shell("ovs-vsctl --timeout=5 list-ports ovs0", "");
    assert_listed(network, "");

    /* It has stopped: that is said, and nothing is made. */
    g_autofree char *stopped = world_shell("kill $(cat %s/ovs-vswitchd.pid %s/ovsdb-server.pid); "
                                           "while test -e %s/db.sock; do sleep 0.05; done",
                                           run, run, run);
    g_autofree char *before = world_shell(EVERYTHING);
    g_assert_null(network->ops->tap_create(network, U1, 0, nic, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_ENVIRONMENT);
    g_assert_true(g_str_has_prefix(error->message, "Open vSwitch does not run on this node (ovs-"));
    g_assert_nonnull(strstr(error->message, "db.sock: database connection failed"));
    g_autofree char *after = world_shell(EVERYTHING);
    g_assert_cmpstr(before, ==, after);
    g_unsetenv("OVS_RUNDIR");
    network_linux_free(network);
}

/* --- the host's own: the master IP --- */

static void assert_carried(struct network_driver *network, const char *address,
                           const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *found = joined(network->ops->address_devices(network, address, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(found, ==, expected);
}

/* Frames that came to the other end; `want` of this ethernet type. */
static guint count_frames(int fd, guint16 type)
{
    guint8 frame[256];
    guint count = 0;
    while (recv(fd, frame, sizeof frame, MSG_DONTWAIT) > 14)
        count += frame[12] == type >> 8 && frame[13] == (type & 0xff) &&
                 (type == ETH_P_ARP || frame[54] == 136); /* neighbour advertisement */
    return count;
}

static void host_address(void *unused)
{
    struct network_driver *network = network_linux_new();
    g_autoptr(GError) error = NULL;
    g_free(
        world_shell("ip link add m0 type veth peer name m1; ip link set m0 up; ip link set m1 up; "
                    "ip addr add 192.0.2.1/24 dev m0"));
    g_assert_false(network->ops->device_check(network, "m9", &error));
    g_assert_cmpstr(error->message, ==, "network device m9 does not exist on this node");
    g_clear_error(&error);
    g_assert_false(network->ops->address_add(network, "m0; reboot", "192.0.2.10", 24, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_clear_error(&error);
    assert_carried(network, "192.0.2.10", "");

    /* Twice is no error, another prefix takes the place of the first; others stay. */
    for (guint i = 0; i < 2; i++)
        g_assert_true(network->ops->address_add(network, "m0", "192.0.2.10", 24, &error));
    g_assert_true(network->ops->address_add(network, "m0", "2001:db8::10", 64, &error));
    g_assert_no_error(error);
    assert_carried(network, "192.0.2.10", "m0");
    assert_carried(network, "2001:db8:0::10", "m0");
    assert_shell("ip -4 -o addr show dev m0 | awk '{print $4}' | xargs",
                 "192.0.2.1/24 192.0.2.10/24");
    assert_shell("ip -j route get 192.0.2.77 | grep -o '\"prefsrc\":\"[^\"]*\"'",
                 "\"prefsrc\":\"192.0.2.1\"");
    g_assert_true(network->ops->address_add(network, "m0", "192.0.2.10", 32, &error));
    assert_shell("ip -4 -o addr show dev m0 | awk '{print $4}' | xargs",
                 "192.0.2.1/24 192.0.2.10/32");
    assert_shell("ip -6 -o addr show dev m0 scope global | grep -c deprecated", "1");

    /* What neighbours hear. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
    struct sockaddr_ll other = {.sll_family = AF_PACKET,
                                .sll_protocol = htons(ETH_P_ALL),
                                .sll_ifindex = (int)if_nametoindex("m1")};
    g_assert_cmpint(bind(fd, (struct sockaddr *)&other, sizeof other), ==, 0);
    count_frames(fd, ETH_P_ARP);
    g_assert_true(network->ops->address_announce(network, "m0", "192.0.2.10", &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count_frames(fd, ETH_P_ARP), ==, 1);
    g_assert_true(network->ops->address_announce(network, "m0", "2001:db8::10", &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count_frames(fd, ETH_P_IPV6), ==, 1);
    close(fd);
    g_assert_true(network->ops->address_announce(network, "lo", "192.0.2.10", &error));
    g_assert_false(network->ops->address_announce(network, "m9", "192.0.2.10", &error));
    g_clear_error(&error);

    /* The one of the host, of the same network, does not go with it. */
    g_free(world_shell("ip addr flush dev m0 scope global; ip addr add 192.0.2.10/24 dev m0; "
                       "ip addr add 192.0.2.1/24 dev m0"));
    for (guint i = 0; i < 2; i++)
        g_assert_true(network->ops->address_remove(network, "m0", "192.0.2.10", &error));
    g_assert_true(network->ops->address_remove(network, "m9", "192.0.2.10", &error));
    g_assert_no_error(error);
    assert_shell("ip -4 -o addr show dev m0 | awk '{print $4}' | xargs", "192.0.2.1/24");
    assert_carried(network, "192.0.2.10", "");
    g_free(world_shell("ip link del m0"));
    network_linux_free(network);
}

static void add_tests(void)
{
    g_test_add_func("/network/names-fit-and-differ", names);
    world_test("/network/bridged", bridged);
    world_test("/network/bad-bridges-leave-nothing", bad_bridges);
    world_test("/network/occupied-name", occupied);
    world_test("/network/routed", routed);
    world_test("/network/routed-when-it-has-arrived#SAF-17", routed_later);
    world_test("/network/routed-is-told", routed_is_told);
    world_test("/network/bad-routes-leave-nothing", bad_routes);
    world_test("/network/host-address", host_address);
    world_test("/network/openvswitch", openvswitch);
    world_test("/network/bridges-are-asked-anew", asked_anew);
    world_test("/network/openvswitch-for-real", openvswitch_real);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add_tests);
}
