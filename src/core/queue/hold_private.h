/* Inside of what holds jobs back (hold.h): hold.c sets jobs aside and looks at locks, hold_limits.c
 * at rules and at limits in reasons; hold_explain.c tells all of it of one job. */
#pragma once

#include "core/queue/hold.h"

/* A job that runs, as far as it keeps others from running. */
struct runner {
    guint64 id;
    GPtrArray *limits; /* char *: keys under which it counts */
    guint at;          /* its present opcode */
    bool seen;         /* in this look */
};

struct holds {
    struct queue_context *context;
    struct rules *rules;
    struct locks *locks;    /* what running jobs have, or wait for */
    struct locks *reserved; /* what jobs have that were set aside for long */
    GHashTable *runners;    /* id -> struct runner */
    GHashTable *counts;     /* key -> number of running jobs, as GUINT_TO_POINTER */
    GHashTable *aside;      /* key -> GArray of ids that wait for it */
    GHashTable *reserving;  /* set of ids, of which `reserved` has locks */
    guint age;              /* of predictions */
};

/* --- hold.c --- */

/* The job waits for what the key names; `key` and `why` are stolen. */
void hold_set_aside(struct holds *holds, struct queue_job *job, char *key, char *why);
/* Who waited for it is ready again. */
void hold_release(struct holds *holds, const char *key);

/* Who is in a queued job's way to its locks. */
struct hold_way {
    const GPtrArray *wanted; /* of struct lock_request; NULL: it wants none, or nobody can tell */
    guint64 first;           /* the job that has to end first; 0: nobody */
    bool runs;               /* that one runs; else it is to have them first */
};
struct hold_way hold_way(struct holds *holds, struct queue_job *job);
/* The same for people; free with g_free(). `first` is somebody. */
char *hold_way_why(struct holds *holds, const struct queue_job *job, const struct hold_way *way);

/* --- hold_limits.c --- */

const struct rules *hold_rules(struct holds *holds);
/* Why the rule holds jobs, or one of the limits in a job's reasons does, for people; NULL: it does
 * not. Free with g_free(). */
char *hold_rule_why(struct holds *holds, const struct rule *rule);
char *hold_limit_why(const struct holds *holds, const char *text);
/* Whether rules and the job's own limits let it run; if not it has been set aside, or will end. */
bool hold_limits_allow(struct holds *holds, struct queue_job *job, const struct job *record);
/* The same of a job that is in no queue. */
bool hold_limits_allow_new(struct holds *holds, const struct job *record);
/* Under which keys a running job counts from now on, by its record; who waited for those under
 * which it does not count any more is ready again. NULL: it has ended, and counts no more. */
void hold_count(struct holds *holds, struct runner *runner, const struct job *record);
