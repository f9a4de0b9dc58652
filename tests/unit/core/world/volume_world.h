/*
 * Volume services and schedulers against the real configuration daemon and back ends in memory:
 * processes that are started, stopped, killed at any step, and what must be true all the
 * while.
 */
#pragma once

#include "core/storage/volume_scheduler.h"
#include "core/storage/volume_service.h"
#include "helper/fake_volumes.h"
#include "unit/core/world/storage_world.h"

/* One process. */
struct volumed {
    struct env *env;
    struct volume_service *service;     /* NULL: it is a scheduler */
    struct volume_scheduler *scheduler; /* NULL: it is none */
    char *ended;                        /* why it ended by itself */
    bool killed;
};

extern struct fake_volumes *volumes;

/* The usual cluster with its back ends (storage_world.h), nobody started; `more` as there. */
void volumes_set_up(GPtrArray *more);
void volumes_tear_down(void);

/* A new process on node 1 to 3. Lives until the test's end. */
struct volumed *volumed_start(guint node);
/* The same, with another name of its host (CLN-27). */
struct volumed *volumed_start_as(guint node, const char *host);
/* The scheduler of that node. */
struct volumed *scheduler_start(guint node);
void volumed_kill(struct volumed *process);

/* --- steps: each time that it calls the back end or wconfd, before and after that --- */

/* The step of that number of this process stops it (fake_pause()); 0: none does. Counts from 1. */
void volumed_stop_at(struct volumed *process, guint step);
/* Whether it has come to that. */
bool volumed_stopped(void);
guint volumed_steps(void);

/* --- work --- */

/* A change of the cluster's parameters, by a job: as config_put() takes them, `{s:i}` say. */
void volumes_set_cluster(json_t *fields);
/* The answer of request_cleanup by a person, as `cleaning: node1@dir1 by node2@dir1 (3);
 * unavailable: -`, or its error. `filters`: as json_make() gives it; NULL: none. */
char *volumes_ask_cleanup(json_t *filters);
const struct storage_service *volumes_service(const char *host, const char *backend);

/* Accepted; UUID of the volume, valid for ever. */
const char *volume_ask(const char *operation, const char *resource, guint size,
                       const char *backend);
/* The same by all arguments of accept_work (stolen); UUID of what it is about. */
const char *volume_ask_for(json_t *args);
/* A process of the name of node1's member takes the rows of all these volumes, and dies. */
void volumes_die_with(const GPtrArray *uuids);
/* Time passes until no row is left, at most an hour; or until a process has stopped. */
void volumes_work(void);
/* `available 2 GiB`, `error`, `gone`: what is on record of a volume, a snapshot or a backup. With
 * `data`: and what is there fits it. */
char *volume_said(const char *uuid);
/* Nothing is there but what records name, no trash and no row, after two hours at most. */
void volumes_assert_clean(void);
