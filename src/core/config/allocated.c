/* See allocated.h. */
#include "core/config/allocated.h"

#include <string.h>

guint64 allocated_disk_size(const GPtrArray *disks)
{
    guint64 sum = 0;
    for (guint i = 0; disks && i < disks->len; i++)
        sum += ((const struct disk *)disks->pdata[i])->size;
    return sum;
}

static bool is_target(const struct instance *instance, const char *node)
{
    return *instance->migration_node && !strcmp(instance->migration_node, node);
}

guint64 allocated_need(const struct instance *instance)
{
    return MAX(instance->memory, instance->memory_next);
}

guint64 allocated_next(const struct instance *instance)
{
    return instance->memory_next ? instance->memory_next : instance->memory;
}

static bool needs_memory(const struct instance *instance, const char *node)
{
    return !strcmp(instance->primary_node, node) || is_target(instance, node);
}

guint64 allocated_memory(const struct instance *instance, const char *node)
{
    return needs_memory(instance, node) ? allocated_need(instance) : 0;
}

guint64 allocated_now(const struct instance *instance, const char *node)
{
    return needs_memory(instance, node) ? instance->memory : 0;
}

void allocated_take_next(struct instance *instance)
{
    instance->memory = allocated_next(instance);
    if (instance->vcpus_next)
        instance->vcpus = instance->vcpus_next;
    instance->memory_next = 0;
    instance->vcpus_next = 0;
}

/* What it takes of the folder that all nodes mount. */
static struct allocated of_shared_folder(const struct instance *instance)
{
    bool shared = instance->disk_template == TEMPLATE_SHAREDFILE;
    guint64 disk = shared ? allocated_disk_size(instance->disks) : 0;
    return (struct allocated){.disk = disk, .disk_waiting = instance->generation ? 0 : disk};
}

struct allocated allocated_to(const struct instance *instance, const char *node)
{
    if (!strcmp(node, SHARED_FOLDER_ROOM))
        return of_shared_folder(instance);
    bool primary = !strcmp(instance->primary_node, node);
    bool secondary = *instance->secondary_node && !strcmp(instance->secondary_node, node);
    bool target = is_target(instance, node);
    bool copied = instance->disk_template == TEMPLATE_FILE;
    bool images = instance->disk_template != TEMPLATE_SHAREDFILE &&
                  (primary || secondary || (target && copied));
    guint64 disk = images ? allocated_disk_size(instance->disks) : 0;
    return (struct allocated){
        .memory = allocated_memory(instance, node),
        .disk = disk,
        .disk_waiting = instance->generation ? 0 : disk,
        .instances = primary || secondary || target,
    };
}

struct allocated allocated_room(const struct reserved_room *room)
{
    return (struct allocated){
        .memory = room->memory, .disk = room->disk, .disk_waiting = room->disk};
}

void allocated_add(struct allocated *sum, const struct allocated *more)
{
    sum->memory += more->memory;
    sum->disk += more->disk;
    sum->disk_waiting += more->disk_waiting;
    sum->instances += more->instances;
}

void allocated_take(struct allocated *sum, const struct allocated *less)
{
    sum->memory -= less->memory;
    sum->disk -= less->disk;
    sum->disk_waiting -= less->disk_waiting;
    sum->instances -= less->instances;
}

guint allocated_nodes(const struct instance *instance, const char *ret[3])
{
    const char *all[] = {instance->primary_node, instance->secondary_node,
                         instance->migration_node};
    guint count = 0;
    for (guint i = 0; i < G_N_ELEMENTS(all); i++) {
        bool known = !*all[i];
        for (guint k = 0; k < count && !known; k++)
            known = !strcmp(ret[k], all[i]);
        if (!known)
            ret[count++] = all[i];
    }
    return count;
}
