/* See repair_room.h. */
#include "core/repair/repair_room.h"

#include "core/report/late.h"
#include "core/report/report_lookup.h"

#include <string.h>

void repair_goal_clear(struct repair_goal *goal)
{
    g_clear_pointer(&goal->primary, g_free);
    g_clear_pointer(&goal->secondary, g_free);
}

struct search {
    const struct config *config;
    const GPtrArray *reports;
    struct placement_sums *sums;
    const struct instance *instance;
    gint64 now;
    GHashTable *failed_on; /* node UUID -> why it is out; NULL: none is */
    char **ret_reason;
};

static const struct node_report *report_of(const struct search *search, const char *node)
{
    for (guint i = 0; i < search->reports->len; i++) {
        const struct node_report *report = search->reports->pdata[i];
        if (strcmp(report->node, node) == 0)
            return report;
    }
    return NULL;
}

static const char *choose(const struct search *search, struct placement_need *need)
{
    g_autoptr(GError) error = NULL;
    need->sums = search->sums;
    need->now = (guint64)search->now;
    need->lacking = search->failed_on;
    const struct node *node = placement_choose(search->config, search->reports, need, &error);
    if (node == NULL)
        *search->ret_reason = g_strdup(error->message);
    return node == NULL ? NULL : node->uuid;
}

static bool has_failed(const struct search *search, const char *node)
{
    return search->failed_on != NULL && g_hash_table_contains(search->failed_on, node);
}

/* A new replica goes to the node of the old one if that serves, else to another; as
 * OP_INSTANCE_REPLACE_DISKS does it. */
static const char *find_secondary(const struct search *search, bool elsewhere)
{
    const struct instance *instance = search->instance;
    const struct node *old = config_get(search->config, "node", instance->secondary_node, NULL);
    const struct node_report *report = old == NULL ? NULL : report_of(search, old->uuid);
    bool stays = !elsewhere && old != NULL && !old->offline && !old->drained &&
                 placement_keeps_replica(report) && !has_failed(search, old->uuid);
    if (stays && !placement_is_full(report))
        return old->uuid;
    struct placement_need need = {
        .what = "a new secondary node",
        .disk = allocated_disk_size(instance->disks),
        .excluded = {instance->primary_node, instance->secondary_node},
        .because = {"is its primary node", "is its secondary node now"},
        .rank_by_disk = true,
        .nics = instance->nics,
        .volumes_of = instance->uuid,
        .files = {instance->kernel_path, instance->initrd_path},
    };
    const char *other = choose(search, &need);
    if (other != NULL || !stays)
        return other;
    g_clear_pointer(search->ret_reason, g_free); /* full, but all there is */
    return old->uuid;
}

/* Of a guest that would go over as it runs; NULL: it is moved by a restart. */
static const char *qemu_of(const struct search *search)
{
    return report_qemu(report_of(search, search->instance->primary_node), search->instance);
}

/* A failover starts the next generation; a migration takes what runs, and keeps room for both. */
static guint64 memory_of(const struct instance *instance, bool failover)
{
    return failover ? allocated_next(instance) : allocated_need(instance);
}

/* What is down is moved without being started. */
static void need_boot_files(struct placement_need *need, const struct instance *instance)
{
    if (instance->admin_state != ADMIN_UP)
        return;
    need->files[0] = instance->kernel_path;
    need->files[1] = instance->initrd_path;
}

/* Why nothing can be said of the images there, continuing the name of the node; NULL: it can. Free
 * with g_free(). */
static char *disks_late(const struct node_report *report)
{
    const struct late_part *late = report == NULL ? NULL : late_part_of(report, PART_DISKS);
    g_autofree char *words = late == NULL ? NULL : late_part_words(late);
    return words == NULL ? NULL : g_strdup_printf("has disks that do not answer (%s)", words);
}

/* To the secondary, whose replica is there already. What a drained node has may be all that is
 * left. A guest that is down needs no memory. */
static const char *check_secondary(const struct search *search, bool failover)
{
    const struct instance *instance = search->instance;
    const struct node *node = config_get(search->config, "node", instance->secondary_node, NULL);
    struct placement_need need = {
        .memory = instance->admin_state == ADMIN_UP ? memory_of(instance, failover) : 0,
        .sums = search->sums,
        .nics = instance->nics,
        .volumes_of = instance->uuid,
        .qemu_from = failover ? NULL : qemu_of(search),
        .only_copy = failover,
    };
    need_boot_files(&need, instance);
    g_autofree char *why = NULL;
    if (node == NULL) {
        *search->ret_reason = g_strdup("it has no secondary node");
        return NULL;
    }
    record_autoptr(node) judged = node_copy(node);
    judged->drained = judged->drained && !failover;
    bool fits = placement_fits(search->config, judged, report_of(search, node->uuid), &need, &why);
    if (fits && failover) /* its images have to be seen; the job would fail, and wait no better */
        why = disks_late(report_of(search, node->uuid));
    if (fits && why == NULL)
        return node->uuid;
    *search->ret_reason = g_strdup_printf("it cannot go to %s: it %s", node->name, why);
    return NULL;
}

