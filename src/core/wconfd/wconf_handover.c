/* A master of a replicated engine gives its seat to another candidate; see wconf.h. */
#include "core/wconfd/wconf_private.h"

#define HAND_OVER_MS 3000 /* for what is on its way to the engine */
#define HAND_OVER_LOOK_MS 10u

static bool drain(struct wconf *wconf, GError **error)
{
    const struct env *env = wconf->env;
    gint64 until = env->ops->boot_ms(env) + HAND_OVER_MS;
    while (!wconf->down && wconf->pending.length > 0 && env->ops->boot_ms(env) < until) {
        if (!env_sleep(env, HAND_OVER_LOOK_MS)) {
            fettle_set_error(error, KILLED, "the process has ended");
            return false;
        }
    }
    if (wconf->down)
        g_propagate_error(error, g_error_copy(wconf->down));
    else if (wconf->pending.length > 0)
        fettle_set_error(error, TEMPORARY,
                         "etcd has not stored what was on its way within %d s; this node goes on "
                         "as the master",
                         HAND_OVER_MS / 1000);
    return !wconf->down && wconf->pending.length == 0;
}

static void gone(struct wconf *wconf, const char *name)
{
    wconf_on_step_down(wconf, NULL, NULL);
    wconf_step_down(wconf, FETTLE_ERROR_NOT_MASTER, "mastership was handed to node %s", name);
}

bool wconf_hand_over(struct wconf *wconf, const char *next, const char *name, GError **error)
{
    g_autoptr(GError) reason = NULL;
    wconf->leaving = true;
    bool done = drain(wconf, &reason) && wconf->engine->ops->resign(wconf->engine, next, &reason);
    wconf->leaving = false;
    if (done)
        gone(wconf, name);
    else if (fettle_error_is(reason, UNKNOWN_RESULT))
        wconf_step_down(wconf, FETTLE_ERROR_UNKNOWN_RESULT,
                        "mastership was to be handed to node %s, and it is not known whether it "
                        "was: %s",
                        name, reason->message);
    if (reason)
        g_propagate_error(error, g_steal_pointer(&reason));
    return done;
}
