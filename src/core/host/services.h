/*
 * The daemons of one node, as they are and were: which of them run, since when, how often they had
 * to be started again. Each says so of itself in run/services/NAME.json (daemons/common/daemon.c)
 * and holds a lock file, which alone tells whether it lives; the node daemon reads that for its
 * report (node_report). Nothing of it outlives the node's boot.
 */
#pragma once

#include "proto/env.h"

struct own_service;

/* In a task: this process is the daemon `name` from now on. NULL with an error if that cannot be
 * written down; the daemon does its work all the same. */
struct own_service *service_begin(const struct env *env, const char *name, guint64 pid,
                                  GError **error);
/* It ends by itself: `why` NULL if it was asked to, else what is wrong. Frees; NULL is allowed. */
void service_end(struct own_service *service, const char *why);

/* Adds a struct service_report for each daemon that has run since the boot, at most LIMIT_SERVICES,
 * sorted by name. */
void services_report(const struct env *env, GPtrArray *ret_to);
