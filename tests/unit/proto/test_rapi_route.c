/* The routes of the remote API (proto/rapi/rapi_route.h), and paths (proto/http/path_match.h). */
#include "proto/rapi/rapi_route.h"

#include <string.h>

#include "proto/http/path_match.h"
#include "proto/luxi.h"
#include "proto/opcodes_ganeti.h"

static void test_paths(void)
{
    static const struct {
        const char *pattern, *path;
        bool is;
    } rows[] = {
        {"/2/jobs/{job}", "/2/jobs/17", true},
        {"/2/jobs/{job}", "/2/jobs/", false},
        {"/2/jobs/{job}", "/2/jobs/1/x", false},
        {"/2/jobs/{job}/wait", "/2/jobs/1/wait", true},
        {"/", "/", true},
        {"/", "", true},
        {"/v3/", "/v3", true},
        {"/2", "/2/", false},
        {"/2/{a}", "/2/a b\"c", true},
        {"/2/jobs", "/2/job", false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        g_assert_cmpint(path_match(rows[i].pattern, rows[i].path, NULL), ==, rows[i].is);
    g_autoptr(GPtrArray) vars = g_ptr_array_new_with_free_func(g_free);
    g_assert_true(
        path_match("/2/instances/{i}/disk/{d}/grow", "/2/instances/web1/disk/0/grow", vars));
    g_assert_cmpuint(vars->len, ==, 4);
    g_assert_cmpstr(vars->pdata[1], ==, "web1");
    g_assert_cmpstr(vars->pdata[2], ==, "d");
    g_assert_cmpstr(vars->pdata[3], ==, "0");
    g_autoptr(GString) allowed = g_string_new(NULL);
    g_assert_true(path_allow(allowed, "GET"));
    g_assert_true(path_allow(allowed, "PUT"));
    g_assert_false(path_allow(allowed, "GET"));
    g_assert_cmpstr(allowed->str, ==, "GET, PUT");
}

static void test_find(void)
{
    static const struct {
        const char *method, *path, *name, *allowed;
    } rows[] = {
        {"GET", "/2/instances", "instances", "GET, HEAD, POST"},
        {"HEAD", "/2/instances", "instances", "GET, HEAD, POST"},
        {"PUT", "/2/instances/web1/startup", "instances_name_startup", "PUT"},
        {"POST", "/2/instances/web1/startup", NULL, "PUT"},
        {"GET", "/2/nope", NULL, ""},
        {"get", "/2/info", NULL, "GET, HEAD"},
        {"GET", "/fettle/v1/openapi.json", "fettle_openapi", "GET, HEAD"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        struct rapi_found found;
        rapi_route_find(rows[i].method, rows[i].path, &found);
        g_assert_cmpstr(found.route ? found.route->name : NULL, ==, rows[i].name);
        g_assert_cmpstr(found.allowed, ==, rows[i].allowed);
        rapi_found_clear(&found);
    }
}

/* --- the table --- */

static bool has_variable(const struct rapi_route *route, const char *name)
{
    g_autofree char *segment = g_strdup_printf("{%s}", name);
    return strstr(route->path, segment);
}

static void check_part(const struct rapi_route *route, const struct rapi_part *part)
{
    const struct luxi_method *method =
        route->kind == RAPI_LUXI ? luxi_method_find(route->what) : NULL;
    if (part->kind == RAPI_PATH && !has_variable(route, part->from))
        g_error("%s: its path has no {%s}", route->name, part->from);
    if (route->opcode && *part->to && !record_field(route->opcode->params, part->to) &&
        !ganeti_parameter_find(route->opcode->id, part->to))
        g_error("%s: %s has no parameter %s", route->name, route->opcode->id, part->to);
    if (method && part->kind != RAPI_ALIAS && !record_field(method->args, part->to))
        g_error("%s: %s has no argument %s", route->name, route->what, part->to);
}

/* Arguments are by their places. */
static void check_order(const struct rapi_route *route)
{
    const struct luxi_method *method = luxi_method_find(route->what);
    if (!method)
        g_error("%s: LUXI has no method %s", route->name, route->what);
    for (size_t i = 0; i < route->part_count; i++)
        if (route->parts[i].kind != RAPI_ALIAS)
            g_assert_cmpstr(route->parts[i].to, ==, method->args->fields()[i].name);
}

static void test_table(void)
{
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) resources = g_hash_table_new(g_str_hash, g_str_equal);
    for (size_t i = 0; i < count; i++) {
        const struct rapi_route *route = &table[i];
        if (!g_hash_table_add(names, g_strdup_printf("%s %s", route->method, route->name)))
            g_error("%s %s stands there twice", route->method, route->name);
        if (!g_str_has_prefix(route->path, "/fettle/") && strcmp(route->path, "/metrics") != 0)
            g_hash_table_add(resources, (char *)route->path);
        g_assert_cmpint(route->face, ==,
                        g_str_has_prefix(route->path, "/fettle/v1/") ? FACE_OWN : FACE_GANETI);
        if (route->kind != RAPI_NONE)
            g_assert_cmpstr(route->doc, !=, "");
        if (route->kind == RAPI_LUXI)
            check_order(route);
        if (rapi_route_queues(route) && route->need == RAPI_NEED_READ)
            g_error("%s %s queues a job for whoever has no name", route->method, route->name);
        for (size_t at = 0; at < route->part_count; at++)
            check_part(route, &route->parts[at]);
    }
    g_assert_cmpuint(g_hash_table_size(resources), ==, 60); /* of Ganeti 3.0.2 */
}

/* What jobs of REST may have: a route's, and nothing that stands elsewhere. */
static void test_queued(void)
{
    static const char *const taken[] = {"OP_TAGS_SET", "OP_INSTANCE_CREATE", "OP_INSTANCE_STARTUP",
                                        "OP_NODE_SET_PARAMS", "OP_INSTANCE_REINSTALL"};
    static const char *const refused[] = {"OP_NODE_INVITE", "OP_NODE_ADD", "OP_TEST_DELAY", "OP_",
                                          ""};
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    for (size_t i = 0; i < G_N_ELEMENTS(taken); i++)
        g_assert_true(rapi_routes_queue(taken[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++)
        g_assert_false(rapi_routes_queue(refused[i]));
    for (size_t i = 0; i < count; i++) {
        if ((table[i].kind == RAPI_JOB) != !!rapi_route_part(&table[i], RAPI_OPCODE, NULL))
            g_error("%s: opcodes of jobs are named where they do not follow, and only there",
                    table[i].name);
        for (size_t at = 0; at < table[i].part_count; at++)
            if (table[i].parts[at].kind == RAPI_OPCODE)
                g_assert_nonnull(opcode_find(table[i].parts[at].from));
    }
}

static void test_fields(void)
{
    g_autoptr(GPtrArray) bulk = rapi_fields(FACE_GANETI, "job", false);
    g_autoptr(GPtrArray) one = rapi_fields(FACE_GANETI, "job", true);
    g_assert_cmpuint(bulk->len, ==, 8);
    g_assert_cmpuint(one->len, ==, 10);
    g_assert_cmpstr(one->pdata[8], ==, "oplog");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rapi-route/paths", test_paths);
    g_test_add_func("/rapi-route/find", test_find);
    g_test_add_func("/rapi-route/table#RAP-01", test_table);
    g_test_add_func("/rapi-route/queued#RAP-02", test_queued);
    g_test_add_func("/rapi-route/fields", test_fields);
    return g_test_run();
}
