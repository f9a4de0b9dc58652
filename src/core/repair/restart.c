/*
 * What needs no policy: guests that should run, whose node is there, and that do not. See
 * docs/design/procedures.md, "Watcher".
 */
#include "core/config/fault.h"
#include "core/repair/repair_private.h"

#include "core/report/faults.h"

enum trouble {
    TROUBLE_NONE,
    TROUBLE_DOWN,         /* should run, its node is there, and it does not */
    TROUBLE_SWITCHED_OFF, /* the guest shut itself down */
    TROUBLE_HELD,         /* should be down, and is; but it was not closed */
    TROUBLE_OVER,         /* it runs again: to be put on record */
};

static bool suspended(const struct watcher *watcher, const struct instance *instance)
{
    return repair_policy_of(follow_config(watcher->follow), instance, watcher_now(watcher)).kind ==
           REPAIR_POLICY_SUSPENDED;
}

static void give_up(struct watcher *watcher, const struct instance *instance, bool held)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    struct decision *decision =
        decision_about_instance(instance, TEND_AUTHOR, VERDICT_LEAVE, held ? "Held" : "Down");
    if (held)
        decision_set(&decision->summary,
                     "It is to be down, and does not run, but its last run is not closed; %d tries "
                     "did not help. Look at its last jobs, then: fettle instance shutdown %s.",
                     LIMIT_REPAIR_TRIES, instance->name);
    else
        decision_set(&decision->summary,
                     "It should run and does not; %d starts did not help. Look at its last jobs, "
                     "then start it by hand: fettle instance startup %s.",
                     LIMIT_REPAIR_TRIES, instance->name);
    watcher_record(watcher, decision, changes);
    watcher_commit(watcher, changes);
}

static struct decision *decide_restart(const struct watcher *watcher,
                                       const struct instance *instance, enum trouble trouble)
{
    const char *node = config_node_name(follow_config(watcher->follow), instance->primary_node);
    bool switched_off = trouble == TROUBLE_SWITCHED_OFF, held = trouble == TROUBLE_HELD;
    struct decision *decision = decision_about_instance(instance, TEND_AUTHOR, VERDICT_ACT,
                                                        switched_off ? "Switched off"
                                                        : held       ? "Held"
                                                                     : "Down");
    decision_set(&decision->summary, "%s",
                 switched_off ? "The guest switched itself off; it is closed as stopped."
                 : held       ? "It is to be down, and does not run, but its last run was not "
                                "closed; it is closed."
                        : "It should run and its node is up, but it does not; it is started.");
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("%s reports that generation %" G_GUINT64_FORMAT " %s", node,
                                    instance->generation,
                                    switched_off ? "has switched itself off" : "does not run"));
    return decision;
}

/* Nothing comes of a start where nothing can be started (SAF-92), and it uses up no try. */
static bool wait_for_node(struct watcher *watcher, const struct instance *instance, bool held)
{
    const struct node_report *report = reports_of(watcher->reports, instance->primary_node);
    const char *node = config_node_name(follow_config(watcher->follow), instance->primary_node);
    const char *why = report != NULL ? faults_forbids(report, false) : NULL;
    if (why == NULL)
        return false;
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    struct decision *decision =
        decision_about_instance(instance, TEND_AUTHOR, VERDICT_WAIT, held ? "Held" : "Down");
    if (held)
        decision_set(&decision->summary,
                     "It is to be down, and does not run, but its last run was not closed, and its "
                     "node %s %s; it is closed when that is over.",
                     node, why);
    else
        decision_set(
            &decision->summary,
            "It should run and does not, but its node %s %s; it is started when that is over.",
            node, why);
    watcher_record(watcher, decision, changes);
    watcher_commit(watcher, changes);
    return true;
}

/* By the time that it runs somebody may have started it, or may want it to be down (SAF-83). */
static json_t *opcodes_of(const struct instance *instance, bool starts)
{
    json_t *opcodes =
        watcher_opcode(starts ? "OP_INSTANCE_STARTUP" : "OP_INSTANCE_SHUTDOWN", instance);
    g_autofree char *still = g_strdup_printf("/0/%" G_GUINT64_FORMAT, instance->generation);
    json_object_set_new(json_array_get(opcodes, 0), "if_task", json_string(still));
    return opcodes;
}

