/*
 * What nodes say, as far as it can be a cause of repair beside the record (ARP-70). Good news count
 * at once; bad news only from an answer of the node itself, only about a record that is no newer
 * than the answer and that no job is at work on, and only if an earlier pass has had them too: an
 * answer can be older than what a job has done meanwhile. What an answer has from memory is no news
 * (SAF-90). See repair_private.h.
 */
#include "core/config/fault.h"
#include "core/repair/repair_private.h"
#include "core/report/faults.h"
#include "core/report/late.h"
#include "core/report/report_lookup.h"

#include <string.h>

/* --- nodes --- */

static struct node_memory *memory_of(struct watcher *watcher, const char *node)
{
    struct node_memory *memory = g_hash_table_lookup(watcher->nodes, node);
    if (memory == NULL) {
        memory = g_new0(struct node_memory, 1);
        g_hash_table_insert(watcher->nodes, g_strdup(node), memory);
    }
    return memory;
}

static void remember(struct watcher *watcher, const struct node *node)
{
    struct node_memory *memory = memory_of(watcher, node->uuid);
    const struct node_report *report = reports_of(watcher->reports, node->uuid);
    if (report != NULL) {
        if (!memory->answered || memory->silent_ms != 0)
            watcher->repair->returned_ms = watcher->env->ops->boot_ms(watcher->env);
        memory->answered = true;
        memory->silent_ms = 0;
        memory->unheard_ms = 0;
    } else if (reports_state(watcher->reports, node->uuid) == REPORT_REFUSED) {
        memory->silent_ms = memory->unheard_ms = 0; /* what says something is not silent */
    } else if (node->offline) {
        suspicion_clear(&memory->disks);
        suspicion_clear(&memory->state);
        *memory = (struct node_memory){0}; /* what is on record says it all */
    } else {
        if (memory->answered && memory->silent_ms == 0)
            memory->silent_ms = watcher->env->ops->boot_ms(watcher->env);
        if (memory->unheard_ms == 0)
            memory->unheard_ms = watcher->env->ops->boot_ms(watcher->env);
    }
}

static gboolean node_is_gone(gpointer uuid, gpointer memory, gpointer config)
{
    return config_get(config, "node", uuid, NULL) == NULL;
}

void watcher_evidence_update(struct watcher *watcher)
{
    const struct config *config = follow_config(watcher->follow);
    guint64 sizes = 0;
    g_hash_table_foreach_remove(watcher->nodes, node_is_gone, (gpointer)config);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_report *report = reports_of(watcher->reports, node->uuid);
        remember(watcher, node);
        if (report != NULL)
            sizes += g_str_hash(node->uuid) * (report->memory_total + 1);
    }
    watcher_disks_update(watcher);
    n1_check_sizes(watcher->repair->n1, sizes);
}

/* --- instances --- */

bool watcher_newer_than_reports(const struct watcher *watcher, const char *kind, const char *key)
{
    guint64 version = 0;
    config_get(follow_config(watcher->follow), kind, key, &version);
    return version > watcher->reports_serial;
}

static bool has_mark(const struct watcher *watcher, const struct instance *instance)
{
    return fault_mark(follow_config(watcher->follow), instance, NULL) != TASK_NONE;
}

/* Whether the node of the replica has answered that it lacks images of it. */
static bool lacks_images(const struct watcher *watcher, const struct instance *instance,
                         const struct replica *replica, guint64 *ret_disks)
{
    if (replica->state != REPLICA_IN_SYNC || has_mark(watcher, instance) ||
        *instance->migration != '\0')
        return false;
    return reports_images(watcher->reports, replica->node, instance, replica->uuid, ret_disks) &&
           !images_are_whole(instance, *ret_disks) &&
           !watcher_newer_than_reports(watcher, "instance", instance->uuid) &&
           !watcher_newer_than_reports(watcher, "replica", replica->uuid);
}

static bool replica_broken(struct watcher *watcher, const struct instance *instance,
                           const struct replica *replica, guint64 *ret_disks)
{
    if (!lacks_images(watcher, instance, replica, ret_disks)) {
        struct watched *known = g_hash_table_lookup(watcher->repair->instances, instance->uuid);
        if (known != NULL)
            g_clear_pointer(&known->gone_replica, g_free);
        return false;
    }
    struct watched *watched = watcher_watched(watcher, instance->uuid);
    if (g_strcmp0(watched->gone_replica, replica->uuid) != 0) {
        g_free(watched->gone_replica);
        watched->gone_replica = g_strdup(replica->uuid);
        watched->gone_pass = watcher->pass;
    }
    return watched->gone_pass < watcher->pass;
}

