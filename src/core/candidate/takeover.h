/*
 * A look at all candidates, and a person's word that makes one of them the master
 * (docs/design/mastership.md, "fettle cluster master-failover"). Used by seat.c, in tasks.
 */
#pragma once

#include "core/candidate/replication.h"
#include "core/config/model.h"
#include "proto/records.h"

/* Asks every candidate in `config` for its copy, and the master on record whether it lives. `own`
 * is what this node would answer. NULL: KILLED. */
struct seat_candidates *takeover_look(const struct env *env, const struct config *config,
                                      const struct role_status *own, GError **error);

/* The candidate that is meant: the named one, or the one with the newest copy, this node first.
 * UNKNOWN_ENTITY; UNSAFE: somebody is master, or the named one's copy is not the newest in reach;
 * WRONG_STATE: its copy is of no use. Borrowed. */
const struct seat_candidate *takeover_pick(const struct env *env,
                                           const struct seat_candidates *candidates,
                                           const char *node, GError **error);

/* Who is the master, or has the store of the engine and is about to become it; NULL: nobody that
 * answers. */
const struct seat_candidate *takeover_master(const struct seat_candidates *candidates);

/* What such a word puts on record, which made `self` the master; a GPtrArray of struct change. */
GPtrArray *takeover_record(const struct env *env, const struct seat_candidates *candidates,
                           const struct seat_candidate *self, const struct take_over_args *args);

/* For a node whose store is the engine already and that waits for promises: what a person's word
 * puts on record, so that the silent candidates need not be waited for any more; a GPtrArray of
 * struct change. NULL: WRONG_INPUT, or WRONG_STATE if it is not given for them. */
GPtrArray *takeover_word(const struct env *env, const struct config *config,
                         const struct seat_candidates *candidates,
                         const struct take_over_args *args, struct take_over_result **ret_result,
                         GError **error);

/* Makes this node's copy the engine: promises first, then one transaction with the new master, and
 * with `args->alone` without the candidates that do not answer. WRONG_INPUT; TEMPORARY: too few
 * promises; STALE_EPOCH: somebody has become master meanwhile; STORAGE: nothing was done. */
struct take_over_result *takeover(const struct env *env, struct copy *copy,
                                  const struct config *config,
                                  const struct seat_candidates *candidates,
                                  const struct take_over_args *args, GError **error);
