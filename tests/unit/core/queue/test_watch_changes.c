/* WatchChanges: what is told, when, how much at once, who has to begin anew; every refusal with its
 * words; and a client that follows anything ends with what Query says. */
#include "unit/core/world/queue_world.h"

#include <string.h>

#define WEB1 "dddddddd-0000-4000-8000-000000000001"
#define WEB2 "dddddddd-0000-4000-8000-000000000002"
#define REPLICA1 "eeeeeeee-0000-4000-8000-000000000001"
#define OTHER "12345678-0000-4000-8000-000000000001"
#define BEHIND                                                                                     \
    "too much has changed since 1: no more than the last 16384 changed objects are remembered"
#define ANOTHER "this is another stream: luxid was started anew, or has read the configuration anew"

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

/* The changes, of which the client knows then; `why` NULL: it must not have to begin anew. */
static json_t *take(struct client *client, json_t *answer, const char *why)
{
    json_autoptr owned = answer;

    g_assert_nonnull(answer);
    g_assert_cmpint(json_is_true(json_object_get(answer, "anew")), ==, why != NULL);
    g_assert_cmpstr(json_string_value(json_object_get(answer, "why")), ==, why ?: "");
    g_strlcpy(client->stream, json_string_value(json_object_get(answer, "stream")),
              sizeof(client->stream));
    client->serial = json_integer_value(json_object_get(answer, "serial"));
    g_assert_cmpint(json_integer_value(json_object_get(answer, "record")), >, 0);
    if (why != NULL)
        g_assert_cmpuint(json_array_size(json_object_get(answer, "changes")), ==, 0);
    return json_incref(json_object_get(answer, "changes"));
}

static json_t *ask(struct client *client, double timeout, const char *why)
{
    g_autoptr(GError) error = NULL;
    json_t *answer = queue_call(client->w, "WatchChanges", watch_args(client, timeout), &error);

    g_assert_no_error(error);
    return take(client, answer, why);
}

/* Nobody's timers are left out: the answer comes when it comes. */
static void start(struct client *client, double timeout, struct fake_reply *reply)
{
    *reply = (struct fake_reply){0};
    fake_call_start(client->w->cli, 0, MASTER, ROLE_LUXID, "WatchChanges",
                    watch_args(client, timeout), reply);
    fake_settle(client->w->world);
}

static void expect(json_t *changes, const char *text)
{
    json_autoptr owned = changes;
    json_autoptr expected = json_loads(text, 0, NULL);

    g_assert_nonnull(expected);
    if (!json_equal(changes, expected))
        g_error("expected %s, got %s", text, json_dumps(changes, JSON_COMPACT));
}

static void client_begin(struct client *client, struct queue_world *w, const char *kinds)
{
    *client = (struct client){.w = w, .kinds = g_strdup(kinds)};
    expect(ask(client, 60, "this is where the stream stands"), "[]");
}

/* One that wants the same field of an object so many times: its rows are as large as is wanted. */
static void client_begin_wide(struct client *client, struct queue_world *w, const char *kind,
                              const char *field, guint times)
{
    g_autoptr(GString) kinds = g_string_new(NULL);

    g_string_printf(kinds, "{\"%s\": [", kind);
    for (guint i = 0; i < times; i++)
        g_string_append_printf(kinds, "%s\"%s\"", i > 0 ? "," : "", field);
    g_string_append(kinds, "]}");
    client_begin(client, w, kinds->str);
}

static void client_clear(struct client *client)
{
    g_free(client->kinds);
}

/* --- the cluster --- */

static void put_instance(struct queue_world *w, const char *uuid, const char *name, guint memory)
{
    store_put(w->store, "instance", uuid,
              json_make("{ss, ss, ss, si, ss, ss}", "uuid", uuid, "name", name, "disk_template",
                        "diskless", "memory", (int)memory, "primary_node", MASTER, "replica",
                        strcmp(uuid, WEB1) == 0 ? REPLICA1 : ""));
}

static void put_replica(struct queue_world *w, const char *state)
{
    store_put(w->store, "replica", REPLICA1,
              json_make("{ss, ss, ss, si, si, ss}", "uuid", REPLICA1, "instance", WEB1, "node",
                        NODE2, "generation", 1, "sync", 1, "state", state));
}

