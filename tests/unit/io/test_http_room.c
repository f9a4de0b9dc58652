/* Room for requests and answers (io/http/http_room.h): who has little is served whatever others
 * take, and what is given back is there again. */
#include "io/http/http_room.h"

static void test_room(void)
{
    struct http_room *room = http_room_new();
    struct http_part greedy = {0}, modest = {0}, answers = {0};
    const gsize whole = LIMIT_HTTP_ROOM_BYTES + HTTP_SHARE_BYTES;
    g_assert_true(http_room_take(room, &greedy, HTTP_REQUESTS, whole - 1));
    g_assert_true(http_room_take(room, &greedy, HTTP_REQUESTS, 1));
    g_assert_false(http_room_take(room, &greedy, HTTP_REQUESTS, 1));
    g_assert_true(http_room_take(room, &modest, HTTP_REQUESTS, HTTP_SHARE_BYTES));
    g_assert_false(http_room_take(room, &modest, HTTP_REQUESTS, 1));
    g_assert_true(http_room_take(room, &answers, HTTP_ANSWERS, whole));
    http_room_give(room, &greedy, HTTP_REQUESTS);
    g_assert_true(http_room_take(room, &modest, HTTP_REQUESTS, LIMIT_HTTP_ROOM_BYTES));
    g_assert_false(http_room_take(room, &greedy, HTTP_REQUESTS, HTTP_SHARE_BYTES + 1));
    http_room_free(room);
}

/* It outlives its server for them. */
static void test_streams(void)
{
    struct http_room *room = http_room_new();
    for (guint i = 0; i < LIMIT_HTTP_STREAMS; i++)
        g_assert_true(http_room_begin_stream(room));
    g_assert_false(http_room_begin_stream(room));
    http_room_end_stream(room);
    g_assert_true(http_room_begin_stream(room));
    http_room_free(room);
    for (guint i = 0; i < LIMIT_HTTP_STREAMS; i++)
        http_room_end_stream(room);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/http-room/share-and-room", test_room);
    g_test_add_func("/http-room/streams", test_streams);
    return g_test_run();
}
