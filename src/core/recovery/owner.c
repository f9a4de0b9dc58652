/* See owner.h. */
#include "core/recovery/owner.h"

#include "base/text.h"
#include "core/watcher/watcher_private.h"

static const char *const words[] = {
    [OWNER_DEAD] = "dead",
    [OWNER_LIVES] = "lives",
    [OWNER_QUEUED] = "queued",
    [OWNER_UNKNOWN] = "unknown",
};

const char *recovery_owner_word(enum recovery_owner owner)
{
    return words[owner];
}

static bool was_given_out(const struct config *config, guint64 job)
{
    const struct counter *counter = config_get(config, "counter", "job", NULL);
    return job <= (counter ? counter->value : 0);
}

enum recovery_owner recovery_owner_of(const struct config *config, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(config, "job", key, NULL);
    if (!job)
        return was_given_out(config, id) ? OWNER_DEAD : OWNER_UNKNOWN;
    if (watcher_job_ended(job))
        return OWNER_DEAD;
    return job->started ? OWNER_LIVES : OWNER_QUEUED;
}

char *recovery_owner_text(const struct config *config, guint64 id)
{
    g_autofree char *key = g_strdup_printf("%" G_GUINT64_FORMAT, id);
    const struct job *job = config_get(config, "job", key, NULL);
    if (id == 0)
        return g_strdup("no job is on record as its owner");
    if (!job)
        return g_strdup(was_given_out(config, id) ? "it was archived after its end"
                                                  : "no job of that number is known");
    g_autofree char *end = text_time((gint64)(job->end_us / G_USEC_PER_SEC));
    if (watcher_job_ended(job))
        return g_strdup_printf("it ended at %s (%s)", end, job->status);
    return g_strdup(job->started ? "it has been started, and has not ended"
                                 : "it has not been started");
}
