/*
 * fettle-watcher: the healing loop. Its thinking is core/repair/; here it is only wired to this
 * host.
 */
#include "core/repair/watcher.h"
#include "daemons/common/daemon.h"
#include "io/real_env.h"

#include <malloc.h>

static struct env *env;
static struct watcher *watcher;

static struct env *setup(const char *root, GError **error)
{
    env = real_env_new(root, ROLE_WATCHER, NULL, error);
    if (env != NULL)
        watcher = watcher_new(env);
    return env;
}

static bool start(GError **error)
{
    return watcher_start(watcher, error);
}

static void stop(void)
{
    g_clear_pointer(&watcher, watcher_free);
    g_clear_pointer(&env, real_env_free);
}

int main(int argc, char **argv)
{
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