/* It stands still for lack of room for its own disks, seen by an earlier pass too, whose record
 * says so. The copy over there has all that was acknowledged, and room. */
static bool moves_for_room(const struct watcher *watcher, const struct instance *instance,
                           const struct replica *replica, const struct guest_report *guest)
{
    if (guest == NULL || guest->io_stop != IO_STOP_NO_SPACE || *guest->io_volume || replica == NULL)
        return false;
    const struct node_report *report = reports_of(watcher->reports, replica->node);
    return report != NULL && replica->state == REPLICA_IN_SYNC && !has_mark(watcher, instance) &&
           watcher_told_no_room(watcher, instance) && watcher_node_has_room(report);
}

static bool starts_nothing(const struct watcher *watcher, const char *node, bool images)
{
    const struct node_report *report = reports_of(watcher->reports, node);
    return report != NULL && faults_forbids(report, images) != NULL;
}

/* Why its node can neither start it nor hand it over, while it does nothing and another node could
 * run it. Of a guest that runs that is no matter. */
static const char *barred(const struct watcher *watcher, const struct instance *instance,
                          const struct replica *replica, bool rests)
{
    return rests && starts_nothing(watcher, instance->primary_node, false) &&
                   (replica == NULL || !starts_nothing(watcher, replica->node, true)) &&
                   instance->admin_state == ADMIN_UP && *instance->migration == '\0' &&
                   !watcher_newer_than_reports(watcher, "instance", instance->uuid)
               ? watcher_state_failed(watcher, instance->primary_node)
               : NULL;
}

struct repair_evidence watcher_evidence(struct watcher *watcher, const struct instance *instance,
                                        const struct replica *replica)
{
    bool reported = false;
    guint64 disks = 0;
    bool broken = replica != NULL && replica_broken(watcher, instance, replica, &disks);
    const struct guest_report *guest = watcher_guest(watcher, instance, &reported);
    bool absent = reported && watcher_guest_absent(instance, guest);
    if (guest != NULL && guest->late)
        guest = NULL; /* what it said last is no news */
    bool no_room = moves_for_room(watcher, instance, replica, guest);
    struct repair_evidence sight = {
        .guest = guest,
        .primary_barred = barred(watcher, instance, replica, absent || no_room),
        .no_room = no_room && !starts_nothing(watcher, instance->primary_node, false),
        .replica_broken = broken,
        .replica_images = disks,
    };
    watcher_disks_tell(watcher, instance, replica, &sight);
    return sight;
}

/* It stands still, and its node cannot move it, for too short a time to do more. */
static bool stands_in_doubt(const struct watcher *watcher, const struct instance *instance,
                            const struct replica *replica)
{
    bool reported = false;
    if (!starts_nothing(watcher, instance->primary_node, false))
        return false;
    const struct guest_report *guest = watcher_guest(watcher, instance, &reported);
    return guest != NULL && !guest->late && moves_for_room(watcher, instance, replica, guest);
}

/* What was found in one pass alone, or cannot be found now, is no news of being well: a watcher
 * that has just begun, or whom a node does not answer, would call a repair done. */
const char *watcher_evidence_doubt(const struct watcher *watcher, const struct instance *instance,
                                   const struct replica *replica)
{
    guint64 disks = 0;
    bool online = watcher_node_online(watcher, instance->primary_node);
    if (online && reports_of(watcher->reports, instance->primary_node) == NULL)
        return "Its primary node does not answer, so whether it is well is not known.";
    if (replica != NULL && lacks_images(watcher, instance, replica, &disks))
        return "Whether the images of its replica are gone is not certain yet.";
    if (stands_in_doubt(watcher, instance, replica))
        return "Whether its node can start nothing is not certain yet.";
    if (watcher_disks_doubted(watcher, instance, replica))
        return "Whether disks of its nodes have failed is not certain yet.";
    return NULL;
}

bool watcher_leaves_primary(struct watcher *watcher, const struct instance *instance)
{
    const struct replica *replica = watcher_replica(watcher, instance);
    struct repair_evidence sight = watcher_evidence(watcher, instance, replica);
    struct repair_plan plan =
        repair_plan_of(follow_config(watcher->follow), instance, replica, &sight);
    bool leaves = (plan.failed || plan.barred) && plan.step == REPAIR_STEP_FAILOVER;
    repair_plan_clear(&plan);
    return leaves;
}
