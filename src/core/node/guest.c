/*
 * One instance on this node; see guest.h.
 */
#include "core/node/guest.h"

#include "base/log.h"
#include "base/sm.h"
#include "core/node/ended_jobs.h"
#include "core/node/mirror_watch.h"
#include "core/node/taps.h"
#include "proto/seal.h"

#define CRASHED_CHARS 512  /* as the record has it */
#define NOTE_AGAIN_MS 2000 /* until what is owed is written again */

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

static char *note_text(const struct guest *guest)
{
    json_autoptr json = guest_record_to_json(guest->record);
    return seal_to_text(json);
}

static void note_stands(struct guest *guest, struct stamp kept, bool attached)
{
    guest->kept = kept;
    guest->note.attached = guest->note.perhaps = attached;
    guest->note.stands = true;
}

static struct guest *guest_new(struct node_core *node, struct guest_record *record)
{
    struct guest *guest = g_new0(struct guest, 1);
    guest->node = node;
    guest->record = record;
    g_queue_init(&guest->procedure.waiters);
    g_queue_init(&guest->note.waiters);
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
    look_clear(&guest->sight);
    g_clear_pointer(&guest->drives, g_ptr_array_unref);
    g_clear_pointer(&guest->short_of_room, g_ptr_array_unref);
    g_clear_error(&guest->note.error);
    g_free(guest->note.text);
    g_free(guest->damage);
    g_free(guest->held);
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
            note_stands(guest, (struct stamp){record->history, record->generation},
                        record->attached);
            guest->note.text = note_text(guest);
            continue;
        }
        guest->damage = g_strdup_printf("var/%s is damaged (%s): which generations were used here "
                                        "is unknown",
                                        name, why->message);
        log_error("", "%s; the instance cannot be started here", guest->damage);
    }
    return true;
}

/* A request that was waiting here when its job was given up is refused like one that comes later.
 */
static bool lock_admits(struct guest *guest, const struct epoch_fence_op *op, GError **error)
{
    return !op || ended_jobs_admit(guest->node, epoch_fence_op_stamp(op), epoch_fence_op_job(op),
                                   guest->record->instance, error);
}

bool guest_lock(struct guest *guest, const struct epoch_fence_op *op, GError **error)
{
    if (!task_mutex_lock(&guest->procedure))
        return node_killed(error);
    guest->holder = op;
    /* A watch whose guest or mirror is gone may still wait for the master; what it then hears
     * belongs to the past and must not be mixed with what this procedure begins. */
    bool past = !guest->live || !guest->record->target;
    bool alive = !past || mirror_watch_stop(guest);
    if (alive && lock_admits(guest, op, error))
        return true;
    guest_unlock(guest);
    return alive ? false : node_killed(error);
}

void guest_unlock(struct guest *guest)
{
    guest->holder = NULL;
    task_mutex_unlock(&guest->procedure);
}

/* --- its file --- */

/* One write of what is true now. */
static bool note_write(struct guest *guest, GError **error)
{
    const struct env *env = guest->node->env;
    const struct guest_record *record = guest->record;
    struct note *note = &guest->note;
    struct stamp kept = {record->history, record->generation};
    bool attached = record->attached;
    g_autofree char *name = g_strdup_printf(GUEST_FOLDER "/%s.json", record->instance);
    g_free(note->text);
    note->text = note_text(guest);
    note->stands = false;
    note->perhaps = note->perhaps || attached;
    if (env->ops->file_write(env, FILE_STATE, name, note->text, strlen(note->text), error)) {
        note_stands(guest, kept, attached);
        return true;
    }
    g_clear_pointer(&note->text, g_free);
    if (task_killed())
        return node_killed(error);
    g_prefix_error(error, "var/%s: ", name);
    return false;
}

static void note_tell(struct note *note)
{
    for (GList *each = note->waiters.head; each; each = each->next)
        env_pause_end(each->data);
}

