/*
 * OP_NODE_INVITE, which puts a one-time token on record, OP_NODE_WITHDRAW_INVITATION, which takes
 * one back, and what the removal of a node leaves for ever: its certificate is revoked. Using a
 * token is wconfd's (core/wconfd/wconf_join.c), forgetting those that have ended the watcher's.
 */
#include "core/ops/ops.h"
#include "proto/master_ip.h"

#include <string.h>

/* Tokens are compare-and-set, and whether a node can be made is asked again when it joins. */
static bool declare_nothing(struct op *op, GError **error)
{
    return true;
}

bool op_node_in_the_way(const struct node *node, const char *name, const char *primary_ip,
                        guint64 port, GError **error)
{
    if (!strcmp(node->name, name))
        fettle_set_error(error, ALREADY_EXISTS, "node \"%s\" exists already", node->name);
    else if (master_ip_same(node->primary_ip, primary_ip) && node->port == port)
        fettle_set_error(error, ALREADY_EXISTS,
                         "primary_ip: %s port %" G_GUINT64_FORMAT " is the address of node \"%s\"",
                         node->primary_ip, node->port, node->name);
    else
        return false;
    return true;
}

/* A node that has missed a renewal of the keys, or is away and may have lost them, gets new ones by
 * the same way as a new host; what it is on record stays. */
static bool gets_new_keys(const struct node *node, const struct op_node_invite *params)
{
    return (node->keys_missed || node->offline) && !strcmp(node->name, params->node_name);
}

static bool is_renewed(const struct node *node, const struct op_node_invite *params)
{
    return gets_new_keys(node, params) && master_ip_same(node->primary_ip, params->primary_ip) &&
           node->port == params->port;
}

static const struct node *find_renewed(const struct op *op, const struct op_node_invite *params)
{
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    for (guint i = 0; i < nodes->len; i++)
        if (is_renewed(nodes->pdata[i], params))
            return nodes->pdata[i];
    return NULL;
}

static bool is_free(const struct op *op, const struct op_node_invite *params, GError **error)
{
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (is_renewed(node, params))
            continue;
        if (gets_new_keys(node, params))
            fettle_set_error(error, ALREADY_EXISTS,
                             "node \"%s\" exists already; with --primary-ip %s --port "
                             "%" G_GUINT64_FORMAT " as on record it gets new keys",
                             node->name, node->primary_ip, node->port);
        if (*error ||
            op_node_in_the_way(node, params->node_name, params->primary_ip, params->port, error))
            return false;
    }
    return true;
}

