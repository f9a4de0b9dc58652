/* The query resource service: who is to run where, and what nodes say of it. query_service.c. */
#include "core/config/model.h"
#include "unit/core/world/query_world.h"

static json_t *service(const char *name, const char *state, int since, int pid, const char *why)
{
    return json_make("{ss, ss, si, si, si, ss, ss}", "name", name, "state", state, "since", since,
                     "restarts", 2, "pid", pid, "version", "1.0", "why", why);
}

/* node1 has lost luxid, stopped the watcher, cannot tell of rconfd and has never had a wconfd. */
static json_t *answer_services(const struct rpc_request *request, const char *to_node, void *data,
                               GError **error)
{
    json_t *answer = query_report(to_node, NULL, NULL);

    json_object_set_new(answer, "services",
                        json_make("[o, o, o, o, o]", service("luxid", "restarting", 0, 0, "killed"),
                                  service("noded", "running", 1000, 77, ""),
                                  service("rconfd", "unknown", 0, 0, "damaged"),
                                  service("volumed", "running", 1000, 78, ""),
                                  service("watcher", "stopped", 900, 0, "")));
    return answer;
}

#define ON_NODE1 "[\"=\", \"node\", \"node1\"]"

static void test_services(void)
{
    struct queue_world *w = query_world_new();

    query_script_nodes(w, answer_services);
    query_check(w, "service", "name binary node host role", NULL,
                "0:\"luxid\" 0:\"fettle-luxid\" 0:\"node1\" 0:\"node1\" 0:\"master\"\n"
                "0:\"noded\" 0:\"fettle-noded\" 0:\"node1\" 0:\"node1\" 0:\"master\"\n"
                "0:\"rconfd\" 0:\"fettle-rconfd\" 0:\"node1\" 0:\"node1\" 0:\"master\"\n"
                "0:\"volumed\" 0:\"fettle-volumed\" 0:\"node1\" 0:\"node1\" 0:\"master\"\n"
                "0:\"watcher\" 0:\"fettle-watcher\" 0:\"node1\" 0:\"node1\" 0:\"master\"\n"
                "0:\"wconfd\" 0:\"fettle-wconfd\" 0:\"node1\" 0:\"node1\" 0:\"master\"\n"
                "0:\"noded\" 0:\"fettle-noded\" 0:\"node2\" 0:\"node2\" 0:\"regular\"\n"
                "0:\"rconfd\" 0:\"fettle-rconfd\" 0:\"node2\" 0:\"node2\" 0:\"regular\"\n"
                "0:\"volumed\" 0:\"fettle-volumed\" 0:\"node2\" 0:\"node2\" 0:\"regular\"\n"
                "0:\"noded\" 0:\"fettle-noded\" 0:\"node3\" 0:\"node3\" 0:\"regular\"\n"
                "0:\"rconfd\" 0:\"fettle-rconfd\" 0:\"node3\" 0:\"node3\" 0:\"regular\"\n"
                "0:\"volumed\" 0:\"fettle-volumed\" 0:\"node3\" 0:\"node3\" 0:\"regular\"\n");
    g_assert_cmpuint(query_node_calls(w), ==, 0);
    query_check(w, "service", "name state process since restarts pid version why", ON_NODE1,
                "0:\"luxid\" 0:\"down\" 0:\"restarting\" 2:null 0:2 2:null 0:\"1.0\" 0:\"killed\"\n"
                "0:\"noded\" 0:\"up\" 0:\"running\" 0:1000 0:2 0:77 0:\"1.0\" 2:null\n"
                "0:\"rconfd\" 2:null 0:\"unknown\" 2:null 0:2 2:null 0:\"1.0\" 0:\"damaged\"\n"
                "0:\"volumed\" 0:\"up\" 0:\"running\" 0:1000 0:2 0:78 0:\"1.0\" 2:null\n"
                "0:\"watcher\" 0:\"down\" 0:\"stopped\" 0:900 0:2 2:null 0:\"1.0\" 2:null\n"
                "0:\"wconfd\" 0:\"down\" 0:\"stopped\" 2:null 2:null 2:null 2:null "
                "0:\"it has not run since the node's boot\"\n");
    g_assert_cmpuint(query_node_calls(w), ==, 1);
    query_check(w, "service", "name node", "[\"=\", \"state\", \"down\"]",
                "0:\"luxid\" 0:\"node1\"\n0:\"watcher\" 0:\"node1\"\n0:\"wconfd\" 0:\"node1\"\n");
    queue_world_free(w);
}

