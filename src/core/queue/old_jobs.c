/* See old_jobs.h. */
#include "core/queue/old_jobs.h"

#include "base/log.h"
#include "core/job/job_file.h"

#define ID G_GUINT64_FORMAT

static bool is_older(const struct job *file, struct stamp than)
{
    return stamp_compare((struct stamp){file->history, file->epoch}, than) < 0;
}

bool old_jobs_end_one(const struct env *env, const struct job *file, struct stamp newest)
{
    const struct job_process process = {
        .livelock = file->livelock, .pid = file->process_id, .start_ticks = file->process_start};
    if (!is_older(file, newest) || file->livelock[0] == '\0' ||
        env->ops->livelock_probe(env, file->livelock) != LIVELOCK_ALIVE)
        return false;
    log_warning("",
                "the process of job %" ID " is ended: it began under epoch %" ID ", and epoch %" ID
                " has a master",
                file->id, file->epoch, newest.epoch);
    env->ops->job_signal(env, &process, true);
    return true;
}

static void end_jobs_of(const struct env *env, const struct job_file_place *place,
                        struct stamp newest)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = job_file_list(env, place, &error);
    if (!names)
        log_warning("", "job files cannot be listed: %s", error->message);
    for (guint i = 0; names && i < names->len; i++) {
        guint64 id;
        record_autoptr(job) file =
            job_file_parse_name(names->pdata[i], &id) ? job_file_read(env, id, NULL) : NULL;
        if (file)
            old_jobs_end_one(env, file, newest);
    }
}

void old_jobs_end(const struct env *env, struct stamp newest)
{
    end_jobs_of(env, &job_file_now, newest);
    end_jobs_of(env, &job_file_before, newest);
}
