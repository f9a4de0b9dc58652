/*
 * Tests of proto/envelope.h: the hello and its ranges of versions, requests and replies as written
 * and read, relays that keep history and epoch, and every malformed frame with its words.
 */
#include "base/json.h"
#include "proto/envelope.h"
#include "sample.h"

#include <string.h>

static json_t *from_text(const char *text)
{
    g_autoptr(GError) error = NULL;
    json_t *json = json_parse_limited(text, strlen(text), MIB(1), &error);
    g_assert_no_error(error);
    return json;
}

static void assert_text(json_t *stolen, const char *expected)
{
    json_autoptr json = stolen;
    g_autofree char *text = json_to_text(json);
    g_assert_cmpstr(text, ==, expected);
}

/* --- hello --- */

static int settled(int min, int max, int peer_min, int peer_max)
{
    json_autoptr hello = envelope_hello(peer_min, peer_max, "n1", "job", 17);
    struct peer_name from;
    int version = -1;
    g_autoptr(GError) error = NULL;
    g_assert_true(envelope_hello_parse(hello, min, max, &from, &version, &error));
    g_assert_cmpstr(from.node, ==, "n1");
    g_assert_cmpstr(from.role, ==, "job");
    g_assert_cmpuint(from.job, ==, 17);
    peer_name_clear(&from);
    json_autoptr welcome = envelope_welcome(version, "n2", "noded");
    int chosen = -1;
    g_assert_true(envelope_welcome_parse(welcome, peer_min, peer_max, &chosen, &error));
    g_assert_cmpint(chosen, ==, version);
    return version;
}

static void test_versions(void)
{
    g_assert_cmpint(PROTOCOL_VERSION_MIN, ==, 1);
    g_assert_cmpint(PROTOCOL_VERSION_MAX, ==, 1);
    g_assert_cmpint(settled(1, 1, 1, 1), ==, 1);
    g_assert_cmpint(settled(1, 1, 1, 2), ==, 1); /* a newer peer */
    g_assert_cmpint(settled(1, 1, 0, 1), ==, 1); /* an older one */
    g_assert_cmpint(settled(1, 2, 0, 3), ==, 2);
    assert_text(envelope_hello(1, 1, "n1", "noded", 0),
                "{\"hello\":{\"from\":\"n1/noded\",\"versions\":[1,1]}}");
    assert_text(envelope_welcome(1, "n2", "wconfd"),
                "{\"welcome\":{\"from\":\"n2/wconfd\",\"version\":1}}");
}

