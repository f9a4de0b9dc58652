/*
 * What carries bytes without blocking: a descriptor (Unix sockets), or a GIOStream (TLS;
 * transport_stream.c, so that programs without TLS do not even link GIO). Used by channel.c.
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

struct transport;

struct transport_ops {
    /* Bytes done; 0 at the end; -1 with errno (EAGAIN: wait), or with `error` and errno 0. */
    ssize_t (*read)(struct transport *transport, void *buffer, size_t len, GError **error);
    ssize_t (*write)(struct transport *transport, const void *data, size_t len, GError **error);
    /* An attached source that calls ready(data) whenever reading (writing) is worth a try. */
    GSource *(*watch)(struct transport *transport, GIOCondition condition,
                      void (*ready)(void *data), void *data);
    /* Closes and frees. */
    void (*close)(struct transport *transport);
    /* It may keep bytes that no poll shows: read until EAGAIN. */
    gboolean keeps_bytes;
};

struct transport {
    const struct transport_ops *ops;
};

/* Takes the descriptor. */
struct transport *transport_fd(int fd);

typedef struct _GIOStream transport_stream_t;
/* Takes a reference. */
struct transport *transport_stream(transport_stream_t *stream);
