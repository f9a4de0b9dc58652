/*
 * What the parts of the QEMU driver share: qemu.c (the calls), guest.c (one process and its QMP
 * connection), mirror.c, qemu_args.c, guest_state.c.
 */
#pragma once

#include "backend/guest_users.h"
#include "backend/hypervisor/qemu.h"
#include "base/limits.h"
#include "base/task.h"
#include "io/process.h"
#include "io/qmp.h"

/* Of folders in run/guests: others may pass to what is theirs, and see or change nothing. */
#define GUEST_FOLDER_MODE 0711

struct accel;

struct qemu {
    struct hypervisor base;
    struct task_group *tasks; /* what goes on in the background */
    char version[32];
    guint trimming; /* timer */
    const struct node_paths *paths;
    struct guest_users *users;
    struct hypervisor_events events;
    struct accel *accel;
    GHashTable *starting; /* instances whose process is about to be made */
    GHashTable *guests;   /* instance -> struct guest, which has a process */
};

enum job_outcome { JOB_UNKNOWN, JOB_READY, JOB_DONE, JOB_FAILED };

/* Block jobs of all disks (block_jobs.h). */
struct job_set {
    char kind; /* 'm' of a mirror, 'c' of the copy that goes with a migration */
    guint number;
    bool attached;
};

enum migration_side { SIDE_NONE, SIDE_SOURCE, SIDE_TARGET };

/* A migration that the guest is part of (migrate.c, incoming.c). */
struct migration {
    enum migration_side side; /* kept */
    char *uuid;               /* kept; "" */
    /* Source */
    guint number;  /* kept */
    char *address; /* where the memory goes; "" */
    guint64 port;
    int socket;         /* our end of what it goes through (migration_socket.h); -1: none */
    bool resume;        /* paused for it, so it goes on if this comes to nothing; kept */
    bool paused;        /* by somebody before it began, and stays so; kept */
    bool sent;          /* QEMU was told to send, so it is to be asked; kept */
    bool giving_up;     /* by migrate_cancel(), which then sees to everything */
    char *failure;      /* why it failed before it was sent; NULL */
    char *copy_failure; /* what QEMU said about the copy of a disk that ended in an error; NULL */
    gint64 started_ms;  /* boot clock */
    guint64 disk_bytes; /* that were copied by the jobs, when they have ended */
    guint tasks;        /* under way in the background */
    /* Target */
    bool serving; /* its disks are exported to the source; kept */
    int listener; /* our end of what that listens on (incoming.c); -1: none */
    bool arrived; /* incoming_finish() has been there; kept */
};

struct relay;

/* What was written since the replica had everything (bitmaps.c). */
struct written {
    guint number;     /* of the bitmaps that tell it; 0: unknown; kept */
    guint next;       /* of those that shall take their place; 0: none */
    guint64 done;     /* bytes that the mirror had copied when it was last looked at */
    guint64 begun_at; /* the same when the last bitmaps were begun */
    gint64 turned_ms; /* when they last took the place of others, or failed to */
    bool swept;       /* none is left from before */
};

/* A replica that is brought up to date (incremental.c). */
struct incremental {
    bool active; /* until the mirror has taken over; kept */
    bool failed;
    bool giving_up; /* by incremental_give_up(), which then sees to everything */
    guint tasks;    /* under way in the background */
    guint progress; /* percent */
};

/* An image by what no renaming changes. */
struct image_file {
    guint64 device, inode;
};

struct guest {
    guint refs; /* the table's, and one of each call under way */
    struct qemu *qemu;

    /* What it was started for; kept in state.json. */
    char *instance;
    char *name;
    guint64 generation;
    guint64 memory;
    guint disks;
    guint64 console; /* bytes in the file of its console when it was made */
    struct guest_users *users;
    guint32 user; /* that its processes run as; 0: ours; kept */

    struct process *process; /* NULL before it was started; never of one in the table */
    bool prepared;           /* its end is news */
    bool killed;             /* by us: what it says then is no news */
    bool gone;

    struct qmp *qmp;
    struct task_mutex connecting;
    struct task_mutex typing; /* on its serial line */

    /* Its mirror. Each set of jobs has a number of its own, so that what is left of an old one is
     * in nobody's way. */
    guint attachment;      /* the last number that was given; kept */
    struct job_set mirror; /* kept */
    char *replica;         /* kept; "" */
    char *replica_images;  /* word for its images; kept; "": none was given */
    bool finished;         /* the last mirror ended in sync and nothing ran since */
    GHashTable *outcomes;  /* job -> enum job_outcome, from events */
    struct relay *relay;   /* what it goes through; NULL: none */
    struct task_mutex relaying;
    struct written written;
    struct incremental incremental;
    struct image_file images[LIMIT_DISKS]; /* zeros: unknown; kept */

    /* Standing still (quiesce.c). */
    struct task_mutex standing; /* who lets it go on or stops it */
    bool resume;                /* stopped by us for a moment, so it is to be let go on; kept */
    bool disturbed;             /* it went on meanwhile */
    bool off;                   /* it switched itself off, and did not go on since */

