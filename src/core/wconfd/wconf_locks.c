/*
 * Lock calls. What changes in the locks is in the journal before anybody is told of it, and is told
 * after a barrier, as a confirmation is (SAF-03). Answers that share a barrier share one line of
 * the journal.
 */
#include <string.h>

#include "core/wconfd/wconf_private.h"

struct wconf_lock_waits {
    GPtrArray *list; /* struct lock_wait, in order of coming */
};

/* A request that waits: of the one kind or the other. */
struct lock_wait {
    struct wconf *wconf;
    struct rpc_request *request;
    const struct owner *owner; /* in its arguments */
    struct update_locks_args *update;
    struct union_locks_args *gather;
    guint timer;
};

struct wconf_lock_waits *wconf_lock_waits_new(void)
{
    struct wconf_lock_waits *waits = g_new0(struct wconf_lock_waits, 1);
    waits->list = g_ptr_array_new();
    return waits;
}

void wconf_lock_waits_free(struct wconf_lock_waits *waits)
{
    g_ptr_array_unref(waits->list);
    g_free(waits);
}

static void lock_wait_free(struct lock_wait *wait)
{
    const struct env *env = wait->wconf->env;
    if (wait->timer)
        env->ops->timer_cancel(env, wait->timer);
    g_ptr_array_remove(wait->wconf->lock_waits->list, wait);
    update_locks_args_free(wait->update);
    union_locks_args_free(wait->gather);
    g_free(wait);
}

void wconf_lock_wait_fail(struct lock_wait *wait, const GError *error)
{
    if (!wait)
        return;
    rpc_fail(wait->request, error);
    lock_wait_free(wait);
}

struct lock_wait *wconf_lock_wait_of(const struct wconf *wconf, const struct owner *owner)
{
    const GPtrArray *waits = wconf->lock_waits->list;
    for (guint i = 0; i < waits->len; i++) {
        struct lock_wait *wait = waits->pdata[i];
        if (owner_equal(wait->owner, owner))
            return wait;
    }
    return NULL;
}

void wconf_locks_tick(struct wconf *wconf)
{
    locks_set_time(wconf->locks, (guint64)wconf->env->ops->wall_us(wconf->env));
}

/* --- telling --- */

/* Writes down what has changed. If that fails nobody is told of it, and another has to be master.
 */
static void flush(struct wconf *wconf)
{
    g_autoptr(GError) error = NULL;
    if (!locks_has_events(wconf->locks))
        return;
    g_autoptr(GPtrArray) events = locks_take_events(wconf->locks);
    if (!wconf->down && !locks_journal_append(wconf->journal, wconf->locks, events, &error))
        wconf_step_down(wconf, FETTLE_ERROR_STORAGE, "the lock journal cannot be written: %s",
                        error->message);
}

/* The most frequent answer of all, as text. */
#define GRANTED "{\"blockers\":[],\"granted\":true,\"pending_nodes\":[],\"ticket\":0}"

/* With `text` there is neither result nor error. */
struct late_answer {
    struct rpc_request *request;
    const char *text;
    json_t *result;
    GError *error;
};

static void answer_late(struct wconf *wconf, void *data)
{
    struct late_answer *late = data;
    flush(wconf);
    const GError *error = wconf->down ? wconf->down : late->error;
    if (error) {
        json_decref(late->result);
        rpc_fail(late->request, error);
    } else if (late->text) {
        rpc_answer_text(late->request, late->text);
    } else {
        rpc_answer(late->request, late->result);
    }
    g_clear_error(&late->error);
    g_free(late);
}

static void tell_after_barrier(struct wconf *wconf, struct late_answer answer)
{
    struct late_answer *late = g_new(struct late_answer, 1);
    *late = answer;
    wconf_barrier(wconf, answer_late, late);
}

/* Both are stolen. */
static void tell_later(struct wconf *wconf, struct rpc_request *request, json_t *result,
                       GError *error)
{
    tell_after_barrier(wconf, (struct late_answer){request, NULL, result, error});
}

static void tell_granted(struct wconf *wconf, struct rpc_request *request)
{
    tell_after_barrier(wconf, (struct late_answer){request, GRANTED, NULL, NULL});
}

static json_t *acquired_json(const GPtrArray *names)
{
    json_t *list = json_array();
    for (guint i = 0; i < names->len; i++)
        json_array_append_new(list, json_string(names->pdata[i]));
    return json_make("{s:o}", "locks", list);
}

