/*
 * Where a guest or a replica can go. See placement.h.
 */
#include "core/ops/placement.h"

#include <string.h>

guint64 placement_disk_size(const GPtrArray *disks)
{
    guint64 sum = 0;
    for (guint i = 0; disks && i < disks->len; i++)
        sum += ((const struct disk *)disks->pdata[i])->size;
    return sum;
}

static bool runs_there(const struct node_report *report, const char *instance)
{
    for (guint i = 0; report->guests && i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        if (!strcmp(guest->instance, instance) && guest->state != GUEST_ABSENT)
            return true;
    }
    return false;
}

struct promised {
    guint64 memory, memory_waiting; /* all; of guests that do not run there */
    guint64 disk, disk_waiting;     /* all; of images that are not made yet */
    guint instances;
};

/* What one instance takes of one node. */
struct part {
    bool memory, disk;
};

/* A migration promises its target memory too, and disks if they are copied; images in the folder
 * that all nodes mount take no space of a node. */
static bool part_of(const struct instance *instance, const char *node, struct part *ret)
{
    bool primary = !strcmp(instance->primary_node, node);
    bool secondary = *instance->secondary_node && !strcmp(instance->secondary_node, node);
    bool target = *instance->migration_node && !strcmp(instance->migration_node, node);
    bool copied = instance->disk_template == TEMPLATE_FILE;
    *ret = (struct part){
        .memory = primary || target,
        .disk = instance->disk_template != TEMPLATE_SHAREDFILE &&
                (primary || secondary || (target && copied)),
    };
    return primary || secondary || target;
}

static void add_part(struct promised *promised, const struct instance *instance, struct part part,
                     bool runs, bool add)
{
    /* Unsigned sums: what is taken away was added before. */
    guint64 sign = add ? 1 : (guint64)-1;
    guint64 disk = part.disk ? placement_disk_size(instance->disks) : 0;
    guint64 memory = part.memory ? instance->memory : 0;
    promised->instances += add ? 1 : (guint)-1;
    promised->disk += sign * disk;
    promised->disk_waiting += sign * (instance->generation ? 0 : disk);
    promised->memory += sign * memory;
    promised->memory_waiting += sign * (runs ? 0 : memory);
}

static void count_promises(const struct config *config, const struct node_report *report,
                           const char *skip, guint64 up_to, struct promised *ret)
{
    *ret = (struct promised){0};
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        guint64 version = 0;
        struct part part;
        if ((skip && !strcmp(skip, instance->uuid)) || !part_of(instance, report->node, &part))
            continue;
        if (up_to && config_get(config, "instance", instance->uuid, &version) && version > up_to)
            continue;
        add_part(ret, instance, part, runs_there(report, instance->uuid), true);
    }
}

/* --- counted once --- */

struct placement_sums {
    GHashTable *nodes;   /* uuid -> struct promised */
    GHashTable *running; /* "node instance": guests that run where they are reported */
};

static char *running_key(const char *node, const char *instance)
{
    return g_strconcat(node, " ", instance, NULL);
}

static void sums_count(struct placement_sums *sums, const struct instance *instance,
                       const char *node, bool add)
{
    struct part part;
    struct promised *promised = g_hash_table_lookup(sums->nodes, node);
    if (!promised) {
        promised = g_new0(struct promised, 1);
        g_hash_table_insert(sums->nodes, g_strdup(node), promised);
    }
    part_of(instance, node, &part);
    g_autofree char *key = running_key(node, instance->uuid);
    add_part(promised, instance, part, g_hash_table_contains(sums->running, key), add);
}

void placement_sums_move(struct placement_sums *sums, const struct instance *before,
                         const struct instance *after)
{
    const struct instance *both[] = {before, after};
    for (guint i = 0; i < G_N_ELEMENTS(both); i++) {
        const struct instance *it = both[i];
        bool add = i == 1;
        if (!it)
            continue;
        sums_count(sums, it, it->primary_node, add);
        if (*it->secondary_node)
            sums_count(sums, it, it->secondary_node, add);
        if (*it->migration_node && strcmp(it->migration_node, it->secondary_node))
            sums_count(sums, it, it->migration_node, add);
    }
}

