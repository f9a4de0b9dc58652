/*
 * The job queue in the simulator: luxid, the job runner and wconfd with its locks as shipped, on
 * the fake world, with many jobs and everything that people and fate do to them, compared with a
 * plain model of the queue (queue_model.h).
 *
 * A careful run has slots of time: nothing that matters happens twice in one slot, so after each
 * slot the model says exactly what runs, what waits, and why. A rough run has late messages, and
 * ends processes at any step; there only what has to hold always is checked: an accepted job runs
 * at most once, after those that it depends on, under no rule that forbids it, within the limit of
 * jobs at once; it gets exactly one final state; and when fate rests all have one, and no lock,
 * file or process is left.
 *
 * A run has a theme, which says what jobs are like: all kinds mixed; or a crowd that wants few
 * locks, and some jobs among it that want all of them, which it must not pass for ever; or jobs
 * with several limits in their reasons; or all kinds, and calls that meet: several at once, some
 * asked again with their request id, jobs that go to the archive, and a store that stands still.
 * Themes other than the mixed one begin at seed JQ_THEME.
 *
 *   queue_model.c     what the queue is to do
 *   queue_host.c      the two candidates and their processes
 *   queue_check.c     what is committed and seen, compared with the model
 *   queue_files.c    files of jobs, against records and answers
 *   queue_inputs.c    jobs and rules drawn at random
 *   queue_archive.c   node daemons that keep the archive, and what may go there
 *   queue_together.c  calls that meet
 *   queue_campaign.c  what people and fate do, the course of a run
 */
#pragma once

#include "core/ops/runner.h"
#include "core/queue/luxi.h"
#include "core/wconfd/wconf.h"
#include "helper/fake_engine.h"
#include "helper/fake_env.h"
#include "queue_model.h"

#define JQ_SLOT_MS 400
#define JQ_THEME 1000000 /* seed / JQ_THEME is the theme */
#define JQ_CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define JQ_GROUP "bbbbbbbb-0000-4000-8000-000000000001"

enum jq_theme { JQ_MIXED, JQ_CROWD, JQ_LIMITS, JQ_TOGETHER };

struct jq_counts {
    guint64 runs, jobs, refused, canceled, killed, priorities, rules, drains, deaths, restarts,
        masters, depends, held, children, compared, claims, limited, virtual_s;
    guint64 worst_stuck_s;
    guint64 together, again, archived, at_once;
    guint64 files, touched; /* compared; written or removed by luxid */
};

/* A job's process, from the starter's fork on. */
struct jq_process {
    struct jq *jq;
    struct env *env;
    guint starter;
    guint64 id;
    char *livelock;
    bool confirmed, ended;
};

struct jq {
    struct jq_counts *counts;
    guint64 random;
    enum jq_theme theme;
    bool rough, calm;
    struct fake_world *world;
    struct fake_engine *engine;
    const char *master; /* UUID */
    struct env *client, *wconfd, *luxid;
    struct wconf *wconf;
    struct luxi *luxi;
    const char *user;     /* who submits next */
    gint64 luxid_since;   /* ms; luxid has been serving since then */
    GPtrArray *processes; /* struct jq_process */
    GHashTable *ran;      /* ids of jobs whose program has begun */
    GHashTable *taken;    /* slots in which something happens */
    GHashTable *nodeds;   /* node -> its struct env, where jobs are archived */
    GPtrArray *calls;     /* that have not been answered */
    GPtrArray *asked;     /* opcodes with a request id */
    GHashTable *requests; /* request id -> the job's */
    bool archiving;       /* a job has just been archived */

    struct qm *model;
    GHashTable *pending; /* comment of a job's first opcode -> its opcodes, as submitted */
    guint64 seen;        /* serial up to which commits were read */
    GHashTable *records; /* id -> the job as it is on record, JSON */
    GHashTable *could;   /* ids that might have started next at some moment of this slot */
    guint slots_before;  /* jobs at once, when this slot began */
    bool news;           /* something has happened in this slot */
    guint submitted;
    char *problem;
};

