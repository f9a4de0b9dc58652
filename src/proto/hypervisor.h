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

/* What happened without being asked; called from the loop. */
struct hypervisor_events {
    /* The process is gone, for whatever reason; its images are free. */
    void (*exited)(const char *instance, guint64 generation, void *data);
    /* The guest switched itself off; the process lives on, paused (-action shutdown=pause). */
    void (*shutdown)(const char *instance, guint64 generation, void *data);
    void *data;
};

struct guest_spec {
    const struct instance *instance; /* generation, memory, vcpus, machine type, disks */
    GPtrArray *images;               /* char *: absolute file of each disk */
    enum accelerator accelerator;
};

struct mirror_info {
    enum mirror_state
        state;      /* of all disks together: ready only if each is; lost if a job has vanished */
    guint progress; /* percent */
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
     * process. */
    bool (*kill)(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
    /* Only queries: safe at any time. Absent process: GUEST_ABSENT. No answer in time: error
     * TIMEOUT. */
    bool (*query)(struct hypervisor *hv, const char *instance, guint64 generation,
                  enum guest_state *ret_state, struct mirror_info *ret_mirror, GError **error);
    /* Starts a write-blocking mirror of all disks; returns when the jobs run (not when ready).
     * `full` false: no copy, the images are equal. */
    bool (*mirror_start)(struct hypervisor *hv, const char *instance, guint64 generation,
                         const struct export_target *target, bool full, GError **error);
    /* Ends every mirror in sync: pauses nothing itself; the guest must be paused. Error: at least
     * one did not end by COMPLETED without error, so the images may differ. */
    bool (*mirror_finish)(struct hypervisor *hv, const char *instance, guint64 generation,
                          GError **error);
    /* Lets the guest's writes go on without the replica: yank, then cancel, all disks. Only after
     * `stale` is on record. Safe when the replica is unreachable. */
    bool (*mirror_release)(struct hypervisor *hv, const char *instance, guint64 generation,
                           GError **error);
    /* Finds guests that outlived the node daemon; returns GPtrArray of struct guest_report. They
     * are known from then on but adopt nothing by themselves. */
    GPtrArray *(*rediscover)(struct hypervisor *hv, GError **error);
    /* What the host offers: memory in MiB (free: available without swapping), processors. Does not
     * wait; false if it cannot tell. */
    bool (*host)(struct hypervisor *hv, guint64 *ret_memory_total, guint64 *ret_memory_free,
                 guint *ret_cpus);
};

struct hypervisor {
    const struct hypervisor_ops *ops;
};
