/* See recovery_plan.h. */
#include "core/recovery/recovery_plan.h"

#include "base/text.h"
#include "core/recovery/recovery_private.h"
#include "core/recovery/stored.h"
#include "core/recovery/things_discard.h"

#include <string.h>

struct planned {
    struct recovery_case *subject;
    struct remembered remembered; /* of nothing: each look is the first */
    GPtrArray *hosts;             /* that are asked about it */
    json_t *row;
    bool judged; /* what they show counts */
};

struct plan {
    struct watcher *view;
    recovery_waits_fn waits;
    const struct recovery_question *question;
    GHashTable *finishing; /* UUID -> job that finishes its task, and has not ended */
    GHashTable *holders;   /* name of a lock -> const struct owner */
    GPtrArray *all;        /* struct planned, in order of names */
};

/* --- rows --- */

static void planned_free(void *data)
{
    struct planned *planned = data;
    recovery_case_free(planned->subject);
    g_ptr_array_unref(planned->hosts);
    json_decref(planned->row);
    g_free(planned);
}

static json_t *number_or_null(guint64 number)
{
    return number ? json_integer((json_int_t)number) : json_null();
}

static json_t *row_of(const struct watcher *view, const struct recovery_case *subject)
{
    const struct instance *instance = subject->instance;
    bool task = instance->task_state != TASK_NONE;
    g_autofree char *why =
        task ? recovery_owner_text(follow_config(view->follow), instance->task_owner)
             : g_strdup("");
    return json_make("{ss ss ss ss so so ss ss sI ss sb ss so ss ss ss s[] ss}", "subject_kind",
                     "instance", "subject", instance->uuid, "subject_name", instance->name, "task",
                     enum_word(&task_state_words, (int)instance->task_state), "since",
                     number_or_null(instance->task_since), "owner",
                     number_or_null(instance->task_owner), "owner_state",
                     task ? recovery_owner_word(recovery_case_owner(view, subject)) : "",
                     "owner_why", why, "looks",
                     subject->stuck ? (json_int_t)subject->stuck->looks : (json_int_t)0, "outcome",
                     "left", "on_retry", false, "state", "", "finisher", json_null(), "why", "",
                     "rule", "", "summary", "", "evidence", "next", "");
}

static void set(struct planned *planned, const char *key, const char *text)
{
    json_object_set_new(planned->row, key, json_string(text));
}

static void set_outcome(struct planned *planned, const char *outcome, const char *why,
                        const char *next)
{
    set(planned, "outcome", outcome);
    set(planned, "why", why);
    set(planned, "next", next);
}

/* --- what is left to others --- */

/* Whoever lives, or may, is not touched. */
static bool is_left(struct planned *planned, enum recovery_owner owner)
{
    const struct instance *instance = planned->subject->instance;
    g_autofree char *next =
        g_strdup_printf("when job %" G_GUINT64_FORMAT " %s", instance->task_owner,
                        owner == OWNER_QUEUED ? "has run" : "ends");
    if (instance->task_state == TASK_NONE)
        set_outcome(planned, "left", "it has no task", "");
    else if (owner == OWNER_LIVES)
        set_outcome(planned, "left", "its owner lives", next);
    else if (owner == OWNER_QUEUED)
        set_outcome(planned, "left", "its owner has not begun", next);
    else if (owner == OWNER_UNKNOWN)
        set_outcome(planned, "left", "its owner may live", "when that is known, or it is reset");
    return instance->task_state == TASK_NONE || owner != OWNER_DEAD;
}

/* The watcher's own is given back at the end of its pass. */
static const struct owner *lock_holder(const struct plan *plan, const struct instance *instance)
{
    g_autofree char *name = g_strconcat("instance/", instance->name, NULL);
    return g_hash_table_lookup(plan->holders, name);
}

/* Borrowed from `locks`; NULL: nobody was asked. */
static GHashTable *holders_of(const struct lock_states *locks)
{
    GHashTable *holders = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; locks && i < locks->locks->len; i++) {
        const struct lock_state *state = locks->locks->pdata[i];
        if (!state->waiting && strcmp(state->owner->job, ROLE_WATCHER) != 0)
            g_hash_table_insert(holders, state->name, state->owner);
    }
    return holders;
}

static char *why_it_waits(const struct plan *plan, const struct instance *instance)
{
    const guint64 *job = g_hash_table_lookup(plan->finishing, instance->uuid);
    if (job)
        return g_strdup_printf("job %" G_GUINT64_FORMAT " is finishing it", *job);
    char *waits = plan->waits(plan->view, instance);
    const struct owner *holder = waits ? NULL : lock_holder(plan, instance);
    if (!holder)
        return waits;
    const char *what = g_ascii_isdigit(*holder->job) ? "job " : "";
    return g_strdup_printf("%s%s has its lock", what, holder->job);
}

