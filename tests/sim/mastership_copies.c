/*
 * SAF-07, seen from outside: which copies a master that has a store of its own knows to be in
 * reach, by the questions that came to it, and whether an answered commit is on as many of them as
 * were promised. A copy is in reach from the question on that said that it has everything, until it
 * has let a commit wait for cluster.copy_patience_ms by the master's clock, or asks as one that has
 * to be filled anew. So a master may answer with fewer copies only what it has given them that time
 * for. A master that has just begun has been asked by nobody: what it answers before its followers
 * have asked again may be on no copy.
 *
 * With etcd no copy that is whole, however far it lags, is filled anew: what is in one is never
 * lost, and no run is so long that etcd forgets what was deleted.
 */
#include <string.h>

#include "mastership.h"

#define PATIENCE_MS 1000 /* the default, which the cluster has */
#define ROUNDING_MS 3    /* of clocks with a rate of their own */

/* A copy that has not been counted in although nothing has happened to it and its master for so
 * long is passed over: a supervisor waits up to 1 s, an announcement is tried each 2 s, a copy asks
 * again after 1 s at the most, and is filled within 1 s. */
#define COPY_MS 5000

/* --- who is a candidate --- */

struct looked_up {
    const char *uuid;
    bool candidate;
};

static void take_node(const char *kind, const char *key, guint64 version, json_t *object,
                      void *data)
{
    struct looked_up *looked = data;
    if (!strcmp(kind, "node") && !strcmp(key, looked->uuid))
        looked->candidate = json_is_true(json_object_get(object, "master_candidate"));
}

/* By the record: a person's word takes everybody off it who gave no answer, also a node that runs
 * but has lost its store, and waits for a master to announce itself. */
static bool is_candidate(const struct ms_host *master, const struct ms_host *host)
{
    struct looked_up looked = {host->uuid, false};
    model_store_each(master->store, take_node, &looked);
    return looked.candidate;
}

/* --- who is in reach --- */

static struct ms_follower *follower_of(const struct ms_host *master, guint index)
{
    return (struct ms_follower *)&master->followers[index];
}

/* Whether a commit that it lacks has waited long enough. */
static bool is_out_of_patience(const struct ms_host *master, const struct ms_follower *follower)
{
    const struct ms_commit *lacked = ms_commit_after(master->ms, follower->serial);
    gint64 waited = lacked ? ms_now(master->ms) - lacked->stored_ms : 0;
    return lacked && (double)waited * master->rate >= PATIENCE_MS - ROUNDING_MS;
}

static bool is_in_reach(const struct ms_host *master, guint index)
{
    struct ms_follower *follower = follower_of(master, index);
    if (follower->in && is_out_of_patience(master, follower))
        follower->in = false;
    return follower->in;
}

void ms_copies_forget(struct ms_host *master)
{
    memset(master->followers, 0, sizeof master->followers);
}

void ms_saw_follow(struct ms_host *master, const struct rpc_request *request)
{
    struct ms *ms = master->ms;
    const struct ms_host *asker = ms_host_of(ms, request->from_node);
    guint64 serial = (guint64)json_integer_value(json_object_get(request->args, "serial"));
    guint64 history = (guint64)json_integer_value(json_object_get(request->args, "history"));
    const char *digest = json_string_value(json_object_get(request->args, "digest"));
    const struct ms_commit *commit = ms_commit_at(ms, serial);
    if (!asker || asker == master || !master->epoch)
        return;
    struct ms_follower *follower = follower_of(master, asker->index);
    bool whole = history == ms->history && commit && digest &&
                 g_ascii_strtoull(digest, NULL, 16) == commit->digest;
    follower->whole = whole;
    if (ms->etcd)
        return;
    follower->in = whole && (is_in_reach(master, asker->index) || serial == ms_last_serial(ms));
    follower->serial = whole ? serial : 0;
}

void ms_saw_followed(struct ms_host *master, const char *asker, const json_t *result)
{
    const struct ms_host *host = ms_host_of(master->ms, asker);
    if (!host || (result && !json_is_true(json_object_get(result, "snapshot"))))
        return;
    struct ms_follower *follower = follower_of(master, host->index);
    follower->in = false;
    if (result && master->ms->etcd && follower->whole)
        ms_problem(master->ms, "the copy of %s is filled anew, and needs only what it lacks: %s",
                   asker, json_string_value(json_object_get(result, "why")));
}

/* --- an answer --- */

static bool has_it(const struct ms *ms, const struct ms_host *host, guint64 serial)
{
    struct copy_position at;
    model_store_position(host->store, &at);
    const struct ms_commit *commit = ms_commit_at(ms, at.serial);
    return at.serial >= serial && commit && commit->digest == at.digest;
}

/* It has had all the time to say that it is there. */
static bool is_passed_over(const struct ms *ms, const struct ms_host *master,
                           const struct ms_host *host)
{
    gint64 since = ms_now(ms) - COPY_MS;
    enum copy_role role;
    return model_store_role(host->store, &role) && role == COPY_FOLLOWS &&
           master->epoch_ms < since && ms_steady(ms, host->index, master->index, since);
}

void ms_check_copies(struct ms *ms, const struct ms_host *master, guint64 serial)
{
    const struct ms_host *lacks = NULL;
    guint have = 0, reachable = 0;
    for (guint i = 0; i < ms->hosts_count; i++) {
        const struct ms_host *host = &ms->hosts[i];
        if (host == master)
            continue;
        /* Its disk may have burned since it said that it has it. */
        bool has = has_it(ms, host, serial) || follower_of(master, i)->serial >= serial;
        bool counts = !has && (is_in_reach(master, i) || is_passed_over(ms, master, host)) &&
                      is_candidate(master, host);
        have += has;
        reachable += has || counts;
        lacks = counts ? host : lacks;
    }
    ms_commit_at(ms, serial)->alone = have < ms->copies;
    if (have < MIN(ms->copies, reachable))
        ms_problem(ms,
                   "serial %" G_GUINT64_FORMAT " is answered with %u copies, and %s, which is "
                   "in reach, does not have it",
                   serial, have, lacks->uuid);
}
