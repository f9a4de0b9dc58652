/*
 * What auto-repair would do if a node failed or were drained: the same policy, table and placement
 * as the watcher's (policy.h, plan.h, repair_room.h), followed step by step on what would then be
 * on record, to the end of each repair. Pure; changes nothing. Behind `fettle plan`.
 */
#pragma once

#include "core/config/model.h"

enum forecast_event { FORECAST_FAIL, FORECAST_DRAIN };

/* Every instance that has the node, in order of names:
 *   {"node", "event", "held": whether nothing of it would be done as things are,
 *    "notes": [text…],
 *    "moves":   [{"instance", "from": [node…], "to": [node…], "operations": [word…], "type",
 *                 "policy", and if it would not be whole then "left": why it goes no further}],
 *    "blocked": [{"instance", "from": [node…], "operations": [], "type", "policy", "reason"}]}
 * Nodes are names, the primary first. What can be done is a move, whether or not more can: who has
 * lost his node runs, and waits for a node for his replica. Without a master, or without a majority
 * of etcd's members, nothing would be done: all that the loss touches is blocked then, and the
 * notes say what to do. `reports`: of struct node_report, of the nodes that answer.
 */
json_t *forecast_node(const struct config *config, const GPtrArray *reports,
                      const struct node *node, enum forecast_event event, gint64 now);
