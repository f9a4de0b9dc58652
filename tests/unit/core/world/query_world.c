/* See query_world.h. */
#include "unit/core/world/query_world.h"

#include <string.h>

static void put_node(struct queue_world *w, const char *uuid, const char *name, bool offline)
{
    store_put(w->store, "node", uuid,
              json_make("{ss, ss, ss, ss, sb}", "uuid", uuid, "name", name, "primary_ip",
                        "192.0.2.2", "group", GROUP, "offline", offline));
}

static void put_instance(struct queue_world *w, const char *uuid, const char *name,
                         const char *admin_state, const char *primary, const char *secondary)
{
    store_put(w->store, "instance", uuid,
              json_make("{ss, ss, ss, ss, si, s[{ss, si}], ss, ss, ss, si, ss}", "uuid", uuid,
                        "name", name, "admin_state", admin_state, "disk_template", "mirror",
                        "memory", 256, "disks", "uuid", DISK1, "size", 64, "primary_node", primary,
                        "secondary_node", secondary, "replica",
                        strcmp(uuid, WEB1) == 0 ? REPLICA1 : "", "generation", 3, "holder",
                        strcmp(admin_state, "up") == 0 ? primary : ""));
}

void query_put_tag(struct queue_world *w, const char *uuid, const char *tag)
{
    g_autofree char *key = g_strdup_printf("instance/%s/%s", uuid, tag);

    store_put(w->store, "tag", key,
              json_make("{ss, ss, ss}", "kind", "instance", "object", uuid, "tag", tag));
}

/* Three instances on three nodes, of which node3 is offline. */
struct queue_world *query_world_new(void)
{
    struct queue_world *w = queue_world_new(5);

    put_node(w, NODE2, "node2", false);
    put_node(w, NODE3, "node3", true);
    put_instance(w, WEB2, "web2", "down", NODE2, "");
    put_instance(w, WEB1, "web1", "up", MASTER, NODE2);
    put_instance(w, WEB10, "web10", "up", NODE3, "");
    store_put(w->store, "replica", REPLICA1,
              json_make("{ss, ss, ss, si, si, ss, ss}", "uuid", REPLICA1, "instance", WEB1, "node",
                        NODE2, "generation", 3, "sync", 7, "state", "in-sync", "why", "ready"));
    query_put_tag(w, WEB1, "owner:mail");
    fake_settle(w->world);
    return w;
}

void query_put_decision(struct queue_world *w, guint number, int at_us, const char *verdict,
                        const char *event)
{
    g_autofree char *uuid = g_strdup_printf("11111111-0000-4000-8000-%012u", number);

    store_put(w->store, "decision", uuid,
              json_make("{ss, ss, ss, ss, ss, si, ss, ss, s[s], ss}", "uuid", uuid, "author",
                        "watcher/repair", "subject_kind", "instance", "subject", WEB1,
                        "subject_name", "web1", "at_us", at_us, "verdict", verdict, "summary",
                        "because", "evidence", "node3 is offline", "event", event));
}

void query_put_fault(struct queue_world *w, const char *uuid)
{
    g_autofree char *key = g_strconcat("instance/", uuid, NULL);

    store_put(w->store, "fault", key,
              json_make("{ss, ss, sI, ss, ss, si, si, ss, s[s], sb}", "subject_kind", "instance",
                        "subject", uuid, "at_us", (json_int_t)90000000, "message",
                        "node2 is silent", "task", "starting", "owner", 7, "since", 60, "rule",
                        "RCV-36", "evidence", "6 looks", "blind", 1));
}

void query_put_stuck(struct queue_world *w, const char *uuid)
{
    g_autofree char *key = g_strconcat("instance/", uuid, NULL);

    store_put(w->store, "stuck", key,
              json_make("{ss, ss, ss, sI, si, ss}", "subject_kind", "instance", "subject", uuid,
                        "task", "starting", "since_us", (json_int_t)80000000, "looks", 2, "why",
                        "node1 is silent"));
}

/* --- node daemons --- */

json_t *query_report(const char *node, const char *instance, const char *state)
{
    json_t *guests = json_array();

    if (instance != NULL)
        json_array_append_new(guests, json_make("{ss, si, ss, ss, si, si}", "instance", instance,
                                                "generation", 3, "state", state, "mirror",
                                                "syncing", "progress", 40, "memory", 256));
    return json_make("{ss, si, si, si, si, so}", "node", node, "memory_total", 8000, "memory_free",
                     6000, "disk_total", 100000, "disk_free", 50000, "guests", guests);
}

/* node1 runs web1; node2 answers and runs nothing. */
json_t *query_answer_report(const struct rpc_request *request, const char *to_node, void *data,
                            GError **error)
{
    return strcmp(to_node, MASTER) == 0 ? query_report(to_node, WEB1, "running")
                                        : query_report(to_node, NULL, NULL);
}

