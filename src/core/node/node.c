/*
 * The node daemon's core: requests and events come in here, each request runs as a task of its own;
 * see node.h and node_private.h.
 */
#include "core/node/node.h"
#include "core/host/ssconf.h"

#include "base/log.h"
#include "core/member/member_care.h"
#include "core/node/archive_calls.h"
#include "core/node/cancel.h"
#include "core/node/collect.h"
#include "core/node/console.h"
#include "core/node/disks.h"
#include "core/node/ended_jobs.h"
#include "core/node/health.h"
#include "core/node/image_look.h"
#include "core/node/keys.h"
#include "core/node/lifecycle.h"
#include "core/node/master_ip.h"
#include "core/node/migration/incoming.h"
#include "core/node/migration/outgoing.h"
#include "core/node/mirror.h"
#include "core/node/monitor/figures.h"
#include "core/node/monitor/told.h"
#include "core/node/parts.h"
#include "core/node/reconcile.h"
#include "core/node/rediscover.h"
#include "core/node/replica.h"
#include "core/node/report.h"
#include "core/node/room.h"
#include "core/node/statement.h"
#include "core/node/strays.h"
#include "core/node/undo.h"
#include "core/node/volume/points.h"
#include "core/node/volume/volumes.h"

#define NOT_READY "the node daemon is starting and does not know yet what runs here; try again"

struct work;
static json_t *work_announce(struct work *work, const void *args, GError **error);
static json_t *work_promise(struct work *work, const void *args, GError **error);
static json_t *work_settle(struct work *work, const void *args, GError **error);

/* `speak` instead of `run`: calls that are no operations and need the sender. `care`: for the
 * node's member of etcd. `fenced`: an operation of its epoch, which the next announcement waits
 * for. */
static const struct procedure {
    const char *method;
    node_procedure run;
    bool fenced;
    json_t *(*speak)(struct work *work, const void *args, GError **error);
    json_t *(*care)(struct member_care *care, const void *args, GError **error);
} procedures[] = {
    {"announce", NULL, false, work_announce},
    {"promise_epoch", NULL, false, work_promise},
    {"node_alive", report_alive, false},
    {"node_report", report_node, false},
    {"collect", collect_run, true},
    {"list_strays", strays_list, false},
    {"address_check", master_ip_check, false},
    {"image_info", disks_image_info, true},
    {"disks_create", disks_create, true},
    {"disks_remove", disks_remove, true},
    {"disks_undo", undo_disks, true},
    {"replica_open", replica_open, true},
    {"replica_settle", NULL, false, work_settle},
    {"replica_close", replica_close, true},
    {"replica_leave", replica_leave, true},
    {"guest_start", lifecycle_start, true},
    {"guest_stop", lifecycle_stop, true},
    {"volume_attach", volumes_attach, true},
    {"volume_detach", volumes_detach, true},
    {"volume_grown", volumes_grown, false},
    {"point_open", points_open, false},
    {"point_look", points_look, false},
    {"point_close", points_close, false},
    {"guest_reset", lifecycle_reset, true},
    {"mirror_attach", mirror_attach, true},
    {"mirror_detach", mirror_detach, true},
    {"mirror_wait", mirror_wait, true},
    {"incoming_open", incoming_open, true},
    {"incoming_switch", incoming_switch, true},
    {"incoming_close", incoming_close, true},
    {"migration_start", outgoing_start, true},
    {"migration_wait", outgoing_wait, true},
    {"migration_cancel", outgoing_cancel, true},
    {"disk_grow", disks_grow, true},
    {"disks_renew", disks_renew, true},
    {"disks_progress", disks_how_far, false},
    {"work_cancel", cancel_work, true},
    {"console_read", console_read, false},
    {"console_write", console_write, false},
    {"archive_put", archive_calls_put, true},
    {"archive_list", archive_calls_list, false},
    {"archive_get", archive_calls_get, false},
    {"keys_trust", keys_trust, true},
    {"keys_request", keys_request, true},
    {"keys_certify", keys_certify, true},
    {"engine_set", .care = member_methods_engine_set, .fenced = true},
    {"engine_status", .care = member_methods_engine_status, .fenced = false},
    {"member_prepare", .care = member_methods_prepare, .fenced = true},
    {"member_certify", .care = member_methods_certify, .fenced = true},
    {"member_trust", .care = member_methods_trust, .fenced = true},
    {"member_restart", .care = member_methods_restart, .fenced = true},
    {"member_start", .care = member_methods_start, .fenced = true},
    {"member_stop", .care = member_methods_stop, .fenced = true},
    {"member_aside", .care = member_methods_aside, .fenced = true},
    {"member_remove", .care = member_methods_remove, .fenced = true},
};

