/*
 * Lock calls, and the death of owners. Every change of the locks is in the journal before anybody
 * is told of it, and a grant is told after a barrier, as a confirmation is (SAF-03). Owners die by
 * their lock files alone (DTH-06): an event or a hint makes us probe, and only the probe counts; a
 * sweep is the net below.
 */
#include <string.h>

#include "base/log.h"
#include "core/config/wconf_private.h"

struct lock_wait {
    struct wconf *wconf;
    struct rpc_request *request;
    struct update_locks_args *args;
    guint timer;
};

static void lock_wait_free(struct lock_wait *wait)
{
    const struct env *env = wait->wconf->env;
    if (wait->timer)
        env->ops->timer_cancel(env, wait->timer);
    g_ptr_array_remove_fast(wait->wconf->lock_waits, wait);
    update_locks_args_free(wait->args);
    g_free(wait);
}

static void lock_wait_fail(struct lock_wait *wait, const GError *error)
{
    rpc_fail(wait->request, error);
    lock_wait_free(wait);
}

/* --- telling --- */

static json_t *granted_json(void)
{
    record_autoptr(update_locks_result) result = update_locks_result_new();
    result->granted = true;
    return update_locks_result_to_json(result);
}

/* The locks whose gate is closed, as the nodes that are to answer first. */
static GPtrArray *nodes_behind_gates(const struct wconf *wconf, const GPtrArray *lock_names)
{
    g_autoptr(GPtrArray) pending = wconf_nodes_pending(wconf);
    GPtrArray *nodes = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < pending->len; i++) {
        const char *node = pending->pdata[i];
        bool named = false;
        for (guint j = 0; j < lock_names->len; j++) {
            const char *rest = strchr(lock_names->pdata[j], '/') + 1;
            named = named || !strcmp(rest, node) || !strcmp(rest, "[lockset]");
        }
        if (named)
            g_ptr_array_add(nodes, g_strdup(node));
    }
    return nodes;
}

static json_t *blocked_json(struct wconf *wconf, const struct update_locks_args *args)
{
    record_autoptr(update_locks_result) result =
        locks_explain(wconf->locks, args->owner, args->locks, args->priority);
    GPtrArray *nodes = nodes_behind_gates(wconf, result->pending_nodes);
    g_ptr_array_unref(result->pending_nodes);
    result->pending_nodes = nodes;
    return update_locks_result_to_json(result);
}

void wconf_locks_publish(struct wconf *wconf)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) events = locks_take_events(wconf->locks);
    g_autoptr(GPtrArray) grants = locks_take_grants(wconf->locks);
    bool written = journal_append(wconf->journal, wconf->locks, events, &error);
    for (guint i = 0; i < grants->len; i++) {
        struct lock_wait *wait = grants->pdata[i];
        if (written)
            wconf_answer_after_barrier(wconf, wait->request, granted_json());
        else
            rpc_fail(wait->request, error);
        lock_wait_free(wait);
    }
    if (!written)
        wconf_step_down(wconf, FETTLE_ERROR_STORAGE, "the lock journal cannot be written: %s",
                        error->message);
}

/* --- death --- */

static void owner_free_dead(struct wconf *wconf, const struct owner *owner)
{
    g_autofree char *name = wconf_owner_name(owner);
    guint before = locks_count(wconf->locks);
    struct lock_wait *wait = locks_free_owner(wconf->locks, owner);
    if (wait) {
        g_autoptr(GError) error = NULL;
        fettle_set_error(&error, CANCELED, "%s is dead: nobody holds its lock file %s", name,
                         owner->livelock);
        lock_wait_fail(wait, error);
    }
    log_info("", "%s is dead (lock file %s): %u locks freed", name, owner->livelock,
             before - locks_count(wconf->locks));
}

/* Frees what owners with this lock file have, if the probe proves that nobody holds it. */
static enum livelock_verdict judge(struct wconf *wconf, const char *livelock)
{
    enum livelock_verdict verdict = wconf->env->ops->livelock_probe(wconf->env, livelock);
    if (verdict == LIVELOCK_UNSURE)
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
    return verdict;
}

