/* See channel.h. */
#include "io/net/channel.h"
#include "io/crash.h"
#include "io/loop.h"
#include "proto/frame.h"

#include <errno.h>
#include <string.h>

#define READ_BYTES KIB(64)
#define READS_PER_TURN 16 /* then the other connections have theirs */
#define TICKS 4 /* quarters of a reader's time: one is lost when this process stands still */

struct channel {
    guint refs;                  /* the owner, callbacks under way, posted events */
    struct transport *transport; /* NULL once it is closed */
    GSource *readable;
    GSource *writable;
    GSource *hung_up;
    struct frame_splitter splitter;
    const struct channel_events *events;
    void *data;
    GByteArray *out;
    size_t out_written; /* bytes at the front of `out` that are written */
    guint64 position;   /* of the end of `out` in the stream */
    bool lost;          /* what waited was forgotten: nothing more is sent */
    guint patience_ms;  /* 0: the peer has any time */
    guint slow_timer;
    guint ticks;      /* for which it has not taken … */
    guint64 expected; /* … what was sent up to here */
    bool flushing;    /* what was sent in this turn of the loop is written when it is over */
    bool paused;
    bool closed;
    bool broken;
    GError *why;
};

static size_t waiting_in_all;
static GHashTable *open_channels; /* set of the channels that are not closed */

static void channel_unref(struct channel *channel)
{
    if (--channel->refs > 0)
        return;
    frame_splitter_clear(&channel->splitter);
    g_byte_array_unref(channel->out);
    g_clear_error(&channel->why);
    g_free(channel);
}

static void drop_source(GSource **source)
{
    if (*source == NULL)
        return;
    g_source_destroy(*source);
    g_source_unref(*source);
    *source = NULL;
}

/* --- the end --- */

static void broken_cb(void *data)
{
    struct channel *channel = data;

    if (!channel->closed)
        channel->events->broken(channel, channel->why, channel->data);
    channel_unref(channel);
}

/* `why` is taken. */
static void set_broken(struct channel *channel, GError *why)
{
    if (channel->broken) {
        g_clear_error(&why);
        return;
    }
    channel->broken = true;
    channel->why = why;
    drop_source(&channel->readable);
    drop_source(&channel->hung_up);
    channel->refs++;
    loop_post(broken_cb, channel);
}

static void set_broken_errno(struct channel *channel, const char *doing, int code)
{
    GError *why = NULL;
    fettle_set_error(&why, UNREACHABLE, "%s: %s", doing, g_strerror(code));
    set_broken(channel, why);
}

/* --- who does not read --- */

static void slow_cb(void *data);

static void reader_is_done(struct channel *channel)
{
    loop_timer_cancel(channel->slow_timer);
    channel->slow_timer = 0;
    channel->ticks = 0;
}

static void wait_for_reader(struct channel *channel)
{
    if (channel->patience_ms == 0 || channel->slow_timer != 0 || channel->closed || channel->lost)
        return;
    channel->expected = channel->position;
    channel->slow_timer = loop_timer(channel->patience_ms / TICKS, slow_cb, channel);
}

static void forget_waiting(struct channel *channel)
{
    size_t waiting = channel_waiting(channel);

    waiting_in_all -= waiting;
    channel->position -= waiting;
    g_byte_array_unref(channel->out);
    channel->out = g_byte_array_new();
    channel->out_written = 0;
}

/* Half a frame may have gone out: nothing can follow it. */
static void drop_reader(struct channel *channel, GError *why)
{
    reader_is_done(channel);
    forget_waiting(channel);
    channel->lost = true;
    drop_source(&channel->writable);
    set_broken(channel, why);
}

static void does_not_read(struct channel *channel)
{
    GError *why = NULL;

    fettle_set_error(&why, LIMIT, "the peer does not read: %zu bytes wait for it",
                     channel_waiting(channel));
    drop_reader(channel, why);
}

static void slow_cb(void *data)
{
    struct channel *channel = data;

    channel->slow_timer = 0;
    channel->ticks++;
    if (channel_written(channel) >= channel->expected) {
        channel->ticks = 0;
        channel->expected = channel->position;
    }
    if (channel->ticks >= TICKS)
        does_not_read(channel);
    else
        channel->slow_timer = loop_timer(channel->patience_ms / TICKS, slow_cb, channel);
}

/* Whether `channel` is rather to be dropped than `other`: it has kept us waiting for longer; or, if
 * nobody has for as much as a quarter of its time, more waits for it. */
static bool is_worse(const struct channel *channel, const struct channel *other)
{
    if (channel->ticks != other->ticks)
        return channel->ticks > other->ticks;
    return channel_waiting(channel) > channel_waiting(other);
}

static struct channel *slowest(void)
{
    struct channel *found = NULL;
    GHashTableIter iter;
    void *key;

    g_hash_table_iter_init(&iter, open_channels);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        struct channel *channel = key;
        if (channel_waiting(channel) > 0 && (found == NULL || is_worse(channel, found)))
            found = channel;
    }
    return found;
}

