/*
 * What the engine's worker thread finds damaged in its store, brought to the loop. For
 * sqlite_engine.c.
 */
#pragma once

#include "io/sqlite/sqlite_store.h"

struct store_damage;

struct store_damage *store_damage_new(void);
/* From the loop; what is on its way to it is told to nobody then. */
void store_damage_free(struct store_damage *damage);
/* From the thread that has the store: one step of its scrub. */
void store_damage_look(struct store_damage *damage, struct sqlite_store *store);
/* What was found last; NULL: nothing was, or all was read since and is whole. From the loop, as all
 * that follows. */
const char *store_damage_text(const struct store_damage *damage);
/* `tell` is called whenever that has changed. */
void store_damage_on(struct store_damage *damage, void (*tell)(const char *what));
