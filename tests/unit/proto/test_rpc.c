/* Tests of proto/rpc.h: how long calls may take, what a carrier refuses, answers given exactly
 * once. */
#include "proto/records.h"
#include "proto/rpc.h"

#include <string.h>

static guint timeout_of(const char *role, const char *method, json_t *args, guint own_ms)
{
    json_autoptr held = args;
    struct rpc_call call = {.to_role = role, .method = method, .args = held, .timeout_ms = own_ms};
    return rpc_call_timeout_ms(&call);
}

static void test_timeouts(void)
{
    g_assert_cmpuint(timeout_of(ROLE_WCONFD, "confirm", NULL, 0), ==, TIMEOUT_QUICK_MS);
    g_assert_cmpuint(timeout_of(ROLE_WCONFD, "commit", NULL, 0), ==, TIMEOUT_NORMAL_MS);
    g_assert_cmpuint(timeout_of(ROLE_NODED, "disks_create", NULL, 0), ==, 0);
    g_assert_cmpuint(timeout_of(ROLE_WCONFD, "commit", NULL, 77), ==, 77);
    g_assert_cmpuint(timeout_of(ROLE_WCONFD, "nope", NULL, 0), ==, TIMEOUT_NORMAL_MS);
    g_assert_cmpuint(timeout_of(ROLE_LUXID, "QueryJobs", NULL, 0), ==, TIMEOUT_NORMAL_MS);
    g_assert_cmpuint(timeout_of(ROLE_LUXID, "Verify", NULL, 0), ==,
                     TIMEOUT_NORMAL_MS * LIMIT_LONG_QUERIES);
}

static void test_named_waits(void)
{
    g_assert_cmpuint(
        timeout_of(ROLE_WCONFD, "wait_changes", json_make("{s:i}", "wait_ms", 7000), 0), ==,
        7000 + TIMEOUT_WAIT_EXTRA_MS);
    g_assert_cmpuint(timeout_of(ROLE_WCONFD, "wait_changes", NULL, 0), ==, TIMEOUT_WAIT_EXTRA_MS);
    g_assert_cmpuint(timeout_of(ROLE_WCONFD, "update_locks", json_make("{s:b}", "wait", 1), 0), ==,
                     600000 + TIMEOUT_WAIT_EXTRA_MS);
    g_assert_cmpuint(timeout_of(ROLE_WCONFD, "update_locks", json_object(), 0), ==,
                     TIMEOUT_WAIT_EXTRA_MS);
    g_assert_cmpuint(
        timeout_of(ROLE_LUXID, "WaitForJobChange", json_make("[i, [], n, n, f]", 5, 2.5), 0), ==,
        2500 + TIMEOUT_WAIT_EXTRA_MS);
    g_assert_cmpuint(
        timeout_of(ROLE_LUXID, "WatchChanges", json_make("[{s[]}, s, i, i]", "job", "", 0, 7), 0),
        ==, 7000 + TIMEOUT_WAIT_EXTRA_MS);
}

/* --- answering --- */

struct answer {
    int count;
    char *text;
    char *error;
};

static void answer_cb(struct rpc_request *request, json_t *result, const GError *error)
{
    struct answer *answer = request->carrier;
    g_assert_true((result != NULL) != (error != NULL));
    answer->count++;
    g_free(answer->text);
    g_free(answer->error);
    answer->text = result != NULL ? json_to_text(result) : NULL;
    answer->error =
        error != NULL ? g_strdup_printf("%s: %s", fettle_error_name(error), error->message) : NULL;
    json_decref(result);
    rpc_request_free(request);
}

static struct rpc_request *request_new(struct answer *answer, const char *name, const char *role,
                                       const char *args)
{
    struct rpc_request *request = g_new0(struct rpc_request, 1);
    request->name = g_strdup(name);
    request->from_node = g_strdup("n");
    request->from_role = g_strdup(role);
    request->args = json_loads(args, 0, NULL);
    request->answer = answer_cb;
    request->carrier = answer;
    return request;
}

