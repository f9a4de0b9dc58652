/*
 * See nbd_stream.h. libnbd is a state machine without threads: it says what its descriptor is to be
 * watched for, and goes on when it is told that this has come.
 */
#include "io/net/nbd_stream.h"

#include <errno.h>
#include <glib-unix.h>
#include <libnbd.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/task.h"
#include "io/crash.h"
#include "io/loop.h"

#define PIECE_BYTES KIB(256)
#define PIECES 4
#define SYNC_BYTES MIB(32) /* that are sent between two syncs */
#define STIR_BYTES 512
#define ENDED "the process that waited for a transfer"

/* Its turn comes again and again: filled and sent, or asked for and read out. */
struct piece {
    struct nbd_stream *stream;
    guint8 *bytes;
    gsize length, used;
    bool flying;
};

struct nbd_stream {
    struct nbd_handle *nbd;
    int key; /* a file in memory, as libnbd wants a name; -1: none */
    guint stall_ms;
    gint64 until_ms; /* boot clock: it has to get further before */
    guint64 size;
    guint64 at; /* where the next request begins */
    struct piece pieces[PIECES];
    guint turn;        /* of which piece it is */
    int failure;       /* errno of the first request that was not done */
    gsize unsynced;    /* bytes that no sync was asked for yet */
    struct piece sync; /* has no bytes; one is under way */
    bool reads;
    gint64 asked_ms; /* boot clock: when something was */
    guint8 block[STIR_BYTES];
};

/* --- waiting --- */

/* What the loop has seen, while the task waits. */
struct look {
    struct promise over;
    GIOCondition seen;  /* of the connection; 0: nothing */
    GIOCondition other; /* of what else is waited for */
};

static void over_cb(void *data)
{
    struct look *look = data;
    if (!look->over.done)
        promise_complete(&look->over);
}

static gboolean ready_cb(gint fd, GIOCondition seen, gpointer data)
{
    ((struct look *)data)->seen = seen;
    over_cb(data);
    return G_SOURCE_REMOVE;
}

static gboolean other_cb(gint fd, GIOCondition seen, gpointer data)
{
    ((struct look *)data)->other = seen;
    over_cb(data);
    return G_SOURCE_REMOVE;
}

/* False: killed meanwhile. `other`: ends the wait when it can be read; -1: none. */
static bool watch(const struct nbd_stream *stream, struct look *look, int other)
{
    unsigned direction = nbd_aio_get_direction(stream->nbd);
    GIOCondition wanted = G_IO_HUP | G_IO_ERR;
    if (direction & LIBNBD_AIO_DIRECTION_READ)
        wanted |= G_IO_IN;
    if (direction & LIBNBD_AIO_DIRECTION_WRITE)
        wanted |= G_IO_OUT;
    gint64 left = stream->until_ms - loop_boot_ms();
    guint timer = loop_timer((guint)MAX(left, 0), over_cb, look);
    guint source = g_unix_fd_add(nbd_aio_get_fd(stream->nbd), wanted, ready_cb, look);
    guint beside =
        other < 0 ? 0 : g_unix_fd_add(other, G_IO_IN | G_IO_HUP | G_IO_ERR, other_cb, look);
    bool alive = promise_wait(&look->over);
    loop_timer_cancel(timer);
    if (!look->seen)
        g_source_remove(source);
    if (beside && !look->other)
        g_source_remove(beside);
    return alive;
}

static void go_on(struct nbd_stream *stream, GIOCondition seen)
{
    unsigned direction = nbd_aio_get_direction(stream->nbd);
    if ((seen & (G_IO_IN | G_IO_HUP | G_IO_ERR)) && (direction & LIBNBD_AIO_DIRECTION_READ))
        nbd_aio_notify_read(stream->nbd);
    else if (direction & LIBNBD_AIO_DIRECTION_WRITE)
        nbd_aio_notify_write(stream->nbd);
}

/* libnbd's words without the name of its function. */
static const char *words(void)
{
    const char *said = nbd_get_error();
    const char *after = said && g_str_has_prefix(said, "nbd_") ? strstr(said, ": ") : NULL;
    return after ? after + 2 : said ? said : "no reason given";
}

static bool fail_lost(GError **error)
{
    fettle_set_error(error, UNREACHABLE, "the connection was lost: %s", words());
    return false;
}

