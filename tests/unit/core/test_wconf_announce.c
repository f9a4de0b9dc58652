/* What the nodes are told of the mastership, and how much of it at once.
 * core/config/wconf_announce.c.
 */
#include <string.h>

#include "wconf_world.h"

enum { NODES = 300, WAY_MS = 300 };

struct heard {
    guint count;
    size_t bytes; /* at one moment */
    size_t most;
    gint64 at_ms;
};

static json_t *hear(const struct rpc_request *request, const char *to_node, void *data,
                    GError **error)
{
    struct heard *heard = data;
    gint64 now = world.luxid->ops->boot_ms(world.luxid);
    heard->bytes = now == heard->at_ms ? heard->bytes : 0;
    heard->at_ms = now;
    heard->bytes += json_dumpb(request->args, NULL, 0, JSON_COMPACT);
    heard->most = MAX(heard->most, heard->bytes);
    heard->count++;
    return json_object();
}

static guint long_way(const char *from_node, const char *to_node, void *data)
{
    return strcmp(from_node, to_node) ? WAY_MS : 0;
}

/* The list of all to all is more than may be on its way at once: none is lost, and all answer. */
static void test_many_nodes(void)
{
    struct heard heard = {0};
    GPtrArray *objects = initial_changes();
    for (guint i = 0; i < NODES; i++) {
        g_autofree char *uuid = g_strdup_printf("99999999-0000-4000-8000-%012u", i);
        g_autofree char *name = g_strdup_printf("node-with-a-long-name-%u", i);
        g_autofree char *address = g_strdup_printf("10.1.%u.%u", i / 200, i % 200 + 1);
        json_t *node = with(object_node(uuid), "name", json_string(name));
        g_ptr_array_add(objects,
                        put("node", uuid, 1, with(node, "primary_ip", json_string(address))));
    }
    config_world_init(&world, objects);
    fake_forget_calls(world.world);
    fake_script(world.world, NULL, ROLE_NODED, "announce", hear, &heard);
    fake_set_delay(world.world, long_way, NULL);
    config_world_start(&world);
    fake_advance(world.world, 10000);
    g_assert_cmpuint(heard.count, >=, NODES + 3);
    g_assert_cmpuint(heard.most, <=, LIMIT_ANNOUNCE_BYTES);
    g_assert_cmpuint(heard.most, >, LIMIT_ANNOUNCE_BYTES / 2);
    fake_set_delay(world.world, NULL, NULL);
    assert_says(world_status("nodes_pending"), "[]");
    world_tear_down();
}

/* A node is told what it needs to know, not every change of a record that it is told from. */
static void test_no_news(void)
{
    struct heard heard = {0};
    world_set_up();
    fake_script(world.world, NULL, ROLE_NODED, "announce", hear, &heard);
    g_free(job_locks(&world, 17, "x node-param/" NODE2, false));
    assert_says(job_commit(&world, 17,
                           changes_of(put("node", NODE2, 1,
                                          with(object_node(NODE2), "drained", json_true())),
                                      NULL)),
                "{\"serial\":2}");
    fake_advance(world.world, 5000);
    g_assert_cmpuint(heard.count, ==, 0);
    assert_says(
        job_commit(&world, 17,
                   changes_of(put("node", NODE2, 2,
                                  with(object_node(NODE2), "master_candidate", json_true())),
                              NULL)),
        "{\"serial\":3}");
    fake_advance(world.world, 5000);
    g_assert_cmpuint(heard.count, >=, 3);
    world_tear_down();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/announce/many-nodes#SAF-05,SAF-06", test_many_nodes);
    g_test_add_func("/announce/no-news#WCF-20", test_no_news);
    return g_test_run();
}