static void put_tag(struct queue_world *w, const char *kind, const char *uuid, const char *tag,
                    bool there)
{
    g_autofree char *key = g_strdup_printf("%s/%s/%s", kind, uuid, tag);

    store_put(w->store, "tag", key,
              there ? json_make("{ss, ss, ss}", "kind", kind, "object", uuid, "tag", tag) : NULL);
}

static char *decision_uuid(guint number)
{
    return g_strdup_printf("99999999-0000-4000-8000-%012u", number);
}

static void put_decision(struct queue_world *w, guint number, const char *summary)
{
    g_autofree char *uuid = decision_uuid(number);

    store_put(w->store, "decision", uuid,
              json_make("{ss, ss, ss, ss, si, ss, ss}", "uuid", uuid, "author", "watcher/repair",
                        "subject_kind", "instance", "subject", WEB1, "at_us", 1, "verdict", "wait",
                        "summary", summary));
}

/* --- what is told --- */

static void test_begin(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client;
    queue_submit(w, NULL);
    client_begin(&client, w, "{\"job\": [\"id\"]}");
    g_assert_cmpuint(strlen(client.stream), ==, 36);
    g_assert_cmpint(client.serial, ==, 0);
    /* What was before is not told: that is for Query. */
    expect(ask(&client, 0, NULL), "[]");
    client_clear(&client);
    queue_world_free(w);
}

/* A job from its submission to its end, as far as it is on record or in its file. */
static void test_job(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client;
    client_begin(&client, w, "{\"job\": [\"id\", \"status\"], \"instance\": []}");
    queue_submit(w, NULL);
    queue_child_named(w, 1);
    expect(ask(&client, 60, NULL), "[[\"job\", \"1\", [[0, 1], [0, \"waiting\"]]]]");
    queue_job_writes(w, 1, "running");
    expect(ask(&client, 60, NULL), "[[\"job\", \"1\", [[0, 1], [0, \"running\"]]]]");
    queue_job_ends(w, 1);
    expect(ask(&client, 60, NULL), "[[\"job\", \"1\", [[0, 1], [0, \"success\"]]]]");
    store_put(w->store, "job", "1", NULL);
    expect(ask(&client, 60, NULL), "[[\"job\", \"1\", null]]");
    expect(ask(&client, 60, NULL), "[]");
    client_clear(&client);
    queue_world_free(w);
}

static void test_instance(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client;
    put_instance(w, WEB1, "web1", 256);
    fake_settle(w->world);
    client_begin(&client, w,
                 "{\"instance\": [\"name\", \"be/memory\", \"replica.state\", \"tags\"]}");
    put_instance(w, WEB1, "web1", 512);
    put_instance(w, WEB2, "web2", 64);
    expect(ask(&client, 60, NULL),
           "[[\"instance\", \"" WEB1 "\", [[0, \"web1\"], [0, 512], [2, null], [0, []]]],"
           " [\"instance\", \"" WEB2 "\", [[0, \"web2\"], [0, 64], [2, null], [0, []]]]]");
    /* Replicas and tags are an instance's, too. */
    put_replica(w, "in-sync");
    expect(ask(&client, 60, NULL),
           "[[\"instance\", \"" WEB1 "\", [[0, \"web1\"], [0, 512], [0, \"in-sync\"], [0, []]]]]");
    put_tag(w, "instance", WEB1, "owner:mail/web", true);
    expect(ask(&client, 60, NULL),
           "[[\"instance\", \"" WEB1
           "\", [[0, \"web1\"], [0, 512], [0, \"in-sync\"], [0, [\"owner:mail/web\"]]]]]");
    put_tag(w, "instance", WEB1, "owner:mail/web", false);
    expect(ask(&client, 60, NULL),
           "[[\"instance\", \"" WEB1 "\", [[0, \"web1\"], [0, 512], [0, \"in-sync\"], [0, []]]]]");
    /* The tag of a node is none of an instance; a replica goes with or before its instance. */
    put_tag(w, "node", MASTER, "rack:1", true);
    store_put(w->store, "replica", REPLICA1, NULL);
    expect(ask(&client, 1, NULL), "[]");
    store_put(w->store, "instance", WEB1, NULL);
    expect(ask(&client, 60, NULL), "[[\"instance\", \"" WEB1 "\", null]]");
    client_clear(&client);
    queue_world_free(w);
}

