/*
 * A node daemon of which only the fence counts: what it answers to an announcement and to a
 * question for a promise (core/epoch/epoch_fence.h), as the real one does.
 */
#pragma once

#include "core/epoch/epoch_fence.h"

/* In a task. NULL with the error: refused. `ret_promised` (may be NULL): the mastership that this
 * node follows from now on, or zero: nothing was promised. */
json_t *fence_call(struct epoch_fence *fence, const struct rpc_request *request,
                   struct stamp *ret_promised, GError **error);
