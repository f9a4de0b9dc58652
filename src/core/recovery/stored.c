/* See stored.h. */
#include "core/recovery/stored.h"

#include <string.h>

#include "base/log.h"
#include "core/config/fault.h"

#define BLIND_RULE "RCV-39"

/* What is remembered of a subject between passes; nothing of it is needed after a restart. */
struct remembered {
    guint64 version; /* of its record, as it was seen */
    gint64 next_ms;  /* boot clock: not looked at before, unless somebody asks for it */
    guint looks;     /* that failed, of that version */
};

struct stored {
    GHashTable *subjects; /* "TYPE/UUID" -> struct remembered */
};

struct stored *stored_new(void)
{
    struct stored *stored = g_new(struct stored, 1);
    stored->subjects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return stored;
}

void stored_free(struct stored *stored)
{
    if (!stored)
        return;
    g_hash_table_unref(stored->subjects);
    g_free(stored);
}

bool stored_counts(const struct config *config, const struct stuck *stuck)
{
    struct stored_subject_now subject;
    int type = resource_type_named(stuck->subject_kind);
    return type >= 0 &&
           stored_subject(config, (enum resource_type)type, stuck->subject, &subject) &&
           !strcmp(subject.resource.status, stuck->task);
}

/* --- who is a candidate --- */

/* In ERROR it is judged anew by who can look at last, or if a person asks. */
static bool is_in_error(const struct stored_subject_now *subject)
{
    return subject->fault && strcmp(subject->resource.status, subject->task->word) != 0;
}

static bool is_patient(const struct stored_subject_now *subject)
{
    return !is_in_error(subject) || subject->fault->blind || subject->fault->again;
}

static struct remembered *remembered_of(struct stored *stored,
                                        const struct stored_subject_now *subject)
{
    g_autofree char *key = config_work_key(subject->resource.type, subject->resource.uuid);
    struct remembered *remembered = g_hash_table_lookup(stored->subjects, key);
    if (!remembered) {
        remembered = g_new0(struct remembered, 1);
        g_hash_table_insert(stored->subjects, g_steal_pointer(&key), remembered);
    }
    if (remembered->version != subject->version)
        *remembered = (struct remembered){.version = subject->version};
    return remembered;
}

static bool is_asked_for(const struct stored_subject_now *subject)
{
    return (subject->stuck && subject->stuck->again) || (subject->fault && subject->fault->again);
}

static void add_candidates(struct stored *stored, const struct watcher *watcher,
                           enum resource_type type, GPtrArray *found)
{
    const struct config *config = follow_config(watcher->follow);
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    g_autoptr(GPtrArray) all = config_list(config, resource_kind(type));
    for (guint i = 0; i < all->len && found->len < LIMIT_WORK_ITEMS; i++) {
        struct resource resource = resource_read(type, all->pdata[i]);
        struct stored_subject_now subject;
        bool left = task_row_of(resource_task_kind(type), resource.status) ||
                    fault_of(config, resource_kind(type), resource.uuid);
        if (left && stored_subject(config, type, resource.uuid, &subject) && is_patient(&subject) &&
            (is_asked_for(&subject) || now_ms >= remembered_of(stored, &subject)->next_ms))
            g_ptr_array_add(found, g_memdup2(&subject, sizeof subject));
    }
}

static gboolean is_over(gpointer key, gpointer remembered, gpointer config)
{
    g_auto(GStrv) parts = g_strsplit(key, "/", 2);
    struct stored_subject_now subject;
    return !stored_subject(config, (enum resource_type)enum_parse(&resource_type_words, parts[0]),
                           parts[1], &subject);
}

/* --- what is told --- */

