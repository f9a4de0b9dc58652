/* WatchChanges of what is no guest and no job: nodes, groups, networks, services, the storm brake,
 * locks. */
#include "unit/core/world/queue_world.h"

#include "core/queue/lock_watch.h"

#define OTHER "12345678-0000-4000-8000-000000000001"

/* --- a client --- */

struct client {
    struct queue_world *w;
    char *kinds; /* JSON */
    char stream[40];
    json_int_t serial;
};

static json_t *watch_args(const struct client *client, double timeout)
{
    return json_make("[o, s, I, f]", json_loads(client->kinds, 0, NULL), client->stream,
                     client->serial, timeout);
}

/* Each change has its own, which is a place to go on from. */
static void check_serials(const json_t *answer, json_int_t from)
{
    json_t *serials = json_object_get(answer, "serials"), *serial;
    size_t i;
    g_assert_cmpuint(json_array_size(serials), ==,
                     json_array_size(json_object_get(answer, "changes")));
    json_array_foreach(serials, i, serial) {
        g_assert_cmpint(json_integer_value(serial), >, from);
        from = json_integer_value(serial);
    }
    g_assert_cmpint(from, <=, json_integer_value(json_object_get(answer, "serial")));
}

/* What has changed, as text; `anew`: it has to begin anew, and nothing is told. Frees the answer.
 */
static char *take(struct client *client, json_t *answer, bool anew)
{
    json_autoptr owned = answer;
    json_t *changes = json_object_get(answer, "changes");
    g_assert_cmpint(json_is_true(json_object_get(answer, "anew")), ==, anew);
    g_assert_true(!anew || json_array_size(changes) == 0);
    check_serials(answer, anew ? 0 : client->serial);
    g_strlcpy(client->stream, json_string_value(json_object_get(answer, "stream")),
              sizeof(client->stream));
    client->serial = json_integer_value(json_object_get(answer, "serial"));
    return json_to_text(changes);
}

static void start(struct client *client, struct fake_reply *reply)
{
    *reply = (struct fake_reply){0};
    fake_call_start(client->w->cli, 0, MASTER, ROLE_LUXID, "WatchChanges", watch_args(client, 60),
                    reply);
    fake_settle(client->w->world);
}

static void expect_given(struct client *client, struct fake_reply *reply, bool anew,
                         const char *expected)
{
    g_assert_true(reply->done);
    g_assert_no_error(reply->error);
    g_autofree char *text = take(client, json_incref(reply->result), anew);
    g_assert_cmpstr(text, ==, expected);
    fake_reply_clear(reply);
}

static void expect(struct client *client, double timeout, const char *expected)
{
    g_autoptr(GError) error = NULL;
    json_t *answer = queue_call(client->w, "WatchChanges", watch_args(client, timeout), &error);
    g_assert_no_error(error);
    g_autofree char *text = take(client, answer, false);
    g_assert_cmpstr(text, ==, expected);
}

static void client_begin(struct client *client, struct queue_world *w, const char *kinds)
{
    g_autoptr(GError) error = NULL;
    *client = (struct client){.w = w, .kinds = g_strdup(kinds)};
    json_t *answer = queue_call(w, "WatchChanges", watch_args(client, 60), &error);
    g_assert_no_error(error);
    g_free(take(client, answer, true));
}

static void client_clear(struct client *client)
{
    g_free(client->kinds);
}

static void put_tag(struct queue_world *w, const char *kind, const char *uuid, const char *tag,
                    bool there)
{
    g_autofree char *key = g_strdup_printf("%s/%s/%s", kind, uuid, tag);
    store_put(w->store, "tag", key,
              there ? json_make("{ss, ss, ss}", "kind", kind, "object", uuid, "tag", tag) : NULL);
}

/* --- what is no guest's --- */

static void put_node(struct queue_world *w, bool drained)
{
    store_put(w->store, "node", NODE2,
              json_make("{ss, ss, ss, ss, sb}", "uuid", NODE2, "name", "node2", "primary_ip",
                        "10.0.0.2", "group", GROUP, "drained", (int)drained));
}

