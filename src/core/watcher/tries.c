/* See tries.h. */
#include "core/watcher/tries.h"

json_t *watcher_opcode(const char *id, const struct instance *instance)
{
    return json_make("[{ssss}]", "OP_ID", id, "instance_name", instance->name);
}

bool watcher_job_under_way(const struct watcher *watcher, guint64 job)
{
    g_autofree char *message = NULL;
    return job != 0 && watcher_job_outcome(watcher, job, &message) == JOB_UNDER_WAY;
}

void tries_forget(struct tries *tries)
{
    tries->count = 0;
    tries->deaths = 0;
}

bool tries_next(const struct watcher *watcher, struct tries *tries)
{
    gint64 now_ms = watcher->env->ops->boot_ms(watcher->env);
    if (tries->after_ms > now_ms)
        return false;
    tries->count++;
    tries->tried_ms = now_ms;
    tries->after_ms = now_ms + watcher_pause_ms(tries->count + tries->deaths);
    return true;
}

char *tries_request(const struct watcher *watcher, struct tries *tries, const char *prefix)
{
    guint64 number = 0, last = watcher_last_try(watcher, prefix, &number);
    if (!watcher_job_under_way(watcher, last))
        return g_strdup_printf("%s/%" G_GUINT64_FORMAT, prefix, number + 1);
    tries->job = last;
    return NULL;
}

void tries_submitted(struct tries *tries, guint64 job)
{
    tries->job = job;
    if (job == 0)
        tries->count--;
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

bool tries_under_way(const struct watcher *watcher, struct tries *tries)
{
    if (watcher_job_under_way(watcher, tries->job))
        return true;
    if (tries->count > 0 && tries->deaths < LIMIT_REPAIR_DEATHS &&
        died_before_it_began(watcher, tries->job)) {
        tries->deaths++;
        tries_submitted(tries, 0);
    }
    return false;
}
