/* What recovery promises (docs/design/recovery.md; SAF-80, SAF-81, RCV-32, RCV-41), of every commit
 * and of every request to a node daemon; and what of it has happened. See sim.h. */
#include "sim_private.h"

#include <string.h>

#include "core/config/fault.h"

#define RECOVERY "watcher/recovery"
#define GIVEN_UP "has been given up for instance"

struct counted {
    guint64 looks, alerts;
};

struct sim_recovery {
    GHashTable *told;    /* "UUID TASK OWNER OLD NEW" of events */
    GHashTable *counted; /* "UUID TASK OWNER" -> struct counted, the most that were on record */
    GHashTable *doors;   /* "NODE UUID JOB EPOCH" that a node has said it refuses */
    guint looking;       /* `collect` that node daemons are at */
    struct sim_recovery_counts counts;
};

struct sim_recovery *sim_recovery_new(void)
{
    struct sim_recovery *recovery = g_new0(struct sim_recovery, 1);
    recovery->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    recovery->counted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    recovery->doors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return recovery;
}

void sim_recovery_free(struct sim_recovery *recovery)
{
    g_hash_table_unref(recovery->told);
    g_hash_table_unref(recovery->counted);
    g_hash_table_unref(recovery->doors);
    g_free(recovery);
}

const struct sim_recovery_counts *sim_recovery_counts(const struct sim *sim)
{
    return &sim->recovery->counts;
}

bool sim_recovery_looks(const struct sim *sim)
{
    return sim->recovery->looking > 0;
}

/* --- commits --- */

/* By what really is: its process is there, and nobody has on record that it has ended. */
static bool owner_lives(const struct sim *sim, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(sim->mirror, "job", key, NULL);
    return job != NULL && !sim_is_final(job->status) && sim_job_runs(sim, id);
}

/* Of one that waits in the queue, too. */
static bool owner_is_queued(const struct sim *sim, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(sim->mirror, "job", key, NULL);
    return job != NULL && !sim_is_final(job->status) && !job->started;
}

static bool changes_instance(const GPtrArray *changes, guint first, guint end, const char *uuid)
{
    bool found = false;
    for (guint i = first; i < end && !found; i++) {
        const struct change *change = changes->pdata[i];
        found = strcmp(change->kind, "instance") == 0 && strcmp(change->key, uuid) == 0;
    }
    return found;
}

/* RCV-32: what is told once stays told, whatever dies in between. */
static void check_told_once(struct sim *sim, const struct decision *decision, guint64 owner)
{
    char *key = g_strdup_printf("%s %s %" G_GUINT64_FORMAT " %s %s", decision->subject,
                                decision->task, owner, decision->old, decision->new);
    if (!g_hash_table_add(sim->recovery->told, key))
        sim_find(sim,
                 "that %s went from %s to %s, %s for job %" G_GUINT64_FORMAT
                 ", is told a second time",
                 decision->subject_name, decision->old, decision->new, decision->task, owner);
}

static void check_event(struct sim *sim, const GPtrArray *changes, guint first, guint end,
                        const struct decision *decision)
{
    const struct instance *before = config_get(sim->mirror, "instance", decision->subject, NULL);
    struct sim_recovery_counts *counts = &sim->recovery->counts;
    if (before == NULL) {
        sim_find(sim, "recovery tells of %s, which is not there", decision->subject_name);
        return;
    }
    const struct fault *fault = fault_of(sim->mirror, "instance", before->uuid);
    guint64 owner = before->task_state != TASK_NONE ? before->task_owner
                    : fault != NULL                 ? fault->owner
                                                    : 0;
    bool finishes = strcmp(decision->new, "finishing") == 0;
    if (owner_lives(sim, owner) || owner_is_queued(sim, owner))
        sim_find(sim, "recovery changes %s, whose owner, job %" G_GUINT64_FORMAT ", lives (SAF-80)",
                 before->name, owner);
    if (before->task_state == TASK_NONE && fault == NULL)
        sim_find(sim, "recovery tells of %s, which has no task", before->name);
    if (!finishes && !changes_instance(changes, first, end, before->uuid))
        sim_find(sim, "recovery tells of %s, and does not change it", before->name);
    if (fault == NULL || !fault->again) /* a person who asks again is told again */
        check_told_once(sim, decision, owner);
    counts->finishing += finishes;
    counts->blind +=
        !finishes && strcmp(decision->new, "error") == 0 && strcmp(decision->rule, "RCV-39") == 0;
    counts->errors += !finishes && strcmp(decision->new, "error") == 0;
    counts->settled += !finishes && strcmp(decision->new, "error") != 0;
    counts->taken_back += !finishes && fault != NULL && fault->blind;
}

