/* See repair_next.h. */
#include "core/repair/repair_next.h"

#include "core/config/allocated.h"

#include <string.h>

/* --- room --- */

/* What is promised on the nodes, counted once in a pass (a snapshot begins it anew). */
static struct placement_sums *pass_sums(struct watcher *watcher)
{
    if (watcher->repair->sums == NULL)
        watcher->repair->sums =
            placement_sums_new(follow_config(watcher->follow), reports_list(watcher->reports));
    return watcher->repair->sums;
}

static bool room_without(struct watcher *watcher, const struct repair_case *subject,
                         GHashTable *failed_on, struct repair_goal *ret_goal, char **ret_reason)
{
    return repair_room_find(follow_config(watcher->follow), reports_list(watcher->reports),
                            pass_sums(watcher), subject->instance, &subject->plan,
                            watcher_now(watcher), failed_on, ret_goal, ret_reason);
}

/* Whether there is a node that has not failed in a job of this repair, for a step that may go to
 * any. */
static bool find_another(struct watcher *watcher, const struct repair_case *subject,
                         const struct repair_history *history, struct repair_goal *ret_goal)
{
    g_autofree char *reason = NULL;
    bool mirrored = repair_template_mirrored(subject->instance->disk_template);
    bool moves =
        subject->plan.step == REPAIR_STEP_MIGRATE || subject->plan.step == REPAIR_STEP_FAILOVER;
    bool any = subject->plan.step == REPAIR_STEP_REPLACE_DISKS || (moves && !mirrored);
    /* Its primary is no choice of the step's. */
    bool own = g_hash_table_contains(history->failed_on, subject->instance->primary_node);
    if (!any || g_hash_table_size(history->failed_on) <= (own ? 1 : 0) ||
        !room_without(watcher, subject, history->failed_on, ret_goal, &reason))
        return false;
    ret_goal->named = true;
    return true;
}

/* Whether some node could take what the next step needs; nothing is submitted otherwise (ARP-57).
 * The job chooses the node itself, by the same code, unless one has failed before. */
static bool find_room(struct watcher *watcher, const struct repair_case *subject,
                      const struct repair_history *history, struct repair_goal *ret_goal,
                      char **ret_reason)
{
    return find_another(watcher, subject, history, ret_goal) ||
           room_without(watcher, subject, NULL, ret_goal, ret_reason);
}

void repair_next_take_room(struct watcher *watcher, const struct repair_case *subject,
                           const struct repair_goal *goal)
{
    record_autoptr(instance) after = instance_copy(subject->instance);
    if (subject->plan.step == REPAIR_STEP_FAILOVER || subject->plan.step == REPAIR_STEP_REINSTALL)
        allocated_take_next(after);
    decision_set(&after->primary_node, "%s", goal->primary);
    decision_set(&after->secondary_node, "%s", goal->secondary);
    placement_sums_move(pass_sums(watcher), subject->instance, after);
}

/* --- what failed --- */

/* It stood still for lack of room, and its node could not write down that it is moved. What ails
 * the node is seen a moment later; what comes then is another step. */
static bool could_not_be_moved(const struct repair_case *subject,
                               const struct repair_history *history)
{
    const struct repair_plan *plan = &subject->plan;
    return (plan->no_room || plan->barred) && history->last == JOB_FAILED &&
           history->tries < LIMIT_REPAIR_TRIES && history->node_failed &&
           g_strcmp0(history->step, repair_step_word(REPAIR_STEP_MIGRATE)) == 0 &&
           g_hash_table_contains(history->failed_on, subject->instance->primary_node);
}

/* --- pauses --- */

/* Whoever is away for a moment shall not use up all tries, and jobs that find no room although we
 * saw some, or no way between nodes that both answer us, shall not follow each other closely. */
static gint64 pause_us(const struct repair_case *subject, const struct repair_history *history)
{
    if (history->vain > 0)
        return 1000 * watcher_pause_ms(history->vain);
    if (history->last != JOB_SAFE && !could_not_be_moved(subject, history))
        return 0;
    return G_USEC_PER_SEC *
           (history->tries == 1 ? LIMIT_REPAIR_FIRST_PAUSE_S : LIMIT_REPAIR_NEXT_PAUSE_S);
}

