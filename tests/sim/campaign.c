/* The course of a random campaign; see campaign.h. */
#include "campaign.h"

#include <stdio.h>
#include <string.h>

#define LOOK_MS 5000

/* small: as dense as faults can be; hours: six simulated hours of twenty nodes; stuck: of jobs that
 * die in the middle. */
static const struct campaign_shape shapes[] = {
    {"small", .nodes = 5, .instances = 6, .episodes = 1, .rounds = 25, .round_ms = 4000,
     .watcher_ms = 1000},
    {"hours", .nodes = 20, .instances = 20, .episodes = 6, .episode_ms = 3600 * 1000,
     .round_ms = 72000, .idle_ms = 2000, .watcher_ms = 5000},
    {"stuck", .nodes = 5, .instances = 6, .episodes = 1, .rounds = 8, .round_ms = 2000,
     .watcher_ms = 1000, .stuck = true},
};

const struct campaign_shape *campaign_shape(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    return NULL;
}

/* Quiet guests between rounds, busy ones when something is about to happen to them. */
static void one_round(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    sim_set_idle_ms(sim, campaign->shape->idle_ms);
    sim_pass(sim, sim_random(sim, campaign->shape->round_ms));
    sim_set_idle_ms(sim, 0);
    guint what = sim_random(sim, 10);
    if (what < 5)
        campaign_fate_acts(campaign);
    else if (what < 7)
        campaign_person_looks(campaign);
    else if (sim_powered(sim, "node1"))
        campaign_operator_acts(campaign);
    sim_pass(sim, campaign->shape->idle_ms > 0 ? sim_random(sim, 2000) : 0);
}

/* The faults stop. Why it does not become whole; NULL if it does. */
static char *come_to_rest(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    char *why = NULL;
    if (campaign->shape->stuck)
        campaign_stuck_ends(campaign);
    campaign_fate_ends(campaign);
    guint patience_ms = CAMPAIGN_REST_MS + sim_pause_ms(sim);
    sim_pass(sim, 10000);
    campaign_person_returns(campaign);
    guint waited = 0;
    do {
        sim_pass(sim, LOOK_MS);
        waited += LOOK_MS;
        campaign_person_tidies(campaign);
        if (campaign->shape->stuck)
            campaign_stuck_person(campaign);
        g_free(why);
        why = sim_unrest(sim);
        if (why == NULL && campaign->shape->stuck) {
            why = campaign_stuck_unrest(campaign);
        }
        if (campaign->shape->stuck && why != NULL)
            campaign_stuck_starts(campaign);
    } while (why != NULL && waited < patience_ms && sim_problem(sim) == NULL);
    campaign->counts->rests++;
    campaign->counts->worst_rest_ms = MAX(campaign->counts->worst_rest_ms, waited);
    return why;
}

static char *one_episode(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    gint64 end = sim_now_ms(sim) + campaign->shape->episode_ms;
    bool timed = campaign->shape->episode_ms > 0;
    for (guint round = 0; (timed ? sim_now_ms(sim) < end : round < campaign->shape->rounds) &&
                          sim_problem(sim) == NULL;
         round++)
        campaign->shape->stuck ? campaign_stuck_round(campaign) : one_round(campaign);
    char *why = come_to_rest(campaign);
    if (sim_problem(sim) == NULL)
        return why;
    g_free(why);
    return g_strdup(sim_problem(sim));
}

/* What becomes of the lines of a run's log. */
struct telling {
    bool print;
    GChecksum *digest; /* NULL: none */
};

static void log_line(const char *line, void *data)
{
    const struct telling *telling = data;
    if (telling->print)
        printf("# %s\n", line);
    if (telling->digest != NULL)
        g_checksum_update(telling->digest, (const guchar *)line, (gssize)strlen(line));
}

/* Same seed, same run: two builds that do the same print the same. */
static void print_digest(guint64 seed, struct sim *sim, GChecksum *digest)
{
    g_autofree char *end =
        g_strdup_printf("%" G_GUINT64_FORMAT " %u", sim_steps(sim), sim_random(sim, 1000000));
    g_checksum_update(digest, (const guchar *)end, (gssize)strlen(end));
    printf("# seed %" G_GUINT64_FORMAT ": digest %.16s after %" G_GUINT64_FORMAT " steps\n", seed,
           g_checksum_get_string(digest), sim_steps(sim));
}

static void add_recovery(struct campaign_counts *counts, const struct sim_recovery_counts *run)
{
    struct sim_recovery_counts *all = &counts->recovery;
    *all = (struct sim_recovery_counts){.settled = all->settled + run->settled,
                                        .errors = all->errors + run->errors,
                                        .blind = all->blind + run->blind,
                                        .taken_back = all->taken_back + run->taken_back,
                                        .finishing = all->finishing + run->finishing,
                                        .looks = all->looks + run->looks,
                                        .alerts = all->alerts + run->alerts,
                                        .refused = all->refused + run->refused};
}

char *campaign_run(guint64 seed, const struct campaign_shape *shape, struct campaign_counts *counts)
{
    json_autoptr cluster =
        json_make("{si si si si}", "repair_storm_percent", seed % 4 == 0 ? 40 : 100,
                  "candidate_pool_size", seed % 3 == 0 ? 3 : 1, "repair_max_running",
                  (int)(1 + seed % 5), "watcher_interval_ms", (int)shape->watcher_ms);
    /* Six looks and a stale period fit between two rounds. */
    if (shape->stuck)
        json_object_update_new(cluster,
                               json_make("{si si si si si}", "max_running_jobs", STUCK_RUNNING_JOBS,
                                         "recovery_interval_period", 1, "recovery_stale_period", 2,
                                         "recovery_resync_count", (int)(1 + seed % 3),
                                         "recovery_resync_interval", 1));
    g_autoptr(GChecksum) digest =
        g_getenv("FETTLE_SIM_DIGEST") != NULL ? g_checksum_new(G_CHECKSUM_SHA256) : NULL;
    struct telling telling = {g_getenv("FETTLE_SIM_LOG") != NULL, digest};
    struct sim_options options = {.seed = seed,
                                  .nodes = shape->nodes,
                                  .max_delay_ms = 20,
                                  .cluster = cluster,
                                  .log = telling.print || digest != NULL ? log_line : NULL,
                                  .log_data = &telling};
    struct campaign campaign = {sim_new(&options), counts, shape};
    sim_pass(campaign.sim, 3000);
    campaign_create(&campaign);
    char *why = NULL;
    for (guint i = 0; i < shape->episodes && why == NULL; i++)
        why = one_episode(&campaign);
    counts->moves += sim_moves(campaign.sim);
    counts->lost_words += sim_lost_words(campaign.sim);
    counts->virtual_s += (guint64)sim_now_ms(campaign.sim) / 1000;
    counts->steps += sim_steps(campaign.sim);
    add_recovery(counts, sim_recovery_counts(campaign.sim));
    if (digest != NULL)
        print_digest(seed, campaign.sim, digest);
    sim_free(campaign.sim);
    return why;
}
