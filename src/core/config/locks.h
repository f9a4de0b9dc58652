/*
 * The lock manager: who holds what, who waits for what. Pure: it knows no clock, no file, no
 * process; wconfd feeds it and writes down what comes out (events, for the journal) before it
 * answers (grants).
 *
 * A lock is `level/name`. The order of all locks, which every request must follow (LCK-02, 03):
 *
 *   cluster/[lockset] < cluster/BGL < instance/[lockset] < instance/NAME < nodegroup/[lockset] <
 * nodegroup/UUID < node/[lockset] < node/UUID < node-res/[lockset] < node-res/UUID <
 * network/[lockset] < network/UUID < cluster/config
 *
 * `level/[lockset]` is the group lock of its level: it comes first there and acts as if it were
 * held on every member (LCK-19 to 21). Members of a level sort by the bytes of their names.
 * cluster/config belongs to no group.
 *
 * Rules of an update (all or nothing):
 * - a lock that is new, or shared and becomes exclusive, must come after every other lock held,
 * those released in the same call included (LCK-06, 07, D-10), unless a held group lock covers it;
 * an exclusive member while its group is held shared is never in order (LCK-22);
 * - a request that is blocked waits, if asked, in the order of (priority, age). Nothing of it is
 * done before all of it. A waiting request reserves its locks up to the first one at which it is
 * stuck; who comes later does not pass it there, so nobody starves. It reserves nothing beyond, so
 * no circle of waits can close: along any chain of waits the locks only grow, and where they are
 * equal the requests only get older;
 * - a shared lock is made exclusive at once or not at all: two holders that both waited would wait
 * for each other.
 *
 * Owners are pairs (job, livelock) (DTH-21); an owner has at most one waiting request, and changes
 * nothing meanwhile.
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

/* Order of two lock names; names that are none sort last. */
int locks_compare(const char *a, const char *b);
/* WRONG_INPUT if `name` is no lock. */
bool locks_check_name(const char *name, GError **error);

enum locks_outcome { LOCKS_GRANTED, LOCKS_BLOCKED, LOCKS_WAITS };

/* How to wait; `tag` comes back with the grant. */
struct locks_wait {
    gint64 priority;
    void *tag;
};

/* Brings the owner's set to the list (GPtrArray of struct lock_request). `wait` NULL: does not
 * wait. Errors leave everything as it was: WRONG_INPUT, LOCK_ORDER, WRONG_STATE (has a waiting
 * request). */
bool locks_update(struct locks *locks, const struct owner *owner, const GPtrArray *requests,
                  const struct locks_wait *wait, enum locks_outcome *ret_outcome, GError **error);
/* Who blocks these requests now: owners in `blockers`, locks in `pending_nodes` whose gate is
 * closed; granted false. */
struct update_locks_result *locks_explain(struct locks *locks, const struct owner *owner,
                                          const GPtrArray *requests, gint64 priority);
/* Ends the owner's wait, if any; its tag, NULL for none. */
void *locks_withdraw(struct locks *locks, const struct owner *owner);
/* Releases everything, ends the wait; the tag of the wait. */
void *locks_free_owner(struct locks *locks, const struct owner *owner);
/* The gate of this lock has opened or closed. */
void locks_gate_changed(struct locks *locks, const char *name);

/* What has changed since the last call: a release, or a lock now held in that mode. */
struct locks_event {
    struct owner *owner;
    char *name;
    enum lock_mode mode;
};
/* GPtrArray of struct locks_event, in order. */
GPtrArray *locks_take_events(struct locks *locks);
/* Tags of waiting requests that were granted, in order; owned by nobody. */
GPtrArray *locks_take_grants(struct locks *locks);

/* How the owner holds the lock, itself or by its group; LOCK_RELEASE: not at all. */
enum lock_mode locks_held(const struct locks *locks, const struct owner *owner, const char *name);
bool locks_waits(const struct locks *locks, const struct owner *owner);
/* GPtrArray of struct lock_state, sorted by owner, then lock; `owner` NULL: everybody's, waiting
 * ones too. */
GPtrArray *locks_list(const struct locks *locks, const struct owner *owner);
/* GPtrArray of struct owner: all who hold or wait. */
GPtrArray *locks_owners(const struct locks *locks);
/* Makes the owner hold the lock, as the journal says; no rule is checked and no event made. */
void locks_restore(struct locks *locks, const struct owner *owner, const char *name,
                   enum lock_mode mode);
/* Drops everything. */
void locks_reset(struct locks *locks);
guint locks_count(const struct locks *locks);

static inline bool owner_equal(const struct owner *a, const struct owner *b)
{
    return g_str_equal(a->job, b->job) && g_str_equal(a->livelock, b->livelock);
}
