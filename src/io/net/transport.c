/* See transport.h: descriptors. */
#include "io/net/transport.h"

#include <glib-unix.h>
#include <sys/socket.h>
#include <unistd.h>

struct fd_transport {
    struct transport base;
    int fd;
};

struct ready {
    void (*fn)(void *data);
    void *data;
};

static int fd_of(struct transport *transport)
{
    return ((struct fd_transport *)transport)->fd;
}

static ssize_t fd_read(struct transport *transport, void *buffer, size_t len, GError **error)
{
    return read(fd_of(transport), buffer, len);
}

static ssize_t fd_write(struct transport *transport, const void *data, size_t len, GError **error)
{
    return send(fd_of(transport), data, len, MSG_NOSIGNAL);
}

static gboolean ready_cb(gint fd, GIOCondition condition, gpointer data)
{
    struct ready ready = *(struct ready *)data;

    ready.fn(ready.data);
    return G_SOURCE_CONTINUE;
}

static GSource *fd_watch(struct transport *transport, GIOCondition condition,
                         void (*fn)(void *data), void *data)
{
    GSource *source = g_unix_fd_source_new(fd_of(transport), condition);
    struct ready *ready = g_new(struct ready, 1);

    *ready = (struct ready){fn, data};
    g_source_set_callback(source, G_SOURCE_FUNC(ready_cb), ready, g_free);
    /* Else GLib takes the descriptor out of the loop and puts it back for each dispatch, and wakes
     * itself up both times: two writes and a read for every request. */
    g_source_set_can_recurse(source, TRUE);
    g_source_attach(source, NULL);
    return source;
}

static void fd_close(struct transport *transport)
{
    close(fd_of(transport));
    g_free(transport);
}

static const struct transport_ops fd_ops = {fd_read, fd_write, fd_watch, fd_close, FALSE};

struct transport *transport_fd(int fd)
{
    struct fd_transport *transport = g_new(struct fd_transport, 1);

    g_unix_set_fd_nonblocking(fd, TRUE, NULL);
    *transport = (struct fd_transport){{&fd_ops}, fd};
    return &transport->base;
}
