/*
 * What libsoup reads a connection from. libsoup 3.2 keeps a connection for ever whose peer has hung
 * up while no request was under way (mended in 3.3): so that end looks here like one of a request
 * that has just begun, of which it does let go. It does so only if the end is one each time it
 * looks: TLS whose peer has gone without its last word says so once, and then that it is broken.
 */
#pragma once

#include <gio/gio.h>
#include <stdbool.h>

struct http_input;

/* Of a stream that can be polled. `heard`: so many bytes have come while no request was under way,
 * of the next one's headers; false: they are too many, and the connection is to be ended. The
 * caller's, to unref. */
struct http_input *http_input_new(GInputStream *base, bool (*heard)(gsize bytes, void *data),
                                  void *data);
/* Whoever wanted to hear of them is gone. */
void http_input_forget(struct http_input *input);
/* No request is under way, or one has come. */
void http_input_set_idle(struct http_input *input, bool idle);
