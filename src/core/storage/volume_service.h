/*
 * The volume services of one node: fettle-volumed's thinking. One member for each back end that
 * names this node; none is fine, too. Members follow what the master's wconfd commits, take rows of
 * work that nobody has, carry them out by the volume driver, and clean what their former process
 * has left (docs/design/safety.md, SAF-50 to SAF-56). One file for each duty: volume_service.c  the
 * copy, members that come and go, beats volume_member.c   one member: its place, its registration,
 * whose turn it is volume_take.c     which row it takes when, and its task volume_work.c     what
 * all operations say to wconfd volume_create.c, volume_delete.c, volume_extend.c  the operations
 *   volume_look.c     what others ask about
 *   volume_clean.c    rows that its former process had
 *   volume_sweep.c    data that no record names
 */
#pragma once

#include "proto/env.h"

struct volume_service;

/* `env`: of role volumed, with `volumes`. `ended` is called at most once: this process has lost the
 * name of one of its members, and must end. */
struct volume_service *volume_service_new(const struct env *env,
                                          void (*ended)(const GError *error, void *data),
                                          void *data);
/* Returns at once; there may be no master for long. */
void volume_service_start(struct volume_service *service);
/* Once: it leaves figures for this node's fettle-mond from now on. */
void volume_service_leave_figures(struct volume_service *service);
/* A request to this process, of the methods of role volumed; answered later, from a task. */
void volume_service_handle(struct volume_service *service, struct rpc_request *request);
/* Before its environment ends. */
void volume_service_free(struct volume_service *service);
