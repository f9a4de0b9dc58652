/* What fettle-rapid answers: each row of the table of routes. */
#include <string.h>

#include "proto/rapi/rapi_route.h"
#include "unit/core/world/rapi_world.h"

/* --- jobs --- */

/* Whether all of one is in the other. */
static bool is_part(const json_t *part, const json_t *whole)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)part, name, value)
        if (!json_equal(value, json_object_get(whole, name)))
            return false;
    return true;
}

/* The opcodes of the job that a request has queued. */
static json_t *queued(struct queue_world *w, const char *method, const char *target,
                      const char *body)
{
    json_autoptr id = rapi_get(200, method, target, body);
    if (!json_is_integer(id))
        g_error("%s %s: no job", method, target);
    g_assert_cmpstr(rapi_last_user(), ==, "rapi:alice");
    fake_set_face(w->world, FACE_GANETI);
    json_autoptr rows = queue_call(w, "QueryJobs", json_make("[[O][s]]", id, "ops"), NULL);
    json_t *ops = json_array_get(json_array_get(rows, 0), 0);
    for (size_t i = 0; i < json_array_size(ops); i++) /* luxid takes them of REST */
        g_assert_true(
            rapi_routes_queue(json_string_value(json_object_get(json_array_get(ops, i), "OP_ID"))));
    return json_incref(ops);
}

#define I "/2/instances/web1"
#define N "/2/nodes/node2"

