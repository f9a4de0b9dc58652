/* See bench_cluster.h. */
#include "bench_cluster.h"

#include "core/repair/duties.h"
#include "core/repair/tags.h"
#include "unit/core/world/store_world.h"

#include <string.h>

#define CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define GROUP "99999999-0000-4000-8000-000000000001"
#define POLICY "ganeti:watcher:autorepair:failover"

static char *uuid_of(char kind, guint number)
{
    return g_strdup_printf("%c0000000-0000-4000-8000-%012u", kind, number);
}

/* --- objects --- */

static guint primary_of(guint number, guint on_first)
{
    return number < on_first ? 0 : 1 + number % (BENCH_NODES - 1);
}

static guint secondary_of(guint number)
{
    return 1 + (number + 7) % (BENCH_NODES - 1);
}

static json_t *node_object(guint number)
{
    g_autofree char *uuid = uuid_of('a', number), *name = g_strdup_printf("node%u", number);
    return json_make("{ss ss ss ss}", "uuid", uuid, "name", name, "primary_ip", "10.0.0.1", "group",
                     GROUP);
}

static json_t *instance_object(guint number, guint on_first)
{
    g_autofree char *uuid = uuid_of('b', number), *replica = uuid_of('d', number);
    g_autofree char *first = uuid_of('a', primary_of(number, on_first));
    g_autofree char *second = uuid_of('a', secondary_of(number));
    g_autofree char *name = g_strdup_printf("web%u", number);
    return json_make("{ss ss ss si ss ss ss si ss ss s[{ss si}]}", "uuid", uuid, "name", name,
                     "disk_template", "mirror", "memory", 64, "primary_node", first,
                     "secondary_node", second, "replica", replica, "generation", 3, "holder", first,
                     "admin_state", "up", "disks", "uuid", uuid, "size", 16);
}

static json_t *replica_object(guint number)
{
    g_autofree char *uuid = uuid_of('d', number), *instance = uuid_of('b', number);
    g_autofree char *node = uuid_of('a', secondary_of(number));
    return json_make("{ss ss ss si si ss}", "uuid", uuid, "instance", instance, "node", node,
                     "generation", 3, "sync", 1, "state", "in-sync");
}

void bench_cluster(guint count, guint on_first,
                   void (*put)(const char *kind, const char *key, json_t *object, void *data),
                   void *data)
{
    put("cluster", CLUSTER,
        json_make("{ss ss ss si si si}", "uuid", CLUSTER, "name", "bench", "master_node", CLUSTER,
                  "watcher_interval_ms", BENCH_INTERVAL_MS, "repair_max_running", 1000,
                  "repair_max_per_hour", 100000),
        data);
    put("nodegroup", GROUP, json_make("{ss ss}", "uuid", GROUP, "name", "default"), data);
    put("tag", "cluster/" CLUSTER "/" POLICY,
        json_make("{ss ss ss}", "kind", "cluster", "object", CLUSTER, "tag", POLICY), data);
    for (guint i = 0; i < BENCH_NODES; i++) {
        g_autofree char *uuid = uuid_of('a', i);
        put("node", uuid, node_object(i), data);
    }
    for (guint i = 0; i < count; i++) {
        g_autofree char *uuid = uuid_of('b', i), *replica = uuid_of('d', i);
        put("instance", uuid, instance_object(i, on_first), data);
        put("replica", replica, replica_object(i), data);
    }
}

json_t *bench_report(guint node, guint count, guint on_first)
{
    g_autofree char *uuid = uuid_of('a', node);
    json_t *guests = json_array(), *images = json_array();
    for (guint i = 0; i < count; i++) {
        g_autofree char *instance = uuid_of('b', i), *replica = uuid_of('d', i);
        if (primary_of(i, on_first) == node)
            json_array_append_new(guests,
                                  json_make("{ss si ss ss}", "instance", instance, "generation", 3,
                                            "state", "running", "mirror", "ready"));
        if (secondary_of(i) == node)
            json_array_append_new(images, json_sprintf("%s %s", instance, replica));
    }
    return json_make("{ss si si si si so so}", "node", uuid, "memory_total", 100000000,
                     "memory_free", 100000000, "disk_total", 100000000, "disk_free", 100000000,
                     "guests", guests, "images", images);
}

