/*
 * A master of node1 and the wconfd of two other candidates, as far as it sees them: their questions
 * (`follow`) are made by the test.
 */
#pragma once

#include "unit/core/world/wconf_world.h"

extern struct env *node2, *node3; /* their wconfd */
extern struct env *person;        /* a command of node1 */

/* Nodes 1 to 3 are candidates; all of them promise. Ends with world_tear_down(). */
void copies_set_up(void);
/* A copy of mastership `epoch`, or of the present one, asks with what it has. Not waited for. */
void ask_start_of(struct env *from, guint64 epoch, guint64 history, guint64 serial,
                  const char *digest, guint wait_ms, struct fake_reply *reply);
void ask_start(struct env *from, guint64 history, guint64 serial, const char *digest, guint wait_ms,
               struct fake_reply *reply);
/* The digest that the master has now, as a follower would compute it; g_free() it. */
char *digest(void);
/* A new tag; not waited for. */
void commit_start(const char *id, const char *tag, struct fake_reply *reply);
