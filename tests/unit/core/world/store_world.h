/*
 * A wconfd of a few lines for tests of its clients: objects with versions, commits checked against
 * them, the change stream as a long poll. The test sees and changes the objects directly, and
 * decides how commits end.
 */
#pragma once

#include "helper/fake_env.h"

struct store_world;

/* Serves the calls of wconfd on the node of `env`, which is a process of role wconfd. */
struct store_world *store_world_new(struct env *env);
void store_world_free(struct store_world *store);

void store_set_epoch(struct store_world *store, guint64 epoch);
/* Members that cluster_status answers beside; `status` is stolen. */
void store_set_status(struct store_world *store, json_t *status);
/* UUID of a node that has not answered the epoch yet; NULL: all have. */
void store_set_pending(struct store_world *store, const char *node);
/* `object` is stolen; NULL deletes. Subscribers are told. */
void store_put(struct store_world *store, const char *kind, const char *key, json_t *object);
/* Borrowed; NULL if there is none. */
json_t *store_get(const struct store_world *store, const char *kind, const char *key);
/* All of them, by "KIND/KEY"; to be unreffed. */
json_t *store_objects(const struct store_world *store);
/* While held, commits wait; released they go on in order. */
void store_hold(struct store_world *store, bool hold);
/* The next commit is refused. */
void store_fail_next(struct store_world *store, enum fettle_error code, const char *message);
guint store_commits(const struct store_world *store);
/* Answer of list_all_locks: the list of lock states, stolen. */
void store_set_locks(struct store_world *store, json_t *locks);
/* Answer of list_lock_waiters: the list, stolen. */
void store_set_waiters(struct store_world *store, json_t *waiters);
