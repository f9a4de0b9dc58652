/* See image_pipe.h. */
#include "io/image_pipe.h"

#include <gnutls/crypto.h>

#include "base/limits.h"
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

struct sums {
    gnutls_hash_hd_t sha512, md5;
};

static void sums_begin(struct sums *sums)
{
    if (gnutls_hash_init(&sums->sha512, GNUTLS_DIG_SHA512) < 0 ||
        gnutls_hash_init(&sums->md5, GNUTLS_DIG_MD5) < 0)
        g_error("GnuTLS has no SHA-512 or MD5");
}

static void digits_of(gnutls_hash_hd_t hash, size_t length, char *ret)
{
    guint8 digest[64];
    gnutls_hash_deinit(hash, digest);
    for (size_t i = 0; i < length; i++)
        g_snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

static void sums_end(struct sums *sums, struct passed_sums *ret)
{
    digits_of(sums->sha512, 64, ret->sha512);
    digits_of(sums->md5, 16, ret->md5);
}

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

static bool pass(struct nbd_stream *stream, struct http_bytes *from, struct sums *sums,
                 guint64 *ret_bytes, GError **error)
{
    g_autofree guint8 *piece = g_malloc(PIECE_BYTES);
    *ret_bytes = 0;
    for (;;) {
        gssize some = fill(from, piece, error);
        if (some <= 0)
            return some == 0 && nbd_stream_flush(stream, error);
        *ret_bytes += (guint64)some;
        gnutls_hash(sums->sha512, piece, (size_t)some);
        gnutls_hash(sums->md5, piece, (size_t)some);
        if (!nbd_stream_write(stream, piece, (gsize)some, error))
            return false;
    }
}

static struct image_line *send(struct image_pipe *pipe, const struct image_door *door,
                               struct http_bytes *from, struct passed_sums *ret, GError **error)
{
    struct sums sums;
    struct nbd_stream *stream = open_stream(door, error);
    if (!stream)
        return NULL;
    sums_begin(&sums);
    bool ok = pass(stream, from, &sums, &ret->bytes, error);
    sums_end(&sums, ret);
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
