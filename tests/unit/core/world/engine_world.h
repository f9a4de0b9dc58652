/*
 * What tests of a change of engine share: a master with two other candidates, whose node daemons
 * have members in memory (helper/fake_members.h), and the members together
 * (helper/fake_ensemble.h).
 */
#pragma once

#include "helper/fake_ensemble.h"
#include "helper/fake_members.h"
#include "unit/core/world/wconf_world.h"

#define NODES 3

struct engine_world {
    struct fake_members *members[NODES];
    struct fake_ensemble *ensemble;
    struct authority authority;
    struct env *cli;
    GString *asked;  /* "node1 member_prepare", each with a newline behind */
    guint questions; /* of that */
    guint fail_at;   /* this question fails, counted from 1; 0: none … */
    bool and_later;  /* … and every later one: the asker is dead to all */
};
extern struct engine_world it;
extern const char *const engine_nodes[NODES];

/* The first `candidates` nodes are that; `offline`: the third one is so on record. `etcd`: the
 * engine is that, and all nodes know. */
void engine_set_up(guint candidates, bool offline, bool etcd);
void engine_tear_down(void);
/* What a new process of wconfd is given. */
void engine_give(void);

/* By the command line; the answer as text. */
char *engine_ask_change(const char *to);
/* "running", "ended", "CODE: why"; after `ms`. */
char *engine_progress_after(guint ms);
/* Nothing of etcd is left on any node. */
void engine_assert_clear(void);
/* What etc/engine.json of a node says: a phase, "none". */
const char *engine_state_of(guint node);
