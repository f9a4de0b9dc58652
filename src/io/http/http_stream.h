/*
 * Bodies that are not gathered: bytes of a request as they come, and of an answer as they are had.
 * Whoever is slower holds the other one back: libsoup reads and writes no more while its message is
 * paused. For http_server.c.
 */
#pragma once

#include "proto/http/http.h"

#include <libsoup/soup.h>

/* --- of a request --- */

struct http_incoming; /* is a struct http_bytes of whoever serves the request */
struct http_incoming *http_incoming_new(SoupServerMessage *message);
struct http_bytes *http_incoming_bytes(struct http_incoming *incoming);
/* Some have come; the message is paused if enough wait. */
void http_incoming_add(struct http_incoming *incoming, GBytes *bytes);
/* That was all. */
void http_incoming_end(struct http_incoming *incoming);
bool http_incoming_ended(const struct http_incoming *incoming);
/* No more will come, as who sends is gone, or nobody wants them: the message is nobody's any more.
 */
void http_incoming_lose(struct http_incoming *incoming);

/* --- of an answer --- */

struct http_outgoing;
/* Begins with them, in a task of its own; takes the bytes, HTTP_LENGTH_UNKNOWN: in chunks. `over`
 * comes once: they have been given to libsoup, or (`ok` false) could not be had, so the connection
 * is to be ended; or the client is gone. */
struct http_outgoing *http_outgoing_new(SoupServerMessage *message, struct http_bytes *bytes,
                                        guint64 length, void (*over)(bool ok, void *data),
                                        void *data);
/* libsoup has written what it had. */
void http_outgoing_go_on(struct http_outgoing *outgoing);
/* The message is gone; `over` comes yet. */
void http_outgoing_lose(struct http_outgoing *outgoing);

/* --- of an answer that comes as something happens --- */

struct http_feeding;
/* Begins with it; takes the feed. Its end ends the message. */
struct http_feeding *http_feeding_new(SoupServerMessage *message, struct http_feed *feed);
/* libsoup has written what it had. */
void http_feeding_go_on(struct http_feeding *feeding);
/* The message is gone, and the feed is freed. */
void http_feeding_free(struct http_feeding *feeding);
