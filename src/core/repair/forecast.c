/* See forecast.h. */
#include "core/repair/forecast.h"

#include <string.h>

#include "core/repair/policy.h"
#include "core/repair/repair_room.h"
#include "core/report/faults.h"
#include "core/watcher/storm.h"

struct forecast {
    struct config *config; /* nodes, tags, advice as they would be; instances are not in it */
    const GPtrArray *reports;
    struct placement_sums *sums;
    gint64 now;
    json_t *moves, *blocked;
};

/* An instance on its way. */
struct traveller {
    struct instance *instance;
    struct replica *replica; /* NULL: none */
    json_t *from, *operations;
    struct repair_policy policy;
    GString *failures; /* tags of repairs that failed, each with a space before it; NULL: none */
    bool pending;      /* a repair has begun, of one that … */
    enum repair_type pending_type; /* … may do this at most, whatever the policy says */
    enum repair_type needed;       /* of the first look: what the repair would have to be allowed */
};

static void traveller_clear(struct traveller *traveller)
{
    instance_free(traveller->instance);
    replica_free(traveller->replica);
    json_decref(traveller->from);
    json_decref(traveller->operations);
    if (traveller->failures != NULL)
        g_string_free(traveller->failures, true);
}

/* --- the world as it would be --- */

static void copy_kind(struct config *to, const struct config *from, const char *kind)
{
    g_autoptr(GPtrArray) all = config_list(from, kind);
    const struct field *uuid = record_field(object_record(kind), "uuid");
    for (guint i = 0; i < all->len; i++) {
        const char *key = *(char *const *)((const char *)all->pdata[i] + uuid->offset);
        config_set(to, kind, key, config_peek(from, kind, key));
    }
}

static void copy_tags(struct config *to, const struct config *from)
{
    g_autoptr(GPtrArray) all = config_list(from, "tag");
    for (guint i = 0; i < all->len; i++) {
        const struct tag *tag = all->pdata[i];
        g_autofree char *key = config_tag_key(tag->kind, tag->object, tag->tag);
        config_set(to, "tag", key, config_peek(from, "tag", key));
    }
}

static struct config *imagine(const struct config *config, const struct node *node,
                              enum forecast_event event, gint64 now)
{
    struct config *copy = config_new();
    static const char *const kinds[] = {"cluster", "nodegroup", "node", "advice"};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        copy_kind(copy, config, kinds[i]);
    copy_tags(copy, config);
    record_autoptr(node) changed = node_copy(node);
    changed->drained = true;
    if (event == FORECAST_FAIL) {
        changed->offline_since = node->offline ? node->offline_since : (guint64)now;
        changed->offline = true;
    }
    record_autoptr(change) change = config_put(copy, "node", node->uuid, node_to_json(changed));
    g_autoptr(GError) error = NULL;
    if (!config_apply(copy, change, &error))
        g_error("a copy of a node is no node: %s", error->message);
    return copy;
}

/* --- one instance --- */

static json_t *node_names(const struct config *config, const struct instance *instance)
{
    json_t *names = json_make("[s]", config_node_name(config, instance->primary_node));
    if (*instance->secondary_node)
        json_array_append_new(names,
                              json_string(config_node_name(config, instance->secondary_node)));
    return names;
}

static void add_operation(struct traveller *traveller, enum repair_step step)
{
    if (step == REPAIR_STEP_REINSTALL)
        json_array_append_new(traveller->operations, json_string("recreate-disks"));
    json_array_append_new(traveller->operations, json_string(repair_step_word(step)));
}

/* What would be on record after the step: a copy is taken to come in sync. */
static void travel(struct forecast *forecast, struct traveller *traveller,
                   const struct repair_plan *plan, const struct repair_goal *goal)
{
    record_autoptr(instance) before = instance_copy(traveller->instance);
    struct instance *instance = traveller->instance;
    g_free(instance->primary_node);
    instance->primary_node = g_strdup(goal->primary);
    g_free(instance->secondary_node);
    instance->secondary_node = g_strdup(goal->secondary);
    placement_sums_move(forecast->sums, before, instance);
    g_clear_pointer(&traveller->replica, replica_free);
    if (*goal->secondary && repair_template_mirrored(instance->disk_template)) {
        traveller->replica = replica_new();
        g_free(traveller->replica->node);
        traveller->replica->node = g_strdup(goal->secondary);
        traveller->replica->state = REPLICA_IN_SYNC;
    }
    add_operation(traveller, plan->step);
}

/* A pending repair goes on without a policy, or beyond it. */
static bool goes_on(struct traveller *traveller, const struct repair_plan *plan)
{
    if (!traveller->pending || traveller->pending_type < plan->step_type)
        return false;
    g_snprintf(traveller->policy.text, sizeof(traveller->policy.text), "%s, by a pending repair",
               repair_type_name(traveller->pending_type));
    return true;
}

