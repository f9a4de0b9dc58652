/*
 * Steps of what is stored (SAF-50 to 53): rows of work, the resources that they are about, trash,
 * the services that work on them. Only the methods of work take them; a job adds and removes back
 * ends, and whoever may changes a resource's name.
 */
#include <string.h>

#include "core/config/attachments.h"
#include "core/config/fault.h"
#include "core/config/resource.h"
#include "core/config/restored.h"
#include "core/config/transitions_private.h"
#include "proto/storage/volume_driver.h"

static bool of_work(const struct step *step, const char *what, GError **error)
{
    if (step->author == AUTHOR_WORK)
        return true;
    fettle_set_error(error, UNSAFE, "%s only by the methods of work (SAF-50)", what);
    return false;
}

static bool stays(const char *field, bool same, GError **error)
{
    if (!same)
        fettle_set_error(error, UNSAFE, "%s: never changes", field);
    return same;
}

/* Serial of the commit that is judged: that of each object in it. */
static guint64 serial_of(const struct step *step, const struct config_delta *delta)
{
    guint64 serial = 0;
    config_get(step->after, delta->kind, delta->key, &serial);
    return serial;
}

static bool of_this_commit(const char *field, guint64 value, guint64 serial, GError **error)
{
    if (value == serial)
        return true;
    fettle_set_error(error, UNSAFE,
                     "%s: becomes %" G_GUINT64_FORMAT " in commit %" G_GUINT64_FORMAT
                     ", and is the serial of its own (SAF-51)",
                     field, value, serial);
    return false;
}

/* --- back ends --- */

/* A guest that has a volume there needs its node to see it. */
static bool guests_let_go(const struct step *step, const struct backend *after, const char *node,
                          GError **error)
{
    g_autoptr(GPtrArray) volumes = config_backend_volumes(step->after, after->uuid);
    for (guint i = 0; i < volumes->len; i++) {
        const struct attachment *attachment = attachment_of(volumes->pdata[i]);
        const struct instance *instance =
            attachment ? config_get(step->after, "instance", attachment->instance, NULL) : NULL;
        if (!instance || (strcmp(instance->primary_node, node) != 0 &&
                          strcmp(instance->migration_node, node) != 0))
            continue;
        fettle_set_error(
            error, WRONG_STATE, "nodes: %s cannot leave, volume %s is attached to %s there",
            step_node_name(step, node), config_volume_name(volumes->pdata[i]), instance->name);
        return false;
    }
    return true;
}

/* Who has work there ends it, or is cleaned, by a service of its name: on that node. */
static bool may_leave(const struct step *step, const struct backend *after, const char *node,
                      GError **error)
{
    g_autoptr(GPtrArray) services = config_list(step->after, "storage_service");
    if (g_ptr_array_find_with_equal_func(after->nodes, node, g_str_equal, NULL))
        return true;
    if (!guests_let_go(step, after, node, error))
        return false;
    for (guint i = 0; i < services->len; i++) {
        const struct storage_service *service = services->pdata[i];
        if (strcmp(service->backend, after->uuid) != 0 || strcmp(service->node, node) != 0 ||
            invariants_no_work(step->after, service, error))
            continue;
        g_prefix_error(error, "nodes: %s cannot leave, ", step_node_name(step, node));
        return false;
    }
    return true;
}

bool step_backend(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct backend *old = delta->before;
    const struct backend *after = delta->after;
    if (!old || !after)
        return true;
    for (guint i = 0; i < old->nodes->len; i++)
        if (!may_leave(step, after, old->nodes->pdata[i], error))
            return false;
    return stays("kind", old->kind == after->kind, error) &&
           stays("path", !strcmp(old->path, after->path), error) &&
           stays("pool", !strcmp(old->pool, after->pool), error) &&
           stays("namespace", !strcmp(old->namespace, after->namespace), error) &&
           stays("conf", !strcmp(old->conf, after->conf), error) &&
           stays("user", !strcmp(old->user, after->user), error);
}

/* --- services --- */

bool step_storage_service(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct storage_service *old = delta->before;
    const struct storage_service *after = delta->after;
    if (!after)
        return true; /* with its back end, or its node */
    if (!of_work(step, "is written", error) || (old && !stays("id", old->id == after->id, error)) ||
        (old &&
         !step_never_less("state_since_us", old->state_since_us, after->state_since_us, error)))
        return false;
    return (old && old->generation == after->generation) ||
           of_this_commit("generation", after->generation, serial_of(step, delta), error);
}

