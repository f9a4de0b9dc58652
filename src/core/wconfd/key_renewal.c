/* See key_renewal.h. */
#include "core/wconfd/key_renewal.h"

#include <string.h>

#include "base/limits.h"
#include "base/log.h"
#include "core/config/voucher.h"
#include "core/wconfd/key_list.h"
#include "core/wconfd/key_renewal_private.h"
#include "proto/change.h"

#define CONFD_KEY_BYTES 32

static void wait_for(const struct key_pass *pass, const struct node *node, const char *why)
{
    g_ptr_array_add(pass->waits, g_strdup_printf("node %s: %s", node->name, why));
}

/* --- all nodes --- */

/* One that is offline is asked once in each phase: it may be there. */
static bool is_asked(const struct key_pass *pass, const struct node *node)
{
    if (!node->offline)
        return true;
    return g_hash_table_add(pass->keeper->tried,
                            g_strdup_printf("%u %s", (guint)pass->cluster->renewal, node->uuid));
}

static bool is_waited_for(const struct node *node)
{
    return !node->offline && !node->keys_missed;
}

static void bring_node(const struct key_pass *pass, const struct node *node)
{
    g_autoptr(GError) error = NULL;
    if (key_renewal_confirmed(pass, node->uuid) || !is_asked(pass, node))
        return;
    key_renewal_bring(pass, node, &error);
    if (!key_renewal_alive(pass->keeper) || !is_waited_for(node) ||
        key_renewal_confirmed(pass, node->uuid))
        return;
    if (fettle_error_is(error, PROTOCOL))
        wait_for(pass, node, "its version knows no renewal of keys; upgrade it");
    else
        wait_for(pass, node, error ? error->message : "has not taken over what it was told");
}

static void free_node(void *data)
{
    node_free(data);
}

/* Copies, this node first: it signs. */
static GPtrArray *all_nodes(const struct key_renewal *keeper)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(free_node);
    g_autoptr(GPtrArray) nodes = config_list(keeper->wconf->committed, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        bool own = strcmp(node->uuid, keeper->env->node_uuid) == 0;
        g_ptr_array_insert(found, own ? 0 : -1, node_copy(node));
    }
    return found;
}

static void bring_all(const struct key_pass *pass)
{
    g_autoptr(GPtrArray) nodes = all_nodes(pass->keeper);
    for (guint i = 0; i < nodes->len && key_renewal_alive(pass->keeper); i++) {
        bring_node(pass, nodes->pdata[i]);
        if (i == 0 && pass->waits->len > 0)
            break; /* nothing is signed before this node goes by the new authority itself */
    }
}

/* --- what else must have gone over before the old authority is forgotten --- */

/* Who follows this mastership must be able to prove it (SAF-102). */
static void sign_anew(const struct key_pass *pass)
{
    struct key_renewal *keeper = pass->keeper;
    if (g_strcmp0(keeper->signed_by, pass->wanted[0]) == 0)
        return;
    char signature[LIMIT_VOUCHER_CHARS + 1];
    voucher_sign(keeper->env, pass->cluster->uuid, keeper->stamp, true, signature);
    if (!*signature)
        g_clear_pointer(&keeper->has_key_of, g_free);
    if (!key_renewal_alive(keeper) || !*signature)
        return;
    wconf_take_signature(keeper->wconf, signature);
    wconf_announce_anew(keeper->wconf);
    text_set(&keeper->signed_by, pass->wanted[0]);
}

static void look_at_node(const struct key_pass *pass, const struct node *node)
{
    const struct wconf *wconf = pass->keeper->wconf;
    bool own = strcmp(node->uuid, pass->keeper->env->node_uuid) == 0;
    if (!is_waited_for(node))
        return;
    if (!wconf_node_told(wconf, node->uuid))
        wait_for(pass, node, "has not answered the announcement that the new authority has signed");
    else if (node->master_candidate && !own &&
             strcmp(wconf_followers_key_of(wconf, node->uuid), pass->wanted[0]) != 0)
        wait_for(pass, node, "its configuration daemon does not have the new authority's key yet");
}

