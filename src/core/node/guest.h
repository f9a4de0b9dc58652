/*
 * One instance on this node: what must be remembered (struct guest_record, a synced file), what is
 * true of the running process, and the lock that lets one procedure at a time act on it.
 */
#pragma once

#include "core/node/look.h"

struct mirror_watch;
struct outgoing;

#define GUEST_FOLDER "node/guests" /* in var: their files */
#define GO_ON_TRIES 3 /* to let a guest go on that stands still although there is room */

/* Its file on the way to the disk: one write at a time, each of what is true when it begins. */
struct note {
    guint64 asked;   /* saves so far */
    guint64 ended;   /* number of the last one that a write has answered, … */
    GError *error;   /* … with this; NULL: it stands */
    bool runs;       /* the task that writes */
    bool writing;    /* it waits for the disk, … */
    gint64 since_ms; /* … since then */
    guint64 taken;   /* number of the last one that a write has begun with, … */
    char *text;      /* … with this; NULL: none yet, or it has failed */
    bool stands;     /* that is on the disk */
    bool owed;       /* somebody went on without it: it is to stand all the same */
    bool attached;   /* as it was noted last */
    bool perhaps;    /* the file may say so: also by a write since whose end is not known */
    GQueue waiters;  /* struct env_pause, each on the stack of its saver */
    struct env_pause again;
};

struct guest {
    struct node_core *node;
    struct guest_record *record;         /* never NULL */
    char *damage;                        /* why its file cannot be trusted; NULL: it can */
    struct task_mutex procedure;         /* one at a time, … */
    const struct epoch_fence_op *holder; /* … for this request; NULL: the node daemon's own */
    struct note note;
    struct stamp kept; /* history and generation that its file is known to have */

    /* Of the procedure that acts on it, while it can be given up (cancel.h). */
    guint cancelable_job; /* for which it works; 0: it cannot */
    bool canceled;

    /* Of the process of record->generation. */
    bool live;       /* there is one, as far as is known */
    bool making;     /* it is being made, so nobody asks it (SAF-28) */
    bool ending;     /* this node daemon has asked for its end */
    bool adopted;    /* started by this node daemon, or confirmed by the master since it began */
    bool shutdown;   /* the guest switched itself off; it is paused */
    bool query_late; /* the last question got no answer … */
    gint64 query_late_ms; /* … and ended then */
    enum guest_state last_state;
    struct mirror_info last_mirror;
    gint64 heard_ms; /* boot clock: when the question began that told these two */
    struct look look;
    struct io_info last_io;
    gint64 io_failed_ms; /* boot clock, when it was seen last that requests to its own disks had
                            failed since the look before; 0: never */
    guint go_on_tries;   /* in vain, though there was room (room.c) */
    gint64 went_on_ms;   /* when it was last let go on */
    bool looked_at;      /* by a task of room.c, right now */
    bool
        volumes_looked; /* whether they have grown, since it could not be told (volume/volumes.c) */
    gint64 points_asked_ms;  /* when the master was asked last about their claims (points.c) */
    gint64 volumes_asked_ms; /* when the master was asked last whether they are its own … */
    char doubted_volume[37]; /* … of which it refused this one then; "": none … */
    char strange_volume[37]; /* … and the time before, too (volumes.c) */
    /* While it stands still and has volumes: */
    GPtrArray *short_of_room; /* drives that may be why, char *; empty: any. NULL: not asked */
    bool disks_full;          /* its own disks had no room when they were looked at last … */
    char full_volume[37];     /* … else that volume, or what it is on does not answer; "": none */

    struct look sight; /* at its process, with the guest locked (collect.c) … */
    GPtrArray *drives; /* … and the drives that it was seen with; NULL: never */

    /* Of its mirror, while record->target is set. */
    char *held; /* why its writes are held though its replica is lost; NULL: they are not */
    struct mirror_watch *watch;
    enum replica_state replica_state; /* on record, as far as the master has told */
    guint64 replica_sync;

    /* Of its migration to another node (outgoing.c), and how the last one stands or ended. */
    struct outgoing *outgoing;
    struct migration_status *migration;

    /* Of a process that waits to become the guest (incoming.c), while record->incoming is set. */
    bool incoming_live;
    struct migration_target *incoming_target; /* NULL: unknown since the node daemon began */
    char incoming_over[37];                   /* migration that was closed here last */

