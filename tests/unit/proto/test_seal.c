/* Tests of proto/seal.h: what was sealed comes back, and no bit of it can change unseen. */
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "proto/seal.h"

#define LONGEST 1000

static json_t *sample(void)
{
    return json_make("{s:I,s:I,s:s,s:[{s:s,s:b}]}", "epoch", (json_int_t)18, "history",
                     (json_int_t)1, "node", "nöde \"1\"", "members", "name", "node1", "offline", 1);
}

static void test_round(void)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = sample();
    g_autofree char *text = seal_to_text(json);
    g_assert_nonnull(strstr(text, "\"check\":\""));
    json_autoptr back = seal_from_text(text, strlen(text), LONGEST, &error);
    g_assert_no_error(error);
    g_assert_true(json_equal(json, back));
}

/* A file that a version before has written. */
static void test_unsealed(void)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = sample();
    g_autofree char *text = json_to_text(json);
    json_autoptr back = seal_from_text(text, strlen(text), LONGEST, &error);
    g_assert_no_error(error);
    g_assert_true(json_equal(json, back));
}

/* What a file says, without what it does not know. */
static bool says_the_same(const json_t *back, const json_t *json)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)json, name, member)
        if (!json_equal(json_object_get(back, name), member))
            return false;
    return true;
}

static void test_every_bit(void)
{
    json_autoptr json = sample();
    g_autofree char *text = seal_to_text(json);
    size_t len = strlen(text);
    guint refused = 0;
    for (size_t bit = 0; bit < len * 8; bit++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *damaged = g_memdup2(text, len);
        damaged[bit / 8] = (char)(damaged[bit / 8] ^ (1 << (bit % 8)));
        json_autoptr back = seal_from_text(damaged, len, LONGEST, &error);
        g_assert_true((back == NULL) == (error != NULL));
        /* Only the name of the checksum itself can be another one, which harms nobody. */
        g_assert_true(back == NULL || says_the_same(back, json));
        refused += back == NULL;
    }
    g_assert_cmpuint(refused, >, len * 8 - 100);
}

static void test_every_cut(void)
{
    json_autoptr json = sample();
    g_autofree char *text = seal_to_text(json);
    for (size_t len = 0; len < strlen(text); len++)
        g_assert_null(seal_from_text(text, len, LONGEST, NULL));
}

static void test_refused(void)
{
    static const struct {
        const char *text;
        enum fettle_error code;
        const char *message;
    } rows[] = {
        {"{\"a\":1,\"check\":\"0000000000000000\"}", FETTLE_ERROR_CORRUPT,
         "it does not match its checksum"},
        {"{\"a\":1,\"check\":7}", FETTLE_ERROR_CORRUPT, "it does not match its checksum"},
        {"{\"a\":1,\"check\":null}", FETTLE_ERROR_CORRUPT, "it does not match its checksum"},
        {"{\"a\":1", FETTLE_ERROR_PROTOCOL, NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(seal_from_text(rows[i].text, strlen(rows[i].text), LONGEST, &error));
        g_assert_error(error, FETTLE_ERROR, (gint)rows[i].code);
        if (rows[i].message)
            g_assert_cmpstr(error->message, ==, rows[i].message);
    }
    g_autoptr(GError) error = NULL;
    g_assert_null(seal_from_text("{\"a\":1}", 7, 6, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/seal/round", test_round);
    g_test_add_func("/seal/of-a-version-before", test_unsealed);
    g_test_add_func("/seal/every-bit#SAF-01", test_every_bit);
    g_test_add_func("/seal/every-cut#SAF-01", test_every_cut);
    g_test_add_func("/seal/refused", test_refused);
    return g_test_run();
}
