/*
 * The lock manager: who holds what, who waits for what. Pure: it knows no clock, no file, no
 * process; wconfd tells it the time, feeds it and writes down what comes out (events, for the
 * journal) before it answers (grants).
 *
 * A lock is `level/name`. The order of all locks, which every request must follow (LCK-02, 03):
 *
 *   cluster/[lockset] < cluster/BGL < instance/[lockset] < instance/NAME < nodegroup/[lockset] <
 *   nodegroup/UUID < node/[lockset] < node/UUID < node-param/[lockset] < node-param/UUID <
 *   node-res/[lockset] < node-res/UUID < network/[lockset] < network/UUID < cluster/config
 *
 * `level/[lockset]` is the group lock of its level: it comes first there and acts as if it were
 * held on every member (LCK-19 to 21). Members of a level sort by the bytes of their names.
 * cluster/config belongs to no group.
 *
 * What the locks of a node mean (FUT-01):
 *   node/UUID shared         jobs act there: it stays a member, at its address, and online
 *   node/UUID exclusive      any change of its record; it waits for those jobs
 *   node-param/UUID excl.    a change of what no job relies on while it acts (drained): beside them
 *
 * Rules of an update (all or nothing):
 * - a lock that is new, or shared and becomes exclusive, must come after every other lock held,
 *   those released in the same call included (LCK-06, 07, D-10), unless a held group lock covers
 *   it; an exclusive member while its group is held shared is never in order (LCK-22);
 * - a request that is blocked waits, if asked, in the order of (priority, age). Nothing of it is
 *   done before all of it. A waiting request reserves its locks up to the first one at which it is
 *   stuck; who comes later does not pass it there, so nobody starves. It reserves nothing beyond,
 *   so no circle of waits can close: along any chain of waits the locks only grow, and where they
 *   are equal the requests only get older;
 * - a shared lock is made exclusive at once or not at all: two holders that both waited would wait
 *   for each other;
 * - a request may be marked out of order (FUT-09). Neither the order nor the rule before this one
 *   is asked of it. Only with its help can a circle close; then it is refused, with the circle. Of
 *   several marked ones the last to come is; of requests without the mark none ever.
 *
 * A union adds what can be had of a list. It takes locks one by one by the rules above and passes
 * over those that are out of order or blocked (LCK-13 to 15). One that waits for a number of them
 * (FUT-10) takes nothing before, reserves nothing, and ends with its time: it holds nobody up.
 *
 * Owners are pairs (job, livelock) (DTH-21); an owner has at most one waiting request, and changes
 * nothing meanwhile; what never fails (intersection, release, downgrade) ends its wait.
 */
#pragma once

#include "proto/records.h"

#define LOCK_BGL "cluster/BGL"
#define LOCK_ALL_NODES "node/[lockset]"

struct locks;

/* A lock that `gated` names is not granted shared to anybody who does not hold it (SAF-06); nothing
 * acts on a node under its exclusive lock, which only changes the record. NULL: none is. */
typedef bool (*locks_gate)(const char *name, void *data);
struct locks *locks_new(locks_gate gated, void *data);
void locks_free(struct locks *locks);
/* What is held or waited for from now on is so since then (microseconds since 1970). */
void locks_set_time(struct locks *locks, guint64 now_us);

/* Order of two lock names; names that are none sort last. */
int locks_compare(const char *a, const char *b);
/* WRONG_INPUT if `name` is no lock. */
bool locks_check_name(const char *name, GError **error);
/* "job 17", "luxid". */
char *locks_owner_name(const struct owner *owner);

/* --- changes --- */

enum locks_outcome { LOCKS_GRANTED, LOCKS_BLOCKED, LOCKS_WAITS };

/* How a request is made; `tag` comes back with the grant. */
struct locks_wait {
    gint64 priority;
    void *tag;
    bool at_once; /* does not wait */
    bool out_of_order;
    guint64 ticket; /* locks_ticket() of an earlier try, whose age it keeps; 0: it is new */
};

/* Brings the owner's set to the list (GPtrArray of struct lock_request). `wait` NULL: an ordinary
 * request that does not wait. Errors leave everything as it was: WRONG_INPUT, LOCK_ORDER,
 * LOCK_CYCLE, WRONG_STATE (has a waiting request). */
bool locks_update(struct locks *locks, const struct owner *owner, const GPtrArray *requests,
                  const struct locks_wait *wait, enum locks_outcome *ret_outcome, GError **error);
/* Adds what can be had of the list, if that are at least `count` new ones; the names of those,
 * in order, in `ret_acquired` (GPtrArray of char *). With a `wait`, waits for that many otherwise.
 * Never fails: bad names are passed over, and an owner that waits gets nothing. */
