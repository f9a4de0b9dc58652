/*
 * What this node's noded was told last, read from its file: who is master, and who the members are.
 * For daemons of a node that is not the master, whose copy may be anything.
 */
#pragma once

#include "proto/env.h"
#include "proto/records.h"

/* In a task or outside. NULL: nothing was announced to this node yet, or it cannot be read. To be
 * freed. */
struct announce_args *announced_read(const struct env *env);

/* Answers a call that only the master can answer: NOT_MASTER with the master's name. */
void announced_refuse(const struct env *env, struct rpc_request *request);
