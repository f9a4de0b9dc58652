/* Opcodes from any bytes: refused with a path, or accepted and then the same after being written
 * and read again. */
#include "fuzz.h"
#include "proto/records.h"

static void check_again(const struct opcode *opcode, const struct op_common *common,
                        const void *params)
{
    json_autoptr json = record_to_json(opcode->params, params);
    json_autoptr common_json = op_common_to_json(common);
    json_object_update(json, common_json);
    record_autoptr(op_common) common_again = NULL;
    void *params_again = NULL;
    const struct opcode *opcode_again = NULL;
    g_autoptr(GError) error = NULL;
    bool good = opcode_parse(json, &common_again, &params_again, &opcode_again, &error);
    g_assert_no_error(error);
    g_assert_true(good && opcode_again == opcode);
    json_autoptr written = record_to_json(opcode->params, params_again);
    json_autoptr first = record_to_json(opcode->params, params);
    g_assert_true(json_equal(first, written));
    record_free(opcode->params, params_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_autoptr json = json_parse_limited((const char *)data, len, LIMIT_LUXI_FRAME_BYTES, NULL);
    if (json == NULL)
        return 0;
    record_autoptr(op_common) common = NULL;
    void *params = NULL;
    const struct opcode *opcode = NULL;
    g_autoptr(GError) error = NULL;
    if (!opcode_parse(json, &common, &params, &opcode, &error)) {
        g_assert_true(fettle_error_is(error, WRONG_INPUT));
        return 0;
    }
    check_again(opcode, common, params);
    record_free(opcode->params, params);
    return 0;
}
