/*
 * What a node can do with guests: the interface that core/ thinks against and backend/hypervisor/
 * (QEMU) or the simulator implements. Every call runs in a task, waits as long as it needs, and is
 * bounded by a timeout of its own. Facts behind the rules: QEMU freezes its monitor when a draining
 * command meets an unreachable replica (SAF-15).
 *
 * A guest is named by (instance UUID, generation): an action on another generation than the one
 * that exists fails with REFUSED and does nothing (SAF-20).
 */
#pragma once

#include "proto/records.h"
#include "proto/rpc.h"

struct hypervisor;

#define CONSOLE_SINCE_START G_MININT64
/* Drive of a volume, by the UUID of its attachment: names have 31 characters at most. */
#define VOLUME_DRIVE "w%.23s"

/* What happened without being asked; called from the loop. */
struct hypervisor_events {
    /* The process is gone, for whatever reason; its images are free. `said`: its last words if it
     * ended without being told to, else "". */
    void (*exited)(const char *instance, guint64 generation, const char *said, void *data);
    /* The guest switched itself off; the process lives on, paused (-action shutdown=pause). */
    void (*shutdown)(const char *instance, guint64 generation, void *data);
    /* A replica was to be brought up to date by what was written since (COPY_WRITTEN_SINCE): that
     * has begun (`why` NULL), or everything is copied, because of `why`. */
    void (*resyncing)(const char *instance, guint64 generation, const char *why, void *data);
    void *data;
};

struct guest_spec {
    const struct instance *instance; /* generation, memory, vcpus, machine type, disks, nics */
    GPtrArray *images;               /* char *: absolute file of each disk */
    const GPtrArray *volumes;        /* of struct guest_volume; NULL: none */
    GPtrArray *taps;                 /* char *: tap device of each network card; NULL: none */
    const char *kernel, *initrd;     /* absolute files; NULL: boot from the first disk */
    enum accelerator accelerator;
};

/* An incoming guest (SAF-17): a process that waits for another one's memory. */
struct incoming_spec {
    const char *migration; /* UUID */
    const char *address;   /* to listen on */
    bool serve_disks;      /* its images are written by the other side's mirror (template file) */
};

struct migration_limits {
    guint bandwidth_mib; /* per second */
    guint downtime_ms;
    bool live; /* false: paused before it begins */
};

enum migration_step {            /* as the hypervisor of the source sees it */
                      STEP_NONE, /* none was started, or it was canceled: the guest is as it was */
                      STEP_COPYING,
                      STEP_STOPPED, /* the guest stands still, everything but the last of its state
                                       is over there */
                      STEP_DONE, /* the other side has everything; this process never runs again by
                                    itself */
                      STEP_FAILED, /* the guest has gone on here */
};

struct migration_info {
    enum migration_step step;
    guint64 transferred, remaining, total; /* bytes, memory and copied disks together */
    guint64 bytes_per_s;
    guint downtime_ms;
    char *why; /* of a failure; free with g_free(); may be NULL */
};

struct mirror_info {
    enum mirror_state
        state;      /* of all disks together: ready only if each is; lost if a job has vanished */
    guint progress; /* percent */
};

/* What the guest's disks have answered since its process was made. It is always asked for, never
 * only told: a hypervisor's events are lost. */
struct io_info {
    guint64 errors;    /* requests of its own disks that failed and were told to it as failed */
    guint disk;        /* of the last of them, as far as two looks can tell */
    enum io_stop stop; /* NO_SPACE: the hypervisor has stopped the guest by itself, because a
                          request of a disk or a volume found no room; it is held, and counts as no
                          error. NONE otherwise. */
};

/* What a mirror copies before it is ready. */
enum mirror_copy {
    COPY_EVERYTHING,
    COPY_NOTHING,       /* the images are equal */
    COPY_WRITTEN_SINCE, /* what was written since this replica was last in sync on record, also if
                           a copy was cut off after that; everything if unknown */
};