static void put_event(struct queue_world *w, guint number, const char *event)
{
    g_autofree char *uuid = decision_uuid(number);

    store_put(w->store, "decision", uuid,
              event == NULL
                  ? NULL
                  : json_make("{ss, ss, ss, ss, si, ss, ss, ss}", "uuid", uuid, "author",
                              "watcher/recovery", "subject_kind", "instance", "subject", WEB1,
                              "at_us", 1, "verdict", "act", "summary", "settled", "event", event));
}

/* One for each decision that is one, and no word when it is pruned; a fault is its instance's. */
static void test_event(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client, instance;

    put_instance(w, WEB1, "web1", 256);
    fake_settle(w->world);
    client_begin(&client, w, "{\"event\": [\"event\", \"summary\"]}");
    client_begin(&instance, w, "{\"instance\": [\"fault.message\"]}");
    put_decision(w, 1, "no event");
    put_event(w, 2, "recovered");
    put_event(w, 3, "alert");
    expect(ask(&client, 60, NULL), "[[\"event\", \"99999999-0000-4000-8000-000000000002\","
                                   " [[0, \"recovered\"], [0, \"settled\"]]],"
                                   " [\"event\", \"99999999-0000-4000-8000-000000000003\","
                                   " [[0, \"alert\"], [0, \"settled\"]]]]");
    put_event(w, 2, NULL);
    expect(ask(&client, 1, NULL), "[]");
    expect(ask(&instance, 1, NULL), "[]");
    store_put(w->store, "fault", "instance/" WEB1,
              json_make("{ss, ss, si, ss}", "subject_kind", "instance", "subject", WEB1, "at_us", 5,
                        "message", "its node is silent"));
    expect(ask(&instance, 60, NULL),
           "[[\"instance\", \"" WEB1 "\", [[0, \"its node is silent\"]]]]");
    client_clear(&client);
    client_clear(&instance);
    queue_world_free(w);
}

/* A resource is told of when it changes, and when its row of work does. */
static void test_resource(const void *kind)
{
    const char *type = strcmp(kind, "volume") ? "Snapshot" : "Volume";
    struct queue_world *w = queue_world_new(1);
    struct client client;
    g_autofree char *key = g_strdup_printf("%s/%s", type, WEB1);
    g_autofree char *asked =
        g_strdup_printf("{\"%s\": [\"name\", \"operation\"]}", (const char *)kind);
    store_put(w->store, kind, WEB1,
              json_make("{ss, ss, ss, si, ss}", "uuid", WEB1, "name", "data1", "volume", WEB1,
                        "size", 1, "status", "creating"));
    fake_settle(w->world);
    client_begin(&client, w, asked);
    store_put(w->store, "worker", key,
              json_make("{ss, ss, ss, ss}", "resource_type", type, "resource_id", WEB1, "operation",
                        "create-volume", "status", "creating"));
    g_autofree char *there = g_strdup_printf(
        "[[\"%s\", \"" WEB1 "\", [[0, \"data1\"], [0, \"create-volume\"]]]]", (const char *)kind);
    expect(ask(&client, 60, NULL), there);
    store_put(w->store, kind, WEB1, NULL);
    g_autofree char *gone = g_strdup_printf("[[\"%s\", \"" WEB1 "\", null]]", (const char *)kind);
    expect(ask(&client, 60, NULL), gone);
    client_clear(&client);
    queue_world_free(w);
}

/* An object stands there once, where it changed last; other kinds are left out; no fields: which.
 */