/* Candidates, and the engine etcd. */
static void test_services_of_candidates(void)
{
    struct queue_world *w = query_world_new();
    json_autoptr cluster = json_deep_copy(store_get(w->store, "cluster", CLUSTER));

    store_put(w->store, "node", NODE2,
              json_make("{ss, ss, ss, ss, sb}", "uuid", NODE2, "name", "node2", "primary_ip",
                        "192.0.2.2", "group", GROUP, "master_candidate", 1));
    json_object_set_new(cluster, "engine", json_string("etcd"));
    store_put(w->store, "cluster", CLUSTER, json_incref(cluster));
    fake_settle(w->world);
    query_check(w, "service", "name role", "[\"=\", \"node\", \"node2\"]",
                "0:\"luxid\" 0:\"standby\"\n0:\"noded\" 0:\"candidate\"\n"
                "0:\"rconfd\" 0:\"candidate\"\n0:\"volumed\" 0:\"candidate\"\n"
                "0:\"watcher\" 0:\"standby\"\n"
                "0:\"wconfd\" 0:\"candidate\"\n0:\"etcd\" 0:\"candidate\"\n");
    queue_world_free(w);
}

/* node2 hangs, node3 is offline, node1 is of an older version: each says what it is, and nobody
 * waits for longer than the bound. */
static void test_services_of_silent_nodes(void)
{
    struct queue_world *w = query_world_new();
    struct env *hanging = fake_process(w->world, NODE2, ROLE_NODED);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    gint64 before;

    fake_script(w->world, MASTER, ROLE_NODED, "node_report", query_answer_report, NULL);
    fake_serve(hanging, query_never_answer, kept);
    before = fake_now_ms(w->world);
    query_check(w, "service", "node state process since restarts why",
                "[\"=\", \"name\", \"noded\"]",
                "0:\"node1\" 2:null 2:null 2:null 2:null 2:null\n"
                "0:\"node2\" 3:null 3:null 3:null 3:null 3:null\n"
                "0:\"node3\" 4:null 4:null 4:null 4:null 4:null\n");
    g_assert_cmpint(fake_now_ms(w->world) - before, <=, LIMIT_REPORT_WAIT_MS);
    for (guint i = 0; i < kept->len; i++)
        rpc_request_free(g_ptr_array_index(kept, i));
    queue_world_free(w);
}

static void put_known(struct queue_world *w, const char *node, const char *name, int since)
{
    g_autofree char *key = config_service_key(node, name);
    store_put(w->store, "service", key,
              json_make("{ss, ss, ss, ss, si}", "uuid", key, "name", name, "node", node, "version",
                        "0.9", "since", since));
}

/* What is on record counts while its node says nothing, and is marked as that. */
static void test_last_known(void)
{
    struct queue_world *w = query_world_new();
    struct env *hanging = fake_process(w->world, NODE2, ROLE_NODED);
    g_autoptr(GPtrArray) kept = g_ptr_array_new();

    put_known(w, MASTER, "noded", 500);
    put_known(w, MASTER, "wconfd", 500);
    put_known(w, NODE2, "noded", 600);
    put_known(w, NODE3, "noded", 700);
    fake_settle(w->world);
    fake_script(w->world, MASTER, ROLE_NODED, "node_report", answer_services, NULL);
    fake_serve(hanging, query_never_answer, kept);
    query_check(w, "service", "name node state known since version pid", NULL,
                "0:\"luxid\" 0:\"node1\" 0:\"down\" 0:\"now\" 2:null 0:\"1.0\" 2:null\n"
                "0:\"noded\" 0:\"node1\" 0:\"up\" 0:\"now\" 0:1000 0:\"1.0\" 0:77\n"
                "0:\"rconfd\" 0:\"node1\" 2:null 0:\"now\" 2:null 0:\"1.0\" 2:null\n"
                "0:\"volumed\" 0:\"node1\" 0:\"up\" 0:\"now\" 0:1000 0:\"1.0\" 0:78\n"
                "0:\"watcher\" 0:\"node1\" 0:\"down\" 0:\"now\" 0:900 0:\"1.0\" 2:null\n"
                "0:\"wconfd\" 0:\"node1\" 0:\"down\" 0:\"now\" 2:null 2:null 2:null\n"
                "0:\"noded\" 0:\"node2\" 3:null 0:\"last known\" 0:600 0:\"0.9\" 3:null\n"
                "0:\"rconfd\" 0:\"node2\" 3:null 3:null 3:null 3:null 3:null\n"
                "0:\"volumed\" 0:\"node2\" 3:null 3:null 3:null 3:null 3:null\n"
                "0:\"noded\" 0:\"node3\" 4:null 0:\"last known\" 0:700 0:\"0.9\" 4:null\n"
                "0:\"rconfd\" 0:\"node3\" 4:null 4:null 4:null 4:null 4:null\n"
                "0:\"volumed\" 0:\"node3\" 4:null 4:null 4:null 4:null 4:null\n");
    for (guint i = 0; i < kept->len; i++)
        rpc_request_free(g_ptr_array_index(kept, i));
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/query/services#LUX-03,LUX-04", test_services);
    g_test_add_func("/query/services-of-candidates#LUX-03", test_services_of_candidates);
    g_test_add_func("/query/services-of-silent-nodes#LUX-04", test_services_of_silent_nodes);
    g_test_add_func("/query/services-last-known#LUX-04", test_last_known);
    return g_test_run();
}
