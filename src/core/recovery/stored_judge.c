/* See stored_judge.h. */
#include "core/recovery/stored_judge.h"

#include <string.h>

#include "core/config/attachments.h"
#include "core/config/fault.h"
#include "proto/storage/volume_driver.h"

/* --- who is one --- */

static bool has_work(const struct config *config, enum resource_type type, const char *uuid)
{
    g_autofree char *key = config_work_key(type, uuid);
    g_autoptr(GPtrArray) held = config_held_work(config, type, uuid);
    return held->len > 0 || config_get(config, "worker", key, NULL);
}

static void count_snapshots(const struct config *config, struct stored_subject_now *subject)
{
    g_autoptr(GPtrArray) all = config_volume_snapshots(config, subject->resource.uuid);
    subject->snapshots = all->len;
    for (guint i = 0; i < all->len; i++) {
        struct resource snapshot = resource_read(RESOURCE_SNAPSHOT, all->pdata[i]);
        subject->snapshots_left += task_row_of(TASK_KIND_snapshot, snapshot.status) != NULL;
    }
}

bool stored_subject(const struct config *config, enum resource_type type, const char *uuid,
                    struct stored_subject_now *ret)
{
    const char *kind = resource_kind(type);
    struct stored_subject_now subject = {0};
    const void *record = config_get(config, kind, uuid, &subject.version);
    subject.resource = resource_read(type, record);
    if (!record)
        return false;
    g_autofree char *key = fault_key(kind, uuid);
    subject.fault = fault_of(config, kind, subject.resource.uuid);
    subject.stuck = config_get(config, "stuck", key, NULL);
    subject.task = task_row_of(resource_task_kind(type), subject.resource.status);
    if (!subject.task && subject.fault)
        subject.task = task_row_of(resource_task_kind(type), subject.fault->task);
    if (!subject.task || subject.task->owner != TASK_BY_ROW || has_work(config, type, uuid))
        return false;
    subject.attached = type == RESOURCE_VOLUME && attachment_of(record);
    if (type == RESOURCE_VOLUME)
        count_snapshots(config, &subject);
    *ret = subject;
    return true;
}

/* --- what is there --- */

struct found {
    const struct stored_data *data; /* its own, or what may become that; NULL: none */
    bool whole;
    bool named;
};

static guint64 claim_of(const char *name)
{
    g_autofree char *uuid = NULL;
    guint64 claim = 0;
    return volume_data_parse(name, &uuid, &claim) ? claim : 0;
}

static bool is_better(const struct stored_data *data, bool whole, const struct found *than)
{
    return !than->data || (whole && !than->whole) ||
           (whole == than->whole && claim_of(data->name) > claim_of(than->data->name));
}

/* Of one that names none the youngest that is whole; what stands in the trash is nobody's any more
 * (SAF-53). A file that no record names has no length there, so nothing is whole. */
static struct found find(const struct config *config, const struct resource *resource,
                         const struct stored_sight *sight)
{
    struct found found = {.named = *resource->data};
    for (guint i = 0; i < sight->data->len; i++) {
        const struct stored_data *data = sight->data->pdata[i];
        g_autofree char *trash = config_trash_key(resource->backend, data->name);
        bool whole = data->whole && resource_is_full(resource, data->bytes);
        bool fits = found.named ? !strcmp(data->name, resource->data)
                                : !config_get(config, "trash", trash, NULL);
        if (fits && is_better(data, whole, &found)) {
            found.data = data;
            found.whole = whole;
        }
    }
    return found;
}

static enum task_size size_of(const struct resource *resource, const struct found *found)
{
    guint64 bytes = found->data ? found->data->bytes : 0, full = resource_full_bytes(resource);
    if (bytes == full)
        return TASK_FACT_OLD_SIZE;
    return bytes > full && bytes % (1024 * MIB(1)) == 0 ? TASK_FACT_NEW_SIZE : TASK_FACT_OTHER_SIZE;
}

