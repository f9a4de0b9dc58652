/* Tests of proto/frame.h: frames in pieces, several at once, limits before anything is kept,
 * encoding. */
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "proto/frame.h"

#include <malloc.h>
#include <string.h>

static struct frame_splitter splitter;

static void push(const char *text, size_t len)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(frame_push(&splitter, text, len, &error));
    g_assert_no_error(error);
}

static void push_refused(const char *text, size_t len, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(frame_push(&splitter, text, len, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    g_assert_cmpstr(error->message, ==, message);
}

static void assert_next(const char *expected)
{
    const char *data = NULL;
    size_t len = 0;
    bool there = frame_next(&splitter, &data, &len);
    g_assert_cmpint(there, ==, expected != NULL);
    if (there) {
        g_autofree char *text = g_strndup(data, len);
        g_assert_cmpstr(text, ==, expected);
    }
}

static void test_pieces(void)
{
    frame_splitter_init(&splitter, 100);
    assert_next(NULL);
    const char *stream = "{\"a\":1}\x03[2]\x03\x03[3";
    for (size_t i = 0; i < strlen(stream); i++)
        push(stream + i, 1);
    assert_next("{\"a\":1}");
    assert_next("[2]");
    assert_next("");
    assert_next(NULL);
    g_assert_cmpuint(frame_pending(&splitter), ==, 2);
    push("]\x03", 2);
    assert_next("[3]");
    g_assert_cmpuint(frame_pending(&splitter), ==, 0);
    frame_splitter_clear(&splitter);
}

/* What a large frame needed is given back when it has been taken, also if it came in pieces. */
static void test_large_given_back(void)
{
    g_autofree char *large = g_strnfill(MIB(2), 'x');
    frame_splitter_init(&splitter, MIB(4));
    push(large, MIB(2));
    assert_next(NULL);
    push("\x03{}\x03", 4);
    assert_next(large);
    assert_next("{}");
    g_assert_cmpuint(malloc_usable_size(splitter.buffer->data), >=, MIB(2));
    assert_next(NULL);
    g_assert_cmpuint(malloc_usable_size(splitter.buffer->data), <, KIB(64));
    push("[1]\x03", 4);
    assert_next("[1]");
    assert_next(NULL);
    frame_splitter_clear(&splitter);
}

/* Taking some, then pushing more, keeps the rest in place. */
static void test_take_and_push(void)
{
    frame_splitter_init(&splitter, 10);
    push("one\x03two\x03thr", 11);
    assert_next("one");
    push("ee\x03", 3);
    assert_next("two");
    assert_next("three");
    assert_next(NULL);
    push("", 0);
    assert_next(NULL);
    frame_splitter_clear(&splitter);
}

static void test_limit(void)
{
    frame_splitter_init(&splitter, 4);
    push("1234\x03"
         "1234\x03"
         "1234",
         14);
    push("\x03", 1);
    push("123", 3);
    push_refused("45", 2, "a frame is larger than 4 bytes");
    assert_next(NULL); /* nothing is kept of a stream that broke */
    push_refused("\x03", 1, "a frame is larger than 4 bytes");
    frame_splitter_clear(&splitter);
}

static void test_limit_in_the_middle(void)
{
    frame_splitter_init(&splitter, 4);
    push_refused("1\x03"
                 "12345\x03"
                 "1",
                 9, "a frame is larger than 4 bytes");
    frame_splitter_clear(&splitter);
    frame_splitter_init(&splitter, 4);
    push_refused("12345", 5, "a frame is larger than 4 bytes");
    g_assert_cmpuint(splitter.buffer->len, ==, 0);
    frame_splitter_clear(&splitter);
}

static void test_set_limit(void)
{
    frame_splitter_init(&splitter, 4);
    push("1234\x03", 5);
    frame_splitter_set_limit(&splitter, 8);
    push("12345678\x03", 9);
    assert_next("1234");
    assert_next("12345678");
    frame_splitter_clear(&splitter);
}

static void test_encode(void)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = json_make("{s:s}", "a", "\x03");
    size_t len = 0;
    g_autofree char *frame = frame_encode(json, 14, &len, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(len, ==, 15);
    g_assert_cmpstr(frame, ==, "{\"a\":\"\\u0003\"}\x03"); /* the end cannot stand inside */
    g_assert_null(frame_encode(json, 13, &len, &error));
    g_assert_error(error, FETTLE_ERROR, FETTLE_ERROR_LIMIT);
    g_assert_cmpstr(error->message, ==, "a frame of 14 bytes: at most 13 are allowed");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/frame/pieces", test_pieces);
    g_test_add_func("/frame/take-and-push", test_take_and_push);
    g_test_add_func("/frame/large-given-back", test_large_given_back);
    g_test_add_func("/frame/limit", test_limit);
    g_test_add_func("/frame/limit-in-the-middle", test_limit_in_the_middle);
    g_test_add_func("/frame/set-limit", test_set_limit);
    g_test_add_func("/frame/encode", test_encode);
    return g_test_run();
}
