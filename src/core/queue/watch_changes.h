/*
 * WatchChanges: what has changed of jobs, instances, decisions and other objects since a serial, as
 * a long poll (docs/design/procedures.md, "Changes as a stream"). luxi.c tells of every change;
 * nothing is remembered before somebody has asked for the first time.
 */
#pragma once

#include "core/queue/context.h"

struct watches;

struct watches *watch_changes_new(struct queue_context *context);
/* Fails the calls that wait: the process ends. */
void watch_changes_free(struct watches *watches);

/* Takes the request over: answers at once if the client has to begin or begin anew, else when there
 * are changes or the wait is over. */
void watch_changes_add(struct watches *watches, struct rpc_request *request,
                       const struct luxi_watch_changes_args *args);

/* An object of the configuration was put or deleted; its copy is up to date already. Kinds that
 * nobody can watch count for those that they belong to, or not at all. */
void watch_changes_config_changed(struct watches *watches, const char *kind, const char *key);
/* The file of a running job has changed. */
void watch_changes_job_changed(struct watches *watches, guint64 id);
/* Nobody knows what has changed: everybody begins anew. */
void watch_changes_reset(struct watches *watches);
