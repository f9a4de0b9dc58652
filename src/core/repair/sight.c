/*
 * What nodes say, as far as it can be a cause of repair beside the record (ARP-70). Good news count
 * at once; bad news only from an answer of the node itself, only about a record that is no newer
 * than the answer and that no job is at work on, and only if an earlier pass has had them too: an
 * answer can be older than what a job has done meanwhile. See watcher_internal.h.
 */
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
        if (report->disk_total > 0)
            memory->failed_pass = 0;
        else if (memory->failed_pass == 0)
            memory->failed_pass = watcher->pass;
    } else if (node->offline) {
        *memory = (struct node_memory){0}; /* what is on record says it all */
    } else if (memory->answered && memory->silent_since == 0) {
        memory->silent_since = watcher_now(watcher);
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

/* Whether the node of the replica has answered that it has no images of it. */
static bool images_missing(const struct watcher *watcher, const struct instance *instance,
                           const struct replica *replica)
{
    GHashTable *images = g_hash_table_lookup(watcher->images, replica->node);
    if (images == NULL || replica->state != REPLICA_IN_SYNC || instance->task_state != TASK_NONE ||
        *instance->migration != '\0')
        return false;
    const char *name = g_hash_table_lookup(images, replica->uuid);
    return (name == NULL || !g_str_has_prefix(name, instance->uuid)) &&
           !newer_than_reports(watcher, "instance", instance->uuid) &&
           !newer_than_reports(watcher, "replica", replica->uuid);
}

static bool replica_gone(struct watcher *watcher, const struct instance *instance,
                         const struct replica *replica)
{
    if (!images_missing(watcher, instance, replica)) {
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
    return (struct repair_sight){
        .guest = watcher_guest(watcher, instance, &reported),
        .replica_gone = replica != NULL && replica_gone(watcher, instance, replica),
        .disks_failed =
            primary != NULL && primary->failed_pass != 0 && primary->failed_pass < watcher->pass,
    };
}
