/*
 * The copies of other candidates: what they ask for, and how far they are. A follower asks with
 * what is durable on its disk, so each question acknowledges everything up to there; a commit of an
 * engine that is one node's store is answered when enough copies have it (SAF-07). A copy that lets
 * a commit wait too long is counted out until it has caught up: losing it must not stop the
 * cluster.
 */
#include <string.h>

#include "base/log.h"
#include "core/wconfd/engine_members.h"
#include "core/wconfd/wconf_private.h"

struct serial_digest {
    guint64 serial, digest;
};

/* A follower asks at least every COPYING_WAIT_MS (replication.c). */
#define FOLLOWER_SILENT_MS 25000

struct follower {
    guint64 serial; /* durable there */
    bool reachable;
    bool filling;    /* it was told to begin anew, and has not said since that it is whole */
    guint64 told;    /* what it was brought up to by an answer, while it is out of reach … */
    gint64 told_ms;  /* … and when that was (boot clock); all that is newer came later */
    gint64 heard_ms; /* boot clock, of its last question, or of one for a piece */
    bool authority;  /* it has the key of the cluster's authority */
    char key_of[65]; /* of that one: SHA-256 of its certificate; "": it does not say */
    bool older;      /* or newer: it may not know every kind of object that this version has */
};

/* A commit that some copy in reach lacks. */
struct copy_wait {
    guint64 serial;
    gint64 until_ms;        /* then those who lack it are counted out */
    void (*fn)(void *data); /* NULL: it is answered */
    void *data;
};

struct wconf_followers {
    GHashTable *nodes; /* UUID -> struct follower */
    GQueue waits;      /* struct copy_wait, in order of serial */
    guint timer;       /* of the first of them */
    GArray *digests;   /* struct serial_digest: of the newest commits, in order */
};

struct wconf_followers *wconf_followers_new(void)
{
    struct wconf_followers *followers = g_new0(struct wconf_followers, 1);
    followers->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_queue_init(&followers->waits);
    followers->digests = g_array_new(FALSE, FALSE, sizeof(struct serial_digest));
    return followers;
}

void wconf_followers_free(struct wconf_followers *followers)
{
    g_hash_table_unref(followers->nodes);
    g_array_unref(followers->digests);
    g_free(followers);
}

/* --- a store that rots --- */

const char *wconf_damage(const struct wconf *wconf)
{
    const struct engine *engine = wconf->engine;
    return engine->ops->damage ? engine->ops->damage(engine) : NULL;
}

bool wconf_outlives(const struct wconf *wconf, GError **error)
{
    const char *damage = wconf_damage(wconf);
    if (!damage || wconf_followers_reachable(wconf) > 0)
        return true;
    fettle_set_error(error, TEMPORARY,
                     "nothing is changed while the store of the master is damaged and no other "
                     "candidate with a copy is in reach: it would be lost. %s",
                     damage);
    return false;
}

/* --- who is in reach --- */

guint64 wconf_followers_serial(const struct wconf *wconf, const char *node)
{
    const struct follower *follower = g_hash_table_lookup(wconf->followers->nodes, node);
    return follower ? follower->serial : 0;
}

guint wconf_followers_reachable(const struct wconf *wconf)
{
    guint count = 0;
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, wconf->followers->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        count += ((const struct follower *)value)->reachable;
    return count;
}

static bool is_silent(const struct wconf *wconf, const struct follower *follower)
{
    return wconf->env->ops->boot_ms(wconf->env) - follower->heard_ms >= FOLLOWER_SILENT_MS;
}

/* With a replicated engine no commit waits for copies, so that nothing counts them out. */
static bool is_heard(const struct wconf *wconf, const struct follower *follower)
{
    return follower->reachable && (!wconf->engine->replicated || !is_silent(wconf, follower));
}

void wconf_followers_filling(struct wconf *wconf, const char *node)
{
    struct follower *follower = g_hash_table_lookup(wconf->followers->nodes, node);
    if (follower)
        follower->heard_ms = wconf->env->ops->boot_ms(wconf->env);
}

void wconf_followers_list(const struct wconf *wconf, GPtrArray *copies)
{
    g_autoptr(GPtrArray) nodes = config_list(wconf->committed, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct follower *follower = g_hash_table_lookup(wconf->followers->nodes, node->uuid);
        if (!node->master_candidate || !strcmp(node->uuid, wconf->env->node_uuid))
            continue;
        struct copy_status from = {.node = node->uuid,
                                   .serial = follower ? follower->serial : 0,
                                   .reachable = follower && is_heard(wconf, follower),
                                   .filling =
                                       follower && follower->filling && !is_silent(wconf, follower),
                                   .authority = follower && follower->authority};
        g_ptr_array_add(copies, copy_status_copy(&from));
    }
}