/* --- rows of work --- */

static bool row_born(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct worker *row = delta->after;
    struct resource resource = resource_of_row(step->after, row);
    if (!of_this_commit("id", row->id, serial_of(step, delta), error))
        return false;
    if (row->service_id || row->claim) {
        fettle_set_error(error, UNSAFE, "service_id: a new row is with nobody (CLN-10)");
        return false;
    }
    if (!strcmp(row->status, resource.status))
        return true;
    fettle_set_error(error, UNSAFE, "status: %s, but its resource is %s", row->status,
                     resource.status);
    return false;
}

/* It goes back to who had it before (CLN-21), as it was then; the claim stays, so that nobody else
 * works under it. */
static bool given_back(const struct worker *old, const struct worker *after)
{
    return old->was_service_id && after->service_id == old->was_service_id &&
           after->updated_us == old->was_updated_us && after->claim == old->claim &&
           !after->was_service_id && !after->was_updated_us;
}

static bool claim_step(const struct worker *old, const struct worker *after, guint64 serial,
                       GError **error)
{
    if (after->claim != old->claim)
        return of_this_commit("claim", after->claim, serial, error);
    if (after->service_id == old->service_id)
        return true;
    fettle_set_error(error, UNSAFE, "service_id: another owner under the same claim (SAF-51)");
    return false;
}

static bool row_step(const struct worker *old, const struct worker *after, guint64 serial,
                     GError **error)
{
    if (!stays("created_us", old->created_us == after->created_us, error) ||
        !stays("operation", !strcmp(old->operation, after->operation), error) ||
        (*old->backend && !stays("backend", !strcmp(old->backend, after->backend), error)))
        return false;
    if (given_back(old, after))
        return true;
    if (after->updated_us <= old->updated_us) {
        fettle_set_error(error, UNSAFE,
                         "updated_us: goes from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                         "; each touch is later (SAF-51)",
                         old->updated_us, after->updated_us);
        return false;
    }
    return claim_step(old, after, serial, error);
}

bool step_worker(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct worker *old = delta->before;
    const struct worker *after = delta->after;
    if (!after && restored_step(step) == RESTORED_ENDS)
        return true;
    if (!of_work(step, "is written", error))
        return false;
    if (after && restored_step(step) == RESTORED_HOLDS) {
        restored_set_error(error);
        return false;
    }
    bool goes_on = old && after && old->id == after->id; /* else force has put one in its place */
    return !after || (goes_on ? row_step(old, after, serial_of(step, delta), error)
                              : row_born(step, delta, error));
}

/* --- resources --- */

static bool guarded_step(const struct step *step, const struct resource *old,
                         const struct resource *after, GError **error)
{
    const struct {
        const char *what;
        bool same;
    } guarded[] = {{"status: changes", !strcmp(old->status, after->status)},
                   {"data: changes", !strcmp(old->data, after->data)},
                   {"backend: changes", !strcmp(old->backend, after->backend)},
                   {"host: changes", !strcmp(old->host, after->host)},
                   {"size: changes", old->size == after->size},
                   {"bytes: changes", old->bytes == after->bytes},
                   {"sum: changes", !strcmp(old->sum, after->sum)},
                   {"checksum: changes", !strcmp(old->checksum, after->checksum)},
                   {"virtual_size: changes", old->virtual_size == after->virtual_size},
                   {"project: changes", !strcmp(old->project, after->project)},
                   {"volume_type: changes", !strcmp(old->volume_type, after->volume_type)}};
    for (guint i = 0; i < G_N_ELEMENTS(guarded); i++)
        if (!guarded[i].same && !of_work(step, guarded[i].what, error))
            return false;
    return true;
}

/* Of one whose work was left by everybody recovery names what it has found whole. */
static bool was_left(const struct step *step, const struct resource *old, const struct worker *row)
{
    enum task_kind kind = resource_task_kind(old->type);
    g_autofree char *key = fault_key(resource_kind(old->type), old->uuid);
    const struct fault *fault = step_before(step, "fault", key);
    return !row && old->exists && !*old->data &&
           (task_row_of(kind, old->status) || (fault && task_row_of(kind, fault->task)));
}