static bool is_owner_file(const struct wconf *wconf, const char *livelock)
{
    g_autoptr(GPtrArray) owners = locks_owners(wconf->locks);
    for (guint i = 0; i < owners->len; i++) {
        if (!strcmp(((struct owner *)owners->pdata[i])->livelock, livelock))
            return true;
    }
    return false;
}

static void watch_owner(struct wconf *wconf, const char *livelock);

/* An event is no proof: if the probe does not say dead, it is watched on. */
static void watch_owner_cb(const char *livelock, void *data)
{
    struct wconf *wconf = data;
    g_autofree char *name = g_strdup(livelock);
    g_hash_table_remove(wconf->watched, name);
    if (!wconf->down && judge(wconf, name) == LIVELOCK_ALIVE && is_owner_file(wconf, name))
        watch_owner(wconf, name);
}

static void watch_owner(struct wconf *wconf, const char *livelock)
{
    if (g_hash_table_add(wconf->watched, g_strdup(livelock)))
        wconf->env->ops->livelock_watch(wconf->env, livelock, watch_owner_cb, wconf);
}

/* DTH-18, 19: only a file that the probe calls dead is removed, after its owner's locks are free.
 */
static void sweep(struct wconf *wconf)
{
    const struct env *env = wconf->env;
    g_autoptr(GPtrArray) owners = locks_owners(wconf->locks);
    for (guint i = 0; i < owners->len && !wconf->down; i++)
        judge(wconf, ((struct owner *)owners->pdata[i])->livelock);
    g_autoptr(GPtrArray) files = env->ops->livelock_list(env);
    for (guint i = 0; files && i < files->len && !wconf->down; i++) {
        if (judge(wconf, files->pdata[i]) == LIVELOCK_DEAD)
            env->ops->livelock_remove(env, files->pdata[i]);
    }
}

static void sweep_task(void *data)
{
    struct wconf *wconf = data;
    for (;;) {
        const struct cluster *cluster = config_cluster(wconf->committed);
        if (!env_sleep(wconf->env, (guint)cluster->sweep_interval_ms) || wconf->down)
            return;
        sweep(wconf);
        wconf_announce_again(wconf);
    }
}

void wconf_locks_start(struct wconf *wconf)
{
    g_autoptr(GPtrArray) owners = locks_owners(wconf->locks);
    sweep(wconf);
    for (guint i = 0; i < owners->len && !wconf->down; i++) {
        const char *livelock = ((struct owner *)owners->pdata[i])->livelock;
        if (is_owner_file(wconf, livelock))
            watch_owner(wconf, livelock);
    }
    task_spawn(wconf->env->tasks, sweep_task, wconf);
}

void wconf_locks_end(struct wconf *wconf)
{
    while (wconf->lock_waits->len > 0)
        lock_wait_fail(wconf->lock_waits->pdata[0], wconf->down);
}

/* --- update --- */

static void wait_over(void *data)
{
    struct lock_wait *wait = data;
    struct wconf *wconf = wait->wconf;
    wait->timer = 0;
    locks_withdraw(wconf->locks, wait->args->owner);
    rpc_answer(wait->request, blocked_json(wconf, wait->args));
    lock_wait_free(wait);
    wconf_locks_publish(wconf);
}

/* A client that lost its connection asks again: the new request takes the place of the old one. */
static void replace_wait(struct wconf *wconf, const struct owner *owner)
{
    struct lock_wait *old = locks_withdraw(wconf->locks, owner);
    if (!old)
        return;
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, CANCELED, "a newer request of the same owner has taken its place");
    lock_wait_fail(old, error);
}

/* `args` is stolen. */
static struct lock_wait *lock_wait_new(struct wconf *wconf, struct rpc_request *request,
                                       struct update_locks_args *args)
{
    struct lock_wait *wait = g_new0(struct lock_wait, 1);
    *wait = (struct lock_wait){wconf, request, args, 0};
    g_ptr_array_add(wconf->lock_waits, wait);
    return wait;
}

