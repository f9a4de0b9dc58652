/*
 * Frames on a stream: one JSON document, then the byte 0x03. LUXI and the internal protocol share
 * this. A reader pushes what it got from a socket and takes whole frames out; nothing larger than
 * the limit is ever kept.
 */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#define FRAME_END '\x03'

struct frame_splitter {
    GByteArray *buffer;
    size_t taken; /* bytes at the front that were handed out already */
    size_t open;  /* bytes at the back that belong to an unfinished frame */
    size_t limit;
    bool broken;
};

void frame_splitter_init(struct frame_splitter *splitter, size_t limit);
void frame_splitter_clear(struct frame_splitter *splitter);
/* For the time after a hello; holds for what is pushed from then on. */
void frame_splitter_set_limit(struct frame_splitter *splitter, size_t limit);

/* Takes bytes in. LIMIT if a frame in them, complete or not, is larger than the limit: nothing of
 * them is kept, the stream cannot be understood any more and every later push fails. */
bool frame_push(struct frame_splitter *splitter, const char *data, size_t len, GError **error);
/* The next whole frame, without its end; valid until the next push, or until there is none. False:
 * none yet; what a large one needed is given back. */
bool frame_next(struct frame_splitter *splitter, const char **ret_data, size_t *ret_len);
/* Bytes of an unfinished frame: a connection that ends with some was cut off. */
size_t frame_pending(const struct frame_splitter *splitter);

/* A document as a frame, end included; g_free() it. LIMIT if it would be larger than `limit`
 * (without its end). */
char *frame_encode(const json_t *json, size_t limit, size_t *ret_len, GError **error);
/* A document: as JSON, or as its text. */
struct frame_body {
    const json_t *json; /* NULL: */
    const char *text;
};
/* The same at the end of `buffer`, without a copy in between: `before`, the document, `after` (a
 * document around it, written by hand, or ""). LIMIT: `buffer` is as it was. */
bool frame_append(GByteArray *buffer, const char *before, const struct frame_body *body,
                  const char *after, size_t limit, GError **error);
