/* See engine_config.h. */
#include "proto/engine_config.h"

#include "base/endpoint.h"

#include <arpa/inet.h>
#include <string.h>

#define SCHEME "https://"

struct engine_config *engine_config_sqlite(void)
{
    struct engine_config *config = engine_config_new();
    config->kind = ENGINE_KIND_SQLITE;
    config->state = ENGINE_ACTIVE;
    return config;
}

/* --- URLs --- */

char *engine_url(const char *address, guint64 port)
{
    g_autofree char *place = endpoint_text(address, port);
    return g_strconcat(SCHEME, place, NULL);
}

static bool is_address(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* NULL if it is not what engine_url() writes. */
static char *take_apart(const char *url)
{
    const char *colon = strrchr(url, ':');
    guint64 port = 0;
    if (!g_str_has_prefix(url, SCHEME) || colon < url + strlen(SCHEME) ||
        !g_ascii_string_to_unsigned(colon + 1, 10, 1, 65535, &port, NULL))
        return NULL;
    const char *begin = url + strlen(SCHEME);
    g_autofree char *host = g_strndup(begin, (gsize)(colon - begin));
    gsize length = strlen(host);
    bool bracketed = length > 2 && host[0] == '[' && host[length - 1] == ']';
    g_autofree char *address = bracketed ? g_strndup(host + 1, length - 2) : g_strdup(host);
    g_autofree char *again = engine_url(address, port);
    if (!is_address(address) || strcmp(again, url) != 0)
        return NULL;
    return g_steal_pointer(&address);
}

char *engine_url_address(const char *url, GError **error)
{
    char *address = take_apart(url);
    if (address == NULL)
        fettle_set_error(error, WRONG_INPUT, "\"%s\" is not https://ADDRESS:PORT", url);
    return address;
}

/* --- the rules --- */

static bool check_url(const char *url, guint index, const char *field, char **ret_address,
                      GError **error)
{
    *ret_address = engine_url_address(url, error);
    if (*ret_address == NULL)
        g_prefix_error(error, "members[%u].%s: ", index, field);
    return *ret_address != NULL;
}

static bool check_member(const struct engine_member *member, guint index, GError **error)
{
    g_autofree char *peer = NULL;
    g_autofree char *client = NULL;
    if (!check_url(member->peer_url, index, "peer_url", &peer, error) ||
        !check_url(member->client_url, index, "client_url", &client, error))
        return false;
    if (strcmp(peer, client) == 0)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "members[%u].client_url: the address is %s, that of peer_url is %s; a member "
                     "has one address",
                     index, client, peer);
    return false;
}

/* Each of them is to occur once. */
static bool check_unique(GHashTable *seen, const char *text, guint index, const char *field,
                         GError **error)
{
    if (g_hash_table_add(seen, (gpointer)text))
        return true;
    fettle_set_error(error, WRONG_INPUT, "members[%u].%s: %s occurs twice", index, field, text);
    return false;
}

static bool check_members(const struct engine_config *config, GError **error)
{
    g_autoptr(GHashTable) nodes = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) urls = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < config->members->len; i++) {
        const struct engine_member *member = config->members->pdata[i];
        if (!check_member(member, i, error) ||
            !check_unique(nodes, member->node, i, "node", error) ||
            !check_unique(names, member->name, i, "name", error) ||
            !check_unique(urls, member->peer_url, i, "peer_url", error) ||
            !check_unique(urls, member->client_url, i, "client_url", error))
            return false;
    }
    return true;
}

bool engine_config_check(const struct engine_config *config, GError **error)
{
    bool etcd = config->kind == ENGINE_KIND_ETCD;
    if (etcd && !g_uuid_string_is_valid(config->token))
        fettle_set_error(error, WRONG_INPUT, "token: must be a UUID for etcd, not \"%s\"",
                         config->token);
    else if (etcd && config->members->len == 0)
        fettle_set_error(error, WRONG_INPUT, "members: etcd needs at least one");
    else if (!etcd && (*config->token != '\0' || config->members->len > 0))
        fettle_set_error(error, WRONG_INPUT, "members: SQLite has neither members nor a token");
    else if (!etcd && config->state != ENGINE_ACTIVE)
        fettle_set_error(error, WRONG_INPUT, "state: SQLite is always active, not %s",
                         enum_word(&engine_phase_words, (int)config->state));
    else
        return check_members(config, error);
    return false;
}

/* --- what is derived --- */

const struct engine_member *engine_config_member(const struct engine_config *config,
                                                 const char *node)
{
    for (guint i = 0; i < config->members->len; i++) {
        const struct engine_member *member = config->members->pdata[i];
        if (strcmp(member->node, node) == 0)
            return member;
    }
    return NULL;
}

bool engine_config_find(const struct engine_config *config, const char *node, guint *ret_number,
                        GError **error)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < config->members->len; i++) {
        const struct engine_member *member = config->members->pdata[i];
        *ret_number = i;
        if (strcmp(member->name, node) == 0 || strcmp(member->node, node) == 0)
            return true;
        g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", member->name);
    }
    if (names->len == 0)
        fettle_set_error(error, WRONG_STATE,
                         "the engine is sqlite: there are no members of etcd; a damaged copy of a "
                         "candidate is made anew by itself");
    else
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "node \"%s\" has no member of etcd; there are those of %s", node,
                         names->str);
    return false;
}

char *engine_initial_cluster(const struct engine_config *config)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < config->members->len; i++) {
        const struct engine_member *member = config->members->pdata[i];
        g_string_append_printf(text, "%s%s=%s", i > 0 ? "," : "", member->name, member->peer_url);
    }
    return g_string_free(text, FALSE);
}

char **engine_client_urls(const struct engine_config *config, const char *node)
{
    const struct engine_member *own = node != NULL ? engine_config_member(config, node) : NULL;
    GPtrArray *urls = g_ptr_array_new();
    if (own != NULL)
        g_ptr_array_add(urls, g_strdup(own->client_url));
    for (guint i = 0; i < config->members->len; i++) {
        const struct engine_member *member = config->members->pdata[i];
        if (member != own)
            g_ptr_array_add(urls, g_strdup(member->client_url));
    }
    g_ptr_array_add(urls, NULL);
    return (char **)g_ptr_array_free(urls, FALSE);
}

static bool is_empty(const char *text)
{
    return text == NULL || *text == '\0';
}

bool engine_has_master(const struct role_status *status, const char *node)
{
    return status->seat == SEAT_MASTER ||
           (status->seat == SEAT_FOLLOWS && is_empty(status->why) &&
            !is_empty(status->master_node) && strcmp(status->master_node, node) != 0);
}
