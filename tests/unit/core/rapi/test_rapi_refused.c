/* What fettle-rapid refuses: what is wrong with requests, and with who sends them. */
#include <string.h>

#include "proto/rapi/rapi_route.h"
#include "unit/core/world/rapi_world.h"

#define I "/2/instances/web1"
#define N "/2/nodes/node2"

/* --- what is wrong with requests --- */

static void test_who(struct queue_world *w)
{
    rapi_be("", RAPI_UNKNOWN);
    rapi_refused(401, "No permission -- see authorization schemes", "GET", "/2/info", NULL);
    g_assert_cmpstr(rapi_header("WWW-Authenticate"), ==, "Basic realm=\"Ganeti Remote API\"");
    rapi_be("bob", RAPI_READ);
    rapi_refused(403, "user \"bob\" may only read", "PUT", I "/startup", NULL);
    json_decref(rapi_get(200, "GET", "/version", NULL));
    json_autoptr id = rapi_get(200, "GET", I "/info", NULL);
    g_assert_true(json_is_integer(id));
    rapi_be("", RAPI_READ);
    json_decref(rapi_get(200, "GET", "/version", NULL));
    /* What queues a job is for nobody without a name. */
    guint before = rapi_calls();
    rapi_refused(401, "No permission -- see authorization schemes", "GET", I "/info", NULL);
    rapi_refused(401, "No permission -- see authorization schemes", "HEAD", I "/info", NULL);
    g_assert_cmpuint(rapi_calls(), ==, before);
    rapi_refused(401, "No permission -- see authorization schemes", "PUT", I "/startup", NULL);
    rapi_be("", RAPI_BARRED);
    rapi_refused(429,
                 "too many wrong passwords have come from your address (of IPv6: from its /64); "
                 "try again in a minute",
                 "GET", "/2", NULL);
    g_assert_cmpstr(rapi_header("Retry-After"), ==, "60");
    rapi_be("", RAPI_FAILED);
    rapi_refused(502, "luxid does not answer", "GET", "/2", NULL);
}

#define TWICE(name) name ": stands in the path, or behind \"?\", and may not stand in the body, too"