/* Why nothing may be done about it, in the order of repair_triage.c; NULL if something may. */
static char *why_not(struct traveller *traveller, const struct repair_plan *plan)
{
    if (traveller->policy.kind == REPAIR_POLICY_SUSPENDED)
        return g_strdup_printf("repair is %s", traveller->policy.text);
    if (traveller->failures != NULL)
        return g_strdup_printf("an earlier repair failed, and nothing is touched until you have "
                               "looked into that and taken its tag away: fettle tag remove "
                               "instance %s%s",
                               traveller->instance->name, traveller->failures->str);
    if (plan->left != NULL)
        return g_strdup(plan->left);
    if (goes_on(traveller, plan))
        return NULL;
    if (traveller->policy.kind != REPAIR_POLICY_ENABLED)
        return g_strdup_printf("repair is %s", traveller->policy.text);
    if (traveller->policy.type < plan->needed)
        return g_strdup_printf("it needs %s, the policy allows %s", repair_type_name(plan->needed),
                               repair_type_name(traveller->policy.type));
    return NULL;
}

/* NULL: one more step was taken, or none is needed (`ret_healthy`); else why it goes no further. */
static char *next_step(struct forecast *forecast, struct traveller *traveller, bool *ret_healthy)
{
    const struct repair_evidence nothing = {0};
    struct repair_plan plan =
        repair_plan_of(forecast->config, traveller->instance, traveller->replica, &nothing);
    struct repair_goal goal = {0};
    char *reason = NULL;
    if (json_array_size(traveller->operations) == 0)
        traveller->needed = plan.needed;
    *ret_healthy = plan.healthy;
    if (plan.wait)
        traveller->replica->state = REPLICA_IN_SYNC; /* the copy that runs comes to its end */
    else if (!plan.healthy)
        reason = why_not(traveller, &plan);
    if (!plan.wait && !plan.healthy && reason == NULL &&
        repair_room_find(forecast->config, forecast->reports, forecast->sums, traveller->instance,
                         &plan, forecast->now, NULL, &goal, &reason))
        travel(forecast, traveller, &plan, &goal);
    repair_goal_clear(&goal);
    repair_plan_clear(&plan);
    return reason;
}

static void add_move(struct forecast *forecast, const struct traveller *traveller)
{
    if (json_array_size(traveller->operations) == 0)
        return; /* it is not touched by the loss */
    json_array_append_new(
        forecast->moves,
        json_make("{ss sO so sO ss ss}", "instance", traveller->instance->name, "from",
                  traveller->from, "to", node_names(forecast->config, traveller->instance),
                  "operations", traveller->operations, "type", repair_type_name(traveller->needed),
                  "policy", traveller->policy.text));
}

static void add_blocked(struct forecast *forecast, const struct traveller *traveller,
                        const char *reason)
{
    json_array_append_new(forecast->blocked,
                          json_make("{ss sO sO ss ss ss}", "instance", traveller->instance->name,
                                    "from", traveller->from, "operations", traveller->operations,
                                    "type", repair_type_name(traveller->needed), "policy",
                                    traveller->policy.text, "reason", reason));
}

static void read_tags(const struct forecast *forecast, struct traveller *traveller)
{
    g_autoptr(GPtrArray) tags =
        config_tags(forecast->config, TAG_INSTANCE, traveller->instance->uuid);
    for (guint i = 0; i < tags->len; i++) {
        struct repair_tag tag;
        repair_tag_parse(tags->pdata[i], &tag);
        if (tag.kind == REPAIR_TAG_RESULT && tag.outcome == REPAIR_FAILURE) {
            if (traveller->failures == NULL)
                traveller->failures = g_string_new(NULL);
            g_string_append_printf(traveller->failures, " %s", (char *)tags->pdata[i]);
        } else if (tag.kind == REPAIR_TAG_PENDING) {
            traveller->pending_type =
                traveller->pending ? MAX(traveller->pending_type, tag.type) : tag.type;
            traveller->pending = true;
        }
        repair_tag_clear(&tag);
    }
}

static struct traveller traveller_of(const struct forecast *forecast, const struct config *config,
                                     const struct instance *instance)
{
    const struct replica *replica =
        *instance->replica ? config_get(config, "replica", instance->replica, NULL) : NULL;
    struct traveller traveller = {
        .instance = instance_copy(instance),
        .replica = replica == NULL ? NULL : replica_copy(replica),
        .from = node_names(config, instance),
        .operations = json_array(),
        .policy = repair_policy_of(forecast->config, instance, forecast->now),
    };
    read_tags(forecast, &traveller);
    return traveller;
}

