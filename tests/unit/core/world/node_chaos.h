/*
 * What befalls nodes in the tests of guests: faults at random steps, and the death of a node daemon
 * at its n-th.
 */
#pragma once

#include "helper/node_world.h"

#include <string.h>

/* --- anything at any time --- */

struct chaos {
    GRand *random;
    guint every;              /* steps, about, from one fault to the next */
    const char *const *calls; /* of a host, that may fail; ends with NULL */
    /* Faults that one test alone has: 0, 1 and 2. */
    void (*own)(struct node_world *nw, struct chaos *chaos, struct test_node *node, guint which);
    bool busy; /* a fault is being made: no other inside it */
};

static inline guint pick(struct chaos *chaos, guint count)
{
    return (guint)g_rand_int_range(chaos->random, 0, (gint32)count);
}

static inline void revive(struct node_world *nw, struct test_node *node)
{
    nw_cut(nw, node, false);
    fake_host_set_deaf(node->host, false);
    if (!node->env)
        nw_daemon_start(nw, node);
    else
        fake_host_set_powerdown_ms(node->host, 20);
}

static inline void call_fault(struct chaos *chaos, struct test_node *node)
{
    guint count = g_strv_length((char **)chaos->calls);
    fake_host_fault(node->host, chaos->calls[pick(chaos, count)], (enum fake_fault)pick(chaos, 3),
                    1 + pick(chaos, 3));
}

static inline void one_fault(struct node_world *nw, struct chaos *chaos)
{
    struct test_node *node = pick(chaos, 2) ? &nw->a : &nw->b;
    switch (pick(chaos, 12)) {
    case 0:
        nw_cut(nw, node, true);
        break;
    case 1:
    case 2:
    case 3:
        revive(nw, node);
        break;
    case 4:
        nw_daemon_kill(nw, node);
        break;
    case 5:
        nw_power_cut(nw, node);
        break;
    case 6:
        nw->mood = (enum master_mood)pick(chaos, 4);
        break;
    case 7:
        nw->mood = MASTER_ANSWERS;
        break;
    case 8:
        chaos->own(nw, chaos, node, 0);
        break;
    case 9:
        call_fault(chaos, node);
        break;
    case 10:
        if (pick(chaos, 2))
            fake_host_guest_crash(node->host, WEB1);
        else
            chaos->own(nw, chaos, node, 1);
        break;
    default:
        chaos->own(nw, chaos, node, 2);
        break;
    }
}

static inline void chaos_step(struct node_world *nw, void *data)
{
    struct chaos *chaos = data;
    if (chaos->busy || pick(chaos, chaos->every))
        return;
    chaos->busy = true;
    one_fault(nw, chaos);
    chaos->busy = false;
}

/* From now on. */
static inline void chaos_begin(struct node_world *nw, struct chaos *chaos)
{
    nw->each_step = chaos_step;
    nw->each_step_data = chaos;
}

/* --- killed at each step --- */

#define MOST_STEPS 1000

struct killer {
    struct test_node *node;
    guint countdown; /* events until it dies */
    guint seen;
    bool dead;
};

static inline bool killer_hook(struct fake_host *host, const char *op, bool after, void *data)
{
    struct killer *killer = data;
    killer->seen++;
    killer->dead = killer->dead || killer->seen > killer->countdown;
    return killer->dead;
}

static inline void killer_step(struct node_world *nw, void *data)
{
    struct killer *killer = data;
    if (killer->dead && killer->node->env)
        nw_daemon_kill(nw, killer->node);
}

/* From now on. */
static inline void killer_begin(struct node_world *nw, struct killer *killer)
{
    nw->each_step = killer_step;
    nw->each_step_data = killer;
    fake_host_set_hook(killer->node->host, killer_hook, killer);
}

/* The guest of the generation on record runs, as its primary node tells. */
static inline bool guest_reported(struct node_world *nw)
{
    json_autoptr report = nw_report(nw, nw_node(nw, nw->web1.primary));
    const json_t *guest = json_array_get(json_object_get(report, "guests"), 0);
    const char *state = json_string_value(json_object_get(guest, "state"));
    return state && strcmp(state, "running") == 0 && *nw->web1.holder &&
           (guint64)json_integer_value(json_object_get(guest, "generation")) == nw->web1.generation;
}
