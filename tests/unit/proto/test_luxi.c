/* Tests of proto/luxi.h against exchanges as Ganeti's clients have them: shapes, positional
 * arguments, refusals. */
#include "base/json.h"
#include "proto/luxi.h"

#include <string.h>

static json_t *from_text(const char *text)
{
    json_t *json = json_loads(text, JSON_DECODE_ANY, NULL);
    g_assert_nonnull(json);
    return json;
}

static void assert_text(json_t *stolen, const char *expected)
{
    json_autoptr json = stolen;
    g_autofree char *text = json_to_text(json);
    g_assert_cmpstr(text, ==, expected);
}

/* --- requests --- */

static void test_request(void)
{
    const char *const good[] = {
        "{\"method\": \"QueryTags\", \"args\": [\"cluster\", \"\"], \"version\": 3000000}",
        "{\"method\":\"QueryTags\",\"args\":[\"cluster\",\"\"]}",
        "{\"method\":\"QueryTags\",\"args\":[\"cluster\",\"\"],\"version\":null}",
        "{\"method\":\"QueryTags\",\"args\":[\"cluster\",\"\"],\"user\":\"rapi:alice\"}",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autofree char *method = NULL, *user = NULL;
        json_autoptr args = NULL;
        g_autoptr(GError) error = NULL;
        g_assert_true(luxi_request_parse(good[i], strlen(good[i]), &method, &args, &user, &error));
        g_assert_cmpstr(user, ==, i < 3 ? NULL : "rapi:alice");
        g_assert_cmpstr(method, ==, "QueryTags");
        assert_text(json_incref(args), "[\"cluster\",\"\"]");
    }
    assert_text(luxi_request_make("CancelJob", json_make("[i]", 5), NULL),
                "{\"args\":[5],\"method\":\"CancelJob\"}");
    assert_text(luxi_request_make("CancelJob", json_make("[i]", 5), "rapi:alice"),
                "{\"args\":[5],\"method\":\"CancelJob\",\"user\":\"rapi:alice\"}");
}