static void follow(struct forecast *forecast, const struct config *config,
                   const struct instance *instance)
{
    struct traveller traveller = traveller_of(forecast, config, instance);
    bool healthy = false;
    g_autofree char *reason = NULL;
    for (guint i = 0; i < LIMIT_PLAN_STEPS && !healthy && reason == NULL; i++)
        reason = next_step(forecast, &traveller, &healthy);
    if (reason == NULL && !healthy)
        reason = g_strdup_printf("%d steps do not mend it", LIMIT_PLAN_STEPS);
    if (reason == NULL)
        add_move(forecast, &traveller);
    else
        add_blocked(forecast, &traveller, reason);
    traveller_clear(&traveller);
}

/* --- the master --- */

/* Whether it is the loss of the node that all repair comes from. */
static bool takes_the_master(const struct config *config, const struct node *node,
                             enum forecast_event event)
{
    const struct cluster *cluster = config_cluster(config);
    return event == FORECAST_FAIL && cluster != NULL &&
           strcmp(cluster->master_node, node->uuid) == 0;
}

/* Who takes the master's place when it is lost (docs/guide/engines.md, candidates.md). */
enum heir {
    HEIR_NONE,     /* nobody can */
    HEIR_BY_WORD,  /* a candidate that a person names */
    HEIR_BY_ITSELF /* one that the candidates choose */
};

static enum heir heir_of(const struct config *config, const struct node *node)
{
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    guint candidates = 1, left = 0; /* the master is one, whatever its record says */
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *other = nodes->pdata[i];
        bool candidate = other->master_candidate && other != node;
        candidates += candidate;
        left += candidate && !other->offline;
    }
    if (config_cluster(config)->engine == ENGINE_KIND_ETCD)
        return 2 * left > candidates ? HEIR_BY_ITSELF : HEIR_NONE;
    return left > 0 ? HEIR_BY_WORD : HEIR_NONE;
}

/* What becomes of an instance that only a master could do something for. */
static char *without_master(const struct instance *instance, const struct node *node,
                            enum heir heir)
{
    bool word = heir == HEIR_BY_WORD;
    if (*instance->holder == '\0')
        return g_strdup(
            "it stays as it is: the master, which would do something about it, is away");
    if (strcmp(instance->primary_node, node->uuid) == 0)
        return g_strconcat("it is down until its node, the master, is back",
                           word ? ", or you make another node the master and say that this one is "
                                  "dead"
                                : "",
                           NULL);
    return g_strconcat(
        "it runs, but what it writes waits until the master, which has its replica, is back",
        word ? ", or you make another node the master" : "", NULL);
}

static void stay(struct forecast *forecast, const struct config *config,
                 const struct instance *instance, const struct node *node, enum heir heir)
{
    const struct repair_evidence nothing = {0};
    struct traveller traveller = traveller_of(forecast, config, instance);
    struct repair_plan plan =
        repair_plan_of(forecast->config, instance, traveller.replica, &nothing);
    g_autofree char *reason = without_master(instance, node, heir);
    traveller.needed = plan.needed;
    if (!plan.healthy)
        add_blocked(forecast, &traveller, reason);
    repair_plan_clear(&plan);
    traveller_clear(&traveller);
}

static json_t *what_to_do(const struct config *config, const struct node *node, enum heir heir)
{
    if (heir == HEIR_BY_WORD)
        return json_sprintf("What to do: bring %s back, with its disk: it starts its own guests "
                            "again, and the repair of all others goes on by itself. If it is gone "
                            "for longer, power it off and make another candidate the master, on "
                            "that one: fettle cluster master-failover. Then say that %s is dead: "
                            "fettle node modify %s --offline yes --statement \"…\".",
                            node->name, node->name, node->name);
    bool etcd = config_cluster(config)->engine == ENGINE_KIND_ETCD;
    return json_sprintf("What to do: bring %s back, with its disk; %s. Then it starts its own "
                        "guests again, and the repair of all others goes on by itself. So that "
                        "another node can take its place, have %s before: fettle node modify NODE "
                        "--master-candidate yes.",
                        node->name,
                        etcd ? "no majority of the members of etcd is left without it, so nobody "
                               "becomes the master"
                             : "no other node has a copy of the configuration",
                        etcd ? "three candidates that run" : "another candidate");
}

/* The same holds for instances that have nothing to do with that node. */
static void note_master(json_t *list, const struct config *config, const struct node *node)
{
    enum heir heir = heir_of(config, node);
    if (heir == HEIR_BY_ITSELF) {
        json_array_append_new(
            list, json_sprintf("%s is the master. The other candidates choose the next one, within "
                               "seconds; jobs that run end with an error, waiting ones go on. That "
                               "master does what is listed here once you say that %s is dead.",
                               node->name, node->name));
        return;
    }
    json_array_append_new(
        list, json_sprintf("%s is the master. While there is none no job runs and nobody repairs "
                           "anything, on no node: guests elsewhere run on, but one that ends is "
                           "not started again, and one that loses its replica writes nothing "
                           "until a master has put that on record.",
                           node->name));
    json_array_append_new(list, what_to_do(config, node, heir));
}

