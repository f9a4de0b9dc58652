/* Tests of base/json.h: what untrusted bytes may be, and how the rest is refused. */
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#include <string.h>

static void refused(const char *text, size_t len, enum fettle_error code, const char *message)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = json_parse_limited(text, len, 1000, &error);
    g_assert_null(json);
    g_assert_error(error, FETTLE_ERROR, (int)code);
    g_assert_cmpstr(error->message, ==, message);
}

#define PROTOCOL_REFUSED(text, message) refused(text, strlen(text), FETTLE_ERROR_PROTOCOL, message)

static void test_good(void)
{
    g_autoptr(GError) error = NULL;
    const char *text = " {\"b\": [1, 2.5, true, null], \"a\": \"x\\\"[{\"} ";
    json_autoptr json = json_parse_limited(text, strlen(text), strlen(text), &error);
    g_assert_no_error(error);
    g_autofree char *again = json_to_text(json);
    g_assert_cmpstr(again, ==, "{\"a\":\"x\\\"[{\",\"b\":[1,2.5,true,null]}");
}

static void test_broken(void)
{
    PROTOCOL_REFUSED("", "broken JSON at byte 0 (line 1): '[' or '{' expected near end of file");
    PROTOCOL_REFUSED("7", "broken JSON at byte 1 (line 1): '[' or '{' expected near '7'");
    PROTOCOL_REFUSED("{\"a\":1", "broken JSON at byte 6 (line 1): '}' expected near end of file");
    PROTOCOL_REFUSED("[1]\n[2]", "broken JSON at byte 5 (line 2): end of file expected near '['");
    PROTOCOL_REFUSED("{\"a\":1,\"a\":2}",
                     "broken JSON at byte 10 (line 1): duplicate object key near '\"a\"'");
    PROTOCOL_REFUSED("[\"\\u0000\"]", "broken JSON at byte 9 (line 1): \\u0000 is not allowed "
                                      "without JSON_ALLOW_NUL near '\"\\u0000\"'");
    PROTOCOL_REFUSED("[\"\xff\"]",
                     "broken JSON at byte 2 (line 1): unable to decode byte 0xff near '\"'");
    PROTOCOL_REFUSED("[1e999]",
                     "broken JSON at byte 6 (line 1): real number overflow near '1e999'");
    PROTOCOL_REFUSED("[99999999999999999999]", "broken JSON at byte 21 (line 1): too big integer "
                                               "near '99999999999999999999'");
    refused("[1,\0 2]", 7, FETTLE_ERROR_PROTOCOL,
            "broken JSON at byte 4 (line 1): invalid token near end of file");
}

static void test_too_large(void)
{
    g_autofree char *text = g_strnfill(1001, ' ');
    refused(text, 1001, FETTLE_ERROR_LIMIT, "JSON of 1001 bytes: at most 1000 are allowed");
}

static json_t *nested(unsigned depth, GError **error)
{
    g_autoptr(GString) text = g_string_new("{\"[[[\": ");
    for (unsigned i = 1; i < depth; i++)
        g_string_append_c(text, '[');
    for (unsigned i = 1; i < depth; i++)
        g_string_append_c(text, ']');
    g_string_append_c(text, '}');
    return json_parse_limited(text->str, text->len, text->len, error);
}

static void test_too_deep(void)
{
    g_autoptr(GError) error = NULL;
    json_autoptr at_limit = nested(LIMIT_JSON_DEPTH, &error);
    g_assert_no_error(error);
    g_assert_nonnull(at_limit);
    json_autoptr over = nested(LIMIT_JSON_DEPTH + 1, &error);
    g_assert_null(over);
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    g_assert_cmpstr(error->message, ==, "JSON is nested deeper than 32 levels");
}

/* Brackets after the first error must not let a deep nest through, nor must they crash anything. */
static void test_deep_and_broken(void)
{
    g_autofree char *many = g_strnfill(900, '[');
    refused(many, 900, FETTLE_ERROR_LIMIT, "JSON is nested deeper than 32 levels");
    g_autofree char *hidden = g_strconcat("\\\"", many, NULL);
    PROTOCOL_REFUSED(hidden, "broken JSON at byte 1 (line 1): '[' or '{' expected near '\\'");
}

static void test_make(void)
{
    json_autoptr json = json_make("{s:i, s:[s]}", "n", 3, "list", "x");
    g_autofree char *text = json_to_text(json);
    g_assert_cmpstr(text, ==, "{\"list\":[\"x\"],\"n\":3}");
    json_autoptr scalar = json_string("alone");
    g_autofree char *word = json_to_text(scalar);
    g_assert_cmpstr(word, ==, "\"alone\"");
}

