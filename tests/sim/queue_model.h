/*
 * The job queue as docs/guide/queue.md and docs/design/procedures.md tell it, in its plainest form:
 * every question is answered by looking at everything. It shares nothing with src/core, and is told
 * facts only: what was submitted, which rules there are, what has started and ended. The simulation
 * of the queue (queue_sim.h) compares luxid with it.
 */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

enum qm_state { QM_QUEUED, QM_ACTIVE, QM_CANCELED, QM_SUCCESS, QM_ERROR };
#define QM_SET(state) (1u << (state))

struct qm_lock {
    char *name;
    bool exclusive;
};

struct qm_op {
    json_t *input;
    GPtrArray *locks; /* struct qm_lock; NULL: nobody can tell before it runs */
    bool urgent;      /* it does not wait for its turn among those who want locks */
    bool fails;
};

struct qm_job {
    guint64 id;
    guint64 received_us;
    char *user;
    GPtrArray *ops; /* struct qm_op */
    enum qm_state state;
    guint at;         /* of an active one: its present opcode */
    bool asked;       /* to give up */
    guint may_end;    /* QM_SET() of the states that it may end in, beside those of `doom` */
    gint64 seen_ms;   /* when it came */
    gint64 stuck_ms;  /* when nothing but locks was in its way for the first time; 0: never */
    gint64 claim_ms;  /* since when it is the first of those who have waited for its locks for long;
                         0: it is not */
    gint64 locked_ms; /* since when nothing else has been; 0: something is, or it is not queued */
    bool archived;    /* nobody may depend on it anew */
    const gint64 *wished; /* priority that it is to get, while that is asked for; or NULL */
};

enum qm_verdict {
    QM_READY,
    QM_UNMET,    /* waits for jobs that it depends on */
    QM_DOOMED,   /* one of those ended otherwise than wanted */
    QM_REJECTED, /* by a rule */
    QM_RULED,    /* a rule holds it */
    QM_LIMITED,  /* a limit in its own reasons does */
    QM_LOCKED,   /* it would only wait for locks */
};

struct qm {
    GTree *jobs;       /* id -> struct qm_job */
    GPtrArray *active; /* struct qm_job */
    GPtrArray *queued;
    GPtrArray *rules; /* struct qm_rule, in their order */
    guint64 newest;   /* id */
    guint slots;
    bool drained;
};

struct qm *qm_new(guint slots);
void qm_free(struct qm *qm);

/* `ops`: as submitted. */
struct qm_job *qm_add(struct qm *qm, guint64 id, guint64 received_us, const char *user,
                      const json_t *ops);
struct qm_job *qm_find(const struct qm *qm, guint64 id);
void qm_set_state(struct qm *qm, struct qm_job *job, enum qm_state state);
/* It has that end, but counts as active until its state is set. */
void qm_linger(struct qm_job *job, enum qm_state state);
/* It has not started after all. */
void qm_unpick(struct qm *qm, struct qm_job *job);
bool qm_final(enum qm_state state);
gint64 qm_priority(const struct qm_job *job);
void qm_set_priority(struct qm_job *job, gint64 priority);
/* `filter` NULL: it is gone. The object as it is on record. */
void qm_set_rule(struct qm *qm, const char *uuid, const json_t *filter);
/* UUID of a rule; NULL: there is none. */
const char *qm_any_rule(const struct qm *qm);
/* Whether a job that it depends on is archived. */
bool qm_lacks(const struct qm *qm, const json_t *ops);
/* Whether a job that has not ended depends on it. */
bool qm_is_wanted(const struct qm *qm, guint64 id);
/* Whether a rule refuses such a job. */
bool qm_refuses(const struct qm *qm, guint64 id, const char *user, const json_t *ops);

enum qm_verdict qm_judge(const struct qm *qm, const struct qm_job *job);
const char *qm_verdict_text(enum qm_verdict verdict);
/* Whether a rule pauses it. */
bool qm_paused(const struct qm *qm, const struct qm_job *job);
/* In which states (QM_SET) a job that is doomed ends. */
guint qm_doom(const struct qm *qm, const struct qm_job *job);
/* Queued jobs in the order of their turn: GPtrArray of struct qm_job, to be unreffed. */
GPtrArray *qm_line(const struct qm *qm);
/* Whether the first opcode of one would wait for the present one of the other. */
bool qm_in_the_way(const struct qm_job *job, const struct qm_job *other);