/* --- the storm brake --- */

/* Whoever does not answer now, or answers that its disks fail, will count as lost soon. */
static gint64 lost_for(const struct node *node, const void *data, const char **ret_how)
{
    const struct forecast *forecast = data;
    *ret_how = "does not answer";
    for (guint i = 0; i < forecast->reports->len; i++) {
        const struct node_report *report = forecast->reports->pdata[i];
        if (strcmp(report->node, node->uuid) != 0)
            continue;
        *ret_how = "has disks that fail";
        return faults_proven(report, FAULT_DISKS) != NULL ? 0 : -1;
    }
    return 0;
}

static const struct decision *latest_about_brake(const struct config *config)
{
    g_autoptr(GPtrArray) all = config_list(config, "decision");
    const struct decision *latest = NULL;
    guint64 newest = 0, version = 0;
    for (guint i = 0; i < all->len; i++) {
        const struct decision *decision = all->pdata[i];
        config_get(config, "decision", decision->uuid, &version);
        if (strcmp(decision->author, STORM_AUTHOR) != 0 || version < newest)
            continue;
        latest = decision;
        newest = version;
    }
    return latest;
}

/* What the watcher would find (brake.c). */
static void note_storm(json_t *list, const struct config *config, const struct forecast *forecast)
{
    const struct cluster *cluster = config_cluster(config);
    struct storm storm;
    const struct storm_view view = {.config = forecast->config,
                                    .now = forecast->now,
                                    .latest = latest_about_brake(config),
                                    .loss = lost_for,
                                    .data = forecast};
    storm_find(&storm, &view);
    if (storm_pulls(&storm, cluster)) {
        g_autofree char *text = storm_text(&storm, cluster);
        g_ptr_array_add(storm.texts, NULL);
        g_autofree char *lost = g_strjoinv("; ", (char **)storm.texts->pdata);
        json_array_append_new(
            list, json_sprintf("This would pull the storm brake: %s (%s.) Nothing of what is "
                               "listed here would be done before a person says: fettle repair "
                               "continue.",
                               text, lost));
    }
    storm_clear(&storm);
}

/* --- the answer --- */

static json_t *notes(const struct config *config, const struct node *node,
                     enum forecast_event event, const struct forecast *forecast)
{
    json_t *list = json_array();
    gint64 now = forecast->now;
    const struct cluster *cluster = config_cluster(config);
    if (takes_the_master(config, node, event))
        note_master(list, config, node);
    const struct repair_brake *brake = config_get(config, "repair_brake", "cluster", NULL);
    if (brake != NULL)
        json_array_append_new(list, json_sprintf("The storm brake is on, nothing is done until a "
                                                 "person says: fettle repair continue. %s",
                                                 brake->why));
    else if (cluster != NULL && event == FORECAST_FAIL)
        note_storm(list, config, forecast);
    if (cluster != NULL && cluster->repair_shadow)
        json_array_append_new(list, json_string("Shadow mode is on: this would only be decided "
                                                "and put on record."));
    g_autoptr(GPtrArray) advice = repair_advice_texts(config, now);
    for (guint i = 0; i < advice->len; i++)
        json_array_append_new(list, json_string(advice->pdata[i]));
    return list;
}

json_t *forecast_node(const struct config *config, const GPtrArray *reports,
                      const struct node *node, enum forecast_event event, gint64 now)
{
    struct forecast forecast = {
        .config = imagine(config, node, event, now),
        .reports = reports,
        .sums = placement_sums_new(config, reports),
        .now = now,
        .moves = json_array(),
        .blocked = json_array(),
    };
    bool master = takes_the_master(config, node, event);
    enum heir heir = master ? heir_of(config, node) : HEIR_BY_ITSELF;
    g_autoptr(GPtrArray) instances = config_node_instances(config, node->uuid);
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (strcmp(instance->primary_node, node->uuid) == 0 ||
            strcmp(instance->secondary_node, node->uuid) == 0) {
            if (heir != HEIR_BY_ITSELF)
                stay(&forecast, config, instance, node, heir);
            else
                follow(&forecast, config, instance);
        }
    }
    json_t *answer = json_make("{ss ss so so so}", "node", node->name, "event",
                               event == FORECAST_FAIL ? "fail" : "drain", "notes",
                               notes(config, node, event, &forecast), "moves", forecast.moves,
                               "blocked", forecast.blocked);
    placement_sums_free(forecast.sums);
    config_free(forecast.config);
    return answer;
}