const char *wconf_followers_key_of(const struct wconf *wconf, const char *node)
{
    const struct follower *follower = g_hash_table_lookup(wconf->followers->nodes, node);
    return follower ? follower->key_of : "";
}

bool wconf_followers_older(const struct wconf *wconf, const char *node)
{
    const struct follower *follower = g_hash_table_lookup(wconf->followers->nodes, node);
    return follower && follower->older;
}

/* Copies in reach that are that far, and all of these. */
static guint64 count_copies(const struct wconf *wconf, guint64 serial, guint64 *ret_reachable)
{
    guint64 have = 0, reachable = 0;
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, wconf->followers->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct follower *follower = value;
        reachable += follower->reachable;
        have += follower->reachable && follower->serial >= serial;
    }
    *ret_reachable = reachable;
    return have;
}

static bool is_copied(const struct wconf *wconf, guint64 serial)
{
    guint64 wanted = config_cluster(wconf->committed)->commit_copies;
    guint64 reachable = 0, have = count_copies(wconf, serial, &reachable);
    return have >= MAX(MIN(wanted, reachable), wconf_damage(wconf) ? 1 : 0);
}

bool wconf_followers_have(const struct wconf *wconf, guint64 serial)
{
    return wconf->engine->replicated || is_copied(wconf, serial);
}

bool wconf_followers_keep(const struct wconf *wconf, guint64 serial)
{
    guint64 reachable;
    return wconf->engine->replicated ? engine_members_several(wconf)
                                     : count_copies(wconf, serial, &reachable) > 0;
}

bool wconf_followers_share(const struct wconf *wconf, guint64 serial)
{
    g_autoptr(GPtrArray) nodes = config_list(wconf->committed, "node");
    bool alone = true;
    for (guint i = 0; i < nodes->len && !wconf->engine->replicated; i++) {
        const struct node *node = nodes->pdata[i];
        if (!node->master_candidate || node->offline ||
            strcmp(node->uuid, wconf->env->node_uuid) == 0)
            continue;
        if (wconf_followers_serial(wconf, node->uuid) >= serial)
            return true;
        alone = false;
    }
    return alone;
}

static void count_out(struct wconf *wconf, guint64 serial)
{
    GHashTableIter iter;
    void *uuid;
    void *value;
    g_hash_table_iter_init(&iter, wconf->followers->nodes);
    while (g_hash_table_iter_next(&iter, &uuid, &value)) {
        struct follower *follower = value;
        if (!follower->reachable || follower->serial >= serial)
            continue;
        follower->reachable = false;
        log_warning("",
                    "the copy of node %s is at serial %" G_GUINT64_FORMAT
                    " and lets serial %" G_GUINT64_FORMAT
                    " wait: it is not waited for until it has caught up; %u other copies are in "
                    "reach",
                    config_node_name(wconf->committed, uuid), follower->serial, serial,
                    wconf_followers_reachable(wconf));
    }
}

/* --- commits on their way to the copies --- */

static bool lacks_anywhere(const struct wconf *wconf, guint64 serial)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, wconf->followers->nodes);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct follower *follower = value;
        if (follower->reachable && follower->serial < serial)
            return true;
    }
    return false;
}

/* Answers what enough copies have. */
static void answer(struct wconf *wconf)
{
    for (GList *link = wconf->followers->waits.head; link; link = link->next) {
        struct copy_wait *wait = link->data;
        if (!wconf->down && !is_copied(wconf, wait->serial))
            return;
        if (wait->fn)
            wait->fn(wait->data);
        wait->fn = NULL;
    }
}

static void timeout_cb(void *data);

static void release(struct wconf *wconf)
{
    struct wconf_followers *followers = wconf->followers;
    struct copy_wait *wait;
    answer(wconf);
    while ((wait = g_queue_peek_head(&followers->waits)) && !wait->fn &&
           (wconf->down || !lacks_anywhere(wconf, wait->serial)))
        g_free(g_queue_pop_head(&followers->waits));
    if (!wait && followers->timer) {
        wconf->env->ops->timer_cancel(wconf->env, followers->timer);
        followers->timer = 0;
    } else if (wait && !followers->timer) {
        gint64 left = wait->until_ms - wconf->env->ops->boot_ms(wconf->env);
        followers->timer =
            wconf->env->ops->timer(wconf->env, (guint)MAX(left, 1), timeout_cb, wconf);
    }
    wconf_flush_look(wconf);
}

