/*
 * Making new disks for an instance whose data are given up (SAF-22), for
 * OP_INSTANCE_RECREATE_DISKS: first the mark, then the images on their nodes, then the record of
 * them.
 *
 * The images are there, under a name of their own, before a record says so (SAF-22): those of the
 * primary node wait under the UUID of the first new disk, a replica's under the replica's. A job
 * that dies before that record leaves the instance as it was, with its mark; after it, with images
 * that wait. The next job under the mark finds out which.
 */
#pragma once

#include "core/ops/instance.h"

/* On op->primary and, if it gets a replica, op->secondary (NULL: it gets none). `there`: a job that
 * died has done it up to the record, and its disks are taken as they are. Leaves the mark after a
 * failure. */
bool recreate_make(struct op *op, const char *uuid, bool there, GError **error);