/* What is in ERROR is judged anew when a person asks for that, or when its hosts answer. */
static bool is_on_retry(const struct planned *planned)
{
    const struct fault *fault = planned->subject->fault;
    return fault && planned->subject->record->task_state == TASK_NONE && !fault->blind &&
           !fault->again;
}

static void decide(const struct plan *plan, struct planned *planned)
{
    const struct recovery_case *subject = planned->subject;
    if (is_left(planned, recovery_case_owner(plan->view, subject)))
        return;
    g_autofree char *waits = why_it_waits(plan, subject->instance);
    if (waits)
        set_outcome(planned, "waits", waits, "at the next pass");
    json_object_set_new(planned->row, "on_retry", json_boolean(is_on_retry(planned)));
    planned->judged = !waits;
}

/* --- what follows --- */

/* The record that the pass would make; NULL: none. */
static const json_t *decision_in(const GPtrArray *changes)
{
    const json_t *found = NULL;
    for (guint i = 0; i < changes->len && !found; i++) {
        const struct change *change = changes->pdata[i];
        const char *author = json_string_value(json_object_get(change->object, "author"));
        if (strcmp(change->kind, "decision") == 0 && !g_strcmp0(author, RECOVERY_AUTHOR))
            found = change->object;
    }
    return found;
}

static bool changes_kind(const GPtrArray *changes, const char *kind, enum change_op op)
{
    bool any = false;
    for (guint i = 0; i < changes->len && !any; i++) {
        const struct change *change = changes->pdata[i];
        any = strcmp(change->kind, kind) == 0 && change->op == op;
    }
    return any;
}

/* By what it changes: a task that cannot be looked at becomes ERROR after the last look. */
static const char *outcome_of(const struct judgement *judgement, const GPtrArray *changes)
{
    if (judgement->how == JUDGED_FINISH)
        return "finished";
    if (changes_kind(changes, "instance", CHANGE_DELETE))
        return "removed";
    if (changes_kind(changes, "instance", CHANGE_PUT))
        return changes_kind(changes, "fault", CHANGE_PUT) ? "error" : "settled";
    return judgement->how == JUDGED_BLIND ? "unknown" : "waits";
}

/* Whether a host is only busy with what the dead job itself has asked for. */
static bool is_busy_with_it(const struct planned *planned, const struct sights *sights)
{
    const struct instance *instance = planned->subject->instance;
    bool busy = false;
    for (guint i = 0; i < planned->hosts->len && !busy; i++) {
        const struct sight *sight = sights_of(sights, planned->hosts->pdata[i], instance->uuid);
        busy = sight && *sight->busy && sight->busy_job == instance->task_owner;
    }
    return busy;
}

static char *why_of(const struct judgement *judgement, const char *outcome)
{
    if (judgement->how == JUDGED_ERROR && strcmp(outcome, "waits") == 0)
        return g_strdup("it would be in ERROR, which a candidate of a version before cannot have "
                        "on record");
    if (judgement->why)
        return g_strdup(judgement->why);
    return g_strdup(judgement->how == JUDGED_FINISH    ? judge_finisher_text(judgement->finisher)
                    : judgement->how == JUDGED_REMOVED ? "nothing of it is left"
                    : judgement->how == JUDGED_ERROR   ? judgement->rule
                    : judgement->runs                  ? "its guest runs"
                                                       : "it is whole and does not run");
}

/* When the pass looks; not what follows if that look fails. */
static char *next_of(const struct plan *plan, const struct planned *planned)
{
    const struct recovery_case *subject = planned->subject;
    const struct cluster *cluster = watcher_cluster(plan->view);
    if (is_on_retry(planned))
        return g_strdup_printf("when a person says: fettle recovery retry instance %s",
                               subject->record->name);
    if (subject->fault && subject->judgement->how == JUDGED_BLIND)
        return g_strdup("when its hosts answer");
    if (subject->judgement->finisher)
        return g_strdup_printf("at the next pass, with at most %" G_GUINT64_FORMAT
                               " such jobs at once (recovery_max_jobs)",
                               cluster->recovery_max_jobs);
    if (!subject->stuck || !subject->stuck->looks || subject->stuck->again)
        return g_strdup("at the next pass");
    return g_strdup_printf("attempt %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                           " within %" G_GUINT64_FORMAT " s, or when its hosts answer",
                           subject->stuck->looks, cluster->recovery_resync_count,
                           cluster->recovery_resync_interval);
}

static void copy_text(struct planned *planned, const char *key, const json_t *from,
                      const char *member)
{
    const char *text = json_string_value(json_object_get(from, member));
    set(planned, key, text ? text : "");
}

