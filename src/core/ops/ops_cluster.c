/*
 * OP_CLUSTER_SET_PARAMS: settings of the cluster. The fields of the opcode are those of the record
 * by name; the record says within which bounds.
 */
#include "core/ops/ops.h"

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

/* Puts everything that is asked for into `cluster`. */
static bool apply(const struct op *op, json_t *cluster, guint *ret_count, GError **error)
{
    json_autoptr params = record_to_json(&op_cluster_set_params_record, op->params);
    *ret_count = 0;
    for (const struct field *field = op_cluster_set_params_record.fields(); field->name; field++) {
        GError *local = NULL;
        json_t *value = wanted(field, params, &local);
        if (local) {
            g_propagate_error(error, local);
            return false;
        }
        if (!value)
            continue;
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
    guint count = 0;
    json_autoptr json = cluster_to_json(now);
    if (!apply(op, json, &count, error))
        return NULL;
    if (!count) {
        fettle_set_error(error, WRONG_INPUT, "nothing to change: name at least one setting");
        return NULL;
    }
    record_autoptr(cluster) cluster = cluster_parse(json, RECORD_KEEP, error);
    if (!cluster || !prefix_is_good(cluster, error))
        return NULL;
    g_autofree char *lower = g_ascii_strdown(cluster->mac_prefix, -1);
    op_set_text(&cluster->mac_prefix, lower);
    return g_steal_pointer(&cluster);
}

static bool set_check(struct op *op, GError **error)
{
    record_autoptr(cluster) cluster = changed_cluster(op, error);
    return cluster != NULL;
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
    json_object_foreach(new, key, value)
    {
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
    {"OP_CLUSTER_SET_PARAMS", set_declare, set_check, set_exec},
    {NULL},
};
