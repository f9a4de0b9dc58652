/* See image_pipe.h. */
#include "io/image_pipe.h"

#include "base/limits.h"
#include "io/crypto/sum.h"
#include "io/net/nbd_stream.h"

#define PIECE_BYTES KIB(64)

struct image_line {
    struct nbd_stream *stream;
};

static struct nbd_stream *open_stream(const struct image_door *door, GError **error)
{
    const struct nbd_place place = {.path = *door->path ? door->path : NULL,
                                    .address = door->address,
                                    .port = door->port,
                                    .key = door->psk,
                                    .stall_ms = LIMIT_TRANSFER_STALL_MS};
    return nbd_stream_open(&place, error);
}

/* --- in --- */

/* Until there are PIECE_BYTES, or no more. -1 with the error. */
static gssize fill(struct http_bytes *from, guint8 *piece, GError **error)
{
    gsize filled = 0;
    gssize some = 1;
    while (some > 0 && filled < PIECE_BYTES) {
        some = from->read(from, piece + filled, PIECE_BYTES - filled, error);
        filled += some > 0 ? (gsize)some : 0;
    }
    return some < 0 ? -1 : (gssize)filled;
}

static bool pass(struct nbd_stream *stream, struct http_bytes *from, struct sum *sum,
                 guint64 *ret_bytes, GError **error)
{
    g_autofree guint8 *piece = g_malloc(PIECE_BYTES);
    *ret_bytes = 0;
    for (;;) {
        gssize some = fill(from, piece, error);
        if (some <= 0)
            return some == 0 && nbd_stream_flush(stream, error);
        *ret_bytes += (guint64)some;
        sum_add(sum, piece, (gsize)some);
        if (!nbd_stream_write(stream, piece, (gsize)some, error))
            return false;
    }
}

static struct image_line *send(struct image_pipe *pipe, const struct image_door *door,
                               struct http_bytes *from, struct passed_bytes *ret, GError **error)
{
    struct nbd_stream *stream = open_stream(door, error);
    if (!stream)
        return NULL;
    struct sum *sum = sum_new(SUM_SHA512);
    bool ok = pass(stream, from, sum, &ret->bytes, error);
    sum_end(sum, ret->sha512);
    if (!ok) {
        nbd_stream_free(stream);
        return NULL;
    }
    struct image_line *line = g_new(struct image_line, 1);
    line->stream = stream;
    return line;
}

static void hang_up(struct image_pipe *pipe, struct image_line *line)
{
    nbd_stream_free(line->stream);
    g_free(line);
}

/* --- out --- */

struct fetched {
    struct http_bytes bytes;
    struct nbd_stream *stream;
};

static gssize read_fetched(struct http_bytes *bytes, void *place, gsize length, GError **error)
{
    return nbd_stream_read(((struct fetched *)bytes)->stream, place, length, error);
}

static void free_fetched(struct http_bytes *bytes)
{
    nbd_stream_free(((struct fetched *)bytes)->stream);
    g_free(bytes);
}

static struct http_bytes *fetch(struct image_pipe *pipe, const struct image_door *door,
                                guint64 from, GError **error)
{
    struct nbd_stream *stream = open_stream(door, error);
    if (!stream)
        return NULL;
    nbd_stream_begin_at(stream, from);
    struct fetched *fetched = g_new(struct fetched, 1);
    *fetched = (struct fetched){{read_fetched, free_fetched}, stream};
    return &fetched->bytes;
}

struct image_pipe *image_pipe_nbd(void)
{
    static const struct image_pipe_ops ops = {.send = send, .hang_up = hang_up, .fetch = fetch};
    static struct image_pipe pipe = {&ops};
    return &pipe;
}
