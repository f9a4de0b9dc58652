/*
 * OP_CLUSTER_SET_PARAMS: settings of the cluster. The fields of the opcode are those of the record
 * by name; the record says within which bounds.
 */
#include "core/config/ports.h"
#include "core/ops/ops.h"
#include "proto/master_ip.h"
#include "proto/monitor/collector_table.h"

#include <string.h>

static bool set_declare(struct op *op, GError **error)
{
    op_lock(op, "cluster/BGL", LOCK_EXCLUSIVE);
    return true;
}

/* A value that is asked for, as it stands in the record: a new reference; NULL: it stays. */
static json_t *wanted(const struct field *field, const json_t *params, GError **error)
{
    const json_t *value = json_object_get(params, field->name);
    const struct field *setting = record_field(&cluster_record, field->name);
    const char *text = json_string_value(value);
    bool left = text ? !*text : json_number_value(value) == -1;
    if (left)
        return NULL;
    if (setting->type != FIELD_TYPE_BOOL)
        return json_incref((json_t *)value);
    bool yes = !g_strcmp0(text, "yes");
    if (yes || !g_strcmp0(text, "no"))
        return json_boolean(yes);
    fettle_set_error(error, WRONG_INPUT, "%s: must be yes or no, not \"%s\"", field->name, text);
    return NULL;
}

/* The address as it is given, or `none`, for the fields that it becomes. */
static bool apply_master_ip(const struct op *op, json_t *cluster, guint *count, GError **error)
{
    const struct op_cluster_set_params *params = op->params;
    bool none = !strcmp(params->master_ip, "none");
    g_autofree char *address = NULL;
    guint netmask = 0;
    if (!*params->master_ip)
        return true;
    if (none && *params->master_netdev) {
        fettle_set_error(error, WRONG_INPUT,
                         "master_netdev: without a master IP there is no device for it");
        return false;
    }
    if (!none && !master_ip_parse(params->master_ip, &address, &netmask, error))
        return false;
    json_object_set_new(cluster, "master_ip", json_string(none ? "" : address));
    json_object_set_new(cluster, "master_netmask", json_integer((json_int_t)netmask));
    if (none)
        json_object_set_new(cluster, "master_netdev", json_string(""));
    ++*count;
    return true;
}

static bool master_ip_is_whole(const struct cluster *cluster, GError **error)
{
    if (!*cluster->master_ip == !*cluster->master_netdev)
        return true;
    if (*cluster->master_ip)
        fettle_set_error(error, WRONG_INPUT,
                         "master_netdev: name the network device that is to carry the master IP");
    else
        fettle_set_error(error, WRONG_INPUT,
                         "master_ip: name the address that %s is to carry on the master's node",
                         cluster->master_netdev);
    return false;
}

static bool pattern_is_good(const char *pattern, GError **error)
{
    if (g_utf8_strlen(pattern, -1) <= LIMIT_IGNORE_PATTERN)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "recovery_ignore: \"%s\" is longer than %d characters, which no name is that "
                     "it is compared with",
                     pattern, LIMIT_IGNORE_PATTERN);
    return false;
}

/* Patterns with commas or blanks between, as they are given, or `none`. */
static bool apply_ignore(const struct op *op, json_t *cluster, guint *count, GError **error)
{
    const char *wanted = ((const struct op_cluster_set_params *)op->params)->recovery_ignore;
    g_auto(GStrv) words = g_strsplit_set(wanted, ", \t\n", -1);
    g_autoptr(GString) patterns = g_string_new(NULL);
    guint many = 0;
    if (!*wanted)
        return true;
    for (char **word = words; *word; word++) {
        if (!**word)
            continue;
        if (!pattern_is_good(*word, error))
            return false;
        g_string_append_printf(patterns, "%s%s", many++ ? " " : "", *word);
    }
    if (many == 0 || many > LIMIT_IGNORE_PATTERNS) {
        fettle_set_error(error, WRONG_INPUT,
                         "recovery_ignore: %u patterns; 1 to %d are allowed, as docker*,virbr*, or "
                         "none",
                         many, LIMIT_IGNORE_PATTERNS);
        return false;
    }
    bool none = many == 1 && !strcmp(patterns->str, "none");
    json_object_set_new(cluster, "recovery_ignore", json_string(none ? "" : patterns->str));
    ++*count;
    return true;
}