static struct task_facts facts_of(const struct stored_subject_now *subject,
                                  const struct found *found)
{
    guint data = !found->data ? TASK_FACT_GONE : found->whole ? TASK_FACT_WHOLE : TASK_FACT_PARTIAL;
    guint user = subject->attached                  ? TASK_FACT_USED
                 : found->data && found->data->open ? TASK_FACT_USED_BY_OTHER
                                                    : TASK_FACT_UNUSED;
    if (subject->resource.type == RESOURCE_IMAGE) /* nothing imports, so there is no other file */
        return (struct task_facts){{data, TASK_FACT_GONE}};
    if (subject->resource.type != RESOURCE_VOLUME)
        return (struct task_facts){{data, data}};
    return (struct task_facts){{found->data ? TASK_FACT_SOURCE : TASK_FACT_NOWHERE, data,
                                size_of(&subject->resource, found), user}};
}

/* --- what follows --- */

static char *found_text(const struct stored_subject_now *subject, const struct found *found)
{
    const struct resource *resource = &subject->resource;
    if (!found->data && !*resource->data)
        return g_strdup("it has no data");
    if (!found->data)
        return g_strdup_printf("its data %s is not there", resource->data);
    if (resource_is_file(resource->type) && !found->named)
        return g_strdup_printf("length and checksum of its data %s were not on record yet",
                               found->data->name);
    g_autofree char *share = resource_share_text(resource, found->data->bytes);
    return g_strdup_printf(
        "its data %s is %s (%s)%s", found->data->name, found->whole ? "whole" : "not whole", share,
        found->data->open && !subject->attached ? ", and a guest has it open that is not on record"
                                                : "");
}

/* Whose a volume is its attachment says. */
static void set_final(const struct stored_subject_now *subject, struct stored_judgement *judgement,
                      enum task_final final)
{
    static const enum task_final usable[] = {TASK_FINAL_BY_USE, TASK_FINAL_IN_USE,
                                             TASK_FINAL_AVAILABLE, TASK_FINAL_ACTIVE};
    judgement->how = final == TASK_FINAL_REMOVED ? JUDGED_REMOVED : JUDGED_SETTLED;
    judgement->final = final == TASK_FINAL_REMOVED ? "gone" : task_final_words[final];
    for (guint i = 0; i < G_N_ELEMENTS(usable); i++)
        if (usable[i] == final)
            judgement->final = resource_ready_status(subject->resource.type);
}

static void make_error(const struct stored_subject_now *subject, struct stored_judgement *judgement,
                       enum task_final final, const char *rule)
{
    set_final(subject, judgement, final);
    judgement->rule = rule;
    judgement->alert = true;
    judgement->level = EVENT_LEVEL_ERROR;
}

static bool is_ready(const struct stored_subject_now *subject,
                     const struct stored_judgement *judgement)
{
    return !strcmp(judgement->final, resource_ready_status(subject->resource.type));
}

/* What the table does not know: a volume goes after its snapshots, and nothing is available without
 * data that it names, or may. */
static void mind_records(const struct stored_subject_now *subject, const struct found *found,
                         struct stored_judgement *judgement)
{
    if (judgement->how == JUDGED_REMOVED && subject->snapshots) {
        make_error(subject, judgement, TASK_FINAL_ERROR_DELETING, judgement->rule);
        g_ptr_array_add(judgement->evidence,
                        g_strdup_printf("it has snapshots: %u", subject->snapshots));
    }
    if (is_ready(subject, judgement) && (!found->data || (!found->named && !found->whole)))
        make_error(subject, judgement, TASK_FINAL_ERROR, "RCV-82");
    if (judgement->how == JUDGED_SETTLED && !strcmp(judgement->final, "error"))
        judgement->final = resource_error_status(subject->resource.type);
}

