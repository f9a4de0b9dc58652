/*
 * The watcher's thinking: one pass of the healing loop after another (docs/design/procedures.md,
 * "Watcher"). It changes tags and decisions by compare-and-set commits and everything else by
 * submitting jobs over LUXI. What is done in a pass is handed over as a table of duties
 * (core/repair/duties.h); the loop knows when they are due.
 */
#pragma once

#include "proto/env.h"

struct instance;
struct repair;
struct watcher;

enum watcher_due {
    DUE_ALWAYS, /* in every pass */
    DUE_TEND,   /* each watcher_interval_ms, and with news */
    DUE_REPAIR, /* the same, unless auto-repair keeps its own time (ARP-02) */
};

/* In a task. Either it finds out itself what there is to do (`run`), or it is given the UUIDs
 * (char *) of the instances that concern it. Every instance is read once in a pass, before the
 * first of those duties runs; what has changed since is for it to see. */
struct watcher_duty {
    enum watcher_due due;
    void (*run)(struct watcher *watcher);
    bool (*concerns)(struct watcher *watcher, const struct instance *instance);
    void (*run_for)(struct watcher *watcher, const GPtrArray *uuids);
};

struct watcher_duties {
    const struct watcher_duty *rows; /* in the order in which they run */
    guint count;                     /* WATCHER_DUTIES at most */
    struct repair *(*make)(void);
    void (*free)(struct repair *repair);
    /* The copy of the configuration has changed, as follow.h tells it. From the loop. */
    void (*changed)(struct watcher *watcher, const GPtrArray *changes);
};

#define WATCHER_DUTIES 16

/* `duties` is borrowed. */
struct watcher *watcher_new(const struct env *env, const struct watcher_duties *duties);
bool watcher_start(struct watcher *watcher, GError **error); /* in a task */
void watcher_free(struct watcher *watcher);