static void test_bad_requests(struct queue_world *w)
{
    static const struct {
        const char *method, *target, *body, *explain;
    } rows[] = {
        {"PUT", I "/modify", "{\"beparams\":{\"vcpus\":1.5}}",
         "ops[0].vcpus: must be a whole number"},
        {"POST", I "/disk/0/grow", "{\"amount\":\"x\"}", "ops[0].amount: must be a number"},
        {"POST", I "/disk/x/grow", "{\"amount\":1}", "ops[0].disk: must be a number"},
        {"PUT", I "/migrate", "{\n\n{",
         "the body is no JSON object (line 3: string or '}' expected "
         "near '{')"},
        {"PUT", I "/migrate", "[]", "the body is no JSON object (line 1: it is a list)"},
        {"PUT", I "/migrate", "1,2",
         "the body is no JSON object (line 1: end of file expected near "
         "',')"},
        {"PUT", I "/migrate", "1],[2",
         "the body is no JSON object (line 1: end of file expected "
         "near ']')"},
        {"PUT", I "/migrate", "{\"a\":1,\"a\":2}",
         "the body is no JSON object (line 1: duplicate object key near '\"a\"')"},
        {"PUT", I "/migrate", "{\"instance_name\":\"web2\"}", TWICE("instance_name")},
        {"PUT", I "/migrate", "{\"reason\":[]}", "reason: stands behind \"?\""},
        {"PUT", I "/startup", "{\"colour\":1}",
         "colour: nothing of that name is taken in the body"},
        {"PUT", I "/startup?force=x", NULL, "force: must be a number, 0 or 1"},
        {"PUT", I "/startup?dry-run=x", NULL, "dry-run: must be a number, 0 or 1"},
        {"GET", I "/info", "{\"priority\":5}",
         "priority: nothing of that name is taken in the body"},
        {"GET", I "/info", "{\"depends\":[]}",
         "depends: nothing of that name is taken in the body"},
        {"GET", "/2/instances?bulk=x", NULL, "bulk: must be a number, 0 or 1"},
        {"POST", "/2/networks", "{\"name\":\"a\",\"network_name\":\"b\"}",
         "Parameter 'name' was renamed to 'network_name', but both are specified"},
        {"POST", "/2/instances", "{\"name\":\"a\"}",
         "Instance creation request version 0 is no longer supported: say \"__version__\": 1"},
        {"POST", "/2/instances", "{\"__version__\":2}", "Unsupported request data version 2"},
        {"PUT", N "/role", "\"king\"", "Can't set 'king' role"},
        {"PUT", N "/role", "{}", "the body is no text of JSON, as \"drained\""},
        {"POST", N "/migrate?live=1&mode=live", NULL,
         "Only one of 'live' and 'mode' should be passed"},
        {"POST", I "/replace-disks?disks=0,x", NULL, "Invalid disk index passed: 0,x"},
        {"POST", I "/reinstall?os=a", "{\"os\":\"b\"}", "Can't combine query and body parameters"},
        {"POST", I "/reinstall", "{\"start\":1}", "start: must be true or false"},
        {"POST", I "/reinstall", "{\"instance_name\":\"web2\"}", TWICE("instance_name")},
        {"POST", I "/reinstall", "{\"os\":\"a\",\"os_type\":\"b\"}",
         "Parameter 'os' was renamed to 'os_type', but both are specified"},
        {"POST", I "/reinstall", "{\"reason\":[]}", "reason: stands behind \"?\""},
        {"POST", I "/replace-disks", "{\"instance_name\":\"web2\"}", TWICE("instance_name")},
        {"POST", N "/migrate", "{\"node_name\":\"node3\"}", TWICE("node_name")},
    };
    static const char *const named[] = {I "/reinstall", I "/replace-disks", N "/migrate",
                                        I "/reboot"};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        rapi_refused(400, rows[i].explain, rows[i].method, rows[i].target, rows[i].body);
    for (size_t i = 0; i < G_N_ELEMENTS(named); i++)
        rapi_refused(403, "The parameter OP_ID cannot be set via RAPI", "POST", named[i],
                     "{\"OP_ID\":\"OP_INSTANCE_REMOVE\"}");
    rapi_refused(403, "The parameter OP_ID cannot be set via RAPI", "POST", "/2/instances",
                 "{\"__version__\":1,\"OP_ID\":\"OP_RECOVERY_RESET\"}");
    rapi_refused(403, "The parameter compression_tools cannot be set via RAPI", "PUT", "/2/modify",
                 "{\"compression_tools\":[]}");
    rapi_refused(405, "/2/instances/web1 is answered to GET, HEAD, DELETE alone", "PUT", I, NULL);
    g_assert_cmpstr(rapi_header("Allow"), ==, "GET, HEAD, DELETE");
    rapi_type("text/plain");
    rapi_refused(415, "Content-Type must be application/json", "PUT", I "/migrate", "{}");
    rapi_type("application/json; charset=utf-8");
    json_autoptr id = rapi_get(200, "PUT", I "/startup", "{}");
    g_assert_true(json_is_integer(id));
}

static void test_large_bodies(struct queue_world *w)
{
    g_autofree char *deep = g_strnfill(5000, '[');
    g_autofree char *commas = g_strnfill(60000, ',');
    rapi_refused(400, "the body is no JSON object (line 1: maximum parsing depth reached near '[')",
                 "PUT", I "/migrate", deep);
    rapi_refused(400, "the body has more than 50000 values", "PUT", I "/migrate", commas);
    g_autoptr(GString) tags = g_string_new(I "/tags?");
    for (guint i = 0; i < 1100; i++)
        g_string_append(tags, "tag=a&");
    rapi_refused(400, "more than 1024 arguments stand behind \"?\"", "PUT", tags->str, NULL);
}

static void test_luxid_errors(struct queue_world *w)
{
    static const struct {
        enum fettle_error code;
        guint status;
        const char *message;
    } rows[] = {
        {FETTLE_ERROR_UNREACHABLE, 502, "luxid does not answer"},
        {FETTLE_ERROR_NOT_MASTER, 503, "node2 is not the master; the master is node1"},
        {FETTLE_ERROR_TIMEOUT, 504, "luxid has not answered in 60 s"},
        {FETTLE_ERROR_TEMPORARY, 503, "too many wait"},
        {FETTLE_ERROR_INTERNAL, 500, "something"},
        {FETTLE_ERROR_WRONG_STATE, 409, "it runs"},
        {FETTLE_ERROR_PROTOCOL, 502, "no such answer"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        rapi_fail_next(rows[i].code, rows[i].message);
        rapi_refused(rows[i].status, rows[i].message, "GET", "/2/info", NULL);
        rapi_fail_next(rows[i].code, rows[i].message);
        rapi_refused(rows[i].status, rows[i].message, "GET", "/2/instances", NULL);
        g_autofree char *told = g_strdup_printf("luxid: SubmitJob: %s", rows[i].message);
        rapi_fail_next(rows[i].code, told);
        rapi_refused(rows[i].status, rows[i].message, "PUT", I "/startup", NULL);
    }
}

/* luxid bounds them, so what passes through has a bound. */
static void test_many_fields(struct queue_world *w)
{
    static const char *const ways[] = {"/2/query/instance", "/fettle/v1/query/instance",
                                       "/2/query/instance/fields"};
    g_autoptr(GString) names = g_string_new("name");
    for (guint i = 1; i < 512; i++)
        g_string_append(names, ",name");
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autofree char *most = g_strdup_printf("%s?fields=%s", ways[i], names->str);
        g_autofree char *more = g_strdup_printf("%s,name", most);
        json_decref(rapi_get(200, "GET", most, NULL));
        rapi_refused(400, "fields: must have at most 512 elements, has 513", "GET", more, NULL);
    }
}