static void judge(const struct config *config, const struct stored_subject_now *subject,
                  const struct stored_sight *sight, struct stored_judgement *judgement)
{
    const struct resource *resource = &subject->resource;
    struct found found = find(config, resource, sight);
    struct task_facts facts = facts_of(subject, &found);
    struct task_outcome outcome = task_outcome_of(subject->task, &facts, false, RECTIFY_NO);
    judgement->rule = outcome.rule;
    judgement->alert = outcome.flags & (OUTCOME_ALERT | OUTCOME_ALERT_HIGH);
    set_final(subject, judgement, outcome.final);
    judgement->level = outcome.final == TASK_FINAL_ERROR ? EVENT_LEVEL_ERROR
                       : judgement->alert                ? EVENT_LEVEL_WARNING
                                                         : EVENT_LEVEL_INFO;
    judgement->why = found_text(subject, &found);
    g_ptr_array_add(judgement->evidence, g_strdup(judgement->why));
    if (outcome.flags & OUTCOME_TAKE_TARGET && found.data)
        judgement->size = found.data->bytes / (1024 * MIB(1));
    mind_records(subject, &found, judgement);
    bool names = !found.named && found.whole && is_ready(subject, judgement);
    if (names)
        text_set(&judgement->data, found.data->name);
    /* What a guest writes to that nobody knows of is named by nobody yet. */
    if (names && found.data->open)
        judgement->how = JUDGED_BUSY;
}

struct stored_judgement *stored_judge(const struct config *config,
                                      const struct stored_subject_now *subject,
                                      const struct stored_sight *sight, const char *silent)
{
    struct stored_judgement *judgement = g_new0(struct stored_judgement, 1);
    *judgement = (struct stored_judgement){.rule = "",
                                           .final = "",
                                           .data = g_strdup(""),
                                           .evidence = g_ptr_array_new_with_free_func(g_free)};
    record_autoptr(stored_sight) empty = stored_sight_new();
    if (subject->snapshots_left && subject->task->operation == TASK_OPERATION_DELETE_VOLUME) {
        judgement->how = JUDGED_BUSY;
        judgement->why = g_strdup("its snapshots are judged first");
    } else if (!*subject->resource.backend) { /* no back end was chosen: nobody made anything */
        judge(config, subject, empty, judgement);
    } else if (sight && *sight->busy) {
        judgement->how = JUDGED_BUSY;
        judgement->why = g_strdup(sight->busy);
    } else if (!sight || *sight->silent) {
        judgement->how = JUDGED_BLIND;
        judgement->why = g_strdup(sight ? sight->silent : silent);
    } else {
        judge(config, subject, sight, judgement);
    }
    return judgement;
}

void stored_judgement_free(struct stored_judgement *judgement)
{
    if (!judgement)
        return;
    g_free(judgement->data);
    g_free(judgement->why);
    g_ptr_array_unref(judgement->evidence);
    g_free(judgement);
}

char *stored_summary(const struct stored_subject_now *subject,
                     const struct stored_judgement *judgement)
{
    const struct resource *resource = &subject->resource;
    g_autofree char *size =
        judgement->size ? g_strdup_printf(" with %" G_GUINT64_FORMAT " GiB", judgement->size)
                        : g_strdup("");
    const struct work_row *work =
        work_row_of(work_rows, subject->task->kind, task_operation_words[subject->task->operation]);
    bool deleted = work && work->done == TASK_FINAL_REMOVED;
    return g_strdup_printf(
        "Nobody has the work on %s %s (%s) any more; %s, %s%s%s.", resource_kind(resource->type),
        resource_name(resource), subject->task->word, judgement->why,
        judgement->how == JUDGED_REMOVED ? "so its record goes too" : "so it is ",
        judgement->how == JUDGED_REMOVED ? "" : judgement->final,
        *size                                     ? size
        : deleted && is_ready(subject, judgement) ? ": it was not deleted"
                                                  : "");
}