static void test_each_once(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client, other;

    client_begin(&client, w, "{\"decision\": [\"summary\"]}");
    client_begin(&other, w, "{\"instance\": [], \"decision\": []}");
    put_decision(w, 1, "first");
    put_instance(w, WEB1, "web1", 256);
    put_decision(w, 2, "second");
    put_decision(w, 1, "third");
    fake_settle(w->world);
    expect(ask(&client, 60, NULL),
           "[[\"decision\", \"99999999-0000-4000-8000-000000000002\", [[0, \"second\"]]],"
           " [\"decision\", \"99999999-0000-4000-8000-000000000001\", [[0, \"third\"]]]]");
    expect(ask(&other, 0, NULL), "[[\"instance\", \"" WEB1 "\", []],"
                                 " [\"decision\", \"99999999-0000-4000-8000-000000000002\", []],"
                                 " [\"decision\", \"99999999-0000-4000-8000-000000000001\", []]]");
    g_assert_cmpint(client.serial, ==, other.serial);
    client_clear(&client);
    client_clear(&other);
    queue_world_free(w);
}

/* --- when --- */

/* Nothing until there is something, and all that comes within a moment comes at once. */
static void test_gathered(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client, idle;
    struct fake_reply reply, other;

    client_begin(&client, w, "{\"decision\": [\"summary\"]}");
    client_begin(&idle, w, "{\"instance\": []}");
    start(&client, 60, &reply);
    start(&idle, 5, &other);
    fake_advance(w->world, 3000);
    g_assert_false(reply.done);
    put_decision(w, 1, "first");
    fake_advance(w->world, WATCH_GATHER_MS - 1);
    put_decision(w, 2, "second");
    fake_settle(w->world);
    g_assert_false(reply.done);
    fake_advance(w->world, 1);
    g_assert_true(reply.done);
    expect(take(&client, reply.result, NULL),
           "[[\"decision\", \"99999999-0000-4000-8000-000000000001\", [[0, \"first\"]]],"
           " [\"decision\", \"99999999-0000-4000-8000-000000000002\", [[0, \"second\"]]]]");
    /* Who asked for something else waits on, until the end of its wait: the sign of life. */
    g_assert_false(other.done);
    fake_advance(w->world, 2000);
    g_assert_true(other.done);
    expect(take(&idle, other.result, NULL), "[]");
    g_assert_cmpint(idle.serial, ==, 2);
    client_clear(&client);
    client_clear(&idle);
    queue_world_free(w);
}

/* --- how much --- */

static void test_pieces(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autofree char *long_text = g_strnfill(500, 'x');
    struct client client, wide;
    json_autoptr first = NULL;
    json_autoptr rest = NULL;
    json_autoptr piece = NULL;

    client_begin(&client, w, "{\"decision\": []}");
    client_begin_wide(&wide, w, "decision", "summary", 500);
    for (guint i = 1; i <= LIMIT_WATCH_CHANGES + 1; i++)
        put_decision(w, i, long_text);
    fake_settle(w->world);
    first = ask(&client, 60, NULL);
    rest = ask(&client, 60, NULL);
    g_assert_cmpuint(json_array_size(first), ==, LIMIT_WATCH_CHANGES);
    g_assert_cmpuint(json_array_size(rest), ==, 1);
    /* Rows of 250 KB: four of them are within a megabyte. */
    piece = ask(&wide, 60, NULL);
    g_assert_cmpuint(json_array_size(piece), ==, 4);
    g_assert_cmpint(wide.serial, ==, 4);
    client_clear(&client);
    client_clear(&wide);
    queue_world_free(w);
}

/* A row larger than an answer should be comes alone. */
static void test_large_row(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autofree char *comment = g_strnfill(512, 'x');
    struct client client;
    json_autoptr ops = json_array();
    g_autoptr(GError) error = NULL;
    json_autoptr piece = NULL;

    for (guint i = 0; i < 100; i++)
        json_array_append_new(ops, queue_delay(json_make("{ss}", "comment", comment)));
    client_begin_wide(&client, w, "job", "ops", 20);
    for (guint i = 0; i < 2; i++) {
        json_autoptr id = queue_call(w, "SubmitJob", json_make("[O]", ops), &error);
        g_assert_no_error(error);
    }
    piece = ask(&client, 60, NULL);
    g_assert_cmpuint(json_array_size(piece), ==, 1);
    g_assert_cmpuint(json_dumpb(piece, NULL, 0, JSON_COMPACT), >, LIMIT_WATCH_BYTES);
    client_clear(&client);
    queue_world_free(w);
}

/* --- beginning anew --- */

