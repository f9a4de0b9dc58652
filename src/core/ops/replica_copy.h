/*
 * Making images and bringing a replica up to date: what create, replace-disks, grow-disk,
 * activate-disks, recreate-disks and reinstall share. Everything here can be cut off after any call
 * and repeated.
 */
#pragma once

#include "core/ops/instance.h"

/* disks_create on a node. While a source image is copied its progress stands in the job's log, and
 * it can be given up: CANCELED, and no image was touched unless op->repeated. */
bool replica_copy_make_images(struct op *op, const char *node, const struct disks_create_args *args,
                              GError **error);

/* Under a running guest, whose generation stays: opens the exports of its replica, which is on
 * record as syncing, and attaches the mirror. `since`: copies only what was written since this
 * replica was last in sync, where that is known. */
bool replica_copy_attach(struct op *op, const char *uuid, bool since, GError **error);

/* Records the replica as syncing under the running generation, for replica_copy_attach().
 * WRONG_STATE if there is none. */
bool replica_copy_set_syncing(struct op *op, const char *uuid, enum task_state mark,
                              const char *why, GError **error);

/* Without a running guest: a generation that only copies, closed clean at the end. `mark` stays.
 * Nothing is left paused by a copy that failed, if the node still answers. */
bool replica_copy_at_rest(struct op *op, const char *uuid, enum task_state mark, GError **error);

/* Whether the images of its replica, if it has one, can be changed along with its own now; `what`
 * they have to do then, for a sentence: "has to grow along". */
bool replica_copy_need_replica(struct op *op, const struct instance *instance, const char *what,
                               GError **error);
