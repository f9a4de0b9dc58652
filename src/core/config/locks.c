/* The lock manager: owners, holds and updates; see locks.h for the rules, locks_queue.c for
 * waiting. */
#include "core/config/locks_private.h"

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

/* A new reference; `name` has been checked. */
static struct lock *lock_need(struct locks *locks, const char *name)
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

static guint owner_hash(const void *data)
{
    const struct owner *owner = data;
    return g_str_hash(owner->job) * 31 + g_str_hash(owner->livelock);
}

static gboolean owner_same(const void *a, const void *b)
{
    return owner_equal(a, b);
}

static struct holder *holder_find(const struct locks *locks, const struct owner *owner)
{
    return g_hash_table_lookup(locks->holders, owner);
}

static struct holder *holder_need(struct locks *locks, const struct owner *owner)
{
    struct holder *holder = holder_find(locks, owner);
    if (holder)
        return holder;
    holder = g_new0(struct holder, 1);
    holder->id = owner_copy(owner);
    holder->held = g_tree_new_full(order_locks, NULL, NULL, NULL);
    g_hash_table_insert(locks->holders, holder->id, holder);
    return holder;
}

static void holder_drop_if_idle(struct locks *locks, struct holder *holder)
{
    if (holder->waiting || g_tree_nnodes(holder->held) > 0)
        return;
    g_hash_table_remove(locks->holders, holder->id);
    g_tree_unref(holder->held);
    owner_free(holder->id);
    g_free(holder);
}

struct hold *holder_hold(const struct holder *holder, const struct lock *lock)
{
    return g_tree_lookup(holder->held, lock);
}

static enum lock_mode holder_mode(const struct holder *holder, const struct lock *lock)
{
    const struct hold *hold = lock ? holder_hold(holder, lock) : NULL;
    return hold ? hold->mode : LOCK_RELEASE;
}

/* Keeps the counters of the level and of the owner: `by` is 1 or -1. */
static void count_hold(struct locks *locks, const struct hold *hold, int by)
{
    struct lock *lock = hold->lock;
    bool exclusive = hold->mode == LOCK_EXCLUSIVE;
    guint step = (guint)by; /* modular: adding (guint)-1 takes one away */
    lock->exclusive += exclusive ? step : 0;
    locks->held += step;
    if (lock->group)
        return;
    locks->levels[lock->level].holds += step;
    locks->levels[lock->level].exclusive += exclusive ? step : 0;
    hold->holder->level_holds[lock->level] += step;
    hold->holder->level_exclusive[lock->level] += exclusive ? step : 0;
}

/* Returns whether anything changed. */
static bool hold_set(struct locks *locks, struct holder *holder, struct lock *lock,
                     enum lock_mode mode)
{
    struct hold *hold = holder_hold(holder, lock);
    if ((hold ? hold->mode : LOCK_RELEASE) == mode)
        return false;
    if (!hold) {
        hold = g_new(struct hold, 1);
        *hold = (struct hold){holder, lock_ref(lock), mode};
        g_ptr_array_add(lock->holds, hold);
        g_tree_insert(holder->held, lock, hold);
        count_hold(locks, hold, 1);
        return true;
    }
    count_hold(locks, hold, -1);
    hold->mode = mode;
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

/* --- requests --- */

static void item_free(struct locks *locks, struct item *item)
{
    lock_unref(locks, item->lock);
    g_free(item);
}

void request_free(struct locks *locks, struct request *request)
{
    for (guint i = 0; i < request->items->len; i++)
        item_free(locks, request->items->pdata[i]);
    g_ptr_array_unref(request->items);
    g_ptr_array_unref(request->wants);
    holder_drop_if_idle(locks, request->holder);
    g_free(request);
}

static void event_free(void *data)
{
    struct locks_event *event = data;
    owner_free(event->owner);
    g_free(event->name);
    g_free(event);
}

static void change_hold(struct locks *locks, struct holder *holder, struct lock *lock,
                        enum lock_mode mode)
{
    if (!hold_set(locks, holder, lock, mode))
        return;
    struct locks_event *event = g_new(struct locks_event, 1);
    *event = (struct locks_event){owner_copy(holder->id), g_strdup(lock->name), mode};
    g_ptr_array_add(locks->events, event);
    queue_touch(locks, lock);
}

void request_apply(struct locks *locks, struct request *request)
{
    for (guint i = 0; i < request->items->len; i++) {
        const struct item *item = request->items->pdata[i];
        change_hold(locks, request->holder, item->lock, item->mode);
    }
}

static int compare_items(const void *a, const void *b)
{
    const struct item *one = *(const struct item *const *)a;
    const struct item *other = *(const struct item *const *)b;
    return lock_order(one->lock, other->lock);
}

static bool twice(const char *name, enum lock_mode one, enum lock_mode other, GError **error)
{
    if (one == other)
        return true;
    fettle_set_error(error, WRONG_INPUT, "lock %s is named twice: %s and %s", name,
                     enum_word(&lock_mode_words, (int)one),
                     enum_word(&lock_mode_words, (int)other));
    return false;
}

static bool check_items(const GPtrArray *requests, GError **error)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    if (requests->len > LIMIT_LOCKS_PER_CALL) {
        fettle_set_error(error, LIMIT, "%u locks in one call; the limit is %u", requests->len,
                         LIMIT_LOCKS_PER_CALL);
        return false;
    }
    for (guint i = 0; i < requests->len; i++) {
        const struct lock_request *wanted = requests->pdata[i];
        void *mode;
        if (!locks_check_name(wanted->name, error))
            return false;
        if (g_hash_table_lookup_extended(seen, wanted->name, NULL, &mode) &&
            !twice(wanted->name, (enum lock_mode)GPOINTER_TO_UINT(mode), wanted->mode, error))
            return false;
        g_hash_table_insert(seen, wanted->name, GUINT_TO_POINTER(wanted->mode));
    }
    return true;
}

