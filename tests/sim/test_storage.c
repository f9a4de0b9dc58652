/*
 * Storage under faults (storage_sim.h): many seeds, each a run of its own. Usage and variables are
 * those of test_mastership.c.
 */
#include <stdio.h>
#include <string.h>

#include "seeds.h"
#include "storage_sim.h"

struct all_counts {
    const struct ms_theme *theme;
    struct ms_counts masters;
    struct storage_counts storage;
};

static const struct {
    const char *word;
    const struct ms_theme *theme;
} themes[] = {{"copies", &storage_copies_theme},
              {"guests", &storage_guests_theme},
              {"images", &storage_images_theme},
              {"restores", &storage_restores_theme},
              {"api", &storage_api_theme}};

static bool run_seed(guint64 seed, const char *rest, void *data)
{
    struct all_counts *counts = data;
    guint64 steps = counts->masters.steps;
    g_autofree char *why = ms_run_theme(seed, counts->theme, &counts->masters, &counts->storage);
    seeds_digest(seed, counts->masters.steps - steps);
    return seeds_passed(seed, "", why);
}

/* Runs in which nothing happens prove nothing; of a handful, which somebody looks at, nothing is
 * asked. */
static bool enough_copied(const struct storage_counts *counts, guint64 seeds)
{
    return counts->copies > 5 * seeds && counts->writes > 5 * seeds && counts->backups > seeds &&
           counts->restores > seeds && counts->moves > seeds && counts->cleaned > 5 * seeds &&
           counts->unnamed > 5 * seeds;
}

static bool enough_attached(const struct storage_counts *counts, guint64 seeds)
{
    return counts->attached > 10 * seeds && counts->opened > 3 * seeds &&
           counts->in_copy > 5 * seeds && counts->torn > seeds / 2 && counts->points > seeds / 2 &&
           counts->recovered > seeds / 2 && counts->wishes > seeds / 8;
}

static bool enough_happened(const struct all_counts *counts)
{
    const struct storage_counts *storage = &counts->storage;
    guint64 seeds = storage->seeds;
    if (counts->theme == &storage_copies_theme)
        return seeds < 10 || (enough_copied(storage, seeds) && storage->taken > 80 * seeds);
    if (counts->theme == &storage_api_theme)
        return seeds < 10 || (storage->taken > 50 * seeds && storage->promised > 60 * seeds &&
                              storage->shown > 100 * seeds && storage->unavailable > seeds &&
                              storage->front_faults > seeds && storage->copies > 3 * seeds);
    if (counts->theme == &storage_images_theme)
        return seeds < 10 || (storage->taken > 60 * seeds && storage->sent > 5 * seeds &&
                              storage->images > 2 * seeds && storage->uploads > seeds / 2 &&
                              storage->downloads > seeds / 2);
    if (counts->theme == &storage_restores_theme)
        return seeds < 10 || (storage->taken > 50 * seeds && storage->attached > 5 * seeds &&
                              storage->restored > seeds / 2 &&
                              storage->continued == storage->restored && storage->left > 0);
    if (counts->theme == &storage_guests_theme)
        return seeds < 10 || (enough_copied(storage, seeds) && storage->taken > 70 * seeds &&
                              enough_attached(storage, seeds));
    return seeds < 10 ||
           (storage->taken > 100 * seeds && storage->cleaned > 10 * seeds &&
            storage->refused > 2 * seeds && storage->resets_in_work > seeds &&
            storage->unnamed > 5 * seeds && storage->kills > seeds && storage->pauses > seeds / 2 &&
            storage->orphans > seeds && storage->down > seeds && storage->handed_on > 5 * seeds &&
            storage->cleanups > seeds && storage->stood_in > seeds &&
            counts->masters.masters > 2 * seeds);
}

