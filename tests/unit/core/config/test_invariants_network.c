/* What must be true of networks and the cards in them, and who may change them. */
#include <string.h>

#include "core/config/addresses.h"
#include "unit/core/world/wconf_world.h"

#define PROD "77777777-0000-4000-8000-000000000001"
#define OTHER "77777777-0000-4000-8000-000000000002"
#define NIC1 "88888888-0000-4000-8000-000000000001"

static json_t *object_network(const char *uuid, const char *name, const char *range)
{
    return json_make("{s:s,s:s,s:s,s:s}", "uuid", uuid, "name", name, "network", range, "link",
                     "br0");
}

static struct change *put_prod(json_t *object)
{
    return put("network", PROD, 1, object);
}

static json_t *prod(void)
{
    return object_network(PROD, "prod", "192.0.2.0/24");
}

/* db1 with one card. */
static struct change *put_card(const char *network, const char *link, const char *ip)
{
    return put("instance", DB1, 1,
               with(object_db1(), "nics",
                    json_make("[{s:s,s:s,s:s,s:s,s:s}]", "uuid", NIC1, "mac", "aa:00:00:00:00:01",
                              "link", link, "ip", ip, "network", network)));
}

static GPtrArray *used(void)
{
    return changes_of(put_prod(prod()), put_card(PROD, "br0", "192.0.2.7"), NULL);
}

#define SAYS(setup, change, expected)                                                              \
    assert_says(check_as(setup, changes_of(change, NULL), AUTHOR_COMMIT), expected)
#define DB "instance db1 (" DB1 "): "
#define NET "network prod (" PROD "): "

static void test_cards(void)
{
    SAYS(changes_of(put_prod(prod()), NULL), put_card(PROD, "br0", "192.0.2.7"), "ok");
    SAYS(changes_of(put_prod(prod()), NULL), put_card(PROD, "br0", ""), "ok");
    SAYS(NULL, put_card(PROD, "br0", ""),
         "unknown_entity: " DB "nics[0].network: there is no network " PROD);
    SAYS(changes_of(put_prod(prod()), NULL), put_card(PROD, "br1", ""),
         "wrong_state: " DB
         "nics[0].network: cards in \"prod\" are bridged on \"br0\", this one is "
         "bridged on \"br1\"");
    SAYS(changes_of(put_prod(prod()), NULL), put_card(PROD, "br0", "192.0.3.7"),
         "wrong_input: " DB "nics[0].ip: 192.0.3.7 is not in 192.0.2.0/24 (network \"prod\")");
    json_t *web =
        with(object_web1(), "nics",
             json_make("[{s:s,s:s,s:s,s:s,s:s}]", "uuid", DISK1, "mac", "aa:00:00:00:00:02", "link",
                       "br0", "ip", "192.0.2.7", "network", PROD));
    SAYS(used(), put("instance", WEB1, 1, web),
         "already_exists: instance web1 (" WEB1
         "): nics[0].ip: 192.0.2.7 is taken by instance \"db1\"");
}

/* A network cannot be taken from under its cards. */
static void test_changes_under_cards(void)
{
    SAYS(used(), del("network", PROD, 1),
         "wrong_state: " NET "cannot be deleted, instance db1 refers to it");
    SAYS(used(), put_prod(with(prod(), "link", json_string("br1"))),
         "wrong_state: " DB
         "nics[0].network: cards in \"prod\" are bridged on \"br1\", this one is "
         "bridged on \"br0\"");
    SAYS(used(), put_prod(with(prod(), "reserved", json_make("[s]", "192.0.2.5-192.0.2.9"))),
         "wrong_input: " DB "nics[0].ip: 192.0.2.7 is reserved (network \"prod\")");
    SAYS(used(), put_prod(with(prod(), "gateway", json_string("192.0.2.7"))),
         "wrong_input: " DB "nics[0].ip: 192.0.2.7 is its gateway (network \"prod\")");
    SAYS(used(), put_prod(object_network(PROD, "prod", "192.0.4.0/24")),
         "wrong_input: " DB "nics[0].ip: 192.0.2.7 is not in 192.0.4.0/24 (network \"prod\")");
    SAYS(used(), put_prod(with(prod(), "gateway", json_string("192.0.2.1"))), "ok");
}

