/* The query resources backend, volume, worker and storage_service: query_storage.c. */
#include "core/config/model.h"
#include "unit/core/world/query_world.h"

static struct queue_world *storage_world(void)
{
    struct queue_world *w = query_world_new();
    query_put_storage(w);
    return w;
}

static void test_backends(void)
{
    struct queue_world *w = storage_world();
    query_check(w, "backend", "name uuid kind path nodes up volume_cnt size worker_cnt trash", NULL,
                "0:\"dir1\" 0:\"" BACKEND1 "\" 0:\"dir\" 0:\"/mnt/a\" 0:[\"node1\",\"node2\"] "
                "0:[\"node1\"] 0:2 0:5 0:2 0:[\"" VOLUME2 ".9\"]\n");
    query_check(w, "backend", "name", "[\"=\", \"kind\", \"rbd\"]", "");
    /* What it has only the master has heard, from its beats. */
    query_check(w, "backend", "free total promised", NULL, "2:null 2:null 0:3072\n");
    store_set_status(w->store, json_make("{s[{ss si si}]}", "spaces", "backend", BACKEND1,
                                         "free_mib", 500, "total_mib", 900));
    query_check(w, "backend", "free total promised", NULL, "0:500 0:900 0:3072\n");
    query_check(w, "backend", "name", "[\"<\", \"free\", 500]", "");
    query_check(w, "backend", "name", "[\"<\", \"free\", 501]", "0:\"dir1\"\n");
    queue_world_free(w);
}

static void test_volume_types(void)
{
    struct queue_world *w = storage_world();
    store_put(w->store, "volume_type", BACKEND1,
              json_make("{ss ss s[s]}", "uuid", BACKEND1, "name", "fast", "extra_specs",
                        "volume_backend_name=dir1"));
    store_put(w->store, "volume", VOLUME1,
              json_make("{ss ss si ss ss ss}", "uuid", VOLUME1, "name", "data1", "size", 3,
                        "status", "error", "volume_type", BACKEND1, "project", "acme"));
    fake_settle(w->world);
    query_check(w, "volume_type", "name uuid public extra_specs projects volume_cnt", NULL,
                "0:\"fast\" 0:\"" BACKEND1 "\" 0:true 0:[\"volume_backend_name=dir1\"] 0:[] 0:1\n");
    query_check(w, "volume", "volume_type project", NULL, "0:\"fast\" 0:\"acme\"\n2:null 0:\"\"\n");
    queue_world_free(w);
}

static void test_volumes(void)
{
    struct queue_world *w = storage_world();
    query_check(w, "volume", "name size status backend host data created description", NULL,
                "0:\"data1\" 0:3 0:\"deleting\" 0:\"dir1\" 0:\"node1@dir1\" 0:\"" VOLUME1
                ".12\" 0:900 0:\"logs\"\n"
                "0:\"data2\" 0:2 0:\"extending\" 0:\"dir1\" 2:null 2:null 2:null 0:\"\"\n");
    query_check(w, "volume", "name operation worker waits_since request_id", NULL,
                "0:\"data1\" 0:\"delete-volume\" 0:\"node1@dir1\" 2:null 2:null\n"
                "0:\"data2\" 0:\"extend-volume\" 2:null 0:980 0:\"req-1\"\n");
    query_check(w, "volume", "name", "[\"?\", \"waits_since\"]", "0:\"data2\"\n");
    store_put(w->store, "volume", VOLUME1,
              json_make("{ss ss si ss ss ss}", "uuid", VOLUME1, "name", "data1", "size", 3,
                        "status", "error_deleting", "status_why", "no such device", "backend",
                        BACKEND1));
    store_put(w->store, "worker", "Volume/" VOLUME1, NULL);
    fake_settle(w->world);
    query_check(w, "volume", "status why operation worker", "[\"=\", \"name\", \"data1\"]",
                "0:\"error_deleting\" 0:\"no such device\" 2:null 2:null\n");
    queue_world_free(w);
}

#define SNAPSHOT "ffffffff-1111-4000-8000-000000000001"

