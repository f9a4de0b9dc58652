/*
 * Mastership in the simulator: some candidates, an engine, and everything that may happen to them
 * (docs/design/mastership.md; SAF-01…08).
 *
 * Real: core/config (seat, copying, takeover, promises, wconf with locks, journal, announcements),
 * core/epoch/epoch_fence.c behind each node, io/etcd/etcd_engine.c with etcd_commit.c, etcd_load.c
 * and etcd_kv.c: down to the text of each request of the JSON gateway. Modelled: etcd behind the
 * gateway and the way to it (model_etcd.c, model_client.c: requests that come late, twice, or whose
 * answers are lost; leases by the leader's clock), stores (model_store*.c: transactions whole or
 * not at all), GLib's loop as the etcd engine uses it (model_client.c), network, disks, clocks and
 * processes (helper/fake_env.h, mastership_world.c), and what wconfd's main() does with its store
 * at its start.
 *
 *   mastership_world.c  network, clocks, disks, the cluster at first
 *   mastership_host.c   hosts and their processes
 *   mastership_load.c   clients: commits, locks, operations on nodes
 *   mastership_check.c  what must hold after every step
 *   mastership_answers.c  what a master may answer
 *   mastership_copies.c  which copies an answered change is on
 *   mastership_end.c    what must hold when the faults have stopped
 *   mastership_person.c a person who makes a candidate the master
 *   mastership_fate.c   faults, the course of a run
 */
#pragma once

#include "core/candidate/seat.h"
#include "core/epoch/epoch_fence.h"
#include "helper/fake_authority.h"
#include "helper/fake_env.h"
#include "model_etcd.h"
#include "model_store.h"
#include "proto/records.h"

#define MS_WORDS 8 /* on one copy, without a master of it between */
#define MS_HOSTS 5
#define MS_HISTORY 5
#define MS_EPOCH_BASE 3 /* of etcd */
#define MS_CLUSTER "cccccccc-0000-4000-8000-000000000001"
#define MS_PREFIX "/fettle/" MS_CLUSTER "/"
/* How long after the last fault there has to be one master with whole copies. */
#define MS_REST_MS 90000
/* Beats of storage services, and how long without one is down. */
#define MS_BEAT_S 2
#define MS_DOWN_S 6

struct ms;
struct ms_host;
struct etcd_client;

/* What else runs on the hosts, instead of the load of mastership_load.c: volume services, say
 * (storage_sim.h). */
struct ms_theme {
    bool plain;    /* nothing is left to chance */
    bool sqlite;   /* that engine alone */
    guint rest_ms; /* as MS_REST_MS, of this */
    /* After the world stands, before the first host boots; and before the world goes. */
    void (*begin)(struct ms *ms, void *counts);
    void (*end)(struct ms *ms);
    /* What the cluster has beside its nodes. */
    void (*add_objects)(const struct ms *ms, GPtrArray *changes);
    void (*boots)(struct ms_host *host);
    void (*ends)(struct ms_host *host);
    void (*pauses)(struct ms_host *host, bool paused);
    /* Somebody asks the wconfd of the host. */
    void (*asked)(struct ms_host *host, struct rpc_request *request);
    /* Its node daemon begins, and is asked about volumes of guests. NULL: there are none. */
    void (*noded_starts)(struct ms_host *host);
    json_t *(*noded)(struct ms_host *host, const struct rpc_request *request, GError **error);
    /* Its engine is given a commit. */
    void (*given)(struct ms_host *host, const GPtrArray *changes);
    /* A commit is stored. */
    void (*committed)(struct ms *ms, const char *id, guint64 serial, const GPtrArray *changes);
    /* A store has become the configuration; what it lacks is lost. */
    void (*reloaded)(struct ms *ms, const struct model_store *store);
    void (*step)(struct ms *ms);
    void (*fault)(struct ms *ms);
    void (*faults_end)(struct ms *ms);
    /* As ms_unrest(). */
    char *(*unrest)(struct ms *ms);
};

/* What a master knows of a candidate's copy, by its questions. */
struct ms_follower {
    bool in;    /* counted as in reach */
    bool whole; /* its last question was of what the masters had, at some serial */
    guint64 serial;
};

