/*
 * The bytes of an image to or from an NBD server, one after the other, over libnbd: for `fettle
 * image create` and `save`. Requests of 256 KiB each, four of them under way, whatever the sizes
 * in which bytes come or are wanted; so it needs a MiB, and whoever is faster waits.
 *
 * All calls are for one task, which waits in them. A server that gets no further for `stall_ms` is
 * given up (TIMEOUT). Errors: UNREACHABLE: it is not there, or has gone; PERMISSION: it does not
 * take the key; PROTOCOL: it is no NBD server; NO_RESOURCES: it is full; STORAGE: it fails; KILLED.
 * After an error nothing but nbd_stream_free() is of use.
 */
#pragma once

#include "base/error.h"

struct nbd_place {
    const char *path;    /* of a Unix socket; NULL: */
    const char *address; /* numeric, of a TCP port */
    guint64 port;
    const char *key; /* TLS-PSK, of NBD_STREAM_USER, in hexadecimal; NULL or empty: not encrypted */
    guint stall_ms;
};
#define NBD_STREAM_USER "qemu"

struct nbd_stream;

struct nbd_stream *nbd_stream_open(const struct nbd_place *place, GError **error);
void nbd_stream_free(struct nbd_stream *stream); /* closes the connection; NULL is allowed */
/* Of what is served, in bytes, which may be rounded up. */
guint64 nbd_stream_size(const struct nbd_stream *stream);

/* What comes next, into a place that was blank: zeroes are not sent. LIMIT: there is no room for
 * it in what is served. */
bool nbd_stream_write(struct nbd_stream *stream, const void *bytes, gsize length, GError **error);
/* All of it is on stable storage. The connection stands, and ends with nbd_stream_free(). */
bool nbd_stream_flush(struct nbd_stream *stream, GError **error);

/* For who waits for bytes to write: returns when `fd` can be read, something has come or gone, or
 * after `ms`. What is under way goes on in these calls alone. */
bool nbd_stream_rest(struct nbd_stream *stream, int fd, guint ms, GError **error);

/* Before the first byte is read: which one that is to be. */
void nbd_stream_begin_at(struct nbd_stream *stream, guint64 at);
/* The next bytes, at most `length` and at least one; 0 at the end of what is served, -1 with an
 * error. */
gssize nbd_stream_read(struct nbd_stream *stream, void *bytes, gsize length, GError **error);
