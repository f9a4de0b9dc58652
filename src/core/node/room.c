/*
 * See room.h.
 */
#include "core/node/room.h"

#include "base/log.h"
#include "core/node/volume/points.h"
#include "core/node/volume/volumes.h"

#define LOOK_MS 5000    /* between two looks at a guest that is thought to run */
#define WAIT_MS 1000    /* and while one stands still */
#define SETTLE_MS 500   /* one that stops again within that has not got on */
#define LATE_MS 10000   /* before one whose monitor was silent is asked again */
#define STEADY_MS 10000 /* then what was tried before is forgotten */

static gint64 now_ms(const struct guest *guest)
{
    return guest->node->env->ops->boot_ms(guest->node->env);
}

static void say(const struct guest *guest, bool bad, const char *what)
{
    g_autofree char *fields = g_strdup_printf("INSTANCE=%s GENERATION=%" G_GUINT64_FORMAT,
                                              guest->record->instance, guest->record->generation);
    if (bad)
        log_error(fields, "%s", what);
    else
        log_info(fields, "%s", what);
}

static bool is_enough(bool known, const struct storage_space *space, bool unknown)
{
    return known && space->total_mib > 0 ? space->free_mib >= LIMIT_ROOM_LEAST_MIB : unknown;
}

/* Where its images are. */
static bool disks_have_room(const struct guest *guest, bool unknown)
{
    struct storage *storage = guest->node->storage;
    const struct instance *spec = guest->record->spec;
    struct storage_space space = {0};
    bool known = true;
    if (spec && spec->disk_template == TEMPLATE_SHAREDFILE)
        storage->ops->shared(storage, &space);
    else
        known = storage->ops->space(storage, &space, NULL);
    return is_enough(known, &space, unknown);
}

static bool disks_suspected(const struct guest *guest)
{
    const struct instance *spec = guest->record->spec;
    for (guint i = 0; i < (spec ? spec->disks->len : 1); i++) {
        g_autofree char *drive = g_strdup_printf("vd%u", i);
        if (guest_may_be_short(guest, drive))
            return true;
    }
    return false;
}

/* Copies, as its record may change while they are looked at. */
static GPtrArray *volumes_suspected(const struct guest *guest)
{
    GPtrArray *suspected = g_ptr_array_new_with_free_func((GDestroyNotify)guest_volume_free);
    for (guint i = 0; i < guest->record->volumes->len; i++) {
        const struct guest_volume *volume = guest->record->volumes->pdata[i];
        g_autofree char *drive = g_strdup_printf(VOLUME_DRIVE, volume->attachment);
        if (guest_may_be_short(guest, drive))
            g_ptr_array_add(suspected, guest_volume_copy(volume));
    }
    return suspected;
}

/* A back end that does not answer holds up this look, and so its guest, alone: it is the one to be
 * named meanwhile. */
static bool volume_has_room(struct guest *guest, const struct guest_volume *volume, bool unknown)
{
    struct storage *storage = guest->node->storage;
    struct storage_file file = {0};
    g_strlcpy(guest->full_volume, volume->volume, sizeof guest->full_volume);
    bool known = !*volume->conf && storage->ops->look_at(storage, volume->path, &file, NULL);
    if (!is_enough(known, &file.space, unknown))
        return false;
    guest->full_volume[0] = '\0';
    return true;
}

/* Whatever it may stand still for. `unknown`: what counts of what is not known. */
static bool has_room(struct guest *guest, bool unknown)
{
    g_autoptr(GPtrArray) volumes = volumes_suspected(guest);
    guest->disks_full = disks_suspected(guest) && !disks_have_room(guest, unknown);
    for (guint i = 0; i < volumes->len && !guest->disks_full; i++)
        if (!volume_has_room(guest, volumes->pdata[i], unknown))
            return false;
    return !guest->disks_full;
}

/* A copy in sync on record has every acknowledged write only while the guest mirrors to it. */
static bool mirror_stands(const struct guest *guest)
{
    enum mirror_state mirror = guest->last_mirror.state;
    if (!guest->record->target || guest->replica_state == REPLICA_STALE)
        return true;
    return guest->watch && (mirror == MIRROR_READY || mirror == MIRROR_SYNCING);
}

/* Of a generation that the master has confirmed, that was not stopped, has not left and does not
 * leave. */
static bool may_go_on(const struct guest *guest)
{
    const struct guest_record *record = guest->record;
    guint64 history = epoch_fence_stamp(guest->node->fence).history;
    return guest->live && guest->adopted && record->history == history &&
           record->phase == PHASE_STARTED && record->run && !guest->shutdown && !guest->outgoing &&
           guest_io_stop(guest) == IO_STOP_NO_SPACE && mirror_stands(guest);
}

