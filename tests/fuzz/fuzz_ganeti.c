/* config.data of Ganeti: whatever is in the file, reading it ends in a plan or in words. */
#include "core/import/ganeti.h"
#include "fuzz.h"
#include "small_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_autoptr json = json_parse_limited((const char *)data, len, MIB(1), NULL);
    if (!json)
        return 0;
    struct config *config = small_cluster();
    g_autoptr(import_t) import = import_new();
    if (import_ganeti(import, config, json, NULL))
        check_plan(config, import);
    config_free(config);
    return 0;
}