static void judge(const struct plan *plan, struct planned *planned, const struct sights *sights)
{
    struct recovery_case *subject = planned->subject;
    g_autoptr(GPtrArray) changes = watcher_changes_new();
    recovery_judge(plan->view, subject, sights, changes);
    const struct judgement *judgement = subject->judgement;
    if (!judgement)
        return;
    bool given_up = judgement->how == JUDGED_BUSY && is_busy_with_it(planned, sights);
    const char *outcome = given_up ? "unknown" : outcome_of(judgement, changes);
    const json_t *decision = decision_in(changes);
    g_autofree char *plain = why_of(judgement, outcome);
    g_autofree char *why = g_strconcat(
        plain, given_up ? "; the next pass has that given up, and looks then" : "", NULL);
    g_autofree char *next = next_of(plan, planned);
    set_outcome(planned, outcome, why, next);
    copy_text(planned, "state", decision, "new");
    copy_text(planned, "rule", decision, "rule");
    copy_text(planned, "summary", decision, "summary");
    if (judgement->finisher)
        set(planned, "finisher", judgement->finisher);
    for (guint i = 0; i < judgement->evidence->len; i++)
        json_array_append_new(json_object_get(planned->row, "evidence"),
                              json_string(judgement->evidence->pdata[i]));
}

/* --- what hosts show --- */

static const char *answer_of(const struct plan *plan, const struct sights *sights, const char *node,
                             const struct sight *sight, const char **ret_why)
{
    const char *refusal = sights_refusal(sights, node);
    const char *reported = reports_refusal(plan->view->reports, node);
    *ret_why = "";
    if (recovery_host_dead(follow_config(plan->view->follow), node)) {
        *ret_why = "it is on record as dead, so it was not asked";
        return "offline";
    }
    if (sights_older(sights, node)) {
        *ret_why = "its node daemon is of a version before, and cannot be asked; upgrade it";
        return "older";
    }
    if (sight) {
        *ret_why = *sight->busy ? sight->busy : sight->silent;
        return *sight->busy ? "busy" : *sight->silent ? "silent" : "given";
    }
    *ret_why = refusal ? refusal : reported ? reported : "gave no answer";
    return strcmp(*ret_why, "gave no answer") == 0 ? "none" : "refused";
}

static void tell_hosts(const struct plan *plan, struct planned *planned,
                       const struct sights *sights)
{
    const struct config *config = follow_config(plan->view->follow);
    json_t *hosts = json_array();
    for (guint i = 0; i < planned->hosts->len; i++) {
        const char *node = planned->hosts->pdata[i];
        const struct sight *sight = sights_of(sights, node, planned->subject->record->uuid);
        const char *why;
        const char *answer = answer_of(plan, sights, node, sight, &why);
        json_array_append_new(
            hosts, json_make("{ss ss ss ss so}", "node", config_node_name(config, node), "answer",
                             answer, "why", why, "boot_id", sights_boot_id(sights, node), "sight",
                             sight ? sight_to_json(sight) : json_null()));
    }
    json_object_set_new(planned->row, "hosts", hosts);
}

/* All that its record names, and any other whose regular report shows it. */
static void add_all_hosts(const struct plan *plan, struct planned *planned)
{
    const struct instance *record = planned->subject->record;
    const GPtrArray *reports = reports_list(plan->view->reports);
    g_ptr_array_unref(planned->hosts);
    planned->hosts = recovery_hosts(record, NULL);
    for (guint i = 0; reports && i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        if (reports_guest(plan->view->reports, report->node, record->uuid) &&
            !g_ptr_array_find_with_equal_func(planned->hosts, report->node, g_str_equal, NULL))
            g_ptr_array_add(planned->hosts, report->node);
    }
}

/* As many of them as hosts look at in one call, from `from` on; the first that has to wait is
 * answered, 0: the process is killed. */
static guint one_round(const struct plan *plan, guint from)
{
    struct sights *sights = sights_new();
    struct watcher *view = plan->view;
    guint to = from;
    for (; to < plan->all->len; to++) {
        const struct planned *planned = plan->all->pdata[to];
        bool looked_at = planned->judged || plan->question->hosts;
        if (looked_at && !recovery_case_want(view, planned->subject, planned->hosts, 0, sights))
            break;
    }
    bool alive = sights_ask(sights, view->env, follow_stamp(view->follow), LIMIT_COLLECT_WAIT_MS);
    for (guint i = from; alive && i < to; i++) {
        struct planned *planned = plan->all->pdata[i];
        if (planned->judged)
            judge(plan, planned, sights);
        if (plan->question->hosts)
            tell_hosts(plan, planned, sights);
    }
    sights_free(sights);
    return alive ? to : 0;
}

/* --- all of them --- */