enum locks_outcome locks_union(struct locks *locks, const struct owner *owner,
                               const GPtrArray *requests, guint count,
                               const struct locks_wait *wait, GPtrArray **ret_acquired);
/* Ends a waiting union: what can be had now is taken. NULL if the owner has none. */
GPtrArray *locks_union_end(struct locks *locks, const struct owner *owner);
/* These never fail, and return the tag of the wait that they end, NULL for none. */
void *locks_intersect(struct locks *locks, const struct owner *owner, const GPtrArray *names);
void *locks_free_level(struct locks *locks, const struct owner *owner, enum lock_level level);
void *locks_downgrade_level(struct locks *locks, const struct owner *owner, enum lock_level level);
void *locks_free_owner(struct locks *locks, const struct owner *owner);
/* The owner's waiting request, if it is this one, goes on in its place for another client: false:
 * it is not. `ret_tag` is that of before. */
bool locks_take_over(struct locks *locks, const struct owner *owner, const GPtrArray *requests,
                     const struct locks_wait *wait, void **ret_tag);
/* Ends the owner's wait, if any; its tag, NULL for none. */
void *locks_withdraw(struct locks *locks, const struct owner *owner);
/* The waiting request goes to its place by the new priority. False: the owner does not wait. */
bool locks_set_priority(struct locks *locks, const struct owner *owner, gint64 priority);
/* The gate of this lock has opened or closed. */
void locks_gate_changed(struct locks *locks, const char *name);

/* --- what came of them --- */

/* What has changed since the last call: a lock held in that mode from now on (LOCK_RELEASE: no
 * more); a request that waits from now on (`waiter`), or no more (`name` NULL too). */
struct locks_event {
    const struct owner *owner;
    const char *name;
    enum lock_mode mode;
    guint64 since;
    struct lock_waiter *waiter;
    void *holder, *lock; /* what owner and name are borrowed from */
};
/* GPtrArray of struct locks_event, in order. Drop it before the manager. */
GPtrArray *locks_take_events(struct locks *locks);
bool locks_has_events(const struct locks *locks);

/* A waiting request that is over: granted (the locks that a union has added in `acquired`), or
 * refused with `error`. */
struct locks_grant {
    void *tag;
    GPtrArray *acquired; /* NULL unless it is a union */
    GError *error;
};
/* GPtrArray of struct locks_grant, in order. */
GPtrArray *locks_take_grants(struct locks *locks);

/* --- asking --- */

/* How the owner holds the lock, itself or by its group; LOCK_RELEASE: not at all. */
enum lock_mode locks_held(const struct locks *locks, const struct owner *owner, const char *name);
bool locks_waits(const struct locks *locks, const struct owner *owner);
/* The age of the owner's waiting request; 0: there is none, or `requests` (NULL: any) are not what
 * it asks for. */
guint64 locks_ticket(const struct locks *locks, const struct owner *owner,
                     const GPtrArray *requests);
/* Who blocks these requests if they are made that way now: owners in `blockers`, locks in
 * `pending_nodes` whose gate is closed; granted false. */
struct update_locks_result *locks_explain(struct locks *locks, const struct owner *owner,
                                          const GPtrArray *requests, const struct locks_wait *wait);
/* GPtrArray of struct lock_state, sorted by owner, then lock; `owner` NULL: everybody's, waiting
 * ones too. */
GPtrArray *locks_list(const struct locks *locks, const struct owner *owner);
/* The wait-for graph: GPtrArray of struct lock_waiter, in the order of their turns.
 * `pending_nodes` has names of locks whose gate is closed. */
GPtrArray *locks_waiters(struct locks *locks);
/* GPtrArray of struct owner: all who hold or wait. */
GPtrArray *locks_owners(const struct locks *locks);
/* Whether anybody with this lock file holds or waits. */
bool locks_has_livelock(const struct locks *locks, const char *livelock);
guint locks_count(const struct locks *locks);
guint locks_waiting_count(const struct locks *locks);

/* --- restart --- */

/* Makes the owner hold the lock, as the journal says; no rule is checked and no event made. */
void locks_restore(struct locks *locks, const struct owner *owner, const char *name,
                   enum lock_mode mode, guint64 since);
/* Makes the request wait, without a tag; its owner holds what it held then already. False: it is
 * none. */
bool locks_restore_waiter(struct locks *locks, const struct lock_waiter *waiter);
void locks_restore_over(struct locks *locks, const struct owner *owner);
/* After the last of them: grants what can be granted. */
void locks_restored(struct locks *locks);
/* Drops everything. */
void locks_reset(struct locks *locks);

static inline bool owner_equal(const struct owner *a, const struct owner *b)
{
    return g_str_equal(a->job, b->job) && g_str_equal(a->livelock, b->livelock);
}
