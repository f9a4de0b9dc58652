/* See client.h. */
#include "client.h"

#include <string.h>

static void read_cb(GObject *object, GAsyncResult *result, gpointer data)
{
    struct client *client = data;
    gssize len = g_input_stream_read_finish(G_INPUT_STREAM(object), result, NULL);
    client->over = len <= 0;
    if (len > 0) {
        g_string_append_len(client->said, client->bytes, len);
        client_read_on(client);
    }
}

void client_read_on(struct client *client)
{
    g_input_stream_read_async(g_io_stream_get_input_stream(G_IO_STREAM(client->connection)),
                              client->bytes, sizeof client->bytes, G_PRIORITY_DEFAULT, NULL,
                              read_cb, client);
}

struct client *client_dial_silently(const char *address, guint port)
{
    g_autoptr(GSocketClient) dialler = g_socket_client_new();
    g_autoptr(GSocketAddress) from = g_inet_socket_address_new_from_string(address, 0);
    struct client *client = g_new0(struct client, 1);
    client->said = g_string_new(NULL);
    g_socket_client_set_local_address(dialler, from);
    client->connection =
        g_socket_client_connect_to_host(dialler, "127.0.0.1", (guint16)port, NULL, NULL);
    g_assert_nonnull(client->connection);
    return client;
}

struct client *client_dial(guint port)
{
    struct client *client = client_dial_silently("127.0.0.1", port);
    client_read_on(client);
    return client;
}

bool client_say_bytes(const struct client *client, const char *bytes, size_t len)
{
    GSocket *socket = g_socket_connection_get_socket(client->connection);
    g_socket_set_blocking(socket, FALSE);
    for (size_t sent = 0; sent < len;) {
        gssize more = g_socket_send(socket, bytes + sent, len - sent, NULL, NULL);
        if (more > 0)
            sent += (size_t)more;
        if (more <= 0 && !g_socket_is_connected(socket))
            return false;
        g_main_context_iteration(NULL, FALSE);
        if (client->over)
            return false;
    }
    return true;
}

void client_say(const struct client *client, const char *text)
{
    client_say_bytes(client, text, strlen(text));
}

void client_free(struct client *client)
{
    g_io_stream_close(G_IO_STREAM(client->connection), NULL, NULL);
    while (!client->over)
        g_main_context_iteration(NULL, TRUE);
    g_object_unref(client->connection);
    g_string_free(client->said, TRUE);
    g_free(client);
}