static void test_networks(void)
{
    SAYS(used(), put("network", OTHER, 0, object_network(OTHER, "prod", "192.0.4.0/24")),
         "already_exists: network prod (" OTHER
         "): name: another network has the name \"prod\" already");
    SAYS(used(), put("network", OTHER, 0, object_network(OTHER, "dev", "192.0.0.0/16")),
         "already_exists: network dev (" OTHER "): network: 192.0.0.0/16 overlaps with "
         "192.0.2.0/24 of network \"prod\", which has the same link");
    SAYS(used(),
         put("network", OTHER, 0,
             with(object_network(OTHER, "dev", "192.0.0.0/16"), "link", json_string("br9"))),
         "ok");
    SAYS(NULL, put_prod(with(prod(), "link", json_string(""))),
         "wrong_input: " NET "link: a network in mode bridged needs a bridge");
    SAYS(NULL, put_prod(with(prod(), "reserved", json_make("[s]", "x"))),
         "wrong_input: " NET "reserved[0]: \"x\" is no address and no range; they look like "
         "192.0.2.5 and 192.0.2.5-192.0.2.9");
}

/* Under its lock or that of all networks; the range and the link stay what they were made. */
static void test_locks(void)
{
    world_set_up();
    assert_says(
        job_change(&world, 17, "add_network", changes_of(put("network", PROD, 0, prod()), NULL)),
        "lock_missing: " NET "job 17 does not hold the lock network/" PROD " exclusively");
    assert_says(job_locks(&world, 17, "x network/[lockset]", false), GRANTED);
    assert_says(
        job_change(&world, 17, "add_network", changes_of(put("network", PROD, 0, prod()), NULL)),
        "{\"serial\":2}");
    assert_says(job_change(&world, 17, "change_network",
                           changes_of(put("network", PROD, 2,
                                          with(prod(), "network", json_string("192.0.4.0/24"))),
                                      NULL)),
                "permission_denied: " NET "change_network may not change its network");
    assert_says(job_locks(&world, 17, "r network/[lockset]", false), GRANTED);
    assert_says(job_locks(&world, 18, "s network/" PROD, false), GRANTED);
    assert_says(job_locks(&world, 17, "x network/" PROD, false),
                "{\"blockers\":[{\"job\":\"18\",\"livelock\":\"job-18\",\"pid\":0}],\"granted\":"
                "false,\"pending_nodes\":[],\"ticket\":0}");
    assert_says(job_change(&world, 18, "remove_network", changes_of(del("network", PROD, 2), NULL)),
                "lock_missing: " NET "job 18 does not hold the lock network/" PROD " exclusively");
    world_tear_down();
}

/* --- addresses --- */

static void test_parsing(void)
{
    static const char *const bad[] = {"",         "1.2.3",    "1.2.3.4.5", "1.2.3.256", "1.2.3.04",
                                      "1.2.3.+4", "1.2.3. 4", "a.b.c.d",   "1.2.3.-1",  "1..2.3"};
    guint32 address = 0;
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ip_parse(bad[i], &address));
    g_assert_true(ip_parse("255.0.10.1", &address));
    g_autofree char *text = ip_text(address);
    g_assert_cmpstr(text, ==, "255.0.10.1");
}

/* The largest pool is given out to its last address. */
static void test_large_pool(void)
{
    struct config *config = config_new();
    struct change *change = put("network", PROD, 1, object_network(PROD, "prod", "10.1.0.0/16"));
    g_assert_true(config_apply(config, change, NULL));
    const struct network *network = config_get(config, "network", PROD, NULL);
    g_autoptr(GPtrArray) nics = g_ptr_array_new_with_free_func((GDestroyNotify)nic_free);
    guint all = 0, free = 0;
    network_count(config, network, &all, &free);
    g_assert_cmpuint(all, ==, 65536);
    g_assert_cmpuint(free, ==, 65534);
    for (guint i = 0; i < 3; i++) {
        struct nic *nic = nic_new();
        g_free(nic->ip);
        nic->ip = network_draw(config, network, nics, NULL);
        g_free(nic->link);
        nic->link = g_strdup("br0");
        g_ptr_array_add(nics, nic);
    }
    g_assert_cmpstr(((struct nic *)nics->pdata[2])->ip, ==, "10.1.0.3");
    g_ptr_array_set_size(network->reserved, 0);
    g_ptr_array_add(network->reserved, g_strdup("10.1.0.1-10.1.255.253"));
    g_autofree char *last = network_draw(config, network, NULL, NULL);
    g_assert_cmpstr(last, ==, "10.1.255.254");
    change_free(change);
    config_free(config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/networks/cards", test_cards);
    g_test_add_func("/networks/under-cards", test_changes_under_cards);
    g_test_add_func("/networks/networks", test_networks);
    g_test_add_func("/networks/locks#FUT-04,WCF-22", test_locks);
    g_test_add_func("/networks/parsing", test_parsing);
    g_test_add_func("/networks/large-pool", test_large_pool);
    return g_test_run();
}
