/* Ports of displays: what is given out, and what every commit has to keep. */
#include <string.h>

#include "core/config/ports.h"
#include "unit/core/world/wconf_world.h"

#define DB "instance db1 (" DB1 "): "
#define C1 "cluster c1 (" CLUSTER "): "
#define FRESH "aaaaaaaa-0000-4000-8000-000000000009"
#define OTHER "aaaaaaaa-0000-4000-8000-000000000010"

static json_t *shown(json_t *instance, const char *address, int port)
{
    return with(with(instance, "vnc_bind_address", json_string(address)), "network_port",
                json_integer(port));
}

/* db1, which nobody runs. */
static struct change *put_db(const char *address, int port)
{
    return put("instance", DB1, 1,
               shown(with(object_db1(), "holder", json_string("")), address, port));
}

static struct change *put_range(const char *range)
{
    return put("cluster", CLUSTER, 1,
               json_make("{s:s,s:s,s:s,s:s,s:i}", "uuid", CLUSTER, "name", "c1", "master_node",
                         NODE1, "port_range", range, "etcd_client_port", 20002));
}

static GPtrArray *stopped(void)
{
    return changes_of(put_db("", 0), NULL);
}

#define SAYS(setup, change, expected)                                                              \
    assert_says(check_as(setup, changes_of(change, NULL), AUTHOR_COMMIT), expected)

/* --- what is kept --- */

static void test_shape(void)
{
    SAYS(stopped(), put_db("127.0.0.1", 11000), "ok");
    SAYS(stopped(), put_db("0.0.0.0", 14999), "ok");
    SAYS(stopped(), put_db("127.0.0.1", 0),
         "wrong_state: " DB "vnc_bind_address \"127.0.0.1\" and network_port 0: either both or "
         "none");
    SAYS(stopped(), put_db("", 11000),
         "wrong_state: " DB "vnc_bind_address \"\" and network_port 11000: either both or none");
    SAYS(stopped(), put_db("192.0.2.1", 11000),
         "wrong_input: " DB
         "vnc_bind_address: \"192.0.2.1\" is no address that every node has; there are 127.0.0.1 "
         "(only from the node itself, or by a tunnel), 0.0.0.0, and :: with IPv6 too (from "
         "everywhere, without a password)");
}

static void test_never_twice(void)
{
    struct change *web = put("instance", WEB1, 1, shown(object_web1(), "0.0.0.0", 11000));
    SAYS(changes_of(put_db("", 0), web, NULL), put_db("127.0.0.1", 11000),
         "already_exists: " DB "network_port: 11000 is taken by instance \"web1\"");
}

/* A port that was given out stays when the range changes; what comes new is of the new one. */
static void test_range(void)
{
    SAYS(stopped(), put_db("127.0.0.1", 15000),
         "wrong_input: " DB "network_port: 15000 is not in the cluster's port_range, 11000-14999; "
         "see fettle cluster modify --port-range");
    SAYS(changes_of(put_db("127.0.0.1", 11000), put_range("20000-20009"), NULL),
         put_db("0.0.0.0", 11000), "ok");
    SAYS(changes_of(put_db("127.0.0.1", 11000), put_range("20000-20009"), NULL),
         put_db("127.0.0.1", 11001),
         "wrong_input: " DB "network_port: 11001 is not in the cluster's port_range, 20000-20009; "
         "see fettle cluster modify --port-range");
    SAYS(NULL,
         put("instance", OTHER, 0,
             shown(with(with(with(object_db1(), "uuid", json_string(OTHER)), "name",
                             json_string("db2")),
                        "holder", json_string("")),
                   "127.0.0.1", 15000)),
         "wrong_input: instance db2 (" OTHER
         "): network_port: 15000 is not in the cluster's port_range, 11000-14999; see fettle "
         "cluster modify --port-range");
}

/* A daemon listens there, on one node or another. */
static void test_daemons(void)
{
    static const int ports[] = {20001, 20002};
    for (guint i = 0; i < G_N_ELEMENTS(ports); i++) {
        g_autofree char *refusal = g_strdup_printf(
            "wrong_input: " DB "network_port: at %d a daemon of the cluster listens; name another "
            "one, or let one be given out",
            ports[i]);
        SAYS(
            changes_of(put_db("", 0), put_range("20000-20009"),
                       put("node", NODE3, 1, with(object_node(NODE3), "port", json_integer(20001))),
                       NULL),
            put_db("127.0.0.1", ports[i]), refusal);
    }
}

