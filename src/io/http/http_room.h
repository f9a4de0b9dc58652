/*
 * How much memory requests and answers may take at once, whoever sends and reads them how slowly:
 * each connection a share, and all of them together so much more. And how many bodies come and go
 * in pieces, each of which takes some memory for as long as it does. For http_server.c.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define HTTP_SHARE_BYTES (8u * 1024)              /* that a connection has in any case */
#define LIMIT_HTTP_ROOM_BYTES (12u * 1024 * 1024) /* what all have besides, either way */
#define LIMIT_HTTP_STREAMS 16                     /* bodies that come and go in pieces */

/* Answers have room of their own, so that who may ask for large ones has it whatever strangers
 * send. */
enum http_way { HTTP_REQUESTS, HTTP_ANSWERS, HTTP_WAYS };

struct http_room;
/* What one connection takes of it; zero at first. */
struct http_part {
    gsize bytes[HTTP_WAYS];
};

struct http_room *http_room_new(void);
/* It stays until the last of its streams is over. */
void http_room_free(struct http_room *room);

/* So many more; false: there is no room for them, and they are not taken. */
bool http_room_take(struct http_room *room, struct http_part *part, enum http_way way, gsize bytes);
/* All that it has, that way. */
void http_room_give(struct http_room *room, struct http_part *part, enum http_way way);

/* One more stream; false: there are too many. To be ended once. */
bool http_room_begin_stream(struct http_room *room);
void http_room_end_stream(struct http_room *room);
