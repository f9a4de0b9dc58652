/*
 * LuxiD as core/rapi sees it (core/rapi/luxid.h), by connections to its two sockets on this node,
 * of which there are LIMIT_RAPI_CONNECTIONS together. Who would need one more waits for its turn;
 * of calls that wait for something to happen there are never so many that others could not pass.
 */
#pragma once

#include "core/rapi/luxid.h"
#include "io/node_config.h"

struct rapi_luxid *luxid_calls_new(const struct node_paths *paths);
/* Calls that are under way, or wait, are answered with KILLED now. */
void luxid_calls_free(struct rapi_luxid *luxid);