static bool is_hash(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static bool invite_check(struct op *op, GError **error)
{
    const struct op_node_invite *params = op->params;
    if (!is_hash(params->secret_hash)) {
        fettle_set_error(error, WRONG_INPUT,
                         "secret_hash: must be 64 hexadecimal digits in lower case");
        return false;
    }
    if (!g_hostname_is_ip_address(params->primary_ip)) {
        fettle_set_error(error, WRONG_INPUT, "primary_ip: \"%s\" is no IP address",
                         params->primary_ip);
        return false;
    }
    return is_free(op, params, error) &&
           config_find(op_config(op), "nodegroup", params->group, error);
}

/* Of two invitations of one host the later counts. */
static bool is_replaced(const struct op *op, const struct join_token *token)
{
    const struct op_node_invite *params = op->params;
    return !*token->node_uuid && !strcmp(token->node_name, params->node_name);
}

static bool build_invite(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_node_invite *params = op->params;
    const struct nodegroup *group = config_find(op_config(op), "nodegroup", params->group, error);
    if (!group || !is_free(op, params, error))
        return false;
    g_autoptr(GPtrArray) tokens = config_list(op_config(op), "join_token");
    guint kept = 0;
    for (guint i = 0; i < tokens->len; i++) {
        const struct join_token *token = tokens->pdata[i];
        if (is_replaced(op, token))
            op_delete(op, changes, "join_token", token->uuid);
        else
            kept++;
    }
    if (kept >= LIMIT_JOIN_TOKENS) {
        fettle_set_error(error, LIMIT,
                         "%u invitations are on record, which is the limit; withdraw some: "
                         "fettle node invite --list",
                         kept);
        return false;
    }
    struct join_token *token = data;
    const struct node *renewed = find_renewed(op, params);
    text_set(&token->group, group->uuid);
    text_set(&token->renews, renewed ? renewed->uuid : "");
    op_put(op, changes, "join_token", token->uuid, join_token_to_json(token));
    return true;
}

static struct join_token *make_token(const struct op *op)
{
    const struct op_node_invite *params = op->params;
    struct join_token *token = join_token_new();
    g_free(token->uuid);
    token->uuid = env_uuid(op->env);
    text_set(&token->secret_hash, params->secret_hash);
    text_set(&token->node_name, params->node_name);
    text_set(&token->primary_ip, params->primary_ip);
    token->port = params->port;
    token->master_capable = params->master_capable;
    token->made = op_now_seconds(op);
    token->expires = token->made + params->expires_s;
    token->job = op->job;
    text_set(&token->author, params->author);
    return token;
}

/* All of the token but its secret. */
static json_t *describe(const struct op *op, const struct join_token *token, const char *authority)
{
    const struct cluster *cluster = config_cluster(op_config(op));
    const struct node *master = config_get(op_config(op), "node", cluster->master_node, NULL);
    return json_make("{s:s, s:s, s:I, s:s, s:I}", "token", token->uuid, "address",
                     master->primary_ip, "port", (json_int_t)master->port, "fingerprint", authority,
                     "expires", (json_int_t)token->expires);
}

static bool invite_exec(struct op *op, GError **error)
{
    record_autoptr(ca_info) authority = env_call_record(op->env, NODE_LOCAL, ROLE_WCONFD, "ca_info",
                                                        NULL, op->stamp, (guint)op->job, 0, error);
    if (!authority)
        return false;
    record_autoptr(join_token) token = make_token(op);
    if (!op_commit_built(op, "invite_node", build_invite, token, error))
        return false;
    op->result = describe(op, token, authority->fingerprint);
    return true;
}

/* --- withdraw --- */

/* By its UUID, else one for a host of that name: an unused one, else any. NULL: there is none. */
static const struct join_token *look_up(const struct op *op, const char *text)
{
    g_autoptr(GPtrArray) tokens = config_list(op_config(op), "join_token");
    const struct join_token *found = config_get(op_config(op), "join_token", text, NULL);
    for (guint i = 0; !found && i < tokens->len; i++) {
        const struct join_token *token = tokens->pdata[i];
        if (!strcmp(token->node_name, text) && !*token->node_uuid)
            found = token;
    }
    for (guint i = 0; !found && i < tokens->len; i++) {
        const struct join_token *token = tokens->pdata[i];
        if (!strcmp(token->node_name, text))
            found = token;
    }
    return found;
}

/* The invitation that is meant, if nobody has come with it yet. */
static const struct join_token *find_unused(const struct op *op, GError **error)
{
    const struct op_node_withdraw_invitation *params = op->params;
    const struct join_token *token = look_up(op, params->invitation);
    if (!token)
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "there is no invitation \"%s\"; see fettle node invite --list",
                         params->invitation);
    else if (*token->node_uuid)
        fettle_set_error(error, WRONG_STATE,
                         "invitation %s was used: the host is node \"%s\" (%s), or was; a member "
                         "leaves by fettle node remove",
                         token->uuid, token->node_name, token->node_uuid);
    else
        return token;
    return NULL;
}

static bool withdraw_check(struct op *op, GError **error)
{
    return find_unused(op, error);
}

/* A host may come with it meanwhile: then it is not deleted, as its version has changed. */
static bool build_withdraw(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct join_token *token = find_unused(op, error);
    if (token)
        op_delete(op, changes, "join_token", token->uuid);
    return token;
}

static bool withdraw_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "withdraw_invitation", build_withdraw, NULL, error);
}

/* --- revoke --- */

void op_revoke_node(struct op *op, GPtrArray *changes, const struct node *node)
{
    const struct revoked revoked = {
        .uuid = node->uuid, .name = node->name, .since = op_now_seconds(op)};
    op_put(op, changes, "revoked", node->uuid, revoked_to_json(&revoked));
}

const struct op_impl ops_join[] = {
    {"OP_NODE_INVITE", declare_nothing, invite_check, invite_exec, SEES_NAMED},
    {"OP_NODE_WITHDRAW_INVITATION", declare_nothing, withdraw_check, withdraw_exec, SEES_NAMED},
    {NULL},
};