static void test_behind(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client slow, quick, waiting;
    struct fake_reply reply;

    client_begin(&slow, w, "{\"decision\": []}");
    client_begin(&quick, w, "{\"decision\": []}");
    client_begin(&waiting, w, "{\"instance\": []}");
    put_decision(w, 1, "x");
    fake_settle(w->world);
    json_decref(ask(&slow, 0, NULL));
    start(&waiting, 600, &reply);
    for (guint i = 2; i <= LIMIT_WATCH_LOG + 1; i++) {
        put_decision(w, i, "x");
        if (i % 1000 == 0)
            fake_advance(w->world, WATCH_GATHER_MS);
    }
    /* As many as are remembered: the last moment. */
    fake_settle(w->world);
    json_decref(ask(&slow, 0, NULL));
    g_assert_cmpint(slow.serial, ==, 1 + LIMIT_WATCH_CHANGES);
    slow.serial = 1;
    put_decision(w, LIMIT_WATCH_LOG + 2, "x");
    fake_settle(w->world);
    expect(ask(&quick, 0,
               "too much has changed since 0: no more than the last 16384 changed objects "
               "are remembered"),
           "[]");
    expect(ask(&slow, 60, BEHIND), "[]");
    g_assert_cmpint(slow.serial, ==, LIMIT_WATCH_LOG + 2);
    /* One that waits for something else is not behind. */
    fake_advance(w->world, WATCH_GATHER_MS);
    g_assert_false(reply.done);
    put_instance(w, WEB1, "web1", 64);
    fake_advance(w->world, WATCH_GATHER_MS);
    g_assert_true(reply.done);
    expect(take(&waiting, reply.result, NULL), "[[\"instance\", \"" WEB1 "\", []]]");
    client_clear(&slow);
    client_clear(&quick);
    client_clear(&waiting);
    queue_world_free(w);
}

static void test_restart(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client;
    struct fake_reply reply;
    char before[40];

    client_begin(&client, w, "{\"job\": [\"id\"]}");
    queue_submit(w, NULL);
    json_decref(ask(&client, 60, NULL));
    g_strlcpy(before, client.stream, sizeof(before));
    start(&client, 60, &reply);
    queue_world_kill_luxid(w);
    fake_settle(w->world);
    g_assert_true(reply.done);
    g_assert_nonnull(reply.error);
    fake_reply_clear(&reply);
    queue_world_start_luxid(w);
    expect(ask(&client, 60, ANOTHER), "[]");
    g_assert_cmpstr(client.stream, !=, before);
    queue_submit(w, NULL);
    expect(ask(&client, 60, NULL), "[[\"job\", \"2\", [[0, 2]]]]");
    client_clear(&client);
    queue_world_free(w);
}

/* A configuration that luxid cannot take in part it reads whole: nobody knows what has changed. */
static void test_reset(void)
{
    struct queue_world *w = queue_world_new(1);
    struct client client, away;
    struct fake_reply reply;

    client_begin(&away, w, "{\"instance\": []}");
    client_begin(&client, w, "{\"instance\": [\"name\"]}");
    start(&client, 60, &reply);
    store_put(w->store, "instance", WEB1, json_make("{ss}", "uuid", "rubbish"));
    fake_advance(w->world, 1000);
    g_assert_false(reply.done);
    put_instance(w, WEB1, "web1", 64);
    fake_advance(w->world, 5000); /* it does not ask at once for what it could not take */
    g_assert_true(reply.done);
    expect(take(&client, reply.result, "luxid has read the configuration anew"), "[]");
    expect(ask(&away, 60, ANOTHER), "[]");
    g_assert_cmpstr(client.stream, ==, away.stream);
    put_instance(w, WEB2, "web2", 64);
    expect(ask(&client, 60, NULL), "[[\"instance\", \"" WEB2 "\", [[0, \"web2\"]]]]");
    client_clear(&client);
    client_clear(&away);
    queue_world_free(w);
}

/* --- refusals --- */

static void refuse(struct client *client, json_t *kinds, const char *stream, json_t *serial,
                   const char *message)
{
    g_autofree char *whole = g_strconcat("WatchChanges: ", message, NULL);

    queue_refuse(client->w, "WatchChanges", json_make("[o, s, o, i]", kinds, stream, serial, 0),
                 FETTLE_ERROR_WRONG_INPUT, whole);
}

