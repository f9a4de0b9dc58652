/*
 * Whose turn it is to ask LuxiD: of all calls that are under way there are LIMIT_RAPI_CALLS at
 * once, and of those that may take long LIMIT_RAPI_LONG_CALLS, so that others can pass. Who comes
 * then waits, in the order of coming, for half of the time that his call may take: whoever begins
 * has the other half, so that he is not left in doubt about what he has only just asked. Behind
 * daemons/rapid/luxid_calls.h.
 */
#pragma once

#include "proto/env.h"

struct rapi_turns;

struct rapi_turns *rapi_turns_new(const struct env *env);
/* Nobody waits any more. */
void rapi_turns_free(struct rapi_turns *turns);
/* Whether a method of LUXI may take long. */
bool rapi_turns_is_long(const char *method);
/* In a task; waits until one more call may begin. `left_ms`: what it may take in all, and with true
 * what is left of that then, never 0. TEMPORARY: too many wait already, or its turn did not come;
 * KILLED. */
bool rapi_turns_take(struct rapi_turns *turns, bool is_long, guint *left_ms, GError **error);
/* The call is over. */
void rapi_turns_give_back(struct rapi_turns *turns, bool is_long);