/* Sorted, each lock once. */
static struct request *request_new(struct locks *locks, struct holder *holder,
                                   const GPtrArray *requests, gint64 priority)
{
    struct request *request = g_new0(struct request, 1);
    request->holder = holder;
    request->priority = priority;
    request->ticket = locks->next_ticket++;
    request->items = g_ptr_array_new();
    request->wants = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < requests->len; i++) {
        const struct lock_request *wanted = requests->pdata[i];
        struct item *item = g_new(struct item, 1);
        *item = (struct item){lock_need(locks, wanted->name), wanted->mode};
        g_ptr_array_add(request->items, item);
    }
    g_ptr_array_sort(request->items, compare_items);
    for (guint i = request->items->len; i > 1; i--) {
        if (compare_items(&request->items->pdata[i - 1], &request->items->pdata[i - 2]) == 0) {
            item_free(locks, request->items->pdata[i - 1]);
            g_ptr_array_remove_index(request->items, i - 1);
        }
    }
    return request;
}

/* Must the lock be won from others: is it new or stronger, and not covered by the owner's group
 * lock? */
static bool item_is_want(const struct locks *locks, const struct holder *holder,
                         const struct item *item)
{
    enum lock_mode group = holder_mode(holder, lock_group(locks, item->lock));
    return item->mode > holder_mode(holder, item->lock) && item->mode > group;
}

static void request_fill_wants(const struct locks *locks, struct request *request)
{
    for (guint i = 0; i < request->items->len; i++) {
        const struct item *item = request->items->pdata[i];
        if (!item_is_want(locks, request->holder, item))
            continue;
        struct want *want = g_new(struct want, 1);
        bool upgrade = holder_mode(request->holder, item->lock) != LOCK_RELEASE;
        *want = (struct want){request, item->lock, item->mode, upgrade};
        g_ptr_array_add(request->wants, want);
        request->upgrade = request->upgrade || upgrade;
    }
}

static bool out_of_order(const struct want *want, const struct hold *held, GError **error)
{
    fettle_set_error(error, LOCK_ORDER, "order violation: requesting %s %s while holding %s %s",
                     want->lock->name, enum_word(&lock_mode_words, (int)want->mode),
                     held->lock->name, enum_word(&lock_mode_words, (int)held->mode));
    return false;
}

/* LCK-06, 07, 22. */
static bool want_in_order(const struct locks *locks, const struct want *want, GError **error)
{
    const struct holder *holder = want->request->holder;
    const struct lock *group = lock_group(locks, want->lock);
    const struct hold *group_hold = group ? holder_hold(holder, group) : NULL;
    if (group_hold && want->mode == LOCK_EXCLUSIVE)
        return out_of_order(want, group_hold, error);
    GTreeNode *last = g_tree_node_last(holder->held);
    const struct hold *highest = last ? g_tree_node_value(last) : NULL;
    return !highest || lock_order(highest->lock, want->lock) <= 0 ||
           out_of_order(want, highest, error);
}

static bool request_in_order(const struct locks *locks, const struct request *request,
                             GError **error)
{
    for (guint i = 0; i < request->wants->len; i++) {
        if (!want_in_order(locks, request->wants->pdata[i], error))
            return false;
    }
    return true;
}

bool locks_update(struct locks *locks, const struct owner *owner, const GPtrArray *requests,
                  const struct locks_wait *wait, enum locks_outcome *ret_outcome, GError **error)
{
    struct holder *holder = holder_find(locks, owner);
    if (!check_items(requests, error))
        return false;
    if (holder && holder->waiting) {
        fettle_set_error(error, WRONG_STATE,
                         "%s waits for locks already; it can change none meanwhile", owner->job);
        return false;
    }
    struct request *request =
        request_new(locks, holder_need(locks, owner), requests, wait ? wait->priority : 0);
    request_fill_wants(locks, request);
    if (!request_in_order(locks, request, error)) {
        request_free(locks, request);
        return false;
    }
    struct lock *stuck = request_stuck(locks, request);
    if (stuck && wait && !request->upgrade) {
        request->tag = wait->tag;
        request_enqueue(locks, request, stuck);
        *ret_outcome = LOCKS_WAITS;
    } else {
        if (!stuck)
            request_apply(locks, request);
        request_free(locks, request);
        *ret_outcome = stuck ? LOCKS_BLOCKED : LOCKS_GRANTED;
    }
    queue_run(locks);
    return true;
}

