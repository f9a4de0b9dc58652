/* See engine_members.h. */
#include "core/wconfd/engine_members.h"

#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "core/wconfd/engine_nodes.h"
#include "core/wconfd/wconf_private.h"

struct tending {
    struct wconf *wconf; /* NULL: it has ended */
    struct engine_asker asker;
    GHashTable *clear; /* char *: nodes that are no candidates, and have nothing of etcd */
    char *silent;      /* name of the last one that did not answer: others first */
    char *said;        /* the last complaint */
    gint64 compare_ms; /* boot clock: when it is looked whether the members hold the same */
    char *doubt;       /* what the last look found; a second one has to find it, too */
    char *odd;         /* what two have found */
    bool several;      /* the last look has found more than one member with a vote */
};

/* What one pass knows. */
struct pass {
    struct tending *tending;
    struct cluster *cluster;
    GPtrArray *nodes;             /* struct node: candidates, this one first */
    struct engine_config *known;  /* etc/engine.json of this node */
    struct engine_config *wanted; /* what every candidate that is a member is told */
    GPtrArray *listed;            /* struct ensemble_member */
    bool waits;                   /* a node that is to come is not ready: nobody goes for it */
};

static void free_member(void *data)
{
    engine_member_free(data);
}

static bool alive(const struct tending *tending)
{
    return tending->wconf && !tending->wconf->down && !task_killed();
}

static void say(struct tending *tending, const char *what)
{
    if (g_strcmp0(tending->said, what) == 0)
        return;
    g_free(tending->said);
    tending->said = g_strdup(what);
    if (what)
        log_warning("", "members of etcd: %s", what);
}

/* --- who is who --- */

/* As it was told once; ports on record count for later ones. Free with engine_member_free(). */
static struct engine_member *member_for(const struct pass *pass, const struct node *node)
{
    const struct engine_member *known = engine_config_member(pass->known, node->uuid);
    return known ? engine_member_copy(known) : engine_member_of(pass->cluster, node);
}

static const struct ensemble_member *find_listed(const struct pass *pass, const char *peer_url)
{
    for (guint i = 0; i < pass->listed->len; i++) {
        const struct ensemble_member *listed = pass->listed->pdata[i];
        if (strcmp(listed->peer_url, peer_url) == 0)
            return listed;
    }
    return NULL;
}

/* All candidates that etcd knows, and `joining`. */
static struct engine_config *make_wanted(const struct pass *pass, const struct node *joining)
{
    struct engine_config *config = engine_config_copy(pass->known);
    config->state = ENGINE_ACTIVE;
    config->serial = 0;
    g_clear_pointer(&config->members, g_ptr_array_unref);
    config->members = g_ptr_array_new_with_free_func(free_member);
    for (guint i = 0; i < pass->nodes->len; i++) {
        const struct node *node = pass->nodes->pdata[i];
        struct engine_member *member = member_for(pass, node);
        bool is_joining = joining && strcmp(joining->uuid, node->uuid) == 0;
        if (is_joining || find_listed(pass, member->peer_url))
            g_ptr_array_add(config->members, member);
        else
            engine_member_free(member);
    }
    return config;
}

static bool is_same(const struct engine_config *a, const struct engine_config *b)
{
    json_autoptr left = engine_config_to_json(a);
    json_autoptr right = engine_config_to_json(b);
    return json_equal(left, right);
}

/* --- members that go --- */

static const struct node *owner_of(const struct pass *pass, const char *peer_url)
{
    for (guint i = 0; i < pass->nodes->len; i++) {
        const struct node *node = pass->nodes->pdata[i];
        struct engine_member *member = member_for(pass, node);
        bool its = strcmp(member->peer_url, peer_url) == 0;
        engine_member_free(member);
        if (its)
            return node;
    }
    return NULL;
}

static bool remove_member(struct pass *pass, const struct ensemble_member *listed, const char *why,
                          GError **error)
{
    struct ensemble *ensemble = pass->tending->asker.env->ensemble;
    pass->tending->several = false; /* until it is looked again */
    if (!ensemble->ops->remove(ensemble, pass->known, listed->id, error)) {
        g_prefix_error(error, "the member at %s (%s) cannot be removed: ", listed->peer_url, why);
        return false;
    }
    log_info("", "members of etcd: the one at %s is removed: %s", listed->peer_url, why);
    return true;
}