static void test_own(void)
{
    static const char *const all[] = {"{}",   "[1,{\"a\":null}]", "7",
                                      "-1.5", "\"\\u00e4\"",      "false"};
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        json_autoptr ours = json_parse_own(all[i]);
        json_autoptr theirs = json_loads(all[i], JSON_DECODE_ANY, NULL);
        g_assert_nonnull(ours);
        g_assert_true(json_equal(ours, theirs));
    }
    g_assert_null(json_parse_own("{} 7"));
    g_assert_null(json_parse_own(""));
}

static void test_make_bad_format(void)
{
    if (g_test_subprocess()) {
        json_autoptr json = json_make("{s:", "n");
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*json_make(\"{s:\")*");
}

static void test_steal(void)
{
    json_autoptr held = json_object();
    json_autoptr taken = json_steal(&held);
    g_assert_null(held);
    g_assert_nonnull(taken);
}

/* --- a long list, item by item --- */

static void join(json_t *item, void *data)
{
    g_autofree char *text = json_to_text(item);
    g_string_append_printf(data, "%s;", text);
}

/* The items and the rest, or the error, as one text. */
static char *items_of(const char *text, size_t max_bytes)
{
    static const char *const path[] = {"result", "data", NULL};
    g_autoptr(GError) error = NULL;
    GString *out = g_string_new(NULL);
    json_autoptr rest = json_parse_items(text, strlen(text), max_bytes, path, join, out, &error);
    if (rest == NULL) {
        g_string_assign(out, error->message);
        g_assert_nonnull(error);
    } else {
        g_autofree char *left = json_to_text(rest);
        g_string_append(out, left);
    }
    return g_string_free(out, FALSE);
}

static void test_items(void)
{
    static const struct {
        const char *text, *expected;
    } all[] = {
        {"{\"result\":{\"data\":[[1],[\"a]\"]]},\"success\":true}",
         "[1];[\"a]\"];{\"result\":{\"data\":[]},\"success\":true}"},
        {" { \"success\" : [ {\"data\":1} , 2 ] , \"result\" : { \"a\":\"\\\"},{\",\n\"data\" :\t[ "
         "{} , "
         "[ [ ] ] ] , \"b\" : null } } ",
         "{};[[]];{\"result\":{\"a\":\"\\\"},{\",\"b\":null,\"data\":[]},\"success\":[{\"data\":1},"
         "2]}"},
        {"{\"result\":{\"data\":[]}}", "{\"result\":{\"data\":[]}}"},
        /* There is no list: as it is. */
        {"{\"result\":[[1]],\"data\":[[2]]}", "{\"data\":[[2]],\"result\":[[1]]}"},
        {"{\"result\":{\"data\":7}}", "{\"result\":{\"data\":7}}"},
        {"{\"result\":{\"more\":{\"data\":[[1]]}}}", "{\"result\":{\"more\":{\"data\":[[1]]}}}"},
        {"[1]", "[1]"},
        /* Broken in the list, before it, behind it. */
        {"{\"result\":{\"data\":[[1],]}}",
         "an item of a list: broken JSON at byte 0 (line 1): '[' or '{' expected near end of file"},
        {"{\"result\":{\"data\":[[1] [2]]}}",
         "an item of a list: broken JSON at byte 5 (line 1): end of file expected near '['"},
        {"{\"result\":{\"data\":[[1}]}}",
         "an item of a list: broken JSON at byte 3 (line 1): ']' expected near '}'"},
        {"{\"result\":{\"data\":[[1]", "broken JSON: a list is not ended"},
        {"{\"result\":{\"data\":[[1],[\"",
         "an item of a list: broken JSON at byte 2 (line 1): premature end of input near '\"'"},
        {"{\"result\":{\"data\":[[1]]}",
         "broken JSON at byte 21 (line 1): '}' expected near end of file"},
        {"{\"result\":{\"data\":[[1]]},\"result\":1}",
         "broken JSON at byte 30 (line 1): duplicate object key near '\"result\"'"},
        {"{\"result\" {\"data\":[]}}", "broken JSON at byte 11 (line 1): ':' expected near '{'"},
        {"{\"result\\", "broken JSON at byte 9 (line 1): invalid escape near '\"result\\'"},
        {"", "broken JSON at byte 0 (line 1): '[' or '{' expected near end of file"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autofree char *found = items_of(all[i].text, 1000);
        g_assert_cmpstr(found, ==, all[i].expected);
    }
    g_autofree char *large = items_of("{\"result\":{\"data\":[[1]]}}", 24);
    g_assert_cmpstr(large, ==, "JSON of 25 bytes: at most 24 are allowed");
    g_autofree char *deep = g_strnfill(LIMIT_JSON_DEPTH + 1, '[');
    g_autofree char *text = g_strdup_printf("{\"result\":{\"data\":[%s", deep);
    g_autofree char *refused_deep = items_of(text, 1000);
    g_assert_cmpstr(refused_deep, ==, "an item of a list: JSON is nested deeper than 32 levels");
}

/* What is read in one pass is what the parser of the library reads, or refuses. */
static void test_plain_items(void)
{
    static const char *const all[] = {
        "[]",
        "[ ]",
        "[ 1 , 2 ]",
        "[0,-0,-1]",
        "[00]",
        "[01]",
        "[-]",
        "[-01]",
        "[1e2]",
        "[1.5]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[true,false,null]",
        "[trueish]",
        "[tru]",
        "[nul",
        "[\"\"]",
        "[\"a\",\"\xc3\xa4\"]",
        "[\"\xff\"]",
        "[\"\\u00e4\"]",
        "[\"a\nb\"]",
        "[\"\x7f\"]",
        "[\"]\"]",
        "[[],[[]]]",
        "[[0,\"x\"],[2,null]]",
        "[{\"a\":[1]},{}]",
        "[999999999999999,-999999999999999]",
        "[9223372036854775807]",
        "[9223372036854775808]",
        "[\"open]",
        "[1]x",
        "\"text\"",
        "7",
    };
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autoptr(GError) refused = NULL;
        json_autoptr whole = json_parse_limited(all[i], strlen(all[i]), 1000, &refused);
        g_autofree char *text = g_strdup_printf("{\"result\":{\"data\":[%s]}}", all[i]);
        g_autofree char *found = items_of(text, 1000);
        g_autofree char *read = whole == NULL ? NULL : json_to_text(whole);
        g_autofree char *expected =
            whole == NULL ? NULL : g_strconcat(read, ";{\"result\":{\"data\":[]}}", NULL);
        if (whole != NULL)
            g_assert_cmpstr(found, ==, expected);
        else
            g_assert_nonnull(strstr(found, "broken JSON"));
    }
    g_autofree char *opened = g_strnfill(LIMIT_JSON_DEPTH, '[');
    g_autofree char *closed = g_strnfill(LIMIT_JSON_DEPTH, ']');
    g_autofree char *deepest = g_strdup_printf("{\"result\":{\"data\":[%s%s]}}", opened, closed);
    g_autofree char *expected = g_strdup_printf("%s%s;{\"result\":{\"data\":[]}}", opened, closed);
    g_autofree char *found = items_of(deepest, 1000);
    g_assert_cmpstr(found, ==, expected);
}

/* Written without a tree it is the same text. */
static void test_append(void)
{
    static const gint64 numbers[] = {0, 7, -7, 10, G_MAXINT64, G_MININT64};
    g_autoptr(GString) letters = g_string_new("\x7f\xc3\xa4/\"\\");
    for (char letter = 1; letter < 0x30; letter++)
        g_string_append_c(letters, letter);
    json_autoptr list = json_array();
    json_array_append_new(list, json_string(letters->str));
    json_array_append_new(list, json_string(""));
    json_array_append_new(list, json_stringn("a\0b", 3));
    json_array_append_new(list, json_true());
    json_array_append_new(list, json_null());
    json_array_append_new(list, json_real(1.5));
    json_array_append_new(list, json_make("{s:[i]}", "b", 1));
    json_array_append_new(
        list, json_make("{s:[i,{}], s:s, s:b, s:[]}", "b", 1, "a", "x", "ab", 0, "\xc3\xa4"));
    json_t *large = json_object();
    for (int i = 0; i < 100; i++) {
        g_autofree char *name = g_strdup_printf("%d", i * 37 % 100);
        json_object_set_new(large, name, json_integer(i));
    }
    json_array_append_new(list, large);
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++)
        json_array_append_new(list, json_integer(numbers[i]));
    for (size_t i = 0; i < json_array_size(list); i++) {
        g_autoptr(GString) out = g_string_new("before ");
        g_autofree char *text = json_to_text(json_array_get(list, i));
        json_append(out, json_array_get(list, i));
        g_assert_cmpstr(out->str + strlen("before "), ==, text);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json/good", test_good);
    g_test_add_func("/json/broken", test_broken);
    g_test_add_func("/json/too-large", test_too_large);
    g_test_add_func("/json/too-deep", test_too_deep);
    g_test_add_func("/json/deep-and-broken", test_deep_and_broken);
    g_test_add_func("/json/make", test_make);
    g_test_add_func("/json/own", test_own);
    g_test_add_func("/json/make-bad-format", test_make_bad_format);
    g_test_add_func("/json/steal", test_steal);
    g_test_add_func("/json/items", test_items);
    g_test_add_func("/json/plain-items", test_plain_items);
    g_test_add_func("/json/append", test_append);
    return g_test_run();
}
