/*
 * Objects of the configuration from any bytes: {"kind": …, "object": {…}}. What a store accepts it
 * writes back with every unknown field, and reads again.
 */
#include "fuzz.h"
#include "proto/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_autoptr json = json_parse_limited((const char *)data, len, LIMIT_FRAME_BYTES, NULL);
    const char *kind = json_string_value(json_object_get(json, "kind"));
    const struct record *record = object_record(kind);
    if (record == NULL)
        return 0;
    const json_t *object = json_object_get(json, "object");
    g_autoptr(GError) error = NULL;
    void *value = record_parse(record, object, RECORD_KEEP, &error);
    g_assert_true((value != NULL) != (error != NULL));
    if (value == NULL)
        return 0;
    json_autoptr written = record_to_json(record, value);
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)object, name, member)
        g_assert_true(json_is_null(member) || json_object_get(written, name) != NULL);
    void *again = record_parse(record, written, RECORD_KEEP, &error);
    g_assert_no_error(error);
    void *copy = record_copy(record, again);
    json_autoptr copied = record_to_json(record, copy);
    g_assert_true(json_equal(written, copied));
    record_free(record, value);
    record_free(record, again);
    record_free(record, copy);
    return 0;
}