/* --- lifetime --- */

void node_hold(struct node_core *node)
{
    node->users++;
}

void node_release(struct node_core *node)
{
    if (--node->users > 0)
        return;
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        guest_free(value);
    g_hash_table_unref(node->guests);
    health_free(node->health);
    parts_free(node->parts);
    strays_look_free(node->strays);
    ended_jobs_free(node->ended_jobs);
    g_hash_table_unref(node->size_looks);
    g_hash_table_unref(node->volume_looks);
    epoch_fence_free(node->fence);
    g_free(node->address);
    keys_clear(node);
    g_free(node->image_folder);
    g_free(node);
}

/* The address goes first: whoever else is the master now has it. */
static void node_announced(void *data)
{
    struct node_core *node = data;
    master_ip_kick(node->master_ip);
    figures_heard(node->figures);
    told_kick(node->told);
    if (node->changed)
        node->changed(node->changed_data);
}

struct node_core *node_core_new(const struct env *env, const char *cluster_uuid,
                                const char *address)
{
    struct node_core *node = g_new0(struct node_core, 1);
    node->env = env;
    node->hv = env->hypervisor;
    node->storage = env->storage;
    node->address = g_strdup(address);
    node->fence = epoch_fence_new(env, cluster_uuid);
    node->care = member_care_new(env);
    node->master_ip = master_ip_new(node);
    node->health = health_new(node);
    epoch_fence_set_changed(node->fence, node_announced, node);
    node->guests = g_hash_table_new(g_str_hash, g_str_equal);
    node->parts = parts_new(env);
    node->strays = strays_look_new();
    node->ended_jobs = ended_jobs_new();
    node->size_looks = image_look_table();
    node->volume_looks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    node->users = 1;
    g_queue_init(&node->ssconf.waiters);
    node->taps_left = true; /* of an earlier life, perhaps */
    return node;
}

void node_core_set_image_folder(struct node_core *node, const char *folder)
{
    text_set(&node->image_folder, folder);
}

void node_core_free(struct node_core *node)
{
    if (!node)
        return;
    static const struct hypervisor_events no_guest_events = {0};
    static const struct storage_events no_storage_events = {0};
    node->hv->ops->set_events(node->hv, &no_guest_events);
    node->storage->ops->set_events(node->storage, &no_storage_events);
    node->ended = true;
    member_care_free(g_steal_pointer(&node->care));
    epoch_fence_set_changed(node->fence, NULL, NULL);
    master_ip_free(g_steal_pointer(&node->master_ip));
    told_free(g_steal_pointer(&node->told));
    figures_free(g_steal_pointer(&node->figures));
    reconcile_kick(node);
    node_release(node);
}

static void master_heard(void *data)
{
    struct node_core *node = data;
    figures_heard(node->figures);
}

void node_core_set_monitored(struct node_core *node)
{
    node->figures = figures_new(node);
    node->told = told_new(node, master_heard, node);
}

/* --- requests --- */

struct work {
    struct node_core *node;
    struct rpc_request *request;
    struct epoch_fence_op *op;
    const struct procedure *procedure;
};

/* Nobody waits for these files. */
static void ssconf_run(void *data)
{
    struct node_core *node = data;
    if (task_mutex_lock(&node->ssconf)) {
        node->ssconf_waits = false;
        guint64 serial = epoch_fence_announced(node->fence)->serial;
        if (ssconf_update(node->env, epoch_fence_announced(node->fence)))
            node->ssconf_serial = serial;
        task_mutex_unlock(&node->ssconf);
    }
    node_release(node);
}

/* What is said again was written, unless that failed, or this daemon is younger. */
static void start_ssconf(struct node_core *node, const struct announce_args *args)
{
    if (args->again && node->ssconf_serial == args->serial)
        return;
    node->ssconf_serial = 0;
    if (node->ssconf_waits)
        return; /* it takes what was announced last */
    node->ssconf_waits = true;
    node_hold(node);
    task_spawn(node->env->tasks, ssconf_run, node);
}

