/* See http_stream.h. */
#include "io/http/http_stream.h"

#include <string.h>

#include "base/limits.h"
#include "base/task.h"

#define MOST_WAITING KIB(256) /* of a request, until its message is paused */
#define PIECE_BYTES KIB(256)

/* --- of a request --- */

struct http_incoming {
    struct http_bytes bytes;
    SoupServerMessage *message; /* NULL: it is gone */
    GQueue pieces;              /* GBytes */
    gsize waiting;              /* bytes in all of them */
    gsize used;                 /* of the first */
    bool paused, ended, freed;
    struct promise *waiter;
};

static void wake(struct promise **waiter)
{
    struct promise *promise = g_steal_pointer(waiter);
    if (promise)
        promise_complete(promise);
}

/* Frees it with the second of its two owners. */
static void unref_incoming(struct http_incoming *incoming)
{
    if (incoming->message || !incoming->freed)
        return;
    g_queue_clear_full(&incoming->pieces, (GDestroyNotify)g_bytes_unref);
    g_free(incoming);
}

static gsize take(struct http_incoming *incoming, void *place, gsize length)
{
    gsize size;
    GBytes *piece = g_queue_peek_head(&incoming->pieces);
    const guint8 *bytes = g_bytes_get_data(piece, &size);
    gsize taken = MIN(length, size - incoming->used);
    memcpy(place, bytes + incoming->used, taken);
    incoming->used += taken;
    incoming->waiting -= taken;
    if (incoming->used == size) {
        g_bytes_unref(g_queue_pop_head(&incoming->pieces));
        incoming->used = 0;
    }
    if (incoming->paused && incoming->message && incoming->waiting < MOST_WAITING / 2) {
        incoming->paused = false;
        soup_server_message_unpause(incoming->message);
    }
    return taken;
}

static gssize read_incoming(struct http_bytes *bytes, void *place, gsize length, GError **error)
{
    struct http_incoming *incoming = (struct http_incoming *)bytes;
    while (g_queue_is_empty(&incoming->pieces) && incoming->message && !incoming->ended) {
        struct promise promise = {0};
        incoming->waiter = &promise;
        if (!promise_wait(&promise)) {
            incoming->waiter = NULL;
            fettle_set_ended(error, "the server");
            return -1;
        }
    }
    if (!g_queue_is_empty(&incoming->pieces))
        return (gssize)take(incoming, place, length);
    if (incoming->ended)
        return 0;
    fettle_set_error(error, UNREACHABLE, "the client has gone in the middle of its body");
    return -1;
}

static void free_incoming(struct http_bytes *bytes)
{
    struct http_incoming *incoming = (struct http_incoming *)bytes;
    incoming->freed = true;
    unref_incoming(incoming);
}

struct http_incoming *http_incoming_new(SoupServerMessage *message)
{
    struct http_incoming *incoming = g_new0(struct http_incoming, 1);
    incoming->bytes = (struct http_bytes){.read = read_incoming, .free = free_incoming};
    incoming->message = message;
    g_queue_init(&incoming->pieces);
    return incoming;
}

struct http_bytes *http_incoming_bytes(struct http_incoming *incoming)
{
    return &incoming->bytes;
}

void http_incoming_add(struct http_incoming *incoming, GBytes *bytes)
{
    if (incoming->freed || g_bytes_get_size(bytes) == 0)
        return;
    g_queue_push_tail(&incoming->pieces, g_bytes_ref(bytes));
    incoming->waiting += g_bytes_get_size(bytes);
    if (incoming->waiting >= MOST_WAITING && !incoming->paused) {
        incoming->paused = true;
        soup_server_message_pause(incoming->message);
    }
    wake(&incoming->waiter);
}

void http_incoming_end(struct http_incoming *incoming)
{
    incoming->ended = true;
    incoming->paused = false; /* by us; whoever says so has paused the message until the answer */
    wake(&incoming->waiter);
}

bool http_incoming_ended(const struct http_incoming *incoming)
{
    return incoming->ended;
}

void http_incoming_lose(struct http_incoming *incoming)
{
    if (incoming->paused)
        soup_server_message_unpause(incoming->message);
    incoming->message = NULL;
    wake(&incoming->waiter);
    unref_incoming(incoming);
}

/* --- of an answer --- */

