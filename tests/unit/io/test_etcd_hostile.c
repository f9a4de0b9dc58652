/*
 * A member of etcd that answers what none does: answers without an end, too large, of another form,
 * drop by drop, with control characters, keys that nobody asked for, values that are no
 * configuration. Whoever asks gets an error that says so, in its time, and nothing of it is kept.
 *
 * The member is a thread of this process with an HTTP server of a few lines.
 */
#include "etcd_world.h"

#include "base/limits.h"
#include "base/task.h"
#include "io/etcd/etcd_client.h"
#include "io/etcd/etcd_value.h"
#include "proto/change.h"

#include <gio/gio.h>
#include <string.h>

static struct {
    /* What is answered to a path and a body, byte for byte; NULL: silence. */
    GBytes *(*answer)(const char *path, json_t *body);
    const char *repeated; /* behind it, again and again … */
    guint pause_ms;       /* … with a pause between */
    GSocketService *service;
    guint16 port;
} member;

/* --- the member --- */

static GBytes *http(const char *status, const char *body)
{
    char *text = g_strdup_printf("HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                                 "Content-Length: %zu\r\n\r\n%s",
                                 status, strlen(body), body);
    return g_bytes_new_take(text, strlen(text));
}

/* One request; NULL: there is none any more. */
static json_t *read_request(GDataInputStream *in, char **ret_path)
{
    g_autofree char *first = g_data_input_stream_read_line(in, NULL, NULL, NULL);
    size_t len = 0;
    if (!first)
        return NULL;
    for (;;) {
        g_autofree char *line = g_data_input_stream_read_line(in, NULL, NULL, NULL);
        if (!line || !*g_strstrip(line))
            break;
        if (g_ascii_strncasecmp(line, "content-length:", 15) == 0)
            len = g_ascii_strtoull(line + 15, NULL, 10);
    }
    g_autofree char *text = g_malloc0(len + 1);
    g_auto(GStrv) words = g_strsplit(first, " ", 3);
    *ret_path = g_strdup(words[1]);
    g_input_stream_read_all(G_INPUT_STREAM(in), text, len, NULL, NULL, NULL);
    return json_parse_limited(text, len, MIB(1), NULL);
}

static gboolean serve_cb(GThreadedSocketService *service, GSocketConnection *connection,
                         GObject *source, void *data)
{
    GOutputStream *out = g_io_stream_get_output_stream(G_IO_STREAM(connection));
    g_autoptr(GDataInputStream) in =
        g_data_input_stream_new(g_io_stream_get_input_stream(G_IO_STREAM(connection)));
    g_data_input_stream_set_newline_type(in, G_DATA_STREAM_NEWLINE_TYPE_CR_LF);
    for (;;) {
        g_autofree char *path = NULL;
        json_autoptr body = read_request(in, &path);
        g_autoptr(GBytes) answer = body ? member.answer(path, body) : NULL;
        size_t len = 0;
        const void *bytes = answer ? g_bytes_get_data(answer, &len) : NULL;
        if (!answer || !g_output_stream_write_all(out, bytes, len, NULL, NULL, NULL))
            return TRUE;
        while (member.repeated &&
               g_output_stream_write_all(out, member.repeated, strlen(member.repeated), NULL, NULL,
                                         NULL))
            g_usleep(member.pause_ms * 1000);
    }
}

static void begin_member(void)
{
    member.service = g_threaded_socket_service_new(20);
    member.port =
        g_socket_listener_add_any_inet_port(G_SOCKET_LISTENER(member.service), NULL, NULL);
    g_assert_cmpuint(member.port, !=, 0);
    g_signal_connect(member.service, "run", G_CALLBACK(serve_cb), NULL);
}

static struct etcd_client *client_new(guint member_ms)
{
    g_autofree char *url = g_strdup_printf("http://localhost:%u", member.port);
    const char *urls[] = {url, NULL};
    g_autoptr(GError) error = NULL;
    struct etcd_client *client =
        etcd_client_new(&(struct etcd_options){.urls = urls, .member_ms = member_ms}, &error);
    g_assert_no_error(error);
    return client;
}