/* What was under way when the connection went is answered by libnbd. */
static bool fail_request(const struct nbd_stream *stream, GError **error)
{
    if (stream->failure == ENOTCONN)
        return fail_lost(error);
    const char *doing = stream->reads ? "cannot read it" : "cannot write it";
    if (stream->failure == ENOSPC || stream->failure == EDQUOT)
        fettle_set_error(error, NO_RESOURCES, "%s: %s", doing, g_strerror(stream->failure));
    else
        fettle_set_error(error, STORAGE, "%s: %s", doing, g_strerror(stream->failure));
    return false;
}

/* Once round: until libnbd has got further. */
static bool step(struct nbd_stream *stream, GError **error)
{
    struct look look = {0};
    if (!watch(stream, &look, -1))
        return fettle_set_ended(error, ENDED);
    if (look.seen) {
        go_on(stream, look.seen);
        return true;
    }
    fettle_set_error(error, TIMEOUT, "the server of the image got no further for %u s",
                     stream->stall_ms / 1000);
    return false;
}

static bool is_lost(const struct nbd_stream *stream)
{
    return nbd_aio_is_dead(stream->nbd) || nbd_aio_is_closed(stream->nbd);
}

static void begin_count(struct nbd_stream *stream)
{
    stream->until_ms = loop_boot_ms() + stream->stall_ms;
}

/* Until nothing flies there any more. Bytes that come or go are progress, even of another request.
 */
static bool await(struct nbd_stream *stream, const bool *flying, GError **error)
{
    begin_count(stream);
    while (*flying && !stream->failure) {
        if (is_lost(stream))
            return fail_lost(error);
        if (!step(stream, error))
            return false;
        begin_count(stream);
    }
    return !stream->failure || fail_request(stream, error);
}

static int stirred_cb(void *data, int *error)
{
    return 1; /* libnbd may forget it */
}

/* Who has nothing but zeroes to write, or nothing yet, is there all the same: a server gives up who
 * lets nothing be moved for as long as we would wait for it. */
static void stir(struct nbd_stream *stream)
{
    gint64 now = loop_boot_ms();
    if (now < stream->asked_ms + stream->stall_ms / 4)
        return;
    stream->asked_ms = now;
    nbd_aio_pread(stream->nbd, stream->block, MIN(STIR_BYTES, stream->size), 0,
                  (nbd_completion_callback){.callback = stirred_cb}, 0);
}

bool nbd_stream_rest(struct nbd_stream *stream, int fd, guint ms, GError **error)
{
    struct look look = {0};
    if (is_lost(stream))
        return fail_lost(error);
    stir(stream);
    stream->until_ms = loop_boot_ms() + ms;
    if (!watch(stream, &look, fd))
        return fettle_set_ended(error, ENDED);
    if (look.seen)
        go_on(stream, look.seen);
    return !stream->failure || fail_request(stream, error);
}

/* --- opening --- */

static bool find_address(const struct nbd_place *place, struct sockaddr_storage *ret_address,
                         socklen_t *ret_length, GError **error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct sockaddr_un *local = (struct sockaddr_un *)ret_address;
    struct addrinfo *at = NULL;
    if (place->path) {
        local->sun_family = AF_UNIX;
        *ret_length = sizeof *local;
        if (g_strlcpy(local->sun_path, place->path, sizeof local->sun_path) <
            sizeof local->sun_path)
            return true;
        fettle_set_error(error, WRONG_INPUT, "socket %s: the name is too long", place->path);
        return false;
    }
    g_autofree char *port = g_strdup_printf("%" G_GUINT64_FORMAT, place->port);
    int failure = getaddrinfo(place->address, port, &hints, &at);
    if (failure) {
        fettle_set_error(error, WRONG_INPUT, "address \"%s\": %s", place->address,
                         gai_strerror(failure));
        return false;
    }
    *ret_length = at->ai_addrlen;
    memcpy(ret_address, at->ai_addr, at->ai_addrlen);
    freeaddrinfo(at);
    return true;
}

