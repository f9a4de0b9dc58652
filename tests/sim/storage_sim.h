/*
 * Storage in the simulator: the candidates of mastership.h with volume services and schedulers on
 * each, two back ends that all of them see, clients, and everything that may happen to them
 * (docs/design/storage.md; SAF-50…56).
 *
 * Real: core/storage, core/wconfd behind core/candidate, and what mastership.h names. Modelled:
 * back ends (helper/fake_volumes.h), and the children that touch them, which outlive who started
 * them (storage_place.c).
 *
 *   storage_host.c   the processes of a host
 *   storage_place.c  back ends that are slow, hang and fail
 *   storage_guest.c  guests that have volumes, and their node daemons
 *   storage_images.c clients that send images
 *   storage_restore.c  the configuration is restored meanwhile
 *   storage_jobs.c   jobs that start and stop them, attach and detach; recovery of what those leave
 *   storage_load.c   clients
 *   storage_front.h  front ends of the API, and clients that ask those
 *   storage_check.c  what must hold after every commit
 *   storage_watch.c  what was asked for, and what must hold of acts on data
 *   storage_fate.c   faults, and what must hold when they have stopped
 */
#pragma once

#include "core/config/resource.h"
#include "core/storage/volume_scheduler.h"
#include "core/storage/volume_service.h"
#include "helper/fake_volumes.h"
#include "mastership.h"

#define STORAGE_BACKENDS 2
#define STORAGE_GUESTS 3

struct storage_world;
struct storage_process;
struct storage_fronts;

/* What happened in all runs. */
struct storage_counts {
    guint64 seeds, accepted, taken, claimed, cleaned, refused, resets, resets_in_work, given_back;
    guint64 ended, kills, pauses, hangs, orphans, failures, down, unnamed, lost_late, clocks;
    guint64 made, removed, handed_on, stood_in, cleanups, copies, writes, backups, restores, moves;
    guint64 opened, attached, refused_attach, in_copy, torn, points, given_up, wishes, recovered;
    guint64 images, sent, uploads, downloads, restored, continued, left;
    guint64 promised, unavailable, shown, front_faults;
};

/* A copy of what a guest has, as it was at one moment; claim 0: none. */
struct storage_point {
    guint64 claim, content;
    char *name;
    gint64 ready_ms;
    bool breaks, copied;
};

/* A volume in the note of a node, or as one is told of it. */
struct storage_open {
    char *volume, *attachment, *data;
    bool plugged; /* the guest has it */
    bool leaving;
    struct storage_point point;
};

/* An instance on its node. */
struct storage_guest {
    struct storage_world *storage;
    struct storage_host *host;
    guint index;
    char uuid[37];
    bool runs, locked;
    bool writes;        /* and a timer says when */
    guint64 generation; /* that its node knows */
    bool over;          /* and has ended */
    bool stray;         /* since a restore it has what the record does not know */
    guint ended_job;    /* this one and those before do nothing here any more */
    gint64 stubborn_ms; /* until then it gives nothing up */
    GPtrArray *opens;   /* struct storage_open */
};

enum storage_frame_kind { FRAME_START, FRAME_STOP, FRAME_ATTACH, FRAME_DETACH, FRAME_LOOK };

/* What is asked of a node daemon about a guest: who asks may be dead when it comes. */
struct storage_frame {
    enum storage_frame_kind kind;
    struct storage_guest *guest;
    struct ms_host *from;
    struct stamp stamp;
    guint job, ends; /* ends: of a look, the job that is dead */
    guint64 generation;
    GPtrArray *opens; /* struct storage_open, told; of a look: seen */
    guint travels;
    bool done, ok, gone, runs; /* the answer */
    guint64 knows;             /* of a look: the generation */
};

/* The processes of one host. */
struct storage_host {
    struct storage_world *storage;
    struct ms_host *host;
    struct storage_process *volumed; /* NULL: it does not run */
    struct storage_process
        *former; /* one of the same name, which has stood still when that began */
    struct env *scheduler, *cli, *recovery; /* NULL: they do not run */
    struct volume_scheduler *part;
    guint restart, scheduler_restart;
    bool paused; /* its volumed alone */
    bool former_paused;
    gint64 resumed_ms; /* when it went on last */
    gint64 asked_ms;   /* when its members were told last what the master has */
};

