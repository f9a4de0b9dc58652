/* See recovery_private.h: ordinary jobs that finish or undo what a dead one left half made. */
#include <string.h>

#include "core/recovery/recovery_private.h"

/* With the mark of a dead job it sees to every disk. */
static void add_growth(json_t *opcode, const struct disk *disk)
{
    json_object_set_new(opcode, "disk", json_integer(0));
    json_object_set_new(opcode, "amount", json_integer((json_int_t)disk->size));
    json_object_set_new(opcode, "absolute", json_true());
}

/* A replica has to grow along; a mark that waits for its node would hold up the repair that the
 * replica needs. A disk that is smaller than its record can be grown at any time. */
static bool only_plainly(const struct watcher *watcher, const struct recovery_case *subject)
{
    const struct instance *instance = subject->instance;
    bool alone = *instance->secondary_node != '\0' &&
                 reports_of(watcher->reports, instance->secondary_node) == NULL;
    return instance->task_state == TASK_GROWING_DISK &&
           (alone || subject->remembered->tries.count >= LIMIT_REPAIR_TRIES);
}

static json_t *opcodes_of(const struct watcher *watcher, const struct recovery_case *subject)
{
    const struct instance *instance = subject->instance;
    bool plainly = only_plainly(watcher, subject);
    const char *power =
        instance->admin_state == ADMIN_UP ? "OP_INSTANCE_STARTUP" : "OP_INSTANCE_SHUTDOWN";
    const char *opcode = plainly ? power : subject->judgement->finisher;
    json_t *opcodes = watcher_opcode(opcode, instance);
    json_t *first = json_array_get(opcodes, 0);
    /* Only while what it was made for stands (SAF-83). */
    g_autofree char *task = g_strdup_printf("%s/%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT,
                                            enum_word(&task_state_words, (int)instance->task_state),
                                            instance->task_owner, instance->generation);
    json_object_set_new(first, "if_task", json_string(task));
    if (strcmp(opcode, "OP_INSTANCE_MIGRATE") == 0)
        json_object_set_new(first, "cleanup", json_true());
    if (strcmp(opcode, "OP_INSTANCE_GROW_DISK") == 0 && instance->disks->len > 0)
        add_growth(first, instance->disks->pdata[0]);
    return opcodes;
}

static char *request_prefix(const struct instance *instance)
{
    return g_strdup_printf("finish/%s/%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT, instance->uuid,
                           instance->task_owner, instance->generation);
}

bool recovery_may_finish(struct watcher *watcher, struct recovery_case *subject)
{
    struct remembered *remembered = subject->remembered;
    const struct instance *instance = subject->instance;
    /* A finishing job that dies leaves the same task under its own number. */
    if (remembered->task != instance->task_state ||
        remembered->generation != instance->generation) {
        remembered->task = instance->task_state;
        remembered->generation = instance->generation;
        remembered->tries = (struct tries){0};
    }
    return !tries_under_way(watcher, &remembered->tries);
}

guint recovery_room(const struct watcher *watcher)
{
    guint most = (guint)watcher_cluster(watcher)->recovery_max_jobs;
    g_autoptr(GPtrArray) jobs = config_list(follow_config(watcher->follow), "job");
    guint count = 0;
    for (guint i = 0; i < jobs->len; i++) {
        const struct job *job = jobs->pdata[i];
        count += g_str_has_prefix(job->request_id, "finish/") && !watcher_job_ended(job);
    }
    return most - MIN(most, count);
}

gint recovery_down_first(gconstpointer left, gconstpointer right)
{
    const struct recovery_case *a = *(const struct recovery_case *const *)left;
    const struct recovery_case *b = *(const struct recovery_case *const *)right;
    return (gint)b->remembered->down - (gint)a->remembered->down;
}

static bool submit(struct watcher *watcher, struct recovery_case *subject)
{
    struct tries *tries = &subject->remembered->tries;
    g_autofree char *prefix = request_prefix(subject->instance);
    g_autofree char *request_id = tries_request(watcher, tries, prefix);
    if (request_id == NULL || !tries_next(watcher, tries))
        return false;
    g_autoptr(GError) error = NULL;
    g_autofree char *reason = g_strdup_printf(
        "Job %" G_GUINT64_FORMAT " ended while %s it (%s)", subject->instance->task_owner,
        enum_word(&task_state_words, (int)subject->instance->task_state), subject->judgement->rule);
    guint64 job = watcher_submit(watcher, opcodes_of(watcher, subject), request_id, reason,
                                 (gint64)subject->instance->task_since, &error);
    tries_submitted(tries, job);
    return job != 0;
}

void recovery_finish(struct watcher *watcher, const GPtrArray *cases)
{
    g_autoptr(GPtrArray) those = g_ptr_array_new();
    for (guint i = 0; i < cases->len; i++)
        if (((struct recovery_case *)cases->pdata[i])->finish)
            g_ptr_array_add(those, cases->pdata[i]);
    if (those->len == 0)
        return;
    g_ptr_array_sort(those, recovery_down_first);
    guint room = recovery_room(watcher);
    for (guint i = 0; i < those->len && room > 0 && !task_killed(); i++)
        room -= submit(watcher, those->pdata[i]);
}