/* Whether this step ends the work on a resource, or on what that is the partner of, under that
 * claim, on the back end that it was for. */
static bool ends_work(const struct step *step, const struct resource *resource, guint64 claim)
{
    GHashTableIter iter;
    void *one;
    g_hash_table_iter_init(&iter, step->deltas);
    while (g_hash_table_iter_next(&iter, &one, NULL)) {
        const struct config_delta *delta = one;
        const struct worker *row = delta->before;
        if (strcmp(delta->kind, "worker") == 0 && row && !delta->after && row->claim == claim &&
            strcmp(row->backend, resource->backend) == 0 &&
            ((row->resource_type == resource->type &&
              strcmp(row->resource_id, resource->uuid) == 0) ||
             (row->partner_type == resource->type && strcmp(row->partner_id, resource->uuid) == 0)))
            return true;
    }
    return false;
}

/* A name is given by the end of the work under its claim, so never again (SAF-52). */
static bool named_step(const struct step *step, const struct resource *old,
                       const struct resource *after, GError **error)
{
    g_autofree char *uuid = NULL;
    guint64 claim = 0;
    g_autofree char *key = config_work_key(after->type, after->uuid);
    const struct worker *row = step_before(step, "worker", key);
    if (volume_data_parse(after->data, &uuid, &claim) &&
        (ends_work(step, after, claim) ||
         (was_left(step, old, row) && !config_get(step->after, "worker", key, NULL))))
        return true;
    fettle_set_error(error, UNSAFE,
                     "data: becomes %s, and not at the end of the work under its claim (SAF-52)",
                     after->data);
    return false;
}

static bool unnamed_step(const struct step *step, const struct resource *old, GError **error)
{
    g_autofree char *key = config_trash_key(old->backend, old->data);
    const struct trash *trash = config_get(step->after, "trash", key, NULL);
    if (trash && trash->resource_type == old->type)
        return true;
    fettle_set_error(error, UNSAFE, "data: %s is named no more, and not in the trash (SAF-53)",
                     old->data);
    return false;
}

/* SAF-53: whose guest has it open, or may, has it as it is. */
static bool attachment_is_there(const struct volume *old, const struct volume *after,
                                GError **error)
{
    if ((!old || !attachment_of(old)) && (!after || !attachment_of(after)))
        return false;
    fettle_set_error(error, UNSAFE,
                     "data: changes, or goes, while the volume is attached (SAF-53)");
    return true;
}

static bool data_step(const struct step *step, const struct resource *old,
                      const struct resource *after, GError **error)
{
    bool same = !strcmp(old->data, after->data);
    if (same && *old->data && strcmp(old->backend, after->backend) != 0) {
        fettle_set_error(error, UNSAFE, "backend: changes, and its data does not (SAF-53)");
        return false;
    }
    return same || ((!*after->data || named_step(step, old, after, error)) &&
                    (!*old->data || unnamed_step(step, old, error)));
}

/* Nobody works on the volume, and no copy is made of it, which would be torn (SAF-120). */
static bool nobody_works(const struct step *step, const struct volume *volume, GError **error)
{
    g_autofree char *key = config_work_key(RESOURCE_VOLUME, volume->uuid);
    g_autoptr(GPtrArray) held = config_held_work(step->after, RESOURCE_VOLUME, volume->uuid);
    const struct worker *row =
        held->len ? held->pdata[0] : config_get(step->after, "worker", key, NULL);
    if (!row)
        return true;
    struct resource about = resource_of_row(step->after, row);
    fettle_set_error(error, WRONG_STATE, "attachments: %s of %s %s is under way on the volume",
                     row->operation, resource_kind(about.type), resource_name(&about));
    return false;
}

/* A new one comes from a job, at a volume that is free and whole; what it is about stays. Who may
 * end it has seen its end (SAF-57); that a job's is covered by the instance's lock is judged where
 * locks are. */
static bool attachment_step(const struct step *step, const struct volume *old,
                            const struct volume *after, GError **error)
{
    const struct attachment *was = attachment_of(old), *is = attachment_of(after);
    if (!is || (was && !strcmp(was->uuid, is->uuid) && !strcmp(was->instance, is->instance) &&
                was->slot == is->slot))
        return true;
    if (was)
        fettle_set_error(error, UNSAFE, "attachments: one becomes another in one step (SAF-57)");
    else if (after->status != VOLUME_AVAILABLE || old->status != VOLUME_AVAILABLE)
        fettle_set_error(error, WRONG_STATE, "attachments: the volume is %s",
                         enum_word(&volume_status_words, (int)after->status));
    else
        return nobody_works(step, after, error);
    return false;
}