static json_t *work_announce(struct work *work, const void *args, GError **error)
{
    const struct announce_args *announcement = args;
    if (!epoch_fence_announce(work->node->fence, work->request->from_node, args, error))
        return NULL;
    start_ssconf(work->node, args);
    reconcile_kick(work->node);
    if (!announcement->asks)
        return json_object();
    record_autoptr(announce_result) stated = statement_make(work->node);
    return announce_result_to_json(stated);
}

static json_t *work_promise(struct work *work, const void *args, GError **error)
{
    const struct promise_epoch_args *asked = args;
    const struct announce_args *announced = epoch_fence_announced(work->node->fence);
    guint64 serial = asked->history == announced->history ? asked->serial : 0;
    g_autofree char *master = g_strdup(announced->master_node);
    if (asked->epoch != 0 &&
        !member_care_may_promise(work->node->care, work->request->from_node, master, serial, error))
        return NULL;
    record_autoptr(promise_epoch_result) result =
        epoch_fence_promise(work->node->fence, work->request->from_node, args, error);
    return result ? promise_epoch_result_to_json(result) : NULL;
}

static json_t *work_settle(struct work *work, const void *args, GError **error)
{
    return replica_settle(work->node, work->request->from_node, args, error);
}

static json_t *work_do(struct work *work, const void *args, GError **error)
{
    const struct procedure *procedure = work->procedure;
    struct node_core *node = work->node;
    if (procedure->speak)
        return procedure->speak(work, args, error);
    return procedure->care ? procedure->care(node->care, args, error)
                           : procedure->run(node, work->op, args, error);
}

/* Of whatever method, so that none is forgotten: its arguments name it in the field `instance`, by
 * its UUID or as its record. NULL: it is about no instance. */
static const char *instance_of(const struct record *record, const void *args)
{
    const struct field *field = record_field(record, "instance");
    if (!field)
        return NULL;
    const void *value = *(void *const *)((const char *)args + field->offset);
    if (field->type == FIELD_TYPE_UUID)
        return value;
    g_assert(field->record == &instance_record);
    return ((const struct instance *)value)->uuid;
}

static bool work_admits(const struct work *work, const void *args, GError **error)
{
    const struct rpc_request *request = work->request;
    const char *instance = instance_of(request->method->args, args);
    return !instance ||
           ended_jobs_admit(work->node, request->stamp, request->from_job, instance, error);
}

static void work_run(void *data)
{
    struct work *work = data;
    struct node_core *node = work->node;
    const struct method *method = work->request->method;
    g_autoptr(GError) error = NULL;
    json_t *answer = NULL;
    void *args = record_parse(method->args, work->request->args, RECORD_LAX, &error);
    if (args && work_admits(work, args, &error))
        answer = work_do(work, args, &error);
    record_free(method->args, args);
    if (work->op)
        epoch_fence_leave(work->op);
    if (answer) {
        rpc_answer(work->request, answer);
    } else {
        if (!error)
            node_killed(&error);
        rpc_fail(work->request, error);
    }
    g_free(work);
    node_release(node);
}

void node_core_handle(struct node_core *node, struct rpc_request *request)
{
    g_autoptr(GError) error = NULL;
    guint i = 0;
    while (i < G_N_ELEMENTS(procedures) && strcmp(procedures[i].method, request->name) != 0)
        i++;
    if (i == G_N_ELEMENTS(procedures) || !request->method) {
        rpc_fail_new(request, FETTLE_ERROR_PROTOCOL, "the node daemon has no method %s",
                     request->name);
        return;
    }
    if (!node->ready) {
        rpc_fail_new(request, FETTLE_ERROR_TEMPORARY, NOT_READY);
        return;
    }
    struct epoch_fence_op *op = NULL;
    if (procedures[i].fenced) {
        op = epoch_fence_enter(node->fence, request->stamp, request->from_node, request->from_job,
                               procedures[i].method, &error);
        if (!op) {
            rpc_fail(request, error);
            return;
        }
    }
    struct work *work = g_new0(struct work, 1);
    *work = (struct work){node, request, op, &procedures[i]};
    node_hold(node);
    task_spawn(node->env->tasks, work_run, work);
}