static void request_refused(const char *text, const char *message)
{
    g_autofree char *method = NULL, *user = NULL;
    json_autoptr args = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_false(luxi_request_parse(text, strlen(text), &method, &args, &user, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PROTOCOL);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_bad_requests(void)
{
    request_refused("garbage",
                    "broken JSON at byte 7 (line 1): '[' or '{' expected near 'garbage'");
    request_refused("[]", "LUXI request: must be an object");
    request_refused("{\"args\":[]}", "LUXI request: method: must be a text");
    request_refused("{\"method\":1,\"args\":[]}", "LUXI request: method: must be a text");
    request_refused("{\"method\":\"x\"}", "LUXI request: args: must be a list");
    request_refused("{\"method\":\"x\",\"args\":{}}", "LUXI request: args: must be a list");
    request_refused("{\"method\":\"x\",\"args\":[],\"version\":\"3\"}",
                    "LUXI request: version: must be a whole number");
    request_refused("{\"method\":\"x\",\"args\":[],\"user\":3}",
                    "LUXI request: user: must be a text");
}

static void test_oversized(void)
{
    g_autofree char *blanks = g_strnfill(LIMIT_LUXI_FRAME_BYTES + 1, ' ');
    g_autofree char *method = NULL, *user = NULL;
    json_autoptr args = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_false(
        luxi_request_parse(blanks, LIMIT_LUXI_FRAME_BYTES + 1, &method, &args, &user, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    g_assert_cmpstr(error->message, ==, "JSON of 8388609 bytes: at most 8388608 are allowed");
}

static void test_unknown_method(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(luxi_check_method("Nope", &error));
    assert_text(luxi_reply_unparsed(error),
                "{\"result\":\"Failed to parse request: Unable to parse LUXI request method: "
                "Invalid string value for type LuxiReq: \\\"Nope\\\"\",\"success\":false}");
    g_clear_error(&error);
    g_assert_nonnull(luxi_check_method("SubmitJob", &error));
    g_assert_no_error(error);
}

/* --- arguments --- */

static void args_become(const char *name, const char *text, const char *object, const char *back)
{
    const struct luxi_method *method = luxi_method_find(name);
    json_autoptr args = from_text(text);
    g_autoptr(GError) error = NULL;
    void *value = luxi_args_parse(method, args, &error);
    g_assert_no_error(error);
    assert_text(record_to_json(method->args, value), object);
    assert_text(luxi_args_write(method, value), back);
    record_free(method->args, value);
}

static void test_args(void)
{
    args_become("SubmitJob", "[[{\"OP_ID\":\"OP_TEST_DELAY\"}]]",
                "{\"ops\":[{\"OP_ID\":\"OP_TEST_DELAY\"}]}", "[[{\"OP_ID\":\"OP_TEST_DELAY\"}]]");
    args_become("SubmitManyJobs", "[[[{}],[{}]]]", "{\"jobs\":[[{}],[{}]]}", "[[[{}],[{}]]]");
    args_become("WaitForJobChange", "[232,[\"status\"],[\"queued\"],null,5]",
                "{\"fields\":[\"status\"],\"job\":232,\"prev_info\":[\"queued\"],"
                "\"prev_log_serial\":-1,\"timeout\":5.0}",
                "[232,[\"status\"],[\"queued\"],-1,5.0]");
    args_become("WaitForJobChange", "[1,[],null,3,89.5]",
                "{\"fields\":[],\"job\":1,\"prev_log_serial\":3,\"timeout\":89.5}",
                "[1,[],null,3,89.5]");
    args_become("CancelJob", "[232]", "{\"job\":232,\"kill\":false}", "[232,false]");
    args_become("QueryJobs", "[null,[\"id\"]]", "{\"fields\":[\"id\"]}", "[null,[\"id\"]]");
    args_become("Query", "[\"instance\",[\"name\"],[\"=\",\"name\",\"a\"]]",
                "{\"fields\":[\"name\"],\"filter\":[\"=\",\"name\",\"a\"],\"what\":\"instance\"}",
                "[\"instance\",[\"name\"],[\"=\",\"name\",\"a\"]]");
    args_become("QueryFields", "[\"lock\",null]", "{\"fields\":[],\"what\":\"lock\"}",
                "[\"lock\",[]]");
    args_become("QueryClusterInfo", "[]", "{}", "[]");
    args_become("QueryTags", "[\"cluster\",\"\"]", "{\"kind\":\"cluster\",\"name\":\"\"}",
                "[\"cluster\",\"\"]");
}

static void args_refused(const char *name, const char *text, const char *message)
{
    json_autoptr args = from_text(text);
    g_autoptr(GError) error = NULL;
    g_assert_null(luxi_args_parse(luxi_method_find(name), args, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_WRONG_INPUT);
    g_assert_cmpstr(error->message, ==, message);
}

/* Ganeti's clients send the id of a job as they were given it, and a time as they have it. */
static void test_numbers_of_clients(void)
{
    json_autoptr text = from_text("[\"232\",true]");
    json_autoptr time = from_text("[1764172800.9]");
    g_autoptr(GError) error = NULL;
    const struct luxi_method *cancel = luxi_method_find("CancelJob");
    struct luxi_cancel_job_args *job = luxi_args_parse(cancel, text, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(job->job, ==, 232);
    const struct luxi_method *pause = luxi_method_find("SetWatcherPause");
    struct luxi_set_watcher_pause_args *until = luxi_args_parse(pause, time, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(until->until, ==, 1764172800.9);
    record_free(cancel->args, job);
    record_free(pause->args, until);
}

static void test_bad_args(void)
{
    args_refused("SubmitJob", "[]", "SubmitJob: ops: is missing");
    args_refused("SubmitJob", "[null]", "SubmitJob: ops: is missing");
    args_refused("SubmitJob", "[[],[]]", "SubmitJob: takes at most 1 arguments, got 2");
    args_refused("QueryClusterInfo", "[1]", "QueryClusterInfo: takes at most 0 arguments, got 1");
    args_refused("CancelJob", "[\"x\"]", "CancelJob: job: must be a number");
    args_refused("CancelJob", "[\"-2\"]", "CancelJob: job: must be a number");
    args_refused("CancelJob", "[\"2 \"]", "CancelJob: job: must be a number");
    args_refused("CancelJob", "[\"\"]", "CancelJob: job: must be a number");
    args_refused("CancelJob", "[\"9223372036854775808\"]", "CancelJob: job: must be a number");
    args_refused("SetWatcherPause", "[\"2\"]", "SetWatcherPause: until: must be a number");
    args_refused("SetWatcherPause", "[-1]", "SetWatcherPause: until: must be at least 0");
    args_refused("CancelJob", "[-1]", "CancelJob: job: must be at least 0");
    args_refused("QueryJobs", "[null,[1]]", "QueryJobs: fields[0]: must be a text");
    args_refused("QueryTags", "[\"moon\"]",
                 "QueryTags: kind: must be one of cluster, nodegroup, node, instance");
    args_refused("WaitForJobChange", "[1,[],null,null,-1]",
                 "WaitForJobChange: timeout: must be at least 0");
}

/* --- replies --- */

static void test_replies(void)
{
    assert_text(luxi_reply_result(json_integer(229)), "{\"result\":229,\"success\":true}");
    assert_text(luxi_reply_result(NULL), "{\"result\":null,\"success\":true}");
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, WRONG_INPUT, "memory: must be a number");
    assert_text(luxi_reply_error(error), "{\"result\":[\"OpPrereqError\",[\"memory: must be a "
                                         "number\",\"wrong_input\"]],\"success\":false}");
    g_clear_error(&error);
    fettle_set_error(&error, NOT_MASTER, "the master is node2");
    assert_text(luxi_reply_error(error), "{\"result\":[\"GenericError\",[\"the master is "
                                         "node2\",\"not_master\"]],\"success\":false}");
}

static void reply_fails(const char *text, enum fettle_error code, const char *message)
{
    json_autoptr reply = from_text(text);
    g_autoptr(GError) error = NULL;
    g_assert_null(luxi_reply_parse(reply, &error));
    g_assert_error(error, FETTLE_ERROR, (int)code);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_parse_replies(void)
{
    json_autoptr reply = from_text("{\"success\":true,\"result\":[[true,230]]}");
    g_autoptr(GError) error = NULL;
    assert_text(luxi_reply_parse(reply, &error), "[[true,230]]");
    reply_fails("{\"success\":false,\"result\":[\"OpPrereqError\",[\"web1?\",\"unknown_entity\"]]}",
                FETTLE_ERROR_UNKNOWN_ENTITY, "web1?");
    reply_fails("{\"success\":false,\"result\":[\"GenericError\",[\"odd\"]]}",
                FETTLE_ERROR_INTERNAL, "odd");
    reply_fails("{\"success\":false,\"result\":\"Failed to parse request: x\"}",
                FETTLE_ERROR_PROTOCOL, "Failed to parse request: x");
    reply_fails("{\"success\":false,\"result\":\"detected death of job 7\"}", FETTLE_ERROR_INTERNAL,
                "detected death of job 7");
    reply_fails("{\"success\":false,\"result\":{}}", FETTLE_ERROR_INTERNAL,
                "an error that says nothing");
    reply_fails("{\"result\":1}", FETTLE_ERROR_PROTOCOL,
                "LUXI reply: must have success and result");
    reply_fails("{\"success\":true}", FETTLE_ERROR_PROTOCOL,
                "LUXI reply: must have success and result");
    reply_fails("[]", FETTLE_ERROR_PROTOCOL, "LUXI reply: must have success and result");
}

/* Each of our errors comes back as itself. */
static void test_errors_round_trip(void)
{
    for (int code = 0; code < FETTLE_ERROR_COUNT; code++) {
        g_autoptr(GError) error = g_error_new(FETTLE_ERROR, code, "message %d", code);
        json_autoptr json = luxi_error_make(error);
        g_autoptr(GError) back = luxi_error_parse(json);
        g_assert_error(back, FETTLE_ERROR, code);
        g_assert_cmpstr(back->message, ==, error->message);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/luxi/request", test_request);
    g_test_add_func("/luxi/bad-requests", test_bad_requests);
    g_test_add_func("/luxi/oversized", test_oversized);
    g_test_add_func("/luxi/unknown-method", test_unknown_method);
    g_test_add_func("/luxi/args", test_args);
    g_test_add_func("/luxi/numbers-of-clients", test_numbers_of_clients);
    g_test_add_func("/luxi/bad-args", test_bad_args);
    g_test_add_func("/luxi/replies", test_replies);
    g_test_add_func("/luxi/parse-replies", test_parse_replies);
    g_test_add_func("/luxi/errors-round-trip", test_errors_round_trip);
    return g_test_run();
}