static void refuse_kinds(struct client *client, const char *kinds, const char *message)
{
    refuse(client, json_loads(kinds, JSON_DECODE_ANY, NULL), "", json_integer(0), message);
}

static json_t *jobs(void)
{
    return json_make("{s[]}", "job");
}

static void test_bad_input(void)
{
    struct queue_world *w = queue_world_new(1);
#define KNOWN                                                                                      \
    "job, instance, node, group, network, service, lock, brake, decision, event, volume, "         \
    "snapshot, backup, image"
#define NOT_KNOWN "cannot be watched; what can is " KNOWN
    static const char shape[] = "kinds: must be {kind: [fields], …}, with at least one of " KNOWN;
    g_autoptr(GString) many = g_string_new("{\"job\": [\"id\"");
    struct client client;

    client_begin(&client, w, "{\"job\": []}");
    refuse_kinds(&client, "{}", shape);
    refuse_kinds(&client, "[\"job\"]", shape);
    refuse_kinds(&client, "\"job\"", shape);
    refuse_kinds(&client, "{\"job\": [], \"moon\": [], \"sun\": [], \"star\": []}",
                 "kinds: \"moon\" " NOT_KNOWN);
    refuse_kinds(&client, "{\"nodegroup\": [\"name\"]}", "kinds: \"nodegroup\" " NOT_KNOWN);
    refuse_kinds(&client, "{\"job\": \"id\"}", "kinds.job: must be a list of at most 512 fields");
    refuse_kinds(&client, "{\"job\": [\"id\", 1]}", "kinds.job[1]: must be a text");
    refuse_kinds(&client, "{\"job\": [\"id\", \"nope\"]}", "kinds.job: there is no field \"nope\"");
    refuse_kinds(&client, "{\"instance\": [\"name\", \"status\"]}",
                 "kinds.instance: the nodes are asked for \"status\", so it changes untold; it can "
                 "be had by Query only");
    for (guint i = 0; i < LIMIT_QUERY_FIELDS; i++)
        g_string_append(many, ",\"id\"");
    g_string_append(many, "]}");
    refuse_kinds(&client, many->str, "kinds.job: must be a list of at most 512 fields");
    refuse(&client, json_null(), "", json_integer(0), "kinds: is missing");
    refuse(&client, jobs(), client.stream, json_integer(1),
           "serial: the stream is at 0 and has no 1 yet");
    refuse(&client, jobs(), client.stream, json_string("1"), "serial: must be a number");
    refuse(&client, jobs(), client.stream, json_real(0.5), "serial: must be a whole number");
    refuse(&client, jobs(), client.stream, json_integer(-1), "serial: must be at least 0");
    refuse(&client, jobs(), "", json_integer(7),
           "stream: is missing, for serial 7; to begin, leave out both");
    refuse(&client, jobs(), "1234567890123456789012345678901234567", json_integer(0),
           "stream: must have at most 36 characters, has 37");
    queue_refuse(w, "WatchChanges", json_make("[o, s, i, i]", jobs(), "", 0, 601),
                 FETTLE_ERROR_WRONG_INPUT, "WatchChanges: timeout: must be at most 600");
    queue_refuse(w, "WatchChanges", json_make("[o, s, i, i, i]", jobs(), "", 0, 0, 0),
                 FETTLE_ERROR_WRONG_INPUT, "WatchChanges: takes at most 4 arguments, got 5");
    /* A stream of somebody else's, whatever the serial: begin anew. */
    g_strlcpy(client.stream, OTHER, sizeof(client.stream));
    client.serial = 99;
    expect(ask(&client, 60, ANOTHER), "[]");
    client_clear(&client);
    queue_world_free(w);
}