static void look_at_all(const struct key_pass *pass)
{
    g_autoptr(GPtrArray) nodes = all_nodes(pass->keeper);
    if (g_strcmp0(pass->keeper->signed_by, pass->wanted[0]) != 0)
        g_ptr_array_add(pass->waits,
                        g_strdup("this mastership: the new authority could not sign it"));
    for (guint i = 0; i < nodes->len; i++)
        look_at_node(pass, nodes->pdata[i]);
    if (pass->waits->len > 0)
        wconf_stream_wake(pass->keeper->wconf); /* a candidate tells with its next question */
}

/* --- commits --- */

static guint64 now_s(const struct key_renewal *keeper)
{
    return (guint64)(keeper->env->ops->wall_us(keeper->env) / G_USEC_PER_SEC);
}

/* The cluster as it is to be; `changes` is stolen. */
static bool commit(const struct key_renewal *keeper, struct cluster *cluster, GPtrArray *changes,
                   GError **error)
{
    struct wconf *wconf = keeper->wconf;
    g_autofree char *id = env_uuid(keeper->env);
    json_t *object = config_object_json(wconf->head, "cluster", cluster->uuid);
    cluster->renewal_since = now_s(keeper);
    json_object_set_new(object, "authority", json_string(cluster->authority));
    json_object_set_new(object, "etcd_authority", json_string(cluster->etcd_authority));
    json_object_set_new(object, "renewal",
                        json_string(enum_word(&renewal_phase_words, (int)cluster->renewal)));
    json_object_set_new(object, "renewal_since", json_integer((json_int_t)cluster->renewal_since));
    g_ptr_array_insert(changes, 0, config_put(wconf->head, "cluster", cluster->uuid, object));
    if (!wconf_commit(wconf, id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, error))
        return false;
    log_info("", "renewal of keys: %s", enum_word(&renewal_phase_words, (int)cluster->renewal));
    return true;
}

/* Another authority stands behind those of `trusted` from now on, and its issuer behind those that
 * members of etcd trust. */
static bool begin(const struct key_renewal *keeper, const char *trusted, const char *issuers,
                  GError **error)
{
    struct authority *authority = key_renewal_authority(keeper);
    record_autoptr(cluster) cluster = cluster_copy(config_cluster(keeper->wconf->committed));
    g_autofree char *certificate = NULL;
    g_autofree char *issuer = NULL;
    if (key_list_count(trusted) >= LIMIT_AUTHORITIES) {
        fettle_set_error(error, LIMIT, "%d authorities are trusted already, which is the limit",
                         LIMIT_AUTHORITIES);
        return false;
    }
    if (!authority->ops->make_next(authority, cluster->uuid, &certificate, &issuer, error))
        return false;
    if (!key_renewal_alive(keeper)) {
        fettle_set_error(error, NOT_MASTER, "this process is not the master any more");
        return false;
    }
    g_free(cluster->authority);
    cluster->authority = g_strconcat(trusted, certificate, NULL);
    g_free(cluster->etcd_authority);
    cluster->etcd_authority =
        keeper->wconf->engine->replicated ? g_strconcat(issuers, issuer, NULL) : g_strdup("");
    cluster->renewal = RENEWAL_SPREAD;
    return commit(keeper, cluster, change_list_new(), error);
}