static void test_snapshots(void)
{
    struct queue_world *w = storage_world();
    store_put(w->store, "snapshot", SNAPSHOT,
              json_make("{ss ss ss sI ss si ss ss}", "uuid", SNAPSHOT, "name", "before",
                        "description", "of monday", "created_us", (json_int_t)900 * 1000000,
                        "volume", VOLUME2, "size", 2, "status", "creating", "backend", BACKEND1));
    store_put(w->store, "worker", "Snapshot/" SNAPSHOT,
              json_make("{si sI sI ss ss ss ss ss s{ss ss ss}}", "id", 35, "created_us",
                        (json_int_t)990 * 1000000, "updated_us", (json_int_t)990 * 1000000,
                        "resource_type", "Snapshot", "resource_id", SNAPSHOT, "operation",
                        "create-snapshot", "status", "creating", "backend", BACKEND1, "source",
                        "resource_type", "Volume", "resource_id", VOLUME2, "data", VOLUME2 ".4"));
    fake_settle(w->world);
    query_check(w, "snapshot",
                "name uuid volume volume_uuid size status why backend host data created "
                "description",
                NULL,
                "0:\"before\" 0:\"" SNAPSHOT "\" 0:\"data2\" 0:\"" VOLUME2
                "\" 0:2 0:\"creating\" 2:null 0:\"dir1\" 2:null 2:null 0:900 "
                "0:\"of monday\"\n");
    query_check(w, "snapshot", "operation worker waits_since request_id", NULL,
                "0:\"create-snapshot\" 2:null 0:990 2:null\n");
    query_check(w, "worker", "resource_type resource source", "[\"=\", \"id\", 35]",
                "0:\"Snapshot\" 0:\"before\" 0:\"data2\"\n");
    query_check(w, "backend", "snapshot_cnt", NULL, "0:1\n");
    queue_world_free(w);
}

static void test_workers(void)
{
    struct queue_world *w = storage_world();
    query_check(w, "worker",
                "id resource_type resource operation status backend service service_id", NULL,
                "0:31 0:\"Volume\" 0:\"data2\" 0:\"extend-volume\" 0:\"extending\" 0:\"dir1\" "
                "2:null 0:0\n"
                "0:33 0:\"Volume\" 0:\"data1\" 0:\"delete-volume\" 0:\"deleting\" 0:\"dir1\" "
                "0:\"node1@dir1\" 0:5\n");
    query_check(w, "worker", "claim created updated was size request_id", NULL,
                "0:0 0:980 0:980 2:null 0:4 0:\"req-1\"\n"
                "0:34 0:990 0:995 0:\"node2@dir1\" 0:0 2:null\n");
    queue_world_free(w);
}

static void test_services(void)
{
    struct queue_world *w = storage_world();
    query_check(
        w, "storage_service", "id binary host backend node state state_since", NULL,
        "0:2 0:\"cinder-volume\" 0:\"node2@dir1\" 0:\"dir1\" 0:\"node2\" 0:\"down\" 0:1000\n"
        "0:5 0:\"cinder-volume\" 0:\"node1@dir1\" 0:\"dir1\" 0:\"node1\" 0:\"up\" 0:1000\n");
    query_check(w, "storage_service",
                "host disabled disabled_reason worker_cnt generation wire version",
                "[\"=\", \"state\", \"down\"]",
                "0:\"node2@dir1\" 0:true 0:\"disk swap\" 0:0 0:42 0:7 0:\"1.2\"\n");
    queue_world_free(w);
}

static json_t *answer_volume_full(const struct rpc_request *request, const char *to_node,
                                  void *data, GError **error)
{
    json_t *report = query_report(to_node, strcmp(to_node, MASTER) == 0 ? WEB1 : NULL, "running");
    json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    if (guest != NULL)
        json_object_update_new(
            guest, json_make("{ss ss}", "io_stop", "no-space", "io_volume", (const char *)data));
    return report;
}

/* For a volume, which is named with its back end. */
static void test_stands_still_for_a_volume(void)
{
    static char volume[] = "eeeeeeee-1111-4000-8000-000000000001";
    static const char backend[] = "dddddddd-1111-4000-8000-000000000001";
    struct queue_world *w = query_world_new();
    fake_script(w->world, NULL, ROLE_NODED, "node_report", answer_volume_full, volume);
    query_check(w, "instance", "status io.why io.volume", "[\"=\", \"name\", \"web1\"]",
                "0:\"ERROR_nospace\" 0:\"there is no room for its volume "
                "eeeeeeee-1111-4000-8000-000000000001 on back end unknown\" "
                "0:\"eeeeeeee-1111-4000-8000-000000000001\"\n");
    store_put(w->store, "backend", backend,
              json_make("{ss ss ss s[s] ss}", "uuid", backend, "name", "dir1", "kind", "dir",
                        "nodes", MASTER, "path", "/mnt/v"));
    store_put(w->store, "volume", volume,
              json_make("{ss ss si ss ss ss}", "uuid", volume, "name", "data1", "size", 1, "status",
                        "available", "backend", backend, "data", "x.7"));
    fake_settle(w->world);
    query_check(w, "instance", "status io.why io.volume", "[\"=\", \"name\", \"web1\"]",
                "0:\"ERROR_nospace\" 0:\"there is no room for its volume data1 on back end dir1\" "
                "0:\"data1\"\n");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/query-storage/backends", test_backends);
    g_test_add_func("/query-storage/volumes", test_volumes);
    g_test_add_func("/query-storage/volume-types", test_volume_types);
    g_test_add_func("/query-storage/snapshots", test_snapshots);
    g_test_add_func("/query-storage/workers", test_workers);
    g_test_add_func("/query-storage/services", test_services);
    g_test_add_func("/query-storage/stands-still-for-a-volume#SAF-27",
                    test_stands_still_for_a_volume);
    return g_test_run();
}
