/*
 * Calls to a node that take long for the sake of a guest or an image: somebody looks after them
 * while they are under way, so that their progress stands in the job's log, and the end of a job
 * that is asked to give up reaches the node (work_cancel).
 */
#pragma once

#include "core/ops/op.h"

struct attended {
    const char *instance; /* UUID */
    const char *method;
    const void *args;
    const char *progress; /* what disks_progress tells about, for people; NULL: nothing does */
};

/* As op_act() with ACT_PATIENCE_MS; CANCELED if the node has given it up. A node of an older
 * version does not: the call goes on to its end. */
void *long_call_act(struct op *op, const char *node_uuid, const struct attended *call,
                    GError **error);
