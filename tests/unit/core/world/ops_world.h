/*
 * A cluster of three nodes for tests of opcode bodies: wconfd and the node daemons are scripts that
 * do what they are asked and write down what it was. A test runs a job and compares its result and
 * the trace, which has one line for each commit, lock request and call to a node:
 *
 *   locks instance/web1=exclusive node/node1=shared
 *   commit instance web1 g2 up @node1 node1/node2 starting; replica node2 g2 s4 syncing
 *   node2 replica_open g2
 */
#pragma once

#include "core/config/follow.h"
#include "core/ops/runner.h"
#include "helper/fake_env.h"

#define CLUSTER "00000000-0000-4000-8000-0000000000c1"
#define GROUP "00000000-0000-4000-8000-0000000000a1"
#define NODE1 "00000000-0000-4000-8000-000000000001" /* the master */
#define NODE2 "00000000-0000-4000-8000-000000000002"
#define NODE3 "00000000-0000-4000-8000-000000000003"
#define WEB "00000000-0000-4000-8000-0000000000b1"
#define REPLICA "00000000-0000-4000-8000-0000000000d1"
#define SHARED "00000000-0000-4000-8000-0000000000e1"
#define JOB 17
#define LIVELOCK "job-17-lock"

struct ops_world {
    struct fake_world *world;
    struct env *env;       /* of the job process */
    struct config *config; /* what is committed */
    GPtrArray *history;    /* every change, as struct change */
    GString *trace;
    GPtrArray *faults;
    bool trace_locks;

    /* The one guest that runs. */
    const char *guest_node; /* NULL: none */
    guint64 guest_generation;
    const char *guest_state;
    const char *guest_name; /* that it was started with; NULL: not told */
    char *guest_instance;
    const char *guest_held; /* why its writes are held; NULL: they are not */
    const char *io_stop;    /* why its hypervisor has stopped it; NULL: its node does not tell */

    guint io_errors;            /* of the guest's own disks; the last one of disk 0 */
    bool stop_unclean;          /* guest_stop does not end with equal copies */
    bool leave_unequal;         /* replica_leave: something has run from them since */
    const char *sound;          /* what it says of the images; NULL: nothing, as older nodes */
    bool no_keep;               /* replica_open has no room to keep images aside */
    const char *mirror;         /* what mirror_wait says in the end; NULL: ready */
    guint mirror_steps;         /* answers "syncing" before that, 30 % further each */
    guint64 memory[3], disk[3]; /* of the nodes, all free … */
    guint64 memory_used[3];     /* … but for what runs there … */
    bool full[3];               /* … and for disks that have no room left */
    const char *trial[3];       /* how their trial of their disks fails; NULL: it does not */
    const char *sources[3];     /* of each node's var/images, with spaces between; NULL: not told */
    guint64 image_bytes;        /* of every image; 0: there is none */
    const char *no_image;       /* the one that is not there although others are; NULL: none … */
    const char *no_image_on;    /* … on this node; NULL: on none */
    const char *bridges[3];     /* one on each node */
    GPtrArray *lost;            /* char *: nodes whose images are gone; all others have theirs */
    const char *late; /* node of which a part does not answer, and the guest neither; or NULL … */
    const char *late_part;    /* … and which */
    const char *lost_disk;    /* node that lacks the image of disk 1 of whatever it has; or NULL */
    GPtrArray *strays;        /* char *: "node image" that is there besides */
    guint looks;              /* questions how far disks_create is, each 10 % further */
    const char *qemu[3];      /* version on each node */
    guint64 shared_mib;       /* space of that folder, all of it free; 0: nobody tells */
    const char *shared[3];    /* the shared folder that each node mounts; "": none */
    bool keeps_volume;        /* the guest does not give its volumes up */
    const char *guest_mirror; /* what the node says of the guest's mirror; NULL: none */
    bool export_dead;         /* the export of the replica has ended */
    /* The migration that is under way, as the node that the guest leaves sees it. */
    const char *migration_end; /* state that it ends in; NULL: moved */
    guint migration_steps;     /* answers "copying" before that, 100 of 400 MiB further each */
    bool migration_unclean;    /* the images may differ when it has moved */
    bool migration_window;     /* its replica is given up before it ends otherwise */
    bool migration_late;       /* it has moved when it is to be cancelled */
    bool incoming;             /* something waits on the target */
    GPtrArray *pending;        /* char *: nodes that have not answered the master */
    guint pending_polls;       /* after so many questions they have; 0: never */
    guint blocked;             /* so many lock requests are not granted … */
    gint64 lock_priority;      /* of the newest request for locks */
    guint64 lock_wait_ms;      /* … and how long it is to wait */
    void (*on_blocked)(struct ops_world *world); /* … and this is called at each; may be NULL */
    void (*on_locks)(struct ops_world *world);   /* runs when locks are granted */
    void (*on_commit)(struct ops_world *world, guint number); /* before the number-th commit */
    guint commits;

    struct job *done; /* the record of the job after ops_run() */
};

struct ops_world *ops_world_new(void);
void ops_world_free(struct ops_world *world);

/* Puts or deletes an object behind everybody's back; fields as for json_make(). */
void ops_put(struct ops_world *world, const char *kind, const char *key, json_t *object);
void ops_delete_object(struct ops_world *world, const char *kind, const char *key);
/* The mirrored instance web1 on node1 and node2, generation 1, replica in `replica_state` at sync 3
 * (NULL: none); `running`: on node1, else stopped and closed clean if the replica is in-sync. */
void ops_put_web(struct ops_world *world, const char *replica_state, bool running);
/* A second disk for it. */
void ops_add_disk(struct ops_world *world);
/* Changes one field of a committed object. */
void ops_set(struct ops_world *world, const char *kind, const char *key, const char *field,
             json_t *value);
const struct instance *ops_web(const struct ops_world *world);
void ops_node_offline(struct ops_world *world, const char *node);

/* The next `count` calls of the method on the node ("wconfd" for its calls) fail. */
void ops_fail(struct ops_world *world, const char *node, const char *method, enum fettle_error code,
              const char *message, guint count);

/* Commits a job of these opcodes (array, stolen) as luxid does, runs it, gives the result of its
 * first opcode as text ("null" for none), valid until the next run. `[…]` is one opcode. */
const char *ops_run(struct ops_world *world, json_t *opcodes);
const char *ops_run_one(struct ops_world *world, json_t *opcode);
/* The same in parts, for tests that do something in between. */
void ops_submit(struct ops_world *world, json_t *opcodes);
/* Messages of an opcode's log, one per line. */
char *ops_log(const struct ops_world *world, guint op);

/* Fails the test with both texts if the trace differs; then empties it. */
void ops_expect(struct ops_world *world, const char *trace);
