/* Changing a stopped instance: its display. */
#include "ops_case.h"

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
    done(bind_to("none"));
    expect_display("", 0);
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
        "(only from the node itself, or by a tunnel) and 0.0.0.0 (from everywhere, without a "
        "password)",
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ops_case("/modify/display", test_given_and_taken, &world, NULL);
    ops_case("/modify/port", test_other_port, &world, NULL);
    ops_case("/modify/earlier-range", test_earlier_range, &world, NULL);
    ops_case("/modify/drawn-anew", test_drawn_anew, &world, NULL);
    ops_case("/modify/overtaken", test_overtaken, &world, NULL);
    ops_case("/modify/refused", test_refused, &world, NULL);
    ops_case("/modify/full", test_full, &world, NULL);
    ops_case("/modify/running", test_running, &world, NULL);
    return g_test_run();
}