/* Networks with commas or blanks between, or `none`. What is no network is the rule's to refuse. */
static bool apply_allow(const struct op *op, json_t *cluster, guint *count, GError **error)
{
    const char *wanted = ((const struct op_cluster_set_params *)op->params)->webhook_allow;
    g_auto(GStrv) words = g_strsplit_set(wanted, ", \t\n", -1);
    json_autoptr networks = json_array();
    if (!*wanted)
        return true;
    for (char **word = words; *word; word++)
        if (**word && strcmp(wanted, "none") != 0)
            json_array_append_new(networks, json_string(*word));
    if (json_array_size(networks) > LIMIT_WEBHOOK_ALLOW) {
        fettle_set_error(error, WRONG_INPUT, "webhook_allow: %zu networks; at most %d are allowed",
                         json_array_size(networks), LIMIT_WEBHOOK_ALLOW);
        return false;
    }
    json_object_set(cluster, "webhook_allow", networks);
    ++*count;
    return true;
}

/* Puts everything that is asked for into `cluster`. */
static bool apply(const struct op *op, json_t *cluster, guint *ret_count, GError **error)
{
    json_autoptr params = record_to_json(&op_cluster_set_params_record, op->params);
    *ret_count = 0;
    if (!apply_master_ip(op, cluster, ret_count, error) ||
        !apply_ignore(op, cluster, ret_count, error) || !apply_allow(op, cluster, ret_count, error))
        return false;
    for (const struct field *field = op_cluster_set_params_record.fields(); field->name; field++) {
        GError *local = NULL;
        if (!strcmp(field->name, "master_ip") || !strcmp(field->name, "recovery_ignore") ||
            !strcmp(field->name, "webhook_allow") || field->type == FIELD_TYPE_STRINGS)
            continue;
        json_t *value = wanted(field, params, &local);
        if (local) {
            g_propagate_error(error, local);
            return false;
        }
        if (!value)
            continue;
        bool none = !strcmp(field->name, "default_volume_type") &&
                    !strcmp(json_string_value(value), "none");
        if (none)
            json_string_set(value, "");
        json_object_set_new(cluster, field->name, value);
        ++*ret_count;
    }
    return true;
}

static bool prefix_is_good(const struct cluster *cluster, GError **error)
{
    const char *prefix = cluster->mac_prefix;
    bool good = strlen(prefix) == 8;
    for (guint i = 0; good && i < 8; i++)
        good = i % 3 == 2 ? prefix[i] == ':' : g_ascii_isxdigit(prefix[i]);
    if (good && g_ascii_xdigit_value(prefix[1]) % 2 == 0)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "mac_prefix: \"%s\" does not begin the address of a card, as aa:00:00 does",
                     prefix);
    return false;
}

/* The record as it would be; NULL with WRONG_INPUT that names the field and its bounds. */
static struct cluster *changed_cluster(const struct op *op, GError **error)
{
    const struct cluster *now = config_cluster(op_config(op));
    if (!now) {
        fettle_set_error(error, UNKNOWN_ENTITY, "there is no cluster yet");
        return NULL;
    }
    const struct op_cluster_set_params *params = op->params;
    guint count = 0, of_collectors = 0;
    json_autoptr json = cluster_to_json(now);
    if (!apply(op, json, &count, error))
        return NULL;
    record_autoptr(cluster) cluster = cluster_parse(json, RECORD_KEEP, error);
    if (!cluster ||
        !collector_settings_change(cluster, params->data_collectors,
                                   params->data_collector_interval, &of_collectors, error))
        return NULL;
    if (!count && !of_collectors) {
        fettle_set_error(error, WRONG_INPUT, "nothing to change: name at least one setting");
        return NULL;
    }
    struct port_range ports;
    if (!prefix_is_good(cluster, error) || !master_ip_is_whole(cluster, error) ||
        !port_range_parse(cluster->port_range, &ports, error))
        return NULL;
    g_autofree char *lower = g_ascii_strdown(cluster->mac_prefix, -1);
    text_set(&cluster->mac_prefix, lower);
    return g_steal_pointer(&cluster);
}

