/* See recovery_private.h: what a dead job has left of the volumes of an instance (RCV-75). */
#include <string.h>

#include "core/config/attachments.h"
#include "core/recovery/recovery_private.h"
#include "proto/change.h"
#include "proto/hypervisor.h"

static const struct guest_volume *noted(const struct sight *sight, const char *attachment)
{
    for (guint i = 0; i < sight->volumes->len; i++) {
        const struct guest_volume *volume = sight->volumes->pdata[i];
        if (strcmp(volume->attachment, attachment) == 0)
            return volume;
    }
    return NULL;
}

static bool has_drive(const struct sight *sight, const char *attachment)
{
    g_autofree char *name = g_strdup_printf(VOLUME_DRIVE, attachment);
    return g_ptr_array_find_with_equal_func(sight->drives, name, g_str_equal, NULL);
}

/* Of what the guest has. What it was asked to give up is its own until its node has seen it go,
 * which says so itself (SAF-124). */
static void take_outcome(struct volume *volume, bool used, bool leaving, guint64 now_us)
{
    struct attachment *attachment = volume->attachments->pdata[0];
    const struct task_facts facts = {{used ? TASK_FACT_USED : TASK_FACT_UNUSED}};
    const struct task_row *task = task_row_of(
        TASK_KIND_attachment, enum_word(&attachment_state_words, (int)attachment->state));
    if (task_outcome_of(task, &facts, false, RECTIFY_NO).final == TASK_FINAL_REMOVED) {
        g_ptr_array_set_size(volume->attachments, 0);
        return;
    }
    attachment->state = ATTACHMENT_ATTACHED;
    attachment->job = 0;
    attachment->since_us = now_us;
    attachment->leaving_us = leaving ? now_us : 0;
}

static bool is_left_over(const struct attachment *attachment, guint64 job)
{
    return attachment->job == job &&
           (attachment->state == ATTACHMENT_ATTACHING || attachment->state == ATTACHMENT_DETACHING);
}

/* One that may be open and is not plugged in stays as it is, for who repeats it. */
void recovery_settle_volumes(const struct watcher *watcher, const struct recovery_case *subject,
                             const struct sights *sights, GPtrArray *changes)
{
    const struct config *config = follow_config(watcher->follow);
    const struct instance *instance = subject->instance;
    const struct sight *sight = sights_of(sights, instance->primary_node, instance->uuid);
    g_autoptr(GPtrArray) volumes = config_instance_volumes(config, instance->uuid);
    for (guint i = 0; sight && i < volumes->len; i++) {
        const struct volume *volume = volumes->pdata[i];
        const struct attachment *left = attachment_of(volume);
        const struct guest_volume *note = noted(sight, left->uuid);
        bool leaving = note && note->leaving, has = has_drive(sight, left->uuid);
        if (!is_left_over(left, instance->task_owner) || (note && !leaving && !has))
            continue;
        record_autoptr(volume) after = volume_copy(volume);
        take_outcome(after, note || has, leaving,
                     (guint64)watcher->env->ops->wall_us(watcher->env));
        g_ptr_array_add(changes, config_put(config, "volume", after->uuid, volume_to_json(after)));
    }
}
