/* See rapi_world.h. */
#include "unit/core/world/rapi_world.h"

#include <string.h>

#include "base/task.h"
#include "proto/rapi/rapi_route.h"

static struct {
    struct queue_world *world;
    struct rapi *rapi;
    struct rapi_luxid luxid;
    const char *user;
    enum rapi_access access;
    enum fettle_error code;
    const char *message;
    guint fails_after, fails, fails_ms, users_ms;
    guint watches, most_watches; /* that wait by now, and at most */
    const char *type, *encodings;
    guint packed;
    struct http_answer *answer;
    char *last_user;
    guint calls;
    gsize longest;
} rig;
static char *last_id;
static GHashTable *seen; /* "GET name" of rows */

/* --- luxid --- */

static json_t *call(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                    const char *user, guint timeout_ms, GError **error)
{
    const struct rpc_call one = {.to_node = MASTER,
                                 .to_role = ROLE_LUXID,
                                 .method = method,
                                 .args = args,
                                 .timeout_ms = 60000};
    rig.calls++;
    g_free(rig.last_user);
    rig.last_user = g_strdup(user ? user : "");
    if (rig.fails && rig.fails_after) {
        rig.fails_after--;
    } else if (rig.fails) {
        rig.fails--;
        json_decref(args);
        g_set_error_literal(error, FETTLE_ERROR, (int)rig.code, rig.message);
        env_sleep(rig.world->cli, rig.fails_ms);
        return NULL;
    }
    fake_set_face(rig.world->world, face);
    bool watch = !strcmp(method, "WatchChanges") && json_integer_value(json_array_get(args, 3));
    rig.watches += watch ? 1 : 0;
    rig.most_watches = MAX(rig.most_watches, rig.watches);
    json_t *result = env_call_wait(rig.world->cli, &one, error);
    rig.watches -= watch ? 1 : 0;
    return result;
}

static char *call_text(struct rapi_luxid *luxid, enum face face, const char *method, json_t *args,
                       const char *user, guint timeout_ms, GError **error)
{
    json_autoptr result = call(luxid, face, method, args, user, timeout_ms, error);
    char *text = result ? json_to_text(result) : NULL;
    rig.longest = MAX(rig.longest, text ? strlen(text) : 0);
    return text;
}

/* --- users, in the place of core/rapi/rapi_users.c --- */

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
    if (rig.access == RAPI_FAILED)
        fettle_set_error(error, UNREACHABLE, "luxid does not answer");
    if (rig.access >= RAPI_READ)
        *ret_name = g_strdup(rig.user);
    return rig.access;
}

char *rapi_users_mark(struct rapi_users *users, const char *name, GError **error)
{
    if (rig.users_ms)
        env_sleep(rig.world->cli, rig.users_ms);
    if (rig.access == RAPI_FAILED)
        fettle_set_error(error, UNREACHABLE, "luxid does not answer");
    return rig.access >= RAPI_READ ? g_strdup(rig.user) : NULL;
}

void rapi_users_last(guint ms)
{
    rig.users_ms = ms;
}

void rapi_be(const char *name, enum rapi_access access)
{
    rig.user = name;
    rig.access = access;
}

/* --- asking --- */

static void note(const struct http_request *request, guint status)
{
    struct rapi_found found;
    rapi_route_find(request->method, request->path, &found);
    if (found.route && status == (found.route->kind == RAPI_NONE ? 501 : 200))
        g_hash_table_add(seen, g_strdup_printf("%s %s", found.route->method, found.route->name));
    rapi_found_clear(&found);
}

void rapi_assert_seen(void)
{
    size_t count;
    const struct rapi_route *table = rapi_route_table(&count);
    for (size_t i = 0; i < count; i++) {
        g_autofree char *row = g_strdup_printf("%s %s", table[i].method, table[i].name);
        if (!g_hash_table_contains(seen, row))
            g_error("no test has seen %s answered with %s", row,
                    table[i].kind == RAPI_NONE ? "501" : "200");
    }
}

struct asking {
    struct http_request *request;
    struct promise answered;
    GString *text;
    bool broken; /* it ended before its end */
    struct http_feed *feed;
    guint after_ms;
};