/* Whether the last write, which may be under way, has what is true now. */
static bool note_is_true(const struct guest *guest)
{
    g_autofree char *now = note_text(guest);
    return g_strcmp0(guest->note.text, now) == 0;
}

/* In a task of its own, so that a disk which hangs keeps this one and nobody else. What is owed is
 * tried until it stands. */
static void note_run(void *data)
{
    struct guest *guest = data;
    struct node_core *node = guest->node;
    struct note *note = &guest->note;
    bool more = !task_killed();
    while (more) {
        g_autoptr(GError) error = NULL;
        note->taken = note->asked;
        note->since_ms = node->env->ops->boot_ms(node->env);
        note->writing = true;
        bool ok = note_write(guest, &error);
        note->writing = false;
        node->noted_ms = node->env->ops->boot_ms(node->env);
        note->ended = note->taken;
        g_clear_error(&note->error);
        note->error = g_steal_pointer(&error);
        /* Whoever did not wait for the end may have gone on with something else. */
        more = !task_killed() &&
               (note->asked > note->ended || (note->owed && !(ok && note_is_true(guest))));
        note->owed = note->owed && more;
        note_tell(note);
        if (!ok && more && note->asked == note->ended)
            more = env_pause(node->env, &note->again, NOTE_AGAIN_MS);
    }
    note->runs = false;
    node_release(node);
}

static void note_begin(struct guest *guest)
{
    struct note *note = &guest->note;
    if (note->runs) {
        env_pause_end(&note->again);
        return;
    }
    note->runs = true;
    note->again = (struct env_pause){0};
    node_hold(guest->node);
    task_spawn(guest->node->env->tasks, note_run, guest);
}

/* Since when the disk owes an answer: it takes one write after the other, of all guests. A write
 * that has kept somebody waiting for so long keeps nobody else. */
static gint64 note_silent_since(const struct guest *guest, gint64 asked_ms)
{
    const struct note *note = &guest->note;
    return note->writing ? MAX(note->since_ms, guest->node->noted_ms) : asked_ms;
}

/* False: killed, or the time is over. */
static bool note_wait(struct guest *guest, guint64 number, guint patience_ms)
{
    const struct env *env = guest->node->env;
    struct note *note = &guest->note;
    gint64 asked = env->ops->boot_ms(env);
    struct env_pause pause = {0};
    g_queue_push_tail(&note->waiters, &pause);
    bool alive = !task_killed();
    while (alive && note->ended < number) {
        gint64 until =
            MIN(note_silent_since(guest, asked) + patience_ms, asked + (gint64)LIMIT_NOTE_END_MS);
        gint64 left = until - env->ops->boot_ms(env);
        if (left <= 0)
            break;
        alive = env_pause(env, &pause, (guint)left);
    }
    g_queue_remove(&note->waiters, &pause);
    return alive && note->ended >= number;
}

static bool note_save(struct guest *guest, guint patience_ms, GError **error)
{
    struct note *note = &guest->note;
    const struct env *env = guest->node->env;
    bool same = note_is_true(guest) && note->asked == note->taken;
    if (task_killed())
        return node_killed(error);
    if (same && note->stands)
        return true;
    guint64 number = same && note->writing ? note->taken : ++note->asked;
    note_begin(guest);
    if (note_wait(guest, number, patience_ms)) {
        if (!note->error)
            return true;
        g_propagate_error(error, g_error_copy(note->error));
        return false;
    }
    if (task_killed())
        return node_killed(error);
    note->owed = true;
    fettle_set_error(error, STORAGE,
                     "var/" GUEST_FOLDER "/%s.json: the disk of this node's state does not answer "
                     "since %" G_GINT64_FORMAT " s; see to that disk, then try again",
                     guest->record->instance, (env->ops->boot_ms(env) - note->since_ms) / 1000);
    return false;
}

bool guest_save(struct guest *guest, GError **error)
{
    return note_save(guest, LIMIT_NOTE_MS, error);
}

bool guest_save_end(struct guest *guest, GError **error)
{
    return note_save(guest, LIMIT_NOTE_END_MS, error);
}

