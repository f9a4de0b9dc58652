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

struct member_care;

/* NULL if this node daemon cares for no members (env->members). */
struct member_care *member_care_new(const struct env *env);
/* Nothing is done any more; the member lives on. Tasks that still run keep the struct until they
 * end. NULL is allowed. */
void member_care_free(struct member_care *care);
/* In a task: finds the member that outlived the node daemon and begins its care. What is wrong with
 * it is logged and shown by engine_status: guests must not wait for it. NULL is allowed. */
void member_care_start(struct member_care *care);

/* Whether a mastership of the SQLite engine may be promised to that node. To this one itself
 * always: what its store says decides. Else, while the engine is etcd to nobody; while a change to
 * it is being decided to `master` alone, who decides it, and to whoever has a later serial of the
 * engine sqlite, `serial`, so that it was not made. WRONG_STATE with the reason; CORRUPT. NULL is
 * allowed. */
bool member_care_may_promise(const struct member_care *care, const char *node, const char *master,
                             guint64 serial, GError **error);

/* The member among the services of this node; NULL: there is none. Free with service_report_free().
 */
struct service_report *member_care_service(const struct member_care *care);

/* Procedures of noded's methods: `args` is the method's record, the answer a new reference.
 * WRONG_STATE with NULL. */
json_t *member_methods_engine_set(struct member_care *care, const void *args, GError **error);
json_t *member_methods_engine_status(struct member_care *care, const void *args, GError **error);
json_t *member_methods_prepare(struct member_care *care, const void *args, GError **error);
json_t *member_methods_certify(struct member_care *care, const void *args, GError **error);
json_t *member_methods_trust(struct member_care *care, const void *args, GError **error);
json_t *member_methods_restart(struct member_care *care, const void *args, GError **error);
json_t *member_methods_start(struct member_care *care, const void *args, GError **error);
json_t *member_methods_stop(struct member_care *care, const void *args, GError **error);
json_t *member_methods_aside(struct member_care *care, const void *args, GError **error);
json_t *member_methods_remove(struct member_care *care, const void *args, GError **error);