struct placement_sums *placement_sums_new(const struct config *config, const GPtrArray *reports)
{
    struct placement_sums *sums = g_new0(struct placement_sums, 1);
    sums->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    sums->running = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; reports && i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        for (guint k = 0; report->guests && k < report->guests->len; k++) {
            const struct guest_report *guest = report->guests->pdata[k];
            if (guest->state != GUEST_ABSENT)
                g_hash_table_add(sums->running, running_key(report->node, guest->instance));
        }
    }
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++)
        placement_sums_move(sums, NULL, instances->pdata[i]);
    return sums;
}

void placement_sums_free(struct placement_sums *sums)
{
    if (!sums)
        return;
    g_hash_table_unref(sums->nodes);
    g_hash_table_unref(sums->running);
    g_free(sums);
}

static void find_promises(const struct config *config, const struct node_report *report,
                          const struct placement_need *need, struct promised *ret)
{
    if (!need->sums) {
        count_promises(config, report, need->skip, 0, ret);
        return;
    }
    const struct promised *promised = g_hash_table_lookup(need->sums->nodes, report->node);
    *ret = promised ? *promised : (struct promised){0};
}

/* --- room --- */

/* What a policy other than 1 adds to, or takes from, what a node has. */
static gint64 granted(guint64 total, double ratio)
{
    return (gint64)((double)total * (ratio - 1));
}

static void room_from(const struct config *config, const struct node_report *report,
                      const struct promised *promised, struct placement_room *ret_room)
{
    const struct cluster *cluster = config_cluster(config);
    gint64 memory = granted(report->memory_total, cluster ? cluster->memory_ratio : 1);
    gint64 disk = granted(report->disk_total, cluster ? cluster->disk_ratio : 1);
    struct placement_room room = {
        .spare_memory = (gint64)report->memory_total + memory - (gint64)promised->memory,
        .spare_disk = (gint64)report->disk_total + disk - (gint64)promised->disk,
    };
    gint64 memory_free = (gint64)report->memory_free + memory - (gint64)promised->memory_waiting;
    gint64 disk_free = (gint64)report->disk_free + disk - (gint64)promised->disk_waiting;
    room.memory = MIN(room.spare_memory, memory_free);
    room.disk = MIN(room.spare_disk, disk_free);
    *ret_room = room;
}

void placement_room(const struct config *config, const struct node_report *report, const char *skip,
                    guint64 up_to, struct placement_room *ret_room)
{
    struct promised promised;
    count_promises(config, report, skip, up_to, &promised);
    room_from(config, report, &promised, ret_room);
}

/* --- one node --- */

static const char *exclusion(const struct placement_need *need, const char *node)
{
    for (guint i = 0; i < G_N_ELEMENTS(need->excluded); i++) {
        if (need->excluded[i] && !strcmp(need->excluded[i], node))
            return need->because[i];
    }
    return NULL;
}

static char *shortage(const char *resource, gint64 room, guint64 need)
{
    return g_strdup_printf("has %" G_GINT64_FORMAT " MiB of %s left, %" G_GUINT64_FORMAT
                           " MiB are needed",
                           MAX(room, 0), resource, need);
}

const char *placement_missing_bridge(const struct node_report *report, const GPtrArray *nics)
{
    for (guint i = 0; nics && i < nics->len; i++) {
        const struct nic *nic = nics->pdata[i];
        bool there = nic->mode == NIC_ROUTED || !*nic->link;
        for (guint k = 0; !there && report->bridges && k < report->bridges->len; k++)
            there = !strcmp(report->bridges->pdata[k], nic->link);
        if (!there)
            return nic->link;
    }
    return NULL;
}

static char *why_not(const struct config *config, const struct node *node,
                     const struct node_report *report, const struct placement_need *need,
                     struct placement_room *ret_room, struct promised *ret_promised)
{
    const char *excluded = exclusion(need, node->uuid);
    if (excluded)
        return g_strdup(excluded);
    if (node->offline)
        return g_strdup("is offline");
    if (node->drained)
        return g_strdup("is drained");
    if (!report)
        return g_strdup("does not answer");
    const char *bridge = placement_missing_bridge(report, need->nics);
    if (bridge)
        return g_strdup_printf("has no bridge \"%s\"", bridge);
    find_promises(config, report, need, ret_promised);
    room_from(config, report, ret_promised, ret_room);
    if (need->memory && (gint64)need->memory > ret_room->memory)
        return shortage("memory", ret_room->memory, need->memory);
    if (need->disk && (gint64)need->disk > ret_room->disk)
        return shortage("disk", ret_room->disk, need->disk);
    return NULL;
}