/* --- the world --- */

static json_t *report(const struct rpc_request *request, const char *to_node, void *data,
                      GError **error)
{
    struct bench_world *world = data;
    return json_incref(world->reports[g_ascii_strtoull(strrchr(to_node, '-') + 1, NULL, 10)]);
}

/* A job that stays queued, under the request id of its first opcode. */
static void serve_luxid(struct rpc_request *request, void *data)
{
    struct bench_world *world = data;
    json_t *opcode = json_array_get(json_array_get(request->args, 0), 0);
    guint64 id = ++world->jobs;
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    store_put(world->store, "job", key,
              json_make("{sI s[{sO ss}] sO sI}", "id", (json_int_t)id, "ops", "input", opcode,
                        "status", "queued", "request_id", json_object_get(opcode, "request_id"),
                        "received_us", (json_int_t)BENCH_NOW * G_USEC_PER_SEC));
    rpc_answer(request, json_integer((json_int_t)id));
}

static void start_task(void *data)
{
    struct bench_world *world = data;
    g_autoptr(GError) error = NULL;
    if (!watcher_start(world->watcher, &error))
        g_error("%s", error->message);
}

static void put_object(const char *kind, const char *key, json_t *object, void *data)
{
    store_put(data, kind, key, object);
}

struct bench_world *bench_world_new(guint count, guint on_first)
{
    struct bench_world *world = g_new0(struct bench_world, 1);
    g_autofree char *own = uuid_of('a', 1);
    world->world = fake_world_new();
    world->store = store_world_new(fake_process(world->world, own, ROLE_WCONFD));
    bench_cluster(count, on_first, put_object, world->store);
    for (guint i = 0; i < BENCH_NODES; i++)
        world->reports[i] = bench_report(i, count, on_first);
    fake_serve(fake_process(world->world, own, ROLE_LUXID), serve_luxid, world);
    fake_script(world->world, NULL, ROLE_NODED, "node_report", report, world);
    world->env = fake_process(world->world, own, ROLE_WATCHER);
    world->watcher = watcher_new(world->env, &repair_duties);
    fake_run(world->env, start_task, world);
    fake_settle(world->world);
    return world;
}

void bench_world_free(struct bench_world *world)
{
    fake_kill(world->env);
    watcher_free(world->watcher);
    store_world_free(world->store);
    fake_world_free(world->world);
    for (guint i = 0; i < BENCH_NODES; i++)
        json_decref(world->reports[i]);
    g_free(world);
}

void bench_world_lose_first(struct bench_world *world)
{
    g_autofree char *uuid = uuid_of('a', 0);
    json_t *node = node_object(0);
    json_object_set_new(node, "offline", json_true());
    json_object_set_new(node, "offline_since",
                        json_integer(world->env->ops->wall_us(world->env) / G_USEC_PER_SEC));
    store_put(world->store, "node", uuid, node);
}

/* Ids of jobs in pending tags, of one answer of the change stream. */
static guint count_jobs(const json_t *changes)
{
    guint count = 0;
    size_t i;
    const json_t *change;
    json_array_foreach(changes, i, change) {
        const char *text =
            json_string_value(json_object_get(json_object_get(change, "object"), "tag"));
        struct repair_tag tag;
        if (text == NULL)
            continue;
        repair_tag_parse(text, &tag);
        count += tag.kind == REPAIR_TAG_PENDING ? g_strv_length(tag.jobs) : 0;
        repair_tag_clear(&tag);
    }
    return count;
}

void bench_world_check(struct bench_world *world, guint broken)
{
    g_autoptr(GError) error = NULL;
    json_autoptr all = fake_call(world->env, NODE_LOCAL, ROLE_WCONFD, "wait_changes",
                                 json_make("{si}", "serial", 0), &error);
    if (all == NULL)
        g_error("%s", error->message);
    guint noted = count_jobs(json_object_get(all, "changes"));
    if (world->jobs != broken || noted != broken)
        g_error("%u instances are broken, %" G_GUINT64_FORMAT
                " jobs were submitted, %u stand in tags",
                broken, world->jobs, noted);
}