/* Somebody goes at once, however short a time it has had: memory does not wait for a verdict. */
static void make_room(void)
{
    while (waiting_in_all > LIMIT_UNREAD_IN_ALL) {
        struct channel *channel = slowest();
        GError *why = NULL;
        fettle_set_error(&why, LIMIT,
                         "the peer does not read: %zu bytes wait for it, and %zu for all",
                         channel_waiting(channel), waiting_in_all);
        drop_reader(channel, why);
    }
}

/* --- writing --- */

static void transport_fault(struct channel *channel, const char *doing, GError *error)
{
    int code = errno;

    if (error == NULL) {
        set_broken_errno(channel, doing, code);
        return;
    }
    GError *why = NULL;
    fettle_set_error(&why, UNREACHABLE, "%s: %s", doing, error->message);
    g_error_free(error);
    set_broken(channel, why);
}

static void writable_cb(void *data);

static void watch_writable(struct channel *channel)
{
    if (channel->writable == NULL && !channel->closed)
        channel->writable =
            channel->transport->ops->watch(channel->transport, G_IO_OUT, writable_cb, channel);
}

/* What is written is let go when that costs little, and room for much is not kept. */
static void forget_written(struct channel *channel)
{
    size_t waiting = channel_waiting(channel);

    if (waiting == 0 && channel->out->len > LIMIT_UNREAD_BYTES) {
        g_byte_array_unref(channel->out);
        channel->out = g_byte_array_new();
    } else if (waiting == 0) {
        g_byte_array_set_size(channel->out, 0);
    } else if (channel->out_written > LIMIT_UNREAD_BYTES && channel->out_written > waiting) {
        memmove(channel->out->data, channel->out->data + channel->out_written, waiting);
        g_byte_array_set_size(channel->out, (guint)waiting);
    } else {
        return;
    }
    channel->out_written = 0;
}

static void write_out(struct channel *channel)
{
    while (channel->out_written < channel->out->len) {
        GError *error = NULL;
        crash_point("channel: send");
        ssize_t sent = channel->transport->ops->write(
            channel->transport, channel->out->data + channel->out_written,
            channel->out->len - channel->out_written, &error);
        if (sent > 0) {
            channel->out_written += (size_t)sent;
            waiting_in_all -= (size_t)sent;
            continue;
        }
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            watch_writable(channel);
            wait_for_reader(channel);
            return;
        }
        /* What has come until now is still read: the end shows there too, with the better reason.
         */
        drop_source(&channel->writable);
        if (channel->readable == NULL || error != NULL || errno != EPIPE)
            transport_fault(channel, "send", error);
        return;
    }
    drop_source(&channel->writable);
    reader_is_done(channel);
}

static void flush(struct channel *channel)
{
    bool much = channel_waiting(channel) > LIMIT_UNREAD_BYTES;

    write_out(channel);
    forget_written(channel);
    if (much && channel_waiting(channel) <= LIMIT_UNREAD_BYTES && channel->events->taken != NULL)
        channel->events->taken(channel, channel->data);
}

static void writable_cb(void *data)
{
    struct channel *channel = data;

    channel->refs++;
    flush(channel);
    channel_unref(channel);
}

static void turn_over_cb(void *data)
{
    struct channel *channel = data;

    channel->flushing = false;
    if (!channel->closed && channel->writable == NULL)
        flush(channel);
    channel_unref(channel);
}

/* All that is sent in one turn of the loop is one write. */
static void flush_after_turn(struct channel *channel)
{
    if (channel->flushing || channel->writable != NULL)
        return;
    channel->flushing = true;
    channel->refs++;
    loop_after_turn(turn_over_cb, channel);
}

bool channel_send_within(struct channel *channel, const char *before, const struct frame_body *body,
                         const char *after, size_t limit, guint64 *ret_position, GError **error)
{
    guint start = channel->out->len;

    if (ret_position != NULL)
        *ret_position = channel->position;
    if (!frame_append(channel->out, before, body, after, limit, error))
        return false;
    size_t len = channel->out->len - start;
    bool full = channel_waiting(channel) > LIMIT_CONNECTION_OUT_BYTES;
    if (channel->closed || channel->lost || full)
        g_byte_array_set_size(channel->out, start);
    if (channel->closed || channel->lost)
        return true;
    if (full) {
        does_not_read(channel);
        return true;
    }
    channel->position += len;
    waiting_in_all += len;
    flush_after_turn(channel);
    make_room();
    return true;
}

bool channel_send(struct channel *channel, const json_t *json, size_t limit, guint64 *ret_position,
                  GError **error)
{
    const struct frame_body body = {.json = json};

    return channel_send_within(channel, "", &body, "", limit, ret_position, error);
}

guint64 channel_written(const struct channel *channel)
{
    return channel->position - channel_waiting(channel);
}

