/* The beginning of a qcow2 file, which a backup is, and which anybody may have written. */
#include "fuzz.h"

#include "backend/storage/qcow2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct qcow2_header header = {0};
    if (!qcow2_has_magic(data, len) || !qcow2_parse(data, len, &header, NULL))
        return 0;
    g_assert_true(!header.backing || g_utf8_validate(header.backing, -1, NULL));
    g_assert_true(!header.data_file || g_utf8_validate(header.data_file, -1, NULL));
    qcow2_header_clear(&header);
    return 0;
}
