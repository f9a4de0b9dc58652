/* What must be true of the configuration at any time; see invariants.h. */
#include "core/config/invariants.h"
#include "base/text.h"
#include "core/config/addresses.h"
#include "core/config/fault.h"
#include "core/config/ports.h"
#include "core/config/restored.h"
#include "proto/master_ip.h"
#include "proto/webhook/webhook.h"

#include <string.h>

/* A rule about one object of a kind. */
typedef bool (*state_rule)(const struct config *config, const void *object, GError **error);

static bool is_own_address(const struct config *config, const char *address, GError **error)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        if (!master_ip_same(node->primary_ip, address))
            continue;
        fettle_set_error(error, ALREADY_EXISTS,
                         "master_ip: %s is the address of node \"%s\"; it needs one of its own",
                         address, node->name);
        return true;
    }
    return false;
}

static bool is_guests_address(const struct config *config, const char *address, GError **error)
{
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        for (guint n = 0; n < instance->nics->len; n++) {
            if (!master_ip_same(((const struct nic *)instance->nics->pdata[n])->ip, address))
                continue;
            fettle_set_error(error, ALREADY_EXISTS,
                             "master_ip: %s is the address of network card %u of instance \"%s\"",
                             address, n, instance->name);
            return true;
        }
    }
    return false;
}

/* Whose address it is otherwise would lose what is sent to it. */
static bool master_ip_rule(const struct config *config, const struct cluster *cluster,
                           GError **error)
{
    g_autofree char *address = NULL;
    guint netmask;
    if (!*cluster->master_ip)
        return true;
    g_autofree char *text =
        g_strdup_printf("%s/%" G_GUINT64_FORMAT, cluster->master_ip, cluster->master_netmask);
    return master_ip_parse(text, &address, &netmask, error) &&
           master_ip_check_netdev(cluster->master_netdev, error) &&
           !is_own_address(config, address, error) && !is_guests_address(config, address, error);
}

/* Who is late once is not down. */
static bool beats_rule(const struct cluster *cluster, GError **error)
{
    if (cluster->service_down_time >= 2 * cluster->report_interval)
        return true;
    fettle_set_error(error, WRONG_INPUT,
                     "report_interval: %" G_GUINT64_FORMAT
                     " s is more than half of service_down_time, %" G_GUINT64_FORMAT " s",
                     cluster->report_interval, cluster->service_down_time);
    return false;
}

static bool cluster_rule(const struct config *config, const void *object, GError **error)
{
    const struct cluster *cluster = object;
    if (config_count(config, "cluster") > 1) {
        fettle_set_error(error, ALREADY_EXISTS, "there is a cluster already; a store has one");
        return false;
    }
    g_autofree char *mac = g_strdup_printf("%s:00:00:01", cluster->mac_prefix);
    if (!invariants_mac_is_good(mac)) {
        fettle_set_error(error, WRONG_INPUT,
                         "mac_prefix: \"%s\" does not begin the address of a card, as aa:00:00 "
                         "does",
                         cluster->mac_prefix);
        return false;
    }
    for (guint i = 0; i < cluster->webhook_allow->len; i++)
        if (!webhook_network_check(cluster->webhook_allow->pdata[i], error))
            return false;
    struct port_range ports;
    return port_range_parse(cluster->port_range, &ports, error) && beats_rule(cluster, error) &&
           master_ip_rule(config, cluster, error) &&
           invariants_exists(config, "node", cluster->master_node, "master_node", error);
}

static bool nodegroup_rule(const struct config *config, const void *object, GError **error)
{
    const struct nodegroup *group = object;
    return invariants_unique_name(config, "nodegroup", group->name, error);
}

static bool node_rule(const struct config *config, const void *object, GError **error)
{
    const struct node *node = object;
    if (config_get(config, "revoked", node->uuid, NULL)) {
        fettle_set_error(error, PERMISSION,
                         "its certificate was revoked when it was removed; the host gets a new one "
                         "with a token of `fettle node invite`");
        return false;
    }
    return invariants_unique_name(config, "node", node->name, error) &&
           invariants_no_master_ip(config, "primary_ip", node->primary_ip, error) &&
           invariants_exists(config, "nodegroup", node->group, "group", error);
}