static const struct {
    const char *method, *target, *body, *op; /* NULL: no body */
} jobs[] = {
    {"PUT", "/2/modify", "{\"max_running_jobs\":7}",
     "{\"OP_ID\":\"OP_CLUSTER_SET_PARAMS\",\"max_running_jobs\":7}"},
    {"PUT", "/2/tags?tag=a&tag=b%20c&dry-run=1", NULL,
     "{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"cluster\",\"tags\":[\"a\",\"b c\"],\"dry_run\":true}"},
    {"DELETE", "/2/tags?tag=a", NULL,
     "{\"OP_ID\":\"OP_TAGS_DEL\",\"kind\":\"cluster\",\"tags\":[\"a\"]}"},
    {"PUT", N "/tags?tag=a", "[\"a\"]",
     "{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"node\",\"name\":\"node2\",\"tags\":[\"a\"]}"},
    {"DELETE", N "/tags?tag=a", NULL,
     "{\"OP_ID\":\"OP_TAGS_DEL\",\"kind\":\"node\",\"name\":\"node2\"}"},
    {"PUT", N "/role", "\"drained\"",
     "{\"OP_ID\":\"OP_NODE_SET_PARAMS\",\"node_name\":\"node2\",\"drained\":\"yes\",\"offline\":"
     "\"\",\"master_candidate\":\"\"}"},
    {"PUT", N "/role?force=1&auto-promote=0", "\"offline\"",
     "{\"OP_ID\":\"OP_NODE_SET_PARAMS\",\"offline\":\"yes\",\"force\":true}"},
    {"PUT", N "/role", "\"regular\"",
     "{\"OP_ID\":\"OP_NODE_SET_PARAMS\",\"drained\":\"no\",\"offline\":\"no\","
     "\"master_candidate\":\"no\"}"},
    {"POST", N "/modify", "{\"drained\":true}",
     "{\"OP_ID\":\"OP_NODE_SET_PARAMS\",\"node_name\":\"node2\",\"drained\":\"yes\"}"},
    {"POST", N "/evacuate", "{\"mode\":\"primary-only\",\"iallocator\":\"hail\"}",
     "{\"OP_ID\":\"OP_NODE_EVACUATE\",\"node_name\":\"node2\",\"mode\":\"primary-only\"}"},
    {"POST", N "/migrate", "{\"mode\":\"non-live\",\"target_node\":\"node1\"}",
     "{\"OP_ID\":\"OP_NODE_MIGRATE\",\"mode\":\"non-live\",\"target_node\":\"node1\"}"},
    {"POST", N "/migrate?live=0", NULL, "{\"OP_ID\":\"OP_NODE_MIGRATE\",\"mode\":\"non-live\"}"},
    {"POST", N "/migrate?mode=live", NULL, "{\"OP_ID\":\"OP_NODE_MIGRATE\",\"mode\":\"live\"}"},
    {"POST", "/2/instances",
     "{\"__version__\":1,\"mode\":\"create\",\"name\":\"web7\",\"disk_template\":\"drbd\","
     "\"disks\":"
     "[{\"size\":64}],\"nics\":[{\"mac\":\"generate\"}],\"os\":\"debian.img\",\"beparams\":"
     "{\"maxmem\":256,\"minmem\":256,\"vcpus\":2}}",
     "{\"OP_ID\":\"OP_INSTANCE_CREATE\",\"instance_name\":\"web7\",\"disk_template\":\"drbd\","
     "\"os_type\":\"debian.img\",\"memory\":256,\"vcpus\":2}"},
    {"DELETE", I, "{\"shutdown_timeout\":5}",
     "{\"OP_ID\":\"OP_INSTANCE_REMOVE\",\"instance_name\":\"web1\",\"shutdown_timeout\":5}"},
    {"GET", I "/info?static=1", NULL,
     "{\"OP_ID\":\"OP_INSTANCE_QUERY_DATA\",\"instances\":[\"web1\"],\"on_record\":true}"},
    {"POST", I "/reboot?type=soft", "{\"shutdown_timeout\":9}",
     "{\"OP_ID\":\"OP_INSTANCE_REBOOT\",\"reboot_type\":\"soft\",\"shutdown_timeout\":9}"},
    {"PUT", I "/startup?force=0", NULL,
     "{\"OP_ID\":\"OP_INSTANCE_STARTUP\",\"instance_name\":\"web1\"}"},
    {"PUT", I "/shutdown?no_remember=0", "{\"timeout\":3}",
     "{\"OP_ID\":\"OP_INSTANCE_SHUTDOWN\",\"timeout\":3}"},
    {"POST", I "/replace-disks?mode=replace_new_secondary&remote_node=node3", NULL,
     "{\"OP_ID\":\"OP_INSTANCE_REPLACE_DISKS\",\"instance_name\":\"web1\",\"mode\":"
     "\"replace_new_secondary\",\"remote_node\":\"node3\"}"},
    {"POST", I "/replace-disks", "{\"mode\":\"replace_auto\",\"disks\":\"\"}",
     "{\"OP_ID\":\"OP_INSTANCE_REPLACE_DISKS\",\"mode\":\"replace_auto\"}"},
    {"PUT", I "/activate-disks?ignore_size=1", NULL,
     "{\"OP_ID\":\"OP_INSTANCE_ACTIVATE_DISKS\",\"ignore_size\":true}"},
    {"PUT", I "/deactivate-disks?force=True", NULL,
     "{\"OP_ID\":\"OP_INSTANCE_DEACTIVATE_DISKS\",\"force\":true}"},
    {"POST", I "/recreate-disks", "{\"nodes\":[\"node1\",\"node2\"]}",
     "{\"OP_ID\":\"OP_INSTANCE_RECREATE_DISKS\",\"nodes\":[\"node1\",\"node2\"]}"},
    {"PUT", I "/migrate", "{\"mode\":\"live\",\"cleanup\":false}",
     "{\"OP_ID\":\"OP_INSTANCE_MIGRATE\",\"instance_name\":\"web1\",\"mode\":\"live\"}"},
    {"PUT", I "/failover", "{}", "{\"OP_ID\":\"OP_INSTANCE_FAILOVER\"}"},
    {"PUT", I "/modify", "{\"custom_beparams\":{\"vcpus\":4}}",
     "{\"OP_ID\":\"OP_INSTANCE_SET_PARAMS\",\"instance_name\":\"web1\",\"vcpus\":4}"},
    {"POST", I "/disk/0/grow", "{\"amount\":64,\"wait_for_sync\":false}",
     "{\"OP_ID\":\"OP_INSTANCE_GROW_DISK\",\"disk\":0,\"amount\":64,\"wait_for_sync\":false}"},
    {"PUT", I "/tags?tag=x", NULL,
     "{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"instance\",\"name\":\"web1\"}"},
    {"DELETE", I "/tags?tag=x", NULL,
     "{\"OP_ID\":\"OP_TAGS_DEL\",\"kind\":\"instance\",\"name\":\"web1\"}"},
    {"POST", "/2/networks", "{\"name\":\"net1\",\"network\":\"192.0.2.0/24\",\"tags\":[]}",
     "{\"OP_ID\":\"OP_NETWORK_ADD\",\"network_name\":\"net1\",\"network\":\"192.0.2.0/24\"}"},
    {"DELETE", "/2/networks/net0", NULL,
     "{\"OP_ID\":\"OP_NETWORK_REMOVE\",\"network_name\":\"net0\"}"},
    {"PUT", "/2/networks/net0/modify", "{\"gateway\":\"192.0.2.1\"}",
     "{\"OP_ID\":\"OP_NETWORK_SET_PARAMS\",\"gateway\":\"192.0.2.1\"}"},
    {"PUT", "/2/groups/default/tags?tag=x", NULL,
     "{\"OP_ID\":\"OP_TAGS_SET\",\"kind\":\"nodegroup\",\"name\":\"default\"}"},
    {"DELETE", "/2/groups/default/tags?tag=x", NULL,
     "{\"OP_ID\":\"OP_TAGS_DEL\",\"kind\":\"nodegroup\"}"},
};

static void test_jobs(struct queue_world *w)
{
    for (size_t i = 0; i < G_N_ELEMENTS(jobs); i++) {
        json_autoptr ops = queued(w, jobs[i].method, jobs[i].target, jobs[i].body);
        json_autoptr expected = json_loads(jobs[i].op, 0, NULL);
        g_autofree char *text = json_to_text(ops);
        g_assert_nonnull(expected);
        if (json_array_size(ops) != 1 || !is_part(expected, json_array_get(ops, 0)))
            g_error("%s %s has queued %s", jobs[i].method, jobs[i].target, text);
    }
}

