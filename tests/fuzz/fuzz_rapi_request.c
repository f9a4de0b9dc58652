/*
 * A request to fettle-rapid: method and target in the first line, the rest is its body. One answer
 * of one form comes, whatever luxid says. Its own first byte says that: nothing, null, a list, rows
 * that are none.
 */
#include <string.h>

#include "core/rapi/rapi.h"
#include "fuzz.h"
#include "helper/fake_env.h"
#include "proto/rapi/rapi_route.h"

#define NODE "11111111-0000-4000-8000-000000000001"

static struct {
    struct fake_world *world;
    struct env *env;
    struct rapi_luxid luxid;
    struct rapi *rapi;
    char way; /* what luxid answers */
    struct http_answer *answer;
} rig;

/* --- luxid --- */

static const char *const results[] = {
    "null",
    "[]",
    "17",
    "{\"data\":[],\"fields\":[]}",
    "[[\"web1\",true],null]",
    "{\"data\":[[[0,\"web1\"]]]}",
    "[[",
    "{\"serial\":3,\"volume_group_name\":null}",
    "{\"stream\":\"" NODE
    "\",\"serial\":3,\"record\":2,\"anew\":false,\"changes\":[[\"job\",\"1\",[[0,1],[0,"
    "\"x\"]]],[\"node\",\"n\",null],[\"event\",\"e\",[]],[7]],\"serials\":[2],\"data\":[[[0,\"u\"],"
    "[0,3]]]}",
};

static char *call_text(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                       const char *user, guint timeout_ms, GError **error)
{
    g_assert_true(json_is_array(args));
    json_decref(args);
    guint way = (guint8)rig.way % (G_N_ELEMENTS(results) + 1);
    if (way < G_N_ELEMENTS(results))
        return g_strdup(results[way]);
    fettle_set_error(error, UNREACHABLE, "luxid does not answer");
    return NULL;
}

static json_t *call(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                    const char *user, guint timeout_ms, GError **error)
{
    json_int_t wait_s = json_integer_value(json_array_get(args, 3));
    if (!strcmp(method, "WatchChanges") && wait_s > 0)
        env_sleep(rig.env, (guint)wait_s * 1000);
    g_autofree char *text = call_text(luxid, face, method, args, user, timeout_ms, error);
    json_t *result = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    if (text && !result)
        fettle_set_error(error, PROTOCOL, "no JSON");
    return result;
}

/* In the place of core/rapi/rapi_users.c. */
struct rapi_users *rapi_users_new(const struct env *env, struct rapi_luxid *luxid,
                                  struct crypto *crypto)
{
    return NULL;
}

void rapi_users_free(struct rapi_users *users)
{
}

enum rapi_access rapi_users_check(struct rapi_users *users, const struct http_request *request,
                                  char **ret_name, GError **error)
{
    *ret_name = g_strdup("alice");
    return RAPI_WRITE;
}

char *rapi_users_mark(struct rapi_users *users, const char *name, GError **error)
{
    return g_strdup("");
}

/* --- requests --- */

static void begin(void)
{
    if (rig.world)
        return;
    rig.world = fake_world_new();
    rig.env = fake_process(rig.world, NODE, ROLE_RAPID);
    rig.luxid = (struct rapi_luxid){.call = call, .call_text = call_text};
    rig.rapi = rapi_new(&(struct rapi_options){.env = rig.env, .luxid = &rig.luxid}, NULL);
}

static void answered_cb(struct http_answer *answer, void *data)
{
    rig.answer = answer;
}

static void check_json(const char *text, bool refused)
{
    json_autoptr json = json_loads(text, JSON_DECODE_ANY, NULL);
    g_assert_nonnull(json);
    if (refused)
        g_assert_true(json_is_string(json_object_get(json, "explain")));
}

static const char *type_of(const struct http_answer *answer)
{
    for (guint i = 0; i < answer->headers->len; i += 2)
        if (!strcmp(answer->headers->pdata[i], "Content-Type"))
            return answer->headers->pdata[i + 1];
    g_assert_not_reached();
}

/* What luxid answers may be passed on as it is, and is good or not; metrics are another format. */
static bool passed_on(const struct http_answer *answer, const char *text)
{
    guint way = (guint8)rig.way % (G_N_ELEMENTS(results) + 1);
    if (answer->status != 200)
        return false;
    return strcmp(type_of(answer), "application/json") != 0 ||
           (way < G_N_ELEMENTS(results) && !strcmp(text, results[way]));
}

/* Each event is lines that end with an empty one. */
static void read_feed(struct http_feed *feed)
{
    bool over = false;
    GBytes *piece;
    while (feed && (piece = feed->next(feed, &over))) {
        gsize length;
        const char *bytes = g_bytes_get_data(piece, &length);
        g_assert_true(length > 2 && !strncmp(bytes + length - 2, "\n\n", 2));
        g_assert_true(g_utf8_validate_len(bytes, length, NULL));
        g_bytes_unref(piece);
    }
}

static void check(void *unused)
{
    char piece[512];
    gssize got = 1;
    struct http_answer *answer = rig.answer;
    g_autoptr(GString) text = g_string_new(answer->body);
    g_assert_true(answer->status == 200 || (answer->status >= 400 && answer->status < 505));
    while (answer->stream &&
           (got = answer->stream->read(answer->stream, piece, sizeof piece, NULL)) > 0)
        g_string_append_len(text, piece, got);
    read_feed(answer->feed);
    if (got >= 0 && text->len && !passed_on(answer, text->str))
        check_json(text->str, answer->status != 200);
}

static struct http_request *make_request(const char *method, char *target, const char *body)
{
    char *query = strchr(target, '?');
    if (query)
        *query++ = '\0';
    char *path = http_path_decode(target);
    if (!path)
        return NULL;
    struct http_request *request = g_new0(struct http_request, 1);
    request->method = g_strdup(method);
    request->path = path;
    request->query = g_strdup(query ? query : "");
    request->headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_hash_table_insert(request->headers, g_strdup("content-type"), g_strdup("application/json"));
    if (!strcmp(method, "GET"))
        g_hash_table_insert(request->headers, g_strdup("last-event-id"), g_strdup(body));
    request->body = g_strdup(body);
    request->body_len = strlen(body);
    request->peer = g_strdup("192.0.2.7:41234");
    return request;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autofree char *text = g_strndup(len > 1 ? (const char *)data + 1 : "", len > 1 ? len - 1 : 0);
    char *body = strchr(text, '\n'), *target = strchr(text, ' ');
    if (!body || !target || target > body)
        return 0;
    *body++ = *target++ = '\0';
    struct http_request *request = make_request(text, target, body);
    if (!request)
        return 0;
    begin();
    rig.way = (char)data[0];
    rapi_serve(rig.rapi, request, answered_cb, NULL);
    fake_settle(rig.world);
    for (guint i = 0; i < 20 && !rig.answer; i++) /* it may wait for calls of who came before */
        fake_advance(rig.world, 1000);
    g_assert_nonnull(rig.answer);
    fake_run(rig.env, check, NULL);
    g_clear_pointer(&rig.answer, http_answer_free);
    http_request_free(request);
    return 0;
}
