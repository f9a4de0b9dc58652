/*
 * A cell as the API sees it: reads come from a copy of its configuration, which follows; changes go
 * to its wconfd. After a change of its own the copy has it before the next answer, so who asks sees
 * what he has done.
 */
#pragma once

#include "core/config/follow.h"

struct cell;

struct cell *cell_new(const struct env *env);
void cell_free(struct cell *cell);
/* Returns at once; the first copy comes when there is a master. */
void cell_start(struct cell *cell);
/* The copy; NULL before there is one. Valid until the next wait. */
const struct config *cell_config(const struct cell *cell);
/* So old the copy may be: 0 while it follows; since the master was last heard of otherwise. */
gint64 cell_age_ms(const struct cell *cell);
/* Whether the copy has all that the calls of this front end were answered: what it shows is never
 * older than that. */
bool cell_has_own(const struct cell *cell);
/* In a task: until it has, for some seconds. TEMPORARY. */
bool cell_await_own(struct cell *cell, GError **error);
/* One call of a method of wconfd, by the name and records of proto/methods.def; in a task. `args`
 * carries a commit_id if it changes something: the same is asked again until it is answered, for
 * some seconds. The answer is to be freed with record_free(); when it has a serial the copy is
 * waited for, and may lack it yet (cell_has_own()). Errors: what wconfd says; TEMPORARY: no master
 * answers, or none answers this node, and nothing was done; UNKNOWN_RESULT: it may have been. */
void *cell_call(struct cell *cell, const char *method, const void *args, GError **error);
/* One call of a method of another role, at that node (UUID); once, but that who has not heard of
 * this front end yet is asked again for some seconds: TEMPORARY then. In a task. */
void *cell_call_at(struct cell *cell, const char *node, const char *role, const char *method,
                   const void *args, GError **error);
/* Submits a job of one opcode ("OP_INSTANCE_ATTACH_VOLUME", or …_DETACH_…) for a request of a
 * client, which gets one job however often it is asked; its id. Errors likewise. */
guint64 cell_submit(struct cell *cell, const char *op, const void *params, const char *request_id,
                    GError **error);