static void test_bad_ranges(void)
{
    static const char *const bad[] = {"5899-11000",  "12000-11999", "11000-65536",
                                      "11000:12000", "11000--2000", " 11000-1200"};
    SAYS(NULL, put_range("5900-65535"), "ok");
    SAYS(NULL, put_range("12000-12000"), "ok");
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *refusal =
            g_strdup_printf("wrong_input: " C1 "port_range: \"%s\" is no range of ports from 5900 "
                            "to 65535; one looks like 11000-14999",
                            bad[i]);
        SAYS(NULL, put_range(bad[i]), refusal);
    }
}

/* The process that may run has the display that it was started with. */
static void test_running(void)
{
    struct change *web = put("instance", WEB1, 1, shown(object_web1(), "127.0.0.1", 11000));
    SAYS(NULL, web,
         "wrong_state: instance web1 (" WEB1 "): network_port, vnc_bind_address: generation 4 may "
         "run on node1, with the display that it was started with");
}

/* --- what is given out --- */

static char *draw(GPtrArray *more)
{
    g_autoptr(GPtrArray) changes = more;
    g_autoptr(GPtrArray) start = initial_changes();
    g_autoptr(GError) error = NULL;
    struct config *config = config_new();
    guint64 port = 0;
    for (guint i = 0; i < start->len; i++)
        g_assert_true(config_apply(config, start->pdata[i], NULL));
    for (guint i = 0; i < changes->len; i++)
        g_assert_true(config_apply(config, changes->pdata[i], NULL));
    port_draw(config, &port, &error);
    config_free(config);
    return error ? g_strdup(error->message) : g_strdup_printf("%" G_GUINT64_FORMAT, port);
}

static struct change *reserve(const char *uuid, const char *name, guint job, int port)
{
    json_t *object = json_make("{s:s,s:s,s:o,s:i}", "uuid", uuid, "name", name, "owner",
                               owner_json(job), "port", port);
    return put("reservation", uuid, 0, object);
}

static struct change *node_at(int port)
{
    return put("node", NODE3, 1, with(object_node(NODE3), "port", json_integer(port)));
}

/* The lowest that no instance, no reservation and no daemon of the cluster has. */
static void test_draw(void)
{
    assert_says(draw(changes_of(put_db("", 0), NULL)), "11000");
    assert_says(draw(changes_of(put_db("127.0.0.1", 11000), NULL)), "11001");
    assert_says(draw(changes_of(put_db("127.0.0.1", 11001), NULL)), "11000");
    assert_says(draw(changes_of(put_db("127.0.0.1", 20000), put_range("20000-20004"),
                                node_at(20001), reserve(FRESH, "fresh", 17, 20003), NULL)),
                "20004");
    assert_says(draw(changes_of(put_db("127.0.0.1", 20000), put_range("20000-20003"),
                                node_at(20001), reserve(FRESH, "fresh", 17, 20003), NULL)),
                "port_range 20000-20003 has no free port left; make it larger: fettle cluster "
                "modify --port-range FIRST-LAST");
    /* Given back with its instance. */
    assert_says(draw(changes_of(put_db("127.0.0.1", 11000), del("instance", DB1, 1), NULL)),
                "11000");
}

/* Two creations that have drawn the same port: the first has it, the other draws anew. */
static void test_race(void)
{
    world_set_up();
    assert_says(job_locks(&world, 17, "x instance/fresh", false), GRANTED);
    assert_says(job_locks(&world, 18, "x instance/other", false), GRANTED);
    assert_says(ask_wconf(&world, world.job, "draw_port", json_object()), "{\"port\":11000}");
    assert_says(
        job_change(&world, 17, "reserve", changes_of(reserve(FRESH, "fresh", 17, 11000), NULL)),
        "{\"serial\":2}");
    assert_says(
        job_change(&world, 18, "reserve", changes_of(reserve(OTHER, "other", 18, 11000), NULL)),
        "already_exists: reservation other (" OTHER
        "): port: 11000 is taken by job 17 for instance \"fresh\"");
    assert_says(
        ask_wconf(&world, world.job, "address_user", json_make("{s:s}", "address", "port 11000")),
        "{\"user\":\"job 17 for instance \\\"fresh\\\"\"}");
    assert_says(ask_wconf(&world, world.job, "draw_port", json_object()), "{\"port\":11001}");
    assert_says(
        job_change(&world, 18, "reserve", changes_of(reserve(OTHER, "other", 18, 11001), NULL)),
        "{\"serial\":3}");
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ports/shape", test_shape);
    g_test_add_func("/ports/never-twice#FUT-06", test_never_twice);
    g_test_add_func("/ports/range", test_range);
    g_test_add_func("/ports/daemons", test_daemons);
    g_test_add_func("/ports/bad-ranges", test_bad_ranges);
    g_test_add_func("/ports/running", test_running);
    g_test_add_func("/ports/draw#FUT-06", test_draw);
    g_test_add_func("/ports/race#FUT-06", test_race);
    return g_test_run();
}
