/*
 * A guest that stands still for some milliseconds, for work that must not meet its writes, and goes
 * on after it: when its mirror is taken away, and when a replica gets its last blocks. That it is
 * to go on is on record, so a node daemon that comes back sees to it. Used by mirror.c,
 * incremental.c, qemu.c and qemu_query.c.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

/* In a task: no write is under way when this returns true, and none comes before quiesce_end(). One
 * that does not run stays as it is. Draining: only while nothing is held back (SAF-15). */
bool quiesce_begin(struct guest *guest, GError **error);
/* It goes on as before; one that has switched itself off meanwhile does not. On failure it has to
 * be repeated by quiesce_recover(). */
bool quiesce_end(struct guest *guest, GError **error);
/* Lets a guest go on that a quiesce_end(), or a node daemon that died, has left. True if there is
 * nothing to be done. */
bool quiesce_recover(struct guest *guest, GError **error);

/* Between quiesce_begin() and quiesce_end(): error if somebody else has let it go on. */
bool quiesce_check(const struct guest *guest, GError **error);

/* Until quiesce_hand_back() nobody stops it or lets it go on but the caller. */
bool quiesce_hold(struct guest *guest, GError **error);
/* The same for who runs or pauses a guest for good: nobody else lets it go on after that. */
bool quiesce_take_over(struct guest *guest, GError **error);
void quiesce_hand_back(struct guest *guest);