/* The trail as Ganeti's: rules about jobs go by it. */
static void test_reason(struct queue_world *w)
{
    json_autoptr ops = queued(w, "PUT", I "/startup?reason=it%20was%20off", "{\"depends\":[]}");
    json_t *trail = json_object_get(json_array_get(ops, 0), "reason");
    g_assert_cmpstr(json_string_value(json_array_get(json_array_get(trail, 0), 0)), ==, "gnt:user");
    g_assert_cmpstr(json_string_value(json_array_get(json_array_get(trail, 0), 1)), ==,
                    "it was off");
    g_assert_cmpstr(json_string_value(json_array_get(json_array_get(trail, 1), 0)), ==,
                    "gnt:library:rlib2:instances_name_startup");
}

static void check_reinstall(struct queue_world *w, const char *target, const char *body,
                            size_t count, const char *image)
{
    static const char *const ids[] = {"OP_INSTANCE_SHUTDOWN", "OP_INSTANCE_REINSTALL",
                                      "OP_INSTANCE_STARTUP"};
    json_autoptr ops = queued(w, "POST", target, body);
    g_assert_cmpuint(json_array_size(ops), ==, count);
    for (size_t i = 0; i < count; i++) {
        json_t *op = json_array_get(ops, i);
        g_assert_cmpstr(json_string_value(json_object_get(op, "OP_ID")), ==, ids[i]);
        g_assert_cmpstr(json_string_value(json_object_get(op, "instance_name")), ==, "web1");
    }
    g_assert_cmpstr(json_string_value(json_object_get(json_array_get(ops, 1), "os_type")), ==,
                    image);
}

static void test_reinstall(struct queue_world *w)
{
    check_reinstall(w, I "/reinstall", "{\"os\":\"new.img\",\"start\":false}", 2, "new.img");
    check_reinstall(w, I "/reinstall", "{\"os\":\"new.img\"}", 3, "new.img");
    check_reinstall(w, I "/reinstall?os=old.img&nostartup=1", NULL, 2, "old.img");
    check_reinstall(w, I "/reinstall", NULL, 3, "");
    /* A trial is one of all three. */
    json_autoptr ops =
        queued(w, "POST", I "/reinstall", "{\"os\":\"new.img\",\"dry_run\":true,\"priority\":5}");
    g_assert_cmpuint(json_array_size(ops), ==, 3);
    for (size_t i = 0; i < 3; i++) {
        g_assert_true(json_is_true(json_object_get(json_array_get(ops, i), "dry_run")));
        g_assert_cmpint(json_integer_value(json_object_get(json_array_get(ops, i), "priority")), ==,
                        5);
        g_assert_false(json_object_get(json_array_get(ops, i), "start"));
    }
}

/* --- reads --- */

#define check_text(target, expected)                                                               \
    do {                                                                                           \
        g_autofree char *said_ = rapi_say("GET", target, NULL);                                    \
        g_assert_cmpstr(said_, ==, expected);                                                      \
    } while (0)

static void test_constants(struct queue_world *w)
{
    check_text("/", "200 null");
    check_text("/2", "200 null");
    check_text("/version", "200 2");
    check_text("/2/features",
               "200 [\"node-migrate-reqv1\", \"node-evac-res1\", \"instance-create-reqv1\", "
               "\"instance-reinstall-reqv1\"]");
}

static void test_info(struct queue_world *w)
{
    json_autoptr info = rapi_get(200, "GET", "/2/info", NULL);
    g_assert_true(json_object_get(info, "vg_name"));
    g_assert_true(json_object_get(info, "drbd_helper"));
    g_assert_cmpstr(json_string_value(json_object_get(info, "master")), ==, "node1");
    check_text(I "/tags", "200 [\"owner:mail\"]");
    check_text("/2/tags", "200 []");
    check_text(N "/tags", "200 []");
    check_text("/2/groups/default/tags", "200 []");
}

static void check_keys(const json_t *object, const char *resource, bool one)
{
    g_autoptr(GPtrArray) names = rapi_fields(FACE_GANETI, resource, one);
    for (guint i = 0; i < names->len; i++)
        if (!json_object_get(object, names->pdata[i]))
            g_error("%s has no %s", resource, (char *)names->pdata[i]);
}

static void test_lists(struct queue_world *w)
{
    static const struct {
        const char *path, *resource, *plain;
        size_t count;
    } rows[] = {
        {"/2/instances", "instance",
         "200 [{\"id\": \"web1\", \"uri\": \"/2/instances/web1\"}, {\"id\": \"web10\", \"uri\": "
         "\"/2/instances/web10\"}, {\"id\": \"web2\", \"uri\": \"/2/instances/web2\"}]",
         3},
        {"/2/nodes", "node",
         "200 [{\"id\": \"node1\", \"uri\": \"/2/nodes/node1\"}, {\"id\": \"node2\", \"uri\": "
         "\"/2/nodes/node2\"}, {\"id\": \"node3\", \"uri\": \"/2/nodes/node3\"}]",
         3},
        {"/2/groups", "group", "200 [{\"name\": \"default\", \"uri\": \"/2/groups/default\"}]", 1},
        {"/2/networks", "network", "200 []", 0},
        {"/2/filters", "filter", "200 []", 0},
        {"/2/jobs", "job", "200 [{\"id\": 1, \"uri\": \"/2/jobs/1\"}]", 1},
    };
    query_script_nodes(w, query_answer_report);
    queue_submit(w, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *bulk = g_strconcat(rows[i].path, "?bulk=1", NULL);
        check_text(rows[i].path, rows[i].plain);
        json_autoptr list = rapi_get(200, "GET", bulk, NULL);
        g_assert_cmpuint(json_array_size(list), ==, rows[i].count);
        for (size_t at = 0; at < rows[i].count; at++)
            check_keys(json_array_get(list, at), rows[i].resource, false);
        g_assert_nonnull(strchr(rapi_header("Fettle-Serials"), '-'));
        g_assert_cmpstr(rapi_header("Content-Type"), ==, "application/json");
    }
}

