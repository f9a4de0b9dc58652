/*
 * node_report; see report.h. Guests are asked anew, except those whose last question got no answer
 * a short while ago: one stuck monitor must not delay every report.
 */
#include "core/guest/report.h"

#include "core/guest/incoming.h"
#include "core/guest/keeper.h"
#include "core/guest/outgoing.h"
#include "core/guest/services.h"

#define LATE_PAUSE_MS 10000 /* before a guest that did not answer is asked again */

static void report_guest(const struct guest *guest, struct node_report *report)
{
    const struct guest_record *record = guest->record;
    struct guest_report *line = guest_report_new();
    set_string(&line->instance, record->instance);
    line->generation = record->generation;
    line->state = guest->shutdown ? GUEST_SHUTDOWN : guest->last_state;
    line->memory = record->spec ? record->spec->memory : 0;
    if (record->target) {
        set_string(&line->replica, record->target->replica);
        line->mirror = guest->last_mirror.state;
        line->progress = MIN(guest->last_mirror.progress, 100);
    }
    line->migrating = outgoing_state(guest);
    if (line->migrating != MIGRATION_NONE)
        set_string(&line->migration, record->migration);
    g_ptr_array_add(report->guests, line);
}

/* It is no guest yet, but it has memory. */
static void report_incoming(const struct guest *guest, struct node_report *report)
{
    const struct guest_record *record = guest->record;
    struct guest_report *line = guest_report_new();
    set_string(&line->instance, record->instance);
    line->generation = incoming_generation(guest);
    line->state = GUEST_INCOMING;
    line->memory = record->incoming->memory;
    set_string(&line->migration, record->incoming->migration);
    line->migrating = MIGRATION_COPYING;
    g_ptr_array_add(report->guests, line);
}

static void report_guests(struct node_core *node, struct node_report *report)
{
    gint64 now = node->env->ops->boot_ms(node->env);
    /* Waiting may change the table: first who, then what. */
    g_autoptr(GPtrArray) guests = g_ptr_array_new();
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_add(guests, value);

    for (guint i = 0; i < guests->len; i++) {
        struct guest *guest = guests->pdata[i];
        if (guest->live && (!guest->query_late || now - guest->query_late_ms >= LATE_PAUSE_MS))
            guest_query(guest);
        if (guest->live)
            report_guest(guest, report);
        if (guest->incoming_live)
            report_incoming(guest, report);
    }
}

static void report_replica(struct node_report *report, const char *instance, const char *replica,
                           guint64 generation, bool exported)
{
    struct replica_report *line = replica_report_new();
    set_string(&line->instance, instance);
    set_string(&line->replica, replica);
    line->generation = generation;
    line->exported = exported;
    g_ptr_array_add(report->replicas, line);
}

/* Replicas that were opened here, and those that only have images yet. */
static void report_replicas(struct node_core *node, const GPtrArray *images,
                            struct node_report *report)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct guest *guest = value;
        const struct guest_record *record = guest->record;
        if (*record->replica)
            report_replica(report, record->instance, record->replica,
                           record->exported ? record->replica_generation : 0, guest->export_live);
    }
    for (guint i = 0; i < images->len; i++) {
        const struct image_set *set = images->pdata[i];
        const struct guest *guest = guest_lookup(node, set->instance);
        if (*set->replica && (!guest || strcmp(guest->record->replica, set->replica) != 0))
            report_replica(report, set->instance, set->replica, 0, false);
    }
}

/* The same without the disks, which is all that a master of an older version understands. */
static void report_names(const GPtrArray *sets, GPtrArray *ret_to)
{
    for (guint i = 0; i < sets->len; i++) {
        const struct image_set *set = sets->pdata[i];
        g_ptr_array_add(ret_to, g_strdup_printf("%s%s%s", set->instance, *set->replica ? " " : "",
                                                set->replica));
    }
}

