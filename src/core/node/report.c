/*
 * node_report; see report.h. Whatever may not answer is looked at beside the report (look.h), which
 * waits for it within bounds and then says what is known.
 */
#include "core/node/report.h"

#include "core/host/services.h"
#include "core/member/member_care.h"
#include "core/node/health.h"
#include "core/node/keys.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"
#include "core/node/parts.h"

/* Of all that a guest that does not answer may be, "running" is what must be treated most
 * carefully: so it is told to whoever takes it for news. */
static void tell_late(const struct guest *guest, bool looks, gint64 now, struct guest_report *line)
{
    if (looks) {
        line->late = true;
        line->age_ms = (guint64)MAX(now - guest->heard_ms, 0);
    } else if (line->state != GUEST_SHUTDOWN) {
        line->state = GUEST_RUNNING;
    }
}

static void report_guest(const struct guest *guest, const struct look_round *round, bool looks,
                         struct node_report *report)
{
    const struct guest_record *record = guest->record;
    struct guest_report *line = guest_report_new();
    text_set(&line->instance, record->instance);
    line->generation = record->generation;
    line->state = guest->shutdown ? GUEST_SHUTDOWN : guest->last_state;
    line->memory = record->spec ? record->spec->memory : 0;
    text_set(&line->name, record->spec ? record->spec->name : "");
    if (record->target) {
        text_set(&line->replica, record->target->replica);
        line->mirror = guest->last_mirror.state;
        line->progress = MIN(guest->last_mirror.progress, 100);
        text_set(&line->held, guest->held ? guest->held : "");
    }
    line->io_errors = guest->last_io.errors;
    line->io_disk = guest->last_io.disk;
    line->io_stop = guest_io_stop(guest);
    const struct guest_volume *volume = guest_io_volume(guest);
    text_set(&line->io_volume, volume ? volume->volume : "");
    line->migrating = outgoing_state(guest);
    if (line->migrating != MIGRATION_NONE)
        text_set(&line->migration, record->migration);
    if (!look_round_answered(round, &guest->look))
        tell_late(guest, looks, look_round_now(round), line);
    g_ptr_array_add(report->guests, line);
}

/* It is no guest yet, but it has memory. */
static void report_incoming(const struct guest *guest, struct node_report *report)
{
    const struct guest_record *record = guest->record;
    struct guest_report *line = guest_report_new();
    text_set(&line->instance, record->instance);
    line->generation = incoming_generation(guest);
    line->state = GUEST_INCOMING;
    line->memory = record->incoming->memory;
    text_set(&line->migration, record->incoming->migration);
    line->migrating = MIGRATION_COPYING;
    g_ptr_array_add(report->guests, line);
}

/* One that began anew meanwhile is asked again. */
static bool look_at_guest(struct node_core *node, void *thing)
{
    struct guest *guest = thing;
    guint64 generation;
    do {
        generation = guest->record->generation;
        if (!guest->live)
            return true;
        if (guest_query(guest) &&
            (!guest->live || guest->making || guest_look_io(guest) || !guest->live))
            return true;
    } while (generation != guest->record->generation && !task_killed());
    return false;
}

static void ask_guests(struct node_core *node, struct look_round *round)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct guest *guest = value;
        if (guest->live)
            look_round_add(round, &guest->look, look_at_guest, guest);
    }
}

static void report_replica(struct node_report *report, const char *instance, const char *replica,
                           guint64 generation, bool exported)
{
    struct replica_report *line = replica_report_new();
    text_set(&line->instance, instance);
    text_set(&line->replica, replica);
    line->generation = generation;
    line->exported = exported;
    g_ptr_array_add(report->replicas, line);
}

/* Guests, and replicas that were opened here. The list is the table as it is now: who has begun
 * while others were asked is in it, and late. */