static void tell_grants(struct wconf *wconf)
{
    g_autoptr(GPtrArray) grants = locks_take_grants(wconf->locks);
    for (guint i = 0; i < grants->len; i++) {
        struct locks_grant *grant = grants->pdata[i];
        struct lock_wait *wait = grant->tag;
        json_t *result = grant->acquired ? acquired_json(grant->acquired) : NULL;
        if (result || grant->error)
            tell_later(wconf, wait->request, result, g_steal_pointer(&grant->error));
        else
            tell_granted(wconf, wait->request);
        lock_wait_free(wait);
    }
}

void wconf_locks_publish(struct wconf *wconf)
{
    tell_grants(wconf);
    flush(wconf);
}

/* The nodes that are to answer first, of locks whose gate is closed. Steals the names. */
static GPtrArray *nodes_behind_gates(const struct wconf *wconf, GPtrArray *lock_names)
{
    GPtrArray *nodes = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) pending = lock_names->len ? wconf_nodes_pending(wconf) : NULL;
    for (guint i = 0; pending && i < pending->len; i++) {
        const char *node = pending->pdata[i];
        bool named = false;
        if (!wconf_node_gated(wconf, node))
            continue;
        for (guint j = 0; j < lock_names->len; j++) {
            const char *rest = strchr(lock_names->pdata[j], '/') + 1;
            named = named || !strcmp(rest, node) || !strcmp(rest, "[lockset]");
        }
        if (named)
            g_ptr_array_add(nodes, g_strdup(node));
    }
    g_ptr_array_unref(lock_names);
    return nodes;
}

static json_t *blocked_json(struct wconf *wconf, const struct update_locks_args *args,
                            guint64 ticket)
{
    struct locks_wait how = {.priority = args->priority, .ticket = ticket};
    record_autoptr(update_locks_result) result =
        locks_explain(wconf->locks, args->owner, args->locks, &how);
    result->pending_nodes = nodes_behind_gates(wconf, result->pending_nodes);
    result->ticket = ticket;
    return update_locks_result_to_json(result);
}

void wconf_locks_end(struct wconf *wconf)
{
    const GPtrArray *waits = wconf->lock_waits->list;
    while (waits->len > 0)
        wconf_lock_wait_fail(waits->pdata[0], wconf->down);
}

/* --- update --- */

static void update_over(void *data)
{
    struct lock_wait *wait = data;
    struct wconf *wconf = wait->wconf;
    wait->timer = 0;
    guint64 ticket = locks_ticket(wconf->locks, wait->owner, NULL);
    wconf_locks_tick(wconf);
    locks_withdraw(wconf->locks, wait->owner);
    tell_later(wconf, wait->request, blocked_json(wconf, wait->update, ticket), NULL);
    lock_wait_free(wait);
    tell_grants(wconf);
}

static void tell_replaced(struct lock_wait *old)
{
    g_autoptr(GError) error = NULL;
    fettle_set_error(&error, CANCELED, "a newer request of the same owner has taken its place");
    wconf_lock_wait_fail(old, error);
}

/* A client that lost its connection asks again: the new request takes the place of the old one. The
 * same one loses nothing by it, not even for a moment: whoever is behind it does not pass. False:
 * it is another one, or does not wait. */
static bool replace_wait(struct wconf *wconf, const struct owner *owner, const GPtrArray *requests,
                         struct locks_wait *how)
{
    void *old = NULL;
    bool same = locks_take_over(wconf->locks, owner, requests, how, &old);
    if (!same) {
        guint64 kept = locks_ticket(wconf->locks, owner, requests);
        how->ticket = how->ticket ? how->ticket : kept;
        old = locks_withdraw(wconf->locks, owner);
    }
    tell_replaced(old);
    return same;
}

static struct lock_wait *lock_wait_new(struct wconf *wconf, struct rpc_request *request,
                                       const struct owner *owner)
{
    struct lock_wait *wait = g_new0(struct lock_wait, 1);
    *wait = (struct lock_wait){.wconf = wconf, .request = request, .owner = owner};
    return wait;
}

static void lock_wait_begin(struct lock_wait *wait, guint64 wait_ms, void (*over)(void *data))
{
    const struct env *env = wait->wconf->env;
    g_ptr_array_add(wait->wconf->lock_waits->list, wait);
    wait->timer = env->ops->timer(env, (guint)wait_ms, over, wait);
}