static void tell_wait(const struct watcher *watcher, const struct stored_subject_now *subject,
                      const char *why, GPtrArray *changes)
{
    const struct resource *resource = &subject->resource;
    struct decision *decision =
        decision_about(resource_kind(resource->type), resource->uuid, resource_name(resource),
                       RECOVERY_AUTHOR, VERDICT_WAIT, "Interrupted");
    decision_set(&decision->summary, "Nobody has the work on it (%s) any more; %s.",
                 subject->task->word, why);
    decision_set(&decision->task, "%s", subject->task->word);
    decision_set(&decision->next_check, "at the next pass");
    watcher_record(watcher, decision, changes);
}

static void count_look(const struct watcher *watcher, const struct stored_subject_now *subject,
                       guint looks, const char *why, GPtrArray *changes)
{
    const struct resource *resource = &subject->resource;
    const char *kind = resource_kind(resource->type);
    g_autofree char *key = fault_key(kind, resource->uuid);
    record_autoptr(stuck) stuck = subject->stuck ? stuck_copy(subject->stuck) : stuck_new();
    text_set(&stuck->subject_kind, kind);
    text_set(&stuck->subject, resource->uuid);
    text_set(&stuck->task, subject->task->word);
    if (!stuck->since_us)
        stuck->since_us = (guint64)watcher->env->ops->wall_us(watcher->env);
    stuck->looks = looks;
    stuck->again = false;
    decision_set(&stuck->why, "%.500s", why);
    if (watcher_may_make(watcher, "stuck"))
        g_ptr_array_add(changes, config_put(follow_config(watcher->follow), "stuck", key,
                                            stuck_to_json(stuck)));
}

/* --- what follows --- */

struct pass {
    struct stored *stored;
    struct watcher *watcher;
    GPtrArray *items; /* struct settled_resource */
    GPtrArray *batch; /* of what is only counted and told */
};

static struct settled_resource *item_of(const struct stored_subject_now *subject,
                                        const struct stored_judgement *judgement,
                                        const char *summary)
{
    struct settled_resource *item = settled_resource_new();
    item->resource_type = subject->resource.type;
    text_set(&item->resource, subject->resource.uuid);
    item->version = subject->version;
    text_set(&item->status, judgement->final);
    text_set(&item->data, judgement->data);
    item->size = judgement->size;
    text_set(&item->rule, judgement->rule);
    item->level = judgement->level;
    item->alert = judgement->alert;
    decision_set(&item->summary, "%.500s", summary);
    for (guint i = 0; i < judgement->evidence->len; i++)
        g_ptr_array_add(item->evidence, g_strdup(judgement->evidence->pdata[i]));
    return item;
}

/* After the last look: ERROR, until somebody can look (RCV-39, 40). */
static void give_up(const struct pass *pass, const struct stored_subject_now *subject,
                    const struct stored_judgement *judgement, guint looks)
{
    const struct resource *resource = &subject->resource;
    const char *kind = resource_kind(resource->type);
    struct stored_judgement blind = *judgement;
    blind.rule = BLIND_RULE;
    blind.final = resource_error_status(resource->type);
    blind.level = EVENT_LEVEL_ERROR;
    g_autofree char *summary = g_strdup_printf(
        "Nobody has the work on %s %s (%s) any more, and after %u looks it is not known how it is: "
        "%s. It is %s until its back end answers, or a person says: fettle %s reset-state %s "
        "STATE",
        kind, resource_name(resource), subject->task->word, looks, judgement->why,
        resource->type == RESOURCE_IMAGE ? blind.final : "in error", kind, resource_name(resource));
    struct settled_resource *item = item_of(subject, &blind, summary);
    item->blind = true;
    g_ptr_array_add(pass->items, item);
}