/* So that a name can be sent by Basic authentication, and stand in a file of users. */
static bool rapi_user_rule(const struct config *config, const void *object, GError **error)
{
    const struct rapi_user *user = object;
    g_autofree char *control = text_control(user->name);
    if (control || strpbrk(user->name, ": ") || *user->name == '#')
        fettle_set_error(
            error, WRONG_INPUT,
            "name: may have no blank, no \":\" and no control character, and may not begin "
            "with \"#\"");
    else if (*user->hash != '$' || strpbrk(user->hash, " :\n"))
        fettle_set_error(error, WRONG_INPUT,
                         "hash: must be a password as crypt(3) keeps one, as $y$…");
    else
        return invariants_unique_name(config, "rapi_user", user->name, error);
    return false;
}

static bool webhook_rule(const struct config *config, const void *object, GError **error)
{
    const struct webhook *webhook = object;
    g_autofree char *control = text_control(webhook->name);
    g_autoptr(webhook_url_t) url = webhook_url_parse(webhook->url, error);
    for (guint i = 0; url && i < webhook->events->len; i++)
        if (!webhook_pattern_check(webhook->events->pdata[i], error))
            return false;
    if (!url)
        return false;
    if (control || strchr(webhook->name, ' ') || *webhook->name == '-')
        fettle_set_error(error, WRONG_INPUT,
                         "name: may have no blank and no control character, and may not begin with "
                         "\"-\"");
    else if (config_count(config, "webhook") > LIMIT_WEBHOOKS)
        fettle_set_error(error, LIMIT, "there are %d webhooks already", LIMIT_WEBHOOKS);
    else
        return invariants_unique_name(config, "webhook", webhook->name, error);
    return false;
}

static bool webhook_mark_rule(const struct config *config, const void *object, GError **error)
{
    const struct webhook_mark *mark = object;
    return invariants_exists(config, "webhook", mark->uuid, "uuid", error);
}

/* Its key is made of both, so no two can be of the same. */
static bool service_rule(const struct config *config, const void *object, GError **error)
{
    const struct service *service = object;
    g_autofree char *key = config_service_key(service->node, service->name);
    if (strcmp(service->uuid, key) == 0)
        return invariants_exists(config, "node", service->node, "node", error);
    fettle_set_error(error, WRONG_INPUT, "uuid: that of service %s of node %s is %s", service->name,
                     service->node, key);
    return false;
}

static bool replica_rule(const struct config *config, const void *object, GError **error)
{
    const struct replica *replica = object;
    if (!invariants_exists(config, "instance", replica->instance, "instance", error) ||
        !invariants_exists(config, "node", replica->node, "node", error))
        return false;
    const struct instance *instance = config_get(config, "instance", replica->instance, NULL);
    if (strcmp(instance->replica, replica->uuid) != 0) {
        fettle_set_error(error, WRONG_STATE,
                         "instance %s has the replica \"%s\"; it can have one only", instance->name,
                         instance->replica);
        return false;
    }
    bool wrong = replica->state == REPLICA_IN_SYNC ? replica->generation != instance->generation
                                                   : replica->generation > instance->generation;
    if (!wrong)
        return true;
    fettle_set_error(error, UNSAFE,
                     "%s with generation %" G_GUINT64_FORMAT
                     ", but instance %s is at generation %" G_GUINT64_FORMAT,
                     enum_word(&replica_state_words, (int)replica->state), replica->generation,
                     instance->name, instance->generation);
    return false;
}

static bool removed_rule(const struct config *config, const void *object, GError **error)
{
    const struct removed *removed = object;
    if (!config_get(config, "instance", removed->uuid, NULL))
        return true;
    fettle_set_error(error, WRONG_STATE, "the instance is there; it cannot be removed and exist");
    return false;
}

static bool tag_rule(const struct config *config, const void *object, GError **error)
{
    const struct tag *tag = object;
    return invariants_exists(config, enum_word(&tag_kind_words, (int)tag->kind), tag->object,
                             "object", error);
}

static bool subject_rule(const struct config *config, const char *kind, const char *subject_kind,
                         const char *subject, const void *object, GError **error)
{
    g_autofree char *key = fault_key(subject_kind, subject);
    if (config_get(config, kind, key, NULL) != object) {
        fettle_set_error(error, WRONG_INPUT, "its key is not %s", key);
        return false;
    }
    return invariants_exists(config, subject_kind, subject, "subject", error);
}

static bool fault_rule(const struct config *config, const void *object, GError **error)
{
    const struct fault *fault = object;
    return subject_rule(config, "fault", fault->subject_kind, fault->subject, object, error);
}

static bool stuck_rule(const struct config *config, const void *object, GError **error)
{
    const struct stuck *stuck = object;
    return subject_rule(config, "stuck", stuck->subject_kind, stuck->subject, object, error);
}

