/*
 * JSON of any bytes: what is read in one pass (json_plain.c) is what jansson's own reader makes of
 * it, member by member in the same order, and nothing is taken or refused that it would not.
 */
#include "base/error.h"
#include "base/json.h"
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autoptr(GError) error = NULL;
    json_autoptr ours = json_parse_limited((const char *)data, len, len, &error);
    json_autoptr theirs = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
    g_assert_true((ours == NULL) == (error != NULL));
    if (!ours) {
        g_assert_true(!theirs || fettle_error_is(error, LIMIT));
        return 0;
    }
    g_assert_true(json_equal(ours, theirs));
    char *text = json_dumps(ours, JSON_COMPACT), *other = json_dumps(theirs, JSON_COMPACT);
    g_assert_cmpstr(text, ==, other);
    free(text);
    free(other);
    return 0;
}
