/*
 * The care for this node's member of etcd (docs/design/mastership.md, "etcd"): engine_set,
 * engine_status and the member_ methods. A member that was started is kept running: after it has
 * ended it is started again, after pauses that grow; it is found again after a restart of the node
 * daemon and started after a reboot. A member that has lost its data is never started again: it
 * would vote for what it has forgotten (SAF-07).
 *
 * What is wanted is in var/node/member.json, synced before anything is done.
 */
#pragma once

#include "proto/env.h"
#include "proto/records.h"

struct keeper;

/* NULL if this node daemon cares for no members (env->members). */
struct keeper *keeper_new(const struct env *env);
/* Nothing is done any more; the member lives on. Tasks that still run keep the struct until they
 * end. NULL is allowed. */
void keeper_free(struct keeper *keeper);
/* In a task: finds the member that outlived the node daemon and begins its care. What is wrong with
 * it is logged and shown by engine_status: guests must not wait for it. NULL is allowed. */
void keeper_start(struct keeper *keeper);

/* Whether a mastership of the SQLite engine may be promised to that node. To this one itself
 * always: what its store says decides. Else, while the engine is etcd to nobody; while a change to
 * it is being decided to `master` alone, who decides it, and to whoever has a later serial of the
 * engine sqlite, `serial`, so that it was not made. WRONG_STATE with the reason; CORRUPT. NULL is
 * allowed. */
bool keeper_may_promise(const struct keeper *keeper, const char *node, const char *master,
                        guint64 serial, GError **error);

/* The member among the services of this node; NULL: there is none. Free with service_report_free().
 */
struct service_report *keeper_service(const struct keeper *keeper);

/* Procedures of noded's methods: `args` is the method's record, the answer a new reference.
 * WRONG_STATE without a keeper (NULL). */
json_t *keeper_engine_set(struct keeper *keeper, const void *args, GError **error);
json_t *keeper_engine_status(struct keeper *keeper, const void *args, GError **error);
json_t *keeper_member_prepare(struct keeper *keeper, const void *args, GError **error);
json_t *keeper_member_certify(struct keeper *keeper, const void *args, GError **error);
json_t *keeper_member_start(struct keeper *keeper, const void *args, GError **error);
json_t *keeper_member_stop(struct keeper *keeper, const void *args, GError **error);
json_t *keeper_member_aside(struct keeper *keeper, const void *args, GError **error);
json_t *keeper_member_remove(struct keeper *keeper, const void *args, GError **error);