static void test_objects(struct queue_world *w)
{
    query_script_nodes(w, query_answer_report);
    queue_submit(w, NULL);
    json_autoptr instance = rapi_get(200, "GET", I, NULL);
    check_keys(instance, "instance", true);
    g_assert_cmpstr(json_string_value(json_object_get(instance, "disk_template")), ==, "drbd");
    g_assert_cmpint(
        json_integer_value(json_object_get(json_object_get(instance, "beparams"), "memory")), ==,
        256);
    g_autofree char *tag =
        g_strdup_printf("W/\"%" JSON_INTEGER_FORMAT "\"",
                        json_integer_value(json_object_get(instance, "serial_no")));
    g_assert_cmpstr(rapi_header("ETag"), ==, tag);
    json_autoptr by_uuid = rapi_get(200, "GET", "/2/instances/" WEB1, NULL);
    g_assert_true(json_equal(json_object_get(by_uuid, "name"), json_object_get(instance, "name")));
    json_autoptr node = rapi_get(200, "GET", N, NULL);
    check_keys(node, "node", true);
    g_assert_true(json_equal(json_object_get(node, "sip"), json_object_get(node, "secondary_ip")));
    json_autoptr group = rapi_get(200, "GET", "/2/groups/default", NULL);
    check_keys(group, "group", true);
    json_autoptr job = rapi_get(200, "GET", "/2/jobs/1", NULL);
    check_keys(job, "job", true);
    check_text(N "/role", "200 \"regular\"");
    check_text("/2/nodes/node3/role", "200 \"offline\"");
    check_text("/2/nodes/node1/role", "200 \"master\"");
}