/* Starts what is down, or closes what has ended. */
static void restart(struct watcher *watcher, const struct instance *instance, enum trouble trouble)
{
    bool starts = trouble == TROUBLE_DOWN;
    struct watched *watched = watcher_watched(watcher, instance->uuid);
    if (tries_under_way(watcher, &watched->restarts) ||
        watcher_repair_under_way(watcher, instance) ||
        (trouble != TROUBLE_SWITCHED_OFF &&
         wait_for_node(watcher, instance, trouble == TROUBLE_HELD)))
        return;
    if (watched->restart_generation != 0 && instance->generation > watched->restart_generation + 2)
        tries_forget(&watched->restarts); /* it has run in between: these are new troubles */
    if (watched->restarts.count >= LIMIT_REPAIR_TRIES) {
        give_up(watcher, instance, trouble == TROUBLE_HELD);
        return;
    }
    g_autofree char *prefix =
        g_strdup_printf("restart/%s/%" G_GUINT64_FORMAT, instance->uuid, instance->generation);
    g_autofree char *request_id = tries_request(watcher, &watched->restarts, prefix);
    if (request_id == NULL || !tries_next(watcher, &watched->restarts))
        return;
    watched->restart_generation = instance->generation;
    tries_submitted(&watched->restarts,
                    watcher_act(watcher, decide_restart(watcher, instance, trouble),
                                opcodes_of(instance, starts), request_id, 0));
}

/* It runs: what was on record about it is over. */
static void record_over(struct watcher *watcher, const struct instance *instance)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    struct decision *decision =
        decision_about_instance(instance, TEND_AUTHOR, VERDICT_DONE, "Running");
    decision_set(&decision->summary, "It runs as it should.");
    watcher_record(watcher, decision, changes);
    watcher_commit(watcher, changes);
}

/* --- the pass --- */

static enum trouble trouble_running(const struct watcher *watcher, const struct instance *instance)
{
    struct watched *watched = g_hash_table_lookup(watcher->repair->instances, instance->uuid);
    if (watched != NULL)
        tries_forget(&watched->restarts);
    return decisions_open(watcher->decisions, instance->uuid, TEND_AUTHOR) ? TROUBLE_OVER
                                                                           : TROUBLE_NONE;
}

/* What is down and to be up. It is auto-repair's, as its policy says, if another node alone has its
 * data; and nothing comes of a start, try after try, while the disks of its node fail. */
static enum trouble trouble_down(struct watcher *watcher, const struct instance *instance)
{
    return watcher_disks_fail(watcher, instance) || watcher_leaves_primary(watcher, instance)
               ? TROUBLE_NONE
               : TROUBLE_DOWN;
}

/* A stop that failed after its guest had ended, or a guest that ended under one: until that is on
 * record nobody knows how its images are, and its replica stays what it was. */
static enum trouble trouble_held(const struct watcher *watcher, const struct instance *instance)
{
    bool reported = false;
    if (*instance->holder == '\0' || !watcher_node_online(watcher, instance->primary_node))
        return TROUBLE_NONE;
    const struct guest_report *guest = watcher_guest(watcher, instance, &reported);
    return reported && (guest == NULL || (!guest->late && watcher_guest_absent(instance, guest)))
               ? TROUBLE_HELD
               : TROUBLE_NONE;
}

/* Waits for nothing, and is cheap for an instance that is well. */
static enum trouble find_trouble(struct watcher *watcher, const struct instance *instance)
{
    bool reported = false;
    /* Recovery's, or a person's (SAF-84). */
    if (fault_mark(follow_config(watcher->follow), instance, NULL) != TASK_NONE)
        return TROUBLE_NONE;
    if (instance->admin_state != ADMIN_UP)
        return trouble_held(watcher, instance);
    const struct guest_report *guest = watcher_guest(watcher, instance, &reported);
    if (guest != NULL && guest->late)
        return TROUBLE_NONE; /* what it was is no news; it is there (SAF-90) */
    if (guest != NULL && guest->state == GUEST_RUNNING)
        return trouble_running(watcher, instance);
    if (!reported || !watcher_node_online(watcher, instance->primary_node))
        return TROUBLE_NONE;
    if (watcher_guest_absent(instance, guest))
        return trouble_down(watcher, instance);
    return guest->state == GUEST_SHUTDOWN ? TROUBLE_SWITCHED_OFF : TROUBLE_NONE;
}

static void tend_one(struct watcher *watcher, const char *uuid)
{
    guint64 version = 0;
    const struct instance *now =
        config_get(follow_config(watcher->follow), "instance", uuid, &version);
    /* A report that is older than the record proves nothing about it. */
    if (now == NULL || version > watcher->reports_serial)
        return;
    enum trouble trouble = find_trouble(watcher, now);
    if (trouble == TROUBLE_NONE || (trouble != TROUBLE_OVER && suspended(watcher, now)))
        return;
    /* Commits and submissions wait, and the copy may change meanwhile. */
    record_autoptr(instance) instance = instance_copy(now);
    if (trouble == TROUBLE_OVER)
        record_over(watcher, instance);
    else
        restart(watcher, instance, trouble);
}

bool watcher_in_trouble(struct watcher *watcher, const struct instance *instance)
{
    return find_trouble(watcher, instance) != TROUBLE_NONE;
}

void watcher_tend(struct watcher *watcher, const GPtrArray *uuids)
{
    /* Older than reality: what looks down may run, and what looks interrupted may be done. */
    if (watcher_is_restored(watcher))
        return;
    for (guint i = 0; i < uuids->len && !task_killed(); i++)
        tend_one(watcher, uuids->pdata[i]);
}