bool guest_save_rest(struct guest *guest, GError **error)
{
    return guest->note.asked == 0 || guest_save(guest, error);
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
    text_set(&guest->record->crashed, "");
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

bool guest_end_process(struct guest *guest, GError **error)
{
    struct hypervisor *hv = guest->node->hv;
    guest->ending = true;
    if (!hv->ops->kill(hv, guest->record->instance, guest->record->generation, error))
        return false;
    guest->live = false;
    return true;
}

bool guest_kill(struct guest *guest, GError **error)
{
    if (!guest_end_process(guest, error)) {
        g_prefix_error(error, "generation %" G_GUINT64_FORMAT " could not be ended: ",
                       guest->record->generation);
        return false;
    }
    guest->shutdown = false;
    taps_remove(guest, guest->record->spec);
    if (!mirror_watch_stop(guest))
        return node_killed(error);
    return true;
}

void guest_gone(struct guest *guest, const char *said)
{
    bool crashed = guest->live && !guest->ending && !guest->shutdown;
    guest->live = false;
    if (!crashed)
        return;
    g_autofree char *words = text_head(*said ? said : "it said nothing", CRASHED_CHARS);
    text_set(&guest->record->crashed, words);
    guest->note.owed = true;
    note_begin(guest);
}

enum guest_state guest_state_known(const struct guest *guest)
{
    if (guest->live)
        return guest->shutdown ? GUEST_SHUTDOWN : guest->last_state;
    return guest->incoming_live ? GUEST_INCOMING : GUEST_ABSENT;
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
            guest_gone(guest, "");
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

/* Which of its drives may be why it stands still. Without volumes there is no doubt. */
static bool look_for_short(struct guest *guest, guint64 generation, enum io_stop stop)
{
    struct hypervisor *hv = guest->node->hv;
    bool asks = stop != IO_STOP_NONE && guest->record->volumes->len > 0;
    GPtrArray *drives =
        asks ? hv->ops->drives(hv, guest->record->instance, generation, true, NULL) : NULL;
    if (generation != guest->record->generation || (asks && !drives)) {
        g_clear_pointer(&drives, g_ptr_array_unref);
        return false;
    }
    g_clear_pointer(&guest->short_of_room, g_ptr_array_unref);
    guest->short_of_room = drives;
    if (stop == IO_STOP_NONE) {
        guest->disks_full = false;
        guest->full_volume[0] = '\0';
    }
    return true;
}

bool guest_look_io(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    guint64 generation = guest->record->generation;
    struct io_info io = {0};
    if (!hv->ops->io_query(hv, guest->record->instance, generation, &io, NULL) ||
        generation != guest->record->generation || !look_for_short(guest, generation, io.stop))
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

bool guest_may_be_short(const struct guest *guest, const char *drive)
{
    const GPtrArray *drives = guest->short_of_room;
    return !drives || drives->len == 0 ||
           g_ptr_array_find_with_equal_func((GPtrArray *)drives, drive, g_str_equal, NULL);
}

const struct guest_volume *guest_io_volume(const struct guest *guest)
{
    const GPtrArray *volumes = guest->record->volumes;
    bool known = guest->short_of_room && guest->short_of_room->len > 0;
    if (guest_io_stop(guest) == IO_STOP_NONE || guest->disks_full)
        return NULL;
    for (guint i = 0; i < volumes->len; i++) {
        const struct guest_volume *volume = volumes->pdata[i];
        g_autofree char *drive = g_strdup_printf(VOLUME_DRIVE, volume->attachment);
        if (*guest->full_volume ? strcmp(volume->volume, guest->full_volume) == 0
                                : known && guest_may_be_short(guest, drive))
            return volume;
    }
    return NULL;
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
    g_clear_pointer(&guest->held, g_free);
    if (guest_save(guest, &error) || fettle_error_is(error, KILLED))
        return;
    log_warning("", "%s", error->message);
    guest->note.owed = true;
    note_begin(guest);
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
