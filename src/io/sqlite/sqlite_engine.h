/*
 * The embedded state engine (proto/engine.h) on SQLite: WAL, synchronous=FULL, a worker thread that
 * commits whatever has queued up in one transaction, so that many commits share one sync. Only
 * wconfd opens a store; a second process is refused by a lock on the file STORE.lock.
 *
 * Damage is never overlooked: each row has a checksum, the set of all objects has one that every
 * commit carries forward, serials must be without gaps, and the store must not be behind what its
 * lock file says was answered. A store that fails any of this is CORRUPT, with what to do.
 */
#pragma once

#include "proto/engine.h"

/* Makes a new store with one commit of serial 1: GPtrArray of struct change. ALREADY_EXISTS if
 * there is a file. Synced when it returns. */
bool sqlite_engine_create(const char *path, guint64 history, const GPtrArray *changes,
                          GError **error);

/* UNKNOWN_ENTITY: no such file ("no cluster here; run fettle cluster init"). WRONG_STATE: another
 * process has it. CORRUPT: it cannot be trusted (found here, or by load()). Close with
 * engine->ops->close(). */
struct engine *sqlite_engine_open(const char *path, GError **error);
/* While nobody asks for anything it reads what it has stored anew, some rows at a time
 * (sqlite_store_scrub()). `tell` is called from the loop with what it finds damaged, when that has
 * changed; with NULL when all was read again and is whole. */
void sqlite_engine_on_damaged(struct engine *engine, void (*tell)(const char *what));
