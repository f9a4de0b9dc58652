/* What befalls the simulated cluster: power, cables, deaths, stopped processes; see sim.h. */
#include "sim_private.h"

#include <string.h>

static enum sim_role role_of(const char *daemon)
{
    static const char *const names[] = {"wconfd", "luxid", "watcher", "noded"};
    guint role = 0;
    while (strcmp(names[role], daemon) != 0)
        g_assert(++role < SIM_ROLES);
    return (enum sim_role)role;
}

void sim_kill(struct sim *sim, const char *daemon, const char *name)
{
    struct sim_node *node = sim_node(sim, name);
    enum sim_role role = role_of(daemon);
    if (node->processes[role].env == NULL)
        return;
    sim_log(sim, "fate: %s on %s is killed", daemon, name);
    sim_process_end(sim, node, role);
    sim_start_again_later(sim, node, role);
}

void sim_stop(struct sim *sim, const char *daemon, const char *name, bool stop)
{
    struct sim_node *node = sim_node(sim, name);
    enum sim_role role = role_of(daemon);
    if (node->processes[role].env == NULL || fake_paused(node->processes[role].env) == stop)
        return;
    sim_log(sim, "fate: %s on %s %s", daemon, name, stop ? "is stopped" : "goes on");
    sim_process_stop(sim, node, role, stop);
}

/* Connections that a pulled cable or a deaf ear has ended are made again. */
static void reconnect(struct sim *sim)
{
    for (guint i = 0; i < sim->nodes->len; i++) {
        struct sim_node *each = sim->nodes->pdata[i];
        if (each->processes[SIM_NODED].node != NULL)
            node_core_master_reachable(each->processes[SIM_NODED].node);
    }
}

void sim_one_way(struct sim *sim, const char *from, const char *to, bool cut)
{
    struct sim_node *a = sim_node(sim, from), *b = sim_node(sim, to);
    if (a == b || g_ptr_array_find(a->unheard_by, b, NULL) == cut)
        return;
    sim_log(sim, "fate: %s %s what %s sends", to, cut ? "does not get" : "gets again", from);
    if (cut)
        g_ptr_array_add(a->unheard_by, b);
    else
        g_ptr_array_remove(a->unheard_by, b);
    if (!cut)
        reconnect(sim);
}

void sim_congest(struct sim *sim, const char *name, guint ms)
{
    struct sim_node *node = sim_node(sim, name);
    if (node->congested_ms != ms)
        sim_log(sim, "fate: messages of %s take up to %u ms", name, ms);
    node->congested_ms = ms;
}

void sim_read_only(struct sim *sim, const char *name, bool read_only)
{
    struct sim_node *node = sim_node(sim, name);
    if (node->read_only != read_only)
        sim_log(sim, "fate: the root of %s is %s", name,
                read_only ? "read-only" : "written to again");
    if (node->read_only && !read_only)
        node->written_since_ms = sim_now_ms(sim);
    node->read_only = read_only;
    fake_set_read_only(sim->world, node->uuid, read_only);
    fake_set_hung(sim->world, node->uuid, false);
}

void sim_hang_state(struct sim *sim, const char *name)
{
    struct sim_node *node = sim_node(sim, name);
    sim_log(sim, "fate: the root of %s hangs", name);
    node->read_only = true;
    fake_set_hung(sim->world, node->uuid, true);
}

void sim_fill_state(struct sim *sim, const char *name)
{
    struct sim_node *node = sim_node(sim, name);
    sim_log(sim, "fate: the root of %s is full", name);
    node->read_only = true;
    fake_fill_state(sim->world, node->uuid);
}

void sim_set_clock(struct sim *sim, const char *name, gint64 ahead_s)
{
    struct sim_node *node = sim_node(sim, name);
    sim_log(sim, "fate: the clock of %s is set %" G_GINT64_FORMAT " s %s", name,
            ABS(ahead_s - node->ahead_s), ahead_s > node->ahead_s ? "forward" : "back");
    sim->clocks_set = true;
    if (ahead_s > node->ahead_s)
        sim->forward_ms = sim_now_ms(sim);
    node->ahead_s = ahead_s;
    fake_set_clock(sim->world, node->uuid, ahead_s * 1000);
}

void sim_stop_clock(struct sim *sim, const char *name)
{
    struct sim_node *node = sim_node(sim, name);
    sim_log(sim, "fate: the clock of %s stands still", name);
    sim->clocks_set = true;
    fake_stop_clock(sim->world, node->uuid);
}

bool sim_troubled(const struct sim *sim, const char *name)
{
    const struct sim_node *node = sim_node(sim, name);
    return node->congested_ms > 0 || node->unheard_by->len > 0 || node->read_only ||
           fake_host_hangs(node->host, NULL);
}

