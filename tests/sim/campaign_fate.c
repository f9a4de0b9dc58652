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

/* The images of a replica are gone, or one of them: somebody removed the files. Of the only whole
 * copy nobody could make another. */
static void lose_images(const struct campaign *campaign)
{
    g_autofree char *name = campaign_pick_instance(campaign);
    const struct instance *instance =
        config_find(sim_config(campaign->sim), "instance", name, NULL);
    if (instance == NULL || instance->disk_template != TEMPLATE_MIRROR ||
        *instance->replica == '\0' || *instance->migration != '\0' ||
        instance->task_state != TASK_NONE || !sim_primary_is_whole(campaign->sim, instance))
        return;
    campaign->counts->lost_images++;
    guint disk = sim_random(campaign->sim, 2 * instance->disks->len);
    if (disk < instance->disks->len && instance->disks->len > 1)
        sim_lose_disk(campaign->sim, instance, true, disk);
    else
        sim_lose_images(campaign->sim, instance, true);
}

/* The disks of a node fail, and so do the writes of what runs there; the node lives. */
static void fail_disks(const struct campaign *campaign, const char *node)
{
    campaign->counts->disk_failures += !sim_disks_fail(campaign->sim, node);
    sim_fail_disks(campaign->sim, node, true);
}

/* Both nodes of an instance can come to it at once. */
static void fill_disks(const struct campaign *campaign, const char *node)
{
    struct fake_host *host = sim_host(campaign->sim, node);
    g_autofree char *other = campaign_pick_node(campaign, true);
    campaign->counts->full_disks++;
    fake_host_set_full(host, !fake_host_is_full(host));
    if (sim_random(campaign->sim, 3) == 0)
        fake_host_set_full(sim_host(campaign->sim, other), true);
}

/* A guest's process, a folder or a tool answers nothing, while its node does. */
static void hang_something(const struct campaign *campaign, const char *node)
{
    static const char *const parts[] = {"space", "list", "shared", "sources", "bridges"};
    struct sim *sim = campaign->sim;
    g_autofree char *name = campaign_pick_instance(campaign);
    const struct instance *instance = config_find(sim_config(sim), "instance", name, NULL);
    campaign->counts->hangs++;
    if (sim_random(sim, 2) == 0 || instance == NULL || *instance->holder == '\0') {
        sim_hang(sim, node, parts[sim_random(sim, G_N_ELEMENTS(parts))], true);
        return;
    }
    g_autofree char *holder = g_strdup(config_node_name(sim_config(sim), instance->holder));
    sim_hang(sim, holder, instance->uuid, true);
}

static const struct instance *find(const struct campaign *campaign, const char *name)
{
    return config_find(sim_config(campaign->sim), "instance", name, NULL);
}

/* It is being removed, or its guest is there and is copied for the first time. */
static bool in_the_middle(const struct campaign *campaign, const char *name, enum task_state work)
{
    const struct instance *instance = find(campaign, name);
    return instance != NULL && instance->task_state == work &&
           (work == TASK_REMOVING || *instance->holder != '\0');
}

/* A job that creates or removes an instance dies in the middle, or its master does (SAF-23). */
static void cut_work(const struct campaign *campaign)
{
    struct sim *sim = campaign->sim;
    enum task_state work = sim_random(sim, 3) == 0 ? TASK_REMOVING : TASK_CREATING;
    g_autofree char *name = campaign_pick_instance(campaign);
    campaign_make_again(campaign, name);
    for (guint i = 0; i < 300 && !in_the_middle(campaign, name, work); i++)
        sim_pass(sim, 5);
    sim_pass(sim, sim_random(sim, 20));
    if (!in_the_middle(campaign, name, work))
        return;
    campaign->counts->cut_works++;
    if (sim_random(sim, 3) == 0)
        sim_power(sim, "node1", false);
    else
        sim_kill_job(sim, find(campaign, name)->task_owner);
}

/* By seconds or by years, forth or back. */
static void set_clock(const struct campaign *campaign, const char *node)
{
    static const gint64 steps_s[] = {3, -3, 600, -600, 3 * 365 * 86400, -3 * 365 * 86400, 0};
    campaign->counts->clocks++;
    sim_set_clock(campaign->sim, node, steps_s[sim_random(campaign->sim, G_N_ELEMENTS(steps_s))]);
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
        bool broken = !sim_powered(sim, node) || !sim_linked(sim, node) ||
                      sim_troubled(sim, node) || sim_disks_fail(sim, node) ||
                      fake_host_is_full(sim_host(sim, node));
        fake_host_set_full(sim_host(sim, node), false);
        sim_ease(sim, node);
        sim_fail_disks(sim, node, false);
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
    switch (sim_random(sim, 15)) {
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
        switch (sim_random(sim, 4)) {
        case 0:
            lose_images(campaign);
            break;
        case 1:
            set_clock(campaign, node);
            break;
        case 2:
            campaign->counts->read_only++;
            sim_read_only(sim, node, true);
            break;
        default:
            if (sim_powered(sim, "node1"))
                cut_work(campaign);
        }
        break;
    case 9:
        fill_disks(campaign, node);
        break;
    case 10:
        hang_something(campaign, node);
        break;
    case 11:
        fail_disks(campaign, node);
        break;
    case 12:
        sim_lose_word(sim);
        break;
    case 13:
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
        fake_host_set_full(sim_host(campaign->sim, node), false);
        sim_ease(campaign->sim, node);
        sim_fail_disks(campaign->sim, node, false);
        fake_host_set_prepare_ms(sim_host(campaign->sim, node), 0);
        sim_link(campaign->sim, node, true);
        sim_power(campaign->sim, node, true);
    }
}
