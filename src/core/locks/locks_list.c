/* The lock manager: listings, and what a restart brings back. */
#include "core/locks/locks_private.h"

#include <string.h>

/* --- asking --- */

enum lock_mode locks_held(const struct locks *locks, const struct owner *owner, const char *name)
{
    const struct holder *holder = holder_find(locks, owner);
    enum lock_level level;
    const char *rest;
    bool is_group;
    if (!holder || !lock_name_parse(name, &level, &rest, &is_group, NULL))
        return LOCK_RELEASE;
    const struct lock *lock = g_hash_table_lookup(locks->by_name, name);
    enum lock_mode own = holder_mode(holder, lock);
    enum lock_mode group =
        is_group ? LOCK_RELEASE : holder_mode(holder, locks->levels[level].group);
    return MAX(own, group);
}

bool locks_waits(const struct locks *locks, const struct owner *owner)
{
    const struct holder *holder = holder_find(locks, owner);
    return holder && (holder->waiting || holder->gather);
}

static void free_state(void *data)
{
    lock_state_free(data);
}

static struct lock_state *state_new(const struct holder *holder, const struct lock *lock,
                                    enum lock_mode mode, bool waiting, guint64 since)
{
    struct lock_state *state = lock_state_new();
    g_free(state->name);
    state->name = g_strdup(lock->name);
    state->mode = mode;
    owner_free(state->owner);
    state->owner = owner_copy(holder->id);
    state->waiting = waiting;
    state->since = since;
    return state;
}

static gboolean list_hold(void *key, void *value, void *data)
{
    const struct hold *hold = value;
    g_ptr_array_add(data, state_new(hold->holder, hold->lock, hold->mode, false, hold->since));
    return FALSE;
}

static void list_holder(const struct holder *holder, GPtrArray *list)
{
    g_tree_foreach(holder->held, list_hold, list);
    const struct request *request = holder->waiting;
    for (guint i = 0; request && i < request->wants->len; i++) {
        const struct want *want = request->wants->pdata[i];
        g_ptr_array_add(list, state_new(holder, want->lock, want->mode, true, request->since));
    }
}

static int compare_states(const void *a, const void *b)
{
    const struct lock_state *one = *(const struct lock_state *const *)a;
    const struct lock_state *other = *(const struct lock_state *const *)b;
    int order = strcmp(one->owner->job, other->owner->job);
    order = order ? order : strcmp(one->owner->livelock, other->owner->livelock);
    order = order ? order : (int)one->waiting - (int)other->waiting;
    return order ? order : locks_compare(one->name, other->name);
}

GPtrArray *locks_list(const struct locks *locks, const struct owner *owner)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(free_state);
    const struct holder *one = owner ? holder_find(locks, owner) : NULL;
    if (one)
        list_holder(one, list);
    if (owner)
        return list;
    GHashTableIter iter;
    void *holder;
    g_hash_table_iter_init(&iter, locks->holders);
    while (g_hash_table_iter_next(&iter, NULL, &holder))
        list_holder(holder, list);
    g_ptr_array_sort(list, compare_states);
    return list;
}

static void free_owner(void *data)
{
    owner_free(data);
}

GPtrArray *locks_owners(const struct locks *locks)
{
    GPtrArray *owners = g_ptr_array_new_with_free_func(free_owner);
    GHashTableIter iter;
    void *owner;
    g_hash_table_iter_init(&iter, locks->holders);
    while (g_hash_table_iter_next(&iter, &owner, NULL))
        g_ptr_array_add(owners, owner_copy(owner));
    return owners;
}

guint locks_count(const struct locks *locks)
{
    return locks->held;
}

guint locks_waiting_count(const struct locks *locks)
{
    return (guint)g_tree_nnodes(locks->queue) + locks->gathers->len;
}

