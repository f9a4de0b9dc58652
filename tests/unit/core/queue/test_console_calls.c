/* ConsoleRead and ConsoleWrite: what is asked of which node, and each refusal. */
#include "unit/core/world/queue_world.h"

#include <string.h>

#define WEB1 "dddddddd-0000-4000-8000-000000000001"

static struct queue_world *guest_world(bool offline)
{
    struct queue_world *w = queue_world_new(1);
    store_put(w->store, "node", NODE2,
              json_make("{ss, ss, ss, ss, sb}", "uuid", NODE2, "name", "node2", "primary_ip",
                        "192.0.2.2", "group", GROUP, "offline", (int)offline));
    store_put(w->store, "instance", WEB1,
              json_make("{ss, ss, ss, ss, si}", "uuid", WEB1, "name", "web1", "primary_node", NODE2,
                        "disk_template", "diskless", "memory", 8));
    fake_settle(w->world);
    return w;
}

static json_t *answer_read(const struct rpc_request *request, const char *node, void *data,
                           GError **error)
{
    g_autofree char *args = json_to_text(request->args);
    g_autofree char *expected =
        g_strdup_printf("{\"instance\":\"" WEB1 "\",\"offset\":7,\"since_start\":%s,"
                        "\"wait_ms\":5000}",
                        (const char *)data);
    g_assert_cmpstr(node, ==, NODE2);
    g_assert_cmpstr(args, ==, expected);
    return json_make("{ss, si}", "data", "aGVsbG8=", "offset", 12);
}

/* An offset counts where it was told, and for who names no node. */
static void check_read(const char *offset_of, const char *since_start)
{
    struct queue_world *w = guest_world(false);
    g_autoptr(GError) error = NULL;
    fake_script(w->world, NODE2, ROLE_NODED, "console_read", answer_read, (char *)since_start);
    json_autoptr result =
        queue_call(w, "ConsoleRead", json_make("[s, i, i, s]", "web1", 7, 5000, offset_of), &error);
    g_assert_no_error(error);
    g_autofree char *text = json_to_text(result);
    g_assert_cmpstr(text, ==, "[\"aGVsbG8=\",12,\"node2\"]");
    queue_world_free(w);
}

static void test_read(void)
{
    check_read("", "false");
    check_read("node2", "false");
}

static void test_read_after_a_move(void)
{
    check_read("node1", "true");
}

static json_t *answer_much(const struct rpc_request *request, const char *node, void *data,
                           GError **error)
{
    return json_make("{ss, si}", "data", (const char *)data, "offset", 65536);
}

/* As much as a node tells at once passes, and what is typed has its own bound. */
static void test_much(void)
{
    struct queue_world *w = guest_world(false);
    g_autoptr(GError) error = NULL;
    g_autofree guchar *printed = g_malloc0(LIMIT_CONSOLE_READ_BYTES);
    g_autofree char *text = g_base64_encode(printed, LIMIT_CONSOLE_READ_BYTES);
    g_autofree char *typed = g_strnfill(4097, 'A');
    fake_script(w->world, NODE2, ROLE_NODED, "console_read", answer_much, text);
    json_autoptr result = queue_call(w, "ConsoleRead", json_make("[s]", "web1"), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_string_value(json_array_get(result, 0)), ==, text);
    queue_refuse(w, "ConsoleWrite", json_make("[s, s]", "web1", typed), FETTLE_ERROR_WRONG_INPUT,
                 "ConsoleWrite: data: must have at most 4096 characters, has 4097");
    queue_world_free(w);
}

static json_t *answer_write(const struct rpc_request *request, const char *node, void *data,
                            GError **error)
{
    g_autofree char *args = json_to_text(request->args);
    g_assert_cmpstr(args, ==, "{\"data\":\"bHMK\",\"instance\":\"" WEB1 "\"}");
    return json_object();
}

static void test_write(void)
{
    struct queue_world *w = guest_world(false);
    g_autoptr(GError) error = NULL;
    fake_script(w->world, NODE2, ROLE_NODED, "console_write", answer_write, NULL);
    json_autoptr result = queue_call(w, "ConsoleWrite", json_make("[s, s]", WEB1, "bHMK"), &error);
    g_assert_no_error(error);
    g_assert_true(json_is_true(result));
    queue_world_free(w);
}

static json_t *refuse(const struct rpc_request *request, const char *node, void *data,
                      GError **error)
{
    fettle_set_error(error, WRONG_STATE, "instance %s does not run here", WEB1);
    return NULL;
}

static json_t *not_here(const struct rpc_request *request, const char *node, void *data,
                        GError **error)
{
    fettle_set_error(error, UNKNOWN_ENTITY, "no guest of instance %s is on this node", WEB1);
    return NULL;
}

/* A node knows no names: whoever asks does. */
static void test_stopped(void)
{
    struct queue_world *w = guest_world(false);
    fake_script(w->world, NODE2, ROLE_NODED, "console_read", not_here, NULL);
    fake_script(w->world, NODE2, ROLE_NODED, "console_write", not_here, NULL);
    queue_refuse(w, "ConsoleRead", json_make("[s]", WEB1), FETTLE_ERROR_WRONG_STATE,
                 "instance \"web1\" has printed nothing on node2 yet");
    queue_refuse(w, "ConsoleWrite", json_make("[s, s]", WEB1, "bHMK"), FETTLE_ERROR_WRONG_STATE,
                 "instance \"web1\" does not run on node2 now; see: fettle instance info web1");
    queue_world_free(w);
}

static void test_refusals(void)
{
    struct queue_world *w = guest_world(false);
    queue_refuse(w, "ConsoleRead", json_make("[s]", "nope"), FETTLE_ERROR_UNKNOWN_ENTITY,
                 "instance \"nope\" does not exist");
    queue_refuse(w, "ConsoleWrite", json_make("[s, s]", "nope", "bHMK"),
                 FETTLE_ERROR_UNKNOWN_ENTITY, "instance \"nope\" does not exist");
    queue_refuse(w, "ConsoleWrite", json_make("[s, s]", "web1", ""), FETTLE_ERROR_WRONG_INPUT,
                 "ConsoleWrite: data: must not be empty");
    fake_script(w->world, NODE2, ROLE_NODED, "console_read", refuse, NULL);
    queue_refuse(w, "ConsoleRead", json_make("[s]", "web1"), FETTLE_ERROR_WRONG_STATE,
                 "node2: instance " WEB1 " does not run here");
    queue_world_free(w);

    w = guest_world(true);
    queue_refuse(w, "ConsoleRead", json_make("[s]", "web1"), FETTLE_ERROR_WRONG_STATE,
                 "node2, the primary node of instance \"web1\", is offline; nothing runs there");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/console/read", test_read);
    g_test_add_func("/console/read-after-a-move", test_read_after_a_move);
    g_test_add_func("/console/much", test_much);
    g_test_add_func("/console/write", test_write);
    g_test_add_func("/console/stopped", test_stopped);
    g_test_add_func("/console/refusals", test_refusals);
    return g_test_run();
}
