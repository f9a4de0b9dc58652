/* See copy.h. */
#include "core/confd/copy.h"

#include <arpa/inet.h>
#include <string.h>

/* place -> (item -> GHashTable, a set of UUIDs of instances) */
typedef GHashTable index_t;

struct confd_copy {
    struct config *config;
    struct confd_key *key;
    bool retired;
    index_t *primaries;   /* node -> its instances, each with itself */
    index_t *secondaries; /* node -> the same */
    index_t *addresses;   /* link -> address -> instances that have it */
    GHashTable *nodes;    /* address in its one spelling -> UUID; NULL: to be made anew */
};

/* --- indexes --- */

static void table_unref(void *table)
{
    g_hash_table_unref(table);
}

static GHashTable *index_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, table_unref);
}

static GHashTable *set_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static GHashTable *below(GHashTable *table, const char *name, GHashTable *(*make)(void))
{
    GHashTable *inner = g_hash_table_lookup(table, name);
    if (!inner) {
        inner = make();
        g_hash_table_insert(table, g_strdup(name), inner);
    }
    return inner;
}

static void index_add(index_t *index, const char *place, const char *item, const char *uuid)
{
    GHashTable *set = below(below(index, place, index_new), item, set_new);
    g_hash_table_add(set, g_strdup(uuid));
}

static void index_remove(index_t *index, const char *place, const char *item, const char *uuid)
{
    GHashTable *items = g_hash_table_lookup(index, place);
    GHashTable *set = items ? g_hash_table_lookup(items, item) : NULL;
    if (!set || !g_hash_table_remove(set, uuid))
        return;
    if (g_hash_table_size(set) == 0)
        g_hash_table_remove(items, item);
    if (g_hash_table_size(items) == 0)
        g_hash_table_remove(index, place);
}

static void index_change(index_t *index, const char *place, const char *item, const char *uuid,
                         bool add)
{
    if (!*place || !*item)
        return;
    if (add)
        index_add(index, place, item, uuid);
    else
        index_remove(index, place, item, uuid);
}

static void index_instance(struct confd_copy *copy, const struct instance *instance, bool add)
{
    const char *uuid = instance->uuid;
    index_change(copy->primaries, instance->primary_node, uuid, uuid, add);
    index_change(copy->secondaries, instance->secondary_node, uuid, uuid, add);
    for (guint i = 0; i < instance->nics->len; i++) {
        const struct nic *nic = instance->nics->pdata[i];
        index_change(copy->addresses, nic->link, nic->ip, uuid, add);
    }
}

/* --- the copy --- */

struct confd_copy *confd_copy_new(void)
{
    struct confd_copy *copy = g_new0(struct confd_copy, 1);
    copy->config = config_new();
    copy->primaries = index_new();
    copy->secondaries = index_new();
    copy->addresses = index_new();
    return copy;
}

void confd_copy_free(struct confd_copy *copy)
{
    if (!copy)
        return;
    config_free(copy->config);
    confd_key_free(copy->key);
    g_hash_table_unref(copy->primaries);
    g_hash_table_unref(copy->secondaries);
    g_hash_table_unref(copy->addresses);
    g_clear_pointer(&copy->nodes, g_hash_table_unref);
    g_free(copy);
}

bool confd_copy_keeps(const char *kind)
{
    static const char *const kept[] = {"cluster", "nodegroup", "node", "instance",
                                       "tag",     "secret",    NULL};
    return g_strv_contains(kept, kind);
}

/* Tools sign with the bytes of a file that has the same digits. */
static void renew_key(struct confd_copy *copy)
{
    const struct secret *secret = config_get(copy->config, "secret", "confd", NULL);
    g_clear_pointer(&copy->key, confd_key_free);
    if (secret)
        copy->key = confd_key_new(secret->value, strlen(secret->value));
}

