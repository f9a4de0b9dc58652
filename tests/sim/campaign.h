/*
 * A random campaign: a cluster with instances of all templates, random commands of an operator,
 * random faults; and, when the faults stop, the end: everything must be whole within a stated
 * bound. Used by test_random.c; one seed and one shape are one run.
 */
#pragma once

#include "sim.h"

/* When faults have stopped, the person has done what only a person can, and a repair that pauses
 * has gone on, everything is whole within this time of the simulated cluster. */
#define CAMPAIGN_REST_MS 400000

/* Of stuck: jobs that may run at once. */
#define STUCK_RUNNING_JOBS 4

struct campaign_shape {
    const char *name;
    guint nodes, instances;
    guint episodes;   /* each ends with faults that stop and a cluster that must become whole */
    guint episode_ms; /* at least; 0: `rounds` count */
    guint rounds;     /* of an episode */
    guint round_ms;   /* longest time between two rounds */
    guint watcher_ms; /* between two passes of the watcher without news */
    guint idle_ms;    /* between rounds: how often idle guests write (sim_set_idle_ms) */
    bool stuck;       /* what happens is that jobs die in the middle (campaign_stuck.c) */
};

/* What has happened in all runs. */
struct campaign_counts {
    guint64 jobs, power_cuts, cables, one_way, congestions, deaths, stops, job_deaths, guest_deaths,
        lost_images, lost_words, cut_works, hangs, disk_failures, full_disks, read_only, clocks,
        moves, rests, worst_rest_ms, virtual_s, steps;
    /* stuck: marks that were left, or might have been, changes of master, of these in a pass, and
     * what users did meanwhile */
    guint64 marks[32], masters, in_pass, meanwhile, before_finish, resets;
    struct sim_recovery_counts recovery;
};

struct campaign {
    struct sim *sim;
    struct campaign_counts *counts;
    const struct campaign_shape *shape;
};

/* NULL: nobody has such a name. */
const struct campaign_shape *campaign_shape(const char *name);
/* Why the run of this seed failed, in words; NULL: it did not. */
char *campaign_run(guint64 seed, const struct campaign_shape *shape,
                   struct campaign_counts *counts);

/* --- campaign_operator.c --- */

void campaign_create(const struct campaign *campaign);
/* The instance is removed, and created under the same name. */
void campaign_make_again(const struct campaign *campaign, const char *name);
void campaign_operator_acts(const struct campaign *campaign);
/* Somebody notices dead nodes, sooner or later, and says so. */
void campaign_person_looks(const struct campaign *campaign);
/* What only a person ends: drained and offline nodes that are back, suspensions, the storm brake,
 * an hour's budget that is used up, repairs that failed, images that are lost, what ended on disks
 * that failed. */
void campaign_person_returns(const struct campaign *campaign);
void campaign_person_tidies(const struct campaign *campaign);

/* --- campaign_stuck.c --- */

void campaign_stuck_round(const struct campaign *campaign);
void campaign_stuck_ends(const struct campaign *campaign);
void campaign_stuck_starts(const struct campaign *campaign);
void campaign_stuck_person(const struct campaign *campaign);
/* What is left of it when all else is at rest; NULL: nothing. */
char *campaign_stuck_unrest(const struct campaign *campaign);

/* --- campaign_fate.c --- */

void campaign_fate_acts(const struct campaign *campaign);
/* Power, cables and processes are back, and there is room. */
void campaign_fate_ends(const struct campaign *campaign);
/* Free with g_free(). The master is node1. */
char *campaign_pick_node(const struct campaign *campaign, bool with_master);
char *campaign_pick_instance(const struct campaign *campaign);