    /* Of the replica that this node has (record->replica). */
    bool export_live;
    char aside_cleared[37]; /* replica whose being in sync has made kept-aside images needless */
};

/* Reads every file of node/guests; a damaged one makes a guest that cannot be started. */
bool guest_load_all(struct node_core *node, GError **error);
/* NULL if nothing is known of the instance. */
struct guest *guest_lookup(struct node_core *node, const char *instance);
/* LIMIT beyond LIMIT_NODE_GUESTS. */
struct guest *guest_get(struct node_core *node, const char *instance, GError **error);
void guest_free(struct guest *guest);

/* Lets one procedure at a time act, for a request (NULL: for none, the node daemon does it by
 * itself); a watch that is over has ended when it returns true. STALE_EPOCH: the job that asks was
 * given up meanwhile (SAF-81). */
bool guest_lock(struct guest *guest, const struct epoch_fence_op *op, GError **error);
void guest_unlock(struct guest *guest);

/* Synced when it returns true; nothing is written if it stands already. STORAGE: it cannot be
 * written, or the disk has not answered any write for LIMIT_NOTE_MS; then the write goes on behind,
 * and what is true at its end follows it. */
bool guest_save(struct guest *guest, GError **error);
/* The same with LIMIT_NOTE_END_MS, for what cannot be said again once it was said without. */
bool guest_save_end(struct guest *guest, GError **error);
/* The same for a request that has found nothing to change: one before it may have changed it and
 * have failed here. */
bool guest_save_rest(struct guest *guest, GError **error);
/* Moves the phase; one line in the log. */
void guest_move(struct guest *guest, enum guest_phase phase, const char *why);

/* Name for messages: `instance web1`, by UUID if the name is unknown. Free with g_free(). */
char *guest_name(const struct guest *guest);
/* REFUSED: a generation of `name` is asked for, but `used` was here already. */
void guest_set_over(guint64 generation, const char *name, guint64 used, GError **error);
guint64 guest_generation(const struct guest *guest);

/* Does the request name the generation that was used last here? REFUSED (older, or over) and
 * WRONG_STATE (never started here, or not running) otherwise; with `live` a process is needed. */
bool guest_check_generation(const struct guest *guest, guint64 generation, GError **error);

/* WRONG_STATE while it is being moved to another node: what is asked would not go with it. */
bool guest_check_stays(const struct guest *guest, GError **error);

/* Ends the process, if any, and sees its exit; stops its watch, removes its tap devices.
 * HYPERVISOR, TIMEOUT: it may live. */
bool guest_kill(struct guest *guest, GError **error);
/* Only the process, as this node daemon wants it: its exit is no crash. */
bool guest_end_process(struct guest *guest, GError **error);
/* The process is gone, and nobody here has ended it. `said`: its last words, or "". */
void guest_gone(struct guest *guest, const char *said);
/* Its process, as far as is known. */
enum guest_state guest_state_known(const struct guest *guest);
/* What is known of its process from now on, as it was at that moment of the boot clock. */
void guest_heard(struct guest *guest, gint64 when, enum guest_state state,
                 struct mirror_info mirror);
/* Asks the hypervisor and remembers the answer; a process that is gone becomes !live. False: no
 * answer, `last_…` are old. */
bool guest_query(struct guest *guest);

/* The same for what its disks have answered. */
bool guest_look_io(struct guest *guest);
/* Why it stands still by itself. */
enum io_stop guest_io_stop(const struct guest *guest);
/* Whether that may be for a drive of that name. */
bool guest_may_be_short(const struct guest *guest, const char *drive);
/* The volume that it stands still for; NULL: it does not, or it is its own disks. In doubt it is no
 * fault of theirs. */
const struct guest_volume *guest_io_volume(const struct guest *guest);
/* Syncs its images. One without disks has none, and nothing that could hang for them. */
bool guest_sync(const struct guest *guest, GError **error);

/* The mirror is over: no target any more. Saved; a failure to save is harmless, because a restart
 * asks the master before it touches a mirror, and that the replica lacks something is kept since
 * before (mirror_watch.c); it is tried again until it stands. */
void guest_forget_mirror(struct guest *guest);

/* Kernel and initial file system of an instance as files of this node, if it names any.
 * UNKNOWN_ENTITY, WRONG_INPUT (a name that leaves the folder). */
bool guest_boot_files(struct node_core *node, const struct instance *instance,
                      struct guest_spec *spec, GError **error);
void guest_boot_files_clear(struct guest_spec *spec);
