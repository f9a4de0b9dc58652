/* See engine_change.h. */
#include "core/wconfd/engine_change.h"

#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "core/config/restored.h"
#include "core/wconfd/engine_members.h"
#include "core/wconfd/key_renewal.h"
#include "proto/change.h"

#define FEWEST_CANDIDATES 3
#define STILL_PAUSE_MS 5

/* --- whether it may begin --- */

static bool check_candidates(const struct wconf *wconf, GError **error)
{
    g_autoptr(GPtrArray) nodes = engine_candidates(wconf->env, wconf->committed);
    if (nodes->len < FEWEST_CANDIDATES)
        fettle_set_error(error, WRONG_STATE,
                         "etcd needs at least %d master candidates, there %s %u: one member has "
                         "nobody who could take over, and two stop when either is lost. Make more "
                         "nodes candidates: fettle node modify NODE --master-candidate yes",
                         FEWEST_CANDIDATES, nodes->len == 1 ? "is" : "are", nodes->len);
    else if (nodes->len > LIMIT_ENGINE_MEMBERS)
        fettle_set_error(error, WRONG_STATE,
                         "there are %u master candidates, and etcd is to have %d members at most; "
                         "make some nodes no candidates: fettle node modify NODE "
                         "--master-candidate no",
                         nodes->len, LIMIT_ENGINE_MEMBERS);
    for (guint i = 0; i < nodes->len && !*error; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->offline)
            fettle_set_error(error, WRONG_STATE,
                             "candidate %s is offline on record, and every candidate becomes a "
                             "member of etcd: bring it back, or make it no candidate: fettle node "
                             "modify %s --master-candidate no",
                             node->name, node->name);
    }
    return !*error;
}

bool engine_change_check(const struct wconf *wconf, enum engine_kind to, GError **error)
{
    bool etcd = wconf->engine->replicated;
    g_autoptr(GError) reason = NULL;
    if ((to == ENGINE_KIND_ETCD) == etcd)
        fettle_set_error(&reason, WRONG_STATE, "the engine is %s already",
                         etcd ? "etcd" : "sqlite");
    else if (!wconf->env->ensemble)
        fettle_set_error(&reason, WRONG_STATE,
                         "this configuration daemon cannot change its engine");
    else if (restored_brake(wconf->committed))
        fettle_set_error(&reason, WRONG_STATE,
                         "the configuration was restored from a backup and is not compared with "
                         "the nodes yet: look at `fettle cluster verify`, then say `fettle repair "
                         "continue`; the engine can be changed after that");
    else if (to == ENGINE_KIND_ETCD)
        check_candidates(wconf, &reason);
    if (!reason)
        return key_renewal_over(wconf, "the engine can be changed", error);
    g_propagate_error(error, g_steal_pointer(&reason));
    return false;
}

/* --- steps --- */

/* After every wait. */
static bool goes_on(const struct engine_change *change, GError **error)
{
    if (change->wconf && !change->wconf->down && !task_killed())
        return true;
    g_clear_error(error);
    fettle_set_error(error, NOT_MASTER, "this process is not the master any more");
    return false;
}

/* This node's engine.json is written first and removed last: it tells a restart of a change that
 * has not come to its step. */
static bool prepare(struct engine_change *change, GError **error)
{
    const struct cluster *now = config_cluster(change->wconf->committed);
    record_autoptr(cluster) cluster = cluster_copy(now);
    for (guint i = 0; i < change->nodes->len; i++)
        if (!engine_node_clear(&change->asker, change->nodes->pdata[i], error))
            return false;
    change->config = engine_founding(change->asker.env, cluster, change->nodes, error);
    if (!change->config)
        return false;
    for (guint i = 0; i < change->nodes->len; i++) {
        const struct node *node = change->nodes->pdata[i];
        if (!engine_node_set(&change->asker, node, change->config, error) ||
            !engine_node_certify(&change->asker, cluster, node, false, error) ||
            !goes_on(change, error))
            return false;
        engine_change_say(change, "node %s has its certificates", node->name);
    }
    return true;
}

static bool start_members(struct engine_change *change, GError **error)
{
    for (guint i = 0; i < change->nodes->len; i++) {
        const struct node *node = change->nodes->pdata[i];
        if (!engine_node_start(&change->asker, node, MEMBER_NEW, error) || !goes_on(change, error))
            return false;
        engine_change_say(change, "the member of node %s is started", node->name);
    }
    if (!engine_nodes_settle(&change->asker, change->nodes, error) || !goes_on(change, error))
        return false;
    engine_change_say(change, "all %u members are well", change->nodes->len);
    return true;
}

