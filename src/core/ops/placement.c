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

static void count_promises(const struct config *config, const struct node_report *report,
                           const char *skip, guint64 up_to, struct promised *ret)
{
    *ret = (struct promised){0};
    g_autoptr(GPtrArray) instances = config_list(config, "instance");
    for (guint i = 0; i < instances->len; i++) {
        const struct instance *instance = instances->pdata[i];
        guint64 version = 0;
        if (skip && !strcmp(skip, instance->uuid))
            continue;
        if (up_to && config_get(config, "instance", instance->uuid, &version) && version > up_to)
            continue;
        bool primary = !strcmp(instance->primary_node, report->node);
        if (!primary && strcmp(instance->secondary_node, report->node))
            continue;
        guint64 disk = placement_disk_size(instance->disks);
        ret->instances++;
        ret->disk += disk;
        if (!instance->generation)
            ret->disk_waiting += disk;
        if (!primary)
            continue;
        ret->memory += instance->memory;
        if (!runs_there(report, instance->uuid))
            ret->memory_waiting += instance->memory;
    }
}

void placement_room(const struct config *config, const struct node_report *report, const char *skip,
                    guint64 up_to, struct placement_room *ret_room)
{
    struct promised promised;
    count_promises(config, report, skip, up_to, &promised);
    struct placement_room room = {
        .spare_memory = (gint64)report->memory_total - (gint64)promised.memory,
        .spare_disk = (gint64)report->disk_total - (gint64)promised.disk,
    };
    gint64 memory_free = (gint64)report->memory_free - (gint64)promised.memory_waiting;
    gint64 disk_free = (gint64)report->disk_free - (gint64)promised.disk_waiting;
    room.memory = MIN(room.spare_memory, memory_free);
    room.disk = MIN(room.spare_disk, disk_free);
    *ret_room = room;
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

static char *why_not(const struct config *config, const struct node *node,
                     const struct node_report *report, const struct placement_need *need,
                     struct placement_room *ret_room)
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
    placement_room(config, report, need->skip, 0, ret_room);
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
    char *why = why_not(config, node, report, need, &room);
    bool fits = !why;
    if (ret_why)
        *ret_why = why;
    else
        g_free(why);
    return fits;
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
    for (guint i = 0; i < nodes->len; i++) {
        struct candidate candidate = {.node = nodes->pdata[i]};
        const struct node_report *report = report_of(reports, candidate.node->uuid);
        g_autofree char *why = why_not(config, candidate.node, report, need, &candidate.room);
        if (why) {
            g_string_append_printf(reasons, "%s%s %s", reasons->len ? "; " : "",
                                   candidate.node->name, why);
            continue;
        }
        if (need->prefer && !strcmp(need->prefer, candidate.node->uuid))
            return candidate.node;
        struct promised promised;
        count_promises(config, report, need->skip, 0, &promised);
        candidate.instances = promised.instances;
        if (better(&best, &candidate, need))
            best = candidate;
    }
    if (!best.node)
        fettle_set_error(error, NO_RESOURCES, "no node can be %s: %s", need->what,
                         reasons->len ? reasons->str : "the cluster has no nodes");
    return best.node;
}
