/* See http_input.h. */
#include "io/http/http_input.h"

struct http_input {
    GFilterInputStream parent;
    bool idle, over;
    bool (*heard)(gsize bytes, void *data); /* NULL: nobody wants to know */
    void *data;
};

typedef struct http_input HttpInput;
typedef GFilterInputStreamClass HttpInputClass;

GType http_input_get_type(void);
static void http_input_pollable_init(GPollableInputStreamInterface *interface);

G_DEFINE_TYPE_WITH_CODE(HttpInput, http_input, G_TYPE_FILTER_INPUT_STREAM,
                        G_IMPLEMENT_INTERFACE(G_TYPE_POLLABLE_INPUT_STREAM,
                                              http_input_pollable_init))

static GPollableInputStream *base_of(gpointer input)
{
    return G_POLLABLE_INPUT_STREAM(g_filter_input_stream_get_base_stream(input));
}

static gboolean is_readable(GPollableInputStream *input)
{
    return g_pollable_input_stream_is_readable(base_of(input));
}

static GSource *create_source(GPollableInputStream *input, GCancellable *cancellable)
{
    g_autoptr(GSource) source = g_pollable_input_stream_create_source(base_of(input), cancellable);
    return g_pollable_source_new_full(input, source, NULL);
}

static gssize read_nonblocking(GPollableInputStream *stream, void *place, gsize length,
                               GError **error)
{
    struct http_input *input = (struct http_input *)stream;
    g_autoptr(GError) local = NULL;
    gssize got = input->over ? 0
                             : g_pollable_input_stream_read_nonblocking(base_of(stream), place,
                                                                        length, NULL, &local);
    if (got > 0 && input->idle && input->heard && !input->heard((gsize)got, input->data)) {
        g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE, "too many bytes of headers");
        return -1;
    }
    if (length && got <= 0 && !g_error_matches(local, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
        input->over = true;
    if (!input->over || !length || !input->idle) {
        if (local)
            g_propagate_error(error, g_steal_pointer(&local));
        return got;
    }
    input->idle = false;
    *(char *)place = 'x'; /* ends nothing */
    return 1;
}

GType http_input_get_type(void);
static void http_input_pollable_init(GPollableInputStreamInterface *interface)
{
    interface->is_readable = is_readable;
    interface->create_source = create_source;
    interface->read_nonblocking = read_nonblocking;
}

static void http_input_class_init(HttpInputClass *class)
{
}

static void http_input_init(HttpInput *input)
{
}

struct http_input *http_input_new(GInputStream *base, bool (*heard)(gsize bytes, void *data),
                                  void *data)
{
    struct http_input *input =
        g_object_new(http_input_get_type(), "base-stream", base, "close-base-stream", FALSE, NULL);
    input->heard = heard;
    input->data = data;
    return input;
}

void http_input_forget(struct http_input *input)
{
    input->heard = NULL;
}

void http_input_set_idle(struct http_input *input, bool idle)
{
    input->idle = idle;
}
