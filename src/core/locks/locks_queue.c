/*
 * Who is stuck where: the waiting side of the lock manager (locks.h tells the rules). A group lock
 * counts as all of its members one after the other, so "the first lock at which a request is stuck"
 * may be a member that it never named.
 */
#include "core/locks/locks_private.h"

static bool conflict(enum lock_mode a, enum lock_mode b)
{
    return a == LOCK_EXCLUSIVE || b == LOCK_EXCLUSIVE;
}

/* Do others hold `lock` in a way that excludes `mode`? */
static bool held_against(const struct lock *lock, const struct holder *holder, enum lock_mode mode)
{
    if (lock->holds->len == 0 || (mode == LOCK_SHARED && lock->exclusive == 0))
        return false;
    const struct hold *own = holder_hold(holder, lock);
    if (mode == LOCK_EXCLUSIVE)
        return lock->holds->len > (own ? 1 : 0);
    return !(own && own->mode == LOCK_EXCLUSIVE);
}

static bool reserves(const struct request *request, const struct lock *label)
{
    return !request->stuck || lock_order(label, request->stuck) <= 0;
}

/* Does a request that goes before this one want `lock`, against `mode`, and reserve the place
 * `label`? */
static bool reserved_against(const struct lock *lock, const struct lock *label,
                             const struct request *request, enum lock_mode mode)
{
    for (guint i = 0; i < lock->wants->len; i++) {
        const struct want *want = lock->wants->pdata[i];
        if (want->request != request && conflict(want->mode, mode) &&
            request_order(want->request, request) < 0 && reserves(want->request, label))
            return true;
    }
    return false;
}

static bool taken(const struct lock *lock, const struct lock *label, const struct want *want)
{
    return held_against(lock, want->request->holder, want->mode) ||
           (!want->upgrade && reserved_against(lock, label, want->request, want->mode));
}

struct member_search {
    const struct want *want;
    struct lock *found;
};

static gboolean search_member(void *key, void *value, void *data)
{
    struct member_search *search = data;
    struct lock *member = key;
    if (taken(member, member, search->want))
        search->found = member;
    return search->found != NULL;
}

/* Jobs act on a node under its shared lock. Exclusive is for a change of its record, which must be
 * possible while it is silent: that is how a person's word that it is dead gets there. */
bool want_behind_gate(const struct locks *locks, const struct want *want)
{
    return locks->gated && want->mode == LOCK_SHARED && !want->upgrade &&
           locks->gated(want->lock->name, locks->gate_data);
}

/* The lock itself, or the first member that is in the way of a group lock. */
struct lock *want_stuck(const struct locks *locks, const struct want *want)
{
    struct lock *lock = want->lock;
    if (want_behind_gate(locks, want))
        return lock;
    if (taken(lock, lock, want))
        return lock;
    const struct lock *group = lock_group(locks, lock);
    if (group && taken(group, lock, want))
        return lock;
    if (!lock->group)
        return NULL;
    struct member_search search = {.want = want};
    g_tree_foreach(locks->levels[lock->level].members, search_member, &search);
    return search.found;
}

/* The smallest place of all: a group lock that is named first may be stuck behind a member that is
 * named later. */
struct lock *request_stuck(const struct locks *locks, const struct request *request)
{
    struct lock *first = NULL;
    for (guint i = 0; i < request->wants->len; i++) {
        const struct want *want = request->wants->pdata[i];
        if (first && lock_order(first, want->lock) < 0)
            break;
        struct lock *stuck = want_stuck(locks, want);
        if (stuck && (!first || lock_order(stuck, first) < 0))
            first = stuck;
    }
    return first;
}

/* --- the queue --- */

static void touch_wants(struct locks *locks, const struct lock *lock, const struct request *after)
{
    for (guint i = 0; i < lock->wants->len; i++) {
        struct want *want = lock->wants->pdata[i];
        if (!after || request_order(after, want->request) < 0)
            g_tree_insert(locks->dirty, want->request, want->request);
    }
}

struct touch {
    struct locks *locks;
    const struct request *after;
};

static gboolean touch_member(void *key, void *value, void *data)
{
    struct touch *touch = data;
    touch_wants(touch->locks, key, touch->after);
    return FALSE;
}

static void touch_related(struct locks *locks, const struct lock *lock, const struct request *after)
{
    touch_wants(locks, lock, after);
    const struct lock *group = lock_group(locks, lock);
    if (group)
        touch_wants(locks, group, after);
    struct touch touch = {locks, after};
    if (lock->group)
        g_tree_foreach(locks->levels[lock->level].members, touch_member, &touch);
}

void queue_touch(struct locks *locks, const struct lock *lock)
{
    locks->moved = true;
    touch_related(locks, lock, NULL);
}

/* What this request reserves has changed: those behind it that want the same are looked at again.
 */
static void touch_behind(struct locks *locks, const struct request *request)
{
    for (guint i = 0; i < request->wants->len; i++)
        touch_related(locks, ((struct want *)request->wants->pdata[i])->lock, request);
}

static void set_stuck(struct locks *locks, struct request *request, struct lock *stuck)
{
    struct lock *old = request->stuck;
    request->stuck = stuck ? lock_ref(stuck) : NULL;
    if (old)
        lock_unref(locks, old);
}

