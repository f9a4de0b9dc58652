/*
 * Where a guest or a replica can go. See placement.h.
 */
#include "core/placement/placement.h"

#include "core/config/attachments.h"
#include "core/report/faults.h"
#include "core/report/late.h"

#include "proto/source_name.h"

#include <string.h>

/* --- promises --- */

/* Memory that guests which are promised some there have already: what they get more with their next
 * start is no part of it, and waits. */
static guint64 memory_running(const struct config *config, const struct node_report *report)
{
    guint64 sum = 0;
    for (guint i = 0; report->guests && i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        const struct instance *instance =
            guest->state == GUEST_ABSENT ? NULL
                                         : config_get(config, "instance", guest->instance, NULL);
        if (instance)
            sum += allocated_now(instance, report->node);
    }
    return sum;
}

struct counted {
    struct allocated promised;
    guint64 memory_waiting; /* of that memory what no guest that runs there has yet */
};

static void count_promises(const struct config *config, const struct node_report *report,
                           struct counted *ret)
{
    ret->promised = config_promised(config, report->node);
    ret->memory_waiting = ret->promised.memory - memory_running(config, report);
}

/* --- counted once, for many steps --- */

struct placement_sums {
    const struct config *config; /* NULL: the sums were given */
    GHashTable *reports;         /* uuid of a node -> struct node_report, borrowed */
    GHashTable *nodes;           /* uuid -> struct node_sums; counted when first asked for */
};

struct node_sums {
    struct counted counted;
    GHashTable *running; /* set of uuids of guests, borrowed from the report */
};

static void node_sums_free(void *data)
{
    struct node_sums *node = data;
    g_hash_table_unref(node->running);
    g_free(node);
}

static struct node_sums *node_sums_add(struct placement_sums *sums, const char *uuid)
{
    struct node_sums *node = g_new0(struct node_sums, 1);
    const struct node_report *report = g_hash_table_lookup(sums->reports, uuid);
    node->running = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; report && report->guests && i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        if (guest->state != GUEST_ABSENT)
            g_hash_table_add(node->running, guest->instance);
    }
    g_hash_table_insert(sums->nodes, g_strdup(uuid), node);
    return node;
}

static struct node_sums *sums_of(struct placement_sums *sums, const char *uuid)
{
    struct node_sums *node = g_hash_table_lookup(sums->nodes, uuid);
    const struct node_report *report = g_hash_table_lookup(sums->reports, uuid);
    if (node)
        return node;
    node = node_sums_add(sums, uuid);
    if (report) /* nobody asks for the room of a node that does not answer */
        count_promises(sums->config, report, &node->counted);
    return node;
}

static void sums_count(struct placement_sums *sums, const struct instance *instance, bool add)
{
    const char *nodes[3];
    guint count = allocated_nodes(instance, nodes);
    for (guint i = 0; i < count; i++) {
        struct node_sums *node = sums_of(sums, nodes[i]);
        struct allocated part = allocated_to(instance, nodes[i]);
        bool runs = g_hash_table_contains(node->running, instance->uuid);
        guint64 waiting = part.memory - (runs ? allocated_now(instance, nodes[i]) : 0);
        /* Unsigned sums: what is taken away was added before. */
        (add ? allocated_add : allocated_take)(&node->counted.promised, &part);
        node->counted.memory_waiting += add ? waiting : -waiting;
    }
}

void placement_sums_move(struct placement_sums *sums, const struct instance *before,
                         const struct instance *after)
{
    if (before)
        sums_count(sums, before, false);
    if (after)
        sums_count(sums, after, true);
}

struct placement_sums *placement_sums_new(const struct config *config, const GPtrArray *reports)
{
    struct placement_sums *sums = g_new0(struct placement_sums, 1);
    sums->config = config;
    sums->reports = g_hash_table_new(g_str_hash, g_str_equal);
    sums->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, node_sums_free);
    for (guint i = 0; reports && i < reports->len; i++) {
        struct node_report *report = reports->pdata[i];
        g_hash_table_insert(sums->reports, report->node, report);
    }
    return sums;
}

