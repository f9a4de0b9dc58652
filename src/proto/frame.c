/* See frame.h. */
#include "proto/frame.h"

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#include <string.h>

#define FRAME_ROOM_BYTES KIB(256)

void frame_splitter_init(struct frame_splitter *splitter, size_t limit)
{
    *splitter = (struct frame_splitter){.buffer = g_byte_array_new(), .limit = limit};
}

void frame_splitter_clear(struct frame_splitter *splitter)
{
    g_clear_pointer(&splitter->buffer, g_byte_array_unref);
}

void frame_splitter_set_limit(struct frame_splitter *splitter, size_t limit)
{
    splitter->limit = limit;
}

/* Whether every frame in the new bytes is within the limit; tells how much of an unfinished one
 * there would be. */
static bool fits(const struct frame_splitter *splitter, const char *data, size_t len,
                 size_t *ret_open)
{
    size_t before = splitter->open;
    while (len > 0) {
        const char *end = memchr(data, FRAME_END, len);
        size_t part = end != NULL ? (size_t)(end - data) : len;
        if (part > splitter->limit || before > splitter->limit - part)
            return false;
        *ret_open = before + part;
        if (end == NULL)
            return true;
        *ret_open = 0;
        len -= part + 1;
        data = end + 1;
        before = 0;
    }
    return true;
}

static void drop_taken(struct frame_splitter *splitter)
{
    if (splitter->taken == 0)
        return;
    if (splitter->taken == splitter->buffer->len)
        g_byte_array_set_size(splitter->buffer, 0);
    else
        g_byte_array_remove_range(splitter->buffer, 0, (guint)splitter->taken);
    splitter->taken = 0;
}

bool frame_push(struct frame_splitter *splitter, const char *data, size_t len, GError **error)
{
    size_t open = splitter->open;
    if (!splitter->broken && fits(splitter, data, len, &open)) {
        splitter->open = open;
        drop_taken(splitter);
        g_byte_array_append(splitter->buffer, (const guint8 *)data, (guint)len);
        return true;
    }
    splitter->broken = true;
    g_byte_array_set_size(splitter->buffer, 0);
    splitter->taken = splitter->open = 0;
    fettle_set_error(error, LIMIT, "a frame is larger than %zu bytes", splitter->limit);
    return false;
}

/* What a large frame needed is not kept for small ones after it. */
static void give_back(struct frame_splitter *splitter)
{
    if (splitter->taken < FRAME_ROOM_BYTES || splitter->taken < splitter->buffer->len)
        return;
    g_byte_array_unref(splitter->buffer);
    splitter->buffer = g_byte_array_new();
    splitter->taken = 0;
}

bool frame_next(struct frame_splitter *splitter, const char **ret_data, size_t *ret_len)
{
    const char *start = (const char *)splitter->buffer->data + splitter->taken;
    size_t len = splitter->buffer->len - splitter->taken;
    if (len == splitter->open) { /* nothing whole: do not search the same bytes again */
        give_back(splitter);
        return false;
    }
    const char *end = memchr(start, FRAME_END, len);
    g_assert(end != NULL);
    *ret_data = start;
    *ret_len = (size_t)(end - start);
    splitter->taken += *ret_len + 1;
    return true;
}

size_t frame_pending(const struct frame_splitter *splitter)
{
    return splitter->open;
}

static int append_cb(const char *text, size_t len, void *data)
{
    g_byte_array_append(data, (const guint8 *)text, (guint)len);
    return 0;
}

static void append_body(GByteArray *buffer, const struct frame_body *body)
{
    if (body->json == NULL)
        append_cb(body->text, strlen(body->text), buffer);
    else
        g_assert(
            json_dump_callback(body->json, append_cb, buffer, JSON_COMPACT | JSON_ENCODE_ANY) == 0);
}

bool frame_append(GByteArray *buffer, const char *before, const struct frame_body *body,
                  const char *after, size_t limit, GError **error)
{
    guint start = buffer->len;
    const guint8 end = FRAME_END;
    append_cb(before, strlen(before), buffer);
    append_body(buffer, body);
    append_cb(after, strlen(after), buffer);
    size_t len = buffer->len - start;
    if (len > limit) {
        g_byte_array_set_size(buffer, start);
        fettle_set_error(error, LIMIT, "a frame of %zu bytes: at most %zu are allowed", len, limit);
        return false;
    }
    g_byte_array_append(buffer, &end, 1);
    return true;
}

char *frame_encode(const json_t *json, size_t limit, size_t *ret_len, GError **error)
{
    g_autoptr(GByteArray) buffer = g_byte_array_new();
    const guint8 nul = 0;
    const struct frame_body body = {.json = json};
    if (!frame_append(buffer, "", &body, "", limit, error))
        return NULL;
    *ret_len = buffer->len;
    g_byte_array_append(buffer, &nul, 1);
    return (char *)g_byte_array_free(g_steal_pointer(&buffer), FALSE);
}
