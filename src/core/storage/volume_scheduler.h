/*
 * The scheduler of volumes: a service on every master candidate, beside the others, whichever of
 * them is the master (CLN-25). It chooses a back end for rows that have none, sees to it that what
 * is to be cleaned is cleaned by somebody, and looks for services that have died. What schedulers
 * know of each other stands on record alone (docs/design/storage.md). Part of fettle-watcher, under
 * a role of its own.
 */
#pragma once

#include "proto/env.h"

struct config;
struct volume_scheduler;

/* `env`: of role scheduler. `ended` is called at most once: another process has its name, and this
 * one must end. */
struct volume_scheduler *volume_scheduler_new(const struct env *env,
                                              void (*ended)(const GError *error, void *data),
                                              void *data);
/* Returns at once; there may be no master for long. */
void volume_scheduler_start(struct volume_scheduler *scheduler);
/* Before its environment ends. */
void volume_scheduler_free(struct volume_scheduler *scheduler);
/* Its copy; at serial 0 before the first master has answered. Borrowed until the next turn. */
const struct config *volume_scheduler_config(const struct volume_scheduler *scheduler);
