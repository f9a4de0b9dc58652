/*
 * The relay of a guest's mirror: one nbdkit process with our plugin (backend/relay/) between its
 * QEMU and the exports of its replica, reached by a Unix socket. Used by block_jobs.c, mirror.c and
 * guest.c.
 *
 * It exists because a write-blocking mirror of QEMU 7.2 must not end while a write is under way
 * (docs/design/architecture.md, section 11), and a lost replica leaves writes under way that nobody
 * answers. To QEMU the replica is a socket that is always there: a forwarding relay holds what the
 * exports do not answer, and relay_refuse() puts one in its place that answers EIO to everything.
 *
 * As guests do, it outlives the node daemon, which finds it again by what is kept in
 * run/guests/UUID/relay/. The guest's QEMU and the relay are the same unprivileged user, who may
 * pass through that folder and change nothing in it:
 *
 *   state.json   its process, where the exports are, whether it may forward (mode 0600: the key)
 *   keys.psk     the key, as the plugin reads it at each connection; that user's
 *   sock         where QEMU connects; that user's
 *   N            socket of the N-th process until it is in its place, which it gets listening
 *   log          what it said
 *
 * In the version before the folder was that user's. Such a one is taken over when it is found, with
 * the same names, and what is kept there is believed no further than that user reaches itself.
 *
 * One that ends by itself is started again: QEMU connects anew and repeats what had no answer.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

/* In a task: starts one for a new mirror; what there was before is ended. `bytes`: the size of each
 * disk, which that of its export must be. Ready when it returns: every export has answered. Errors
 * carry the reason (a wrong key, no such export, no answer). */
bool relay_start(struct guest *guest, const struct export_target *target, const guint64 *bytes,
                 GError **error);
/* Where QEMU connects; free with g_free(). */
char *relay_socket(const struct guest *guest);
/* Whether the guest's mirror goes through one; one of an older version of us does not. */
bool relay_exists(const struct guest *guest);

/* One that has ended could not be started again for so long (LIMIT_RELAY_LOST_MS) that the replica
 * counts as lost. */
bool relay_is_lost(const struct guest *guest);

/* In a task: from its success on every request is answered, with EIO, whatever state the exports
 * and the process before were in; nothing is forwarded ever again. Only after `stale` is on record:
 * the guest's writes go on. Asked again: true. */
bool relay_refuse(struct guest *guest, GError **error);

/* In a task: ends it, the exit seen, and removes what was kept of it. True if there is none. */
bool relay_end(struct guest *guest, GError **error);
/* The guest's process has ended: the same in the background. */
void relay_abandon(struct guest *guest);

/* After a restart of the node daemon, in a task: finds it again. One that has ended meanwhile is
 * started again, if the guest lives. */
void relay_rediscover(struct guest *guest);
/* Only frees; the process lives on. */
void relay_free(struct relay *relay);