static void look_failed(const struct pass *pass, const struct stored_subject_now *subject,
                        const struct stored_judgement *judgement)
{
    struct watcher *watcher = pass->watcher;
    const struct cluster *cluster = watcher_cluster(watcher);
    struct remembered *remembered = remembered_of(pass->stored, subject);
    guint looks = (subject->stuck ? (guint)subject->stuck->looks : remembered->looks) + 1;
    g_autofree char *why = g_strdup_printf("how it is is not known: %s", judgement->why);
    remembered->next_ms =
        watcher->env->ops->boot_ms(watcher->env) + (gint64)cluster->recovery_resync_interval * 1000;
    remembered->looks = looks;
    if (!is_in_error(subject) && looks > cluster->recovery_resync_count &&
        watcher_may_make(watcher, "fault")) {
        give_up(pass, subject, judgement, looks);
        return;
    }
    GPtrArray *changes = watcher_changes_new();
    if (!is_in_error(subject))
        count_look(watcher, subject, looks, judgement->why, changes);
    tell_wait(watcher, subject, why, changes);
    watcher_batch_add(pass->batch, changes);
}

static void busy(const struct pass *pass, const struct stored_subject_now *subject,
                 const struct stored_judgement *judgement)
{
    struct watcher *watcher = pass->watcher;
    GPtrArray *changes = watcher_changes_new();
    remembered_of(pass->stored, subject)->next_ms =
        watcher->env->ops->boot_ms(watcher->env) + LIMIT_COLLECT_AGAIN_MS;
    tell_wait(watcher, subject, judgement->why, changes);
    watcher_batch_add(pass->batch, changes);
}

/* A candidate of the version before could not load the fault: it waits for the end of the upgrade.
 */
static bool fault_has_to_wait(const struct pass *pass, const struct resource *resource,
                              struct stored_judgement *judgement)
{
    if (!judgement->alert || strcmp(judgement->final, resource_ready_status(resource->type)) == 0 ||
        watcher_may_make(pass->watcher, "fault"))
        return false;
    g_free(judgement->why);
    judgement->why = g_strdup("it would be in error, which a candidate of a version before cannot "
                              "have on record with its reason");
    return true;
}

static void judge(const struct pass *pass, const struct stored_subject_now *subject,
                  const struct stored_sights *sights)
{
    const char *silent;
    const struct stored_sight *sight = stored_sights_of(sights, &subject->resource, &silent);
    struct stored_judgement *judgement =
        stored_judge(follow_config(pass->watcher->follow), subject, sight, silent);
    if (judgement->how == JUDGED_BUSY || fault_has_to_wait(pass, &subject->resource, judgement)) {
        busy(pass, subject, judgement);
    } else if (judgement->how == JUDGED_BLIND) {
        look_failed(pass, subject, judgement);
    } else {
        g_autofree char *summary = stored_summary(subject, judgement);
        g_ptr_array_add(pass->items, item_of(subject, judgement, summary));
    }
    stored_judgement_free(judgement);
}

/* --- the pass --- */

/* One that is refused has changed meanwhile, or a rule forbids it: the next pass looks anew. */
static void settle(const struct pass *pass)
{
    struct watcher *watcher = pass->watcher;
    g_autofree char *commit_id = env_uuid(watcher->env);
    const struct settle_resources_args args = {commit_id, pass->items};
    g_autoptr(GError) error = NULL;
    if (!pass->items->len)
        return;
    record_autoptr(work_verdicts) verdicts =
        env_call_record(watcher->env, NODE_LOCAL, ROLE_WCONFD, "settle_resources", &args,
                        follow_stamp(watcher->follow), 0, 0, &error);
    if (!verdicts && !fettle_error_is(error, KILLED))
        log_warning("", "what is stored and was left: %s", error->message);
    for (guint i = 0; verdicts && i < verdicts->items->len; i++) {
        const struct work_verdict *verdict = verdicts->items->pdata[i];
        if (verdict->answer == WORK_REFUSED)
            log_warning("", "%s is not settled: %s", verdict->key, verdict->why);
    }
}

static void free_item(void *item)
{
    settled_resource_free(item);
}

/* Subjects borrow from the copy, which goes on while others are waited for. */
static bool is_same(const struct watcher *watcher, struct stored_subject_now *subject,
                    const struct stored_subject *asked)
{
    struct stored_subject_now now;
    guint64 version = subject->version;
    if (!stored_subject(follow_config(watcher->follow), asked->resource_type, asked->resource,
                        &now) ||
        now.version != version)
        return false;
    *subject = now;
    return true;
}