/* --- answers to a client --- */

static GBytes *canned; /* stolen by ask() */

static GBytes *answer_canned(const char *path, json_t *body)
{
    return g_bytes_ref(canned);
}

struct asked {
    bool done;
    GError *error;
};

static void asked_cb(json_t *answer, const GError *error, void *data)
{
    struct asked *asked = data;
    asked->done = true;
    g_assert_null(answer);
    asked->error = g_error_copy(error);
}

/* What a range is answered with; the error, to be freed. */
static GError *ask(guint member_ms)
{
    struct asked asked = {0};
    struct etcd_client *client = client_new(member_ms);
    member.answer = answer_canned;
    etcd_call(client, ETCD_RANGE, json_object(), 60000, asked_cb, &asked);
    world_wait(&asked.done);
    etcd_client_free(client);
    world_pause(1);
    g_clear_pointer(&canned, g_bytes_unref);
    member.repeated = NULL;
    return asked.error;
}

static GBytes *text_bytes(const char *text)
{
    return g_bytes_new_static(text, strlen(text));
}

#define HEAD(more) "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" more "\r\n\r\n"

static void test_endless(void)
{
    g_autofree char *much = g_strnfill(MIB(1), ' ');
    canned = text_bytes(HEAD("Content-Length: 99999999999"));
    member.repeated = much;
    GError *error = ask(60000);
    assert_error(&error, LIMIT, "etcd's answer to /v3/kv/range has more than 67108864 bytes");

    /* One byte after the other, for ever: in the body, and before it. */
    canned = text_bytes(HEAD("Content-Length: 99999999999"));
    member.pause_ms = 5;
    member.repeated = " ";
    error = ask(300);
    assert_error(&error, UNKNOWN_RESULT, ": no answer in time");
    canned = text_bytes("HTTP/1.1 200 OK\r\n");
    member.repeated = "X-More: yes\r\n";
    error = ask(300);
    assert_error(&error, UNKNOWN_RESULT, ": no answer in time");
    member.pause_ms = 0;
}

/* More than is taken, in a hundredth of it. */
static void test_compressed(void)
{
    g_autoptr(GZlibCompressor) compressor = g_zlib_compressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP, 9);
    g_autofree char *much = g_strnfill(2 * LIMIT_ETCD_ANSWER_BYTES, ' ');
    g_autoptr(GInputStream) plain =
        g_memory_input_stream_new_from_data(much, (gssize)strlen(much), NULL);
    g_autoptr(GInputStream) packed = g_converter_input_stream_new(plain, G_CONVERTER(compressor));
    g_autoptr(GOutputStream) all = g_memory_output_stream_new_resizable();
    g_output_stream_splice(all, packed, G_OUTPUT_STREAM_SPLICE_CLOSE_TARGET, NULL, NULL);
    g_autoptr(GBytes) bytes = g_memory_output_stream_steal_as_bytes(G_MEMORY_OUTPUT_STREAM(all));
    g_assert_cmpuint(g_bytes_get_size(bytes), <, MIB(1));
    g_autofree char *head = g_strdup_printf(HEAD("Content-Encoding: gzip\r\nContent-Length: %zu"),
                                            g_bytes_get_size(bytes));
    g_autoptr(GByteArray) whole = g_byte_array_new();
    g_byte_array_append(whole, (const guint8 *)head, (guint)strlen(head));
    g_byte_array_append(whole, g_bytes_get_data(bytes, NULL), (guint)g_bytes_get_size(bytes));
    canned = g_bytes_new(whole->data, whole->len);
    GError *error = ask(60000);
    assert_error(&error, LIMIT, "etcd's answer to /v3/kv/range has more than 67108864 bytes");
}

static void refused(const char *status, const char *body, enum fettle_error code, const char *what)
{
    canned = http(status, body);
    GError *error = ask(10000);
    assert_error_at(&error, code, what, body);
}