/* Whoever may become the master must be able to carry it. Who does not answer is not asked again:
 * its log says so when it becomes one. */
static bool can_carry(struct op *op, const struct node *node, const struct cluster *cluster,
                      GError **error)
{
    struct address_check_args args = {.address = cluster->master_ip,
                                      .netdev = cluster->master_netdev};
    g_autoptr(GError) local = NULL;
    record_autoptr(nothing) answer = op_ask(op, node->uuid, "address_check", &args, 0, &local);
    if (answer)
        return true;
    if (fettle_error_is(local, ENVIRONMENT) || fettle_error_is(local, ALREADY_EXISTS) ||
        fettle_error_is(local, WRONG_INPUT) || fettle_error_is(local, KILLED)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return false;
    }
    op_log(op, "node %s was not asked whether it can carry the master IP: %s", node->name,
           local->message);
    return true;
}

static bool check_master_ip(struct op *op, const struct cluster *cluster, GError **error)
{
    const struct op_cluster_set_params *params = op->params;
    g_autoptr(GPtrArray) nodes = config_list(op_config(op), "node");
    g_autoptr(GPtrArray) candidates = g_ptr_array_new_with_free_func((GDestroyNotify)node_free);
    bool asked = *cluster->master_ip && (*params->master_ip || *params->master_netdev);
    for (guint i = 0; asked && i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (node->master_candidate && !node->offline)
            g_ptr_array_add(candidates, node_copy(node));
    }
    for (guint i = 0; i < candidates->len; i++)
        if (!can_carry(op, candidates->pdata[i], cluster, error))
            return false;
    return true;
}

static bool set_check(struct op *op, GError **error)
{
    record_autoptr(cluster) cluster = changed_cluster(op, error);
    return cluster && check_master_ip(op, cluster, error);
}

static char *show(const json_t *value)
{
    if (json_is_boolean(value))
        return g_strdup(json_is_true(value) ? "yes" : "no");
    return json_is_string(value) ? g_strdup(json_string_value(value)) : json_to_text(value);
}

static void log_changes(struct op *op, const struct cluster *before, const struct cluster *after)
{
    json_autoptr old = cluster_to_json(before);
    json_autoptr new = cluster_to_json(after);
    const char *key;
    json_t *value;
    json_object_foreach(new, key, value) {
        const json_t *was = json_object_get(old, key);
        if (json_equal((json_t *)was, value))
            continue;
        g_autofree char *from = show(was);
        g_autofree char *to = show(value);
        op_log(op, "%s: %s -> %s", key, from, to);
    }
}

static bool build_set(struct op *op, GPtrArray *changes, void *data, GError **error)
{
    record_autoptr(cluster) cluster = changed_cluster(op, error);
    if (!cluster)
        return false;
    op_put(op, changes, "cluster", cluster->uuid, cluster_to_json(cluster));
    return true;
}

static bool set_exec(struct op *op, GError **error)
{
    record_autoptr(cluster) before = cluster_copy(config_cluster(op_config(op)));
    if (!op_commit_built(op, "change_cluster", build_set, NULL, error))
        return false;
    log_changes(op, before, config_cluster(op_config(op)));
    return true;
}

const struct op_impl ops_cluster[] = {
    {"OP_CLUSTER_SET_PARAMS", set_declare, set_check, set_exec, SEES_NAMED},
    {NULL},
};