    struct migration migration; /* kept */
    struct job_set copy;        /* its disks, if they move with it; kept */

    /* What its disks have answered when they were last asked (disk_io.c). */
    guint64 io_errors[LIMIT_DISKS];
    guint io_disk;
};

/* guest.c */
struct guest *guest_new(struct qemu *qemu, const char *instance, guint64 generation);
struct guest *guest_ref(struct guest *guest);
void guest_unref(struct guest *guest);
static inline void guest_unrefp(struct guest **guest)
{
    if (*guest != NULL)
        guest_unref(*guest);
}
#define guest_autoptr __attribute__((cleanup(guest_unrefp))) struct guest *

/* A new reference. UNKNOWN_ENTITY if there is no such guest, REFUSED if it has another generation.
 */
struct guest *guest_find(struct qemu *qemu, const char *instance, guint64 generation,
                         GError **error);
/* File or folder in run/guests/UUID; free with g_free(). */
char *guest_path(const struct guest *guest, const char *name);
/* Process exit handler: forgets the guest, removes its folder, tells. */
void guest_exited(struct process *process, void *data);
void guest_remove_folder(const struct guest *guest);
/* The same once its relay has ended, which may have made files in it meanwhile; not if the instance
 * has another guest by then. */
void guest_remove_leftovers(const struct guest *guest);
/* In a task: connects if there is no connection. */
bool guest_connect(struct guest *guest, guint timeout_ms, GError **error);
/* In a task: one QMP command; `arguments` is stolen. The error is prefixed with the guest's name.
 */
json_t *guest_execute(struct guest *guest, const char *command, json_t *arguments, guint timeout_ms,
                      GError **error);
/* The same without an answer worth looking at. */
bool guest_command(struct guest *guest, const char *command, json_t *arguments, guint timeout_ms,
                   GError **error);
bool guest_yank(struct guest *guest, const char *node, GError **error);
/* A command that an open file goes with (`getfd`, `add-fd`); `arguments` is stolen. */
bool guest_give_descriptor(struct guest *guest, const char *command, json_t *arguments, int fd,
                           GError **error);

/* Only for `yank`: what `what` says, {"type":…}. */
bool guest_yank_any(struct guest *guest, json_t *what, GError **error);
/* In a task: the word of query-status. */
bool guest_status(struct guest *guest, char **ret_word, GError **error);
/* Runs fn(guest) in a task of the background, which holds a reference. */
void guest_spawn(struct guest *guest, void (*fn)(struct guest *guest));

/* guest_state.c */
bool guest_state_write(const struct guest *guest, GError **error);
bool guest_state_exists(const struct qemu *qemu, const char *instance);
/* A guest from run/guests/UUID/state.json, its process adopted or (not alive any more) NULL. */
struct guest *guest_state_read(struct qemu *qemu, const char *instance, GError **error);

/* What it is handed, by the numbers that it has there: it may open nothing by its name. */
enum {
    QEMU_FD_QMP = 3, /* listening */
    QEMU_FD_RESCUE,
    QEMU_FD_CONSOLE,
    QEMU_FD_LOG,    /* the file of its console */
    QEMU_FD_OTHERS, /* from here on: images, tap devices, kernel, initrd, volumes */
};

/* qemu_args.c: NULL-terminated. `incoming`: it waits for the memory of another one. */
GPtrArray *qemu_args(const struct guest *guest, const struct guest_spec *spec, bool incoming,
                     bool kvm, GError **error);
/* In option values of the key=value kind a comma is written twice. Free with g_free(). */
char *qemu_escape_commas(const char *text);
/* One of them that no other process has; free with g_free(). */
char *qemu_own_argument(const struct guest *guest);

/* prepare.c */
bool qemu_prepare(struct hypervisor *hv, const struct guest_spec *spec, GError **error);
/* The same with a process that waits for memory; `ready` gets it ready for that, and if it fails
 * nothing is left. */
bool prepare_guest(struct qemu *qemu, const struct guest_spec *spec,
                   const struct incoming_spec *incoming,
                   bool (*ready)(struct guest *guest, void *data, GError **error), void *data,
                   GError **error);

/* qemu_query.c */
bool qemu_query(struct hypervisor *hv, const char *instance, guint64 generation,
                enum guest_state *ret_state, struct mirror_info *ret_mirror, GError **error);
GPtrArray *qemu_rediscover(struct hypervisor *hv, GError **error);

/* volumes.c */
bool volume_attach(struct hypervisor *hv, const char *instance, guint64 generation,
                   const struct guest_volume *volume, GError **error);
bool volume_detach(struct hypervisor *hv, const char *instance, guint64 generation,
                   const struct guest_volume *volume, guint wait_ms, bool *ret_gone,
                   GError **error);
bool volume_resize(struct hypervisor *hv, const char *instance, guint64 generation,
                   const struct guest_volume *volume, guint64 bytes, GError **error);
