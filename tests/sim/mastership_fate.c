/* Faults, and the course of a run; see mastership.h. A person is mastership_person.c. */
#include <stdio.h>
#include <string.h>

#include "mastership.h"

/* --- what ends later --- */

struct later {
    struct ms_host *host;
    struct ms *ms;
    void (*fn)(struct ms *ms, struct ms_host *host, guint more);
    guint more;
};

static void later_cb(void *data)
{
    struct later *later = data;
    if (later->ms->busy && !later->ms->over) {
        ms_timer(later->ms, 300, later_cb, later);
        return;
    }
    if (!later->ms->over)
        later->fn(later->ms, later->host, later->more);
    g_free(later);
}

void ms_later(struct ms *ms, struct ms_host *host, guint more, guint ms_time,
              void (*fn)(struct ms *ms, struct ms_host *host, guint more))
{
    struct later *event = g_new(struct later, 1);
    *event = (struct later){host, ms, fn, more};
    ms_timer(ms, ms_time, later_cb, event);
}

static struct ms_host *any_host(struct ms *ms)
{
    guint chosen = ms_random(ms, ms->hosts_count);
    if (ms->newest_host >= 0 && ms_random(ms, 3) == 0)
        chosen = (guint)ms->newest_host;
    return &ms->hosts[chosen];
}

/* --- processes and hosts --- */

static void boots(struct ms *ms, struct ms_host *host, guint more)
{
    if (!host->gone)
        ms_boot(host);
}

static void thaws(struct ms *ms, struct ms_host *host, guint more)
{
    if (!host->paused)
        ms_freeze(host, false);
}

static void noded_returns(struct ms *ms, struct ms_host *host, guint more)
{
    if (host->powered && !host->noded)
        ms_start_noded(host);
}

static void kill_wconfd(struct ms *ms, struct ms_host *host)
{
    if (host->wconfd && !host->paused)
        ms_restart_wconfd(host);
}

static void kill_noded(struct ms *ms, struct ms_host *host)
{
    if (host->paused)
        return;
    ms_kill_noded(host);
    ms_later(ms, host, 0, ms_random(ms, 3000), noded_returns);
}

static void heals(struct ms *ms, struct ms_host *host, guint more);

/* Who does not know how long it was away, and reaches nobody who does, answers its own node only
 * what a barrier lets it. */
static void goes_on(struct ms *ms, struct ms_host *host, guint more)
{
    bool cut = host->stopped_ms && ms_random(ms, 3) > 0;
    for (guint i = 0; cut && i < ms->hosts_count; i++) {
        ms_cut(ms, i, host->index, true);
        ms_cut(ms, host->index, i, true);
    }
    ms->counts->cuts += cut;
    if (cut)
        ms_later(ms, host, 0, ms_random(ms, 4000), heals);
    ms_pause(host, false);
}

static void pause_host(struct ms *ms, struct ms_host *host)
{
    ms_pause(host, true);
    ms->counts->pauses++;
    ms_later(ms, host, 0, 200 + ms_random(ms, 12000), goes_on);
}

static void freeze_wconfd(struct ms *ms, struct ms_host *host)
{
    ms_freeze(host, true);
    ms->counts->pauses++;
    ms_later(ms, host, 0, 200 + ms_random(ms, 9000), thaws);
}

void ms_fate_cuts_power(struct ms *ms, struct ms_host *host)
{
    if (!host->powered)
        return;
    ms_power_off(host);
    ms->counts->reboots++;
    ms_later(ms, host, 0, ms_random(ms, 12000), boots);
}

/* Whatever burns, somebody else has everything: backups are not simulated. */
static bool is_spare(const struct ms *ms, const struct ms_host *host)
{
    for (guint i = 0; i < ms->hosts_count; i++) {
        const struct ms_host *other = &ms->hosts[i];
        struct copy_position at;
        model_store_position(other->store, &at);
        if (other != host && !other->gone && at.epoch == ms->newest_epoch)
            return true;
    }
    return false;
}

static void lose_disk(struct ms *ms, struct ms_host *host)
{
    if (ms_random(ms, 4) > 0 || !is_spare(ms, host))
        return;
    ms_lose_disk(host);
    ms->counts->lost_disks++;
    ms_later(ms, host, 0, 2000 + ms_random(ms, 15000), boots);
}

