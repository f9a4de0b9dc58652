/*
 * Images, and exports of replicas, on one node: the interface that core/ thinks against;
 * backend/storage/ and the simulator implement it. Calls run in a task. Names on disk are the
 * implementation's; an image is named by (instance, replica or "" for the primary's, index).
 */
#pragma once

#include "proto/records.h"
#include "proto/rpc.h"

struct storage;

struct storage_space {
    guint64 total_mib, free_mib;
};

/* A file of another place, as it is now. */
struct storage_file {
    struct storage_space space; /* of what it is on */
    guint64 bytes;
};

struct storage_events {
    /* An export process ended by itself: its replica's disk failed (SAF-14). */
    void (*export_ended)(const char *instance, const char *replica, guint64 generation, void *data);
    void *data;
};

struct storage_ops {
    void (*set_events)(struct storage *storage, const struct storage_events *events);
    /* What only looks – space, look_at, source_size, files, sizes, list, strays, shared, sources –
     * holds up nobody else, and comes back when what it looks at does. */
    /* What can be given; disks that fail have no space at all. */
    bool (*space)(struct storage *storage, struct storage_space *ret_space, GError **error);
    /* At any file, by its absolute path. */
    bool (*look_at)(struct storage *storage, const char *path, struct storage_file *ret_file,
                    GError **error);
    /* Writes, syncs and reads a little beside the images: whether that disk works. NO_RESOURCES: it
     * is full; STORAGE. Waits as long as the disk does, which may be for ever. */
    bool (*trial)(struct storage *storage, GError **error);
    /* Size in bytes of a source image; UNKNOWN_ENTITY if there is none, WRONG_INPUT if its name
     * leaves the folder. */
    bool (*source_size)(struct storage *storage, const char *os_type, guint64 *ret_bytes,
                        GError **error);
    /* Creates images, synced; what stood there before is made anew, and is there still after a
     * failure. With `os_type` disk 0 gets the content of that source, whatever its format. Images
     * of sharedfile go to the folder that all nodes mount, and are found there by every call below.
     * NO_RESOURCES (disk full), STORAGE, CORRUPT (a damaged source), WRONG_INPUT (a source that is
     * too large, encrypted, or refers to files outside of its folder), with nothing left behind. */
    bool (*create)(struct storage *storage, const char *instance, const char *replica,
                   enum disk_template disk_template, const GPtrArray *disks, const char *os_type,
                   GError **error);
    /* Of a set that is there: images of disk `first` and beyond go, and those that `disks` (all of
     * the instance's) still has are created anew, blank, as by create(). Images of the disks before
     * `first` are not touched. A death in the middle leaves some of the new ones, or none. */
    bool (*renew)(struct storage *storage, const char *instance, const char *replica,
                  enum disk_template disk_template, const GPtrArray *disks, guint first,
                  GError **error);
    /* How far a create() of the instance is, in MiB; false if none is under way. Does not wait. */
    bool (*progress)(struct storage *storage, const char *instance, guint64 *ret_done,
                     guint64 *ret_total);
    /* Lets a create() of the instance that is under way end with CANCELED, and nothing left behind,
     * unless its images have their names already. Does not wait. */
    void (*give_up)(struct storage *storage, const char *instance);
    /* Makes one image larger (never smaller: WRONG_INPUT), synced; no error if it is so already.
     * Raw images may be open in a running guest; a qcow2 image then is WRONG_STATE: its hypervisor
     * makes it larger itself (disk_resize). */
    bool (*grow)(struct storage *storage, const char *instance, const char *replica, guint disk,
                 guint64 size_mib, GError **error);
    /* The primary's images become those of a replica (the guest has moved away, SAF-17). Synced. No
     * error if that was done before. */
    bool (*demote)(struct storage *storage, const char *instance, const char *replica,
                   GError **error);
    /* Files of the images, in order; UNKNOWN_ENTITY if one is missing, CORRUPT if there are two of
     * a disk (in both folders or formats), or if the header of one names another file. */
    GPtrArray *(*files)(struct storage *storage, const char *instance, const char *replica,
                        guint count, GError **error);
    /* Disks 0 to count - 1 under the instance's own name, as they can be read from their files:
     * GPtrArray of struct sight_disk. `shared`: also in the folder that all nodes mount. Only
     * looks.
     */
    GPtrArray *(*sizes)(struct storage *storage, const char *instance, bool shared, guint count,
                        GError **error);
    bool (*sync)(struct storage *storage, const char *instance, const char *replica,
                 GError **error);
    /* All `count` images are there, and can be read from the disk itself, as far as samples tell.
     * UNKNOWN_ENTITY, CORRUPT as files(); STORAGE. */
    bool (*check)(struct storage *storage, const char *instance, const char *replica, guint count,
                  GError **error);
    /* The replica's images become the primary's; what stood there is kept aside under the
     * generation. Synced. */
    bool (*promote)(struct storage *storage, const char *instance, const char *replica,
                    guint64 aside_generation, GError **error);
    /* Keeps images aside (SAF-19); no error if there are none. Shared images belong to no node:
     * they are never set aside, promoted or demoted, nor listed; only remove() and create() touch
     * them, and not while a guest of any node has them open (WRONG_STATE). */
    bool (*set_aside)(struct storage *storage, const char *instance, const char *replica,
                      guint64 generation, GError **error);
    bool (*remove)(struct storage *storage, const char *instance, const char *replica,
                   GError **error);
    bool (*remove_aside)(struct storage *storage, const char *instance, GError **error);
    /* Everything that is there, or everything kept aside: GPtrArray of struct image_set, in order.
     */
    GPtrArray *(*list)(struct storage *storage, bool aside, GError **error);
    /* Names of what is there among this node's own images that is none, nor about to be one:
     * GPtrArray of char *, one more than LIMIT_STRAYS at most. */
    GPtrArray *(*strays)(struct storage *storage, GError **error);
    /* What tells the folder that all nodes mount from others, a UUID; "": it is not mounted here,
     * or nobody has used it yet; NULL: it could not be looked at. Borrowed until the next call.
     * `ret_space` (may be NULL) is its space, 0 if that is not known. */
    const char *(*shared)(struct storage *storage, struct storage_space *ret_space);
    /* Names of all that create() can take as a source; NULL: not known, as there is too much of it.
     * Free with g_ptr_array_unref(). */
    GPtrArray *(*sources)(struct storage *storage);