static int report(const char *name, bool ok, const struct all_counts *counts)
{
#define N(field) (guint) counts->storage.field
    printf(
        "# %u seeds: %u requests accepted, %u rows taken, %u claimed, %u cleaned, %u given back, "
        "%u late steps refused, %u resets (%u in mid-work), %u data made, %u removed, %u unnamed, "
        "%u handed on, %u cleanups, %u rows claimed for others, %u copies (%u backups, %u "
        "restores, %u moves), %u writes\n",
        N(seeds), N(accepted), N(taken), N(claimed), N(cleaned), N(given_back), N(refused),
        N(resets), N(resets_in_work), N(made), N(removed), N(unnamed), N(handed_on), N(cleanups),
        N(stood_in), N(copies), N(backups), N(restores), N(moves), N(writes));
    printf("# %u volumes attached, %u opened, %u of those that were worked on (%u refused), %u "
           "wishes left, %u given up since, %u settled by recovery, %u points in time, %u copies "
           "that guests spoilt\n",
           N(attached), N(opened), N(in_copy), N(refused_attach), N(wishes), N(given_up),
           N(recovered), N(points), N(torn));
    printf("# %u restores of the configuration, %u continued, %u left with nobody then reset\n",
           N(restored), N(continued), N(left));
    printf("# front ends: %u requests accepted, %u answered with 503 or 504, %u volumes shown, %u "
           "faults\n",
           N(promised), N(unavailable), N(shown), N(front_faults));
    printf("# %u images sent, %u ended with data, %u made of volumes, %u volumes made of one\n",
           N(sent), N(images), N(uploads), N(downloads));
    printf(
        "# %u masters, %u volumed killed, %u stopped, %u lost their name, %u hangs, %u calls went "
        "on alone, %u failed, %u clocks set, %u down on record, %u data lost with commits; at rest "
        "after %u s at the most\n",
        (guint)counts->masters.masters, N(kills), N(pauses), N(ended), N(hangs), N(orphans),
        N(failures), N(clocks), N(down), N(lost_late), counts->masters.worst_rest_ms / 1000);
#undef N
    ok = ok && enough_happened(counts);
    printf("%s 1 /sim/storage-%s#SAF-50,SAF-51,SAF-52,SAF-53,SAF-54,SAF-55,SAF-56%s\n",
           ok ? "ok" : "not ok", name,
           counts->theme == &storage_restores_theme ? ",SAF-57,SAF-122"
           : counts->theme == &storage_images_theme ? ",SAF-60,SAF-120,SAF-121"
           : counts->theme == &storage_guests_theme ? ",SAF-57,SAF-59,SAF-120,SAF-121,SAF-124"
           : counts->theme == &storage_copies_theme ? ",SAF-120,SAF-121"
                                                    : "");
    return ok ? 0 : 1;
}

/* The theme of that name, or "". */
static const char *theme_of(const char *word, const struct ms_theme **ret_theme)
{
    for (guint i = 0; i < G_N_ELEMENTS(themes); i++)
        if (!strcmp(word, themes[i].word)) {
            *ret_theme = themes[i].theme;
            return themes[i].word;
        }
    return "";
}

int main(int argc, char **argv)
{
    struct all_counts counts = {.theme = &storage_theme};
    const char *word = argc > 1 ? theme_of(argv[1], &counts.theme) : "";
    bool ok = true;
    if (*word) {
        argv++;
        argc--;
    }
    printf("1..1\n");
    seeds_log();
    if (argc > 2 && strcmp(argv[1], "--seeds") == 0)
        return report("kept", seeds_each(argv[2], run_seed, &counts), &counts);
    if (argc < 2) {
        fprintf(stderr,
                "usage: %s [copies|guests|images|restores|api] SEEDS [FIRST] | --seeds FILE\n",
                argv[0]);
        return 2;
    }
    guint64 seeds = seeds_number("FETTLE_SIM_SEEDS", argv[1]);
    guint64 first = seeds_number("FETTLE_SIM_FIRST", argc > 2 ? argv[2] : "1");
    g_autofree char *name =
        g_strdup_printf("%s%s%" G_GUINT64_FORMAT "-seeds", word, *word ? "-" : "", seeds);
    for (guint64 seed = first; seed < first + seeds; seed++)
        ok = run_seed(seed, "", &counts) && ok;
    return report(name, ok, &counts);
}