static void damage_store(struct ms *ms, struct ms_host *host)
{
    if (!host->powered || host->paused || ms_random(ms, 3) > 0 || !is_spare(ms, host))
        return;
    ms_power_off(host);
    host->taken.now = false;
    model_store_damage(host->store);
    ms->counts->lost_disks++;
    ms_later(ms, host, 0, ms_random(ms, 5000), boots);
}

/* --- network --- */

static void heals(struct ms *ms, struct ms_host *host, guint more)
{
    for (guint i = 0; i < ms->hosts_count; i++) {
        ms_cut(ms, i, host->index, false);
        ms_cut(ms, host->index, i, false);
    }
}

static void all_heals(struct ms *ms, struct ms_host *host, guint more)
{
    for (guint i = 0; i < ms->hosts_count; i++)
        heals(ms, &ms->hosts[i], 0);
}

/* Two sides. */
static void part(struct ms *ms, struct ms_host *host)
{
    guint side = 1 + ms_random(ms, (1u << ms->hosts_count) - 2);
    for (guint i = 0; i < ms->hosts_count; i++)
        for (guint j = 0; j < ms->hosts_count; j++)
            if ((side >> i & 1) != (side >> j & 1))
                ms_cut(ms, i, j, true);
    ms->counts->cuts++;
    ms_later(ms, host, 0, 500 + ms_random(ms, 15000), all_heals);
}

static void isolate(struct ms *ms, struct ms_host *host)
{
    guint ways = 1 + ms_random(ms, 3);
    for (guint i = 0; i < ms->hosts_count; i++) {
        if (ways & 1)
            ms_cut(ms, i, host->index, true);
        if (ways & 2)
            ms_cut(ms, host->index, i, true);
    }
    ms->counts->cuts++;
    ms_later(ms, host, 0, 500 + ms_random(ms, 15000), heals);
}

/* One pair, one or both ways. */
static void cut_pair(struct ms *ms, struct ms_host *host)
{
    guint other = ms_random(ms, ms->hosts_count);
    ms_cut(ms, host->index, other, true);
    if (ms_random(ms, 2) == 0)
        ms_cut(ms, other, host->index, true);
    ms->counts->cuts++;
    ms_later(ms, host, 0, 500 + ms_random(ms, 20000), heals);
}

static void flaps(struct ms *ms, struct ms_host *host, guint more)
{
    guint other = ms_random(ms, ms->hosts_count);
    ms_cut(ms, host->index, other, more % 2 == 1);
    ms_cut(ms, other, host->index, more % 2 == 1 && ms_random(ms, 2) == 0);
    if (more > 0)
        ms_later(ms, host, more - 1, ms_random(ms, 1200), flaps);
    else
        heals(ms, host, 0);
}

static void flap(struct ms *ms, struct ms_host *host)
{
    ms->counts->cuts++;
    flaps(ms, host, 5 + ms_random(ms, 15));
}

static void flows(struct ms *ms, struct ms_host *host, guint more)
{
    ms->delay_ms = 0;
    ms->delayed_ms = ms_now(ms);
}

static void congest(struct ms *ms, struct ms_host *host)
{
    ms->delay_ms = ms_random(ms, ms_random(ms, 2) ? 200 : 3000);
    ms->delayed_ms = ms_now(ms);
    ms_later(ms, host, 0, ms_random(ms, 8000), flows);
}

/* --- disks and members --- */

static void disk_recovers(struct ms *ms, struct ms_host *host, guint more)
{
    host->sync_ms = 0;
    ms_unsteady(host);
}

static void slow_disk(struct ms *ms, struct ms_host *host)
{
    host->sync_ms = 1 + ms_random(ms, ms_random(ms, 2) ? 300 : 4000);
    ms_unsteady(host);
    ms_later(ms, host, 0, ms_random(ms, 12000), disk_recovers);
}

static void failing_disk(struct ms *ms, struct ms_host *host)
{
    ms_unsteady(host);
    model_store_fail(host->store, 1 + ms_random(ms, 3));
}

static void member_returns(struct ms *ms, struct ms_host *host, guint more)
{
    host->member = host->powered;
    model_members_changed(ms);
}

