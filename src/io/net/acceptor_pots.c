/* See acceptor_pots.h. */
#include "io/net/acceptor_pots.h"

#include "base/limits.h"
#include "io/loop.h"

struct pot {
    guint taken;
    gint64 said_ms; /* 0: nothing yet */
    guint unsaid;
};

struct acceptor_pots {
    GHashTable *pots; /* address -> struct pot */
    guint strangers;
    struct acceptor_limits limits;
};

struct acceptor_pots *acceptor_pots_new(const struct acceptor_limits *limits)
{
    struct acceptor_pots *pots = g_new0(struct acceptor_pots, 1);
    pots->pots = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    pots->limits = *limits;
    return pots;
}

void acceptor_pots_limit(struct acceptor_pots *pots, guint strangers)
{
    pots->limits.strangers = strangers;
}

void acceptor_pots_free(struct acceptor_pots *pots)
{
    if (pots == NULL)
        return;
    g_hash_table_unref(pots->pots);
    g_free(pots);
}

static bool was_said_lately(const struct pot *pot)
{
    return pot->said_ms != 0 && loop_boot_ms() - pot->said_ms < HANDSHAKES_COMPLAIN_MS;
}

static gboolean is_idle(gpointer address, gpointer value, gpointer all)
{
    const struct pot *pot = value;
    return pot->taken == 0 && (all != NULL || !was_said_lately(pot));
}

/* Addresses cost a stranger little, so that they are forgotten when there are many. */
static struct pot *pot_of(struct acceptor_pots *pots, const char *address)
{
    struct pot *pot = g_hash_table_lookup(pots->pots, address);
    if (pot != NULL)
        return pot;
    if (g_hash_table_size(pots->pots) >= LIMIT_HANDSHAKE_ADDRESSES)
        g_hash_table_foreach_remove(pots->pots, is_idle, NULL);
    if (g_hash_table_size(pots->pots) >= LIMIT_HANDSHAKE_ADDRESSES)
        g_hash_table_foreach_remove(pots->pots, is_idle, pots);
    pot = g_new0(struct pot, 1);
    g_hash_table_insert(pots->pots, g_strdup(address), pot);
    return pot;
}

bool acceptor_pots_take(struct acceptor_pots *pots, const char *address, bool member,
                        const char **ret_why)
{
    struct pot *pot = pot_of(pots, address);
    if (pot->taken >= pots->limits.of_address) {
        *ret_why = pots->limits.why_of_address;
        return false;
    }
    if (!member && pots->strangers >= pots->limits.strangers) {
        *ret_why = pots->limits.why_strangers;
        return false;
    }
    pot->taken++;
    pots->strangers += member ? 0 : 1;
    return true;
}

bool acceptor_pots_full(const struct acceptor_pots *pots, const char *address)
{
    return pots->strangers >= pots->limits.strangers &&
           acceptor_pots_taken(pots, address) < pots->limits.of_address;
}

void acceptor_pots_give(struct acceptor_pots *pots, const char *address, bool member)
{
    pot_of(pots, address)->taken--;
    pots->strangers -= member ? 0 : 1;
}

guint acceptor_pots_taken(const struct acceptor_pots *pots, const char *address)
{
    const struct pot *pot = g_hash_table_lookup(pots->pots, address);
    return pot ? pot->taken : 0;
}

bool acceptor_pots_may_say(struct acceptor_pots *pots, const char *address, guint *ret_more)
{
    struct pot *pot = pot_of(pots, address);
    if (was_said_lately(pot)) {
        pot->unsaid++;
        return false;
    }
    *ret_more = pot->unsaid;
    pot->unsaid = 0;
    pot->said_ms = loop_boot_ms();
    return true;
}
