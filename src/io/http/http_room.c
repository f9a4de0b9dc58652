/* See http_room.h. */
#include "io/http/http_room.h"

struct http_room {
    gsize taken[HTTP_WAYS]; /* besides the shares */
    guint streams;
    bool freed;
};

struct http_room *http_room_new(void)
{
    return g_new0(struct http_room, 1);
}

static void free_with_the_last(struct http_room *room)
{
    if (room->freed && !room->streams)
        g_free(room);
}

void http_room_free(struct http_room *room)
{
    room->freed = true;
    free_with_the_last(room);
}

static gsize beyond_share(gsize bytes)
{
    return bytes > HTTP_SHARE_BYTES ? bytes - HTTP_SHARE_BYTES : 0;
}

bool http_room_take(struct http_room *room, struct http_part *part, enum http_way way, gsize bytes)
{
    gsize more = beyond_share(part->bytes[way] + bytes) - beyond_share(part->bytes[way]);
    if (more && room->taken[way] + more > LIMIT_HTTP_ROOM_BYTES)
        return false;
    room->taken[way] += more;
    part->bytes[way] += bytes;
    return true;
}

void http_room_give(struct http_room *room, struct http_part *part, enum http_way way)
{
    room->taken[way] -= beyond_share(part->bytes[way]);
    part->bytes[way] = 0;
}

bool http_room_begin_stream(struct http_room *room)
{
    if (room->streams >= LIMIT_HTTP_STREAMS)
        return false;
    room->streams++;
    return true;
}

void http_room_end_stream(struct http_room *room)
{
    room->streams--;
    free_with_the_last(room);
}
