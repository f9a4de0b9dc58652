/*
 * What there is of an instance, and what an opcode needs of that. See instance.h.
 */
#include "core/ops/instance.h"

#include "core/config/allocated.h"
#include "core/config/fault.h"
#include "core/placement/placement.h"
#include "core/report/faults.h"
#include "core/report/late.h"

#include <string.h>

/* --- what its nodes say --- */

bool instance_gather(struct op *op, const char *node_a, const char *node_b, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    const char *wanted[] = {node_a, node_b};
    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++) {
        if (wanted[i] && *wanted[i] && !op_node_offline(op, wanted[i]))
            g_ptr_array_add(nodes, (void *)wanted[i]);
    }
    return op_gather_reports(op, nodes, error);
}

guint instance_hosts(const struct instance *instance, const char *nodes[4])
{
    guint count = allocated_nodes(instance, nodes);
    for (guint i = 0; i < count; i++) {
        if (!strcmp(nodes[i], instance->holder))
            return count;
    }
    nodes[count] = instance->holder;
    return *instance->holder ? count + 1 : count;
}

bool instance_gather_hosts(struct op *op, const struct instance *instance, GError **error)
{
    g_autoptr(GPtrArray) online = g_ptr_array_new();
    const char *nodes[4];
    for (guint i = instance_hosts(instance, nodes); i > 0; i--) {
        if (!op_node_offline(op, nodes[i - 1]))
            g_ptr_array_add(online, (void *)nodes[i - 1]);
    }
    return op_gather_reports(op, online, error);
}

bool instance_gather_online(struct op *op, GError **error)
{
    g_autoptr(GPtrArray) wanted = op_online_nodes(op, NULL);
    return op_gather_reports(op, wanted, error);
}

/* --- what an opcode needs --- */

bool instance_need_node(const struct op *op, const struct instance *instance, const char *node_uuid,
                        const char *role, GError **error)
{
    const char *name = op_node_name(op, node_uuid);
    if (op_node_offline(op, node_uuid)) {
        fettle_set_error(error, WRONG_STATE, "%s, the %s node of instance \"%s\", is offline", name,
                         role, instance->name);
        return false;
    }
    if (op_report(op, node_uuid))
        return true;
    g_autofree char *why = op_no_report(op, node_uuid);
    g_autofree char *advice =
        op_refused(op, node_uuid)
            ? g_strdup("")
            : g_strdup_printf("; if it is really dead: fettle node modify %s --offline=yes "
                              "--statement ...",
                              name);
    fettle_set_error(error, TEMPORARY, "%s, the %s node of instance \"%s\", %s%s", name, role,
                     instance->name, why, advice);
    return false;
}

bool instance_need_disks(const struct op *op, const char *node_uuid, GError **error)
{
    const struct node_report *report = op_report(op, node_uuid);
    const struct late_part *late = report ? late_part_of(report, PART_DISKS) : NULL;
    if (!late)
        return true;
    g_autofree char *words = late_part_words(late);
    fettle_set_error(error, TEMPORARY, "the disks of %s: %s; try again later",
                     op_node_name(op, node_uuid), words);
    return false;
}

void instance_lock_room(struct op *op, const struct instance *instance)
{
    if (instance->disk_template == TEMPLATE_SHAREDFILE) {
        op_lock_room(op, SHARED_FOLDER_ROOM);
        return;
    }
    op_lock_room(op, instance->primary_node);
    op_lock_room(op, instance->secondary_node);
}

bool instance_need_room(struct op *op, const struct instance *instance, const char *field,
                        const char *who, guint64 more, GError **error)
{
    const char *nodes[] = {instance->primary_node, instance->secondary_node};
    if (!more)
        return true;
    if (instance->disk_template == TEMPLATE_SHAREDFILE)
        return op_need_shared_room(op, who, more, error);
    if (!op_gather_room(op, NULL, error))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(nodes); i++) {
        struct placement_room room;
        if (!*nodes[i])
            continue;
        placement_room(op_config(op), op_report(op, nodes[i]), op->sums, &room);
        if ((gint64)more <= room.disk)
            continue;
        fettle_set_error(error, NO_RESOURCES,
                         "%s%s has %" G_GINT64_FORMAT
                         " MiB of disk left, %s needs %" G_GUINT64_FORMAT " MiB more",
                         field, op_node_name(op, nodes[i]), MAX(room.disk, 0), who, more);
        return false;
    }
    return true;
}

struct image_info *instance_need_image(struct op *op, const char *node_uuid, const char *field,
                                       const char *what, const char *name, GError **error)
{
    struct image_info_args args = {.os_type = (char *)name};
    g_autoptr(GError) local = NULL;
    struct image_info *info = op_ask(op, node_uuid, "image_info", &args, 0, &local);
    if (info)
        return info;
    if (fettle_error_is(local, UNKNOWN_ENTITY))
        fettle_set_error(error, UNKNOWN_ENTITY,
                         "%s: %s \"%s\" does not exist on node \"%s\"; put it into "
                         "var/images there",
                         field, what, name, op_node_name(op, node_uuid));
    else
        g_propagate_prefixed_error(error, g_steal_pointer(&local), "%s: ", field);
    return NULL;
}