void request_enqueue(struct locks *locks, struct request *request, struct lock *stuck)
{
    for (guint i = 0; i < request->wants->len; i++) {
        struct want *want = request->wants->pdata[i];
        g_ptr_array_add(want->lock->wants, want);
    }
    request->holder->waiting = request;
    g_tree_insert(locks->queue, request, request);
    if (request->out_of_order)
        g_ptr_array_add(locks->disorderly, request);
    set_stuck(locks, request, stuck);
    touch_behind(locks, request);
}

void request_dequeue(struct locks *locks, struct request *request)
{
    for (guint i = 0; i < request->wants->len; i++) {
        struct want *want = request->wants->pdata[i];
        g_ptr_array_remove_fast(want->lock->wants, want);
    }
    g_tree_remove(locks->queue, request);
    g_tree_remove(locks->dirty, request);
    g_ptr_array_remove_fast(locks->disorderly, request);
    request->holder->waiting = NULL;
    set_stuck(locks, request, NULL);
    touch_behind(locks, request);
    locks->moved = true;
}

static void request_grant(struct locks *locks, struct request *request)
{
    request_dequeue(locks, request);
    request_tell(locks, request, false);
    request_apply(locks, request);
    grant_add(locks, request->tag, NULL, NULL);
    request_free(locks, request);
}

static void grant_all(struct locks *locks)
{
    GTreeNode *first;
    while ((first = g_tree_node_first(locks->dirty))) {
        struct request *request = g_tree_node_key(first);
        g_tree_remove(locks->dirty, request);
        struct lock *stuck = request_stuck(locks, request);
        if (!stuck) {
            request_grant(locks, request);
        } else if (!request->stuck || lock_order(stuck, request->stuck) != 0) {
            set_stuck(locks, request, stuck);
            touch_behind(locks, request);
            locks->moved = true; /* it may reserve less */
        }
    }
}

static int youngest_first(const void *a, const void *b)
{
    const struct request *one = *(const struct request *const *)a;
    const struct request *other = *(const struct request *const *)b;
    return one->ticket > other->ticket ? -1 : one->ticket < other->ticket;
}

/* The youngest out-of-order request in any circle; every circle has one. NULL: there is no circle.
 */
static struct request *find_circle(struct locks *locks, char **ret_circle)
{
    if (locks->disorderly->len > 0)
        g_ptr_array_sort(locks->disorderly, youngest_first);
    for (guint i = 0; i < locks->disorderly->len; i++) {
        struct request *request = locks->disorderly->pdata[i];
        if ((*ret_circle = graph_circle(locks, request)))
            return request;
    }
    return NULL;
}

static GError *refuse(struct locks *locks, struct request *request, const char *circle)
{
    GError *error = NULL;
    fettle_set_error(&error, LOCK_CYCLE, "waiting would close a circle: %s", circle);
    request_dequeue(locks, request);
    request_tell(locks, request, false);
    return error;
}

bool queue_settle(struct locks *locks, struct request *newcomer, GError **error)
{
    bool stays = true;
    do {
        struct request *refused;
        char *circle;
        grant_all(locks);
        while ((refused = find_circle(locks, &circle))) {
            GError *why = refuse(locks, refused, circle);
            g_free(circle);
            stays = stays && refused != newcomer;
            if (refused == newcomer)
                g_propagate_error(error, why);
            else
                grant_add(locks, refused->tag, NULL, why);
            request_free(locks, refused);
            grant_all(locks);
        }
    } while (gathers_run(locks));
    return stays;
}

void queue_run(struct locks *locks)
{
    queue_settle(locks, NULL, NULL);
}

/* --- who is in the way --- */

static void each_taker(const struct lock *lock, const struct lock *label, const struct want *want,
                       blocker_fn fn, void *data)
{
    for (guint i = 0; i < lock->holds->len; i++) {
        const struct hold *hold = lock->holds->pdata[i];
        struct blocker blocker = {hold->holder, lock, hold->mode, false, hold->since};
        if (hold->holder != want->request->holder && conflict(hold->mode, want->mode))
            fn(&blocker, data);
    }
    for (guint i = 0; i < lock->wants->len && !want->upgrade; i++) {
        const struct want *other = lock->wants->pdata[i];
        const struct request *ahead = other->request;
        struct blocker blocker = {ahead->holder, lock, other->mode, true, ahead->since};
        if (ahead->holder != want->request->holder && conflict(other->mode, want->mode) &&
            request_order(ahead, want->request) < 0 && reserves(ahead, label))
            fn(&blocker, data);
    }
}

struct taker_search {
    const struct want *want;
    blocker_fn fn;
    void *data;
};

static gboolean each_taker_of_member(void *key, void *value, void *data)
{
    struct taker_search *search = data;
    each_taker(key, key, search->want, search->fn, search->data);
    return FALSE;
}

void request_each_blocker(const struct locks *locks, const struct request *request, blocker_fn fn,
                          void *data)
{
    for (guint i = 0; i < request->wants->len; i++) {
        const struct want *want = request->wants->pdata[i];
        const struct lock *lock = want->lock;
        each_taker(lock, lock, want, fn, data);
        const struct lock *group = lock_group(locks, lock);
        if (group)
            each_taker(group, lock, want, fn, data);
        struct taker_search search = {want, fn, data};
        if (lock->group)
            g_tree_foreach(locks->levels[lock->level].members, each_taker_of_member, &search);
    }
}
