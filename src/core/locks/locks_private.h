/*
 * Insides of the lock manager:
 *   locks.c          locks, owners, holds, updates
 *   locks_order.c    names and their order
 *   locks_queue.c    who is stuck where
 *   locks_graph.c    the wait-for graph, circles
 *   locks_sets.c     unions, intersection, whole levels
 *   locks_update.c   requests: the checks, and what is done at once
 *   locks_list.c     listings, restart
 *   locks_journal.c  what is written down for a restart
 */
#pragma once

#include "core/locks/locks.h"

#define LEVEL_COUNT (LEVEL_CONFIG + 1)

struct lock {
    guint refs; /* holds, wants, items, events and stuck requests; it goes with the last one */
    char *name;
    const char *rest; /* after `level/` */
    enum lock_level level;
    bool group;
    GPtrArray *holds; /* struct hold */
    guint exclusive;  /* of them; 0 or 1 */
    GPtrArray *wants; /* struct want, of waiting requests */
};

struct level {
    struct lock *group; /* NULL while nobody holds or wants it */
    GTree *members;     /* of struct lock: those held or wanted */
    guint holds;        /* of members */
    guint exclusive;
};

struct holder {
    guint refs; /* one while it holds or waits; events */
    struct owner *id;
    GTree *held; /* struct lock -> struct hold */
    struct request *waiting;
    struct gather *gather;
};

struct hold {
    struct holder *holder;
    struct lock *lock;
    enum lock_mode mode;
    guint64 since;
};

/* One entry of an update's list. */
struct item {
    struct lock *lock;
    enum lock_mode mode;
};

/* A lock that a request must win from others. */
struct want {
    struct request *request;
    struct lock *lock;
    enum lock_mode mode;
    bool upgrade; /* held shared already */
};

struct request {
    struct holder *holder;
    gint64 priority;
    guint64 ticket; /* age: lower is older */
    guint64 since;
    bool out_of_order;
    GPtrArray *items;   /* struct item, in the order of locks */
    GPtrArray *wants;   /* struct want, in the order of locks */
    bool upgrade;       /* one of its wants is */
    struct lock *stuck; /* reserves its wants up to this one; NULL: not evaluated, reserves all */
    void *tag;
};

/* A union that waits. */
struct gather {
    struct holder *holder;
    gint64 priority;
    guint64 ticket;
    guint64 since;
    guint count;
    GPtrArray *requests; /* struct lock_request */
    void *tag;
};

struct locks {
    locks_gate gated;
    void *gate_data;
    guint64 now_us;
    GHashTable *by_name; /* struct lock */
    GHashTable *holders; /* struct owner -> struct holder */
    struct level levels[LEVEL_COUNT];
    GTree *queue;          /* struct request that wait, in their order */
    GTree *dirty;          /* those of them to look at again */
    GPtrArray *disorderly; /* those of them that are out of order */
    GPtrArray *gathers;    /* struct gather */
    bool moved;            /* something may have become free since the unions were looked at */
    GPtrArray *events;
    GPtrArray *grants;
    guint64 next_ticket;
    guint held;
};

/* --- locks_order.c --- */
bool lock_name_parse(const char *name, enum lock_level *ret_level, const char **ret_rest,
                     bool *ret_group, GError **error);
int lock_order(const struct lock *a, const struct lock *b);
int request_order(const struct request *a, const struct request *b);

/* --- locks.c --- */
struct lock *lock_ref(struct lock *lock);
void lock_unref(struct locks *locks, struct lock *lock);
/* A new reference; `name` has been checked. */
struct lock *lock_need(struct locks *locks, const char *name);
/* The group lock that covers this member; NULL for group locks, cluster/config, or if nobody has or
 * wants it. */
struct lock *lock_group(const struct locks *locks, const struct lock *lock);
struct holder *holder_find(const struct locks *locks, const struct owner *owner);
struct holder *holder_need(struct locks *locks, const struct owner *owner);
void holder_drop_if_idle(struct locks *locks, struct holder *holder);
struct hold *holder_hold(const struct holder *holder, const struct lock *lock);
/* By the owner itself; LOCK_RELEASE: not at all. */
enum lock_mode holder_mode(const struct holder *holder, const struct lock *lock);
/* Without telling anybody; whether anything changed. */
bool hold_set(struct locks *locks, struct holder *holder, struct lock *lock, enum lock_mode mode);
/* Tells of what hold_set() has done. */
void hold_tell(struct locks *locks, struct holder *holder, struct lock *lock, enum lock_mode mode);
void change_hold(struct locks *locks, struct holder *holder, struct lock *lock,
                 enum lock_mode mode);
/* Ends the owner's wait of either kind, and leaves the queue to be run. */
void *holder_withdraw(struct locks *locks, struct holder *holder);
void grant_add(struct locks *locks, void *tag, GPtrArray *acquired, GError *error);
/* Every entry of the list is a lock, and none stands there twice in different modes. */
bool requests_check(const GPtrArray *requests, GError **error);
/* Sorted, each lock once. The list has been checked. */
struct request *request_new(struct locks *locks, struct holder *holder, const GPtrArray *requests,
                            const struct locks_wait *wait);
void request_fill_wants(const struct locks *locks, struct request *request);
/* LCK-06, 07, 22. */
bool want_in_order(const struct locks *locks, const struct want *want, GError **error);
/* Its wait begins, or is over. */
void request_tell(struct locks *locks, struct request *request, bool waits);
void request_apply(struct locks *locks, struct request *request);
void request_free(struct locks *locks, struct request *request);

/* --- locks_queue.c --- */
/* The place at which this want is stuck; NULL: nowhere. */
struct lock *want_stuck(const struct locks *locks, const struct want *want);
/* The first lock at which the request is stuck, NULL if it can be granted. */
struct lock *request_stuck(const struct locks *locks, const struct request *request);
void request_enqueue(struct locks *locks, struct request *request, struct lock *stuck);
void request_dequeue(struct locks *locks, struct request *request);
/* The requests that want this lock, a member or the group of it must be looked at again. */
void queue_touch(struct locks *locks, const struct lock *lock);
/* Looks at all of them, grants what can be granted, refuses what closes a circle: `newcomer` (may
 * be NULL) with this error, others by a grant with an error. */
void queue_run(struct locks *locks);
bool queue_settle(struct locks *locks, struct request *newcomer, GError **error);

/* What is in the way of a request: somebody holds `lock`, or waits for it and comes first. */
struct blocker {
    const struct holder *holder;
    const struct lock *lock;
    enum lock_mode mode;
    bool waiting;
    guint64 since;
};
typedef void (*blocker_fn)(const struct blocker *blocker, void *data);
void request_each_blocker(const struct locks *locks, const struct request *request, blocker_fn fn,
                          void *data);
/* A closed gate is in its way. */
bool want_behind_gate(const struct locks *locks, const struct want *want);

/* --- locks_graph.c --- */
/* A shortest circle of waits through this request, as a sentence; NULL: there is none. */
char *graph_circle(const struct locks *locks, const struct request *request);

/* --- locks_sets.c --- */
void gather_free(struct locks *locks, struct gather *gather);
/* Whether any of them was granted. */
bool gathers_run(struct locks *locks);

/* --- locks_list.c --- */
/* Without blockers. */
struct lock_waiter *waiter_of(const struct request *request);
