/* Changes of an owner's whole set: unions, intersection, one level, everything. */
#include "core/locks/locks_private.h"

#include <string.h>

/* --- unions --- */

/* A lock that a union has taken so far, and how it was held before. */
struct taken {
    struct lock *lock;
    enum lock_mode before, after;
    guint64 since;
};

/* Takes it if it is new or stronger, in order and free. A lock that the owner's group covers is
 * free. */
static bool take_item(struct locks *locks, struct request *request, const struct item *item,
                      GArray *taken)
{
    struct holder *holder = request->holder;
    enum lock_mode before = holder_mode(holder, item->lock);
    enum lock_mode cover = holder_mode(holder, lock_group(locks, item->lock));
    struct want want = {request, item->lock, item->mode, before != LOCK_RELEASE};
    if (item->mode <= before)
        return false;
    if (item->mode > cover && (!want_in_order(locks, &want, NULL) || want_stuck(locks, &want)))
        return false;
    const struct hold *hold = holder_hold(holder, item->lock);
    struct taken entry = {lock_ref(item->lock), before, item->mode, hold ? hold->since : 0};
    hold_set(locks, holder, item->lock, item->mode);
    g_array_append_val(taken, entry);
    return true;
}

static void give_back(struct locks *locks, struct holder *holder, const struct taken *entry)
{
    hold_set(locks, holder, entry->lock, entry->before);
    if (entry->before != LOCK_RELEASE)
        holder_hold(holder, entry->lock)->since = entry->since;
}

/* Takes what can be had; fewer than `count`: nothing. The names of what is new; NULL for too few.
 */
static GPtrArray *take(struct locks *locks, struct request *request, guint count)
{
    g_autoptr(GArray) taken = g_array_new(FALSE, FALSE, sizeof(struct taken));
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < request->items->len; i++) {
        const struct item *item = request->items->pdata[i];
        if (take_item(locks, request, item, taken))
            g_ptr_array_add(names, g_strdup(item->lock->name));
    }
    bool enough = taken->len >= count;
    for (guint i = taken->len; i > 0 && !enough; i--)
        give_back(locks, request->holder, &g_array_index(taken, struct taken, i - 1));
    for (guint i = 0; i < taken->len; i++) {
        const struct taken *entry = &g_array_index(taken, struct taken, i);
        if (enough)
            hold_tell(locks, request->holder, entry->lock, entry->after);
        lock_unref(locks, entry->lock);
    }
    if (!enough)
        g_clear_pointer(&names, g_ptr_array_unref);
    return names;
}

static void request_unref(void *request)
{
    lock_request_free(request);
}

/* Without what is no lock, or named twice in two ways. */
static GPtrArray *good_requests(const GPtrArray *requests)
{
    GPtrArray *good = g_ptr_array_new_with_free_func(request_unref);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < requests->len && i < LIMIT_LOCKS_PER_CALL; i++) {
        const struct lock_request *wanted = requests->pdata[i];
        if (wanted->mode == LOCK_RELEASE || !locks_check_name(wanted->name, NULL) ||
            !g_hash_table_add(seen, wanted->name))
            continue;
        g_ptr_array_add(good, lock_request_copy(wanted));
    }
    return good;
}

static GPtrArray *union_try(struct locks *locks, struct holder *holder, const GPtrArray *requests,
                            guint count, const struct locks_wait *wait)
{
    struct request *request = request_new(locks, holder, requests, wait);
    GPtrArray *names = take(locks, request, count);
    request_free(locks, request);
    return names;
}

static void gather_add(struct locks *locks, struct holder *holder, GPtrArray *requests, guint count,
                       const struct locks_wait *wait)
{
    struct gather *gather = g_new(struct gather, 1);
    *gather = (struct gather){.holder = holder,
                              .priority = wait->priority,
                              .ticket = locks->next_ticket++,
                              .since = locks->now_us,
                              .count = count,
                              .requests = requests,
                              .tag = wait->tag};
    holder->gather = gather;
    g_ptr_array_add(locks->gathers, gather);
}

/* The owner may be gone after it. */
void gather_free(struct locks *locks, struct gather *gather)
{
    struct holder *holder = gather->holder;
    g_ptr_array_remove(locks->gathers, gather);
    holder->gather = NULL;
    g_ptr_array_unref(gather->requests);
    g_free(gather);
    holder_drop_if_idle(locks, holder);
}

