/*
 * Marks that dead jobs left on instances: each is finished or undone by a job of the watcher's own.
 * Needs no policy. See docs/design/procedures.md, "Watcher".
 */
#include "core/repair/repair_private.h"

#include <string.h>

#include "proto/task_table.h"

/* How a mark is mended: an opcode that can be repeated, and what the record says of it. */
struct mending {
    const char *opcode, *word;
};

/* Of the opcodes that finish a task (proto/tasks.def) those that are about more than power. */
static const struct mending mendings[] = {
    {"OP_INSTANCE_SETTLE", "kept if it runs or is whole, else removed"},
    {"OP_INSTANCE_MIGRATE", "settled where it is"},
    {"OP_INSTANCE_GROW_DISK", "given the sizes on record"},
    {"OP_INSTANCE_RECREATE_DISKS", "given the disks that are there, or new ones"},
    {"OP_INSTANCE_REINSTALL", "installed again"},
};

/* `plainly`: only to a state that is known, whatever the dead job was about. */
static struct mending mending_of(const struct instance *instance, bool plainly)
{
    const char *mark = enum_word(&task_state_words, (int)instance->task_state);
    const struct task_row *task = plainly ? NULL : task_row_of(TASK_KIND_instance, mark);
    bool up = instance->admin_state == ADMIN_UP;
    for (guint i = 0; task && i < G_N_ELEMENTS(mendings); i++)
        if (strcmp(mendings[i].opcode, task->finisher) == 0)
            return mendings[i];
    return (struct mending){up ? "OP_INSTANCE_STARTUP" : "OP_INSTANCE_SHUTDOWN",
                            up ? "started" : "stopped"};
}

/* With the mark of a dead job it sees to every disk. */
static void add_growth(json_t *opcode, const struct disk *disk)
{
    json_object_set_new(opcode, "disk", json_integer(0));
    json_object_set_new(opcode, "amount", json_integer((json_int_t)disk->size));
    json_object_set_new(opcode, "absolute", json_true());
}

static json_t *mending_opcodes(const struct instance *instance, bool plainly)
{
    json_t *opcodes = watcher_opcode(mending_of(instance, plainly).opcode, instance);
    json_t *first = json_array_get(opcodes, 0);
    if (instance->task_state == TASK_MIGRATING)
        json_object_set_new(first, "cleanup", json_true());
    if (instance->task_state == TASK_GROWING_DISK && !plainly)
        add_growth(first, instance->disks->pdata[0]);
    return opcodes;
}

/* A replica has to grow along; a mark that waits for its node would hold up the repair that the
 * replica needs. A disk that is smaller than its record can be grown at any time. */
static bool only_plainly(const struct watcher *watcher, const struct watched *watched,
                         const struct instance *instance)
{
    bool alone = *instance->secondary_node != '\0' &&
                 reports_of(watcher->reports, instance->secondary_node) == NULL;
    return instance->task_state == TASK_GROWING_DISK &&
           (alone || watched->restart_tries >= LIMIT_REPAIR_TRIES);
}

/* The data that were thought to be lost are there after all: that is to be found out before
 * anything is given up. */
static bool its_replica_is_back(const struct watcher *watcher, const struct instance *instance)
{
    const struct replica *replica =
        config_get(follow_config(watcher->follow), "replica", instance->replica, NULL);
    return replica != NULL && replica->state == REPLICA_IN_SYNC &&
           watcher_node_online(watcher, replica->node);
}

/* A dead node can be no part of most of them: they are auto-repair's business then. What a
 * migration has left on the other node can always be settled, and must be first. */
static bool needs_primary(const struct watcher *watcher, const struct instance *instance)
{
    if (instance->task_state == TASK_RECREATING_DISKS && its_replica_is_back(watcher, instance))
        return false;
    return instance->task_state != TASK_MIGRATING;
}

static struct decision *decide_mark(const struct instance *instance, bool plainly)
{
    const char *mark = enum_word(&task_state_words, (int)instance->task_state);
    struct decision *decision =
        decision_about_instance(instance, TEND_AUTHOR, VERDICT_ACT, "Interrupted");
    decision_set(&decision->summary,
                 "Job %" G_GUINT64_FORMAT " ended while %s it; it is %s, for a known state.",
                 instance->task_owner, mark, mending_of(instance, plainly).word);
    g_ptr_array_add(decision->evidence,
                    g_strdup_printf("task_state is %s and its job has ended", mark));
    return decision;
}

