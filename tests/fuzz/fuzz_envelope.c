/* Envelopes: hello, welcome, requests, replies from any bytes; an accepted request passes through a
 * relay unchanged. */
#include "base/json.h"
#include "fuzz.h"
#include "proto/envelope.h"

static void check_relay(const struct envelope *request)
{
    json_autoptr forwarded = envelope_forward(1, 1, request, "node");
    g_autoptr(GError) error = NULL;
    g_autoptr(envelope_t) again = envelope_parse(forwarded, 1, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(again->stamp.history, ==, request->stamp.history);
    g_assert_cmpuint(again->stamp.epoch, ==, request->stamp.epoch);
    g_assert_cmpstr(again->from.role, ==, request->from.role);
    g_assert_cmpuint(again->from.job, ==, request->from.job);
    g_assert_cmpstr(again->to_node, ==, request->to_node);
    g_assert_true(json_equal(again->args, request->args));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_autoptr json = json_parse_limited((const char *)data, len, LIMIT_FRAME_BYTES, NULL);
    if (json == NULL)
        return 0;
    struct peer_name from;
    int version = 0;
    if (envelope_hello_parse(json, 1, 1, &from, &version, NULL)) {
        g_assert_cmpint(version, ==, 1);
        peer_name_clear(&from);
    }
    g_autoptr(GError) error = NULL;
    if (!envelope_welcome_parse(json, 1, 1, &version, &error))
        g_assert_nonnull(error);
    g_clear_error(&error);
    g_autoptr(envelope_t) envelope = envelope_parse(json, 1, &error);
    g_assert_true((envelope != NULL) != (error != NULL));
    if (envelope == NULL)
        return 0;
    g_assert_cmpuint(envelope_id(json), ==, envelope->id);
    if (envelope->is_reply)
        g_assert_true((envelope->result != NULL) != (envelope->error != NULL));
    else
        check_relay(envelope);
    return 0;
}