static void free_subject(void *subject)
{
    stored_subject_free(subject);
}

static GPtrArray *names_of(const GPtrArray *found)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(free_subject);
    for (guint i = 0; i < found->len; i++) {
        const struct resource *resource =
            &((const struct stored_subject_now *)found->pdata[i])->resource;
        const struct stored_subject name = {resource->type, (char *)resource->uuid};
        g_ptr_array_add(names, stored_subject_copy(&name));
    }
    return names;
}

static void look_at(const struct pass *pass, const GPtrArray *found)
{
    g_autoptr(GPtrArray) names = names_of(found);
    struct stored_sights *sights = stored_sights_ask(pass->watcher, found);
    for (guint i = 0; sights && i < found->len; i++)
        if (is_same(pass->watcher, found->pdata[i], names->pdata[i]))
            judge(pass, found->pdata[i], sights);
    if (!sights)
        return;
    watcher_batch_commit_as(pass->watcher, "recover", pass->batch);
    settle(pass);
    stored_sights_free(sights);
}

static void tell_shadow(const struct pass *pass, const GPtrArray *found)
{
    for (guint i = 0; i < found->len; i++) {
        GPtrArray *changes = watcher_changes_new();
        tell_wait(pass->watcher, found->pdata[i], "shadow mode; it would be looked at, and settled",
                  changes);
        watcher_batch_add(pass->batch, changes);
    }
    watcher_batch_commit_as(pass->watcher, "recover", pass->batch);
}

/* Older than reality: what looks left may be done (RCV-06). */
void stored_run(struct stored *stored, struct watcher *watcher)
{
    if (watcher_is_restored(watcher))
        return;
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(free_item);
    g_autoptr(GPtrArray) batch = watcher_batch_new();
    struct pass pass = {stored, watcher, items, batch};
    g_hash_table_foreach_remove(stored->subjects, is_over,
                                (gpointer)follow_config(watcher->follow));
    for (guint type = 0; resource_type_words.words[type]; type++)
        add_candidates(stored, watcher, (enum resource_type)type, found);
    if (found->len && watcher_shadow(watcher))
        tell_shadow(&pass, found);
    else if (found->len)
        look_at(&pass, found);
}

/* --- what it would do --- */

static json_t *row_of(const struct stored_subject_now *subject)
{
    const struct resource *resource = &subject->resource;
    return json_make("{ss ss ss ss so so ss ss sI ss sb ss so ss ss ss s[] ss}", "subject_kind",
                     resource_kind(resource->type), "subject", resource->uuid, "subject_name",
                     resource_name(resource), "task", subject->task ? subject->task->word : "",
                     "since", json_null(), "owner", json_null(), "owner_state",
                     subject->task ? "dead" : "", "owner_why",
                     subject->task ? "no row of work is on record" : "", "looks",
                     (json_int_t)(subject->stuck ? subject->stuck->looks : 0), "outcome", "left",
                     "on_retry", (int)(subject->task && !is_patient(subject)), "state", "",
                     "finisher", json_null(), "why", subject->task ? "" : "nothing was left of it",
                     "rule", "", "summary", "", "evidence", "next", "");
}

static void set(json_t *row, const char *key, const char *text)
{
    json_object_set_new(row, key, json_string(text));
}

