/*
 * See ops_restored.h. A guest that lives is the instance: its node is the primary and the holder,
 * its generation is the one on record. Where none lives, the one node that has the images is the
 * primary. A replica counts as in-sync only where a live mirror says so; every other is stale,
 * because it may have been left behind after the backup was taken.
 */
#include "core/ops/ops_restored.h"

#include "core/ops/instance.h"

#include <string.h>

#include "core/config/restored.h"

#define WHY_STALE "the configuration was restored from a backup"

/* What the nodes have of one instance. */
struct finding {
    const struct instance *instance;
    const struct node_report *runs; /* the node with its guest; NULL: none lives */
    const struct guest_report *guest;
    GPtrArray *has; /* struct node_report *: nodes with current images, borrowed */
};

/* --- until then --- */

bool restored_allows(const struct op *op, const char *id, GError **error)
{
    static const char *const acts[] = {"OP_NODE_MIGRATE", "OP_NODE_EVACUATE", NULL};
    bool on_instance = g_str_has_prefix(id, "OP_INSTANCE_") && strcmp(id, "OP_INSTANCE_VERIFY") &&
                       strcmp(id, "OP_INSTANCE_QUERY_DATA");
    if (!restored_brake(op_config(op)) || (!on_instance && !g_strv_contains(acts, id)))
        return true;
    restored_set_error(error);
    return false;
}

/* --- asking --- */

bool restored_gather(struct op *op, GError **error)
{
    g_autoptr(GPtrArray) uuids = op_online_nodes(op, NULL);
    if (!op_gather_reports(op, uuids, error))
        return false;
    for (guint i = 0; i < uuids->len; i++) {
        if (!instance_need_disks(op, uuids->pdata[i], error))
            return false;
        if (op_report(op, uuids->pdata[i]))
            continue;
        const char *name = op_node_name(op, uuids->pdata[i]);
        g_autofree char *why = op_no_report(op, uuids->pdata[i]);
        fettle_set_error(error, UNREACHABLE,
                         "node %s %s, so what runs there cannot be compared with the "
                         "restored record: mend it, or say that it is dead (fettle node modify %s "
                         "--offline yes), and try again",
                         name, why, name);
        return false;
    }
    return true;
}

/* --- what there is --- */

static bool find_guest(struct op *op, struct finding *finding, const struct node_report *report,
                       GError **error)
{
    for (guint i = 0; i < report->guests->len; i++) {
        const struct guest_report *guest = report->guests->pdata[i];
        if (strcmp(guest->instance, finding->instance->uuid) != 0 || guest->state == GUEST_ABSENT ||
            guest->state == GUEST_INCOMING)
            continue;
        if (finding->runs) {
            fettle_set_error(error, UNSAFE,
                             "instance %s: %s has a guest of it (generation %" G_GUINT64_FORMAT
                             ") and %s too (generation %" G_GUINT64_FORMAT
                             "); end the wrong one on its node by hand and try again",
                             finding->instance->name, op_node_name(op, finding->runs->node),
                             finding->guest->generation, op_node_name(op, report->node),
                             guest->generation);
            return false;
        }
        finding->runs = report;
        finding->guest = guest;
    }
    return true;
}

static bool has_images(const struct node_report *report, const char *instance)
{
    for (guint i = 0; i < report->images->len; i++) {
        if (!strcmp(report->images->pdata[i], instance))
            return true;
    }
    return false;
}

static bool find_all(struct op *op, struct finding *finding, GError **error)
{
    const GPtrArray *reports = reports_list(op->reports);
    for (guint i = 0; i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        if (!find_guest(op, finding, report, error))
            return false;
        if (has_images(report, finding->instance->uuid))
            g_ptr_array_add(finding->has, (void *)report);
    }
    return true;
}

static bool images_are_local(const struct instance *instance)
{
    return instance->disk_template == TEMPLATE_MIRROR || instance->disk_template == TEMPLATE_FILE;
}

/* The node that is the primary by what the nodes have; NULL with UNSAFE if that cannot be told. */
static const char *real_primary(struct op *op, const struct finding *finding, GError **error)
{
    const struct instance *instance = finding->instance;
    if (finding->runs)
        return finding->runs->node;
    if (!images_are_local(instance) || finding->has->len == 0)
        return instance->primary_node;
    const struct node_report *first = finding->has->pdata[0];
    if (finding->has->len == 1)
        return first->node;
    const struct node_report *second = finding->has->pdata[1];
    fettle_set_error(error, UNSAFE,
                     "instance %s: %s and %s both have images of it, and no guest runs; which are "
                     "current the backup cannot tell. Move the wrong ones out of var/disks on "
                     "their node and try again",
                     instance->name, op_node_name(op, first->node), op_node_name(op, second->node));
    return NULL;
}

/* --- taking it over --- */

