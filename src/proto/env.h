/*
 * struct env: everything that core/ may know of the outside world. In a daemon io/real_env.c stands
 * behind it; in the simulator a virtual clock, network, disks and processes do. Core never asks the
 * clock, a file or a random number in any other way (docs/design/architecture.md, "Thinking and
 * doing are apart").
 *
 * It lives in proto/, beside engine.h, hypervisor.h and storage.h, so that io/, backend/ and the
 * simulator can implement it without knowing core/.
 */
#pragma once

#include "base/task.h"
#include "proto/authority.h"
#include "proto/engine.h"
#include "proto/ensemble.h"
#include "proto/hypervisor.h"
#include "proto/members.h"
#include "proto/network.h"
#include "proto/rpc.h"
#include "proto/storage.h"
#include "proto/storage/volume_driver.h"

struct env;

/* What noded was told last (announce_args), in FILE_STATE. */
#define ANNOUNCED_FILE "node/state.json"

/* Files by what they must survive. */
enum file_area {
    FILE_STATE, /* var/: survives a power cut: written to a temporary name, synced, renamed, folder
                   synced */
    FILE_QUEUE, /* run/queue/ (tmpfs): survives the death of a process: written and renamed */
    FILE_RUN,   /* run/ (tmpfs): gone after a reboot */
    FILE_STATS, /* run/stats/ (tmpfs): the same, for fettle-mond to read */
    FILE_MOND,  /* var/mond/: as FILE_STATE, for fettle-mond to read */
    FILE_RAPI,  /* var/rapi/: the same, for fettle-rapid to read */
    FILE_PROC,  /* /proc: only read, by fettle-mond */
};

enum livelock_verdict {
    LIVELOCK_ALIVE,  /* the lock is held */
    LIVELOCK_DEAD,   /* the file is there, the lock is free */
    LIVELOCK_GONE,   /* no such file: dead and cleaned up */
    LIVELOCK_UNSURE, /* any other failure: proof of nothing (DTH-15) */
};

struct starter; /* a job process under way to its confirmation */
struct starter_events {
    /* The child has made and locked its lock file. */
    void (*named)(struct starter *starter, const char *livelock, guint64 pid, guint64 start_ticks,
                  void *data);
    /* The pipe is broken; `confirmed` tells whether the confirmation had been sent. Comes exactly
     * once, last. */
    void (*broken)(struct starter *starter, bool confirmed, void *data);
};

/* The process of a job, as its file names it. */
struct job_process {
    const char *livelock;
    guint64 pid;
    guint64 start_ticks; /* so that nobody who got the number later is meant (WCF-14) */
};

struct env_ops {
    /* Time. boot: CLOCK_BOOTTIME, never jumps. wall: for display and timestamps. */
    gint64 (*boot_ms)(const struct env *env);
    gint64 (*wall_us)(const struct env *env);
    /* Calls fn once after `ms`; returns a handle (never 0) for timer_cancel. */
    guint (*timer)(const struct env *env, guint ms, void (*fn)(void *data), void *data);
    void (*timer_cancel)(const struct env *env, guint handle);
    /* Fresh random bytes. */
    void (*random)(const struct env *env, void *ret_bytes, size_t len);

    /* Calls a method; `done` comes exactly once, from the loop. */
    void (*call)(const struct env *env, const struct rpc_call *call, rpc_reply_fn done, void *data);

    /* Files; names are relative to the area and may have folders. In tasks these may wait. */
    bool (*file_write)(const struct env *env, enum file_area area, const char *name,
                       const char *data, size_t len, GError **error);
    bool (*file_append)(const struct env *env, enum file_area area, const char *name,
                        const char *data, size_t len, GError **error);
    /* NULL with UNKNOWN_ENTITY if there is none; LIMIT if larger than `max`. */
    char *(*file_read)(const struct env *env, enum file_area area, const char *name, size_t max,
                       size_t *ret_len, GError **error);
    bool (*file_remove)(const struct env *env, enum file_area area, const char *name,
                        GError **error);
    /* Names (not paths) in a folder; empty if there is no folder. */
    GPtrArray *(*file_list)(const struct env *env, enum file_area area, const char *folder,
                            GError **error);
    /* Calls `changed(name)` after a file in the folder was written or renamed into place, until the
     * process ends. */
    void (*file_watch)(const struct env *env, enum file_area area, const char *folder,
                       void (*changed)(const char *name, void *data), void *data);

