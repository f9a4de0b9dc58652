/* The lock manager: locks, owners, holds, what came of them; see locks.h for the rules. */
#include "core/locks/locks_private.h"

#include <string.h>

/* --- locks --- */

static int order_locks(const void *a, const void *b, void *data)
{
    return lock_order(a, b);
}

static int order_requests(const void *a, const void *b, void *data)
{
    return request_order(a, b);
}

struct lock *lock_ref(struct lock *lock)
{
    lock->refs++;
    return lock;
}

struct lock *lock_need(struct locks *locks, const char *name)
{
    struct lock *lock = g_hash_table_lookup(locks->by_name, name);
    if (lock)
        return lock_ref(lock);
    lock = g_new0(struct lock, 1);
    lock->refs = 1;
    lock->name = g_strdup(name);
    g_assert(lock_name_parse(lock->name, &lock->level, &lock->rest, &lock->group, NULL));
    lock->holds = g_ptr_array_new();
    lock->wants = g_ptr_array_new();
    g_hash_table_insert(locks->by_name, lock->name, lock);
    if (lock->group)
        locks->levels[lock->level].group = lock;
    else
        g_tree_insert(locks->levels[lock->level].members, lock, lock);
    return lock;
}

void lock_unref(struct locks *locks, struct lock *lock)
{
    if (--lock->refs > 0)
        return;
    if (lock->group)
        locks->levels[lock->level].group = NULL;
    else
        g_tree_remove(locks->levels[lock->level].members, lock);
    g_hash_table_remove(locks->by_name, lock->name);
    g_ptr_array_unref(lock->holds);
    g_ptr_array_unref(lock->wants);
    g_free(lock->name);
    g_free(lock);
}

struct lock *lock_group(const struct locks *locks, const struct lock *lock)
{
    return lock->group ? NULL : locks->levels[lock->level].group;
}

/* --- owners --- */

char *locks_owner_name(const struct owner *owner)
{
    bool number = *owner->job && strspn(owner->job, "0123456789") == strlen(owner->job);
    return number ? g_strdup_printf("job %s", owner->job) : g_strdup(owner->job);
}

static guint owner_hash(const void *data)
{
    const struct owner *owner = data;
    return g_str_hash(owner->job) * 31 + g_str_hash(owner->livelock);
}

static gboolean owner_same(const void *a, const void *b)
{
    return owner_equal(a, b);
}

struct holder *holder_find(const struct locks *locks, const struct owner *owner)
{
    return g_hash_table_lookup(locks->holders, owner);
}

struct holder *holder_need(struct locks *locks, const struct owner *owner)
{
    struct holder *holder = holder_find(locks, owner);
    if (holder)
        return holder;
    holder = g_new0(struct holder, 1);
    holder->refs = 1;
    holder->id = owner_copy(owner);
    holder->held = g_tree_new_full(order_locks, NULL, NULL, NULL);
    g_hash_table_insert(locks->holders, holder->id, holder);
    return holder;
}

static void holder_unref(struct holder *holder)
{
    if (--holder->refs > 0)
        return;
    g_tree_unref(holder->held);
    owner_free(holder->id);
    g_free(holder);
}

void holder_drop_if_idle(struct locks *locks, struct holder *holder)
{
    if (holder->waiting || holder->gather || g_tree_nnodes(holder->held) > 0)
        return;
    g_hash_table_remove(locks->holders, holder->id);
    holder_unref(holder);
}

struct hold *holder_hold(const struct holder *holder, const struct lock *lock)
{
    return g_tree_lookup(holder->held, lock);
}

enum lock_mode holder_mode(const struct holder *holder, const struct lock *lock)
{
    const struct hold *hold = lock ? holder_hold(holder, lock) : NULL;
    return hold ? hold->mode : LOCK_RELEASE;
}

/* `by` is 1 or -1. */
static void count_hold(struct locks *locks, const struct hold *hold, int by)
{
    guint step = (guint)by; /* modular: adding (guint)-1 takes one away */
    hold->lock->exclusive += hold->mode == LOCK_EXCLUSIVE ? step : 0;
    locks->held += step;
}

bool hold_set(struct locks *locks, struct holder *holder, struct lock *lock, enum lock_mode mode)
{
    struct hold *hold = holder_hold(holder, lock);
    if ((hold ? hold->mode : LOCK_RELEASE) == mode)
        return false;
    if (!hold) {
        hold = g_new(struct hold, 1);
        *hold = (struct hold){holder, lock_ref(lock), mode, locks->now_us};
        g_ptr_array_add(lock->holds, hold);
        g_tree_insert(holder->held, lock, hold);
        count_hold(locks, hold, 1);
        return true;
    }
    count_hold(locks, hold, -1);
    hold->mode = mode;
    hold->since = locks->now_us;
    if (mode != LOCK_RELEASE) {
        count_hold(locks, hold, 1);
        return true;
    }
    g_ptr_array_remove_fast(lock->holds, hold);
    g_tree_remove(holder->held, lock);
    g_free(hold);
    lock_unref(locks, lock);
    return true;
}

