/* Values in etcd: how they may be written, and bits that have flipped in the file of a member.
 * etcd_value.c, etcd_load.c, etcd_engine.c, etcd_leave.c. */
#include "etcd_world.h"

#include <string.h>

#include "io/etcd/etcd_value.h"
#include "proto/seal.h"

/* --- values --- */

static const char *value_put; /* of the key o/tag/v */

static bool put_value(struct fixture *fixture, GError **error)
{
    json_t *puts = json_make("[o]", etcd_put("/fettle/" CLUSTER "/o/tag/v", value_put, 0));
    json_t *answer = etcd_call_wait(fixture->client, "/v3/kv/txn",
                                    etcd_txn(json_array(), puts, NULL), CALL_MS, error);
    json_decref(answer);
    return answer != NULL;
}

/* However a value is written, it is read; what is none is refused with its key. */
static void test_values(struct fixture *fixture, gconstpointer unused)
{
    static const char *const good[] = {
        "{\"object\":{\"id\":\"x\"},\"version\":5}",
        "{\"version\":5,\"object\":{\"id\":\"x\"}}",
        " { \"object\" : { \"id\" : \"x\" } , \"version\" : 5 } ",
        "{\"more\":[1,2],\"object\":{\"id\":\"x\"},\"version\":5}",
    };
    static const char *const bad[] = {
        "{\"object\":{\"id\":\"x\"},\"version\":0}",
        "{\"object\":{\"id\":\"x\"},\"version\":-5}",
        "{\"object\":{\"id\":\"x\"},\"version\":99999999999999999999}",
        "{\"object\":{\"id\":\"x\"},\"version\":5",
        "{\"object\":{\"id\":\"x\",\"version\":5}",
        "{\"object\":{\"id\":\"x\"}",
        "{\"object\":,\"version\":5}",
        "{\"object\":{\"id\":\"x\"},\"version\":4,\"version\":5}",
        "",
    };
    g_autoptr(GError) error = NULL;

    g_assert_true(run_step(fixture, campaign, &error));
    for (guint i = 0; i < G_N_ELEMENTS(good); i++) {
        value_put = good[i];
        g_assert_true(run_step(fixture, put_value, &error));
        g_assert_true(run_step(fixture, load, &error));
        g_assert_cmpstr(loaded.text->str, ==, "tag v 5 {\"id\":\"x\"}\n");
    }
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        value_put = bad[i];
        g_assert_true(run_step(fixture, put_value, &error));
        g_assert_false(run_step(fixture, load, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
        g_assert_cmpstr(error->message, ==,
                        "etcd: the value of /fettle/" CLUSTER
                        "/o/tag/v cannot be read; restore a backup");
        g_clear_error(&error);
    }
}

static char *told; /* of damaged data */
static guint times_told;

static void tell_damaged(const char *what)
{
    g_free(told);
    told = g_strdup(what);
    times_told++;
}

static const char *key_put;

static bool put_key(struct fixture *fixture, GError **error)
{
    json_t *puts = json_make("[o]", etcd_put(key_put, value_put, 0));
    json_t *answer = etcd_call_wait(fixture->client, "/v3/kv/txn",
                                    etcd_txn(json_array(), puts, NULL), CALL_MS, error);
    json_decref(answer);
    return answer != NULL;
}

/* A bit of what is stored has flipped in the file of a member, which answers it. */
static void test_damaged(struct fixture *fixture, gconstpointer unused)
{
    static const char *const keys[] = {"o/tag/v", "head", "epoch_base"};
    json_autoptr object = json_make("{s:s}", "id", "x");
    g_autofree char *whole = etcd_object_text("tag", "v", 5, object);
    g_autofree char *count = etcd_count_text("epoch_base", 100);
    struct etcd_head head = {.history = 4, .serial = 7, .batch = "b"};
    g_autofree char *head_text = etcd_head_text(&head);
    const char *const values[] = {whole, head_text, count};
    g_autoptr(GError) error = NULL;

    etcd_engine_on_damaged(fixture->engine, tell_damaged);
    g_assert_true(run_step(fixture, campaign, &error));
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *key = g_strconcat("/fettle/" CLUSTER "/", keys[i], NULL);
        g_autofree char *wrong = g_strdup(values[i]);
        *strpbrk(wrong, "x45107") ^= 1;
        key_put = key;
        value_put = values[i];
        g_assert_true(run_step(fixture, put_key, &error));
        g_assert_true(run_step(fixture, i == 2 ? observe : load, &error));
        value_put = wrong;
        g_assert_true(run_step(fixture, put_key, &error));
        times_told = 0;
        g_assert_false(run_step(fixture, i == 2 ? observe : load, &error));
        g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_CORRUPT);
        g_assert_nonnull(strstr(error->message, key));
        g_assert_cmpuint(times_told, ==, 1);
        g_assert_nonnull(strstr(told, key));
        g_assert_nonnull(strstr(told, fixture->client_url));
        g_assert_null(strstr(told, "another member")); /* there is none */
        g_assert_nonnull(strstr(told, "restore a backup"));
        g_clear_error(&error);
        value_put = values[i];
        g_assert_true(run_step(fixture, put_key, &error));
    }
    g_assert_true(run_step(fixture, load, &error));
    g_assert_cmpstr(loaded.text->str, ==, "tag v 5 {\"id\":\"x\"}\n");
    g_clear_pointer(&told, g_free);
}