void query_script_nodes(struct queue_world *w, fake_answer answer)
{
    fake_script(w->world, NULL, ROLE_NODED, "node_report", answer, NULL);
}

guint query_node_calls(struct queue_world *w)
{
    guint count = 0;
    const GPtrArray *calls = fake_calls(w->world);

    for (guint i = 0; i < calls->len; i++)
        if (strstr(g_ptr_array_index(calls, i), "node_report") != NULL)
            count++;
    return count;
}

/* --- asking --- */

/* Rows of a query as text, "status:value" joined by spaces, one line each. */
char *query_ask(struct queue_world *w, const char *what, const char *fields, const char *filter)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = g_strsplit(fields, " ", -1);
    json_t *list = json_array();
    json_autoptr answer = NULL;
    GString *text = g_string_new(NULL);
    size_t i, k;
    const json_t *row, *pair;

    for (char **name = names; *name != NULL; name++)
        json_array_append_new(list, json_string(*name));
    answer = queue_call(w, "Query",
                        json_make("[s, o, o]", what, list,
                                  filter == NULL ? json_null() : json_loads(filter, 0, NULL)),
                        &error);
    g_assert_no_error(error);
    json_array_foreach(json_object_get(answer, "data"), i, row) {
        json_array_foreach(row, k, pair) {
            char *value = json_dumps(json_array_get(pair, 1),
                                     JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);

            g_string_append_printf(text, "%s%d:%s", k > 0 ? " " : "",
                                   (int)json_integer_value(json_array_get(pair, 0)), value);
            free(value);
        }
        g_string_append_c(text, '\n');
    }
    return g_string_free(text, FALSE);
}

void query_check(struct queue_world *w, const char *what, const char *fields, const char *filter,
                 const char *expected)
{
    g_autofree char *text = query_ask(w, what, fields, filter);

    g_assert_cmpstr(text, ==, expected);
}

void query_never_answer(struct rpc_request *request, void *data)
{
    g_ptr_array_add(data, request);
}

/* --- what is stored --- */

#define STORAGE1 "cccccccc-1111-4000-8000-000000000001"
#define STORAGE2 "cccccccc-1111-4000-8000-000000000002"
#define SECOND ((json_int_t)1000000)

static void put_service(struct queue_world *w, const char *uuid, int id, const char *name,
                        const char *node, const char *state)
{
    store_put(w->store, "storage_service", uuid,
              json_make("{ss si ss ss ss ss si si ss ss sI sb ss}", "uuid", uuid, "id", id,
                        "binary", "cinder-volume", "host", name, "backend", BACKEND1, "node", node,
                        "generation", 40 + id, "wire", 7, "version", "1.2", "state", state,
                        "state_since_us", 1000 * SECOND + 5, "disabled", id == 2, "disabled_reason",
                        id == 2 ? "disk swap" : ""));
}

void query_put_storage(struct queue_world *w)
{
    store_put(w->store, "backend", BACKEND1,
              json_make("{ss ss ss s[ss] ss}", "uuid", BACKEND1, "name", "dir1", "kind", "dir",
                        "nodes", MASTER, NODE2, "path", "/mnt/a"));
    put_service(w, STORAGE2, 2, "node2", NODE2, "down");
    put_service(w, STORAGE1, 5, "node1", MASTER, "up");
    store_put(w->store, "volume", VOLUME1,
              json_make("{ss ss ss sI si ss ss ss ss}", "uuid", VOLUME1, "name", "data1",
                        "description", "logs", "created_us", 900 * SECOND, "size", 3, "status",
                        "deleting", "backend", BACKEND1, "host", "node1@dir1", "data",
                        VOLUME1 ".12"));
    store_put(w->store, "volume", VOLUME2,
              json_make("{ss ss si ss ss}", "uuid", VOLUME2, "name", "data2", "size", 2, "status",
                        "extending", "backend", BACKEND1));
    store_put(w->store, "worker", "Volume/" VOLUME1,
              json_make("{si sI sI ss ss ss ss ss si si si}", "id", 33, "created_us", 990 * SECOND,
                        "updated_us", 995 * SECOND, "resource_type", "Volume", "resource_id",
                        VOLUME1, "operation", "delete-volume", "status", "deleting", "backend",
                        BACKEND1, "service_id", 5, "claim", 34, "was_service_id", 2));
    store_put(w->store, "worker", "Volume/" VOLUME2,
              json_make("{si sI sI ss ss ss ss ss si ss}", "id", 31, "created_us", 980 * SECOND,
                        "updated_us", 980 * SECOND, "resource_type", "Volume", "resource_id",
                        VOLUME2, "operation", "extend-volume", "status", "extending", "backend",
                        BACKEND1, "size", 4, "request_id", "req-1"));
    store_put(w->store, "trash", BACKEND1 "/" VOLUME2 ".9",
              json_make("{ss ss}", "backend", BACKEND1, "name", VOLUME2 ".9"));
    fake_settle(w->world);
}
