/*
 * The serial line of a guest; see console.h. Bytes travel in base64, because frames are JSON.
 */
#include "core/node/console.h"

json_t *console_read(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error)
{
    const struct console_read_args *read = args;
    struct console_data answer = {0};
    gint64 offset = read->since_start ? CONSOLE_SINCE_START : MAX(read->offset, -G_MAXINT32);
    g_autoptr(GBytes) bytes = node->hv->ops->console_read(
        node->hv, read->instance, offset, (guint)read->wait_ms, &answer.offset, error);
    if (!bytes)
        return NULL;
    gsize len = 0;
    const guint8 *data = g_bytes_get_data(bytes, &len);
    g_autofree char *text = g_base64_encode(data, len);
    answer.data = text;
    return console_data_to_json(&answer);
}

/* Strict: what is no base64 would be typed as something else. */
static GBytes *decode(const char *text, GError **error)
{
    gsize len = 0;
    g_autofree guint8 *data = g_base64_decode(text, &len);
    g_autofree char *again = g_base64_encode(data, len);
    if (len == 0 || strcmp(again, text) != 0) {
        fettle_set_error(error, WRONG_INPUT, "data: is not base64");
        return NULL;
    }
    return g_bytes_new_take(g_steal_pointer(&data), len);
}

json_t *console_write(struct node_core *node, struct epoch_fence_op *op, const void *args,
                      GError **error)
{
    const struct console_write_args *write = args;
    g_autoptr(GBytes) bytes = decode(write->data, error);
    if (!bytes || !node->hv->ops->console_write(node->hv, write->instance, bytes, error))
        return NULL;
    return json_object();
}