/* What a process that begins with it is told: the node, the device, the set of its descriptor. */
/* `fd`: of what it is opened by, in that process, if it is in a pool. */
json_t *volume_blockdev(const struct guest_volume *volume, int fd);
bool volume_open(struct hypervisor *hv, const char *instance, guint64 generation,
                 const struct guest_volume *volume, GError **error);
char *volume_device(const struct guest_volume *volume);
/* Whether one that it has is. */
bool volume_in_pool(struct guest *guest);
/* What QEMU is to open them by, in their order; `fences`: whoever has one open in a pool is shut
 * out there first (SAF-58). NULL: an error. NULL is allowed. */
GArray *volumes_open(const GPtrArray *volumes, bool fences, GError **error);
int volume_set(guint64 slot);
int volume_open_flags(bool readonly);

char *volume_node(const char *attachment);
/* Whether QEMU has a node of that name. */
bool guest_has_node(struct guest *guest, const char *name, bool *ret_has, GError **error);
/* How large QEMU takes a node to be; 0: it has none of that name. */
bool guest_node_bytes(struct guest *guest, const char *name, guint64 *ret_bytes, GError **error);

/* points.c */
bool point_open(struct hypervisor *hv, const char *instance, guint64 generation,
                const struct guest_volume *volume, guint64 claim, const char *path, GError **error);
bool point_look(struct hypervisor *hv, const char *instance, guint64 generation, guint64 claim,
                struct point_status *status, GError **error);
bool point_close(struct hypervisor *hv, const char *instance, guint64 generation,
                 const struct guest_volume *volume, guint64 claim, guint wait_ms, bool *ret_gone,
                 GError **error);

/* strays.c */
GPtrArray *qemu_strays(struct hypervisor *hv, GError **error);

/* disk_io.c */
bool qemu_io_query(struct hypervisor *hv, const char *instance, guint64 generation,
                   struct io_info *ret_io, GError **error);
GPtrArray *qemu_drives(struct hypervisor *hv, const char *instance, guint64 generation,
                       bool short_of_room, GError **error);
bool qemu_go_on(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
/* Whether that word of query-status means that QEMU has stopped the guest by itself. */
bool disk_io_stopped(const char *status);
/* Of an entry of query-blockstats: requests that were told as failed. */
guint64 disk_io_failed(const json_t *entry);
/* Of one of query-block or query-blockstats: "vd0"; NULL: it has no name. Free with g_free(). */
char *disk_io_drive(const json_t *entry);

/* figures.c */
bool qemu_figures(struct hypervisor *hv, const char *instance, guint64 generation,
                  struct guest_stats *stats, GError **error);

/* mirror.c */
bool mirror_query(struct guest *guest, struct mirror_info *ret_mirror, GError **error);
bool mirror_start(struct hypervisor *hv, const char *instance, guint64 generation,
                  const struct export_target *target, enum mirror_copy copy, GError **error);
bool mirror_finish(struct hypervisor *hv, const char *instance, guint64 generation, GError **error);
bool mirror_release(struct hypervisor *hv, const char *instance, guint64 generation,
                    GError **error);

/* bitmaps.c */
void mirror_remember(struct hypervisor *hv, const char *instance, guint64 generation);

/* migrate.c */
bool migrate_start(struct hypervisor *hv, const char *instance, guint64 generation,
                   const struct migration_target *target, const struct migration_limits *limits,
                   GError **error);
bool migrate_query(struct hypervisor *hv, const char *instance, guint64 generation,
                   struct migration_info *ret_info, GError **error);
bool migrate_continue(struct hypervisor *hv, const char *instance, guint64 generation,
                      GError **error);
bool migrate_cancel(struct hypervisor *hv, const char *instance, guint64 generation,
                    GError **error);
/* Where it stands, without its failure's reason; STEP_NONE if the guest is no source. */
bool migrate_step(struct guest *guest, enum migration_step *ret_step, GError **error);
/* An event of QEMU about it. */
void migrate_event(struct guest *guest, const char *status);
/* A new one, in zeros. */
void migration_init(struct migration *migration);
void migration_clear(struct migration *migration);
/* None any more. */
void migration_reset(struct migration *migration);

/* incoming.c */
bool incoming_prepare(struct hypervisor *hv, const struct guest_spec *spec,
                      const struct incoming_spec *incoming, struct migration_target **ret_target,
                      GError **error);
bool incoming_finish(struct hypervisor *hv, const char *instance, guint64 generation,
                     const char *migration, GError **error);
/* WRONG_STATE if it is an incoming guest that has not arrived: nothing may touch its disks. */
bool incoming_check_arrived(const struct guest *guest, GError **error);

/* console.c */
GBytes *qemu_console_read(struct hypervisor *hv, const char *instance, gint64 offset, guint wait_ms,
                          guint64 *ret_offset, GError **error);
bool qemu_console_write(struct hypervisor *hv, const char *instance, GBytes *data, GError **error);
/* Bytes that a guest has printed on this node up to now, in all its lives. */
guint64 console_size(const struct qemu *qemu, const char *instance);
/* Keeps the files of all guests small from now on; until `trimming` is cancelled. */
void consoles_watch(struct qemu *qemu);
