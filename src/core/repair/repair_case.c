/* See repair_case.h. */
#include "core/repair/repair_case.h"

#include <string.h>

#include "core/config/fault.h"

static void record_tag_free(struct record_tag *record)
{
    repair_tag_clear(&record->tag);
    g_ptr_array_unref(record->texts);
    g_free(record);
}

void repair_case_free(struct repair_case *subject)
{
    if (subject == NULL)
        return;
    instance_free(subject->instance);
    repair_plan_clear(&subject->plan);
    g_ptr_array_unref(subject->pending);
    g_ptr_array_unref(subject->results);
    g_free(subject);
}

/* --- seeing --- */

static gint by_time(gconstpointer a, gconstpointer b)
{
    const struct repair_tag *left = &(*(const struct record_tag *const *)a)->tag;
    const struct repair_tag *right = &(*(const struct record_tag *const *)b)->tag;
    if (left->timestamp != right->timestamp)
        return left->timestamp < right->timestamp ? -1 : 1;
    return strcmp(left->id, right->id);
}

/* One more copy of a known pending tag: the longer job list counts. */
static void add_copy(struct record_tag *known, struct repair_tag *tag, const char *text)
{
    g_ptr_array_add(known->texts, g_strdup(text));
    known->tag.timestamp = MIN(known->tag.timestamp, tag->timestamp);
    if (g_strv_length(tag->jobs) > g_strv_length(known->tag.jobs)) {
        GStrv longer = g_steal_pointer(&tag->jobs);
        tag->jobs = known->tag.jobs;
        known->tag.jobs = longer;
    }
    repair_tag_clear(tag);
}

static void add_record(GPtrArray *list, struct repair_tag *tag, const char *text)
{
    for (guint i = 0; tag->kind == REPAIR_TAG_PENDING && i < list->len; i++) {
        struct record_tag *known = list->pdata[i];
        if (strcmp(known->tag.id, tag->id) == 0) {
            add_copy(known, tag, text);
            return;
        }
    }
    struct record_tag *record = g_new0(struct record_tag, 1);
    record->tag = *tag;
    record->texts = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(record->texts, g_strdup(text));
    g_ptr_array_add(list, record);
}

static void read_tags(const struct watcher *watcher, struct repair_case *subject)
{
    g_autoptr(GPtrArray) tags =
        config_tags(follow_config(watcher->follow), TAG_INSTANCE, subject->instance->uuid);
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        if (tag.kind == REPAIR_TAG_PENDING) {
            add_record(subject->pending, &tag, tags->pdata[i]);
        } else if (tag.kind == REPAIR_TAG_RESULT) {
            subject->failed |= tag.outcome == REPAIR_FAILURE;
            add_record(subject->results, &tag, tags->pdata[i]);
        } else {
            repair_tag_clear(&tag);
        }
    }
    g_ptr_array_sort(subject->pending, by_time);
    g_ptr_array_sort(subject->results, by_time);
}

static struct repair_plan plan_of(struct watcher *watcher, const struct instance *instance)
{
    const struct replica *replica = watcher_replica(watcher, instance);
    struct repair_evidence sight = watcher_evidence(watcher, instance, replica);
    return repair_plan_of(follow_config(watcher->follow), instance, replica, &sight);
}

struct repair_case *repair_case_examine(struct watcher *watcher, const char *uuid)
{
    const struct config *config = follow_config(watcher->follow);
    const struct instance *instance = config_get(config, "instance", uuid, NULL);
    if (instance == NULL)
        return NULL;
    struct repair_case *subject = g_new0(struct repair_case, 1);
    subject->instance = instance_copy(instance);
    subject->watched = watcher_watched(watcher, uuid);
    subject->pending = g_ptr_array_new_with_free_func((GDestroyNotify)record_tag_free);
    subject->results = g_ptr_array_new_with_free_func((GDestroyNotify)record_tag_free);
    subject->policy = repair_policy_of(config, instance, watcher_now(watcher));
    subject->plan = plan_of(watcher, instance);
    subject->doubt = watcher_evidence_doubt(watcher, instance, watcher_replica(watcher, instance));
    read_tags(watcher, subject);
    return subject;
}

/* A pending tag, or a failure that stands. */
static bool has_open_repair(const GPtrArray *tags)
{
    bool open = false;
    for (guint i = 0; !open && i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        open = tag.kind == REPAIR_TAG_PENDING ||
               (tag.kind == REPAIR_TAG_RESULT && tag.outcome == REPAIR_FAILURE);
        repair_tag_clear(&tag);
    }
    return open;
}

bool repair_case_is_well(struct watcher *watcher, struct repair_policies *policies,
                         const struct instance *instance)
{
    const struct config *config = follow_config(watcher->follow);
    const struct watched *watched = g_hash_table_lookup(watcher->repair->instances, instance->uuid);
    if (watched != NULL && watched->state != REPAIR_HEALTHY)
        return false;
    if (decisions_open(watcher->decisions, instance->uuid, REPAIR_AUTHOR))
        return false;
    struct repair_plan plan = plan_of(watcher, instance);
    repair_plan_clear(&plan);
    if (!plan.healthy || repair_policies_suspend(policies, instance))
        return false;
    if (!config_has_tags(config, TAG_INSTANCE, instance->uuid))
        return true;
    g_autoptr(GPtrArray) tags = config_tags(config, TAG_INSTANCE, instance->uuid);
    return !has_open_repair(tags);
}

