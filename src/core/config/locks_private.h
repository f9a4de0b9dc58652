/*
 * Insides of the lock manager, shared by locks.c (owners, holds, updates), locks_order.c (names and
 * their order) and locks_queue.c (who is stuck where).
 */
#pragma once

#include "core/config/locks.h"

/* In their order. */
enum lock_level {
    LEVEL_CLUSTER,
    LEVEL_INSTANCE,
    LEVEL_NODEGROUP,
    LEVEL_NODE,
    LEVEL_NODE_RES,
    LEVEL_NETWORK,
    LEVEL_CONFIG,
    LEVEL_COUNT,
};

struct lock {
    guint refs; /* holds, wants and stuck requests; it goes with the last one */
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
    struct owner *id;
    GTree *held; /* struct lock -> struct hold */
    struct request *waiting;
    guint level_holds[LEVEL_COUNT]; /* of members */
    guint level_exclusive[LEVEL_COUNT];
};

struct hold {
    struct holder *holder;
    struct lock *lock;
    enum lock_mode mode;
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
    guint64 ticket;     /* age: lower is older */
    GPtrArray *items;   /* struct item, in the order of locks */
    GPtrArray *wants;   /* struct want, in the order of locks */
    bool upgrade;       /* one of its wants is */
    struct lock *stuck; /* reserves its wants up to this one; NULL: not evaluated, reserves all */
    void *tag;
};

struct locks {
    locks_gate gated;
    void *gate_data;
    GHashTable *by_name; /* struct lock */
    GHashTable *holders; /* struct owner -> struct holder */
    struct level levels[LEVEL_COUNT];
    GTree *dirty; /* struct request to look at again, in their order */
    GPtrArray *events;
    GPtrArray *grants;
    guint64 next_ticket;
    guint held;
};

/* locks_order.c */
bool lock_name_parse(const char *name, enum lock_level *ret_level, const char **ret_rest,
                     bool *ret_group, GError **error);
int lock_order(const struct lock *a, const struct lock *b);
int request_order(const struct request *a, const struct request *b);

/* locks.c */
struct lock *lock_ref(struct lock *lock);
void lock_unref(struct locks *locks, struct lock *lock);
struct hold *holder_hold(const struct holder *holder, const struct lock *lock);
/* The group lock that covers this member; NULL for group locks, cluster/config, or if nobody has or
 * wants it. */
struct lock *lock_group(const struct locks *locks, const struct lock *lock);
void request_apply(struct locks *locks, struct request *request);
void request_free(struct locks *locks, struct request *request);

/* locks_queue.c */
/* The first lock at which the request is stuck, NULL if it can be granted. */
struct lock *request_stuck(const struct locks *locks, const struct request *request);
void request_enqueue(struct locks *locks, struct request *request, struct lock *stuck);
void request_dequeue(struct locks *locks, struct request *request);
/* The requests that want this lock, a member or the group of it must be looked at again. */
void queue_touch(struct locks *locks, const struct lock *lock);
/* Looks at all of them and grants what can be granted. */
void queue_run(struct locks *locks);
/* Owners and gates that are in the way, added to `result`. */
void request_explain(const struct locks *locks, const struct request *request,
                     struct update_locks_result *result);