static bool hold(struct engine_change *change, GError **error)
{
    const struct env *env = change->asker.env;
    gint64 until = env->ops->boot_ms(env) + ENGINE_STILL_MS;
    wconf_hold_commits(change->wconf);
    while (!wconf_is_still(change->wconf)) {
        if (env->ops->boot_ms(env) >= until) {
            fettle_set_error(error, TIMEOUT,
                             "changes that were on their way have not ended after %u s",
                             ENGINE_STILL_MS / 1000);
            return false;
        }
        env_sleep(env, STILL_PAUSE_MS);
        if (!goes_on(change, error))
            return false;
    }
    return true;
}

/* --- the content --- */

GPtrArray *engine_change_commit(const struct config *config, enum engine_kind to)
{
    GPtrArray *changes = change_list_new();
    const struct cluster *now = config_cluster(config);
    record_autoptr(cluster) cluster = cluster_copy(now);
    cluster->engine = to;
    struct change *change = config_put(config, "cluster", now->uuid, cluster_to_json(cluster));
    change->version = config_serial(config) + 1;
    g_ptr_array_add(changes, change);
    return changes;
}

struct source {
    const struct wconf *wconf;
    const struct config *config;
    const GPtrArray *last;
    void (*each)(const char *kind, const char *key, guint64 version, json_t *object, void *data);
    void *data;
};

static const struct change *changed_in(const GPtrArray *changes, const char *kind, const char *key)
{
    for (guint i = 0; i < changes->len; i++) {
        const struct change *change = changes->pdata[i];
        if (strcmp(change->kind, kind) == 0 && strcmp(change->key, key) == 0)
            return change;
    }
    return NULL;
}

static void give_object(const char *kind, const char *key, guint64 version, const void *value,
                        void *data)
{
    const struct source *source = data;
    const struct change *change = changed_in(source->last, kind, key);
    json_autoptr object =
        change ? json_incref(change->object) : config_object_json(source->config, kind, key);
    source->each(kind, key, change ? change->version : version, object, source->data);
}

static void give_objects(void (*each)(const char *kind, const char *key, guint64 version,
                                      json_t *object, void *data),
                         void *data, void *source_in)
{
    struct source *source = source_in;
    source->each = each;
    source->data = data;
    config_each(source->config, give_object, source);
}

static void give_ids(void (*each)(const char *commit_id, guint64 serial, void *data), void *data,
                     void *source_in)
{
    const struct source *source = source_in;
    g_autoptr(GPtrArray) commits =
        g_ptr_array_new_with_free_func((GDestroyNotify)stored_commit_free);
    wconf_commit_ids_list(source->wconf, 0, G_MAXUINT, commits);
    for (guint i = 0; i < commits->len; i++) {
        const struct stored_commit *commit = commits->pdata[i];
        each(commit->id, commit->serial, data);
    }
}

static bool fill(struct engine_change *change, const GPtrArray *last, GError **error)
{
    struct wconf *wconf = change->wconf;
    struct ensemble *ensemble = change->asker.env->ensemble;
    struct source source = {.wconf = wconf, .config = wconf->committed, .last = last};
    g_autofree char *cluster = g_strdup(config_cluster(wconf->committed)->uuid);
    const struct ensemble_content content = {.cluster = cluster,
                                             .history = config_history(wconf->committed),
                                             .serial = config_serial(wconf->committed) + 1,
                                             .epoch = wconf->epoch,
                                             .objects = give_objects,
                                             .ids = give_ids,
                                             .source = &source};
    guint count = config_total(wconf->committed);
    if (!ensemble->ops->fill(ensemble, change->config, &content, error)) {
        g_prefix_error(error, "etcd cannot be filled: ");
        return false;
    }
    if (!goes_on(change, error))
        return false;
    engine_change_say(change, "etcd has all %u objects", count);
    return true;
}

/* --- deciding, the step --- */

/* From here on no candidate that was told becomes master by a person's word: a majority, this one
 * among them, so that nobody gets the others' promises. */
