/* See small_cluster.h. */
#include "small_cluster.h"

#define GROUP "99999999-0000-4000-8000-000000000001"
#define NODE "11111111-0000-4000-8000-00000000000"

static void add(struct config *config, const char *kind, const char *key, json_t *object)
{
    struct change *change = config_put(config, kind, key, object);
    change->version = 1;
    g_assert_true(config_apply(config, change, NULL));
    change_free(change);
}

struct config *small_cluster(void)
{
    struct config *config = config_new();
    add(config, "nodegroup", GROUP, json_make("{s:s,s:s}", "uuid", GROUP, "name", "default"));
    for (int i = 1; i <= 3; i++) {
        g_autofree char *uuid = g_strdup_printf(NODE "%d", i);
        g_autofree char *name = g_strdup_printf("node%d", i);
        add(config, "node", uuid,
            json_make("{s:s,s:s,s:s,s:s}", "uuid", uuid, "name", name, "primary_ip", "192.0.2.1",
                      "group", GROUP));
    }
    add(config, "cluster", CLUSTER,
        json_make("{s:s,s:s,s:s}", "uuid", CLUSTER, "name", "c1", "master_node", NODE "1"));
    return config;
}

void check_plan(struct config *config, const struct import *import)
{
    g_autofree char *digest = import_digest(import);
    g_assert_cmpuint(strlen(digest), ==, 64);
    for (guint i = 0; !import->problems->len && i < import->changes->len; i++)
        g_assert_true(config_apply(config, import->changes->pdata[i], NULL));
    g_autoptr(GPtrArray) problems = invariants_problems(config, LIMIT_PROBLEMS);
    g_assert_cmpuint(problems->len, ==, 0);
}