bool locks_has_livelock(const struct locks *locks, const char *livelock)
{
    GHashTableIter iter;
    void *owner;
    g_hash_table_iter_init(&iter, locks->holders);
    while (g_hash_table_iter_next(&iter, &owner, NULL)) {
        if (!strcmp(((const struct owner *)owner)->livelock, livelock))
            return true;
    }
    return false;
}

static bool same_items(const struct request *request, const struct request *other)
{
    bool same = request->items->len == other->items->len;
    for (guint i = 0; same && i < request->items->len; i++) {
        const struct item *a = request->items->pdata[i], *b = other->items->pdata[i];
        same = a->lock == b->lock && a->mode == b->mode;
    }
    return same;
}

guint64 locks_ticket(const struct locks *locks, const struct owner *owner,
                     const GPtrArray *requests)
{
    const struct holder *holder = holder_find(locks, owner);
    const struct request *waiting = holder ? holder->waiting : NULL;
    if (!waiting || !requests)
        return waiting ? waiting->ticket : 0;
    if (!requests_check(requests, NULL))
        return 0;
    struct locks_wait how = {.ticket = waiting->ticket};
    struct locks *mine = (struct locks *)locks; /* for a moment it has one request more */
    struct request *other = request_new(mine, waiting->holder, requests, &how);
    bool same = same_items(waiting, other);
    request_free(mine, other);
    return same ? waiting->ticket : 0;
}

/* --- what is in the way --- */

static void explain_blocker(const struct blocker *blocker, void *data)
{
    struct update_locks_result *result = data;
    for (guint i = 0; i < result->blockers->len; i++) {
        if (owner_equal(result->blockers->pdata[i], blocker->holder->id))
            return;
    }
    g_ptr_array_add(result->blockers, owner_copy(blocker->holder->id));
}

static void add_gates(const struct locks *locks, const struct request *request, GPtrArray *names)
{
    for (guint i = 0; i < request->wants->len; i++) {
        const struct want *want = request->wants->pdata[i];
        if (want_behind_gate(locks, want))
            g_ptr_array_add(names, g_strdup(want->lock->name));
    }
}

struct update_locks_result *locks_explain(struct locks *locks, const struct owner *owner,
                                          const GPtrArray *requests, const struct locks_wait *wait)
{
    struct update_locks_result *result = update_locks_result_new();
    if (!requests_check(requests, NULL))
        return result;
    struct request *request = request_new(locks, holder_need(locks, owner), requests, wait);
    request_fill_wants(locks, request);
    request_each_blocker(locks, request, explain_blocker, result);
    add_gates(locks, request, result->pending_nodes);
    request_free(locks, request);
    return result;
}

static struct lock_request *lock_request_of(const char *name, enum lock_mode mode)
{
    struct lock_request *request = lock_request_new();
    g_free(request->name);
    request->name = g_strdup(name);
    request->mode = mode;
    return request;
}

static struct lock_waiter *waiter_new(const struct holder *holder, gint64 priority, guint64 ticket,
                                      guint64 since)
{
    struct lock_waiter *waiter = lock_waiter_new();
    owner_free(waiter->owner);
    waiter->owner = owner_copy(holder->id);
    waiter->priority = priority;
    waiter->ticket = ticket;
    waiter->since = since;
    return waiter;
}

struct lock_waiter *waiter_of(const struct request *request)
{
    struct lock_waiter *waiter =
        waiter_new(request->holder, request->priority, request->ticket, request->since);
    waiter->out_of_order = request->out_of_order;
    for (guint i = 0; i < request->items->len; i++) {
        const struct item *item = request->items->pdata[i];
        g_ptr_array_add(waiter->locks, lock_request_of(item->lock->name, item->mode));
    }
    return waiter;
}

static void list_blocker(const struct blocker *blocker, void *data)
{
    struct lock_waiter *waiter = data;
    struct lock_blocker *row = lock_blocker_new();
    owner_free(row->owner);
    row->owner = owner_copy(blocker->holder->id);
    g_free(row->name);
    row->name = g_strdup(blocker->lock->name);
    row->mode = blocker->mode;
    row->waiting = blocker->waiting;
    row->since = blocker->since;
    g_ptr_array_add(waiter->blockers, row);
}