static void test_too_many(void)
{
    struct queue_world *w = queue_world_new(1);
    g_autofree struct fake_reply *replies = g_new0(struct fake_reply, LIMIT_WATCHERS);
    struct client client;

    client_begin(&client, w, "{\"decision\": []}");
    for (guint i = 0; i < LIMIT_WATCHERS; i++)
        start(&client, 60, &replies[i]);
    queue_refuse(w, "WatchChanges", watch_args(&client, 60), FETTLE_ERROR_TEMPORARY,
                 "WatchChanges: 1024 calls wait already; try again later");
    put_decision(w, 1, "x");
    fake_advance(w->world, WATCH_GATHER_MS);
    for (guint i = 0; i < LIMIT_WATCHERS; i++) {
        g_assert_true(replies[i].done);
        g_assert_no_error(replies[i].error);
        fake_reply_clear(&replies[i]);
    }
    json_decref(ask(&client, 60, NULL));
    client_clear(&client);
    queue_world_free(w);
}

/* --- who is gone --- */

static guint given; /* answers to such requests */

static void take_answer(struct rpc_request *request, json_t *result, const GError *error)
{
    g_assert_no_error(error);
    json_decref(result);
    given++;
    rpc_request_free(request);
}

/* A call of a client that will go. `args` is stolen. */
static struct rpc_request *call_once(struct queue_world *w, const char *method, json_t *args)
{
    struct rpc_request *request = g_new0(struct rpc_request, 1);

    request->name = g_strdup(method);
    request->from_node = g_strdup(MASTER);
    request->from_role = g_strdup(ROLE_CLI);
    request->args = args;
    request->answer = take_answer;
    luxi_handle(w->luxi, request);
    return request;
}

/* Their calls are over, and others may wait in their place; also for the same job. */
static void test_gone(void)
{
    struct queue_world *w = queue_world_new(1);
    guint64 id = queue_submit(w, NULL);
    struct client client;

    given = 0;
    client_begin(&client, w, "{\"decision\": []}");
    for (guint i = 0; i < LIMIT_WATCHERS + 1; i++) {
        struct rpc_request *request = call_once(w, "WatchChanges", watch_args(&client, 60));

        g_assert_cmpuint(given, ==, i);
        rpc_request_gone(request);
    }
    for (guint i = 0; i < LIMIT_JOB_WAITERS + 1; i++) {
        struct rpc_request *request = call_once(w, "WaitForJobChange",
                                                json_make("[I, [s], [s], i, i]", (json_int_t)id,
                                                          "status", queue_status(w, id), 1000, 60));

        g_assert_cmpuint(given, ==, LIMIT_WATCHERS + 1 + i);
        rpc_request_gone(request);
    }
    queue_job_runs(w, id);
    put_decision(w, 1, "x");
    fake_advance(w->world, 100000);
    g_assert_cmpuint(given, ==, LIMIT_WATCHERS + LIMIT_JOB_WAITERS + 2);
    client_clear(&client);
    queue_world_free(w);
}

/* --- anything --- */

/* Objects by "kind key" -> row, as Query has them. */
static json_t *query_all(struct queue_world *w)
{
    static const struct {
        const char *kind, *key, *field;
    } rows[] = {{"job", "id", "status"},
                {"instance", "uuid", "be/memory"},
                {"decision", "uuid", "summary"}};
    json_t *all = json_object();

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        json_autoptr answer = queue_call(
            w, "Query", json_make("[s, [s, s], n]", rows[i].kind, rows[i].key, rows[i].field),
            &error);
        const json_t *row;
        size_t at;

        g_assert_no_error(error);
        json_array_foreach(json_object_get(answer, "data"), at, row) {
            const json_t *key = json_array_get(json_array_get(row, 0), 1);
            g_autofree char *text = json_dumps(key, JSON_ENCODE_ANY);
            g_autofree char *name = NULL;

            g_strdelimit(text, "\"", ' ');
            name = g_strdup_printf("%s %s", rows[i].kind, g_strstrip(text));
            json_object_set_new(all, name, json_make("[O]", json_array_get(row, 1)));
        }
    }
    return all;
}

struct follower {
    struct client client;
    json_t *copy;
    guint anew;
};

