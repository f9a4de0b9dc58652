/* The objects of an exported configuration: whatever they are, a plan or words. */
#include "fuzz.h"
#include "small_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_autoptr objects = json_parse_limited((const char *)data, len, MIB(1), NULL);
    if (!objects)
        return 0;
    json_autoptr document =
        json_make("{s:s,s:i,s:{s:s},s:O}", "format", DOCUMENT_FORMAT, "version", DOCUMENT_VERSION,
                  "cluster", "uuid", CLUSTER, "objects", objects);
    struct config *config = small_cluster();
    g_autoptr(import_t) import = import_new();
    if (import_document(import, config, document, NULL))
        check_plan(config, import);
    config_free(config);
    return 0;
}
