/* What auto-repair keeps from pass to pass, and its place in the loop; see duties.h. */
#include "core/repair/duties.h"

#include "base/sm.h"
#include "core/recovery/recovery.h"
#include "core/recovery/stored.h"
#include "core/recovery/things.h"
#include "core/repair/repair_case.h"

/* --- the machine of one instance --- */

static const struct sm_state repair_states[REPAIR_STATES] = {
    [REPAIR_HEALTHY] = {"healthy",
                        SM_TO(REPAIR_NEEDED) | SM_TO(REPAIR_PENDING) | SM_TO(REPAIR_FAILED), false},
    [REPAIR_NEEDED] = {"needs-repair",
                       SM_TO(REPAIR_HEALTHY) | SM_TO(REPAIR_PENDING) | SM_TO(REPAIR_FAILED), false},
    [REPAIR_PENDING] = {"pending",
                        SM_TO(REPAIR_HEALTHY) | SM_TO(REPAIR_NEEDED) | SM_TO(REPAIR_FAILED), false},
    [REPAIR_FAILED] = {"failed",
                       SM_TO(REPAIR_HEALTHY) | SM_TO(REPAIR_NEEDED) | SM_TO(REPAIR_PENDING), false},
};
static const struct sm repair_machine = {"repair", repair_states, REPAIR_STATES};

void watcher_move(struct watched *watched, const char *instance, enum repair_state to,
                  const char *why)
{
    if (watched->state != to)
        sm_move(&repair_machine, instance, &watched->state, to, why);
}

/* --- what is kept --- */

struct watched *watcher_watched(struct watcher *watcher, const char *instance)
{
    struct watched *watched = g_hash_table_lookup(watcher->repair->instances, instance);
    if (watched == NULL) {
        watched = g_new0(struct watched, 1);
        g_hash_table_insert(watcher->repair->instances, g_strdup(instance), watched);
    }
    return watched;
}

static void watched_free(void *data)
{
    struct watched *watched = data;
    g_free(watched->gone_replica);
    suspicion_clear(&watched->disks);
    g_free(watched);
}

static struct repair *repair_new(void)
{
    struct repair *repair = g_new0(struct repair, 1);
    repair->instances = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, watched_free);
    repair->scan = repair_scan_new();
    repair->n1 = n1_check_new();
    repair->recovery = recovery_new(watcher_keeps_recovery_off);
    repair->things = things_new();
    repair->stored = stored_new();
    return repair;
}

static void repair_free(struct repair *repair)
{
    g_hash_table_unref(repair->instances);
    g_clear_pointer(&repair->policies, repair_policies_free);
    placement_sums_free(repair->sums);
    repair_scan_free(repair->scan);
    n1_check_free(repair->n1);
    recovery_free(repair->recovery);
    things_free(repair->things);
    stored_free(repair->stored);
    g_free(repair);
}

static void repair_changed(struct watcher *watcher, const GPtrArray *changes)
{
    struct repair *repair = watcher->repair;
    repair_scan_changed(repair->scan, changes);
    n1_check_changed(repair->n1, changes);
    if (changes == NULL) /* it borrows from the copy that this one replaces */
        g_clear_pointer(&repair->sums, placement_sums_free);
}

/* --- duties --- */

static gboolean is_gone(gpointer uuid, gpointer watched, gpointer config)
{
    return config_get(config, "instance", uuid, NULL) == NULL;
}

static void take_in(struct watcher *watcher)
{
    g_hash_table_foreach_remove(watcher->repair->instances, is_gone,
                                (gpointer)follow_config(watcher->follow));
    watcher_evidence_update(watcher);
}

static bool is_unwell(struct watcher *watcher, const struct instance *instance)
{
    struct repair *repair = watcher->repair;
    if (repair->policies == NULL)
        repair->policies =
            repair_policies_new(follow_config(watcher->follow), watcher_now(watcher));
    return !repair_case_is_well(watcher, repair->policies, instance);
}

static void repair_those(struct watcher *watcher, const GPtrArray *uuids)
{
    g_clear_pointer(&watcher->repair->policies, repair_policies_free);
    watcher_repair(watcher, uuids);
}

static void recover_those(struct watcher *watcher, const GPtrArray *uuids)
{
    recovery_run(watcher->repair->recovery, watcher, uuids);
}

static void recover_stored(struct watcher *watcher)
{
    stored_run(watcher->repair->stored, watcher);
}

static void look_for_things(struct watcher *watcher)
{
    things_run(watcher->repair->things, watcher);
}

static bool is_stuck(struct watcher *watcher, const struct instance *instance)
{
    return recovery_concerns(watcher, instance);
}

static const struct watcher_duty rows[] = {
    {DUE_ALWAYS, take_in},
    {DUE_ALWAYS, watcher_tell_silent_nodes},
    {DUE_ALWAYS, watcher_tell_clock},
    {DUE_ALWAYS, watcher_tell_fullness},
    {DUE_REPAIR, watcher_scan},
    {DUE_TEND, .concerns = is_stuck, .run_for = recover_those},
    {DUE_TEND, recover_stored},
    {DUE_TEND, look_for_things},
    {DUE_TEND, .concerns = watcher_in_trouble, .run_for = watcher_tend},
    {DUE_REPAIR, .concerns = is_unwell, .run_for = repair_those},
    {DUE_REPAIR, watcher_n1_check},
    {DUE_REPAIR, watcher_tend_candidates},
    {DUE_ALWAYS, watcher_register_services},
};

const struct watcher_duties repair_duties = {
    .rows = rows,
    .count = G_N_ELEMENTS(rows),
    .make = repair_new,
    .free = repair_free,
    .changed = repair_changed,
};

json_t *repair_plan_recovery(const struct env *env, struct follow *follow,
                             const struct recovery_question *question)
{
    struct watcher *view = watcher_view(env, follow, &repair_duties);
    json_t *plan = NULL;
    if (view != NULL && watcher_cluster(view) != NULL) {
        take_in(view);
        plan = recovery_plan(view, watcher_keeps_recovery_off, question);
    }
    watcher_view_free(view);
    return plan;
}
