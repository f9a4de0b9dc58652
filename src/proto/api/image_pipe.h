/*
 * The bytes of images on their way between an HTTP client and the node that keeps them (NBD), as
 * core/api asks for them. io/ stands behind it; tests have a fake.
 */
#pragma once

#include "proto/http/http.h"
#include "proto/records.h"

struct image_pipe;
struct image_line; /* a connection to a door */

/* The one sum by which the node can tell that it has these: it takes all that go on record itself,
 * and who passes bytes on has other clients to serve. */
struct passed_bytes {
    guint64 bytes;
    char sha512[129]; /* in hexadecimal */
};

struct image_pipe_ops {
    /* All of `from` to where the door leads; on stable storage then, and the connection stands
     * until hang_up(). In a task; waits. NULL, with an error: of nbd_stream.h, or of `from`. */
    struct image_line *(*send)(struct image_pipe *pipe, const struct image_door *door,
                               struct http_bytes *from, struct passed_bytes *ret, GError **error);
    void (*hang_up)(struct image_pipe *pipe, struct image_line *line);
    /* What it leads to, from that byte on; to be freed by its own function. In a task. */
    struct http_bytes *(*fetch)(struct image_pipe *pipe, const struct image_door *door,
                                guint64 from, GError **error);
};

struct image_pipe {
    const struct image_pipe_ops *ops;
};