void rapi_take(const char *encodings)
{
    rig.encodings = encodings;
}

guint rapi_packed(void)
{
    return rig.packed;
}

static struct http_bytes *note_gzip(struct http_bytes *plain)
{
    rig.packed++;
    return plain;
}

static void answered_cb(struct http_answer *answer, void *data)
{
    struct asking *asking = data;
    rig.answer = answer;
    promise_complete(&asking->answered);
}

bool rapi_read(struct http_feed *feed, GString *text)
{
    bool over = false;
    GBytes *piece;
    while ((piece = feed->next(feed, &over))) {
        gsize length;
        const char *bytes = g_bytes_get_data(piece, &length);
        g_string_append_len(text, bytes, (gssize)length);
        g_bytes_unref(piece);
    }
    return !over;
}

static void ask_task(void *data)
{
    struct asking *asking = data;
    char piece[1000];
    gssize got = 1;
    rapi_serve(rig.rapi, asking->request, answered_cb, asking);
    g_assert_true(promise_wait(&asking->answered));
    note(asking->request, rig.answer->status);
    struct http_bytes *stream = rig.answer->stream;
    if (rig.answer->feed)
        rapi_read(rig.answer->feed, asking->text);
    else if (!stream)
        g_string_append_len(asking->text, rig.answer->body, (gssize)rig.answer->body_len);
    else
        g_assert_cmpuint(rig.answer->stream_len, ==, HTTP_LENGTH_UNKNOWN);
    while (stream && (got = stream->read(stream, piece, sizeof piece, NULL)) > 0)
        g_string_append_len(asking->text, piece, got);
    asking->broken = got < 0;
}

static struct http_request *make_request(const char *method, const char *target, const char *body)
{
    g_auto(GStrv) parts = g_strsplit(target, "?", 2);
    struct http_request *request = g_new0(struct http_request, 1);
    request->method = g_strdup(method);
    request->path = http_path_decode(parts[0]);
    request->query = g_strdup(parts[1] ? parts[1] : "");
    request->headers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    request->body = g_strdup(body ? body : "");
    request->body_len = strlen(request->body);
    request->peer = g_strdup("192.0.2.7:41234");
    g_hash_table_insert(request->headers, g_strdup("content-type"), g_strdup(rig.type));
    if (last_id)
        g_hash_table_insert(request->headers, g_strdup("last-event-id"), g_strdup(last_id));
    g_hash_table_insert(request->headers, g_strdup("accept-encoding"), g_strdup(rig.encodings));
    return request;
}

void rapi_last_id(const char *id)
{
    g_free(last_id);
    last_id = g_strdup(id);
}

struct http_feed *rapi_follow(const char *target, GString *text)
{
    g_autofree char *said = rapi_say("GET", target, NULL);
    if (!rig.answer->feed)
        g_error("%s: answered %s", target, said);
    g_string_append(text, said + 4);
    return g_steal_pointer(&rig.answer->feed);
}

static void keep_feed(struct http_answer *answer, void *data)
{
    struct asking *asking = data;
    g_assert_cmpuint(answer->status, ==, 200);
    asking->feed = g_steal_pointer(&answer->feed);
    http_answer_free(answer);
    promise_complete(&asking->answered);
}

static void ask_also(void *data)
{
    struct asking *asking = data;
    if (asking->after_ms)
        env_sleep(rig.world->cli, asking->after_ms);
    rapi_serve(rig.rapi, asking->request, keep_feed, asking);
}

struct askings {
    struct asking *each;
    guint count;
};

static void ask_all(void *data)
{
    const struct askings *all = data;
    for (guint i = 0; i < all->count; i++)
        task_spawn(rig.world->cli->tasks, ask_also, &all->each[i]);
    for (guint i = 0; i < all->count; i++)
        g_assert_true(promise_wait(&all->each[i].answered));
}