struct hypervisor_ops {
    void (*set_events)(struct hypervisor *hv, const struct hypervisor_events *events);
    /* Starts the process with its CPUs stopped (-S). Images are locked by it. */
    bool (*prepare)(struct hypervisor *hv, const struct guest_spec *spec, GError **error);
    /* Lets the CPUs run. */
    bool (*run)(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
    bool (*pause)(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
    bool (*powerdown)(struct hypervisor *hv, const char *instance, guint64 generation,
                      GError **error);
    bool (*reset)(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
    /* SIGKILL by pidfd; returns true when the exit has been seen, also if there was no such
     * process. WRONG_STATE: it is being prepared. */
    bool (*kill)(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
    /* Only queries: safe at any time. One that the hypervisor has stopped by itself (io_query) is
     * told as running: nobody else has stopped it. Absent process: GUEST_ABSENT. No answer in time:
     * error TIMEOUT. */
    bool (*query)(struct hypervisor *hv, const char *instance, guint64 generation,
                  enum guest_state *ret_state, struct mirror_info *ret_mirror, GError **error);
    /* Only queries, too, with the same errors. An absent process: zeros. */
    bool (*io_query)(struct hypervisor *hv, const char *instance, guint64 generation,
                     struct io_info *ret_io, GError **error);
    /* What it has done since its process was made, for monitoring: drives, processor time, memory,
     * the lag of its mirror and its relay, in `stats`. The same errors; what the host tells of the
     * process is filled in all the same. */
    bool (*figures)(struct hypervisor *hv, const char *instance, guint64 generation,
                    struct guest_stats *stats, GError **error);
    /* As io_query(): names of the drives that the process has, GPtrArray of char *.
     * `short_of_room`: only those of which a request has found none in its life: one of them is
     * what it stands still for, if it does. */
    GPtrArray *(*drives)(struct hypervisor *hv, const char *instance, guint64 generation,
                         bool short_of_room, GError **error);
    /* Lets a guest go on that the hypervisor has stopped by itself for lack of room, and repeats
     * what it holds. WRONG_STATE, and nothing is done, if it stands still for any other reason, if
     * it is part of a migration, or if its mirror was ended in sync: that is to be found out by
     * whoever stands still with it. It can be stopped again at once. */
    bool (*go_on)(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
    /* Starts a write-blocking mirror of all disks; returns when the jobs run (not when ready). With
     * COPY_WRITTEN_SINCE a running guest stands still for some milliseconds at the end of the copy,
     * and is told as running. */
    bool (*mirror_start)(struct hypervisor *hv, const char *instance, guint64 generation,
                         const struct export_target *target, enum mirror_copy copy, GError **error);
    /* Ends every mirror in sync: pauses nothing itself; the guest must be paused. Error: at least
     * one did not end by COMPLETED without error, so the images may differ. */
    bool (*mirror_finish)(struct hypervisor *hv, const char *instance, guint64 generation,
                          GError **error);
    /* The replica is on record as in-sync, so what it confirms is there to stay: from now on it is
     * remembered what is written, for COPY_WRITTEN_SINCE. Called again and again while that is so.
     * A failure costs nothing but a full copy some day. Only when the exports answer. */
    void (*mirror_remember)(struct hypervisor *hv, const char *instance, guint64 generation);
    /* Lets the guest's writes go on without the replica, then takes the mirror of all disks away,
     * for which a guest that runs stands still for some milliseconds. Only after `stale` is on
     * record. Safe when the replica is unreachable. TEMPORARY: the writes go on, but a migration is
     * not over yet; repeat it. */
    bool (*mirror_release)(struct hypervisor *hv, const char *instance, guint64 generation,
                           GError **error);

    /* --- live migration (SAF-17) --- */
    /* Target: starts a process with its CPUs stopped that waits for another one's memory; never
     * runs by itself. The generation is the one it shall run as, so it is named by it in every
     * other call. `ret_target`: where it waits. */
    bool (*incoming_prepare)(struct hypervisor *hv, const struct guest_spec *spec,
                             const struct incoming_spec *incoming,
                             struct migration_target **ret_target, GError **error);
    /* Target: whether everything has arrived; from then on run() and mirror_start() may be called.
     * Not yet: TEMPORARY; broken: HYPERVISOR. Its own exports (serve_disks) are closed then. */
    bool (*incoming_finish)(struct hypervisor *hv, const char *instance, guint64 generation,
                            const char *migration, GError **error);
    /* Source: starts sending; returns when it is under way. With target->disks a mirror to them is
     * started first, and memory follows when it is ready. */
    bool (*migrate_start)(struct hypervisor *hv, const char *instance, guint64 generation,
                          const struct migration_target *target,
                          const struct migration_limits *limits, GError **error);
    /* Only a query: safe at any time. */
    bool (*migrate_query)(struct hypervisor *hv, const char *instance, guint64 generation,
                          struct migration_info *ret_info, GError **error);
    /* In STEP_STOPPED, after mirror_finish(): hands over. Returns at once; ask migrate_query(). */
    bool (*migrate_continue)(struct hypervisor *hv, const char *instance, guint64 generation,
                             GError **error);
    /* Gives it up: the guest goes on here, without mirrors to target->disks. Safe when the target
     * is unreachable. WRONG_STATE in STEP_DONE. */
    bool (*migrate_cancel)(struct hypervisor *hv, const char *instance, guint64 generation,
                           GError **error);
    /* Lets switches and neighbours learn where the guest is now (gratuitous ARP/RARP). */
    bool (*announce)(struct hypervisor *hv, const char *instance, guint64 generation,
                     GError **error);

    /* Tells a running guest that its disk has grown; the image has `bytes` already, or becomes so
     * (qcow2). Not while a mirror is attached. */
    bool (*disk_resize)(struct hypervisor *hv, const char *instance, guint64 generation, guint disk,
                        guint64 bytes, GError **error);
    /* A volume in a pool of a Ceph: its size there, and by which addresses it is open, with commas
     * between; both to be had by anybody. `ret_clients` may be NULL; g_free() it. */
    bool (*pool_look)(struct hypervisor *hv, const struct guest_volume *volume, guint64 *ret_bytes,
                      char **ret_clients, GError **error);
    /* Opens a volume for a guest that does not see it yet, as volume_attach does first: whoever had
     * it open in a pool is shut out there (SAF-58). Open already: true. */
    bool (*volume_open)(struct hypervisor *hv, const char *instance, guint64 generation,
                        const struct guest_volume *volume, GError **error);
    /* Puts a volume into a guest; there already: true. If it fails nothing is left, as far as the
     * guest answers. */
    bool (*volume_attach)(struct hypervisor *hv, const char *instance, guint64 generation,
                          const struct guest_volume *volume, GError **error);
    /* Tells a running guest that a volume is so large now; never that it is smaller than it knows.
     */
    bool (*volume_resize)(struct hypervisor *hv, const char *instance, guint64 generation,
                          const struct guest_volume *volume, guint64 bytes, GError **error);
    /* Asks the guest to give it up, and waits so long for it: whether neither device nor node is
     * there any more, or no process. It goes whenever the guest gives it up; asked again, then. */
    bool (*volume_detach)(struct hypervisor *hv, const char *instance, guint64 generation,
                          const struct guest_volume *volume, guint wait_ms, bool *ret_gone,
                          GError **error);
    /* Begins to copy a volume as it is at this moment into the file at `path`, which is there, and
     * blank, while the guest goes on (SAF-59); under way already, by its claim: true. It takes a
     * write of the guest longer, and never fails one. If it fails nothing is left, as far as the
     * guest answers. */
    bool (*point_open)(struct hypervisor *hv, const char *instance, guint64 generation,
                       const struct guest_volume *volume, guint64 claim, const char *path,
                       GError **error);
    /* Only a query: what has come of it. */
    bool (*point_look)(struct hypervisor *hv, const char *instance, guint64 generation,
                       guint64 claim, struct point_status *status, GError **error);
    /* Ends it, whatever has come of it, and waits so long for a copy that does not end: whether
     * nothing of it is there any more, or no process. None of that claim: gone. */
    bool (*point_close)(struct hypervisor *hv, const char *instance, guint64 generation,
                        const struct guest_volume *volume, guint64 claim, guint wait_ms,
                        bool *ret_gone, GError **error);
    /* The serial line: bytes since `offset` (negative: so many before the end;
     * CONSOLE_SINCE_START: since the present process was made, or the end if there is none),
     * waiting at most `wait_ms` for some. Free with g_bytes_unref(). */
    GBytes *(*console_read)(struct hypervisor *hv, const char *instance, gint64 offset,
                            guint wait_ms, guint64 *ret_offset, GError **error);
    bool (*console_write)(struct hypervisor *hv, const char *instance, GBytes *data,
                          GError **error);
    /* Version of the hypervisor, "7.2.22"; borrowed. Does not wait. */
    const char *(*version)(struct hypervisor *hv);

    /* Why guests that may have any accelerator run without KVM here although the host has it; NULL:
     * they do not, or it is not known yet. Does not wait; free with g_free(). */
    char *(*without_kvm)(struct hypervisor *hv);

    /* How many users there are for guests here, of which each gets one of its own, and how many of
     * them are in use; 0: all guests run as one. Does not wait. NULL: nothing is known of it. */
    guint (*users)(struct hypervisor *hv, guint *ret_used);
    /* Finds guests that outlived the node daemon; returns GPtrArray of struct guest_report. They
     * are known from then on but adopt nothing by themselves. */
    GPtrArray *(*rediscover)(struct hypervisor *hv, GError **error);
    /* Processes of such hypervisors on this host that are no guests of ours, nor of another Fettle:
     * GPtrArray of struct stray, one more than LIMIT_STRAYS at most. Only looks. NULL: error. */
    GPtrArray *(*strays)(struct hypervisor *hv, GError **error);
    /* What the host offers: memory in MiB (free: available without swapping), processors. Does not
     * wait; false if it cannot tell. */
    bool (*host)(struct hypervisor *hv, guint64 *ret_memory_total, guint64 *ret_memory_free,
                 guint *ret_cpus);
};

struct hypervisor {
    const struct hypervisor_ops *ops;
};
