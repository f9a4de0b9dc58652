/*
 * What fettle-mond is told of the cluster, in var/mond/node.json (monitor_config): whom it may ask,
 * and the node's own key to ConfD, which the master gives after a barrier. It is asked for when a
 * master announces itself, and every TOLD_PAUSE_MS, as the key changes with that of the cluster.
 * What is there stays while nobody answers: mond lives without a master.
 */
#pragma once

#include "core/node/node_private.h"

struct told;
/* `heard` is called when a master has answered. */
struct told *told_new(struct node_core *node, void (*heard)(void *data), void *data);
void told_start(struct told *told);
/* Whom it may ask may have changed. */
void told_kick(struct told *told);
/* NULL is allowed, in both. */
void told_free(struct told *told);
