/*
 * State machines as tables. A machine is a `const struct sm_state[]` indexed by the state's number;
 * sm_move() is the only way to change a state: it asserts that the edge is in the table and writes
 * one line `job 17: waiting -> running (locks granted)` to the sink, which is the daemon's log or
 * the simulator's golden log.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

struct sm_state {
    const char *name;
    guint64 successors; /* bit n set: may move to state n */
    bool final;
};

struct sm {
    const char *what; /* "job" */
    const struct sm_state *states;
    unsigned count;
};

#define SM_TO(state) (G_GUINT64_CONSTANT(1) << (state))

/* `id` names the subject ("17", "web1"); `why` goes in brackets, NULL for none. */
void sm_move(const struct sm *machine, const char *id, unsigned *state, unsigned to,
             const char *why);
bool sm_may_move(const struct sm *machine, unsigned from, unsigned to);
const char *sm_name(const struct sm *machine, unsigned state);
/* False if `name` is no state of the machine. */
bool sm_parse(const struct sm *machine, const char *name, unsigned *ret_state);

typedef void (*sm_sink)(const char *line, void *ctx);
void sm_set_sink(sm_sink sink, void *ctx);