static void report_images(const GPtrArray *images, struct node_report *report)
{
    report_names(images, report->images);
    for (guint i = 0; i < images->len; i++)
        g_ptr_array_add(report->image_sets, image_set_copy(images->pdata[i]));
}

static void report_sources(struct storage *storage, struct node_report *report)
{
    g_autoptr(GPtrArray) sources = storage->ops->sources(storage);
    report->sources_whole = sources != NULL;
    for (guint i = 0; sources && i < sources->len; i++)
        g_ptr_array_add(report->sources, g_strdup(sources->pdata[i]));
}

static void report_bridges(const GPtrArray *bridges, struct node_report *report)
{
    for (guint i = 0; i < bridges->len; i++)
        g_ptr_array_add(report->bridges, g_strdup(bridges->pdata[i]));
}

static void report_master_ip(struct node_core *node, struct node_report *report)
{
    struct network_driver *network = node->env->network;
    g_autofree char *address = g_strdup(fence_announced(node->fence)->master_ip);
    g_autoptr(GPtrArray) devices =
        *address ? network->ops->address_devices(network, address, NULL) : NULL;
    for (guint i = 0; devices && i < devices->len; i++)
        g_ptr_array_add(report->master_ip, g_strdup(devices->pdata[i]));
}

/* Only where it is not a person's wish. */
static void report_accelerator(struct node_core *node, struct node_report *report)
{
    g_autofree char *why = fence_announced(node->fence)->accelerator == ACCEL_AUTO
                               ? node->hv->ops->without_kvm(node->hv)
                               : NULL;
    set_string(&report->without_kvm, why != NULL ? why : "");
}

static void report_services(struct node_core *node, struct node_report *report)
{
    services_report(node->env, report->services);
    struct service_report *member = keeper_service(node->keeper);
    if (member && report->services->len < LIMIT_SERVICES)
        g_ptr_array_add(report->services, member);
    else if (member)
        service_report_free(member);
}

json_t *report_node(struct node_core *node, struct fence_op *op, const void *args, GError **error)
{
    struct storage *storage = node->storage;
    record_autoptr(node_report) report = node_report_new();
    struct storage_space space = {0};
    set_string(&report->node, node->env->node_uuid);
    set_string(&report->version, FETTLE_VERSION);
    set_string(&report->boot_id, node->env->boot_id);
    if (!storage->ops->space(storage, &space, error))
        return NULL;
    report->disk_total = space.total_mib;
    report->disk_free = space.free_mib;
    guint cpus = 0;
    if (!node->hv->ops->host(node->hv, &report->memory_total, &report->memory_free, &cpus)) {
        fettle_set_error(error, ENVIRONMENT, "the host does not tell its memory and processors");
        return NULL;
    }
    report->cpus = cpus;
    g_autoptr(GPtrArray) images = storage->ops->list(storage, false, error);
    g_autoptr(GPtrArray) aside = images ? storage->ops->list(storage, true, error) : NULL;
    if (!aside)
        return NULL;
    g_autoptr(GPtrArray) bridges = node->env->network->ops->bridges(node->env->network, error);
    if (!bridges)
        return NULL;
    set_string(&report->qemu_version, node->hv->ops->version(node->hv));
    report_accelerator(node, report);
    set_string(&report->shared, storage->ops->shared(storage, &space));
    report->shared_total = space.total_mib;
    report->shared_free = space.free_mib;
    report_images(images, report);
    report_sources(storage, report);
    report_names(aside, report->leftovers);
    for (guint i = 0; i < aside->len; i++)
        g_ptr_array_add(report->aside_sets, image_set_copy(aside->pdata[i]));
    report_bridges(bridges, report);
    report_master_ip(node, report);
    report_guests(node, report);
    report_replicas(node, images, report);
    report_services(node, report);
    if (task_killed()) {
        node_killed(error);
        return NULL;
    }
    return node_report_to_json(report);
}