static void test_node(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client;
    client_begin(&client, w, "{\"node\": [\"name\", \"role\", \"tags\"]}");
    put_node(w, false);
    expect(&client, 60, "[[\"node\",\"" NODE2 "\",[[0,\"node2\"],[0,\"R\"],[0,[]]]]]");
    put_node(w, true);
    expect(&client, 60, "[[\"node\",\"" NODE2 "\",[[0,\"node2\"],[0,\"D\"],[0,[]]]]]");
    put_tag(w, "node", NODE2, "new", true);
    expect(&client, 60, "[[\"node\",\"" NODE2 "\",[[0,\"node2\"],[0,\"D\"],[0,[\"new\"]]]]]");
    put_tag(w, "node", NODE2, "new", false);
    store_put(w->store, "node", NODE2, NULL);
    expect(&client, 60, "[[\"node\",\"" NODE2 "\",null]]");
    client_clear(&client);
    queue_world_free(w);
}

/* Named as Query names it: the object on record is a `nodegroup`. */
static void test_group(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client;
    client_begin(&client, w, "{\"group\": [\"name\", \"tags\"]}");
    store_put(w->store, "nodegroup", GROUP, json_make("{ss, ss}", "uuid", GROUP, "name", "racks"));
    expect(&client, 60, "[[\"group\",\"" GROUP "\",[[0,\"racks\"],[0,[]]]]]");
    put_tag(w, "nodegroup", GROUP, "old", true);
    expect(&client, 60, "[[\"group\",\"" GROUP "\",[[0,\"racks\"],[0,[\"old\"]]]]]");
    client_clear(&client);
    queue_world_free(w);
}

static void test_network(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client;
    client_begin(&client, w, "{\"network\": [\"name\", \"network\"]}");
    store_put(w->store, "network", OTHER,
              json_make("{ss, ss, ss}", "uuid", OTHER, "name", "lan", "network", "192.0.2.0/24"));
    expect(&client, 60, "[[\"network\",\"" OTHER "\",[[0,\"lan\"],[0,\"192.0.2.0/24\"]]]]");
    client_clear(&client);
    queue_world_free(w);
}

/* What is on record of it is told; one that no node is to run any more is gone. */
static void test_service(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autofree char *key = config_service_key(MASTER, "noded");
    g_autofree char *expected =
        g_strdup_printf("[[\"service\",\"%s\",[[0,\"noded\"],[0,\"node1\"],[0,\"master\"]]]]", key);
    g_autofree char *gone = g_strdup_printf("[[\"service\",\"%s\",null]]", key);
    struct client client;
    client_begin(&client, w, "{\"service\": [\"name\", \"node\", \"role\"]}");
    store_put(w->store, "service", key,
              json_make("{ss, ss, ss, ss}", "uuid", key, "name", "noded", "node", MASTER, "version",
                        "1"));
    expect(&client, 60, expected);
    store_put(w->store, "service", key,
              json_make("{ss, ss, ss, ss}", "uuid", key, "name", "ghost", "node", MASTER, "version",
                        "1"));
    expect(&client, 60, gone);
    client_clear(&client);
    queue_world_free(w);
}

static void test_brake(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client;
    client_begin(&client, w, "{\"brake\": [\"why\", \"nodes\"]}");
    store_put(w->store, "repair_brake", "cluster",
              json_make("{si, ss, s[s]}", "since", 7, "why", "2 of 3", "nodes", MASTER));
    expect(&client, 60, "[[\"brake\",\"cluster\",[[0,\"2 of 3\"],[0,[\"node1\"]]]]]");
    store_put(w->store, "repair_brake", "cluster", NULL);
    expect(&client, 60, "[[\"brake\",\"cluster\",null]]");
    client_clear(&client);
    queue_world_free(w);
}

/* --- locks --- */

#define LOCK(name, mode, job, waiting)                                                             \
    "{\"name\": \"" name "\",\"mode\": \"" mode "\",\"owner\": {\"job\": \"" job                   \
    "\",\"livelock\": \"job-" job "\"}, \"waiting\": " waiting "}"

