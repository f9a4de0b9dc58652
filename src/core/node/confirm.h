/*
 * What this node asks the master: may this go on here (SAF-03), and the word on a replica's state
 * (SAF-12). "Refused" is only what the master says with a higher generation in hand; everything
 * else but a confirmation is no answer: stay as you are, ask again (SAF-04).
 */
#pragma once

#include "core/node/guest.h"

/* Asks all of them in one call, behind one barrier. `items`: GPtrArray of struct confirm_item,
 * borrowed. The answers in the same order; NULL: no answer, with the reason. One that comes after
 * another master has announced itself is none. */
struct confirm_answers *confirm_ask(struct node_core *node, GPtrArray *items, GError **error);

/* One question, repeated for about CONFIRM_TRIES_MS, unless the operation `op` (NULL: none) is
 * overtaken. True: confirmed. REFUSED: superseded; WRONG_STATE: the record says otherwise;
 * TEMPORARY: no answer. */
bool confirm_one(struct node_core *node, const struct epoch_fence_op *op, enum confirm_role role,
                 const char *instance, guint64 generation, const char *replica, GError **error);

/* The same for a point in time of a volume (SAF-59), by its attachment: whether the work with that
 * claim is on record. */
bool confirm_point(struct node_core *node, const char *instance, guint64 generation,
                   const char *attachment, guint64 claim, GError **error);

/* The question whether a replica may be exported, asked in the same way; `ret_state`: what it is on
 * record as; `ret_holder`: who mirrors to it, "" if the master does not say. */
bool confirm_export(struct node_core *node, const struct epoch_fence_op *op, const char *instance,
                    guint64 generation, const char *replica, enum replica_state *ret_state,
                    char **ret_holder, GError **error);

/* How the master's record of the guest's replica stands. */
enum replica_word {
    REPLICA_WORD_ACCEPTED, /* it has the wanted state */
    REPLICA_WORD_CHANGED, /* it has another state or number than was known: guest->replica_* tell */
    REPLICA_WORD_GONE, /* this generation is current, and the replica is not its replica any more */
    REPLICA_WORD_REFUSED,   /* this generation is superseded */
    REPLICA_WORD_NO_ANSWER, /* nothing is known */
};
/* One try to bring the record of guest->record->target to `state`, with the guest's generation and
 * sync number. Updates guest->replica_state and replica_sync. */
enum replica_word confirm_replica_state(struct guest *guest, enum replica_state state,
                                        const char *why);
/* Asks how the replica stands, changing nothing: ACCEPTED (guest->replica_* tell), GONE, REFUSED,
 * NO_ANSWER. */
enum replica_word confirm_replica_look(struct guest *guest);
/* Whether the record of this very generation, that the replica is stale or not its replica any
 * more, is more than this one master's. */
bool confirm_replica_kept(struct guest *guest);

/* Is the guest's generation at `answer` superseded? False for an answer that shows no higher one.
 */
bool confirm_superseded(const struct confirm_result *answer, guint64 generation);
