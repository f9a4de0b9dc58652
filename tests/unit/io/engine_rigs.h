/*
 * Everything that is an engine (proto/engine.h), behind one face for the suite that all of them
 * have to pass (test_engines.c): the real ones on a disk and on a member of etcd with TLS, and the
 * two that stand in for them in other tests (helper/fake_engine.h, the simulator's model).
 */
#pragma once

#include "base/task.h"
#include "proto/engine.h"

#define RIG_HISTORY 4

struct rig;

struct rig_kind {
    const char *name;
    bool stand_in; /* it is of a test, and keeps nothing of its own */
    /* A place that has `changes` (GPtrArray of struct change) as serial 1. */
    struct rig *(*make)(const GPtrArray *changes);
    void (*free)(struct rig *rig);
    /* As a process of its own does. Where two can be open at once, a second one may be opened. */
    struct engine *(*open)(struct rig *rig);
    /* The process ends, whatever it is at. */
    void (*close)(struct rig *rig, struct engine *engine);
    /* Runs a task to its end. */
    void (*run)(struct rig *rig, task_fn fn, void *data);
    void (*wait)(struct rig *rig, const bool *done);
    /* The master is one no more, and has not noticed; NULL: its mastership stays with its node. */
    void (*expire)(struct rig *rig);
    /* The next commit will get no answer before its process ends (false), or one that it is not
     * known to be done (true). Which of several ways: `turn`. */
    bool (*lose_answer)(struct rig *rig, guint turn);
    /* How many ways there are. */
    guint losses;
    /* No room for changes; false: that cannot be made here. NULL: never. */
    bool (*fill_up)(struct rig *rig);
    void (*make_room)(struct rig *rig);
    /* A place where there is no configuration: how opening or loading it fails. NULL: never. */
    void (*try_nothing)(struct rig *rig, GError **error);
};

extern const struct rig_kind rig_sqlite, rig_etcd, rig_fake, rig_fake_replicated, rig_model;

/* Before anything else in main(): lets the disk of SQLite become full. */
void rigs_init(void);
