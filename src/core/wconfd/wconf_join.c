/*
 * Joining (architecture.md, 9): a host comes with a one-time token and a request for a certificate,
 * relayed by the node daemon of this host. What it is refused for is told it; what it is let in for
 * is committed first: the node, and the token as used by it, in one transaction. The answer can be
 * lost on the way, so a used token gives the same answer again to the host that used it, which is
 * known by its key.
 *
 * A join runs as a task, because the authority's work waits.
 */
#include <string.h>

#include "base/log.h"
#include "core/config/unheard.h"
#include "core/wconfd/wconf_private.h"
#include "proto/change.h"
#include "proto/invitation.h"
#include "proto/master_ip.h"

#define MAKE_ANOTHER "make another with `fettle node invite`"

struct wconf_join {
    GPtrArray *running; /* struct join: hosts that are being let in */
};

struct join {
    struct wconf *wconf;         /* NULL: it has ended */
    struct rpc_request *request; /* NULL: it is answered, or a commit will */
    struct join_args *args;
    char *key_hash;
};

struct wconf_join *wconf_join_new(void)
{
    struct wconf_join *join = g_new0(struct wconf_join, 1);
    join->running = g_ptr_array_new();
    return join;
}

void wconf_join_free(struct wconf_join *join)
{
    g_ptr_array_unref(join->running);
    g_free(join);
}

static guint64 now_s(const struct wconf *wconf)
{
    return (guint64)(wconf->env->ops->wall_us(wconf->env) / G_USEC_PER_SEC);
}

static GPtrArray *new_changes(void)
{
    return change_list_new();
}

/* --- the token --- */

static const struct join_token *find_token(const struct join *join, GError **error)
{
    const struct join_token *token =
        config_get(join->wconf->head, "join_token", join->args->token, NULL);
    if (!token)
        fettle_set_error(
            error, UNKNOWN_ENTITY,
            "token %s is not known to this cluster: it was withdrawn or replaced, or has ended "
            "long ago; " MAKE_ANOTHER,
            join->args->token);
    else if (token->wrong_secrets >= LIMIT_JOIN_TRIES)
        fettle_set_error(error, PERMISSION,
                         "token %s is void: it came with a wrong secret %d times; " MAKE_ANOTHER,
                         token->uuid, LIMIT_JOIN_TRIES);
    else
        return token;
    return NULL;
}

/* A wrong secret counts, on record, so that a restart gives nobody more tries. */
static void count_wrong(struct wconf *wconf, const struct join_token *token, GError **error)
{
    record_autoptr(join_token) counted = join_token_copy(token);
    g_autofree char *commit_id = env_uuid(wconf->env);
    g_autoptr(GError) failure = NULL;
    GPtrArray *changes = new_changes();
    counted->wrong_secrets++;
    fettle_set_error(error, PERMISSION,
                     "token %s: the secret is wrong (try %" G_GUINT64_FORMAT
                     " of %d, then the token is void)",
                     token->uuid, counted->wrong_secrets, LIMIT_JOIN_TRIES);
    log_warning("", "a host that wants to be node %s came with a wrong secret for token %s",
                token->node_name, token->uuid);
    g_ptr_array_add(
        changes, config_put(wconf->head, "join_token", counted->uuid, join_token_to_json(counted)));
    if (!wconf_commit(wconf, commit_id, changes, NULL, AUTHOR_COMMIT, NULL, NULL, &failure))
        log_warning("", "token %s: the wrong secret could not be counted: %s", counted->uuid,
                    failure->message);
}

static bool check_secret(const struct join *join, const struct join_token *token, GError **error)
{
    g_autofree char *hash = invitation_secret_hash(join->args->secret);
    if (hash && invitation_hash_equal(hash, token->secret_hash))
        return true;
    count_wrong(join->wconf, token, error);
    return false;
}

static void refuse_used(const struct join *join, const struct join_token *token, GError **error)
{
    g_autofree char *when = unheard_time(token->used);
    bool there = config_get(join->wconf->head, "node", token->node_uuid, NULL) != NULL;
    fettle_set_error(error, WRONG_STATE, "token %s was used by node %s at %s%s; " MAKE_ANOTHER,
                     token->uuid, token->node_name, when, there ? "" : ", which was removed since");
}

/* --- may it become that node? --- */