static bool advice_rule(const struct config *config, const void *object, GError **error)
{
    const struct advice *advice = object;
    if (strcmp(advice->subject_kind, "node") != 0) {
        fettle_set_error(error, WRONG_INPUT,
                         "subject_kind: there is advice about nodes only, not about \"%s\"",
                         advice->subject_kind);
        return false;
    }
    if (strcmp(advice->advice, "avoid") != 0) {
        fettle_set_error(error, WRONG_INPUT, "advice: \"%s\" is unknown; there is: avoid",
                         advice->advice);
        return false;
    }
    return invariants_exists(config, "node", advice->subject, "subject", error);
}

static bool rooms_rule(const struct config *config, const struct reservation *reservation,
                       GError **error)
{
    for (guint i = 0; i < reservation->rooms->len; i++) {
        const struct reserved_room *room = reservation->rooms->pdata[i];
        g_autofree char *field = g_strdup_printf("rooms[%u].node", i);
        if (!invariants_exists(config, "node", room->node, field, error))
            return false;
        for (guint k = 0; k < i; k++) {
            if (strcmp(((const struct reserved_room *)reservation->rooms->pdata[k])->node,
                       room->node) != 0)
                continue;
            fettle_set_error(error, WRONG_INPUT, "%s: %s is named twice", field,
                             config_node_name(config, room->node));
            return false;
        }
    }
    return true;
}

static bool addresses_rule(const struct config *config, const struct reservation *reservation,
                           const char *field, const GPtrArray *addresses, GError **error)
{
    for (guint i = 0; i < addresses->len; i++) {
        const char *address = addresses->pdata[i];
        g_autofree char *user = config_address_user(config, address, reservation->uuid);
        if (!user)
            continue;
        fettle_set_error(error, ALREADY_EXISTS, "%s[%u]: %s is taken by %s", field, i, address,
                         user);
        return false;
    }
    return true;
}

static bool port_rule(const struct config *config, const struct reservation *reservation,
                      GError **error)
{
    guint64 port = reservation->port;
    g_autofree char *key = config_port_key(port);
    g_autofree char *user = port ? config_address_user(config, key, reservation->uuid) : NULL;
    if (user)
        fettle_set_error(error, ALREADY_EXISTS, "port: %" G_GUINT64_FORMAT " is taken by %s", port,
                         user);
    return user == NULL;
}

/* Nothing counts twice (FUT-07): it goes with the change that makes its instance. */
static bool reservation_rule(const struct config *config, const void *object, GError **error)
{
    const struct reservation *reservation = object;
    if (config_get(config, "instance", reservation->uuid, NULL)) {
        fettle_set_error(error, WRONG_STATE,
                         "the instance is there; a reservation ends when it turns into one");
        return false;
    }
    for (guint i = 0; i < reservation->macs->len; i++) {
        if (invariants_mac_is_good(reservation->macs->pdata[i]))
            continue;
        fettle_set_error(error, WRONG_INPUT, "macs[%u]: \"%s\" is not the address of one card", i,
                         (const char *)reservation->macs->pdata[i]);
        return false;
    }
    return rooms_rule(config, reservation, error) &&
           addresses_rule(config, reservation, "macs", reservation->macs, error) &&
           addresses_rule(config, reservation, "ips", reservation->ips, error) &&
           port_rule(config, reservation, error);
}

/* Its key is checked here, because it has no other identity. */
static bool brake_rule(const struct config *config, const void *object, GError **error)
{
    if (config_get(config, "repair_brake", "cluster", NULL) == object &&
        config_count(config, "repair_brake") == 1)
        return true;
    fettle_set_error(error, WRONG_INPUT, "there is one brake for all; its key is \"cluster\"");
    return false;
}

static const struct {
    const char *kind;
    state_rule rule;
} state_rules[] = {
    {"cluster", cluster_rule},
    {"nodegroup", nodegroup_rule},
    {"network", invariants_network},
    {"node", node_rule},
    {"instance", invariants_instance},
    {"replica", replica_rule},
    {"removed", removed_rule},
    {"tag", tag_rule},
    {"advice", advice_rule},
    {"reservation", reservation_rule},
    {"repair_brake", brake_rule},
    {"service", service_rule},
    {"fault", fault_rule},
    {"stuck", stuck_rule},
    {"backend", invariants_backend},
    {"storage_service", invariants_storage_service},
    {"worker", invariants_worker},
    {"volume_type", invariants_volume_type},
    {"volume", invariants_volume},
    {"snapshot", invariants_snapshot},
    {"backup", invariants_backup},
    {"image", invariants_image},
    {"trash", invariants_trash},
    {"cleanup", invariants_cleanup},
    {"api_front_end", invariants_front_end},
    {"rapi_user", rapi_user_rule},
    {"webhook", webhook_rule},
    {"webhook_mark", webhook_mark_rule},
};