static bool set_key(struct nbd_stream *stream, const char *key)
{
    g_autofree char *line = g_strdup_printf(NBD_STREAM_USER ":%s\n", key);
    stream->key = memfd_create("fettle-key", MFD_CLOEXEC);
    g_autofree char *name = g_strdup_printf("/proc/self/fd/%d", stream->key);
    return stream->key >= 0 &&
           pwrite(stream->key, line, strlen(line), 0) == (ssize_t)strlen(line) &&
           nbd_set_tls(stream->nbd, LIBNBD_TLS_REQUIRE) == 0 &&
           nbd_set_tls_username(stream->nbd, NBD_STREAM_USER) == 0 &&
           nbd_set_tls_psk_file(stream->nbd, name) == 0;
}

/* libnbd has no number for what it does not understand, and none for a server that hangs up. */
static bool is_unlike_nbd(int code)
{
    return code == 0 ? !strstr(words(), "disconnected")
                     : code == EINVAL || code == EPROTO || code == ENOTSUP;
}

static bool judge(const struct nbd_stream *stream, const char *key, GError **error)
{
    if (nbd_aio_is_ready(stream->nbd) == 1)
        return true;
    if (key && strstr(words(), "gnutls"))
        fettle_set_error(error, PERMISSION, "the server of the image does not take the key: %s",
                         words());
    else if (is_unlike_nbd(nbd_get_errno()))
        fettle_set_error(error, PROTOCOL, "what answers is no server of an image: %s", words());
    else
        fettle_set_error(error, UNREACHABLE, "cannot reach the server of the image: %s", words());
    return false;
}

static bool shake_hands(struct nbd_stream *stream, const struct nbd_place *place, GError **error)
{
    const char *key = place->key && *place->key ? place->key : NULL;
    struct sockaddr_storage address = {0};
    socklen_t length;
    if (!find_address(place, &address, &length, error))
        return false;
    if (key && !set_key(stream, key)) {
        fettle_set_error(error, ENVIRONMENT, "cannot use the key: %s", words());
        return false;
    }
    begin_count(stream);
    crash_point("nbd: connect");
    if (nbd_aio_connect(stream->nbd, (const struct sockaddr *)&address, length) < 0)
        return judge(stream, key, error);
    while (nbd_aio_is_connecting(stream->nbd) == 1)
        if (!step(stream, error))
            return false;
    return judge(stream, key, error);
}

struct nbd_stream *nbd_stream_open(const struct nbd_place *place, GError **error)
{
    struct nbd_stream *stream = g_new0(struct nbd_stream, 1);
    stream->nbd = nbd_create();
    stream->key = -1;
    stream->stall_ms = place->stall_ms;
    if (!stream->nbd)
        fettle_set_error(error, ENVIRONMENT, "cannot begin a transfer: %s", words());
    if (!stream->nbd || !shake_hands(stream, place, error)) {
        nbd_stream_free(stream);
        return NULL;
    }
    stream->size = (guint64)MAX(nbd_get_size(stream->nbd), 0);
    stream->asked_ms = loop_boot_ms();
    for (guint i = 0; i < PIECES; i++)
        stream->pieces[i] = (struct piece){.stream = stream, .bytes = g_malloc(PIECE_BYTES)};
    stream->sync.stream = stream;
    return stream;
}

void nbd_stream_free(struct nbd_stream *stream)
{
    if (!stream)
        return;
    nbd_close(stream->nbd);
    if (stream->key >= 0)
        close(stream->key);
    for (guint i = 0; i < PIECES; i++)
        g_free(stream->pieces[i].bytes);
    g_free(stream);
}

guint64 nbd_stream_size(const struct nbd_stream *stream)
{
    return stream->size;
}

/* --- requests --- */

static int answered_cb(void *data, int *error)
{
    struct piece *piece = data;
    piece->flying = false;
    if (*error && !piece->stream->failure)
        piece->stream->failure = *error;
    return 1; /* libnbd may forget it */
}

/* One that was not taken is answered by nobody. */
static bool sent(struct nbd_stream *stream, struct piece *piece, int64_t cookie, GError **error)
{
    if (cookie >= 0) {
        stream->asked_ms = loop_boot_ms();
        return true;
    }
    piece->flying = false;
    return fail_lost(error);
}

