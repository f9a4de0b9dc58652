/* Frames: however a stream is cut into pieces, the same frames come out, and none larger than the
 * limit. */
#include "fuzz.h"
#include "proto/frame.h"

#include <string.h>

#define LIMIT 64

/* All frames, each followed by its end; what came before a broken one counts too. */
static GString *frames_of(const uint8_t *data, size_t len, size_t piece)
{
    GString *out = g_string_new(NULL);
    struct frame_splitter splitter;
    frame_splitter_init(&splitter, LIMIT);
    for (size_t at = 0; at < len; at += piece) {
        if (!frame_push(&splitter, (const char *)data + at, MIN(piece, len - at), NULL))
            break;
        const char *frame;
        size_t frame_len;
        while (frame_next(&splitter, &frame, &frame_len)) {
            g_assert_cmpuint(frame_len, <=, LIMIT);
            g_assert_null(memchr(frame, FRAME_END, frame_len));
            g_string_append_len(out, frame, (gssize)frame_len);
            g_string_append_c(out, FRAME_END);
        }
        g_assert_cmpuint(frame_pending(&splitter), <=, LIMIT);
    }
    frame_splitter_clear(&splitter);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    GString *bytewise = frames_of(data, len, 1);
    GString *threes = frames_of(data, len, 3);
    GString *whole = frames_of(data, len, len);
    /* a larger piece may be refused as a whole, a smaller one never loses what came before */
    g_assert_cmpuint(threes->len, <=, bytewise->len);
    g_assert_cmpuint(whole->len, <=, threes->len);
    g_assert_cmpint(memcmp(bytewise->str, threes->str, threes->len), ==, 0);
    g_assert_cmpint(memcmp(bytewise->str, whole->str, whole->len), ==, 0);
    g_assert_cmpint(memcmp(bytewise->str, data, bytewise->len), ==, 0);
    g_string_free(bytewise, TRUE);
    g_string_free(threes, TRUE);
    g_string_free(whole, TRUE);
    return 0;
}