/* --- two members, of which one has a bit that has flipped --- */

static char *value_got; /* of the key `key_put` */
static char *value_whole;

static bool get_key(struct fixture *fixture, GError **error)
{
    json_autoptr answer =
        etcd_call_wait(fixture->client, ETCD_RANGE, etcd_range(key_put), CALL_MS, error);
    g_autoptr(GPtrArray) kvs = answer != NULL ? etcd_kvs(answer, NULL, error) : NULL;
    if (kvs == NULL)
        return false;
    g_assert_cmpuint(kvs->len, ==, 1);
    g_free(value_got);
    value_got = g_strdup(((const struct etcd_kv *)kvs->pdata[0])->value);
    return true;
}

static struct mastership observed;

static bool observe_master(struct fixture *fixture, GError **error)
{
    return fixture->engine->ops->observe(fixture->engine, &observed, error);
}

static struct engine_left left_to;

static bool ask_left(struct fixture *fixture, GError **error)
{
    return fixture->engine->ops->left(fixture->engine, &left_to, error);
}

static void put_value_of(struct fixture *fixture, const char *name, const char *value)
{
    g_autofree char *key = g_strconcat("/fettle/" CLUSTER "/", name, NULL);
    g_autoptr(GError) error = NULL;
    key_put = key;
    value_put = value;
    g_assert_true(run_step(fixture, put_key, &error));
}

/* Flips the last letter of the mark in the value that `first` has; `second` puts it again as it is,
 * so that both are at one revision. */
static void flip_at(struct fixture *first, struct fixture *second, const char *name,
                    const char *mark)
{
    g_autofree char *key = g_strconcat("/fettle/" CLUSTER "/", name, NULL);
    g_autoptr(GError) error = NULL;
    key_put = key;
    g_assert_true(run_step(second, get_key, &error));
    put_value_of(second, name, value_got);
    g_free(value_whole);
    value_whole = g_strdup(value_got);
    char *at = strstr(value_got, mark);
    g_assert_nonnull(at);
    at[strlen(mark) - 1] ^= 1;
    put_value_of(first, name, value_got);
}

static void open_both(struct fixture *both, const struct fixture *first,
                      const struct fixture *second)
{
    const char *urls[] = {first->client_url, second->client_url, NULL};
    g_autoptr(GError) error = NULL;
    both->client =
        etcd_client_new(&(struct etcd_options){.urls = urls, .member_ms = CALL_MS}, &error);
    g_assert_no_error(error);
    both->engine = etcd_engine_new(both->client, CLUSTER);
    etcd_engine_set_lease(both->engine, LEASE_S);
    etcd_engine_on_damaged(both->engine, tell_damaged);
    times_told = 0;
}

static const struct {
    const char *name, *mark;
    bool (*read)(struct fixture *fixture, GError **error);
} flips[] = {
    {"o/node/n7", "\"number\":7", load},    {"head", "\"serial\":7", load},
    {"c/00000000000000000007", ",7", load}, {"i/00000000000000000006", "before-6", load},
    {"epoch_base", "100", observe_master},  {"master", "boot1", observe_master},
    {"moved", "\"serial\":7", ask_left},
};

/* Whatever a master believes: what one member answers wrongly is said, and asked of the other. */
static void test_next_member(struct fixture *fixture, gconstpointer unused)
{
    struct fixture second = {.paths = fixture->paths}, both = {0};
    g_autofree char *master = NULL, *moved = NULL;
    json_autoptr seat =
        json_make("{s:s,s:s,s:s}", "node", NODE_A, "boot_id", "boot1", "journal_id", JOURNAL);
    json_autoptr step =
        json_make("{s:s,s:i,s:i,s:i}", "node", NODE_B, "history", 4, "epoch", 101, "serial", 7);
    g_autoptr(GError) error = NULL;

    fill_member(&second, "etcd2");
    master = seal_to_text(seat);
    moved = seal_to_text(step);
    put_value_of(fixture, "master", master);
    put_value_of(&second, "master", master);
    put_value_of(fixture, "moved", moved);
    put_value_of(&second, "moved", moved);
    for (guint i = 0; i < G_N_ELEMENTS(flips); i++) {
        flip_at(fixture, &second, flips[i].name, flips[i].mark);
        open_both(&both, fixture, &second);
        bool read = run_step(&both, flips[i].read, &error);
        g_assert_no_error(error);
        g_assert_true(read);
        g_assert_cmpuint(times_told, ==, 1);
        g_assert_nonnull(strstr(told, flips[i].name));
        g_assert_nonnull(strstr(told, fixture->client_url));
        if (flips[i].read == load) {
            g_assert_cmpuint(loaded_serial, ==, 7);
            guint64 epoch = 0;
            g_assert_cmpuint(both.engine->ops->log_from(both.engine, &epoch), ==, 6);
            g_assert_cmpuint(both.engine->ops->lookup(both.engine, "before-6"), ==, 6);
        }
        close_engine(&both);
        put_value_of(fixture, flips[i].name, value_whole);
        put_value_of(&second, flips[i].name, value_whole);
    }
    g_assert_cmpstr(observed.boot_id, ==, "boot1");
    g_assert_cmpuint(left_to.serial, ==, 7);
    g_clear_pointer(&told, g_free);
    g_clear_pointer(&value_got, g_free);
    g_clear_pointer(&value_whole, g_free);
    end_member(&second);
}

