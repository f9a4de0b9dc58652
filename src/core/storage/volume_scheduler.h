/*
 * The scheduler of volumes: a service on every master candidate, beside the others, whichever of
 * them is the master (CLN-25). It has a copy of what the master's wconfd has and goes on with the
 * next master. Part of fettle-watcher, under a role of its own.
 */
#pragma once

#include "proto/env.h"

struct config;
struct volume_scheduler;

/* `env`: of role scheduler. */
struct volume_scheduler *volume_scheduler_new(const struct env *env);
/* Returns at once; there may be no master for long. */
void volume_scheduler_start(struct volume_scheduler *scheduler);
/* Before its environment ends. */
void volume_scheduler_free(struct volume_scheduler *scheduler);
/* Its copy; at serial 0 before the first master has answered. Borrowed until the next turn. */
const struct config *volume_scheduler_config(const struct volume_scheduler *scheduler);
