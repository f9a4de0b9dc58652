/* Requests of the lock manager: the checks of locks.h, and what is done at once; locks_queue.c has
 * those that wait. */
#include "core/locks/locks_private.h"

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

bool requests_check(const GPtrArray *requests, GError **error)
{
    if (requests->len > LIMIT_LOCKS_PER_CALL) {
        fettle_set_error(error, LIMIT, "%u locks in one call; the limit is %u", requests->len,
                         LIMIT_LOCKS_PER_CALL);
        return false;
    }
    if (requests->len == 1)
        return locks_check_name(((struct lock_request *)requests->pdata[0])->name, error);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
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

struct request *request_new(struct locks *locks, struct holder *holder, const GPtrArray *requests,
                            const struct locks_wait *wait)
{
    struct request *request = g_new0(struct request, 1);
    request->holder = holder;
    request->priority = wait ? wait->priority : 0;
    request->out_of_order = wait && wait->out_of_order;
    request->tag = wait ? wait->tag : NULL;
    request->ticket = wait && wait->ticket ? wait->ticket : locks->next_ticket;
    locks->next_ticket = MAX(locks->next_ticket, request->ticket + 1);
    request->since = locks->now_us;
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

void request_fill_wants(const struct locks *locks, struct request *request)
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

bool want_in_order(const struct locks *locks, const struct want *want, GError **error)
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

/* A request that is blocked: it waits from now on, unless it must not. Steals it. */
static bool request_wait(struct locks *locks, struct request *request, struct lock *stuck,
                         enum locks_outcome *ret_outcome, GError **error)
{
    *ret_outcome = LOCKS_WAITS;
    request_enqueue(locks, request, stuck);
    request_tell(locks, request, true);
    return queue_settle(locks, request, error);
}

static bool may_change(const struct holder *holder, GError **error)
{
    if (!holder || (!holder->waiting && !holder->gather))
        return true;
    fettle_set_error(error, WRONG_STATE, "%s waits for locks already; it can change none meanwhile",
                     holder->id->job);
    return false;
}

bool locks_update(struct locks *locks, const struct owner *owner, const GPtrArray *requests,
                  const struct locks_wait *wait, enum locks_outcome *ret_outcome, GError **error)
{
    if (!requests_check(requests, error) || !may_change(holder_find(locks, owner), error))
        return false;
    struct request *request = request_new(locks, holder_need(locks, owner), requests, wait);
    request_fill_wants(locks, request);
    if (!request->out_of_order && !request_in_order(locks, request, error)) {
        request_free(locks, request);
        return false;
    }
    struct lock *stuck = request_stuck(locks, request);
    bool waits = wait && !wait->at_once && (!request->upgrade || request->out_of_order);
    if (stuck && waits)
        return request_wait(locks, request, stuck, ret_outcome, error);
    if (!stuck)
        request_apply(locks, request);
    request_free(locks, request);
    *ret_outcome = stuck ? LOCKS_BLOCKED : LOCKS_GRANTED;
    queue_run(locks);
    return true;
}

void *holder_withdraw(struct locks *locks, struct holder *holder)
{
    void *tag = NULL;
    if (holder && holder->waiting) {
        struct request *request = holder->waiting;
        tag = request->tag;
        request_dequeue(locks, request);
        request_tell(locks, request, false);
        request_free(locks, request);
    } else if (holder && holder->gather) {
        tag = holder->gather->tag;
        gather_free(locks, holder->gather);
    }
    return tag;
}

void *locks_withdraw(struct locks *locks, const struct owner *owner)
{
    void *tag = holder_withdraw(locks, holder_find(locks, owner));
    queue_run(locks);
    return tag;
}

bool locks_take_over(struct locks *locks, const struct owner *owner, const GPtrArray *requests,
                     const struct locks_wait *wait, void **ret_tag)
{
    struct holder *holder = holder_find(locks, owner);
    struct request *request = holder ? holder->waiting : NULL;
    guint64 ticket = request ? locks_ticket(locks, owner, requests) : 0;
    if (!ticket || wait->at_once || wait->out_of_order != request->out_of_order ||
        (wait->ticket && wait->ticket != ticket))
        return false;
    *ret_tag = request->tag;
    request->tag = wait->tag;
    if (wait->priority != request->priority)
        locks_set_priority(locks, owner, wait->priority);
    return true;
}

static void request_set_priority(struct locks *locks, struct request *request, gint64 priority)
{
    request_dequeue(locks, request);
    request->priority = priority;
    request_enqueue(locks, request, request_stuck(locks, request));
    g_tree_insert(locks->dirty, request, request);
    request_tell(locks, request, true);
}

bool locks_set_priority(struct locks *locks, const struct owner *owner, gint64 priority)
{
    struct holder *holder = holder_find(locks, owner);
    if (!holder || !(holder->waiting || holder->gather))
        return false;
    if (holder->waiting) {
        request_set_priority(locks, holder->waiting, priority);
    } else {
        holder->gather->priority = priority;
        locks->moved = true; /* before some reservations now */
    }
    queue_run(locks);
    return true;
}

void locks_gate_changed(struct locks *locks, const char *name)
{
    const struct lock *lock = g_hash_table_lookup(locks->by_name, name);
    if (lock)
        queue_touch(locks, lock);
    queue_run(locks);
}