/* RCV-41: whatever dies or is restarted, for one task they only rise. */
static void check_counted(struct sim *sim, const struct stuck *stuck)
{
    g_autofree char *key =
        g_strdup_printf("%s %s %" G_GUINT64_FORMAT, stuck->subject, stuck->task, stuck->owner);
    struct counted *most = g_hash_table_lookup(sim->recovery->counted, key);
    if (most == NULL) {
        most = g_new0(struct counted, 1);
        g_hash_table_insert(sim->recovery->counted, g_strdup(key), most);
    }
    if (stuck->looks < most->looks || stuck->alerts < most->alerts)
        sim_find(sim, "looks and alerts of %s fall to %" G_GUINT64_FORMAT " and %" G_GUINT64_FORMAT,
                 key, stuck->looks, stuck->alerts);
    sim->recovery->counts.looks += stuck->looks > most->looks;
    sim->recovery->counts.alerts += stuck->alerts > most->alerts;
    *most = (struct counted){stuck->looks, stuck->alerts};
}

static void check_change(struct sim *sim, const GPtrArray *changes, guint first, guint end,
                         const struct change *change)
{
    if (change->op != CHANGE_PUT)
        return;
    if (strcmp(change->kind, "stuck") == 0) {
        record_autoptr(stuck) stuck = stuck_parse(change->object, RECORD_KEEP, NULL);
        check_counted(sim, stuck);
    }
    if (strcmp(change->kind, "decision") != 0 ||
        config_get(sim->mirror, "decision", change->key, NULL) != NULL)
        return;
    record_autoptr(decision) decision = decision_parse(change->object, RECORD_KEEP, NULL);
    if (decision->event == EVENT_RECOVERED && strcmp(decision->author, RECOVERY) == 0)
        check_event(sim, changes, first, end, decision);
}

void sim_check_recovery(struct sim *sim, const GPtrArray *changes, guint first, guint end)
{
    for (guint i = first; i < end; i++)
        check_change(sim, changes, first, end, changes->pdata[i]);
}

/* What is counted of a task goes with it, and not before: after the commit. */
void sim_check_stuck(struct sim *sim, const GPtrArray *changes, guint first, guint end)
{
    for (guint i = first; i < end; i++) {
        const struct change *change = changes->pdata[i];
        if (strcmp(change->kind, "stuck") != 0 || change->op != CHANGE_DELETE)
            continue;
        const char *uuid = change->key + strlen("instance/");
        const struct instance *after = config_get(sim->mirror, "instance", uuid, NULL);
        if (after == NULL || after->task_state == TASK_NONE)
            continue;
        g_autofree char *key = g_strdup_printf("%s %s %" G_GUINT64_FORMAT, uuid,
                                               enum_word(&task_state_words, (int)after->task_state),
                                               after->task_owner);
        const struct counted *most = g_hash_table_lookup(sim->recovery->counted, key);
        if (most != NULL && most->looks > 0)
            sim_find(sim, "what was counted of %s is forgotten, and it still is %s", after->name,
                     enum_word(&task_state_words, (int)after->task_state));
    }
}

/* --- what the watcher commits --- */

static const char *text_of(const json_t *json, const char *member)
{
    const char *text = json_string_value(json_object_get(json, member));
    return text != NULL ? text : "";
}