bool node_core_admit(const struct node_core *node, const char *from_node, const char *from_role,
                     const struct method *method, struct stamp stamp, GError **error)
{
    if (!node->ready) {
        fettle_set_error(error, TEMPORARY, NOT_READY);
        return false;
    }
    return epoch_fence_admit(node->fence, from_node, from_role, method, stamp, error);
}

void node_core_set_changed(struct node_core *node, void (*changed)(void *data), void *data)
{
    node->changed = changed;
    node->changed_data = data;
}

void node_core_set_rest_fault(struct node_core *node, const char *text)
{
    health_set_rest_fault(node->health, text);
}

const GPtrArray *node_core_members(const struct node_core *node)
{
    return epoch_fence_announced(node->fence)->members;
}

const char *node_core_master(const struct node_core *node)
{
    return epoch_fence_announced(node->fence)->master_node;
}

const struct announce_args *node_core_announced(const struct node_core *node)
{
    return epoch_fence_announced(node->fence);
}

struct stamp node_core_stamp(const struct node_core *node)
{
    return epoch_fence_stamp(node->fence);
}

void node_core_master_reachable(struct node_core *node)
{
    reconcile_kick(node);
}

/* --- events --- */

static struct guest *node_guest_of(struct node_core *node, const char *instance, guint64 generation)
{
    struct guest *guest = guest_lookup(node, instance);
    return guest && guest->record->generation == generation ? guest : NULL;
}

static void node_guest_exited(const char *instance, guint64 generation, const char *said,
                              void *data)
{
    struct node_core *node = data;
    struct guest *waiting = guest_lookup(node, instance);
    struct guest *guest = node_guest_of(node, instance, generation);
    g_autofree char *fields =
        g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT, instance, generation);
    if (waiting && waiting->incoming_live && incoming_generation(waiting) == generation) {
        waiting->incoming_live = false;
        log_warning(fields, "incoming guest ended%s%s", *said ? "; QEMU said: " : "", said);
    }
    node->taps_left = true;
    if (!guest || !guest->live)
        return;
    guest_gone(guest, said);
    if (*said)
        log_warning(fields, "guest ended; QEMU said: %s", said);
    else
        log_info(fields, "guest ended");
}

static void node_guest_shutdown(const char *instance, guint64 generation, void *data)
{
    struct guest *guest = node_guest_of(data, instance, generation);
    if (guest)
        guest->shutdown = true;
}

static void node_guest_resyncing(const char *instance, guint64 generation, const char *why,
                                 void *data)
{
    g_autofree char *fields =
        g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT, instance, generation);
    if (why)
        log_info(fields, "everything is copied to its replica: %s", why);
    else
        log_info(fields, "its replica gets what was written since they were in sync");
}

static void node_export_ended(const char *instance, const char *replica, guint64 generation,
                              void *data)
{
    struct guest *guest = guest_lookup(data, instance);
    if (!guest || strcmp(guest->record->replica, replica) != 0 ||
        guest->record->replica_generation != generation || !guest->export_live)
        return;
    /* Not opened again from here: the guest's node records the replica as stale (SAF-14). */
    guest->export_live = false;
    g_autofree char *fields = g_strdup_printf(
        "INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT " REPLICA=%s", instance, generation, replica);
    log_error(fields, "an export ended by itself: the replica's disk failed");
}

/* --- start --- */

bool node_core_start(struct node_core *node, GError **error)
{
    struct hypervisor_events on_guest = {node_guest_exited, node_guest_shutdown,
                                         node_guest_resyncing, node};
    struct storage_events on_export = {node_export_ended, node};
    node->hv->ops->set_events(node->hv, &on_guest);
    node->storage->ops->set_events(node->storage, &on_export);
    if (!epoch_fence_load(node->fence, error) || !ended_jobs_load(node, error) ||
        !guest_load_all(node, error) || !rediscover(node, error))
        return false;
    member_care_start(node->care);
    node->ready = true;
    master_ip_start(node->master_ip);
    reconcile_start(node);
    room_start(node);
    if (node->figures) {
        figures_start(node->figures);
        told_start(node->told);
    }
    return true;
}
