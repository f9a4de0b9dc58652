/* Answers that come as something happens (struct http_feed): pieces as they are had, many who wait,
 * who goes, who does not read, and the ends on either side. */
#include "io/http/http_server.h"

#include <string.h>

#include "client.h"
#include "world.h"

#define FOLLOW "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define MANY 60 /* of one address */

struct world {
    struct http_server *server;
    guint port, fed;
    GPtrArray *feeds; /* those that are followed */
};

struct feed {
    struct http_feed base;
    struct world *world;
    GBytes *piece; /* the next; NULL: there is none */
    guint64 given;
    bool endless, over;
};

static GBytes *next(struct http_feed *base, bool *ret_over)
{
    struct feed *feed = (struct feed *)base;
    GBytes *piece = feed->endless ? g_bytes_ref(feed->piece) : g_steal_pointer(&feed->piece);
    feed->given += piece ? g_bytes_get_size(piece) : 0;
    *ret_over = feed->over;
    return piece;
}

static void feed_free(struct http_feed *base)
{
    struct feed *feed = (struct feed *)base;
    g_ptr_array_remove_fast(feed->world->feeds, feed);
    g_clear_pointer(&feed->piece, g_bytes_unref);
    g_free(feed);
}

static void serve(struct http_exchange *exchange, void *data)
{
    struct world *world = data;
    struct feed *feed = g_new0(struct feed, 1);
    *feed = (struct feed){.base = {.next = next, .free = feed_free}, .world = world};
    g_ptr_array_add(world->feeds, feed);
    world->fed++;
    struct http_answer *answer = http_answer_new(200);
    http_answer_set_feed(answer, "text/event-stream", &feed->base);
    http_exchange_answer(exchange, answer);
}

static void begin(struct world *world, guint silence_s)
{
    static const struct http_server_events events = {.serve = serve};
    g_autoptr(GError) error = NULL;
    *world = (struct world){.port = world_free_port(), .feeds = g_ptr_array_new()};
    const struct http_server_options options = {.address = "127.0.0.1",
                                                .port = world->port,
                                                .settings = "etc/apid.conf",
                                                .silence_s = silence_s};
    world->server = http_server_new(&options, &events, world, &error);
    g_assert_no_error(error);
}

static void end(struct world *world)
{
    http_server_free(world->server);
    g_assert_cmpuint(world->feeds->len, ==, 0);
    g_ptr_array_unref(world->feeds);
    for (guint i = 0; i < 20; i++) /* connections are let go of */
        g_main_context_iteration(NULL, FALSE);
}

static void give(struct feed *feed, const char *text)
{
    feed->piece = g_bytes_new(text, strlen(text));
    feed->base.wake(feed->base.data);
}

static void wait_said(const struct client *client, const char *text)
{
    while (!client->over && !strstr(client->said->str, text))
        g_main_context_iteration(NULL, TRUE);
    if (!strstr(client->said->str, text))
        g_error("said: %s; and not %s", client->said->str, text);
}

static struct client *follow(struct world *world)
{
    guint before = world->fed;
    struct client *client = client_dial(world->port);
    client_say(client, FOLLOW);
    world_wait_count(&world->fed, before + 1);
    return client;
}

static void test_pieces(void)
{
    struct world world;
    begin(&world, 1);
    struct client *client = follow(&world);
    struct feed *feed = world.feeds->pdata[0];
    give(feed, "one\n\n");
    wait_said(client, "Transfer-Encoding: chunked");
    wait_said(client, "one\n\n");
    world_pause(1500); /* its silence is none of the client's */
    give(feed, "two\n\n");
    wait_said(client, "two\n\n");
    g_assert_false(client->over);
    client_free(client);
    end(&world);
}

static void test_over(void)
{
    struct world world;
    begin(&world, 60);
    struct client *client = follow(&world);
    struct feed *feed = world.feeds->pdata[0];
    give(feed, "one\n\n");
    wait_said(client, "one\n\n");
    feed->over = true;
    feed->base.wake(feed->base.data);
    wait_said(client, "\r\n0\r\n\r\n");
    while (world.feeds->len)
        g_main_context_iteration(NULL, TRUE);
    client_say(client, FOLLOW); /* the connection is as good as before */
    world_wait_count(&world.fed, 2);
    client_free(client);
    end(&world);
}

/* No bound of bodies in pieces holds for them. */
static void test_many(void)
{
    struct world world;
    struct client *clients[MANY];
    begin(&world, 1);
    for (guint i = 0; i < MANY; i++)
        clients[i] = follow(&world);
    g_assert_cmpuint(world.feeds->len, ==, MANY);
    for (guint i = 0; i < MANY; i++)
        give(world.feeds->pdata[i], "told\n\n");
    for (guint i = 0; i < MANY; i++)
        wait_said(clients[i], "told\n\n");
    http_server_free(world.server); /* and none of them keeps it from ending */
    g_assert_cmpuint(world.feeds->len, ==, 0);
    for (guint i = 0; i < MANY; i++) {
        world_wait(&clients[i]->over);
        client_free(clients[i]);
    }
    g_ptr_array_unref(world.feeds);
}

static void test_gone(void)
{
    struct world world;
    begin(&world, 1);
    struct client *client = follow(&world);
    client_free(client);
    while (world.feeds->len) { /* seen when it is told of something */
        struct feed *feed = world.feeds->pdata[0];
        if (!feed->piece)
            give(feed, "x\n\n");
        g_main_context_iteration(NULL, TRUE);
    }
    end(&world);
}

/* It gets no more than its connection takes, and is let go of. */
static void test_unread(void)
{
    struct world world;
    begin(&world, 1);
    struct client *client = client_dial_silently("127.0.0.1", world.port);
    client_say(client, FOLLOW);
    world_wait_count(&world.fed, 1);
    struct feed *feed = world.feeds->pdata[0];
    g_autofree char *large = g_strnfill(16384, 'x');
    feed->endless = true;
    guint64 given = 0;
    give(feed, large);
    while (world.feeds->len) {
        given = feed->given;
        g_main_context_iteration(NULL, TRUE);
    }
    g_assert_cmpuint(given, <, 64 * 1024 * 1024);
    client->over = true;
    client_free(client);
    end(&world);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_init();
    g_test_add_func("/http-feed/pieces", test_pieces);
    g_test_add_func("/http-feed/over", test_over);
    g_test_add_func("/http-feed/many", test_many);
    g_test_add_func("/http-feed/gone", test_gone);
    g_test_add_func("/http-feed/unread", test_unread);
    return g_test_run();
}