static bool have_several(const GPtrArray *listed)
{
    guint voters = 0;
    for (guint i = 0; i < listed->len; i++)
        voters += !((const struct ensemble_member *)listed->pdata[i])->learner;
    return voters > 1;
}

/* One at a time; the next pass lists them anew. */
static bool remove_one(struct pass *pass, bool *ret_changed, GError **error)
{
    for (guint i = 0; i < pass->listed->len; i++) {
        const struct ensemble_member *listed = pass->listed->pdata[i];
        if (owner_of(pass, listed->peer_url))
            continue;
        *ret_changed = true;
        return remove_member(pass, listed, "its node is no candidate", error);
    }
    return true;
}

static bool is_to_go(const struct pass *pass)
{
    for (guint i = 0; i < pass->listed->len; i++) {
        const struct ensemble_member *listed = pass->listed->pdata[i];
        if (!owner_of(pass, listed->peer_url))
            return true;
    }
    return false;
}

/* No candidate, neither when etcd was asked who its members are nor now. */
static bool may_have_rest(const struct pass *pass, const struct node *node)
{
    bool own = strcmp(node->uuid, pass->tending->asker.env->node_uuid) == 0;
    for (guint i = 0; i < pass->nodes->len; i++) {
        const struct node *candidate = pass->nodes->pdata[i];
        if (strcmp(candidate->uuid, node->uuid) == 0)
            return false;
    }
    return !own && !node->offline && !node->master_candidate &&
           !g_hash_table_contains(pass->tending->clear, node->uuid);
}

/* Copies, in their order, but whoever stands behind the last silent one first. */
static GPtrArray *nodes_to_clear(const struct pass *pass)
{
    const char *silent = pass->tending->silent;
    GPtrArray *found = engine_node_list();
    g_autoptr(GPtrArray) nodes = config_list(pass->tending->wconf->committed, "node");
    int at = 0;
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        bool behind = silent && strcmp(node->name, silent) > 0;
        if (may_have_rest(pass, node))
            g_ptr_array_insert(found, behind ? at++ : -1, node_copy(node));
    }
    return found;
}

static bool is_candidate_now(const struct tending *tending, const char *uuid)
{
    const struct node *node = config_get(tending->wconf->committed, "node", uuid, NULL);
    return !node || node->master_candidate;
}

/* What a node has that is a candidate no more: its own, or that of a mastership before this one. Of
 * those that do not answer one in each pass, so that members wait for no more than that. Nobody
 * while etcd lists a member that is to go: whose it is may be on no record any more. */
static void clear_gone(const struct pass *pass)
{
    struct tending *tending = pass->tending;
    if (is_to_go(pass))
        return;
    g_autoptr(GPtrArray) nodes = nodes_to_clear(pass);
    bool answers = true;
    for (guint i = 0; i < nodes->len && answers && alive(tending); i++) {
        g_autoptr(GError) error = NULL;
        const struct node *node = nodes->pdata[i];
        if (is_candidate_now(tending, node->uuid))
            continue;
        answers = engine_node_clear(&tending->asker, node, &error);
        if (answers)
            g_hash_table_add(tending->clear, g_strdup(node->uuid));
        g_free(tending->silent);
        tending->silent = answers ? NULL : g_strdup(node->name);
    }
}

/* --- members that come --- */

/* What this node's engine.json says is how members are found. */
static bool clear(const struct engine_asker *asker, const struct node *node, GError **error)
{
    bool own = strcmp(node->uuid, asker->env->node_uuid) == 0;
    return own ? engine_node_end(asker, node, error) : engine_node_clear(asker, node, error);
}

/* `*ret_refused`: the node is ready, and etcd does not take it. */
static bool add(struct pass *pass, const struct node *node, const char *peer_url, bool *ret_refused,
                GError **error)
{
    struct tending *tending = pass->tending;
    struct ensemble *ensemble = tending->asker.env->ensemble;
    *ret_refused = false;
    if (!clear(&tending->asker, node, error) ||
        !engine_node_certify(&tending->asker, pass->cluster, node, false, error))
        return false;
    if (!ensemble->ops->add(ensemble, pass->known, peer_url, error)) {
        *ret_refused = true;
        g_prefix_error(error, "node %s cannot become a member: ", node->name);
        return false;
    }
    log_info("", "members of etcd: node %s is added", node->name);
    return true;
}

