/*
 * The table of all opcode bodies, by their ids.
 */
#include "core/ops/ops.h"

#include <string.h>

static const struct op_impl *const families[] = {
    ops_advice,  ops_cluster, ops_create,  ops_disks, ops_evacuate, ops_failover, ops_join,
    ops_migrate, ops_modify,  ops_network, ops_node,  ops_power,    ops_recreate, ops_reinstall,
    ops_remove,  ops_replace, ops_settle,  ops_tags,  ops_test,     ops_verify};

const struct op_impl *op_impl_find(const char *id)
{
    for (guint i = 0; i < G_N_ELEMENTS(families); i++) {
        for (const struct op_impl *impl = families[i]; impl->id; impl++) {
            if (!strcmp(impl->id, id))
                return impl;
        }
    }
    return NULL;
}