static void test_forms(void)
{
    g_autofree char *deep = g_strnfill(100000, '[');
    g_autofree char *long_words = g_strnfill(MIB(2), 'x');
    g_autofree char *many = g_strdup_printf("{\"code\": 3, \"message\": \"%s\"}", long_words);
    refused("200 OK", "", FETTLE_ERROR_PROTOCOL, "etcd's answer to /v3/kv/range: ");
    refused("200 OK", "garbage", FETTLE_ERROR_PROTOCOL,
            "etcd's answer to /v3/kv/range: broken JSON at byte 7");
    refused("200 OK", deep, FETTLE_ERROR_LIMIT, "JSON is nested deeper than 32 levels");
    refused("400 Bad Request", "{\"code\": 3, \"message\": \"a\\u001b[2J\"}", FETTLE_ERROR_PROTOCOL,
            "etcd refused /v3/kv/range: a\x1b[2J (HTTP 400)"); /* shown where it is printed */
    refused("400 Bad Request", "{\"code\": \"3\", \"message\": [1]}", FETTLE_ERROR_PROTOCOL,
            "etcd refused /v3/kv/range: no reason given (HTTP 400)");
    refused("500 Internal Server Error", "[1]", FETTLE_ERROR_UNKNOWN_RESULT,
            ": no reason given (HTTP 500)");
    refused("200 Fine\r\nLocation: http://127.0.0.1:1/", "5", FETTLE_ERROR_PROTOCOL,
            "etcd's answer to /v3/kv/range: ");
    refused("307 Elsewhere\r\nLocation: http://127.0.0.1:1/", "{}", FETTLE_ERROR_PROTOCOL,
            "etcd refused /v3/kv/range: no reason given (HTTP 307)");
    canned = http("400 Bad Request", many);
    g_autoptr(GError) error = ask(10000);
    g_assert_cmpuint(strlen(error->message), <, KIB(1));
}

/* --- answers to the engine --- */

static const char *key_of_master, *pages; /* what is answered; NULL: what is right */
static guint asked_pages;

static char *base64(const char *text)
{
    return g_base64_encode((const guchar *)text, strlen(text));
}

static char *kv_text(const char *key, const char *value)
{
    g_autofree char *k = base64(key), *v = base64(value);
    return g_strdup_printf("{\"key\": \"%s\", \"value\": \"%s\", \"create_revision\": \"1\", "
                           "\"mod_revision\": \"1\"}",
                           k, v);
}

static char *own_key(const char *name)
{
    return g_strdup_printf("/fettle/" CLUSTER "/%s", name);
}

static GBytes *answer_txn(void)
{
    g_autofree char *own = own_key("master");
    g_autofree char *kv = kv_text(key_of_master ? key_of_master : own, "garbage");
    g_autofree char *text =
        g_strdup_printf("{\"succeeded\": true, \"responses\": [{\"response_range\": {\"kvs\": "
                        "[%s]}}, {\"response_range\": {}}, {\"response_range\": {}}, "
                        "{\"response_range\": {}}]}",
                        kv);
    return http("200 OK", text);
}

static GBytes *answer_engine(const char *path, json_t *body)
{
    if (strcmp(path, ETCD_TXN) == 0)
        return answer_txn();
    g_autofree char *head_key = own_key("head");
    g_autofree char *head_word = base64(head_key);
    g_autofree char *kv = NULL;
    if (g_strcmp0(json_string_value(json_object_get(body, "key")), head_word) == 0) {
        struct etcd_head head = {.history = 4, .serial = 7, .batch = "b"};
        g_autofree char *value = etcd_head_text(&head);
        kv = kv_text(head_key, value);
    } else {
        asked_pages++;
        kv = g_strdup(pages);
    }
    g_autofree char *text = g_strdup_printf(
        "{\"header\": {\"revision\": \"9\"}, \"kvs\": [%s], \"more\": true, \"count\": \"1\"}", kv);
    return http("200 OK", text);
}

static void open_against_it(struct fixture *fixture)
{
    fixture->client_url = g_strdup_printf("http://localhost:%u", member.port);
    member.answer = answer_engine;
    open_engine(fixture, NODE_A, "boot1");
}

