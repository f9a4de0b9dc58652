/*
 * Random runs (campaign.h): many seeds of one shape.
 *
 * Usage: test_random SHAPE SEEDS [FIRST], or test_random --seeds FILE, which runs the seeds that a
 * file names, one a line: SEED SHAPE what it found. A failing seed is named and can be run alone:
 * test_random SHAPE 1 SEED; with FETTLE_SIM_LOG=1 it tells what happens. FETTLE_SIM_SEEDS and
 * FETTLE_SIM_FIRST take the place of SEEDS and FIRST, to spread a long campaign over several runs.
 */
#include <stdio.h>
#include <string.h>

#include "campaign.h"
#include "seeds.h"

static bool run_seed(guint64 seed, const struct campaign_shape *shape,
                     struct campaign_counts *counts)
{
    g_autofree char *why = campaign_run(seed, shape, counts);
    return seeds_passed(seed, shape->name, why);
}

/* Runs in which nothing happens prove nothing. What comes once in several seeds may be missing in
 * any few of them, so it is asked of many only; of a handful, which somebody looks at, nothing. */
static bool enough_happened(guint64 seeds, const struct campaign_counts *counts)
{
    bool often = counts->power_cuts > seeds / 2 && counts->moves > seeds &&
                 counts->jobs > 10 * seeds && counts->rests >= seeds;
    bool rarely = counts->job_deaths > seeds / 5 && counts->guest_deaths > seeds / 5 &&
                  counts->one_way > seeds / 10 && counts->full_disks > seeds / 5 &&
                  counts->disk_failures > seeds / 20 && counts->lost_words > seeds / 20 &&
                  counts->cut_works > seeds / 50 && counts->stops > seeds / 5;
    return seeds < 10 || (often && (seeds < 50 || (rarely && counts->power_cuts > seeds)));
}

/* Each task was left behind, and everything that this is about has happened. */
static bool enough_of_stuck(guint64 seeds, const struct campaign_counts *counts)
{
    const struct sim_recovery_counts *recovery = &counts->recovery;
    bool every = true;
    for (guint mark = TASK_CREATING; mark <= TASK_RECREATING_DISKS; mark++)
        every = every && counts->marks[mark] > seeds / 100;
    return seeds < 10 || (every && recovery->settled > seeds && recovery->finishing > seeds / 2 &&
                          recovery->taken_back > seeds / 5 && recovery->refused > seeds / 3 &&
                          recovery->alerts > seeds && counts->in_pass > seeds / 3 &&
                          counts->before_finish > seeds / 50 && counts->resets > seeds / 10 &&
                          counts->rests >= seeds);
}

static void tell_stuck(const struct campaign_counts *counts)
{
    const struct sim_recovery_counts *recovery = &counts->recovery;
#define N(value) (guint)(value)
    printf(
        "# tasks: %u settled, %u became ERROR, of these %u blindly, of which %u were taken back by "
        "a host that returned; %u to be finished by jobs; %u looks that failed, %u alerts that an "
        "owner lives; %u late requests refused\n",
        N(recovery->settled), N(recovery->errors), N(recovery->blind), N(recovery->taken_back),
        N(recovery->finishing), N(recovery->looks), N(recovery->alerts), N(recovery->refused));
    printf(
        "# %u changes of master, %u of them in a pass; users acted %u times meanwhile, %u of them "
        "between a finishing job's submission and its start; %u resets\n# marks:",
        N(counts->masters), N(counts->in_pass), N(counts->meanwhile), N(counts->before_finish),
        N(counts->resets));
    for (guint mark = 0; mark < G_N_ELEMENTS(counts->marks); mark++)
        if (counts->marks[mark] > 0)
            printf(" %s %u", enum_word(&task_state_words, (int)mark), N(counts->marks[mark]));
    printf("\n");
#undef N
}

static void tell(const struct campaign_counts *counts)
{
#define N(field) (guint) counts->field
    printf("# %u jobs, %u power cuts, %u cables, %u one-way cuts, %u congestions, %u deaths, "
           "%u stopped processes, %u deaths of jobs, %u of guests, %u lost replicas, %u lost "
           "words, %u creations and removals cut, %u failures of "
           "disks, %u full disks, %u that hung, %u read-only roots, %u clocks that were set, %u "
           "migrations\n",
           N(jobs), N(power_cuts), N(cables), N(one_way), N(congestions), N(deaths), N(stops),
           N(job_deaths), N(guest_deaths), N(lost_images), N(lost_words), N(cut_works),
           N(disk_failures), N(full_disks), N(hangs), N(read_only), N(clocks), N(moves));
    printf("# %u simulated hours, %u million steps; whole again %u times, after %u s at the most\n",
           N(virtual_s) / 3600, (guint)(counts->steps / 1000000), N(rests),
           N(worst_rest_ms) / 1000);
#undef N
}

#define PROVES                                                                                     \
    "SAF-04,SAF-10,SAF-13,SAF-16,SAF-17,SAF-19,SAF-22,SAF-30,LUX-28,ARP-13,ARP-31,ARP-37,ARP-38,"  \
    "ARP-39,ARP-42,ARP-60"
#define PROVES_STUCK                                                                               \
    "SAF-80,SAF-81,SAF-82,SAF-83,SAF-84,RCV-05,RCV-09,RCV-10,RCV-22,RCV-27,RCV-31,RCV-38,RCV-40,"  \
    "RCV-41"

static int report(const char *name, guint64 seeds, bool ok, const struct campaign_counts *counts)
{
    bool stuck = strcmp(name, "stuck") == 0;
    tell(counts);
    if (stuck)
        tell_stuck(counts);
    bool enough = stuck ? enough_of_stuck(seeds, counts) : enough_happened(seeds, counts);
    printf("%s 1 /sim/%s-%" G_GUINT64_FORMAT "-seeds#%s\n", ok && enough ? "ok" : "not ok", name,
           seeds, stuck ? PROVES_STUCK : PROVES);
    fflush(stdout);
    return ok && enough ? 0 : 1;
}

struct kept {
    struct campaign_counts counts;
    guint64 seeds;
};

static bool run_line(guint64 seed, const char *rest, void *data)
{
    struct kept *kept = data;
    g_auto(GStrv) words = g_strsplit(rest, " ", 2);
    const struct campaign_shape *shape = campaign_shape(words[0] != NULL ? words[0] : "");
    kept->seeds++;
    if (shape != NULL)
        return run_seed(seed, shape, &kept->counts);
    printf("# \"%s\" names no shape\n", rest);
    return false;
}

static int run_file(const char *path)
{
    struct kept kept = {0};
    bool ok = seeds_each(path, run_line, &kept);
    return report("kept", kept.seeds, ok, &kept.counts);
}

int main(int argc, char **argv)
{
    printf("1..1\n");
    const struct campaign_shape *shape = argc > 2 ? campaign_shape(argv[1]) : NULL;
    if (argc > 2 && strcmp(argv[1], "--seeds") == 0)
        return run_file(argv[2]);
    if (shape == NULL) {
        fprintf(stderr, "usage: %s small|hours|stuck SEEDS [FIRST] | --seeds FILE\n", argv[0]);
        return 2;
    }
    guint64 seeds = seeds_number("FETTLE_SIM_SEEDS", argv[2]);
    guint64 first = seeds_number("FETTLE_SIM_FIRST", argc > 3 ? argv[3] : "1");
    struct campaign_counts counts = {0};
    bool ok = true;
    for (guint64 seed = first; seed < first + seeds; seed++)
        ok = run_seed(seed, shape, &counts) && ok;
    return report(shape->name, seeds, ok, &counts);
}
