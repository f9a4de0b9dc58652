/* See monitor_world.h. */
#include "monitor_world.h"

#define NODE "11111111-0000-4000-8000-000000000001"

static struct {
    struct fake_world *world;
    struct env *env;
    struct monitor *monitor;
} node;

static json_t *ask(enum confd_type type, const char *query, void *data, GError **error)
{
    return type == CONFD_TYPE_data_collectors
               ? json_object()
               : json_make("[[{ss ss ss}], []]", "name", "web1", "uuid", MONITOR_GUEST,
                           "admin_state", "up");
}

static void begin(void)
{
    if (node.world)
        return;
    node.world = fake_world_new();
    node.env = fake_process(node.world, NODE, ROLE_MOND);
    monitor_world_put(FILE_PROC, "stat", "cpu  1 0 1 8 0 0 0 0 0 0\ncpu0 1 0 1 8 0 0 0 0 0 0\n");
    monitor_world_put(FILE_PROC, "loadavg", "0.50 0.25 0.10 1/2 3\n");
    monitor_world_put(FILE_PROC, "meminfo", "MemTotal: 1000 kB\n");
    monitor_world_put(FILE_PROC, "uptime", "12.50 20.00\n");
    monitor_world_put(FILE_PROC, "diskstats", " 253 0 vda 10 1 80 4 20 2 160 6 0 9 10 0 0 0 0\n");
    node.monitor = monitor_new(node.env, "node1", ask, NULL);
}

void monitor_world_put(enum file_area area, const char *name, const char *text)
{
    begin();
    fake_file_put(node.world, NODE, area, name, text);
}

void monitor_world_pass(void)
{
    begin();
    fake_advance(node.world, 6000);
}

static void take(struct http_answer *answer, void *data)
{
    struct http_answer **place = data;
    g_assert_null(*place);
    *place = answer;
}

struct http_answer *monitor_world_get(const char *path, const char *accept)
{
    struct http_answer *answer = NULL;
    struct http_request request = {.method = "GET", .path = (char *)path, .query = ""};
    begin();
    request.headers = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(request.headers, "accept", (void *)accept);
    monitor_serve(node.monitor, &request, take, &answer);
    fake_settle(node.world);
    g_hash_table_unref(request.headers);
    g_assert_nonnull(answer);
    return answer;
}
