/*
 * Auto-repair: brings every instance that needs it to pending as far as its policy allows, then
 * goes one step further with each pending one (requirements-auto-repair.md, sections 3 to 5). Every
 * act and every non-act leaves a record. Each instance has jobs of its own: nothing is gained here
 * by grouping them (ARP-64), because the limits of brake.c count repairs and a job of many would
 * fail as a whole.
 */
#include "core/repair/repair_case.h"

/* Returns those whose repair may go on. */
static GPtrArray *triage_all(struct watcher *watcher, const GPtrArray *uuids)
{
    GPtrArray *pending = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    for (guint i = 0; i < uuids->len; i++) {
        struct repair_case *subject = repair_case_examine(watcher, uuids->pdata[i]);
        GPtrArray *changes = watcher_changes_new();
        if (subject != NULL && repair_triage(watcher, subject, changes))
            g_ptr_array_add(pending, g_strdup(uuids->pdata[i]));
        watcher_batch_add(batch, changes);
        repair_case_free(subject);
    }
    watcher_batch_commit(watcher, batch);
    return pending;
}

struct turn {
    guint urgency; /* 0: it is down until then */
    gint64 since;  /* of the oldest pending tag */
    char *uuid;
};

static void turn_free(void *data)
{
    struct turn *turn = data;
    g_free(turn->uuid);
    g_free(turn);
}

static gint by_urgency(gconstpointer a, gconstpointer b)
{
    const struct turn *left = *(const struct turn *const *)a;
    const struct turn *right = *(const struct turn *const *)b;
    if (left->urgency != right->urgency)
        return left->urgency < right->urgency ? -1 : 1;
    return left->since < right->since ? -1 : left->since > right->since;
}

/* Guests that are down come before moves, and before copies, which can take hours; then older
 * repairs, so that a limit holds up the younger ones; else the order stays. */
static GPtrArray *in_turn(struct watcher *watcher, const GPtrArray *pending)
{
    GPtrArray *turns = g_ptr_array_new_with_free_func(turn_free);
    for (guint i = 0; i < pending->len; i++) {
        struct repair_case *subject = repair_case_examine(watcher, pending->pdata[i]);
        if (subject != NULL && subject->pending->len > 0) {
            struct turn *turn = g_new(struct turn, 1);
            const struct record_tag *record = subject->pending->pdata[0];
            *turn = (struct turn){repair_step_urgency(subject->plan.step), record->tag.timestamp,
                                  g_strdup(pending->pdata[i])};
            g_ptr_array_add(turns, turn);
        }
        repair_case_free(subject);
    }
    g_ptr_array_sort(turns, by_urgency);
    return turns;
}

static void treat_all(struct watcher *watcher, const GPtrArray *pending)
{
    g_autoptr(GPtrArray) turns = in_turn(watcher, pending);
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    for (guint i = 0; i < turns->len && !task_killed(); i++) {
        const struct turn *turn = turns->pdata[i];
        struct repair_case *subject = repair_case_examine(watcher, turn->uuid);
        GPtrArray *changes = watcher_changes_new();
        /* As it is now: somebody may have suspended it meanwhile. */
        if (subject != NULL && subject->pending->len > 0 && !subject->failed &&
            subject->policy.kind != REPAIR_POLICY_SUSPENDED)
            repair_step_take(watcher, subject, changes);
        watcher_batch_add(batch, changes);
        repair_case_free(subject);
    }
    if (!task_killed())
        watcher_batch_commit(watcher, batch);
}

void watcher_repair(struct watcher *watcher, const GPtrArray *uuids)
{
    watcher_brake(watcher);
    /* All new pending tags come before the first job (ARP-63). */
    g_autoptr(GPtrArray) pending = triage_all(watcher, uuids);
    treat_all(watcher, pending);
    g_clear_pointer(&watcher->repair->sums, placement_sums_free);
}