static void timeout_cb(void *data)
{
    struct wconf *wconf = data;
    struct copy_wait *wait = g_queue_peek_head(&wconf->followers->waits);
    gint64 now = wconf->env->ops->boot_ms(wconf->env);
    wconf->followers->timer = 0;
    if (wait && now >= wait->until_ms) {
        /* Beside a damaged store it waits on, for a copy that is in reach again. */
        wait->until_ms = now + (gint64)config_cluster(wconf->committed)->copy_patience_ms;
        count_out(wconf, wait->serial);
    }
    release(wconf);
}

void wconf_followers_wait(struct wconf *wconf, guint64 serial, void (*fn)(void *data), void *data)
{
    if (wconf->engine->replicated) {
        fn(data);
        return;
    }
    gint64 patience = (gint64)config_cluster(wconf->committed)->copy_patience_ms;
    struct copy_wait *wait = g_new(struct copy_wait, 1);
    *wait = (struct copy_wait){serial, wconf->env->ops->boot_ms(wconf->env) + patience, fn, data};
    g_queue_push_tail(&wconf->followers->waits, wait);
    release(wconf);
}

void wconf_followers_hurry(struct wconf *wconf, guint64 serial)
{
    const struct copy_wait *last = g_queue_peek_tail(&wconf->followers->waits);
    bool waited_for = last && last->serial >= serial;
    if (!wconf->engine->replicated && !waited_for && lacks_anywhere(wconf, serial))
        wconf_followers_wait(wconf, serial, NULL, NULL);
}

void wconf_followers_end(struct wconf *wconf)
{
    g_assert(wconf->down);
    release(wconf);
}

/* --- digests --- */

void wconf_followers_note(struct wconf *wconf)
{
    struct serial_digest note = {config_serial(wconf->committed), config_digest(wconf->committed)};
    GArray *digests = wconf->followers->digests;
    if (digests->len >= 2 * LIMIT_DIGESTS_KEPT)
        g_array_remove_range(digests, 0, LIMIT_DIGESTS_KEPT);
    g_array_append_val(digests, note);
}

static bool digest_at(const struct wconf *wconf, guint64 serial, guint64 *ret_digest)
{
    const GArray *digests = wconf->followers->digests;
    for (guint i = digests->len; i > 0; i--) {
        const struct serial_digest *note = &g_array_index(digests, struct serial_digest, i - 1);
        if (note->serial > serial)
            continue;
        *ret_digest = note->digest;
        return note->serial == serial;
    }
    return false;
}

/* --- follow --- */

/* Whether a copy of this mastership can have what was lost with its master, under serials that
 * other changes have got since. */
static bool may_be_astray(const struct wconf *wconf, guint64 epoch)
{
    return epoch < wconf_stream_epoch(wconf);
}

/* Why the copy, which is of the mastership `epoch`, cannot go on from what it has; NULL: it can.
 * Free with g_free(). */
static char *why_anew(const struct wconf *wconf, const struct follow_args *args, guint64 epoch)
{
    guint64 digest = 0;
    if (args->history == 0)
        return g_strdup("it is empty");
    if (args->history != config_history(wconf->committed))
        return g_strdup_printf("it is of history %" G_GUINT64_FORMAT
                               ", the master's is %" G_GUINT64_FORMAT,
                               args->history, config_history(wconf->committed));
    if (args->serial > config_serial(wconf->committed))
        return g_strdup_printf("it is at serial %" G_GUINT64_FORMAT
                               ", the master only at %" G_GUINT64_FORMAT
                               ": it has changes that were lost with an earlier master",
                               args->serial, config_serial(wconf->committed));
    if (!wconf_stream_reaches(wconf, args->history, args->serial))
        return g_strdup_printf("the log of changes begins behind its serial %" G_GUINT64_FORMAT,
                               args->serial);
    bool known = digest_at(wconf, args->serial, &digest);
    if (!known && may_be_astray(wconf, epoch))
        return g_strdup_printf("it is at serial %" G_GUINT64_FORMAT " of epoch %" G_GUINT64_FORMAT
                               ", and what the content was there is not known any more",
                               args->serial, epoch);
    if (known && digest != g_ascii_strtoull(args->digest, NULL, 16))
        return g_strdup_printf(
            "its content at serial %" G_GUINT64_FORMAT " differs from the master's", args->serial);
    return NULL;
}