/* A candidate. Processes are NULL while they do not run. */
struct ms_host {
    struct ms *ms;
    guint index;
    char uuid[37];
    bool powered, paused;
    bool gone;         /* by a person's word, for good */
    bool demoted;      /* no candidate since then */
    bool frozen;       /* its wconfd alone is stopped */
    gint64 steady_ms;  /* since when nothing has happened to it */
    double rate;       /* of its clock */
    gint64 stood_ms;   /* its clock has stood still for so long, as that of a virtual machine does
                          that its host has stopped */
    gint64 stopped_ms; /* and does since then; 0: it does not */
    guint sync_ms;     /* of its disk, at the most */

    struct env *noded, *wconfd, *luxid, *job, *cli;
    struct epoch_fence *fence;
    struct model_store *store;
    struct fake_authority *authority;
    struct copy *copy;
    struct engine *real;  /* behind `engine` */
    struct engine engine; /* what its wconfd is given: looks at what passes */
    struct seat *seat;
    struct etcd_client *client;
    guint64 replaced;      /* as in wconfd's main(): its store is to be put away */
    guint restart;         /* timer: its wconfd is started */
    guint64 epoch;         /* that its wconfd has; 0: it is not master */
    gint64 epoch_ms;       /* since when */
    GPtrArray *operations; /* struct ms_operation, under way there */

    struct ms_follower followers[MS_HOSTS]; /* while it is master */

    bool member; /* its member of etcd runs */
    bool word;   /* a person has said that the others are gone: it may go on with what it has */
    bool fence_ready; /* noded has read what it knew */
    gint64 wrong_ms;  /* since when it is master of what is over; 0: it is not */
    struct {
        bool now;                          /* it has neither begun nor been made a copy again */
        guint count;                       /* words since it was what a master had */
        struct copy_position base;         /* what it was before them */
        struct copy_position to[MS_WORDS]; /* what each made of it */
    } taken;                               /* its copy has become an engine, by a person's word */
};

/* What happened in a run; campaigns add them up. */
struct ms_counts {
    guint64 seeds, steps, virtual_s;
    guint64 commits, answered, unknown, grants, operations, stale, repeated;
    guint64 masters, restarts, reboots, refills, pauses, cuts, lost_disks, lost_members, late;
    guint64 takeovers, alone, handovers, promoted, lost_changes, lost_alone;
    guint worst_rest_ms;
};

/* A serial of the configuration as it was stored. */
struct ms_commit {
    char *id; /* NULL: not of a client */
    guint64 serial;
    guint64 epoch;
    guint64 digest; /* of everything, then; SQLite */
    gint64 stored_ms;
    bool answered; /* somebody was told that it is stored */
    bool alone;    /* and no copy was in reach */
};

struct ms {
    struct fake_world *world;
    const struct ms_theme *theme; /* NULL: none */
    void *themed;                 /* its own */
    guint64 random;
    guint hosts_count;
    guint64 history; /* how often the configuration was restored */
    bool etcd;       /* which engine */
    bool cleans;     /* cluster.auto_cleanup_enabled */
    guint copies;    /* cluster.commit_copies */
    struct ms_host hosts[MS_HOSTS];
    bool cut[MS_HOSTS][MS_HOSTS];         /* from, to */
    gint64 linked_ms[MS_HOSTS][MS_HOSTS]; /* since when it is so */
    guint delay_ms;                       /* messages take up to so long */
    gint64 delayed_ms;                    /* since when */
    char *problem;
    struct ms_counts *counts;

    struct model_etcd *model;
    double leader_rate;
    gint64 leader_base; /* of the leader's clock */
    int leader;         /* its host; -1: none */