/* What was stored when a master's last commits were lost. */
struct storage_loss {
    gint64 at_ms;
    struct config *truth;
};

/* What one wconfd can know of who lives, by the clock of its host. */
struct storage_ear {
    GHashTable *beats;     /* UUID of a service -> struct heard */
    guint64 epoch;         /* that it has */
    gint64 since_ms;       /* since when, or since it stood still last */
    gint64 stood_since_ms; /* it stands; 0: it does not */
};

struct storage_world {
    struct ms *ms;
    struct storage_counts *counts;
    struct fake_volumes *volumes;
    struct storage_host hosts[MS_HOSTS];
    GPtrArray *lives;                 /* struct storage_process, all that there were */
    GPtrArray *places;                /* drivers of all processes */
    bool hanging[STORAGE_BACKENDS];   /* calls at it do not come back */
    guint slow_ms;                    /* each call takes so long at least */
    GString *log;                     /* of a scenario; NULL: none */
    guint failing;                    /* so many of a hundred calls fail */
    char *backends[STORAGE_BACKENDS]; /* UUIDs */
    struct config *truth;             /* what is stored, of what is about storage */
    GHashTable *makers;               /* name of data -> struct env that made it */
    GHashTable *beside;               /* names of data that backups are made of under guests */
    GHashTable *resets;               /* UUID of a volume -> serial of its last reset */
    GHashTable *reset_ids;            /* commit ids of resets */
    GHashTable *asked;                /* commit id -> arguments of a call under claims */
    GHashTable *forsaken; /* names of data that went while a commit that is lost said so */
    GPtrArray *losses;    /* struct storage_loss, oldest first */
    struct storage_ear ears[MS_HOSTS]; /* what the wconfd of each has heard */
    struct storage_guest guests[STORAGE_GUESTS];
    GPtrArray *backup;     /* of the configuration; NULL: none */
    GPtrArray *backup_log; /* ms_keep_log(), until it is restored */
    guint64 backup_serial;
    guint faults_since; /* then */
    bool restored;
    GHashTable *left;    /* UUIDs of what rows of before were about */
    GPtrArray *doors;    /* of images that are received, all that there were */
    GHashTable *lies;    /* names of data of which something else was said */
    GPtrArray *frames;   /* struct storage_frame, all that there were */
    GHashTable *jobs;    /* numbers of those that live */
    GHashTable *moments; /* claim -> what was to be copied at the moment when that was asked */
    struct storage_fronts *fronts; /* NULL: nobody asks by the API */
    gint64 spared_ms;              /* until then no person resets all that a member works on */
    guint last_name;
};

struct storage_world *storage_of(const struct ms *ms);
/* Nothing happens by itself in the plain one; in that of copies snapshots and backups are
 * made and deleted, volumes made from them and restored, moved, and written. */
extern const struct ms_theme storage_theme, storage_plain_theme, storage_copies_theme;
/* The same with guests that have volumes. */
extern const struct ms_theme storage_guests_theme;
/* And with images; with guests, and a restore of the configuration. */
extern const struct ms_theme storage_images_theme, storage_restores_theme;
/* Copies, and clients of the API. */
extern const struct ms_theme storage_api_theme;

/* --- storage_host.c --- */
void storage_process_free(void *life);
void storage_boots(struct ms_host *host);
void storage_ends(struct ms_host *host);
void storage_pauses(struct ms_host *host, bool paused);
void storage_kill_volumed(struct storage_host *host);
void storage_pause_volumed(struct storage_host *host, bool paused);
/* It stops, another process of its name begins; then it goes on. */
void storage_namesake(struct storage_host *host);
void storage_former_goes(struct storage_host *host);
void storage_kill_scheduler(struct storage_host *host);
/* Ended, and begun, by a person. */
void storage_end_scheduler(struct storage_host *host);
void storage_start_scheduler(struct storage_host *host);
void storage_end_volumed(struct storage_host *host);
void storage_start_volumed(struct storage_host *host);