static struct change *new_confd_key(const struct key_renewal *keeper)
{
    guint8 bytes[CONFD_KEY_BYTES];
    GString *text = g_string_new(NULL);
    keeper->env->ops->random(keeper->env, bytes, sizeof(bytes));
    for (guint i = 0; i < sizeof(bytes); i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    const struct secret secret = {.value = text->str};
    struct change *change =
        config_put(keeper->wconf->head, "secret", "confd", secret_to_json(&secret));
    g_string_free(text, TRUE);
    return change;
}

/* Invitations that name the authority of before open nothing any more, nor again: a used one gives
 * a certificate of whatever authority signs, so it goes before another one does. */
static void withdraw_old(const struct key_pass *pass, bool used_only, GPtrArray *changes)
{
    const struct wconf *wconf = pass->keeper->wconf;
    g_autoptr(GPtrArray) tokens = config_list(wconf->head, "join_token");
    for (guint i = 0; i < tokens->len; i++) {
        const struct join_token *token = tokens->pdata[i];
        bool old = token->made <= pass->cluster->renewal_since;
        if ((used_only ? *token->node_uuid != '\0' : old) &&
            changes->len + 1 < wconf_most_changes(wconf))
            g_ptr_array_add(changes, config_delete(wconf->head, "join_token", token->uuid));
    }
}

/* The one that was spread signs, and stands in front. */
static bool step_reissue(const struct key_pass *pass, GError **error)
{
    struct cluster *cluster = pass->cluster;
    GPtrArray *changes = change_list_new();
    g_autofree char *turned = key_list_turn(cluster->authority);
    g_autofree char *issuers = key_list_turn(cluster->etcd_authority);
    text_set(&cluster->authority, turned);
    text_set(&cluster->etcd_authority, issuers);
    cluster->renewal = RENEWAL_REISSUE;
    withdraw_old(pass, true, changes);
    return commit(pass->keeper, cluster, changes, error);
}

static bool step_drop(const struct key_pass *pass, GError **error)
{
    struct cluster *cluster = pass->cluster;
    GPtrArray *changes = change_list_new();
    g_autofree char *only = key_list_first(cluster->authority);
    g_autofree char *issuer = key_list_first(cluster->etcd_authority);
    withdraw_old(pass, false, changes);
    text_set(&cluster->authority, only);
    text_set(&cluster->etcd_authority, issuer);
    cluster->renewal = RENEWAL_DROP;
    return commit(pass->keeper, cluster, changes, error);
}

/* A secret that is new goes out when all links of those whom the old one had signed have ended. */
static bool step_end(const struct key_pass *pass, GError **error)
{
    GPtrArray *changes = change_list_new();
    g_ptr_array_add(changes, new_confd_key(pass->keeper));
    pass->cluster->renewal = RENEWAL_NONE;
    g_hash_table_remove_all(pass->keeper->settled);
    return commit(pass->keeper, pass->cluster, changes, error);
}

/* The new authority is about to, or does, and the old one is trusted still. */
static bool signs(const struct cluster *cluster)
{
    return cluster->renewal == RENEWAL_SPREAD || cluster->renewal == RENEWAL_REISSUE;
}

/* Who was offline when all others had what this phase is for has missed it: from the next one on it
 * cannot be told any more. Who has said since that it has it, has not. True: that was all on
 * record.
 */
static bool flag_missed(const struct key_pass *pass, GError **error)
{
    struct wconf *wconf = pass->keeper->wconf;
    GPtrArray *changes = change_list_new();
    g_autoptr(GPtrArray) nodes = config_list(wconf->committed, "node");
    for (guint i = 0; i < nodes->len && changes->len < wconf_most_changes(wconf); i++) {
        const struct node *node = nodes->pdata[i];
        bool heard = key_renewal_confirmed(pass, node->uuid);
        bool misses = node->offline && pass->waits->len == 0 && signs(pass->cluster);
        bool missed = !heard && (node->keys_missed || misses);
        if (missed == node->keys_missed)
            continue;
        json_t *object = config_object_json(wconf->head, "node", node->uuid);
        if (!object)
            continue;
        json_object_set_new(object, "keys_missed", json_boolean(missed));
        g_ptr_array_add(changes, config_put(wconf->head, "node", node->uuid, object));
    }
    if (changes->len == 0) {
        g_ptr_array_unref(changes);
        return true;
    }
    g_autofree char *id = env_uuid(pass->keeper->env);
    wconf_commit(wconf, id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, error);
    return false;
}

/* --- passes --- */

/* The key that is about to sign, or signs, may have been lost with the master that made it. Then
 * another one takes its turn; whatever the lost one has signed is trusted until that one is
 * through. */
static bool has_key(const struct key_pass *pass, bool *ret_has, GError **error)
{
    const struct cluster *cluster = pass->cluster;
    struct authority *authority = key_renewal_authority(pass->keeper);
    const char *which =
        cluster->renewal == RENEWAL_SPREAD ? key_list_last(cluster->authority) : cluster->authority;
    g_autofree char *one = key_list_first(which);
    *ret_has = g_strcmp0(pass->keeper->has_key_of, one) == 0;
    if (*ret_has)
        return true;
    bool known = authority->ops->has_key_of(authority, one, ret_has, error);
    if (known && *ret_has)
        text_set(&pass->keeper->has_key_of, one);
    return known;
}

static bool begin_anew(const struct key_pass *pass, GError **error)
{
    const struct cluster *cluster = pass->cluster;
    bool unused = cluster->renewal == RENEWAL_SPREAD; /* nothing was signed by it */
    bool full = key_list_count(cluster->authority) >= LIMIT_AUTHORITIES;
    g_autofree char *kept =
        unused && full ? key_list_without_last(cluster->authority) : g_strdup(cluster->authority);
    g_autofree char *issuers = unused && full ? key_list_without_last(cluster->etcd_authority)
                                              : g_strdup(cluster->etcd_authority);
    if (full && !unused) {
        fettle_set_error(error, LIMIT,
                         "the key of the authority is not on this node; make a candidate the "
                         "master that has it, or copy etc/ca.key from there");
        return false;
    }
    log_warning("", "the key of the new authority is not on this node: another one is made");
    return begin(pass->keeper, kept, issuers, error);
}

/* Also those that have joined since this pass began. */
static bool all_have_confirmed(const struct key_pass *pass)
{
    g_autoptr(GPtrArray) nodes = config_list(pass->keeper->wconf->head, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (is_waited_for(node) && !key_renewal_confirmed(pass, node->uuid))
            return false;
    }
    return true;
}

static bool step(const struct key_pass *pass, GError **error)
{
    if (!flag_missed(pass, error) || pass->waits->len > 0 || !all_have_confirmed(pass))
        return !*error;
    switch ((enum renewal_phase)pass->cluster->renewal) {
    case RENEWAL_SPREAD:
        return step_reissue(pass, error);
    case RENEWAL_REISSUE:
        return step_drop(pass, error);
    case RENEWAL_DROP:
        return step_end(pass, error);
    case RENEWAL_NONE:
        break;
    }
    return true;
}

/* Whoever takes over now knows of this phase: by a record of the one before it would take for
 * unused what has signed already. */
static bool is_copied(const struct key_pass *pass)
{
    const struct wconf *wconf = pass->keeper->wconf;
    guint64 serial = 0;
    config_get(wconf->committed, "cluster", pass->cluster->uuid, &serial);
    return wconf_followers_share(wconf, serial);
}

static void say(struct key_renewal *keeper, const char *what)
{
    if (what && g_strcmp0(keeper->said, what) != 0)
        log_warning("", "renewal of keys: %s", what);
    text_set(&keeper->said, what ? what : "");
}

/* Members of etcd that have missed the end are said in the log, as no renewal shows them. */
static void bring_members(const struct key_pass *pass)
{
    bool over = pass->cluster->renewal == RENEWAL_NONE;
    guint before = pass->waits->len;
    if (!key_renewal_alive(pass->keeper) || (before > 0 && !over) ||
        !*pass->cluster->etcd_authority || !pass->keeper->wconf->engine->replicated)
        return;
    key_renewal_bring_members(pass);
    g_autoptr(GError) error = NULL;
    if (over)
        say(pass->keeper, pass->waits->len > before ? pass->waits->pdata[before] : NULL);
    else if (key_renewal_alive(pass->keeper) && !key_renewal_known(pass->keeper->wconf, &error))
        g_ptr_array_add(pass->waits, g_strdup(error->message));
}

static bool work(const struct key_pass *pass, GError **error)
{
    bool has = true;
    if (pass->cluster->renewal != RENEWAL_NONE && !is_copied(pass)) {
        g_ptr_array_add(pass->waits, g_strdup("no other candidate has a copy of this phase yet"));
        return true;
    }
    if (signs(pass->cluster) && !has_key(pass, &has, error))
        return false;
    if (!key_renewal_alive(pass->keeper))
        return true;
    if (!has)
        return begin_anew(pass, error);
    bring_all(pass);
    bring_members(pass);
    if (pass->cluster->renewal == RENEWAL_REISSUE && pass->waits->len == 0) {
        sign_anew(pass);
        if (key_renewal_alive(pass->keeper))
            look_at_all(pass);
    }
    return !key_renewal_alive(pass->keeper) || step(pass, error);
}

/* Nothing is done on a record that is about to change. */
static bool is_settled(const struct wconf *wconf)
{
    const char *uuid = config_cluster(wconf->committed)->uuid;
    guint64 committed = 0, head = 0;
    config_get(wconf->committed, "cluster", uuid, &committed);
    config_get(wconf->head, "cluster", uuid, &head);
    return committed == head && !wconf->held;
}

static void take_waits(struct key_renewal *keeper, struct key_pass *pass, const GError *error)
{
    if (error)
        g_ptr_array_add(pass->waits, g_strdup(error->message));
    if (!key_renewal_alive(keeper))
        return;
    if (pass->cluster->renewal != RENEWAL_NONE)
        say(keeper, pass->waits->len > 0 ? pass->waits->pdata[0] : NULL);
    g_ptr_array_unref(keeper->waits);
    keeper->waits = g_steal_pointer(&pass->waits);
}

static void make_pass(struct key_renewal *keeper)
{
    g_autoptr(GError) error = NULL;
    if (!is_settled(keeper->wconf))
        return;
    struct key_pass pass = {.keeper = keeper,
                            .cluster = cluster_copy(config_cluster(keeper->wconf->committed)),
                            .waits = g_ptr_array_new_with_free_func(g_free)};
    pass.wanted = key_list_fingerprints(pass.cluster->authority);
    if (pass.wanted) {
        work(&pass, &error);
        take_waits(keeper, &pass, error);
    }
    g_strfreev(pass.wanted);
    cluster_free(pass.cluster);
    g_clear_pointer(&pass.waits, g_ptr_array_unref);
}

/* --- a person's word --- */

static GPtrArray *missed_names(const struct wconf *wconf)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) nodes = config_list(wconf->committed, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->keys_missed)
            g_ptr_array_add(names, g_strdup(node->name));
    }
    return names;
}