/* Whichever bit of a value flips: it is not sound, or it says the same still. */
static void test_flips(void)
{
    json_autoptr object = json_make("{s:s}", "id", "x");
    g_autofree char *whole = etcd_object_text("tag", "v", 5, object);
    for (size_t i = 0; i < strlen(whole) * 8; i++) {
        g_autofree char *wrong = g_strdup(whole);
        guint64 version = 0;
        wrong[i / 8] = (char)(wrong[i / 8] ^ (1 << (i % 8)));
        if (!etcd_object_sound("tag/v", wrong))
            continue;
        g_autofree char *text = etcd_object_parse(wrong, &version);
        g_assert_cmpstr(text, ==, "{\"id\":\"x\"}");
        g_assert_cmpuint(version, ==, 5);
    }
}

/* The same of a list; and a version before finds every item of it, and passes over the checksum. */
static void test_list_flips(void)
{
    json_autoptr list = json_make("[[s,i],{s:s,s:i}]", "x", 5, "deleted", "tag/v", "serial", 5);
    g_autofree char *whole = etcd_list_text("c/5", list);
    g_assert_true(etcd_list_sound("c/5", whole));
    g_assert_false(etcd_list_sound("c/4", whole));
    json_autoptr read = json_loads(whole, 0, NULL);
    g_assert_cmpuint(json_array_size(read), ==, 3);
    const char *text;
    json_int_t number;
    json_t *check = json_array_get(read, 2);
    g_assert_cmpint(json_unpack(check, "[s, I]", &text, &number), !=, 0);
    g_assert_cmpint(json_unpack(check, "{s:s, s:I}", "deleted", &text, "serial", &number), !=, 0);
    for (size_t i = 0; i < strlen(whole) * 8; i++) {
        g_autofree char *wrong = g_strdup(whole);
        wrong[i / 8] = (char)(wrong[i / 8] ^ (1 << (i % 8)));
        if (!etcd_list_sound("c/5", wrong))
            continue;
        json_autoptr items = json_loads(wrong, 0, NULL);
        g_assert_cmpuint(json_array_size(items), ==, 3);
        g_assert_true(json_equal(json_array_get(items, 0), json_array_get(list, 0)));
        g_assert_true(json_equal(json_array_get(items, 1), json_array_get(list, 1)));
    }
    g_assert_true(etcd_list_sound("c/5", "[[\"x\",5]]")); /* of a version before */
    g_assert_false(etcd_list_sound("c/5", "[[\"x\",5]"));
}

/* A blank that has lost its bit is an end of the text to C, and no word about the other keys. */
static void test_zero(void)
{
    json_autoptr object = json_make("{s:s}", "id", "x y");
    g_autofree char *whole = etcd_object_text("tag", "v", 5, object);
    size_t len = strlen(whole);
    *strchr(whole, ' ') = '\0';
    g_autofree char *base64 = g_base64_encode((const guchar *)whole, len);
    json_autoptr answer = json_make("{s:[{s:s, s:s, s:i, s:i}]}", "kvs", "key", "by8=", "value",
                                    base64, "create_revision", 1, "mod_revision", 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) kvs = etcd_kvs(answer, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(kvs->len, ==, 1);
    const struct etcd_kv *kv = kvs->pdata[0];
    g_assert_cmpstr(kv->key, ==, "o/");
    g_assert_false(etcd_object_sound("tag/v", kv->value));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add("/etcd/values#SAF-04", struct fixture, NULL, set_up, test_values, tear_down);
    g_test_add("/etcd/damaged-values#SAF-04,SAF-07", struct fixture, NULL, set_up, test_damaged,
               tear_down);
    g_test_add("/etcd/next-member#SAF-01,SAF-04,SAF-07", struct fixture, NULL, set_up,
               test_next_member, tear_down);
    g_test_add_func("/etcd/flips#SAF-07", test_flips);
    g_test_add_func("/etcd/list-flips#SAF-07", test_list_flips);
    g_test_add_func("/etcd/zero#SAF-07", test_zero);
    return g_test_run();
}
