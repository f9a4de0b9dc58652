/*
 * What needs no policy: marks that dead jobs left on instances, and guests that should run, whose
 * node is there, and that do not. See docs/design/procedures.md, "Watcher".
 */
#include "core/repair/repair_private.h"

#include "base/log.h"
#include "core/config/faults.h"

#define AUTHOR "watcher/tend"

enum trouble {
    TROUBLE_NONE,
    TROUBLE_MARK,         /* task_state of a job that has ended */
    TROUBLE_DOWN,         /* should run, its node is there, and it does not */
    TROUBLE_SWITCHED_OFF, /* the guest shut itself down */
    TROUBLE_HELD,         /* should be down, and is; but it was not closed */
    TROUBLE_OVER,         /* it runs again: to be put on record */
};

static json_t *opcode_for(const char *id, const struct instance *instance)
{
    return json_make("[{ssss}]", "OP_ID", id, "instance_name", instance->name);
}

static bool under_way(const struct watcher *watcher, guint64 job)
{
    g_autofree char *message = NULL;
    return job != 0 && watcher_job_outcome(watcher, job, &message) == JOB_UNDER_WAY;
}

static bool suspended(const struct watcher *watcher, const struct instance *instance)
{
    return repair_policy_of(follow_config(watcher->follow), instance, watcher_now(watcher)).kind ==
           REPAIR_POLICY_SUSPENDED;
}

static void forget_tries(struct watched *watched)
{
    watched->restart_tries = 0;
    watched->restart_deaths = 0;
}

/* Counts one more try, unless it is not time for it yet. */
static bool next_try(const struct watcher *watcher, struct watched *watched)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (watched->restart_after_ms > now_ms)
        return false;
    watched->restart_tries++;
    watched->restart_tried_ms = now_ms;
    watched->restart_after_ms =
        now_ms + watcher_pause_ms(watched->restart_tries + watched->restart_deaths);
    return true;
}

/* The request id of the next try; NULL: the last one is still under way. Free with g_free(). */
static char *next_request(const struct watcher *watcher, struct watched *watched,
                          const char *prefix)
{
    guint64 number = 0, last = watcher_last_try(watcher, prefix, &number);
    if (!under_way(watcher, last))
        return g_strdup_printf("%s/%" G_GUINT64_FORMAT, prefix, number + 1);
    watched->restart_job = last;
    return NULL;
}

/* A submission that did not arrive was no try. */
static void untry(struct watched *watched, guint64 job)
{
    watched->restart_job = job;
    if (job == 0)
        watched->restart_tries--;
}

/* Its process died while it waited for its locks: what it was to do was not tried. If that goes on,
 * it is the job that does not live. */
static bool died_before_it_began(const struct watcher *watcher, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(follow_config(watcher->follow), "job", key, NULL);
    const struct job_op *first = job != NULL ? job->ops->pdata[0] : NULL;
    return first != NULL && first->exec_us == 0 && json_is_string(first->result);
}

static bool try_under_way(const struct watcher *watcher, struct watched *watched)
{
    if (under_way(watcher, watched->restart_job))
        return true;
    if (watched->restart_tries > 0 && watched->restart_deaths < LIMIT_REPAIR_DEATHS &&
        died_before_it_began(watcher, watched->restart_job)) {
        watched->restart_deaths++;
        untry(watched, 0);
    }
    return false;
}

/* --- marks of dead jobs --- */

/* How a mark is mended: an opcode that can be repeated, and what the record says of it. */
struct mending {
    const char *opcode, *word;
};

/* `plainly`: only to a state that is known, whatever the dead job was about. */
static struct mending mending_of(const struct instance *instance, bool plainly)
{
    bool up = instance->admin_state == ADMIN_UP;
    const struct mending power = {up ? "OP_INSTANCE_STARTUP" : "OP_INSTANCE_SHUTDOWN",
                                  up ? "started" : "stopped"};
    if (plainly)
        return power;
    switch (instance->task_state) {
    case TASK_CREATING:
    case TASK_REMOVING:
        return (struct mending){"OP_INSTANCE_SETTLE", "kept if it runs or is whole, else removed"};
    case TASK_MIGRATING:
        return (struct mending){"OP_INSTANCE_MIGRATE", "settled where it is"};
    case TASK_GROWING_DISK:
        return (struct mending){"OP_INSTANCE_GROW_DISK", "given the sizes on record"};
    case TASK_RECREATING_DISKS:
        return (struct mending){"OP_INSTANCE_RECREATE_DISKS",
                                "given the disks that are there, or new ones"};
    case TASK_REINSTALLING:
        return (struct mending){"OP_INSTANCE_REINSTALL", "installed again"};
    case TASK_NONE:
    case TASK_STARTING:
    case TASK_STOPPING:
    case TASK_FAILING_OVER:
    case TASK_REPLACING_DISKS:
        break;
    }
    return power;
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
    json_t *opcodes = opcode_for(mending_of(instance, plainly).opcode, instance);
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
        decision_about_instance(instance, AUTHOR, VERDICT_ACT, "Interrupted");
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
        decision_about_instance(instance, AUTHOR, VERDICT_WAIT, "Interrupted");
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

/* A mark whose job has ended is finished or undone by a job of its own. There is no last try: it
 * would stay in the way of everything else. */
static void mend_mark(struct watcher *watcher, const struct instance *instance)
{
    struct watched *watched = watcher_watched(watcher, instance->uuid);
    if (try_under_way(watcher, watched))
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
        forget_tries(watched);
        watched->restart_after_ms = 0;
    }
    /* Who came back since the last try may be whom it missed. */
    if (watcher->repair->returned_ms > watched->restart_tried_ms)
        watched->restart_after_ms = 0;
    bool plainly = only_plainly(watcher, watched, instance);
    g_autofree char *prefix =
        g_strdup_printf("mend/%s/%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT, instance->uuid,
                        instance->task_owner, instance->generation);
    g_autofree char *request_id = next_request(watcher, watched, prefix);
    if (request_id == NULL || !next_try(watcher, watched))
        return;
    watched->restart_mends = true;
    untry(watched,
          watcher_act(watcher, decide_mark(instance, plainly), mending_opcodes(instance, plainly),
                      request_id, (gint64)instance->task_since));
}