/* Counted from the end on the job's record, so that a new watcher waits no less. Another step than
 * the one that failed is no repetition. Returns seconds since 1970, 0: now. */
static gint64 pause_ends(struct watcher *watcher, const struct repair_case *subject,
                         const struct repair_history *history)
{
    if (history->step != NULL && strcmp(history->step, repair_step_word(subject->plan.step)) != 0)
        return 0;
    g_autofree char *key = g_strdup_printf("ended/%" G_GUINT64_FORMAT, history->job);
    gint64 left_us = pause_us(subject, history) -
                     ages_us(watcher->ages, key, (guint64)MAX(history->ended_us, 0));
    gint64 end_us = watcher->env->ops->wall_us(watcher->env) + left_us;
    return left_us <= 0 ? 0 : (end_us + G_USEC_PER_SEC - 1) / G_USEC_PER_SEC;
}

/* Before a node's failure is the repair's, others are tried. */
static bool others_are_left(struct watcher *watcher, const struct repair_case *subject,
                            const struct repair_history *history)
{
    struct repair_goal goal = {0};
    bool left = history->node_failed && history->last != JOB_LOST &&
                g_strcmp0(history->step, repair_step_word(subject->plan.step)) == 0 &&
                find_another(watcher, subject, history, &goal);
    repair_goal_clear(&goal);
    return left;
}

/* Why it is not tried again; NULL if it may be (ARP-54, A-13). Free with g_free(). */
static char *why_given_up(struct watcher *watcher, const struct repair_case *subject,
                          const struct record_tag *record, const struct repair_history *history)
{
    bool fatal = (history->last == JOB_FAILED && !could_not_be_moved(subject, history)) ||
                 history->last == JOB_LOST;
    bool ended = fatal || (history->last == JOB_SAFE && history->tries >= LIMIT_REPAIR_TRIES);
    if (ended && !others_are_left(watcher, subject, history))
        return g_strdup(history->message);
    guint jobs = g_strv_length(record->tag.jobs);
    return jobs < LIMIT_REPAIR_JOBS ? NULL : g_strdup_printf("%u jobs did not mend it", jobs);
}

/* --- what comes next --- */

static struct repair_next next_is(enum repair_act act, const char *what, const char *when)
{
    return (struct repair_next){.act = act, .what = g_strdup(what), .when = g_strdup(when)};
}

void repair_next_clear(struct repair_next *next)
{
    g_free(next->what);
    g_free(next->when);
    repair_goal_clear(&next->goal);
}

static struct repair_next wait_until(const struct repair_history *history, gint64 seconds)
{
    g_autofree char *time = text_time(seconds);
    g_autofree char *when = g_strdup_printf("at %s", time);
    g_autofree char *what =
        history->vain > 0
            ? g_strdup_printf("Job %" G_GUINT64_FORMAT " found no %s: %s", history->job,
                              history->last == JOB_NO_ROOM ? "room" : "way to a node",
                              history->message)
            : g_strdup_printf("Try %u of %d failed, and the next one comes after a pause: %s",
                              history->tries, LIMIT_REPAIR_TRIES, history->message);
    return next_is(REPAIR_ACT_WAIT, what, when);
}

/* Without an answer of its primary node nothing comes of these steps, try after try: that a node is
 * away for a while is no failure of the repair. */
static bool waits_for_primary(const struct watcher *watcher, const struct repair_case *subject)
{
    return repair_plan_needs_primary(&subject->plan, subject->instance) &&
           reports_of(watcher->reports, subject->instance->primary_node) == NULL;
}

static struct repair_next wait_for_primary(const struct watcher *watcher,
                                           const struct repair_case *subject)
{
    const char *name =
        config_node_name(follow_config(watcher->follow), subject->instance->primary_node);
    g_autofree char *what =
        g_strdup_printf("Its primary node %s does not answer, and %s needs it; if it is dead: "
                        "fettle node modify %s --offline yes --statement \"…\"",
                        name, repair_step_name(subject->plan.step), name);
    return next_is(REPAIR_ACT_WAIT, what, "when that node answers, or is marked offline");
}

