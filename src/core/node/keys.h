/*
 * The certificates of a node, as the master has them renewed (docs/design/procedures.md, "Keys"):
 * whom this node trusts, and its own certificate. Each of the three may be repeated.
 */
#pragma once

#include "core/node/node_private.h"

json_t *keys_trust(struct node_core *node, struct epoch_fence_op *op, const void *args,
                   GError **error);
json_t *keys_request(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error);
json_t *keys_certify(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error);

/* For its report, from memory but for the first time; NULL: it has none. Free with
 * keys_status_free(). */
struct keys_status *keys_report(struct node_core *node);
void keys_clear(struct node_core *node);
