/*
 * The node daemon's thinking: guests, replicas and their mirrors by the rules SAF-10 to SAF-20, the
 * epoch fence, the list of members. fettle-noded wires it to the bus, QEMU and the disks; the
 * simulator to its models.
 */
#pragma once

#include "proto/env.h"

struct node_core;

/* `address`: of this node, given out with exports. */
struct node_core *node_core_new(const struct env *env, const char *cluster_uuid,
                                const char *address);
/* Where kernels are that instances boot directly (kernel_path); without it there are none. */
void node_core_set_image_folder(struct node_core *node, const char *folder);
/* Before it starts: it leaves figures for this node's fettle-mond, and tells it whom to ask. */
void node_core_set_monitored(struct node_core *node);
/* In a task: state read, guests and exports rediscovered (nothing is adopted before it is
 * confirmed). */
bool node_core_start(struct node_core *node, GError **error);
void node_core_handle(struct node_core *node, struct rpc_request *request);
/* The bus has (again) a connection to the master: questions are asked now rather than at the next
 * interval. */
void node_core_master_reachable(struct node_core *node);
/* `changed` is called from the loop when the members or the master have changed. */
void node_core_set_changed(struct node_core *node, void (*changed)(void *data), void *data);
/* What is wrong with what its REST daemon shows, in words that continue the node's name: told with
 * its reports. NULL: nothing, any more. */
void node_core_set_rest_fault(struct node_core *node, const char *text);
void node_core_free(struct node_core *node);

/* For the bus: may this frame pass? Fence by (history, epoch) and by membership; errors
 * STALE_EPOCH, TEMPORARY, PERMISSION. */
bool node_core_admit(const struct node_core *node, const char *from_node, const char *from_role,
                     const struct method *method, struct stamp stamp, GError **error);
/* Members, for routing: GPtrArray of struct member (borrowed), and the master's UUID ("" if
 * unknown). */
const GPtrArray *node_core_members(const struct node_core *node);
const char *node_core_master(const struct node_core *node);
/* All that the master has announced last (borrowed, until the loop goes on); of epoch 0: nothing.
 */
const struct announce_args *node_core_announced(const struct node_core *node);
/* Of the mastership that it has heard of last; of epoch 0: of none. */
struct stamp node_core_stamp(const struct node_core *node);
