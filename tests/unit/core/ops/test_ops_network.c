/* Networks by opcodes: made, changed, removed, and cards that get addresses of their pools. */
#include "unit/core/world/ops_case.h"

#include <string.h>

static struct ops_world *world;

static const char *run(const char *id, json_t *params)
{
    json_object_set_new(params, "OP_ID", json_string(id));
    return ops_run_one(world, params);
}

static const char *add(const char *name, const char *range, const char *gateway, json_t *reserved)
{
    return run("OP_NETWORK_ADD", json_make("{ss ss ss so}", "network_name", name, "network", range,
                                           "gateway", gateway, "add_reserved_ips", reserved));
}

static const char *modify(json_t *params)
{
    json_object_set_new(params, "network_name", json_string("prod"));
    return run("OP_NETWORK_SET_PARAMS", params);
}

static const char *create(const char *name, json_t *nics)
{
    return run("OP_INSTANCE_CREATE",
               json_make("{ss ss ss so}", "instance_name", name, "disk_template", "diskless",
                         "pnode", "node1", "nics", nics));
}

static const struct network *network(void)
{
    return config_find(world->config, "network", "prod", NULL);
}

static const char *address(const char *instance, guint card)
{
    const struct instance *found = config_find(world->config, "instance", instance, NULL);
    g_assert_nonnull(found);
    return ((const struct nic *)found->nics->pdata[card])->ip;
}

/* Done; what it did is not looked at. */
static void done(const char *result, const char *expected)
{
    g_assert_cmpstr(result, ==, expected);
    g_string_truncate(world->trace, 0);
}

static void put_prod(void)
{
    bool traced = world->trace_locks;
    g_assert_cmpstr(add("prod", "192.0.2.0/29", "192.0.2.1", json_make("[s]", "192.0.2.4")), ==,
                    "null");
    if (!traced)
        g_string_truncate(world->trace, 0);
}

static json_t *pool(void)
{
    return json_make("[{ss ss}]", "network", "prod", "ip", "pool");
}

static void test_life(void)
{
    world->trace_locks = true;
    put_prod();
    g_assert_true(g_str_has_prefix(world->trace->str, "locks network/[lockset]=exclusive\n"));
    g_assert_cmpstr(network()->link, ==, "br0"); /* the cluster's */
    g_string_truncate(world->trace, 0);
    g_assert_cmpstr(modify(json_make("{ss ss s[ss] s[s]}", "gateway", "192.0.2.6", "mac_prefix",
                                     "02:AB:00", "add_reserved_ips", "192.0.2.1-192.0.2.2",
                                     "192.0.2.5", "remove_reserved_ips", "192.0.2.4")),
                    ==, "null");
    g_autofree char *lock = g_strdup_printf("locks network/%s=exclusive\n", network()->uuid);
    g_assert_true(g_str_has_prefix(world->trace->str, lock));
    json_autoptr json = network_to_json(network());
    g_autofree char *reserved = json_to_text(json_object_get(json, "reserved"));
    g_assert_cmpstr(reserved, ==, "[\"192.0.2.1-192.0.2.2\",\"192.0.2.5\"]");
    g_assert_cmpstr(network()->gateway, ==, "192.0.2.6");
    g_assert_cmpstr(network()->mac_prefix, ==, "02:ab:00");
    g_assert_cmpstr(modify(json_make("{ss ss}", "gateway", "none", "mac_prefix", "none")), ==,
                    "null");
    g_assert_cmpstr(network()->gateway, ==, "");
    g_assert_cmpstr(network()->mac_prefix, ==, "");
    g_assert_cmpstr(run("OP_NETWORK_REMOVE", json_make("{ss}", "network_name", "prod")), ==,
                    "null");
    g_assert_cmpuint(config_count(world->config, "network"), ==, 0);
}

