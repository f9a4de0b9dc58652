/*
 * Inside of the node daemon's core: what its modules share. Outside of core/node only node.h is
 * known.
 *
 *   node.c           requests in, events in, start
 *   report.c         node_report
 *   health.c         whether the node can do its work, for that
 *   look.c, parts.c  what it asks, beside it, and what has answered last
 *   guest.c          one struct per instance, its file, its lock
 *   confirm.c        questions to the master, and its word on replicas
 *   lifecycle.c      guest_start, guest_reset
 *   console.c        console_read, console_write
 *   archive_calls.c  archive_put, archive_list, archive_get
 *   taps.c           tap devices of guests
 *   stop.c           guest_stop
 *   mirror_watch.c   the task beside each mirrored guest
 *   mirror.c         mirror_attach, mirror_detach, mirror_wait
 *   replica.c        exports, promotion
 *   disks.c          images: made, made larger, removed
 *   outgoing*.c      a guest that moves to another node: its requests, the switch, what is told
 *   incoming.c       the process that waits for it there
 *   cancel.c         work that somebody gives up
 *   undo.c           what a dead job has left half made
 *   collect.c        what there is of instances whose tasks were left behind; ended_jobs.c: the
 * door that it closes first image_look.c     images of one instance, looked at in bounded time, for
 * these two rediscover.c     what runs here when the daemon starts room.c           guests that
 * stand still for lack of room go on when there is some (SAF-27) keys.c           its certificates,
 * and whom it trusts statement.c      what it tells a master who may lack words of the one before
 *   strays.c         what is there that nobody here has made
 *   reconcile.c      what comes back from the dead asks first (SAF-19)
 *   master_ip.c      the address that the master's node carries
 *   monitor/         what it leaves for fettle-mond, and tells it
 *   forget.c         a way back from a mastership that nobody else follows
 *
 * Below it stand the epoch fence (core/epoch) and the care for a member of etcd (core/member).
 */
#pragma once

#include "core/epoch/epoch_fence.h"
#include "core/node/node.h"

struct node_core {
    const struct env *env;
    struct hypervisor *hv;
    struct storage *storage;
    char *address;
    char *image_folder; /* of kernels; NULL: none */
    struct epoch_fence *fence;
    struct member_care *care; /* NULL: no members here */
    struct master_ip *master_ip;
    struct figures *figures; /* NULL: nobody wants any, nor to be told */
    struct told *told;
    struct health *health;
    void (*changed)(void *data); /* an announcement was taken over */
    void *changed_data;
    struct parts *parts;
    struct strays_look *strays;
    struct ended_jobs *ended_jobs;
    GHashTable *size_looks;      /* of image_look.c */
    GHashTable *volume_looks;    /* of volume/volumes.c: volumes that are looked at right now */
    GHashTable *guests;          /* instance uuid -> struct guest */
    gint64 noted_ms;             /* when the disk has answered a write of theirs last */
    bool ready;                  /* state read, reality rediscovered */
    bool ended;                  /* node_core_free() was called */
    bool taps_left;              /* tap devices may be there that no process needs */
    guint users;                 /* tasks that hold a pointer to this, and the owner */
    struct env_pause pause;      /* of the task that asks the master */
    struct task_mutex ssconf;    /* one writer of those files */
    struct task_mutex keys_lock; /* one change of certificates at a time */
    struct keys_status *keys;    /* as they were seen last; NULL: look */
    bool ssconf_waits;           /* a writer of them has not begun */
    guint64 ssconf_serial; /* of the announcement that they are known to agree with; 0: none */
};

/* One procedure: `args` is the method's argument record; the answer is a new reference. */
typedef json_t *(*node_procedure)(struct node_core *node, struct epoch_fence_op *op,
                                  const void *args, GError **error);

/* Tasks of the node: each holds the struct until it ends. */
void node_hold(struct node_core *node);
void node_release(struct node_core *node);

/* The node daemon was killed; every wait fails from now on. Sets KILLED unless an error is set;
 * false. */
bool node_killed(GError **error);