static void answer_update(struct wconf *wconf, struct lock_wait *wait, enum locks_outcome outcome)
{
    const struct env *env = wconf->env;
    switch (outcome) {
    case LOCKS_WAITS:
        wait->timer = env->ops->timer(env, (guint)wait->args->wait_ms, wait_over, wait);
        return;
    case LOCKS_BLOCKED:
        rpc_answer(wait->request, blocked_json(wconf, wait->args));
        lock_wait_free(wait);
        return;
    case LOCKS_GRANTED:
        if (wconf->down) /* the journal could not be written */
            rpc_fail(wait->request, wconf->down);
        else
            wconf_answer_after_barrier(wconf, wait->request, granted_json());
        lock_wait_free(wait);
        return;
    }
}

static void update_locks(struct wconf *wconf, struct rpc_request *request,
                         struct update_locks_args *args)
{
    g_autoptr(GError) error = NULL;
    enum locks_outcome outcome;
    if (args->wait)
        replace_wait(wconf, args->owner);
    struct lock_wait *wait = lock_wait_new(wconf, request, args);
    struct locks_wait how = {args->priority, wait};
    if (!locks_update(wconf->locks, args->owner, args->locks, args->wait ? &how : NULL, &outcome,
                      &error)) {
        lock_wait_fail(wait, error);
        wconf_locks_publish(wconf);
        return;
    }
    g_autofree char *livelock = g_strdup(args->owner->livelock);
    /* Not in the list while the journal is written: if that fails, every waiting request is
     * answered. */
    g_ptr_array_remove_fast(wconf->lock_waits, wait);
    wconf_locks_publish(wconf);
    g_ptr_array_add(wconf->lock_waits, wait);
    if (wconf->down && outcome != LOCKS_BLOCKED) {
        lock_wait_fail(wait, wconf->down);
        return;
    }
    answer_update(wconf, wait, outcome);
    watch_owner(wconf, livelock);
}

void wconf_handle_update_locks(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    struct update_locks_args *args = update_locks_args_parse(request->args, RECORD_LAX, &error);
    if (args && wconf_check_owner(args->owner, &error)) {
        update_locks(wconf, request, args);
        return;
    }
    update_locks_args_free(args);
    rpc_fail(request, error);
}

/* --- the other calls --- */

static struct owner_args *owner_of(struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    struct owner_args *args = owner_args_parse(request->args, RECORD_LAX, &error);
    if (args && wconf_check_owner(args->owner, &error))
        return args;
    owner_args_free(args);
    rpc_fail(request, error);
    return NULL;
}

static json_t *list_json(const struct wconf *wconf, const struct owner *owner)
{
    record_autoptr(lock_states) states = lock_states_new();
    g_ptr_array_unref(states->locks);
    states->locks = locks_list(wconf->locks, owner);
    return lock_states_to_json(states);
}

void wconf_handle_list_locks(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(owner_args) args = owner_of(request);
    if (args)
        rpc_answer(request, list_json(wconf, args->owner));
}

void wconf_handle_list_all_locks(struct wconf *wconf, struct rpc_request *request)
{
    rpc_answer(request, list_json(wconf, NULL));
}

void wconf_handle_free_locks(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(owner_args) args = owner_of(request);
    if (!args)
        return;
    g_autofree char *name = wconf_owner_name(args->owner);
    struct lock_wait *wait = locks_free_owner(wconf->locks, args->owner);
    if (wait) {
        g_autoptr(GError) error = NULL;
        fettle_set_error(&error, CANCELED, "the locks of %s were freed while it waited", name);
        lock_wait_fail(wait, error);
    }
    wconf_locks_publish(wconf);
    if (wconf->down)
        rpc_fail(request, wconf->down);
    else
        rpc_answer(request, NULL);
}

void wconf_handle_owner_gone(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(owner_args) args = owner_of(request);
    if (!args)
        return;
    judge(wconf, args->owner->livelock);
    rpc_answer(request, NULL);
}
