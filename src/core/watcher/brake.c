/*
 * What holds repair back although a policy allows it: the storm brake, the limits on how many
 * repairs run and begin, and shadow mode. See watcher_private.h.
 *
 * The brake is an object of the configuration, so that it outlives the watcher; only a person
 * removes it (`fettle repair continue`). Then the losses that pulled it are forgiven: those up to
 * the record of its release count no more. Repairs are counted from their jobs, which carry repair,
 * step and try in their request ids, so that a new watcher knows what an old one began.
 */
#include "core/watcher/watcher_private.h"

#include "base/log.h"
#include "core/watcher/storm.h"

#define BRAKE_KEY "cluster"

struct watcher_brake {
    bool on;     /* no step may be submitted in this pass … */
    bool unsure; /* … as so many nodes may be lost that it would be pulled */
};

struct watcher_brake *watcher_brake_new(void)
{
    return g_new0(struct watcher_brake, 1);
}

void watcher_brake_free(struct watcher_brake *brake)
{
    g_free(brake);
}

bool watcher_shadow(const struct watcher *watcher)
{
    const struct cluster *cluster = watcher_cluster(watcher);
    return cluster != NULL && cluster->repair_shadow;
}

/* --- the storm --- */

/* We see others through our own node daemon: while that is silent, silence proves nothing. */
static gint64 silent_for(const struct watcher *watcher, const struct node_memory *memory)
{
    if (reports_of(watcher->reports, watcher->env->node_uuid) == NULL || memory->silent_ms == 0)
        return -1;
    gint64 silent_s = (watcher->env->ops->boot_ms(watcher->env) - memory->silent_ms) / 1000;
    return silent_s >= LIMIT_REPAIR_SILENT_S ? silent_s : -1;
}

struct losses {
    const struct watcher *watcher;
    bool suspected; /* those that may be lost count too */
};

static gint64 lost_for(const struct node *node, const void *data, const char **ret_how)
{
    const struct losses *losses = data;
    const struct env *env = losses->watcher->env;
    const struct node_memory *memory = g_hash_table_lookup(losses->watcher->nodes, node->uuid);
    gint64 silent_s = memory != NULL ? silent_for(losses->watcher, memory) : -1;
    *ret_how = silent_s >= 0 ? "does not answer" : "has disks that fail";
    if (memory == NULL || silent_s >= 0)
        return silent_s;
    gint64 since_ms = losses->suspected ? memory->suspect_ms : memory->failed_ms;
    return since_ms == 0 ? -1 : (env->ops->boot_ms(env) - since_ms) / 1000;
}

static const struct decision *latest_of(const struct watcher *watcher)
{
    return watcher_latest(watcher, watcher_cluster(watcher)->uuid, STORM_AUTHOR);
}

static struct decision *about_cluster(const struct watcher *watcher, enum verdict verdict,
                                      const char *state)
{
    const struct cluster *cluster = watcher_cluster(watcher);
    return decision_about("cluster", cluster->uuid, cluster->name, STORM_AUTHOR, verdict, state);
}

static json_t *brake_object(const struct watcher *watcher, const struct storm *storm,
                            const char *why)
{
    record_autoptr(repair_brake) brake = repair_brake_new();
    brake->since = (guint64)watcher_now(watcher);
    decision_set(&brake->why, "%s", why);
    for (guint i = 0; i < storm->uuids->len; i++)
        g_ptr_array_add(brake->nodes, g_strdup(storm->uuids->pdata[i]));
    return repair_brake_to_json(brake);
}

static void pull(struct watcher *watcher, const struct storm *storm)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    g_autofree char *why = storm_text(storm, watcher_cluster(watcher));
    g_ptr_array_add(changes, config_put(follow_config(watcher->follow), "repair_brake", BRAKE_KEY,
                                        brake_object(watcher, storm, why)));
    struct decision *decision = about_cluster(watcher, VERDICT_ACT, "Storm brake on");
    decision_set(&decision->summary,
                 "%s No step of any repair is taken until a person says: fettle repair continue.",
                 why);
    for (guint i = 0; i < storm->texts->len; i++)
        g_ptr_array_add(decision->evidence, g_strdup(storm->texts->pdata[i]));
    decision_set(&decision->next_check, "when a person says: fettle repair continue");
    watcher_record(watcher, decision, changes);
    if (watcher_commit(watcher, changes))
        log_warning("", "storm brake of auto-repair pulled: %s", why);
}

