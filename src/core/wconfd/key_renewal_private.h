/*
 * Inside of a renewal of keys: key_renewal.c (phases, commits, a person's word),
 * key_renewal_calls.c (one node), key_renewal_etcd.c (members of etcd).
 */
#pragma once

#include "core/wconfd/key_renewal.h"
#include "core/wconfd/wconf_private.h"

struct key_renewal {
    struct wconf *wconf; /* NULL: it has ended */
    const struct env *env;
    struct stamp stamp;
    GHashTable *heard;   /* UUID -> struct keys_status: what nodes have said in this mastership */
    GHashTable *tried;   /* "phase UUID" of nodes that are offline, and were asked all the same */
    GHashTable *settled; /* UUID of nodes whose member of etcd is as a renewal left it */
    GPtrArray *waits;    /* char *: what this phase waited for when it was looked at last */
    char *signed_by;     /* the mastership is signed by this authority, and nodes are told */
    char *said;          /* the last complaint of its own */
    char *has_key_of; /* certificate of the authority whose key was found; NULL: to be looked for */
    struct rpc_request *request; /* of a person, to begin; NULL: none */
};

/* What one pass goes by. */
struct key_pass {
    struct key_renewal *keeper;
    struct cluster *cluster;
    GStrv wanted;     /* fingerprints of those whom nodes are to trust */
    GPtrArray *waits; /* becomes the keeper's */
};

/* This mastership has not ended; false also in a task that was killed. */
static inline bool key_renewal_alive(const struct key_renewal *keeper)
{
    return keeper->wconf && !keeper->wconf->down && !task_killed();
}

static inline struct authority *key_renewal_authority(const struct key_renewal *keeper)
{
    return keeper->env->authority;
}

/* --- key_renewal_calls.c --- */

/* Whether it has all that this phase is for. */
bool key_renewal_confirmed(const struct key_pass *pass, const char *uuid);
/* Tells it, and gives it a certificate if this phase does. Repeating it does nothing where it is so
 * already. */
void key_renewal_bring(const struct key_pass *pass, const struct node *node, GError **error);

/* --- key_renewal_etcd.c --- */

/* Whether every candidate would go on with those of etcd as the master: TEMPORARY, with the one
 * that would not. */
bool key_renewal_known(const struct wconf *wconf, GError **error);
/* Does what this phase is for at the members of all candidates, and adds whom it waits for. */
void key_renewal_bring_members(const struct key_pass *pass);
