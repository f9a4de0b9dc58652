/*
 * The task beside each running guest that has a mirror (procedures.md, "Mirror watch"): it tells
 * the master when the replica has every write, and it alone lets a guest go on whose replica is
 * lost, after the master has that on record (SAF-13). A procedure that wants to touch the mirror
 * stops the watch first and owns the mirror from then on.
 */
#pragma once

#include "core/node/guest.h"

/* Starts it for record->target; guest->replica_state and replica_sync are what is on record. `lost`
 * (a reason) begins with the stale procedure; NULL: the mirror is believed whole. */
void mirror_watch_start(struct guest *guest, const char *lost);
/* Ends it and waits for that; the guest's mirror is then in whatever state it is. False if the
 * process was killed. No watch: true at once. */
bool mirror_watch_stop(struct guest *guest);

/* Waits until the mirror is whole or over, at most `wait_ms`, so that commands which drain the disk
 * are safe to send (SAF-15). False: still neither. */
bool mirror_watch_settle(struct guest *guest, guint wait_ms);

/* Whether every export of the target answers right now. */
bool mirror_reachable(struct guest *guest);

/* For a guest without a watch: brings "stale" on record, repeating for `wait_ms`, so that it stays
 * known if the master and this host are lost; REFUSED, TEMPORARY (it is not, as far as is known).
 * Where it is on record already only that is seen to. */
bool mirror_record_stale(struct guest *guest, const char *why, guint wait_ms, GError **error);
/* The same, then releases the mirror; TEMPORARY: the guest must not go on; HYPERVISOR. */
bool mirror_give_up(struct guest *guest, const char *why, guint wait_ms, GError **error);
