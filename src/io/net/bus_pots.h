/*
 * Who keeps how many connections open on which nothing is proven yet, by address; what bus_tls.c
 * takes and says by it (SAF-109). Members' addresses and all others have pots of their own, so that
 * strangers never take a member's place. Pure but for the boot clock.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

struct bus_pots;

/* `most_strangers`: connections of all addresses that are no member's. */
struct bus_pots *bus_pots_new(guint most_strangers);
void bus_pots_limit(struct bus_pots *pots, guint most_strangers);
void bus_pots_free(struct bus_pots *pots);

/* Whether one more of that address is taken; if so, to be given back once. Else why not. */
bool bus_pots_take(struct bus_pots *pots, const char *address, bool member, const char **ret_why);
void bus_pots_give(struct bus_pots *pots, const char *address, bool member);

/* Whether a line may be written about that address: one in HANDSHAKES_COMPLAIN_MS. `ret_more`: how
 * many were not since the last one. */
bool bus_pots_may_say(struct bus_pots *pots, const char *address, guint *ret_more);