size_t channel_waiting(const struct channel *channel)
{
    return channel->out->len - channel->out_written;
}

size_t channel_waiting_in_all(void)
{
    return waiting_in_all;
}

void channel_expect_reader(struct channel *channel, guint patience_ms)
{
    channel->patience_ms = patience_ms;
}

/* --- reading --- */

static void hand_out_frames(struct channel *channel)
{
    const char *frame;
    size_t len;

    /* One that does not take its answers gets no more of them: what it has sent besides is not
     * looked at. */
    while (!channel->closed && !channel->broken && !channel->paused &&
           frame_next(&channel->splitter, &frame, &len))
        channel->events->frame(channel, frame, len, channel->data);
}

static void peer_ended(struct channel *channel)
{
    GError *why = NULL;

    if (frame_pending(&channel->splitter) > 0)
        fettle_set_error(&why, PROTOCOL, "the peer ended in the middle of a frame (%zu bytes)",
                         frame_pending(&channel->splitter));
    set_broken(channel, why);
}

/* One read; false if there is nothing more for now. */
static bool read_some(struct channel *channel)
{
    static char buffer[READ_BYTES];
    GError *error = NULL;
    ssize_t got = channel->transport->ops->read(channel->transport, buffer, sizeof buffer, &error);

    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return false;
    if (got < 0) {
        transport_fault(channel, "receive", error);
        return false;
    }
    if (got == 0) {
        peer_ended(channel);
        return false;
    }
    if (!frame_push(&channel->splitter, buffer, (size_t)got, &error)) {
        set_broken(channel, error);
        return false;
    }
    hand_out_frames(channel);
    if (channel->closed)
        return false;
    /* A socket is asked again when it is readable; TLS may keep bytes that no poll shows. */
    return channel->transport->ops->keeps_bytes || (size_t)got == sizeof buffer;
}

static void readable_cb(void *data)
{
    struct channel *channel = data;

    channel->refs++;
    bool all = channel->transport->ops->keeps_bytes;
    for (int i = 0; i < READS_PER_TURN || all; i++)
        if (channel->closed || channel->broken || channel->paused || !read_some(channel))
            break;
    channel_unref(channel);
}

static void watch_readable(struct channel *channel)
{
    channel->readable =
        channel->transport->ops->watch(channel->transport, G_IO_IN, readable_cb, channel);
}

static void resume_cb(void *data)
{
    struct channel *channel = data;

    if (!channel->closed && !channel->paused) {
        hand_out_frames(channel);
        if (!channel->closed && !channel->paused && !channel->broken && channel->readable == NULL)
            watch_readable(channel);
    }
    channel_unref(channel);
}

void channel_pause(struct channel *channel, bool paused)
{
    if (channel->paused == paused || channel->closed)
        return;
    channel->paused = paused;
    if (paused) {
        drop_source(&channel->readable);
        return;
    }
    drop_source(&channel->hung_up);
    channel->refs++;
    loop_post(resume_cb, channel);
}

static void hung_up_cb(void *data)
{
    struct channel *channel = data;

    drop_source(&channel->hung_up);
    if (channel->events->left == NULL)
        return;
    channel->refs++;
    channel->events->left(channel, channel->data);
    channel_unref(channel);
}

void channel_watch_end(struct channel *channel)
{
    if (channel->closed || channel->broken || !channel->paused || channel->hung_up != NULL)
        return;
    channel->hung_up = channel->transport->ops->watch(channel->transport, G_IO_HUP | G_IO_ERR,
                                                      hung_up_cb, channel);
}

/* --- life --- */

struct channel *channel_new(struct transport *transport, size_t limit,
                            const struct channel_events *events, void *data)
{
    struct channel *channel = g_new0(struct channel, 1);

    channel->refs = 1;
    channel->transport = transport;
    channel->events = events;
    channel->data = data;
    channel->out = g_byte_array_new();
    frame_splitter_init(&channel->splitter, limit);
    if (open_channels == NULL)
        open_channels = g_hash_table_new(NULL, NULL);
    g_hash_table_add(open_channels, channel);
    watch_readable(channel);
    return channel;
}

void channel_set_limit(struct channel *channel, size_t limit)
{
    frame_splitter_set_limit(&channel->splitter, limit);
}

void channel_close(struct channel *channel)
{
    if (channel->closed)
        return;
    flush(channel);
    channel->closed = true;
    reader_is_done(channel);
    forget_waiting(channel);
    g_hash_table_remove(open_channels, channel);
    if (g_hash_table_size(open_channels) == 0)
        g_clear_pointer(&open_channels, g_hash_table_unref);
    drop_source(&channel->hung_up);
    drop_source(&channel->readable);
    drop_source(&channel->writable);
    channel->transport->ops->close(channel->transport);
    channel->transport = NULL;
}

void channel_free(struct channel *channel)
{
    if (channel == NULL)
        return;
    channel_close(channel);
    channel_unref(channel);
}