static void test_unknown(struct queue_world *w)
{
    static const struct {
        const char *target, *explain;
    } rows[] = {
        {"/2/instances/x", "instance \"x\" does not exist"},
        {"/2/nodes/x", "node \"x\" does not exist"},
        {"/2/groups/x", "group \"x\" does not exist"},
        {"/2/networks/x", "network \"x\" does not exist"},
        {"/2/jobs/77", "job \"77\" does not exist"},
        {"/2/jobs/x", "job \"x\" does not exist"},
        {"/2/jobs/99999999999999999999", "job \"99999999999999999999\" does not exist"},
        {"/2/filters/33333333-0000-4000-8000-000000000001",
         "filter \"33333333-0000-4000-8000-000000000001\" does not exist"},
        {"/2/instances/a%22b%C3%A4", "instance \"a\"b\xc3\xa4\" does not exist"},
        {"/2/nope", "Nothing matches the given URI"},
        {"/3", "Nothing matches the given URI"},
        {"/fettle/v1/repairs/x", "repair \"x\" does not exist"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        rapi_refused(404, rows[i].explain, "GET", rows[i].target, NULL);
    rapi_refused(400, "names[0]: must have no control characters, has \\u202e", "GET",
                 "/2/instances/a%E2%80%AE", NULL);
}

static void test_console(struct queue_world *w)
{
    query_script_nodes(w, query_answer_report);
    rapi_refused(503, "Instance console unavailable: \"web2\" does not run", "GET",
                 "/2/instances/web2/console", NULL);
    rapi_refused(503,
                 "Instance console unavailable: \"web1\" has no VNC display; its serial line: "
                 "fettle instance console web1",
                 "GET", I "/console", NULL);
    store_put(w->store, "instance", WEB1,
              json_make("{ss, ss, ss, ss, si, s[], ss, ss, si, ss, ss, si}", "uuid", WEB1, "name",
                        "web1", "admin_state", "up", "disk_template", "diskless", "memory", 256,
                        "disks", "primary_node", MASTER, "secondary_node", "", "generation", 3,
                        "holder", MASTER, "vnc_bind_address", "0.0.0.0", "network_port", 11000));
    fake_settle(w->world);
    json_autoptr console = rapi_get(200, "GET", I "/console", NULL);
    g_assert_cmpstr(json_string_value(json_object_get(console, "kind")), ==, "vnc");
}

/* --- what waits, and asks --- */

static void test_wait(struct queue_world *w)
{
    queue_submit(w, NULL);
    json_autoptr first = rapi_get(200, "GET", "/2/jobs/1/wait", "{\"fields\":[\"status\"]}");
    g_assert_cmpuint(json_object_size(first), ==, 2);
    g_assert_true(json_is_array(json_object_get(first, "job_info")));
    g_autofree char *info = json_to_text(json_object_get(first, "job_info"));
    g_autofree char *known = g_strdup_printf(
        "{\"fields\":[\"status\"],\"previous_job_info\":%s,\"previous_log_serial\":null}", info);
    g_autofree char *nothing = rapi_say("GET", "/2/jobs/1/wait", known);
    g_assert_cmpstr(nothing, ==, "200 null");
    rapi_refused(404, "job \"7\" does not exist", "GET", "/2/jobs/7/wait",
                 "{\"fields\":[\"status\"]}");
    rapi_refused(400, "The 'fields' parameter should be a list", "GET", "/2/jobs/1/wait", NULL);
    rapi_refused(400, "The 'previous_job_info' parameter should be a list", "GET", "/2/jobs/1/wait",
                 "{\"fields\":[],\"previous_job_info\":1}");
    rapi_refused(400, "The 'previous_log_serial' parameter should be a number", "GET",
                 "/2/jobs/1/wait", "{\"fields\":[],\"previous_log_serial\":\"x\"}");
    rapi_be("bob", RAPI_READ);
    rapi_refused(403, "user \"bob\" may only read", "GET", "/2/jobs/1/wait",
                 "{\"fields\":[\"status\"]}");
}

static void test_cancel(struct queue_world *w)
{
    queue_submit(w, NULL);
    json_autoptr said = rapi_get(200, "DELETE", "/2/jobs/1", NULL);
    g_assert_true(json_is_boolean(json_array_get(said, 0)));
    g_assert_true(json_is_string(json_array_get(said, 1)));
}

static void test_query(struct queue_world *w)
{
    /* Nothing is made of an answer, however large it is: it passes through. */
    g_assert_cmpuint(rapi_longest_text(), ==, 0);
    json_autoptr all = rapi_get(200, "GET", "/2/query/instance?fields=name,%20disk_template", NULL);
    g_assert_cmpuint(rapi_longest_text(), >, 0);
    g_assert_cmpuint(json_array_size(json_object_get(all, "data")), ==, 3);
    g_autofree char *row = json_to_text(json_array_get(json_object_get(all, "data"), 0));
    g_assert_cmpstr(row, ==, "[[0,\"web1\"],[0,\"drbd\"]]");
    json_autoptr one = rapi_get(200, "PUT", "/2/query/instance",
                                "{\"fields\":[\"name\"],\"qfilter\":[\"=\",\"name\",\"web1\"],"
                                "\"filter\":[\"=\",\"name\",\"web2\"]}");
    g_autofree char *found = json_to_text(json_object_get(one, "data"));
    g_assert_cmpstr(found, ==, "[[[0,\"web1\"]]]");
    json_autoptr old = rapi_get(200, "PUT", "/2/query/instance?fields=name",
                                "{\"filter\":[\"=\",\"name\",\"web2\"]}");
    g_assert_cmpuint(json_array_size(json_object_get(old, "data")), ==, 1);
    json_autoptr fields = rapi_get(200, "GET", "/2/query/node/fields?fields=name,role", NULL);
    g_assert_cmpuint(json_array_size(json_object_get(fields, "fields")), ==, 2);
    json_autoptr many = rapi_get(200, "GET", "/2/query/node/fields", NULL);
    g_assert_cmpuint(json_array_size(json_object_get(many, "fields")), >, 20);
    rapi_refused(400, "Missing 'fields' query argument", "GET", "/2/query/instance", NULL);
    json_autoptr ours = rapi_get(
        200, "GET",
        "/fettle/v1/query/instance?fields=disk_template&filter=[%22=%22,%22name%22,%22web1%22]",
        NULL);
    g_autofree char *text = json_to_text(json_object_get(ours, "data"));
    g_assert_cmpstr(text, ==, "[[[0,\"mirror\"]]]");
    g_autofree char *broken = rapi_say("GET", "/fettle/v1/query/job?fields=id&filter=[", NULL);
    g_assert_true(g_str_has_prefix(broken, "400 "));
    g_assert_nonnull(strstr(broken, "filter: broken JSON"));
}

static void test_filters(struct queue_world *w)
{
    json_autoptr uuid = rapi_get(200, "POST", "/2/filters",
                                 "{\"priority\":10,\"predicates\":[[\"jobid\",[\">\",\"id\",0]]],"
                                 "\"action\":\"PAUSE\",\"reason\":[]}");
    g_autofree char *path = g_strdup_printf("/2/filters/%s", json_string_value(uuid));
    json_autoptr one = rapi_get(200, "GET", path, NULL);
    check_keys(one, "filter", true);
    json_autoptr again = rapi_get(200, "PUT", path, "{\"priority\":11}");
    g_assert_true(json_equal(again, uuid));
    json_autoptr list = rapi_get(200, "GET", "/2/filters?bulk=1", NULL);
    json_t *rule = json_array_get(list, 0);
    g_assert_cmpint(json_integer_value(json_object_get(rule, "priority")), ==, 11);
    g_assert_cmpstr(json_string_value(json_object_get(rule, "action")), ==, "CONTINUE");
    rapi_refused(400, "Invalid body parameters: filter rule doesn't support the parameter 'colour'",
                 "POST", "/2/filters", "{\"colour\":1}");
    json_autoptr gone = rapi_get(200, "DELETE", path, NULL);
    g_assert_true(json_is_null(gone));
}

/* --- long lists --- */

static void put_many(struct queue_world *w, guint count)
{
    for (guint i = 0; i < count; i++) {
        g_autofree char *uuid = g_strdup_printf("99999999-0000-4000-8000-%012u", i);
        g_autofree char *name = g_strdup_printf("many%u", i);
        store_put(w->store, "instance", uuid,
                  json_make("{ss, ss, ss, ss, si, s[], ss, ss, si, ss}", "uuid", uuid, "name", name,
                            "admin_state", "down", "disk_template", "diskless", "memory", 128,
                            "disks", "primary_node", MASTER, "secondary_node", "", "generation", 0,
                            "holder", ""));
    }
    fake_settle(w->world);
}

#define MANY 2100u

static void test_streamed(struct queue_world *w)
{
    put_many(w, MANY); /* with those that are there: more than a page */
    guint before = rapi_calls();
    json_autoptr list = rapi_get(200, "GET", "/2/instances?bulk=1", NULL);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) {
        check_keys(one, "instance", false);
        g_hash_table_add(names, (char *)json_string_value(json_object_get(one, "name")));
    }
    g_assert_cmpuint(json_array_size(list), ==, MANY + 3);
    g_assert_cmpuint(g_hash_table_size(names), ==, MANY + 3);
    /* Names, two pages, and the serial before. */
    g_assert_cmpuint(rapi_calls() - before, ==, 4);
    g_assert_true(g_str_has_suffix(rapi_header("Fettle-Serials"), "-"));
    json_autoptr plain = rapi_get(200, "GET", "/2/instances", NULL);
    g_assert_cmpuint(json_array_size(plain), ==, MANY + 3);
    /* Nobody is told more than there is to know. */
    g_autofree char *head = rapi_say("HEAD", "/2/instances?bulk=1", NULL);
    g_assert_true(g_str_has_prefix(head, "200 "));
    rapi_fail_next(FETTLE_ERROR_UNREACHABLE, "luxid does not answer");
    rapi_refused(502, "luxid does not answer", "GET", "/2/instances?bulk=1", NULL);
    /* It has no time for the second page: that is asked for again, as what has begun cannot be
     * refused. */
    rapi_fail_after(3, FETTLE_ERROR_TEMPORARY, "too much at once");
    json_autoptr later = rapi_get(200, "GET", "/2/instances?bulk=1", NULL);
    g_assert_cmpuint(json_array_size(later), ==, MANY + 3);
    /* One of them is gone by then: the others are asked for by a filter. */
    rapi_fail_after(3, FETTLE_ERROR_UNKNOWN_ENTITY, "instance \"many1\" is not known");
    before = rapi_calls();
    json_autoptr others = rapi_get(200, "GET", "/2/instances?bulk=1", NULL);
    g_assert_cmpuint(json_array_size(others), ==, MANY + 3);
    g_assert_cmpuint(rapi_calls() - before, ==, 5);
    /* It goes away before: what was said is not whole, and shows it. */
    rapi_fail_after(3, FETTLE_ERROR_UNREACHABLE, "luxid does not answer");
    g_autofree char *broken = rapi_say("GET", "/2/instances?bulk=1", NULL);
    g_assert_true(g_str_has_suffix(broken, "(broken)"));
    /* It never has time, and says so late: nobody waits for hours. */
    rapi_fail_on(3, 30000, FETTLE_ERROR_TEMPORARY, "luxid was busy");
    gint64 since_ms = fake_now_ms(w->world);
    g_autofree char *late = rapi_say("GET", "/2/instances?bulk=1", NULL);
    g_assert_true(g_str_has_suffix(late, "(broken)"));
    g_assert_cmpint(fake_now_ms(w->world) - since_ms, <, 120000);
    rapi_fail_times(0, 0, FETTLE_ERROR_LIMIT, "");
}

/* Of who takes gzip a long list is that, and what is in one piece is not. */
static void test_gzip(struct queue_world *w)
{
    static const struct {
        const char *takes;
        bool packed;
    } rows[] = {{"gzip", true},    {"deflate, GZip;q=0.3", true}, {"*", true},
                {"", false},       {"br, deflate", false},        {"gzip;q=0, *", false},
                {"gzipped", false}};
    rapi_take("gzip");
    json_decref(rapi_get(200, "GET", "/2/instances?bulk=1", NULL));
    g_assert_cmpstr(rapi_header("Vary"), ==, "Accept-Encoding");
    g_assert_cmpstr(rapi_header("Content-Encoding"), ==, "");
    put_many(w, 200);
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        guint before = rapi_packed();
        rapi_take(rows[i].takes);
        g_test_message("%s", rows[i].takes);
        json_decref(rapi_get(200, "GET", "/2/instances?bulk=1", NULL));
        g_assert_cmpuint(rapi_packed() - before, ==, rows[i].packed);
        g_assert_cmpstr(rapi_header("Content-Encoding"), ==, rows[i].packed ? "gzip" : "");
        g_assert_cmpstr(rapi_header("Vary"), ==, "Accept-Encoding");
    }
}