/* --- guests that should run --- */

static void give_up(struct watcher *watcher, const struct instance *instance, bool held)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    struct decision *decision =
        decision_about_instance(instance, AUTHOR, VERDICT_LEAVE, held ? "Held" : "Down");
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
    struct decision *decision = decision_about_instance(instance, AUTHOR, VERDICT_ACT,
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

/* Between two opcodes of a repair's job nothing is locked: a start would come before the image is
 * installed, and end the repair in failure. The job starts it itself. */
static bool repair_under_way(const struct watcher *watcher, const struct instance *instance)
{
    bool found = false;
    g_autoptr(GPtrArray) tags =
        config_tags(follow_config(watcher->follow), TAG_INSTANCE, instance->uuid);
    for (guint i = 0; i < tags->len && !found; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        for (guint k = 0; tag.kind == REPAIR_TAG_PENDING && tag.jobs[k] != NULL; k++)
            found |= under_way(watcher, g_ascii_strtoull(tag.jobs[k], NULL, 10));
        repair_tag_clear(&tag);
    }
    return found;
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
        decision_about_instance(instance, AUTHOR, VERDICT_WAIT, held ? "Held" : "Down");
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

/* Starts what is down, or closes what has ended. */
static void restart(struct watcher *watcher, const struct instance *instance, enum trouble trouble)
{
    bool starts = trouble == TROUBLE_DOWN;
    struct watched *watched = watcher_watched(watcher, instance->uuid);
    if (try_under_way(watcher, watched) || repair_under_way(watcher, instance) ||
        (trouble != TROUBLE_SWITCHED_OFF &&
         wait_for_node(watcher, instance, trouble == TROUBLE_HELD)))
        return;
    if (watched->restart_generation != 0 && instance->generation > watched->restart_generation + 2)
        forget_tries(watched); /* it has run in between: these are new troubles */
    if (watched->restart_mends) {
        /* The mark is gone: no start was tried yet. */
        watched->restart_mends = false;
        forget_tries(watched);
        watched->restart_after_ms = 0;
    }
    if (watched->restart_tries >= LIMIT_REPAIR_TRIES) {
        give_up(watcher, instance, trouble == TROUBLE_HELD);
        return;
    }
    g_autofree char *prefix =
        g_strdup_printf("restart/%s/%" G_GUINT64_FORMAT, instance->uuid, instance->generation);
    g_autofree char *request_id = next_request(watcher, watched, prefix);
    if (request_id == NULL || !next_try(watcher, watched))
        return;
    watched->restart_generation = instance->generation;
    const char *opcode = starts ? "OP_INSTANCE_STARTUP" : "OP_INSTANCE_SHUTDOWN";
    untry(watched, watcher_act(watcher, decide_restart(watcher, instance, trouble),
                               opcode_for(opcode, instance), request_id, 0));
}

/* It runs: what was on record about it is over. */
static void record_over(struct watcher *watcher, const struct instance *instance)
{
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    struct decision *decision = decision_about_instance(instance, AUTHOR, VERDICT_DONE, "Running");
    decision_set(&decision->summary, "It runs as it should.");
    watcher_record(watcher, decision, changes);
    watcher_commit(watcher, changes);
}

/* --- the pass --- */

static enum trouble trouble_running(const struct watcher *watcher, const struct instance *instance)
{
    struct watched *watched = g_hash_table_lookup(watcher->repair->instances, instance->uuid);
    if (watched != NULL)
        forget_tries(watched);
    return decisions_open(watcher->decisions, instance->uuid, AUTHOR) ? TROUBLE_OVER : TROUBLE_NONE;
}

/* What is down and to be up. It is auto-repair's, as its policy says, if another node alone has its
 * data; and nothing comes of a start, try after try, while the disks of its node fail. */
static enum trouble trouble_down(struct watcher *watcher, const struct instance *instance)
{
    return watcher_disks_fail(watcher, instance) || watcher_leaves_primary(watcher, instance)
               ? TROUBLE_NONE
               : TROUBLE_DOWN;
}

static enum trouble trouble_marked(struct watcher *watcher, const struct instance *instance)
{
    bool reported = false;
    if (under_way(watcher, instance->task_owner))
        return TROUBLE_NONE;
    bool down = instance->admin_state == ADMIN_UP &&
                watcher_guest_absent(instance, watcher_guest(watcher, instance, &reported)) &&
                reported;
    bool power = strcmp(mending_of(instance, false).opcode, "OP_INSTANCE_STARTUP") == 0;
    return down && power && watcher_leaves_primary(watcher, instance) ? TROUBLE_NONE : TROUBLE_MARK;
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
    if (instance->task_state != TASK_NONE)
        return trouble_marked(watcher, instance);
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
    if (trouble == TROUBLE_MARK)
        mend_mark(watcher, instance);
    else if (trouble == TROUBLE_OVER)
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