static bool is_blank(const guint8 *bytes, gsize length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static bool ask_for_sync(struct nbd_stream *stream, GError **error)
{
    nbd_completion_callback answered = {.callback = answered_cb, .user_data = &stream->sync};
    stream->sync.flying = true;
    stream->unsynced = 0;
    crash_point("nbd: flush");
    return sent(stream, &stream->sync, nbd_aio_flush(stream->nbd, answered, 0), error);
}

/* A disk that begins at the end is waited for as long as it takes for all: nobody can tell it from
 * one that stands still, and whoever sends waits for both, one after the other. So it is at most
 * one sync behind. */
static bool sync_along(struct nbd_stream *stream, gsize length, GError **error)
{
    stream->unsynced += length;
    return stream->unsynced < SYNC_BYTES ||
           (await(stream, &stream->sync.flying, error) && ask_for_sync(stream, error));
}

static bool send_piece(struct nbd_stream *stream, struct piece *piece, GError **error)
{
    guint64 at = stream->at;
    stream->at += piece->used;
    piece->length = piece->used;
    piece->used = 0;
    if (is_blank(piece->bytes, piece->length)) {
        stir(stream);
        return true;
    }
    nbd_completion_callback answered = {.callback = answered_cb, .user_data = piece};
    piece->flying = true;
    stream->turn = (stream->turn + 1) % PIECES;
    crash_point("nbd: write");
    return sent(stream, piece,
                nbd_aio_pwrite(stream->nbd, piece->bytes, piece->length, at, answered, 0), error) &&
           sync_along(stream, piece->length, error);
}

bool nbd_stream_write(struct nbd_stream *stream, const void *bytes, gsize length, GError **error)
{
    for (const guint8 *rest = bytes; length > 0;) {
        struct piece *piece = &stream->pieces[stream->turn];
        if (!await(stream, &piece->flying, error))
            return false;
        gsize some = MIN(length, PIECE_BYTES - piece->used);
        if (some > stream->size - stream->at - piece->used) {
            fettle_set_error(error, LIMIT,
                             "it has more than the %" G_GUINT64_FORMAT
                             " bytes that there is room for",
                             stream->size);
            return false;
        }
        memcpy(piece->bytes + piece->used, rest, some);
        piece->used += some;
        rest += some;
        length -= some;
        if (piece->used == PIECE_BYTES && !send_piece(stream, piece, error))
            return false;
    }
    return true;
}

bool nbd_stream_flush(struct nbd_stream *stream, GError **error)
{
    struct piece *last = &stream->pieces[stream->turn];
    if (last->used > 0 && !send_piece(stream, last, error))
        return false;
    for (guint i = 0; i < PIECES; i++)
        if (!await(stream, &stream->pieces[i].flying, error))
            return false;
    return await(stream, &stream->sync.flying, error) && ask_for_sync(stream, error) &&
           await(stream, &stream->sync.flying, error);
}

/* The next piece that nobody has asked for yet; at the end an empty one. */
static bool ask_for(struct nbd_stream *stream, struct piece *piece, GError **error)
{
    piece->used = 0;
    piece->length = (gsize)MIN(PIECE_BYTES, stream->size - stream->at);
    stream->turn = (stream->turn + 1) % PIECES;
    if (piece->length == 0)
        return true;
    nbd_completion_callback answered = {.callback = answered_cb, .user_data = piece};
    guint64 at = stream->at;
    stream->at += piece->length;
    piece->flying = true;
    crash_point("nbd: read");
    return sent(stream, piece,
                nbd_aio_pread(stream->nbd, piece->bytes, piece->length, at, answered, 0), error);
}

static bool begin_reading(struct nbd_stream *stream, GError **error)
{
    if (stream->reads)
        return true;
    stream->reads = true;
    for (guint i = 0; i < PIECES; i++)
        if (!ask_for(stream, &stream->pieces[stream->turn], error))
            return false;
    return true;
}

void nbd_stream_begin_at(struct nbd_stream *stream, guint64 at)
{
    stream->at = MIN(at, stream->size);
}

gssize nbd_stream_read(struct nbd_stream *stream, void *bytes, gsize length, GError **error)
{
    if (!begin_reading(stream, error))
        return -1;
    struct piece *piece = &stream->pieces[stream->turn];
    if (!await(stream, &piece->flying, error))
        return -1;
    gsize some = MIN(length, piece->length - piece->used);
    memcpy(bytes, piece->bytes + piece->used, some);
    piece->used += some;
    if (piece->length > 0 && piece->used == piece->length && !ask_for(stream, piece, error))
        return -1;
    return (gssize)some;
}