/* What is too much for one answer of luxid is asked for in halves, as often as it has to be. */
static void check_halved(const char *target, size_t count, guint times)
{
    json_autoptr whole = rapi_get(200, "GET", target, NULL);
    g_assert_cmpuint(json_array_size(whole), ==, count);
    rapi_fail_times(2, times, FETTLE_ERROR_LIMIT, "the answer is too large");
    json_autoptr halved = rapi_get(200, "GET", target, NULL);
    g_assert_true(json_equal(whole, halved));
    g_assert_true(g_str_has_suffix(rapi_header("Fettle-Serials"), "-"));
    rapi_fail_times(2, 100, FETTLE_ERROR_LIMIT, "the answer is too large");
    rapi_refused(413, "the answer is too large", "GET", target, NULL);
    rapi_fail_times(0, 0, FETTLE_ERROR_LIMIT, "");
}

static void test_halved(struct queue_world *w)
{
    for (guint i = 0; i < 5; i++)
        queue_submit(w, NULL);
    check_halved("/2/instances?bulk=1", 3, 1);
    check_halved("/2/nodes?bulk=1", 3, 1);
    check_halved("/2/jobs?bulk=1", 5, 2);
    check_halved("/fettle/v1/jobs?bulk=1", 5, 1);
    put_many(w, 20);
    check_halved("/2/instances?bulk=1", 23, 3);
}

