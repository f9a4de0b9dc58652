/*
 * The members of etcd together, in memory (proto/ensemble.h): what they were filled with, who they
 * are. The test reads and writes the fields.
 */
#pragma once

#include "proto/ensemble.h"
#include "proto/env.h"

struct fake_ensemble {
    struct ensemble base;
    const struct env *env;               /* of the process that asks, for waits */
    struct engine_config *const *config; /* etc/engine.json of its node; points to NULL: none */
    guint fill_ms;                       /* how long that takes */
    /* The last filling; history 0: there was none. */
    guint64 history, serial, epoch;
    GHashTable *objects; /* "kind key" -> json_t: {"version", "object"} */
    GHashTable *ids;     /* commit id -> serial (pointer) */
    GPtrArray *members;  /* struct ensemble_member */
    guint fail;          /* so many calls fail from the next one on … */
    guint pass;          /* … after so many that do not */
    const char *odd;     /* what compare() says */
    const char *letters; /* what survey() finds, a letter for each member: the content that it
                          * holds; a capital one does not answer; '.': it is well, but its content
                          * is not known */
    guint compared;      /* how often it was asked */
    guint64 dead;        /* while this member is there nobody is taken in; 0: none */
    GString *did; /* "fill", "add URL", "promote ID", "remove ID", each with a space before */
};

struct fake_ensemble *fake_ensemble_new(const struct env *env, struct engine_config *const *config);
void fake_ensemble_free(struct fake_ensemble *ensemble);
/* One more, as if it had been there from the founding. */
void fake_ensemble_put(struct fake_ensemble *ensemble, guint64 id, const char *peer_url,
                       bool started, bool learner);