/* --- storage_place.c --- */
struct volume_driver *storage_place_new(struct storage_host *host, const struct env *env);
void storage_place_free(void *place);

/* --- storage_load.c --- */
/* A person asks; `args` is stolen. */
void storage_person(struct storage_world *storage, const char *method, json_t *args);
void storage_load_start(struct storage_host *host);
bool storage_works_on(const struct storage_world *storage, const struct storage_host *host,
                      const struct worker *row);
/* A person resets what is in a status of work, and nobody has; in a task. */
void storage_reset_left(struct storage_host *host);
/* A person resets all that its member works on. */
void storage_reset_work(struct storage_host *busy);

/* --- storage_check.c --- */
void storage_committed(struct ms *ms, const char *id, guint64 serial, const GPtrArray *changes);
/* A line of the log, in virtual time. */
void storage_tell(const struct storage_world *storage, const char *format, ...) G_GNUC_PRINTF(2, 3);
void storage_reloaded(struct ms *ms, const struct model_store *store);

/* --- storage_watch.c --- */
/* Of the work that is under way on it, also as the partner of another resource (SAF-121). */
const struct worker *storage_row_of(const struct config *config, const struct resource *resource);
void storage_asked(struct ms_host *host, struct rpc_request *request);
void storage_given(struct ms_host *host, const GPtrArray *changes);
void storage_step(struct ms *ms);
/* Somebody makes data, or removes it: begun at that time, after what the master had said at
 * `asked_ms`. */
void storage_makes(struct storage_world *storage, const struct env *env, const char *name);
void storage_makes_beside(struct storage_world *storage, const struct env *env, const char *name);
void storage_removes(struct storage_world *storage, const struct storage_host *host,
                     const struct env *env, gint64 asked_ms, gint64 begun_ms, const char *name);
/* What the master had on record at that time, if that is lost by now; NULL: it is not. */
const struct config *storage_lost_since(const struct storage_world *storage, gint64 asked_ms);
/* Under that claim a copy is made of what its source has now. */
void storage_moment(struct storage_world *storage, guint64 claim, guint64 content);

/* --- storage_guest.c --- */
bool storage_has_guests(const struct ms *ms);
void storage_open_free(void *open);
struct storage_open *storage_open_copy(const struct storage_open *open);
void storage_frame_free(void *frame);
/* Lives until the end of the run. */
struct storage_frame *storage_frame_new(struct storage_guest *guest, enum storage_frame_kind kind);
/* It comes within its usual time, or up to so much later. */
void storage_frame_send(struct storage_frame *frame, guint late_ms);
/* A guest that has the data open; NULL: none. */
const struct storage_guest *storage_opened(const struct storage_world *storage, const char *data);
/* Its host is off. */
void storage_guests_end(struct storage_host *host);
void storage_noded_starts(struct ms_host *host);
json_t *storage_noded(struct ms_host *host, const struct rpc_request *request, GError **error);
void storage_guests_check(const struct storage_world *storage);
void storage_guests_reloaded(struct storage_world *storage);

/* --- storage_images.c --- */
/* As `transfer`, `transfer_state` and `transfer_end` of a driver. */
struct volume_transfer *storage_door_new(struct storage_world *storage,
                                         const struct backend *backend, const char *name,
                                         guint64 bytes);
enum volume_transfer_state storage_door_state(const struct volume_transfer *transfer);
bool storage_door_end(struct volume_transfer *transfer);
void storage_door_free(void *door);
/* Sends the bytes of one that is asked for, as soon as somebody takes them. */
void storage_send_image(struct storage_host *host, const char *image);

/* --- storage_restore.c --- */
/* Takes a backup of the configuration, or puts it back. Once in a run. */
void storage_may_restore(struct storage_world *storage);
/* Nobody has said `repair continue` since. */
bool storage_is_held(const struct storage_world *storage);
/* Whether that may be committed while it is so, by who resets nothing. */
bool storage_may_hold(const struct config *truth, const struct change *change);

/* --- storage_jobs.c --- */
void storage_jobs_start(struct storage_host *host);

/* --- storage_fate.c --- */
void storage_fault(struct ms *ms);
void storage_faults_end(struct ms *ms);
char *storage_unrest(struct ms *ms);