/* What a node has said before is no evidence for a step that ends a guest there. */
static struct repair_next wait_for_evidence(const struct repair_case *subject)
{
    return subject->plan.failed
               ? next_is(REPAIR_ACT_WAIT,
                         "Its primary node does not say now whether its disks fail.",
                         "when that node tells of its disks")
               : next_is(REPAIR_ACT_WAIT,
                         "Its primary node does not say now whether its state can be written.",
                         "when that node tells of its state");
}

static bool lacks_evidence(const struct watcher *watcher, const struct repair_case *subject)
{
    const struct instance *instance = subject->instance;
    if (*instance->holder == '\0')
        return false;
    return (subject->plan.failed && !watcher_disks_seen_now(watcher, instance)) ||
           (subject->plan.barred && !watcher_state_seen_now(watcher, instance->primary_node));
}

/* Whether the step can be taken now, and where it would lead. */
static struct repair_next judge_step(struct watcher *watcher, const struct repair_case *subject,
                                     const struct repair_history *history)
{
    const char *when = NULL;
    struct repair_goal goal = {0};
    g_autofree char *held = watcher_held_back(watcher, history->job == 0,
                                              repair_step_urgency(subject->plan.step) == 0, &when);
    if (held != NULL)
        return next_is(REPAIR_ACT_WAIT, held, when);
    if (waits_for_primary(watcher, subject))
        return wait_for_primary(watcher, subject);
    if (lacks_evidence(watcher, subject))
        return wait_for_evidence(subject);
    gint64 pause = pause_ends(watcher, subject, history);
    if (pause != 0)
        return wait_until(history, pause);
    g_autofree char *reason = NULL;
    if (!find_room(watcher, subject, history, &goal, &reason))
        return next_is(REPAIR_ACT_WAIT, reason, "when a node has room");
    char *what = g_strdup_printf("step %u of the repair would be taken: %s", history->steps + 1,
                                 repair_step_name(subject->plan.step));
    return (struct repair_next){.act = REPAIR_ACT_STEP, .what = what, .goal = goal};
}

static struct repair_next end_for_type(const struct repair_plan *plan, enum repair_type type)
{
    g_autofree char *why = g_strdup_printf(
        "the next step, %s, needs %s, and this repair may do %s at most",
        repair_step_name(plan->step), repair_type_name(plan->step_type), repair_type_name(type));
    return next_is(REPAIR_ACT_ENOPERM, why, NULL);
}

struct repair_next repair_next_judge(struct watcher *watcher, const struct repair_case *subject,
                                     const struct record_tag *record,
                                     const struct repair_history *history, bool any_job)
{
    const struct repair_plan *plan = &subject->plan;
    g_autofree char *given_up = why_given_up(watcher, subject, record, history);
    if (history->under_way || (plan->healthy && any_job))
        return next_is(REPAIR_ACT_WAIT_JOB, "a job of this repair is under way", NULL);
    if (plan->healthy && history->blank)
        return next_is(REPAIR_ACT_FAILURE,
                       "its disks were made anew, but what belongs on them was not installed",
                       NULL);
    if (plan->healthy && subject->doubt != NULL)
        return next_is(REPAIR_ACT_WAIT, subject->doubt, "in the next pass");
    if (plan->healthy)
        return next_is(REPAIR_ACT_HEALTHY, "the repair would be ended with success", NULL);
    if (given_up != NULL)
        return next_is(REPAIR_ACT_FAILURE, given_up, NULL);
    if (plan->wait)
        return next_is(REPAIR_ACT_WAIT, "Its replica is being copied.", "when the copy is ready");
    if (plan->left != NULL)
        return next_is(REPAIR_ACT_WAIT, plan->left, "when its nodes change");
    if (plan->step_type > record->tag.type)
        return end_for_type(plan, record->tag.type);
    if (repair_case_at_work(watcher, subject->instance))
        return next_is(REPAIR_ACT_WAIT, "Another job is at work on it.", "when that job has ended");
    return judge_step(watcher, subject, history);
}
