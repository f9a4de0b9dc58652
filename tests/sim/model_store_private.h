/* Insides of the model of a store: model_store.c (the disk, the copy), model_store_engine.c. */
#pragma once

#include "model_store.h"

struct row {
    char *kind, *key;
    guint64 version;
    json_t *object;
};

struct model_store {
    char *node;
    struct model_store_events events;
    enum { STORE_NONE, STORE_WHOLE, STORE_DAMAGED } state;
    struct copy_position at;
    struct mastership master; /* a copy's has an epoch only */
    GHashTable *objects;      /* "kind key" -> struct row */
    GHashTable *filling;      /* the same, of a refill */
    guint64 filling_digest;
    GHashTable *ids; /* commit id -> serial (pointer) */
    guint fail;
    guint refills;
};

struct opened_copy {
    struct copy base;
    struct model_store *store;
    const struct env *env;
};

/* `serial` 0: each has a version of its own. */
void store_put_changes(struct model_store *store, const GPtrArray *changes, guint64 serial);
void store_moved(struct model_store *store, const struct copy_position *before);
bool store_fails(struct model_store *store, GError **error);
guint store_sync_ms(struct model_store *store);