struct keys_progress *key_renewal_progress(const struct wconf *wconf)
{
    const struct cluster *cluster = config_cluster(wconf->committed);
    struct authority *authority = wconf->env->authority;
    if (!wconf->renewal)
        return NULL;
    struct keys_progress *progress = keys_progress_new();
    record_autoptr(keys_status) status = keys_status_new();
    progress->phase = cluster->renewal;
    progress->since = cluster->renewal_since;
    for (guint i = 0; cluster->renewal != RENEWAL_NONE && i < wconf->renewal->waits->len; i++)
        g_ptr_array_add(progress->waits, g_strdup(wconf->renewal->waits->pdata[i]));
    g_ptr_array_unref(progress->missed);
    progress->missed = missed_names(wconf);
    if (authority->ops->status(authority, status, NULL))
        progress->ends = status->authority_ends;
    return progress;
}

static json_t *progress_of(const struct wconf *wconf)
{
    record_autoptr(keys_progress) progress = key_renewal_progress(wconf);
    return keys_progress_to_json(progress);
}

static bool may_begin(const struct wconf *wconf, GError **error)
{
    struct authority *authority = wconf->env->authority;
    if (!wconf->renewal)
        fettle_set_error(error, WRONG_STATE, "this process has no certificate authority");
    else if (wconf_engine_changing(wconf))
        fettle_set_error(error, TEMPORARY,
                         "a change of engine is not over yet, nodes are still being told; try "
                         "again in some seconds");
    else if (wconf->renewal->request)
        fettle_set_error(error, TEMPORARY, "a renewal is being begun; try again");
    else if (!authority->ops->has_key(authority))
        fettle_set_error(error, WRONG_STATE,
                         "the key of the cluster's authority is not on this node: copy etc/ca.key "
                         "from another candidate, with mode 0600, or make that one the master");
    else
        return key_renewal_known(wconf, error);
    return false;
}