static void lose_members(struct ms *ms, struct ms_host *host)
{
    guint count = 1 + ms_random(ms, ms->hosts_count);
    for (guint i = 0; ms->etcd && i < count; i++) {
        struct ms_host *other = &ms->hosts[(host->index + i) % ms->hosts_count];
        other->member = false;
        ms->counts->lost_members++;
        ms_later(ms, other, 0, ms_random(ms, 9000), member_returns);
    }
    model_members_changed(ms);
}

/* --- the course of a run --- */

static void one_fault(struct ms *ms)
{
    static void (*const faults[])(struct ms * ms, struct ms_host * host) = {
        kill_wconfd,
        kill_wconfd,
        kill_noded,
        pause_host,
        pause_host,
        freeze_wconfd,
        freeze_wconfd,
        ms_fate_cuts_power,
        ms_fate_cuts_power,
        lose_disk,
        damage_store,
        part,
        part,
        isolate,
        isolate,
        cut_pair,
        flap,
        congest,
        slow_disk,
        failing_disk,
        lose_members,
        lose_members,
    };
    guint which = ms_random(ms, G_N_ELEMENTS(faults));
    struct ms_host *host = any_host(ms);
    if (ms->theme && ms_random(ms, 3) > 0) {
        ms->theme->fault(ms);
        return;
    }
    ms_tell(ms, "fault %u of host %u", which, host->index + 1);
    faults[which](ms, host);
}

static void faults_end(struct ms *ms)
{
    all_heals(ms, NULL, 0);
    flows(ms, NULL, 0);
    for (guint i = 0; i < ms->hosts_count; i++) {
        struct ms_host *host = &ms->hosts[i];
        ms_pause(host, false);
        ms_freeze(host, false);
        host->sync_ms = 0;
        model_store_fail(host->store, 0);
        if (!host->gone)
            ms_boot(host);
        noded_returns(ms, host, 0);
        host->member = host->powered;
    }
    model_members_changed(ms);
    if (ms->theme)
        ms->theme->faults_end(ms);
}

static char *unrest(struct ms *ms)
{
    char *why = ms_unrest(ms);
    return why || !ms->theme ? why : ms->theme->unrest(ms);
}

/* Until all is well: why it is not; NULL if it is. To be freed. */
static char *come_to_rest(struct ms *ms)
{
    char *why = NULL;
    guint waited = 0, most = ms->theme ? ms->theme->rest_ms : MS_REST_MS;
    do {
        ms_pass(ms, 1000);
        waited += 1000;
        ms->calm = ms->calm || waited > 8000; /* some commits after the last fault */
        faults_end(ms);
        ms_person_mends(ms, waited);
        g_free(why);
        why = ms->calm && !ms->problem ? unrest(ms) : g_strdup("it was not looked at");
    } while (why && !ms->problem && waited < most);
    ms->counts->worst_rest_ms = MAX(ms->counts->worst_rest_ms, waited);
    for (guint i = 0; why && i < ms->hosts_count; i++)
        ms_tell(ms, "host %u: powered %d, gone %d, seat %d, damaged %d, whole %d", i + 1,
                ms->hosts[i].powered, ms->hosts[i].gone, ms->hosts[i].seat != NULL,
                model_store_is_damaged(ms->hosts[i].store), ms_is_whole(ms, &ms->hosts[i]));
    if (why && !ms->problem)
        ms_problem(ms, "not at rest after %u s: %s", most / 1000, why);
    return why;
}

char *ms_run(guint64 seed, struct ms_counts *counts)
{
    return ms_run_theme(seed, NULL, counts, NULL);
}

char *ms_run_theme(guint64 seed, const struct ms_theme *theme, struct ms_counts *counts,
                   void *theme_counts)
{
    struct ms *ms = ms_new(seed, theme, counts, theme_counts);
    ms_pass(ms, 3000);
    guint rounds = 10 + ms_random(ms, 8);
    for (guint i = 0; i < rounds && !ms->problem; i++) {
        ms_pass(ms, ms_random(ms, ms_random(ms, 3) ? 2500 : 7000));
        if (!ms->problem)
            one_fault(ms);
        if (!ms->problem && ms_random(ms, 3) == 0)
            ms_person_acts(ms);
    }
    g_free(come_to_rest(ms));
    char *problem = g_steal_pointer(&ms->problem);
    counts->seeds++;
    ms->over = true;
    ms_free(ms);
    return problem;
}