/* A task that somebody is at work on is none that was left behind. */
static bool is_wanted(const struct plan *plan, const struct instance *record)
{
    const struct config *config = follow_config(plan->view->follow);
    const struct recovery_question *question = plan->question;
    if (question->kind)
        return strcmp(question->kind, "instance") == 0 &&
               strcmp(record->uuid, question->subject) == 0;
    if (!recovery_concerns(plan->view, record))
        return false;
    enum recovery_owner owner = recovery_owner_of(config, record->task_owner);
    return record->task_state == TASK_NONE || owner == OWNER_DEAD || owner == OWNER_UNKNOWN;
}

static void add(const struct plan *plan, const struct instance *record, guint64 version)
{
    struct planned *planned = g_new0(struct planned, 1);
    planned->subject = recovery_case_new(plan->view, record, version);
    planned->subject->remembered = &planned->remembered;
    planned->hosts = recovery_case_hosts(planned->subject);
    planned->row = row_of(plan->view, planned->subject);
    if (plan->question->hosts)
        add_all_hosts(plan, planned);
    g_ptr_array_add(plan->all, planned);
}

static gint by_name(gconstpointer left, gconstpointer right)
{
    const struct planned *a = *(const struct planned *const *)left;
    const struct planned *b = *(const struct planned *const *)right;
    return strcmp(a->subject->record->name, b->subject->record->name);
}

static void find(const struct plan *plan)
{
    const struct config *config = follow_config(plan->view->follow);
    g_autoptr(GPtrArray) records = config_list(config, "instance");
    for (guint i = 0; i < records->len; i++) {
        guint64 version = 0;
        const struct instance *record = records->pdata[i];
        config_get(config, "instance", record->uuid, &version);
        if (is_wanted(plan, record))
            add(plan, record, version);
    }
    g_ptr_array_sort(plan->all, by_name);
}

/* "finish/UUID/OWNER/GENERATION/TRY" */
static GHashTable *find_finishing(const struct config *config)
{
    GHashTable *finishing = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GPtrArray) jobs = config_list(config, "job");
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        if (!g_str_has_prefix(job->request_id, "finish/") || watcher_job_ended(job))
            continue;
        g_auto(GStrv) parts = g_strsplit(job->request_id, "/", 3);
        if (parts[1])
            g_hash_table_insert(finishing, g_strdup(parts[1]),
                                g_memdup2(&job->id, sizeof(job->id)));
    }
    return finishing;
}

static json_t *notes_of(const struct watcher *view)
{
    json_t *notes = json_array();
    const struct switches *switches = config_switches(follow_config(view->follow));
    gint64 until = switches ? (gint64)switches->watcher_paused_until : 0;
    g_autofree char *when = text_time(until);
    if (watcher_is_restored(view))
        json_array_append_new(
            notes, json_string("The configuration came from a backup: nothing of this is done "
                               "before a person says: fettle repair continue."));
    if (until > watcher_now(view))
        json_array_append_new(
            notes,
            json_sprintf("The watcher is paused until %s: nothing of this is done before.", when));
    if (watcher_shadow(view))
        json_array_append_new(
            notes, json_string("Shadow mode: nothing of this is done, only put on record."));
    return notes;
}

json_t *recovery_plan(struct watcher *view, recovery_waits_fn waits,
                      const struct recovery_question *question)
{
    struct plan plan = {.view = view, .waits = waits, .question = question};
    plan.all = g_ptr_array_new_with_free_func(planned_free);
    plan.finishing = find_finishing(follow_config(view->follow));
    find(&plan);
    /* Who holds a lock is told if it can be: without that it is one reason less. */
    struct lock_states *locks =
        plan.all->len == 0 ? NULL
                           : env_call_record(view->env, NODE_LOCAL, ROLE_WCONFD, "list_all_locks",
                                             NULL, follow_stamp(view->follow), 0, 0, NULL);
    plan.holders = holders_of(locks);
    json_t *rows = json_array();
    bool alive = !task_killed();
    for (guint i = 0; alive && i < plan.all->len; i++)
        decide(&plan, plan.all->pdata[i]);
    for (guint at = 0; alive && at < plan.all->len;) {
        at = one_round(&plan, at);
        alive = at > 0;
    }
    for (guint i = 0; i < plan.all->len; i++)
        json_array_append(rows, ((const struct planned *)plan.all->pdata[i])->row);
    bool stored = !question->kind || strcmp(question->kind, "instance") != 0;
    alive = alive && (!stored || stored_plan(view, question, rows)) &&
            (question->kind || things_discard_plan(view, rows));
    json_t *notes = notes_of(view);
    json_t *answer =
        json_make("{sb so so}", "held", json_array_size(notes) > 0, "notes", notes, "rows", rows);
    g_ptr_array_unref(plan.all);
    g_hash_table_unref(plan.finishing);
    g_hash_table_unref(plan.holders);
    lock_states_free(locks);
    if (!alive)
        json_decref(answer);
    return alive ? answer : NULL;
}
