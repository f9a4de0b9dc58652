/*
 * LuxiD as core/rapi sees it (core/rapi/luxid.h), by connections to its two sockets on this node,
 * of which there are LIMIT_RAPI_CONNECTIONS together. Who would need one more waits for its turn
 * (core/rapi/rapi_turns.h).
 */
#pragma once

#include "core/rapi/luxid.h"
#include "proto/env.h"

struct rapi_luxid *luxid_calls_new(const struct env *env); /* a real one */
/* The loop has ended: calls that are under way are answered with KILLED now, and none waits for its
 * turn any more. */
void luxid_calls_free(struct rapi_luxid *luxid);
