/*
 * Promises of the candidates' nodes, before and during a mastership of an engine that is one node's
 * store (docs/design/mastership.md, "Becoming master with SQLite"). Used by wconf.c when it takes
 * its seat and while it has it, by seat.c when a person makes another candidate the master.
 *
 * All of it is called in a task. Candidates on record as offline are not asked: somebody has said
 * that they are dead. A candidate that is the only one asks nobody, unless a person's word has made
 * it that (cluster.alone): then all nodes are asked whether they follow another master. Their
 * silence is no hindrance, but for half a minute while nobody at all answers. What they tell counts
 * only with the authority's signature over it (SAF-102); a candidate's word counts by itself.
 */
#pragma once

#include "core/config/model.h"
#include "proto/env.h"

struct promise_wish {
    guint64 epoch; /* at least this one; raised above what others have promised to attempts that
                      came to nothing */
    guint64 since; /* newest mastership whose changes this node has */
    bool alone;    /* a person's word stands for the candidates that do not answer, and for a
                      mastership that was later than `since`; set by promises_alone() */
    bool by_copy;  /* this node has a copy, and becomes master by a person's word */
    guint64 signed_epoch; /* of `signature`, as the candidates are shown it; 0: none yet */
    bool signed_begun;    /* it is of the second round */
    char signature[LIMIT_VOUCHER_CHARS + 1];
};

/* The person's word; may come while the candidates are asked. Those that are silent may have had
 * masters of epochs that nobody here has heard of, by such a word too: the wish leaps beyond all of
 * them, to the wall clock in milliseconds or by LIMIT_EPOCH_LEAP. */
void promises_alone(const struct env *env, struct promise_wish *wish);

/* Until a majority of the candidates, this one included, has promised the epoch, in two rounds, so
 * that nobody serves under an epoch of which a majority has not heard. Waits for candidates that do
 * not answer, and says which. STALE_EPOCH: another node has become master since; its name is in the
 * message. KILLED. */
bool promises_get(const struct env *env, const struct config *config, struct promise_wish *wish,
                  GError **error);

/* The first round alone, once: TEMPORARY names those that did not answer. */
bool promises_ask(const struct env *env, const struct config *config, struct promise_wish *wish,
                  GError **error);

/* Until this node's own node daemon has said that it knows of no higher epoch, for a mastership
 * that goes on. STALE_EPOCH as above; TEMPORARY: it has promised one that has not begun. */
bool promises_go_on(const struct env *env, const struct config *config, guint64 epoch,
                    GError **error);

/* Asks every candidate whether it still follows this epoch. False: one does not, with STALE_EPOCH;
 * silence is no answer. */
bool promises_hold(const struct env *env, const struct config *config, guint64 epoch,
                   GError **error);
/* The same of one node that is no candidate. */
bool promises_hold_of(const struct env *env, const struct config *config, const struct node *node,
                      guint64 epoch, GError **error);