static void waiter_free(void *data)
{
    lock_waiter_free(data);
}

struct collecting {
    const struct locks *locks;
    GPtrArray *list;
};

static gboolean collect_waiter(void *key, void *value, void *data)
{
    struct collecting *collecting = data;
    const struct request *request = key;
    struct lock_waiter *waiter = waiter_of(request);
    request_each_blocker(collecting->locks, request, list_blocker, waiter);
    add_gates(collecting->locks, request, waiter->pending_nodes);
    g_ptr_array_add(collecting->list, waiter);
    return FALSE;
}

/* What is in the way of a union is what is in the way of its whole list. */
static struct lock_waiter *gather_waiter(struct locks *locks, const struct gather *gather)
{
    struct lock_waiter *waiter =
        waiter_new(gather->holder, gather->priority, gather->ticket, gather->since);
    struct locks_wait how = {.priority = gather->priority, .ticket = gather->ticket};
    waiter->count = gather->count;
    for (guint i = 0; i < gather->requests->len; i++) {
        const struct lock_request *wanted = gather->requests->pdata[i];
        g_ptr_array_add(waiter->locks, lock_request_of(wanted->name, wanted->mode));
    }
    struct request *request = request_new(locks, gather->holder, gather->requests, &how);
    request_fill_wants(locks, request);
    request_each_blocker(locks, request, list_blocker, waiter);
    add_gates(locks, request, waiter->pending_nodes);
    request_free(locks, request);
    return waiter;
}

GPtrArray *locks_waiters(struct locks *locks)
{
    struct collecting collecting = {locks, g_ptr_array_new_with_free_func(waiter_free)};
    g_tree_foreach(locks->queue, collect_waiter, &collecting);
    for (guint i = 0; i < locks->gathers->len; i++)
        g_ptr_array_add(collecting.list, gather_waiter(locks, locks->gathers->pdata[i]));
    return collecting.list;
}

/* --- restart --- */

void locks_restore(struct locks *locks, const struct owner *owner, const char *name,
                   enum lock_mode mode, guint64 since)
{
    struct holder *holder = holder_need(locks, owner);
    struct lock *lock = lock_need(locks, name);
    guint64 now_us = locks->now_us;
    locks->now_us = since;
    hold_set(locks, holder, lock, mode);
    locks->now_us = now_us;
    lock_unref(locks, lock);
    holder_drop_if_idle(locks, holder);
}

/* Without an event. */
static void drop_waiting(struct locks *locks, struct holder *holder)
{
    struct request *request = holder ? holder->waiting : NULL;
    if (!request)
        return;
    request_dequeue(locks, request);
    request_free(locks, request);
}

bool locks_restore_waiter(struct locks *locks, const struct lock_waiter *waiter)
{
    if (!requests_check(waiter->locks, NULL) || waiter->ticket == 0)
        return false;
    drop_waiting(locks, holder_find(locks, waiter->owner));
    struct locks_wait how = {.priority = waiter->priority,
                             .ticket = waiter->ticket,
                             .out_of_order = waiter->out_of_order};
    struct request *request =
        request_new(locks, holder_need(locks, waiter->owner), waiter->locks, &how);
    request->since = waiter->since;
    request_fill_wants(locks, request);
    request_enqueue(locks, request, NULL);
    return true;
}

void locks_restore_over(struct locks *locks, const struct owner *owner)
{
    drop_waiting(locks, holder_find(locks, owner));
}

static gboolean touch_request(void *key, void *value, void *data)
{
    struct locks *locks = data;
    g_tree_insert(locks->dirty, key, key);
    return FALSE;
}

void locks_restored(struct locks *locks)
{
    g_tree_foreach(locks->queue, touch_request, locks);
    queue_run(locks);
}
