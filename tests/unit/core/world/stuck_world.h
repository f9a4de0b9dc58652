/*
 * Many instances whose jobs have died, for tests of recovery's passes: the real configuration
 * daemon (config_world.h) and real watchers, nodes that answer at once what the test says, and a
 * luxid that takes whatever it is given. Every message takes a millisecond, so that a watcher can
 * die at any.
 */
#pragma once

#include "core/config/model.h"
#include "core/repair/duties.h"
#include "unit/core/world/config_world.h"

#define STUCK_WATCHERS 2

struct stuck_world {
    struct config_world base;
    guint count;
    struct env *env[STUCK_WATCHERS];
    struct watcher *watcher[STUCK_WATCHERS];
    struct config *view;
    guint silent;    /* each so many-th guest's monitor does not answer; 0: all do */
    GPtrArray *hung; /* requests that are never answered */
    guint64 random;  /* of messages that take a while; 0: none do */
    guint64 jobs;    /* submitted */
    json_t *report[3];
};

/* They are diskless; their mark is that of job 900, which is over. */
struct stuck_world *stuck_world_new(guint count, bool stuck);
void stuck_world_free(struct stuck_world *w);
void stuck_watcher_start(struct stuck_world *w, guint which);
void stuck_watcher_kill(struct stuck_world *w, guint which);
/* The third node answers no look any more. */
void stuck_hang(struct stuck_world *w);
/* What is on record now. */
void stuck_look(struct stuck_world *w);
/* Whether each is settled, but for those that do not answer, and told once; else an error of the
 * test. */
void stuck_check_told(struct stuck_world *w);
/* Looks that are on record as failed, of all. */
guint64 stuck_looks(struct stuck_world *w);
/* Owners of locks. */
guint stuck_locks(struct stuck_world *w);
/* UUID of an instance; free with g_free(). */
char *stuck_uuid(guint number);