static struct follower *follower_of(struct wconf *wconf, const char *node)
{
    struct follower *follower = g_hash_table_lookup(wconf->followers->nodes, node);
    if (!follower) {
        follower = g_new0(struct follower, 1);
        g_hash_table_insert(wconf->followers->nodes, g_strdup(node), follower);
    }
    return follower;
}

/* Nobody has asked yet: until its patience is over each candidate may have a copy that is to be
 * waited for, also for what the process before could not answer any more. */
void wconf_followers_begin(struct wconf *wconf)
{
    g_autoptr(GPtrArray) nodes = config_list(wconf->committed, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->master_candidate && !node->offline && strcmp(node->uuid, wconf->env->node_uuid))
            follower_of(wconf, node->uuid)->reachable = true;
    }
}

/* A copy is in reach if it has every change that is older than the patience. Under load that is
 * never the newest one: what it acknowledges was the newest when it was told. */
static bool has_caught_up(const struct wconf *wconf, const struct follower *follower)
{
    gint64 patience = (gint64)config_cluster(wconf->committed)->copy_patience_ms;
    return follower->serial == config_serial(wconf->committed) ||
           (follower->told && follower->serial >= follower->told &&
            follower->heard_ms - follower->told_ms <= patience);
}

static void acknowledge(struct wconf *wconf, const char *node, guint64 serial)
{
    struct follower *follower = follower_of(wconf, node);
    guint64 newest = config_serial(wconf->committed);
    follower->serial = serial;
    follower->filling = false;
    follower->heard_ms = wconf->env->ops->boot_ms(wconf->env);
    if (!follower->reachable && has_caught_up(wconf, follower)) {
        follower->reachable = true;
        log_info("", "the copy of node %s has caught up at serial %" G_GUINT64_FORMAT,
                 config_node_name(wconf->committed, node), serial);
        wconf_followers_hurry(wconf, newest);
    }
    /* Whoever lacks something is answered at once. */
    follower->told = newest;
    follower->told_ms = follower->heard_ms;
    release(wconf);
}

/* A copy that has something of a later mastership proves that this one is over, whoever has not
 * been told yet: it learns nothing here, and what it has says nothing of what was changed here. */
static bool is_over(const struct wconf *wconf, const struct stamp *copy)
{
    return copy->history == config_history(wconf->committed) && copy->epoch > wconf->epoch;
}

/* A candidate on record. Who is none (any more) is told so and nothing else: what it says of its
 * copy is its own word, and a copy that counts would be one that a commit has waited for
 * (SAF-101). */
static bool may_follow(const struct wconf *wconf, const struct rpc_request *request, GError **error)
{
    const char *uuid = request->from_node;
    const struct node *node = config_get(wconf->committed, "node", uuid, NULL);
    if (is_over(wconf, &request->stamp)) {
        fettle_set_error(error, NOT_MASTER,
                         "this is the master of epoch %" G_GUINT64_FORMAT
                         ", and the copy is of epoch %" G_GUINT64_FORMAT
                         ": another node has become master since",
                         wconf->epoch, request->stamp.epoch);
        return false;
    }
    if (node && node->master_candidate)
        return true;
    fettle_set_error(error, PERMISSION,
                     "node %s is no master candidate: it keeps no copy of the configuration",
                     node ? node->name : uuid);
    return false;
}

void wconf_handle_follow(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(follow_args) args = rpc_request_args(request, &follow_args_record, &error);
    if (!args || !may_follow(wconf, request, &error)) {
        g_hash_table_remove(wconf->followers->nodes, request->from_node);
        release(wconf);
        rpc_fail(request, error);
        return;
    }
    follower_of(wconf, request->from_node)->authority = args->authority;
    g_strlcpy(follower_of(wconf, request->from_node)->key_of, args->key_of, 65);
    follower_of(wconf, request->from_node)->older = strcmp(args->version, FETTLE_VERSION) != 0;
    g_autofree char *why = why_anew(wconf, args, request->stamp.epoch);
    if (why) {
        struct follower *follower = follower_of(wconf, request->from_node);
        follower->reachable = false;
        follower->filling = true;
        follower->heard_ms = wconf->env->ops->boot_ms(wconf->env);
        follower->told = 0;
        release(wconf);
        rpc_answer(request, wconf_snapshot_in_pieces(wconf, why));
        return;
    }
    acknowledge(wconf, request->from_node, args->serial);
    /* Under which epoch it follows it is told at once: a copy knows what it knows. */
    bool told = request->stamp.epoch == wconf->epoch;
    const struct stream_wish wish = {.since = args->serial, .ids = true};
    wconf_stream_answer(wconf, request, &wish, told ? (guint)args->wait_ms : 0);
}

/* --- what their versions forbid --- */