static void tell(GPtrArray *said, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void tell(GPtrArray *said, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_ptr_array_add(said, g_strdup_vprintf(format, args));
    va_end(args);
}

static bool adopt_guest(struct op *op, const struct finding *finding, struct instance *instance,
                        GPtrArray *said, GError **error)
{
    const struct instance *before = finding->instance;
    if (finding->guest->generation < before->generation) {
        fettle_set_error(error, TEMPORARY,
                         "instance %s: an older guest (generation %" G_GUINT64_FORMAT
                         ") still lives on %s and is being ended; try again",
                         before->name, finding->guest->generation,
                         op_node_name(op, finding->runs->node));
        return false;
    }
    text_set(&instance->holder, finding->runs->node);
    instance->generation = finding->guest->generation;
    instance->admin_state = ADMIN_UP;
    instance->clean = false;
    if (instance->generation != before->generation || strcmp(before->holder, instance->holder) != 0)
        tell(said,
             "instance %s: runs on %s as generation %" G_GUINT64_FORMAT
             "; on record was generation %" G_GUINT64_FORMAT " and %s",
             before->name, op_node_name(op, finding->runs->node), finding->guest->generation,
             before->generation, *before->holder ? op_node_name(op, before->holder) : "nobody");
    return true;
}

static void adopt_images(struct op *op, const struct finding *finding, struct instance *instance,
                         GPtrArray *said)
{
    bool moved = strcmp(finding->instance->primary_node, instance->primary_node) != 0;
    if (moved)
        tell(said, "instance %s: its images are on %s; on record was %s", instance->name,
             op_node_name(op, instance->primary_node),
             op_node_name(op, finding->instance->primary_node));
    else if (images_are_local(instance) && finding->has->len == 0)
        tell(said, "instance %s: no node that answers has images of it", instance->name);
    if (moved || *instance->holder)
        instance->generation++;
    text_set(&instance->holder, "");
    instance->clean = false;
}

/* Whether its copy is proven equal: a mirror to that very replica is complete now. */
static bool replica_is_live(const struct finding *finding, const struct replica *replica)
{
    return finding->guest && finding->guest->mirror == MIRROR_READY &&
           !strcmp(finding->guest->replica, replica->uuid);
}

static void adopt_replica(struct op *op, const struct finding *finding, struct instance *instance,
                          GPtrArray *changes, GPtrArray *said)
{
    const struct replica *now = op_replica_of(op, finding->instance);
    if (!now)
        return;
    if (!strcmp(now->node, instance->primary_node)) {
        text_set(&instance->secondary_node, "");
        text_set(&instance->replica, "");
        op_delete(op, changes, "replica", now->uuid);
        tell(said,
             "instance %s: has no replica on record any more; fettle instance "
             "replace-disks %s gives it one",
             instance->name, instance->name);
        return;
    }
    record_autoptr(replica) replica = replica_copy(now);
    if (replica_is_live(finding, now) && now->state == REPLICA_IN_SYNC) {
        replica->generation = instance->generation;
    } else if (now->state != REPLICA_STALE) {
        replica->state = REPLICA_STALE;
        replica->since = op_now_seconds(op);
        text_set(&replica->why, WHY_STALE);
        tell(said, "instance %s: its replica counts as stale until it is copied anew",
             instance->name);
    }
    replica->sync++;
    op_put(op, changes, "replica", replica->uuid, replica_to_json(replica));
}

static bool adopt_instance(struct op *op, const struct instance *before, GPtrArray *changes,
                           GPtrArray *said, GError **error)
{
    g_autoptr(GPtrArray) has = g_ptr_array_new();
    struct finding finding = {.instance = before, .has = has};
    const char *primary = find_all(op, &finding, error) ? real_primary(op, &finding, error) : NULL;
    if (!primary)
        return false;
    record_autoptr(instance) instance = instance_copy(before);
    text_set(&instance->primary_node, primary);
    text_set(&instance->migration, "");
    text_set(&instance->migration_node, "");
    if (finding.runs && !adopt_guest(op, &finding, instance, said, error))
        return false;
    if (!finding.runs)
        adopt_images(op, &finding, instance, said);
    adopt_replica(op, &finding, instance, changes, said);
    op_put(op, changes, "instance", instance->uuid, instance_to_json(instance));
    return true;
}

/* Made after the backup: nobody touches them, a person should know. */
static void tell_unknown(struct op *op, GPtrArray *said)
{
    const GPtrArray *reports = reports_list(op->reports);
    for (guint i = 0; i < reports->len; i++) {
        const struct node_report *report = reports->pdata[i];
        for (guint j = 0; j < report->guests->len; j++) {
            const struct guest_report *guest = report->guests->pdata[j];
            if (!config_get(op_config(op), "instance", guest->instance, NULL))
                tell(said,
                     "node %s: runs a guest of an instance that the backup does not know (%s%s%s); "
                     "it is left alone; what can be done about it says: fettle cluster verify",
                     op_node_name(op, report->node), guest->name, *guest->name ? ", " : "",
                     guest->instance);
        }
    }
}

bool restored_adopt(struct op *op, GPtrArray *changes, GPtrArray *said, GError **error)
{
    g_autoptr(GPtrArray) instances = config_list(op_config(op), "instance");
    for (guint i = 0; i < instances->len; i++) {
        if (!adopt_instance(op, instances->pdata[i], changes, said, error))
            return false;
    }
    tell_unknown(op, said);
    return true;
}