struct update_locks_result *locks_explain(struct locks *locks, const struct owner *owner,
                                          const GPtrArray *requests, gint64 priority)
{
    struct update_locks_result *result = update_locks_result_new();
    if (!check_items(requests, NULL))
        return result;
    struct request *request = request_new(locks, holder_need(locks, owner), requests, priority);
    request_fill_wants(locks, request);
    request_explain(locks, request, result);
    request_free(locks, request);
    return result;
}

/* Leaves the queue to be run. */
static void *holder_withdraw(struct locks *locks, struct holder *holder)
{
    struct request *request = holder ? holder->waiting : NULL;
    if (!request)
        return NULL;
    void *tag = request->tag;
    request_dequeue(locks, request);
    request_free(locks, request);
    return tag;
}

void *locks_withdraw(struct locks *locks, const struct owner *owner)
{
    void *tag = holder_withdraw(locks, holder_find(locks, owner));
    queue_run(locks);
    return tag;
}

static gboolean collect_lock(void *key, void *value, void *data)
{
    g_ptr_array_add(data, lock_ref(key));
    return FALSE;
}

void *locks_free_owner(struct locks *locks, const struct owner *owner)
{
    void *tag = holder_withdraw(locks, holder_find(locks, owner));
    struct holder *holder = holder_find(locks, owner);
    if (!holder) {
        queue_run(locks);
        return tag;
    }
    g_autoptr(GPtrArray) held = g_ptr_array_new();
    g_tree_foreach(holder->held, collect_lock, held);
    for (guint i = 0; i < held->len; i++) {
        change_hold(locks, holder, held->pdata[i], LOCK_RELEASE);
        lock_unref(locks, held->pdata[i]);
    }
    holder_drop_if_idle(locks, holder);
    queue_run(locks);
    return tag;
}

void locks_gate_changed(struct locks *locks, const char *name)
{
    const struct lock *lock = g_hash_table_lookup(locks->by_name, name);
    if (lock)
        queue_touch(locks, lock);
    queue_run(locks);
}

GPtrArray *locks_take_events(struct locks *locks)
{
    GPtrArray *events = locks->events;
    locks->events = g_ptr_array_new_with_free_func(event_free);
    return events;
}

GPtrArray *locks_take_grants(struct locks *locks)
{
    GPtrArray *grants = locks->grants;
    locks->grants = g_ptr_array_new();
    return grants;
}

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
    return holder && holder->waiting;
}

static void free_state(void *data)
{
    lock_state_free(data);
}

static struct lock_state *state_new(const struct holder *holder, const struct lock *lock,
                                    enum lock_mode mode, bool waiting)
{
    struct lock_state *state = lock_state_new();
    g_free(state->name);
    state->name = g_strdup(lock->name);
    state->mode = mode;
    owner_free(state->owner);
    state->owner = owner_copy(holder->id);
    state->waiting = waiting;
    return state;
}

static gboolean list_hold(void *key, void *value, void *data)
{
    const struct hold *hold = value;
    g_ptr_array_add(data, state_new(hold->holder, hold->lock, hold->mode, false));
    return FALSE;
}

static void list_holder(const struct holder *holder, GPtrArray *list)
{
    g_tree_foreach(holder->held, list_hold, list);
    for (guint i = 0; holder->waiting && i < holder->waiting->wants->len; i++) {
        const struct want *want = holder->waiting->wants->pdata[i];
        g_ptr_array_add(list, state_new(holder, want->lock, want->mode, true));
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

/* --- life --- */

void locks_restore(struct locks *locks, const struct owner *owner, const char *name,
                   enum lock_mode mode)
{
    struct holder *holder = holder_need(locks, owner);
    struct lock *lock = lock_need(locks, name);
    hold_set(locks, holder, lock, mode);
    lock_unref(locks, lock);
    holder_drop_if_idle(locks, holder);
}

struct locks *locks_new(locks_gate gated, void *data)
{
    struct locks *locks = g_new0(struct locks, 1);
    locks->gated = gated;
    locks->gate_data = data;
    locks->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    locks->holders = g_hash_table_new(owner_hash, owner_same);
    for (guint i = 0; i < LEVEL_COUNT; i++)
        locks->levels[i].members = g_tree_new_full(order_locks, NULL, NULL, NULL);
    locks->dirty = g_tree_new_full(order_requests, NULL, NULL, NULL);
    locks->events = g_ptr_array_new_with_free_func(event_free);
    locks->grants = g_ptr_array_new();
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
    g_tree_unref(locks->dirty);
    g_hash_table_unref(locks->by_name);
    g_hash_table_unref(locks->holders);
    g_ptr_array_unref(locks->events);
    g_ptr_array_unref(locks->grants);
    g_free(locks);
}
