/* See transport.h: GIO streams, for TLS. */
#include "io/net/transport.h"

#include <errno.h>
#include <gio/gio.h>

struct stream_transport {
    struct transport base;
    GIOStream *stream;
};

struct ready {
    void (*fn)(void *data);
    void *data;
};

static GPollableInputStream *input_of(struct transport *transport)
{
    GIOStream *stream = ((struct stream_transport *)transport)->stream;
    return G_POLLABLE_INPUT_STREAM(g_io_stream_get_input_stream(stream));
}

static GPollableOutputStream *output_of(struct transport *transport)
{
    GIOStream *stream = ((struct stream_transport *)transport)->stream;
    return G_POLLABLE_OUTPUT_STREAM(g_io_stream_get_output_stream(stream));
}

/* GIO tells of "not now" by an error; we by errno. */
static ssize_t result_of(gssize result, GError *error, GError **ret_error)
{
    if (result >= 0)
        return result;
    errno = g_error_matches(error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK) ? EAGAIN : 0;
    if (errno == 0)
        g_propagate_error(ret_error, error);
    else
        g_error_free(error);
    return -1;
}

static ssize_t stream_read(struct transport *transport, void *buffer, size_t len, GError **error)
{
    GError *local = NULL;
    gssize got =
        g_pollable_input_stream_read_nonblocking(input_of(transport), buffer, len, NULL, &local);
    return result_of(got, local, error);
}

static ssize_t stream_write(struct transport *transport, const void *data, size_t len,
                            GError **error)
{
    GError *local = NULL;
    gssize sent =
        g_pollable_output_stream_write_nonblocking(output_of(transport), data, len, NULL, &local);
    return result_of(sent, local, error);
}

static gboolean ready_cb(GObject *stream, gpointer data)
{
    struct ready ready = *(struct ready *)data;

    ready.fn(ready.data);
    return G_SOURCE_CONTINUE;
}

static GSource *stream_watch(struct transport *transport, GIOCondition condition,
                             void (*fn)(void *data), void *data)
{
    GSource *source = condition == G_IO_IN
                          ? g_pollable_input_stream_create_source(input_of(transport), NULL)
                          : g_pollable_output_stream_create_source(output_of(transport), NULL);
    struct ready *ready = g_new(struct ready, 1);

    *ready = (struct ready){fn, data};
    g_source_set_callback(source, G_SOURCE_FUNC(ready_cb), ready, g_free);
    g_source_attach(source, NULL);
    return source;
}

/* Does not wait for the peer's end of TLS: the peer may be gone. */
static void stream_close(struct transport *transport)
{
    GIOStream *stream = ((struct stream_transport *)transport)->stream;

    g_io_stream_close_async(stream, G_PRIORITY_DEFAULT, NULL, NULL, NULL);
    g_object_unref(stream);
    g_free(transport);
}

static const struct transport_ops stream_ops = {stream_read, stream_write, stream_watch,
                                                stream_close, TRUE};

struct transport *transport_stream(GIOStream *stream)
{
    struct stream_transport *transport = g_new(struct stream_transport, 1);

    *transport = (struct stream_transport){{&stream_ops}, g_object_ref(stream)};
    return &transport->base;
}
