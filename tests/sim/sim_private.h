/* Insides of the simulator, shared by sim.c (cluster), process.c (daemons), fate.c (faults), jobs.c
 * (job processes) and check.c (checkers). */
#pragma once

#include "core/node/node.h"
#include "core/ops/runner.h"
#include "core/queue/luxi.h"
#include "core/repair/duties.h"
#include "core/wconfd/wconf.h"
#include "sim.h"

#define SIM_CLUSTER "00000000-0000-4000-8000-00000000c1a5"
#define SIM_GROUP "00000000-0000-4000-8000-0000000064a0"

enum sim_role { SIM_WCONFD, SIM_LUXID, SIM_WATCHER, SIM_NODED, SIM_ROLES };

struct sim_process {
    struct env *env; /* NULL: it does not run */
    struct wconf *wconf;
    struct luxi *luxi;
    struct watcher *watcher;
    struct node_core *node;
};

struct sim_node {
    struct sim *sim;
    char *name, *uuid;
    bool powered, linked, disks_fail;
    bool read_only;
    gint64 written_since_ms; /* it was read-only until then; 0: never */
    gint64 ahead_s;          /* of its wall clock */
    guint congested_ms;
    bool holds;            /* requests of jobs … */
    GPtrArray *held;       /* … these: struct rpc_request */
    GPtrArray *unheard_by; /* struct sim_node: who gets nothing that this one sends */
    struct env *host_env;  /* of the hardware: outlives every process */
    struct fake_host *host;
    struct sim_process processes[SIM_ROLES];
};

/* A job's process: from the starter's fork on. */
struct sim_job {
    struct sim *sim;
    struct sim_node *node;
    struct env *env;
    guint starter;
    guint64 id;
    char *livelock;
    bool confirmed, ended;
};

struct sim {
    struct sim_options options;
    guint64 random_state;
    struct fake_world *world;
    struct fake_hosts *hosts;
    struct fake_engine *engine;
    GPtrArray *nodes;    /* struct sim_node */
    GPtrArray *jobs;     /* struct sim_job that live */
    GPtrArray *failed;   /* struct start: daemons that could not start */
    GPtrArray *restarts; /* struct start: daemons that will be started again */
    struct env *operator;
    GArray *accepted;      /* guint64: jobs whose id an operator was told */
    GHashTable *ran;       /* ids of jobs whose body began */
    GHashTable *lost;      /* replicas whose images fate took away */
    GHashTable *takings;   /* check_loss.c: requests under way that may take something away */
    GHashTable *healthy;   /* instance -> since when it is healthy on record, ms */
    struct config *mirror; /* the store as committed, followed by the checkers */
    GHashTable *replicas;  /* instance -> set of the keys of its replicas in `mirror` */
    GHashTable *seen;      /* ids of jobs of repairs -> when they were seen first, ms */
    bool clocks_set;       /* some clock was */
    gint64 forward_ms;     /* when one was set forward last; 0: never */
    bool checks_all;       /* everything after each event, not only what was touched */
    guint moves;           /* migrations seen */
    guint64 checked_serial, checked_epoch;
    bool loses_word;       /* the next one is lost (lost_word.c) */
    GHashTable *questions; /* lost_word.c: to the master, under way */
    struct replica *word_before;
    guint64 word_serial, word_version; /* of that commit; of the replica before it */
    gint64 word_due_ms;
    guint lost_words;
    struct sim_recovery *recovery; /* check_recovery.c */
    char *problem;
};

struct sim_node *sim_node(const struct sim *sim, const char *name);
void sim_find(struct sim *sim, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* process.c */
void sim_process_start(struct sim *sim, struct sim_node *node, enum sim_role role);
void sim_process_end(struct sim *sim, struct sim_node *node, enum sim_role role);
void sim_process_stop(struct sim *sim, struct sim_node *node, enum sim_role role, bool stop);
/* A request arrives at its node daemon, whichever runs. */
void sim_node_handle(struct sim_node *node, struct rpc_request *request);
void sim_start_daemons(struct sim *sim, struct sim_node *node);
void sim_start_again_later(struct sim *sim, struct sim_node *node, enum sim_role role);
/* Those that could not start end, and will be started again. */
void sim_restart_failed(struct sim *sim);
/* jobs.c */
/* Whether its process is there, and at its work. */
bool sim_job_runs(const struct sim *sim, guint64 id);
void sim_starter_cb(guint index, bool confirmed, void *data);
void sim_kill_cb(const struct env *env, void *data);
void sim_jobs_end(struct sim *sim, const struct sim_node *node);
/* Ends processes of jobs that are over; `orphans`: and children that luxid, now dead, had not
 * confirmed. */
void sim_jobs_reap(struct sim *sim, bool orphans);
/* check.c */
void sim_check(struct sim *sim);
/* State of a job in the archive of the master's node; NULL: it is not there. */
const char *sim_job_archived(struct sim *sim, guint64 id);
bool sim_is_final(const char *status);
bool sim_checks_all(void);
/* lost_word.c */
void sim_note_question(struct sim *sim, struct rpc_request *request);
void sim_lost_word_sees(struct sim *sim, const struct change *change);
void sim_lost_word_passes(struct sim *sim);
bool sim_is_unheard(const struct sim *sim, const struct replica *replica);
void sim_check_unheard(struct sim *sim, const struct instance *before, const struct instance *after,
                       const struct replica *replica);
/* check_repair.c: what auto-repair promises, of one change of a commit that begins at `first`,
 * before it is applied; and of the tags after it. */
void sim_check_repair(struct sim *sim, const GPtrArray *changes, guint first,
                      const struct change *change);
void sim_check_tags(struct sim *sim, const GPtrArray *changes, guint first, guint end);
/* check_loss.c: what is taken away from guests, and by whom; a set of requests. */
GHashTable *sim_takings_new(void);
void sim_note_taking(struct sim *sim, const struct sim_node *node, struct rpc_request *request);
/* The node daemon of that node has ended, and its requests with it. */
void sim_forget_takings(struct sim *sim, const struct sim_node *node);
void sim_witness(const char *node_uuid, const char *op, const char *instance, void *data);
/* check_recovery.c: what recovery promises, of a commit before it is applied, and after that; of
 * what the watcher commits; of a request to a node daemon, which may come of it. */
struct sim_recovery *sim_recovery_new(void);
void sim_recovery_free(struct sim_recovery *recovery);
void sim_check_recovery(struct sim *sim, const GPtrArray *changes, guint first, guint end);
void sim_check_stuck(struct sim *sim, const GPtrArray *changes, guint first, guint end);
void sim_check_recover(struct sim *sim, const struct rpc_request *request);
void sim_check_asking(struct sim *sim, const struct sim_node *node, struct rpc_request *request);
/* hold.c: whether the request was taken off its way. */
bool sim_holds_request(struct sim_node *node, struct rpc_request *request);
/* The node has lost its power, and all that was on its way to it. */
void sim_drop_requests(struct sim_node *node);
/* tell.c: what a commit says, for the log, before it is applied. */
void sim_tell(struct sim *sim, const struct change *change);