static bool apply_instance(struct confd_copy *copy, const struct change *change, GError **error)
{
    struct config_object *before = config_peek(copy->config, "instance", change->key);
    if (before)
        config_object_ref(before);
    bool ok = config_apply(copy->config, change, error);
    if (ok) {
        const struct instance *after = config_get(copy->config, "instance", change->key, NULL);
        if (before)
            index_instance(copy, config_object_value(before), false);
        if (after)
            index_instance(copy, after, true);
    }
    config_object_unref(before);
    return ok;
}

bool confd_copy_apply(struct confd_copy *copy, const struct change *change, GError **error)
{
    if (!confd_copy_keeps(change->kind))
        return true;
    if (strcmp(change->kind, "instance") == 0)
        return apply_instance(copy, change, error);
    if (!config_apply(copy->config, change, error))
        return false;
    if (strcmp(change->kind, "secret") == 0)
        renew_key(copy);
    if (strcmp(change->kind, "node") == 0)
        g_clear_pointer(&copy->nodes, g_hash_table_unref);
    return true;
}

void confd_copy_set_position(struct confd_copy *copy, guint64 history, guint64 serial)
{
    config_set_position(copy->config, history, serial);
}

void confd_copy_set_retired(struct confd_copy *copy, bool retired)
{
    copy->retired = retired;
}

bool confd_copy_retired(const struct confd_copy *copy)
{
    return copy->retired;
}

const struct config *confd_copy_config(const struct confd_copy *copy)
{
    return copy->config;
}

const struct confd_key *confd_copy_key(const struct confd_copy *copy)
{
    return copy->key;
}

struct confd_key *confd_copy_node_key(const struct confd_copy *copy, const struct node *node)
{
    const struct secret *secret = config_get(copy->config, "secret", "confd", NULL);
    g_autofree char *key = secret ? confd_node_key(secret->value, node->uuid) : NULL;
    return key ? confd_key_new(key, strlen(key)) : NULL;
}

/* --- nodes by address --- */

/* In the one spelling; NULL: it is no address. */
static char *plain_address(const char *text)
{
    char bytes[sizeof(struct in6_addr)], plain[INET6_ADDRSTRLEN];
    int family = strchr(text, ':') ? AF_INET6 : AF_INET;
    return inet_pton(family, text, bytes) == 1
               ? g_strdup(inet_ntop(family, bytes, plain, sizeof plain))
               : NULL;
}

static void index_nodes(struct confd_copy *copy)
{
    g_autoptr(GPtrArray) nodes = config_list(copy->config, "node");
    copy->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        char *address = plain_address(node->primary_ip);
        if (address)
            g_hash_table_insert(copy->nodes, address, g_strdup(node->uuid));
    }
}

const struct node *confd_copy_node_at(struct confd_copy *copy, const char *address)
{
    g_autofree char *plain = plain_address(address);
    if (!copy->nodes)
        index_nodes(copy);
    const char *uuid = plain ? g_hash_table_lookup(copy->nodes, plain) : NULL;
    return uuid ? config_get(copy->config, "node", uuid, NULL) : NULL;
}

/* --- questions --- */

GHashTable *confd_copy_instances_of(const struct confd_copy *copy, const char *node, bool primary)
{
    return g_hash_table_lookup(primary ? copy->primaries : copy->secondaries, node);
}

GHashTable *confd_copy_addresses_on(const struct confd_copy *copy, const char *link)
{
    return g_hash_table_lookup(copy->addresses, link);
}

const struct instance *confd_copy_instance_at(const struct confd_copy *copy, const char *link,
                                              const char *ip)
{
    GHashTable *items = confd_copy_addresses_on(copy, link);
    GHashTable *set = items ? g_hash_table_lookup(items, ip) : NULL;
    GHashTableIter iter;
    void *uuid;
    if (!set)
        return NULL;
    g_hash_table_iter_init(&iter, set);
    g_assert(g_hash_table_iter_next(&iter, &uuid, NULL));
    return config_get(copy->config, "instance", uuid, NULL);
}
