/*
 * What needs no policy: marks that dead jobs left on instances, and guests that should run, whose
 * node is there, and that do not. See docs/design/procedures.md, "Watcher".
 */
#include "core/repair/watcher_internal.h"

#define AUTHOR "watcher/tend"

static json_t *opcode_for(const char *id, const struct instance *instance)
{
    return json_make("{ssss}", "OP_ID", id, "instance_name", instance->name);
}

/* Puts the decision on record, then submits; the order makes a crash in between repeat the same
 * submission. */
static guint64 act(struct watcher *watcher, struct decisions *decisions, struct decision *decision,
                   json_t *opcode, const char *request_id, gint64 since)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func((GDestroyNotify)change_free);
    g_autofree char *summary = g_strdup(decision->summary);
    decisions_record(decisions, watcher->env, decision, changes);
    if (changes->len > 0 && !watcher_commit(watcher, changes)) {
        json_decref(opcode);
        return 0;
    }
    g_autoptr(GError) error = NULL;
    return watcher_submit(watcher, opcode, request_id, summary, since, &error);
}

static const char *mending_opcode(const struct instance *instance)
{
    if (instance->task_state == TASK_CREATING || instance->task_state == TASK_REMOVING)
        return "OP_INSTANCE_REMOVE";
    return instance->admin_state == ADMIN_UP ? "OP_INSTANCE_STARTUP" : "OP_INSTANCE_SHUTDOWN";
}

/* A mark whose job has ended is finished or undone by a job of its own. */
static void mend_mark(struct watcher *watcher, struct decisions *decisions,
                      const struct instance *instance)
{
    g_autofree char *message = NULL;
    struct watched *watched = watcher_watched(watcher, instance->uuid);
    if (watcher_job_outcome(watcher, instance->task_owner, &message) == JOB_UNDER_WAY)
        return;
    if (watched->restart_job != 0 &&
        watcher_job_outcome(watcher, watched->restart_job, &message) == JOB_UNDER_WAY)
        return;
    const struct node *primary =
        config_get(follow_config(watcher->follow), "node", instance->primary_node, NULL);
    const char *opcode = mending_opcode(instance);
    if ((primary == NULL || primary->offline) && !g_str_equal(opcode, "OP_INSTANCE_REMOVE"))
        return; /* auto-repair's business: the node is dead */
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (watched->restart_generation != instance->generation) {
        watched->restart_generation = instance->generation;
        watched->restart_tries = 0;
        watched->restart_after_ms = 0;
    }
    if (watched->restart_after_ms > now_ms)
        return;
    watched->restart_tries++;
    watched->restart_after_ms =
        now_ms + 1000 * (G_GINT64_CONSTANT(1) << MIN(watched->restart_tries, 6));
    struct decision *decision =
        decision_about_instance(instance, AUTHOR, VERDICT_ACT, "Interrupted");
    g_free(decision->summary);
    decision->summary = g_strdup_printf(
        "Job %" G_GUINT64_FORMAT " ended while %s it; %s brings it to a known state.",
        instance->task_owner, enum_word(&task_state_words, (int)instance->task_state), opcode);
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("task_state is %s and its job has ended",
                                    enum_word(&task_state_words, (int)instance->task_state)));
    g_autofree char *request_id =
        g_strdup_printf("mend/%s/%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT "/%u", instance->uuid,
                        instance->task_owner, instance->generation, watched->restart_tries);
    json_t *body = opcode_for(opcode, instance);
    if (g_str_equal(opcode, "OP_INSTANCE_REMOVE"))
        json_object_set_new(body, "shutdown_timeout", json_integer(0));
    watched->restart_job =
        act(watcher, decisions, decision, body, request_id, (gint64)instance->task_since);
}

static bool may_restart(struct watcher *watcher, const struct instance *instance,
                        struct watched *watched)
{
    g_autofree char *message = NULL;
    const struct config *config = follow_config(watcher->follow);
    const struct node *primary = config_get(config, "node", instance->primary_node, NULL);
    if (primary == NULL || primary->offline)
        return false;
    if (repair_policy_of(config, instance, watcher_now(watcher)).kind == REPAIR_POLICY_SUSPENDED)
        return false;
    return watched->restart_job == 0 ||
           watcher_job_outcome(watcher, watched->restart_job, &message) != JOB_UNDER_WAY;
}