    GPtrArray *log;     /* struct ms_commit by serial, leaps apart; [0] is nothing */
    GHashTable *ids;    /* commit id -> serial, of the log */
    GHashTable *lost;   /* serial -> struct ms_commit, whose id is gone */
    GHashTable *wishes; /* commit id -> struct ms_wish */
    GHashTable *given;  /* commit id -> GPtrArray of its changes, as an engine got them */
    json_t *unanswered; /* arguments of a commit whose asker has got no answer; NULL: none */
    GHashTable *epochs; /* epoch -> who had it first */
    guint64 newest_epoch;
    guint64 key_epoch; /* of the key that says who is master; 0: there is none */
    int newest_host;
    struct copy_position seen[MS_HOSTS];
    struct stamp fenced[MS_HOSTS]; /* answered by the node daemon */
    struct env *liar;              /* a member, no candidate and no host of these */
    guint64 liar_random;
    GArray *proofs;      /* struct ms_proof: what it has been shown; or NULL */
    GHashTable *locks;   /* name -> who has it exclusively */
    GHashTable *ended;   /* jobs that live no more */
    GHashTable *tags;    /* key -> version, as it is stored now */
    GHashTable *objects; /* "kind key" -> version, the same of everything; etcd */
    guint64 digest;      /* of those */
    guint last_job, last_tag, last_id;
    bool calm;        /* the faults are over */
    bool over;        /* the run is: nothing begins any more */
    bool refused;     /* what a person asked for last: surely nothing was done */
    bool busy;        /* a person is at it: what fate has begun waits */
    gint64 heeded_ms; /* until then a person waits for who has taken a word, which looks for others
                         for 30 s */
};

/* What a commit id stands for: one tag put or deleted. */
struct ms_wish {
    char *key;
    bool deletes;
    guint64 epoch; /* of the job that asks; 0: not a job */
};

/* What a candidate has signed for itself. */
struct ms_proof {
    struct stamp stamp;
    bool begun;
    char node[37];
    char signature[LIMIT_VOUCHER_CHARS + 1];
};

struct ms_operation {
    struct epoch_fence_op *op;
    struct ms_host *host;
    guint timer;
};

/* --- mastership_world.c --- */
struct ms *ms_new(guint64 seed, const struct ms_theme *theme, struct ms_counts *counts,
                  void *theme_counts);
void ms_free(struct ms *ms);
guint ms_random(struct ms *ms, guint below);
gint64 ms_now(const struct ms *ms);
gint64 ms_boot_ms(const struct ms_host *host);
struct ms_host *ms_host_of(struct ms *ms, const char *uuid);
void ms_pass(struct ms *ms, guint ms_time);
/* Whether a message gets from one to the other, as far as the network and their power go. */
bool ms_linked(const struct ms *ms, guint from, guint to);
void ms_cut(struct ms *ms, guint from, guint to, bool cut);
struct env *ms_process(struct ms_host *host, const char *role);
/* --- mastership_host.c --- */
void ms_boot(struct ms_host *host);
void ms_power_off(struct ms_host *host);
void ms_pause(struct ms_host *host, bool paused);
void ms_freeze(struct ms_host *host, bool frozen);
void ms_kill_wconfd(struct ms_host *host);
void ms_kill_noded(struct ms_host *host);
void ms_lose_disk(struct ms_host *host);
void ms_start_noded(struct ms_host *host);
/* Killed; its supervisor starts it anew. */
void ms_restart_wconfd(struct ms_host *host);
/* A timer of the world, of nobody's process. */
guint ms_timer(struct ms *ms, guint ms_time, void (*fn)(void *data), void *data);
void ms_timer_remove(struct ms *ms, guint handle);
/* Something has happened to it. */
void ms_unsteady(struct ms_host *host);
/* The running process; set around everything that calls into the etcd engine. */
extern struct ms_host *ms_current;
GPtrArray *ms_objects(const struct ms *ms);

/* --- model_client.c --- */
struct etcd_client *model_client_new(struct ms_host *host);
/* Its process has ended: what is on its way may still arrive. Lives until ms_free(). */
void model_client_end(struct etcd_client *client);
void model_clients_free(void);
/* Members, their power or the network between them have changed. */
void model_members_changed(struct ms *ms);
gint64 model_leader_ms(const struct ms *ms);

/* --- mastership_load.c --- */
void ms_load_start(struct ms_host *host);
/* Its node daemon has just begun. */
void ms_load_noded(struct ms_host *host);
/* Its jobs and what they do on other nodes end with the host. */
void ms_operations_end(struct ms_host *host);

