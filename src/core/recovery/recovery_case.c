/* See recovery_private.h: one subject, for the pass and for who asks what it would do. */
#include "core/config/fault.h"
#include "core/recovery/recovery_private.h"

/* A fault that is looked at again counts as the task that it names, whatever that keeps off. */
static void put_in_force(struct instance *instance, const struct fault *fault)
{
    int word = enum_parse(&task_state_words, fault->task);
    if (instance->task_state != TASK_NONE || word < 0)
        return;
    instance->task_state = (enum task_state)word;
    instance->task_owner = fault->owner;
    instance->task_since = fault->since;
}

struct recovery_case *recovery_case_new(const struct watcher *watcher,
                                        const struct instance *record, guint64 version)
{
    const struct config *config = follow_config(watcher->follow);
    struct recovery_case *subject = g_new0(struct recovery_case, 1);
    g_autofree char *key = fault_key("instance", record->uuid);
    const struct fault *fault = config_get(config, "fault", key, &subject->fault_version);
    const struct stuck *stuck = config_get(config, "stuck", key, &subject->stuck_version);
    subject->record = instance_copy(record);
    subject->instance = instance_copy(record);
    subject->version = version;
    subject->fault = fault ? fault_copy(fault) : NULL;
    subject->stuck = stuck ? stuck_copy(stuck) : NULL;
    if (fault)
        put_in_force(subject->instance, fault);
    return subject;
}

void recovery_case_free(void *data)
{
    struct recovery_case *subject = data;
    instance_free(subject->record);
    instance_free(subject->instance);
    if (subject->fault)
        fault_free(subject->fault);
    if (subject->stuck)
        stuck_free(subject->stuck);
    judgement_free(subject->judgement);
    g_free(subject);
}

enum recovery_owner recovery_case_owner(const struct watcher *watcher,
                                        const struct recovery_case *subject)
{
    return subject->record->task_state == TASK_NONE
               ? OWNER_DEAD
               : recovery_owner_of(follow_config(watcher->follow), subject->instance->task_owner);
}

GPtrArray *recovery_case_hosts(const struct recovery_case *subject)
{
    const char *word = enum_word(&task_state_words, (int)subject->instance->task_state);
    return recovery_hosts(subject->instance, task_row_of(TASK_KIND_instance, word));
}

bool recovery_hosts_answer(const struct watcher *watcher, const struct recovery_case *subject)
{
    g_autoptr(GPtrArray) hosts = recovery_case_hosts(subject);
    for (guint i = 0; i < hosts->len; i++)
        if (!recovery_host_dead(follow_config(watcher->follow), hosts->pdata[i]) &&
            !reports_of(watcher->reports, hosts->pdata[i]))
            return false;
    return true;
}

bool recovery_case_want(const struct watcher *watcher, const struct recovery_case *subject,
                        const GPtrArray *hosts, guint64 dead_job, struct sights *sights)
{
    for (guint i = 0; i < hosts->len; i++)
        if (!sights_has_room(sights, hosts->pdata[i]))
            return false;
    for (guint i = 0; i < hosts->len; i++)
        if (!recovery_host_dead(follow_config(watcher->follow), hosts->pdata[i]) &&
            reports_of(watcher->reports, hosts->pdata[i]))
            sights_want(sights, hosts->pdata[i], subject->instance, dead_job);
    return true;
}
