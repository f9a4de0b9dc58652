/*
 * Return (SAF-19): whatever this node has - guests, exports, mirrors - goes on only as far as the
 * master confirms it. At the start of the node daemon, every few seconds, and whenever the master
 * becomes reachable, one question about everything.
 */
#pragma once

#include "core/node/guest.h"

/* Starts the task that asks. */
void reconcile_start(struct node_core *node);
/* Ask now rather than at the next interval. */
void reconcile_kick(struct node_core *node);

/* With the guest locked: makes sure that its process has been confirmed since the node daemon
 * began, asking the master if not. TEMPORARY: no answer; REFUSED: superseded, and ended. */
bool reconcile_adopt(struct guest *guest, GError **error);
/* The same for a process of an older history only, so that its generation can be compared with one
 * of this history (SAF-02). A process that the master refuses is ended; that is no error. */
bool reconcile_renew(struct guest *guest, GError **error);