/* The first object of a new kind (objects.def): a configuration daemon of the version before cannot
 * load a store that has one, and a candidate of it may have to become the master. So it is not made
 * while one is on record that has told this master its version; who has not asked yet is not waited
 * for. */
const char *wconf_older_candidate(const struct wconf *wconf)
{
    g_autoptr(GPtrArray) nodes = config_list(wconf->head, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->master_candidate && !node->offline && wconf_followers_older(wconf, node->uuid))
            return node->name;
    }
    return NULL;
}

static bool is_pool(const struct backend *backend)
{
    return backend->kind == BACKEND_RBD;
}

static bool has_pools(const struct config *head)
{
    g_autoptr(GPtrArray) backends = config_list(head, "backend");
    for (guint i = 0; i < backends->len; i++)
        if (is_pool(backends->pdata[i]))
            return true;
    return false;
}

/* Whether no store had that before: a kind of object, or of back end. `pool`: what it puts there,
 * if that is a pool of a Ceph. */
static bool is_first(const struct config *head, const struct change *change,
                     const struct backend *pool)
{
    return (object_is_new(change->kind) && config_count(head, change->kind) == 0) ||
           (pool && !has_pools(head));
}

/* A node that is to serve a pool, and did not before, whose daemons would take what is there for
 * files. */
static bool all_know_pools(const struct config *head, const struct backend *pool, GError **error)
{
    static const char *const daemons[] = {"noded", "volumed"};
    const struct backend *before = config_get(head, "backend", pool->uuid, NULL);
    for (guint i = 0; i < pool->nodes->len * G_N_ELEMENTS(daemons); i++) {
        const char *node = pool->nodes->pdata[i / G_N_ELEMENTS(daemons)];
        g_autofree char *key = config_service_key(node, daemons[i % G_N_ELEMENTS(daemons)]);
        const struct service *service = config_get(head, "service", key, NULL);
        if (!service || !strcmp(service->version, FETTLE_VERSION) ||
            (before && g_ptr_array_find_with_equal_func(before->nodes, node, g_str_equal, NULL)))
            continue;
        fettle_set_error(error, TEMPORARY,
                         "backend %s: %s of %s is of version %s, which may not know pools of a "
                         "Ceph; bring it to version %s",
                         pool->name, service->name, config_node_name(head, node), service->version,
                         FETTLE_VERSION);
        return false;
    }
    return true;
}

/* A volume that guests may only read from now on: a candidate of a version that does not know that
 * forgets it with the next commit, and a node of one gives it to write. */
static bool all_know_readonly(const struct wconf *wconf, const struct change *change,
                              GError **error)
{
    const struct volume *before = config_get(wconf->head, "volume", change->key, NULL);
    if (strcmp(change->kind, "volume") != 0 || (before && before->readonly) ||
        !json_is_true(json_object_get(change->object, "readonly")))
        return true;
    const char *older = wconf_older_candidate(wconf);
    g_autoptr(GPtrArray) nodes = config_list(wconf->head, "node");
    for (guint i = 0; !older && i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        g_autofree char *key = config_service_key(node->uuid, "noded");
        const struct service *service = config_get(wconf->head, "service", key, NULL);
        if (service && strcmp(service->version, FETTLE_VERSION) != 0)
            older = node->name;
    }
    if (!older)
        return true;
    fettle_set_error(error, TEMPORARY,
                     "volume %s: not made read-only while %s runs another version, whose guests "
                     "could write to it; bring that to version %s",
                     change->key, older, FETTLE_VERSION);
    return false;
}

static bool may_make_one(const struct wconf *wconf, const struct change *change, GError **error)
{
    record_autoptr(backend) backend =
        !strcmp(change->kind, "backend") ? backend_parse(change->object, RECORD_LAX, NULL) : NULL;
    const struct backend *pool = backend && is_pool(backend) ? backend : NULL;
    if (!all_know_readonly(wconf, change, error))
        return false;
    const char *older = is_first(wconf->head, change, pool) ? wconf_older_candidate(wconf) : NULL;
    if (!older)
        return !pool || all_know_pools(wconf->head, pool, error);
    fettle_set_error(error, TEMPORARY,
                     "%s %s: not put on record while the master candidate %s runs another "
                     "version, which could not load it; bring that to version %s",
                     change->kind, change->key, older, FETTLE_VERSION);
    return false;
}

bool wconf_may_make(const struct wconf *wconf, const GPtrArray *changes, GError **error)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (change->op == CHANGE_PUT && !may_make_one(wconf, change, error))
            return false;
    }
    return true;
}
