/*
 * fettle-watcher: two parts, whose thinking is core's; here they are only wired to this host. The
 * healing loop (core/watcher/, core/repair/) stands by on candidates that are not the master. The
 * scheduler of volumes (core/storage/) works on every candidate, under a role of its own.
 */
#include "core/repair/duties.h"
#include "core/storage/volume_scheduler.h"
#include "daemons/common/daemon.h"
#include "daemons/common/standby.h"
#include "io/real_env.h"

#include <malloc.h>
#include <sys/stat.h>

static struct env *env, *scheduler_env;
static struct volume_scheduler *scheduler;
static struct watcher *watcher;
static struct standby *standby;

static void ended(const GError *error, void *data)
{
    daemon_quit(error);
}

static bool start_watcher(GError **error)
{
    return watcher_start(watcher, error);
}

static struct env *setup(const char *root, GError **error)
{
    env = real_env_new(root, ROLE_WATCHER, NULL, error);
    scheduler_env = env ? real_env_new(root, ROLE_SCHEDULER, NULL, error) : NULL;
    if (scheduler_env) {
        scheduler = volume_scheduler_new(scheduler_env, ended, NULL);
        watcher = watcher_new(env, &repair_duties);
        standby = standby_new(env, start_watcher);
    }
    return scheduler_env ? env : NULL;
}

static bool start(GError **error)
{
    volume_scheduler_start(scheduler);
    return standby_start(standby, error);
}

static void stop(void)
{
    g_clear_pointer(&scheduler, volume_scheduler_free);
    g_clear_pointer(&scheduler_env, real_env_free);
    g_clear_pointer(&watcher, watcher_free);
    g_clear_pointer(&env, real_env_free);
    standby_free(standby);
}

int main(int argc, char **argv)
{
    umask(0077); /* what others need is given to them by name (SAF-107) */
    static const struct daemon description = {
        .name = "watcher",
        .summary = "The healing loop of a Fettle cluster.",
        .setup = setup,
        .start = start,
        .stop = stop,
    };
    /* Reports of nodes come and go as many small pieces beside a few large ones, each of which
     * would make glibc merge all of its fast bins (a tenth of a pass). */
    mallopt(M_MXFAST, 0);
    return daemon_main(argc, argv, &description);
}
