/*
 * A master whose store is the engine asks the candidates now and then whether they still follow it:
 * while it was out of reach a person may have made another one master, and then whatever this one
 * says is void (docs/design/mastership.md). A node that has only promised a later epoch, to an
 * attempt that came to nothing, refuses this master too: a new epoch mends that.
 */
#include "core/wconfd/wconf_private.h"

#define WATCH_PAUSE_MS 2000

/* Outlives its wconf if that ends in the middle of a question. */
struct watch {
    struct wconf *wconf; /* NULL: it has ended */
};

static bool has_others(const struct wconf *wconf)
{
    g_autoptr(GPtrArray) nodes = config_list(wconf->committed, "node");
    guint candidates = 0;
    for (guint i = 0; i < nodes->len; i++)
        candidates += ((const struct node *)nodes->pdata[i])->master_candidate;
    return candidates > 1 || config_cluster(wconf->committed)->alone;
}

static void watch_task(void *data)
{
    struct watch *watch = data;
    const struct env *env = watch->wconf->env;
    while (env_sleep(env, WATCH_PAUSE_MS) && watch->wconf) {
        g_autoptr(config_t) config = config_hold(watch->wconf->committed);
        g_autoptr(GError) error = NULL;
        if (!has_others(watch->wconf) || promises_hold(env, config, watch->wconf->epoch, &error))
            continue;
        if (watch->wconf)
            wconf_replaced(watch->wconf, error);
    }
    if (watch->wconf)
        watch->wconf->watch = NULL;
    g_free(watch);
}

void wconf_promise_watch_start(struct wconf *wconf)
{
    if (wconf->engine->replicated)
        return;
    wconf->watch = g_new(struct watch, 1);
    wconf->watch->wconf = wconf;
    task_spawn(wconf->env->tasks, watch_task, wconf->watch);
}

void wconf_promise_watch_end(struct wconf *wconf)
{
    if (wconf->watch)
        wconf->watch->wconf = NULL;
    wconf->watch = NULL;
}
