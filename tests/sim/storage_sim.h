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
 *   storage_load.c   clients
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

struct storage_world;
struct storage_process;

/* What happened in all runs. */
struct storage_counts {
    guint64 seeds, accepted, taken, claimed, cleaned, refused, resets, resets_in_work, given_back;
    guint64 ended, kills, pauses, hangs, orphans, failures, down, unnamed, lost_late, clocks;
    guint64 made, removed, handed_on, stood_in, cleanups, copies, writes, backups, restores, moves;
};

/* The processes of one host. */
struct storage_host {
    struct storage_world *storage;
    struct ms_host *host;
    struct storage_process *volumed; /* NULL: it does not run */
    struct storage_process
        *former;                 /* one of the same name, which has stood still when that began */
    struct env *scheduler, *cli; /* NULL: they do not run */
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
    GHashTable *resets;               /* UUID of a volume -> serial of its last reset */
    GHashTable *reset_ids;            /* commit ids of resets */
    GHashTable *asked;                /* commit id -> arguments of a call under claims */
    GHashTable *forsaken; /* names of data that went while a commit that is lost said so */
    GPtrArray *losses;    /* struct storage_loss, oldest first */
    struct storage_ear ears[MS_HOSTS]; /* what the wconfd of each has heard */
    gint64 spared_ms;                  /* until then no person resets all that a member works on */
    guint last_name;
};

struct storage_world *storage_of(const struct ms *ms);
/* Nothing happens by itself in the plain one; in that of copies snapshots and backups are
 * made and deleted, volumes made from them and restored, moved, and written. */
extern const struct ms_theme storage_theme, storage_plain_theme, storage_copies_theme;

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
void storage_removes(struct storage_world *storage, const struct storage_host *host,
                     gint64 asked_ms, gint64 begun_ms, const char *name);

/* --- storage_fate.c --- */
void storage_fault(struct ms *ms);
void storage_faults_end(struct ms *ms);
char *storage_unrest(struct ms *ms);
