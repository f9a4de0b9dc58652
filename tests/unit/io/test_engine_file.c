/* The file etc/engine.json and the rules of its record: engine_file.c, proto/engine_config.c. */
#include "io/engine_file.h"
#include "io/files.h"
#include "world.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TOKEN "77777777-0000-4000-8000-000000000007"
#define ONE                                                                                        \
    "{\"node\":\"" NODE_A "\",\"name\":\"node1\",\"peer_url\":\"https://10.0.0.1:2380\","          \
    "\"client_url\":\"https://10.0.0.1:2379\"}"
#define TWO                                                                                        \
    "{\"node\":\"" NODE_B "\",\"name\":\"node2\",\"peer_url\":\"https://[fd00::2]:2380\","         \
    "\"client_url\":\"https://[fd00::2]:2379\",\"id\":\"d9ab1fc17ee5c650\"}"
#define ETCD(members) "{\"kind\":\"etcd\",\"token\":\"" TOKEN "\",\"members\":[" members "]}"

static struct node_paths *paths;

static char *path_of(void)
{
    return g_build_filename(paths->etc, "engine.json", NULL);
}

static struct engine_config *read_text(const char *text, GError **error)
{
    g_autofree char *path = path_of();
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return engine_file_read(paths, error);
}

static void must_refuse(const char *text, const char *why)
{
    g_autofree char *path = path_of();
    g_autofree char *whole = g_strdup_printf("%s: %s; put back the file as it was", path, why);
    g_autoptr(GError) error = NULL;
    g_assert_null(read_text(text, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_assert_cmpstr(error->message, ==, whole);
}

static void test_good(void)
{
    g_autoptr(GError) error = NULL;
    paths = world_new(NODE_A);
    record_autoptr(engine_config) none = engine_file_read(paths, &error);
    g_assert_no_error(error);
    g_assert_cmpint(none->kind, ==, ENGINE_KIND_SQLITE);
    g_assert_cmpint(none->state, ==, ENGINE_ACTIVE);

    record_autoptr(engine_config) two =
        read_text("{\"kind\":\"etcd\",\"state\":\"deciding\",\"token\":\"" TOKEN
                  "\",\"later\":[1],\"members\":[" ONE "," TWO "]}",
                  &error);
    g_assert_no_error(error);
    g_autofree char *initial = engine_initial_cluster(two);
    g_assert_cmpstr(initial, ==, "node1=https://10.0.0.1:2380,node2=https://[fd00::2]:2380");
    g_auto(GStrv) urls = engine_client_urls(two, NODE_B);
    g_assert_cmpuint(g_strv_length(urls), ==, 2);
    g_assert_cmpstr(urls[0], ==, "https://[fd00::2]:2379");
    g_assert_cmpstr(urls[1], ==, "https://10.0.0.1:2379");
    g_assert_cmpstr(engine_config_member(two, NODE_A)->name, ==, "node1");
    g_assert_null(engine_config_member(two, NODE_C));

    /* Written whole, for all to read, with what a later version has put in; and removed. */
    g_autofree char *path = path_of();
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_true(engine_file_write(paths, two, &error));
    record_autoptr(engine_config) again = engine_file_read(paths, &error);
    json_autoptr before = engine_config_to_json(two);
    json_autoptr after = engine_config_to_json(again);
    g_assert_true(json_equal(before, after));
    g_assert_nonnull(json_object_get(after, "later"));
    struct stat status;
    g_assert_cmpint(stat(path, &status), ==, 0);
    g_assert_cmpuint(status.st_mode & 0777, ==, 0644);
    g_assert_true(engine_file_remove(paths, &error));
    g_assert_true(engine_file_remove(paths, &error));
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    world_remove(paths);
}

static void test_bad(void)
{
    paths = world_new(NODE_A);
    must_refuse("{\"kind\":\"paxos\"}", "kind: must be one of sqlite, etcd");
    must_refuse("{\"kind\":\"etcd\",\"format\":2}", "format: must be at most 1");
    must_refuse("{\"kind\":\"etcd\",\"token\":\"x\"}", "token: must be a UUID for etcd, not \"x\"");
    must_refuse(ETCD(""), "members: etcd needs at least one");
    must_refuse("{\"kind\":\"sqlite\",\"members\":[" ONE "]}",
                "members: SQLite has neither members nor a token");
    must_refuse("{\"kind\":\"sqlite\",\"state\":\"deciding\"}",
                "state: SQLite is always active, not deciding");
    must_refuse(ETCD(ONE "," ONE), "members[1].node: " NODE_A " occurs twice");
    must_refuse(ETCD("{\"node\":\"" NODE_A "\",\"name\":\"n\",\"peer_url\":\"http://10.0.0.1:1\","
                     "\"client_url\":\"https://10.0.0.1:2\"}"),
                "members[0].peer_url: \"http://10.0.0.1:1\" is not https://ADDRESS:PORT");
    must_refuse(ETCD("{\"node\":\"" NODE_A "\",\"name\":\"n\",\"peer_url\":\"https://host:1\","
                     "\"client_url\":\"https://10.0.0.1:2\"}"),
                "members[0].peer_url: \"https://host:1\" is not https://ADDRESS:PORT");
    must_refuse(ETCD("{\"node\":\"" NODE_A "\",\"name\":\"n\",\"peer_url\":\"https://10.0.0.1:1\","
                     "\"client_url\":\"https://10.0.0.1:70000\"}"),
                "members[0].client_url: \"https://10.0.0.1:70000\" is not https://ADDRESS:PORT");
    must_refuse(ETCD("{\"node\":\"" NODE_A "\",\"name\":\"n\",\"peer_url\":\"https://10.0.0.1:1\","
                     "\"client_url\":\"https://10.0.0.2:2\"}"),
                "members[0].client_url: the address is 10.0.0.2, that of peer_url is 10.0.0.1; a "
                "member has one address");
    must_refuse(ETCD("{\"node\":\"" NODE_A "\",\"name\":\"n\",\"peer_url\":\"https://10.0.0.1:1\","
                     "\"client_url\":\"https://10.0.0.1:1\"}"),
                "members[0].client_url: https://10.0.0.1:1 occurs twice");
    must_refuse(ETCD(ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE),
                "members: must have at most 7 elements, has 8");
    world_remove(paths);
}

static void write_bytes(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "w");
    g_assert_nonnull(file);
    g_assert_cmpuint(fwrite(bytes, 1, length, file), ==, length);
    g_assert_cmpint(fclose(file), ==, 0);
}

/* What decides is as it was; what a flipped bit has made an unknown member counts for nothing. */
static bool is_same(const struct engine_config *a, const struct engine_config *b)
{
    g_autofree char *left = engine_initial_cluster(a);
    g_autofree char *right = engine_initial_cluster(b);
    return a->kind == b->kind && a->state == b->state && a->serial == b->serial &&
           strcmp(a->token, b->token) == 0 && strcmp(left, right) == 0;
}

/* Every bit flipped, every cut: refused with what to do next, or the very same engine. */
static void test_flipped(void)
{
    g_autoptr(GError) error = NULL;
    paths = world_new(NODE_A);
    record_autoptr(engine_config) good =
        read_text("{\"kind\":\"etcd\",\"state\":\"deciding\",\"serial\":35,\"token\":\"" TOKEN
                  "\",\"members\":[" ONE "," TWO "]}",
                  &error);
    g_assert_no_error(error);
    g_assert_cmpuint(good->serial, ==, 35);
    g_assert_true(engine_file_write(paths, good, &error));
    g_autofree char *path = path_of();
    g_autofree char *text = NULL;
    gsize length = 0;
    guint refused = 0, same = 0;
    g_assert_true(g_file_get_contents(path, &text, &length, NULL));
    for (gsize bit = 0; bit < 9 * length; bit++) {
        gsize cut = bit < 8 * length ? length : bit - 8 * length;
        g_autofree char *bad = g_memdup2(text, length);
        g_autoptr(GError) why = NULL;
        if (bit < 8 * length)
            bad[bit / 8] ^= (char)(1 << bit % 8);
        write_bytes(path, bad, cut);
        record_autoptr(engine_config) config = engine_file_read(paths, &why);
        if (config) {
            g_assert_true(is_same(config, good));
            same++;
            continue;
        }
        g_assert_error(why, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
        g_assert_true(g_str_has_prefix(why->message, path));
        g_assert_true(g_str_has_suffix(why->message, "; put back the file as it was"));
        refused++;
    }
    g_test_message("%u refused, %u the same", refused, same);
    g_assert_cmpuint(refused, >, 8 * length);
    world_remove(paths);
}

static void test_damaged(void)
{
    paths = world_new(NODE_A);
    g_autoptr(GError) error = NULL;
    g_autofree char *large = g_strnfill(LIMIT_ENGINE_FILE_BYTES + 1, ' ');
    g_assert_null(read_text("{\"kind\":\"et", &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_clear_error(&error);
    g_assert_null(read_text(large, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
    g_clear_error(&error);

    /* What may not be written leaves what was there. */
    record_autoptr(engine_config) good = read_text(ETCD(ONE), &error);
    record_autoptr(engine_config) bad = engine_config_copy(good);
    g_ptr_array_set_size(bad->members, 0);
    g_assert_false(engine_file_write(paths, bad, &error));
    assert_error(&error, WRONG_INPUT, "members: etcd needs at least one");
    record_autoptr(engine_config) still = engine_file_read(paths, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(still->members->len, ==, 1);
    world_remove(paths);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/engine-file/good", test_good);
    g_test_add_func("/engine-file/bad", test_bad);
    g_test_add_func("/engine-file/damaged", test_damaged);
    g_test_add_func("/engine-file/every-bit#SAF-01", test_flipped);
    return g_test_run();
}