/* --- mastership_check.c --- */
/* For whoever reads the log (FETTLE_SIM_LOG). */
void ms_tell(const struct ms *ms, const char *format, ...) G_GNUC_PRINTF(2, 3);
void ms_problem(struct ms *ms, const char *format, ...) G_GNUC_PRINTF(2, 3);
void ms_check_step(struct ms *ms);
/* An engine is given a commit. */
void ms_saw_given(struct ms *ms, const struct engine_commit *commit);
/* A node daemon answers: from now on it knows at least this epoch. */
void ms_saw_promise(struct ms_host *host, guint64 history, guint64 epoch);
void ms_saw_campaign(struct ms_host *host, const struct mastership *me);
void ms_saw_write(gint64 now_ms, void *writer, const struct model_write *writes, guint count,
                  void *data);
struct model_store_events ms_store_events(struct ms *ms);
void ms_check_init(struct ms *ms);
void ms_check_free(struct ms *ms);
/* The content of a new cluster. */
void ms_check_first(struct ms *ms, const GPtrArray *changes);
struct ms_commit *ms_commit_at(const struct ms *ms, guint64 serial);
/* The first one behind it. */
struct ms_commit *ms_commit_after(const struct ms *ms, guint64 serial);
guint64 ms_last_serial(const struct ms *ms);
/* Its store is what the last masters had, at some serial. */
bool ms_is_whole(const struct ms *ms, const struct ms_host *host);
/* Its copy is of what was given up by a person's word: no new master is to be made of it, though it
 * may be the most that is left. */
bool ms_is_given_up(const struct ms *ms, const struct ms_host *host);
/* Nothing has happened to them and between them for so long. */
bool ms_steady(const struct ms *ms, guint a, guint b, gint64 since_ms);

/* What a backup that is taken now is of. */
GPtrArray *ms_keep_log(const struct ms *ms);
/* Its store is what was then, and whatever came since is lost. Takes what is in `kept`. */
void ms_saw_restore(struct ms_host *host, GPtrArray *kept);

/* --- mastership_answers.c --- */
void ms_saw_request(struct ms_host *host, struct rpc_request *request);
void ms_saw_release(struct ms *ms, guint job);
/* Its lock file is free from now on. */
void ms_saw_end(struct ms *ms, guint job);

/* --- mastership_copies.c --- */
/* Its process has just begun as the master: nobody has asked it. */
void ms_copies_forget(struct ms_host *master);
void ms_saw_follow(struct ms_host *master, const struct rpc_request *request);
/* `result` NULL: it is refused. */
void ms_saw_followed(struct ms_host *master, const char *asker, const json_t *result);
/* This serial is about to be answered. */
void ms_check_copies(struct ms *ms, const struct ms_host *master, guint64 serial);

/* --- mastership_end.c --- */
/* Why it is not at rest; NULL: it is, and everything answered is there. To be freed. */
char *ms_unrest(struct ms *ms);

/* --- mastership_person.c --- */
/* Tries to make some candidate the master. */
void ms_person_acts(struct ms *ms);
/* The faults have ended so long ago: helps if there still is no master. */
void ms_person_mends(struct ms *ms, guint waited_ms);

/* A member that lies, from the beginning to the end (mastership_liar.c). */
#define MS_LIAR "99999999-0000-4000-8000-000000000009"
void ms_liar_start(struct ms *ms, guint64 seed);
void ms_liar_free(struct ms *ms);
/* Whether it can prove what ends that mastership of the host, or an attempt at one. */
bool ms_liar_may_end(const struct ms_host *host, struct stamp mastership);

/* --- mastership_fate.c --- */
/* For a while. */
void ms_fate_cuts_power(struct ms *ms, struct ms_host *host);
/* NULL, or what was wrong; to be freed. */
char *ms_run(guint64 seed, struct ms_counts *counts);
char *ms_run_theme(guint64 seed, const struct ms_theme *theme, struct ms_counts *counts,
                   void *theme_counts);
/* After some time; not while a person is at it, nor when the run is over. */
void ms_later(struct ms *ms, struct ms_host *host, guint more, guint ms_time,
              void (*fn)(struct ms *ms, struct ms_host *host, guint more));