struct http_outgoing {
    SoupServerMessage *message; /* NULL: it is gone */
    struct http_bytes *bytes;
    guint64 left; /* HTTP_LENGTH_UNKNOWN: until there are no more */
    struct promise *waiter;
    void (*over)(bool ok, void *data);
    void *data;
};

/* Waits until libsoup has written the piece, which it takes. */
static bool give(struct http_outgoing *outgoing, guint8 *piece, gsize length)
{
    struct promise promise = {0};
    soup_message_body_append_take(soup_server_message_get_response_body(outgoing->message), piece,
                                  length);
    if (outgoing->left != HTTP_LENGTH_UNKNOWN)
        outgoing->left -= length;
    outgoing->waiter = &promise;
    soup_server_message_unpause(outgoing->message);
    bool ok = promise_wait(&promise);
    outgoing->waiter = NULL;
    return ok;
}

static void pump(void *data)
{
    struct http_outgoing *outgoing = data;
    bool ok = true;
    while (ok && outgoing->left > 0 && outgoing->message) {
        g_autofree guint8 *piece = g_malloc(PIECE_BYTES);
        gssize got = outgoing->bytes->read(outgoing->bytes, piece,
                                           (gsize)MIN(outgoing->left, PIECE_BYTES), NULL);
        if (got > 0 && !outgoing->message) /* it went while they were waited for */
            break;
        if (got == 0 && outgoing->left == HTTP_LENGTH_UNKNOWN)
            break;
        ok = got > 0 && give(outgoing, g_steal_pointer(&piece), (gsize)got);
    }
    if (ok && outgoing->message) {
        soup_message_body_complete(soup_server_message_get_response_body(outgoing->message));
        soup_server_message_unpause(outgoing->message);
    }
    outgoing->bytes->free(outgoing->bytes);
    outgoing->over(ok, outgoing->data);
    g_free(outgoing);
}

struct http_outgoing *http_outgoing_new(SoupServerMessage *message, struct http_bytes *bytes,
                                        guint64 length, void (*over)(bool ok, void *data),
                                        void *data)
{
    struct http_outgoing *outgoing = g_new0(struct http_outgoing, 1);
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(message);
    *outgoing = (struct http_outgoing){
        .message = message, .bytes = bytes, .left = length, .over = over, .data = data};
    if (length == HTTP_LENGTH_UNKNOWN)
        soup_message_headers_set_encoding(headers, SOUP_ENCODING_CHUNKED);
    else
        soup_message_headers_set_content_length(headers, (goffset)length);
    soup_message_body_set_accumulate(soup_server_message_get_response_body(message), FALSE);
    task_spawn(NULL, pump, outgoing);
    return outgoing;
}

void http_outgoing_go_on(struct http_outgoing *outgoing)
{
    wake(&outgoing->waiter);
}

void http_outgoing_lose(struct http_outgoing *outgoing)
{
    outgoing->message = NULL;
    wake(&outgoing->waiter);
}

/* --- of an answer that comes as something happens --- */

struct http_feeding {
    SoupServerMessage *message;
    struct http_feed *feed;
    bool writing, over;
};

static void feed_more(void *data)
{
    struct http_feeding *feeding = data;
    SoupMessageBody *body = soup_server_message_get_response_body(feeding->message);
    if (feeding->writing || feeding->over)
        return;
    g_autoptr(GBytes) piece = feeding->feed->next(feeding->feed, &feeding->over);
    if (piece)
        soup_message_body_append_bytes(body, piece);
    else if (feeding->over)
        soup_message_body_complete(body);
    else
        return;
    feeding->writing = true;
    soup_server_message_unpause(feeding->message);
}

struct http_feeding *http_feeding_new(SoupServerMessage *message, struct http_feed *feed)
{
    struct http_feeding *feeding = g_new0(struct http_feeding, 1);
    *feeding = (struct http_feeding){.message = message, .feed = feed};
    soup_message_headers_set_encoding(soup_server_message_get_response_headers(message),
                                      SOUP_ENCODING_CHUNKED);
    soup_message_body_set_accumulate(soup_server_message_get_response_body(message), FALSE);
    feed->wake = feed_more;
    feed->data = feeding;
    feed_more(feeding);
    return feeding;
}

void http_feeding_go_on(struct http_feeding *feeding)
{
    feeding->writing = false;
    feed_more(feeding);
}

void http_feeding_free(struct http_feeding *feeding)
{
    feeding->feed->free(feeding->feed);
    g_free(feeding);
}
