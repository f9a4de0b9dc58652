/* See restored.h. */
#include "core/config/restored.h"
#include "core/config/unheard.h"
#include "proto/change.h"

#include <string.h>

const struct repair_brake *restored_brake(const struct config *config)
{
    const struct repair_brake *brake = config_get(config, "repair_brake", BRAKE_KEY, NULL);
    return brake && brake->restored ? brake : NULL;
}

/* --- steps --- */

enum restored_step restored_step(const struct step *step)
{
    const struct repair_brake *before = step_before(step, "repair_brake", BRAKE_KEY);
    if (!before || !before->restored)
        return RESTORED_NOT;
    return config_get(step->after, "repair_brake", BRAKE_KEY, NULL) ? RESTORED_HOLDS
                                                                    : RESTORED_ENDS;
}

void restored_set_error(GError **error)
{
    fettle_set_error(error, WRONG_STATE,
                     "the configuration was restored from a backup and is not compared with the "
                     "nodes yet, so nothing starts, stops or moves: look at `fettle cluster "
                     "verify`, then say `fettle repair continue`");
}

bool restored_instance_rests(const struct instance *old, const struct instance *new, GError **error)
{
    bool rests = old ? new && old->generation == new->generation &&
                           !strcmp(old->holder, new->holder) &&
                           !strcmp(old->primary_node, new->primary_node) &&
                           !strcmp(old->migration, new->migration)
                     : new->generation == 0 && !*new->holder;
    if (rests)
        return true;
    restored_set_error(error);
    return false;
}

/* --- what a restore commits --- */

static bool is_final(const char *status)
{
    return !strcmp(status, "success") || !strcmp(status, "error") || !strcmp(status, "canceled");
}

static void end_job(GPtrArray *changes, const struct config *config, const struct job *job,
                    guint64 now)
{
    static const char reason[] = "the cluster was restored from a backup while this job was not "
                                 "over; whether it ran to its end is unknown";
    record_autoptr(job) ended = job_copy(job);
    for (guint i = 0; i < ended->ops->len; i++) {
        struct job_op *op = ended->ops->pdata[i];
        if (is_final(op->status))
            continue;
        text_set(&op->status, "error");
        json_decref(op->result);
        op->result = json_string(reason);
        op->end_us = now * G_USEC_PER_SEC;
    }
    text_set(&ended->status, "error");
    ended->end_us = now * G_USEC_PER_SEC;
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, job->id);
    g_ptr_array_add(changes, config_put(config, "job", key, job_to_json(ended)));
}

static void end_jobs(GPtrArray *changes, const struct config *config, guint64 now)
{
    g_autoptr(GPtrArray) jobs = config_list(config, "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        if (!is_final(job->status))
            end_job(changes, config, job, now);
    }
}

/* Ids that were given out after the backup are never given out again: their files and what they
 * asked of nodes may still be there. */
static void pass_over_ids(GPtrArray *changes, const struct config *config)
{
    const struct counter *counter = config_get(config, "counter", "job", NULL);
    if (!counter)
        return;
    const struct counter further = {.value = counter->value + RESTORE_JOB_GAP};
    g_ptr_array_add(changes, config_put(config, "counter", "job", counter_to_json(&further)));
}

/* The new master, and what it does not know of the others. */
static void put_nodes(GPtrArray *changes, const struct config *config, const char *master,
                      guint64 taken)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        json_t *object = unheard_node(config, node, taken);
        json_object_set_new(object, "keys_missed", json_false());
        json_object_set_new(object, "key_hash", json_string("")); /* as with the authority */
        if (!strcmp(node->uuid, master)) {
            json_object_set_new(object, "master_candidate", json_true());
            json_object_set_new(object, "offline", json_false());
        }
        g_ptr_array_add(changes, config_put(config, "node", node->uuid, object));
    }
}

static bool make_master(GPtrArray *changes, const struct config *config,
                        const struct restoring *restoring, GError **error)
{
    const char *node_uuid = restoring->node_uuid;
    const struct cluster *now = config_cluster(config);
    if (!now) {
        fettle_set_error(error, CORRUPT, "the backup has no cluster in it");
        return false;
    }
    if (!config_get(config, "node", node_uuid, NULL)) {
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "this host (node %s) is no node of the cluster in the backup; restore it "
                         "on one that was a node then",
                         node_uuid);
        return false;
    }
    record_autoptr(cluster) cluster = cluster_copy(now);
    text_set(&cluster->master_node, node_uuid);
    cluster->engine = ENGINE_KIND_SQLITE; /* which this store is now */
    /* Whom nodes trust they know better than a record of before. */
    text_set(&cluster->authority, "");
    text_set(&cluster->etcd_authority, "");
    cluster->renewal = RENEWAL_NONE;
    g_ptr_array_add(changes, config_put(config, "cluster", now->uuid, cluster_to_json(cluster)));
    put_nodes(changes, config, node_uuid, restoring->taken);
    return true;
}

static void put_secret(GPtrArray *changes, const struct config *config, const char *value)
{
    const struct secret secret = {.value = (char *)value};
    if (value)
        g_ptr_array_add(changes, config_put(config, "secret", "confd", secret_to_json(&secret)));
}

static void pull_brake(GPtrArray *changes, const struct config *config,
                       const struct restoring *restoring)
{
    const struct cluster *cluster = config_cluster(config);
    g_autofree char *taken = unheard_time(restoring->taken);
    record_autoptr(repair_brake) brake = repair_brake_new();
    record_autoptr(decision) decision = decision_new();
    g_free(brake->why);
    brake->why = g_strdup_printf("The configuration was restored from a backup of %s.", taken);
    brake->since = restoring->now;
    brake->restored = true;
    text_set(&decision->uuid, restoring->record_uuid);
    text_set(&decision->author, "person");
    text_set(&decision->subject_kind, "cluster");
    text_set(&decision->subject, cluster->uuid);
    text_set(&decision->subject_name, cluster->name);
    text_set(&decision->state, "Restored");
    text_set(&decision->summary, brake->why);
    text_set(&decision->next_check, "when a person says: fettle repair continue");
    decision->at_us = restoring->now * G_USEC_PER_SEC;
    decision->verdict = VERDICT_ACT;
    g_ptr_array_add(changes,
                    config_put(config, "repair_brake", BRAKE_KEY, repair_brake_to_json(brake)));
    g_ptr_array_add(changes,
                    config_put(config, "decision", decision->uuid, decision_to_json(decision)));
}

GPtrArray *restored_changes(const struct config *config, const struct restoring *restoring,
                            GError **error)
{
    g_autoptr(GPtrArray) changes = change_list_new();
    if (!make_master(changes, config, restoring, error))
        return NULL;
    end_jobs(changes, config, restoring->now);
    pass_over_ids(changes, config);
    put_secret(changes, config, restoring->secret);
    pull_brake(changes, config, restoring);
    return g_steal_pointer(&changes);
}
