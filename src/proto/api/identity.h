/*
 * Who may ask the API: users, projects, roles, kept by a store of the front ends' own. It keeps
 * objects by kind and key, as JSON, and knows nothing of what they say (core/api has the model);
 * several processes may have the same one open.
 */
#pragma once

#include "proto/change.h"

#define IDENTITY_FAILURES 5 /* of each user that are remembered */

struct identity_store;

struct identity_ops {
    /* Gives all objects to `visit` (`object` is stolen), and what the store has them at: its
     * version. CORRUPT, STORAGE. */
    bool (*load)(struct identity_store *store,
                 void (*visit)(const char *kind, const char *key, json_t *object, void *data),
                 void *data, guint64 *ret_version, GError **error);
    /* Its version now; cheap, asked before each request. STORAGE. */
    bool (*version)(struct identity_store *store, guint64 *ret_version, GError **error);
    /* Puts and deletes (of array of struct change, whose versions say nothing), all or nothing,
     * synced, if the store is at that version yet. In a task; waits. `ret_version`: what it has
     * then. VERSION_CONFLICT: it is not, nothing was changed. STORAGE. */
    bool (*commit)(struct identity_store *store, GPtrArray *changes, guint64 version,
                   guint64 *ret_version, GError **error);
    /* When the last logins of that user failed, in microseconds since 1970, what was noted last
     * first, 0: none; with `note_us` one more has, just then. The version stays. In a task; waits
     * if it notes. STORAGE, TEMPORARY. */
    bool (*failures)(struct identity_store *store, const char *user, gint64 note_us,
                     gint64 ret_us[IDENTITY_FAILURES], GError **error);
};

struct identity_store {
    const struct identity_ops *ops;
};
