/*
 * Auto-repair: brings every instance that needs it to pending as far as its policy allows, then
 * goes one step further with each pending one (requirements-auto-repair.md, sections 3 to 5). Every
 * act and every non-act leaves a record.
 */
#include "core/repair/patient.h"

/* Those that are not simply well. UUIDs, because the configuration changes while commits wait. */
static GPtrArray *select_patients(struct watcher *watcher)
{
    GPtrArray *uuids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) instances = config_list(follow_config(watcher->follow), "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (!patient_is_well(watcher, instance))
            g_ptr_array_add(uuids, g_strdup(instance->uuid));
    }
    return uuids;
}

/* Returns those whose repair may go on. */
static GPtrArray *triage_all(struct watcher *watcher, const GPtrArray *uuids)
{
    GPtrArray *pending = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    for (guint i = 0; i < uuids->len; i++) {
        struct patient *patient = patient_examine(watcher, uuids->pdata[i]);
        GPtrArray *changes = watcher_changes_new();
        if (patient != NULL && repair_triage(watcher, patient, changes))
            g_ptr_array_add(pending, g_strdup(uuids->pdata[i]));
        watcher_batch_add(batch, changes);
        patient_free(patient);
    }
    watcher_batch_commit(watcher, batch);
    return pending;
}

void watcher_repair(struct watcher *watcher)
{
    g_autoptr(GPtrArray) uuids = select_patients(watcher);
    /* All new pending tags come before the first job (ARP-63). */
    g_autoptr(GPtrArray) pending = triage_all(watcher, uuids);
    for (guint i = 0; i < pending->len && !task_killed(); i++) {
        struct patient *patient = patient_examine(watcher, pending->pdata[i]);
        /* As it is now: somebody may have suspended it meanwhile. */
        if (patient != NULL && patient->pending->len > 0 && !patient->failed &&
            patient->policy.kind != REPAIR_POLICY_SUSPENDED)
            repair_treat(watcher, patient);
        patient_free(patient);
    }
}