static bool name_is_free(const struct config *head, const struct join_token *token, GError **error)
{
    g_autoptr(GPtrArray) nodes = config_list(head, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!strcmp(node->name, token->node_name))
            fettle_set_error(error, ALREADY_EXISTS, "node \"%s\" exists already", node->name);
        else if (master_ip_same(node->primary_ip, token->primary_ip) && node->port == token->port)
            fettle_set_error(error, ALREADY_EXISTS,
                             "%s port %" G_GUINT64_FORMAT " is the address of node \"%s\"",
                             node->primary_ip, node->port, node->name);
        else
            continue;
        return false;
    }
    return true;
}

/* Its certificates would not be valid yet, or not any more, for members of etcd, and whatever it
 * dates would mislead; which of both clocks is wrong only a person can say (SAF-93). */
static bool clock_fits(const struct join *join, GError **error)
{
    guint64 told_s = join->args->clock_us / G_USEC_PER_SEC, own_s = now_s(join->wconf);
    guint64 off_s = MAX(told_s, own_s) - MIN(told_s, own_s);
    if (told_s == 0 || off_s <= LIMIT_JOIN_CLOCK_S)
        return true;
    g_autofree char *told = unheard_time(told_s);
    g_autofree char *own = unheard_time(own_s);
    fettle_set_error(error, WRONG_INPUT,
                     "the clock of this host shows %s, the master's %s; set the one that is wrong, "
                     "then run the same command again",
                     told, own);
    return false;
}

/* Who is a node already gets new keys by a token that was made for that, and nothing else by any
 * other. */
static bool is_right_host(const struct join *join, const struct join_token *token, GError **error)
{
    const char *is = join->args->node;
    if (!strcmp(is, token->renews))
        return true;
    if (!*token->renews)
        fettle_set_error(error, WRONG_STATE,
                         "token %s is for a new host, and this one is a node already; if it was "
                         "removed, move its etc/node.json away first",
                         token->uuid);
    else
        fettle_set_error(error, WRONG_STATE,
                         "token %s gives new keys to the host that is node %s, and this one is %s; "
                         "if the disks of that host are lost, remove the node and invite it anew",
                         token->uuid, token->node_name, *is ? "another node" : "none");
    return false;
}

static bool needs_keys(const struct wconf *wconf, const struct join_token *token, GError **error)
{
    const struct node *node = config_get(wconf->head, "node", token->renews, NULL);
    if (!node)
        fettle_set_error(error, WRONG_STATE, "node %s was removed since; " MAKE_ANOTHER,
                         token->node_name);
    else if (!node->keys_missed && !node->offline)
        fettle_set_error(error, WRONG_STATE,
                         "node %s is not offline on record, and has missed no renewal of the keys: "
                         "it needs no new ones",
                         token->node_name);
    else
        return true;
    return false;
}

static bool may_join(const struct join *join, const struct join_token *token, GError **error)
{
    const struct wconf *wconf = join->wconf;
    if (!is_right_host(join, token, error) || !clock_fits(join, error))
        return false;
    if (token->expires <= now_s(wconf)) {
        g_autofree char *when = unheard_time(token->expires);
        fettle_set_error(error, WRONG_STATE, "token %s expired at %s; " MAKE_ANOTHER, token->uuid,
                         when);
        return false;
    }
    if (*token->renews)
        return needs_keys(wconf, token, error);
    if (config_count(wconf->head, "node") >= LIMIT_NODES) {
        fettle_set_error(error, LIMIT, "the cluster has %d nodes, which is the limit", LIMIT_NODES);
        return false;
    }
    return name_is_free(wconf->head, token, error);
}

/* --- the answer --- */

static struct node_config *make_config(const struct wconf *wconf, const struct join_token *token)
{
    struct node_config *config = node_config_new();
    text_set(&config->node_uuid, token->node_uuid);
    text_set(&config->name, token->node_name);
    text_set(&config->cluster_uuid, config_cluster(wconf->committed)->uuid);
    text_set(&config->address, token->primary_ip);
    config->port = token->port;
    return config;
}

/* The new node is a member already, though not everybody has heard of it. */
static void add_member(GPtrArray *members, const struct join_token *token)
{
    const struct member member = {.uuid = token->node_uuid,
                                  .name = token->node_name,
                                  .address = token->primary_ip,
                                  .port = token->port};
    for (guint i = 0; i < members->len; i++)
        if (!strcmp(((struct member *)members->pdata[i])->uuid, token->node_uuid))
            return;
    g_ptr_array_add(members, member_copy(&member));
}

static void set_renewing(GError **error)
{
    fettle_set_error(error, TEMPORARY, "the keys of the cluster are being renewed; try again");
}