static void plan_one(const struct watcher *view, const struct stored_subject_now *subject,
                     const struct stored_sights *sights, json_t *row)
{
    const char *silent;
    const struct stored_sight *sight = stored_sights_of(sights, &subject->resource, &silent);
    struct stored_judgement *judgement =
        stored_judge(follow_config(view->follow), subject, sight, silent);
    bool known = judgement->how != JUDGED_BUSY && judgement->how != JUDGED_BLIND;
    g_autofree char *summary = known ? stored_summary(subject, judgement) : g_strdup("");
    g_autofree char *retry =
        g_strdup_printf("when a person says: fettle recovery retry %s %s",
                        resource_kind(subject->resource.type), resource_name(&subject->resource));
    set(row, "outcome",
        judgement->how == JUDGED_BUSY      ? "waits"
        : judgement->how == JUDGED_BLIND   ? "unknown"
        : judgement->how == JUDGED_REMOVED ? "removed"
                                           : "settled");
    set(row, "state", known ? judgement->final : "");
    set(row, "rule", judgement->rule);
    set(row, "summary", summary);
    set(row, "why", judgement->why);
    set(row, "next",
        !is_patient(subject)                                     ? retry
        : is_in_error(subject) && judgement->how == JUDGED_BLIND ? "when its back end answers"
                                                                 : "at the next pass");
    for (guint i = 0; i < judgement->evidence->len; i++)
        json_array_append_new(json_object_get(row, "evidence"),
                              json_string(judgement->evidence->pdata[i]));
    stored_judgement_free(judgement);
}

static void tell_members(const struct watcher *view, const struct resource *resource,
                         const struct stored_sights *sights, json_t *row)
{
    json_t *hosts = json_array();
    g_autoptr(GPtrArray) asked = stored_sights_asked(sights, resource->backend);
    for (guint i = 0; i < asked->len; i++) {
        const struct stored_asked *member = asked->pdata[i];
        const struct stored_sight *sight = stored_sights_by(member, resource);
        const char *why = !sight         ? (member->silent ? member->silent : "gave no answer")
                          : *sight->busy ? sight->busy
                                         : sight->silent;
        json_array_append_new(
            hosts, json_make("{ss ss ss ss so}", "node",
                             config_node_name(follow_config(view->follow), member->node), "answer",
                             !sight           ? "none"
                             : *sight->busy   ? "busy"
                             : *sight->silent ? "silent"
                                              : "given",
                             "why", why, "boot_id", "", "sight",
                             sight ? stored_sight_to_json(sight) : json_null()));
    }
    json_object_set_new(row, "hosts", hosts);
}

/* One that a person names is told of also if nothing was left of it. */
static void add_planned(const struct watcher *view, const struct recovery_question *question,
                        enum resource_type type, GPtrArray *found)
{
    const struct config *config = follow_config(view->follow);
    const char *kind = resource_kind(type);
    g_autoptr(GPtrArray) all = config_list(config, kind);
    for (guint i = 0; i < all->len && found->len < LIMIT_WORK_ITEMS; i++) {
        struct stored_subject_now subject = {.resource = resource_read(type, all->pdata[i])};
        const char *uuid = subject.resource.uuid;
        bool asked = question->subject && !strcmp(question->subject, uuid);
        bool left = (asked || !question->subject) && stored_subject(config, type, uuid, &subject);
        if (asked || (left && is_patient(&subject)))
            g_ptr_array_add(found, g_memdup2(&subject, sizeof subject));
    }
}

bool stored_plan(struct watcher *view, const struct recovery_question *question, json_t *rows)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    for (guint type = 0; resource_type_words.words[type]; type++)
        if (!question->kind || !strcmp(question->kind, resource_kind((enum resource_type)type)))
            add_planned(view, question, (enum resource_type)type, found);
    g_autoptr(GPtrArray) names = names_of(found);
    struct stored_sights *sights = stored_sights_ask(view, found);
    for (guint i = 0; sights && i < found->len; i++) {
        const struct stored_subject *name = names->pdata[i];
        const struct config *config = follow_config(view->follow);
        struct stored_subject_now now = {
            .resource = resource_of(config, name->resource_type, name->resource)};
        if (!now.resource.exists)
            continue;
        stored_subject(config, name->resource_type, name->resource, &now);
        json_t *row = row_of(&now);
        if (now.task)
            plan_one(view, &now, sights, row);
        if (question->hosts)
            tell_members(view, &now.resource, sights, row);
        json_array_append_new(rows, row);
    }
    bool alive = sights != NULL;
    stored_sights_free(sights);
    return alive;
}
