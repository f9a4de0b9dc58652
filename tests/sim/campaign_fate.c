/* What befalls the cluster of a random campaign; see campaign.h. */
#include "campaign.h"

#define CONGESTED_MS 4000
#define STOPPED_MS 8000
#define SLOW_START_MS 8000

char *campaign_pick_node(const struct campaign *campaign, bool with_master)
{
    guint first = with_master ? 1 : 2;
    guint number = first + sim_random(campaign->sim, campaign->shape->nodes - first + 1);
    return g_strdup_printf("node%u", number);
}

char *campaign_pick_instance(const struct campaign *campaign)
{
    return g_strdup_printf("web%u", 1 + sim_random(campaign->sim, campaign->shape->instances));
}

static void kill_guest(const struct campaign *campaign)
{
    g_autofree char *name = campaign_pick_instance(campaign);
    const struct instance *instance =
        config_find(sim_config(campaign->sim), "instance", name, NULL);
    if (instance == NULL || *instance->holder == '\0')
        return;
    g_autofree char *uuid = g_strdup(instance->uuid), *holder = g_strdup(instance->holder);
    campaign->counts->guest_deaths++;
    sim_kill_guest(campaign->sim, uuid, holder);
}

static const char *pick_daemon(const struct campaign *campaign)
{
    static const char *const daemons[] = {"wconfd", "luxid", "watcher"};
    return daemons[sim_random(campaign->sim, G_N_ELEMENTS(daemons))];
}

static void kill_daemon(const struct campaign *campaign, const char *node)
{
    struct sim *sim = campaign->sim;
    campaign->counts->deaths++;
    if (sim_random(sim, 2) == 0 && sim_powered(sim, "node1"))
        sim_kill(sim, pick_daemon(campaign), "node1");
    else if (sim_powered(sim, node))
        sim_kill(sim, "noded", node);
}

/* Stopped processes go on again a little later, while everything else went on. */
static void stop_something(const struct campaign *campaign, const char *node)
{
    struct sim *sim = campaign->sim;
    const char *daemon = sim_random(sim, 2) == 0 ? pick_daemon(campaign) : "noded";
    const char *where = daemon[0] == 'n' ? node : "node1";
    campaign->counts->stops++;
    if (sim_random(sim, 3) == 0)
        sim_stop_job(sim);
    else
        sim_stop(sim, daemon, where, true);
    sim_pass(sim, sim_random(sim, STOPPED_MS));
    sim_stop(sim, daemon, where, false);
    sim_continue_jobs(sim);
}

static void pull_cable(const struct campaign *campaign, const char *node)
{
    struct sim *sim = campaign->sim;
    g_autofree char *other = campaign_pick_node(campaign, true);
    switch (sim_random(sim, 4)) {
    case 0:
        campaign->counts->one_way++;
        sim_one_way(sim, node, other, true);
        break;
    case 1:
        campaign->counts->congestions++;
        sim_congest(sim, node, sim_random(sim, CONGESTED_MS));
        break;
    default:
        campaign->counts->cables++;
        sim_link(sim, node, !sim_linked(sim, node));
    }
}

/* The images of a replica are gone, or one of them: somebody removed the files. */
static void lose_images(const struct campaign *campaign)
{
    g_autofree char *name = campaign_pick_instance(campaign);
    const struct instance *instance =
        config_find(sim_config(campaign->sim), "instance", name, NULL);
    if (instance == NULL || instance->disk_template != TEMPLATE_MIRROR ||
        *instance->replica == '\0' || *instance->migration != '\0' ||
        instance->task_state != TASK_NONE)
        return;
    campaign->counts->lost_images++;
    guint disk = sim_random(campaign->sim, 2 * instance->disks->len);
    if (disk < instance->disks->len && instance->disks->len > 1)
        sim_lose_disk(campaign->sim, instance, true, disk);
    else
        sim_lose_images(campaign->sim, instance, true);
}

/* The next guests of a node are made after a while, as if an accelerator had to be tried out. */
static void slow_start(const struct campaign *campaign, const char *node)
{
    guint ms = sim_random(campaign->sim, 2) * sim_random(campaign->sim, SLOW_START_MS);
    fake_host_set_prepare_ms(sim_host(campaign->sim, node), ms);
}

/* What was broken is mended again sooner than something else breaks: else a long run is a dead
 * cluster. */
static bool mend_something(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    for (guint i = 1; i <= campaign->shape->nodes; i++) {
        g_autofree char *node = g_strdup_printf("node%u", i);
        if (sim_random(sim, i == 1 ? 2 : 6) != 0)
            continue;
        bool broken = !sim_powered(sim, node) || !sim_linked(sim, node) || sim_troubled(sim, node);
        sim_ease(sim, node);
        sim_link(sim, node, true);
        sim_power(sim, node, true);
        if (broken)
            return true;
    }
    return false;
}

static void harm_something(const struct campaign *campaign, const char *node)
{
    struct sim *sim = campaign->sim;
    switch (sim_random(sim, 10)) {
    case 0:
    case 1:
        campaign->counts->power_cuts++;
        sim_power(sim, node, !sim_powered(sim, node));
        break;
    case 2:
    case 3:
        pull_cable(campaign, node);
        break;
    case 4:
    case 5:
        kill_daemon(campaign, node);
        break;
    case 6:
        kill_guest(campaign);
        break;
    case 7:
        stop_something(campaign, node);
        break;
    case 8:
        if (sim_random(sim, 4) == 0)
            lose_images(campaign);
        else
            slow_start(campaign, node);
        break;
    default:
        campaign->counts->job_deaths += sim_kill_job(sim, 0) ? 1 : 0;
    }
}

void campaign_fate_acts(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    g_autofree char *node = campaign_pick_node(campaign, true);
    /* Jobs are short: the best moment for a fault is soon after something began. */
    if (sim_random(sim, 2) == 0 && sim_powered(sim, "node1"))
        campaign_operator_acts(campaign);
    sim_pass(sim, sim_random(sim, 250));
    if (sim_random(sim, 3) != 0 || !mend_something(campaign))
        harm_something(campaign, node);
}

void campaign_fate_ends(const struct campaign *campaign)
{
    for (guint i = 1; i <= campaign->shape->nodes; i++) {
        g_autofree char *node = g_strdup_printf("node%u", i);
        sim_ease(campaign->sim, node);
        fake_host_set_prepare_ms(sim_host(campaign->sim, node), 0);
        sim_link(campaign->sim, node, true);
        sim_power(campaign->sim, node, true);
    }
}