/* With the guest locked: everything is looked at once more. */
static bool go_on_locked(struct guest *guest)
{
    struct hypervisor *hv = guest->node->hv;
    g_autoptr(GError) error = NULL;
    if (!guest_query(guest) || !guest->live || !guest_look_io(guest) || !may_go_on(guest))
        return false;
    guest->went_on_ms = now_ms(guest);
    if (hv->ops->go_on(hv, guest->record->instance, guest->record->generation, &error))
        return true;
    if (!task_killed())
        say(guest, true, error->message);
    return false;
}

/* What stops again at once, with room there, is not helped by room. Of a volume nothing follows: no
 * other node would have more of it, so it is tried for as long as that takes. */
static void settle(struct guest *guest)
{
    if (!env_sleep(guest->node->env, SETTLE_MS) || !guest->live || !guest_look_io(guest))
        return;
    if (guest->last_io.stop == IO_STOP_NONE) {
        say(guest, false, "there is room for it again, guest goes on");
    } else if (has_room(guest, false) && !guest_io_volume(guest) &&
               ++guest->go_on_tries == GO_ON_TRIES) {
        say(guest, true,
            "there is room for its disks, but guest stops at once each time it goes on: it stays "
            "as it is, its disk counts as failed");
    }
}

/* With a guest that a procedure is busy with it is tried again later. */
static void help(struct guest *guest)
{
    if (!has_room(guest, true) || guest->procedure.locked || guest->outgoing ||
        !guest_lock(guest, NULL, NULL))
        return;
    bool tried = go_on_locked(guest);
    guest_unlock(guest);
    if (tried)
        settle(guest);
}

/* What there is no room for, and where. Free with g_free(). */
static char *needs(const struct guest *guest)
{
    const struct guest_volume *volume = guest_io_volume(guest);
    return volume ? g_strdup_printf("its volume %s", volume->path)
                  : g_strdup("its disks on this node");
}

static void say_stopped(const struct guest *guest)
{
    g_autofree char *what = needs(guest);
    g_autofree char *text = g_strdup_printf("there is no room for %s, guest stands still", what);
    say(guest, true, text);
}

static void look(struct guest *guest)
{
    enum io_stop before = guest->last_io.stop;
    if (!guest_query(guest) || !guest->live || !guest_look_io(guest))
        return;
    if (guest->last_io.stop == IO_STOP_NONE) {
        if (guest->go_on_tries > 0 && now_ms(guest) - guest->went_on_ms >= STEADY_MS)
            guest->go_on_tries = 0;
        return;
    }
    if (before == IO_STOP_NONE)
        say_stopped(guest);
    if (guest_io_stop(guest) == IO_STOP_NO_SPACE)
        help(guest);
}

static void look_run(void *data)
{
    struct guest *guest = data;
    struct node_core *node = guest->node;
    look(guest);
    volumes_finish(guest);
    volumes_catch_up(guest);
    points_watch(guest);
    volumes_watch(guest);
    guest->looked_at = false;
    node_release(node);
}

static bool may_look(const struct guest *guest)
{
    bool silent = guest->query_late && now_ms(guest) - guest->query_late_ms < LATE_MS;
    return guest->live && guest->record->phase == PHASE_STARTED && !silent && !guest->looked_at;
}

/* Each in a task of its own: one whose monitor is silent holds up nobody else. Returns whether one
 * stands still and may be helped. */
static bool room_round(struct node_core *node)
{
    GHashTableIter iter;
    void *value;
    bool waits = false;
    g_hash_table_iter_init(&iter, node->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct guest *guest = value;
        waits = waits || guest_io_stop(guest) == IO_STOP_NO_SPACE;
        if (!may_look(guest))
            continue;
        guest->looked_at = true;
        node_hold(node);
        task_spawn(node->env->tasks, look_run, guest);
    }
    return waits;
}

static void room_run(void *data)
{
    struct node_core *node = data;
    while (!node->ended && env_sleep(node->env, room_round(node) ? WAIT_MS : LOOK_MS))
        ;
    node_release(node);
}

void room_start(struct node_core *node)
{
    node_hold(node);
    task_spawn(node->env->tasks, room_run, node);
}

bool room_check(struct guest *guest, const char *what, GError **error)
{
    enum io_stop stop = guest_io_stop(guest);
    if (stop == IO_STOP_NONE)
        return true;
    g_autofree char *name = guest_name(guest), *place = needs(guest);
    if (stop == IO_STOP_FAILED)
        fettle_set_error(error, WRONG_STATE,
                         "%s stands still, because its disk on this node fails though it has room: "
                         "%s; with --timeout 0 it is ended as by a power cut",
                         name, what);
    else
        fettle_set_error(error, WRONG_STATE,
                         "%s stands still, because there is no room for %s: %s; make room and it "
                         "goes on by itself, or end it as by a power cut with --timeout 0",
                         name, place, what);
    return false;
}