static void test_answers(void)
{
    struct answer answer = {0};
    rpc_answer(request_new(&answer, "x", ROLE_JOB, "{}"), json_make("{s:i}", "serial", 4));
    g_assert_cmpstr(answer.text, ==, "{\"serial\":4}");
    rpc_answer(request_new(&answer, "x", ROLE_JOB, "{}"), NULL);
    g_assert_cmpstr(answer.text, ==, "{}");
    rpc_fail_new(request_new(&answer, "x", ROLE_JOB, "{}"), FETTLE_ERROR_UNSAFE, "web%d", 1);
    g_assert_cmpstr(answer.error, ==, "unsafe: web1");
    g_autoptr(GError) error = g_error_new_literal(FETTLE_ERROR, FETTLE_ERROR_TIMEOUT, "late");
    rpc_fail(request_new(&answer, "x", ROLE_JOB, "{}"), error);
    g_assert_cmpstr(answer.error, ==, "timeout: late");
    g_assert_cmpint(answer.count, ==, 4);
    rpc_request_free(NULL);
    g_free(answer.error);
    g_free(answer.text);
}

static void assert_refused(const char *name, const char *role, const char *args,
                           enum fettle_error code, const char *message)
{
    struct answer answer = {0};
    struct rpc_request *request = request_new(&answer, name, role, args);
    g_autoptr(GError) error = NULL;
    g_assert_false(rpc_request_check(request, ROLE_WCONFD, &error));
    g_assert_error(error, FETTLE_ERROR, (int)code);
    g_assert_cmpstr(error->message, ==, message);
    rpc_request_free(request);
}

static void test_check(void)
{
    assert_refused("nope", ROLE_JOB, "{}", FETTLE_ERROR_PROTOCOL, "wconfd has no method \"nope\"");
    assert_refused("confirm", ROLE_JOB, "{\"items\":[]}", FETTLE_ERROR_PERMISSION,
                   "wconfd/confirm: role \"job\" may not call it");
    assert_refused("confirm", ROLE_NODED, "{}", FETTLE_ERROR_WRONG_INPUT,
                   "wconfd/confirm: items: is missing");
    assert_refused("confirm", ROLE_NODED, "{\"items\":[{\"role\":\"fly\"}]}",
                   FETTLE_ERROR_WRONG_INPUT,
                   "wconfd/confirm: items[0].role: must be one of run, start, export, mirror, "
                   "incoming, new-disks, attach, point");
    assert_refused("confirm", ROLE_NODED, "{\"x\":1}", FETTLE_ERROR_WRONG_INPUT,
                   "wconfd/confirm: items: is missing");
    struct answer answer = {0};
    struct rpc_request *request = request_new(&answer, "confirm", ROLE_NODED, "{\"items\":[]}");
    g_autoptr(GError) error = NULL;
    g_assert_true(rpc_request_check(request, ROLE_WCONFD, &error));
    g_assert_cmpstr(request->method->name, ==, "confirm");
    rpc_request_free(request);
}

/* Fields that only a later version knows, in the arguments and in their parts, are passed over. */
static void test_later_fields(void)
{
    struct answer answer = {0};
    struct rpc_request *request =
        request_new(&answer, "list_locks", ROLE_JOB,
                    "{\"x\":1,\"owner\":{\"job\":\"1\",\"livelock\":\"l\",\"y\":[2]}}");
    g_autoptr(GError) error = NULL;
    rpc_request_check(request, ROLE_WCONFD, &error);
    g_assert_no_error(error);
    rpc_request_free(request);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rpc/timeouts", test_timeouts);
    g_test_add_func("/rpc/named-waits", test_named_waits);
    g_test_add_func("/rpc/answers", test_answers);
    g_test_add_func("/rpc/check", test_check);
    g_test_add_func("/rpc/later-fields#FUT-12", test_later_fields);
    return g_test_run();
}