/* Whom a host that comes now is to trust. TEMPORARY: this node does not go by the record yet. */
static char *trusted(const struct wconf *wconf, GError **error)
{
    struct authority *authority = wconf->env->authority;
    const struct cluster *cluster = config_cluster(wconf->head);
    g_autofree char *certificate = NULL;
    g_autofree char *fingerprint = NULL;
    if (!authority->ops->show(authority, &certificate, &fingerprint, error))
        return NULL;
    if (cluster->renewal == RENEWAL_NONE || !strcmp(certificate, cluster->authority))
        return g_steal_pointer(&certificate);
    set_renewing(error);
    return NULL;
}

static json_t *make_answer(const struct wconf *wconf, const struct join_token *token,
                           GError **error)
{
    g_autofree char *certificate = trusted(wconf, error);
    if (!certificate)
        return NULL;
    record_autoptr(join_result) result = join_result_new();
    text_set(&result->certificate, token->certificate);
    text_set(&result->authority, certificate);
    node_config_free(result->config);
    result->config = make_config(wconf, token);
    announce_args_free(result->announcement);
    result->announcement = wconf_announcement(wconf);
    add_member(result->announcement->members, token);
    return join_result_to_json(result);
}

/* --- letting it in --- */

/* The token as it will be; NULL with the error, or because wconf has ended. */
static struct join_token *sign(struct join *join, const struct join_token *token, GError **error)
{
    struct authority *authority = join->wconf->env->authority;
    struct join_token *used = join_token_copy(token);
    g_autofree char *cluster = g_strdup(config_cluster(join->wconf->committed)->uuid);
    char *certificate = NULL;
    if (!*used->node_uuid) {
        g_free(used->node_uuid);
        used->node_uuid = *used->renews ? g_strdup(used->renews) : env_uuid(join->wconf->env);
    }
    text_set(&used->key_hash, join->key_hash);
    if (authority->ops->sign(authority, join->args->request, cluster, used->node_uuid, &certificate,
                             error) &&
        join->wconf) {
        g_free(used->certificate);
        used->certificate = certificate;
        used->used = now_s(join->wconf);
        return used;
    }
    g_free(certificate);
    join_token_free(used);
    return NULL;
}

/* Under one list of authorities: who was let in by one that is replaced meanwhile would be told of
 * it by nobody whom it believes. */
static struct join_token *sign_by_one(struct join *join, const struct join_token *token,
                                      GError **error)
{
    g_autofree char *before = trusted(join->wconf, error);
    record_autoptr(join_token) used = before ? sign(join, token, error) : NULL;
    g_autofree char *after = used ? trusted(join->wconf, error) : NULL;
    if (after && !strcmp(before, after))
        return g_steal_pointer(&used);
    if (after)
        set_renewing(error);
    return NULL;
}

/* `version`: of the token as it was read before the signing. */
static GPtrArray *make_changes(const struct config *head, const struct join_token *token,
                               guint64 version)
{
    GPtrArray *changes = new_changes();
    const struct node node = {.uuid = token->node_uuid,
                              .name = token->node_name,
                              .primary_ip = token->primary_ip,
                              .port = token->port,
                              .group = token->group,
                              .master_capable = token->master_capable,
                              .offline_statement = (char *)"",
                              .key_hash = token->key_hash};
    struct change *use = config_put(head, "join_token", token->uuid, join_token_to_json(token));
    use->version = version;
    g_ptr_array_add(changes, use);
    json_t *object = node_to_json(&node);
    if (*token->renews) {
        json_decref(object);
        object = config_object_json(head, "node", node.uuid);
        json_object_set_new(object, "key_hash", json_string(token->key_hash));
    }
    g_ptr_array_add(changes, config_put(head, "node", node.uuid, object));
    return changes;
}

/* The commit answers. VERSION_CONFLICT: the token has changed meanwhile. */
static bool let_in(struct join *join, const struct join_token *token, guint64 version,
                   GError **error)
{
    record_autoptr(join_token) used = sign_by_one(join, token, error);
    json_autoptr answer = used ? make_answer(join->wconf, used, error) : NULL;
    if (!answer)
        return false;
    struct wconf *wconf = join->wconf;
    g_autofree char *commit_id = env_uuid(wconf->env);
    GPtrArray *changes = make_changes(wconf->head, used, version);
    if (!wconf_commit(wconf, commit_id, changes, NULL, AUTHOR_COMMIT, join->request, answer, error))
        return false;
    join->request = NULL;
    log_info("", "node %s (%s) %s with token %s", used->node_name, used->node_uuid,
             *used->renews ? "gets new keys" : "joins", used->uuid);
    return true;
}