/* --- queue_host.c --- */
struct jq *jq_new(guint64 seed, bool rough, guint slots, struct jq_counts *counts);
void jq_free(struct jq *jq);
guint jq_random(struct jq *jq, guint below);
void jq_serve_archives(struct jq *jq);
/* The slot after `ms` from now in which nothing happens yet; it is taken then. Its start, in ms. */
gint64 jq_take_slot(struct jq *jq, gint64 ms);
void jq_kill_luxid(struct jq *jq);
void jq_start_luxid(struct jq *jq);
void jq_kill_wconfd(struct jq *jq);
void jq_start_wconfd(struct jq *jq);
/* The master loses its power, the other candidate takes over. */
void jq_change_master(struct jq *jq);
/* Kills the process of a job; false: there is none. */
bool jq_kill_job(struct jq *jq, guint64 id);
/* Ends processes of jobs that are over. */
void jq_reap(struct jq *jq, bool orphans);
/* A call of a client of luxid; `args` is stolen. */
json_t *jq_call(struct jq *jq, const char *method, json_t *args, GError **error);

/* --- queue_check.c --- */
void jq_find(struct jq *jq, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* For whoever reads the log (FETTLE_SIM_LOG). */
void jq_tell(const struct jq *jq, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* luxid has been at work for long enough. */
bool jq_settled(const struct jq *jq);
/* A line of a state machine. */
void jq_saw_move(const char *line, void *data);
/* The model has changed. */
void jq_note(struct jq *jq);
/* Reads what was committed since. */
void jq_look(struct jq *jq);
/* Nothing is on its way: the model says what must be. */
void jq_compare(struct jq *jq);
/* All has ended: nothing is left. */
void jq_compare_end(struct jq *jq);

/* --- queue_files.c --- */
/* What a commit has put; NULL: it is gone. */
void jq_recorded(struct jq *jq, guint64 id, const json_t *record);
/* luxid writes or removes a file of the queue. */
void jq_luxid_touches(struct jq *jq, const char *name, bool removes);
/* `row`: id, status, opstatus, oppriority as clients are told. */
void jq_compare_job(struct jq *jq, guint64 id, const json_t *row);

/* --- queue_inputs.c --- */
/* Opcodes of a new job; `call_from`: first id of which the jobs of this call may be, negative
 * dependencies go back at most `earlier` jobs. */
json_t *jq_draw_job(struct jq *jq, guint earlier);
json_t *jq_draw_rule(struct jq *jq, json_t **ret_action);
const char *jq_draw_user(struct jq *jq);

/* --- queue_archive.c --- */
void jq_start_noded(struct jq *jq, const char *node);
void jq_kill_noded(struct jq *jq, const char *node);
void jq_saw_archived(struct jq *jq, guint64 id);
/* All that is committed was seen: nobody needs an archived job. */
void jq_check_archived(struct jq *jq);
bool jq_may_go(const struct jq *jq, const struct qm_job *job);

/* --- queue_together.c --- */
GPtrArray *jq_calls_new(void);
/* Several calls at once. `rules`: UUIDs of those that there are, brought up to date. */
void jq_meet(struct jq *jq, GPtrArray *rules);
/* Compares the answers that have come. */
void jq_hear(struct jq *jq);

/* --- queue_campaign.c --- */
/* `ops` are about to be submitted. */
void jq_keep(struct jq *jq, json_t *ops);
/* NULL: there is none. */
struct qm_job *jq_pick_job(struct jq *jq);
/* What its end may be if it is asked to give up now. */
void jq_will_cancel(struct jq *jq, struct qm_job *job, bool kill);
/* No job of those that have not ended needs to succeed. */
void jq_all_may_die(struct jq *jq);
void jq_pass_to(struct jq *jq, gint64 until_ms);
/* NULL, or what was wrong; to be freed. */
char *jq_run(guint64 seed, struct jq_counts *counts);
