/*
 * The job queue against a plain model of it (queue_sim.h): many seeds, each a run of its own.
 *
 * Usage: test_queue_random JOBS [FIRST] runs seeds until so many jobs were accepted;
 * test_queue_random --seeds FILE runs the seeds that a file names, one a line: SEED what it found.
 * FIRST above JQ_THEME chooses another theme. A failing seed is named and can be run alone:
 * test_queue_random 1 SEED; with FETTLE_SIM_LOG=1 it tells what happens.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "queue_sim.h"
#include "seeds.h"

static void tell_line(const char *line, void *data)
{
    if (data)
        printf("# %s\n", line);
}

static bool run_seed(guint64 seed, struct jq_counts *counts)
{
    g_autofree char *why = jq_run(seed, counts);
    return seeds_passed(seed, "", why);
}

static bool run_line(guint64 seed, const char *rest, void *counts)
{
    return run_seed(seed, counts);
}

/* Runs in which nothing happens prove nothing. */
static bool enough_happened(const struct jq_counts *counts, enum jq_theme theme)
{
    guint64 runs = counts->runs;
    if (theme == JQ_CROWD)
        return runs < 6 || counts->claims > 2 * runs;
    if (theme == JQ_TOGETHER)
        return runs < 20 || (counts->together > 50 * runs && counts->again > 5 * runs &&
                             counts->archived > 5 * runs);
    if (theme == JQ_LIMITS && runs >= 20 && counts->limited < 20 * runs)
        return false;
    return runs < 20 ||
           (counts->canceled > 3 * runs && counts->killed > runs / 2 &&
            counts->priorities > 3 * runs && counts->rules > 3 * runs && counts->drains > runs &&
            counts->at_once > runs && counts->deaths > runs / 2 && counts->restarts > runs / 2 &&
            counts->masters > runs / 20 && counts->refused > runs && counts->held > 50 * runs &&
            counts->compared > 10 * runs && counts->files > 5 * runs && counts->touched > runs);
}

static int report(const char *name, bool ok, const struct jq_counts *counts, enum jq_theme theme)
{
#define N(field) (guint) counts->field
    printf(
        "# %u runs: %u jobs (%u submitted as started), %u refused, %u canceled (%u to be killed), "
        "%u changes of priority, "
        "%u of rules, %u of the drain, %u jobs killed, %u restarts of luxid, %u masters; "
        "%u hours, %u times all answers compared, at most %u s without a lock, %u waited "
        "for long, %u times held by a limit, %u files compared, %u calls met, %u asked again, %u "
        "archived\n",
        N(runs), N(jobs), N(at_once), N(refused), N(canceled), N(killed), N(priorities), N(rules),
        N(drains), N(deaths), N(restarts), N(masters), N(virtual_s) / 3600, N(compared),
        N(worst_stuck_s), N(claims), N(limited), N(files), N(together), N(again), N(archived));
#undef N
    ok = ok && enough_happened(counts, theme);
    printf(
        "%s 1 /sim/queue-%s#LUX-06,LUX-08,LUX-11,LUX-12,LUX-13,LUX-16,LUX-28,LUX-31,LUX-34,LUX-36,"
        "FUT-13,SAF-30,SAF-31\n",
        ok ? "ok" : "not ok", name);
    return ok ? 0 : 1;
}

static int run_file(const char *path)
{
    struct jq_counts counts = {0};
    bool ok = seeds_each(path, run_line, &counts);
    return report("kept", ok, &counts, JQ_MIXED);
}

int main(int argc, char **argv)
{
    struct jq_counts counts = {0};
    bool ok = true;
    printf("1..1\n");
    log_set_sink(tell_line, g_getenv("FETTLE_SIM_LOG") ? &counts : NULL);
    if (argc > 2 && strcmp(argv[1], "--seeds") == 0)
        return run_file(argv[2]);
    if (argc < 2) {
        fprintf(stderr, "usage: %s JOBS [FIRST] | --seeds FILE\n", argv[0]);
        return 2;
    }
    guint64 jobs = seeds_number("FETTLE_SIM_JOBS", argv[1]);
    guint64 seed = seeds_number("FETTLE_SIM_FIRST", argc > 2 ? argv[2] : "1");
    static const char *const themes[] = {"", "-of-a-crowd", "-with-limits", "-that-meet"};
    guint64 theme = seed / JQ_THEME;
    if (theme >= G_N_ELEMENTS(themes)) {
        fprintf(stderr, "there is no theme %" G_GUINT64_FORMAT "\n", theme);
        return 2;
    }
    g_autofree char *name = g_strdup_printf("%" G_GUINT64_FORMAT "-jobs%s", jobs, themes[theme]);
    do
        ok = run_seed(seed++, &counts) && ok;
    while (counts.jobs < jobs);
    return report(name, ok, &counts, (enum jq_theme)theme);
}
