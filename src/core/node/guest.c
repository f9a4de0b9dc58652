/*
 * One instance on this node; see guest.h.
 */
#include "core/node/guest.h"

#include "base/log.h"
#include "base/sm.h"
#include "core/node/mirror_watch.h"
#include "core/node/taps.h"
#include "proto/seal.h"

#define TO_ALL                                                                                     \
    (SM_TO(PHASE_USED) | SM_TO(PHASE_STOPPED) | SM_TO(PHASE_SUPERSEDED) | SM_TO(PHASE_REMOVED))

static const struct sm_state guest_phases[] = {
    [PHASE_NONE] = {"new", TO_ALL, false},
    [PHASE_USED] = {"used", TO_ALL | SM_TO(PHASE_STARTED), false},
    [PHASE_STARTED] = {"started", TO_ALL | SM_TO(PHASE_MIGRATED), false},
    [PHASE_STOPPED] = {"stopped", TO_ALL, false},
    [PHASE_SUPERSEDED] = {"superseded", TO_ALL, false},
    [PHASE_REMOVED] = {"removed", TO_ALL, false},
    [PHASE_MIGRATED] = {"migrated", TO_ALL, false},
};
static const struct sm guest_machine = {"guest", guest_phases, G_N_ELEMENTS(guest_phases)};

bool node_killed(GError **error)
{
    return fettle_set_ended(error, "the node daemon");
}

static struct guest *guest_new(struct node_core *node, struct guest_record *record)
{
    struct guest *guest = g_new0(struct guest, 1);
    guest->node = node;
    guest->record = record;
    g_queue_init(&guest->procedure.waiters);
    g_queue_init(&guest->saving.waiters);
    guest->replica_state = REPLICA_STALE;
    guest->migration = migration_status_new();
    g_hash_table_insert(node->guests, record->instance, guest);
    return guest;
}

void guest_free(struct guest *guest)
{
    guest_record_free(guest->record);
    migration_target_free(guest->incoming_target);
    migration_status_free(guest->migration);
    look_clear(&guest->look);
    look_clear(&guest->undo.look);
    g_clear_error(&guest->undo.error);
    g_free(guest->damage);
    g_free(guest);
}

static struct guest_record *record_for(const char *instance)
{
    struct guest_record *record = guest_record_new();
    text_set(&record->instance, instance);
    return record;
}

struct guest *guest_lookup(struct node_core *node, const char *instance)
{
    return g_hash_table_lookup(node->guests, instance);
}

struct guest *guest_get(struct node_core *node, const char *instance, GError **error)
{
    struct guest *guest = guest_lookup(node, instance);
    if (guest)
        return guest;
    if (g_hash_table_size(node->guests) >= LIMIT_NODE_GUESTS) {
        fettle_set_error(error, LIMIT, "this node already remembers %u instances",
                         g_hash_table_size(node->guests));
        return NULL;
    }
    return guest_new(node, record_for(instance));
}

static struct guest_record *guest_read(struct node_core *node, const char *name, const char *uuid,
                                       GError **error)
{
    size_t len = 0;
    g_autofree char *text =
        node->env->ops->file_read(node->env, FILE_STATE, name, LIMIT_GUEST_FILE_BYTES, &len, error);
    if (!text)
        return NULL;
    json_autoptr json = seal_from_text(text, len, LIMIT_GUEST_FILE_BYTES, error);
    record_autoptr(guest_record) record =
        json ? guest_record_parse(json, RECORD_KEEP, error) : NULL;
    if (!record)
        return NULL;
    if (strcmp(record->instance, uuid) != 0) {
        fettle_set_error(error, CORRUPT, "it speaks of instance %s", record->instance);
        return NULL;
    }
    return g_steal_pointer(&record);
}

