/*
 * Brings a replica up to date that was away for a while: copies the blocks that were written since
 * it had everything, while the guest runs, then lets the guest stand still for a moment, copies the
 * last ones and attaches the mirror, which is ready at once. Used by mirror.c and qemu_query.c.
 *
 * The blocks are read through a second, read-only node of the same image: a backup job on the
 * guest's own node would answer its writes with the errors of the target. While this goes on the
 * bitmaps of before stay as they are, and go on recording, so a copy that is cut off anywhere can
 * be begun again, any number of times (bitmaps.h).
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

/* Gets everything ready, if the bitmaps know what is to be copied. False, with the reason: it
 * cannot be done, everything must be copied; nothing is left. */
bool incremental_prepare(struct guest *guest, GError **error);
/* Goes on in the background. */
void incremental_start(struct guest *guest);

/* While it is under way, how far it is. False: it is not, the mirror's own jobs tell. */
bool incremental_query(const struct guest *guest, struct mirror_info *ret_info);

/* Ends it, whatever state it is in, and takes away what it has made. Only when nothing is held back
 * any more: the relay refuses, or the connections are yanked. */
bool incremental_give_up(struct guest *guest, GError **error);
