/*
 * A person. With the engine etcd the master is asked to hand over; with SQLite another candidate is
 * made the master when there is none, or that is tried at any time. What is said is true: a host
 * that may be master and does not answer is powered off first; those that are said to be gone for
 * good are off until there is a master again.
 */
#include <string.h>

#include "mastership.h"

#define MS_HEED_MS 40000

static bool is_reachable(const struct ms *ms, const struct ms_host *from, const struct ms_host *to)
{
    return to->powered && !to->paused && to->noded && from->noded && !from->paused &&
           ms_linked(ms, from->index, to->index) && ms_linked(ms, to->index, from->index);
}

/* It might be master, or become it by itself. */
static bool may_be_master(const struct ms *ms, const struct ms_host *host)
{
    enum copy_role role;
    return host->epoch || (int)host->index == ms->newest_host ||
           model_store_is_damaged(host->store) ||
           (model_store_role(host->store, &role) && role == COPY_ENGINE);
}

static void make_sure(struct ms *ms, const struct ms_host *from, bool alone)
{
    for (guint i = 0; i < ms->hosts_count; i++) {
        struct ms_host *host = &ms->hosts[i];
        bool reachable = is_reachable(ms, from, host);
        bool dead = may_be_master(ms, host) && (!reachable || !host->epoch);
        bool silent = !reachable || !host->wconfd || host->frozen;
        if (host == from || (!dead && !(alone && (silent || ms_is_given_up(ms, host)))))
            continue;
        ms_power_off(host);
        host->gone = host->gone || alone;
        host->demoted = host->demoted || alone;
    }
}

/* Asks the host's wconfd and waits; fate waits too. */
static bool ask(struct ms *ms, const struct ms_host *host, const struct env *from, guint job,
                const char *method, json_t *args)
{
    struct fake_reply reply;
    struct stamp stamp = {job ? ms->history : 0, job ? host->epoch : 0};
    gint64 until = ms_now(ms) + 90000;
    fake_call_start_stamped(from, job, stamp, host->uuid, ROLE_WCONFD, method, args, &reply);
    while (!reply.done && !ms->problem && ms_now(ms) < until)
        ms_pass(ms, 100);
    bool ok = reply.done && reply.result;
    ms->refused = reply.error &&
                  (fettle_error_is(reply.error, WRONG_STATE) ||
                   fettle_error_is(reply.error, UNSAFE) || fettle_error_is(reply.error, TEMPORARY));
    ms_tell(ms, "%s on host %u: %s", method, host->index + 1,
            ok            ? "done"
            : reply.error ? reply.error->message
                          : "no answer");
    if (!reply.done) {
        ms_problem(ms, "%s is never answered", method);
        ms_power_off((struct ms_host *)host);
    }
    fake_settle(ms->world);
    fake_reply_clear(&reply);
    return ok;
}

/* A word that was refused says nothing of anybody. */
static void unsay(struct ms *ms, const bool *gone)
{
    for (guint i = 0; i < ms->hosts_count; i++)
        ms->hosts[i].gone = ms->hosts[i].gone && gone[i];
}

static bool take_over(struct ms *ms, struct ms_host *host, const char *to, bool alone)
{
    bool gone[MS_HOSTS];
    for (guint i = 0; i < ms->hosts_count; i++)
        gone[i] = ms->hosts[i].gone;
    if (!host->powered || host->paused || !host->wconfd || (alone && !ms_is_whole(ms, host)))
        return false; /* nobody goes back to what was given up by such a word before */
    ms->busy = true;
    if (!ms->etcd)
        make_sure(ms, host, alone);
    host->word = alone;
    bool ok = ask(ms, host, host->cli, 0, "take_over",
                  json_make("{s:s,s:b,s:s}", "node", to, "alone", alone, "statement",
                            alone ? "the others have burned" : ""));
    ms->counts->alone += ok && alone;
    ms->counts->handovers += ok && ms->etcd;
    host->word = host->word && ok;
    if (ms->refused)
        unsay(ms, gone);
    if (ok && alone)
        ms->heeded_ms = ms_now(ms) + MS_HEED_MS;
    ms->busy = false;
    return ok;
}

static bool has_master(const struct ms *ms)
{
    return ms->newest_host >= 0 && ms->hosts[ms->newest_host].epoch == ms->newest_epoch;
}

static struct ms_host *any_powered(struct ms *ms)
{
    guint first = ms_random(ms, ms->hosts_count);
    for (guint i = 0; i < ms->hosts_count; i++) {
        struct ms_host *host = &ms->hosts[(first + i) % ms->hosts_count];
        if (host->powered && !host->paused && host->seat)
            return host;
    }
    return NULL;
}