void sim_ease(struct sim *sim, const char *name)
{
    struct sim_node *node = sim_node(sim, name);
    sim_congest(sim, name, 0);
    sim_hang(sim, name, NULL, false);
    sim_read_only(sim, name, false);
    while (node->unheard_by->len > 0)
        sim_one_way(sim, name, ((struct sim_node *)node->unheard_by->pdata[0])->name, false);
}

/* Of an instance its name, for the log. */
static const char *hung_word(struct sim *sim, const char *what)
{
    const struct instance *instance = config_get(sim_config(sim), "instance", what, NULL);
    return instance != NULL ? instance->name : what;
}

void sim_hang(struct sim *sim, const char *name, const char *what, bool hangs)
{
    struct sim_node *node = sim_node(sim, name);
    if (fake_host_hangs(node->host, what) == hangs)
        return;
    sim_log(sim, "fate: %s on %s %s", what != NULL ? hung_word(sim, what) : "what hung", name,
            hangs ? "hangs" : "goes on");
    fake_host_hang(node->host, what, hangs);
}

void sim_set_idle_ms(struct sim *sim, guint ms)
{
    fake_hosts_set_idle_ms(sim->hosts, ms);
}

static guint chance(void *data)
{
    return sim_random(data, 100);
}

static void power_off(struct sim *sim, struct sim_node *node)
{
    node->powered = false;
    sim_drop_requests(node);
    fake_cut(sim->world, node->uuid, true);
    for (guint role = 0; role < SIM_ROLES; role++)
        sim_process_end(sim, node, (enum sim_role)role);
    sim_jobs_end(sim, node);
    fake_host_power_off(node->host);
    fake_lose_unsynced(sim->world, node->uuid, chance, sim);
    fake_reboot(sim->world, node->uuid);
}

void sim_power(struct sim *sim, const char *name, bool on)
{
    struct sim_node *node = sim_node(sim, name);
    if (node->powered == on)
        return;
    sim_log(sim, "fate: the power of %s is %s", name, on ? "back" : "cut");
    if (!on) {
        power_off(sim, node);
        return;
    }
    node->powered = true;
    fake_cut(sim->world, node->uuid, !node->linked);
    sim_start_daemons(sim, node);
}

void sim_link(struct sim *sim, const char *name, bool up)
{
    struct sim_node *node = sim_node(sim, name);
    if (node->linked == up)
        return;
    sim_log(sim, "fate: the cable of %s is %s", name, up ? "plugged in" : "pulled");
    node->linked = up;
    fake_cut(sim->world, node->uuid, !up || !node->powered);
    if (up)
        reconnect(sim);
}

void sim_kill_guest(struct sim *sim, const char *instance, const char *holder)
{
    const struct instance *record = config_get(sim->mirror, "instance", instance, NULL);
    if (*holder == '\0')
        return;
    sim_log(sim, "fate: the process of %s on %s is killed",
            record != NULL ? record->name : instance, sim_node_name(sim, holder));
    fake_host_guest_crash(sim_host(sim, holder), instance);
}

bool sim_primary_is_whole(struct sim *sim, const struct instance *instance)
{
    return !fake_host_disks_failed(sim_host(sim, instance->primary_node)) &&
           instance->sound != SOUND_NO &&
           fake_hosts_whole(sim->hosts, instance->primary_node, instance->uuid, "");
}

void sim_lose_images(struct sim *sim, const struct instance *instance, bool replica)
{
    const char *node = replica ? instance->secondary_node : instance->primary_node;
    sim_log(sim, "fate: the images of %s%s on %s are removed", instance->name,
            replica ? "'s replica" : "", sim_node_name(sim, node));
    if (replica)
        g_hash_table_add(sim->lost, g_strdup(instance->replica));
    fake_host_lose_images(sim_host(sim, node), instance->uuid, replica ? instance->replica : "");
}

void sim_lose_disk(struct sim *sim, const struct instance *instance, bool replica, guint disk)
{
    const char *node = replica ? instance->secondary_node : instance->primary_node;
    sim_log(sim, "fate: the image of disk %u of %s%s on %s is removed", disk, instance->name,
            replica ? "'s replica" : "", sim_node_name(sim, node));
    if (replica)
        g_hash_table_add(sim->lost, g_strdup(instance->replica));
    fake_host_lose_disk(sim_host(sim, node), instance->uuid, replica ? instance->replica : "",
                        disk);
}

void sim_fail_disks(struct sim *sim, const char *name, bool fail)
{
    struct sim_node *node = sim_node(sim, name);
    if (node->disks_fail == fail)
        return;
    sim_log(sim, "fate: the disks of %s %s", name, fail ? "fail" : "work");
    node->disks_fail = fail;
    g_hash_table_remove_all(sim->healthy); /* judged anew with the next commit */
    fake_host_set_disks_failed(node->host, fail);
}

bool sim_disks_fail(const struct sim *sim, const char *name)
{
    return sim_node(sim, name)->disks_fail;
}

guint sim_moves(const struct sim *sim)
{
    return sim->moves;
}
