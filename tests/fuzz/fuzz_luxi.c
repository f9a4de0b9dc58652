/* LUXI requests and replies from any bytes; accepted arguments come back as themselves. */
#include "fuzz.h"
#include "proto/luxi.h"

static void check_args(const struct luxi_method *method, const json_t *args)
{
    g_autoptr(GError) error = NULL;
    void *value = luxi_args_parse(method, args, &error);
    g_assert_true((value != NULL) != (error != NULL));
    if (value == NULL)
        return;
    json_autoptr written = luxi_args_write(method, value);
    void *again = luxi_args_parse(method, written, &error);
    g_assert_no_error(error);
    json_autoptr rewritten = luxi_args_write(method, again);
    g_assert_true(json_equal(written, rewritten));
    record_free(method->args, value);
    record_free(method->args, again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    g_autofree char *name = NULL, *user = NULL;
    json_autoptr args = NULL;
    g_autoptr(GError) error = NULL;
    if (luxi_request_parse((const char *)data, len, &name, &args, &user, &error)) {
        const struct luxi_method *method = luxi_check_method(name, &error);
        if (method != NULL)
            check_args(method, args);
    }
    if (error != NULL) {
        json_autoptr refusal = luxi_reply_unparsed(error);
        g_assert_nonnull(refusal);
    }
    json_autoptr json = json_parse_limited((const char *)data, len, LIMIT_LUXI_FRAME_BYTES, NULL);
    g_autoptr(GError) failure = NULL;
    json_autoptr result = luxi_reply_parse(json, &failure);
    g_assert_true((result != NULL) != (failure != NULL));
    return 0;
}
