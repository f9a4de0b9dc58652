/*
 * Daemons that are active on the master only (luxid, the watcher): they run on every candidate,
 * wait until this node's wconfd is master, start then, and end when that is over; their supervisor
 * starts them anew. A wconfd that is restarted and goes on under the same epoch is no end.
 */
#pragma once

#include "proto/env.h"

struct standby;

/* `start`: core's X_start(), called in a task once this node is the master. */
struct standby *standby_new(const struct env *env, bool (*start)(GError **error));
/* `fn` is called in a task, while this node is not the master, with each newest mastership that its
 * wconfd has heard of. Before standby_start(). */
void standby_on_epoch(struct standby *standby,
                      void (*fn)(const struct env *env, struct stamp newest));
void standby_free(struct standby *standby);
/* In a task, as the daemon's own start(): returns when it is known what this node is, and if it is
 * the master, when `start` has returned. */
bool standby_start(struct standby *standby, GError **error);
/* Whether `start` was called. */
bool standby_active(const struct standby *standby);
/* Answers a call of a client that has come to the wrong node: NOT_MASTER with the master's name; or
 * too early: TEMPORARY. */
void standby_refuse(const struct standby *standby, struct rpc_request *request);