static void hello_refused(const char *text, const char *message)
{
    json_autoptr json = from_text(text);
    struct peer_name from;
    int version;
    g_autoptr(GError) error = NULL;
    g_assert_false(envelope_hello_parse(json, 1, 1, &from, &version, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PROTOCOL);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_versions_refused(void)
{
    hello_refused("{\"hello\":{\"versions\":[2,3],\"from\":\"n/job\"}}",
                  "no common version: here 1 to 1, peer 2 to 3");
    hello_refused("{\"hello\":{\"versions\":[0,0],\"from\":\"n/job\"}}",
                  "no common version: here 1 to 1, peer 0 to 0");
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, PROTOCOL, "no common version: here 1 to 1, peer 2 to 3");
    json_autoptr refusal = envelope_refusal(error);
    int version;
    g_autoptr(GError) seen = NULL;
    g_assert_false(envelope_welcome_parse(refusal, 2, 3, &version, &seen));
    g_assert_error(seen, FETTLE_ERROR, FETTLE_ERROR_PROTOCOL);
    g_assert_cmpstr(seen->message, ==,
                    "refused by the peer: no common version: here 1 to 1, peer 2 to 3");
}

static void test_bad_hello(void)
{
    const char *words = "frame: must be a hello with versions [min, max] and from";
    hello_refused("[]", words);
    hello_refused("{\"v\":1,\"id\":1,\"method\":\"x\"}", words);
    hello_refused("{\"hello\":{\"from\":\"n/job\"}}", words);
    hello_refused("{\"hello\":{\"versions\":[1],\"from\":\"n/job\"}}", words);
    hello_refused("{\"hello\":{\"versions\":[2,1],\"from\":\"n/job\"}}", words);
    hello_refused("{\"hello\":{\"versions\":[\"1\",1],\"from\":\"n/job\"}}", words);
    hello_refused("{\"hello\":{\"versions\":[1,1]}}", words);
    hello_refused("{\"hello\":{\"versions\":[1,1],\"from\":\"n\"}}",
                  "frame: from: \"n\" is no NODE/role[/job]");
}

static void welcome_refused(const char *text, const char *message)
{
    json_autoptr json = from_text(text);
    int version;
    g_autoptr(GError) error = NULL;
    g_assert_false(envelope_welcome_parse(json, 1, 1, &version, &error));
    g_assert_cmpstr(error->message, ==, message);
}

static void test_bad_welcome(void)
{
    welcome_refused("{}", "frame: must be a welcome with a version");
    welcome_refused("{\"welcome\":{\"version\":\"1\"}}", "frame: must be a welcome with a version");
    welcome_refused("{\"welcome\":{\"version\":2}}", "the peer chose version 2: here 1 to 1");
    welcome_refused("{\"welcome\":{\"error\":{\"code\":\"permission_denied\"}}}",
                    "refused by the peer: the peer gave no reason");
}

static void test_peer_names(void)
{
    const char *const bad[] = {"",        "n",      "/job",     "n/",        "n/job/0",
                               "n/job/x", "n/job/", "n/job/-1", "n/job/1/2", "n/job/4294967296"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct peer_name name;
        g_autoptr(GError) error = NULL;
        g_autofree char *message = g_strdup_printf("\"%s\" is no NODE/role[/job]", bad[i]);
        g_assert_false(peer_name_parse(bad[i], &name, &error));
        g_assert_cmpstr(error->message, ==, message);
    }
}

/* --- requests --- */

#define REQUEST                                                                                    \
    "{\"args\":{\"serial\":3},\"epoch\":4,\"from\":\"n1/job/17\",\"history\":2,\"id\":9,"          \
    "\"method\":\"wait_changes\",\"to\":\"master/wconfd\",\"v\":1}"

static void test_request(void)
{
    json_autoptr args = json_make("{s:i}", "serial", 3);
    struct rpc_call call = {
        .to_node = NODE_MASTER,
        .to_role = ROLE_WCONFD,
        .method = "wait_changes",
        .args = args,
        .stamp = {2, 4},
        .job = 17,
    };
    json_autoptr json = envelope_request(1, 9, &call, "n1", ROLE_JOB);
    assert_text(json_incref(json), REQUEST);
    g_autoptr(GError) error = NULL;
    g_autoptr(envelope_t) request = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    g_assert_false(request->is_reply);
    g_assert_cmpuint(request->id, ==, 9);
    g_assert_cmpuint(request->stamp.history, ==, 2);
    g_assert_cmpuint(request->stamp.epoch, ==, 4);
    g_assert_cmpstr(request->from.role, ==, "job");
    g_assert_cmpuint(request->from.job, ==, 17);
    g_assert_cmpstr(request->to_node, ==, "master");
    g_assert_cmpstr(request->to_role, ==, "wconfd");
    g_assert_true(json_equal(request->args, args));
}

static void test_local_request(void)
{
    json_autoptr args = json_array();
    struct rpc_call call = {
        .to_node = NODE_LOCAL, .to_role = ROLE_LUXID, .method = "QueryJobs", .args = args};
    json_autoptr json = envelope_request(1, 1, &call, "n1", ROLE_WATCHER);
    g_assert_null(json_object_get(json, "to"));
    g_autoptr(GError) error = NULL;
    g_autoptr(envelope_t) request = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(request->to_node, ==, "");
    g_assert_cmpstr(request->to_role, ==, "");
    g_assert_cmpuint(request->from.job, ==, 0);
}

/* A relay changes the id and proves the node; role, job, history, epoch and arguments stay. */
static void test_forward(void)
{
    json_autoptr json = from_text(REQUEST);
    g_autoptr(GError) error = NULL;
    g_autoptr(envelope_t) request = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    assert_text(envelope_forward(1, 77, request, "n1-proven"),
                "{\"args\":{\"serial\":3},\"epoch\":4,\"from\":\"n1-proven/job/17\",\"history\":2,"
                "\"id\":77,\"method\":\"wait_changes\",\"to\":\"master/wconfd\",\"v\":1}");
}

/* Who has signed the asker's certificate goes along; what is no text says nothing. */
static void test_signed_by(void)
{
    json_autoptr json = from_text(REQUEST);
    g_autoptr(GError) error = NULL;
    json_object_set_new(json, "signed_by", json_string("ab12"));
    g_autoptr(envelope_t) request = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    json_autoptr forwarded = envelope_forward(1, 77, request, "n1");
    g_autoptr(envelope_t) again = envelope_parse(forwarded, 1, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(again->signed_by, ==, "ab12");
    json_object_set_new(json, "signed_by", json_integer(7));
    g_autoptr(envelope_t) other = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    g_assert_null(other->signed_by);
}

static void test_unknown_members(void)
{
    json_autoptr json = from_text(REQUEST);
    json_object_set_new(json, "trace", json_string("from a newer peer"));
    g_autoptr(GError) error = NULL;
    g_autoptr(envelope_t) request = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    g_assert_nonnull(request);
}

/* --- replies --- */

static void test_replies(void)
{
    json_autoptr result = json_make("{s:i}", "serial", 7);
    assert_text(envelope_reply(1, 9, result, NULL), "{\"id\":9,\"result\":{\"serial\":7},\"v\":1}");
    assert_text(envelope_reply(1, 9, NULL, NULL), "{\"id\":9,\"result\":{},\"v\":1}");
    g_autoptr(GError) failure = NULL;
    fettle_set_error(&failure, UNSAFE, "web1: replica is stale");
    json_autoptr json = envelope_reply(1, 9, NULL, failure);
    assert_text(json_incref(json), "{\"error\":{\"code\":\"unsafe\",\"message\":\"web1: replica is "
                                   "stale\"},\"id\":9,\"v\":1}");
    g_autoptr(GError) error = NULL;
    g_autoptr(envelope_t) reply = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    g_assert_true(reply->is_reply);
    g_assert_null(reply->result);
    g_assert_true(fettle_error_is(reply->error, UNSAFE));
    g_assert_cmpstr(reply->error->message, ==, "web1: replica is stale");
}

static void test_unknown_error_code(void)
{
    json_autoptr json =
        from_text("{\"v\":1,\"id\":2,\"error\":{\"code\":\"brand_new\",\"message\":\"x\"}}");
    g_autoptr(GError) error = NULL;
    g_autoptr(envelope_t) reply = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    g_assert_true(fettle_error_is(reply->error, INTERNAL));
}

/* --- malformed frames --- */

static void refused(const char *text, const char *message)
{
    json_autoptr json = from_text(text);
    g_autoptr(GError) error = NULL;
    g_assert_null(envelope_parse(json, 1, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_PROTOCOL);
    g_assert_cmpstr(error->message, ==, message);
}

static void test_bad_frames(void)
{
    refused("[]", "frame: must be an object");
    refused("{}", "frame: v: must be a whole number from 0");
    refused("{\"v\":2,\"id\":1,\"result\":{}}", "frame: v: is 2, settled was 1");
    refused("{\"v\":1}", "frame: id: must be a whole number from 0");
    refused("{\"v\":1,\"id\":-1,\"result\":{}}", "frame: id: must be a whole number from 0");
    refused("{\"v\":1,\"id\":1.0,\"result\":{}}", "frame: id: must be a whole number from 0");
    refused("{\"v\":1,\"id\":9007199254740993,\"result\":{}}",
            "frame: id: must be a whole number from 0");
    refused("{\"v\":1,\"id\":1}", "frame: must have exactly one of method, result and error");
    refused("{\"v\":1,\"id\":1,\"result\":{},\"error\":{}}",
            "frame: must have exactly one of method, result and error");
}

#define HEAD "{\"v\":1,\"id\":1,\"history\":1,\"epoch\":1,"

static void test_bad_requests(void)
{
    refused("{\"v\":1,\"id\":1,\"method\":\"x\"}", "frame: history: must be a whole number from 0");
    refused("{\"v\":1,\"id\":1,\"method\":\"x\",\"history\":1,\"epoch\":\"1\"}",
            "frame: epoch: must be a whole number from 0");
    refused(HEAD "\"method\":\"x\"}", "frame: from: must be a text");
    refused(HEAD "\"method\":\"x\",\"from\":\"n\"}", "frame: from: \"n\" is no NODE/role[/job]");
    refused(HEAD "\"method\":7,\"from\":\"n/job\"}", "frame: method: must be a text");
    refused(HEAD "\"method\":\"x\",\"from\":\"n/job\",\"to\":1}", "frame: to: must be a text");
    refused(HEAD "\"method\":\"x\",\"from\":\"n/job\",\"to\":\"n\"}",
            "frame: to: \"n\" is no NODE/role[/job]");
    refused(HEAD "\"method\":\"x\",\"from\":\"n/job\",\"to\":\"n/noded\"}",
            "frame: args: must be an object (for LUXI a list)");
}

static void test_id_of_refused(void)
{
    json_autoptr good = from_text("{\"v\":1,\"id\":5,\"method\":7}");
    json_autoptr bad = from_text("{\"v\":1,\"id\":\"5\"}");
    json_autoptr list = from_text("[5]");
    g_assert_cmpuint(envelope_id(good), ==, 5);
    g_assert_cmpuint(envelope_id(bad), ==, 0);
    g_assert_cmpuint(envelope_id(list), ==, 0);
}

/* --- reading at once --- */

static char *frame_of(const char *method, const char *args)
{
    return g_strdup_printf("{\"v\":1,\"history\":2,\"epoch\":3,\"id\":4,\"from\":\"n1/job/17\","
                           "\"method\":\"%s\",\"args\":%s}",
                           method, args);
}

static struct envelope *read_frame(const char *method, const char *args)
{
    g_autofree char *frame = frame_of(method, args);
    return envelope_read(frame, strlen(frame), 1, ROLE_WCONFD);
}

/* FETTLE_CORPUS: a folder that gets each frame as an input of fuzz_request. */
static void keep_for_corpus(const struct method *method, const char *frame)
{
    const char *folder = g_getenv("FETTLE_CORPUS");
    g_autofree char *path = folder ? g_build_filename(folder, method->name, NULL) : NULL;
    if (path)
        g_file_set_contents(path, frame, -1, NULL);
}

static bool has_float(const struct record *record)
{
    for (const struct field *field = record->fields(); field->name; field++)
        if (field->type == FIELD_TYPE_FLOAT || (field->record && has_float(field->record)))
            return true;
    return false;
}

/* Every method's arguments as we write them; but for numbers with a point, which no request has
 * that comes often. */
static void test_read_all(void)
{
    size_t count, read = 0;
    const struct method *methods = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        json_autoptr sample = sample_record(methods[i].args, true);
        void *value = record_parse(methods[i].args, sample, RECORD_STRICT, NULL);
        json_autoptr json = record_to_json(methods[i].args, value);
        g_autofree char *args = json_to_text(json), *frame = frame_of(methods[i].name, args);
        g_autoptr(envelope_t) envelope = envelope_read(frame, strlen(frame), 1, methods[i].server);
        record_free(methods[i].args, value);
        if (has_float(methods[i].args))
            continue;
        g_assert_nonnull(envelope);
        json_autoptr again = record_to_json(methods[i].args, envelope->record);
        g_assert_true(json_equal(json, again));
        g_assert_cmpuint(envelope->id, ==, 4);
        g_assert_cmpuint(envelope->stamp.history, ==, 2);
        g_assert_cmpuint(envelope->stamp.epoch, ==, 3);
        g_assert_cmpstr(envelope->from.node, ==, "n1");
        g_assert_cmpstr(envelope->from.role, ==, "job");
        g_assert_cmpuint(envelope->from.job, ==, 17);
        keep_for_corpus(&methods[i], frame);
        read++;
    }
    g_assert_cmpuint(read, >, 20);
}

/* What is not plainly right is left to the parser, which knows what to say. */
static void test_read_refuses(void)
{
    static const char *const bad[] = {
        "{\"serial\":1,\"serial\":1}",
        "{\"serial\":-1}",
        "{\"serial\":1.0}",
        "{\"serial\":01}",
        "{\"serial\":\"1\"}",
        "{\"serial\":1,\"unknown\":1}",
        "{\"serial\":1,\"wait_ms\":null}",
        "{\"serial\":1,}",
        "{\"serial\":1 \"job\":1}",
        "{}",
        "[]",
        "{\"serial\":9007199254740993}",
        "{\"serial\":1,\"wait_ms\":600001}",
        "{\"s\\u0065rial\":1}",
        "{\"serial\":1",
        "{\"serial\":1}}",
        "{\"serial\":1}x",
        "{\"serial\":1e0}",
    };
    g_autoptr(envelope_t) good = read_frame("wait_changes", " { \"serial\" : 1 , \"job\":2 } ");
    g_assert_nonnull(good);
    g_assert_cmpuint(((struct wait_changes_args *)good->record)->serial, ==, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_null(read_frame("wait_changes", bad[i]));
    g_assert_null(read_frame("no_such_method", "{\"serial\":1}"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/envelope/versions#FUT-12", test_versions);
    g_test_add_func("/envelope/versions-refused#FUT-12", test_versions_refused);
    g_test_add_func("/envelope/bad-hello", test_bad_hello);
    g_test_add_func("/envelope/bad-welcome", test_bad_welcome);
    g_test_add_func("/envelope/peer-names", test_peer_names);
    g_test_add_func("/envelope/request", test_request);
    g_test_add_func("/envelope/local-request", test_local_request);
    g_test_add_func("/envelope/forward#SAF-05", test_forward);
    g_test_add_func("/envelope/signed-by#SAF-94", test_signed_by);
    g_test_add_func("/envelope/unknown-members#FUT-12", test_unknown_members);
    g_test_add_func("/envelope/replies", test_replies);
    g_test_add_func("/envelope/unknown-error-code", test_unknown_error_code);
    g_test_add_func("/envelope/bad-frames", test_bad_frames);
    g_test_add_func("/envelope/bad-requests", test_bad_requests);
    g_test_add_func("/envelope/id-of-refused", test_id_of_refused);
    g_test_add_func("/envelope/read-all", test_read_all);
    g_test_add_func("/envelope/read-refuses", test_read_refuses);
    return g_test_run();
}
