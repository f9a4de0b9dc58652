/*
 * The families of opcodes; each array ends with a row without id. Only op_table.c uses them.
 */
#pragma once

#include "core/ops/op.h"

/* Of a node that is removed, for the same transaction: its certificate is revoked (ops_join.c). */
void op_revoke_node(struct op *op, GPtrArray *changes, const struct node *node);

/* Whether a node keeps a new one from having that name, or that address: ALREADY_EXISTS
 * (ops_join.c). */
bool op_node_in_the_way(const struct node *node, const char *name, const char *primary_ip,
                        guint64 port, GError **error);

extern const struct op_impl ops_advice[];
extern const struct op_impl ops_backend[];
extern const struct op_impl ops_cluster[];
extern const struct op_impl ops_create[];
extern const struct op_impl ops_disks[];
extern const struct op_impl ops_evacuate[];
extern const struct op_impl ops_failover[];
extern const struct op_impl ops_join[];
extern const struct op_impl ops_migrate[];
extern const struct op_impl ops_modify[];
extern const struct op_impl ops_network[];
extern const struct op_impl ops_node[];
extern const struct op_impl ops_power[];
extern const struct op_impl ops_query[];
extern const struct op_impl ops_recovery[];
extern const struct op_impl ops_recreate[];
extern const struct op_impl ops_reinstall[];
extern const struct op_impl ops_remove[];
extern const struct op_impl ops_replace[];
extern const struct op_impl ops_settle[];
extern const struct op_impl ops_tags[];
extern const struct op_impl ops_test[];
extern const struct op_impl ops_verify[];
extern const struct op_impl ops_verify_cluster[];
extern const struct op_impl ops_volume[];