    /* Writes, syncs and reads a little beside the files of FILE_STATE: whether they can be written.
     * In a task; waits as long as the disk does, which may be for ever. NO_RESOURCES: it is full;
     * STORAGE. Only noded. */
    bool (*state_trial)(const struct env *env, GError **error);
    /* How many descriptors this process has open, and may have. */
    void (*descriptors)(const struct env *env, guint64 *ret_open, guint64 *ret_most);

    /* Lock files under run/livelocks (DTH rows, SAF-32). make: held until the process ends or
     * livelock_drop(). */
    char *(*livelock_make)(const struct env *env, const char *stem, GError **error);
    void (*livelock_drop)(const struct env *env,
                          const char *name); /* unlocks and removes our own */
    enum livelock_verdict (*livelock_probe)(const struct env *env, const char *name);
    /* Calls `released` once when the holder lets go (or has already); an event, not a proof: probe
     * then. */
    void (*livelock_watch)(const struct env *env, const char *name,
                           void (*released)(const char *name, void *data), void *data);
    GPtrArray *(*livelock_list)(const struct env *env);
    void (*livelock_remove)(const struct env *env,
                            const char *name); /* a dead one's; wconfd only (DTH-18) */

    /* Starting a job process (architecture.md 6). Only luxid. */
    struct starter *(*starter_spawn)(const struct env *env, guint64 job,
                                     const struct starter_events *events, void *data,
                                     GError **error);
    /* Sends the confirmation; false if the pipe is broken already. */
    bool (*starter_confirm)(const struct env *env, struct starter *starter);
    /* Breaks its pipe before the confirmation: the process ends by that, and broken() is called. */
    void (*starter_drop)(const struct env *env, struct starter *starter);
    /* Asks the process of a job to give up (SIGTERM), or ends it (SIGKILL). Only luxid. A process
     * that is gone, or another one under that number, is left alone. A pid of 0: the one that holds
     * the lock file; false: it is not to be found. */
    bool (*job_signal)(const struct env *env, const struct job_process *process, bool kill);
    /* Calls `fn` each time this process is asked to give up (SIGTERM) and has to see to its end by
     * itself; `fn` NULL: no more. Only fettle-job. */
    void (*on_asked)(const struct env *env, void (*fn)(void *data), void *data);
};

struct env {
    const struct env_ops *ops;
    struct task_group *tasks; /* of this process */
    const char *node_uuid;    /* of this host */
    const char *role;         /* of this process */
    const char *boot_id;
    const char *storage_host;  /* volumed: host of its services (CLN-27); NULL: the node's name */
    struct engine *engine;     /* wconfd */
    struct ensemble *ensemble; /* wconfd; NULL: no change of engine is possible */
    struct hypervisor *hypervisor;  /* noded */
    struct storage *storage;        /* noded */
    struct network_driver *network; /* noded */
    struct volume_driver *volumes;  /* volumed */
    struct members *members;        /* noded; NULL: it cares for none */
    struct authority *authority;    /* wconfd; noded, without the key */
};

/* Helpers on top, the same for every implementation (proto/env.c). */

/* Calls from a task and waits. The result is a new reference. */
json_t *env_call_wait(const struct env *env, const struct rpc_call *call, GError **error);
/* Calls with typed arguments and answer by the method table. `args` is borrowed; NULL: nothing. The
 * answer is to be freed with record_free(). */
void *env_call_record(const struct env *env, const char *to_node, const char *to_role,
                      const char *method, const void *args, struct stamp stamp, guint job,
                      guint timeout_ms, GError **error);
/* Whether the error of a call proves nothing about whom it asked but that he is not there. */
bool env_no_answer(const GError *error);
/* Waits in a task; false if the process is killed. */
bool env_sleep(const struct env *env, guint ms);
/* A wait of one task that others may end early; an end that comes before it counts for the next
 * one. Embedded, plain; must outlive the wait. */
struct env_pause {
    struct promise *over;
    bool ended;
};
bool env_pause(const struct env *env, struct env_pause *pause, guint ms);
void env_pause_end(struct env_pause *pause);
/* A random UUID, lower case; free with g_free(). */
char *env_uuid(const struct env *env);
