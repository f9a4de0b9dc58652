/* See engine_nodes.h. */
#include "core/wconfd/engine_nodes.h"

#include <string.h>

#include "base/limits.h"

#define SETTLE_PAUSE_MS 250

static void free_node(void *data)
{
    node_free(data);
}

static void free_member(void *data)
{
    engine_member_free(data);
}

GPtrArray *engine_node_list(void)
{
    return g_ptr_array_new_with_free_func(free_node);
}

GPtrArray *engine_candidates(const struct env *env, const struct config *config)
{
    GPtrArray *found = engine_node_list();
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        bool own = strcmp(node->uuid, env->node_uuid) == 0;
        if (node->master_candidate)
            g_ptr_array_insert(found, own ? 0 : -1, node_copy(node));
    }
    return found;
}

/* --- the members --- */

struct engine_member *engine_member_of(const struct cluster *cluster, const struct node *node)
{
    struct engine_member *member = engine_member_new();
    text_set(&member->node, node->uuid);
    text_set(&member->name, node->name);
    g_free(member->peer_url);
    member->peer_url = engine_url(node->primary_ip, cluster->etcd_peer_port);
    g_free(member->client_url);
    member->client_url = engine_url(node->primary_ip, cluster->etcd_client_port);
    return member;
}

struct engine_config *engine_founding(const struct env *env, const struct cluster *cluster,
                                      const GPtrArray *nodes, GError **error)
{
    record_autoptr(engine_config) config = engine_config_new();
    config->kind = ENGINE_KIND_ETCD;
    config->state = ENGINE_PREPARING;
    g_free(config->token);
    config->token = env_uuid(env);
    g_clear_pointer(&config->members, g_ptr_array_unref);
    config->members = g_ptr_array_new_with_free_func(free_member);
    for (guint i = 0; i < nodes->len; i++)
        g_ptr_array_add(config->members, engine_member_of(cluster, nodes->pdata[i]));
    if (!engine_config_check(config, error))
        return NULL;
    return g_steal_pointer(&config);
}

/* --- calls --- */

static void *call(const struct engine_asker *asker, const struct node *node, const char *method,
                  const void *args, GError **error)
{
    void *answer = env_call_record(asker->env, node->uuid, ROLE_NODED, method, args, asker->stamp,
                                   0, 0, error);
    if (!answer)
        g_prefix_error(error, "node %s: ", node->name);
    return answer;
}

static bool call_plain(const struct engine_asker *asker, const struct node *node,
                       const char *method, const void *args, GError **error)
{
    void *answer = call(asker, node, method, args, error);
    if (answer)
        record_free(method_find(ROLE_NODED, method)->answer, answer);
    return answer != NULL;
}

struct engine_report *engine_node_report(const struct engine_asker *asker, const struct node *node,
                                         GError **error)
{
    return call(asker, node, "engine_status", NULL, error);
}

static bool sign(const struct engine_asker *asker, const struct cluster *cluster,
                 const struct node *node, const struct member_requests *requests,
                 struct member_certificates *given, GError **error)
{
    struct authority *authority = asker->env->authority;
    g_autofree char *uuid = g_strdup(cluster->uuid);
    char *member = NULL;
    char *client = NULL;
    if (!authority->ops->sign_etcd(authority, requests->member, uuid, node->primary_ip, &member,
                                   error))
        return false;
    g_free(given->member);
    given->member = member;
    if (!authority->ops->sign_etcd(authority, requests->client, uuid, NULL, &client, error))
        return false;
    g_free(given->client);
    given->client = client;
    return true;
}

bool engine_node_certify(const struct engine_asker *asker, const struct cluster *cluster,
                         const struct node *node, bool anew, GError **error)
{
    const struct member_prepare_args args = {.anew = anew};
    record_autoptr(member_certificates) given = member_certificates_new();
    record_autoptr(member_requests) requests =
        call(asker, node, "member_prepare", anew ? &args : NULL, error);
    if (!requests)
        return false;
    text_set(&given->authority, cluster->etcd_authority);
    if (sign(asker, cluster, node, requests, given, error))
        return call_plain(asker, node, "member_certify", given, error);
    g_prefix_error(error, "certificates of etcd for node %s: ", node->name);
    return false;
}

bool engine_node_trust(const struct engine_asker *asker, const struct node *node,
                       const char *authority, GError **error)
{
    const struct member_trust_args args = {.authority = (char *)authority};
    return call_plain(asker, node, "member_trust", &args, error);
}

bool engine_node_restart(const struct engine_asker *asker, const struct node *node, GError **error)
{
    return call_plain(asker, node, "member_restart", NULL, error);
}

bool engine_node_set(const struct engine_asker *asker, const struct node *node,
                     const struct engine_config *config, GError **error)
{
    record_autoptr(engine_config_args) args = engine_config_args_new();
    args->config = config ? engine_config_copy(config) : NULL;
    return call_plain(asker, node, "engine_set", args, error);
}

bool engine_node_start(const struct engine_asker *asker, const struct node *node,
                       enum member_initial initial, GError **error)
{
    const struct member_start_args args = {.initial = initial};
    return call_plain(asker, node, "member_start", &args, error);
}

bool engine_node_clear(const struct engine_asker *asker, const struct node *node, GError **error)
{
    record_autoptr(engine_report) report = engine_node_report(asker, node, error);
    if (!report)
        return false;
    bool clear = report->config->kind == ENGINE_KIND_SQLITE;
    if (clear && report->member->state == MEMBER_ABSENT)
        return true;
    return call_plain(asker, node, "member_remove", NULL, error) &&
           (clear || engine_node_set(asker, node, NULL, error));
}

bool engine_node_end(const struct engine_asker *asker, const struct node *node, GError **error)
{
    return call_plain(asker, node, "member_remove", NULL, error);
}

/* --- waiting for members --- */

/* One line of those that are not healthy is added to `ill`. */
static void look(const struct engine_asker *asker, const struct node *node, GString *ill)
{
    g_autoptr(GError) error = NULL;
    record_autoptr(engine_report) report = engine_node_report(asker, node, &error);
    if (report && report->member->healthy)
        return;
    const char *why = report ? report->member->why : NULL;
    g_string_append_printf(ill, "%s", ill->len > 0 ? "; " : "");
    if (!report)
        g_string_append(ill, error->message);
    else
        g_string_append_printf(ill, "node %s: %s", node->name,
                               why && *why ? why : "its member does not answer");
}

bool engine_nodes_settle(const struct engine_asker *asker, const GPtrArray *nodes, GError **error)
{
    const struct env *env = asker->env;
    gint64 until = env->ops->boot_ms(env) + ENGINE_SETTLE_MS;
    for (;;) {
        g_autoptr(GString) ill = g_string_new(NULL);
        for (guint i = 0; i < nodes->len && !task_killed(); i++)
            look(asker, nodes->pdata[i], ill);
        if (ill->len == 0 && !task_killed())
            return true;
        if (env->ops->boot_ms(env) >= until) {
            fettle_set_error(error, TIMEOUT, "not all members of etcd are well after %u s: %s",
                             ENGINE_SETTLE_MS / 1000, ill->str);
            return false;
        }
        if (!env_sleep(env, SETTLE_PAUSE_MS)) {
            fettle_set_error(error, KILLED, "the process has ended");
            return false;
        }
    }
}
