/*
 * Mastership under faults (mastership.h): many seeds, each a run of its own.
 *
 * Usage: test_mastership SEEDS [FIRST], or test_mastership --seeds FILE, which runs the seeds that
 * a file names, one a line: SEED what it found. A failing seed is named and can be run alone; with
 * FETTLE_SIM_LOG=1 it tells what happens.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "mastership.h"
#include "seeds.h"

static void tell_line(const char *line, void *data)
{
    if (data)
        printf("# %s\n", line);
}

static bool run_seed(guint64 seed, struct ms_counts *counts)
{
    g_autofree char *why = ms_run(seed, counts);
    return seeds_passed(seed, "", why);
}

static bool run_line(guint64 seed, const char *rest, void *counts)
{
    return run_seed(seed, counts);
}

/* Runs in which nothing happens prove nothing. Of few seeds half as much is asked of each, as
 * chance has more to say; of a handful, which somebody looks at, nothing. */
static bool enough_happened(const struct ms_counts *counts)
{
    guint64 seeds = counts->seeds < 50 ? counts->seeds / 2 : counts->seeds;
    return counts->seeds < 10 ||
           (counts->answered > 20 * seeds && counts->masters > 2 * seeds &&
            counts->restarts > 5 * seeds && counts->reboots > seeds && counts->refills > seeds &&
            counts->grants > 5 * seeds && counts->operations > 5 * seeds &&
            counts->unknown > seeds / 2 && counts->late > seeds / 10 && counts->cuts > seeds &&
            counts->pauses > seeds && counts->takeovers > seeds / 10 &&
            counts->handovers > seeds / 10 && counts->promoted > seeds / 50 &&
            counts->repeated > seeds / 2 && counts->lost_members > seeds / 2 &&
            counts->lost_disks > seeds / 10);
}

static int report(const char *name, bool ok, const struct ms_counts *counts)
{
#define N(field) (guint) counts->field
    printf(
        "# %u seeds: %u of %u commits answered, %u unknown, %u masters, %u restarts, %u reboots, "
        "%u refills, %u locks granted, %u operations, %u late requests\n",
        N(seeds), N(answered), N(commits), N(unknown), N(masters), N(restarts), N(reboots),
        N(refills), N(grants), N(operations), N(late));
    printf("# %u cuts, %u pauses, %u lost disks, %u lost members, %u failovers (%u alone), %u "
           "hand-overs, %u promoted, %u commits answered to another asker, %u stale "
           "jobs, %u answered changes lost with every copy (%u had none); %u simulated hours, %u "
           "million steps, "
           "at rest after %u s at the most\n",
           N(cuts), N(pauses), N(lost_disks), N(lost_members), N(takeovers), N(alone), N(handovers),
           N(promoted), N(repeated), N(stale), N(lost_changes), N(lost_alone), N(virtual_s) / 3600,
           (guint)(counts->steps / 1000000), N(worst_rest_ms) / 1000);
#undef N
    ok = ok && enough_happened(counts);
    printf("%s 1 /sim/mastership-%s#SAF-01,SAF-02,SAF-03,SAF-04,SAF-05,SAF-06,SAF-07,SAF-08\n",
           ok ? "ok" : "not ok", name);
    return ok ? 0 : 1;
}

static int run_file(const char *path)
{
    struct ms_counts counts = {0};
    bool ok = seeds_each(path, run_line, &counts);
    return report("kept", ok, &counts);
}

int main(int argc, char **argv)
{
    struct ms_counts counts = {0};
    bool ok = true;
    printf("1..1\n");
    log_set_sink(tell_line, g_getenv("FETTLE_SIM_LOG") ? &counts : NULL);
    if (argc > 2 && strcmp(argv[1], "--seeds") == 0)
        return run_file(argv[2]);
    if (argc < 2) {
        fprintf(stderr, "usage: %s SEEDS [FIRST] | --seeds FILE\n", argv[0]);
        return 2;
    }
    guint64 seeds = seeds_number("FETTLE_SIM_SEEDS", argv[1]);
    guint64 first = seeds_number("FETTLE_SIM_FIRST", argc > 2 ? argv[2] : "1");
    g_autofree char *name = g_strdup_printf("%" G_GUINT64_FORMAT "-seeds", seeds);
    for (guint64 seed = first; seed < first + seeds; seed++)
        ok = run_seed(seed, &counts) && ok;
    return report(name, ok, &counts);
}
