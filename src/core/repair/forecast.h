/*
 * What auto-repair would do if a node failed or were drained: the same policy, table and placement
 * as the watcher's (policy.h, plan.h, repair_room.h), followed step by step on what would then be
 * on record, to the end of each repair. Pure; changes nothing. Behind `fettle plan`.
 */
#pragma once

#include "core/config/model.h"

enum forecast_event { FORECAST_FAIL, FORECAST_DRAIN };

/* Every instance that has the node, in order of names:
 *   {"node", "event", "notes": [text…],
 *    "moves":   [{"instance", "from": [node…], "to": [node…], "operations": [word…], "type",
 * "policy"}], "blocked": [{"instance", "from": [node…], "operations": [what could be done before],
 *                 "type", "policy", "reason"}]}
 * Nodes are names, the primary first. Without a master nothing would be done: if the node that
 * fails is the master, and no candidate takes its place by itself (engine etcd, with a majority of
 * candidates left), all that it touches is blocked, and the notes say what to do. `reports`: of
 * struct node_report, of the nodes that answer.
 */
json_t *forecast_node(const struct config *config, const GPtrArray *reports,
                      const struct node *node, enum forecast_event event, gint64 now);
