/* Requests, read at once into the records of every method: whatever that takes is taken by the
 * parser of the whole text too, and is the same there. */
#include "fuzz.h"
#include "proto/envelope.h"

static void check_same(const struct envelope *at_once, const char *text, size_t len)
{
    g_autoptr(GError) error = NULL;
    json_autoptr json = json_parse_limited(text, len, LIMIT_FRAME_BYTES, &error);
    g_assert_no_error(error);
    g_autoptr(envelope_t) whole = envelope_parse(json, 1, &error);
    g_assert_no_error(error);
    g_assert_false(whole->is_reply);
    g_assert_cmpuint(at_once->id, ==, whole->id);
    g_assert_cmpuint(at_once->stamp.history, ==, whole->stamp.history);
    g_assert_cmpuint(at_once->stamp.epoch, ==, whole->stamp.epoch);
    g_assert_cmpstr(at_once->from.node, ==, whole->from.node);
    g_assert_cmpstr(at_once->from.role, ==, whole->from.role);
    g_assert_cmpuint(at_once->from.job, ==, whole->from.job);
    g_assert_cmpstr(at_once->to_node, ==, whole->to_node);
    g_assert_cmpstr(at_once->to_role, ==, whole->to_role);
    g_assert_cmpstr(at_once->method, ==, whole->method);
    void *args = record_parse(at_once->row->args, whole->args, RECORD_STRICT, &error);
    g_assert_no_error(error);
    json_autoptr one = record_to_json(at_once->row->args, at_once->record);
    json_autoptr other = record_to_json(at_once->row->args, args);
    g_assert_true(json_equal(one, other));
    record_free(at_once->row->args, args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const roles[] = {ROLE_WCONFD, ROLE_NODED};
    for (size_t i = 0; i < G_N_ELEMENTS(roles); i++) {
        g_autoptr(envelope_t) envelope = envelope_read((const char *)data, len, 1, roles[i]);
        if (envelope != NULL)
            check_same(envelope, (const char *)data, len);
    }
    return 0;
}