enum locks_outcome locks_union(struct locks *locks, const struct owner *owner,
                               const GPtrArray *requests, guint count,
                               const struct locks_wait *wait, GPtrArray **ret_acquired)
{
    GPtrArray *good = good_requests(requests);
    *ret_acquired = NULL;
    if (!locks_waits(locks, owner)) {
        *ret_acquired = union_try(locks, holder_need(locks, owner), good, count, wait);
        if (!*ret_acquired && wait && !wait->at_once) {
            gather_add(locks, holder_need(locks, owner), good, count, wait);
            return LOCKS_WAITS;
        }
    }
    g_ptr_array_unref(good);
    enum locks_outcome outcome = *ret_acquired ? LOCKS_GRANTED : LOCKS_BLOCKED;
    if (!*ret_acquired)
        *ret_acquired = g_ptr_array_new_with_free_func(g_free);
    queue_run(locks);
    return outcome;
}

static GPtrArray *gather_try(struct locks *locks, const struct gather *gather, guint count)
{
    struct locks_wait how = {.priority = gather->priority, .ticket = gather->ticket};
    /* The request that tries keeps the owner from going. */
    return union_try(locks, gather->holder, gather->requests, count, &how);
}

GPtrArray *locks_union_end(struct locks *locks, const struct owner *owner)
{
    struct holder *holder = holder_find(locks, owner);
    if (!holder || !holder->gather)
        return NULL;
    GPtrArray *names = gather_try(locks, holder->gather, 0);
    gather_free(locks, holder->gather);
    queue_run(locks);
    return names;
}

static int compare_gathers(const void *a, const void *b)
{
    const struct gather *one = *(const struct gather *const *)a;
    const struct gather *other = *(const struct gather *const *)b;
    if (one->priority != other->priority)
        return one->priority < other->priority ? -1 : 1;
    return one->ticket < other->ticket ? -1 : 1;
}

/* What one of them takes sets nothing free for the others, so one look at each is enough. */
bool gathers_run(struct locks *locks)
{
    bool granted = false;
    bool moved = locks->moved;
    locks->moved = false;
    if (locks->gathers->len == 0 || !moved)
        return false;
    g_ptr_array_sort(locks->gathers, compare_gathers);
    for (guint i = 0; i < locks->gathers->len;) {
        struct gather *gather = locks->gathers->pdata[i];
        GPtrArray *names = gather_try(locks, gather, gather->count);
        if (!names) {
            i++;
            continue;
        }
        grant_add(locks, gather->tag, names, NULL);
        gather_free(locks, gather);
        granted = true;
    }
    return granted;
}

/* --- less --- */

typedef enum lock_mode (*new_mode)(const struct hold *hold, const void *data);

static gboolean collect_hold(void *key, void *value, void *data)
{
    g_ptr_array_add(data, value);
    return FALSE;
}

/* Sets every lock of the owner to what `fn` says, which is no more than it has. */
static void *weaken(struct locks *locks, const struct owner *owner, new_mode fn, const void *data)
{
    void *tag = holder_withdraw(locks, holder_find(locks, owner));
    struct holder *holder = holder_find(locks, owner);
    g_autoptr(GPtrArray) holds = g_ptr_array_new();
    if (holder)
        g_tree_foreach(holder->held, collect_hold, holds);
    for (guint i = 0; i < holds->len; i++) {
        struct hold *hold = holds->pdata[i];
        struct lock *lock = lock_ref(hold->lock);
        change_hold(locks, holder, lock, fn(hold, data));
        lock_unref(locks, lock);
    }
    if (holder)
        holder_drop_if_idle(locks, holder);
    queue_run(locks);
    return tag;
}

static enum lock_mode nothing_left(const struct hold *hold, const void *data)
{
    return LOCK_RELEASE;
}

void *locks_free_owner(struct locks *locks, const struct owner *owner)
{
    return weaken(locks, owner, nothing_left, NULL);
}

static enum lock_mode all_but_level(const struct hold *hold, const void *data)
{
    const enum lock_level *level = data;
    return hold->lock->level == *level ? LOCK_RELEASE : hold->mode;
}

void *locks_free_level(struct locks *locks, const struct owner *owner, enum lock_level level)
{
    return weaken(locks, owner, all_but_level, &level);
}

static enum lock_mode level_shared(const struct hold *hold, const void *data)
{
    const enum lock_level *level = data;
    return hold->lock->level == *level ? LOCK_SHARED : hold->mode;
}

void *locks_downgrade_level(struct locks *locks, const struct owner *owner, enum lock_level level)
{
    return weaken(locks, owner, level_shared, &level);
}

static enum lock_mode named_only(const struct hold *hold, const void *data)
{
    GHashTable *names = (GHashTable *)data;
    return g_hash_table_contains(names, hold->lock->name) ? hold->mode : LOCK_RELEASE;
}

void *locks_intersect(struct locks *locks, const struct owner *owner, const GPtrArray *names)
{
    g_autoptr(GHashTable) kept = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < names->len; i++)
        g_hash_table_add(kept, names->pdata[i]);
    return weaken(locks, owner, named_only, kept);
}