/* By one that waits. A request without a client is one that the journal knew. */
static bool is_replaced(const struct wconf *wconf, const struct owner *owner, bool waits)
{
    return locks_waits(wconf->locks, owner) && (waits || !wconf_lock_wait_of(wconf, owner));
}

/* `args` is stolen. */
static void update_locks(struct wconf *wconf, struct rpc_request *request,
                         struct update_locks_args *args)
{
    g_autoptr(GError) error = NULL;
    enum locks_outcome outcome = LOCKS_WAITS;
    struct lock_wait *wait = lock_wait_new(wconf, request, args->owner);
    struct locks_wait how = {.priority = args->priority,
                             .tag = wait,
                             .at_once = !args->wait,
                             .out_of_order = args->out_of_order,
                             .ticket = args->ticket};
    wait->update = args;
    bool ok = (is_replaced(wconf, args->owner, args->wait) &&
               replace_wait(wconf, args->owner, args->locks, &how)) ||
              locks_update(wconf->locks, args->owner, args->locks, &how, &outcome, &error);
    if (ok && outcome == LOCKS_WAITS) {
        lock_wait_begin(wait, args->wait_ms, update_over);
    } else {
        if (ok && outcome == LOCKS_GRANTED)
            tell_granted(wconf, request);
        else
            tell_later(wconf, request, ok ? blocked_json(wconf, args, 0) : NULL,
                       g_steal_pointer(&error));
        lock_wait_free(wait);
    }
    tell_grants(wconf);
    if (locks_has_events(wconf->locks) && ok && outcome == LOCKS_WAITS)
        flush(wconf);
}

void wconf_handle_update_locks(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    struct update_locks_args *args = rpc_request_args(request, &update_locks_args_record, &error);
    wconf_locks_tick(wconf);
    if (args && wconf_admit_owner(wconf, request, args->owner, &error)) {
        update_locks(wconf, request, args);
        return;
    }
    update_locks_args_free(args);
    rpc_fail(request, error);
}

/* --- union --- */

static void union_over(void *data)
{
    struct lock_wait *wait = data;
    struct wconf *wconf = wait->wconf;
    wait->timer = 0;
    wconf_locks_tick(wconf);
    g_autoptr(GPtrArray) names = locks_union_end(wconf->locks, wait->owner);
    tell_later(wconf, wait->request, acquired_json(names), NULL);
    lock_wait_free(wait);
    tell_grants(wconf);
}

/* `args` is stolen. */
static void union_locks(struct wconf *wconf, struct rpc_request *request,
                        struct union_locks_args *args)
{
    bool waits = args->count > 0 && args->wait_ms > 0;
    if (is_replaced(wconf, args->owner, waits))
        tell_replaced(locks_withdraw(wconf->locks, args->owner));
    struct lock_wait *wait = lock_wait_new(wconf, request, args->owner);
    struct locks_wait how = {.priority = args->priority, .tag = wait};
    g_autoptr(GPtrArray) names = NULL;
    wait->gather = args;
    if (locks_union(wconf->locks, args->owner, args->locks, waits ? (guint)args->count : 0,
                    waits ? &how : NULL, &names) == LOCKS_WAITS) {
        lock_wait_begin(wait, args->wait_ms, union_over);
    } else {
        tell_later(wconf, request, acquired_json(names), NULL);
        lock_wait_free(wait);
    }
    tell_grants(wconf);
}

void wconf_handle_union_locks(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    struct union_locks_args *args = rpc_request_args(request, &union_locks_args_record, &error);
    wconf_locks_tick(wconf);
    if (args && wconf_admit_owner(wconf, request, args->owner, &error)) {
        union_locks(wconf, request, args);
        return;
    }
    union_locks_args_free(args);
    rpc_fail(request, error);
}

void wconf_handle_guarded_union_locks(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(guarded_union_locks_args) args =
        rpc_request_args(request, &guarded_union_locks_args_record, &error);
    g_autoptr(GPtrArray) names = NULL;
    if (!args || !wconf_admit_owner(wconf, request, args->owner, &error)) {
        rpc_fail(request, error);
        return;
    }
    wconf_locks_tick(wconf);
    locks_union(wconf->locks, args->owner, args->locks, (guint)args->count, NULL, &names);
    tell_later(wconf, request, acquired_json(names), NULL);
    tell_grants(wconf);
}

/* --- less --- */

