/* See forecast.h. */
#include "core/repair/forecast.h"

#include <string.h>

#include "core/config/fault.h"
#include "core/repair/forecast_master.h"
#include "core/repair/repair_private.h"
#include "core/repair/repair_room.h"
#include "core/repair/stand.h"
#include "core/report/faults.h"
#include "core/report/late.h"
#include "core/report/report_lookup.h"
#include "core/watcher/storm.h"

struct forecast {
    struct config *config;    /* nodes, tags, advice as they would be; instances are not in it */
    const GPtrArray *reports; /* without that of a node that fails */
    struct placement_sums *sums;
    gint64 now;
    json_t *moves, *blocked, *notes;
    bool held; /* nothing of it would be done as things are */
};

/* An instance on its way. */
struct traveller {
    struct instance *instance;
    struct replica *replica; /* NULL: none */
    json_t *from, *operations;
    struct repair_policy policy;
    GString *failures; /* tags of repairs that failed, each with a space before it; NULL: none */
    bool moved;        /* it is to be started on another node */
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

/* --- what the nodes say --- */

static const struct node_report *report_of(const struct forecast *forecast, const char *node)
{
    for (guint i = 0; i < forecast->reports->len; i++) {
        const struct node_report *report = forecast->reports->pdata[i];
        if (strcmp(report->node, node) == 0)
            return report;
    }
    return NULL;
}

/* How the disks of a node fail; NULL: they are not known to. The watcher waits until it is certain
 * (failed_disks.c); here it is taken to last. */
static const char *disks_failed(const struct forecast *forecast, const char *node)
{
    const struct node_report *report = report_of(forecast, node);
    const struct node_fault *fault = report != NULL ? faults_find(report, FAULT_DISKS) : NULL;
    return fault != NULL && !fault->silent ? fault->text : NULL;
}

/* Whether the node of the replica answers that it lacks images of it, as in evidence.c; one of an
 * older version may not say which it has. */
static bool replica_broken(const struct forecast *forecast, const struct traveller *traveller,
                           guint64 *ret_disks)
{
    const struct instance *instance = traveller->instance;
    const struct replica *replica = traveller->replica;
    const struct node_report *report = replica != NULL ? report_of(forecast, replica->node) : NULL;
    if (report == NULL || !report->faults_known || *replica->uuid == '\0' ||
        replica->state != REPLICA_IN_SYNC || instance->task_state != TASK_NONE ||
        *instance->migration != '\0' || late_part_of(report, PART_DISKS) != NULL)
        return false;
    *ret_disks = report_images(report, instance, replica->uuid);
    return !images_are_whole(instance, *ret_disks);
}

/* Of the generation on record, as far as it has answered; what else is told of it is no news. */
static const struct guest_report *guest_of(const struct node_report *report,
                                           const struct instance *instance)
{
    const struct guest_report *guest = report != NULL ? report_guest(report, instance) : NULL;
    return guest != NULL && guest->generation == instance->generation ? guest : NULL;
}

/* It stands still for lack of room, and the node of its replica has some; as in evidence.c. */
static bool moves_for_room(const struct forecast *forecast, const struct traveller *traveller,
                           const struct guest_report *guest)
{
    const struct replica *replica = traveller->replica;
    if (guest == NULL || guest->io_stop != IO_STOP_NO_SPACE || *guest->io_volume || replica == NULL)
        return false;
    const struct node_report *report = report_of(forecast, replica->node);
    return report != NULL && replica->state == REPLICA_IN_SYNC &&
           traveller->instance->task_state == TASK_NONE && watcher_node_has_room(report);
}

static const char *starts_nothing(const struct forecast *forecast, const char *node, bool images)
{
    const struct node_report *report = report_of(forecast, node);
    return report != NULL ? faults_forbids(report, images) : NULL;
}

/* Why the node of one that does nothing can neither start it nor hand it over; as in evidence.c. */
static const char *barred(const struct forecast *forecast, const struct traveller *traveller,
                          bool rests)
{
    const struct instance *instance = traveller->instance;
    const struct replica *replica = traveller->replica;
    bool other = replica == NULL || starts_nothing(forecast, replica->node, true) == NULL;
    return rests && other && instance->admin_state == ADMIN_UP && *instance->migration == '\0'
               ? starts_nothing(forecast, instance->primary_node, false)
               : NULL;
}

static struct repair_evidence seen_of(const struct forecast *forecast,
                                      const struct traveller *traveller)
{
    const struct instance *instance = traveller->instance;
    const struct node_report *report = report_of(forecast, instance->primary_node);
    guint64 disks = 0;
    bool broken = replica_broken(forecast, traveller, &disks);
    const struct guest_report *guest = guest_of(report, instance);
    bool absent = report != NULL && !traveller->moved && watcher_guest_absent(instance, guest);
    if (guest != NULL && guest->late)
        guest = NULL;
    bool no_room = moves_for_room(forecast, traveller, guest);
    bool failed = guest != NULL && guest->io_stop == IO_STOP_FAILED && !traveller->moved;
    return (struct repair_evidence){
        .guest = guest,
        .guest_failed = failed ? "holds its guest for ever, although there is room" : NULL,
        .primary_barred = barred(forecast, traveller, absent || no_room),
        .no_room = no_room && starts_nothing(forecast, instance->primary_node, false) == NULL,
        .replica_broken = broken,
        .replica_images = disks,
        .primary_failed = disks_failed(forecast, instance->primary_node),
        .secondary_failed =
            traveller->replica != NULL ? disks_failed(forecast, traveller->replica->node) : NULL,
    };
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
    traveller->moved |= strcmp(instance->primary_node, goal->primary) != 0;
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
static bool goes_on(const struct traveller *traveller, const struct repair_plan *plan)
{
    return traveller->pending && traveller->pending_type >= plan->step_type && plan->left == NULL;
}

/* Why nothing may be done about it, in the watcher's order; NULL if something may. */
static char *why_not(struct traveller *traveller, const struct repair_plan *plan)
{
    switch (repair_stand_of(&traveller->policy, traveller->failures != NULL,
                            goes_on(traveller, plan), plan)) {
    case STAND_SUSPENDED:
    case STAND_NOT_ENABLED:
        return g_strdup_printf("repair is %s", traveller->policy.text);
    case STAND_FAILED:
        return g_strdup_printf("an earlier repair failed, and nothing is touched until you have "
                               "looked into that and taken its tag away: fettle tag remove "
                               "instance %s%s",
                               traveller->instance->name, traveller->failures->str);
    case STAND_LEFT:
        return g_strdup(plan->left);
    case STAND_ENOPERM:
        return g_strdup_printf("it needs %s, the policy allows %s", repair_type_name(plan->needed),
                               repair_type_name(traveller->policy.type));
    case STAND_PENDING: /* it may have begun just now */
        if (json_array_size(traveller->operations) == 0)
            g_snprintf(traveller->policy.text, sizeof(traveller->policy.text),
                       "%s, by a pending repair", repair_type_name(traveller->pending_type));
        break;
    case STAND_HEALTHY:
    case STAND_COPYING:
    case STAND_REPAIR:
        break;
    }
    return NULL;
}

/* Without an answer of the primary's node the watcher waits (repair_next.c). */
static char *why_waits(const struct forecast *forecast, const struct traveller *traveller,
                       const struct repair_plan *plan)
{
    const char *primary = traveller->instance->primary_node;
    if (!repair_plan_needs_primary(plan, traveller->instance) ||
        report_of(forecast, primary) != NULL)
        return NULL;
    return g_strdup_printf("its primary node %s does not answer, and %s needs it",
                           config_node_name(forecast->config, primary),
                           repair_step_name(plan->step));
}

/* A failover takes the only copy where it is, also to a node that can start nothing: it waits there
 * for its node, as it would have waited here. */
static char *why_rests(const struct forecast *forecast, const struct traveller *traveller)
{
    const struct instance *instance = traveller->instance;
    const struct node_report *report = report_of(forecast, instance->primary_node);
    const char *why = report != NULL ? faults_forbids(report, false) : NULL;
    if (!traveller->moved || instance->admin_state != ADMIN_UP || why == NULL)
        return NULL;
    return g_strdup_printf("%s %s, and starts nothing until it can",
                           config_node_name(forecast->config, instance->primary_node), why);
}

/* NULL: the step was taken; else why not. */
static char *take_step(struct forecast *forecast, struct traveller *traveller,
                       const struct repair_plan *plan)
{
    struct repair_goal goal = {0};
    char *reason = why_rests(forecast, traveller);
    if (reason == NULL)
        reason = why_not(traveller, plan);
    if (reason == NULL)
        reason = why_waits(forecast, traveller, plan);
    if (reason == NULL &&
        repair_room_find(forecast->config, forecast->reports, forecast->sums, traveller->instance,
                         plan, forecast->now, NULL, &goal, &reason)) {
        travel(forecast, traveller, plan, &goal);
        traveller->pending_type =
            traveller->pending ? MAX(traveller->pending_type, plan->needed) : plan->needed;
        traveller->pending = true;
    }
    repair_goal_clear(&goal);
    return reason;
}

/* NULL: one more step was taken, or none is needed (`ret_healthy`); else why it goes no further. */
static char *next_step(struct forecast *forecast, struct traveller *traveller, bool *ret_healthy)
{
    const struct repair_evidence sight = seen_of(forecast, traveller);
    struct repair_plan plan =
        repair_plan_of(forecast->config, traveller->instance, traveller->replica, &sight);
    char *reason = NULL;
    if (json_array_size(traveller->operations) == 0)
        traveller->needed = plan.needed;
    *ret_healthy = plan.healthy;
    if (plan.wait)
        traveller->replica->state = REPLICA_IN_SYNC; /* the copy that runs comes to its end */
    else if (!plan.healthy)
        reason = take_step(forecast, traveller, &plan);
    repair_plan_clear(&plan);
    return reason;
}

/* `left`: why it would not be whole then; NULL: it would. */
static void add_move(struct forecast *forecast, const struct traveller *traveller, const char *left)
{
    if (json_array_size(traveller->operations) == 0)
        return; /* it is not touched by the loss */
    json_t *move = json_make(
        "{ss sO so sO ss ss}", "instance", traveller->instance->name, "from", traveller->from, "to",
        node_names(forecast->config, traveller->instance), "operations", traveller->operations,
        "type", repair_type_name(traveller->needed), "policy", traveller->policy.text);
    if (left != NULL)
        json_object_set_new(move, "left", json_string(left));
    json_array_append_new(forecast->moves, move);
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
    fault_enforce(config, traveller.instance);
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
    /* What can be done is done, whether or not more can. */
    if (reason == NULL || json_array_size(traveller.operations) > 0)
        add_move(forecast, &traveller, reason);
    else
        add_blocked(forecast, &traveller, reason);
    traveller_clear(&traveller);
}

/* --- the storm brake --- */

/* Whoever does not answer now, or answers that its disks fail, will count as lost soon. */
static gint64 lost_for(const struct node *node, const void *data, const char **ret_how)
{
    const struct forecast *forecast = data;
    const struct node_report *report = report_of(forecast, node->uuid);
    *ret_how = report != NULL ? "has disks that fail" : "does not answer";
    return report == NULL || faults_proven(report, FAULT_DISKS) != NULL ? 0 : -1;
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
static void note_storm(struct forecast *forecast, const struct config *config)
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
        forecast->held = true;
        json_array_append_new(
            forecast->notes,
            json_sprintf("This would pull the storm brake: %s (%s.) Nothing of what is "
                         "listed here would be done before a person says: fettle repair "
                         "continue.",
                         text, lost));
    }
    storm_clear(&storm);
}

/* --- what holds everything up --- */

static void hold(struct forecast *forecast, json_t *note)
{
    forecast->held = true;
    json_array_append_new(forecast->notes, note);
}

/* What persons have switched off. */
static void note_switches(struct forecast *forecast, const struct config *config)
{
    const struct cluster *cluster = config_cluster(config);
    const struct switches *switches = config_switches(config);
    if (cluster != NULL && cluster->repair_shadow)
        hold(forecast, json_string("Shadow mode is on: this would only be decided and put on "
                                   "record."));
    if (switches != NULL && (gint64)switches->watcher_paused_until > forecast->now) {
        g_autofree char *until = text_time((gint64)switches->watcher_paused_until);
        hold(forecast, json_sprintf("The watcher is paused until %s, and does nothing before; to "
                                    "end that: fettle queue pause-watcher 0.",
                                    until));
    }
    if (switches != NULL && switches->drained)
        hold(forecast, json_string("The queue is drained: no job is taken, none of auto-repair "
                                   "either, until: fettle queue undrain."));
}

static void note_all(struct forecast *forecast, const struct config *config,
                     enum forecast_event event)
{
    const struct repair_brake *brake = config_get(config, "repair_brake", "cluster", NULL);
    if (brake != NULL)
        hold(forecast, json_sprintf("The storm brake is on, nothing is done until a person says: "
                                    "fettle repair continue. %s",
                                    brake->why));
    else if (config_cluster(config) != NULL && event == FORECAST_FAIL)
        note_storm(forecast, config);
    note_switches(forecast, config);
    g_autoptr(GPtrArray) advice = repair_advice_texts(config, forecast->now);
    for (guint i = 0; i < advice->len; i++)
        json_array_append_new(forecast->notes, json_string(advice->pdata[i]));
}

/* --- without a master --- */

/* What would have to be done, and nobody does. */
static void stay(struct forecast *forecast, const struct config *config,
                 const struct instance *instance, const struct node *node,
                 const struct forecast_master *master)
{
    const struct repair_evidence nothing = {0};
    struct traveller traveller = traveller_of(forecast, config, instance);
    struct repair_plan plan =
        repair_plan_of(forecast->config, instance, traveller.replica, &nothing);
    g_autofree char *reason = forecast_master_without(master, instance, node);
    traveller.needed = plan.needed;
    if (!plan.healthy)
        add_blocked(forecast, &traveller, reason);
    repair_plan_clear(&plan);
    traveller_clear(&traveller);
}

/* --- the answer --- */

/* A node that fails says nothing any more. */
static GPtrArray *reports_without(const GPtrArray *reports, const struct node *node,
                                  enum forecast_event event)
{
    GPtrArray *list = g_ptr_array_new();
    for (guint i = 0; i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        if (event == FORECAST_DRAIN || strcmp(report->node, node->uuid) != 0)
            g_ptr_array_add(list, (void *)report);
    }
    return list;
}

static void follow_all(struct forecast *forecast, const struct config *config,
                       const struct node *node, const struct forecast_master *master)
{
    g_autoptr(GPtrArray) instances = config_node_instances(config, node->uuid);
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        if (strcmp(instance->primary_node, node->uuid) != 0 &&
            strcmp(instance->secondary_node, node->uuid) != 0)
            continue;
        if (forecast_master_repairs(master))
            follow(forecast, config, instance);
        else
            stay(forecast, config, instance, node, master);
    }
}

json_t *forecast_node(const struct config *config, const GPtrArray *reports,
                      const struct node *node, enum forecast_event event, gint64 now)
{
    g_autoptr(GPtrArray) left = reports_without(reports, node, event);
    struct forecast_master master = {.heir = HEIR_BY_ITSELF};
    struct forecast forecast = {
        .config = imagine(config, node, event, now),
        .reports = left,
        .sums = placement_sums_new(config, left),
        .now = now,
        .moves = json_array(),
        .blocked = json_array(),
        .notes = json_array(),
    };
    if (event == FORECAST_FAIL)
        master = forecast_master_of(config, left, node);
    forecast.held = !forecast_master_repairs(&master);
    forecast_master_note(&master, config, node, forecast.notes);
    note_all(&forecast, config, event);
    follow_all(&forecast, config, node, &master);
    json_t *answer =
        json_make("{ss ss so so so sb}", "node", node->name, "event",
                  event == FORECAST_FAIL ? "fail" : "drain", "notes", forecast.notes, "moves",
                  forecast.moves, "blocked", forecast.blocked, "held", forecast.held);
    placement_sums_free(forecast.sums);
    config_free(forecast.config);
    return answer;
}