static const char *find_primary(const struct search *search, bool failover)
{
    struct placement_need need = {
        .what = "its new primary node",
        .memory = memory_of(search->instance, failover),
        .excluded = {search->instance->primary_node},
        .because = {"is its primary node now"},
        .nics = search->instance->nics,
        .volumes_of = search->instance->uuid,
        .shared = placement_shared(search->reports, search->instance->disk_template,
                                   search->instance->primary_node),
        .qemu_from = failover ? NULL : qemu_of(search),
    };
    need_boot_files(&need, search->instance);
    return choose(search, &need);
}

/* An instance without a node for its replica is better off than a dead one: it gets that as the
 * next step, as after a failover. */
static bool find_both(const struct search *search, struct repair_goal *goal)
{
    const struct instance *instance = search->instance;
    struct placement_need need = {
        .what = "its new primary node",
        .memory = allocated_next(instance),
        .disk = allocated_disk_size(instance->disks),
        .nics = instance->nics,
        .volumes_of = instance->uuid,
        .files = {instance->kernel_path, instance->initrd_path, instance->os},
    };
    const char *primary = choose(search, &need);
    if (primary == NULL)
        return false;
    goal->primary = g_strdup(primary);
    if (!repair_template_mirrored(instance->disk_template))
        return true;
    struct placement_need second = {
        .what = "its new secondary node",
        .disk = need.disk,
        .excluded = {primary},
        .because = {"would be its primary node"},
        .rank_by_disk = true,
        .nics = instance->nics,
        .volumes_of = instance->uuid,
        .files = {instance->kernel_path, instance->initrd_path},
    };
    goal->secondary = g_strdup(choose(search, &second));
    if (goal->secondary == NULL)
        g_clear_pointer(search->ret_reason, g_free);
    return true;
}

static bool find(const struct search *search, const struct repair_plan *plan,
                 struct repair_goal *goal)
{
    const struct instance *instance = search->instance;
    bool mirrored = repair_template_mirrored(instance->disk_template);
    bool failover = plan->step == REPAIR_STEP_FAILOVER;
    switch (plan->step) {
    case REPAIR_STEP_NONE:
        return true;
    case REPAIR_STEP_REPLACE_DISKS:
        goal->secondary = g_strdup(find_secondary(search, plan->elsewhere));
        return goal->secondary != NULL;
    case REPAIR_STEP_MIGRATE:
    case REPAIR_STEP_FAILOVER:
        goal->primary =
            g_strdup(mirrored ? check_secondary(search, failover) : find_primary(search, failover));
        goal->secondary = g_strdup(mirrored && !failover ? instance->primary_node : "");
        return goal->primary != NULL;
    case REPAIR_STEP_REINSTALL:
        return find_both(search, goal);
    }
    return false;
}

bool repair_room_find(const struct config *config, const GPtrArray *reports,
                      struct placement_sums *sums, const struct instance *instance,
                      const struct repair_plan *plan, gint64 now, GHashTable *failed_on,
                      struct repair_goal *ret_goal, char **ret_reason)
{
    struct search search = {config, reports, sums, instance, now, failed_on, ret_reason};
    struct repair_goal goal = {0};
    placement_sums_move(sums, instance, NULL);
    bool found = find(&search, plan, &goal);
    placement_sums_move(sums, NULL, instance);
    if (!found) {
        repair_goal_clear(&goal);
        return false;
    }
    if (goal.primary == NULL)
        goal.primary = g_strdup(instance->primary_node);
    if (goal.secondary == NULL)
        goal.secondary = g_strdup("");
    *ret_goal = goal;
    return true;
}

/* --- advice --- */

GPtrArray *repair_advice_texts(const struct config *config, gint64 now)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) all = config_list(config, "advice");
    for (guint i = 0; i < all->len; i++) {
        const struct advice *advice = all->pdata[i];
        if (strcmp(advice->subject_kind, "node") != 0 ||
            strcmp(advice->advice, ADVICE_AVOID) != 0 ||
            (advice->until != 0 && (gint64)advice->until <= now))
            continue;
        g_autofree char *until = text_time((gint64)advice->until);
        g_ptr_array_add(texts, g_strdup_printf("%s is avoided: %s advises so%s%s%s%s",
                                               config_node_name(config, advice->subject),
                                               advice->author, advice->until != 0 ? " until " : "",
                                               advice->until != 0 ? until : "",
                                               *advice->reason ? ": " : "", advice->reason));
    }
    return texts;
}