bool instance_need_boot_files(struct op *op, const char *node_uuid, const char *kernel,
                              const char *initrd, GError **error)
{
    record_autoptr(image_info) first =
        *kernel ? instance_need_image(op, node_uuid, "kernel_path", "kernel", kernel, error) : NULL;
    if (!*kernel || !first || !*initrd)
        return !*kernel || first;
    record_autoptr(image_info) second =
        instance_need_image(op, node_uuid, "initrd_path", "file", initrd, error);
    return second != NULL;
}

/* What is said of a mark that a fault keeps in force; "" of one on record. Free with g_free(). */
static char *error_since(const struct op *op, const struct instance *instance)
{
    const struct instance *recorded = config_get(op_config(op), "instance", instance->uuid, NULL);
    const struct fault *fault = NULL;
    if (recorded)
        fault_mark(op_config(op), recorded, &fault);
    if (!fault)
        return g_strdup("");
    g_autofree char *since = text_time((gint64)(fault->at_us / G_USEC_PER_SEC));
    return g_strdup_printf("; it is in ERROR since %s: fettle recovery show instance %s", since,
                           instance->name);
}

bool instance_need_whole(const struct op *op, const struct instance *instance, GError **error)
{
    g_autofree char *fault = error_since(op, instance);
    if (instance->task_state == TASK_CREATING || instance->task_state == TASK_REMOVING)
        fettle_set_error(error, WRONG_STATE,
                         "job %" G_GUINT64_FORMAT " ended while %s instance \"%s\"; it is kept if "
                         "it runs or is whole, else removed: by itself, or by: fettle instance "
                         "settle %s%s",
                         instance->task_owner,
                         enum_word(&task_state_words, (int)instance->task_state), instance->name,
                         instance->name, fault);
    else if (instance->task_state == TASK_RECREATING_DISKS)
        fettle_set_error(error, WRONG_STATE,
                         "job %" G_GUINT64_FORMAT
                         " ended while it made new disks for instance \"%s\"; say: fettle instance "
                         "recreate-disks %s (it goes on with them, or finds the old ones)%s",
                         instance->task_owner, instance->name, instance->name, fault);
    else if (*instance->migration)
        fettle_set_error(error, WRONG_STATE,
                         "a migration of instance \"%s\" has not been settled; say: "
                         "fettle instance migrate %s --cleanup%s",
                         instance->name, instance->name, fault);
    else
        return true;
    return false;
}

bool instance_need_own_disks(const struct op *op, const struct instance *instance, GError **error)
{
    const struct node_report *report = op_report(op, instance->primary_node);
    const struct guest_report *guest = report_guest(report, instance);
    const struct node_fault *fault = faults_proven(report, FAULT_DISKS);
    const struct replica *replica = op_replica_of(op, instance);
    if (!replica || replica->state != REPLICA_IN_SYNC)
        return true;
    if (fault) {
        fettle_set_error(error, UNSAFE,
                         "%s, the primary node of instance \"%s\", %s, and its replica on %s has "
                         "every acknowledged write; go on from that: fettle instance failover %s",
                         op_node_name(op, instance->primary_node), instance->name, fault->text,
                         op_node_name(op, replica->node), instance->name);
        return false;
    }
    if (!guest || guest->io_errors == 0)
        return true;
    fettle_set_error(
        error, UNSAFE,
        "requests of instance \"%s\" to its own disk %" G_GUINT64_FORMAT
        " on %s have failed, and its replica on %s has every acknowledged write; go on "
        "from that: fettle instance failover %s",
        instance->name, guest->io_disk, op_node_name(op, instance->primary_node),
        op_node_name(op, replica->node), instance->name);
    return false;
}

bool instance_half_installed(const struct instance *instance)
{
    /* Whoever holds it only copies what has been written. */
    return instance->task_state == TASK_REINSTALLING && !*instance->holder;
}

/* What settles a mark, for a person who does not wait for the watcher. Free with g_free(). */
static char *settled_by(const struct instance *instance)
{
    const struct disk *disk = instance->disks->len ? instance->disks->pdata[0] : NULL;
    if (instance->task_state == TASK_REINSTALLING)
        return g_strdup_printf("reinstall %s", instance->name);
    if (instance->task_state == TASK_GROWING_DISK && disk)
        return g_strdup_printf("grow-disk %s 0 %" G_GUINT64_FORMAT " --absolute", instance->name,
                               disk->size);
    return g_strdup_printf("%s %s", instance->admin_state == ADMIN_UP ? "startup" : "shutdown",
                           instance->name);
}

bool instance_need_settled(const struct op *op, const struct instance *instance,
                           enum task_state own, GError **error)
{
    if (instance->task_state == TASK_NONE || instance->task_state == own)
        return true;
    g_autofree char *by = settled_by(instance), *fault = error_since(op, instance);
    fettle_set_error(error, TEMPORARY,
                     "job %" G_GUINT64_FORMAT
                     " ended while %s instance \"%s\"; that is settled first, by itself, or by: "
                     "fettle instance %s%s",
                     instance->task_owner, enum_word(&task_state_words, (int)instance->task_state),
                     instance->name, by, fault);
    return false;
}

char *instance_replica_since(const struct replica *replica)
{
    if (!replica->since)
        return g_strdup_printf("generation %" G_GUINT64_FORMAT, replica->generation);
    return text_time((gint64)replica->since);
}
