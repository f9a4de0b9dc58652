/*
 * OP_NETWORK_ADD, OP_NETWORK_SET_PARAMS, OP_NETWORK_REMOVE: networks that cards can be in. What a
 * network may be is judged where every commit is (invariants_network.c); here only what a person
 * has to be told more plainly.
 */
#include "core/config/addresses.h"
#include "core/config/invariants.h"
#include "core/ops/ops.h"

#include <string.h>

#define NONE "none"

static const struct network *find(const struct op *op, const char *name, GError **error)
{
    return config_find(op_config(op), "network", name, error);
}

/* --- what is reserved --- */

/* In the form in which it stands on record; WRONG_INPUT. */
static char *normal(const char *text, const char *field, GError **error)
{
    struct ip_range range;
    if (!ip_range_of_reserved(text, &range, error)) {
        g_prefix_error(error, "%s: ", field);
        return NULL;
    }
    g_autofree char *first = ip_text(range.first);
    g_autofree char *last = ip_text(range.last);
    return range.first == range.last ? g_steal_pointer(&first)
                                     : g_strdup_printf("%s-%s", first, last);
}

static bool find_text(const GPtrArray *list, const char *text, guint *ret_index)
{
    return g_ptr_array_find_with_equal_func((GPtrArray *)list, text, g_str_equal, ret_index);
}

struct search {
    struct ip_range range;
    char *found; /* "192.0.2.9 is taken by …" */
};

static void look(const char *address, const char *who, void *data)
{
    struct search *search = data;
    guint32 number = 0;
    if (!search->found && ip_parse(address, &number) && number >= search->range.first &&
        number <= search->range.last)
        search->found = g_strdup_printf("%s is taken by %s", address, who);
}

static bool nobody_has(const struct op *op, const struct network *network, const char *text,
                       GError **error)
{
    struct search search = {.found = NULL};
    ip_range_of_reserved(text, &search.range, NULL);
    network_each_taken(op_config(op), network, look, &search);
    if (!search.found)
        return true;
    fettle_set_error(error, ALREADY_EXISTS, "add_reserved_ips: %s", search.found);
    g_free(search.found);
    return false;
}

static bool reserve(const struct op *op, struct network *network, const GPtrArray *texts,
                    GError **error)
{
    for (guint i = 0; texts && i < texts->len; i++) {
        g_autofree char *text = normal(texts->pdata[i], "add_reserved_ips", error);
        if (!text || !nobody_has(op, network, text, error))
            return false;
        if (!find_text(network->reserved, text, NULL))
            g_ptr_array_add(network->reserved, g_steal_pointer(&text));
    }
    if (network->reserved->len <= LIMIT_NETWORK_RESERVED)
        return true;
    fettle_set_error(error, LIMIT,
                     "add_reserved_ips: a network has at most %d reserved addresses or ranges; "
                     "make ranges of neighbours",
                     LIMIT_NETWORK_RESERVED);
    return false;
}

static bool release(struct network *network, const GPtrArray *texts, GError **error)
{
    for (guint i = 0; texts && i < texts->len; i++) {
        guint index = 0;
        g_autofree char *text = normal(texts->pdata[i], "remove_reserved_ips", error);
        if (!text)
            return false;
        if (!find_text(network->reserved, text, &index)) {
            fettle_set_error(error, UNKNOWN_ENTITY,
                             "remove_reserved_ips: %s is not reserved in network \"%s\" in that "
                             "form; see fettle network info %s",
                             text, network->name, network->name);
            return false;
        }
        g_ptr_array_remove_index(network->reserved, index);
    }
    return true;
}

static void set_prefix(struct network *network, const char *prefix)
{
    g_autofree char *lower = g_ascii_strdown(prefix, -1);
    text_set(&network->mac_prefix, lower);
}

/* By the rules of every commit, before it is tried. */
static bool is_right(const struct op *op, const struct network *network, bool new, GError **error)
{
    if (new &&config_find(op_config(op), "network", network->name, NULL)) {
        fettle_set_error(error, ALREADY_EXISTS, "network \"%s\" exists already", network->name);
        return false;
    }
    return invariants_network(op_config(op), network, error);
}

/* --- add --- */

/* Whoever adds one looks at all others: two at once could overlap. */
static bool add_declare(struct op *op, GError **error)
{
    op_lock(op, "network/[lockset]", LOCK_EXCLUSIVE);
    return true;
}