void key_renewal_handle_begin(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    if (config_cluster(wconf->committed)->renewal != RENEWAL_NONE && wconf->renewal)
        rpc_answer(request, progress_of(wconf));
    else if (may_begin(wconf, &error))
        wconf->renewal->request = request;
    else
        rpc_fail(request, error);
}

void key_renewal_handle_progress(struct wconf *wconf, struct rpc_request *request)
{
    if (wconf->renewal)
        rpc_answer(request, progress_of(wconf));
    else
        rpc_fail_new(request, FETTLE_ERROR_WRONG_STATE,
                     "this process has no certificate authority");
}

/* What this node trusts is what all do, whatever was on record before a restore. */
static bool begin_first(const struct key_renewal *keeper, GError **error)
{
    struct authority *authority = key_renewal_authority(keeper);
    g_autofree char *trusted = NULL;
    g_autofree char *fingerprint = NULL;
    g_autofree char *issuers = NULL;
    return authority->ops->show(authority, &trusted, &fingerprint, error) &&
           (!keeper->wconf->engine->replicated ||
            authority->ops->etcd_issuers(authority, &issuers, error)) &&
           begin(keeper, trusted, issuers, error);
}

static void serve_request(struct key_renewal *keeper)
{
    g_autoptr(GError) error = NULL;
    if (!keeper->request || !is_settled(keeper->wconf))
        return;
    bool begun = config_cluster(keeper->wconf->committed)->renewal != RENEWAL_NONE ||
                 begin_first(keeper, &error);
    struct rpc_request *request = g_steal_pointer(&keeper->request);
    if (!request)
        return; /* it was answered when this mastership ended */
    if (!begun)
        rpc_fail(request, error);
    else
        wconf_answer_when_stored(keeper->wconf, config_serial(keeper->wconf->head), request,
                                 progress_of(keeper->wconf));
}