bool guest_load_all(struct node_core *node, GError **error)
{
    g_autoptr(GPtrArray) names =
        node->env->ops->file_list(node->env, FILE_STATE, GUEST_FOLDER, error);
    if (!names)
        return false;
    for (guint i = 0; i < names->len; i++) {
        const char *base = names->pdata[i];
        if (!g_str_has_suffix(base, ".json"))
            continue;
        g_autofree char *uuid = g_strndup(base, strlen(base) - strlen(".json"));
        g_autofree char *name = g_strdup_printf(GUEST_FOLDER "/%s", base);
        g_autoptr(GError) why = NULL;
        struct guest_record *record = guest_read(node, name, uuid, &why);
        if (!record && fettle_error_is(why, KILLED))
            return node_killed(error);
        struct guest *guest = guest_new(node, record ? record : record_for(uuid));
        if (record) {
            guest->kept = (struct stamp){record->history, record->generation};
            continue;
        }
        guest->damage = g_strdup_printf("var/%s is damaged (%s): which generations were used here "
                                        "is unknown",
                                        name, why->message);
        log_error("", "%s; the instance cannot be started here", guest->damage);
    }
    return true;
}

bool guest_lock(struct guest *guest, GError **error)
{
    if (!task_mutex_lock(&guest->procedure))
        return node_killed(error);
    /* A watch whose guest or mirror is gone may still wait for the master; what it then hears
     * belongs to the past and must not be mixed with what this procedure begins. */
    bool past = !guest->live || !guest->record->target;
    if (!past || mirror_watch_stop(guest))
        return true;
    task_mutex_unlock(&guest->procedure);
    return node_killed(error);
}

void guest_unlock(struct guest *guest)
{
    task_mutex_unlock(&guest->procedure);
}

bool guest_save(struct guest *guest, GError **error)
{
    const struct env *env = guest->node->env;
    if (!task_mutex_lock(&guest->saving))
        return node_killed(error);
    g_autofree char *name = g_strdup_printf(GUEST_FOLDER "/%s.json", guest->record->instance);
    json_autoptr json = guest_record_to_json(guest->record);
    struct stamp kept = {guest->record->history, guest->record->generation};
    g_autofree char *text = seal_to_text(json);
    bool ok = env->ops->file_write(env, FILE_STATE, name, text, strlen(text), error);
    task_mutex_unlock(&guest->saving);
    if (ok)
        guest->kept = kept;
    else
        g_prefix_error(error, "var/%s: ", name);
    return ok;
}

char *guest_name(const struct guest *guest)
{
    const struct instance *spec = guest->record->spec;
    return g_strdup_printf("instance %s", spec ? spec->name : guest->record->instance);
}

guint64 guest_generation(const struct guest *guest)
{
    return guest->record->generation;
}

void guest_move(struct guest *guest, enum guest_phase phase, const char *why)
{
    const struct instance *spec = guest->record->spec;
    unsigned state = guest->record->phase;
    g_autofree char *reason =
        g_strdup_printf("generation %" G_GUINT64_FORMAT "%s%s", guest->record->generation,
                        why ? ": " : "", why ? why : "");
    sm_move(&guest_machine, spec ? spec->name : guest->record->instance, &state, phase, reason);
    guest->record->phase = phase;
    if (phase != PHASE_STOPPED)
        text_set(&guest->record->left, ""); /* of images that rest here, and of no others */
}

void guest_set_over(guint64 generation, const char *name, guint64 used, GError **error)
{
    fettle_set_error(error, REFUSED,
                     "generation %" G_GUINT64_FORMAT " of %s is over: generation "
                     "%" G_GUINT64_FORMAT " was already used here",
                     generation, name, used);
}

bool guest_check_generation(const struct guest *guest, guint64 generation, GError **error)
{
    g_autofree char *name = guest_name(guest);
    guint64 used = guest->record->generation;
    if (generation < used) {
        guest_set_over(generation, name, used, error);
        return false;
    }
    if (generation > used || !guest->live) {
        fettle_set_error(error, WRONG_STATE,
                         "generation %" G_GUINT64_FORMAT " of %s does not run on this node",
                         generation, name);
        return false;
    }
    return true;
}

bool guest_check_stays(const struct guest *guest, GError **error)
{
    if (!guest->outgoing)
        return true;
    g_autofree char *name = guest_name(guest);
    fettle_set_error(error, WRONG_STATE,
                     "%s is being moved to another node by migration %s; wait for its end or "
                     "cancel it",
                     name, guest->record->migration);
    return false;
}

