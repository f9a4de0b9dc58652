/* Counting what the watcher tries for one instance; see repair_private.h. */
#include "core/repair/repair_private.h"

json_t *watcher_opcode(const char *id, const struct instance *instance)
{
    return json_make("[{ssss}]", "OP_ID", id, "instance_name", instance->name);
}

bool watcher_job_under_way(const struct watcher *watcher, guint64 job)
{
    g_autofree char *message = NULL;
    return job != 0 && watcher_job_outcome(watcher, job, &message) == JOB_UNDER_WAY;
}

void tries_forget(struct watched *watched)
{
    watched->restart_tries = 0;
    watched->restart_deaths = 0;
}

bool tries_next(const struct watcher *watcher, struct watched *watched)
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

char *tries_request(const struct watcher *watcher, struct watched *watched, const char *prefix)
{
    guint64 number = 0, last = watcher_last_try(watcher, prefix, &number);
    if (!watcher_job_under_way(watcher, last))
        return g_strdup_printf("%s/%" G_GUINT64_FORMAT, prefix, number + 1);
    watched->restart_job = last;
    return NULL;
}

void tries_submitted(struct watched *watched, guint64 job)
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

bool tries_under_way(const struct watcher *watcher, struct watched *watched)
{
    if (watcher_job_under_way(watcher, watched->restart_job))
        return true;
    if (watched->restart_tries > 0 && watched->restart_deaths < LIMIT_REPAIR_DEATHS &&
        died_before_it_began(watcher, watched->restart_job)) {
        watched->restart_deaths++;
        tries_submitted(watched, 0);
    }
    return false;
}