static void set_locks(struct queue_world *w, const char *locks)
{
    store_set_locks(w->store, json_loads(locks, 0, NULL));
}

/* Who waits is told of each that has changed, and of no other; also of one that has another owner.
 */
static void test_locks(void)
{
    struct queue_world *w = queue_world_new(1);
    struct fake_reply reply;
    struct client client;
    set_locks(w, "[" LOCK("instance/web1", "shared", "7", "false") "]");
    client_begin(&client, w, "{\"lock\": [\"name\", \"mode\", \"owner\"]}");
    start(&client, &reply);
    fake_advance(w->world, 4 * LOCK_WATCH_MS);
    g_assert_false(reply.done);
    set_locks(w, "[" LOCK("instance/web1", "shared", "7",
                          "false") "," LOCK("instance/web2", "exclusive", "8", "false") "]");
    fake_advance(w->world, LOCK_WATCH_MS + WATCH_GATHER_MS);
    expect_given(&client, &reply, false,
                 "[[\"lock\",\"instance/web2\",[[0,\"instance/web2\"],[0,\"exclusive\"],[0,"
                 "[\"8\"]]]]]");
    /* Between two calls nobody looks, and nothing is missed. */
    set_locks(w, "[" LOCK("instance/web2", "exclusive", "9", "false") "]");
    expect(&client, 60,
           "[[\"lock\",\"instance/web2\",[[0,\"instance/web2\"],[0,\"exclusive\"],[0,"
           "[\"9\"]]]],[\"lock\",\"instance/web1\",null]]");
    client_clear(&client);
    queue_world_free(w);
}

/* What a client finds when it has begun is what changes are told against. */
static void test_locks_begin(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client early, late;
    client_begin(&early, w, "{\"lock\": [\"name\"]}");
    set_locks(w, "[" LOCK("instance/web1", "shared", "7", "true") "]");
    client_begin(&late, w, "{\"lock\": [\"pending\"]}");
    set_locks(w, "[]");
    expect(&late, 0, "[[\"lock\",\"instance/web1\",null]]");
    expect(&early, 0, "[[\"lock\",\"instance/web1\",null]]");
    /* After a snapshot everybody begins anew, with what was looked at since. */
    struct fake_reply reply;
    start(&late, &reply);
    store_put(w->store, "node", NODE2, json_make("{ss}", "uuid", "rubbish"));
    fake_advance(w->world, 1000);
    put_node(w, false);
    fake_advance(w->world, 5000); /* it does not ask at once for what it could not take */
    expect_given(&late, &reply, true, "[]");
    set_locks(w, "[" LOCK("instance/web1", "shared", "8", "false") "]");
    expect(&late, 0, "[[\"lock\",\"instance/web1\",[[0,[]]]]]");
    client_clear(&early);
    client_clear(&late);
    queue_world_free(w);
}

/* What nodes are asked for changes untold, and a field that there is not is none of any kind. */
static void test_bad_input(void)
{
    struct queue_world *w = queue_world_new(1);
    queue_refuse(
        w, "WatchChanges", json_make("[{s[s]}]", "node", "mfree"), FETTLE_ERROR_WRONG_INPUT,
        "WatchChanges: kinds.node: the nodes are asked for \"mfree\", so it changes untold; "
        "it can be had by Query only");
    queue_refuse(w, "WatchChanges", json_make("[{s[s]}]", "lock", "nope"), FETTLE_ERROR_WRONG_INPUT,
                 "WatchChanges: kinds.lock: there is no field \"nope\"");
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watch-kinds/node", test_node);
    g_test_add_func("/watch-kinds/group", test_group);
    g_test_add_func("/watch-kinds/network", test_network);
    g_test_add_func("/watch-kinds/service", test_service);
    g_test_add_func("/watch-kinds/brake", test_brake);
    g_test_add_func("/watch-kinds/locks", test_locks);
    g_test_add_func("/watch-kinds/locks-begin", test_locks_begin);
    g_test_add_func("/watch-kinds/bad-input", test_bad_input);
    return g_test_run();
}