static void test_refused(void)
{
    static const struct {
        const char *range, *gateway, *reserved, *message, *code;
    } bad[] = {
        {"192.0.2.0", "", NULL,
         "network: \"192.0.2.0\" is no network; one looks like 192.0.2.0/24, and has /16 to /30",
         "wrong_input"},
        {"192.0.2.0/31", "", NULL,
         "network: \"192.0.2.0/31\" is no network; one looks like 192.0.2.0/24, and has /16 to /30",
         "wrong_input"},
        {"192.0.2.010/24", "", NULL,
         "network: \"192.0.2.010/24\" is no network; one looks like 192.0.2.0/24, and has /16 to "
         "/30",
         "wrong_input"},
        {"192.0.2.7/24", "", NULL,
         "network: 192.0.2.7/24 is not the first address of its network; that is 192.0.2.0/24",
         "wrong_input"},
        {"192.0.2.0/24", "192.0.3.1", NULL,
         "gateway: \"192.0.3.1\" is no address of a host in 192.0.2.0/24", "wrong_input"},
        {"192.0.2.0/24", "192.0.2.255", NULL,
         "gateway: \"192.0.2.255\" is no address of a host in 192.0.2.0/24", "wrong_input"},
        {"192.0.2.0/24", "", "192.0.2.9-192.0.2.5",
         "add_reserved_ips: \"192.0.2.9-192.0.2.5\" is no address and no range; they look like "
         "192.0.2.5 and 192.0.2.5-192.0.2.9",
         "wrong_input"},
        {"192.0.2.0/24", "", "192.0.2.9-192.0.3.9",
         "reserved[0]: 192.0.2.9-192.0.3.9 is not in 192.0.2.0/24", "wrong_input"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        ops_expect_refusal(world,
                           add("prod", bad[i].range, bad[i].gateway,
                               bad[i].reserved ? json_make("[s]", bad[i].reserved) : json_array()),
                           bad[i].message, bad[i].code);
    put_prod();
    ops_expect_refusal(world, add("prod", "198.51.100.0/24", "", json_array()),
                       "network \"prod\" exists already", "already_exists");
    ops_expect_refusal(world, add("other", "192.0.2.0/24", "", json_array()),
                       "network: 192.0.2.0/24 overlaps with 192.0.2.0/29 of network \"prod\", "
                       "which has the same link",
                       "already_exists");
    ops_expect_refusal(world, modify(json_object()),
                       "nothing to change: network \"prod\" is so already", "wrong_input");
    ops_expect_refusal(world, modify(json_make("{ss}", "mac_prefix", "01:00:5e")),
                       "mac_prefix: \"01:00:5e\" does not begin the address of a card, as "
                       "aa:00:00 does",
                       "wrong_input");
    ops_expect_refusal(world, modify(json_make("{s[s]}", "remove_reserved_ips", "192.0.2.5")),
                       "remove_reserved_ips: 192.0.2.5 is not reserved in network \"prod\" in "
                       "that form; see fettle network info prod",
                       "unknown_entity");
    ops_expect_refusal(world, run("OP_NETWORK_REMOVE", json_make("{ss}", "network_name", "test")),
                       "network \"test\" does not exist", "unknown_entity");
}

/* The lowest first; gateway, reserved ones, and those in use are passed over. */
static void test_pool(void)
{
    put_prod();
    world->trace_locks = true;
    g_assert_cmpstr(create("a", pool()), ==, "[\"node1\"]");
    g_autofree char *locks = g_strdup_printf(
        "locks instance/a=exclusive node/node1=shared node-res/node1=exclusive network/%s=shared\n",
        network()->uuid);
    g_assert_true(g_str_has_prefix(world->trace->str, locks));
    /* Both locks are given back while the creation goes on. */
    g_assert_nonnull(strstr(world->trace->str, "rooms are free\n"));
    g_assert_nonnull(strstr(world->trace->str, "networks are free\n"));
    world->trace_locks = false;
    json_t *two = pool();
    json_array_extend(two, two);
    done(create("b", two), "[\"node1\"]");
    g_assert_cmpstr(address("a", 0), ==, "192.0.2.2");
    g_assert_cmpstr(address("b", 0), ==, "192.0.2.3");
    g_assert_cmpstr(address("b", 1), ==, "192.0.2.5");
    done(create("c", json_make("[{ss ss}]", "network", "prod", "ip", "192.0.2.6")), "[\"node1\"]");
    const struct instance *c = config_find(world->config, "instance", "c", NULL);
    const struct nic *nic = c->nics->pdata[0];
    g_assert_cmpstr(nic->network, ==, network()->uuid);
    g_assert_cmpstr(nic->link, ==, "br0");
    ops_expect_refusal(world, create("d", pool()),
                       "nics[0].ip: network \"prod\" (192.0.2.0/29) has no free address left; see "
                       "fettle network info prod",
                       "limit_exceeded");
    done(modify(json_make("{s[s]}", "remove_reserved_ips", "192.0.2.4")), "null");
    done(create("d", pool()), "[\"node1\"]");
    g_assert_cmpstr(address("d", 0), ==, "192.0.2.4");
}

static const char *mac(guint card)
{
    const struct instance *found = config_find(world->config, "instance", "a", NULL);
    return ((const struct nic *)found->nics->pdata[card])->mac;
}

/* The same numbers are drawn in each world: what somebody has is drawn again. */
static char *drawn(const char *instance, const char *taken)
{
    g_clear_pointer(&world, ops_world_free);
    world = ops_world_new();
    if (instance)
        ops_put(world, "instance", WEB,
                json_make("{ss ss si ss ss s[{ss ss ss ss}]}", "uuid", WEB, "name", instance,
                          "memory", 128, "disk_template", "diskless", "primary_node", NODE2, "nics",
                          "uuid", "00000000-0000-4000-8000-0000000000e9", "mac", taken, "mode",
                          "bridged", "link", "br0"));
    done(create("a", json_make("[{ss} {}]", "mac", instance ? "0a:00:00:00:00:0f" : taken)),
         "[\"node1\"]");
    return g_strdup(mac(1));
}

static void test_taken_macs_are_not_drawn(void)
{
    g_autofree char *first = drawn(NULL, "0a:00:00:00:00:0f");
    g_autofree char *again = drawn(NULL, "0a:00:00:00:00:0e");
    g_assert_cmpstr(first, ==, again);
    g_autofree char *of_its_own = drawn(NULL, first);
    g_assert_cmpstr(of_its_own, !=, first);
    g_autofree char *of_another = drawn("other", first);
    g_assert_cmpstr(of_another, !=, first);
}

static void test_card_refused(void)
{
    put_prod();
    done(create("a", json_make("[{ss ss}]", "network", "prod", "ip", "192.0.2.6")), "[\"node1\"]");
    static const struct {
        const char *network, *ip, *link, *message, *code;
    } bad[] = {
        {"prod", "192.0.2.6", "", "nics[0].ip: 192.0.2.6 is taken by instance \"a\"",
         "already_exists"},
        {"prod", "192.0.2.1", "", "nics[0].ip: 192.0.2.1 is its gateway (network \"prod\")",
         "wrong_input"},
        {"prod", "192.0.2.4", "", "nics[0].ip: 192.0.2.4 is reserved (network \"prod\")",
         "wrong_input"},
        {"prod", "192.0.2.0", "",
         "nics[0].ip: 192.0.2.0 is the address of the network itself (network \"prod\")",
         "wrong_input"},
        {"prod", "192.0.2.7", "",
         "nics[0].ip: 192.0.2.7 is its broadcast address (network \"prod\")", "wrong_input"},
        {"prod", "192.0.3.7", "", "nics[0].ip: 192.0.3.7 is not in 192.0.2.0/29 (network \"prod\")",
         "wrong_input"},
        {"prod", "web", "",
         "nics[0].ip: web is no IPv4 address, such as 192.0.2.7 (network \"prod\")", "wrong_input"},
        {"prod", "pool", "br0", "nics[0].link: network \"prod\" says how its cards are connected",
         "wrong_input"},
        {"test", "pool", "", "nics[0].network: network \"test\" does not exist", "unknown_entity"},
        {"", "pool", "", "nics[0].ip: a pool belongs to a network; name it: network=NAME,ip=pool",
         "wrong_input"},
        {"", "192.0.2.6", "br0", "nics[0].ip: 192.0.2.6 is taken by instance \"a\"",
         "already_exists"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        ops_expect_refusal(world,
                           create("b", json_make("[{ss ss ss}]", "network", bad[i].network, "ip",
                                                 bad[i].ip, "link", bad[i].link)),
                           bad[i].message, bad[i].code);
    ops_expect_refusal(world,
                       modify(json_make("{s[s]}", "add_reserved_ips", "192.0.2.5-192.0.2.6")),
                       "add_reserved_ips: 192.0.2.6 is taken by instance \"a\"", "already_exists");
    ops_expect_refusal(world, modify(json_make("{ss}", "gateway", "192.0.2.6")),
                       "gateway: 192.0.2.6 is taken by instance \"a\"", "already_exists");
    ops_expect_refusal(world, run("OP_NETWORK_REMOVE", json_make("{ss}", "network_name", "prod")),
                       "instance \"a\" has a card in network \"prod\"; it stays while one has",
                       "wrong_state");
}

/* What another creation has reserved is not given out, and its job is named. */
static void test_reserved_by_a_job(void)
{
    put_prod();
    ops_put(world, "reservation", "00000000-0000-4000-8000-0000000000f1",
            json_make("{ss ss s{ss ss} s[ss]}", "uuid", "00000000-0000-4000-8000-0000000000f1",
                      "name", "other", "owner", "job", "18", "livelock", "job-18", "ips",
                      "192.0.2.2@br0", "192.0.2.3@br9"));
    done(create("a", pool()), "[\"node1\"]");
    g_assert_cmpstr(address("a", 0), ==, "192.0.2.3");
    ops_expect_refusal(
        world, create("b", json_make("[{ss ss}]", "network", "prod", "ip", "192.0.2.2")),
        "nics[0].ip: 192.0.2.2 is taken by job 18 for instance \"other\"", "already_exists");
}

static guint others;

/* Another creation is faster by a moment, each time with the address that this one has drawn. */
static void overtake(struct ops_world *changed, guint number)
{
    if (number > others)
        return;
    g_autofree char *uuid = g_strdup_printf("00000000-0000-4000-8000-0000000001%02u", number);
    g_autofree char *key = g_strdup_printf("192.0.2.%u@br0", number);
    ops_put(changed, "reservation", uuid,
            json_make("{ss ss s{ss ss} s[s]}", "uuid", uuid, "name", uuid, "owner", "job", "18",
                      "livelock", "job-18", "ips", key));
    ops_fail(changed, "wconfd", "commit", FETTLE_ERROR_ALREADY_EXISTS,
             "instance a: nics[0].ip: that is taken by job 18", 1);
}

/* However many are faster: while the pool has an address, it is drawn. */
static void test_overtaken(void)
{
    done(add("prod", "192.0.2.0/27", "", json_array()), "null");
    others = 29;
    world->commits = 0;
    world->on_commit = overtake;
    done(create("a", pool()), "[\"node1\"]");
    world->on_commit = NULL;
    g_assert_cmpstr(address("a", 0), ==, "192.0.2.30");
    ops_expect_refusal(world, create("b", pool()),
                       "nics[0].ip: network \"prod\" (192.0.2.0/27) has no free address left; see "
                       "fettle network info prod",
                       "limit_exceeded");
}

/* The address that the master carries is no guest's. */
static void test_master_ip(void)
{
    put_prod();
    ops_set(world, "cluster", CLUSTER, "master_ip", json_string("192.0.2.2"));
    g_assert_cmpstr(create("a", pool()), ==, "[\"node1\"]");
    g_assert_cmpstr(address("a", 0), ==, "192.0.2.3");
}

static void test_mac_prefix(void)
{
    put_prod();
    done(modify(json_make("{ss}", "mac_prefix", "02:ab:cd")), "null");
    done(create("a", pool()), "[\"node1\"]");
    const struct instance *a = config_find(world->config, "instance", "a", NULL);
    g_assert_true(g_str_has_prefix(((const struct nic *)a->nics->pdata[0])->mac, "02:ab:cd:"));
}

static void add_case(const char *path, void (*fn)(void))
{
    ops_case(path, fn, &world, NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_case("/network/life#WCF-22", test_life);
    add_case("/network/refused", test_refused);
    add_case("/network/pool#WCF-22,FUT-08", test_pool);
    add_case("/network/taken-macs", test_taken_macs_are_not_drawn);
    add_case("/network/card-refused", test_card_refused);
    add_case("/network/reserved-by-a-job#FUT-06", test_reserved_by_a_job);
    add_case("/network/overtaken#WCF-22,FUT-08", test_overtaken);
    add_case("/network/master-ip", test_master_ip);
    add_case("/network/mac-prefix", test_mac_prefix);
    return g_test_run();
}