static state_rule rule_of(const char *kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(state_rules); i++) {
        if (strcmp(state_rules[i].kind, kind) == 0)
            return state_rules[i].rule;
    }
    return NULL;
}

static bool check_object(const struct config *config, const char *kind, const char *key,
                         const void *object, GError **error)
{
    state_rule rule = rule_of(kind);
    if (!object || !rule || rule(config, object, error))
        return true;
    g_autofree char *subject = invariants_subject(kind, key, object);
    g_prefix_error(error, "%s: ", subject);
    return false;
}

/* --- those who refer to what has changed --- */

/* Cards are judged by their network. */
static bool cards_fit(const struct config *config, const struct network *network, GError **error)
{
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (network_has(network, instance) &&
            !check_object(config, "instance", instance->uuid, instance, error))
            return false;
    }
    return true;
}

/* An instance and its replica are judged together: a change of one can break the other. */
static bool check_partner(const struct config *config, const struct config_delta *delta,
                          GError **error)
{
    if (!strcmp(delta->kind, "instance")) {
        const struct instance *instance = delta->after ? delta->after : delta->before;
        if (!check_object(config, "reservation", instance->uuid,
                          config_get(config, "reservation", instance->uuid, NULL), error))
            return false;
        const char *old = delta->before ? ((const struct instance *)delta->before)->replica : "";
        return check_object(config, "replica", instance->replica,
                            config_get(config, "replica", instance->replica, NULL), error) &&
               check_object(config, "replica", old, config_get(config, "replica", old, NULL),
                            error);
    }
    if (!strcmp(delta->kind, "network"))
        return !delta->before || !delta->after || cards_fit(config, delta->after, error);
    if (!strcmp(delta->kind, "replica")) {
        const struct replica *replica = delta->after ? delta->after : delta->before;
        return check_object(config, "instance", replica->instance,
                            config_get(config, "instance", replica->instance, NULL), error);
    }
    return true;
}

bool invariants_check_state(const struct config *after, const GPtrArray *deltas, GError **error)
{
    for (guint i = 0; i < deltas->len; i++) {
        const struct config_delta *delta = deltas->pdata[i];
        bool whole = delta->after
                         ? check_object(after, delta->kind, delta->key, delta->after, error)
                         : !delta->before || invariants_deleted(after, delta, error);
        if (!whole || !check_partner(after, delta, error))
            return false;
    }
    return true;
}

bool invariants_check(const struct config *after, const GPtrArray *deltas,
                      enum invariants_author author, GError **error)
{
    return invariants_check_steps(after, deltas, author, error) &&
           invariants_check_state(after, deltas, error);
}

struct problems {
    const struct config *config;
    GPtrArray *list;
    guint max;
};

static void note_problem(const char *kind, const char *key, guint64 version, const void *value,
                         void *data)
{
    struct problems *problems = data;
    g_autoptr(GError) error = NULL;
    if (problems->list->len < problems->max &&
        !check_object(problems->config, kind, key, value, &error))
        g_ptr_array_add(problems->list, g_strdup(error->message));
}

/* Valid while a job migrates it; without one somebody has to settle it. */
static void note_migrations(struct problems *problems)
{
    g_autoptr(GPtrArray) instances = config_list(problems->config, "instance");
    for (guint i = 0; i < instances->len && problems->list->len < problems->max; i++) {
        const struct instance *instance = instances->pdata[i];
        if (*instance->migration && instance->task_state == TASK_NONE)
            g_ptr_array_add(
                problems->list,
                g_strdup_printf("instance \"%s\": a migration to %s is on record and "
                                "no job is at it; settle it: fettle instance migrate "
                                "%s --cleanup",
                                instance->name,
                                config_node_name(problems->config, instance->migration_node),
                                instance->name));
    }
}

/* Valid, and older than what really is. */
static void note_restored(struct problems *problems)
{
    const struct repair_brake *brake = restored_brake(problems->config);
    if (brake && problems->list->len < problems->max)
        g_ptr_array_add(problems->list,
                        g_strdup_printf("%s Nothing starts, stops or moves until a person says: "
                                        "fettle repair continue",
                                        brake->why));
}

static int compare_problems(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *invariants_problems(const struct config *config, guint max)
{
    struct problems problems = {config, g_ptr_array_new_with_free_func(g_free), max};
    config_each(config, note_problem, &problems);
    note_migrations(&problems);
    note_restored(&problems);
    g_ptr_array_sort(problems.list, compare_problems);
    return problems.list;
}