static guint count_told(const json_t *changes, const char *uuid)
{
    size_t i;
    const json_t *change;
    guint count = 0;
    json_array_foreach(changes, i, change) {
        const json_t *object = json_object_get(change, "object");
        count += strcmp(text_of(change, "kind"), "decision") == 0 &&
                 strcmp(text_of(object, "subject"), uuid) == 0 &&
                 strcmp(text_of(object, "author"), RECOVERY) == 0 &&
                 strcmp(text_of(object, "event"), "recovered") == 0;
    }
    return count;
}

/* RCV-27: no change of a record without its event, and no second one. */
void sim_check_recover(struct sim *sim, const struct rpc_request *request)
{
    if (strcmp(request->name, "recover") != 0)
        return;
    const json_t *changes = json_object_get(request->args, "changes"), *change;
    size_t i;
    json_array_foreach(changes, i, change) {
        const char *uuid = text_of(change, "key");
        if (strcmp(text_of(change, "kind"), "instance") == 0 && count_told(changes, uuid) != 1)
            sim_find(sim, "recovery changes instance %s, and tells it %u times", uuid,
                     count_told(changes, uuid));
    }
}

/* --- requests to node daemons --- */

/* One from its arrival to its answer. */
struct asking {
    struct sim *sim;
    char *node, *instance; /* of the latter NULL: of none, or of many */
    json_t *args;
    guint64 job;
    struct stamp stamp;
    bool closed, looks;
    void (*answer)(struct rpc_request *request, json_t *result, const GError *error);
    void *carrier;
};

static char *door_of(const struct asking *asking, const char *instance, guint64 job)
{
    return g_strdup_printf("%s %s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, asking->node, instance,
                           job, asking->stamp.epoch);
}

static void close_doors(const struct asking *asking)
{
    size_t i;
    const json_t *subject;
    json_array_foreach(json_object_get(asking->args, "subjects"), i, subject) {
        guint64 job = (guint64)json_integer_value(json_object_get(subject, "dead_job"));
        if (job != 0)
            g_hash_table_add(asking->sim->recovery->doors,
                             door_of(asking, text_of(subject, "instance"), job));
    }
}

static void answer(struct rpc_request *request, json_t *result, const GError *error)
{
    struct asking *asking = request->carrier;
    struct sim *sim = asking->sim;
    request->answer = asking->answer;
    request->carrier = asking->carrier;
    sim->recovery->looking -= asking->looks;
    if (asking->looks && error == NULL)
        close_doors(asking);
    sim->recovery->counts.refused += error != NULL && strstr(error->message, GIVEN_UP) != NULL;
    if (asking->closed && error == NULL)
        sim_find(sim,
                 "%s does %s for job %" G_GUINT64_FORMAT
                 " about %s, which it had given up (SAF-81)",
                 sim_node_name(sim, asking->node), request->name, asking->job, asking->instance);
    json_decref(asking->args);
    g_free(asking->node);
    g_free(asking->instance);
    g_free(asking);
    request->answer(request, result, error);
}

void sim_check_asking(struct sim *sim, const struct sim_node *node, struct rpc_request *request)
{
    bool looks = strcmp(request->name, "collect") == 0;
    if (strcmp(request->from_role, ROLE_WATCHER) == 0 && !looks &&
        strcmp(request->name, "node_report") != 0 && strcmp(request->name, "list_strays") != 0)
        sim_find(sim, "the watcher asks %s for %s (RCV-22)", node->name, request->name);
    const json_t *about = json_object_get(request->args, "instance");
    const char *instance =
        json_is_object(about) ? text_of(about, "uuid") : json_string_value(about);
    if (!looks && (instance == NULL || request->from_job == 0))
        return;
    struct asking *asking = g_new0(struct asking, 1);
    *asking = (struct asking){.sim = sim,
                              .node = g_strdup(node->uuid),
                              .instance = g_strdup(instance),
                              .args = json_incref(request->args),
                              .job = request->from_job,
                              .stamp = request->stamp,
                              .looks = looks,
                              .answer = request->answer,
                              .carrier = request->carrier};
    if (instance != NULL) {
        g_autofree char *door = door_of(asking, instance, request->from_job);
        asking->closed = g_hash_table_contains(sim->recovery->doors, door);
    }
    sim->recovery->looking += looks;
    request->answer = answer;
    request->carrier = asking;
}