/* --- ours --- */

static void test_ours(struct queue_world *w)
{
    query_script_nodes(w, query_answer_report);
    queue_submit(w, NULL);
    query_put_decision(w, 1, 1000000, "act", "alert");
    query_put_tag(w, WEB1, "ganeti:watcher:autorepair:pending:migrate:" REPAIR ":100:");
    query_put_storage(w);
    json_autoptr decisions = rapi_get(200, "GET", "/fettle/v1/decisions?bulk=1", NULL);
    g_assert_cmpuint(json_array_size(decisions), ==, 1);
    json_autoptr decision =
        rapi_get(200, "GET", "/fettle/v1/decisions/11111111-0000-4000-8000-000000000001", NULL);
    g_assert_cmpstr(json_string_value(json_object_get(decision, "summary")), ==, "because");
    json_autoptr repairs = rapi_get(200, "GET", "/fettle/v1/repairs", NULL);
    g_assert_cmpuint(json_array_size(repairs), ==, 1);
    json_autoptr repair = rapi_get(200, "GET", "/fettle/v1/repairs/" REPAIR, NULL);
    g_assert_cmpstr(json_string_value(json_object_get(repair, "instance")), ==, "web1");
    json_autoptr recovery = rapi_get(200, "GET", "/fettle/v1/recovery", NULL);
    g_assert_true(json_is_array(json_object_get(recovery, "rows")));
    json_autoptr plan = rapi_get(200, "GET", "/fettle/v1/plan/node2?event=fail", NULL);
    g_assert_true(json_is_object(plan));
    json_autoptr verify = rapi_get(200, "GET", "/fettle/v1/verify", NULL);
    g_assert_true(json_is_array(json_object_get(verify, "problems")));
    json_autoptr jobs_list = rapi_get(200, "GET", "/fettle/v1/jobs?bulk=1", NULL);
    g_assert_true(json_object_get(json_array_get(jobs_list, 0), "holds"));
    json_autoptr job = rapi_get(200, "GET", "/fettle/v1/jobs/1", NULL);
    g_assert_true(json_object_get(job, "oplog"));
    json_autoptr volumes = rapi_get(200, "GET", "/fettle/v1/volumes?bulk=1", NULL);
    g_assert_cmpuint(json_array_size(volumes), ==, 2);
    json_autoptr volume = rapi_get(200, "GET", "/fettle/v1/volumes/" VOLUME1, NULL);
    g_assert_cmpstr(json_string_value(json_object_get(volume, "name")), ==, "data1");
    json_autoptr why = rapi_get(200, "GET", "/fettle/v1/instances/web1/why", NULL);
    g_assert_cmpuint(json_array_size(json_object_get(why, "decisions")), ==, 1);
    g_assert_cmpuint(json_array_size(json_object_get(why, "repairs")), ==, 1);
    g_assert_true(json_is_object(json_object_get(why, "recovery")));
}

static void test_metrics(struct queue_world *w)
{
    g_autofree char *said = rapi_say("GET", "/metrics", NULL);
    g_assert_true(g_str_has_prefix(said, "200 # HELP fettle_"));
    g_assert_nonnull(strstr(said, "\nfettle_cluster_instances{status=\"up\"} "));
    g_assert_true(g_str_has_prefix(rapi_header("Content-Type"), "text/plain; version=0.0.4"));
    g_assert_cmpstr(rapi_header("Vary"), ==, "Accept");
    json_decref(rapi_get(200, "GET", "/2/features", NULL));
    json_decref(rapi_get(200, "GET", "/fettle/v1/openapi.json", NULL));
    rapi_refused(404, "Nothing matches the given URI", "GET", "/2/of-a-stranger", NULL);
    g_autofree char *counted = rapi_say("GET", "/metrics", NULL);
    g_assert_nonnull(strstr(counted, "{service=\"ganeti\",status=\"2xx\"} 1\n"));
    g_assert_nonnull(strstr(counted, "{service=\"fettle\",status=\"2xx\"} 1\n"));
    g_assert_nonnull(strstr(counted, "{service=\"other\",status=\"4xx\"} 1\n"));
    g_assert_nonnull(strstr(counted, "fettle_rapid_request_seconds_count{service=\"fettle\"} 1\n"));
    g_assert_null(strstr(counted, "stranger"));
    rapi_be("", RAPI_UNKNOWN);
    rapi_refused(401, "No permission -- see authorization schemes", "GET", "/metrics", NULL);
}