/* A mark over which a failover goes: nothing is half made. */
static bool is_about_power(enum task_state mark)
{
    return mark == TASK_STARTING || mark == TASK_STOPPING || mark == TASK_FAILING_OVER;
}

bool repair_case_at_work(struct watcher *watcher, const struct instance *instance)
{
    g_autofree char *message = NULL, *other = NULL;
    const struct watched *watched = g_hash_table_lookup(watcher->repair->instances, instance->uuid);
    if (*instance->migration != '\0')
        return true;
    /* A start that was submitted in this very pass has set no mark yet, and will see to the
     * replica.
     */
    if (watched != NULL && watched->restart_job != 0 &&
        watcher_job_outcome(watcher, watched->restart_job, &other) == JOB_UNDER_WAY)
        return true;
    enum task_state mark = fault_mark(follow_config(watcher->follow), instance, NULL);
    if (mark == TASK_NONE)
        return false;
    bool settled_first = watcher_node_online(watcher, instance->primary_node) &&
                         !(is_about_power(mark) && watcher_leaves_primary(watcher, instance));
    return settled_first ||
           watcher_job_outcome(watcher, instance->task_owner, &message) == JOB_UNDER_WAY;
}

/* --- writing --- */

struct decision *repair_case_decide(const struct repair_case *subject, enum verdict verdict,
                                    const char *state, const char *format, ...)
{
    struct decision *decision =
        decision_about_instance(subject->instance, REPAIR_AUTHOR, verdict, state);
    va_list args;
    va_start(args, format);
    g_free(decision->summary);
    decision->summary = g_strdup_vprintf(format, args);
    va_end(args);
    decision_set(&decision->policy, "%s", subject->policy.text);
    for (guint i = 0; i < subject->plan.evidence->len; i++)
        g_ptr_array_add(decision->evidence, g_strdup(subject->plan.evidence->pdata[i]));
    if (subject->pending->len > 0) {
        const struct record_tag *active = subject->pending->pdata[0];
        decision_set(&decision->repair_id, "%s", active->tag.id);
    }
    return decision;
}

void repair_case_reject_others(const struct repair_case *subject, struct decision *decision)
{
    char *why = repair_plan_no_other(&subject->plan, subject->instance);
    if (why != NULL)
        g_ptr_array_add(decision->rejected, g_strdup_printf("anything else: %s", why));
    g_free(why);
}

void repair_case_put_tag(const struct watcher *watcher, const struct repair_case *subject,
                         const char *text, GPtrArray *changes)
{
    record_autoptr(tag) tag = tag_new();
    tag->kind = TAG_INSTANCE;
    decision_set(&tag->object, "%s", subject->instance->uuid);
    decision_set(&tag->tag, "%s", text);
    g_autofree char *key = config_tag_key(TAG_INSTANCE, subject->instance->uuid, text);
    g_ptr_array_add(changes,
                    config_put(follow_config(watcher->follow), "tag", key, tag_to_json(tag)));
}

static void drop_tag(const struct watcher *watcher, const struct repair_case *subject,
                     const char *text, GPtrArray *changes)
{
    g_autofree char *key = config_tag_key(TAG_INSTANCE, subject->instance->uuid, text);
    g_ptr_array_add(changes, config_delete(follow_config(watcher->follow), "tag", key));
}

void repair_case_note_job(const struct watcher *watcher, const struct repair_case *subject,
                          const struct record_tag *record, guint64 job, GPtrArray *changes)
{
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, job);
    g_autoptr(GPtrArray) jobs = g_ptr_array_new();
    for (guint i = 0; record->tag.jobs[i] != NULL; i++)
        g_ptr_array_add(jobs, record->tag.jobs[i]);
    if (job != 0 && !g_strv_contains((const char *const *)record->tag.jobs, id))
        g_ptr_array_add(jobs, id);
    g_ptr_array_add(jobs, NULL);
    g_autofree char *text = repair_tag_pending(
        record->tag.type, record->tag.id, record->tag.timestamp, (const char *const *)jobs->pdata);
    bool there = false;
    for (guint i = 0; i < record->texts->len; i++) {
        if (g_str_equal(record->texts->pdata[i], text))
            there = true;
        else
            drop_tag(watcher, subject, record->texts->pdata[i], changes);
    }
    if (!there)
        repair_case_put_tag(watcher, subject, text, changes);
}

void repair_case_conclude(const struct watcher *watcher, const struct repair_case *subject,
                          const struct record_tag *record, enum repair_outcome outcome,
                          GPtrArray *changes)
{
    g_autofree char *text =
        repair_tag_result(record->tag.type, record->tag.id, watcher_now(watcher), outcome,
                          (const char *const *)record->tag.jobs);
    repair_case_put_tag(watcher, subject, text, changes);
    for (guint i = 0; i < record->texts->len; i++)
        drop_tag(watcher, subject, record->texts->pdata[i], changes);
}

void repair_case_trim_results(const struct watcher *watcher, const struct repair_case *subject,
                              guint added, GPtrArray *changes)
{
    guint kept = added;
    for (guint i = subject->results->len; i-- > 0;) {
        const struct record_tag *record = subject->results->pdata[i];
        if (record->tag.outcome == REPAIR_FAILURE || ++kept <= LIMIT_RESULT_TAGS)
            continue;
        drop_tag(watcher, subject, record->texts->pdata[0], changes);
    }
}