/* --- the task --- */

/* The token's version is the serial of the commit that let the host in: the answer is as good as
 * that one's. */
static bool answer_again(struct join *join, const struct join_token *token, guint64 version,
                         GError **error)
{
    bool same = !strcmp(token->key_hash, join->key_hash) &&
                config_get(join->wconf->head, "node", token->node_uuid, NULL);
    if (!same) {
        refuse_used(join, token, error);
        return false;
    }
    /* The authority may be another one by now. */
    record_autoptr(join_token) again = sign_by_one(join, token, error);
    json_t *answer = again ? make_answer(join->wconf, again, error) : NULL;
    if (!answer)
        return false;
    wconf_answer_when_stored(join->wconf, version, join->request, answer);
    join->request = NULL;
    return true;
}

/* Once; VERSION_CONFLICT: another host was faster, or this one asked twice. */
static bool try_join(struct join *join, GError **error)
{
    guint64 version = 0;
    const struct join_token *token = find_token(join, error);
    if (!token)
        return false;
    config_get(join->wconf->head, "join_token", token->uuid, &version);
    if (*token->node_uuid)
        return answer_again(join, token, version, error);
    return may_join(join, token, error) && let_in(join, token, version, error);
}

static bool run_join(struct join *join, GError **error)
{
    struct authority *authority = join->wconf->env->authority;
    const struct join_token *token = find_token(join, error);
    if (!token || !check_secret(join, token, error) ||
        !authority->ops->read_request(authority, join->args->request, &join->key_hash, error))
        return false;
    for (guint tries = 1; join->wconf; tries++) {
        g_autoptr(GError) failure = NULL;
        if (try_join(join, &failure))
            return true;
        if (fettle_error_is(failure, VERSION_CONFLICT) && tries < LIMIT_COMMIT_TRIES)
            continue;
        g_propagate_error(error, g_steal_pointer(&failure));
        break;
    }
    return false;
}

static void join_task(void *data)
{
    struct join *join = data;
    g_autoptr(GError) error = NULL;
    bool ok = join->wconf && run_join(join, &error);
    if (!ok && join->request && error)
        rpc_fail(join->request, error);
    if (join->wconf)
        g_ptr_array_remove_fast(join->wconf->join->running, join);
    join_args_free(join->args);
    g_free(join->key_hash);
    g_free(join);
}

/* What still waits is answered now; its task finds that there is nothing left to do. */
void wconf_join_end(struct wconf *wconf)
{
    GPtrArray *running = wconf->join->running;
    for (guint i = 0; i < running->len; i++) {
        struct join *join = running->pdata[i];
        if (join->request)
            rpc_fail(join->request, wconf->down);
        join->request = NULL;
        join->wconf = NULL;
    }
    g_ptr_array_set_size(running, 0);
}

/* --- calls --- */

void wconf_handle_join(struct wconf *wconf, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    struct join_args *args = rpc_request_args(request, &join_args_record, &error);
    if (args && !wconf->env->authority)
        fettle_set_error(&error, WRONG_STATE, "this process has no certificate authority");
    else if (args && wconf->join->running->len >= LIMIT_JOINERS)
        fettle_set_error(&error, TEMPORARY, "%u hosts are joining already; try again",
                         wconf->join->running->len);
    if (error) {
        join_args_free(args);
        rpc_fail(request, error);
        return;
    }
    struct join *join = g_new0(struct join, 1);
    *join = (struct join){.wconf = wconf, .request = request, .args = args};
    g_ptr_array_add(wconf->join->running, join);
    task_spawn(wconf->env->tasks, join_task, join);
}

void wconf_handle_ca_info(struct wconf *wconf, struct rpc_request *request)
{
    struct authority *authority = wconf->env->authority;
    g_autoptr(GError) error = NULL;
    g_autofree char *certificate = NULL;
    g_autofree char *fingerprint = NULL;
    if (!authority)
        fettle_set_error(&error, WRONG_STATE, "this process has no certificate authority");
    if (authority && !strcmp(request->from_role, ROLE_WCONFD)) {
        wconf_handle_authority_look(wconf, request);
        return;
    }
    if (!authority || !authority->ops->show(authority, &certificate, &fingerprint, &error)) {
        rpc_fail(request, error);
        return;
    }
    const struct ca_info info = {.fingerprint = fingerprint};
    rpc_answer(request, ca_info_to_json(&info));
}