static bool may_be_tried(const json_t *paths, const char *path, const char *method)
{
    const json_t *route = json_object_get(json_object_get(paths, path), method);
    size_t i;
    json_t *one;
    g_assert_nonnull(route);
    json_array_foreach(json_object_get(route, "parameters"), i, one)
        if (!strcmp(json_string_value(json_object_get(one, "name")), "dry-run"))
            return true;
    return false;
}

static void test_openapi(struct queue_world *w)
{
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    json_autoptr api = rapi_get(200, "GET", "/fettle/v1/openapi.json", NULL);
    json_t *paths = json_object_get(api, "paths");
    for (size_t i = 0; i < count; i++) {
        g_autofree char *method = g_ascii_strdown(table[i].method, -1);
        json_t *path = json_object_get(paths, table[i].path);
        if (!json_object_get(json_object_get(path, method), "responses"))
            g_error("openapi.json lacks %s %s", table[i].method, table[i].path);
    }
    json_t *grow =
        json_object_get(json_object_get(paths, "/2/instances/{instance}/disk/{disk}/grow"), "post");
    json_t *body = json_object_get(json_object_get(grow, "requestBody"), "content");
    json_t *schema = json_object_get(json_object_get(body, "application/json"), "schema");
    json_t *members = json_object_get(schema, "properties");
    g_assert_true(json_object_get(members, "amount"));
    g_assert_false(json_object_get(members, "instance_name"));
    g_assert_true(may_be_tried(paths, "/2/instances/{instance}/disk/{disk}/grow", "post"));
    g_assert_true(may_be_tried(paths, "/2/instances/{instance}/reinstall", "post"));
    g_assert_false(may_be_tried(paths, "/2/jobs/{job}", "delete"));
    g_assert_false(may_be_tried(paths, "/2/jobs/{job}/wait", "get"));
    g_assert_false(may_be_tried(paths, "/2/filters", "post"));
}

/* --- what is not there --- */

/* What it tells is test_rapi_events.c's. */
static void test_events(struct queue_world *w)
{
    g_autofree char *said = rapi_say("GET", "/fettle/v1/events", NULL);
    g_assert_true(g_str_has_prefix(said, "200 retry: 1000\nid: "));
    g_assert_cmpstr(rapi_header("Content-Type"), ==, "text/event-stream");
    g_assert_cmpstr(rapi_header("Cache-Control"), ==, "no-store");
}

static void test_none(struct queue_world *w)
{
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    for (size_t i = 0; i < count; i++) {
        if (table[i].kind != RAPI_NONE)
            continue;
        g_auto(GStrv) parts = g_strsplit_set(table[i].path, "{}", -1);
        g_autofree char *path = g_strv_length(parts) == 3
                                    ? g_strconcat(parts[0], "x", parts[2], NULL)
                                    : g_strdup(table[i].path);
        g_autofree char *why = g_strdup_printf("%s: %s; see the guide", path, table[i].what);
        guint before = rapi_calls();
        rapi_refused(501, why, table[i].method, path, "{}");
        g_assert_cmpuint(rapi_calls(), ==, before);
    }
    rapi_refused(501,
                 "/2/instances/x/export: Fettle has no exports of Ganeti's form; see the guide",
                 "PUT", "/2/instances/x/export", "{}");
    store_put(w->store, "network", "77777777-0000-4000-8000-000000000001",
              json_make("{ss, ss, ss, ss}", "uuid", "77777777-0000-4000-8000-000000000001", "name",
                        "net0", "network", "192.0.2.0/24", "link", "br0"));
    fake_settle(w->world);
    check_text("/2/networks/net0/tags", "200 []");
    json_autoptr network = rapi_get(200, "GET", "/2/networks/net0", NULL);
    check_keys(network, "network", true);
}

static void test_seen(void)
{
    rapi_assert_seen();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    rapi_case("/rapi/jobs#RAP-02", test_jobs);
    rapi_case("/rapi/reason", test_reason);
    rapi_case("/rapi/reinstall", test_reinstall);
    rapi_case("/rapi/constants#RAP-03", test_constants);
    rapi_case("/rapi/info", test_info);
    rapi_case("/rapi/lists#RAP-03", test_lists);
    rapi_case("/rapi/objects#RAP-03", test_objects);
    rapi_case("/rapi/unknown", test_unknown);
    rapi_case("/rapi/console", test_console);
    rapi_case("/rapi/wait", test_wait);
    rapi_case("/rapi/cancel", test_cancel);
    rapi_case("/rapi/query", test_query);
    rapi_case("/rapi/filters", test_filters);
    rapi_case("/rapi/streamed", test_streamed);
    rapi_case("/rapi/gzip", test_gzip);
    rapi_case("/rapi/halved", test_halved);
    rapi_case("/rapi/ours", test_ours);
    rapi_case("/rapi/openapi", test_openapi);
    rapi_case("/rapi/metrics", test_metrics);
    rapi_case("/rapi/events", test_events);
    rapi_case("/rapi/none", test_none);
    g_test_add_func("/rapi/every-route-seen#RAP-02", test_seen);
    return g_test_run();
}
