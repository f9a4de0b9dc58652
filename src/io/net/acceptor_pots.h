/*
 * Who keeps how many connections open, by address; what acceptor.c takes and says by it (SAF-109).
 * Members' addresses and all others have pots of their own, so that strangers never take a member's
 * place. Pure but for the boot clock.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

struct acceptor_pots;

struct acceptor_limits {
    guint strangers;  /* connections of all addresses that are no member's */
    guint of_address; /* of one, a member's or not */
    const char *why_strangers, *why_of_address; /* others are refused */
};

/* The limits are copied; their texts stay the caller's. */
struct acceptor_pots *acceptor_pots_new(const struct acceptor_limits *limits);
void acceptor_pots_limit(struct acceptor_pots *pots, guint strangers);
void acceptor_pots_free(struct acceptor_pots *pots);

/* Whether one more of that address is taken; if so, to be given back once. Else why not. */
bool acceptor_pots_take(struct acceptor_pots *pots, const char *address, bool member,
                        const char **ret_why);
/* Whether one more stranger of that address would be taken if there were fewer of others. */
bool acceptor_pots_full(const struct acceptor_pots *pots, const char *address);
void acceptor_pots_give(struct acceptor_pots *pots, const char *address, bool member);

/* How many of that address have been taken. */
guint acceptor_pots_taken(const struct acceptor_pots *pots, const char *address);

/* Whether a line may be written about that address: one in HANDSHAKES_COMPLAIN_MS. `ret_more`: how
 * many were not since the last one. */
bool acceptor_pots_may_say(struct acceptor_pots *pots, const char *address, guint *ret_more);