bool placement_fits(const struct config *config, const struct node *node,
                    const struct node_report *report, const struct placement_need *need,
                    char **ret_why)
{
    struct placement_room room;
    struct promised promised;
    char *why = why_not(config, node, report, need, &room, &promised);
    bool fits = !why;
    if (ret_why)
        *ret_why = why;
    else
        g_free(why);
    return fits;
}

/* --- advice --- */

/* All that still holds; NULL: none. */
static GPtrArray *standing_advice(const struct config *config, guint64 now)
{
    if (!config_count(config, "advice"))
        return NULL;
    GPtrArray *list = config_list(config, "advice");
    for (guint i = list->len; i > 0; i--) {
        const struct advice *advice = list->pdata[i - 1];
        bool over = advice->until && advice->until <= now;
        if (over || strcmp(advice->advice, ADVICE_AVOID))
            g_ptr_array_remove_index(list, i - 1);
    }
    return list;
}

/* Continues the node's name; NULL: nobody advises against it. */
static char *why_avoided(const GPtrArray *standing, const char *node)
{
    for (guint i = 0; standing && i < standing->len; i++) {
        const struct advice *advice = standing->pdata[i];
        if (strcmp(advice->subject, node))
            continue;
        g_autoptr(GDateTime) end =
            advice->until ? g_date_time_new_from_unix_utc((gint64)advice->until) : NULL;
        g_autofree char *until =
            end ? g_date_time_format(end, " until %Y-%m-%d %H:%M:%S UTC") : g_strdup("");
        return g_strdup_printf("is to be avoided%s, says %s%s%s", until, advice->author,
                               *advice->reason ? ": " : "", advice->reason);
    }
    return NULL;
}

/* --- the best node --- */

struct candidate {
    const struct node *node;
    struct placement_room room;
    guint instances;
};

static const struct node_report *report_of(const GPtrArray *reports, const char *node)
{
    for (guint i = 0; reports && i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        if (!strcmp(report->node, node))
            return report;
    }
    return NULL;
}

/* Nodes come in order of their names, so `a` stays ahead when all is equal. */
static bool better(const struct candidate *a, const struct candidate *b,
                   const struct placement_need *need)
{
    if (!a->node)
        return true;
    gint64 first = need->rank_by_disk ? b->room.spare_disk - a->room.spare_disk
                                      : b->room.spare_memory - a->room.spare_memory;
    gint64 second = need->rank_by_disk ? b->room.spare_memory - a->room.spare_memory
                                       : b->room.spare_disk - a->room.spare_disk;
    if (first)
        return first > 0;
    if (second)
        return second > 0;
    return b->instances < a->instances;
}

const struct node *placement_choose(const struct config *config, const GPtrArray *reports,
                                    const struct placement_need *need, GError **error)
{
    struct candidate best = {0};
    g_autoptr(GString) reasons = g_string_new(NULL);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    g_autoptr(GPtrArray) standing = standing_advice(config, need->now);
    for (guint i = 0; i < nodes->len; i++) {
        struct candidate candidate = {.node = nodes->pdata[i]};
        const char *uuid = candidate.node->uuid;
        struct promised promised;
        g_autofree char *why = why_not(config, candidate.node, report_of(reports, uuid), need,
                                       &candidate.room, &promised);
        if (!why)
            why = why_avoided(standing, uuid);
        if (why) {
            g_string_append_printf(reasons, "%s%s %s", reasons->len ? "; " : "",
                                   candidate.node->name, why);
            continue;
        }
        if (need->prefer && !strcmp(need->prefer, uuid))
            return candidate.node;
        candidate.instances = promised.instances;
        if (better(&best, &candidate, need))
            best = candidate;
    }
    if (!best.node)
        fettle_set_error(error, NO_RESOURCES, "no node can be %s: %s", need->what,
                         reasons->len ? reasons->str : "the cluster has no nodes");
    return best.node;
}