/* --- events and grants --- */

struct event {
    struct locks_event public;
    struct locks *locks;
};

static void event_free(void *data)
{
    struct event *event = data;
    holder_unref(event->public.holder);
    if (event->public.lock)
        lock_unref(event->locks, event->public.lock);
    lock_waiter_free(event->public.waiter);
    g_free(event);
}

static struct locks_event *event_add(struct locks *locks, struct holder *holder)
{
    struct event *event = g_new0(struct event, 1);
    holder->refs++;
    event->locks = locks;
    event->public.owner = holder->id;
    event->public.holder = holder;
    event->public.since = locks->now_us;
    g_ptr_array_add(locks->events, event);
    return &event->public;
}

void hold_tell(struct locks *locks, struct holder *holder, struct lock *lock, enum lock_mode mode)
{
    struct locks_event *event = event_add(locks, holder);
    event->lock = lock_ref(lock);
    event->name = lock->name;
    event->mode = mode;
    queue_touch(locks, lock);
}

void change_hold(struct locks *locks, struct holder *holder, struct lock *lock, enum lock_mode mode)
{
    if (hold_set(locks, holder, lock, mode))
        hold_tell(locks, holder, lock, mode);
}

void request_tell(struct locks *locks, struct request *request, bool waits)
{
    struct locks_event *event = event_add(locks, request->holder);
    event->waiter = waits ? waiter_of(request) : NULL;
}

GPtrArray *locks_take_events(struct locks *locks)
{
    GPtrArray *events = locks->events;
    locks->events = g_ptr_array_new_with_free_func(event_free);
    return events;
}

bool locks_has_events(const struct locks *locks)
{
    return locks->events->len > 0;
}

static void grant_free(void *data)
{
    struct locks_grant *grant = data;
    if (grant->acquired)
        g_ptr_array_unref(grant->acquired);
    g_clear_error(&grant->error);
    g_free(grant);
}

/* What the journal knew has no tag until its client asks again. */
void grant_add(struct locks *locks, void *tag, GPtrArray *acquired, GError *error)
{
    struct locks_grant *grant = g_new(struct locks_grant, 1);
    *grant = (struct locks_grant){tag, acquired, error};
    if (tag)
        g_ptr_array_add(locks->grants, grant);
    else
        grant_free(grant);
}

GPtrArray *locks_take_grants(struct locks *locks)
{
    GPtrArray *grants = locks->grants;
    locks->grants = g_ptr_array_new_with_free_func(grant_free);
    return grants;
}

/* --- life --- */

void locks_set_time(struct locks *locks, guint64 now_us)
{
    locks->now_us = now_us;
}

struct locks *locks_new(locks_gate gated, void *data)
{
    struct locks *locks = g_new0(struct locks, 1);
    locks->gated = gated;
    locks->gate_data = data;
    locks->next_ticket = 1;
    locks->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    locks->holders = g_hash_table_new(owner_hash, owner_same);
    for (guint i = 0; i < LEVEL_COUNT; i++)
        locks->levels[i].members = g_tree_new_full(order_locks, NULL, NULL, NULL);
    locks->queue = g_tree_new_full(order_requests, NULL, NULL, NULL);
    locks->dirty = g_tree_new_full(order_requests, NULL, NULL, NULL);
    locks->disorderly = g_ptr_array_new();
    locks->gathers = g_ptr_array_new();
    locks->events = g_ptr_array_new_with_free_func(event_free);
    locks->grants = g_ptr_array_new_with_free_func(grant_free);
    return locks;
}

void locks_reset(struct locks *locks)
{
    g_autoptr(GPtrArray) owners = locks_owners(locks);
    for (guint i = 0; i < owners->len; i++)
        locks_withdraw(locks, owners->pdata[i]);
    for (guint i = 0; i < owners->len; i++)
        locks_free_owner(locks, owners->pdata[i]);
    g_ptr_array_set_size(locks->events, 0);
    g_ptr_array_set_size(locks->grants, 0);
}

void locks_free(struct locks *locks)
{
    if (!locks)
        return;
    locks_reset(locks);
    for (guint i = 0; i < LEVEL_COUNT; i++)
        g_tree_unref(locks->levels[i].members);
    g_tree_unref(locks->queue);
    g_tree_unref(locks->dirty);
    g_ptr_array_unref(locks->disorderly);
    g_ptr_array_unref(locks->gathers);
    g_ptr_array_unref(locks->events);
    g_ptr_array_unref(locks->grants);
    g_hash_table_unref(locks->by_name);
    g_hash_table_unref(locks->holders);
    g_free(locks);
}
