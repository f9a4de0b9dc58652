/*
 * Frames over a byte stream, without knowing what is in them: reading, splitting, a bounded queue
 * of what is to be written. Used by connection.c and by LUXI.
 *
 * A peer that reads slowly is bounded, then dropped: when more than LIMIT_CONNECTION_OUT_BYTES wait
 * for it; when it does not take within its time what waited at the beginning of that
 * (channel_expect_reader()); or when LIMIT_UNREAD_IN_ALL would be exceeded by what waits in all
 * channels of this process, and nobody is worse: has let more quarters of its time pass, or, if
 * they are as many, has more to take. What waited for it is forgotten then, at once, so no more
 * than that waits at any time.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "io/net/transport.h"

#include <stdbool.h>

struct channel;

struct channel_events {
    /* A whole frame, without its end. */
    void (*frame)(struct channel *channel, const char *data, size_t len, void *data_ptr);
    /* Nothing more will come; once, from the loop, not after channel_close(). `why`: NULL if the
     * peer ended it between two frames; LIMIT for a frame over the limit (writing still works
     * then). */
    void (*broken)(struct channel *channel, const GError *why, void *data_ptr);
    /* Of what waited to be written no more than LIMIT_UNREAD_BYTES are left, and there was more.
     * May be NULL. */
    void (*taken)(struct channel *channel, void *data_ptr);
    /* The peer has gone, as channel_watch_end() looks for; what it sent before may still come. May
     * be NULL. */
    void (*left)(struct channel *channel, void *data_ptr);
};

/* Takes the transport. `limit`: of one incoming frame. */
struct channel *channel_new(struct transport *transport, size_t limit,
                            const struct channel_events *events, void *data);
/* Closes if it is not closed yet. May be called in its own callbacks. */
void channel_free(struct channel *channel);
/* Writes what still can be written at once, then no callback comes any more. */
void channel_close(struct channel *channel);
void channel_set_limit(struct channel *channel, size_t limit);
/* From now on the peer has so long to take what waits for it; once. A time in which this process
 * itself stood still is not counted. */
void channel_expect_reader(struct channel *channel, guint patience_ms);

/* Sends a frame at the end of this turn of the loop, with all others of this turn, as far as there
 * is room, the rest later; tells its position in the outgoing stream (may be NULL). False with
 * LIMIT, and nothing is sent, if it is larger than `limit`. A peer that has
 * not read for too long breaks the channel (LIMIT; see above). */
bool channel_send(struct channel *channel, const json_t *json, size_t limit, guint64 *ret_position,
                  GError **error);
/* The same with text around the document (frame_append()). */
struct frame_body;
bool channel_send_within(struct channel *channel, const char *before, const struct frame_body *body,
                         const char *after, size_t limit, guint64 *ret_position, GError **error);
/* Bytes of the outgoing stream that the transport has taken. */
guint64 channel_written(const struct channel *channel);
/* Bytes that wait to be written; those of all channels of this process. */
size_t channel_waiting(const struct channel *channel);
size_t channel_waiting_in_all(void);
/* Stops and resumes reading (LUXI handles one request at a time). */
void channel_pause(struct channel *channel, bool paused);
/* While it is paused nobody reads, and the peer's end is not seen. From now on it is, if the peer
 * can neither send nor receive any more, until reading is resumed. */
void channel_watch_end(struct channel *channel);