static void follower_look(struct follower *follower, double timeout)
{
    struct client *client = &follower->client;
    g_autoptr(GError) error = NULL;
    json_autoptr answer =
        queue_call(client->w, "WatchChanges", watch_args(client, timeout), &error);
    const json_t *change;
    size_t at;

    g_assert_no_error(error);
    g_strlcpy(client->stream, json_string_value(json_object_get(answer, "stream")),
              sizeof(client->stream));
    client->serial = json_integer_value(json_object_get(answer, "serial"));
    if (json_is_true(json_object_get(answer, "anew"))) {
        json_decref(follower->copy);
        follower->copy = query_all(client->w);
        follower->anew++;
    }
    json_array_foreach(json_object_get(answer, "changes"), at, change) {
        g_autofree char *name =
            g_strdup_printf("%s %s", json_string_value(json_array_get(change, 0)),
                            json_string_value(json_array_get(change, 1)));
        json_t *row = json_array_get(change, 2);

        if (json_is_null(row))
            json_object_del(follower->copy, name);
        else
            json_object_set(follower->copy, name, row);
    }
}

static void change_something(struct queue_world *w, GRand *random)
{
    guint number = (guint)g_rand_int_range(random, 1, 12);
    g_autofree char *uuid = decision_uuid(number);
    g_autofree char *text = g_strdup_printf("%u", g_rand_int(random));

    switch (g_rand_int_range(random, 0, 7)) {
    case 0:
        queue_submit(w, NULL);
        break;
    case 1:
    case 2:
        put_decision(w, number, text);
        break;
    case 3:
        if (store_get(w->store, "decision", uuid) != NULL)
            store_put(w->store, "decision", uuid, NULL);
        break;
    case 4:
        put_instance(w, number % 2 ? WEB1 : WEB2, number % 2 ? "web1" : "web2", number);
        break;
    case 5:
        if (store_get(w->store, "instance", WEB2) != NULL)
            store_put(w->store, "instance", WEB2, NULL);
        break;
    default:
        fake_advance(w->world, number * 20);
    }
}

static void test_anything(void)
{
    GRand *random = g_rand_new_with_seed(4711);
    struct queue_world *w = queue_world_new(1);
    struct follower follower = {0};

    follower.client = (struct client){
        w,
        g_strdup("{\"job\": [\"status\"], \"instance\": [\"be/memory\"], \"decision\": "
                 "[\"summary\"]}"),
        "", 0};
    for (guint round = 1; round <= 700; round++) {
        change_something(w, random);
        if (round % 150 == 0) {
            queue_world_kill_luxid(w);
            put_decision(w, round, "while luxid was away");
            queue_world_start_luxid(w);
        }
        if (g_rand_int_range(random, 0, 3) > 0)
            continue;
        fake_settle(w->world);
        follower_look(&follower, g_rand_boolean(random) ? 0 : 1);
        json_autoptr now = query_all(w);
        if (!json_equal(now, follower.copy))
            g_error("round %u: followed %s\nthere is %s", round,
                    json_dumps(follower.copy, JSON_SORT_KEYS), json_dumps(now, JSON_SORT_KEYS));
    }
    g_assert_cmpuint(follower.anew, ==, 5);
    g_assert_cmpuint(json_object_size(follower.copy), >, 10);
    json_decref(follower.copy);
    client_clear(&follower.client);
    g_rand_free(random);
    queue_world_free(w);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watches/begin", test_begin);
    g_test_add_func("/watches/job#LUX-33", test_job);
    g_test_add_func("/watches/instance", test_instance);
    g_test_add_func("/watch-changes/event#RCV-27", test_event);
    g_test_add_data_func("/watch-changes/volume", "volume", test_resource);
    g_test_add_data_func("/watch-changes/snapshot", "snapshot", test_resource);
    g_test_add_func("/watches/each-once", test_each_once);
    g_test_add_func("/watches/gathered", test_gathered);
    g_test_add_func("/watches/pieces", test_pieces);
    g_test_add_func("/watches/large-row", test_large_row);
    g_test_add_func("/watches/behind", test_behind);
    g_test_add_func("/watches/restart#LUX-16", test_restart);
    g_test_add_func("/watches/reset", test_reset);
    g_test_add_func("/watches/bad-input", test_bad_input);
    g_test_add_func("/watches/too-many", test_too_many);
    g_test_add_func("/watches/anything", test_anything);
    g_test_add_func("/watches/gone", test_gone);
    return g_test_run();
}
