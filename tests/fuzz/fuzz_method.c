/*
 * Arguments and answers of every method from any bytes: {"method": "wconfd commit", "args": …,
 * "answer": …}. What is accepted is written, read again, and the same.
 */
#include "fuzz.h"
#include "proto/records.h"
#include "proto/rpc.h"

#include <string.h>

static void check(const struct record *record, const json_t *json, enum record_mode mode)
{
    g_autoptr(GError) error = NULL;
    void *value = record_parse(record, json, mode, &error);
    g_assert_true((value != NULL) != (error != NULL));
    if (value == NULL)
        return;
    json_autoptr written = record_to_json(record, value);
    void *again = record_parse(record, written, mode, &error);
    g_assert_no_error(error);
    json_autoptr twice = record_to_json(record, again);
    g_assert_true(json_equal(written, twice));
    record_free(record, value);
    record_free(record, again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_autoptr json = json_parse_limited((const char *)data, len, LIMIT_FRAME_BYTES, NULL);
    const char *name = json_string_value(json_object_get(json, "method"));
    const char *space = name != NULL ? strchr(name, ' ') : NULL;
    if (space == NULL)
        return 0;
    g_autofree char *server = g_strndup(name, (gsize)(space - name));
    const struct method *method = method_find(server, space + 1);
    if (method == NULL)
        return 0;
    const json_t *args = json_object_get(json, "args"), *answer = json_object_get(json, "answer");
    if (args != NULL && method->args != NULL) {
        check(method->args, args, RECORD_STRICT);
        check(method->args, args, RECORD_LAX);
    }
    if (answer != NULL && method->answer != NULL)
        check(method->answer, answer, RECORD_LAX);
    return 0;
}
