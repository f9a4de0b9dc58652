/*
 * A store of identities and secrets in memory, for tests of core/api: what several front ends share
 * and what they know. Passwords are kept as they are, seals hide nothing; both behave as the real
 * ones do otherwise.
 */
#pragma once

#include "proto/api/crypto.h"
#include "proto/api/identity.h"

/* One store; each front end may have it. */
struct fake_identity {
    struct identity_store store;
    guint64 version;
    GHashTable *objects;  /* "kind/key" -> json_t */
    GHashTable *failures; /* user id -> gint64[IDENTITY_FAILURES] */
    guint conflicts;      /* so many commits from now on find that others were first */
    const char *broken;   /* words of the error that everything fails with; NULL: nothing does */
    void (*meanwhile)(void *); /* called once in the next commit, while that waits; NULL */
    void *data;
};
struct fake_identity *fake_identity_new(void);
void fake_identity_free(struct fake_identity *fake);
/* As another front end would put it; `object` is stolen, NULL: taken away. */
void fake_identity_put(struct fake_identity *fake, const char *kind, const char *key,
                       json_t *object);

struct fake_crypto {
    struct crypto crypto;
    char key;                  /* of seals, 'a' at first; another one opens none of them */
    bool full;                 /* too many passwords wait */
    guint checked;             /* passwords */
    guint64 serial;            /* of random bytes */
    void (*meanwhile)(void *); /* called once while the next password is checked; NULL */
    void *data;
};
struct fake_crypto *fake_crypto_new(void);
void fake_crypto_free(struct fake_crypto *fake);
