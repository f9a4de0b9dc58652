/*
 * A candidate's copy in the SQLite store var/store.db (proto/copy.h): the same file and tables as
 * the engine's, which rconfd reads beside it. A worker thread does what waits for the disk.
 */
#pragma once

#include "proto/copy.h"

/* What the store at `path` is for; false if there is none. CORRUPT, STORAGE: in `error`. */
bool sqlite_copy_role(const char *path, enum copy_role *ret_role, GError **error);

/* The store of a node that is master no longer: kept beside it as store.db.epoch-EPOCH, so that
 * what it alone had can be looked at. Nobody may have it open. */
bool sqlite_copy_put_away(const char *path, guint64 epoch, GError **error);

/* The same of one that is whole, which then becomes a copy besides: whoever is made the master next
 * may need what it has. CORRUPT, STORAGE: it is what it was. */
bool sqlite_copy_step_down(const char *path, guint64 epoch, GError **error);

/* Opens it; an empty one is made where there is none, or where what is there is damaged beyond use
 * (that is kept beside it as store.db.damaged). STORAGE, WRONG_STATE: another process has it, or it
 * is an engine. */
struct copy *sqlite_copy_open(const char *path, GError **error);
/* What was wrong with what was put away then; NULL: nothing was. */
const char *sqlite_copy_damage(const struct copy *copy);