static struct network *new_network(const struct op *op, GError **error)
{
    const struct op_network_add *params = op->params;
    const struct cluster *cluster = config_cluster(op_config(op));
    bool bridge = params->mode != NIC_ROUTED && !*params->link;
    g_autofree char *uuid = env_uuid(op->env);
    record_autoptr(network) network = network_new();
    text_set(&network->uuid, uuid);
    text_set(&network->name, params->network_name);
    text_set(&network->network, params->network);
    text_set(&network->gateway, params->gateway);
    network->mode = params->mode;
    text_set(&network->link, bridge && cluster ? cluster->default_link : params->link);
    set_prefix(network, params->mac_prefix);
    /* The range first: what is reserved lies in it. */
    if (!is_right(op, network, true, error) ||
        !reserve(op, network, params->add_reserved_ips, error) ||
        !is_right(op, network, true, error))
        return NULL;
    return g_steal_pointer(&network);
}

static bool add_check(struct op *op, GError **error)
{
    record_autoptr(network) network = new_network(op, error);
    return network != NULL;
}

static bool build_add(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    record_autoptr(network) network = new_network(op, error);
    if (!network)
        return false;
    op_put(op, changes, "network", network->uuid, network_to_json(network));
    return true;
}

static bool add_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "add_network", build_add, NULL, error);
}

/* --- modify --- */

static bool lock_one(struct op *op, const char *name, GError **error)
{
    const struct network *network = find(op, name, error);
    if (network)
        op_lock_network(op, network->uuid, LOCK_EXCLUSIVE);
    return network != NULL;
}

static bool set_declare(struct op *op, GError **error)
{
    return lock_one(op, ((const struct op_network_set_params *)op->params)->network_name, error);
}

static struct network *changed_network(const struct op *op, GError **error)
{
    const struct op_network_set_params *params = op->params;
    const struct network *now = find(op, params->network_name, error);
    if (!now)
        return NULL;
    record_autoptr(network) network = network_copy(now);
    if (*params->gateway)
        text_set(&network->gateway, strcmp(params->gateway, NONE) ? params->gateway : "");
    if (*params->mac_prefix)
        set_prefix(network, strcmp(params->mac_prefix, NONE) ? params->mac_prefix : "");
    if (!release(network, params->remove_reserved_ips, error) ||
        !reserve(op, network, params->add_reserved_ips, error))
        return NULL;
    json_autoptr before = network_to_json(now);
    json_autoptr after = network_to_json(network);
    if (json_equal(before, after)) {
        fettle_set_error(error, WRONG_INPUT, "nothing to change: network \"%s\" is so already",
                         network->name);
        return NULL;
    }
    return is_right(op, network, false, error) ? g_steal_pointer(&network) : NULL;
}

static bool set_check(struct op *op, GError **error)
{
    record_autoptr(network) network = changed_network(op, error);
    if (!network)
        return false;
    g_autofree char *key = network_key(network, network->gateway);
    g_autofree char *user = *network->gateway ? config_address_user(op_config(op), key, "") : NULL;
    if (user)
        fettle_set_error(error, ALREADY_EXISTS, "gateway: %s is taken by %s", network->gateway,
                         user);
    return !user;
}

static bool build_set(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    record_autoptr(network) network = changed_network(op, error);
    if (!network)
        return false;
    op_put(op, changes, "network", network->uuid, network_to_json(network));
    return true;
}

static bool set_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "change_network", build_set, NULL, error);
}

/* --- remove --- */

static bool remove_declare(struct op *op, GError **error)
{
    return lock_one(op, ((const struct op_network_remove *)op->params)->network_name, error);
}

static bool remove_check(struct op *op, GError **error)
{
    const struct op_network_remove *params = op->params;
    const struct network *network = find(op, params->network_name, error);
    if (!network)
        return false;
    g_autoptr(GPtrArray) instances = config_list(op_config(op), "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (!network_has(network, instance))
            continue;
        fettle_set_error(error, WRONG_STATE,
                         "instance \"%s\" has a card in network \"%s\"; it stays while one has",
                         instance->name, network->name);
        return false;
    }
    return true;
}

static bool build_remove(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    const struct op_network_remove *params = op->params;
    const struct network *network = find(op, params->network_name, error);
    if (network)
        op_delete(op, changes, "network", network->uuid);
    return network != NULL;
}

static bool remove_exec(struct op *op, GError **error)
{
    return op_commit_built(op, "remove_network", build_remove, NULL, error);
}

const struct op_impl ops_network[] = {
    {"OP_NETWORK_ADD", add_declare, add_check, add_exec},
    {"OP_NETWORK_SET_PARAMS", set_declare, set_check, set_exec},
    {"OP_NETWORK_REMOVE", remove_declare, remove_check, remove_exec},
    {NULL},
};
