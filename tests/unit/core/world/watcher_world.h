/*
 * A cluster of three nodes for tests of the watcher: the real configuration daemon (config_world.h)
 * and the real watcher on node1, nodes that report what the test says, and a luxid that records
 * submissions as committed job objects whose outcome the test decides.
 */
#pragma once

#include "core/config/model.h"
#include "core/repair/duties.h"
#include "unit/core/world/config_world.h"

#define TAG_PREFIX "ganeti:watcher:autorepair:"

#define NODE4 "44444444-0000-4000-8000-000000000004"

struct submission {
    guint64 id;
    char *op_id;
    char *request_id;
    char *body; /* all opcodes, as JSON text */
    char *instance;
    bool ended;
};

struct watcher_world {
    struct config_world base;
    struct env *env;
    struct watcher *watcher;
    struct config *view;       /* as of the last look */
    GPtrArray *submissions;    /* struct submission, one for each job */
    guint repeats;             /* submissions of a known request id with the same body */
    guint conflicts;           /* with another body */
    guint luxid_pause_ms;      /* between taking a job and committing it */
    const char *luxid_refuses; /* message; NULL: it takes jobs */
    guint fail_at;             /* opcode that an error is of; those before it succeed */
    /* What nodes report. */
    const char *guest_node; /* on which web1 is; NULL: nowhere */
    const char *guest_state;
    const char *mirror;
    guint64 guest_generation;
    const char *silent;     /* node that does not answer; "all": none does */
    guint disk_free;        /* of each node */
    guint memory;           /* of each node */
    const char *newer;      /* node whose QEMU is newer than those of the others */
    const char *failed;     /* node whose disks have no space at all, which says nothing else … */
    const char *fault;      /* … and whose trial of its disks fails, or … */
    bool silent_trial;      /* … does not come back, or … */
    const char *fault_kind; /* … it is this kind of fault; NULL: disks */
    bool well;              /* nodes say that they have looked for such, and have none */
    guint io_errors;        /* that web1's guest was answered */
    bool errors_past;       /* no more than those; otherwise one more each time */
    const char *io_stop;    /* why it was stopped; NULL: it was not */
    const char *io_volume;  /* for that volume; NULL: for its own disks */
    bool late_guest;        /* it does not answer, and this is what it said last */
    const char *full;       /* node with no room left */
    bool tell_images;       /* nodes say which images they have: as of the last look … */
    bool replica_gone;      /* … but not those of web1's replica … */
    bool disk_gone;         /* … or not that of its disk 1 … */
    const char *refuses;    /* node that answers with an error, and no report */
    const char *late;    /* node whose guest and disks do not answer: what is said of them is old */
    bool old_version;    /* … which nodes of an older version do not tell */
    guint own_disks;     /* of web1 on its primary node, as a sum (record image_set); 3: both */
    guint disk_mib;      /* size of each there */
    const char *busy;    /* node where something is being done to it … */
    guint64 busy_job;    /* … for that job */
    const char *unasked; /* node whose daemon does not know the question */
    const char *crashed; /* last words of its guest */
    guint left_disks;    /* of web1 on its primary node, under the name of a replica, as a sum */
    json_t *volumes;     /* of web1's guest, as its node has noted; NULL: none … */
    json_t *drives;      /* … and what its hypervisor says */
    guint collects;      /* calls of `collect` */
    guint collect_ms;    /* until the answer to one is back */
    bool answers_late;   /* … as the next message is */
    guint64 refused;     /* job that nodes were told to refuse last */
    json_t
        *things; /* node -> {"guests": […], "bridges": […], …}: added to its report; NULL: none */
    json_t *strays;     /* node -> its answer to list_strays; null: its daemon does not know the
                           question; missing: it has none */
    guint strays_asked; /* calls of `list_strays` */
    json_t *services;   /* node -> list of its daemons; NULL: nobody says anything of them */
};

/* web1 runs on node1, its replica on node2 is in sync, everything is online, no tags. db1, diskless
 * and down, is on node3. The test's job 17 holds the locks of all, and of instances more1 to more5
 * that it may make. */
struct watcher_world *watcher_world_new(void);
/* The same with another engine on record, and more objects; NULL: none. */
struct watcher_world *watcher_world_new_with(const char *engine, GPtrArray *more);
void watcher_world_free(struct watcher_world *w);
void watcher_world_kill(struct watcher_world *w);  /* SIGKILL of the watcher */
void watcher_world_start(struct watcher_world *w); /* a new one */
/* Lets n passes go by. */
void passes(struct watcher_world *w, guint n);
void look(struct watcher_world *w);

/* --- what the test changes --- */
void set_tag(struct watcher_world *w, enum tag_kind kind, const char *object, const char *text);
void drop_tag(struct watcher_world *w, enum tag_kind kind, const char *object, const char *text);
/* Members of an object, or a new one; `patch` is stolen. */
void change_object(struct watcher_world *w, const char *kind, const char *key, json_t *patch);
/* Job 17 has all its locks again, as soon as it can have them. */
void take_locks(struct watcher_world *w);
/* The same of web1, whose lock nobody has then: recovery takes it. */
void patch_web1(struct watcher_world *w, json_t *patch);
void set_node(struct watcher_world *w, const char *node, const char *state); /* online … */
void add_node4(struct watcher_world *w);
void set_replica(struct watcher_world *w, const char *state);
/* The n-th submission ends; `result` is stolen, NULL for none. */
void end_job(struct watcher_world *w, guint n, const char *status, json_t *result);
/* What its opcode does, and success: failover or migration to the secondary, a new replica (in
 * sync) on the third node, … */
void play_job(struct watcher_world *w, guint n);
/* web1's guest is stopped, its replica in sync as before; `job`: who goes on with it, 0 for none.
 */
void end_guest(struct watcher_world *w, guint64 job, bool clean, const char *sound);
bool job_committed(struct watcher_world *w, guint n);
/* [class, [message, code, changed]] */
json_t *job_error(const char *message, const char *code, bool changed);

/* --- what the test sees --- */
guint jobs(const struct watcher_world *w);
const struct submission *job(const struct watcher_world *w, guint n);
/* Tags of auto-repair of web1 without the prefix, ids and times as I and T, joined by blanks. */
char *web1_tags(struct watcher_world *w);
/* The whole text of web1's only tag that begins with the prefix and `kind`; NULL if there is none.
 */
char *web1_tag(struct watcher_world *w, const char *kind);
/* Newest record of an author about an object; NULL if there is none. Valid until the next look. */
const struct decision *latest_about(struct watcher_world *w, const char *subject,
                                    const char *author);
guint decisions_count(struct watcher_world *w);
#define assert_state(w, expected)                                                                  \
    do {                                                                                           \
        const struct decision *latest_ = latest_about((w), WEB1, "watcher/repair");                \
        g_assert_nonnull(latest_);                                                                 \
        g_assert_cmpstr(latest_->state, ==, expected);                                             \
    } while (0)
#define assert_tags(w, expected) assert_says(web1_tags(w), expected)