static void free_status(void *data)
{
    keys_status_free(data);
}

static void keeper_task(void *data)
{
    struct key_renewal *keeper = data;
    while (key_renewal_alive(keeper)) {
        serve_request(keeper);
        if (key_renewal_alive(keeper))
            make_pass(keeper);
        env_sleep(keeper->env, KEYS_PASS_MS);
    }
    if (keeper->wconf)
        keeper->wconf->renewal = NULL;
    g_hash_table_unref(keeper->heard);
    g_hash_table_unref(keeper->tried);
    g_hash_table_unref(keeper->settled);
    g_ptr_array_unref(keeper->waits);
    g_free(keeper->signed_by);
    g_free(keeper->said);
    g_free(keeper->has_key_of);
    g_free(keeper);
}

void key_renewal_start(struct wconf *wconf)
{
    const struct authority *authority = wconf->env->authority;
    if (!authority || !authority->ops->make_next)
        return;
    struct key_renewal *keeper = g_new0(struct key_renewal, 1);
    *keeper = (struct key_renewal){
        .wconf = wconf,
        .env = wconf->env,
        .stamp = {config_history(wconf->committed), wconf->epoch},
        .heard = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_status),
        .settled = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .tried = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .waits = g_ptr_array_new_with_free_func(g_free)};
    wconf->renewal = keeper;
    task_spawn(wconf->env->tasks, keeper_task, keeper);
}

void key_renewal_end(struct wconf *wconf)
{
    struct key_renewal *keeper = wconf->renewal;
    struct rpc_request *request = keeper ? g_steal_pointer(&keeper->request) : NULL;
    if (request)
        rpc_fail(request, wconf->down);
    if (keeper)
        keeper->wconf = NULL;
    wconf->renewal = NULL;
}

/* From a person's word to the end on record. */
static bool is_under_way(const struct wconf *wconf)
{
    return config_cluster(wconf->committed)->renewal != RENEWAL_NONE ||
           config_cluster(wconf->head)->renewal != RENEWAL_NONE ||
           (wconf->renewal && wconf->renewal->request);
}

bool key_renewal_over(const struct wconf *wconf, const char *what, GError **error)
{
    if (!is_under_way(wconf))
        return true;
    fettle_set_error(error, WRONG_STATE,
                     "the keys of the cluster are being renewed: %s when that is over; how far it "
                     "is says `fettle cluster renew-keys`",
                     what);
    return false;
}
