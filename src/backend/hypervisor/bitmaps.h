/*
 * Dirty bitmaps of a guest's disks: which blocks were written since its replica had everything
 * (docs/design/procedures.md, "Incremental resync"). They live in the memory of the guest's QEMU
 * and end with it. Used by mirror.c and incremental.c.
 *
 * A block gets its bit when a write of it has ended on the guest's own disk, and only then is it
 * sent to the replica. So a replica lacks nothing but what has a bit, if each bitmap was begun
 * before the moment at which the replica had everything. At such a moment a mirror is idle: ready,
 * with nothing under way to its target. To keep them small, new bitmaps are begun beside the old
 * ones, and take their place once the mirror was seen idle after that; the guest is never stopped
 * for it.
 *
 * A copy of what they tell takes nothing out of them. So it may be cut off at any moment, as often
 * as it likes: it writes only blocks that have a bit, hence whatever of it reached the replica's
 * disk, or was lost there by a power cut, is copied again by the next one. A copy of everything is
 * not so: it begins with zeros from end to end. Before it the bitmaps are void.
 *
 * What they are "since" is in their names: a number that was never used before in this process, the
 * replica, the word for its images. Bitmaps of that name that are there and recording are the proof
 * that nothing was missed; anything else means that everything must be copied.
 */
#pragma once

#include "backend/hypervisor/qemu_private.h"

#define BITMAP_GRANULARITY 65536 /* bytes of a bit; what a backup job of QEMU copies at once */

/* The current bitmap of a disk. Free with g_free(). */
char *bitmaps_name(const struct guest *guest);

/* Whether the bitmaps tell what this replica lacks. If not, they are taken away, and
 * guest->written.number is 0. */
bool bitmaps_know(struct guest *guest, const struct export_target *target);
/* Everything is copied anew, or to another replica: what was known is void. It must be on record
 * (guest_state_write()) before that begins. */
void bitmaps_void(struct guest *guest);

/* On one node; names are free of choice. */
bool bitmap_add(struct guest *guest, const char *node, const char *name, bool recording,
                GError **error);
bool bitmap_remove(struct guest *guest, const char *node, const char *name, GError **error);
/* Bytes with a bit in the bitmaps of that name, all disks together. */
bool bitmaps_count(struct guest *guest, const char *name, guint64 *ret_bytes, GError **error);
/* Takes away every bitmap whose name begins so, but `keep` (may be NULL). */
bool bitmaps_sweep(struct guest *guest, const char *prefix, const char *keep, GError **error);
