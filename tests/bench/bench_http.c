/*
 * What libsoup alone takes to answer with given bytes: a server that has nothing of Fettle's in it.
 * Argument: a file, whose bytes it answers every request with, as JSON. Prints its port, and serves
 * until its standard input ends.
 */
#include <libsoup/soup.h>
#include <stdio.h>

static char *text;
static gsize length;

static void serve(SoupServer *server, SoupServerMessage *message, const char *path,
                  GHashTable *query, gpointer data)
{
    soup_server_message_set_status(message, 200, NULL);
    soup_server_message_set_response(message, "application/json", SOUP_MEMORY_COPY, text, length);
}

static gboolean over(GIOChannel *channel, GIOCondition condition, gpointer loop)
{
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(SoupServer) server = soup_server_new(NULL, NULL);
    if (argc != 2 || !g_file_get_contents(argv[1], &text, &length, &error) ||
        !soup_server_listen_local(server, 0, SOUP_SERVER_LISTEN_IPV4_ONLY, &error)) {
        fprintf(stderr, "usage: bench_http FILE: %s\n", error ? error->message : "");
        return 2;
    }
    soup_server_add_handler(server, NULL, serve, NULL, NULL);
    GSList *uris = soup_server_get_uris(server);
    printf("port %d\n", g_uri_get_port(uris->data));
    fflush(stdout);
    g_slist_free_full(uris, (GDestroyNotify)g_uri_unref);
    g_autoptr(GIOChannel) input = g_io_channel_unix_new(0);
    g_io_add_watch(input, G_IO_IN | G_IO_HUP, over, loop);
    g_main_loop_run(loop);
    g_free(text);
    return 0;
}
