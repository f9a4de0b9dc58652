/*
 * Starting, stopping and failing over guests on two nodes: core/guest lifecycle.c, stop.c, replica.c, mirror.c.
 */
#include "helper/node_world.h"

static void test_start_mirrors(void)
{
    struct node_world *nw = node_world_new(1);
    nw_create_and_start(nw);
    guint64 generation;
    g_assert_cmpint(fake_host_state(nw->a.host, WEB1, &generation), ==, GUEST_RUNNING);
    g_assert_cmpuint(generation, ==, 2);
    nw_pass(nw, 500);
    g_assert_cmpuint(fake_hosts_acknowledged(nw->hosts, WEB1), >, 10);
    g_autoptr(GError) error = NULL;
    nw_stop(nw, 10000, &error);
    g_assert_no_error(error);
    g_assert_true(nw->web1.clean);
    g_assert_true(fake_hosts_equal(nw->hosts, WEB1, NODE_A, "", NODE_B, nw->web1.replica));
    node_world_free(nw);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/start-mirrors#SAF-10,SAF-11,SAF-13", test_start_mirrors);
    return g_test_run();
}