/* What a volume's attachment forbids, and what it may become. */
static bool attached_step(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct volume *old = delta->before, *after = delta->after;
    bool same = old && after && !strcmp(old->data, after->data);
    return (same || !attachment_is_there(old, after, error)) &&
           (!old || !after || attachment_step(step, old, after, error));
}

/* An image of which none have come, and none are coming. */
static bool is_without_bytes(const struct resource *old, const struct resource *after)
{
    const char *queued = resource_empty_status(RESOURCE_IMAGE);
    return old->type == RESOURCE_IMAGE && !strcmp(old->status, queued) &&
           !strcmp(after->status, queued) && !*old->data && !*after->data;
}

bool step_resource(const struct step *step, const struct config_delta *delta, GError **error)
{
    enum resource_type type = resource_type_of(delta->kind);
    struct resource old = resource_read(type, delta->before);
    struct resource after = resource_read(type, delta->after);
    if (old.exists && after.exists) {
        if (!guarded_step(step, &old, &after, error) ||
            !stays("volume", !strcmp(old.volume, after.volume), error) ||
            !stays("disk_format",
                   old.disk_format == after.disk_format || is_without_bytes(&old, &after), error))
            return false;
        if (after.size < old.size && type != RESOURCE_IMAGE) {
            fettle_set_error(error, UNSAFE,
                             "size: falls from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                             " GiB; data is never shortened (SAF-53)",
                             old.size, after.size);
            return false;
        }
    } else if (!of_work(step, old.exists ? "goes" : "is made", error)) {
        return false;
    }
    return (type != RESOURCE_VOLUME || attached_step(step, delta, error)) &&
           data_step(step, &old, &after, error);
}

/* --- trash --- */

bool step_trash(const struct step *step, const struct config_delta *delta, GError **error)
{
    return of_work(step, "is written", error);
}

/* --- cleanups --- */

/* Who is given a cleanup is there, up, and one of those that can do it (CLN-30, 45). */
static bool can_stand_in(const struct step *step, const struct cleanup *cleanup, GError **error)
{
    const struct storage_service *by = config_storage_service_of(step->after, cleanup->by);
    const struct storage_service *service =
        config_storage_service_of(step->after, cleanup->service_id);
    if (by && service && by->state == STORAGE_UP && by->binary == service->binary &&
        !strcmp(by->backend, service->backend))
        return true;
    fettle_set_error(error, UNSAFE,
                     "by: service %" G_GUINT64_FORMAT " cannot clean for %" G_GUINT64_FORMAT,
                     cleanup->by, cleanup->service_id);
    return false;
}

static bool cleanup_goes_on(const struct cleanup *old, const struct cleanup *after, GError **error)
{
    bool forward =
        after->state >= old->state ||
        (after->state == CLEANUP_ASKED && old->state == CLEANUP_RUNNING && after->by != old->by);
    if (!forward || old->state == CLEANUP_DONE) {
        fettle_set_error(error, UNSAFE, "state: from %s to %s without being asked for anew",
                         enum_word(&cleanup_state_words, (int)old->state),
                         enum_word(&cleanup_state_words, (int)after->state));
        return false;
    }
    return stays("died_us", old->died_us == after->died_us, error) &&
           stays("manual", old->manual == after->manual, error) &&
           stays("is_up", old->is_up == after->is_up, error) &&
           stays("found", old->found == after->found, error) &&
           step_never_less("cleaned", old->cleaned, after->cleaned, error) &&
           step_never_less("skipped", old->skipped, after->skipped, error);
}

bool step_cleanup(const struct step *step, const struct config_delta *delta, GError **error)
{
    const struct cleanup *old = delta->before;
    const struct cleanup *after = delta->after;
    if (!of_work(step, "is written", error))
        return false;
    if (!after)
        return true;
    if (old && !step_never_less("requested_us", old->requested_us, after->requested_us, error))
        return false;
    bool same = old && old->requested_us == after->requested_us;
    bool given = after->by && (!same || old->by != after->by);
    return (!same || cleanup_goes_on(old, after, error)) &&
           (!given || can_stand_in(step, after, error));
}