struct placement_sums *placement_sums_given(const GPtrArray *reports, const GPtrArray *promised,
                                            GError **error)
{
    struct placement_sums *sums = placement_sums_new(NULL, reports);
    bool same = (reports ? reports->len : 0) == promised->len;
    for (guint i = 0; same && i < promised->len; i++) {
        const struct node_promised *given = promised->pdata[i];
        same = !strcmp(((const struct node_report *)reports->pdata[i])->node, given->node);
        node_sums_add(sums, given->node)->counted = (struct counted){
            .promised = {given->memory, given->disk, given->disk_waiting, given->instances},
            .memory_waiting = given->memory - given->memory_running};
    }
    if (same)
        return sums;
    fettle_set_error(error, CORRUPT, "the answer is for other nodes than were asked for");
    placement_sums_free(sums);
    return NULL;
}

void placement_sums_free(struct placement_sums *sums)
{
    if (!sums)
        return;
    g_hash_table_unref(sums->nodes);
    g_hash_table_unref(sums->reports);
    g_free(sums);
}

static void find_promises(const struct config *config, const struct node_report *report,
                          struct placement_sums *sums, struct counted *ret)
{
    if (sums)
        *ret = sums_of(sums, report->node)->counted;
    else
        count_promises(config, report, ret);
}

/* --- room --- */

/* What a policy other than 1 adds to, or takes from, what a node has. */
static gint64 granted(guint64 total, double ratio)
{
    return (gint64)((double)total * (ratio - 1));
}

static void room_from(const struct config *config, const struct node_report *report,
                      const struct counted *counted, struct placement_room *ret_room)
{
    const struct cluster *cluster = config_cluster(config);
    gint64 memory = granted(report->memory_total, cluster ? cluster->memory_ratio : 1);
    gint64 disk = granted(report->disk_total, cluster ? cluster->disk_ratio : 1);
    struct placement_room room = {
        .spare_memory = (gint64)report->memory_total + memory - (gint64)counted->promised.memory,
        .spare_disk = (gint64)report->disk_total + disk - (gint64)counted->promised.disk,
    };
    gint64 memory_free = (gint64)report->memory_free + memory - (gint64)counted->memory_waiting;
    gint64 disk_free = (gint64)report->disk_free + disk - (gint64)counted->promised.disk_waiting;
    room.memory = MIN(room.spare_memory, memory_free);
    room.disk = MIN(room.spare_disk, disk_free);
    *ret_room = room;
}

void placement_room(const struct config *config, const struct node_report *report,
                    struct placement_sums *sums, struct placement_room *ret_room)
{
    struct counted counted;
    find_promises(config, report, sums, &counted);
    room_from(config, report, &counted, ret_room);
}

/* --- one node --- */

static const char *exclusion(const struct placement_need *need, const char *node)
{
    for (guint i = 0; i < G_N_ELEMENTS(need->excluded); i++) {
        if (need->excluded[i] && !strcmp(need->excluded[i], node))
            return need->because[i];
    }
    return need->lacking ? g_hash_table_lookup(need->lacking, node) : NULL;
}

/* What jobs have reserved of it there: they give it back, or turn it into an instance, soon. */
static void add_reserved(GString *text, const struct config *config, const char *node, bool memory)
{
    guint64 sum = 0;
    g_autoptr(GPtrArray) all = config_list(config, "reservation");
    g_autoptr(GString) who = g_string_new(NULL);
    for (guint i = 0; i < all->len; i++) {
        const struct reservation *reservation = all->pdata[i];
        for (guint k = 0; k < reservation->rooms->len; k++) {
            const struct reserved_room *room = reservation->rooms->pdata[k];
            guint64 part = memory ? room->memory : room->disk;
            if (strcmp(room->node, node) || !part)
                continue;
            sum += part;
            if (who->len < LIMIT_RESERVED_CHARS)
                g_string_append_printf(who, "%s%s (job %s)", who->len ? ", " : "",
                                       reservation->name, reservation->owner->job);
        }
    }
    if (sum)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " MiB are reserved for %s", sum,
                               who->str);
}

