/*
 * What nodes say, as far as it can be a cause of repair beside the record (ARP-70). Good news count
 * at once; bad news only from an answer of the node itself, only about a record that is no newer
 * than the answer and that no job is at work on, and only if an earlier pass has had them too: an
 * answer can be older than what a job has done meanwhile. What an answer has from memory is no news
 * (SAF-90). See watcher_internal.h.
 */
#include "core/config/late.h"
#include "core/ops/copy.h"
#include "core/repair/watcher_internal.h"

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
    const struct node_report *report = g_hash_table_lookup(watcher->reports, node->uuid);
    if (report != NULL) {
        if (!memory->answered || memory->silent_since != 0)
            watcher->returned_ms = watcher->env->ops->boot_ms(watcher->env);
        memory->answered = true;
        memory->silent_since = 0;
        memory->unheard_ms = 0;
        if (report->disk_total > 0 || late_part_of(report, PART_DISKS) != NULL)
            memory->failed_pass = 0;
        else if (memory->failed_pass == 0)
            memory->failed_pass = watcher->pass;
    } else if (g_hash_table_contains(watcher->refused, node->uuid)) {
        memory->silent_since = memory->unheard_ms = 0; /* what says something is not silent */
    } else if (node->offline) {
        *memory = (struct node_memory){0}; /* what is on record says it all */
    } else {
        if (memory->answered && memory->silent_since == 0)
            memory->silent_since = watcher_now(watcher);
        if (memory->unheard_ms == 0)
            memory->unheard_ms = watcher->env->ops->boot_ms(watcher->env);
    }
}

static gboolean node_is_gone(gpointer uuid, gpointer memory, gpointer config)
{
    return config_get(config, "node", uuid, NULL) == NULL;
}

void watcher_sight_update(struct watcher *watcher)
{
    const struct config *config = follow_config(watcher->follow);
    guint64 sizes = 0;
    g_hash_table_foreach_remove(watcher->nodes, node_is_gone, (gpointer)config);
    g_autoptr(GPtrArray) nodes = config_list(config, "node");
    for (guint i = 0; i < nodes->len; i++) {
        const struct node *node = nodes->pdata[i];
        const struct node_report *report = g_hash_table_lookup(watcher->reports, node->uuid);
        remember(watcher, node);
        if (report != NULL)
            sizes += g_str_hash(node->uuid) * (report->memory_total + 1);
    }
    watcher->room_changed |= sizes != watcher->sizes;
    watcher->sizes = sizes;
}

/* --- instances --- */

static bool newer_than_reports(const struct watcher *watcher, const char *kind, const char *key)
{
    guint64 version = 0;
    config_get(follow_config(watcher->follow), kind, key, &version);
    return version > watcher->reports_serial;
}

/* The disks of the replica that have an image, as its node has answered; false without an answer.
 */
static bool replica_images(const struct watcher *watcher, const struct instance *instance,
                           const struct replica *replica, guint64 *ret_disks)
{
    GHashTable *images = g_hash_table_lookup(watcher->images, replica->node);
    const struct node_report *report = g_hash_table_lookup(watcher->reports, replica->node);
    gpointer at = NULL;
    if (images == NULL || report == NULL)
        return false;
    *ret_disks = 0;
    if (g_hash_table_lookup_extended(images, replica->uuid, NULL, &at) &&
        g_str_has_prefix(report->images->pdata[GPOINTER_TO_UINT(at)], instance->uuid))
        *ret_disks = copy_images_at(report, GPOINTER_TO_UINT(at));
    return true;
}

/* Whether the node of the replica has answered that it lacks images of it. */
static bool images_missing(const struct watcher *watcher, const struct instance *instance,
                           const struct replica *replica, guint64 *ret_disks)
{
    if (replica->state != REPLICA_IN_SYNC || instance->task_state != TASK_NONE ||
        *instance->migration != '\0')
        return false;
    return replica_images(watcher, instance, replica, ret_disks) &&
           !copy_is_whole(instance, *ret_disks) &&
           !newer_than_reports(watcher, "instance", instance->uuid) &&
           !newer_than_reports(watcher, "replica", replica->uuid);
}

static bool replica_broken(struct watcher *watcher, const struct instance *instance,
                           const struct replica *replica, guint64 *ret_disks)
{
    if (!images_missing(watcher, instance, replica, ret_disks)) {
        struct watched *known = g_hash_table_lookup(watcher->instances, instance->uuid);
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

struct repair_sight watcher_sight(struct watcher *watcher, const struct instance *instance,
                                  const struct replica *replica)
{
    bool reported = false;
    const struct node_memory *primary = g_hash_table_lookup(watcher->nodes, instance->primary_node);
    guint64 disks = 0;
    bool broken = replica != NULL && replica_broken(watcher, instance, replica, &disks);
    const struct guest_report *guest = watcher_guest(watcher, instance, &reported);
    return (struct repair_sight){
        .guest = guest != NULL && !guest->late ? guest : NULL,
        .replica_broken = broken,
        .replica_images = disks,
        .disks_failed =
            primary != NULL && primary->failed_pass != 0 && primary->failed_pass < watcher->pass,
    };
}
