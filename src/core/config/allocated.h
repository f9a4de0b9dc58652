/*
 * What the configuration promises of each node to its instances and reservations. Kept by the
 * indexes of model.h with every change, so that asking costs nothing; placement
 * (core/placement/placement.h) sets it against what the nodes have.
 *
 * An instance takes memory and disk of its primary node, disk of its secondary, and of the target
 * of a migration memory, and disk if its images are copied. Images of template sharedfile take no
 * space of a node, but of the folder that all nodes mount, which is counted as a node of its own.
 */
#pragma once

#include "core/config/model.h"

/* Stands for that folder where a node's UUID would: for promises, and the lock of its room. */
#define SHARED_FOLDER_ROOM "ffffffff-ffff-4fff-bfff-ffffffffffff"

struct allocated {
    guint64 memory;       /* MiB */
    guint64 disk;         /* MiB */
    guint64 disk_waiting; /* of these, for images that are not made yet (generation 0) */
    guint64 instances;
};

/* Sum of the sizes of disks, in MiB. */
guint64 allocated_disk_size(const GPtrArray *disks);
/* What one instance takes of one node; all 0: nothing. */
struct allocated allocated_to(const struct instance *instance, const char *node);
guint64 allocated_memory(const struct instance *instance,
                         const char *node); /* of that the memory */
/* Memory that the instance may need from now on: what this generation has, or the next one gets,
 * whichever is more. */
guint64 allocated_need(const struct instance *instance);
/* Memory that a generation gets that is started next. */
guint64 allocated_next(const struct instance *instance);
/* Of what it takes of a node that which a guest has that runs there. */
guint64 allocated_now(const struct instance *instance, const char *node);
/* What was asked for while a generation ran, for the next one, is on record as its size. */
void allocated_take_next(struct instance *instance);
/* What a reservation takes; it is no instance, and nothing of it is there yet. */
struct allocated allocated_room(const struct reserved_room *room);
void allocated_add(struct allocated *sum, const struct allocated *more);
void allocated_take(struct allocated *sum, const struct allocated *less);
/* Nodes that an instance takes something of: `ret` has up to 3, each once. */
guint allocated_nodes(const struct instance *instance, const char *ret[3]);

/* All that is promised of a node. */
struct allocated config_promised(const struct config *config, const char *node);