static void close_against_it(struct fixture *fixture)
{
    close_engine(fixture);
    g_free(fixture->client_url);
    world_pause(1);
}

/* A key that is shorter than what ours begin with, another one of ours, and none of ours. */
static void test_other_keys(void)
{
    static const char *const keys[] = {NULL, "x", "/fettle/" CLUSTER "/moved", "/fettle/" CLUSTER};
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        struct fixture fixture = {0};
        g_autoptr(GError) error = NULL;
        key_of_master = keys[i];
        open_against_it(&fixture);
        bool seen = run_step(&fixture, observe, &error);
        g_assert_false(seen);
        g_assert_cmpstr(fettle_error_name(error), ==, "corrupt");
        g_assert_nonnull(strstr(error->message, " is no mastership: garbage"));
        close_against_it(&fixture);
    }
}

static void load_refused(const char *page, const char *name, const char *message)
{
    struct fixture fixture = {0};
    g_autoptr(GError) error = NULL;
    pages = page;
    open_against_it(&fixture);
    bool taken = run_step(&fixture, load, &error);
    g_assert_false(taken);
    g_assert_cmpstr(fettle_error_name(error), ==, name);
    g_assert_cmpstr(error->message, ==, message);
    g_assert_cmpuint(loaded.count, ==, 0);
    close_against_it(&fixture);
}

static void test_pages(void)
{
#define PREFIX "/fettle/" CLUSTER "/"
    static const char *const strange[] = {"x", PREFIX "p/x", "/zzz", PREFIX "o"};
    for (guint i = 0; i < G_N_ELEMENTS(strange); i++) {
        g_autofree char *kv = kv_text(strange[i], "{}");
        g_autofree char *message = g_strdup_printf(
            "etcd answered the key %s, which is not below " PREFIX "o/", strange[i]);
        load_refused(kv, "protocol_error", message);
    }
    g_autofree char *garbage = kv_text(PREFIX "o/node/x", "garbage");
    load_refused(garbage, "corrupt",
                 "etcd: the value of " PREFIX "o/node/x cannot be read; restore a backup");
    load_refused("5", "protocol_error", "etcd answered a key that cannot be read");
    load_refused("{\"key\": \"\\u0000\"}", "protocol_error",
                 "etcd's answer to /v3/kv/range: broken JSON at byte 54 (line 1): \\u0000 is not "
                 "allowed without JSON_ALLOW_NUL near '\"\\u0000\"'");
}

/* The same page again and again, whatever is asked: it ends with the second. */
static void test_endless_pages(void)
{
    json_autoptr object = json_object();
    g_autofree char *value = etcd_object_text("node", "x", 1, object);
    g_autofree char *kv = kv_text(PREFIX "o/node/x", value);
    asked_pages = 0;
    struct fixture fixture = {0};
    g_autoptr(GError) error = NULL;
    pages = kv;
    open_against_it(&fixture);
    bool taken = run_step(&fixture, load, &error);
    g_assert_false(taken);
    g_assert_cmpstr(error->message, ==, "etcd answered the key " PREFIX "o/node/x out of order");
    g_assert_cmpuint(asked_pages, ==, 2);
    close_against_it(&fixture);
}

/* --- transactions that arrive late --- */

/* The key `head` alone: transactions that expect its revision write it. */
static struct {
    char *value; /* base64 */
    gint64 revision;
    json_t *held; /* a transaction that was answered "not known" */
    guint txns;
} small;

/* Whether it was done. */
static bool small_apply(const json_t *txn)
{
    json_t *compares = json_object_get(txn, "compare"), *operation;
    size_t i = 0;
    g_autofree char *key = own_key("head");
    g_autofree char *name = base64(key);
    json_array_foreach(compares, i, operation) {
        if (strcmp(json_string_value(json_object_get(operation, "key")), name) == 0 &&
            etcd_number(operation, "mod_revision") != small.revision)
            return false;
    }
    json_array_foreach(json_object_get(txn, "success"), i, operation) {
        const json_t *put = json_object_get(operation, "request_put");
        if (g_strcmp0(json_string_value(json_object_get(put, "key")), name) != 0)
            continue;
        g_free(small.value);
        small.value = g_strdup(json_string_value(json_object_get(put, "value")));
    }
    small.revision++;
    return true;
}

