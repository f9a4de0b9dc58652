/*
 * fettle-watcher: the healing loop. Its thinking is core/watcher/ and core/repair/; here it is only
 * wired to this host. On candidates that are not the master it stands by.
 */
#include "core/repair/duties.h"
#include "daemons/common/daemon.h"
#include "daemons/common/standby.h"
#include "io/real_env.h"

#include <malloc.h>
#include <sys/stat.h>

static struct env *env;
static struct watcher *watcher;
static struct standby *standby;

static bool start_watcher(GError **error)
{
    return watcher_start(watcher, error);
}

static struct env *setup(const char *root, GError **error)
{
    env = real_env_new(root, ROLE_WATCHER, NULL, error);
    if (env != NULL) {
        watcher = watcher_new(env, &repair_duties);
        standby = standby_new(env, start_watcher);
    }
    return env;
}

static bool start(GError **error)
{
    return standby_start(standby, error);
}

static void stop(void)
{
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