/* etcd: the master is asked to hand over, to somebody in particular or not. */
static void hand_over(struct ms *ms)
{
    g_autofree char *name = g_strdup_printf("node%u", 1 + ms_random(ms, ms->hosts_count));
    struct ms_host *host = has_master(ms) ? &ms->hosts[ms->newest_host] : any_powered(ms);
    if (host)
        take_over(ms, host, ms_random(ms, 2) ? name : "", false);
}

/* With the power of the master cut first, or without a thought for it. */
void ms_person_acts(struct ms *ms)
{
    if (ms->etcd) {
        hand_over(ms);
        return;
    }
    if (has_master(ms) && ms_random(ms, 2) == 0)
        ms_fate_cuts_power(ms, &ms->hosts[ms->newest_host]);
    struct ms_host *host = any_powered(ms);
    if (host)
        take_over(ms, host, "", !has_master(ms) && ms_random(ms, 8) == 0);
}

/* --- who was said to be gone becomes a candidate again --- */

struct demoted {
    char *key;
    guint64 version;
    json_t *object;
};

static void find_demoted(const char *kind, const char *key, guint64 version, json_t *object,
                         void *data)
{
    struct demoted *found = data;
    if (found->key || strcmp(kind, "node") != 0 || !strcmp(key, MS_LIAR) ||
        json_is_true(json_object_get(object, "master_candidate")))
        return;
    *found = (struct demoted){g_strdup(key), version, json_deep_copy(object)};
    json_object_set_new(found->object, "master_candidate", json_true());
}

static void promoted(struct ms *ms, struct ms_host *host)
{
    ms->counts->promoted++;
    host->demoted = false;
    ms_unsteady(host);
}

static void promote(struct ms *ms, const struct ms_host *master, const struct demoted *node)
{
    guint job = ++ms->last_job;
    g_autofree char *name = g_strdup_printf("%u", job);
    g_autofree char *livelock = g_strdup_printf("job-%u", job);
    g_autofree char *lock = g_strdup_printf("node-param/%s", node->key);
    g_autofree char *id = g_strdup_printf("00000000-0000-4000-8000-%012x", ++ms->last_id);
    json_autoptr owner = json_make("{s:s,s:s}", "job", name, "livelock", livelock);
    fake_livelock(ms->world, master->uuid, livelock, LIVELOCK_ALIVE);
    ms->busy = true;
    if (ask(ms, master, master->job, job, "update_locks",
            json_make("{s:O,s:[{s:s,s:s}],s:b,s:i}", "owner", owner, "locks", "name", lock, "mode",
                      "exclusive", "wait", 1, "wait_ms", 5000)) &&
        ask(ms, master, master->job, job, "change_node",
            json_make("{s:O,s:s,s:[{s:s,s:s,s:s,s:I,s:O}]}", "owner", owner, "commit_id", id,
                      "changes", "op", "put", "kind", "node", "key", node->key, "version",
                      (json_int_t)node->version, "object", node->object)))
        promoted(ms, ms_host_of(ms, node->key));
    ms->busy = false;
    ms_saw_end(ms, job);
    fake_livelock(ms->world, master->uuid, livelock, LIVELOCK_DEAD);
}

static void promote_one(struct ms *ms)
{
    struct ms_host *master = &ms->hosts[ms->newest_host];
    struct demoted node = {0};
    if (ms->etcd || !master->powered || master->paused || master->frozen)
        return;
    model_store_each(master->store, find_demoted, &node);
    if (node.key && !ms_host_of(ms, node.key)->gone)
        promote(ms, master, &node);
    g_free(node.key);
    json_decref(node.object);
}

void ms_person_mends(struct ms *ms, guint waited_ms)
{
    bool master = has_master(ms);
    for (guint i = 0; i < ms->hosts_count; i++) {
        struct ms_host *host = &ms->hosts[i];
        if (!host->gone || (!master && waited_ms < 60000))
            continue;
        host->gone = false;
        if (ms_random(ms, 2) == 0)
            ms_lose_disk(host);
        ms_boot(host);
    }
    if (master)
        promote_one(ms);
    if (ms->etcd || has_master(ms) || waited_ms % 10000 != 0 || ms_now(ms) < ms->heeded_ms)
        return;
    bool alone = waited_ms >= 40000;
    struct ms_host *host = any_powered(ms);
    for (guint i = 0; alone && host && !ms_is_whole(ms, host) && i < 20; i++)
        host = any_powered(ms);
    if (host)
        take_over(ms, host, "", alone);
}