/* The batch is lost; of those that fence it out the first one is done when the second comes. */
static GBytes *answer_late(const char *path, json_t *body)
{
    bool done = false;
    if (strcmp(path, ETCD_TXN) == 0 && ++small.txns <= 2) {
        if (small.txns == 2)
            small.held = json_incref(body);
        return http("503 Service Unavailable", "{\"code\": 14, \"message\": \"not known\"}");
    }
    if (strcmp(path, ETCD_TXN) == 0) {
        if (small.held != NULL)
            g_assert_true(small_apply(small.held));
        g_clear_pointer(&small.held, json_decref);
        done = small_apply(body);
    }
    g_autofree char *key = own_key("head");
    g_autofree char *name = base64(key);
    g_autofree char *kvs = g_strdup_printf(
        "\"kvs\": [{\"key\": \"%s\", \"value\": \"%s\", \"create_revision\": \"1\", "
        "\"mod_revision\": \"%" G_GINT64_FORMAT "\"}]",
        name, small.value, small.revision);
    g_autofree char *text =
        strcmp(path, ETCD_RANGE) == 0
            ? g_strdup_printf("{\"header\": {\"revision\": \"%" G_GINT64_FORMAT "\"}, %s}",
                              small.revision, kvs)
            : g_strdup_printf("{\"header\": {\"revision\": \"%" G_GINT64_FORMAT
                              "\"}, \"succeeded\": "
                              "%s, \"responses\": [{\"response_range\": {%s}}]}",
                              small.revision, done ? "true" : "false", kvs);
    return http("200 OK", text);
}

struct told {
    bool done;
    enum engine_result result;
    char *why;
};

static void told_cb(enum engine_result result, const GError *error, void *data)
{
    *(struct told *)data =
        (struct told){true, result, error != NULL ? g_strdup(error->message) : NULL};
}

static void test_late_fence(void)
{
    struct fixture fixture = {0};
    struct told told = {0};
    struct etcd_head head = {.revision = 5, .history = 4, .serial = 7, .batch = "b"};
    g_autofree char *text = etcd_head_text(&head);
    small.value = base64(text);
    small.revision = head.revision;
    open_against_it(&fixture);
    member.answer = answer_late;
    struct etcd_engine *engine = (struct etcd_engine *)fixture.engine;
    engine->created = engine->taken = 1;
    engine->head = head;
    engine->held_until_ms = loop_boot_ms() + 600000;
    g_autoptr(GPtrArray) changes = change_list_new();
    g_ptr_array_add(changes, change_make(CHANGE_PUT, "tag", "a", 8, json_object()));
    fixture.engine->ops->commit(fixture.engine, &(struct engine_commit){"c8", 1, 8, changes},
                                told_cb, &told);
    world_wait(&told.done);
    g_assert_cmpstr(told.why, ==, NULL);
    g_assert_cmpint(told.result, ==, ENGINE_DONE);
    g_assert_cmpuint(small.txns, ==, 5); /* lost, fenced out twice, and once more, anew */
    close_against_it(&fixture);
    g_free(small.value);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    begin_member();
    g_test_add_func("/etcd-hostile/endless", test_endless);
    g_test_add_func("/etcd-hostile/compressed", test_compressed);
    g_test_add_func("/etcd-hostile/forms#SAF-108", test_forms);
    g_test_add_func("/etcd-hostile/other-keys", test_other_keys);
    g_test_add_func("/etcd-hostile/pages", test_pages);
    g_test_add_func("/etcd-hostile/endless-pages", test_endless_pages);
    g_test_add_func("/etcd-hostile/late-fence#SAF-04", test_late_fence);
    int failed = g_test_run();
    if (loaded.text)
        g_string_free(g_steal_pointer(&loaded.text), TRUE);
    g_socket_service_stop(member.service);
    g_object_unref(member.service);
    return failed;
}