static char *shortage(const struct config *config, const char *node, bool memory, gint64 room,
                      guint64 need)
{
    GString *text = g_string_new(NULL);
    g_string_printf(text,
                    "has %" G_GINT64_FORMAT " MiB of %s left, %" G_GUINT64_FORMAT " MiB are needed",
                    MAX(room, 0), memory ? "memory" : "disk", need);
    add_reserved(text, config, node, memory);
    return g_string_free(text, FALSE);
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

static bool tells_file(const struct node_report *report, const char *name)
{
    bool there = false;
    for (guint i = 0; report->sources && i < report->sources->len && !there; i++)
        there = source_name_is(report->sources->pdata[i], name);
    return there;
}

bool placement_lacks_file(const struct node_report *report, const char *name)
{
    return name && *name && report->sources_whole && !tells_file(report, name);
}

bool placement_file_is_known(const GPtrArray *reports, const char *name)
{
    bool known = false;
    for (guint i = 0; reports && i < reports->len && !known; i++)
        known = tells_file(reports->pdata[i], name);
    return known;
}

static const char *missing_file(const struct node_report *report, const struct placement_need *need)
{
    for (guint i = 0; i < G_N_ELEMENTS(need->files); i++)
        if (placement_lacks_file(report, need->files[i]))
            return need->files[i];
    return NULL;
}

static const char *shared_of(const struct node_report *report)
{
    return report->shared ? report->shared : "";
}

const char *placement_shared(const GPtrArray *reports, enum disk_template disk_template,
                             const char *holder)
{
    const char *found = "";
    for (guint i = 0; disk_template == TEMPLATE_SHAREDFILE && reports && i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        const char *shared = shared_of(report);
        if (*shared && !strcmp(report->node, holder))
            return shared;
        if (!*found)
            found = shared;
    }
    return found;
}

const char *placement_unshared(const struct node_report *report, const char *shared)
{
    const char *mounted = shared_of(report);
    if (shared && *shared && late_part_of(report, PART_SHARED))
        return "does not get an answer from the shared folder";
    if (!shared || !*shared || !strcmp(mounted, shared))
        return NULL;
    return *mounted ? "mounts another shared folder" : "does not mount the shared folder";
}

bool placement_is_older(const char *version, const char *than)
{
    while (*version && *than) {
        char *end, *than_end;
        guint64 a = g_ascii_strtoull(version, &end, 10);
        guint64 b = g_ascii_strtoull(than, &than_end, 10);
        if (a != b || end == version || than_end == than)
            return a < b;
        version = *end == '.' ? end + 1 : "";
        than = *than_end == '.' ? than_end + 1 : "";
    }
    return !*version && *than;
}

static char *why_too_old(const struct node_report *report, const char *qemu_from)
{
    const char *version = report->qemu_version;
    if (!qemu_from || !*qemu_from || !placement_is_older(version, qemu_from))
        return NULL;
    return g_strdup_printf("has QEMU %s, and the guest runs under %s, which is newer",
                           *version ? version : "of an unknown version", qemu_from);
}

bool placement_keeps_replica(const struct node_report *report)
{
    return report && report->disk_total > 0 && !late_part_of(report, PART_DISKS) &&
           !faults_forbids(report, true);
}

bool placement_is_full(const struct node_report *report)
{
    return report && report->disk_total > 0 && report->disk_free == 0;
}

const struct late_part *placement_late_disks(const struct node_report *report,
                                             const struct placement_need *need)
{
    return need->disk ? late_part_of(report, PART_DISKS) : NULL;
}

static char *why_disks_late(const struct late_part *late)
{
    g_autofree char *words = late_part_words(late);
    return g_strdup_printf("has disks that cannot be used now (%s)", words);
}

char *placement_no_report(GHashTable *refused, const char *node)
{
    const char *refusal = refused ? g_hash_table_lookup(refused, node) : NULL;
    return refusal ? g_strdup_printf("answers with an error (%s)", refusal)
                   : g_strdup("does not answer");
}

static char *why_not(const struct config *config, const struct node *node,
                     const struct node_report *report, const struct placement_need *need,
                     struct placement_room *ret_room, struct counted *ret_counted)
{
    const char *excluded = exclusion(need, node->uuid);
    if (excluded)
        return g_strdup(excluded);
    if (node->offline)
        return g_strdup("is offline");
    if (node->drained)
        return g_strdup("is drained");
    if (!report)
        return placement_no_report(need->refused, node->uuid);
    const char *unable = need->only_copy ? NULL : faults_forbids(report, need->disk > 0);
    if (unable)
        return g_strdup(unable);
    const char *bridge = placement_missing_bridge(report, need->nics);
    if (bridge)
        return g_strdup_printf("has no bridge \"%s\"", bridge);
    const char *unshared = placement_unshared(report, need->shared);
    if (unshared)
        return g_strdup(unshared);
    char *unserved =
        need->volumes_of ? attachment_unserved(config, need->volumes_of, node->uuid) : NULL;
    if (unserved)
        return unserved;
    const char *file = missing_file(report, need);
    if (file)
        return g_strdup_printf("does not have \"%s\" in var/images", file);
    char *old = why_too_old(report, need->qemu_from);
    if (old)
        return old;
    const struct late_part *late = placement_late_disks(report, need);
    if (late)
        return why_disks_late(late);
    find_promises(config, report, need->sums, ret_counted);
    room_from(config, report, ret_counted, ret_room);
    if (need->memory && (gint64)need->memory > ret_room->memory)
        return shortage(config, node->uuid, true, ret_room->memory, need->memory);
    if (need->disk && (gint64)need->disk > ret_room->disk)
        return shortage(config, node->uuid, false, ret_room->disk, need->disk);
    return NULL;
}

bool placement_fits(const struct config *config, const struct node *node,
                    const struct node_report *report, const struct placement_need *need,
                    char **ret_why)
{
    struct placement_room room;
    struct counted counted;
    char *why = why_not(config, node, report, need, &room, &counted);
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

char *placement_why_avoided(const struct config *config, const char *node, guint64 now)
{
    g_autoptr(GPtrArray) standing = standing_advice(config, now);
    return why_avoided(standing, node);
}

/* --- the best node --- */

struct candidate {
    const struct node *node;
    struct placement_room room;
    guint64 instances;
    guint faults; /* faults_rank() */
    bool preferred;
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
    if (a->faults != b->faults)
        return b->faults < a->faults;
    if (a->preferred || b->preferred)
        return b->preferred;
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
        struct counted counted;
        const struct node_report *report = report_of(reports, uuid);
        g_autofree char *why =
            why_not(config, candidate.node, report, need, &candidate.room, &counted);
        if (!why)
            why = why_avoided(standing, uuid);
        if (why) {
            g_string_append_printf(reasons, "%s%s %s", reasons->len ? "; " : "",
                                   candidate.node->name, why);
            continue;
        }
        candidate.preferred = need->prefer && !strcmp(need->prefer, uuid);
        candidate.faults = faults_rank(report);
        candidate.instances = counted.promised.instances;
        if (better(&best, &candidate, need))
            best = candidate;
    }
    if (!best.node)
        fettle_set_error(error, NO_RESOURCES, "no node can be %s: %s", need->what,
                         reasons->len ? reasons->str : "the cluster has no nodes");
    return best.node;
}