struct owner_args *wconf_lock_owner(const struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    struct owner_args *args = rpc_request_args(request, &owner_args_record, &error);
    if (args && wconf_check_owner(wconf, request, args->owner, &error))
        return args;
    owner_args_free(args);
    rpc_fail(request, error);
    return NULL;
}

/* After a call that ends the owner's wait, if it had one. */
static void tell_less(struct wconf *wconf, struct rpc_request *request, json_t *result,
                      const struct owner *owner, struct lock_wait *wait)
{
    if (wait) {
        g_autoptr(GError) error = NULL;
        g_autofree char *name = locks_owner_name(owner);
        fettle_set_error(&error, CANCELED, "a call of %s has ended the wait of %s for locks",
                         request->name, name);
        wconf_lock_wait_fail(wait, error);
    }
    tell_later(wconf, request, result, NULL);
    tell_grants(wconf);
}

void wconf_handle_free_locks(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(owner_args) args = wconf_lock_owner(wconf, request);
    if (!args)
        return;
    wconf_locks_tick(wconf);
    tell_less(wconf, request, NULL, args->owner, locks_free_owner(wconf->locks, args->owner));
}

static void change_level(struct wconf *wconf, struct rpc_request *request,
                         void *(*change)(struct locks *locks, const struct owner *owner,
                                         enum lock_level level))
{
    g_autoptr(GError) error = NULL;
    record_autoptr(lock_level_args) args =
        rpc_request_args(request, &lock_level_args_record, &error);
    if (!args || !wconf_check_owner(wconf, request, args->owner, &error)) {
        rpc_fail(request, error);
        return;
    }
    wconf_locks_tick(wconf);
    tell_less(wconf, request, NULL, args->owner, change(wconf->locks, args->owner, args->level));
}

void wconf_handle_free_locks_level(struct wconf *wconf, struct rpc_request *request)
{
    change_level(wconf, request, locks_free_level);
}

void wconf_handle_downgrade_locks_level(struct wconf *wconf, struct rpc_request *request)
{
    change_level(wconf, request, locks_downgrade_level);
}

static json_t *list_json(const struct wconf *wconf, const struct owner *owner)
{
    record_autoptr(lock_states) states = lock_states_new();
    g_ptr_array_unref(states->locks);
    states->locks = locks_list(wconf->locks, owner);
    return lock_states_to_json(states);
}

void wconf_handle_intersect_locks(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(intersect_locks_args) args =
        rpc_request_args(request, &intersect_locks_args_record, &error);
    if (!args || !wconf_check_owner(wconf, request, args->owner, &error)) {
        rpc_fail(request, error);
        return;
    }
    wconf_locks_tick(wconf);
    struct lock_wait *wait = locks_intersect(wconf->locks, args->owner, args->locks);
    tell_less(wconf, request, list_json(wconf, args->owner), args->owner, wait);
}

void wconf_handle_set_lock_priority(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(lock_priority_args) args =
        rpc_request_args(request, &lock_priority_args_record, &error);
    bool sane = args && wconf_check_owner(wconf, request, args->owner, &error);
    wconf_locks_tick(wconf);
    if (sane && !locks_set_priority(wconf->locks, args->owner, args->priority)) {
        g_autofree char *name = locks_owner_name(args->owner);
        fettle_set_error(&error, WRONG_STATE, "%s does not wait for locks", name);
        sane = false;
    }
    if (sane)
        tell_later(wconf, request, NULL, NULL);
    else
        rpc_fail(request, error);
    tell_grants(wconf);
}

/* --- listing: what was told, and what is in the journal, so it is written first --- */

void wconf_handle_list_locks(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(owner_args) args = wconf_lock_owner(wconf, request);
    if (args)
        tell_later(wconf, request, list_json(wconf, args->owner), NULL);
}

void wconf_handle_list_all_locks(struct wconf *wconf, struct rpc_request *request)
{
    tell_later(wconf, request, list_json(wconf, NULL), NULL);
}

void wconf_handle_list_lock_waiters(struct wconf *wconf, struct rpc_request *request)
{
    record_autoptr(lock_waiters) answer = lock_waiters_new();
    g_ptr_array_unref(answer->waiters);
    answer->waiters = locks_waiters(wconf->locks);
    for (guint i = 0; i < answer->waiters->len; i++) {
        struct lock_waiter *waiter = answer->waiters->pdata[i];
        waiter->pending_nodes = nodes_behind_gates(wconf, waiter->pending_nodes);
    }
    tell_later(wconf, request, lock_waiters_to_json(answer), NULL);
}