/* It is gone: somebody has said go on. */
static void note_release(struct watcher *watcher)
{
    const struct decision *latest = latest_of(watcher);
    if (latest == NULL || latest->verdict != VERDICT_ACT)
        return;
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    struct decision *decision = about_cluster(watcher, VERDICT_DONE, "Storm brake released");
    decision_set(&decision->summary,
                 "A person said go on: the losses so far hold no repair up any more.");
    watcher_record(watcher, decision, changes);
    if (watcher_commit(watcher, changes))
        log_info("", "storm brake of auto-repair released");
}

static const struct repair_brake *the_brake(const struct watcher *watcher)
{
    return config_get(follow_config(watcher->follow), "repair_brake", BRAKE_KEY, NULL);
}

bool watcher_is_restored(const struct watcher *watcher)
{
    const struct repair_brake *brake = the_brake(watcher);
    return brake != NULL && brake->restored;
}

static bool find_storm(const struct watcher *watcher, bool suspected, struct storm *ret_storm)
{
    const struct losses losses = {watcher, suspected};
    const struct storm_view view = {.config = follow_config(watcher->follow),
                                    .now = watcher_now(watcher),
                                    .ages = watcher->ages,
                                    .latest = latest_of(watcher),
                                    .loss = lost_for,
                                    .data = &losses};
    storm_find(ret_storm, &view);
    return storm_pulls(ret_storm, watcher_cluster(watcher));
}

/* What fails on many nodes at once is not certain on all of them at once: the first is waited with
 * until the last is. */
static bool may_be_storm(const struct watcher *watcher)
{
    struct storm storm;
    bool pulls = find_storm(watcher, true, &storm);
    storm_clear(&storm);
    return pulls;
}

void watcher_brake(struct watcher *watcher)
{
    watcher->brake->on = true;
    watcher->brake->unsure = false;
    if (the_brake(watcher) != NULL)
        return;
    note_release(watcher);
    struct storm storm;
    watcher->brake->on = find_storm(watcher, false, &storm);
    if (watcher->brake->on)
        pull(watcher, &storm);
    storm_clear(&storm);
    watcher->brake->unsure = !watcher->brake->on && may_be_storm(watcher);
}

/* --- limits --- */

/* Copies can take hours: where there is room for more than one repair, they leave one place to
 * guests that are down. */
static guint64 may_run(const struct cluster *cluster, bool urgent)
{
    guint64 most = cluster->repair_max_running;
    return urgent || most == 1 ? most : most - 1;
}

char *watcher_braked(const struct watcher *watcher, const char **ret_next)
{
    const struct repair_brake *brake = the_brake(watcher);
    if (!watcher->brake->on && brake == NULL)
        return NULL;
    *ret_next = "when a person says: fettle repair continue";
    return g_strdup_printf("The storm brake is on: %s It is released by: fettle repair continue.",
                           brake != NULL ? brake->why : "many nodes were lost at once.");
}

char *watcher_held_back(struct watcher *watcher, bool first, bool urgent, const char **ret_next)
{
    const struct cluster *cluster = watcher_cluster(watcher);
    guint running, begun;
    watcher_count_repairs(watcher, &running, &begun);
    char *braked = watcher_braked(watcher, ret_next);
    if (braked != NULL)
        return braked;
    if (watcher->brake->unsure) {
        *ret_next = "in the next pass";
        return g_strdup(
            "It waits: disks of so many nodes may have failed that the storm brake would "
            "be pulled, and that is not certain yet.");
    }
    if (running >= may_run(cluster, urgent)) {
        *ret_next = "when one of them has ended";
        bool kept = running < cluster->repair_max_running;
        bool one = cluster->repair_max_running == 1;
        return g_strdup_printf("It waits its turn: no more than %" G_GUINT64_FORMAT
                               " repair%s under way at once (repair_max_running)%s.",
                               cluster->repair_max_running, one ? " is" : "s are",
                               kept ? ", and the last place is for guests that are down" : "");
    }
    if (first && begun >= cluster->repair_max_per_hour) {
        *ret_next = "within the hour";
        return g_strdup_printf("It waits its turn: no more than %" G_GUINT64_FORMAT
                               " repairs begin within an hour (repair_max_per_hour).",
                               cluster->repair_max_per_hour);
    }
    return NULL;
}