static void give_up(struct watcher *watcher, struct decisions *decisions,
                    const struct instance *instance)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func((GDestroyNotify)change_free);
    struct decision *decision = decision_about_instance(instance, AUTHOR, VERDICT_LEAVE, "Down");
    g_free(decision->summary);
    decision->summary = g_strdup_printf(
        "It should run and does not; %d starts did not help. Look at its last jobs, "
        "then start it by hand: fettle instance startup %s.",
        LIMIT_REPAIR_TRIES, instance->name);
    if (decisions_record(decisions, watcher->env, decision, changes))
        watcher_commit(watcher, changes);
}

/* Should run, its node is there, and it does not run. */
static void restart(struct watcher *watcher, struct decisions *decisions,
                    const struct instance *instance, bool switched_off)
{
    struct watched *watched = watcher_watched(watcher, instance->uuid);
    if (!may_restart(watcher, instance, watched))
        return;
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (watched->restart_generation != 0 && instance->generation > watched->restart_generation + 2)
        watched->restart_tries = 0; /* it has run in between: these are new troubles */
    if (watched->restart_tries >= LIMIT_REPAIR_TRIES) {
        give_up(watcher, decisions, instance);
        return;
    }
    if (watched->restart_after_ms > now_ms)
        return;
    watched->restart_generation = instance->generation;
    watched->restart_tries++;
    watched->restart_after_ms =
        now_ms + 1000 * (G_GINT64_CONSTANT(1) << MIN(watched->restart_tries, 6));
    struct decision *decision = decision_about_instance(instance, AUTHOR, VERDICT_ACT,
                                                        switched_off ? "Switched off" : "Down");
    g_free(decision->summary);
    decision->summary = g_strdup(
        switched_off ? "The guest switched itself off; it is closed as stopped."
                     : "It should run and its node is up, but it does not; it is started.");
    g_ptr_array_add(
        decision->evidence,
        g_strdup_printf("%s reports that generation %" G_GUINT64_FORMAT " %s",
                        config_node_name(follow_config(watcher->follow), instance->primary_node),
                        instance->generation,
                        switched_off ? "has switched itself off" : "does not run"));
    g_autofree char *request_id =
        g_strdup_printf("restart/%s/%" G_GUINT64_FORMAT "/%u", instance->uuid, instance->generation,
                        watched->restart_tries);
    watched->restart_job =
        act(watcher, decisions, decision,
            opcode_for(switched_off ? "OP_INSTANCE_SHUTDOWN" : "OP_INSTANCE_STARTUP", instance),
            request_id, 0);
}

void watcher_tend(struct watcher *watcher, struct decisions *decisions)
{
    /* Committing brings the copy up to date, so the list must not borrow from it. */
    g_autoptr(GPtrArray) uuids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) instances = config_list(follow_config(watcher->follow), "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (instance->task_state != TASK_NONE || instance->admin_state == ADMIN_UP)
            g_ptr_array_add(uuids, g_strdup(instance->uuid));
    }
    for (guint i = 0; i < uuids->len; i++) {
        guint64 version = 0;
        const struct instance *now =
            config_get(follow_config(watcher->follow), "instance", uuids->pdata[i], &version);
        if (now == NULL || version > watcher->reports_serial)
            continue;
        /* Commits and submissions wait, and the copy may change meanwhile. */
        record_autoptr(instance) instance = instance_copy(now);
        if (instance->task_state != TASK_NONE) {
            mend_mark(watcher, decisions, instance);
            continue;
        }
        bool reported = false;
        const struct guest_report *guest = watcher_guest(watcher, instance, &reported);
        if (instance->admin_state != ADMIN_UP || !reported)
            continue;
        bool switched_off = guest != NULL && guest->state == GUEST_SHUTDOWN;
        if (guest == NULL || switched_off)
            restart(watcher, decisions, instance, switched_off);
        else if (guest->state == GUEST_RUNNING &&
                 watcher_watched(watcher, instance->uuid)->restart_tries > 0)
            watcher_watched(watcher, instance->uuid)->restart_tries = 0;
    }
}