static void report_guests(const struct node_core *node, const struct look_round *round, bool looks,
                          struct node_report *report)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct guest *guest = value;
        const struct guest_record *record = guest->record;
        if (guest->live)
            report_guest(guest, round, looks, report);
        if (guest->incoming_live)
            report_incoming(guest, report);
        if (*record->left)
            g_ptr_array_add(report->left, g_strdup_printf("%s %s", record->instance, record->left));
        if (*record->replica)
            report_replica(report, record->instance, record->replica,
                           record->exported ? record->replica_generation : 0, guest->export_live);
    }
}

/* Replicas that only have images yet. */
static void report_images(struct node_core *node, const GPtrArray *images,
                          struct node_report *report)
{
    for (guint i = 0; images && i < images->len; i++) {
        const struct image_set *set = images->pdata[i];
        const struct guest *guest = guest_lookup(node, set->instance);
        if (*set->replica && (!guest || strcmp(guest->record->replica, set->replica) != 0))
            report_replica(report, set->instance, set->replica, 0, false);
    }
}

static void report_master_ip(struct node_core *node, struct node_report *report)
{
    struct network_driver *network = node->env->network;
    g_autofree char *address = g_strdup(epoch_fence_announced(node->fence)->master_ip);
    g_autoptr(GPtrArray) devices =
        *address ? network->ops->address_devices(network, address, NULL) : NULL;
    for (guint i = 0; devices && i < devices->len; i++)
        g_ptr_array_add(report->master_ip, g_strdup(devices->pdata[i]));
}

/* Only where it is not a person's wish. */
static void report_accelerator(struct node_core *node, struct node_report *report)
{
    g_autofree char *why = epoch_fence_announced(node->fence)->accelerator == ACCEL_AUTO
                               ? node->hv->ops->without_kvm(node->hv)
                               : NULL;
    text_set(&report->without_kvm, why != NULL ? why : "");
}

static void report_services(struct node_core *node, struct node_report *report)
{
    services_report(node->env, report->services);
    struct service_report *member = member_care_service(node->care);
    if (member && report->services->len < LIMIT_SERVICES)
        g_ptr_array_add(report->services, member);
    else if (member)
        service_report_free(member);
}

json_t *report_alive(struct node_core *node, struct epoch_fence_op *op, const void *args,
                     GError **error)
{
    return json_object();
}

static bool report_host(const struct node_core *node, struct node_report *report, GError **error)
{
    guint cpus = 0;
    if (!node->hv->ops->host(node->hv, &report->memory_total, &report->memory_free, &cpus)) {
        fettle_set_error(error, ENVIRONMENT, "the host does not tell its memory and processors");
        return false;
    }
    report->cpus = cpus;
    text_set(&report->node, node->env->node_uuid);
    text_set(&report->version, FETTLE_VERSION);
    text_set(&report->boot_id, node->env->boot_id);
    text_set(&report->qemu_version, node->hv->ops->version(node->hv));
    return true;
}

/* From what is known now; waits for nothing. */
static json_t *report_known(struct node_core *node, const struct look_round *round, bool looks,
                            struct node_report *report, GError **error)
{
    if (!parts_report(node->parts, round, looks, report, error))
        return NULL;
    report_accelerator(node, report);
    report_master_ip(node, report);
    report_guests(node, round, looks, report);
    report_images(node, parts_images(node->parts), report);
    report_services(node, report);
    keys_status_free(report->keys);
    report->keys = keys_report(node);
    /* The very last: it grows old on its way. */
    report->clock_us = (guint64)MAX(node->env->ops->wall_us(node->env), 0);
    return node_report_to_json(report);
}

json_t *report_node(struct node_core *node, struct epoch_fence_op *op, const void *args,
                    GError **error)
{
    const struct node_report_args *asked = args;
    record_autoptr(node_report) report = node_report_new();
    if (!report_host(node, report, error))
        return NULL;
    struct look_round *round = look_round_new(node);
    parts_ask(node->parts, round);
    ask_guests(node, round);
    health_report(node, asked->acts, report);
    json_t *answer = NULL;
    if (look_round_wait(round))
        answer = report_known(node, round, asked->looks, report, error);
    else
        node_killed(error);
    look_round_free(round);
    return answer;
}