static struct decision *decide_wait(const struct watcher *watcher, const struct instance *instance,
                                    const char *tail)
{
    struct decision *decision =
        decision_about_instance(instance, TEND_AUTHOR, VERDICT_WAIT, "Interrupted");
    decision_set(&decision->summary,
                 "Job %" G_GUINT64_FORMAT " ended while %s it, and its primary node %s %s",
                 instance->task_owner, enum_word(&task_state_words, (int)instance->task_state),
                 config_node_name(follow_config(watcher->follow), instance->primary_node), tail);
    return decision;
}

static void record_wait(struct watcher *watcher, struct decision *decision)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    watcher_record(watcher, decision, changes);
    watcher_commit(watcher, changes);
}

/* Nothing comes of a start or stop on a node that does not answer, try after try. */
static void wait_for_answer(struct watcher *watcher, const struct instance *instance)
{
    const char *node = config_node_name(follow_config(watcher->follow), instance->primary_node);
    g_autofree char *tail =
        g_strdup_printf("does not answer; if that is dead: fettle node modify %s --offline yes "
                        "--statement \"…\"",
                        node);
    struct decision *decision = decide_wait(watcher, instance, tail);
    decision_set(&decision->next_check, "when that node answers, or is marked offline");
    record_wait(watcher, decision);
}

static bool half_made(const struct instance *instance)
{
    return instance->task_state == TASK_CREATING || instance->task_state == TASK_REMOVING;
}

/* What is on a dead node nobody knows: it may be all that there is (SAF-23). */
static void wait_for_person(struct watcher *watcher, const struct instance *instance)
{
    const struct replica *replica = watcher_replica(watcher, instance);
    bool whole = replica != NULL && replica->state == REPLICA_IN_SYNC;
    g_autofree char *failover =
        g_strdup_printf("; its replica is in sync: fettle instance failover %s", instance->name);
    g_autofree char *tail =
        g_strdup_printf("is offline: what that has of it is not known, and is not removed%s; to "
                        "give it up: fettle instance remove %s",
                        whole ? failover : "", instance->name);
    struct decision *decision = decide_wait(watcher, instance, tail);
    decision_set(&decision->next_check, "when that node is back");
    record_wait(watcher, decision);
}

/* There is no last try: it would stay in the way of everything else. */
void watcher_mend_mark(struct watcher *watcher, const struct instance *instance)
{
    struct watched *watched = watcher_watched(watcher, instance->uuid);
    if (tries_under_way(watcher, watched))
        return;
    if (needs_primary(watcher, instance) && !watcher_node_online(watcher, instance->primary_node)) {
        if (half_made(instance))
            wait_for_person(watcher, instance);
        return;
    }
    if (needs_primary(watcher, instance) &&
        reports_of(watcher->reports, instance->primary_node) == NULL) {
        wait_for_answer(watcher, instance);
        return;
    }
    if (watched->restart_generation != instance->generation) {
        watched->restart_generation = instance->generation;
        tries_forget(watched);
        watched->restart_after_ms = 0;
    }
    /* Who came back since the last try may be whom it missed. */
    if (watcher->repair->returned_ms > watched->restart_tried_ms)
        watched->restart_after_ms = 0;
    bool plainly = only_plainly(watcher, watched, instance);
    g_autofree char *prefix =
        g_strdup_printf("mend/%s/%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT, instance->uuid,
                        instance->task_owner, instance->generation);
    g_autofree char *request_id = tries_request(watcher, watched, prefix);
    if (request_id == NULL || !tries_next(watcher, watched))
        return;
    watched->restart_mends = true;
    tries_submitted(watched, watcher_act(watcher, decide_mark(instance, plainly),
                                         mending_opcodes(instance, plainly), request_id,
                                         (gint64)instance->task_since));
}

bool watcher_is_interrupted(struct watcher *watcher, const struct instance *instance)
{
    bool reported = false;
    if (watcher_job_under_way(watcher, instance->task_owner))
        return false;
    bool down = instance->admin_state == ADMIN_UP &&
                watcher_guest_absent(instance, watcher_guest(watcher, instance, &reported)) &&
                reported;
    bool power = strcmp(mending_of(instance, false).opcode, "OP_INSTANCE_STARTUP") == 0;
    return !(down && power && watcher_leaves_primary(watcher, instance));
}