/* It was added, and its process has never come: what it is told has to be the members as they are
 * with it. */
static bool start(struct pass *pass, const struct node *node, GError **error)
{
    struct tending *tending = pass->tending;
    struct engine_config *config = make_wanted(pass, node);
    bool ok = engine_node_certify(&tending->asker, pass->cluster, node, false, error) &&
              engine_node_set(&tending->asker, node, config, error) &&
              engine_node_start(&tending->asker, node, MEMBER_EXISTING, error);
    engine_config_free(config);
    return ok;
}

static bool promote(struct pass *pass, const struct node *node,
                    const struct ensemble_member *listed, GError **error)
{
    struct ensemble *ensemble = pass->tending->asker.env->ensemble;
    g_autoptr(GError) local = NULL;
    if (ensemble->ops->promote(ensemble, pass->known, listed->id, &local)) {
        log_info("", "members of etcd: node %s has a vote", node->name);
        return true;
    }
    if (fettle_error_is(local, TEMPORARY))
        return true; /* not up to date yet */
    g_propagate_prefixed_error(error, g_steal_pointer(&local),
                               "node %s gets no vote: ", node->name);
    return false;
}

/* --- members that are --- */

/* A member without its data never starts again (SAF-07): it has to come as a new one. */
static bool is_lost(const struct engine_report *report)
{
    return report->member->state == MEMBER_LOST || report->member->state == MEMBER_ABSENT;
}

static bool tend_member(struct pass *pass, const struct node *node,
                        const struct ensemble_member *listed, bool *ret_changed, GError **error)
{
    const struct engine_asker *asker = &pass->tending->asker;
    if (listed->learner && !listed->started) {
        *ret_changed = true;
        return start(pass, node, error);
    }
    if (listed->learner && !promote(pass, node, listed, error))
        return false;
    record_autoptr(engine_report) report = engine_node_report(asker, node, error);
    if (!report)
        return false;
    if (is_lost(report)) {
        *ret_changed = true;
        return remove_member(pass, listed, "its node has lost the data", error);
    }
    return is_same(report->config, pass->wanted) ||
           engine_node_set(asker, node, pass->wanted, error);
}

static bool tend_node(struct pass *pass, const struct node *node, bool *ret_changed, GError **error)
{
    struct engine_member *member = member_for(pass, node);
    const struct ensemble_member *listed = find_listed(pass, member->peer_url);
    bool ok = true;
    if (listed) {
        ok = tend_member(pass, node, listed, ret_changed, error);
    } else if (!node->offline) {
        /* etcd takes no member in while another one is dead: that one may be who goes now. While a
         * node is not ready nobody goes for it. */
        bool refused;
        ok = add(pass, node, member->peer_url, &refused, error);
        *ret_changed = ok;
        pass->waits = pass->waits || (!ok && !refused);
    }
    engine_member_free(member);
    return ok;
}

/* --- passes --- */

/* False: nothing can be said of the members. */
static bool begin(struct pass *pass, struct tending *tending, GError **error)
{
    const struct env *env = tending->asker.env;
    pass->tending = tending;
    tending->several = false; /* until it is seen */
    pass->cluster = cluster_copy(config_cluster(tending->wconf->committed));
    pass->nodes = engine_candidates(env, tending->wconf->committed);
    for (guint i = 0; i < pass->nodes->len; i++)
        g_hash_table_remove(tending->clear, ((const struct node *)pass->nodes->pdata[i])->uuid);
    pass->known = env->ensemble->ops->config_read(env->ensemble, error);
    if (!pass->known)
        return false;
    if (pass->known->kind != ENGINE_KIND_ETCD) {
        fettle_set_error(error, WRONG_STATE, "etc/engine.json of this node names no members");
        return false;
    }
    pass->listed = env->ensemble->ops->list(env->ensemble, pass->known, error);
    tending->several = pass->listed && have_several(pass->listed);
    if (!pass->listed)
        return false;
    pass->wanted = make_wanted(pass, NULL);
    return true;
}