bool guest_kill(struct guest *guest, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    if (!hv->ops->kill(hv, guest->record->instance, guest->record->generation, error)) {
        g_prefix_error(error, "generation %" G_GUINT64_FORMAT " could not be ended: ",
                       guest->record->generation);
        return false;
    }
    guest->live = false;
    guest->shutdown = false;
    taps_remove(guest, guest->record->spec);
    if (!mirror_watch_stop(guest))
        return node_killed(error);
    return true;
}

void guest_heard(struct guest *guest, gint64 when, enum guest_state state,
                 struct mirror_info mirror)
{
    guest->heard_ms = when;
    guest->last_state = state;
    guest->last_mirror = mirror;
}

bool guest_query(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    guint64 generation = guest->record->generation;
    enum guest_state state = GUEST_ABSENT;
    struct mirror_info mirror = {0};
    gint64 began = guest->node->env->ops->boot_ms(guest->node->env);
    g_autoptr(GError) error = NULL;
    if (guest->making)
        return true;
    if (hv->ops->query(hv, guest->record->instance, generation, &state, &mirror, &error)) {
        if (generation != guest->record->generation)
            return false;
        guest->query_late = false;
        guest_heard(guest, began, state, mirror);
        if (state == GUEST_SHUTDOWN)
            guest->shutdown = true;
        if (state == GUEST_ABSENT)
            guest->live = false;
        return true;
    }
    if (fettle_error_is(error, REFUSED) && generation == guest->record->generation) {
        guest->live = false; /* another generation's process is all there is */
        return true;
    }
    if (generation != guest->record->generation)
        return false; /* it tells nothing of the one that runs now */
    guest->query_late = true;
    guest->query_late_ms = guest->node->env->ops->boot_ms(guest->node->env);
    return false;
}

bool guest_look_io(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    guint64 generation = guest->record->generation;
    struct io_info io = {0};
    if (!hv->ops->io_query(hv, guest->record->instance, generation, &io, NULL) ||
        generation != guest->record->generation)
        return false;
    if (io.errors > guest->last_io.errors)
        guest->io_failed_ms = guest->node->env->ops->boot_ms(guest->node->env);
    guest->last_io = io;
    return true;
}

enum io_stop guest_io_stop(const struct guest *guest)
{
    if (!guest->live || guest->last_io.stop == IO_STOP_NONE)
        return IO_STOP_NONE;
    return guest->go_on_tries < GO_ON_TRIES ? IO_STOP_NO_SPACE : IO_STOP_FAILED;
}

bool guest_sync(const struct guest *guest, GError **error)
{
    struct storage *storage = guest->node->storage;
    const struct instance *spec = guest->record->spec;
    return (spec && spec->disks->len == 0) ||
           storage->ops->sync(storage, guest->record->instance, "", error);
}

void guest_forget_mirror(struct guest *guest)
{
    g_autoptr(GError) error = NULL;
    export_target_free(g_steal_pointer(&guest->record->target));
    guest->record->attached = false;
    if (!guest_save(guest, &error) && !fettle_error_is(error, KILLED))
        log_warning("", "%s", error->message);
}

static bool boot_file(struct node_core *node, const char *what, const char *name,
                      const char **ret_file, GError **error)
{
    guint64 bytes = 0;
    *ret_file = NULL;
    if (!*name)
        return true;
    if (!node->image_folder) {
        fettle_set_error(error, ENVIRONMENT, "%s: this node has no folder of images", what);
        return false;
    }
    if (!node->storage->ops->source_size(node->storage, name, &bytes, error)) {
        g_prefix_error(error, "%s: ", what);
        return false;
    }
    *ret_file = g_build_filename(node->image_folder, name, NULL);
    return true;
}

bool guest_boot_files(struct node_core *node, const struct instance *instance,
                      struct guest_spec *spec, GError **error)
{
    if (boot_file(node, "kernel_path", instance->kernel_path, &spec->kernel, error) &&
        boot_file(node, "initrd_path", instance->initrd_path, &spec->initrd, error))
        return true;
    guest_boot_files_clear(spec);
    return false;
}

void guest_boot_files_clear(struct guest_spec *spec)
{
    g_free((char *)spec->kernel);
    g_free((char *)spec->initrd);
    spec->kernel = spec->initrd = NULL;
}
