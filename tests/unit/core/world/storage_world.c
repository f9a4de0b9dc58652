/* What tests of stored things share; see storage_world.h. */
#include "unit/core/world/storage_world.h"

#include <string.h>

json_t *object_backend(const char *uuid)
{
    bool first = !strcmp(uuid, DIR1);
    json_t *nodes = first ? json_make("[s,s]", NODE1, NODE2) : json_make("[s]", NODE2);
    return json_make("{s:s,s:s,s:s,s:o,s:s}", "uuid", uuid, "name", first ? "dir1" : "dir2", "kind",
                     "dir", "nodes", nodes, "path", first ? "/mnt/a" : "/mnt/b");
}

json_t *object_volume1(void)
{
    return json_make("{s:s,s:s,s:i,s:s,s:s,s:s,s:s}", "uuid", VOLUME1, "name", "data1", "size", 2,
                     "status", "available", "backend", DIR1, "host", "node1@dir1", "data",
                     VOLUME1 ".7");
}

const char *service_key(const char *node)
{
    g_autofree char *host = g_strdup_printf("node%c", node[0]);
    g_autofree char *key = config_storage_service_key(STORAGE_VOLUME, host, DIR1);
    return g_intern_string(key);
}

json_t *object_service(const char *node)
{
    g_autofree char *host = g_strdup_printf("node%c", node[0]);
    return json_make("{s:s,s:i,s:s,s:s,s:s,s:s,s:i}", "uuid", service_key(node), "id",
                     node[0] - '0', "binary", "cinder-volume", "host", host, "backend", DIR1,
                     "node", node, "generation", 1);
}

json_t *object_row1(void)
{
    return json_make("{s:i,s:i,s:i,s:s,s:s,s:s,s:s,s:s}", "id", 9, "created_us", 100, "updated_us",
                     100, "resource_type", "Volume", "resource_id", VOLUME1, "operation",
                     "delete-volume", "status", "deleting", "backend", DIR1);
}

json_t *object_trash(const char *name)
{
    return json_make("{s:s,s:s}", "backend", DIR1, "name", name);
}

GPtrArray *initial_storage(void)
{
    GPtrArray *all = initial_changes();
    g_ptr_array_add(all, put("backend", DIR1, 1, object_backend(DIR1)));
    g_ptr_array_add(all, put("backend", DIR2, 1, object_backend(DIR2)));
    return all;
}