static void end(struct pass *pass)
{
    cluster_free(pass->cluster);
    engine_config_free(pass->known);
    engine_config_free(pass->wanted);
    g_clear_pointer(&pass->nodes, g_ptr_array_unref);
    g_clear_pointer(&pass->listed, g_ptr_array_unref);
}

/* --- whether they hold the same --- */

/* A member may drop old revisions at the moment of one look, but not of two. */
static void take_comparison(struct tending *tending, const char *odd)
{
    bool sure = g_strcmp0(odd, tending->doubt) == 0;
    text_set(&tending->doubt, odd);
    if (!sure || g_strcmp0(odd, tending->odd) == 0)
        return;
    text_set(&tending->odd, odd);
    if (odd)
        log_error("", "members of etcd: %s", odd);
    else
        log_info("", "members of etcd: all that answer hold the same again");
}

/* Each of them answers what it holds for true, for ever (docs/design/mastership.md, "etcd"). */
static void compare(struct pass *pass)
{
    struct tending *tending = pass->tending;
    struct ensemble *ensemble = tending->asker.env->ensemble;
    gint64 now = tending->asker.env->ops->boot_ms(tending->asker.env);
    g_autofree char *odd = NULL;
    if (now < tending->compare_ms && g_strcmp0(tending->doubt, tending->odd) == 0)
        return;
    if (ensemble->ops->compare(ensemble, pass->known, &odd, NULL) && alive(tending))
        take_comparison(tending, odd);
    tending->compare_ms = now + (tending->odd ? ENGINE_COMPARE_SOON_MS : ENGINE_COMPARE_MS);
}

const char *engine_members_odd(const struct wconf *wconf)
{
    return wconf->tending ? wconf->tending->odd : NULL;
}

/* At most one change of members; a node that cannot be asked keeps no other from its turn. True: it
 * made one, and the next pass should come soon. */
static bool make_pass(struct tending *tending)
{
    struct pass pass = {0};
    g_autoptr(GError) first = NULL;
    bool changed = false;
    if (begin(&pass, tending, &first) && alive(tending)) {
        for (guint i = 0; i < pass.nodes->len && !changed && alive(tending); i++) {
            g_autoptr(GError) error = NULL;
            if (!tend_node(&pass, pass.nodes->pdata[i], &changed, &error) && !first)
                first = g_steal_pointer(&error);
        }
        if (!changed && !pass.waits && alive(tending)) {
            g_autoptr(GError) error = NULL;
            if (!remove_one(&pass, &changed, &error) && !first)
                first = g_steal_pointer(&error);
        }
    }
    if (alive(tending))
        say(tending, first ? first->message : NULL);
    if (pass.wanted && !changed && alive(tending))
        clear_gone(&pass);
    if (pass.wanted && !changed && alive(tending))
        compare(&pass);
    end(&pass);
    return changed && !first;
}

static void tend_task(void *data)
{
    struct tending *tending = data;
    while (alive(tending)) {
        bool soon = make_pass(tending);
        env_sleep(tending->asker.env, soon ? ENGINE_SOON_MS : ENGINE_TEND_MS);
    }
    if (tending->wconf)
        tending->wconf->tending = NULL;
    g_hash_table_unref(tending->clear);
    g_free(tending->silent);
    g_free(tending->said);
    g_free(tending->doubt);
    g_free(tending->odd);
    g_free(tending);
}

void engine_members_start(struct wconf *wconf)
{
    if (!wconf->env->ensemble || !wconf->engine->replicated)
        return;
    struct tending *tending = g_new0(struct tending, 1);
    *tending = (struct tending){
        .wconf = wconf,
        .compare_ms = wconf->env->ops->boot_ms(wconf->env) + ENGINE_COMPARE_SOON_MS,
        .asker = {wconf->env, {config_history(wconf->committed), wconf->epoch}},
        .clear = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    wconf->tending = tending;
    task_spawn(wconf->env->tasks, tend_task, tending);
}

bool engine_members_several(const struct wconf *wconf)
{
    return wconf->tending && wconf->tending->several;
}

void engine_members_end(struct wconf *wconf)
{
    if (wconf->tending)
        wconf->tending->wconf = NULL;
    wconf->tending = NULL;
}
