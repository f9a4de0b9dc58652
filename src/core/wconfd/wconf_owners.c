/*
 * The death of owners. They die by their lock files alone (DTH-06): an event or a hint makes us
 * probe, and only the probe counts; a sweep is the net below.
 */
#include <string.h>

#include "base/log.h"
#include "core/wconfd/wconf_private.h"

#define UNSURE_MS 1000 /* between two looks at a lock file that cannot be judged */

struct wconf_owners {
    GHashTable *watched; /* names of lock files */
    GHashTable *unsure;  /* of those that could not be judged when they were looked at last */
    guint unsure_timer;  /* until those of them that are not watched are looked at again */
    guint return_timer;  /* until clients of requests that the journal knew are back */
    struct sweeper *sweeper;
};

struct wconf_owners *wconf_owners_new(void)
{
    struct wconf_owners *owners = g_new0(struct wconf_owners, 1);
    owners->watched = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    owners->unsure = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return owners;
}

void wconf_owners_free(struct wconf_owners *owners)
{
    g_hash_table_unref(owners->watched);
    g_hash_table_unref(owners->unsure);
    g_free(owners);
}

static void owner_free_dead(struct wconf *wconf, const struct owner *owner)
{
    g_autofree char *name = locks_owner_name(owner);
    guint before = locks_count(wconf->locks);
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, CANCELED, "%s is dead: nobody holds its lock file %s", name,
                     owner->livelock);
    wconf_lock_wait_fail(locks_free_owner(wconf->locks, owner), error);
    log_info("", "%s is dead (lock file %s): %u locks freed", name, owner->livelock,
             before - locks_count(wconf->locks));
}

/* Frees what owners with this lock file have, if the probe proves that nobody holds it. */
static enum livelock_verdict judge(struct wconf *wconf, const char *livelock)
{
    enum livelock_verdict verdict = wconf->env->ops->livelock_probe(wconf->env, livelock);
    if (verdict != LIVELOCK_UNSURE)
        g_hash_table_remove(wconf->owners->unsure, livelock);
    else if (g_hash_table_add(wconf->owners->unsure, g_strdup(livelock)))
        log_warning("", "lock file %s: cannot tell whether its owner lives; nothing is freed",
                    livelock);
    if (verdict != LIVELOCK_DEAD && verdict != LIVELOCK_GONE)
        return verdict;
    g_autoptr(GPtrArray) owners = locks_owners(wconf->locks);
    for (guint i = 0; i < owners->len; i++) {
        const struct owner *owner = owners->pdata[i];
        if (!strcmp(owner->livelock, livelock))
            owner_free_dead(wconf, owner);
    }
    wconf_locks_publish(wconf);
    wconf_end_reservations(wconf, livelock);
    return verdict;
}

static bool is_needed(const struct wconf *wconf, const char *livelock)
{
    return locks_has_livelock(wconf->locks, livelock) || wconf_has_reservation(wconf, livelock);
}

static void look_later(struct wconf *wconf);
static void watch_owner(struct wconf *wconf, const char *livelock);

/* At one that is not watched: its event has come already. */
static void look_at(struct wconf *wconf, const char *livelock)
{
    enum livelock_verdict verdict = judge(wconf, livelock);
    if (wconf->down || !is_needed(wconf, livelock))
        return;
    if (verdict == LIVELOCK_ALIVE)
        watch_owner(wconf, livelock);
    else if (verdict == LIVELOCK_UNSURE)
        look_later(wconf);
}

static void look_again(void *data)
{
    struct wconf *wconf = data;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    void *name;
    wconf->owners->unsure_timer = 0;
    g_hash_table_iter_init(&iter, wconf->owners->unsure);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_ptr_array_add(names, g_strdup(name));
    for (guint i = 0; i < names->len && !wconf->down; i++)
        if (!g_hash_table_contains(wconf->owners->watched, names->pdata[i]))
            look_at(wconf, names->pdata[i]);
}

static void look_later(struct wconf *wconf)
{
    const struct env *env = wconf->env;
    if (!wconf->owners->unsure_timer)
        wconf->owners->unsure_timer = env->ops->timer(env, UNSURE_MS, look_again, wconf);
}

/* An event is no proof: what the probe does not call dead is watched on. */
static void watch_owner_cb(const char *livelock, void *data)
{
    struct wconf *wconf = data;
    g_autofree char *name = g_strdup(livelock);
    g_hash_table_remove(wconf->owners->watched, name);
    if (!wconf->down)
        look_at(wconf, name);
}

static void watch_owner(struct wconf *wconf, const char *livelock)
{
    if (g_hash_table_contains(wconf->owners->watched, livelock))
        return;
    g_hash_table_add(wconf->owners->watched, g_strdup(livelock));
    wconf->env->ops->livelock_watch(wconf->env, livelock, watch_owner_cb, wconf);
}

