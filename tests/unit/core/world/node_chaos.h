/* Faults at random steps of the tests of guests. */
#pragma once

#include "helper/node_world.h"

struct chaos {
    GRand *random;
    guint every; /* steps, about, from one fault to the next */
    void (*fault)(struct node_world *nw, struct chaos *chaos);
    bool busy; /* a fault is being made: no other inside it */
};

static inline guint pick(struct chaos *chaos, guint count)
{
    return (guint)g_rand_int_range(chaos->random, 0, (gint32)count);
}

static inline void chaos_step(struct node_world *nw, void *data)
{
    struct chaos *chaos = data;
    if (chaos->busy || pick(chaos, chaos->every))
        return;
    chaos->busy = true;
    chaos->fault(nw, chaos);
    chaos->busy = false;
}

/* From now on. */
static inline void chaos_begin(struct node_world *nw, struct chaos *chaos)
{
    nw->each_step = chaos_step;
    nw->each_step_data = chaos;
}