guint rapi_follow_all(const GPtrArray *targets, guint apart_ms, GPtrArray *feeds)
{
    g_autofree struct asking *each = g_new0(struct asking, targets->len);
    rig.most_watches = 0;
    for (guint i = 0; i < targets->len; i++) {
        each[i].request = make_request("GET", targets->pdata[i], NULL);
        each[i].after_ms = i * apart_ms;
    }
    fake_run(rig.world->cli, ask_all, &(struct askings){each, targets->len});
    for (guint i = 0; i < targets->len; i++) {
        g_ptr_array_add(feeds, each[i].feed);
        http_request_free(each[i].request);
    }
    return rig.most_watches;
}

char *rapi_say(const char *method, const char *target, const char *body)
{
    g_autoptr(GString) text = g_string_new(NULL);
    struct asking asking = {.request = make_request(method, target, body), .text = text};
    g_clear_pointer(&rig.answer, http_answer_free);
    g_test_message("%s %s", method, target);
    fake_run(rig.world->cli, ask_task, &asking);
    http_request_free(asking.request);
    return g_strdup_printf("%u %s%s", rig.answer->status, text->str,
                           asking.broken ? "(broken)" : "");
}

json_t *rapi_get(guint status, const char *method, const char *target, const char *body)
{
    g_autofree char *said = rapi_say(method, target, body);
    if (rig.answer->status != status)
        g_error("%s %s: answered %s, and not %u", method, target, said, status);
    json_t *json = json_loads(said + 4, JSON_DECODE_ANY, NULL);
    if (!json)
        g_error("%s %s: no JSON: %s", method, target, said);
    return json;
}

void rapi_refused(guint status, const char *explain, const char *method, const char *target,
                  const char *body)
{
    json_autoptr json = rapi_get(status, method, target, body);
    g_assert_cmpuint(json_object_size(json), ==, 3);
    g_assert_cmpint(json_integer_value(json_object_get(json, "code")), ==, status);
    g_assert_nonnull(json_string_value(json_object_get(json, "message")));
    g_assert_cmpstr(json_string_value(json_object_get(json, "explain")), ==, explain);
}

const char *rapi_header(const char *name)
{
    for (guint i = 0; i < rig.answer->headers->len; i += 2)
        if (!strcmp(rig.answer->headers->pdata[i], name))
            return rig.answer->headers->pdata[i + 1];
    return "";
}

void rapi_fail_next(enum fettle_error code, const char *message)
{
    rapi_fail_after(0, code, message);
}

void rapi_fail_after(guint calls, enum fettle_error code, const char *message)
{
    rapi_fail_times(calls, 1, code, message);
}

void rapi_fail_on(guint calls, guint after_ms, enum fettle_error code, const char *message)
{
    rapi_fail_times(calls, G_MAXUINT, code, message);
    rig.fails_ms = after_ms;
}

void rapi_fail_times(guint calls, guint times, enum fettle_error code, const char *message)
{
    rig.fails_after = calls;
    rig.fails = times;
    rig.fails_ms = 0;
    rig.code = code;
    rig.message = message;
}

void rapi_type(const char *type)
{
    rig.type = type;
}

guint rapi_calls(void)
{
    return rig.calls;
}

const char *rapi_last_user(void)
{
    return rig.last_user;
}

gsize rapi_longest_text(void)
{
    return rig.longest;
}

/* --- worlds --- */

static void run_case(gconstpointer data)
{
    void (*const *test)(struct queue_world * w) = data;
    struct queue_world *w = query_world_new();
    memset(&rig, 0, sizeof rig);
    rig.world = w;
    rig.luxid = (struct rapi_luxid){.call = call, .call_text = call_text};
    rig.type = "application/json";
    rapi_be("alice", RAPI_WRITE);
    rapi_take("");
    rig.rapi = rapi_new(
        &(struct rapi_options){.env = w->cli, .luxid = &rig.luxid, .gzip = note_gzip}, NULL);
    if (!seen)
        seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    (*test)(w);
    g_clear_pointer(&rig.answer, http_answer_free);
    g_clear_pointer(&rig.last_user, g_free);
    rapi_last_id(NULL);
    rapi_free(rig.rapi);
    queue_world_free(w);
}

void rapi_case(const char *path, void (*test)(struct queue_world *w))
{
    void (**kept)(struct queue_world * w) = g_new(typeof(*kept), 1);
    *kept = test;
    g_test_add_data_func_full(path, kept, run_case, g_free);
}
