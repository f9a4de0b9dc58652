/*
 * One question put to several nodes at once, from a task. For what needs a majority, or a look at
 * everybody, without waiting for one dead node after the other: promises, masterships, reports.
 */
#pragma once

#include "proto/env.h"

struct env_question {
    const GPtrArray *nodes; /* UUIDs (char *): needed until the last is asked, not longer */
    const char *role, *method;
    const void *args;    /* the method's record; NULL: nothing */
    const json_t *json;  /* in place of it: who asks in JSON gets JSON, and reads it himself */
    json_t *const *each; /* in place of it: what each node is asked, in their order */
    struct stamp stamp;
    guint job;      /* that asks; 0: none */
    guint limit_ms; /* for each node; 0: as long as the method allows */
};

struct env_answer {
    guint index; /* of the node, in the question */
    const char *node;
    void *record; /* by the method table; may be stolen. NULL: see `error`, or asked in JSON */
    json_t *json; /* as it came; NULL: see `error` */
    const GError *error; /* also PROTOCOL, if what came is no such record */
};

/* Called from the loop for each answer as it comes, so it may not wait; never after the asker has
 * gone on. All that is in the answer is borrowed. True: that is enough, the others are not waited
 * for. */
typedef bool (*env_answer_fn)(struct env_answer *answer, void *data);

/* Asks in the order of the nodes. Returns when all have answered or failed to, or when it was
 * enough. False: the process has ended, and nobody hears of the answers. */
bool env_many(const struct env *env, const struct env_question *question, env_answer_fn fn,
              void *data);
