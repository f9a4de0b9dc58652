/* See volume_scheduler.h. */
#include "core/storage/volume_scheduler.h"

#include "base/log.h"
#include "core/config/follow.h"

#define REFUSED_PAUSE_MS 5000 /* while this node is none whose scheduler may ask */

struct volume_scheduler {
    const struct env *env;
    struct follow *follow;
    guint64 epoch; /* of the mastership that was logged last */
};

static void changed_cb(const GPtrArray *changes, void *data)
{
    struct volume_scheduler *scheduler = data;
    guint64 epoch = follow_epoch(scheduler->follow);
    if (epoch == scheduler->epoch)
        return;
    scheduler->epoch = epoch;
    const struct config *config = follow_config(scheduler->follow);
    log_info("",
             "the scheduler follows history %" G_GUINT64_FORMAT ", epoch %" G_GUINT64_FORMAT
             " from serial %" G_GUINT64_FORMAT " on",
             config_history(config), epoch, config_serial(config));
}

/* Until there is a first copy. On a node that is no candidate any more it waits until it is one. */
static void start_task(void *data)
{
    struct volume_scheduler *scheduler = data;
    const struct env *env = scheduler->env;
    for (bool told = false;; told = true) {
        g_autoptr(GError) error = NULL;
        if (follow_start(scheduler->follow, &error) || task_killed())
            return;
        if (!told)
            log_info("", "the scheduler waits: %s", error->message);
        if (!env_sleep(env, REFUSED_PAUSE_MS))
            return;
    }
}

struct volume_scheduler *volume_scheduler_new(const struct env *env)
{
    struct volume_scheduler *scheduler = g_new0(struct volume_scheduler, 1);
    scheduler->env = env;
    /* All that its copy is for is said here. */
    scheduler->follow = follow_new(env, changed_cb, scheduler);
    follow_from_anywhere(scheduler->follow);
    return scheduler;
}

void volume_scheduler_start(struct volume_scheduler *scheduler)
{
    task_spawn(scheduler->env->tasks, start_task, scheduler);
}

void volume_scheduler_free(struct volume_scheduler *scheduler)
{
    if (!scheduler)
        return;
    follow_free(scheduler->follow);
    g_free(scheduler);
}

const struct config *volume_scheduler_config(const struct volume_scheduler *scheduler)
{
    return follow_config(scheduler->follow);
}
