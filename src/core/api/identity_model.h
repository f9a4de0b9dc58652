/*
 * Users, projects, roles and what binds them, in memory: the store's objects as structs, read again
 * when another front end has changed them. Decisions about them are made on these, and committed
 * only if the store has not changed meanwhile.
 */
#pragma once

#include "proto/api/identity.h"

#define IDENTITY_DOMAIN "default" /* the only one; its name is "Default" */

struct identity;

/* CORRUPT: an object does not parse, names kind and key; STORAGE. */
struct identity *identity_new(struct identity_store *store, GError **error);
void identity_free(struct identity *identity);
/* Reads it again if the store has changed. Pointers of before are no good any more. STORAGE. */
bool identity_refresh(struct identity *identity, GError **error);

/* By kind (the records of identity_records.def: "api_user") and key; NULL: there is none. Valid
 * until the next refresh or commit. */
const void *identity_get(const struct identity *identity, const char *kind, const char *key);
/* By its name; of credentials there is none. */
const void *identity_named(const struct identity *identity, const char *kind, const char *name);
/* All of a kind, by name where there is one, else by key; unref it. */
GPtrArray *identity_list(const struct identity *identity, const char *kind);

/* As identity_ops has it. */
bool identity_failures(struct identity *identity, const char *user_id, gint64 note_us,
                       gint64 ret_us[IDENTITY_FAILURES], GError **error);
/* A change that is decided on what is there: `decide` puts changes (identity_put, identity_drop)
 * into the list, or fails; it is asked again on what there is then if another front end was first.
 * In a task; waits. */
bool identity_change(struct identity *identity,
                     bool (*decide)(struct identity *identity, GPtrArray *changes, void *data,
                                    GError **error),
                     void *data, GError **error);
/* For `decide`: the record as it is to be, or its end. */
void identity_put(GPtrArray *changes, const struct record *record, const char *key,
                  const void *value);
void identity_drop(GPtrArray *changes, const char *kind, const char *key);