    /* Starts one fail-stop export per disk, reachable when it returns. Opening again what is open
     * gives the same answer. `durable`: every write is synced before it is answered. Otherwise that
     * begins with export_settle(): only for a replica that is promised to nobody yet (SAF-14). What
     * is durable never becomes lazy. */
    bool (*export_open)(struct storage *storage, guint64 history, const char *instance,
                        const char *replica, guint64 generation, const GPtrArray *disks,
                        const char *address, bool durable, struct export_target **ret_target,
                        GError **error);
    /* Every write to this very opening (`target` is its answer) that was answered is on stable
     * storage when it returns, and every later one is before its own answer. WRONG_STATE: that
     * opening is over; STORAGE: not all of its exports have said so. */
    bool (*export_settle)(struct storage *storage, const struct export_target *target,
                          GError **error);
    /* Ends them and sees their exit, then syncs the images. No error if there are none. */
    bool (*export_close)(struct storage *storage, const char *instance, const char *replica,
                         GError **error);
    /* Exports that outlived the node daemon: GPtrArray of struct replica_report. */
    GPtrArray *(*export_rediscover)(struct storage *storage, GError **error);
    /* From the node that mirrors: does every export of the target answer? Waits at most
     * `timeout_ms`. */
    bool (*probe)(struct storage *storage, const struct export_target *target, guint timeout_ms);
};

struct storage {
    const struct storage_ops *ops;
};