/* Whoever looks for the master by what is answered must not find another node. */
static void test_standby(struct queue_world *w)
{
    static const char *const message = "node2 is not the master; the master is node1";
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    guint asked = 0;
    for (size_t i = 0; i < count; i++) {
        if (table[i].kind == RAPI_NONE || strcmp(table[i].method, "GET") != 0)
            continue;
        g_auto(GStrv) parts = g_strsplit_set(table[i].path, "{}", -1);
        for (guint at = 1; at < g_strv_length(parts); at += 2)
            g_strlcpy(parts[at], "1", 2);
        g_autofree char *path = g_strjoinv("", parts);
        g_autofree char *target = g_strconcat(path, "?fields=name", NULL);
        bool waits = g_str_has_suffix(path, "/wait");
        rapi_fail_times(0, 100, FETTLE_ERROR_NOT_MASTER, message);
        rapi_refused(503, message, "GET", target, waits ? "{\"fields\":[]}" : NULL);
        asked++;
    }
    g_assert_cmpuint(asked, >, 40);
    rapi_fail_times(0, 100, FETTLE_ERROR_NOT_MASTER, message);
    g_autofree char *head = rapi_say("HEAD", "/version", NULL);
    g_assert_true(g_str_has_prefix(head, "503 "));
}

/* --- trials --- */

#define NO_TRIAL                                                                                   \
    "nothing was done: dry-run is for what queues a job, and this would be done at once"

#define NO_RULE "Invalid body parameters: filter rule doesn't support the parameter 'dry_run'"

/* Whoever asks for a trial must not get the deed, nor what he asks for be passed over. */
static void test_trials(struct queue_world *w)
{
    static const char *const trials[][3] = {
        {"DELETE", "/2/jobs/1", NULL},
        {"POST", "/2/filters", "{\"priority\":10}"},
        {"PUT", "/2/filters/33333333-0000-4000-8000-000000000001", "{\"priority\":10}"},
        {"DELETE", "/2/filters/33333333-0000-4000-8000-000000000001", NULL},
    };
    queue_submit(w, NULL);
    guint before = rapi_calls();
    for (size_t i = 0; i < G_N_ELEMENTS(trials); i++) {
        g_autofree char *target = g_strconcat(trials[i][1], "?dry-run=1", NULL);
        rapi_refused(400, NO_TRIAL, trials[i][0], target, trials[i][2]);
        rapi_refused(400,
                     trials[i][2] ? NO_RULE : "dry_run: nothing of that name is taken in the body",
                     trials[i][0], trials[i][1], "{\"dry_run\":true}");
    }
    rapi_refused(400, "dry-run: must be a number, 0 or 1", "DELETE", "/2/jobs/1?dry-run=x", NULL);
    g_assert_cmpuint(rapi_calls(), ==, before);
    json_autoptr waited =
        rapi_get(200, "GET", "/2/jobs/1/wait?dry-run=1", "{\"fields\":[\"status\"]}");
    g_assert_true(json_is_object(waited));
    json_autoptr said = rapi_get(200, "DELETE", "/2/jobs/1?dry-run=0", "[]");
    g_assert_true(json_is_boolean(json_array_get(said, 0)));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    rapi_case("/rapi/who", test_who);
    rapi_case("/rapi/bad-requests", test_bad_requests);
    rapi_case("/rapi/large-bodies", test_large_bodies);
    rapi_case("/rapi/many-fields", test_many_fields);
    rapi_case("/rapi/luxid-errors#RAP-02", test_luxid_errors);
    rapi_case("/rapi/standby#RAP-01", test_standby);
    rapi_case("/rapi/trials#RAP-02", test_trials);
    return g_test_run();
}