static bool is_held(const struct wconf *wconf, const struct owner *owner, GError **error)
{
    enum livelock_verdict verdict = wconf->env->ops->livelock_probe(wconf->env, owner->livelock);
    g_autofree char *name = locks_owner_name(owner);
    if (verdict == LIVELOCK_ALIVE)
        return true;
    if (verdict == LIVELOCK_UNSURE)
        fettle_set_error(error, TEMPORARY, "lock file %s: cannot tell whether %s lives; try again",
                         owner->livelock, name);
    else
        fettle_set_error(error, WRONG_STATE,
                         "%s does not live: nobody holds its lock file %s; nothing is locked or "
                         "changed for it",
                         name, owner->livelock);
    return false;
}

bool wconf_admit_owner(struct wconf *wconf, const struct rpc_request *request,
                       const struct owner *owner, GError **error)
{
    const char *livelock = owner->livelock;
    if (!wconf_check_owner(wconf, request, owner, error))
        return false;
    bool known =
        g_hash_table_contains(wconf->owners->watched, livelock) || is_needed(wconf, livelock);
    if (!known && !is_held(wconf, owner, error))
        return false;
    watch_owner(wconf, livelock);
    return true;
}

/* DTH-18, 19: only a file that the probe calls dead is removed, after its owner's locks are free.
 */
static void sweep(struct wconf *wconf)
{
    const struct env *env = wconf->env;
    g_autoptr(GPtrArray) owners = locks_owners(wconf->locks);
    for (guint i = 0; i < owners->len && !wconf->down; i++)
        judge(wconf, ((struct owner *)owners->pdata[i])->livelock);
    g_autoptr(GPtrArray) reserved = wconf_reserved_livelocks(wconf);
    for (guint i = 0; i < reserved->len && !wconf->down; i++)
        judge(wconf, reserved->pdata[i]);
    g_autoptr(GPtrArray) files = env->ops->livelock_list(env);
    for (guint i = 0; files && i < files->len && !wconf->down; i++) {
        if (judge(wconf, files->pdata[i]) == LIVELOCK_DEAD)
            env->ops->livelock_remove(env, files->pdata[i]);
    }
}

/* Outlives its wconf if that ends meanwhile. */
struct sweeper {
    struct wconf *wconf; /* NULL: it has ended */
};

static bool sweep_pause(const struct sweeper *sweeper)
{
    const struct cluster *cluster = config_cluster(sweeper->wconf->committed);
    return env_sleep(sweeper->wconf->env, (guint)cluster->sweep_interval_ms) && sweeper->wconf &&
           !sweeper->wconf->down;
}

static void sweep_task(void *data)
{
    struct sweeper *sweeper = data;
    while (sweeper->wconf && sweep_pause(sweeper)) {
        sweep(sweeper->wconf);
        if (sweeper->wconf) /* what it found may have ended the mastership */
            wconf_announce_again(sweeper->wconf);
    }
    if (sweeper->wconf)
        sweeper->wconf->owners->sweeper = NULL;
    g_free(sweeper);
}

/* Clients whose requests waited when we died have had their time to come back. */
static void return_over(void *data)
{
    struct wconf *wconf = data;
    wconf->owners->return_timer = 0;
    g_autoptr(GPtrArray) waiters = locks_waiters(wconf->locks);
    for (guint i = 0; i < waiters->len; i++) {
        const struct owner *owner = ((struct lock_waiter *)waiters->pdata[i])->owner;
        if (!wconf_lock_wait_of(wconf, owner))
            locks_withdraw(wconf->locks, owner);
    }
    wconf_locks_publish(wconf);
}

void wconf_owners_start(struct wconf *wconf)
{
    const struct env *env = wconf->env;
    g_autoptr(GPtrArray) owners = locks_owners(wconf->locks);
    wconf_locks_tick(wconf);
    locks_restored(wconf->locks);
    sweep(wconf);
    wconf_locks_publish(wconf);
    for (guint i = 0; i < owners->len && !wconf->down; i++) {
        const char *livelock = ((struct owner *)owners->pdata[i])->livelock;
        if (locks_has_livelock(wconf->locks, livelock))
            watch_owner(wconf, livelock);
    }
    g_autoptr(GPtrArray) reserved = wconf_reserved_livelocks(wconf);
    for (guint i = 0; i < reserved->len && !wconf->down; i++)
        watch_owner(wconf, reserved->pdata[i]);
    if (locks_waiting_count(wconf->locks) > 0)
        wconf->owners->return_timer =
            env->ops->timer(env, LIMIT_LOCK_RETURN_MS, return_over, wconf);
    wconf->owners->sweeper = g_new(struct sweeper, 1);
    wconf->owners->sweeper->wconf = wconf;
    task_spawn(env->tasks, sweep_task, wconf->owners->sweeper);
}

void wconf_owners_end(struct wconf *wconf)
{
    struct wconf_owners *owners = wconf->owners;
    if (owners->return_timer)
        wconf->env->ops->timer_cancel(wconf->env, owners->return_timer);
    if (owners->unsure_timer)
        wconf->env->ops->timer_cancel(wconf->env, owners->unsure_timer);
    owners->return_timer = owners->unsure_timer = 0;
    if (owners->sweeper)
        owners->sweeper->wconf = NULL;
    owners->sweeper = NULL;
}

void wconf_handle_owner_gone(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(owner_args) args = wconf_lock_owner(wconf, request);
    if (!args)
        return;
    judge(wconf, args->owner->livelock);
    rpc_answer(request, NULL);
}
