/*
 * A model of var/store.db: objects at one serial, what the store is for, and the mastership record,
 * as io/sqlite/sqlite_copy.c and io/sqlite/sqlite_engine.c keep them. The disk outlives the
 * processes that open it; a process that ends in the middle of a transaction leaves all of it or
 * nothing. The disk can be slow and can fail.
 */
#pragma once

#include "proto/copy.h"
#include "proto/env.h"

struct model_store;

/* What a checker is told, after it is durable. `before`: where the store was. */
struct model_store_events {
    /* A commit of the engine, or the last one of a copy that becomes an engine (`id` NULL). */
    void (*committed)(struct model_store *store, const char *id, guint64 epoch, void *data);
    /* The position has changed, by whatever. */
    void (*moved)(struct model_store *store, const struct copy_position *before, void *data);
    /* Here begins the transaction that makes a copy the engine. */
    void (*takes_over)(struct model_store *store, const struct copy_batch *last, void *data);
    guint (*random)(guint below, void *data);
    /* How long a sync takes at this moment. */
    guint (*sync_ms)(struct model_store *store, void *data);
    void *data;
};

struct model_store *model_store_new(const char *node, const struct model_store_events *events);
void model_store_free(struct model_store *store);
const char *model_store_node(const struct model_store *store);

/* The store of a new cluster's master. */
void model_store_fill(struct model_store *store, guint64 history, const GPtrArray *changes);
/* A backup is put back: its objects, each with its version, and what that commits at `serial`. */
void model_store_restore(struct model_store *store, guint64 history, guint64 epoch,
                         const GPtrArray *objects, guint64 serial, const GPtrArray *changes);
/* The id of one of its commits. */
void model_store_know(struct model_store *store, const char *id, guint64 serial);
/* What a person or a broken disk does; nobody has it open. */
void model_store_lose(struct model_store *store);
/* What is left of a store whose mastership is over: a copy, if it is whole. */
void model_store_step_down(struct model_store *store);
void model_store_damage(struct model_store *store);
bool model_store_is_damaged(const struct model_store *store);
/* False: there is none, or it does not say. */
bool model_store_role(const struct model_store *store, enum copy_role *ret_role);
/* The next `count` transactions fail. */
void model_store_fail(struct model_store *store, guint count);

/* Opened by a process, as a copy (an empty one is made if there is none) or as the engine; closed
 * through the interface, after which nothing calls back any more. */
struct copy *model_store_copy(struct model_store *store, const struct env *env);
struct engine *model_store_engine(struct model_store *store, const struct env *env);

void model_store_position(const struct model_store *store, struct copy_position *ret_position);
/* Epoch of its mastership record; 0: it has none. */
guint64 model_store_record(const struct model_store *store);
/* Every object, in no order. */
void model_store_each(const struct model_store *store,
                      void (*each)(const char *kind, const char *key, guint64 version,
                                   json_t *object, void *data),
                      void *data);
guint64 model_store_version(const struct model_store *store, const char *kind, const char *key);
/* The serial that a commit id has there; 0: it is not known. */
guint64 model_store_lookup(const struct model_store *store, const char *commit_id);
guint model_store_count(const struct model_store *store);
guint model_store_refills(const struct model_store *store);