static bool decide(struct engine_change *change, GError **error)
{
    g_autoptr(GString) silent = g_string_new(NULL);
    guint told = 0;
    change->config->state = ENGINE_DECIDING;
    change->config->serial = config_serial(change->wconf->committed) + 1;
    for (guint i = 0; i < change->nodes->len; i++) {
        const struct node *node = change->nodes->pdata[i];
        g_autoptr(GError) local = NULL;
        if (engine_node_set(&change->asker, node, change->config, &local))
            told++;
        else
            g_string_append_printf(silent, "%s%s", silent->len ? "; " : "", local->message);
        if (!goes_on(change, error))
            return false;
        if (i == 0 && local)
            break;
    }
    if (told > change->nodes->len / 2)
        return true;
    fettle_set_error(error, UNREACHABLE, "only %u of %u candidates can be told of the change: %s",
                     told, change->nodes->len, silent->str);
    return false;
}

static bool leave(struct engine_change *change, const GPtrArray *last, GError **error)
{
    struct wconf *wconf = change->wconf;
    g_autofree char *id = env_uuid(wconf->env);
    const struct engine_commit commit = {id, wconf->epoch, config_serial(wconf->committed) + 1,
                                         last};
    enum engine_result result =
        wconf->engine->ops->leave(wconf->engine, &commit, wconf->env->node_uuid, error);
    change->stepped = result != ENGINE_REFUSED;
    return result == ENGINE_DONE;
}

/* Whoever cannot be told is told by the master of the new engine. */
static void activate(struct engine_change *change)
{
    change->config->state = ENGINE_ACTIVE;
    change->config->serial = 0;
    for (guint i = 0; i < change->nodes->len; i++) {
        g_autoptr(GError) error = NULL;
        const struct node *node = change->nodes->pdata[i];
        if (!engine_node_set(&change->asker, node, change->config, &error) && !task_killed())
            log_warning("", "%s; the next master tells it", error->message);
        else
            engine_change_say(change, "node %s uses etcd", node->name);
    }
}

static bool go_to_etcd(struct engine_change *change, GError **error)
{
    if (!prepare(change, error) || !start_members(change, error) || !hold(change, error))
        return false;
    g_autoptr(GPtrArray) last = engine_change_commit(change->wconf->committed, ENGINE_KIND_ETCD);
    if (!fill(change, last, error) || !decide(change, error) || !leave(change, last, error))
        return false;
    engine_change_say(change, "the engine is etcd");
    activate(change);
    return true;
}

/* --- back --- */

/* What the store of this node gets is its own copy: it must have everything. */
static bool wait_for_copy(struct engine_change *change, GError **error)
{
    const struct env *env = change->asker.env;
    gint64 until = env->ops->boot_ms(env) + ENGINE_STILL_MS;
    guint64 wanted = config_serial(change->wconf->committed);
    while (wconf_followers_serial(change->wconf, env->node_uuid) != wanted) {
        if (env->ops->boot_ms(env) >= until) {
            fettle_set_error(error, TIMEOUT,
                             "the copy of this node is at serial %" G_GUINT64_FORMAT
                             " after %u s, not at %" G_GUINT64_FORMAT,
                             wconf_followers_serial(change->wconf, env->node_uuid),
                             ENGINE_STILL_MS / 1000, wanted);
            return false;
        }
        env_sleep(env, STILL_PAUSE_MS);
        if (!goes_on(change, error))
            return false;
    }
    return true;
}

/* The next process finds that etcd was left for its store, and does the rest (seat_engine_step.c).
 */
static bool go_to_sqlite(struct engine_change *change, GError **error)
{
    engine_members_end(change->wconf);
    if (!hold(change, error) || !wait_for_copy(change, error))
        return false;
    engine_change_say(change, "the copy of this node has everything");
    g_autoptr(GPtrArray) last = engine_change_commit(change->wconf->committed, ENGINE_KIND_SQLITE);
    if (!leave(change, last, error) || !goes_on(change, error))
        return false;
    engine_change_say(change, "the configuration has left etcd for the store of this node");
    return true;
}

bool engine_change_run(struct engine_change *change, GError **error)
{
    return change->to == ENGINE_KIND_ETCD ? go_to_etcd(change, error) : go_to_sqlite(change, error);
}

/* --- taking back --- */

bool engine_change_clear(const struct engine_asker *asker, GPtrArray *nodes, GError **error)
{
    for (guint i = nodes->len; i > 0; i--) {
        const struct node *node = nodes->pdata[i - 1];
        bool own = strcmp(node->uuid, asker->env->node_uuid) == 0;
        if (own && nodes->len > 1)
            continue;
        g_clear_error(error);
        if (engine_node_clear(asker, node, error))
            g_ptr_array_remove_index(nodes, i - 1);
        if (task_killed())
            return false;
    }
    return nodes->len == 0;
}
